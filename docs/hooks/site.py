"""Hooks of MkDocs: add pages made from the code or kept elsewhere, and refuse pages that load from other hosts."""

import re
from pathlib import Path
from typing import Any

import reference
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
COPIES = {  # page → its file in the repository, where it can be read without the site
    "training-log.md": "checkpoints/TRAINING.md",
    "weights.md": "checkpoints/README.md",
    "champion.md": "checkpoints/champion/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changes.md": "CHANGELOG.md",
}
MADE = {
    "reference/commands.md": reference.commands_page,
    "reference/json.md": reference.json_page,
    "reference/configuration.md": reference.configuration_page,
}
LEVELS = "<!-- table of levels -->"
_LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=[\"'](?:https?:)?//[^>]*>")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are not below ``docs``."""
    for page, source in COPIES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    for page, make in MADE.items():
        files.append(File.generated(config, page, content=make()))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Replaces links to files of the repository by links to the pages that show them."""
    folder = Path(COPIES[page.file.src_uri]).parent if page.file.src_uri in COPIES else Path("docs") / page.file.src_uri
    base = folder if page.file.src_uri in COPIES else folder.parent
    pages = {(ROOT / source).resolve(): name for name, source in COPIES.items()}

    def linked(match: re.Match[str]) -> str:
        target, _, anchor = match[1].partition("#")
        place = (ROOT / base / target).resolve()
        name = pages.get(place)
        if name is None and page.file.src_uri in COPIES and place.is_relative_to(ROOT / "docs"):
            name = place.relative_to(ROOT / "docs").as_posix()
        if name is None:
            return match[0]
        up = "../" * page.file.src_uri.count("/")
        return f"]({up}{name}{'#' + anchor if anchor else ''})"

    return re.sub(r"\]\(([^)\s:]+)\)", linked, markdown).replace(LEVELS, reference.levels_table())


def on_post_page(output: str, page: Page, config: Any) -> str:
    """Raises ``PluginError``, which ends the build, if a page loads something from another host."""
    if found := _LOADED.search(output):
        raise PluginError(f"{page.file.src_uri} loads from another host: {found[0][:120]}")
    return output
