"""``Column``: what a run reads, whatever kind of values it holds, and what all kinds share."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Protocol

from shuffledp.core.errors import DataError, ParameterError

BLOCK_ROWS = 1 << 18
"""Rows a block: fixed, so that a seeded simulation does not depend on how a file is stored."""


class MissingPolicy(StrEnum):
    """What to do with users who gave no answer (null, NaN, empty text)."""

    ERROR = "error"
    DROP = "drop"
    CATEGORY = "category"


class Column(Protocol):
    """The checked values of all users, one row a user, as a stream that can be read once more."""

    @property
    def origin(self) -> str:
        """Where the values come from, for messages."""
        ...

    @property
    def num_users(self) -> int:
        """Number of rows that take part."""
        ...

    @property
    def num_missing(self) -> int:
        """Number of rows without a value that were left out."""
        ...

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the way of reading adds to the assumptions, one sentence each."""
        ...

    def blocks(self) -> Iterator[Any]:
        """Yield the values in file order, in blocks as the randomizer takes them."""
        ...


def dropped_caution(num_missing: int, num_users: int, remedy: str = "") -> str:
    """Return what has to be said where rows without a value were left out."""
    return (
        f"Dropped: {rows_text(num_missing)} without an answer. The guarantee covers the other "
        f"{num_users:,} users, and how many were dropped is not protected"
        + (f"; {remedy}." if remedy else ".")
    )


def rows_text(count: int) -> str:
    """Return ``"1 row"`` or ``"2 rows"``."""
    return f"{count:,} row" + "s" * (count != 1)


def policy_of(missing: MissingPolicy | str) -> MissingPolicy:
    """Return the policy of that name."""
    try:
        return MissingPolicy(missing)
    except ValueError:
        names = ", ".join(MissingPolicy)
        raise ParameterError(f"missing = {missing!r} is not one of {names}") from None


def changed(origin: str) -> DataError:
    """Return the error for data that are not what the first pass saw."""
    return DataError(
        f"{origin} changed while it was being read, or reading was interrupted: run again when "
        "nothing writes to it"
    )


def too_few_users(found: str) -> DataError:
    """Return the error for fewer than two users, since one alone has nobody to hide among.

    Parameters
    ----------
    found : str
        Where, and how many there are: ``"column 'x' of a.csv has 1 row"``.
    """
    return DataError(
        f"{found}: a shuffled collection needs at least two users, and in practice thousands"
    )
