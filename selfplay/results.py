"""What commands hand back."""

from dataclasses import asdict
from typing import Any


class Result:
    """What a command has found: a frozen dataclass."""

    def figures(self) -> dict[str, Any]:
        """What ``--json`` prints, with the keys that README.md lists: the fields, where nothing else is said."""
        return asdict(self)  # type: ignore[call-overload]
