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
  `shuffledp.leakage.informed.enclosures`.
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
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage.informed.best_guess import best_guess
from shuffledp.leakage.informed.blanket_vulnerability import excess_share
from shuffledp.leakage.informed.coarse_lattice import coarse_vulnerability
from shuffledp.leakage.informed.enclosures import (
    concentrated_vulnerability,
    is_concentrated,
    rounded_out,
    two_outcome_law,
    vulnerability_ends,
)
from shuffledp.leakage.informed.histogram_law import histogram_box, histogram_law
from shuffledp.leakage.informed.posterior_sampling import (
    default_num_samples,
    sample_range,
    sampled_response,
    sampled_vulnerability,
)
from shuffledp.leakage.informed.report_sums import mode_mass
from shuffledp.leakage.informed.response import Response
from shuffledp.leakage.informed.situation import Situation, checked_situation
from shuffledp.leakage.monte_carlo import BUT_FOR_FAILURE, DEFAULT_FAILURE
from shuffledp.leakage.uninformed.exchangeable import exchangeable_vulnerability

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
