"""Which version of the program, and of packages beside it, is installed."""

from importlib.metadata import PackageNotFoundError, version

ABSENT = "not installed"


def installed_version(package: str = "crownhead") -> str:
    """The package's version; ``ABSENT`` if it is not installed, as when the program runs out of its source folder."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ABSENT
