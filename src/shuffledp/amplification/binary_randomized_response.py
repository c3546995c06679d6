"""Shuffled binary randomized response: exact, so it is both the upper and the lower bound.

With q = 1/(1 + e^epsilon0), the shuffled reports are the number of ones among them. If j of the
others hold a one, S = Bin(j, 1 - q) + Bin(n - 1 - j, q), and the victim's change from zero to one
turns P = S + Bern(q) into Q = S + Bern(1 - q). S is log-concave, so P/Q falls in s and

    delta_j(epsilon) = (1 - q - e q) f(m) - (e - 1) F(m - 1),   e = exp(epsilon),

f and F point and tail probabilities of S, m the last s with P(s) > e Q(s). The other direction is
the same with j turned into n - 1 - j, so the guarantee is the maximum over j = 0 .. n - 1. That
maximum is near an end but not always at it: the lattice matters.

Source: derived in docs/results/binary-exact.md. Every j is covered, by domination where not one
by one.
"""

import functools
import math
from typing import TYPE_CHECKING

from shuffledp.amplification.atom_law import MANY_DEVIATIONS, SMALLEST_DELTA, WIDE_WIDTH
from shuffledp.amplification.method import Method, pure_violation
from shuffledp.core.errors import PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure, exp_difference
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LocalProfile, RandomizerFamily

if TYPE_CHECKING:
    from shuffledp.amplification.binary_randomized_response_kernels import Rates

# Width of the result relative to epsilon; the data of the others are settled in 1/width stretches.
# It is 1e-8 while every number of ones is affordable by itself, and widens smoothly, so that more
# users do not raise an upper end. The width of delta follows: at least half of it, and at most ten
# times it, or beyond a small batch 2 ln(1/delta) times it.
_NARROWEST, _WIDEST = 1e-8, 7.99e-6
_SMALL_BATCH, _GROWTH = 2e4, 2.2
_LEAST_SLOPE, _DELTA_FACTOR = 0.5, 10.0

# The first step up from an epsilon that does not hold, in widths.
_FIRST_STEP = 0.05

# Samples of the search for the worst number of ones, before every number is settled, and the number
# of its refinements; fewer where the result may be wide.
_SAMPLES, _FEW_SAMPLES = (33, 4), (17, 4)

# One pair's delta is known to 1e-8 of itself unless its terms cancel altogether.
_ROUND_OFF_LIMIT = 1e-4


class BinaryRandomizedResponse:
    """The worst delta of shuffled binary randomized response, over all data of the others.

    Parameters
    ----------
    epsilon0 : float
        Local privacy loss in nats, > 0.
    num_users : int
        Number of users n >= 1, victim included.
    width : float
        Width of results relative to epsilon that is narrow enough, where that saves time.

    Notes
    -----
    Cost: at most about 3e5 divergences of 3 microseconds, whatever n; far fewer at a width of 1e-4.
    """

    def __init__(self, epsilon0: float, num_users: int, *, width: float = 0.0) -> None:
        from shuffledp.amplification import binary_randomized_response_kernels

        self._kernels = binary_randomized_response_kernels
        self._others = float(num_users - 1)
        self._epsilon0 = epsilon0
        growth: float = max(self._others / _SMALL_BATCH, 1.0) ** _GROWTH
        self._tolerance = min(_NARROWEST * growth, _WIDEST)
        self._width = width

    def enclose(self, epsilon: float) -> Enclosure:
        """Enclose delta at ``epsilon`` >= 0, as widely as moving epsilon by its width would."""
        if epsilon >= self._epsilon0:
            return Enclosure(0.0, 0.0)
        lower, upper, _ = self._settled(epsilon, *self._aim(epsilon))
        return Enclosure(lower, upper)

    def enclose_epsilon(self, delta: float, highest: float) -> Enclosure:
        """Enclose the least epsilon in [0, highest] whose delta is at most ``delta``.

        `enclose` confirms the upper end, if ``delta`` is one that it can tell from 0: a published
        epsilon holds when it is checked.
        """
        if self._first_excess(0.0, 0.5 * delta, 0.0) < 0.0:
            return Enclosure(0.0, 0.0)  # no delta is enclosed twice as wide
        # An epsilon that the two extreme neighbouring pairs make unavoidable.
        extremes = (self._least_epsilon(delta, ones, 0.0, highest) for ones in (0.0, self._others))
        lower = max(extremes)
        worst = self._worst_sampled(lower)
        if delta < SMALLEST_DELTA:
            lower = self._least_epsilon(delta, worst, lower, highest)
            return Enclosure(lower, self._far_epsilon(delta, lower, highest))
        upper, step = 0.0, _FIRST_STEP * self._tolerance
        while True:
            lower, enough = last_above_first_below(
                functools.partial(self._lower, ones=worst), delta, lower, highest
            )
            upper = max(upper, enough / (1.0 - self._tolerance))
            if upper >= highest:
                return Enclosure(lower, highest)
            worst, target = self._aim(upper)
            if target <= delta:
                _, found, worst = self._settled(upper, worst, target)
                if found <= delta:
                    return Enclosure(lower, upper)
                step = max(step, self._tolerance)
            upper += max(step * max(upper, self._deviation()), math.ulp(highest))
            step *= 2.0

    def _far_epsilon(self, delta: float, lowest: float, highest: float) -> float:
        """Return the least epsilon found that is enough for a ``delta`` below 1e-300."""
        epsilon, ones = lowest * (1.0 + self._tolerance), 0.0
        while epsilon < highest:
            # What was settled at a smaller epsilon stays settled, since delta falls in epsilon.
            ones = self._first_excess(epsilon, delta, ones)
            if ones < 0.0:
                return epsilon
            _, epsilon = last_above_first_below(
                functools.partial(self._upper, ones=ones), delta, epsilon, highest, guess=epsilon
            )
            epsilon *= 1.0 + self._tolerance
        return highest

    def _aim(self, epsilon: float) -> tuple[float, float]:
        """Return the number of ones that looks worst, and a delta expected to be above all."""
        worst = self._worst_sampled(epsilon)
        lower = self._lower(epsilon, worst)
        moved = self._lower(epsilon * (1.0 - self._tolerance), worst)
        least, most = self._delta_tolerances(epsilon, lower)
        return worst, max(min(moved, lower * (1.0 + most)), lower * (1.0 + least), SMALLEST_DELTA)

    def _settled(self, epsilon: float, worst: float, target: float) -> tuple[float, float, float]:
        """Return both ends of delta, the upper at least ``target``, and the worst number found."""
        most = self._kernels.own_divergence(self._rates(epsilon))
        lower, upper = self._lower(epsilon, worst), min(target, most)
        width = target / lower if lower > 0.0 else 1.0 + self._delta_tolerances(epsilon, 0.0)[1]
        ones = self._first_excess(epsilon, upper, 0.0)
        while ones >= 0.0 and upper < most:  # no crowd makes delta larger than the report alone
            found, highest = self._lower(epsilon, ones), self._upper(epsilon, ones)
            lower, worst = max(lower, found), ones
            _require_narrow(found, highest)
            upper = min(max(upper, highest) * width, most)
            ones = self._first_excess(epsilon, upper, ones)
        return lower, upper, worst

    def _deviation(self) -> float:
        """Return the deviation that the loss of a large crowd has; 0 for denormal losses."""
        return 2.0 * math.sinh(0.5 * min(self._epsilon0, 700.0)) / math.sqrt(self._others + 1.0)

    def _delta_tolerances(self, epsilon: float, delta: float) -> tuple[float, float]:
        """Return the least and the largest relative width of a delta of about this size."""
        steepest = -2.0 * math.log(max(delta, SMALLEST_DELTA))
        deviation = self._deviation()
        steps = min(epsilon / deviation, MANY_DEVIATIONS) if deviation > 0.0 else MANY_DEVIATIONS
        wide = self._width * max(min(steps**2, steepest), 1.0)
        most = self._tolerance * _DELTA_FACTOR + (self._tolerance - _NARROWEST) * steepest
        return max(self._tolerance * _LEAST_SLOPE, wide), max(most, wide)

    def _worst_sampled(self, epsilon: float) -> float:
        """Return the number of ones with the largest delta among a hundred or so."""
        if epsilon >= self._epsilon0:
            return 0.0
        samples, zooms = _SAMPLES if self._width < WIDE_WIDTH else _FEW_SAMPLES
        return self._kernels.worst_sampled(self._others, self._rates(epsilon), samples, zooms)

    def _rates(self, epsilon: float) -> "Rates":
        """Return p - 1, e - 1 and p - e, each to at most five roundings."""
        excess = exp_difference(self._epsilon0, epsilon)
        return self._kernels.Rates(math.expm1(self._epsilon0), math.expm1(epsilon), excess)

    def _first_excess(self, epsilon: float, target: float, start: float) -> float:
        """Return the first number of ones >= ``start`` with a delta above ``target``, or -1."""
        return self._kernels.first_excess(self._others, self._rates(epsilon), target, start)

    def _lower(self, epsilon: float, ones: float) -> float:
        """Return delta of one neighbouring pair, rounded down."""
        if epsilon >= self._epsilon0:
            return 0.0
        zeros = self._others - ones
        value, size = self._kernels.pair_divergence(ones, zeros, self._rates(epsilon))
        root = math.sqrt(self._others)
        return max(value * (1.0 - 1e-12 - 4e-15 * root) - size * (1e-12 + 1e-15 * root), 0.0)

    def _upper(self, epsilon: float, ones: float) -> float:
        """Return delta of one neighbouring pair, rounded up."""
        if epsilon >= self._epsilon0:
            return 0.0
        zeros, rates = self._others - ones, self._rates(epsilon)
        return self._kernels.pair_divergence_upper(ones, zeros, rates, SMALLEST_DELTA)

    def _least_epsilon(self, delta: float, ones: float, lowest: float, highest: float) -> float:
        """Return the last epsilon found at which the pair's delta still reaches ``delta``."""
        below, _ = last_above_first_below(
            functools.partial(self._lower, ones=ones), delta, lowest, highest
        )
        return below


def _require_narrow(lower: float, upper: float) -> None:
    """Refuse an enclosure that round-off, and nothing else, has made wide."""
    if upper > lower * (1.0 + _ROUND_OFF_LIMIT) + SMALLEST_DELTA and lower > 0.0:
        raise PrecisionError(
            f"delta of binary randomized response lies in [{lower}, {upper}]: round-off "
            "dominates; method='clones' or 'local' may still have an answer"
        )


def _violation(profile: LocalProfile, *_: object) -> str | None:
    if profile.participation < 1.0:
        return "participation = 1, since other reports attain less"
    is_k_rr = profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE
    return pure_violation(profile) if is_k_rr and profile.domain_size == 2 else "k-RR with k = 2"


BINARY_EXACT = Method(
    name="binary-exact",
    source="exact divergence over all neighbouring data; derived in the shuffledp documentation",
    statement="max over j of D(S_j + Bern(1/(p+1)) || S_j + Bern(p/(p+1))), p = exp(eps0)",
    proved_here=True,
    is_exact=True,
    violated_hypothesis=_violation,
    epsilon=lambda profile, n, delta: BinaryRandomizedResponse(profile.epsilon0, n).enclose_epsilon(
        delta, profile.epsilon0
    ),
    delta=lambda profile, n, epsilon, width=0.0: BinaryRandomizedResponse(
        profile.epsilon0, n, width=width
    ).enclose(epsilon),
)
