"""Randomize, then shuffle by a Mallows model: the central guarantee of the release.

All n users run one randomizer; z'_j = y'_pi(j) along a public order of the users, and pi has a
Mallows law with the parameter theta. Two results, of which the smaller counts, and epsilon0.

*Thinned.* Cut the places into blocks, each of L or fewer, L' the smallest; let b bound by how much
exchanging two entries of pi inside a block can change the distance (Cayley 1, Hamming 2, Kendall
2 L - 3), and kappa = e^(-theta b). Then (B) holds for L' users and the blanket kappa omega.

*Window.* For w consecutive places with the victim's (for Hamming and Cayley any w users) that cost
alpha_w = theta Delta_w: if uniform shuffling of w users is (eps, delta)-private, the release is
(eps + alpha_w, M delta)-private, where ln M is at most theta times the mean distance of a uniform
permutation of w items.

What no analysis of a uniform shuffle of all n can go below is unavoidable here too.

Source: ours; docs/results/grouped.md has the proofs.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from shuffledp.amplification.atom_law import SMALLEST_DELTA, AtomLaw, atom_epsilon_above
from shuffledp.amplification.clones_and_families import blanket_atoms
from shuffledp.amplification.registry import account_epsilon, carried_over, least_over
from shuffledp.amplification.stated_blanket import (
    STATED_BLANKET,
    dominating_laws,
    violated_hypothesis,
)
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least, require_delta, require_extended
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.core.profile import LARGEST_EPSILON0, LocalProfile, RandomizerFamily


class _Distance(NamedTuple):
    """What the results need to know of a rank distance, for w consecutive places."""

    widest: Callable[[int], int]  # Delta_w
    mean: Callable[[int], float]  # at least the mean of a uniform permutation
    exchange: int | None  # b for a block of everybody; None where it grows with the block


_DISTANCES = {
    "kendall": _Distance(lambda w: w * (w - 1) // 2, lambda w: 0.25 * w * (w - 1), None),
    "hamming": _Distance(lambda w: w if w >= 2 else 0, lambda w: w - 1.0, 2),
    # the harmonic number is at least ln(w + 1)
    "cayley": _Distance(lambda w: w - 1, lambda w: w - math.log(w + 1.0), 1),
}
MALLOWS_DISTANCES = tuple(_DISTANCES)

# What the numbers rest on; a Bound repeats it because it is part of the claim.
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

# A thinned crowd smaller than this hides nobody; a mass below it loses digits to underflow.
_FEWEST_HIDING = 1e-2

# Relative error of e^(-theta b), with room; kappa is rounded down by it.
_ROUNDING = 1e-14

# Beyond this e^-x underflows; nothing is left of a crowd long before.
_LARGEST_EXPONENT = 700.0

# Growth of the windows that are tried: a finer grid gains less than one part in a hundred.
_WINDOW_GROWTH = 1.5


def _window(distance: str, size: int, theta: float) -> tuple[float, float]:
    """Return alpha_w = theta Delta_w and ln M, both rounded up."""
    alpha = round_up(theta * _DISTANCES[distance].widest(size), operations=4)
    return alpha, min(round_up(theta * _DISTANCES[distance].mean(size)), alpha)


def _kappa(theta: float, exchange: int) -> float:
    """Return e^(-theta b), rounded down."""
    exponent = theta * exchange
    if exponent > _LARGEST_EXPONENT:
        return 0.0
    return math.exp(-exponent) * (1.0 - _ROUNDING * (1.0 + exponent))


def _block_of(distance: str, num_users: int, theta: float) -> tuple[int, float]:
    """Return the smallest block's size and kappa, rounded down, of the best cut found."""
    exchange = _DISTANCES[distance].exchange
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
    if violated_hypothesis(stated) is not None:
        return [], num_users
    size, kappa = _block_of(distance, num_users, theta)
    if (size - 1) * kappa < _FEWEST_HIDING:
        return [], num_users
    laws = [
        AtomLaw(kappa * law.masses, law.ratios0 / kappa, law.ratios1 / kappa, accuracy=law.accuracy)
        for law in dominating_laws(stated)
    ]
    return laws, size


_renamed = partial(carried_over, source=_SOURCE, assumptions=MALLOWS_ASSUMPTIONS)


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
        Of the Mallows model, in [0, inf]; 0 shuffles uniformly, inf leaves the order alone.
    distance : {"kendall", "hamming", "cayley"}
        Of the Mallows model.
    delta : float
        Central failure probability, in [0, 1).
    with_lower : bool
        False saves the time for the lower end, which is then ``None``.

    Returns
    -------
    Bound
        On epsilon in nats. ``upper`` errs upwards and is proved; ``lower`` errs downwards.
        The groups do not enter: the number holds whatever they are.

    Raises
    ------
    ParameterError
        If an argument is out of range.
    OutOfRegimeError
        If delta is below the randomizer's delta0, and its channel is not known.

    Notes
    -----
    The smallest of the thinned and window results above and of epsilon0. Cost: a few calls of the
    accountant, tenths of a second whatever n.

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
    if theta == 0.0:
        bound = account_epsilon(profile, num_users=n, delta=delta, with_lower=with_lower)
        uniformly = "theta = 0: the shuffle is uniform."
        return replace(bound, assumptions=(*bound.assumptions, uniformly))
    crowd = 1 if math.isinf(theta) else n
    uniform = account_epsilon(profile, num_users=crowd, delta=delta, with_lower=with_lower)
    single = account_epsilon(profile, num_users=1, delta=delta, with_lower=False)
    found = [_renamed(single, method="local", upper=single.upper)]
    if delta > 0.0 and not math.isinf(theta):
        laws, size = _thinning(profile, n, theta, distance)
        if laws:
            extra = STATED_BLANKET.assumptions if profile.blanket else ()
            upper = max(atom_epsilon_above(law, size, delta, profile.epsilon0) for law in laws)
            held: dict[str, Any] = {"source": _SOURCE, "assumptions": MALLOWS_ASSUMPTIONS + extra}
            found.append(Bound(lower=None, upper=upper, method="mallows-thinned", **held))
        size = n
        while size >= 2:
            alpha, log_factor = _window(distance, size, theta)
            inner = delta * math.exp(-log_factor) * (1.0 - _ROUNDING)
            # A uniform shuffle of everybody, and so of each window, has no less than this.
            may_win = alpha + uniform.upper < min(each.upper for each in found)
            if may_win and inner > max(profile.delta0, SMALLEST_DELTA):
                bound = account_epsilon(profile, num_users=size, delta=inner, with_lower=False)
                method, total = f"mallows-window/{bound.method}", round_up(bound.upper + alpha)
                found.append(_renamed(bound, method=method, upper=total))
            size = min(size - 1, int(size / _WINDOW_GROWTH))
    return least_over(found, uniform.lower)
