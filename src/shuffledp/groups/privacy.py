"""Guarantees of a shuffle within groups: central bounds, d_sigma-privacy, re-identification.

*A Mallows model.* All n users run one randomizer; z'_j = y'_pi(j) along a public order of the
users, and pi has a Mallows law with the parameter theta. The bound is the smaller of this and
epsilon0.

*Thinned.* Cut the places into blocks, each of L or fewer, L' the smallest; let b bound the change
of the distance when two entries of pi inside a block are exchanged (Cayley 1, Hamming 2, Kendall
2 L - 3), and kappa = e^(-theta b). Then (B) holds for L' users and the blanket kappa omega.

A lower bound for any analysis of a uniform shuffle of all n holds here too.

*Displacement*: each report is released at its user's public place plus noise. The release is the
multiset of (noisy place, report). For the victim v let kappa_i be e^(-theta d(c_i, c_v)) and N a
sum of independent coins with these chances, i != v. With D(m) for a uniform shuffle of m users,
delta(epsilon) <= E[D(N + 1)].

It needs only a number M that no victim's sum of kappa_i is below: N has at most k with a
probability no larger than under Poisson(M), for k <= M - 1, which is bounded by Chernoff and
Stirling. A lower bound for any analysis of a uniform shuffle of all n holds here too.

Source of both: ours; docs/results/grouped.md has the proofs.

*Odds.* An (alpha, G)-d_sigma-private release changes the odds of two values of a person by at most
e^alpha, for an adversary with any prior who knows every report outside the person's group, its
sender, and the multiset of reports of the group (Theorem 4.1). The information in that multiset is
not bounded by alpha, but by epsilon0.

*Re-identification.* The adversary sees z and names k rows; more than k/2 of them hold a report of
the k users of a set I, inside one group of r, with a probability of at most

    1 / (1 + R e^-(2 k epsilon0 + alpha)),   R = 1 / Pr[Hyp(r - k, k, k) > k/2],      (*)

where Hyp(N, K, d) counts the marked among d drawn without replacement from N with K marked, if all
of the group run one randomizer and the shuffle does not depend on the reports. The paper has the
same with floor((r - k)/k) for R, which is never larger: cut the others at random into that many
disjoint sets of k; at most one has more than half of k marks.

*Proof.* Fix the release z and the rows H named. A permutation s wins if more than k/2 of the rows
that show I's reports are in H. For a set J of k users of the group outside I let s_J be s with the
rows of I and J exchanged, in ascending order. (1) If s wins, each of the C(r - k, k) permutations
s_J loses: J had fewer than k/2 rows in H. (2) A losing s' is s_J for at most C(r - k, k)/R pairs
(s, J): J has more than k/2 rows of s' in H; if the r - k others have h <= k rows in H, a share
Pr[Hyp(r - k, h, k) > k/2] of all J does, growing with h. (3) Pr[s|z] <= e^(2 k epsilon0 + alpha)
Pr[s_J|z]: the permutations are neighbours, and the reports differ by k exchanges, each of a factor
of at most e^(2 epsilon0). Sum (3) over the winning s and all J.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, Theorems 4.1 and 4.2 (for k < r/2; the proof covers k = r/2). R is ours, and
docs/results/grouped.md has the proofs.
"""

import math
from fractions import Fraction
from functools import partial
from typing import Any

from shuffledp.amplification import registry, stated_blanket
from shuffledp.amplification.atom_law import AtomLaw, atom_epsilon_above
from shuffledp.amplification.clones_and_families import blanket_atoms
from shuffledp.amplification.random_crowd import CrowdLaw, crowd_delta, tail_targets
from shuffledp.core.bound import Bound
from shuffledp.core.checks import (
    require_at_least,
    require_delta,
    require_extended,
    require_non_negative,
)
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LARGEST_EPSILON0, LocalProfile, RandomizerFamily

# Change of a distance by an exchange in a block of everybody; None if it grows with the block.
_EXCHANGES = {"kendall": None, "hamming": 2, "cayley": 1}
MALLOWS_DISTANCES = tuple(_EXCHANGES)

# Assumptions of the numbers; a Bound repeats them because they are part of the claim.
MALLOWS_ASSUMPTIONS = (
    "The adversary sees the shuffled rows in order, and knows the public columns, the groups, the "
    "reference order and theta: none of them depends on the private values.",
    "The shuffler is honest: it draws its permutation from the stated Mallows law, secretly and "
    "independently of the reports, and colludes with nobody who sees the release.",
    "All n users are honest: each applies this randomizer once to one value, with fresh secret "
    "randomness.",
    "Neighbouring datasets differ in one user's value; who takes part is public.",
)
_SOURCE = "derived in the shuffledp documentation, results/grouped"

# A thinned crowd smaller than this hides nobody; a smaller mass loses digits to underflow.
_FEWEST_HIDING = 1e-2

# Relative error of e^(-theta b), with room; kappa is rounded down by it.
_ROUNDING = 1e-14

# Above this e^-x underflows; the crowd is negligible long before.
_LARGEST_EXPONENT = 700.0


def _kappa(theta: float, exchange: int) -> float:
    """Return e^(-theta b), rounded down."""
    exponent = theta * exchange
    if exponent > _LARGEST_EXPONENT:
        return 0.0
    return math.exp(-exponent) * (1.0 - _ROUNDING * (1.0 + exponent))


def _block_of(distance: str, num_users: int, theta: float) -> tuple[int, float]:
    """Return the smallest block's size and kappa, rounded down, of the best cut found."""
    exchange = _EXCHANGES[distance]
    if exchange is not None:
        return num_users, _kappa(theta, exchange)

    def cut(blocks: int) -> tuple[int, float]:
        smallest, largest = num_users // blocks, -(-num_users // blocks)
        return smallest, _kappa(theta, max(2 * largest - 3, 0))

    # (L - 1) e^(-theta (2 L - 3)) is largest at L = 1 + 1/(2 theta).
    most = max(num_users // 2, 1)
    near = min(int(num_users / (1.0 + 0.5 / theta)), most - 1)
    return max((cut(near + 1), cut(max(near, 1))), key=lambda each: (each[0] - 1) * each[1])


def _thinning(
    profile: LocalProfile, num_users: int, theta: float, distance: str
) -> tuple[list[AtomLaw], int]:
    """Return the laws of (B) with the blanket kappa omega, if there is one, and a block's users."""
    atoms = blanket_atoms(profile)
    if profile.delta0 > 0.0 or profile.epsilon0 > LARGEST_EPSILON0 or not atoms:
        return [], num_users
    stated = LocalProfile(epsilon0=profile.epsilon0, family=RandomizerFamily.OTHER, blanket=atoms)
    if stated_blanket.violated_hypothesis(stated) is not None:
        return [], num_users
    size, kappa = _block_of(distance, num_users, theta)
    if (size - 1) * kappa < _FEWEST_HIDING:
        return [], num_users
    laws = [
        AtomLaw(kappa * law.masses, law.ratios0 / kappa, law.ratios1 / kappa, accuracy=law.accuracy)
        for law in stated_blanket.dominating_laws(stated)
    ]
    return laws, size


_mallows = partial(registry.carried_over, source=_SOURCE, assumptions=MALLOWS_ASSUMPTIONS)


def grouped_epsilon(
    profile: LocalProfile,
    *,
    num_users: int,
    theta: float,
    distance: str,
    delta: float,
    with_lower: bool = True,
) -> Bound:
    """Bound the central epsilon of a collection whose reports go through a Mallows shuffle.

    Parameters
    ----------
    profile : LocalProfile
        The randomizer's law; ``LocalProfile(epsilon0=...)`` for any epsilon0-LDP randomizer.
    num_users : int
        Number n of honest users, 1 to 1e15. All of them are rows of the release.
    theta : float
        Parameter of the Mallows model, in [0, inf]; 0 shuffles uniformly, inf keeps the order.
    distance : {"kendall", "hamming", "cayley"}
        Rank distance of the Mallows model.
    delta : float
        Central delta, in [0, 1).
    with_lower : bool
        False saves the time for the lower end, which is then ``None``.

    Returns
    -------
    Bound
        Bound on epsilon in nats. ``upper`` errs upwards and is proved; ``lower`` errs downwards.
        The number does not depend on the groups, and holds for any.

    Raises
    ------
    ParameterError
        If an argument is out of range.
    OutOfRegimeError
        If delta is below the randomizer's delta0.

    Notes
    -----
    The smaller of the thinned result above and of epsilon0. Cost: a few calls of the accountant,
    tenths of a second for any n.

    Source: ours; docs/results/grouped.md.

    Examples
    --------
    >>> any_randomizer = LocalProfile(epsilon0=1.0)
    >>> asked = {"num_users": 10_000, "distance": "kendall", "delta": 1e-6}
    >>> round(grouped_epsilon(any_randomizer, theta=0.0, **asked).upper, 8)
    0.04320616
    >>> grouped_epsilon(any_randomizer, theta=1e-4, **asked).method
    'mallows-thinned'
    >>> grouped_epsilon(any_randomizer, theta=math.inf, **asked).upper <= 1.0
    True
    """
    theta = require_extended("theta", theta, "0 shuffles uniformly, inf does not shuffle")
    if distance not in MALLOWS_DISTANCES:
        raise ParameterError(f"distance = {distance!r} is not one of {MALLOWS_DISTANCES}")
    delta = require_delta(delta)
    n = require_at_least("num_users", num_users, 1)
    account = partial(registry.account_epsilon, profile, delta=delta)
    uniform = account(num_users=1 if math.isinf(theta) else n, with_lower=with_lower)
    if theta == 0.0:
        return uniform.assuming("theta = 0: the shuffle is uniform.")
    single = account(num_users=1, with_lower=False)
    found = [_mallows(single, method="local", upper=single.upper)]
    if delta > 0.0 and not math.isinf(theta):
        laws, size = _thinning(profile, n, theta, distance)
        if laws:
            extra = stated_blanket.STATED_BLANKET.assumptions if profile.blanket else ()
            upper = max(atom_epsilon_above(law, size, delta, profile.epsilon0) for law in laws)
            found.append(
                Bound(
                    lower=None,
                    upper=upper,
                    method="mallows-thinned",
                    source=_SOURCE,
                    assumptions=MALLOWS_ASSUMPTIONS + extra,
                )
            )
    return registry.least_over(found, uniform.lower)


# Assumptions of the numbers; a Bound repeats them because they are part of the claim.
DISPLACEMENT_ASSUMPTIONS = (
    "The adversary sees the reports with their noisy places, in no order that tells whose they "
    "are, and knows the public places and theta: none of them depends on the private values.",
    "Each report's noise is drawn from the stated law, secretly and independently of all reports.",
    "All n users are honest: each applies this randomizer once to one value, with fresh secret "
    "randomness.",
    "Neighbouring datasets differ in one user's value; who takes part is public.",
)

# Levels of the crowd near its mean, in standard deviations below; `tail_targets` has the others.
_NEAR = (0.4, 0.9)

# Largest share of the requested delta spent on crowds smaller than all levels.
_LOST = 1e-4
_SMALLEST_MISS = 1e-290

_ULP = math.ulp(1.0)


def crowd_with_mean(mean: float, *, delta: float) -> CrowdLaw | None:
    """Return the law of 1 + N for independent coins whose chances sum to ``mean`` or more.

    Sizes err downwards, misses upwards; None if the mean is below 1. ``delta`` is about the size of
    the central delta: sizes are chosen so that little of it is lost. Any value is safe.
    """
    mean = require_non_negative("mean", mean)
    smallest = min(max(_LOST * delta, _SMALLEST_MISS), 0.1)
    normal = [math.sqrt(-2.0 * math.log(each)) for each in tail_targets(smallest)[2:]]
    counts = {math.floor(mean - each * math.sqrt(mean)) for each in (*_NEAR, *normal)}
    levels = [(1 + count, _poisson_tail(count - 1, mean)) for count in counts if count >= 1]
    if mean >= 1.0:
        levels.append((2, _poisson_tail(0, mean)))
    return CrowdLaw.of(levels) if levels else None


def _poisson_tail(count: int, mean: float) -> float:
    """Return an upper bound on Pr[Poisson(mean) <= count], 0 <= count <= mean - 1, rounded up."""
    if count == 0:
        return min(math.exp(-min(mean, 700.0)) * (1.0 + 1e-12), 1.0)
    share = (count - mean) / mean
    height = mean * ((1.0 + share) * math.log1p(share) - share)
    # Differences are accurate to a few ulps of the numbers before them.
    height -= 8.0 * _ULP * (mean - count + 1.0)
    exponential = math.exp(-min(max(height, 0.0), 700.0))
    factor = 1.0 / (math.sqrt(2.0 * math.pi * count) * -share)
    return min(exponential * min(factor, 1.0) * (1.0 + 1e-12), 1.0)


_displaced = partial(registry.carried_over, source=_SOURCE, assumptions=DISPLACEMENT_ASSUMPTIONS)


def displaced_epsilon(
    profile: LocalProfile,
    *,
    num_users: int,
    expected_crowd: float,
    delta: float,
    with_lower: bool = True,
) -> Bound:
    """Bound the central epsilon of a collection whose reports are released at noisy places.

    Parameters
    ----------
    profile : LocalProfile
        The randomizer's law; ``LocalProfile(epsilon0=...)`` for any epsilon0-LDP randomizer.
    num_users : int
        Number n of honest users, 1 to 1e15. All of them are rows of the release.
    expected_crowd : float
        M in [0, n - 1], rounded down: for every victim v the sum over the others i of
        exp(-theta d(c_i, c_v)) is at least M. See `DisplacementShuffler.crowds_lower`.
    delta : float
        Central delta, in [0, 1).
    with_lower : bool
        False saves the time for the lower end, which is then ``None``.

    Returns
    -------
    Bound
        Bound on epsilon in nats, for every user. ``upper`` errs upwards and is proved;
        ``lower`` errs downwards. It does not depend on groups and alpha.

    Raises
    ------
    ParameterError
        If an argument is out of range.
    OutOfRegimeError
        If delta is below the randomizer's delta0.

    Notes
    -----
    Some twelve sizes of the crowd in each of some ten evaluations of delta: tenths of a second.

    Source: ours; docs/results/grouped.md has the proof.

    Examples
    --------
    >>> one = LocalProfile(epsilon0=1.0)
    >>> asked = {"num_users": 10_000, "delta": 1e-6}
    >>> round(displaced_epsilon(one, expected_crowd=9_999, **asked).upper, 8)  # uniform
    0.04320616
    >>> displaced_epsilon(one, expected_crowd=470.0, **asked).method
    'displaced/clones'
    >>> displaced_epsilon(one, expected_crowd=0.0, **asked).method
    'local'
    """
    delta = require_delta(delta)
    n = require_at_least("num_users", num_users, 1)
    mean = require_non_negative("expected_crowd", expected_crowd)
    if mean > n - 1:
        raise ParameterError(
            f"expected_crowd = {mean:g} is above {n - 1:,}, the number of other users"
        )
    account = partial(registry.account_epsilon, profile, delta=delta)
    uniform = account(num_users=n, with_lower=with_lower)
    single = account(num_users=1, with_lower=False)
    found = [_displaced(single, method="local", upper=single.upper)]
    if mean == n - 1:  # every chance is 1
        method = f"displaced/{uniform.method}"
        found = [_displaced(uniform, method=method, upper=uniform.upper)]
    elif delta > 0.0 and (law := crowd_with_mean(mean, delta=delta)) is not None:
        guess = account(num_users=law.sizes[0], with_lower=False)

        def delta_at(epsilon: float) -> float:
            how: Any = {"epsilon": epsilon, "with_lower": False}

            def conditional(size: int) -> float:
                return registry.account_delta(profile, num_users=size, **how).upper

            return crowd_delta(law, conditional, conditional(1))

        how = {"guess": guess.upper, "relative_tolerance": 1e-6}
        _, epsilon = last_above_first_below(delta_at, delta, 0.0, single.upper, **how)
        found.append(_displaced(guess, method=f"displaced/{guess.method}", upper=epsilon))
    return registry.least_over(found, uniform.lower)


_HINT = "give a number >= 0, such as 4"


def odds_factor(alpha: float) -> float:
    """Return e^alpha, the largest factor by which the odds of two values move; rounded up."""
    exponent = require_extended("alpha", alpha, _HINT)
    if exponent > _LARGEST_ODDS_EXPONENT:
        return math.inf
    return round_up(math.exp(exponent), operations=4) if exponent else 1.0


# Above this e^alpha is near the largest float.
_LARGEST_ODDS_EXPONENT = 709.0


def reidentification_bound(
    *, group_size: int, subset_size: int, epsilon0: float, alpha: float
) -> float:
    """Return an upper bound on the probability that an adversary finds most of a subset's reports.

    (*) above for k users inside a group of r >= 2 k, rounded up; given the adversary's whole
    knowledge of the values, so that it holds for every data set. `OutOfRegimeError` if k > r/2: the
    others then cannot replace the subset. At least as small as Theorem 4.2, and equal for k = 1.
    Cost: O(k) operations on exact integers of some k digits.
    """
    r = require_at_least("group_size", group_size, 2)
    remedy = "the subset is a part of the group"
    k = require_at_least("subset_size", subset_size, 1, r, remedy)
    if 2 * k > r:
        raise OutOfRegimeError(
            f"the re-identification bound needs subset_size <= group_size / 2 (arXiv:2106.06603v3, "
            f"Theorem 4.2), but subset_size = {k}, group_size = {r}; take a larger group"
        )
    most = sum(
        math.comb(k, hits) * math.comb(r - 2 * k, k - hits) for hits in range(k // 2 + 1, k + 1)
    )
    odds = Fraction(math.comb(r - k, k), most)
    # 1 / (1 + odds e^-(2 k epsilon0 + alpha)), in logarithms.
    exponent = require_extended("alpha", alpha, _HINT)
    loss = round_up(2.0 * k * require_non_negative("epsilon0", epsilon0) + exponent)
    # Logarithms of huge integers are finite even if their floats overflow.
    log_odds = math.log(odds.numerator) - math.log(odds.denominator)
    slack = 8.0 * math.ulp(math.log(odds.numerator) + 1.0)
    exponent = loss - log_odds + slack
    smaller = math.exp(-abs(exponent))
    return min(round_up((1.0 if exponent > 0.0 else smaller) / (1.0 + smaller)), 1.0)
