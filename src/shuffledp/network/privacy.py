"""Reports walk along a graph from user to user, then holders hand in: the central guarantee.

Report i starts at user i and moves t times, independently of all other reports; P_i is the law of
its last holder. Fix the victim v and a law Q with P_v >= (1 - a) P'_v and P_i >= kappa_i Q for the
others; N is a sum of independent coins with the probabilities kappa_i, D(m) the delta of a uniform
shuffle of m users. Then, *thinned*, with Q = P_v: delta <= E[D(N + 1)]. *Weighed*, with
rho = P'_v / Q, V_j i.i.d. of law Q, and G_j i.i.d. of the randomizer's blanket law:

    delta(eps) <= (1 - a) E_N[W(N + 1)] + a D(1),   W(m) = (1/m) E(sum_{j <= m} rho(V_j) G_j)_+. (W)

Both D and W do not increase with m, so `random_crowd` bounds the mean over N. If each user also
sends Poisson many dummies of the blanket's law, which walk like reports, user i's dummies hide with
probability kappa_i too, and the victim's own with 1: D(m) is then a uniform shuffle of m users and
Poisson(rate (1 + sum kappa_i)) dummies. W does not count them. The output of "single" can be made
from the output of "all", and is sharper by sampling.

Model: Liew, Takahashi, Takagi, Kato, Cao, Yoshikawa, "Network Shuffling: Privacy Amplification via
Random Walks", SIGMOD 2022, arXiv:2204.03919. docs/results/network.md has all proofs; papers/ draws
their theorems beside these bounds.
"""

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.amplification import atom_law, random_crowd, registry, stated_blanket
from shuffledp.amplification.atom_law import AtomLaw
from shuffledp.amplification.clones_and_families import blanket_atoms
from shuffledp.amplification.dummies import added_sentence
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.amplification.sampling import inner_epsilon, sampling_fraction
from shuffledp.core.arrays import Floats
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_delta
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.numerics.poisson_binomial import survival_levels
from shuffledp.core.profile import LARGEST_EPSILON0, LocalProfile, RandomizerFamily

NETWORK_PROTOCOLS = ("all", "single")

# Assumptions behind the numbers; a Bound repeats them because they are part of the claim.
NETWORK_ASSUMPTIONS = (
    "The adversary sees who hands in which reports at the end, and knows the graph, all code and "
    "the values of all others. It sees no earlier hop: there is no traffic analysis.",
    "All counted users are honest and none colludes with it: each applies this randomizer once to "
    "one value, and moves each report that it holds to a neighbour drawn uniformly, independently "
    "of all other reports and of what any report says. At the end each hands in all reports held, "
    "or one of them drawn uniformly, as the protocol says.",
    "Neighbouring datasets differ in one user's value; the graph and who takes part are public.",
)
_SOURCE = (
    "derived in the shuffledp documentation, results/network, for the model of Liew et al. 2022, "
    "arXiv:2204.03919"
)

# Tails of the number of reports that are handed in, for the protocol "single".
_OCCUPANCY_TARGETS = (1e-2, 1e-5, 1e-10, 1e-16)

# If the tails are this close, relative to their size, one of them suffices.
_NARROW = 5e-3

# Sizes within this factor share one law of the number of occupied places.
_SAME_SIZE = 0.98

_ROUNDING = 1e-14

# Room for rounding in sums of probabilities.
_SUM_ROUNDING = 1e-13


class _Walk(NamedTuple):
    """Checked overlaps of the honest users, and bounds on the places of the victim's report.

    ``labels`` are upper bounds on P_v at each place; None if nothing is known.
    """

    overlaps: Floats
    labels: Floats | None
    is_all: bool  # True if holders hand in all reports that they hold
    dummies: DummyLaw | None  # of each user, if holders hand in all

    def dummies_of(self, num_users: int) -> DummyLaw | None:
        """Return the dummies that hide the victim, as an even share for each of some users."""
        if self.dummies is None:
            return None
        hiding = self.dummies.scale * (1.0 + math.fsum(self.overlaps))
        return replace(self.dummies, scale=hiding / num_users * (1.0 - _SUM_ROUNDING))


def _require_unit(name: str, values: ArrayLike) -> Floats:
    """Return probabilities as an array; raise if one is outside [0, 1]."""
    array = np.asarray(values, dtype=np.float64)
    if not np.all((array >= 0.0) & (array <= 1.0)):  # NaN fails
        raise ParameterError(f"{name} has an entry outside [0, 1]: clip it on the safe side")
    return array


def _checked_walk(
    overlaps: ArrayLike,
    protocol: str = "all",
    position_law: ArrayLike | None = None,
    num_dishonest: int = 0,
    dummies: DummyLaw | None = None,
) -> _Walk:
    """Return the decomposition, checked, without the dishonest users who hide best."""
    if protocol not in NETWORK_PROTOCOLS:
        raise ParameterError(f"protocol = {protocol!r} is not one of {NETWORK_PROTOCOLS}")
    chances = _require_unit("overlaps", overlaps)
    if chances.ndim != 1:
        raise ParameterError(
            f"overlaps has shape {chances.shape}: give one number for each other user"
        )
    if require_at_least("num_dishonest", num_dishonest, 0) > chances.size:
        raise ParameterError(
            f"num_dishonest = {num_dishonest} is above {chances.size}, the number of other users"
        )
    law = None if position_law is None else _require_unit("position_law", position_law)
    if law is not None and (law.ndim != 1 or law.sum() < 1.0 - 1e-6):
        raise ParameterError(
            "position_law is no list of upper bounds on probabilities that add up to 1: give the "
            "law of the victim's last holder, an entry for each user"
        )
    if dummies is not None and dummies.sender != "users":
        raise ParameterError(
            f"dummies = {dummies} is a shuffler's law, and a network has none: give poisson:MEAN"
        )
    honest = np.sort(chances)[: chances.size - num_dishonest]
    is_all = protocol == "all"
    return _Walk(honest, None if is_all else law, is_all, dummies if is_all else None)


def network_walk_epsilon(
    profile: LocalProfile,
    *,
    overlaps: ArrayLike,
    delta: float,
    protocol: str = "all",
    position_law: ArrayLike | None = None,
    num_dishonest: int = 0,
    dummies: DummyLaw | None = None,
    with_lower: bool = True,
) -> Bound:
    """Bound the central epsilon of reports that walk along a graph before they are handed in.

    Parameters
    ----------
    profile : LocalProfile
        The randomizer's law; ``LocalProfile(epsilon0=...)`` for any epsilon0-LDP randomizer.
    overlaps : array_like of float, shape (n - 1,)
        For one victim, the kappa_i in [0, 1] of all other users, rounded down.
    delta : float
        Central delta, in [0, 1).
    protocol : {"all", "single"}
        Whether holders hand in all reports they hold, or one of them.
    position_law : array_like of float, shape (places,), optional
        For "single": upper bounds on the probability that each user is the victim's last holder,
        such as P_v itself, or min(1, high_v pi). Without it "single" is accounted as "all".
    num_dishonest : int
        Number of other users who may reveal their reports to the adversary: they hide nobody, and
        the largest overlaps are left out. What they learn by relaying is not accounted here.
    dummies : DummyLaw, optional
        Law of the dummies that each honest user sends beside the report, which walk like it; with
        "single" they are not counted.
    with_lower : bool
        False saves the time for the lower end, which is then ``None``.

    Returns
    -------
    Bound
        On epsilon in nats, for this victim. ``upper`` is proved, and at most the epsilon of one
        report alone; ``lower`` is a lower bound.

    Raises
    ------
    ParameterError
        If an argument is out of range.
    OutOfRegimeError
        If delta is below the randomizer's delta0, and its channel is not known.

    Notes
    -----
    For a guarantee to all users take the largest over all victims. With bounds low_i <= P_i/pi <=
    high_i alone, overlaps low_i / max(high), without the largest low_i, serve all victims at once.

    About ten sizes of the crowd in each of about ten evaluations of delta: tenths of a second.

    Source: ours; docs/results/network.md has the proof.

    Examples
    --------
    >>> one = LocalProfile(epsilon0=1.0)
    >>> mixed = network_walk_epsilon(one, overlaps=[1.0] * 9999, delta=1e-6)
    >>> round(mixed.upper, 8), mixed.method
    (0.04320616, 'network-walk/clones')
    >>> network_walk_epsilon(one, overlaps=[0.0] * 9999, delta=1e-6).method
    'local'
    """
    delta = require_delta(delta)
    walk = _checked_walk(overlaps, protocol, position_law, num_dishonest, dummies)
    account = partial(account_epsilon, profile, delta=delta)
    uniform = account(
        num_users=walk.overlaps.size + 1,
        dummies=walk.dummies,
        with_lower=with_lower and walk.is_all,
    )
    best = single = account(num_users=1, with_lower=False)
    upper, method = single.upper, "local"
    if delta > 0.0 and walk.labels is None and bool(np.all(walk.overlaps == 1.0)):
        best, upper = uniform, uniform.upper
    elif delta > 0.0 and single.upper > 0.0:
        curve = _Curve(profile, walk, delta)
        size = curve.law.sizes[0]
        share = walk.dummies_of(size)
        best = account(num_users=size, dummies=share, with_lower=False)
        if share is not None and walk.dummies is not None:  # users send more than an even share
            told = {added_sentence(share): added_sentence(walk.dummies)}
            best = replace(
                best, assumptions=tuple(told.get(each, each) for each in best.assumptions)
            )
        _, upper = last_above_first_below(
            curve.delta, delta, 0.0, single.upper, guess=best.upper, relative_tolerance=1e-6
        )
    if upper < single.upper:
        method = f"network-walk{'' if walk.labels is None else '-single'}/{best.method}"
    else:
        best, upper = single, single.upper
    found = registry.carried_over(
        best, method=method, upper=upper, source=_SOURCE, assumptions=NETWORK_ASSUMPTIONS
    )
    return registry.least_over([found], uniform.lower)


def network_walk_delta(
    profile: LocalProfile, *, epsilon: float, delta: float, **walk: Any
) -> float:
    """Return an upper bound on the central delta of one victim's report, sharp near ``delta``.

    ``walk`` is as for `network_walk_epsilon`.
    """
    return _Curve(profile, _checked_walk(**walk), delta).delta(epsilon)


class _Curve:
    """Upper bounds of delta for one decomposition, as a function of epsilon."""

    def __init__(self, profile: LocalProfile, walk: _Walk, delta: float) -> None:
        self._profile, self._walk = profile, walk
        self.law = random_crowd.crowd_of(walk.overlaps, delta=delta)
        self._taken = {} if walk.labels is None else _places_taken(walk.labels, self.law.sizes)

    def delta(self, epsilon: float) -> float:
        """Return the upper bound at one epsilon."""
        conditional = partial(self._conditional, epsilon)
        return random_crowd.crowd_delta(self.law, conditional, self._uniform(epsilon, 1))

    def _uniform(self, epsilon: float, size: int) -> float:
        return account_delta(
            self._profile,
            num_users=size,
            epsilon=epsilon,
            dummies=self._walk.dummies_of(size),
            with_lower=False,
        ).upper

    def _conditional(self, epsilon: float, size: int) -> float:
        """Return d(m): an upper bound on delta for every crowd of at least m."""
        everything = self._uniform(epsilon, size)
        if size not in self._taken:
            return everything
        places, misses = zip(*self._taken[size], strict=True)
        values = []
        for drawn in places:
            fraction = sampling_fraction(drawn, size)
            inside = self._uniform(inner_epsilon(epsilon, fraction), drawn)
            values.append(round_up(fraction * inside))  # T(k, m)
        return random_crowd.tail_mean(values, misses, everything)


def _places_taken(labels: Floats, sizes: tuple[int, ...]) -> dict[int, list[tuple[int, float]]]:
    """Return for each size m pairs (k, r), k ascending: m reports are at most at k places, save r.

    ``labels`` are upper bounds of mu; a place that is more likely occupied is one more place.
    """
    found: dict[int, list[tuple[int, float]]] = {}
    counted = 0
    levels: list[tuple[int, float]] = []
    with np.errstate(divide="ignore"):
        logs = np.log1p(-labels) * (1.0 + _ROUNDING)  # -inf if all labels fall on one place
    for size in sizes:
        if not counted * _SAME_SIZE < size <= counted:
            empty = np.where(labels == 0.0, 1.0, np.exp(size * logs) * (1.0 - _ROUNDING))
            levels = survival_levels(empty, _OCCUPANCY_TARGETS, independent=False)
            if levels[0][0] - levels[-1][0] <= _NARROW * (len(labels) - levels[0][0]):
                levels = levels[-1:]
            counted = size
        # More reports take more places, so the levels of a larger size are safe for a smaller.
        best = {min(len(labels) - count, size): miss for count, miss in levels}
        found[size] = sorted((max(taken, 1), miss) for taken, miss in best.items())
    return found


# Relative width of an enclosure, and of an epsilon above the least one: finer than the grid of
# weights if the crowd is large; small crowds take a hundred times as long for that.
_LARGE_CROWD = 2_000
_WIDTHS = {True: (1e-6, 1e-5), False: (3e-4, 1e-4)}

# Approximate relative excess of the guess from the smallest crowd over the epsilon of all sizes.
_SPREAD = 0.03


class Weights(NamedTuple):
    """A law of rho = P_v / Q under Q that dominates, in convex order, the laws of some victims.

    Mass that is missing from 1 is at 0; ``accuracy`` is an upper bound on the relative error of
    values, ``missed`` the a of (W), rounded up.
    """

    values: Floats
    masses: Floats
    accuracy: float = 0.0
    missed: float = 0.0


class WeightedWalk:
    """(W) for one randomizer and one crowd of overlaps, for any victim.

    If no blanket of the randomizer is known its values are the report's alone.

    ``delta`` is an estimate of the central delta: any value is safe. The largest overlaps are left
    out for dishonest users. About ten sizes of the crowd, each a contour integral over the atoms of
    rho times G: some milliseconds to tenths of a second for each epsilon, whatever n.
    """

    def __init__(
        self, profile: LocalProfile, overlaps: ArrayLike, *, delta: float, num_dishonest: int = 0
    ) -> None:
        chances = np.sort(np.asarray(overlaps, dtype=np.float64))
        honest = chances.size - require_at_least("num_dishonest", num_dishonest, 0)
        self._profile = profile
        self._laws = _blanket_laws(profile)
        self._crowd = random_crowd.crowd_of(chances[: max(honest, 0)], delta=delta)
        self._width, self._tolerance = _WIDTHS[self._crowd.sizes[0] >= _LARGE_CROWD]

    def delta(self, weights: Weights, epsilon: float) -> float:
        """Return an upper bound of delta at one epsilon >= 0, for these victims."""
        worst = account_delta(self._profile, num_users=1, epsilon=epsilon, with_lower=False).upper
        if not self._laws or worst == 0.0:
            return worst
        laws = [_weighted(law, weights) for law in self._laws]

        def conditional(size: int) -> float:
            return max(
                atom_law.atom_delta_above(law, size, epsilon, width=self._width) for law in laws
            )

        hidden = random_crowd.crowd_delta(self._crowd, conditional, worst)
        if weights.missed == 0.0:
            return hidden
        # 1 - a is rounded up: hidden is at most worst, so that errs upwards.
        total = math.nextafter(1.0 - weights.missed, 2.0) * hidden + weights.missed * worst
        return min(round_up(total), worst)

    def epsilon(self, weights: Weights, delta: float) -> float:
        """Return an epsilon whose bound is at most delta, slightly above the least one."""
        single = account_epsilon(self._profile, num_users=1, delta=delta, with_lower=False).upper
        if not self._laws or not delta > 0.0 or single == 0.0:
            return single
        guess = max(
            atom_law.atom_epsilon_above(
                _weighted(law, weights), self._crowd.sizes[-1], delta, single, width=1e-3
            )
            for law in self._laws
        )
        _, epsilon = last_above_first_below(
            lambda epsilon: self.delta(weights, epsilon),
            delta,
            0.0,
            single,
            guess=guess,
            spread=_SPREAD,
            relative_tolerance=self._tolerance,
        )
        return epsilon


def _blanket_laws(profile: LocalProfile) -> list[AtomLaw]:
    """Return laws the larger of which dominates, for both orders of the pair; [] if unknown."""
    if not 0.0 < profile.epsilon0 <= LARGEST_EPSILON0:
        return []
    if profile.blanket and stated_blanket.violated_hypothesis(profile) is None:
        return stated_blanket.dominating_laws(profile)
    if profile.delta0 > 0.0:
        return []
    if profile.family is RandomizerFamily.OTHER:
        profile = LocalProfile(epsilon0=profile.epsilon0)
    return [AtomLaw.from_atoms(blanket_atoms(profile))]


def _weighted(law: AtomLaw, weights: Weights) -> AtomLaw:
    """Return the law of the two ratios of a pair (place, report)."""
    return AtomLaw(
        np.outer(weights.masses, law.masses).ravel(),
        np.outer(weights.values, law.ratios0).ravel(),
        np.outer(weights.values, law.ratios1).ravel(),
        accuracy=law.accuracy + weights.accuracy,
    )
