"""From the identifiers in a table to numbers of users, for tables of any number of rows.

Not with ``unique`` or a join of polars: on a row for every user and period these take gigabytes,
or a second a million rows.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import DataError

if TYPE_CHECKING:
    import polars as pl

# Numbers are looked up in an array that has a place for each between the least and the greatest,
# where that takes no more than 128 million places.
_WIDEST_SPAN: Final = 1 << 27
_MOST_USERS: Final = np.iinfo(np.int32).max
_NUM_SEEDS = 8


class UserCoder(Protocol):
    """From identifiers to numbers of users."""

    @property
    def ids(self) -> "pl.Series":
        """All identifiers, sorted: the number of a user is a place in it."""
        ...

    def codes(self, users: "pl.Series") -> NDArray[np.int32] | None:
        """Return the number of each, or None if there is one that is not in ``ids``."""
        ...


def user_coder(
    batches: "Callable[[], Iterator[pl.Series]]", limits: tuple[int, int] | None
) -> UserCoder:
    """Find all identifiers of a table and number them by their order.

    Parameters
    ----------
    batches : callable
        Returns the column in pieces, Int64 or text, without missing ones; called more than once.
    limits : tuple of int, optional
        The least and the greatest, for whole numbers.

    Returns
    -------
    UserCoder
        For the same column.

    Raises
    ------
    DataError
        If there are 2^31 - 1 users or more.
    """
    if limits is not None and limits[1] - limits[0] < _WIDEST_SPAN:
        return _Span(batches(), *limits)
    for seed in range(_NUM_SEEDS):  # a second one is needed once in a million tables, or less
        coder = _Hashed(seed)
        if all(coder.add(batch) for batch in batches()):
            coder.sort()
            return coder
    raise DataError("users cannot be told apart by hashes: name them by numbers")


class _Span:
    """Numbers that are near each other."""

    def __init__(self, batches: "Iterator[pl.Series]", least: int, greatest: int) -> None:
        import polars as pl

        is_there = np.zeros(greatest - least + 1, dtype=np.bool_)
        for batch in batches:
            is_there[batch.to_numpy() - least] = True
        places = np.flatnonzero(is_there)
        self.ids = pl.Series("user", places + least)
        self._limits = least, greatest
        self._code_of = np.full(is_there.size, -1, dtype=np.int32)
        self._code_of[places] = np.arange(places.size, dtype=np.int32)

    def codes(self, users: "pl.Series") -> NDArray[np.int32] | None:
        numbers = users.to_numpy()
        if numbers.size and not (
            self._limits[0] <= numbers.min() and numbers.max() <= self._limits[1]
        ):
            return None
        codes: NDArray[np.int32] = self._code_of[numbers - self._limits[0]]
        return None if (codes < 0).any() else codes


class _Hashed:
    """Text, or numbers far from each other, found by hashes of 64 bits and then compared."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._count = 0
        self._known = np.empty(0, dtype=np.uint64)
        self._table = np.full(2, -1, dtype=np.int32)
        self._rank = np.empty(0, dtype=np.int32)
        self._ids: pl.Series | None = None  # in order of appearance, then sorted

    @property
    def ids(self) -> "pl.Series":
        import polars as pl

        return pl.Series("user", [], dtype=pl.String) if self._ids is None else self._ids

    def add(self, users: "pl.Series") -> bool:
        """Take in users, numbered in the order in which they come; False if hashes collide."""
        import polars as pl

        numbers, new_rows = self._numbers(users)
        new = users.gather(new_rows)
        if self._ids is None:
            self._ids = new
        elif new.len():
            self._ids = pl.concat([self._ids, new], rechunk=True)
        return bool((self._ids.gather(numbers) == users).all())

    def sort(self) -> None:
        """Go over to numbers by the order of identifiers."""
        order = self.ids.arg_sort().to_numpy()
        self._rank = np.empty(order.size, dtype=np.int32)
        self._rank[order] = np.arange(order.size, dtype=np.int32)
        self._ids = self.ids.gather(order).rename("user")

    def codes(self, users: "pl.Series") -> NDArray[np.int32] | None:
        numbers, _ = self._numbers(users)
        if numbers.size and int(numbers.max()) >= self._rank.size:
            return None
        codes: NDArray[np.int32] = self._rank[numbers]
        return codes if (self.ids.gather(codes) == users).all() else None

    def _numbers(self, users: "pl.Series") -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the number of each hash, in order of appearance, and the rows of new ones."""
        from shuffledp.monitoring.histories.history_kernels import fill_table, number_hashes

        size = self._count + users.len()
        if size > _MOST_USERS:
            raise DataError(
                f"there are more than {self._count:,} users: at most {_MOST_USERS:,} rows and "
                "users can be told apart; leave some out"
            )
        if self._table.size < 2 * size:
            self._table = np.full(1 << (4 * size).bit_length(), -1, dtype=np.int32)
            fill_table(self._known, self._count, self._table)
        if self._known.size < size:
            self._known = np.concatenate([self._known, np.empty(size, dtype=np.uint64)])
        hashes = np.require(_hashes(users, self._seed), requirements=["C", "W"])
        numbers = np.empty(users.len(), dtype=np.int32)
        first_rows = np.empty(users.len(), dtype=np.int64)
        count = number_hashes(hashes, self._table, self._known, self._count, numbers, first_rows)
        num_new, self._count = count - self._count, count
        return numbers, first_rows[:num_new]


def _hashes(users: "pl.Series", seed: int) -> NDArray[np.uint64]:
    """Return hashes of 64 bits; those of another seed collide elsewhere."""
    return users.hash(seed).to_numpy()
