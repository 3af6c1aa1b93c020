"""Parameters of an engine: declared by ``param`` lines of the Hub protocol, set by ``set-param``."""

import contextlib
from collections.abc import Sequence
from typing import Literal, NamedTuple

from .messages import HubError, format_message, shown

Value = bool | int | str


class Param(NamedTuple):
    """A parameter that the other program may set.

    Attributes:
        value: default value.
        type: ``bool`` (``true`` or ``false``), ``int`` or ``enum``.
        least, most: range of an ``int``.
        values: possible values of an ``enum``.
    """

    name: str
    value: Value
    type: Literal["bool", "int", "enum"]
    least: int = 0
    most: int = 0
    values: Sequence[str] = ()

    def declaration(self) -> str:
        value = str(self.value).lower() if self.type == "bool" else self.value
        args: dict[str, object] = {"name": self.name, "value": value, "type": self.type}
        if self.type == "int":
            args |= {"min": self.least, "max": self.most}
        return format_message("param", args | ({"values": " ".join(self.values)} if self.type == "enum" else {}))

    def read(self, text: str) -> Value:
        """Parses a value of this parameter; raises ``HubError`` if the text is not one."""
        if self.type == "bool" and text in ("true", "false"):
            return text == "true"
        if self.type == "enum" and text in self.values:
            return text
        with contextlib.suppress(ValueError):
            if self.type == "int" and self.least <= int(text) <= self.most:
                return int(text)
        raise HubError(f"{self.name} cannot be {shown(text)}: {self.declaration()}")


VARIANT = Param("variant", "english", "enum", values=("english",))
POSITIONS = Param("positions", "auto", "enum", values=("auto", "straight", "turned"))
"""How the other program writes positions, see ``notation``; ``straight`` is not turned."""
