"""Ends between which the best guess is right, at any size.

*Lower: two guesses, one count.* Let A be a set of reports. Seeing only how many reports are in A,
and choosing between two values only, cannot help. For k-RR and a uniform target with A = {x}, that
is 1/k + (p - r)/k times the largest probability of a number of reports x among the others: the law
of a sum of independent coins is unimodal, so it is in total variation its mode away from its shift.

*Lower: all others have one value v*, for k-RR and a uniform target. Then (see
`shuffledp.leakage.uninformed.multinomial_form`) V = r + (p - r) E[max_x h_x / s_x] / (k n),
h multinomial of n with the law s of the report of v. That is

    V = 1/k + (p - r) E[max(max_(x != v) h_x, h_v r / p) - n r] / (k n r),

which `shuffledp.leakage.informed.noise_load` gives to round-off, unless it takes long. Then
h_v is left out, for a lower end. At last, the other k - 1 values share N' ~ Bin(n, 1 - p) reports
evenly; with e(m) the mean excess of the fullest of k - 1 bins over m / (k - 1) that is E[e(N')],
and e does not fall with m: ranges of N' may stand at their left ends.

*Upper.* `shuffledp.leakage.informed.blanket_vulnerability`, and the unshuffled report.
"""

import math
from itertools import combinations

import numpy as np

from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.rounding import round_up
from shuffledp.leakage.informed.best_guess import best_guess
from shuffledp.leakage.informed.blanket_vulnerability import (
    blanket_vulnerability_upper,
    channel_blanket_upper,
    noise_ranges,
)
from shuffledp.leakage.informed.histogram_law import Box, HistogramLaw
from shuffledp.leakage.informed.noise_load import heavy_load_excess, noise_load_excess
from shuffledp.leakage.informed.report_sums import mode_mass, report_law
from shuffledp.leakage.informed.response import Response
from shuffledp.leakage.informed.situation import Situation

_ULP = math.ulp(1.0)

# Pairs of values that are tried, those of the largest prior first.
_MOST_TRIED = 5

# Ranges for the excess: coarse, for a lower end only.
_COARSENESS = 2.0


def two_outcome_law(situation: Situation, outcomes: np.ndarray) -> HistogramLaw:
    """Return the law of how many of the others report one of ``outcomes``."""
    law = report_law(situation.coins(outcomes))
    return HistogramLaw(Box(0, (law.first,), (law.masses.size,)), law.masses, law.error)


def vulnerability_ends(situation: Situation) -> Enclosure:
    """Enclose how often the best guess is right, with no sampling.

    Notes
    -----
    Some 50 ms at n = 1e9; the blanket of a general channel may take seconds.
    """
    response = situation.response
    if response is not None and situation.uniform_target:
        lower = _count_lower(situation, response)
        upper = blanket_vulnerability_upper(
            situation.num_others + 1, response.num_values, response.truth
        )
    else:
        lower = _pair_lower(situation)
        users = situation.num_others + 1
        if response is None:
            upper = channel_blanket_upper(users, situation.rows(), prior=situation.prior)
        else:
            upper = blanket_vulnerability_upper(
                users, response.num_values, response.truth, situation.prior
            )
    return Enclosure(min(max(lower, situation.guess_before), upper), upper)


def is_concentrated(situation: Situation) -> bool:
    """Whether all others are known to have one of at least three values."""
    return situation.num_values > 2 and max(situation.counts) == situation.num_others


def _count_lower(situation: Situation, response: Response) -> float:
    """Return the lower end from the number of reports of one value, for a uniform target."""
    # The value whose count varies least tells most. Of equal counts one is enough.
    truth, answer = response.truth, response.answer
    choose = min if truth * (1 - truth) >= answer * (1 - answer) else max
    value = situation.counts.index(choose(situation.counts))
    mode = mode_mass(situation.coins(np.array([value])))
    lower = (1.0 + float(response.kept) * mode.lower) / response.num_values
    if is_concentrated(situation):
        lower = max(lower, concentrated_lower(situation.num_others + 1, response))
    return lower * (1.0 - 8.0 * _ULP)


def concentrated_vulnerability(num_users: int, response: Response) -> Enclosure | None:
    """Enclose V where all others are known to have one value, k >= 3, or return None if slow.

    Examples
    --------
    >>> from fractions import Fraction
    >>> found = concentrated_vulnerability(1, Response(3, Fraction(1, 2)))
    >>> found.lower <= 0.5 <= found.upper <= 0.5 + 1e-9
    True
    """
    if not 0 < response.answer < response.truth:
        return None
    excess = heavy_load_excess(num_users, response.num_values - 1, response.answer)
    if excess is None:
        return None
    lower = rounded_out(_concentrated(num_users, response, excess.lower), operations=16)
    upper = rounded_out(_concentrated(num_users, response, excess.upper), operations=16)
    return Enclosure(lower.lower, upper.upper)


def concentrated_lower(num_users: int, response: Response) -> float:
    """Return a lower end where all others are known to have one value, k >= 3; quick at any n.

    Examples
    --------
    >>> from fractions import Fraction
    >>> concentrated_lower(1, Response(3, Fraction(1, 2))) <= 0.5
    True
    """
    if not 0 < response.answer < response.truth:
        return 1.0 / response.num_values * (1.0 - _ULP)
    found = noise_load_excess(num_users, response.num_values - 1, response.answer)
    excess = _excess_by_ranges(num_users, response) if found is None else found.lower
    return _concentrated(num_users, response, excess) * (1.0 - 16.0 * _ULP)


def _concentrated(num_users: int, response: Response, excess: float) -> float:
    """Return V for a mean excess over n r."""
    leaked = float(response.kept) * excess / (num_users * float(response.answer))
    return (1.0 + leaked) / response.num_values


def _excess_by_ranges(num_users: int, response: Response) -> float:
    """Return a lower end of E[e(N')]."""
    from shuffledp.leakage.loads.maximum_load import maximum_load_excess

    bins = response.num_values - 1
    ranges = noise_ranges(num_users, 1 - response.truth, coarseness=_COARSENESS)
    excess, largest = 0.0, 0.0
    for start, mass in zip(ranges.starts, ranges.masses, strict=True):
        if start > 0:
            largest = maximum_load_excess(start, bins).lower if bins > 1 else 0.0
            excess += mass * largest
    return max(excess * (1.0 - len(ranges.starts) * _ULP) - ranges.error * largest, 0.0)


def _pair_lower(situation: Situation) -> float:
    """Return the best lower end from two guesses and one count."""
    likely = np.argsort(-situation.prior, kind="stable")[:_MOST_TRIED].tolist()
    rows = None if situation.response is not None else situation.rows()
    best = 0.0
    for x, other in combinations(likely, 2):
        if rows is None:
            sets = [np.array([x]), np.array([other])]
        else:
            better = situation.prior[x] * rows[x] > situation.prior[other] * rows[other]
            sets = [np.flatnonzero(better)]
        for outcomes in sets:
            best = max(best, _pair_value(situation, x, other, outcomes))
    return best


def _pair_value(situation: Situation, x: int, other: int, outcomes: np.ndarray) -> float:
    """Return how often the better of two guesses is right, at least."""
    if outcomes.size in (0, situation.num_outcomes):
        return 0.0
    chances = situation.report_chances(outcomes)
    pair = np.array([[float(1 - chances[v]), float(chances[v])] for v in (x, other)])
    law = two_outcome_law(situation, outcomes)
    return best_guess(law, situation.prior[[x, other]], pair).lower


def rounded_out(value: float, *, operations: int = 8) -> Enclosure:
    """Return the ends around a number that some roundings, and no cancellation, led to."""
    return Enclosure(
        max(value * (1.0 - operations * _ULP), 0.0),
        min(round_up(value, operations=operations), 1.0),
    )
