"""All bounds as curves: over the number of users, or over epsilon0."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from shuffledp.collection.comparison import BoundComparison, Scenario, compare_bounds
from shuffledp.core.errors import ParameterError
from shuffledp.core.progress import Progress

# Points in each decade. Epsilon0 has fewer decades, and curves bend more over it.
_USERS_IN_A_DECADE = (1, 2, 5)
_EPSILON0_IN_A_DECADE = (1, 1.5, 2, 3, 5, 7)

# Decades of the curves; they move where the scenario lies outside.
_NUM_USERS_DECADES = (2, 9)
_EPSILON0_DECADES = (-1, 1)
_MOST_DECADES = 15  # of users that the accountant takes


class Over(StrEnum):
    """What changes along a curve, all else being equal."""

    NUM_USERS = "num-users"
    EPSILON0 = "epsilon0"

    @property
    def field(self) -> str:
        """The field of `Scenario` that changes."""
        return self.value.replace("-", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCurves:
    """Comparisons along an axis.

    Parameters
    ----------
    over : Over
        What changes.
    here : BoundComparison
        The scenario that was asked about.
    points : tuple of BoundComparison
        Along the axis, in its order; that scenario among them. Without `RENYI_CONVERTED`.
    """

    over: Over
    here: BoundComparison
    points: tuple[BoundComparison, ...]

    @property
    def positions(self) -> tuple[float, ...]:
        """Number of users, or epsilon0, of each point."""
        return tuple(float(getattr(each.scenario, self.over.field)) for each in self.points)

    def curve(self, name: str) -> tuple[float | None, ...]:
        """Return a method's bounds; None where it says nothing, or 0."""
        return tuple(
            next((each.value or None for each in point.useful if each.method.name == name), None)
            for point in self.points
        )

    @property
    def lower_curve(self) -> tuple[float | None, ...]:
        """The lower ends; None where none is known, or it is 0."""
        return tuple(point.lower or None for point in self.points)

    def to_json_dict(self) -> dict[str, object]:
        """Return `here`, and ``curves``: ``over``, ``positions``, ``bounds`` by name, ``lower``."""
        return {
            **self.here.to_json_dict(),
            "curves": {
                "over": self.over.field,
                "positions": list(self.positions),
                "bounds": {
                    each.method.name: list(self.curve(each.method.name))
                    for each in self.here.bounds
                },
                "lower": list(self.lower_curve),
            },
        }


def bound_curves(
    scenario: Scenario, over: Over, *, progress: Progress | None = None
) -> BoundCurves:
    """Compare all bounds at round numbers of users, or values of epsilon0.

    Parameters
    ----------
    scenario : Scenario
        One point of the curves, and all that stays the same.
    over : Over
        What changes: users from 1e2 to 1e9, or epsilon0 from 0.1 to 10. The decades move where the
        scenario lies outside of them.
    progress : callable, optional
        Called with what is done, how much of it, and of how much.

    Returns
    -------
    BoundCurves
        With the scenario itself among the points.

    Raises
    ------
    ParameterError
        If epsilon0 = 0 is to change: it has no place on a logarithmic axis.

    Notes
    -----
    Cost: some seconds.
    """
    positions = _positions(scenario, over)
    points = []
    for done, position in enumerate(positions):
        if progress is not None:
            progress("comparing", done, len(positions))
        points.append(compare_bounds(_moved(scenario, over, position), with_renyi=False))
    if progress is not None:
        progress("comparing", len(positions), len(positions))
    return BoundCurves(over=over, here=compare_bounds(scenario), points=tuple(points))


def _moved(scenario: Scenario, over: Over, position: float) -> Scenario:
    """Return the scenario with another number of users or epsilon0."""
    if over is Over.NUM_USERS:
        return replace(scenario, num_users=int(position))
    return replace(scenario, epsilon0=position)


def _positions(scenario: Scenario, over: Over) -> list[float]:
    """Return the points along the axis, the scenario's own among them."""
    if over is Over.NUM_USERS:
        first, last = _decades(scenario.num_users, *_NUM_USERS_DECADES)
        near = _logarithmic(_USERS_IN_A_DECADE, max(first, 0), min(last, _MOST_DECADES))
        return sorted({*near, scenario.num_users})
    if scenario.epsilon0 == 0.0:
        raise ParameterError("epsilon0 = 0 cannot be compared over epsilon0: give it above 0")
    near = _logarithmic(_EPSILON0_IN_A_DECADE, *_decades(scenario.epsilon0, *_EPSILON0_DECADES))
    return sorted({*near, scenario.epsilon0})


def _decades(value: float, first: int, last: int) -> tuple[int, int]:
    """Return the exponents of as many decades as from first to last, ``value`` among them."""
    exponent = math.log10(value)
    move = min(0, math.floor(exponent) - first) + max(0, math.ceil(exponent) - last)
    return first + move, last + move


def _logarithmic(digits: Sequence[float], first: int, last: int) -> list[float]:
    """Return the digits times each power of ten from 10^first on, up to 10^last."""
    steps = [float(f"{digit}e{power}") for power in range(first, last) for digit in digits]
    return [*steps, float(f"1e{last}")]
