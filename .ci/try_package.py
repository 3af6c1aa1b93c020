"""Builds the sdist and from it a wheel, and tests the wheel outside the sources: python try_package.py [PYTHON ...]

The wheel is installed in a new environment that sees this Python's packages. For each other PYTHON that exists, it is
installed with all its dependencies.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TORCH = "torch==2.13.0"  # as in bootstrap.py: a newer one may bring gigabytes of CUDA
TRY_MATCH = (
    "import crownhead, crownhead_board, engine, learner, selfplay, gui, papers\n"
    "from pathlib import Path\n"
    "for room in (engine, learner, selfplay, gui, papers):\n"
    "    folder = Path(room.__file__).parent\n"
    "    assert not folder.is_relative_to({root!r}), folder\n"
    "    assert (folder / 'py.typed').is_file(), folder\n"
)


def build(folder: Path) -> Path:
    """Builds the wheel from the sdist, so that files missing in the sdist are missing in the wheel, too."""
    archive = _built("build_sdist", ROOT, folder)
    with tarfile.open(archive) as opened:
        opened.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # from 3.11.4 on
    return _built("build_wheel", folder / archive.name.removesuffix(".tar.gz"), folder)


def _built(what: str, sources: Path, folder: Path) -> Path:
    """Runs a hook of the build system; returns the file that it made, whose name is the last word of its output."""
    code = f"from setuptools import build_meta; print(build_meta.{what}({str(folder)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=sources, check=True, stdout=subprocess.PIPE, text=True)
    return folder / done.stdout.split()[-1]


def try_wheel(python: Path, folder: Path) -> None:
    """Tests imports, the version and a short match, in another folder and without PYTHONPATH."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(python.parent / "crownhead")]
    for arguments in (
        [str(python), "-c", TRY_MATCH.format(root=str(ROOT))],
        [*command, "--version"],
        [*command, "match", "random", "alphabeta:2", "--games", "2", "--jobs", "1"],
    ):
        subprocess.run(arguments, cwd=folder, env=environment, check=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder)
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes", flush=True)
        venv.create(folder / "here", with_pip=False)
        python = folder / "here" / "bin" / "python"
        packages = next((folder / "here" / "lib").iterdir()) / "site-packages"
        (packages / "packages.pth").write_text(sysconfig.get_path("purelib"))
        pip = ["-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile", "--no-deps"]
        subprocess.run([sys.executable, *pip, "--ignore-installed", str(wheel)], check=True)
        try_wheel(python, folder)
        for other in sys.argv[1:]:
            if shutil.which(other) is None or subprocess.run([other, "--version"]).returncode:
                print(f"{other} is not here: not tried with it", flush=True)
                continue
            subprocess.run([other, "-m", "venv", str(folder / Path(other).name)], check=True)
            python = folder / Path(other).name / "bin" / "python"
            pip = ["-m", "pip", "install", "--quiet", "--no-compile", "--constraint", str(ROOT / "constraints.txt")]
            subprocess.run([python, *pip, TORCH, wheel], check=True)
            try_wheel(python, folder)


if __name__ == "__main__":
    main()
