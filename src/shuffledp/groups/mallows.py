"""The Mallows models: permutations that prefer those near the identity, each drawn exactly.

*Kendall* draws the Lehmer code: see ``kendall.py``.

*Cayley.* Start from the identity; for j = 1, ..., n - 1 either leave place j, or swap it with a
uniformly chosen earlier one. Leaving it makes j a cycle of its own; a swap puts j into the cycle of
the other place. Each permutation arises in exactly one way, with as many swaps as its distance is.
So leaving with probability e^theta / (e^theta + j), and each swap with 1 / (e^theta + j), gives
P(pi) = e^(theta (n - 1 - d)) / product of (e^theta + j): proportional to e^(-theta d).

*Hamming.* P(pi) is proportional to e^(-theta d), that is to e^(theta f) for f = n - d fixed points.
Since

    e^(theta f) = sum over subsets S of the fixed points of (e^theta - 1)^(size of S),

draw a subset S with weight (e^theta - 1)^s (n - s)!, s being its size, and then a uniform
permutation of the other places, which may have fixed points of its own: its (n - s)! choices make
the weight of each pair (S, pi) with S fixed (e^theta - 1)^s, and summing over S gives P(pi). There
are n! / (s! (n - s)!) subsets of size s, so s has weight n! (e^theta - 1)^s / s!.

The law of Hamming's distance: C(n, d) D_d e^(-theta d) / psi, with D_d derangements of d items.

Source: Mallows, "Non-null ranking models I", Biometrika 44, 1957; Fligner and Verducci, "Distance
based ranking models", Journal of the Royal Statistical Society B 48, 1986.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, SupportsFloat, SupportsIndex

import numpy as np

from shuffledp.collection.shuffling import UniformShuffler
from shuffledp.core.arrays import Integers
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.exact_draws import (
    WORD_BITS,
    LazyUniform,
    draw_against_odds,
    draw_truncated_poisson,
)
from shuffledp.groups.kendall import draw_lehmer_code, permutation_of_code
from shuffledp.groups.permutations import (
    LIBRARY_MARGIN,
    require_num_items,
    require_theta,
    uniform_permutation,
)

# D_d / d! is 1/e to all digits from here on.
_DERANGEMENT_TERMS = 20
# Beyond this every e^(-theta d), d >= 2, is 0 as a float.
_IDENTITY_THETA = 1e4
_WORDS_AT_A_TIME = 1 << 15
_HALF_BITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class MallowsModel(ABC):
    """A law of permutations that prefers those near the identity.

    With concentration theta and distance d a permutation pi of n items has the probability
    exp(-theta d(pi, identity)) / psi, where the partition function psi makes the probabilities sum
    to 1. The privacy of shuffling within groups is a statement about ratios of these probabilities
    (Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
    arXiv:2106.06603v3), so each model is drawn exactly, tails included. ``pi[i]`` is the item at
    place i.
    """

    #: "kendall", "hamming" or "cayley".
    distance: ClassVar[str]

    num_items: int
    theta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_items", require_num_items(self.num_items))
        object.__setattr__(self, "theta", require_theta(self.theta))

    def sample(self, entropy: Entropy) -> Integers:
        """Draw a permutation, exactly from this law if the words of ``entropy`` are uniform."""
        if math.isinf(self.theta):
            return np.arange(self.num_items, dtype=np.int64)
        return self._draw(entropy)

    @abstractmethod
    def _draw(self, entropy: Entropy) -> Integers:
        """Draw a permutation, theta being finite."""


class KendallMallows(MallowsModel):
    """Permutations with probability proportional to exp(-theta inversions).

    Parameters
    ----------
    num_items : int
        Number of items n, in [1, 2^32 - 1].
    theta : float
        Concentration, in [0, inf]: 0 is the uniform law, inf the identity.

    Notes
    -----
    Source: this module's docstring. The draws are exact given uniform words. Cost: 0.1 to 0.2
    microseconds an item, whatever theta; memory: 22 bytes an item.

    Examples
    --------
    >>> law = KendallMallows(num_items=1000, theta=0.1)
    >>> pi = law.sample(Entropy.from_operating_system())
    >>> bool((np.sort(pi) == np.arange(1000)).all())
    True
    """

    __slots__ = ()
    distance = "kendall"

    def _draw(self, entropy: Entropy) -> Integers:
        if self.theta == 0.0:
            return uniform_permutation(self.num_items, entropy)
        return permutation_of_code(draw_lehmer_code(self.num_items, self.theta, entropy))


class HammingMallows(MallowsModel):
    """Permutations with probability proportional to exp(-theta places whose item moved).

    Parameters
    ----------
    num_items : int
        Number of items n, in [1, 2^32 - 1].
    theta : float
        Concentration, in [0, inf]: 0 is the uniform law, inf the identity.

    Notes
    -----
    Source: this module's docstring. The draws are exact given uniform words. Cost: 10 to 30
    ns an item; memory: 17 bytes an item.

    Examples
    --------
    >>> law = HammingMallows(num_items=3, theta=math.log(2))
    >>> round(law.mean_distance(), 12)  # (2 3 / 4 + 3 2 / 8) / 2
    1.125
    """

    __slots__ = ()
    distance = "hamming"

    def _draw(self, entropy: Entropy) -> Integers:
        word = int(entropy.words(1)[0])
        uniform = LazyUniform(prefix=word, num_bits=WORD_BITS, entropy=entropy)
        num_forced = draw_truncated_poisson(self.num_items, self.theta, uniform)
        return permute_all_but(self.num_items, num_forced, entropy)

    def mean_distance(self) -> float:
        """Return the mean number of places whose item moved, to nearest.

        Distances that are left out have a probability below 1e-40.
        """
        n, theta = self.num_items, min(self.theta, _IDENTITY_THETA)
        fixed = math.exp(min(theta, 30.0))  # mean number of fixed points if n is larger
        anchor = n - min(n, math.floor(fixed))
        width = 64 + math.ceil(20.0 * math.sqrt(min(n, fixed) + 1.0))
        first, last = max(0, anchor - width), min(n, anchor + width)
        distances = np.arange(first, last + 1, dtype=np.float64)
        # n! / (n - d)! e^(-theta d) D_d / d!, relatively to the first two factors at the anchor.
        steps = np.log(n - distances[:-1]) - theta
        logs = np.zeros(distances.size)
        logs[anchor - first + 1 :] = np.cumsum(steps[anchor - first :])
        logs[: anchor - first] = -np.cumsum(steps[: anchor - first][::-1])[::-1]
        alternating = [(-1.0) ** i / math.factorial(i) for i in range(_DERANGEMENT_TERMS)]
        shares = np.cumsum(alternating)
        weights = np.exp(logs) * shares[np.minimum(distances, shares.size - 1).astype(np.int64)]
        return float(np.average(distances, weights=weights))


class CayleyMallows(MallowsModel):
    """Permutations with probability proportional to exp(-theta swaps).

    Parameters
    ----------
    num_items : int
        Number of items n, in [1, 2^32 - 1].
    theta : float
        Concentration, in [0, inf]: 0 is the uniform law, inf the identity.

    Notes
    -----
    Source: this module's docstring. The draws are exact given uniform words. Cost: 5 to 100
    ns an item, the more swaps the more; memory: 8 bytes an item.

    Examples
    --------
    >>> law = CayleyMallows(num_items=3, theta=0.5)
    >>> sorted(law.sample(Entropy.from_seed(1)).tolist())
    [0, 1, 2]
    """

    __slots__ = ()
    distance = "cayley"

    def _draw(self, entropy: Entropy) -> Integers:
        if self.theta == 0.0:
            return uniform_permutation(self.num_items, entropy)
        return draw_by_swaps(self.num_items, self.theta, entropy)


#: Every model, by the name of its distance.
MALLOWS_MODELS: dict[str, type[MallowsModel]] = {
    model.distance: model for model in (KendallMallows, HammingMallows, CayleyMallows)
}


def mallows_model(distance: str, num_items: SupportsIndex, theta: SupportsFloat) -> MallowsModel:
    """Return the Mallows model of a distance, the law proportional to exp(-theta distance).

    Examples
    --------
    >>> mallows_model("kendall", 3, 0.0)
    KendallMallows(num_items=3, theta=0.0)
    """
    model = MALLOWS_MODELS.get(distance)
    if model is None:
        raise ParameterError(
            f"distance = {distance!r} has no Mallows model: choose one of {list(MALLOWS_MODELS)}"
        )
    return model(num_items=num_items, theta=theta)  # type: ignore[arg-type]


def permute_all_but(num_items: int, num_forced: int, entropy: Entropy) -> Integers:
    """Return a permutation that fixes a random set of places, and is uniform on the others.

    One uniform shuffle gives both: the first n - num_forced items are a uniform set in uniform
    order, and order and set are independent. Others may come out fixed, too.
    """
    pi = np.arange(num_items, dtype=np.int64)
    if num_forced < num_items:
        chosen = UniformShuffler().shuffle(pi, entropy)[: num_items - num_forced]
        is_free = np.zeros(num_items, dtype=np.bool_)
        is_free[chosen] = True
        pi[is_free] = chosen
    return pi


def draw_by_swaps(
    num_items: int, theta: float, entropy: Entropy, *, margin: float = LIBRARY_MARGIN
) -> Integers:
    """Draw a permutation with probability proportional to e^(-theta swaps), exactly.

    ``margin`` is the relative error that floats may have; larger is slower and gives the same
    permutation, with ``inf`` every swap is settled with decimals.
    """
    from shuffledp.groups import shuffler_kernels as kernels

    pi = np.arange(num_items, dtype=np.int64)
    place = 1
    while place < num_items:
        words = entropy.words(min(_WORDS_AT_A_TIME, num_items - place))
        while words.size and place < num_items:
            place, used, is_undecided = kernels.draw_swaps(pi, place, theta, margin, words)
            if is_undecided:
                _settle_swap(pi, place, theta, int(words[used - 1]), entropy)
                place += 1
            words = words[used:]
    return pi


def _settle_swap(pi: Integers, place: int, theta: float, word: int, entropy: Entropy) -> None:
    """Swap or leave a place as an undecided, accepted word says."""
    uniform = LazyUniform(prefix=word >> _HALF_BITS, num_bits=_HALF_BITS, entropy=entropy)
    if draw_against_odds(uniform, place, theta):
        other = ((word & ((1 << _HALF_BITS) - 1)) * place) >> _HALF_BITS
        pi[other], pi[place] = pi[place], pi[other]
