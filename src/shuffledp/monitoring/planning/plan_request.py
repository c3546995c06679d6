"""What a plan is asked for: how long, how often, for how many, and which guarantee."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import SupportsIndex

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_open_unit, require_positive
from shuffledp.core.errors import ParameterError
from shuffledp.core.monitoring_profile import MonitoringProfile
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.encodings.choose import encoding_for
from shuffledp.monitoring.encodings.encoding import Encoding
from shuffledp.monitoring.histories.history_times import MOST_PERIODS
from shuffledp.monitoring.privacy.calibration import calibrate_monitoring
from shuffledp.monitoring.privacy.central import central_delta_upper, central_guarantee
from shuffledp.monitoring.sign_laws.registry import sign_law
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
        domain: Iterable[Hashable] | str | None,
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
