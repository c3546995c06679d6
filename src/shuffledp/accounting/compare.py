"""Comparison of all bounds of the accountant, with the end that no analysis can go below.

The methods are read from the accountant's registry, never listed here.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

from shuffledp.accounting.guarantees import require_one
from shuffledp.accounting.profiles import named_profile
from shuffledp.amplification.local import LOCAL
from shuffledp.amplification.method import Method
from shuffledp.amplification.registry import METHODS, account_delta, account_epsilon
from shuffledp.core import checks
from shuffledp.core.bound import Bound, reconciled_lower
from shuffledp.core.errors import OutOfRegimeError, PrecisionError
from shuffledp.core.profile import LocalProfile
from shuffledp.core.shown import Frames, Real, Whole

# Relative amount by which two ends that meet may cross through rounding.
_MEETING = 1e-8

# Fields of a method that are reported unchanged.
_STATED = ("proved_here", "statement", "source")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One shuffled collection, with either epsilon or delta given.

    The fields are the arguments of `compare_bounds`.
    """

    epsilon0: float
    num_users: int
    epsilon: float | None = None
    delta: float | None = None
    randomizer: str | None = None
    domain_size: int | None = None
    dimension: int | None = None

    def __post_init__(self) -> None:
        require_one(self.epsilon, self.delta)
        checks.set_fields(self, epsilon0=checks.require_non_negative("epsilon0", self.epsilon0))
        checks.set_fields(self, num_users=checks.require_at_least("num_users", self.num_users, 1))
        if self.epsilon is not None:
            checks.set_fields(self, epsilon=checks.require_non_negative("epsilon", self.epsilon))
        if self.delta is not None:
            checks.set_fields(self, delta=checks.require_open_unit("delta", self.delta))
        self.profile()  # raises where randomizer, k and dimension do not fit together

    @property
    def asked(self) -> str:
        """The parameter that is bounded, ``"epsilon"`` or ``"delta"``."""
        return "delta" if self.delta is None else "epsilon"

    @property
    def given(self) -> float:
        """Value of the given parameter."""
        return float(self.epsilon if self.delta is None else self.delta)  # type: ignore[arg-type]  # one of them is given

    def profile(self) -> LocalProfile:
        """Return the randomizer's law, as far as it is known."""
        return named_profile(
            self.randomizer,
            epsilon0=self.epsilon0,
            domain_size=self.domain_size,
            dimension=self.dimension,
        )


class Standing(StrEnum):
    """Outcome of a method for a scenario.

    ``BOUND`` is below the guarantee of a report without a shuffler, or is that guarantee.
    """

    BOUND = "bound"
    NO_GAIN = "no gain"
    NO_BOUND = "no bound"
    OUTSIDE = "outside its hypotheses"
    ROUND_OFF = "lost in round-off"
    NOT_EVALUATED = "not evaluated"


@dataclass(frozen=True, slots=True)
class ComparedBound:
    """Result of one method: a value (rounded up), or the reason why there is none."""

    method: Method
    value: float | None
    standing: Standing
    reason: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        """Write the method's name in its place: a method holds functions, which cannot be."""
        return _with_method, (self.method.name, self.value, self.standing, self.reason)


def _with_method(name: str, *others: Any) -> ComparedBound:
    """Return a compared bound from the name of its method."""
    return ComparedBound(METHODS[name], *others)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundComparison(Frames):
    """All bounds on one scenario, smallest first, those without a value last.

    ``lower`` is proved unavoidable by explicit data, rounded down; None where none are known.
    """

    scenario: Scenario
    bounds: tuple[ComparedBound, ...]
    lower: float | None

    @property
    def best(self) -> float:
        """The smallest bound."""
        return float(self.bounds[0].value)  # type: ignore[arg-type]  # that one has a value

    @property
    def title(self) -> str:
        """Title of the comparison."""
        return f"bounds on {self.scenario.asked}, smallest first"

    @property
    def useful(self) -> tuple[ComparedBound, ...]:
        """Bounds with the standing ``BOUND``, smallest first."""
        return tuple(each for each in self.bounds if each.standing is Standing.BOUND)

    def columns(self) -> dict[str, list[Any]]:
        """Return name, bound, its multiple of the best one, and standing of each method."""
        return {
            "method": [each.method.name for each in self.bounds],
            self.scenario.asked: [each.value for each in self.bounds],
            "ratio": [self.ratio(each.value) for each in self.bounds],
            "standing": [str(each.standing) for each in self.bounds],
        }

    def ratio(self, value: float | None) -> float | None:
        """Return the ratio of ``value`` to the best bound; None where it is undefined."""
        return value / self.best if value is not None and self.best > 0.0 else None

    def to_json_dict(self) -> dict[str, object]:
        """Return everything as JSON values; the bounded parameter as ``{'lower', 'upper'}``."""
        scenario = self.scenario
        ends: dict[str, Any] = {
            "epsilon": scenario.epsilon,
            "delta": scenario.delta,
            scenario.asked: {"lower": self.lower, "upper": self.best},
        }
        return {
            "epsilon0": scenario.epsilon0,
            "num_users": scenario.num_users,
            "randomizer": scenario.randomizer,
            "k": scenario.domain_size,
            "dimension": scenario.dimension,
            **ends,
            "bounds": [
                {
                    "method": each.method.name,
                    scenario.asked: each.value,
                    "ratio": self.ratio(each.value),
                    "standing": str(each.standing),
                    "reason": each.reason,
                    "exact": each.method.is_exact,
                    **{name: getattr(each.method, name) for name in _STATED},
                    "assumptions": list(each.method.assumptions),
                }
                for each in self.bounds
            ],
        }


def compare_bounds(
    *,
    epsilon0: Real,
    num_users: Whole,
    epsilon: Real | None = None,
    delta: Real | None = None,
    randomizer: str | None = None,
    domain_size: Whole | None = None,
    dimension: Whole | None = None,
) -> BoundComparison:
    """Evaluate every method of the accountant, as ``shuffledp bounds`` does.

    Parameters
    ----------
    epsilon0 : float
        Local privacy loss of each report in nats, >= 0.
    num_users : int
        Number of honest users in the batch, 1 to 1e15.
    epsilon : float, optional
        Central epsilon, >= 0: deltas are compared.
    delta : float, optional
        Delta, in (0, 1): epsilons are compared. Give one of the two.
    randomizer, domain_size, dimension
        As for ``shuffledp.account``; by default any epsilon0-LDP randomizer.

    Returns
    -------
    BoundComparison
        ``bounds``, smallest first, are rounded up, and the ``lower`` end down.

    Raises
    ------
    ParameterError
        If a parameter is out of range, missing or superfluous, or the randomizer unknown.

    Warns
    -----
    LowerEndWarning
        If the lower end lies above a bound, and is left out.

    Notes
    -----
    Cost: some tenths of a second at any number of users up to 1e9.

    Examples
    --------
    >>> compared = compare_bounds(epsilon0=1.0, num_users=10_000, delta=1e-6)
    >>> round(compared.best, 6), compared.bounds[0].method.name
    (0.043206, 'clones')
    """
    asked: Any = (epsilon0, num_users, epsilon, delta, randomizer, domain_size, dimension)
    return compare_scenario(Scenario(*asked))  # which makes plain numbers of them


def compare_scenario(scenario: Scenario) -> BoundComparison:
    """Evaluate every method on a scenario."""
    profile = scenario.profile()
    local = _bound(scenario, profile, LOCAL, with_lower=True)
    compared = [_compared(scenario, profile, method, local) for method in METHODS.values()]
    found = sorted(
        (each for each, _ in compared),
        key=lambda each: math.inf if each.value is None else each.value,
    )
    lower_ends = (local.lower, *(each for _, each in compared))
    lower = max((each for each in lower_ends if each is not None), default=None)
    result = BoundComparison(scenario=scenario, bounds=tuple(found), lower=lower)
    claim = f"method {found[0].method.name!r}"
    lower = reconciled_lower(lower, result.best, tolerance=_MEETING, claim=claim)
    return replace(result, lower=lower)


def _bound(scenario: Scenario, profile: LocalProfile, method: Method, *, with_lower: bool) -> Bound:
    """Return the accountant's answer."""
    how: Any = {"num_users": scenario.num_users, "method": method.name, "with_lower": with_lower}
    if scenario.delta is not None:
        return account_epsilon(profile, delta=scenario.delta, **how)
    return account_delta(profile, epsilon=scenario.given, **how)


def _compared(
    scenario: Scenario, profile: LocalProfile, method: Method, local: Bound
) -> tuple[ComparedBound, float | None]:
    """Return the bound of one method or the reason for none, and the lower end of an exact one."""
    missing = partial(ComparedBound, method, None)
    violated = method.violated_hypothesis(profile, scenario.num_users, scenario.delta)
    if violated is not None:
        return missing(Standing.OUTSIDE, f"needs {violated}"), None
    try:
        bound = _bound(scenario, profile, method, with_lower=method.is_exact)
    except PrecisionError:
        return missing(Standing.ROUND_OFF, "round-off dominates its answer"), None
    except OutOfRegimeError:
        return missing(Standing.NO_BOUND, f"no finite bound on {scenario.asked}"), None
    if bound.method != method.name:
        reason = f"not evaluated: nothing says more here than {bound.method!r}"
        return missing(Standing.NOT_EVALUATED, reason), None
    standing, reason = Standing.BOUND, ""
    if bound.upper >= local.upper and method.name != LOCAL.name:
        reason = f"no smaller than {LOCAL.name!r}, which needs no shuffler"
        standing = Standing.NO_GAIN
    return ComparedBound(method, bound.upper, standing, reason), bound.lower
