"""Planning: how well a changing statistic will be known, how private it is, and what else would do.

Mechanisms and privacy meet here: the design of clients and server, the errors that the estimators
then have, the guarantee of the whole time, and the same for collections that are repeated instead.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.results import delta_cautions
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_open_unit, require_positive
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import MonitoringProfile
from shuffledp.core.reports import read_only
from shuffledp.monitoring.comparison import (
    MonitorComparison,
    RepeatedTask,
    Verdict,
    advice,
    comparison_of,
)
from shuffledp.monitoring.design import Encoding, MonitorDesign, PeriodTree, encoding_for
from shuffledp.monitoring.privacy.central import (
    LARGEST_EPSILON0,
    calibrate_monitoring,
    central_delta_upper,
    central_guarantee,
    local_guarantee,
)
from shuffledp.monitoring.results import local_cautions, noise_cautions
from shuffledp.monitoring.running_errors import (
    band_quantile,
    expected_standard_errors,
    proven_errors,
)
from shuffledp.monitoring.signs import SIGN_LAWS, sign_law
from shuffledp.monitoring.times import MOST_PERIODS


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What is asked for, checked; the parameters are those of `plan_monitoring`."""

    periods: int
    max_changes: int
    num_users: int
    delta: float
    epsilon0: float | None = None
    epsilon: float | None = None
    domain: Iterable[Hashable] | None = None
    level_hidden: bool = True
    tree: PeriodTree = field(init=False)
    encoding: Encoding = field(init=False)

    def __post_init__(self) -> None:
        set_field = partial(object.__setattr__, self)
        set_field("tree", PeriodTree(periods=require_at_least("periods", self.periods, 1)))
        if self.tree.periods > MOST_PERIODS:
            raise ParameterError(
                f"periods = {self.tree.periods:,} is above {MOST_PERIODS:,}: take longer periods"
            )
        if (self.epsilon0 is None) == (self.epsilon is None):
            raise ParameterError(
                f"epsilon0 = {self.epsilon0} and epsilon = {self.epsilon}: give exactly one of "
                "them, the local loss of all that a user sends, or the central target of all that "
                "is published"
            )
        for name in ("max_changes", "num_users"):
            set_field(name, require_at_least(name, getattr(self, name), 1))
        set_field("delta", require_open_unit("delta", self.delta))
        for name in ("epsilon0", "epsilon"):
            if getattr(self, name) is not None:
                set_field(name, require_positive(name, getattr(self, name)))
        set_field("encoding", encoding_for(self.domain))

    def design(self, protocol: str) -> MonitorDesign:
        """Return the design with a law of the signs that meets what is asked for."""
        return MonitorDesign(
            periods=self.tree.periods,
            max_changes=self.max_changes,
            epsilon0=self._epsilon0(protocol),
            protocol=protocol,
            encoding=self.encoding,
        )

    def central(self, design: MonitorDesign) -> Bound:
        """Return the central guarantee of a design."""
        return central_guarantee(
            design.profile,
            num_users=self.num_users,
            delta=self.delta,
            level_hidden=self.level_hidden,
            changing_share=self.encoding.changing_share,
        )

    def can_meet(self, protocol: str, epsilon0: float) -> bool:
        """Tell whether a law of the signs meets the central target at a local loss."""
        if self.epsilon is None:
            return True
        reached = central_delta_upper(
            self._profile(protocol, epsilon0),
            num_users=self.num_users,
            epsilon=self.epsilon,
            level_hidden=self.level_hidden,
            changing_share=self.encoding.changing_share,
        )
        return reached <= self.delta

    def _epsilon0(self, protocol: str) -> float:
        """Return the local loss at which a law of the signs meets what is asked for."""
        if self.epsilon is None:
            return self.epsilon0 or 0.0  # one of the two is given
        return calibrate_monitoring(
            lambda loss: self._profile(protocol, loss),
            num_users=self.num_users,
            epsilon=self.epsilon,
            delta=self.delta,
            level_hidden=self.level_hidden,
            changing_share=self.encoding.changing_share,
        )

    def _profile(self, protocol: str, epsilon0: float) -> MonitoringProfile:
        """Return what privacy has to know of a law of the signs."""
        law = sign_law(protocol, max_changes=self.max_changes, epsilon0=epsilon0)
        return law.profile(num_levels=self.tree.num_levels, alternating=self.encoding.alternating)


#: Lets the plan choose the law of the signs.
AUTO = "auto"

# The local loss at which two laws have the same gap is found this closely: 12 / 2^20.
_HALVINGS = 20

# Gaps that differ by less are taken to be the same.
_SAME = 1e-9


def designs_by_gap(request: PlanRequest, protocol: str | None) -> tuple[MonitorDesign, ...]:
    """Return the designs that were considered, the one with the smallest error first.

    Laws that cannot be used, or that have a larger error than another at the same central target,
    are left out. One that would need more local loss than the target allows to come up to the best
    law so far is not tried: that takes 0.1 s.
    """
    designs: list[MonitorDesign] = []
    refused: list[ParameterError] = []
    for name in SIGN_LAWS if protocol is None or protocol == AUTO else (protocol,):
        try:
            if designs and not _may_be_better(request, name, designs[0].law.gap):
                continue
            designs.append(request.design(name))
        except ParameterError as error:  # for example too many changes for drawn signs
            refused.append(error)
        designs.sort(key=lambda each: -each.law.gap)
    if not designs:
        raise refused[-1]
    return tuple(designs)


def reason_for(designs: tuple[MonitorDesign, ...], request: PlanRequest, asked: str | None) -> str:
    """Return why the first of the designs was taken, as a sentence."""
    first = designs[0]
    if asked is not None and asked != AUTO:
        return f"{first.protocol} was asked for."
    if len(designs) > 1:
        factor, second = first.law.gap / designs[1].law.gap, designs[1].protocol
        if factor < 1.0 + _SAME:
            return f"{first.protocol} and {second} have the same error here."
        return f"{first.protocol} has the smallest error, {second} {factor:.3g} times it."
    if request.epsilon is not None and first.protocol == next(iter(SIGN_LAWS)):
        return f"{first.protocol} has the smallest error at this central guarantee."
    return f"{first.protocol} is the only one for {first.max_changes} changes."


def _may_be_better(request: PlanRequest, protocol: str, gap: float) -> bool:
    """Tell whether a law might reach a gap within what is asked for."""
    if request.epsilon is None:
        return True  # nothing has to be searched for: it is shown beside the best

    def reaches(epsilon0: float) -> bool:
        law = sign_law(protocol, max_changes=request.max_changes, epsilon0=epsilon0)
        return law.gap > gap

    low, high = 0.0, LARGEST_EPSILON0
    if not reaches(high):
        return False
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return request.can_meet(protocol, high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedErrors:
    """Errors of the running counts by one online estimator, period by period."""

    method: str  # ``"least-squares"`` or ``"cover"``: online, from the reports up to the period
    confidence: float  # Of the bands, in (0, 1)
    # Counts that run side by side, at least 1: a band for all periods holds for all of them.
    domain_size: int
    # Shape (periods,); In users, of the count of one value; an upper bound for every history.
    standard_errors: NDArray[np.float64]
    # Shape (periods,); Errors that no count at any period exceeds with that confidence: proved
    # without any normal approximation (Theorem 6 with constants). In users.
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
        """The same for the band that holds at all periods and values at once."""
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
            domain_size=self.domain_size,
        )


def expected_errors(
    design: MonitorDesign, *, num_users: int, confidence: float, method: str
) -> ExpectedErrors:
    """Return the errors of one online estimator."""
    law, factor = design.law, design.encoding.variance_factor
    return ExpectedErrors(
        method=method,
        confidence=confidence,
        domain_size=design.encoding.domain_size,
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
            domain_size=design.encoding.domain_size,
        ),
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
    considered : tuple of MonitorDesign
        With the laws of the signs that were worked out, the one taken first.
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
    considered: tuple[MonitorDesign, ...]
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
                {"protocol": each.protocol, "epsilon0": each.epsilon0, "gap": each.law.gap}
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
    request = PlanRequest(
        periods=periods,  # type: ignore[arg-type]  # checked there
        max_changes=max_changes,  # type: ignore[arg-type]  # checked there
        num_users=num_users,  # type: ignore[arg-type]  # checked there
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
    smoothed = expected_standard_errors(
        design.tree,
        num_users=users,
        scale=design.scale,
        smoothed=True,
        pair_correlation=design.law.pair_correlation,
        variance_factor=design.encoding.variance_factor,
    )
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
        smoothed_standard_errors=read_only(smoothed),
        considered=designs,
        reason=reason_for(designs, request, protocol),
        comparison=comparison_of(
            RepeatedTask(
                # Whoever has no value yet needs one more answer, which is left out in favour of
                # repeated collections.
                domain_size=max(design.encoding.domain_size, 2),
                periods=design.periods,
                num_users=users,
                delta=request.delta,
            ),
            standard_error=errors["least-squares"].root_mean_square,
            smoothed_standard_error=root_mean_square(smoothed),
            local_epsilon=design.epsilon0,
            central_epsilon=max(central.upper, _LEAST_EPSILON),
            level_hidden=level_hidden,
        ),
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
