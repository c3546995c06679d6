"""Compressed rows of groups: joined, sorted, each distinct one once; as given or by hops."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.arrays import Integers
from shuffledp.core.checks import require_at_least, require_edges
from shuffledp.core.errors import ParameterError

#: Most people: their numbers must fit 32 bits, with a sign.
MOST_USERS = 2**31 - 1
#: Most memberships, counted before any is stored: 1 GB of them.
MOST_MEMBERSHIPS = 250_000_000
#: Memberships worked on at a time, about.
BLOCK_MEMBERSHIPS = 1 << 20
# Maximum number of cells of the reachability matrix processed together.
_CELLS_AT_A_TIME = 1 << 24


class Rows(NamedTuple):
    """What a builder of groups returns; see `Groups` for the fields."""

    num_users: int
    starts: Integers
    members: NDArray[np.int32]
    group_of: Integers | None
    description: str = "given groups"


def require_users(num_users: SupportsIndex) -> int:
    """Return the number of people if it is in [1, 2^31 - 1], else raise `ParameterError`."""
    number = require_at_least("num_users", num_users, 1)
    if number > MOST_USERS:
        raise ParameterError(
            f"num_users = {number:,} is above {MOST_USERS:,}: shuffle in several batches"
        )
    return number


def require_memberships(count: int, *, remedy: str, at_least: bool = False) -> None:
    """Raise `ParameterError` if groups would have too many memberships; try ``remedy``.

    ``at_least`` says that ``count`` is where counting was given up.
    """
    if count > MOST_MEMBERSHIPS:
        raise ParameterError(
            f"these groups would have {'over ' * at_least}{count:,} memberships, above the limit "
            f"of {MOST_MEMBERSHIPS:,}: try {remedy}, or a uniform shuffle of everybody"
        )


def one_group(num_users: int, description: str) -> Rows:
    """Return one group of everybody, chosen by everybody."""
    everybody = np.arange(num_users, dtype=np.int32)
    own = np.zeros(num_users, dtype=np.int64)
    return Rows(num_users, np.array([0, num_users]), everybody, own, description)


def distinct_rows(rows: Rows) -> Rows:
    """Keep the first of each set of equal rows, in order; members ascend, arrays are writeable.

    Rows count as equal if their 256-bit BLAKE2b hashes are. Cost: O(memberships).
    """
    found: dict[bytes, int] = {}
    data = rows.members.data
    number = np.array(
        [
            found.setdefault(blake2b(data[start:end], digest_size=32).digest(), len(found))
            for start, end in pairwise(rows.starts.tolist())
        ]
    )
    if len(found) == number.size:
        return rows
    kept = np.zeros(number.size, dtype=bool)
    kept[np.unique(number, return_index=True)[1]] = True
    sizes = np.diff(rows.starts)
    return rows._replace(
        starts=starts_of(sizes[kept]),
        members=rows.members[np.repeat(kept, sizes)],
        group_of=None if rows.group_of is None else number[rows.group_of],
    )


def blocks_of(starts: Integers) -> Iterator[slice]:
    """Yield slices of rows with about `BLOCK_MEMBERSHIPS` memberships each, at least one row."""
    first, num_rows = 0, starts.size - 1
    while first < num_rows:
        end = int(np.searchsorted(starts, starts[first] + BLOCK_MEMBERSHIPS, side="right")) - 1
        end = max(end, first + 1)
        yield slice(first, end)
        first = end


def ranges(first: Integers, sizes: Integers) -> Integers:
    """Concatenated ranges first[i], first[i] + 1, ..., each of its own length."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if ends.size else 0
    found: Integers = np.arange(total) + np.repeat(first - (ends - sizes), sizes)
    return found


def starts_of(sizes: Integers) -> Integers:
    """Start of each row, given the sizes, and the end of the last row."""
    starts = np.zeros(sizes.size + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def count_of(number: int, singular: str, plural: str) -> str:
    """Return ``"1 person"`` or ``"2 people"``."""
    return f"{number:,} {singular if number == 1 else plural}"


def groups_of_sets(sets: Iterable[Iterable[SupportsIndex]], *, num_users: SupportsIndex) -> Rows:
    """Return the given groups, each once, in order of first appearance."""
    number, total = require_users(num_users), 0
    blocks: list[NDArray[np.int32]] = []
    is_covered = np.zeros(number, dtype=bool)
    for index, people in enumerate(sets):
        blocks.append(_checked_set(index, people, number))
        total += blocks[-1].size
        require_memberships(total, remedy="fewer or smaller groups", at_least=True)
        is_covered[blocks[-1]] = True
    missing = np.flatnonzero(~is_covered)
    if missing.size:
        verb = "is" if missing.size == 1 else "are"
        raise ParameterError(
            f"{count_of(missing.size, 'person', 'people')} of {number:,} {verb} in no group, the "
            f"first is {missing[0]}: put them in a group, if need be of their own"
        )
    starts = starts_of(np.array([block.size for block in blocks], dtype=np.int64))
    return distinct_rows(Rows(number, starts, np.concatenate(blocks), None))


def _checked_set(index: int, people: Iterable[SupportsIndex], num_users: int) -> NDArray[np.int32]:
    """Return the members of a group, ascending, else raise."""
    try:
        members = np.asarray(people if isinstance(people, np.ndarray) else list(people))
    except (TypeError, ValueError):
        raise ParameterError(
            f"group {index} is {people!r}: give the numbers of its members"
        ) from None
    if members.size == 0:
        raise ParameterError(f"group {index} is empty: leave it out")
    if members.ndim != 1 or members.dtype.kind not in "iu":
        raise ParameterError(
            f"group {index} has members of dtype {members.dtype}: give numbers of people, from 0"
        )
    members = np.sort(members)
    if members[0] < 0 or members[-1] >= num_users:
        member = members[0] if members[0] < 0 else members[-1]
        raise ParameterError(
            f"group {index} has member {member}, which is not in [0, {num_users}): number people "
            "from 0, and give num_users for all of them"
        )
    twice = members[1:][members[1:] == members[:-1]]
    if twice.size:
        raise ParameterError(
            f"group {index} has member {twice[0]} {np.count_nonzero(members == twice[0])} times: "
            "list each member once"
        )
    return members.astype(np.int32)


def groups_by_hops(edges: ArrayLike, *, num_users: SupportsIndex, hops: SupportsIndex = 1) -> Rows:
    """Return the group of each person, everybody within some hops.

    Cost: the edges that touch each group, once a hop.
    """
    from scipy.sparse import csr_array, eye_array

    number = require_users(num_users)
    # More than num_users hops reach nobody else.
    steps = min(require_at_least("hops", hops, 0), number)
    pairs, people = require_edges(edges, number)[0].astype(np.int64), np.arange(number)
    # Who is joined to whom, both ways, and everybody to themselves.
    ends = np.concatenate([pairs, pairs[:, ::-1], np.stack([people, people], axis=1)])
    near = csr_array((np.ones(len(ends), dtype=bool), ends.T), shape=(number, number))
    everybody = eye_array(number, dtype=bool, format="csr")
    total, sizes, blocks = 0, [], []
    rows_at_a_time = max(1, _CELLS_AT_A_TIME // number)
    for first in range(0, number, rows_at_a_time):
        reached = everybody[first : first + rows_at_a_time]
        for _ in range(steps):
            further = reached @ near
            if further.nnz == reached.nnz:
                break
            reached = further
        reached.sort_indices()
        total += reached.nnz
        require_memberships(total, remedy="a smaller hops=...", at_least=True)
        sizes.append(np.diff(reached.indptr))
        blocks.append(reached.indices.astype(np.int32))
    starts = starts_of(np.concatenate(sizes).astype(np.int64))
    description = f"people within {count_of(steps, 'hop', 'hops')} of each other"
    return distinct_rows(Rows(number, starts, np.concatenate(blocks), people, description))
