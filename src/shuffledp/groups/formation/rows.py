"""Compressed rows in the making: joined from blocks, sorted, each distinct row once."""

from typing import NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError

#: Most people: their numbers must fit 32 bits, with a sign.
MOST_USERS = 2**31 - 1

#: Most memberships, counted before any is stored: 1 GB of them.
MOST_MEMBERSHIPS = 250_000_000

#: Memberships worked on at a time, about.
BLOCK_MEMBERSHIPS = 1 << 20


class Rows(NamedTuple):
    """What a builder of groups returns; see `Groups` for the fields."""

    num_users: int
    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    group_of: NDArray[np.int64] | None


def require_users(num_users: SupportsIndex) -> int:
    """Return the number of people if it is in [1, 2^31 - 1], else raise `ParameterError`."""
    number = require_at_least("num_users", num_users, 1)
    if number > MOST_USERS:
        raise ParameterError(
            f"num_users = {number:,} is above {MOST_USERS:,}: shuffle in several batches"
        )
    return number


def require_memberships(count: int, *, remedy: str, at_least: bool = False) -> None:
    """Raise `ParameterError` if groups would have too many memberships.

    Parameters
    ----------
    count : int
        How many there would be.
    remedy : str
        What to try: ``"a smaller radius"``.
    at_least : bool
        Whether ``count`` is where counting was given up.
    """
    if count > MOST_MEMBERSHIPS:
        raise ParameterError(
            f"these groups would have {'over ' * at_least}{count:,} memberships, above the limit "
            f"of {MOST_MEMBERSHIPS:,}: try {remedy}, or a uniform shuffle of everybody"
        )


def one_group(num_users: int) -> Rows:
    """Return one group of everybody, chosen by everybody."""
    return Rows(
        num_users,
        np.array([0, num_users]),
        np.arange(num_users, dtype=np.int32),
        np.zeros(num_users, dtype=np.int64),
    )


def joined(blocks: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Return the blocks one after the other, and empty the list.

    A block is freed as soon as it is copied, and fresh memory is only taken when it is written
    to. So this never takes twice the memory of the result, as np.concatenate does.
    """
    out = np.empty(sum(block.size for block in blocks), dtype=np.int32)
    end = out.size
    while blocks:
        block = blocks.pop()
        out[end - block.size : end] = block
        end -= block.size
    return out


def distinct_rows(rows: Rows) -> Rows:
    """Keep the first of each set of equal rows, in order.

    Parameters
    ----------
    rows : Rows
        With writeable arrays, members ascending.

    Notes
    -----
    Rows with equal hashes are compared member by member, so that rows that differ are never
    merged. Cost: O(memberships).
    """
    from shuffledp.groups.formation import groups_kernels as kernels

    num_rows = rows.starts.size - 1
    hashes = np.empty(num_rows, dtype=np.uint64)
    kernels.hash_rows(rows.starts, rows.members, hashes)
    first = np.empty(num_rows, dtype=np.int64)
    kernels.first_equal_rows(
        rows.starts, rows.members, hashes, np.argsort(hashes, kind="stable"), first
    )
    kept = first == np.arange(num_rows)
    if kept.all():
        return rows
    sizes = np.diff(rows.starts)
    number = np.cumsum(kept) - 1
    return Rows(
        rows.num_users,
        starts_of(sizes[kept]),
        rows.members[np.repeat(kept, sizes)],
        None if rows.group_of is None else number[first[rows.group_of]],
    )


def starts_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where rows of these sizes start, and the end of the last."""
    starts = np.zeros(sizes.size + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def count_of(number: int, singular: str, plural: str) -> str:
    """Return ``"1 person"`` or ``"2 people"``."""
    return f"{number:,} {singular if number == 1 else plural}"
