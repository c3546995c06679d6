"""Where a fleet's draws come from: a keystream for each period, whatever came before it."""

from shuffledp.core.entropy import Entropy


class FleetStreams:
    """Independent streams: one for each group of users that joins, one for each period.

    In a seeded simulation, what is drawn in a period depends on the seed and the period only: not
    on how many words earlier periods used, nor on whether the run was interrupted.

    Parameters
    ----------
    entropy : Entropy
        Two streams are spawned from it now. In a simulation that goes on, it has to be in the
        state in which it was when the fleet was made, such as new from the same seed.
    """

    __slots__ = ("_groups", "_periods")

    def __init__(self, entropy: Entropy) -> None:
        self._groups = _Numbered(entropy.spawn())
        self._periods = _Numbered(entropy.spawn())

    def of_group(self, number: int) -> Entropy:
        """Return the stream of levels and keys of a group of users, counted from 0."""
        return self._groups.take(number)

    def of_period(self, period: int) -> Entropy:
        """Return the stream of the reports of a period."""
        return self._periods.take(period)


class _Numbered:
    """Streams by number, each taken at most once, in rising order."""

    __slots__ = ("_next", "_root")

    def __init__(self, root: Entropy) -> None:
        self._root = root
        self._next = 0

    def take(self, number: int) -> Entropy:
        """Return the stream of that number."""
        if self._root.is_simulation:  # streams keyed by the operating system are all alike
            for _ in range(self._next, number):
                self._root.spawn()
        self._next = number + 1
        return self._root.spawn()
