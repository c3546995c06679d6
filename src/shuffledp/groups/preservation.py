"""(eta, delta)-preservation: how much of a subset's reports stays within the subset.

A shuffle is (eta, delta)-preserving for a set S of l users if, with probability at least 1 - delta,
at least eta of the rows of S hold reports of members of S.

It is simulated: from N draws of pi, order statistics give limits of eta that hold for every law, at
the stated confidence.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, Definition A.4.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.arrays import Integers
from shuffledp.core.checks import require_at_least, require_open_unit
from shuffledp.core.errors import ParameterError


def required_members(subset_size: int, eta: float) -> int:
    """Minimum number of l reports that must stay for a share: eta l, rounded up."""
    size = require_at_least("subset_size", subset_size, 1)
    if not 0.0 <= eta <= 1.0:  # written so that NaN fails
        raise ParameterError(f"eta = {eta} is not in [0, 1]: it is a share, such as 0.9")
    return math.ceil(Fraction(repr(float(eta))) * size)


def preserved_share(
    draws: Iterable[Integers], places: ArrayLike, *, delta: float, confidence: float = 0.95
) -> float:
    """Return a lower confidence limit of the largest share that stays but for a chance of delta.

    ``draws`` are N independent permutations of people, ``places`` the numbers of l of them. A
    multiple of 1/l; 0 where (1 - delta)^N is above one minus the confidence. Let xi be the largest
    r with Pr[stayed < r] <= delta. If the i-th smallest of N is above xi, fewer than i are at most
    xi, which has probability above delta each. The limit is the order statistic for which
    Bin(N, delta) makes that rare enough.
    """
    from scipy.stats import binom

    level, chance = require_open_unit("confidence", confidence), require_open_unit("delta", delta)
    subset = np.asarray(places)
    stayed = np.sort([int(np.isin(draw[subset], subset).sum()) for draw in draws])
    chances = binom.cdf(np.arange(stayed.size), stayed.size, chance)
    enough = np.flatnonzero(chances <= 1.0 - level)
    if not enough.size:
        return 0.0
    share = float(stayed[enough[-1]] / subset.size)
    # Read as the decimal that it prints as, it requires no more members than have stayed.
    is_above = required_members(subset.size, share) > stayed[enough[-1]]
    return math.nextafter(share, 0.0) if is_above else share
