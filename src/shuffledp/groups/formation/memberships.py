"""``Memberships``: groups seen from both sides, whose members they are and who is in which.

Sensitivities and traversals go from people to their groups as often as from groups to their
members. Turning the rows round costs one pass; it is done once for all the orders that are tried.
"""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.reports import read_only
from shuffledp.groups.formation.groups import Groups


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memberships:
    """Groups in compressed rows, by group and by person. Made by `of`; arrays are read-only.

    Parameters
    ----------
    groups : Groups
        The groups: ``groups.members`` in rows of ``groups.starts``.
    sizes : ndarray of int64, shape (num_groups,)
        Number of members of each group.
    user_starts : ndarray of int64, shape (num_users + 1,)
        Where the rows of people start.
    user_groups : ndarray of int32, shape (memberships,)
        ``user_groups[user_starts[i]:user_starts[i + 1]]`` are the groups of person i, ascending.

    Examples
    --------
    >>> memberships = Memberships.of(Groups.from_sets([[0, 1, 2], [1, 3]], num_users=4))
    >>> memberships.user_starts.tolist(), memberships.user_groups.tolist()
    ([0, 1, 3, 4, 5], [0, 0, 1, 0, 1])
    """

    groups: Groups
    sizes: NDArray[np.int64] = field(repr=False)
    user_starts: NDArray[np.int64] = field(repr=False)
    user_groups: NDArray[np.int32] = field(repr=False)

    @classmethod
    def of(cls, groups: Groups) -> Self:
        """Turn the rows of groups round. Cost: O(memberships); memory: 4 bytes a membership."""
        from shuffledp.groups.formation import memberships_kernels as kernels

        user_starts, user_groups = kernels.turn_round(
            groups.starts, groups.members, groups.num_users
        )
        return cls(
            groups=groups,
            sizes=read_only(groups.sizes),
            user_starts=read_only(user_starts),
            user_groups=read_only(user_groups),
        )

    def sums_over_members(
        self, rows: NDArray[np.int64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the sum of the values (num_users,) of the members, for each group of ``rows``."""
        from shuffledp.groups.formation import memberships_kernels as kernels

        return kernels.row_sums(
            read_only(rows), self.groups.starts, self.groups.members, read_only(values)
        )

    def sums_over_groups(
        self, users: NDArray[np.int64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the sum of the values (num_groups,) of their groups, for each of ``users``."""
        from shuffledp.groups.formation import memberships_kernels as kernels

        return kernels.row_sums(
            read_only(users), self.user_starts, self.user_groups, read_only(values)
        )
