"""What goes wrong between a relay and those who talk to it."""

from shuffledp.core.errors import ShuffledpError


class RelayError(ShuffledpError, ConnectionError):
    """The relay gives no answer; what was saved goes on when the program is started again."""


class RelayRefusalError(ShuffledpError, ValueError):
    """The relay says that a request is wrong.

    Parameters
    ----------
    message : str
        What the relay says, in one line.
    status : int
        The HTTP status, below 500 and not 2xx.
    """

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status
