"""The mean of the largest of several linear forms of a multinomial histogram, by Monte Carlo.

Let D be how much the best guess given the histogram gains on a fixed mixture of guesses,

    D = max_x L_x - L_w,   L_x = (1/n) sum_y A_xy h_y,   L_w = sum_x w_x L_x,   D >= 0.

E[L_w] is known, so only E[D] is sampled. w is the best constant guess, or the uniform mixture of
all that are equally good: with a uniform prior L_w then hardly varies, else D is often 0.

*A short range.* Limits from samples widen with the range of D, which is far longer than D is in
practice. So D is cut at c, min(D, c) is sampled, and what is cut off is bounded exactly:

    E[(D - c)_+] <= sum_x E[(L_x - L_w - c)_+],

each by Chernoff's bound.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage.monte_carlo import DEFAULT_FAILURE, SampleMoments
from shuffledp.leakage.uninformed.multinomial_form import MultinomialForm
from shuffledp.leakage.uninformed.multinomial_tails import excess_means

_ULP = math.ulp(1.0)

# Counts drawn at a time.
_BLOCK_COUNTS = 1 << 18

# Work of the default number of samples: counts drawn, and products with weights.
_COUNTS, _PRODUCTS = 1 << 23, 1 << 31
_FEWEST_SAMPLES, _MOST_SAMPLES = 1 << 12, 1 << 20

# The cut is so many standard deviations out, at first, and then twice as many.
_FIRST_CUT = 8.0

# What is cut off may be this share of a standard deviation.
_CUT_OFF = 1e-7

# Guesses are equally good if they agree to this.
_EQUAL = 1e-12


class _Cut(NamedTuple):
    """Where D is cut, and the most that is lost."""

    at: float
    lost: float


def default_num_samples(form: MultinomialForm) -> int:
    """Return how many histograms a second or so is enough for."""
    rows, columns = form.gains.shape
    affordable = min(_COUNTS // columns, _PRODUCTS // (rows * columns))
    return int(max(min(affordable, _MOST_SAMPLES), _FEWEST_SAMPLES))


def sampled_vulnerability(
    form: MultinomialForm,
    *,
    entropy: Entropy,
    num_samples: int,
    failure: float = DEFAULT_FAILURE,
) -> Enclosure:
    """Return limits of the vulnerability from sampled histograms.

    Parameters
    ----------
    form : MultinomialForm
        The problem.
    entropy : Entropy
        Where histograms come from.
    num_samples : int
        N >= 2, chosen beforehand.
    failure : float
        Probability that a limit is wrong.

    Returns
    -------
    Enclosure
        Errs outwards, but for ``failure``; does not include ``form.slack``.

    Notes
    -----
    O(N m) draws of binomials, 50 to 100 ns each, and O(N k m) products.
    """
    mixture = form.means >= form.means[form.best] * (1.0 - _EQUAL)
    mixture = mixture / np.count_nonzero(mixture)
    # Weights of one report, relative to the mixture.
    parts = form.gains - mixture @ form.gains
    cut = _find_cut(form, parts)
    generator = entropy.generator()
    law = form.law / form.law.sum()
    block = max(_BLOCK_COUNTS // len(law), 1)
    moments = SampleMoments()
    while moments.count < num_samples:
        size = min(block, num_samples - moments.count)
        counts = generator.multinomial(form.num_users, law, size=size)
        largest = (counts @ parts.T).max(axis=1) / form.num_users
        moments = moments.joined(SampleMoments.of(np.clip(largest, 0.0, cut.at)))
    found = moments.limits(0.0, cut.at, failure)
    fixed = form.certain + math.fsum(mixture * form.means)
    # Products and sums of weights whose mean is at most that of both terms of D, 2.
    error = _ULP * (2.0 * len(law) + 32.0)
    return Enclosure(fixed + found.lower - error, fixed + found.upper + cut.lost + error)


def _find_cut(form: MultinomialForm, parts: NDArray[np.float64]) -> _Cut:
    """Return where to cut D so that hardly anything is lost, or where it ends."""
    end = max(float(parts.max()), 0.0)
    means = parts @ form.law
    variances = np.maximum(np.square(parts - means[:, None]) @ form.law, 1e-300)
    spread = math.sqrt(float(variances.max()) / form.num_users)
    reach = _FIRST_CUT
    while (at := float(means.max()) + reach * spread) < end:
        lost = float(excess_means(form.num_users, form.law, parts, at).sum())
        if lost <= _CUT_OFF * spread:
            return _Cut(at, lost)
        reach *= 2.0
    return _Cut(end, 0.0)
