"""How well one target is guessed by whoever knows the values of some or all other users.

n users report through one randomizer R and are shuffled: the adversary sees the histogram. Of the
others, c_v are known to have value v, and further ones are unknown, independent with one law. All
that matters of them is the law G of their histogram, and with q the target's prior

    V = sum over histograms h of max_x q_x sum_y R_xy G(h - e_y).                              (1)

For k-ary randomized response, truth p, r = (1 - p)/(k - 1), and two values of equal prior,

    V = 1/2 + (p - 1/2) max_h G(h):                                                            (2)

G, a sum of independent coins, is log-concave, so the sum of max(G(h), G(h - 1)) is one and its
mode. This is eq. 10 of the source with the maximum inside the sum, where it belongs.

`strong_vulnerability` takes the first of these ways that applies.

- *One user*, *no noise* (all reports of known users are known: they drop out), *no information*.
- *Mode*: (2), to a relative 1e-13 of V - 1/2, at any n.
- *Count*: two different reports: (1) over the numbers of one of them that are within reach, at any
  n, to 1e-12.
- *Uniform crowd*: nobody is known, all uniform: eq. 17 of the source.
- *Load*: all others are known to have one value, for k-RR and a uniform target: see
  below.
- *Histograms*: (1) over all histograms within reach, up to 2e6 of them, by Fourier transform.
- *Exchangeable*: all others have one law: `exchangeable_vulnerability`.
- *Ends*: a lower end from two guesses and one count, and the blanket bound: whatever is known, the
  noise of the others hides the target.
- *Coarse lattice*, up to five different reports: both ends from blocks of histograms, at any n, to
  about 1 % of what is leaked, proved.
- *Sampled*, for k-RR, within these ends: posteriors of sampled histograms, exact likelihoods.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1, Section V; what is beyond it is ours,
docs/results/leakage-strong.md.

*Ends between which the best guess is right, at any size.*

*Lower: two guesses, one count.* Let A be a set of reports. Seeing only how many reports are in A,
and choosing between two values only, cannot help. For k-RR and a uniform target with A = {x}, that
is 1/k + (p - r)/k times the largest probability of a number of reports x among the others: the law
of a sum of independent coins is unimodal, so it is in total variation its mode away from its shift.

*Lower: all others have one value v*, for k-RR and a uniform target. Then (see
`shuffledp.leakage.uninformed.multinomial`) V = r + (p - r) E[max_x h_x / s_x] / (k n),
h multinomial of n with the law s of the report of v. That is

    V = 1/k + (p - r) E[max(max_(x != v) h_x, h_v r / p) - n r] / (k n r),

which `shuffledp.leakage.informed.noise_load` gives to round-off, unless it takes long. Then
h_v is left out, for a lower end. At last, the other k - 1 values share N' ~ Bin(n, 1 - p) reports
evenly; with e(m) the mean excess of the fullest of k - 1 bins over m / (k - 1) that is E[e(N')],
and e does not fall with m: ranges of N' may stand at their left ends.

*Upper.* `shuffledp.leakage.informed.blanket_vulnerability`, and the unshuffled report.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure, round_up
from shuffledp.leakage.informed.blanket_vulnerability import (
    blanket_vulnerability_upper,
    channel_blanket_upper,
    excess_share,
    noise_ranges,
)
from shuffledp.leakage.informed.coarse_lattice import coarse_vulnerability
from shuffledp.leakage.informed.histogram_law import (
    Box,
    HistogramLaw,
    best_guess,
    histogram_box,
    histogram_law,
    mode_mass,
    report_law,
)
from shuffledp.leakage.informed.noise_load import heavy_load_excess, noise_load_excess
from shuffledp.leakage.informed.posterior_sampling import (
    default_num_samples,
    sample_range,
    sampled_response,
    sampled_vulnerability,
)
from shuffledp.leakage.informed.situation import Response, Situation, checked_situation
from shuffledp.leakage.monte_carlo import BUT_FOR_FAILURE, DEFAULT_FAILURE
from shuffledp.leakage.uninformed.exchangeable import exchangeable_vulnerability

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


SOURCE = (
    "Jurado, Gonze, Alvim, Palamidessi, CSF 2023, hal-04349295v1, Section V, corrected and "
    "extended in the shuffledp documentation, results/leakage-strong"
)
ASSUMPTIONS = (
    "The adversary guesses one target's value once, and knows its prior law.",
    "Only the histogram of the reports is released.",
    "Known values of the others are true, and unknown ones are independent with one known law.",
)

#: Histograms within reach up to which all are listed, and these times entries of the channel.
MOST_HISTOGRAMS = 2_000_000
_MOST_WORK = 1e8
_MOST_AXES = 20

# Entries of a channel up to which others of one law are looked at as exchangeable.
_MOST_ENTRIES = 250_000

# Ends closer than this, relative to the upper one, are close enough; and so near, relative to what
# is leaked, they need no samples.
_ENOUGH = 1e-6
_NEAR = 0.02


def strong_vulnerability(
    randomizer: Any,
    known_counts: Sequence[SupportsIndex],
    *,
    prior: ArrayLike | None = None,
    num_unknown: SupportsIndex = 0,
    unknown_prior: ArrayLike | None = None,
    entropy: Entropy | None = None,
    num_samples: SupportsIndex | None = None,
) -> Bound:
    """Return how often the best adversary guesses the target's value, knowing others' values.

    Parameters
    ----------
    randomizer : float, int, Fraction, Channel or array_like of shape (k, m)
        A number is the truth p in [1/k, 1] of k-ary randomized response; 1 for a shuffler alone.
        Row x of a channel is the law of the report of value x.
    known_counts : sequence of int, length k
        How many of the others are known to have each value, all but the target and
        ``num_unknown``. n is one more than the sum of all, at most 1e10.
    prior : array_like of float, shape (k,), optional
        Of the target's value; uniform if not given.
    num_unknown : int
        Further users, whose values are not known.
    unknown_prior : array_like of float, shape (k,), optional
        Of each of their values; that of the target if not given.
    entropy : Entropy, optional
        For sampling; the operating system's if not given.
    num_samples : int, optional
        Histograms that are sampled where nothing exact is quick: 0 or at least 2. If not given,
        what takes about a second, where that brings the ends closer.

    Returns
    -------
    Bound
        ``lower <= V <= upper``, outwards by the stated round-off; if sampled, but for a probability
        of 1e-9, which ``assumptions`` then say. ``method`` is the way above that was taken.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If a law is none, sizes do not fit, or a number is out of range.

    Notes
    -----
    Under a millisecond for k-RR with two values of equal prior, 0.1 s for two different reports at
    n = 1e9; at most two seconds for histograms: k = 3 up to n of about 25 000, k = 4 up to 200,
    k = 5 up to 35. Beyond that, at any n, 0.2 s for k = 3, one or two for k = 4 and three to five
    for k = 5. Rows of a channel are divided by their sums; of two reports, the probabilities
    of the second are taken as exact.

    Source: the module.

    Examples
    --------
    Of 200 others all have value 1, or half of them (the source's Figure 3).

    >>> round(strong_vulnerability(0.8, [0, 200]).upper, 5)
    0.52111
    >>> round(strong_vulnerability(0.8, [100, 100]).upper, 5)
    0.52116
    """
    situation = checked_situation(
        randomizer,
        known_counts,
        prior=prior,
        num_unknown=num_unknown,
        unknown_prior=unknown_prior,
    )
    count = None if num_samples is None else require_at_least("num_samples", num_samples, 0)
    if count == 1:
        raise ParameterError("num_samples = 1 says nothing of the spread: give 0 or at least 2")
    bound = _best_bound(situation, entropy, count)
    return replace(bound, upper=min(bound.upper + situation.slack, 1.0))


def _best_bound(situation: Situation, entropy: Entropy | None, num_samples: int | None) -> Bound:
    """Return what the first way gives that applies."""
    response = situation.response
    if response is not None and response.truth == 1 and situation.num_unknown > 0:
        # What known users report is known: without them the histogram says as much.
        situation = replace(situation, counts=(0,) * situation.num_values)
    exact = _trivial(situation) or _exact(situation)
    if exact is not None:
        return _bound(*exact)
    best = vulnerability_ends(situation)
    bound = _bound("ends", best)
    if situation.num_kinds == 1 and situation.num_values * situation.num_outcomes <= _MOST_ENTRIES:
        bound = _narrower(bound, _exchangeable(situation, entropy, num_samples))
    if bound.upper - (bound.lower or 0.0) > _ENOUGH * (bound.upper - situation.guess_before):
        blocks = coarse_vulnerability(situation)
        if blocks is not None:
            bound = _narrower(bound, _bound("coarse lattice", _clipped(situation, blocks)))
    response = sampled_response(situation)
    if response is None or num_samples == 0:
        return bound
    count = num_samples or _worthwhile_samples(situation, response, bound)
    if count == 0:
        return bound
    source = Entropy.from_operating_system() if entropy is None else entropy
    found = sampled_vulnerability(situation, response, num_samples=count, entropy=source)
    said = (
        f"Monte Carlo over {count} histograms: both ends hold {BUT_FOR_FAILURE}.",
        "Drawn from a seed." if source.is_simulation else "Drawn from the operating system's key.",
    )
    return _narrower(bound, _bound("sampled", found, said))


def _bound(method: str, found: Enclosure, said: tuple[str, ...] = ()) -> Bound:
    """Return the claim."""
    return Bound(
        lower=found.lower,
        upper=found.upper,
        method=method,
        source=SOURCE,
        assumptions=(*ASSUMPTIONS, *said),
    )


def _narrower(first: Bound, second: Bound) -> Bound:
    """Return what both say together; the first alone where limits have failed, as they may."""
    lower = max(first.lower or 0.0, second.lower or 0.0)
    upper = min(first.upper, second.upper)
    if lower > upper or (lower, upper) == (first.lower, first.upper):
        return first
    return replace(second, lower=lower, upper=upper)


def _trivial(situation: Situation) -> tuple[str, Enclosure] | None:
    """Return what needs no law of the others."""
    response = situation.response
    if situation.num_others == 0:
        found = rounded_out(situation.unshuffled, operations=8 + situation.num_outcomes)
        return "one user", found
    silent = situation.num_outcomes == 1 if response is None else response.kept == 0
    if silent:
        return "no information", rounded_out(situation.guess_before)
    if response is not None and response.truth == 1 and situation.num_unknown == 0:
        return "no noise", Enclosure(1.0, 1.0)
    return None


def _exact(situation: Situation) -> tuple[str, Enclosure] | None:
    """Return what is known to round-off, and by which way, if one is quick enough."""
    response = situation.response
    if response is not None and situation.uniform_target:
        if response.num_values == 2:
            mode = mode_mass(situation.coins(np.array([1])))
            return "mode", _leaked(situation, response, 0.5 * mode.lower, 0.5 * mode.upper)
        if situation.uniform_unknown and situation.num_unknown == situation.num_others:
            shares = excess_share(situation.num_others + 1, situation.num_values)
            return "uniform crowd", _leaked(situation, response, *shares)
        if is_concentrated(situation):
            found = concentrated_vulnerability(situation.num_others + 1, response)
            if found is not None:
                return "load", _clipped(situation, found)
    if situation.num_outcomes == 2:
        law = two_outcome_law(situation, np.array([1]))
        return "count", _clipped(situation, best_guess(law, situation.prior, situation.rows()))
    return _by_histograms(situation)


def _leaked(situation: Situation, response: Response, low: float, high: float) -> Enclosure:
    """Return 1/k + (p - r) times an enclosed number, for a uniform target."""
    even, kept = 1.0 / situation.num_values, float(response.kept)
    lower, upper = rounded_out(even + kept * low), rounded_out(even + kept * high)
    return Enclosure(lower.lower, upper.upper)


def _by_histograms(situation: Situation) -> tuple[str, Enclosure] | None:
    """Return V over all histograms within reach, if they are few enough."""
    if situation.num_outcomes > _MOST_AXES:
        return None
    kinds = situation.kinds()
    box = histogram_box(kinds)
    entries = situation.num_values * situation.num_outcomes
    if box.num_cells > min(MOST_HISTOGRAMS, _MOST_WORK / entries):
        return None
    law = histogram_law(kinds, box)
    return "histograms", _clipped(situation, best_guess(law, situation.prior, situation.rows()))


def _clipped(situation: Situation, found: Enclosure) -> Enclosure:
    """Return an enclosure within what always holds."""
    least = rounded_out(situation.guess_before).lower
    most = rounded_out(situation.unshuffled, operations=8 + situation.num_outcomes).upper
    upper = min(found.upper, most)
    return Enclosure(min(max(found.lower, least), upper), upper)


def _exchangeable(situation: Situation, entropy: Entropy | None, num_samples: int | None) -> Bound:
    """Return V where all others have one law."""
    (kind,) = situation.kinds()
    return exchangeable_vulnerability(
        situation.num_others + 1,
        situation.rows(),
        prior=situation.prior,
        crowd=kind.law,
        entropy=entropy,
        num_samples=num_samples if sampled_response(situation) is None else 0,
    )


def _worthwhile_samples(situation: Situation, response: Response, bound: Bound) -> int:
    """Return how many histograms to sample in about a second, 0 where that says nothing new."""
    gap = bound.upper - (bound.lower or 0.0)
    if gap <= max(_ENOUGH * bound.upper, _NEAR * (bound.upper - situation.guess_before)):
        return 0
    count = default_num_samples(situation, response)
    low, high = sample_range(situation, response)
    # The limits are no closer than this: see `SampleMoments.limits`.
    floor = 14.0 * (high - low) * math.log(4.0 / DEFAULT_FAILURE) / (3.0 * max(count - 1, 1))
    return count if count >= 2 and floor < gap else 0
