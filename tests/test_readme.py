"""What the README tells people to type in Python works."""

import textwrap
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_example_in_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    section = README.read_text(encoding="utf-8").split("### From Python\n")[1].split("\n### ")[0]
    code = "\n".join(line for line in section.splitlines() if line.startswith("    ") or not line)
    exec(compile(textwrap.dedent(code), str(README), "exec"), {})
    assert "verdict='win'" in capsys.readouterr().out
