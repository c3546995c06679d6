"""Several releases about the same people: what they reveal together.

Releases are data, and so is what is composed of them:

>>> from shuffledp.accounting.release import StatedRelease
>>> daily, weekly = StatedRelease(epsilon=0.1), StatedRelease(epsilon=0.2)
>>> year = daily * 365 + weekly * 52
>>> year
Composition(365 x StatedRelease(epsilon=0.1, delta=0) + 52 x StatedRelease(epsilon=0.2, delta=0))
>>> year == weekly * 52 + daily * 365
True

The user whose value differs is the same in every release: the worst case, and what a promise to
each user needs. Each release may be chosen in the light of what earlier ones showed as long as its
guarantee is as planned: the product of dominating pairs dominates adaptive compositions (Zhu, Dong,
Wang 2022, arXiv:2106.08567v4, Theorem 10).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from shuffledp.accounting.privacy_loss import HockeyStickCurve, PrivacyLoss, to_dp_accounting
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError

# Two rounds a minute for a year; nobody plans for more, and sums stay exact.
MOST_ROUNDS = 10**6


@runtime_checkable
class Release(Protocol):
    """What composition asks of one release."""

    @property
    def highest(self) -> float:
        """An epsilon from which on the curve is 0; ``inf`` where there is none."""

    @property
    def failure(self) -> float:
        """Probability of revealing everything, which the curve leaves out."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed beyond the assumptions of every composition."""

    def epsilon_alone(self, delta: float, *, with_lower: bool = True) -> Bound:
        """Bound epsilon of the release on its own."""

    def delta_alone(self, epsilon: float, *, with_lower: bool = True) -> Bound:
        """Bound delta of the release on its own."""

    def curve(self, delta: float) -> HockeyStickCurve:
        """Return the upper ends of all neighbours in either order, sharpest near ``delta``."""

    def attacks(self) -> tuple[HockeyStickCurve, ...]:
        """Return curves of explicit data, whose lower ends are unavoidable."""


class Composable:
    """What all releases and compositions can do; `Composition` says how."""

    __slots__ = ()

    @property
    def parts(self) -> tuple[tuple[Release, int], ...]:
        """Each release with how often it takes place: here this one, once."""
        if not isinstance(self, Release):
            raise TypeError(f"{type(self).__name__} is no release")
        return ((self, 1),)

    def __add__(self, other: object) -> "Composition":
        """Compose: both take place, about the same people."""
        if other == 0:  # where sum() starts
            return Composition(self.parts)
        if not isinstance(other, Composable):
            return NotImplemented
        return Composition(self.parts + other.parts)

    __radd__ = __add__

    def __mul__(self, count: int) -> "Composition":
        """Compose ``count`` copies, each with fresh randomness."""
        times = require_at_least("count", count, 0)
        return Composition((each, times * number) for each, number in self.parts)

    __rmul__ = __mul__

    def epsilon(self, delta: float, *, with_lower: bool = True) -> Bound:
        """Bound the central epsilon of everything that is published.

        Parameters
        ----------
        delta : float
            Failure probability, in [0, 1).
        with_lower : bool
            False saves the time for the lower end, which is then ``None``.

        Returns
        -------
        Bound
            In nats. ``upper`` errs upwards and is proved; ``lower`` errs downwards: it is
            what explicit data, held throughout, make unavoidable.

        Raises
        ------
        OutOfRegimeError
            If no epsilon is known at so small a delta.

        Notes
        -----
        A single release gives what `account_epsilon` gives. Otherwise the smallest of the composed
        privacy loss distributions, basic composition, and the sum of the local losses. Cost: some
        tenths of a second for each kind of release, up to two seconds for a million rounds at
        a tiny delta.
        """
        from shuffledp.accounting.composed_bounds import composed_epsilon

        return composed_epsilon(self.parts, delta, with_lower=with_lower)

    def delta(self, epsilon: float, *, with_lower: bool = True) -> Bound:
        """Bound the central delta of everything that is published, at a given epsilon.

        Parameters
        ----------
        epsilon : float
            In nats, >= 0.
        with_lower : bool
            False saves the time for the lower end, which is then ``None``.

        Returns
        -------
        Bound
            ``upper`` errs upwards; it is 0 only where delta is exactly 0.
        """
        from shuffledp.accounting.composed_bounds import composed_delta

        return composed_delta(self.parts, epsilon, with_lower=with_lower)

    def to_dp_accounting(self, *, smallest_delta: float = 1e-12) -> Any:
        """Return the privacy loss as a ``PrivacyLossDistribution`` of dp-accounting.

        Parameters
        ----------
        smallest_delta : float
            The smallest delta that it will be asked about, in (0, 1).

        Returns
        -------
        dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
            A pessimistic one.

        Raises
        ------
        ModuleNotFoundError
            If dp-accounting is not installed.
        """
        return to_dp_accounting(self.privacy_loss(smallest_delta=smallest_delta))

    def privacy_loss(self, *, smallest_delta: float = 1e-12) -> PrivacyLoss:
        """Return a privacy loss distribution that dominates everything that is published.

        Parameters
        ----------
        smallest_delta : float
            The smallest delta that it will be asked about, in (0, 1): it may have this much too
            much probability of an infinite loss.

        Returns
        -------
        PrivacyLoss
            On a lattice; errs upwards.
        """
        from shuffledp.accounting.composed_bounds import composed_loss

        return composed_loss(self.parts, smallest_delta=smallest_delta)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Composition(Composable):
    """Releases that take place about the same people, each any number of times.

    Parameters
    ----------
    parts : iterable of (release, int)
        Counts of equal releases are added up; those of 0 are left out. Their order does not matter.

    Raises
    ------
    ParameterError
        If a count is negative, or there are more than a million rounds in all.

    Examples
    --------
    >>> from shuffledp.accounting.release import StatedRelease
    >>> (StatedRelease(epsilon=0.1) * 3).epsilon(delta=0.0).upper
    0.30000000000000...
    """

    _parts: tuple[tuple[Release, int], ...]

    def __init__(self, parts: Iterable[tuple[Release, int]] = ()) -> None:
        counts: dict[Release, int] = {}
        for release, number in parts:
            if not isinstance(release, Release):
                raise ParameterError(
                    f"{release!r} is no release: give ShuffledRelease or StatedRelease"
                )
            times = require_at_least("count", number, 0)
            counts[release] = counts.get(release, 0) + times
        kept = tuple((release, times) for release, times in counts.items() if times > 0)
        rounds = sum(times for _, times in kept)
        if rounds > MOST_ROUNDS:
            raise ParameterError(
                f"{rounds} rounds are above {MOST_ROUNDS}: account for that many at most, and add "
                "epsilons and deltas of several compositions"
            )
        object.__setattr__(self, "_parts", kept)

    @property
    def parts(self) -> tuple[tuple[Release, int], ...]:
        """Each kind of release with how often it takes place."""
        return self._parts

    @property
    def rounds(self) -> int:
        """How many releases there are in all."""
        return sum(times for _, times in self._parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Composition):
            return NotImplemented
        return dict(self._parts) == dict(other._parts)

    def __hash__(self) -> int:
        return hash(frozenset(self._parts))

    def __repr__(self) -> str:
        shown = [f"{times} x {release!r}" for release, times in self._parts[:3]]
        if len(self._parts) > len(shown):
            shown.append(f"{len(self._parts) - len(shown)} more")
        return f"Composition({' + '.join(shown)})"
