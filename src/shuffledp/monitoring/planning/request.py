"""What a plan is asked for: how long, how often, for how many, and which guarantee."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import SupportsIndex

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_open_unit, require_positive
from shuffledp.core.errors import ParameterError
from shuffledp.core.monitoring_profile import MonitoringProfile
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.encodings import Encoding, encoding_for
from shuffledp.monitoring.histories.times import MOST_PERIODS
from shuffledp.monitoring.privacy.central import (
    LARGEST_EPSILON0,
    calibrate_monitoring,
    central_delta_upper,
    central_guarantee,
)
from shuffledp.monitoring.signs import SIGN_LAWS, sign_law
from shuffledp.monitoring.tree import PeriodTree


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What is asked for, once checked.

    Parameters
    ----------
    tree : PeriodTree
        The periods.
    max_changes : int
        k, at least 1.
    num_users : int
        n, at least 1.
    delta : float
        Central failure probability, in (0, 1).
    epsilon0, epsilon : float or None
        The local loss, or else the central target: one of them is given, in nats, > 0.
    encoding : Encoding
        How a value becomes bits.
    level_hidden : bool
        Whether nobody but the user knows the user's level.
    """

    tree: PeriodTree
    max_changes: int
    num_users: int
    delta: float
    epsilon0: float | None
    epsilon: float | None
    encoding: Encoding
    level_hidden: bool

    @classmethod
    def checked(
        cls,
        *,
        periods: SupportsIndex,
        max_changes: SupportsIndex,
        num_users: SupportsIndex,
        delta: float,
        epsilon0: float | None,
        epsilon: float | None,
        domain: Iterable[Hashable] | None,
        level_hidden: bool,
    ) -> "PlanRequest":
        """Return the request, or raise where something is out of range.

        Parameters
        ----------
        periods, max_changes, num_users, delta, epsilon0, epsilon, domain, level_hidden
            As for `plan_monitoring`.

        Returns
        -------
        PlanRequest
            With whole numbers and floats.

        Raises
        ------
        ParameterError
            If a number is out of range, or not exactly one of epsilon0 and epsilon is given.
        DomainError
            If the domain cannot be used.
        """
        tree = PeriodTree(periods=require_at_least("periods", periods, 1))
        if tree.periods > MOST_PERIODS:
            raise ParameterError(
                f"periods = {tree.periods:,} is above {MOST_PERIODS:,}: take longer periods"
            )
        if (epsilon0 is None) == (epsilon is None):
            raise ParameterError(
                f"epsilon0 = {epsilon0} and epsilon = {epsilon}: give exactly one of them, the "
                "local loss of all that a user sends, or the central target of all that is "
                "published"
            )
        return cls(
            tree=tree,
            max_changes=require_at_least("max_changes", max_changes, 1),
            num_users=require_at_least("num_users", num_users, 1),
            delta=require_open_unit("delta", delta),
            epsilon0=None if epsilon0 is None else require_positive("epsilon0", epsilon0),
            epsilon=None if epsilon is None else require_positive("epsilon", epsilon),
            encoding=encoding_for(domain),
            level_hidden=level_hidden,
        )

    def design(self, protocol: str) -> MonitorDesign:
        """Return the design with a law of the signs that meets what is asked for.

        Parameters
        ----------
        protocol : str
            One of ``SIGN_LAWS``.

        Returns
        -------
        MonitorDesign
            With the largest epsilon0 that is found to meet the central target, if there is one.

        Raises
        ------
        ParameterError
            If the law cannot be used for so many changes, or no epsilon0 meets the target.
        """
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
        """Tell whether a law of the signs meets the central target at a local loss.

        Parameters
        ----------
        protocol : str
            One of ``SIGN_LAWS``.
        epsilon0 : float
            In nats, > 0.

        Returns
        -------
        bool
            True where there is no central target.
        """
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolChoice:
    """A law of the signs that was considered.

    Parameters
    ----------
    protocol : str
        One of ``SIGN_LAWS``.
    epsilon0 : float
        At which it meets what was asked, in nats.
    gap : float
        The errors are in proportion to 1 / gap.
    """

    protocol: str
    epsilon0: float
    gap: float

    @classmethod
    def of(cls, design: MonitorDesign) -> "ProtocolChoice":
        """Return the law of a design."""
        return cls(protocol=design.protocol, epsilon0=design.epsilon0, gap=design.law.gap)


def designs_by_gap(request: PlanRequest, protocol: str | None) -> tuple[MonitorDesign, ...]:
    """Return the designs that were considered, the one with the smallest error first.

    Parameters
    ----------
    request : PlanRequest
        What is asked for.
    protocol : str or None
        One of ``SIGN_LAWS``; ``None`` or ``"auto"`` for all.

    Returns
    -------
    tuple of MonitorDesign
        At least one. Laws that cannot be used, or that have a larger error than another at the same
        central target, are left out.

    Raises
    ------
    ParameterError
        If no law can be used.

    Notes
    -----
    A law takes up to two seconds to meet a central target. One that would need more local loss than
    the target allows to come up to the best law so far is not tried: that takes 0.1 s.

    Examples
    --------
    >>> request = PlanRequest.checked(
    ...     periods=8, max_changes=4, num_users=100, delta=1e-6, epsilon0=1.0, epsilon=None,
    ...     domain=None, level_hidden=True)
    >>> [each.protocol for each in designs_by_gap(request, "auto")]
    ['predrawn-signs', 'sampled-change']
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
    """Return why the first of the designs was taken, as a sentence.

    Parameters
    ----------
    designs : tuple of MonitorDesign
        Of `designs_by_gap`.
    request : PlanRequest
        What is asked for.
    asked : str or None
        The law that was asked for, if it was.

    Returns
    -------
    str
        With the factor between the errors of the first two, where it is known.
    """
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
