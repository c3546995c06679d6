"""Facts and cautions of a shuffle within groups."""

import math
from dataclasses import dataclass
from typing import ClassVar

from shuffledp.core.bound import Guarantee


@dataclass(frozen=True, slots=True, kw_only=True)
class Reidentification:
    """Theorem 4.2 for the smallest group, of ``group_size`` people, that protects some person.

    ``most_probable`` is an upper bound on the probability that more than half of the rows that an
    adversary names for ``subset_size`` people are theirs.
    """

    subset_size: int
    group_size: int
    most_probable: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """Groups and guarantees of one shuffle within groups; lengths are in ``unit``.

    In 95 % of all shuffles the share ``preserved`` or more of the reports of the largest group
    stays in it, as simulated shuffles show with 95 % confidence; 0 if they were too few.
    Computed in `shuffledp.groups.shuffling`.
    """

    kind: ClassVar[str] = "groups"

    description: str
    num_groups: int
    smallest_group: int
    median_group: int
    largest_group: int
    reference_order: str
    sensitivity: float
    alpha: float
    theta: float
    mean_displacement: float
    odds_factor: float
    reidentification: tuple[Reidentification, ...]
    preserved: float
    unit: str = "places"


@dataclass(frozen=True, slots=True, kw_only=True)
class MallowsFacts(GroupFacts):
    """Facts of a Mallows model on a reference order."""

    largest_width: int
    rank_distance: str

    @property
    def published_sensitivity(self) -> int | None:
        """Sensitivity by the formula of Meehan et al. for Kendall's distance; None for others."""
        width = self.largest_width
        return width * (width + 1) // 2 if self.rank_distance == "kendall" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplacementFacts(GroupFacts):
    """Facts of noise on places: quantiles of the expected number of others hiding a report."""

    expected_crowd: tuple[float, ...]


# With epsilon above this share of epsilon0 a shuffle hardly amplifies.
_HARDLY = 0.9


def amplification_cautions(
    guarantee: Guarantee, epsilon0: float, facts: GroupFacts
) -> tuple[str, ...]:
    """Return a warning if a shuffle within groups hardly amplifies.

    The condition: epsilon is at least nine tenths of epsilon0, and more than twice the lower end
    (for a uniform shuffle).
    """
    epsilon, lower = guarantee.epsilon_upper, guarantee.lower or 0.0
    if math.isinf(facts.alpha) or epsilon < _HARDLY * epsilon0 or lower > 0.5 * epsilon:
        return ()
    share = f"central epsilon is {epsilon:.3g}, and epsilon0 = {epsilon0:.3g}"
    if isinstance(facts, MallowsFacts) and facts.rank_distance == "kendall":
        return (
            f"Kendall's distance gives next to no central amplification here: {share}. Within "
            "groups it promises alpha all the same. The displacement shuffler, or rank distance "
            "hamming or cayley, which does not keep reports near, may give a smaller epsilon.",
        )
    return (
        f"There is next to no central amplification here: {share}. Somebody has few others nearby "
        "to hide among; a smaller alpha moves reports farther.",
    )
