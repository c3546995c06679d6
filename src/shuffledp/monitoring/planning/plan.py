"""Planning: how well a changing statistic will be known, how private it is, and what else would do.

Mechanisms and privacy meet here: the design of clients and server, the errors that the estimators
then have, the guarantee of the whole time, and the same for collections that are repeated instead.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.cautions import delta_cautions
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_open_unit
from shuffledp.core.reports import read_only
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.planning.cautions import local_cautions, noise_cautions
from shuffledp.monitoring.planning.comparison import (
    MonitorComparison,
    RepeatedTask,
    Verdict,
    advice,
    everybody_at_central,
    everybody_at_local,
    few_answers,
    few_answers_seen,
)
from shuffledp.monitoring.planning.request import (
    PlanRequest,
    ProtocolChoice,
    designs_by_gap,
    reason_for,
)
from shuffledp.monitoring.privacy.local import local_guarantee
from shuffledp.monitoring.running_counts.bands import band_quantile
from shuffledp.monitoring.running_counts.variances import expected_standard_errors, proven_errors
from shuffledp.monitoring.tree import PeriodTree


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedErrors:
    """Errors of the running counts by one online estimator, period by period.

    Parameters
    ----------
    method : str
        ``"least-squares"`` or ``"cover"``: online, from the reports up to the period.
    confidence : float
        Of the bands, in (0, 1).
    num_values : int
        Counts that run side by side, at least 1: a band for all periods holds for all of them.
    standard_errors : ndarray of float64, shape (periods,)
        In users, of the count of one value; an upper bound for every history.
    proven : ndarray of float64, shape (periods,)
        Errors that no count at any period exceeds with that confidence: proved without any normal
        approximation (Theorem 6 with constants). In users.
    """

    method: str
    confidence: float
    num_values: int
    standard_errors: NDArray[np.float64]
    proven: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("standard_errors", "proven"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def worst(self) -> float:
        """The largest standard error of a period."""
        return float(self.standard_errors.max())

    @property
    def mean(self) -> float:
        """The mean standard error of the periods."""
        return float(self.standard_errors.mean())

    @property
    def root_mean_square(self) -> float:
        """The root mean square standard error of the periods."""
        return root_mean_square(self.standard_errors)

    @property
    def pointwise_quantile(self) -> float:
        """How many standard errors the band reaches to either side that holds at one period."""
        return self._quantile(simultaneous=False)

    @property
    def simultaneous_quantile(self) -> float:
        """The same for the band that holds at all periods and values at once.

        It is simulated when it is first asked for, in half a second at most.
        """
        return self._quantile(simultaneous=True)

    @property
    def pointwise_half_widths(self) -> NDArray[np.float64]:
        """Half-widths of the band that holds at each period alone."""
        return self.standard_errors * self.pointwise_quantile

    @property
    def simultaneous_half_widths(self) -> NDArray[np.float64]:
        """Half-widths of the band that holds at all periods at once."""
        return self.standard_errors * self.simultaneous_quantile

    def to_dict(self) -> dict[str, object]:
        """Return everything as JSON values."""
        return {
            "method": self.method,
            "worst_standard_error": self.worst,
            "mean_standard_error": self.mean,
            "root_mean_square_standard_error": self.root_mean_square,
            "worst_pointwise_half_width": self.worst * self.pointwise_quantile,
            "worst_simultaneous_half_width": self.worst * self.simultaneous_quantile,
            "worst_proven_error": float(self.proven.max()),
            "standard_errors": self.standard_errors.tolist(),
            "pointwise_half_widths": self.pointwise_half_widths.tolist(),
            "simultaneous_half_widths": self.simultaneous_half_widths.tolist(),
            "proven_errors": self.proven.tolist(),
        }

    def _quantile(self, *, simultaneous: bool) -> float:
        periods = self.standard_errors.size
        return band_quantile(
            PeriodTree(periods=periods),
            periods,
            self.confidence,
            method=self.method,
            simultaneous=simultaneous,
            num_values=self.num_values,
        )


def expected_errors(
    design: MonitorDesign, *, num_users: int, confidence: float, method: str
) -> ExpectedErrors:
    """Return the errors of one online estimator.

    Parameters
    ----------
    design : MonitorDesign
        What clients and server agree on.
    num_users : int
        n, at least 1.
    confidence : float
        Of the bands, in (0, 1).
    method : {"least-squares", "cover"}
        Estimator.

    Returns
    -------
    ExpectedErrors
        Upper bounds for every history.

    Examples
    --------
    >>> design = MonitorDesign(periods=8, max_changes=1, epsilon0=1.0)
    >>> errors = expected_errors(design, num_users=900, confidence=0.95, method="cover")
    >>> bool(abs(errors.standard_errors[0] - 30 * 2 / design.law.gap) < 1e-9)  # sqrt(n L) / gap
    True
    """
    law, factor = design.law, design.encoding.variance_factor
    return ExpectedErrors(
        method=method,
        confidence=confidence,
        num_values=design.encoding.num_values,
        standard_errors=expected_standard_errors(
            design.tree,
            num_users=num_users,
            scale=design.scale,
            method=method,
            pair_correlation=law.pair_correlation,
            variance_factor=factor,
        ),
        proven=proven_errors(
            design.tree,
            num_users=num_users,
            scale=design.scale,
            confidence=confidence,
            method=method,
            pair_correlation=law.pair_correlation,
            variance_factor=factor,
            num_values=design.encoding.num_values,
        ),
    )


def smoothed_errors(design: MonitorDesign, *, num_users: int) -> NDArray[np.float64]:
    """Return the standard errors once all reports are there, by least squares over the whole tree.

    Parameters
    ----------
    design : MonitorDesign
        What clients and server agree on.
    num_users : int
        n, at least 1.

    Returns
    -------
    ndarray of float64, shape (periods,), read-only
        In users; upper bounds for every history.
    """
    return read_only(
        expected_standard_errors(
            design.tree,
            num_users=num_users,
            scale=design.scale,
            smoothed=True,
            pair_correlation=design.law.pair_correlation,
            variance_factor=design.encoding.variance_factor,
        )
    )


def root_mean_square(standard_errors: NDArray[np.float64]) -> float:
    """Return the root mean square over the periods."""
    return float(np.sqrt(np.mean(np.square(standard_errors))))


# A central target that only delta pays for is taken to be this small where others must meet it.
_LEAST_EPSILON = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MonitorPlan:
    """A longitudinal collection: what it will know, what it guarantees, and what else would do.

    Parameters
    ----------
    design : MonitorDesign
        What clients and server agree on.
    num_users : int
        n: users who take part from the first period to the last, all honest.
    delta : float
        Central failure probability.
    confidence : float
        Of the bands.
    level_hidden : bool
        Whether nobody but the user knows which level of the tree the user reports at.
    asked_epsilon : float or None
        The central target, where one was given; otherwise epsilon0 was.
    local : Bound
        Epsilon of everything that a user ever sends.
    central : Bound
        Epsilon of everything that is ever published, at ``delta``, for a change of one user's whole
        history.
    errors : dict of ExpectedErrors
        By estimator, ``"least-squares"`` first.
    smoothed_standard_errors : ndarray of float64, shape (periods,)
        Once all reports are there, by least squares over the whole tree.
    considered : tuple of ProtocolChoice
        Laws of the signs that were worked out, the one taken first.
    reason : str
        Why that one.
    comparison : MonitorComparison
        With one-shot collections that are repeated.
    """

    design: MonitorDesign
    num_users: int
    delta: float
    confidence: float
    level_hidden: bool
    asked_epsilon: float | None
    local: Bound
    central: Bound
    errors: Mapping[str, ExpectedErrors]
    smoothed_standard_errors: NDArray[np.float64]
    considered: tuple[ProtocolChoice, ...]
    reason: str
    comparison: MonitorComparison

    @property
    def reports_per_user(self) -> float:
        """Reports that a user sends in all, on average over the levels."""
        return self.design.tree.num_nodes / self.design.num_levels

    @property
    def bits_per_report(self) -> int:
        """Level, column and sign; the period is when it is sent."""
        levels, columns = self.design.num_levels, self.design.encoding.num_columns
        return (levels - 1).bit_length() + (columns - 1).bit_length() + 1

    @property
    def bits_per_user(self) -> float:
        """Bits that a user sends in all, on average over the levels."""
        return self.reports_per_user * self.bits_per_report

    @property
    def verdict(self) -> Verdict:
        """Whether to monitor at all."""
        return self.comparison.verdict

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do and why; the first sentence is the verdict."""
        return advice(self.comparison)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What is allowed but should make a reader think twice, one sentence each."""
        return (
            *delta_cautions(self.delta, self.num_users),
            *noise_cautions(self.errors["least-squares"].worst, self.num_users),
            *local_cautions(self.local.upper),
        )

    def to_dict(self) -> dict[str, object]:
        """Return everything as JSON values; what ``shuffledp monitor plan --json`` prints."""
        design = self.design
        return {
            "periods": design.tree.periods,
            "max_changes": design.max_changes,
            "num_users": self.num_users,
            "protocol": design.protocol,
            "reason": self.reason,
            "epsilon0": design.epsilon0,
            "delta": self.delta,
            "asked_epsilon": self.asked_epsilon,
            "level_hidden": self.level_hidden,
            "encoding": design.encoding.name,
            "labels": [str(label) for label in design.encoding.labels],
            "num_levels": design.num_levels,
            "gap": design.law.gap,
            "fingerprint": design.fingerprint(),
            "local": _bound_dict(self.local),
            "central": _bound_dict(self.central),
            "confidence": self.confidence,
            "errors": {name: errors.to_dict() for name, errors in self.errors.items()},
            "smoothed_standard_errors": self.smoothed_standard_errors.tolist(),
            "reports_per_user": self.reports_per_user,
            "bits_per_report": self.bits_per_report,
            "bits_per_user": self.bits_per_user,
            "considered": [
                {"protocol": each.protocol, "epsilon0": each.epsilon0, "gap": each.gap}
                for each in self.considered
            ],
            "comparison": self.comparison.to_dict(),
            "cautions": list(self.cautions),
        }


def plan_monitoring(  # noqa: PLR0913  # one keyword an option
    *,
    periods: SupportsIndex,
    max_changes: SupportsIndex,
    num_users: SupportsIndex,
    delta: float,
    epsilon0: float | None = None,
    epsilon: float | None = None,
    domain: Iterable[Hashable] | None = None,
    protocol: str | None = None,
    confidence: float = 0.95,
    level_hidden: bool = True,
) -> MonitorPlan:
    """Plan to follow a changing statistic over many periods under one privacy budget.

    Parameters
    ----------
    periods : int
        d, in [1, 2^20].
    max_changes : int
        k, in [1, periods]: changes of a user's value that are followed, the first value included.
    num_users : int
        n, at least 1: users who take part throughout.
    delta : float
        Central failure probability, in (0, 1); well below 1/n.
    epsilon0 : float, optional
        Local privacy loss of everything that a user ever sends, in nats, > 0. Give this or
        ``epsilon``.
    epsilon : float, optional
        Central target for everything that is ever published, in nats, > 0: the largest epsilon0
        that meets it is found.
    domain : iterable or None
        As for `encoding_for`; by default a state that is on or off.
    protocol : str, optional
        One of ``SIGN_LAWS``; by default, or for ``"auto"``, the one with the smallest error.
    confidence : float
        Of the bands, in (0, 1).
    level_hidden : bool
        Whether nobody but the user knows the user's level. False for late joiners.

    Returns
    -------
    MonitorPlan
        Guarantees are rounded up, errors are upper bounds for every history.

    Raises
    ------
    ParameterError
        If an argument is out of range, or not exactly one of epsilon0 and epsilon is given.
    DomainError
        If the domain cannot be used.

    Notes
    -----
    Cost: one to four seconds, the most for a central target; imports are another second.

    Examples
    --------
    >>> plan = plan_monitoring(
    ...     periods=64, max_changes=1, num_users=10_000, epsilon0=1.0, delta=1e-6)
    >>> plan.local.upper <= 1.0, plan.central.upper < 0.1, plan.design.num_levels
    (True, True, 7)
    """
    request = PlanRequest.checked(
        periods=periods,
        max_changes=max_changes,
        num_users=num_users,
        delta=delta,
        epsilon0=epsilon0,
        epsilon=epsilon,
        domain=domain,
        level_hidden=level_hidden,
    )
    chance = require_open_unit("confidence", confidence)
    designs = designs_by_gap(request, protocol)
    design, users = designs[0], request.num_users
    central = request.central(design)
    errors = {
        method: expected_errors(design, num_users=users, confidence=chance, method=method)
        for method in ("least-squares", "cover")
    }
    smoothed = smoothed_errors(design, num_users=users)
    return MonitorPlan(
        design=design,
        num_users=users,
        delta=request.delta,
        confidence=chance,
        level_hidden=level_hidden,
        asked_epsilon=request.epsilon,
        local=local_guarantee(design.profile),
        central=central,
        errors=errors,
        smoothed_standard_errors=smoothed,
        considered=tuple(map(ProtocolChoice.of, designs)),
        reason=reason_for(designs, request, protocol),
        comparison=_comparison(
            request,
            design,
            standard_error=errors["least-squares"].root_mean_square,
            smoothed_standard_error=root_mean_square(smoothed),
            central_epsilon=max(central.upper, _LEAST_EPSILON),
        ),
    )


def _comparison(
    request: PlanRequest,
    design: MonitorDesign,
    *,
    standard_error: float,
    smoothed_standard_error: float,
    central_epsilon: float,
) -> MonitorComparison:
    """Return what repeated collections do with the same guarantees."""
    task = RepeatedTask(
        # A user who has no value yet needs one more answer, which is left out in favour of these.
        num_categories=max(design.encoding.num_values, 2),
        periods=design.tree.periods,
        num_users=request.num_users,
        delta=request.delta,
    )
    everybody = everybody_at_central(task, epsilon=central_epsilon)
    if request.level_hidden:
        few = few_answers(task, epsilon0=design.epsilon0, epsilon=central_epsilon)
    else:
        few = few_answers_seen(
            task,
            epsilon0=design.epsilon0,
            epsilon=central_epsilon,
            typical_epsilon0=everybody.epsilon0_per_answer,
        )
    return MonitorComparison(
        periods=design.tree.periods,
        standard_error=standard_error,
        smoothed_standard_error=smoothed_standard_error,
        local_epsilon=design.epsilon0,
        central_epsilon=central_epsilon,
        everybody_local=everybody_at_local(task, epsilon0=design.epsilon0),
        everybody_central=everybody,
        few_answers=few,
    )


def _bound_dict(bound: Bound) -> dict[str, object]:
    """Return a bound as JSON values."""
    return {
        "lower": bound.lower,
        "upper": bound.upper,
        "method": bound.method,
        "source": bound.source,
        "assumptions": list(bound.assumptions),
    }
