"""Commands and their arguments, as a person writes them in one line."""

import shlex

from .files import WINDOWS


def split_words(line: str) -> list[str]:
    """The words of a line as a shell reads them. On Windows a backslash stands for itself, as in ``C:\\engines``.

    Raises ``ValueError`` if a quotation is not closed.
    """
    words = shlex.shlex(line, posix=True, punctuation_chars=False)
    words.whitespace_split, words.commenters = True, ""
    if WINDOWS:
        words.escape = ""
    return list(words)
