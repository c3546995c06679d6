"""Mallows models, laws of permutations that prefer those near the identity, and their shuffles.

*Kendall*, the inversions. The Lehmer code of pi counts, for each place i, the later places with
smaller items: v_i in {0, ..., n - 1 - i}. Permutations and codes are in bijection, and the
inversions are the sum of the v_i. So under P(pi) proportional to q^inversions, q = e^-theta, the
v_i are independent, and v_i is a truncated geometric variate: P(v_i = j) is proportional to q^j.

It is drawn exactly as G mod m, m = n - i being the number of values: G = floor(-ln U / theta), U
uniform in [0, 1), is geometric, P(G >= j) = q^j, and the remainder has the law
(1 - q) q^j (1 + q^m + q^2m + ...), which is the truncated one.

The first place holds the item v_0, so the law of the report at an end of the reference order is
this truncated geometric one. Reports between the ends are spread more.

*Cayley.* Start from the identity; for j = 1, ..., n - 1 either leave place j, or swap it with a
uniformly chosen earlier one. Leaving it makes j a cycle of its own; a swap puts j into the cycle of
the other place. Each permutation arises in exactly one way, the number of swaps being its distance.
So leaving with probability e^theta / (e^theta + j), and each swap with 1 / (e^theta + j), gives
P(pi) = e^(theta (n - 1 - d)) / product of (e^theta + j): proportional to e^(-theta d).

*Hamming.* P(pi) is proportional to e^(-theta d), that is to e^(theta f) for f = n - d fixed points.
Since

    e^(theta f) = sum over subsets S of the fixed points of (e^theta - 1)^(size of S),

draw a subset S with weight (e^theta - 1)^s (n - s)!, s being its size, and then a uniform
permutation of the other places, which may have fixed points of its own: its (n - s)! choices make
the weight of each pair (S, pi) with S fixed (e^theta - 1)^s, and summing over S gives P(pi). There
are n! / (s! (n - s)!) subsets of size s, so s has weight n! (e^theta - 1)^s / s!.

Source: Mallows, "Non-null ranking models I", Biometrika 44, 1957; Fligner and Verducci, "Distance
based ranking models", Journal of the Royal Statistical Society B 48, 1986.

*Shuffling within groups*: people trade answers with those near them in a reference order, which,
sigma0, puts the members of groups close together. In its coordinates the places are rearranged by a
permutation pi with probability proportional to exp(-theta d(pi)), a Mallows model around the
identity: the person at place j gets the answer of the person at place pi(j). Among people that is
sigma* = sigma0 pi sigma0^-1.

Why it protects (Theorem 4.3 of the paper): if data sets differ by a rearrangement inside a group G,
then an output that comes from one by pi comes from the other by kappa pi, where kappa moves only
the places of G. The distances of the two differ by at most the sensitivity Delta of d to G, so the
probabilities of any output differ by a factor of at most exp(theta Delta). This is
d_sigma-privacy with alpha = theta Delta.

The paper's Algorithm 1 prints sigma* = sigma0^-1 sigma_hat with sigma_hat = sigma0 pi, which is not
private: with five people, the group {1, 3, 5} and sigma0 = (1 3 5 2 4) the factor is exp(7 theta)
where exp(3 theta) is claimed. The form above is what its Appendix A.10 does in the example.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.collection.uniform_shuffler import UniformShuffler
from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.checks import require_at_least, set_fields
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only
from shuffledp.groups import exact_draws as exact
from shuffledp.groups import reference_orders
from shuffledp.groups.exact_draws import LIBRARY_MARGIN
from shuffledp.groups.groups import Groups
from shuffledp.groups.reference_orders import ReferenceOrder

#: Places are drawn from halves of 64-bit words.
MAX_ITEMS = 2**32 - 1

# Above this theta every item stays, to all digits of a float.
_IDENTITY_THETA = 700.0
_WORDS_AT_A_TIME = 1 << 15
_HALF_BITS, _HALF = 32, 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class MallowsModel:
    """A law of permutations that prefers those near the identity.

    A permutation pi has the probability exp(-theta d(pi, identity)) / psi, where the partition
    function psi makes the probabilities sum to 1. The privacy of shuffling within groups is a
    statement about ratios of these probabilities (Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy
    Implications of Shuffling", ICLR 2022, arXiv:2106.06603v3), so each model is drawn exactly,
    tails included. ``pi[i]`` is the item at place i.

    Parameters
    ----------
    distance : {"kendall", "hamming", "cayley"}
        The distance d: inversions, places whose item moved, or swaps.
    num_items : int
        Number of items n, in [1, 2^32 - 1].
    theta : float
        Concentration, in [0, inf]: 0 is the uniform law, inf the identity. For Kendall's distance
        it is 0 or at least 2^-40.

    Notes
    -----
    Source: this module's docstring. The draws are exact given uniform words. Cost an item, whatever
    theta: 0.1 to 0.2 microseconds and 22 bytes for Kendall's distance, 10 to 30 ns and 17 bytes for
    Hamming's, 5 to 100 ns, the more swaps the more, and 8 bytes for Cayley's.

    Examples
    --------
    >>> law = MallowsModel(distance="kendall", num_items=1000, theta=0.1)
    >>> pi = law.sample(Entropy.from_operating_system())
    >>> bool((np.sort(pi) == np.arange(1000)).all())
    True
    """

    distance: str
    num_items: int
    theta: float

    def __post_init__(self) -> None:
        if self.distance not in _DRAWS:
            raise ParameterError(
                f"distance = {self.distance!r} has no sampler: choose one of {', '.join(_DRAWS)}"
            )
        remedy = "shuffle parts of that size"
        size = require_at_least("num_items", self.num_items, 1, MAX_ITEMS, remedy)
        least = exact.SMALLEST_THETA if self.distance == "kendall" else 0.0
        theta = reference_orders.require_theta(self.theta, least=least)
        set_fields(self, num_items=size, theta=theta)

    def sample(self, entropy: Entropy) -> Integers:
        """Draw a permutation, exactly from this law if the words of ``entropy`` are uniform."""
        identity = np.arange(self.num_items, dtype=np.int64)
        if math.isinf(self.theta):
            return identity
        if self.theta == 0.0:
            return UniformShuffler().shuffle(identity, entropy)
        return _DRAWS[self.distance](self.num_items, self.theta, entropy)


def _draw_by_code(num_items: int, theta: float, entropy: Entropy) -> Integers:
    """Draw a permutation with probability proportional to e^(-theta inversions), exactly."""
    return permutation_of_code(draw_lehmer_code(num_items, theta, entropy))


def _draw_by_fixed_places(num_items: int, theta: float, entropy: Entropy) -> Integers:
    """Draw a permutation with probability proportional to e^(-theta items that move), exactly."""
    uniform = exact.LazyUniform(prefix=int(entropy.words(1)[0]), entropy=entropy)
    num_forced = exact.draw_truncated_poisson(num_items, theta, uniform)
    return permute_all_but(num_items, num_forced, entropy)


def hamming_stay(num_items: int, theta: float) -> float:
    """Return the probability that an item stays at its place under Hamming's distance, to nearest.

    The mean number of fixed points is the derivative of ln(sum_s lambda^s / s!), s = 0, ..., n, by
    theta: e^theta times the sum without its last term, divided by the sum; lambda = e^theta - 1.
    """
    from scipy.special import gammaincc

    theta = min(theta, _IDENTITY_THETA)
    odds, growth = math.expm1(theta), math.exp(theta)
    if odds < num_items:  # sums of Poisson probabilities
        share = gammaincc(num_items, odds) / gammaincc(num_items + 1, odds)
    else:  # other terms, relative to the last
        others = np.cumprod(np.arange(num_items, 0, -1) / odds).sum()
        share = others / (1.0 + others)
    return min(growth * float(share) / num_items, 1.0)


def permute_all_but(num_items: int, num_forced: int, entropy: Entropy) -> Integers:
    """Return a permutation that fixes a random set of places, and is uniform on the others.

    One uniform shuffle gives both: the first n - num_forced items are a uniform set in uniform
    order, and order and set are independent. Other places may happen to be fixed, too.
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

    ``margin`` bounds the relative error of floats; a larger one is slower and gives the same
    permutation, with ``inf`` every swap is settled with decimals.
    """
    from shuffledp.groups.group_kernels import draw_swaps

    pi = np.arange(num_items, dtype=np.int64)

    place = 1
    while place < num_items:
        words = entropy.words(min(_WORDS_AT_A_TIME, num_items - place))
        while words.size and place < num_items:
            place, used, is_undecided = draw_swaps(pi, theta, margin, words, place)
            if is_undecided:
                prefix, other = divmod(int(words[used - 1]), _HALF)
                uniform = exact.LazyUniform(prefix=prefix, num_bits=_HALF_BITS, entropy=entropy)
                if exact.draw_against_odds(uniform, place, theta):
                    other = other * place >> _HALF_BITS
                    pi[other], pi[place] = pi[place], pi[other]
                place += 1
            words = words[used:]
    return pi


#: Draws of every model for theta in (0, inf), by the name of its distance.
_DRAWS: dict[str, Callable[[int, float, Entropy], Integers]] = {
    "kendall": _draw_by_code,
    "hamming": _draw_by_fixed_places,
    "cayley": draw_by_swaps,
}


def draw_lehmer_code(
    num_items: int, theta: float, entropy: Entropy, *, margin: float = LIBRARY_MARGIN
) -> Integers:
    """Draw the Lehmer code of a permutation, exactly, for theta in [2^-40, inf).

    ``margin`` is that of `exact_draws.draw_geometrics`. Cost: 20 to 60 ns an entry.
    """
    code = np.arange(num_items, 0, -1)  # numbers of values
    for start in range(0, num_items, _WORDS_AT_A_TIME):
        part = code[start : start + _WORDS_AT_A_TIME]
        part[:] = exact.draw_geometrics(part.size, theta, entropy, margin=margin) % part
    return code


def permutation_of_code(code: Integers) -> Integers:
    """Return the permutation: ``pi[i]`` has ``code[i]`` smaller items among those left.

    Cost: O(n log n), about 0.1 microseconds an item; memory: 6 bytes an item beside the result.
    """
    from shuffledp.groups.group_kernels import decode

    pi = np.empty_like(code)
    decode(code, pi)
    return pi


def target_place_law(model: MallowsModel) -> Floats:
    """Return the law of the place at which the report of the least hidden person is released.

    Parameters
    ----------
    model : MallowsModel
        The law of the permutation, in the coordinates of the reference order.

    Returns
    -------
    ndarray of float64, shape (n,)
        Read-only, with sum 1: for "kendall" of the person at place 0 of the reference order, for
        "hamming" and "cayley" of any person, called number 0. Total variation error at most 1e-12.

    Notes
    -----
    All three distances are the same for a permutation and its inverse. So the place of an item has
    the law of the item at its place. Under "hamming" and "cayley" all permutations that differ only
    by renaming are equally likely, so an item that moves is equally likely anywhere else. Under
    "kendall" it stays near, and people at the ends of the order move less than others.

    Examples
    --------
    >>> model = MallowsModel(distance="kendall", num_items=2, theta=math.log(3.0))
    >>> target_place_law(model).round(12).tolist()
    [0.75, 0.25]
    """
    n = model.num_items
    if model.distance == "kendall":  # theta is capped, as 0 times inf is no number
        law = np.exp(-min(model.theta, 1e6) * np.arange(n))
        return read_only(law / math.fsum(law))
    if model.distance == "hamming":
        stays = hamming_stay(n, model.theta)
    else:
        # The last item is swapped or not, and all items have the same law as the last.
        stays = 1.0 / (1.0 + (n - 1) * math.exp(-model.theta))
    law = np.full(n, (1.0 - stays) / max(n - 1, 1))
    law[0] = stays
    return read_only(law)


@dataclass(frozen=True, slots=True, kw_only=True)
class MallowsShuffler:
    """Permutes reports near their places, so that the order in a group hides their owners.

    Made by `for_groups`, which finds a reference order, and theta for a requested alpha.

    Parameters
    ----------
    reference : ReferenceOrder
        Order of the people for the shuffle, and the rank distance of the model.
    theta : float
        Concentration of the Mallows model, in [0, inf]: 0 is a uniform shuffle of everybody, inf
        changes nothing.
    groups, alpha : Groups and float, optional
        Arguments of `for_groups`, which a result reports.

    Notes
    -----
    Source: this module; Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of
    Shuffling", ICLR 2022, arXiv:2106.06603v3, Algorithm 1, Theorems 4.3 and 4.4. It assumes that
    the permutation is drawn independently of the answers and kept secret, and that groups and
    reference order are made from public data. Cost: the model's sampler, and two random accesses a
    row.

    Examples
    --------
    >>> groups = Groups.from_distance([20, 21, 35, 36], 1, metric="absolute")
    >>> shuffler = MallowsShuffler.for_groups(groups, 2.0)
    >>> shuffler.theta, shuffler.alpha_for(groups)
    (2.0, 2.0)
    >>> answers = np.array([3, 1, 4, 1])
    >>> sorted(shuffler.shuffle(answers, Entropy.from_operating_system()).tolist())
    [1, 1, 3, 4]
    """

    #: Name in results.
    name: ClassVar[str] = "mallows"

    reference: ReferenceOrder
    theta: float
    groups: Groups | None = field(default=None, repr=False, compare=False)
    alpha: float | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta", self.model.theta)

    @classmethod
    def for_groups(
        cls,
        groups: Groups,
        alpha: SupportsFloat,
        *,
        distance: str = "kendall",
        coordinates: ArrayLike | None = None,
        metric: str = "euclidean",
    ) -> Self:
        """Return an (alpha, groups)-d_sigma-private shuffler with small displacements.

        Parameters
        ----------
        groups : Groups
            Groups whose internal order is hidden.
        alpha : float
            Requested privacy, in [0, inf]: the order inside each group changes the probability of
            any output by a factor of at most e^alpha. 0 is a uniform shuffle of everybody; inf
            shuffles nothing.
        distance : {"kendall", "hamming", "cayley"}
            The rank distance of the model. Only Kendall's keeps people near their places.
        coordinates, metric
            Help to find the reference order; see `choose_reference_order`.

        Returns
        -------
        MallowsShuffler
            With theta = alpha / Delta rounded down, so that theta Delta <= alpha exactly. If every
            group is one person, there is nothing to hide, and theta is inf.
        """
        wanted = reference_orders.require_alpha(alpha)
        # Refuses laws that cannot be drawn.
        MallowsModel(distance=distance, num_items=groups.num_users, theta=0.0)
        reference = reference_orders.choose_reference_order(
            groups, distance=distance, coordinates=coordinates, metric=metric
        )
        theta = reference_orders.theta_below(wanted, reference.sensitivity)
        return cls(reference=reference, theta=theta, groups=groups, alpha=wanted)

    @property
    def num_users(self) -> int:
        """Number of people."""
        return self.reference.num_users

    @property
    def model(self) -> MallowsModel:
        """The law of the permutation in the coordinates of the reference order."""
        reference = self.reference
        return MallowsModel(
            distance=reference.distance, num_items=reference.num_users, theta=self.theta
        )

    def alpha_for(self, groups: Groups) -> float:
        """Return the alpha of this shuffler for any groups of the same people.

        theta Delta(groups), never below the exact product; the paper's Theorem 4.4, for the exact
        sensitivity. Inf if theta is inf and some group has two members. Cost: O(memberships).
        """
        distance, places = self.reference.distance, self.reference.places
        largest = reference_orders.sensitivity(distance, groups, places)
        return reference_orders.alpha_above(self.theta, largest)

    def draw(self, entropy: Entropy) -> Integers:
        """Draw sigma*: person i gets the answer of person ``sigma[i]``.

        Exactly from this law given uniform words. Any party that sees it can undo the shuffle.
        """
        order = self.reference.order
        sigma = np.empty_like(order)
        sigma[order] = order[self.model.sample(entropy)]
        return sigma

    def shuffle(self, reports: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Return the rows rearranged; row i of the result lies in the place of person i.

        Parameters
        ----------
        reports : ndarray, shape (num_users, ...)
            Row i is the report of person i. Not changed.
        entropy : Entropy
            As for `draw`.

        Returns
        -------
        ndarray
            A new C-contiguous array of the same shape and type: row i is the report of a person
            near i in the reference order.

        Raises
        ------
        ParameterError
            If ``reports`` is a single number, holds Python objects, or has not one row a person.
        """
        reference_orders.require_reports(reports, self.num_users)
        return np.ascontiguousarray(reports[self.draw(entropy)])
