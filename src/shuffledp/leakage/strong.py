"""How well one target is guessed by whoever knows the values of some or all other users.

n users report through one randomizer R and are shuffled. All that matters of the others is the law
G of their histogram, and with q the target's prior

    V = sum over histograms h of max_x q_x sum_y R_xy G(h - e_y).                              (1)

`strong_vulnerability` takes the first of these ways that applies.

- *One user*, *no noise* (reports of known users drop out), *no information*.
- *Mode*: k-RR, two values of equal prior: V = 1/2 + (p - 1/2) max_h G(h), at any n. This is eq. 10
  of the source with the maximum inside the sum, where it belongs.
- *Count*: two different reports: (1) over the numbers of one of them, at any n.
- *Uniform crowd*: nobody is known, all uniform: eq. 17 of the source.
- *Load*: all others are known to have one value, for k-RR and a uniform target.
- *Histograms*: (1) over all histograms within reach, up to 2e6 of them.
- *Exchangeable*: all others have one law: `exchangeable_vulnerability`.
- *Ends*: a lower end from two guesses and one count, and the blanket bound.
- *Coarse lattice*, up to five different reports: to about 1 % of what is leaked, at any n.
- *Sampled*, for k-RR, within these ends: posteriors of sampled histograms, exact likelihoods.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1, Section V; what is beyond
it is ours, docs/results/leakage-strong.md.

*Samples.* V is the mean of the posterior probability of the best guess, which is at least 1/k and
at most the largest posterior of who also sees the target's own report; for a uniform target it is
below C but for a mean of 1e-7 beyond, C from the blanket (docs/results/leakage-strong.md). Users
whose values are unknown and uniform are more of the noise.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure, round_up
from shuffledp.leakage.blanket import (
    blanket_vulnerability_upper,
    channel_blanket_upper,
    excess_share,
    heavy_load_excess,
    noise_load_excess,
    noise_ranges,
)
from shuffledp.leakage.coarse_lattice import coarse_vulnerability
from shuffledp.leakage.fullest_bin import maximum_load_excess
from shuffledp.leakage.multinomial import BUT_FOR_FAILURE, DEFAULT_FAILURE, SampleMoments
from shuffledp.leakage.others import (
    Box,
    HistogramLaw,
    Response,
    Situation,
    best_guess,
    checked_situation,
    histogram_box,
    histogram_law,
    mode_mass,
    report_law,
)
from shuffledp.leakage.uninformed import exchangeable_vulnerability

# Two numbers of users make one key of 63 bits.
_MOST_OTHERS = 2**31

# Posteriors are right to this.
_POSTERIOR_ERROR = 1e-7

#: Probability, at most, of a posterior beyond `sample_range`, for a uniform target.
RARE = 1e-7

# Evaluations of a term for each histogram, and what takes about a second.
_TERMS_PER_COUNT = 45.0
_QUICK = 2e8
_MOST_SAMPLES = 20_000
_BLOCK_CELLS = 1_000_000


def sampled_response(situation: Situation) -> Response | None:
    """Return the randomizer if the likelihoods here are those of the situation, else None."""
    response = situation.response
    if response is None or not 0 < response.kept < 1 or situation.num_others > _MOST_OTHERS:
        return None
    return response if situation.num_unknown == 0 or situation.uniform_unknown else None


def default_num_samples(situation: Situation, response: Response) -> int:
    """Return how many samples take about a second, at most 20 000."""
    kept = float(response.kept)
    noise = float(response.noise) * situation.num_others / situation.domain_size + 1.0
    counts, copies = np.unique(np.array(situation.counts, dtype=np.float64), return_counts=True)
    spread = counts * kept * (1.0 - kept)
    width = 12.0 * np.sqrt(spread * noise / (spread + noise)) + 10.0
    # Values of equal counts and equal reports are worked on once.
    different = np.minimum(copies, 12.0 * np.sqrt(spread + noise) + 5.0)
    terms = _TERMS_PER_COUNT * float((width * different).sum()) + 100.0 * situation.domain_size
    return int(min(_QUICK / terms, _MOST_SAMPLES))


def sample_range(situation: Situation, response: Response) -> tuple[float, float]:
    """Return what the posterior of the best guess is at least and at most, but for `RARE`."""
    truth, answer, prior = float(response.truth), float(response.answer), situation.prior
    reported = response.report_law(prior)
    # Given report y: the value y itself, or the likeliest other one.
    best = float((truth * prior / reported).max())
    if situation.uniform_target:
        best = min(best, _likely_most(situation, response))
    else:
        best = max(best, float(prior.max() * answer / reported.min()))
    return 1.0 / situation.domain_size, min(best * (1.0 + 1e-12), 1.0)


def _likely_most(situation: Situation, response: Response) -> float:
    """Return C of the module."""
    doubt = -math.log(RARE / 2.0)
    chance, even = float(response.noise), 1.0 / situation.domain_size
    mean = chance * sum(situation.counts)
    # Bernstein from below: Pr[B <= mean - x] <= e^(-x^2 / 2 mean).
    few = max(mean - math.sqrt(2.0 * mean * doubt), 0.0)
    size = math.floor(few) + situation.num_unknown + 1
    # From above, for each bin: exponents grow with the number of balls, at this share of them.
    third = (doubt + math.log(situation.domain_size)) / 3.0
    above = third + math.sqrt(third * third + 6.0 * third * size * even * (1.0 - even))
    return float(response.answer) + float(response.kept) * (even + above / size)


def sampled_vulnerability(
    situation: Situation,
    response: Response,
    *,
    num_samples: int,
    entropy: Entropy,
    failure: float = DEFAULT_FAILURE,
) -> Enclosure:
    """Return limits of V, of which either is wrong with probability at most ``failure``.

    Outwards by 1e-7 for the accuracy of posteriors, and above by 1e-7 for those beyond the range.
    """
    from shuffledp.leakage.informed_kernels import posterior_maxima

    generator = entropy.generator()
    counts = np.array(situation.counts, dtype=np.int64)
    prior = np.array(situation.prior)
    low, high = sample_range(situation, response)
    moments = SampleMoments()
    left, block = num_samples, max(_BLOCK_CELLS // counts.size, 1)
    while left > 0:
        size = min(block, left)
        histograms = draw_histograms(situation, response, size, generator)
        found = np.empty(size)
        posterior_maxima(
            counts, histograms, prior, float(response.kept), float(response.answer), found
        )
        moments = moments.joined(SampleMoments.of(np.clip(found, low, high)))
        left -= size
    limits = moments.limits(low, high, failure)
    return Enclosure(
        max(limits.lower - _POSTERIOR_ERROR, low), min(limits.upper + _POSTERIOR_ERROR + RARE, 1.0)
    )


def draw_histograms(
    situation: Situation, response: Response, size: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Return histograms of all reports, shape (size, k), with a target drawn from its prior."""
    domain_size = situation.domain_size
    counts = np.array(situation.counts, dtype=np.int64)
    prior = situation.prior / situation.prior.sum()
    targets = generator.multinomial(1, prior, size=size)
    histograms = generator.binomial(counts, float(response.kept), size=(size, domain_size))
    true = generator.random(size) < float(response.kept)
    histograms += targets * true[:, None]
    noise = situation.num_others + 1 - histograms.sum(axis=1)
    histograms += generator.multinomial(noise, np.full(domain_size, 1.0 / domain_size))
    return histograms


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
    """Enclose how often the best guess is right, with no sampling."""
    response = situation.response
    if response is not None and situation.uniform_target:
        lower = _count_lower(situation, response)
        upper = blanket_vulnerability_upper(
            situation.num_others + 1, response.domain_size, response.truth
        )
    else:
        lower = _pair_lower(situation)
        users = situation.num_others + 1
        if response is None:
            upper = channel_blanket_upper(users, situation.rows(), prior=situation.prior)
        else:
            upper = blanket_vulnerability_upper(
                users, response.domain_size, response.truth, situation.prior
            )
    return Enclosure(min(max(lower, situation.guess_before), upper), upper)


def is_concentrated(situation: Situation) -> bool:
    """Whether all others are known to have one of at least three values."""
    return situation.domain_size > 2 and max(situation.counts) == situation.num_others


def _count_lower(situation: Situation, response: Response) -> float:
    """Return the lower end from the number of reports of one value, for a uniform target."""
    # The value whose count varies least tells most. Of equal counts one is enough.
    truth, answer = response.truth, response.answer
    choose = min if truth * (1 - truth) >= answer * (1 - answer) else max
    value = situation.counts.index(choose(situation.counts))
    mode = mode_mass(situation.coins(np.array([value])))
    lower = (1.0 + float(response.kept) * mode.lower) / response.domain_size
    if is_concentrated(situation):
        lower = max(lower, concentrated_lower(situation.num_others + 1, response))
    return lower * (1.0 - 8.0 * _ULP)


def concentrated_vulnerability(num_users: int, response: Response) -> Enclosure | None:
    """Enclose V where all others are known to have one value, k >= 3, or return None if slow."""
    if not 0 < response.answer < response.truth:
        return None
    excess = heavy_load_excess(num_users, response.domain_size - 1, response.answer)
    if excess is None:
        return None
    lower = rounded_out(_concentrated(num_users, response, excess.lower), operations=16)
    upper = rounded_out(_concentrated(num_users, response, excess.upper), operations=16)
    return Enclosure(lower.lower, upper.upper)


def concentrated_lower(num_users: int, response: Response) -> float:
    """Return a lower end where all others are known to have one value, k >= 3; quick at any n."""
    if not 0 < response.answer < response.truth:
        return 1.0 / response.domain_size * (1.0 - _ULP)
    found = noise_load_excess(num_users, response.domain_size - 1, response.answer)
    excess = _excess_by_ranges(num_users, response) if found is None else found.lower
    return _concentrated(num_users, response, excess) * (1.0 - 16.0 * _ULP)


def _concentrated(num_users: int, response: Response, excess: float) -> float:
    """Return V for a mean excess over n r."""
    leaked = float(response.kept) * excess / (num_users * float(response.answer))
    return (1.0 + leaked) / response.domain_size


def _excess_by_ranges(num_users: int, response: Response) -> float:
    """Return a lower end of E[e(N')]."""
    bins = response.domain_size - 1
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

    Source: docs/results/leakage-strong.md.

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
        situation = replace(situation, counts=(0,) * situation.domain_size)
    exact = _trivial(situation) or _exact(situation)
    if exact is not None:
        return _bound(*exact)
    best = vulnerability_ends(situation)
    bound = _bound("ends", best)
    if situation.num_kinds == 1 and situation.domain_size * situation.num_outcomes <= _MOST_ENTRIES:
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
        if response.domain_size == 2:
            mode = mode_mass(situation.coins(np.array([1])))
            return "mode", _leaked(situation, response, 0.5 * mode.lower, 0.5 * mode.upper)
        if situation.uniform_unknown and situation.num_unknown == situation.num_others:
            shares = excess_share(situation.num_others + 1, situation.domain_size)
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
    even, kept = 1.0 / situation.domain_size, float(response.kept)
    lower, upper = rounded_out(even + kept * low), rounded_out(even + kept * high)
    return Enclosure(lower.lower, upper.upper)


def _by_histograms(situation: Situation) -> tuple[str, Enclosure] | None:
    """Return V over all histograms within reach, if they are few enough."""
    if situation.num_outcomes > _MOST_AXES:
        return None
    kinds = situation.kinds()
    box = histogram_box(kinds)
    entries = situation.domain_size * situation.num_outcomes
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
