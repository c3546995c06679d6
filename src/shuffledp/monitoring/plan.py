"""Planning: errors and privacy of following a changing statistic, and its alternatives.

It combines the design of clients and server, the errors of the estimators, the guarantee over the
whole time, and the same for collections that are repeated instead.
"""

import math
from collections.abc import Hashable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.cautions import delta_cautions
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_open_unit, require_positive
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only
from shuffledp.core.shown import Shown
from shuffledp.monitoring import comparison, running_counts
from shuffledp.monitoring.comparison import MonitorComparison, RepeatedCollection, RepeatedTask
from shuffledp.monitoring.design import (
    LARGEST_NUM_SIGNS,
    Encoding,
    MonitorDesign,
    PredrawnSigns,
    SampledChange,
)
from shuffledp.monitoring.histories import require_periods
from shuffledp.monitoring.privacy import central
from shuffledp.monitoring.simulation import local_cautions, noise_cautions

# Least epsilon to which others are held if delta alone pays for the central target.
_LEAST_EPSILON = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MonitorPlan(Shown):
    """A longitudinal collection: its expected errors, its guarantees, and its alternatives.

    Parameters
    ----------
    design : MonitorDesign
        The design that clients and server share.
    num_users : int
        n: users who take part from the first period to the last, all honest.
    delta : float
        Central delta.
    confidence : float
        Of the bands.
    asked_epsilon : float or None
        The central target, if one was given; otherwise epsilon0 was.
    local : Bound
        Epsilon of all reports of a user.
    central : Bound
        Epsilon of everything that is ever published, at ``delta``, for a change of one user's whole
        history.
    standard_errors : ndarray of float64, shape (periods,)
        In users, of the count of one value, from the reports up to the period; an upper bound for
        every history.
    smoothed_standard_errors : ndarray of float64, shape (periods,)
        Standard errors once all reports are there.
    proven_errors : ndarray of float64, shape (periods,)
        Errors, in users, that no count at any period exceeds with that confidence: proved without
        any normal approximation (Theorem 6 with constants).
    comparison : MonitorComparison
        Comparison with one-shot collections that are repeated.

    Examples
    --------
    >>> from shuffledp.monitoring import plan_monitoring
    >>> how = {"periods": 8, "max_changes": 1, "epsilon0": 1.0, "delta": 1e-6}
    >>> plan_monitoring(num_users=1_000, **how).standard_errors.shape
    (8,)
    """

    design: MonitorDesign
    num_users: int
    delta: float
    confidence: float
    asked_epsilon: float | None
    local: Bound
    central: Bound
    standard_errors: NDArray[np.float64]
    smoothed_standard_errors: NDArray[np.float64]
    proven_errors: NDArray[np.float64]
    comparison: MonitorComparison

    def half_widths(self, *, simultaneous: bool) -> NDArray[np.float64]:
        """Return half-widths of the band: at all periods and values at once, or at one alone.

        Parameters
        ----------
        simultaneous : bool
            Whether the band must hold at all periods and values at once.

        Returns
        -------
        ndarray of float64, shape (periods,)
            In users.
        """
        return self.standard_errors * running_counts.band_quantile(
            self.confidence,
            num_periods=self.design.periods,
            domain_size=self.design.encoding.domain_size,
            simultaneous=simultaneous,
        )

    @property
    def reports_per_user(self) -> float:
        """Number of reports that a user sends in all, on average over the levels."""
        return self.design.tree.num_nodes / self.design.num_levels

    @property
    def bits_per_report(self) -> int:
        """Size of level, column and sign; the period is the time of sending."""
        levels, columns = self.design.num_levels, self.design.encoding.num_columns
        return (levels - 1).bit_length() + (columns - 1).bit_length() + 1

    @property
    def cautions(self) -> tuple[str, ...]:
        """Settings that are allowed but need second thoughts, one sentence each."""
        return (
            *delta_cautions(self.delta, self.num_users),
            *noise_cautions(float(self.standard_errors.max()), self.num_users),
            *local_cautions(self.local.upper),
        )

    def to_dict(self) -> dict[str, object]:
        """Return everything as JSON values, as printed by ``shuffledp monitor plan --json``."""
        design, errors = self.design, self.standard_errors
        single, together = (self.half_widths(simultaneous=each) for each in (False, True))
        return {
            "periods": design.tree.periods,
            "max_changes": design.max_changes,
            "num_users": self.num_users,
            "protocol": design.protocol,
            "epsilon0": design.epsilon0,
            "delta": self.delta,
            "asked_epsilon": self.asked_epsilon,
            "encoding": design.encoding.name,
            "labels": [str(label) for label in design.encoding.labels],
            "num_levels": design.num_levels,
            "gap": design.law.gap,
            "fingerprint": design.fingerprint(),
            "local": _bound_dict(self.local),
            "central": _bound_dict(self.central),
            "confidence": self.confidence,
            "errors": {
                "worst_standard_error": float(errors.max()),
                "mean_standard_error": float(errors.mean()),
                "root_mean_square_standard_error": root_mean_square(errors),
                "worst_pointwise_half_width": float(single.max()),
                "worst_simultaneous_half_width": float(together.max()),
                "worst_proven_error": float(self.proven_errors.max()),
                "standard_errors": errors.tolist(),
                "pointwise_half_widths": single.tolist(),
                "simultaneous_half_widths": together.tolist(),
                "proven_errors": self.proven_errors.tolist(),
            },
            "smoothed_standard_errors": self.smoothed_standard_errors.tolist(),
            "reports_per_user": self.reports_per_user,
            "bits_per_report": self.bits_per_report,
            "bits_per_user": self.reports_per_user * self.bits_per_report,
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
    dummies: str = "none",
    max_epsilon0: float | None = None,
    no_local_noise: bool = False,
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
        Central delta, in (0, 1); well below 1/n.
    epsilon0 : float, optional
        Local privacy loss of all reports of a user, in nats, > 0. Give this or
        ``epsilon``.
    epsilon : float, optional
        Central target for everything that is ever published, in nats, > 0: the largest epsilon0
        that meets it is found.
    domain : iterable or None
        As for `MonitorDesign`; by default a state that is on or off.
    protocol : str, optional
        Law of the signs, see `MonitorDesign`; by default pre-drawn signs up to 62 changes, which
        have the smaller error at the same local loss, and the sampled change beyond.
    confidence : float
        Of the bands, in (0, 1).
    dummies : {"none", "shuffler"}
        Whether to compare with one more collection: everybody answers in every period, and the
        shuffler adds dummies.
    max_epsilon0 : float, optional
        With dummies, the local privacy loss of each distinct value of a user, > 0.
    no_local_noise : bool
        With dummies, instead of ``max_epsilon0``: reports are the values.

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
    InfeasibleTargetError
        If the central guarantee needs more dummies than the table of a law can hold.

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
    length = require_periods(periods)
    if (epsilon0 is None) == (epsilon is None):
        raise ParameterError(
            f"epsilon0 = {epsilon0} and epsilon = {epsilon}: give exactly one of them, the local "
            "loss of all that a user sends, or the central target of all that is published"
        )
    changes = require_at_least("max_changes", max_changes, 1)
    users = require_at_least("num_users", num_users, 1)
    delta = require_open_unit("delta", delta)
    confidence = require_open_unit("confidence", confidence)
    encoding = Encoding.of(domain)
    loss_of_value = _loss_of_value(dummies, max_epsilon0, no_local_noise=no_local_noise)
    if protocol is None:
        protocol = (PredrawnSigns if changes <= LARGEST_NUM_SIGNS else SampledChange).name
    crowd: dict[str, Any] = {"num_users": users, "delta": delta}
    designed = partial(
        MonitorDesign,
        periods=length,
        max_changes=changes,
        protocol=protocol,
        domain=None if domain is None else encoding.labels,
    )
    if epsilon is not None:
        epsilon0 = central.calibrate_monitoring(
            lambda loss: designed(epsilon0=loss).profile, epsilon=epsilon, **crowd
        )
    design = designed(epsilon0=require_positive("epsilon0", epsilon0 or 0.0))
    published = central.central_guarantee(design.profile, **crowd)
    expected = partial(
        running_counts.expected_standard_errors, design, num_users=users, through=length
    )
    errors, smoothed = expected(), expected(smoothed=True)
    proven = running_counts.proven_errors(design, num_users=users, confidence=confidence)
    return MonitorPlan(
        design=design,
        num_users=users,
        delta=delta,
        confidence=confidence,
        asked_epsilon=epsilon,
        local=central.local_guarantee(design.profile),
        central=published,
        standard_errors=read_only(errors),
        smoothed_standard_errors=read_only(smoothed),
        proven_errors=read_only(proven),
        comparison=_compared(design, published, (errors, smoothed), crowd, loss_of_value),
    )


def _loss_of_value(
    dummies: str, max_epsilon0: float | None, *, no_local_noise: bool
) -> float | None:
    """Return the local loss of each distinct value under dummies, None without dummies."""
    if dummies not in ("none", "shuffler"):
        raise ParameterError(f"dummies = {dummies!r} is not one of none, shuffler")
    number_given = (max_epsilon0 is not None) + no_local_noise
    if number_given != (dummies == "shuffler"):
        raise ParameterError(
            f"max_epsilon0 = {max_epsilon0} and no_local_noise = {no_local_noise} with dummies = "
            f"{dummies!r}: give exactly one of them with 'shuffler', and neither with 'none'"
        )
    if dummies == "none":
        return None
    return math.inf if max_epsilon0 is None else require_positive("max_epsilon0", max_epsilon0)


def _compared(
    design: MonitorDesign,
    published: Bound,
    errors: tuple[NDArray[np.float64], NDArray[np.float64]],
    crowd: dict[str, Any],
    loss_of_value: float | None,
) -> MonitorComparison:
    """Return the plan's comparison with repeated collections of the same guarantees."""
    # A user without a value yet would need one more answer, which is left out in favour of these.
    size = max(design.encoding.domain_size, 2)
    task = RepeatedTask(domain_size=size, periods=design.periods, **crowd)
    local, target = design.epsilon0, max(published.upper, _LEAST_EPSILON)
    dummies: RepeatedCollection | None = None
    if loss_of_value is not None:
        dummies = comparison.everybody_with_dummies(task, epsilon=target, epsilon0=loss_of_value)
    return MonitorComparison(
        periods=design.periods,
        standard_error=root_mean_square(errors[0]),
        smoothed_standard_error=root_mean_square(errors[1]),
        local_epsilon=local,
        central_epsilon=target,
        everybody_local=comparison.everybody_at_local(task, epsilon0=local),
        everybody_central=comparison.everybody_at_central(task, epsilon=target),
        few_answers=comparison.few_answers(task, epsilon0=local, epsilon=target),
        with_dummies=dummies,
    )


def root_mean_square(standard_errors: NDArray[np.float64]) -> float:
    """Return the root mean square over the periods."""
    return float(np.sqrt(np.mean(np.square(standard_errors))))


def _bound_dict(bound: Bound) -> dict[str, object]:
    """Return a bound as JSON values."""
    return asdict(bound) | {"assumptions": list(bound.assumptions)}
