"""Errors of the rules and the notation; all are ``ValueError`` and say what is wrong and where."""


class DraughtsError(ValueError):
    """Base of the errors below."""


class FenError(DraughtsError):
    """A position text that cannot be read or breaks the rules of the board."""


class IllegalMoveError(DraughtsError):
    """A move that the rules do not allow in this position, or a move text that fits none or several."""


class InvalidMoveError(IllegalMoveError):
    """A text that is no move in any position."""


class AmbiguousMoveError(IllegalMoveError):
    """A move text, or a start and an end, that fits several legal moves; the message names these."""


class PdnError(DraughtsError):
    """A game text that cannot be read; the message names the line and column."""


class PartlyReadError(ValueError):
    """What was asked for is done, but parts of the input could not be read and were left out; the message says which.

    Attributes:
        figures: what a command would have returned.
    """

    def __init__(self, message: str, figures: object) -> None:
        super().__init__(message)
        self.figures = figures


def shortened(text: str, most: int = 60) -> str:
    """A text as messages repeat it: of a longer one, the first ``most`` characters and three dots."""
    return text if len(text) <= most else text[:most] + "..."


def one_line(error: BaseException, most: int = 200) -> str:
    """What an error says, in one line of at most ``most`` characters; the name of its class if it says nothing."""
    return " ".join(str(error).split())[:most] or type(error).__name__
