"""Every user takes part with probability q, by a coin of their own that nobody else sees.

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

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from shuffledp.accounting.amplification.pair_atoms import attack_atoms, blanket_atoms
from shuffledp.core.checks import require_positive
from shuffledp.core.errors import ParameterError
from shuffledp.core.exact_atoms import outward_atoms, outward_pairs
from shuffledp.core.numerics.rounding import round_up
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

# Masses of smaller chances would lose their relative accuracy to underflow.
_LEAST_CHANCE = 1e-200


def participating(profile: LocalProfile, probability: float) -> LocalProfile:
    """Return the profile of a randomizer that each user runs with some probability only.

    Parameters
    ----------
    profile : LocalProfile
        The law of a report that is sent.
    probability : float
        Chance q that a user takes part, in (0, 1], by independent secret coins.

    Returns
    -------
    LocalProfile
        To be accounted with the number of *all* honest users who toss a coin.

    Raises
    ------
    ParameterError
        If the probability is out of range.

    Examples
    --------
    >>> thinned = participating(LocalProfile(epsilon0=1.0), 0.25)
    >>> thinned.blanket[-1]
    BlanketAtom(mass=0.75, ratio0=1.0, ratio1=1.0)
    """
    chance = require_positive("participation", probability)
    if chance > 1.0:
        raise ParameterError(f"participation = {probability} is above 1: it is a probability")
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

    Where users hardly ever stay away, the atom of no report may have too little to give: then all
    take part.
    """
    ratios = {(atom.ratio0, atom.ratio1) for atom in atoms if atom.ratio0 != atom.ratio1}
    held = Counter(atoms)
    mirrored = Counter(
        replace(atom, ratio0=atom.ratio1, ratio1=atom.ratio0) for atom in held.elements()
    )
    if not atoms or held != mirrored:
        return _thinned(atoms, chance)
    exact = Fraction(chance)
    sent = [
        (exact * Fraction(atom.mass), Fraction(atom.ratio0), Fraction(atom.ratio1))
        for atom in atoms
    ]
    sent.append((1 - exact, Fraction(1), Fraction(1)))
    if len(ratios) == 2 and 1.0 in next(iter(ratios)):  # one pair and its mirror image
        return outward_atoms(sent)
    return outward_pairs(sent) or atoms


def _thinned(atoms: tuple[BlanketAtom, ...], chance: float) -> tuple[BlanketAtom, ...]:
    """Return the law of a report that is sent with this chance only; nothing stays nothing."""
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
