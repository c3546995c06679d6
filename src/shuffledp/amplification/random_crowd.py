"""Central guarantee where the number of users who hide a report is random.

A crowd is the victim and the users who hide them, K in all. Given K = m the release is
(epsilon, D(m))-private; K is drawn without looking at the values. A larger crowd hides better: D
does not increase. Then for sizes s_0 > s_1 > ... > s_L, with q_l >= Pr[K < s_l], by Abel summation

    delta(epsilon) <= (1 - q_0) D(s_0) + sum_{l >= 1} (q_{l-1} - q_l) D(s_l) + q_L D(1).

*Proof.* Given the values of K the two laws of the release on neighbouring data are mixtures with
equal weights, so delta(epsilon) <= E[D(K)] by convexity. D(K) is at most D(s_l) where
s_l <= K < s_{l-1}, so with F_l = Pr[K < s_l] the right-hand side with F in place of q is a bound.
It equals D(s_0) + sum_{l >= 1} F_{l-1} (D(s_l) - D(s_{l-1})) + F_L (D(1) - D(s_L)), which does not
decrease in any F_l. ∎

All it needs of D is upper bounds d(m) that hold for every crowd of *at least* m; the smallest of
d(s_l), d(s_{l+1}), ..., d(1) is one for s_l, and taken here, so that d itself may be anything.

Source: ours; docs/results/network.md.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Self

from numpy.typing import ArrayLike

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.core.numerics.poisson_binomial import survival_levels

# Largest share of the target that is lost to crowds smaller than all levels.
_LOST = 1e-4

# Distance of levels in deviations of a normal law, at most.
_STEP = 0.75

# Smaller tails are not told from 0 in sums with larger ones.
_SMALLEST_MISS = 1e-290

# Where the levels are this close, relative to the size, one of them is as good as all.
_NARROW = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdLaw:
    """Law of the size of a random crowd: bounds on the probability that it misses some sizes.

    Parameters
    ----------
    sizes : tuple of int
        Strictly descending, each at least 1; the victim counts. At least one.
    misses : tuple of float
        ``misses[l] >= Pr[crowd < sizes[l]]``, in [0, 1].

    Raises
    ------
    ParameterError
        If the two do not fit together, or a number is out of range.

    Examples
    --------
    >>> CrowdLaw(sizes=(10, 5), misses=(0.1, 1e-9)).sizes
    (10, 5)
    """

    sizes: tuple[int, ...]
    misses: tuple[float, ...]

    def __post_init__(self) -> None:
        sizes = tuple(require_at_least("sizes", size, 1) for size in self.sizes)
        if not sizes or len(sizes) != len(self.misses):
            raise ParameterError(
                f"sizes has {len(sizes)} entries, misses {len(self.misses)}: give one miss for "
                "each of at least one size"
            )
        if any(later >= earlier for earlier, later in pairwise(sizes)):
            raise ParameterError("sizes are not strictly descending: sort them and drop repeats")
        if not all(0.0 <= miss <= 1.0 for miss in self.misses):  # NaN fails
            raise ParameterError("misses have an entry outside [0, 1]: they are probabilities")
        object.__setattr__(self, "sizes", sizes)

    @classmethod
    def of(cls, levels: Iterable[tuple[int, float]]) -> Self:
        """Return the law of sizes and their misses in any order; of equal sizes the last counts."""
        sizes, misses = zip(*sorted(dict(levels).items(), reverse=True), strict=True)
        return cls(sizes=sizes, misses=misses)


def tail_targets(smallest: float) -> list[float]:
    """Return descending tail probabilities down to ``smallest``, at even steps of a normal law."""
    ends = [math.sqrt(-2.0 * math.log(each)) for each in (0.3, smallest)]
    steps = max(math.ceil((ends[1] - ends[0]) / _STEP), 1)
    between = [ends[0] + (ends[1] - ends[0]) * i / steps for i in range(steps)]
    return [0.9, 0.6, *(math.exp(-0.5 * each * each) for each in between), smallest]


def crowd_of(overlaps: ArrayLike, *, delta: float) -> CrowdLaw:
    """Return the law of 1 + N, where N of the others hide the report, by independent coins."""
    smallest = min(max(_LOST * delta, _SMALLEST_MISS), 0.1)
    levels = survival_levels(overlaps, tail_targets(smallest))
    rarest = levels[-1]
    if levels[0][0] - rarest[0] <= _NARROW * (rarest[0] + 1):
        levels = [rarest]
    # Among equal counts the last has the smallest miss.
    return CrowdLaw.of((1 + count, miss) for count, miss in levels)


def tail_mean(values: Sequence[float], misses: Sequence[float], worst: float) -> float:
    """Return (1 - q_0) v_0 + sum (q_{l-1} - q_l) v_l + q_L w, rounded up, with v made monotone."""
    from_below = list(accumulate(reversed(values), min, initial=worst))[1:]
    total, reached = 0.0, 1.0
    for value, miss in zip(reversed(from_below), misses, strict=True):
        missed = min(reached, miss)
        total += (reached - missed) * value
        reached = missed
    return min(round_up(total + reached * worst, operations=4 * len(values) + 4), worst)


def crowd_delta(law: CrowdLaw, conditional: Callable[[int], float], worst: float) -> float:
    """Bound delta at one epsilon for a crowd of random size; errs upwards, at most ``worst``."""
    if worst == 0.0:
        return 0.0
    return tail_mean([conditional(size) for size in law.sizes], law.misses, worst)
