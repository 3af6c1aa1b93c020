"""JSON files with a checksum of what they say."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_KEY = "checksum"
_HINT = "if you have changed it yourself, delete the line with its checksum"


class ChecksumError(ValueError):
    """A file does not say what was written; the message says what to do."""


def sealed(fields: Mapping[str, Any]) -> bytes:
    """A JSON object as a file; its first key, ``checksum``, is the SHA-256 of the others.

    The first, so that whoever changes the file by hand has a line to delete, and no comma before it.
    """
    fields = {key: value for key, value in fields.items() if key != _KEY}
    text = json.dumps({_KEY: _checksum(fields), **fields}, indent=2, ensure_ascii=False)
    return (text + "\n").encode()


def unsealed(data: bytes | str) -> Any:
    """What such a file says, without its checksum. Files without one are older, or somebody has changed them.

    Raises ``ChecksumError`` if its checksum is wrong, another ``ValueError`` if it is no JSON.
    """
    try:
        fields = json.loads(data)
    except RecursionError as error:
        raise ValueError("its lists are nested too deeply") from error
    if not isinstance(fields, dict) or _KEY not in fields:
        return fields
    checksum = fields.pop(_KEY)
    if checksum != _checksum(fields):
        raise ChecksumError(f"its checksum is wrong: restore the file from a copy; {_HINT}")
    return fields


def _checksum(fields: Mapping[str, Any]) -> str:
    """SHA-256 of the content; layout and order of keys do not matter."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
