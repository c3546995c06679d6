"""Groups as they are given: households, classes, streets."""

from collections.abc import Iterable
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.groups.formation import rows as compressed
from shuffledp.groups.formation.rows import Rows, count_of, require_users


def groups_of_sets(
    sets: Iterable[Iterable[SupportsIndex]], *, num_users: SupportsIndex
) -> tuple[Rows, str]:
    """Return the given groups, each distinct one once, in order of first appearance.

    Parameters
    ----------
    sets : iterable of iterables of int
        The members of each group, in any order.
    num_users : int
        Number of people, >= 1.

    Returns
    -------
    rows : Rows
        Without ``group_of``.
    description : str
        For reports.

    Raises
    ------
    ParameterError
        If a group is empty, has a member twice or one outside [0, num_users), if somebody is in no
        group, or if there are more than 250 million memberships.

    Examples
    --------
    >>> rows, description = groups_of_sets([[1, 0], [2], [0, 1]], num_users=3)
    >>> rows.starts.tolist(), rows.members.tolist(), description
    ([0, 2, 3], [0, 1, 2], 'given groups')
    """
    number = require_users(num_users)
    blocks: list[NDArray[np.int32]] = []
    sizes: list[int] = []
    total = 0
    is_covered = np.zeros(number, dtype=bool)
    for index, people in enumerate(sets):
        block = _checked_set(index, people, number)
        total += block.size
        compressed.require_memberships(total, remedy="fewer or smaller groups", at_least=True)
        is_covered[block] = True
        blocks.append(block)
        sizes.append(block.size)
    missing = np.flatnonzero(~is_covered)
    if missing.size:
        verb = "is" if missing.size == 1 else "are"
        raise ParameterError(
            f"{count_of(missing.size, 'person', 'people')} of {number:,} {verb} in no group, the "
            f"first is {missing[0]}: put them in a group, if need be of their own"
        )
    starts = compressed.starts_of(np.array(sizes, dtype=np.int64))
    rows = Rows(number, starts, compressed.joined(blocks), None)
    return compressed.distinct_rows(rows), "given groups"


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
