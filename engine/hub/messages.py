"""Lines of the Hub protocol: a command, then arguments ``name=value`` or bare names, with spaces between them.

A value that is empty or contains a space or ``=`` stands in double quotes. The protocol has no escapes: a value cannot
contain a double quote or a line break.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..errors import DraughtsError, shortened

MAX_LINE = 65_536  # characters; 1,000 moves take a tenth of it
_WORD = r'[^\s="]+'
_PLAIN = re.compile(_WORD)
_COMMAND = re.compile(rf"\s*({_WORD})(?!\S)")
_ARGUMENT = re.compile(rf'\s+({_WORD})(?:=(?:"([^"]*)"|([^\s"]*)))?(?!\S)')


class HubError(DraughtsError):
    """A line is not part of the protocol, or its command cannot be carried out."""


class Message(NamedTuple):
    """A line: its command, and its arguments by name; a bare name has an empty value."""

    command: str
    args: dict[str, str]


def shown(text: str) -> str:
    """A text in quotes, as error messages repeat it: on one line, and not in full if it is long."""
    return repr(shortened(text))


def parse_message(line: str) -> Message:
    """Parses a line; raises ``HubError`` if it cannot. If an argument is given twice, the last one counts."""
    if len(line) > MAX_LINE:
        raise HubError(f"a line of more than {MAX_LINE} characters")
    line = line.rstrip()
    command = _COMMAND.match(line)
    if command is None:
        raise HubError(f"{shown(line)} begins with no command")
    args, end = {}, command.end()
    while end < len(line):
        argument = _ARGUMENT.match(line, end)
        if argument is None:
            raise HubError(f'{shown(line[end:].lstrip())} is no argument (like depth=5, infinite or moves="11-15")')
        args[argument[1]] = argument[2] or argument[3] or ""
        end = argument.end()
    return Message(command[1], args)


def format_message(command: str, args: Mapping[str, object] | None = None) -> str:
    """A line without a line break. A value of None makes a bare name. In values, a double quote becomes a single quote,
    and any white space one space."""
    words = [command]
    for name, value in (args or {}).items():
        if value is None:
            words.append(name)
            continue
        text = " ".join(str(value).replace('"', "'").split())
        words.append(f"{name}={text}" if _PLAIN.fullmatch(text) else f'{name}="{text}"')
    return " ".join(words)
