"""Upper bounds on the success probability, whatever the adversary knows of the others' values.

For a uniform target and k-RR, whatever the adversary knows of the n - 1 others,

    V <= r + (p - r) E[V_S(B + 1)],   B ~ Bin(n - 1, k r),

V_S(m) being the share of m balls in the fullest of k bins. For any prior q it is at most k max(q)
times that; for any randomizer the blanket min_x R_xy takes the place of the uniform noise. V(m)
does not rise with m, so the law of B may be cut into ranges that stand at their left ends. Proofs:
docs/results/leakage.md.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.numerics.enclosure import Enclosure, float_above, round_up
from shuffledp.leakage.channel import Truth, checked_prior, float_channel
from shuffledp.leakage.counts.fullest_bin import alike_excess, excess_share
from shuffledp.leakage.counts.others import MOST_USERS, Coins, Response, report_law, unshuffled

# Most outcomes with a range each; above, ranges begin where the law passes these.
_MOST_SINGLE = 64
_LEVELS = (*(1e-12, 1e-9, 1e-6, 1e-4, 1e-3, 0.01), *(i / 32 for i in range(1, 32)), 0.99, 0.999)

# Bounds that are cached: one question needs the same one several times.
_REMEMBERED = 64


def _mean_of_crowds(coins: Coins, hidden: Callable[[int], float], alone: float) -> float:
    """Bound E[V(B + 1)] for the binomial B of some coins, where V(1) = ``alone``.

    V must not rise: the law of B is cut into ranges that stand at their left ends.
    """
    from shuffledp.amplification.random_crowd import CrowdLaw, crowd_delta

    law = report_law([coins])
    reached = np.cumsum(law.masses[: coins.number - law.first + 1])
    starts = np.arange(reached.size)
    if reached.size > _MOST_SINGLE:
        starts = np.unique(np.append(0, np.searchsorted(reached, _LEVELS)))
    misses = np.minimum(np.append(0.0, reached)[starts] + law.error + 1e-15, 1.0)
    sizes = (law.first + starts + 1).tolist()
    return crowd_delta(CrowdLaw.of(zip(sizes, misses.tolist(), strict=True)), hidden, alone)


def blanket_vulnerability_upper(
    num_users: SupportsIndex,
    domain_size: SupportsIndex,
    truth: Truth,
    prior: ArrayLike | None = None,
) -> float:
    """Bound the success probability of an adversary who knows all others' values.

    Parameters
    ----------
    num_users : int
        n, 1 to 1e10, target included.
    domain_size : int
        k >= 2.
    truth : float, int or Fraction
        p in [1/k, 1] of k-ary randomized response.
    prior : array_like of float, shape (k,), optional
        Prior of the target's value; uniform if not given.

    Returns
    -------
    float
        At most 1. Errs upwards: by round-off, and by the looseness of the bound; by a thousandth of
        the leakage where n is large and p is within a hundredth or so of 1/k.

    Raises
    ------
    OutOfRegimeError
        If p < 1/k.
    ParameterError
        If a number is out of range, or the prior is invalid.

    Notes
    -----
    Milliseconds, 20 ms at n = 1e9; up to a second where p is that close to 1/k.

    Source: ours; docs/results/leakage.md. The randomizer as in Jurado, Gonze, Alvim,
    Palamidessi, "Analyzing the Shuffle Model through the Lens of Quantitative Information Flow",
    CSF 2023, hal-04349295v1, Definition 10.

    Examples
    --------
    Alone, the target's report is seen; with no noise, nothing hides it.

    >>> round(blanket_vulnerability_upper(1, 2, 0.75), 9), blanket_vulnerability_upper(9, 3, 1)
    (0.75, 1.0)
    >>> round(blanket_vulnerability_upper(2, 2, 0.75), 9)  # B is 0 or 1: (1 + 3/4) / 2 of the way
    0.6875
    """
    users = require_at_least("num_users", num_users, 1, MOST_USERS)
    response = Response.of(truth, require_at_least("domain_size", domain_size, 2))
    law = checked_prior(prior, response.domain_size)
    uniform = _uniform_upper(users, response)
    if prior is None:
        return uniform
    scaled = round_up(response.domain_size * float(law.max()) * uniform, operations=4)
    return min(round_up(response.unshuffled(law)), scaled, 1.0)


@lru_cache(maxsize=_REMEMBERED)
def _uniform_upper(num_users: int, response: Response) -> float:
    """Return the bound for a uniform target, 1/k plus p - r times the mean excess; rounded up."""
    values = response.domain_size
    if response.kept == 0:
        return round_up(1.0 / values, operations=1)
    if response.answer == 0:
        return 1.0
    found = alike_excess(num_users, values, response.answer)
    if found is None:
        alone, others = 1.0 - 1.0 / values, Coins(num_users - 1, response.noise)
        excess = _mean_of_crowds(others, lambda size: excess_share(size, values).upper, alone)
    else:
        excess = round_up(found.upper / (num_users * float(response.noise)), operations=4)
    # r + (p - r)/k = 1/k.
    return min(response.leaked(Enclosure(0.0, excess)).upper, float_above(response.truth))


def channel_blanket_upper(
    num_users: SupportsIndex, channel: ArrayLike, *, prior: ArrayLike | None = None
) -> float:
    """Bound the success probability under any randomizer, whatever is known of the others.

    Errs upwards; at most the success probability given the unshuffled report.
    """
    from shuffledp.leakage.uninformed import exchangeable_vulnerability

    users = require_at_least("num_users", num_users, 1, MOST_USERS)
    matrix = float_channel(channel)
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    law = checked_prior(prior, len(matrix))
    alone = min(round_up(unshuffled(matrix, law)), 1.0)
    blanket: NDArray[np.float64] = matrix.min(axis=0)
    # A smaller chance of noise is a weaker blanket: this errs upwards.
    chance = min(float(blanket.sum()) * (1.0 - 1e-14), 1.0)
    if chance <= 0.0:
        return alone
    crowd = blanket / blanket.sum()

    def hidden(size: int) -> float:
        """Bound the success probability in a crowd of this size."""
        return exchangeable_vulnerability(size, matrix, prior=law, crowd=crowd, work=0.0).upper

    return min(_mean_of_crowds(Coins(users - 1, Fraction(chance)), hidden, alone), alone)
