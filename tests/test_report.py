"""The report writer: content of the files, and what it refuses."""

import base64
import errno
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure as Canvas
from PIL import Image

from engine.files import StorageError
from learner.report import (
    Figure,
    Report,
    ReportError,
    Section,
    Table,
    Text,
    make_writable_folder,
    to_html,
    to_markdown,
    write_report,
)

VOID = {"meta", "img"}


def picture(label: str) -> bytes:
    canvas = Canvas(figsize=(1, 1))
    canvas.text(0.5, 0.5, label)
    image = io.BytesIO()
    canvas.savefig(image, format="png")
    return image.getvalue()


def example() -> Report:
    rows = [("1211", 1234567, "99.5 %", "a|b"), ("b", None, 0.123456, "3 of 4")]
    table = Table("Sizes <of> things", ("name", "size", "share", "note"), rows)
    return Report(
        "Cats & dogs",
        [
            Section("First *part*", [Text("1. a <b> & `c`"), table, Figure("one", picture("1"), 'Says "one"')]),
            Section("Second", [Figure("two", picture("2"), "Two")]),
        ],
        {"accuracy": 0.5, "empty": None, "sign": "≥"},
    )


class Page(HTMLParser):
    """Parses a page: cells, text, images; fails if tags are not closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[tuple[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.images: list[tuple[str, str]] = []
        self.kind = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not {"href", "srcset"} & {name for name, _ in attrs}
        found = {name: value or "" for name, value in attrs}
        if tag == "img":
            self.images.append((found["src"], found["alt"]))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append(("", found.get("style", "")))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)
            if self.open[-1] in ("td", "th"):
                self.rows[-1][-1] = (data, self.rows[-1][-1][1])


def test_files_of_a_report(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "report"
    report = example()
    assert write_report(folder, report) == folder / "report.html"
    assert {path.name for path in folder.iterdir()} == {"report.md", "report.json", "report.html", "one.png", "two.png"}
    assert json.loads((folder / "report.json").read_text(encoding="utf-8")) == report.data
    for figure in report.figures():
        with Image.open(folder / figure.file_name) as image:
            image.verify()
        assert (folder / figure.file_name).read_bytes() == figure.png
    links = re.findall(r"\]\(([^)]*)\)", (folder / "report.md").read_text(encoding="utf-8"))
    assert links == ["one.png", "two.png"]


def test_the_page_stands_alone() -> None:
    report = example()
    text = to_html(report)
    page = Page(text)
    prefix = "data:image/png;base64,"
    assert [alt for _, alt in page.images] == ['Says "one"', "Two"]
    assert all(source.startswith(prefix) for source, _ in page.images)
    embedded = [base64.b64decode(source.removeprefix(prefix)) for source, _ in page.images]
    assert embedded == [figure.png for figure in report.figures()]
    assert not re.search(r"https?:|<script|<link|url\(", text)
    assert page.texts["title"] == page.texts["h1"] == ["Cats & dogs"]
    assert "".join(page.texts["p"]).strip() == "1. a <b> & `c`"
    assert "".join(page.texts["em"]) == 'Sizes <of> thingsSays "one"Two'


def test_cells_of_the_page() -> None:
    page = Page(to_html(example()))
    assert [[text for text, _ in row] for row in page.rows] == [
        ["name", "size", "share", "note"],
        ["1211", "1,234,567", "99.5 %", "a|b"],
        ["b", "–", "0.1235", "3 of 4"],
    ]
    assert [kind for _, kind in page.rows[1]] == ["", "text-align:right", "text-align:right", ""]


def test_markdown() -> None:
    assert to_markdown(example()).splitlines() == [
        "# Cats \\& dogs",
        "",
        "## First \\*part\\*",
        "",
        "1\\. a \\<b\\> \\& \\`c\\`",
        "",
        "*Sizes \\<of\\> things*",
        "",
        "| name | size | share | note |",
        "| --- | ---: | ---: | --- |",
        "| 1211 | 1,234,567 | 99.5 % | a\\|b |",
        "| b | – | 0.1235 | 3 of 4 |",
        "",
        '![Says "one"](one.png)',
        "",
        '*Says "one"*',
        "",
        "## Second",
        "",
        "![Two](two.png)",
        "",
        "*Two*",
    ]


def test_lines_and_truth_values_in_cells() -> None:
    table = Table("t", ("a\nb", "c"), [("x\ny", True), ("", False)])
    text = to_markdown(Report("t", [Section("s", [Text("- no\nlist"), table])], {}))
    assert "| a b | c |\n| --- | --- |\n| x y | yes |\n|  | no |\n" in text
    assert "\n\\- no list\n" in text


def test_written_again_over_itself(tmp_path: Path) -> None:
    write_report(tmp_path, example())
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "notes.txt").write_text("mine")
    write_report(tmp_path, example())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {**first, "notes.txt": b"mine"}


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), {1, 2}, object()])
def test_data_that_is_not_json_is_refused_before_anything_is_written(tmp_path: Path, bad: object) -> None:
    with pytest.raises(ReportError, match="not JSON"):
        write_report(tmp_path / "folder", Report("t", [], {"x": bad}))
    assert list(tmp_path.iterdir()) == []


def test_figures_of_one_name_are_refused(tmp_path: Path) -> None:
    figure = Figure("same", picture("1"), "")
    with pytest.raises(ReportError, match="'same'"):
        write_report(tmp_path / "folder", Report("t", [Section("s", [figure, figure])], {}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../up", "a/b", "A", "a.png", "-x"])
def test_figure_names_that_are_no_file_names_are_refused(name: str) -> None:
    with pytest.raises(ReportError, match="figure name"):
        Figure(name, picture("1"), "")


def test_what_is_no_png_or_no_table_is_refused() -> None:
    with pytest.raises(ReportError, match="not a PNG"):
        Figure("a", b"GIF89a", "")
    with pytest.raises(ReportError, match="row 2 has 1 cells, the header 2"):
        Table("t", ("a", "b"), [("1", "2"), ("1",)])
    with pytest.raises(ReportError, match="no column"):
        Table("t", (), [])


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    with pytest.raises(StorageError, match="folder"):
        write_report(tmp_path / "folder", example())


def test_a_folder_is_tried_before_there_is_a_report(tmp_path: Path) -> None:
    make_writable_folder(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
    (tmp_path / "file").write_text("a file")
    with pytest.raises(StorageError, match="file"):
        make_writable_folder(tmp_path / "file")


def test_a_folder_may_be_tried_by_two_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_and_lose(path: Path, data: bytes) -> None:
        path.write_bytes(data)
        path.unlink()  # as another process does

    monkeypatch.setattr("learner.report.atomic_write", write_and_lose)
    make_writable_folder(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, data: bytes) -> None:
        raise StorageError(errno.EROFS, f"cannot write {path}: Read-only file system")

    monkeypatch.setattr("learner.report.atomic_write", refused)
    with pytest.raises(StorageError, match=f"cannot write into {tmp_path}: Read-only file system"):
        make_writable_folder(tmp_path)
