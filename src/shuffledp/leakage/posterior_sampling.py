"""How often the best guess is right under k-RR, by sampling histograms with exact likelihoods.

V is the mean of the posterior probability of the best guess, which is at least 1/k and at most the
largest posterior of who also sees the target's own report. For a uniform target it is below C but
for a mean of 1e-7 beyond, C from the blanket: docs/results/leakage-strong.md. Users whose values
are unknown and uniform are more of the noise.
"""

import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage.multinomial import DEFAULT_FAILURE, SampleMoments
from shuffledp.leakage.others import Response, Situation

# Two numbers of users make one key of 63 bits.
_MOST_OTHERS = 2**31

# Posteriors are right to this.
_ROUND_OFF = 1e-7

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
    noise = float(response.noise) * situation.num_others / situation.num_values + 1.0
    counts, copies = np.unique(np.array(situation.counts, dtype=np.float64), return_counts=True)
    spread = counts * kept * (1.0 - kept)
    width = 12.0 * np.sqrt(spread * noise / (spread + noise)) + 10.0
    # Values of equal counts and equal reports are worked on once.
    different = np.minimum(copies, 12.0 * np.sqrt(spread + noise) + 5.0)
    terms = _TERMS_PER_COUNT * float((width * different).sum()) + 100.0 * situation.num_values
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
    return 1.0 / situation.num_values, min(best * (1.0 + 1e-12), 1.0)


def _likely_most(situation: Situation, response: Response) -> float:
    """Return C of the module."""
    doubt = -math.log(RARE / 2.0)
    chance, even = float(response.noise), 1.0 / situation.num_values
    mean = chance * sum(situation.counts)
    # Bernstein from below: Pr[B <= mean - x] <= e^(-x^2 / 2 mean).
    few = max(mean - math.sqrt(2.0 * mean * doubt), 0.0)
    size = math.floor(few) + situation.num_unknown + 1
    # From above, for each bin: exponents grow with the number of balls, at this share of them.
    third = (doubt + math.log(situation.num_values)) / 3.0
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
        max(limits.lower - _ROUND_OFF, low), min(limits.upper + _ROUND_OFF + RARE, 1.0)
    )


def draw_histograms(
    situation: Situation, response: Response, size: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Return histograms of all reports, shape (size, k), with a target drawn from its prior."""
    num_values = situation.num_values
    counts = np.array(situation.counts, dtype=np.int64)
    prior = situation.prior / situation.prior.sum()
    targets = generator.multinomial(1, prior, size=size)
    histograms = generator.binomial(counts, float(response.kept), size=(size, num_values))
    true = generator.random(size) < float(response.kept)
    histograms += targets * true[:, None]
    noise = situation.num_others + 1 - histograms.sum(axis=1)
    histograms += generator.multinomial(noise, np.full(num_values, 1.0 / num_values))
    return histograms
