"""Text from outside, made fit for a terminal; and people's values, kept out of messages."""

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Controls, lone surrogates, separators of lines; and characters that hide or turn text around them.
_ESCAPED = frozenset({"Cc", "Cs", "Zl", "Zp"})
_FORMAT = "Cf"
# Joiners shape the letters of some scripts, and pictures: labels keep them.
_JOINERS = frozenset("\u200c\u200d")

_LEFT_OUT = " ... "
_LONGEST_VALUE = 100

_shows_values: ContextVar[bool] = ContextVar("shows_values", default=False)


def visible(text: str, *, joiners: bool = True) -> str:
    """Return a text that shows all it holds and cannot control a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written(each, joiners=joiners) for each in text)


def _written(character: str, *, joiners: bool) -> str:
    """Return a character, or its escape sequence."""
    category = unicodedata.category(character)
    kept = category not in _ESCAPED and (category != _FORMAT or (joiners and character in _JOINERS))
    return character if kept else character.encode("unicode_escape").decode("ascii")


def one_line(text: str, *, limit: int) -> str:
    """Return a text fit for one line of a log, which may have any reader."""
    if len(text) > 4 * limit:
        text = text[: 2 * limit] + text[-2 * limit :]  # the middle is left out below
    shown = visible(" ".join(text.split()), joiners=False)
    if len(shown) <= limit:
        return shown
    tail = (limit - len(_LEFT_OUT)) // 2
    return f"{shown[: limit - len(_LEFT_OUT) - tail]}{_LEFT_OUT}{shown[len(shown) - tail :]}"


@contextmanager
def showing_values() -> Iterator[None]:
    """Have messages show people's values while the block runs."""
    token = _shows_values.set(True)
    try:
        yield
    finally:
        _shows_values.reset(token)


def value_note(value: object) -> str:
    """Return the text of a user's value for a message: omitted unless asked for."""
    if not _shows_values.get():
        return ""
    return f" ({one_line(repr(value), limit=_LONGEST_VALUE)})"
