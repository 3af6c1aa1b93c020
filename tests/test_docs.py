"""Every example of the documentation works: commands are read by the command line, quick ones and Python run.

A ``console`` block holds commands behind ``$``; a ``python`` block runs after those above it on its page, and a
``text`` block right after it holds what it prints. ``<!-- not run: WHY -->`` before a block says that it takes too long
or needs something that is not here: its commands are read all the same.
"""

import contextlib
import io
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from programs import crownhead_here

import crownhead

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sorted(
    page for page in (ROOT / "docs").rglob("*.md") if page.name not in ("rules.md", "classics.md")
)
_FENCE = re.compile(r"(?P<mark><!-- not run: [^>\n]+ -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
_COMMAND = re.compile(r"^(?:    |\$ )(?:\w+=\S+ )?(?:python3 bootstrap\.py )?(crownhead(?: .*)?)$", re.M)
_ON_A_CLUSTER = re.compile(r"^    (?:srun|kubectl|ray exec) .*?[ '](?:\w+=\S+ )?(crownhead [a-z]+ [^'\n]*)'?$", re.M)
_IN_TEXT = re.compile(r"(?<!`)`(crownhead [^`]+)`", re.S)


class Block(NamedTuple):
    """A fenced block; ``runs`` is false after a "not run" comment, ``after`` is the block right after this one."""

    language: str
    text: str
    runs: bool
    line: int
    after: "Block | None" = None


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    found: list[Block] = []
    matches = list(_FENCE.finditer(page))
    for index in range(len(matches) - 1, -1, -1):
        match = matches[index]
        after = found[0] if found and not page[match.end() : matches[index + 1].start()].strip() else None
        line = page.count("\n", 0, match.start()) + 1
        found.insert(0, Block(match["language"], match["text"], match["mark"] is None, line, after))
    return found


def commands_in(text: str) -> Iterator[list[str]]:
    """Arguments of every ``crownhead`` command in a console block or an indented one, lines ending in \\ joined."""
    text = re.sub(r"\\\n\s*", "", text)
    for match in (*_COMMAND.finditer(text), *_ON_A_CLUSTER.finditer(text)):
        yield shlex.split(match[1], comments=True)[1:]


def read(arguments: Sequence[str]) -> None:
    """Parses arguments as the command line does, without running the command; raises its error."""
    command: Any = typer.main.get_command(crownhead.app)
    if arguments[:1] == ["--import"]:
        assert (ROOT / arguments[1]).is_file(), arguments[1]
        arguments = arguments[2:]
    rest, name = list(arguments), "crownhead"
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name not in command.commands:
            raise ValueError(f"crownhead has no command {name}")
        command = command.commands[name]
    if hasattr(command, "commands"):
        assert not rest or rest[0] in ("--help", "--version"), f"{' '.join(arguments)}: no command"
        return
    with contextlib.suppress(typer.Exit):
        command.make_context(name, rest)


def _pages_with(language: str) -> list[Any]:
    texts = {page: blocks_of(page.read_text("utf-8")) for page in PAGES}
    found = {page: [block for block in blocks if block.language == language] for page, blocks in texts.items()}
    return [pytest.param(blocks, id=str(page.relative_to(ROOT))) for page, blocks in found.items() if blocks]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_is_read(page: Path) -> None:
    for arguments in commands_in(page.read_text("utf-8")):
        read(arguments)


def test_a_wrong_command_is_refused() -> None:
    assert list(commands_in("$ crownhead match a b --games 2  # two\n\n    crownhead train\n")) == [
        ["match", "a", "b", "--games", "2"],
        ["train"],
    ]
    assert len(list(commands_in((ROOT / "docs" / "cluster.md").read_text("utf-8")))) >= 4
    for wrong in (["no-command"], ["train", "--no-option"], ["match", "one-player"], ["perft", "many"]):
        with pytest.raises(Exception, match=r"crownhead has no command|[Nn]o such option|[Mm]issing|valid"):
            read(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_named_in_the_text_exist(page: Path) -> None:
    """Only names are checked: a command inside a sentence may leave out its arguments."""
    for match in _IN_TEXT.finditer(page.read_text("utf-8")):
        command: Any = typer.main.get_command(crownhead.app)
        for word in match[1].split()[1:]:
            if not hasattr(command, "commands") or not re.fullmatch(r"[a-z]+", word):
                break
            assert word in command.commands, match[0]
            command = command.commands[word]


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with everything that a checkout has."""
    (tmp_path / "checkpoints").symlink_to(ROOT / "checkpoints")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("blocks", _pages_with("python"))
def test_python_runs(blocks: list[Block], somewhere: Path) -> None:
    names: dict[str, Any] = {"__name__": "example"}
    for block in blocks:
        if not block.runs:
            compile(block.text, "example", "exec")
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * block.line + block.text, "example", "exec"), names)
        if block.after is not None and block.after.language == "text":
            assert printed.getvalue() == block.after.text


@pytest.mark.parametrize("blocks", _pages_with("console"))
def test_quick_commands_run(blocks: list[Block], somewhere: Path) -> None:
    quick = [arguments for block in blocks if block.runs for arguments in commands_in(block.text)]
    for arguments in quick:
        done = crownhead_here(*arguments, folder=somewhere, given="no position\n")
        assert done.returncode == 0, arguments
        assert done.stdout.strip(), arguments


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("perft", "perft 2 --divide"),
        ("tablebase build", "tablebase build --pieces 2 --dir tables"),
        ("tablebase info", "tablebase info"),
        ("tablebase verify", "tablebase verify --pieces 2"),
        ("tablebase stats", "tablebase stats --pieces 2"),
        ("probe", "probe W:WK10,K11:BK30 -"),
    ],
)
def test_described_keys_are_those_printed(name: str, arguments: str, somewhere: Path) -> None:
    described = tomllib.loads((ROOT / "docs/hooks/json_keys.toml").read_text("utf-8"))[name]["keys"]
    done = crownhead_here(*arguments.split(), "--json", folder=somewhere, given="no position\n")
    found = json.loads(done.stdout)
    rows = found if isinstance(found, list) else [found]
    assert {key for row in rows for key in row} == set(described), done.returncode


def test_the_site_shows_every_page() -> None:
    """Pages that are missing from the navigation are found here, not only when the site is built."""
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    named = set(re.findall(r": (\S+\.md)$", navigation, re.M))
    there = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert there <= named, there - named
    made = {"reference/commands.md", "reference/json.md", "reference/configuration.md"}
    kept = {"weights.md", "champion.md", "training-log.md", "contributing.md", "changes.md"}
    assert named - there == made | kept
