"""Sets Crownhead up in .venv beside this file, where needed, and runs a command there: python3 bootstrap.py COMMAND ...

    python3 bootstrap.py crownhead train      installs what running needs, then trains
    python3 bootstrap.py pytest               installs what the tests need too, then runs them
    python3 bootstrap.py docs                 builds the documentation into build/site; any warning is an error

Versions are pinned by constraints.txt. If this Python already has torch, it is used; otherwise the pinned version is
installed (on Linux, pip takes a CPU build if its configured sources have one).
"""

import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
SCRIPTS = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
PYTHON, PIP = (SCRIPTS / (f"{name}.exe" if os.name == "nt" else name) for name in ("python", "pip"))
CONSTRAINTS = ROOT / "constraints.txt"
TORCH = "torch==2.13.0"
TOOLS = {  # program → extra that it needs
    "mkdocs": "docs",
    "mypy": "dev",
    "pytest": "dev",
    "ray": "ray",
    "ruff": "dev",
    "tensorboard": "report",
}
EXTRAS = {  # word in the command → extra that it needs in addition to the core packages
    "--address": "ray",
    "--prometheus": "prometheus",
    "--syzygy": "papers",
    "abdalla": "papers",
    "card": "report",
    "export": "export",
    "ladder": "report",
    "oracle": "report",
    "ray": "ray",
    "reproduce": "report",
}


def extras_of(command: str, arguments: list[str]) -> str:
    """The extras that a command needs, separated by commas."""
    if command in TOOLS:
        return TOOLS[command]
    words = [word for argument in arguments for word in (argument, *argument.split("=", 1))]
    return ",".join(sorted({EXTRAS[word] for word in words if word in EXTRAS}))


def install(extra: str) -> None:
    """Makes the environment and installs the project with these extras, unless this was done before."""
    definition = (ROOT / "pyproject.toml").read_bytes() + CONSTRAINTS.read_bytes()
    stamp, key = ENVIRONMENT / f"installed-{extra or 'core'}", hashlib.sha256(definition).hexdigest()
    if stamp.is_file() and stamp.read_text() == key:
        return
    # A torch in an active environment does not help: the new environment sees only packages of the Python itself.
    has_torch = sys.prefix == sys.base_prefix and importlib.util.find_spec("torch") is not None
    if not PIP.exists():  # what a new environment gets last: its making may have been interrupted
        print(f"Setting up {ENVIRONMENT} (a few minutes the first time)", file=sys.stderr)
        venv.create(ENVIRONMENT, with_pip=True, system_site_packages=has_torch)
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if not sys.dont_write_bytecode:  # Python compiles files on import; compiling all packages takes long
        pip.append("--no-compile")
    if not has_torch:
        subprocess.run([*pip, TORCH], check=True)
    subprocess.run(
        [*pip, "--constraint", str(CONSTRAINTS), "--editable", f"{ROOT}[{extra}]" if extra else str(ROOT)], check=True
    )
    stamp.write_text(key)


def run(program: list[str]) -> int:
    """Runs a program in the place of this one, so that it gets signals itself, and the time to save; its exit code."""
    # Programs that it starts are found as if the environment were active, like those of hub:crownhead.
    os.environ["PATH"] = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", os.defpath)])
    if os.name != "nt":
        os.execv(program[0], program)
    with subprocess.Popen(program) as process:  # Windows cannot replace a process
        while True:
            with contextlib.suppress(KeyboardInterrupt):  # the program gets it, too
                return process.wait()


def main() -> int:
    """Returns the command's exit code."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        print(f"Crownhead needs Python 3.11 to 3.13; this is {sys.version.split()[0]}", file=sys.stderr)
        return 2
    command, *arguments = sys.argv[1:]
    if command == "docs":
        command, arguments = "mkdocs", ["build", "--strict", *arguments]
    try:
        install(extras_of(command, arguments))
        if (program := shutil.which(command, path=str(SCRIPTS))) is not None:
            return run([program, *arguments])
    except subprocess.CalledProcessError as error:
        print(f"Setting up failed: {' '.join(map(str, error.cmd))}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:  # ValueError: ``venv`` refuses what lies in the way
        print(f"Setting up failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(f"{command!r} is not a command: use crownhead, docs, {', '.join(TOOLS)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
