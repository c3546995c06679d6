"""Scenarios: how the values of made-up users change over time, drawn for many users at once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import ParameterError

#: Stands for a change that does not happen; later than every period.
NEVER: Final = np.iinfo(np.int32).max

_NUM_VERSIONS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A law of histories.

    Parameters
    ----------
    name : str
        How to ask for it.
    description : str
        One sentence for people.
    max_changes : int
        The most changes that it makes, counting the first value.
    domain : tuple of str
        The possible values; empty for a boolean, which begins as false.
    draw : callable
        Takes a generator, a number of users n and a number of periods; returns the periods of
        their changes, int32 of shape (n, max_changes), rising along each row and then `NEVER`.
    """

    name: str
    description: str
    max_changes: int
    domain: tuple[str, ...]
    draw: Callable[[np.random.Generator, int, int], NDArray[np.int32]]

    @property
    def is_boolean(self) -> bool:
        """Whether values are false or true."""
        return not self.domain


def scenario_of(name: str) -> Scenario:
    """Return the scenario of that name.

    Parameters
    ----------
    name : str
        One of `SCENARIOS`.

    Raises
    ------
    ParameterError
        If there is none.
    """
    if name not in SCENARIOS:
        raise ParameterError(f"scenario = {name!r} is not one of {', '.join(SCENARIOS)}")
    return SCENARIOS[name]


def _adoption(rng: np.random.Generator, num_users: int, periods: int) -> NDArray[np.int32]:
    """Draw when a feature is switched on, off, on again and off again.

    Seven in ten users ever switch it on, along an S-curve with four seasons. They stay for half
    of all periods on average; three in ten of those who leave come back.
    """
    starts = _from_weights(rng, num_users, _s_curve(periods, centre=0.45, seasons=4.0))
    stays = _waits(rng, (num_users, 2), periods / 2)
    gap = _waits(rng, (num_users,), periods / 8)
    times = np.cumsum(np.stack([starts, stays[:, 0], gap, stays[:, 1]], axis=1), axis=1)
    times[rng.random(num_users) >= 0.7] = NEVER
    times[rng.random(num_users) >= 0.3, 2:] = NEVER
    return _within(times, periods)


def _travel(rng: np.random.Generator, num_users: int, periods: int) -> NDArray[np.int32]:
    """Draw up to three trips: away and back again, mostly in a high and a low season.

    A trip that would begin before the one before it has ended does not take place.
    """
    phase = np.arange(periods) / min(periods, 365) % 1.0
    weights = 0.2 + np.exp(-(((phase - 0.55) / 0.08) ** 2))
    weights += 0.5 * np.exp(-(((phase - 0.95) / 0.04) ** 2))
    starts = np.sort(
        np.stack([_from_weights(rng, num_users, weights) for _ in range(3)], axis=1), axis=1
    )
    ends = starts + _waits(rng, (num_users, 3), periods / 40)
    takes_place = np.arange(3) < rng.poisson(1.5, num_users)[:, None]
    times = np.full((num_users, 6), NEVER, dtype=np.int64)
    back = np.zeros(num_users, dtype=np.int64)
    for trip in range(3):
        goes = takes_place[:, trip] & (starts[:, trip] > back)
        times[goes, 2 * trip] = starts[goes, trip]
        times[goes, 2 * trip + 1] = ends[goes, trip]
        back[goes] = ends[goes, trip]
    return _within(np.sort(times, axis=1), periods)


def _outage(rng: np.random.Generator, num_users: int, periods: int) -> NDArray[np.int32]:
    """Draw adoption with a sharp event in the middle.

    Eight in ten users switch a feature on, most of them in the first half, and stay for as many
    periods as there are on average. At period ``periods // 2 + 1`` something breaks: of those who
    are there and would have stayed, a third switch it off in that period or the next, and come
    back after a fifteenth of all periods on average, unless they would have left by then.
    """
    start = _from_weights(rng, num_users, _s_curve(periods, centre=0.25, seasons=0.0))
    start[rng.random(num_users) >= 0.8] = NEVER
    end = start + _waits(rng, (num_users,), float(periods))
    event = periods // 2 + 1
    is_hit = (start < event) & (end > event + 1) & (rng.random(num_users) < 1.0 / 3.0)
    off = event + rng.integers(0, 2, num_users)
    back = off + _waits(rng, (num_users,), periods / 15)
    returns = is_hit & (back < end)
    never = np.full(num_users, NEVER)
    second = np.where(is_hit, off, end)
    third = np.where(returns, back, never)
    fourth = np.where(returns, end, never)
    return _within(np.stack([start, second, third, fourth], axis=1), periods)


def _versions(rng: np.random.Generator, num_users: int, periods: int) -> NDArray[np.int32]:
    """Draw when each of five versions, released one after the other, is installed.

    Everybody has the first at period 1. Half of the users are quick, half slow; who has not
    installed a version when a newer one arrives may skip it, which is `NEVER` in its place.
    """
    releases = 1 + np.arange(_NUM_VERSIONS) * periods // _NUM_VERSIONS
    between = periods / _NUM_VERSIONS
    delays = np.where(
        rng.random((num_users, 1)) < 0.5,
        _waits(rng, (num_users, _NUM_VERSIONS), between / 10),
        _waits(rng, (num_users, _NUM_VERSIONS), between / 2),
    )
    times = releases + delays - 1
    times[:, 0] = 1
    newer = np.minimum.accumulate(times[:, ::-1], axis=1)[:, ::-1]
    times[:, :-1][times[:, :-1] >= newer[:, 1:]] = NEVER
    return _within(times, periods)


def _s_curve(periods: int, *, centre: float, seasons: float) -> NDArray[np.float64]:
    """Return how likely each period is as the one of adoption, up to a factor."""
    phase = (np.arange(periods) + 0.5) / periods
    slope = 1.0 / np.cosh((phase - centre) / 0.16) ** 2  # the derivative of a logistic curve
    return slope * (1.0 + 0.5 * np.sin(2.0 * np.pi * seasons * phase))


def _from_weights(
    rng: np.random.Generator, size: int, weights: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Draw periods, from 1, with probabilities in proportion to weights."""
    cumulative = np.cumsum(weights)
    draws = rng.random(size) * cumulative[-1]
    found = np.searchsorted(cumulative, draws, side="right")
    periods: NDArray[np.int64] = np.minimum(found, weights.size - 1) + 1
    return periods


def _waits(rng: np.random.Generator, shape: tuple[int, ...], mean: float) -> NDArray[np.int64]:
    """Draw numbers of periods, at least one, geometric with this mean (or all one)."""
    waits: NDArray[np.int64] = rng.geometric(1.0 / max(mean, 1.0), shape)
    return waits


def _within(times: NDArray[np.int64], periods: int) -> NDArray[np.int32]:
    """Return times as they are kept, with `NEVER` for those beyond the last period."""
    return np.where(times <= periods, times, NEVER).astype(np.int32)


#: All scenarios by name.
SCENARIOS: Final = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            name="adoption",
            description="A feature is switched on along a seasonal S-curve; some leave, and some "
            "of those come back.",
            max_changes=4,
            domain=(),
            draw=_adoption,
        ),
        Scenario(
            name="travel",
            description="People are away and back again, up to three times, in seasons.",
            max_changes=6,
            domain=(),
            draw=_travel,
        ),
        Scenario(
            name="outage",
            description="Adoption, and a sharp event in the middle: a third of all users switch "
            "off within two periods and come back later.",
            max_changes=4,
            domain=(),
            draw=_outage,
        ),
        Scenario(
            name="versions",
            description="Five versions of an application are rolled out one after the other.",
            max_changes=_NUM_VERSIONS,
            domain=tuple(f"{number}.0" for number in range(1, _NUM_VERSIONS + 1)),
            draw=_versions,
        ),
    )
}
