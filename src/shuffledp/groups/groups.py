"""``Groups``: overlapping groups of people, within which the order is hidden, as compressed rows.

A shuffle within groups hides the order of the answers inside each group. A group is defined by
public data: the people nearby, the friends of a person, a household. People with the same group
share one copy of it: 32,561 people of 73 ages have at most 73 groups by age.
"""

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.arrays import Integers
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only
from shuffledp.groups.group_rows import (
    count_of,
    groups_by_distance,
    groups_by_hops,
    groups_of_nearest,
    groups_of_sets,
    require_users,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """Overlapping groups of people, each distinct group once.

    Made by `from_distance`, `from_graph`, `from_nearest` or `from_sets`, which guarantee that
    everybody is in a group. The constructor takes any groups.

    Parameters
    ----------
    num_users : int
        Number of people, >= 1. They are numbered from 0.
    starts : ndarray of int64, shape (g + 1,)
        Starts of the groups: the members of group a are ``members[starts[a]:starts[a + 1]]``,
        at least one of them. Kept as a read-only view.
    members : ndarray of int32, shape (m,)
        Numbers of people, ascending and distinct within each group. Kept as a read-only view.
    group_of : ndarray of int64, shape (num_users,), optional
        Group that each person chose, which contains the person. None for groups without owners.
        Kept as a read-only view.
    description : str
        Description of the groups, for reports: ``"people within 5,000 m of each other"``.

    Notes
    -----
    Source: the groups of Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of
    Shuffling", ICLR 2022, arXiv:2106.06603v3, Section 3. Memory: 4 bytes a membership.

    Examples
    --------
    >>> groups = Groups.from_distance([20, 21, 35, 21], 1, metric="absolute")
    >>> groups.num_groups, groups.sizes.tolist(), groups.of(0).tolist()
    (2, [3, 1], [0, 1, 3])
    """

    num_users: int
    starts: Integers = field(repr=False)
    members: NDArray[np.int32] = field(repr=False)
    group_of: Integers | None = field(default=None, repr=False)
    description: str = "given groups"

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_users", require_users(self.num_users))
        for name, dtype in (("starts", np.int64), ("members", np.int32), ("group_of", np.int64)):
            if (array := getattr(self, name)) is not None:
                object.__setattr__(self, name, read_only(np.ascontiguousarray(array, dtype=dtype)))
        # Compiled loops rely on these properties.
        sizes, outside = self.sizes, (self.members < 0) | (self.members >= self.num_users)
        ends = self.starts[0], self.starts[-1]
        if ends != (0, self.members.size) or sizes.min(initial=1) < 1 or outside.any():
            raise ParameterError(
                "starts and members are no compressed rows: starts must rise from 0 to the number "
                f"of members, and members lie in [0, {self.num_users}); use Groups.from_sets"
            )

    @classmethod
    def from_distance(
        cls, points: ArrayLike, radius: SupportsFloat, *, metric: str = "euclidean"
    ) -> Self:
        """Group each person with everybody within a distance.

        Parameters
        ----------
        points : array-like of float, shape (num_users, d) or (num_users,)
            Public coordinates of each person. For ``"haversine"`` latitude and longitude in
            degrees; for ``"absolute"`` one column.
        radius : float
            Largest distance, >= 0: in metres for ``"haversine"``, else in units of the points.
            A distance of exactly the radius is inside, whatever the rounding errors.
        metric : {"euclidean", "haversine", "absolute"}
            Measure of distance: along a straight line, along the surface of the Earth, or the
            difference of one number.

        Examples
        --------
        >>> paris, versailles, lyon = (48.8566, 2.3522), (48.8049, 2.1204), (45.7640, 4.8357)
        >>> groups = Groups.from_distance([paris, lyon, versailles], 20_000, metric="haversine")
        >>> [groups.of(user).tolist() for user in range(3)]
        [[0, 2], [1], [0, 2]]
        """
        return cls(**groups_by_distance(points, radius, metric=metric)._asdict())

    @classmethod
    def from_graph(
        cls, edges: ArrayLike, *, num_users: SupportsIndex, hops: SupportsIndex = 1
    ) -> Self:
        """Group each person with everybody within some steps in a graph.

        Parameters
        ----------
        edges : array-like of int, shape (m, 2)
            Pairs of people, in either direction. Self-loops and repeated edges do nothing.
        num_users : int
            Number of people, >= 1. A person without edges is alone in a group.
        hops : int
            Largest number of steps, >= 0.

        Examples
        --------
        >>> groups = Groups.from_graph([(0, 1), (1, 2)], num_users=4)
        >>> [groups.of(user).tolist() for user in range(4)]
        [[0, 1], [0, 1, 2], [1, 2], [3]]
        """
        return cls(**groups_by_hops(edges, num_users=num_users, hops=hops)._asdict())

    @classmethod
    def from_nearest(
        cls, points: ArrayLike, group_size: SupportsIndex, *, metric: str = "euclidean"
    ) -> Self:
        """Group each person with the nearest others.

        Parameters
        ----------
        points : array-like of float, shape (num_users, d) or (num_users,)
            As for `from_distance`.
        group_size : int
            Members of each group, in [1, num_users].
        metric : {"euclidean", "haversine", "absolute"}
            As for `from_distance`.

        Examples
        --------
        >>> groups = Groups.from_nearest([0.0, 1.0, 3.0, 9.0], 2, metric="absolute")
        >>> [groups.of(user).tolist() for user in range(4)]
        [[0, 1], [0, 1], [1, 2], [2, 3]]
        """
        return cls(**groups_of_nearest(points, group_size, metric=metric)._asdict())

    @classmethod
    def from_sets(
        cls, sets: Iterable[Iterable[SupportsIndex]], *, num_users: SupportsIndex
    ) -> Self:
        """Take groups as given, such as households.

        Parameters
        ----------
        sets : iterable of iterables of int
            The numbers of the members of each group. Groups may overlap; equal ones are kept once,
            in order of first appearance.
        num_users : int
            Number of people, >= 1, all of whom must be in a group.

        Examples
        --------
        >>> Groups.from_sets([{2, 0}, {1, 2}], num_users=3).members.tolist()
        [0, 2, 1, 2]
        """
        return cls(**groups_of_sets(sets, num_users=num_users)._asdict())

    @property
    def num_groups(self) -> int:
        """Number of distinct groups."""
        return int(self.starts.size) - 1

    @property
    def sizes(self) -> Integers:
        """Number of members of each group, shape (num_groups,)."""
        return np.diff(self.starts)

    @property
    def largest_size(self) -> int:
        """Number of members of the largest group; 0 if there is no group."""
        return int(self.sizes.max(initial=0))

    def group(self, index: SupportsIndex) -> NDArray[np.int32]:
        """Return the members of a group, ascending."""
        row = operator.index(index)
        if not 0 <= row < self.num_groups:
            raise ParameterError(f"index = {row} is not in [0, {self.num_groups}): count from 0")
        return self.members[self.starts[row] : self.starts[row + 1]]

    def of(self, user: SupportsIndex) -> NDArray[np.int32]:
        """Return the members of the group that a person chose, the person included."""
        if self.group_of is None:
            raise ParameterError("nobody chose these groups: ask for one by number, group(index)")
        return self.group(self.group_of[require_at_least("user", user, 0)])

    def size_protecting(self) -> Integers:
        """Return the size of the largest group of each person: int64, shape (num_users,).

        1 for people who are alone in all their groups, 0 for people in no group: both are hidden
        among nobody.
        """
        largest = np.zeros(self.num_users, dtype=np.int64)
        np.maximum.at(largest, self.members, np.repeat(self.sizes, self.sizes))
        return largest

    def cautions(self) -> tuple[str, ...]:
        """Return cautions about these groups for the data owner, one sentence each."""
        alone = int(np.count_nonzero(self.size_protecting() <= 1))
        if alone == self.num_users:
            return (
                "Every group is one person, so nothing is shuffled: each answer stays with the "
                "person who gave it. Take larger groups.",
            )
        sentences = []
        if alone:
            whose, verb = ("their", "are") if alone > 1 else ("that person's", "is")
            sentences.append(
                f"{count_of(alone, 'person', 'people')} of {self.num_users:,} {verb} alone in "
                f"every group: {whose} place in the order is not protected, only the local "
                "randomizer is."
            )
        if self.largest_size == self.num_users:
            sentences.append(
                f"One group holds all {self.num_users:,} people: this is nearly a uniform shuffle "
                "of everybody, and a uniform shuffle hides more."
            )
        return tuple(sentences)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memberships:
    """Groups in compressed rows, by group and by person: starts, and members or groups ascending.

    Reference orders need the groups of people as often as the members of groups; transposing the
    rows costs one pass, and is done once for all orders that are tried.
    """

    groups: Groups
    sizes: Integers = field(repr=False)
    of_groups: tuple[Integers, NDArray[np.int32]] = field(repr=False)
    of_users: tuple[Integers, NDArray[np.int32]] = field(repr=False)

    @classmethod
    def of(cls, groups: Groups) -> Self:
        """Transpose the rows of groups. Cost: O(memberships); memory: 4 bytes a membership."""
        from scipy.sparse import csr_array

        rows = groups.starts, groups.members
        ones = np.ones(groups.members.size, dtype=np.int8)
        turned = csr_array((ones, *rows[::-1]), shape=(groups.num_groups, groups.num_users)).tocsc()
        starts, held = turned.indptr.astype(np.int64), turned.indices.astype(np.int32, copy=False)
        users = read_only(starts), read_only(held)
        return cls(groups=groups, sizes=read_only(groups.sizes), of_groups=rows, of_users=users)
