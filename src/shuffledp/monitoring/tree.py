"""The dyadic tree over the periods: which nodes there are, and which of them cover [1, t]."""

from dataclasses import dataclass, field
from itertools import accumulate
from typing import SupportsIndex

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError

_LARGEST_PERIODS = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodTree:
    """Dyadic intervals of the periods 1 ... d.

    Node j of level h, both from 1, is the interval of periods (j - 1) 2^(h-1) + 1 ... j 2^(h-1).
    It exists if it ends at d or before; level 1 has the single periods.

    Parameters
    ----------
    periods : int
        d, in [1, 2^40]; any number, not only powers of two.

    Attributes
    ----------
    offsets : tuple of int
        Of each level, leaf level first: flat index of its first node.

    Raises
    ------
    ParameterError
        If ``periods`` is out of range.

    Notes
    -----
    Source: Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta, "Amplification by
    Shuffling", SODA 2019, arXiv:1811.12469v2, section 3, where d is a power of two. Other d could
    be padded to the next power of two; the nodes that would then end after d never report, so
    levels without a complete node are left out here: floor(log2 d) + 1 levels remain.

    Examples
    --------
    >>> tree = PeriodTree(periods=6)
    >>> tree.num_levels, tree.num_nodes
    (3, 10)
    >>> tree.cover(6)  # periods 1 to 4, then 5 to 6
    ((3, 1), (2, 3))
    """

    periods: int
    offsets: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        periods = require_at_least("periods", self.periods, 1)
        if periods > _LARGEST_PERIODS:
            raise ParameterError(
                f"periods = {periods} is above 2^40: no table has so many; take longer periods"
            )
        sizes = (periods >> height for height in range(periods.bit_length() - 1))
        object.__setattr__(self, "periods", periods)
        object.__setattr__(self, "offsets", tuple(accumulate(sizes, initial=0)))

    @property
    def num_levels(self) -> int:
        """L = floor(log2 d) + 1."""
        return len(self.offsets)

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all levels, below 2 d."""
        return self.offsets[-1] + 1  # the last level has one node

    def nodes_at(self, level: SupportsIndex) -> int:
        """Return how many nodes a level has: floor(d / 2^(level-1)).

        Parameters
        ----------
        level : int
            In [1, L].

        Raises
        ------
        ParameterError
            If there is no such level.
        """
        return self.periods >> (self._level(level) - 1)

    def length(self, level: SupportsIndex) -> int:
        """Return how many periods a node of a level has: 2^(level-1).

        Parameters
        ----------
        level : int
            In [1, L].

        Raises
        ------
        ParameterError
            If there is no such level.
        """
        return 1 << (self._level(level) - 1)

    def offset(self, level: SupportsIndex) -> int:
        """Return the flat index of the first node of a level.

        Parameters
        ----------
        level : int
            In [1, L].

        Raises
        ------
        ParameterError
            If there is no such level.
        """
        return self.offsets[self._level(level) - 1]

    def index(self, level: SupportsIndex, position: SupportsIndex) -> int:
        """Return the flat index of a node, from 0: the levels one after the other, leaves first.

        Parameters
        ----------
        level : int
            In [1, L].
        position : int
            j, in [1, nodes_at(level)].

        Raises
        ------
        ParameterError
            If there is no such node.

        Examples
        --------
        >>> PeriodTree(periods=6).index(2, 1)
        6
        """
        offset = self.offset(level)
        number = require_at_least("position", position, 1)
        if number > self.nodes_at(level):
            raise ParameterError(
                f"position = {number} is not in [1, {self.nodes_at(level)}]: level {level} of "
                f"{self.periods} periods has no more nodes"
            )
        return offset + number - 1

    def levels_ending_at(self, t: SupportsIndex) -> range:
        """Return the levels with a node that ends at period t: 1 up to some level.

        Parameters
        ----------
        t : int
            In [1, d].

        Raises
        ------
        ParameterError
            If ``t`` is not a period.

        Examples
        --------
        >>> list(PeriodTree(periods=6).levels_ending_at(4))
        [1, 2, 3]
        """
        number = self._period(t, 1)
        return range(1, (number & -number).bit_length() + 1)

    def position_ending_at(self, level: SupportsIndex, t: SupportsIndex) -> int:
        """Return j of the node of a level that ends at period t.

        Parameters
        ----------
        level : int
            In [1, L].
        t : int
            In [1, d], a multiple of 2^(level-1).

        Raises
        ------
        ParameterError
            If no node of the level ends there.

        Examples
        --------
        >>> PeriodTree(periods=6).position_ending_at(2, 6)
        3
        """
        number = self._period(t, 1)
        length = self.length(level)
        if number % length:
            raise ParameterError(
                f"t = {number} is not a multiple of {length}: no node of level {level} ends there"
            )
        return number // length

    def cover(self, t: SupportsIndex) -> tuple[tuple[int, int], ...]:
        """Return the nodes that partition the periods 1 ... t, the largest first.

        Parameters
        ----------
        t : int
            In [0, d]; the cover of no period is empty.

        Returns
        -------
        tuple of (level, position)
            One node for each one-bit of t, so at most one a level.

        Raises
        ------
        ParameterError
            If ``t`` is out of range.

        Notes
        -----
        Source: Algorithm 2, lines 7 to 10, of arXiv:1811.12469v2. Cost: O(log t).
        """
        number = self._period(t, 0)
        heights = (h for h in range(number.bit_length() - 1, -1, -1) if number >> h & 1)
        return tuple((height + 1, number >> height) for height in heights)

    def _level(self, level: SupportsIndex) -> int:
        """Return a level as an int, else raise."""
        number = require_at_least("level", level, 1)
        if number > self.num_levels:
            raise ParameterError(
                f"level = {number} is not in [1, {self.num_levels}]: {self.periods} periods have "
                "no more levels"
            )
        return number

    def _period(self, t: SupportsIndex, first: int) -> int:
        """Return a period as an int, else raise."""
        number = require_at_least("t", t, first)
        if number > self.periods:
            raise ParameterError(
                f"t = {number} is not in [{first}, {self.periods}]: the tree has "
                f"{self.periods} periods; plan more of them from the start"
            )
        return number
