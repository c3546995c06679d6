"""What any (epsilon, delta) guarantee leaves to guess, whatever the mechanism.

With Q_j the sum of the j largest prior probabilities,

    V <= delta + (1 - delta) max_j Q_j / (1 + (j - 1) e^-epsilon),

which some mechanism attains. Proof: docs/results/leakage-general.md. For delta = 0 and a uniform
prior it is the bound of Alvim, Andres, Chatzikokolakis, Degano, Palamidessi, FAST 2011,
arXiv:1103.5188, for one individual.
"""

import math
from dataclasses import replace
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_extended
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.leakage.contour import Floats
from shuffledp.leakage.matrices import checked_prior

#: Where results that are not from the literature are derived.
SOURCE = "derived in the shuffledp documentation, results/leakage-general"

_GUARANTEED = "The guarantee of this run holds, with all its assumptions."

_ULP = math.ulp(1.0)


def vulnerability_from_guarantee(
    prior: ArrayLike, epsilon: SupportsFloat, delta: SupportsFloat = 0.0
) -> float:
    """Bound how often one person's value is guessed right, from a central guarantee alone.

    Parameters
    ----------
    prior : array_like of float, shape (k,)
        What the adversary believes of the person's value beforehand; sums to 1.
    epsilon : float
        Of the guarantee, in [0, inf]; neighbouring data differ in that person's value.
    delta : float
        Of the guarantee, in [0, 1].

    Returns
    -------
    float
        At least the success probability of every adversary; at most 1. Errs upwards, by some
        k 1e-16 above the least number that the guarantee proves.

    Raises
    ------
    ParameterError
        If the prior is no law, or epsilon or delta is out of range.

    Notes
    -----
    It holds for any mechanism with the guarantee, whatever the adversary knows about the other
    people, their values included, as long as that does not depend on the person's own value. It
    does not hold where their values follow his: then they give him away without any release of
    his. Cost: O(k log k).

    Source: ours; docs/results/leakage-general.md, also that no smaller number holds for all of
    them.

    Examples
    --------
    Randomized response among four values attains it, as e^ln(3) = 3.

    >>> round(vulnerability_from_guarantee([0.25] * 4, math.log(3.0)), 12)
    0.5
    >>> round(vulnerability_from_guarantee([0.9, 0.1], 0.5), 12)  # the prior guess is still best
    0.9
    >>> round(vulnerability_from_guarantee([0.5, 0.5], 0.0, 0.02), 12)  # (1 + delta) / 2
    0.51
    """
    heads = _largest_sums(prior)
    loss = require_extended("epsilon", epsilon, "give a number >= 0")
    missed = require_extended("delta", delta, "give a probability")
    if missed > 1.0:
        raise ParameterError(f"delta = {missed} is above 1: it is a probability; try 1e-8")
    # A smaller e^-epsilon gives a larger bound.
    kept = math.exp(-loss) * (1.0 - 2.0 * _ULP)
    pure = float(np.max(heads / (1.0 + np.arange(heads.size) * kept)))
    return min(round_up(missed + (1.0 - missed) * pure, operations=heads.size + 16), 1.0)


def telling_losses(prior: ArrayLike) -> tuple[float, ...]:
    """Return the epsilons at which the number of values worth guessing changes, ascending.

    The only place to look for k = 2; for more values a good start of a search.
    """
    heads = _largest_sums(prior)
    following = np.diff(heads)  # q_2, q_3, ... in descending order
    rest = heads[:-1] - np.arange(following.size) * following
    ratios = rest[following > 0.0] / following[following > 0.0]
    return tuple(sorted({max(math.log(ratio), 0.0) for ratio in ratios.tolist()}))


def _largest_sums(prior: ArrayLike) -> Floats:
    """Return the sums of the 1, 2, ..., k largest probabilities of a law."""
    size = np.size(np.asarray(prior, dtype=np.object_))
    law = np.sort(checked_prior(prior, max(size, 1)))[::-1]
    heads: Floats = np.cumsum(law / law.sum())
    return heads


def at_most(bound: Bound, *others: tuple[str, float]) -> Bound:
    """Return a bound with the least of several upper ends, named after where that comes from."""
    method, upper = min(others, key=lambda pair: pair[1], default=("", bound.upper))
    if upper >= bound.upper:
        return bound
    return replace(
        bound,
        # Ends that meet may cross by their rounding.
        lower=None if bound.lower is None else min(bound.lower, upper),
        upper=upper,
        method=method,
        source=SOURCE,
        assumptions=(*bound.assumptions, _GUARANTEED),
    )
