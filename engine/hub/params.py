"""Parameters of an engine: what the ``param`` lines of the Hub protocol declare and ``set-param`` sets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .messages import HubError, format_message, shown

Value = bool | int | float | str


@dataclass(frozen=True)
class Param:
    """A parameter that the other program may set.

    Attributes:
        value: to begin with.
        type: ``bool`` (``true`` or ``false``), ``int``, ``real``, ``string`` or ``enum``.
        least, most: of a number.
        values: of an enum.
    """

    name: str
    value: Value
    type: Literal["bool", "int", "real", "string", "enum"]
    least: float | None = None
    most: float | None = None
    values: Sequence[str] = ()

    def declaration(self) -> str:
        """The line that tells of it."""
        args: dict[str, object] = {"name": self.name, "value": _written(self.value), "type": self.type}
        limits = {"min": self.least, "max": self.most, "values": " ".join(self.values) or None}
        return format_message("param", args | {name: value for name, value in limits.items() if value is not None})

    def read(self, text: str) -> Value:
        """The value that a text names.

        Raises:
            HubError: it names none.
        """
        value: Value | None = text
        if self.type == "bool":
            value = {"true": True, "false": False}.get(text)
        elif self.type == "enum":
            value = text if text in self.values else None
        elif self.type != "string":
            value = self._number(text)
        if value is None:
            raise HubError(f"{self.name} cannot be {shown(text)}: {self.declaration()}")
        return value

    def _number(self, text: str) -> Value | None:
        try:
            value = int(text) if self.type == "int" else float(text)
        except ValueError:
            return None
        least = -float("inf") if self.least is None else self.least
        most = float("inf") if self.most is None else self.most
        return value if least <= value <= most and abs(value) < float("inf") else None


VARIANT = Param("variant", "english", "enum", values=("english",))
POSITIONS = Param("positions", "auto", "enum", values=("auto", "straight", "turned"))
"""How the other program writes positions, see ``notation``."""


def _written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
