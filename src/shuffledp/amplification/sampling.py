"""Random samples: the curve of one shuffle of m users, carried over to the n they are drawn from.

Let M shuffle the reports of m users, and let A draw m of the n users uniformly, apply M to their
values and keep the sample secret. Let q = m / n. With delta_M a bound for every pair of
neighbours in either order, and epsilon >= 0,

    delta_A(epsilon') <= q delta_M(epsilon),   e^epsilon' = 1 + q (e^epsilon - 1).

Source: Balle, Barthe, Gaboardi 2018, arXiv:1807.01647v2, Theorem 2 (advanced joint convexity).

*Proof.* If the victim is not drawn the output has the law O for both values; if drawn, P and P'.
Write e = e^epsilon, a = e^epsilon' and b = a/e; as (1 - q)(1 - a) = -q e (1 - b),

    ((1 - q) O + q P) - a ((1 - q) O + q P') = q [P - e ((1 - b) O + b P')].

By convexity H(P, (1 - b) O + b P'; e) <= (1 - b) H(P, O; e) + b H(P, P'; e), and H(P, O; e) <=
delta_M(epsilon) too: giving a uniform one's place among m others to the victim makes P from O. The
other order is the same.

If only h of the n users are honest the adversary knows how many of them are drawn, k, at least j
and at most m; given that they are a uniform k of h. The bound q delta_M(epsilon) rises with q at
a given epsilon', and falls with the number of users: it is at most that of q = m / h and j users.

Every user takes part with probability q, by a coin of their own that nobody else sees.

A user who stays away sends no report, which the adversary counts like any other kind of report. So
taking part at random is one more local randomizer,

    R'_x = q R_x + (1 - q) (no report),

run by *all* n users, and every result for uniform shuffles applies to it. Its epsilon0 is that of
R, its delta0 is q times that of R. Not taking part is equally likely for all inputs, so the blanket
and all explicit data of R turn into those of R' by one more neutral atom:

    atoms (m; r0, r1) become (q m; r0, r1), and (1 - q; 1, 1) is added.

For "any randomizer" the clone law stands in for the blanket. It dominates the law of every R in
convex order, and mixing both with the same atom of the same mass keeps that order.

The blanket of a chance below 1e-200 is that of 1e-200: dropping reports at random turns the one
randomizer into the other, and no float underflows. Total variation is at most q (`local`).

Source: ours; (B) of docs/results/kernel.md for the law R'.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from shuffledp.amplification.atom_law import mirrored
from shuffledp.amplification.clones_and_families import blanket_atoms
from shuffledp.amplification.lower_bounds import attack_atoms
from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure, round_up
from shuffledp.core.profile import (
    BlanketAtom,
    LocalProfile,
    RandomizerFamily,
    outward_atoms,
    outward_pairs,
)

# From here on exponentials are written so that they cannot overflow.
_LARGE = 600.0

# Relative error of the few library calls below, with room.
_ROUNDING = 16.0 * math.ulp(1.0)


def sampling_fraction(num_users: int, sampled_from: int) -> float:
    """Return q = m / n in (0, 1], rounded up, where m of n users are drawn; exactly 1 for all."""
    drawn = require_at_least("num_users", num_users, 1)
    population = require_at_least("sampled_from", sampled_from, 1)
    if population < drawn:
        raise ParameterError(
            f"sampled_from = {population} is below num_users = {drawn}: num_users counts the users "
            "drawn, sampled_from all those among whom they are drawn"
        )
    return 1.0 if drawn == population else min(math.nextafter(drawn / population, 2.0), 1.0)


def amplified_epsilon(epsilon: float, fraction: float) -> float:
    """Return ln(1 + q (e^epsilon - 1)), rounded up: epsilon of the sampled release."""
    if fraction == 1.0 or epsilon in (0.0, math.inf):
        return epsilon
    if epsilon <= _LARGE:
        found = math.log1p(fraction * math.expm1(epsilon))
    else:
        found = epsilon + math.log(fraction + (1.0 - fraction) * math.exp(-epsilon))
    return min(round_up(found, operations=16), epsilon)


def inner_epsilon(epsilon: float, fraction: float) -> float:
    """Return ln(1 + (e^epsilon - 1) / q), rounded down: the inverse of `amplified_epsilon`.

    Errs downwards, hence a divergence there errs upwards.
    """
    if fraction == 1.0 or epsilon == 0.0:
        return epsilon
    if epsilon <= _LARGE and (growth := math.expm1(epsilon) / fraction) < math.inf:
        found = math.log1p(growth)
    else:
        found = epsilon + math.log1p((fraction - 1.0) * math.exp(-epsilon)) - math.log(fraction)
    return max(found * (1.0 - _ROUNDING), epsilon)


def subsampled_curve(curve: HockeyStickCurve, fraction: float) -> HockeyStickCurve:
    """Return the curve of a release whose users are a random part of all."""
    if fraction == 1.0:
        return curve

    def scaled(divergence: Callable[[float], Enclosure], epsilon: float) -> Enclosure:
        upper = divergence(inner_epsilon(epsilon, fraction)).upper
        if upper > 0.0:  # never 0 unless it was
            upper = min(max(round_up(upper * fraction, operations=2), 1e-300), 1.0)
        return Enclosure(0.0, upper)

    return replace(
        curve,
        forward=partial(scaled, curve.forward),
        backward=partial(scaled, curve.backward),
        highest=amplified_epsilon(curve.highest, fraction),
    )


# Masses of smaller chances would lose their relative accuracy to underflow.
_LEAST_CHANCE = 1e-200


def participating(profile: LocalProfile, chance: float) -> LocalProfile:
    """Return the profile of a randomizer that each user runs with a chance in (0, 1] only."""
    if chance == 1.0:
        return profile
    channel = profile.channel
    if channel is not None:
        channel = partial(_thinned_channel, channel, Fraction(chance))
    delta0 = profile.delta0 and min(round_up(chance * profile.delta0), profile.delta0)
    sent = min(round_up(chance * profile.participation), 1.0)
    return replace(
        profile,
        delta0=min(delta0, sent),
        participation=sent,
        family=RandomizerFamily.OTHER,
        domain_size=None,
        blanket=_thinned_blanket(blanket_atoms(profile), max(chance, _LEAST_CHANCE)),
        attack=_thinned(attack_atoms(profile), chance),
        channel=channel,
    )


def _thinned_blanket(atoms: tuple[BlanketAtom, ...], chance: float) -> tuple[BlanketAtom, ...]:
    """Return the same law rounded outward, if all pairs are symmetric; else to nearest.

    Where users hardly ever stay away, the atom of no report may have too little mass to lend:
    then all are taken to take part.
    """
    if not atoms or Counter(atoms) != Counter(mirrored(atoms)):
        return _thinned(atoms, chance)
    exact = Fraction(chance)
    sent = [
        (exact * Fraction(atom.mass), Fraction(atom.ratio0), Fraction(atom.ratio1))
        for atom in atoms
    ]
    sent.append((1 - exact, Fraction(1), Fraction(1)))
    ratios = {(atom.ratio0, atom.ratio1) for atom in atoms if atom.ratio0 != atom.ratio1}
    if len(ratios) == 2 and 1.0 in next(iter(ratios)):  # one pair and its mirror image
        return outward_atoms(sent)
    return outward_pairs(sent) or atoms


def _thinned(atoms: tuple[BlanketAtom, ...], chance: float) -> tuple[BlanketAtom, ...]:
    """Return the law of a report that is sent with this chance only; an empty law stays empty."""
    if not atoms:
        return ()
    sent = [replace(atom, mass=chance * atom.mass) for atom in atoms]
    return (*sent, BlanketAtom(mass=1.0 - chance, ratio0=1.0, ratio1=1.0))


def _thinned_channel(
    channel: Callable[[], object], chance: Fraction
) -> tuple[tuple[Fraction, ...], ...]:
    """Return the matrix with one more output, no report, in exact fractions."""
    rows: Any = channel()
    return tuple((*(chance * Fraction(entry) for entry in row), 1 - chance) for row in rows)
