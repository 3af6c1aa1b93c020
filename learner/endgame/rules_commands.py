"""What ``crownhead rules`` does: shows the rules, or learns them anew, and measures them on the tables."""

from pathlib import Path
from typing import TypedDict

from engine.console import Console
from engine.files import check_replaceable, check_writable
from engine.game import ENGLISH, check_game
from engine.knowledge.rules import OUTCOMES, RuleList, RulesError, load_rules, save_rules
from engine.tablebase import open_tablebase
from engine.tablebase.dense import load_tables
from engine.tablebase.folder import SHIPPED

from ..report import make_writable_folder
from .progress import OracleProgress
from .rules_learning import (
    EXHAUSTED_PIECES,
    curve,
    fit_progress,
    learn_rules,
    learning_set,
    quiet_positions,
    quiet_sample,
    with_features,
)
from .rules_page import PAGE, RulePart, read_page, rule_parts, write_page

_POLISHINGS = 3
_MOST_RULES = 60
_SAMPLED = 200_000  # positions of five pieces that rules are measured on, drawn anew: few are among those learnt from
_PER_MATERIAL = 20_000  # won positions from which plies are estimated
_TEST_SEED = 1 << 40


class RuleFigures(TypedDict):
    """A rule: its conditions and outcome, and by number of pieces the positions that it decides and gets wrong."""

    conditions: list[str]
    outcome: str
    covered: dict[int, int]
    errors: dict[int, int]
    example: str | None
    exception: str | None


class RulesFigures(TypedDict):
    """What ``crownhead rules`` has found.

    ``accuracy`` is by number of pieces, ``accuracy_exhausted`` of all quiet positions of 2-4 pieces, ``curve`` the same
    with 1, 2, ... of the rules; none of them where nothing was measured.
    """

    page: str | None
    file: str | None
    accuracy: dict[int, float]
    accuracy_exhausted: float | None
    curve: list[float]
    rules: list[RuleFigures]


def rules_command(
    out: Path | None, learn: Path | None, most: int | None, seed: int, folder: Path | None, quiet: bool
) -> RulesFigures:
    """Shows, learns and measures rules; see ``crownhead rules --help``.

    Args:
        out: folder of the page; None measures nothing.
        learn: file of rules to write; None takes those that come with the package.
        folder: of the tables, which need distances up to four pieces; None for the default one.

    Raises:
        OtherGameError: this process plays another game.
        RulesError: a file of rules is damaged.
        MissingTableError: there are no tables of distances.
        StorageError: a file cannot be written.
    """
    check_game("the list of endgame rules", ENGLISH)
    if learn is None and folder is not None:
        raise RulesError("--dir is for --learn: rules that are there already are measured on the package's tables")
    if learn is None and most is not None:
        raise RulesError("--rules is for --learn: there are as many rules as come with the program")
    if learn is not None and learn.is_dir():
        raise RulesError(f"{learn}: it is a folder: name a file for the rules")
    if learn is not None:
        open_tablebase(folder).close()  # its tables can be read: told now, not after minutes
    for place in (out, None if learn is None else learn.absolute().parent):
        if place is not None:
            make_writable_folder(place)  # now, not after minutes
    if out is not None:
        check_replaceable(out / PAGE, read_page, "page of rules")
    if learn is not None:
        check_writable(learn)
        check_replaceable(learn, load_rules, "rules")
    with OracleProgress(quiet) as progress:
        rules = load_rules() if learn is None else _learnt(learn, most or _MOST_RULES, seed, folder, progress)
        parts, right = ([], []) if out is None else _measured(rules, seed, progress)
    page = None if out is None else write_page(out, rules, parts, right)
    figures = _figures(rules, parts, right, page, learn)
    if not quiet:
        _print(rules, figures)
    return figures


def _learnt(path: Path, most: int, seed: int, folder: Path | None, progress: OracleProgress) -> RuleList:
    progress.phase("reading tables")
    tables = load_tables(SHIPPED, EXHAUSTED_PIECES + 1, report=progress.tables)
    words, values = quiet_positions(tables, EXHAUSTED_PIECES)
    progress.phase("features of positions")
    examples = learning_set(tables, words, values, seed)
    progress.phase("learning rules", most)
    found = learn_rules(examples, most, _POLISHINGS, lambda what, done: progress.done(done, what))
    progress.phase("estimating plies")
    with open_tablebase(folder) as distances:
        points = fit_progress(words, values, distances, _PER_MATERIAL, seed)
    rules = RuleList(tuple(found), points, {"command": "crownhead rules --learn", "rules": most, "seed": seed})
    save_rules(path, rules)
    return rules


def _measured(rules: RuleList, seed: int, progress: OracleProgress) -> tuple[list[RulePart], list[float]]:
    progress.phase("reading tables")
    tables = load_tables(SHIPPED, EXHAUSTED_PIECES + 1, report=progress.tables)
    words, values = quiet_positions(tables, EXHAUSTED_PIECES)
    progress.phase("features of all quiet positions", len(words))
    exhausted = with_features(words, values, progress.done)
    sample = with_features(*quiet_sample(tables, EXHAUSTED_PIECES + 1, _SAMPLED, seed + _TEST_SEED))
    return rule_parts(rules, [exhausted, sample], seed), curve(rules, exhausted, seed)


def _figures(
    rules: RuleList, parts: list[RulePart], right: list[float], page: Path | None, learn: Path | None
) -> RulesFigures:
    numbers = sorted(parts[0].covered) if parts else []
    accuracy = {n: 1 - sum(part.errors[n] for part in parts) / sum(part.covered[n] for part in parts) for n in numbers}
    shown = parts or [RulePart({}, {}, None, None)] * len(rules.rules)
    return {
        "page": None if page is None else str(page),
        "file": None if learn is None else str(learn),
        "accuracy": accuracy,
        "accuracy_exhausted": right[-1] if right else None,
        "curve": right,
        "rules": [
            {"conditions": list(rule.words), "outcome": OUTCOMES[rule.outcome], **part._asdict()}  # type: ignore[typeddict-item]
            for rule, part in zip(rules.rules, shown, strict=True)
        ],
    }


def _print(rules: RuleList, figures: RulesFigures) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for number, rule in enumerate(rules.rules, 1):
        console.print(f"{number:3}. {rule}")
    for pieces, share in figures["accuracy"].items():
        console.print(f"{pieces} pieces: {share:.2%} of quiet positions right")
