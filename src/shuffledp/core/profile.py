"""``LocalProfile``: the privacy law of a randomizer, and all that the accountant sees of it.

``MonitoringProfile`` is its counterpart for collections over time.

Mechanisms and accounting never import each other; a frozen profile is the window between them.

Randomizers with rational probabilities round the exact atoms of their blanket with `outward_atoms`
or `outward_pairs`, so that the bound (B) of the floats, taken as exact numbers, is at least that of
the exact law, at every number of users and epsilon >= 0; the error is a few units in the last place
of each mass and ratio. The proofs there write p = e^epsilon0, e = e^epsilon; *spread*, *favour* and
*widen* are the steps of `shuffledp.amplification.stated_blanket`, none of which lowers (B). *Users
who stay away* add an atom (1 - q; 1, 1) and multiply masses by q, exactly.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from shuffledp.core.checks import (
    require_at_least,
    require_delta,
    require_extended,
    require_non_negative,
    set_fields,
)
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import float_above, float_below

_LARGEST_DOMAIN = 10**15
_HINT = "give the local loss in nats, inf for values without local noise"

#: Above this epsilon0 no batch of at most 1e15 users amplifies privacy: the probability that even
#: one other user sends a report that hides the victim's is below 2e15 e^-200 = 3e-72. Squares of
#: e^epsilon0 are still finite doubles below it.
LARGEST_EPSILON0 = 200.0


class RandomizerFamily(StrEnum):
    """Families for which a sharper analysis than "any epsilon0-LDP randomizer" may exist.

    ``ANY`` stands for the whole class; ``OTHER`` for one particular randomizer without a family of
    its own, of which nothing is known but its epsilon0 and, if it is stated, its blanket.
    """

    ANY = "any"
    K_RANDOMIZED_RESPONSE = "k-rr"
    SYMMETRIC_UNARY = "symmetric-unary"
    OPTIMIZED_UNARY = "optimized-unary"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlanketAtom:
    """An atom of the privacy blanket omega: a mass of reports that share two likelihood ratios.

    Parameters
    ----------
    mass : float
        Probability that a report is drawn from this part of the blanket, in (0, 1].
    ratio0, ratio1 : float
        ``R_x1 / omega`` and ``R_x1' / omega`` there, each at least 1 where omega = inf R.

    Notes
    -----
    In `LocalProfile.attack` omega is the law of a third input, and ratios may be below 1.
    """

    mass: float
    ratio0: float
    ratio1: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalProfile:
    """The privacy law of a local randomizer, as the accountant sees it.

    Parameters
    ----------
    epsilon0 : float
        Local privacy loss in nats, of the exact rational law that is drawn; rounded up. ``inf``
        for reports that are the values themselves, which only dummies can hide.
    delta0 : float
        Local delta; 0 for pure randomizers.
    participation : float
        Chance, in [delta0, 1], that a report is sent at all, by a coin that ignores the value.
    family : RandomizerFamily
        Selects sharper results; ``ANY`` uses only ``epsilon0``.
    domain_size : int or None
        Number of possible inputs; ``None`` where unbounded or unknown.
    blanket : tuple of BlanketAtom
        Law of the largest blanket for the worst pair; the mass missing from 1 is outside it.
        Empty where the family has none on record. Randomizers with rational probabilities round it
        outward: no bound of the stated floats is below that of the exact law.
    attack : tuple of BlanketAtom
        Law of the likelihood ratios of a pair of inputs to the law of the input that all *other*
        users hold: explicit data, from which lower ends are computed. Masses sum to 1, and both
        ratios have mean 1. Reports may have been merged. Empty where none is on record.
    channel : callable, optional
        Returns the channel matrix, rows inputs and columns outputs, as exact fractions. For
        small domains only, since it is computed on demand.

    Raises
    ------
    ParameterError
        If a number is NaN, negative or out of range.
    """

    epsilon0: float
    delta0: float = 0.0
    participation: float = 1.0
    family: RandomizerFamily = RandomizerFamily.ANY
    domain_size: int | None = None
    blanket: tuple[BlanketAtom, ...] = ()
    attack: tuple[BlanketAtom, ...] = ()
    channel: Callable[[], object] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        epsilon0 = require_extended("epsilon0", self.epsilon0, _HINT)
        set_fields(self, epsilon0=epsilon0, delta0=require_delta(self.delta0, name="delta0"))
        if not self.delta0 <= self.participation <= 1.0:
            raise ParameterError(
                f"participation = {self.participation} is not in [delta0 = {self.delta0}, 1]"
            )
        if self.family not in list(RandomizerFamily):
            raise ParameterError(
                f"family = {self.family!r} is not one of {', '.join(RandomizerFamily)}"
            )
        set_fields(self, family=RandomizerFamily(self.family))
        if self.domain_size is not None:
            size = require_at_least("domain_size", self.domain_size, 2, _LARGEST_DOMAIN)
            set_fields(self, domain_size=size)
        if self.family is RandomizerFamily.K_RANDOMIZED_RESPONSE and self.domain_size is None:
            raise ParameterError("domain_size is needed for k-RR: pass the number of answers k")


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoringProfile:
    """The privacy law of a client that reports on a changing value, as the accountant sees it.

    A client draws one level of the dyadic tree over the periods and reports a sign at the end of
    each node of that level: a uniform sign where its value did not change, the change times a
    random sign where it did. The law of those random signs is what this profile describes.

    Parameters
    ----------
    protocol : str
        Name of the law of the signs, for example ``"predrawn-signs"``.
    epsilon0 : float
        Local privacy loss, in nats, of everything that a user ever reports; rounded up.
    max_changes : int
        k: changes of the value that a client follows, at least 1.
    num_levels : int
        L: levels of the tree, of which a client draws one uniformly; at least 1.
    sign_correlations : tuple of Fraction
        r_i, exactly: the mean of the product of i different signs. r_0 = 1; r_1 is the gap;
        omitted ones, up to r_k, are 0.
    uniform_share : Fraction
        The least density of a user's whole set of reports relative to uniform reports, exactly:
        with that probability a user's reports can be taken to be uniform, whatever the value did.
    alternating : bool
        Whether nonzero increments alternate in sign and begin with +, as for a bit that
        starts at 0 do. ``False`` assumes nothing.
    changing_share : float
        Upper bound on the share of a node's public columns that show a change of the value, in
        (0, 1]: 1 for a bit and for sets, 1/2 for Hadamard columns, 2 / domain_size for one a value.

    Raises
    ------
    ParameterError
        If a number is NaN or out of range.

    Examples
    --------
    >>> profile = MonitoringProfile(
    ...     protocol="sampled-change", epsilon0=1.1, max_changes=2, num_levels=4,
    ...     sign_correlations=(Fraction(1), Fraction(1, 4)), uniform_share=Fraction(1, 2),
    ...     alternating=True)
    >>> profile.gap, profile.correlation(2)
    (0.25, Fraction(0, 1))
    """

    protocol: str
    epsilon0: float
    max_changes: int
    num_levels: int
    sign_correlations: tuple[Fraction, ...]
    uniform_share: Fraction
    alternating: bool
    changing_share: float = 1.0

    def __post_init__(self) -> None:
        set_fields(
            self,
            epsilon0=require_non_negative("epsilon0", self.epsilon0),
            max_changes=require_at_least("max_changes", self.max_changes, 1),
            num_levels=require_at_least("num_levels", self.num_levels, 1),
        )
        _require_correlations(self.sign_correlations, self.max_changes)
        if not 0 <= self.uniform_share <= 1:
            raise ParameterError(
                f"uniform_share = {float(self.uniform_share)} is not in [0, 1]: it is a probability"
            )
        if not 0.0 < self.changing_share <= 1.0:  # NaN fails
            raise ParameterError(
                f"changing_share = {self.changing_share} is not in (0, 1]: give the largest share "
                "of the columns that one change of the value may change, or 1"
            )

    @property
    def gap(self) -> float:
        """r_1, the mean of a sign, rounded to the nearest float; exact in `sign_correlations`."""
        return float(self.correlation(1))

    def correlation(self, order: int) -> Fraction:
        """Return r_i, the mean of the product of ``order`` different signs, exactly.

        Parameters
        ----------
        order : int
            i >= 0. Beyond the correlations on record the answer is 0.

        Returns
        -------
        Fraction
            In [-1, 1].
        """
        order = require_at_least("order", order, 0)
        return self.sign_correlations[order] if order < len(self.sign_correlations) else Fraction(0)


def _require_correlations(correlations: tuple[Fraction, ...], max_changes: int) -> None:
    """Raise unless r_0 = 1, r_1 >= 0, all lie in [-1, 1], and there are no more than r_k."""
    is_counted = 1 <= len(correlations) <= max_changes + 1 and correlations[0] == 1
    is_positive = min(correlations[1:2], default=0) >= 0
    if not (is_counted and is_positive and all(-1 <= each <= 1 for each in correlations)):
        raise ParameterError(
            f"sign_correlations has {len(correlations)} entries: give r_0 = 1 and at most "
            f"max_changes = {max_changes} more in [-1, 1]; where r_1 < 0, exchange the two signs"
        )


LONGEST_POWER = 64
"""Largest power in masses: the exact number takes that many words."""

Number = Fraction | float
ExactAtom = tuple[Fraction, Fraction | int, Fraction | int]
"""Mass and two likelihood ratios."""


def mirrored(mass: Fraction, ratio0: Fraction | int, ratio1: Fraction | int) -> list[ExactAtom]:
    """Return an atom and its mirror image."""
    return [(mass, ratio0, ratio1), (mass, ratio1, ratio0)]


def rounded_atoms(atoms: Iterable[tuple[Number, Number, Number]]) -> tuple[BlanketAtom, ...]:
    """Return atoms of explicit data, if they have a mass, to the nearest floats."""
    return tuple(
        BlanketAtom(mass=float(mass), ratio0=float(ratio0), ratio1=float(ratio1))
        for mass, ratio0, ratio1 in atoms
        if mass > 0
    )


def outward_atoms(atoms: Iterable[ExactAtom]) -> tuple[BlanketAtom, ...]:
    """Return the atoms of a blanket rounded so that no bound falls, leaving out those without mass.

    Atoms (mass; ratio, 1) that distinguish the inputs of the pair must have mirror images of the
    same mass. They become one pair of the largest ratio: give ratios that hardly differ.

    *One pair* (a; p, 1), (a; 1, p) beside neutral atoms (m; w, w) is rounded to floats a' <= a,
    p' a' >= p a, m' <= m and w' <= w. *Proof.* Spread and favour neutral atoms. Spread the pair to
    (a'; h, l), h = p a/a', l = a/a'. It remains that lowering l to 1 and raising h to p' do not
    lower (B). Given B pair reports and the weight Z >= 0 of all others, let H of the former favour
    the first input: S = H (h - e l) - (B - H)(e h - l) - (e - 1) Z > 0 just if H >= m. With
    T = Pr[H >= m] and b = Pr[Bin(B, 1/2) = m],

        0 <= E[S_+ | B, Z] = (h - l)(1 + e) m b / 2 - (e - 1) ((h + l) B / 2 + Z) T,

    hence (1 + e) m b >= (e - 1) B T, so that the derivative ((1 + e) m b - (e - 1) B T)/2 of
    E[S_+] in h is >= 0, and -((1 + e) m b + (e - 1) B T)/2, the one in l, is <= 0.

    Pairs (a_j; p_j, 1) that differ by rounding only first become one of ratio p = max p_j and mass
    sum a_j (p_j + 1)/(p + 1), by spreading and widening.
    """
    listed = [(mass, ratio0, ratio1) for mass, ratio0, ratio1 in atoms if mass > 0]
    gaining = [(mass, Fraction(high)) for mass, high, low in listed if high > low]
    found = []
    if gaining:
        widest = max(high for _, high in gaining)
        exact = sum((m * (high + 1) for m, high in gaining), start=Fraction(0)) / (widest + 1)
        mass = float_below(exact)
        ratio = float_above(widest * exact / Fraction(mass))
        found = [(mass, ratio, 1.0), (mass, 1.0, ratio)]
    for share, ratio0, ratio1 in listed:
        if ratio0 == ratio1:
            weight = float_below(Fraction(ratio0))
            found.append((float_below(share), weight, weight))
    return rounded_atoms(found)


def outward_pairs(atoms: Iterable[ExactAtom]) -> tuple[BlanketAtom, ...]:
    """Return atoms rounded so that no bound falls, where several pairs distinguish the inputs.

    Every (mass; high, low) must have a mirror image of the same mass. The weight that a pair gains
    is taken from a neutral atom no heavier; if none has enough, no atoms are returned.

    *Several pairs* (a_j; h_j, l_j), (a_j; l_j, h_j). Take floats H_j >= h_j and L_j <= l_j with
    H_j + L_j >= h_j + l_j, and a_j' >= a_j (h_j + l_j)/(H_j + L_j); for each pair lower the mass of
    a neutral atom of weight w <= (H_j + L_j)/2 by (a_j' (H_j + L_j) - a_j (h_j + l_j))/w; round
    neutral masses and weights down. *Proof.* Spread the pair, and the mass taken, to the weight
    (H_j + L_j)/2 and widen both; the rest is favour.
    """
    listed = [(mass, Fraction(high), Fraction(low)) for mass, high, low in atoms if mass > 0]
    left: dict[Fraction, Fraction] = {}
    for mass, high, low in listed:
        if high == low:
            left[high] = left.get(high, Fraction(0)) + mass
    found = []
    for mass, high, low in listed:
        if high > low:
            ratio0, ratio1 = _wider(high, low)
            weight = Fraction(ratio0) + Fraction(ratio1)
            more = float_above(mass * (high + low) / weight)
            found += [(more, ratio0, ratio1), (more, ratio1, ratio0)]
            lender = max(
                (each for each in left if 2 * each <= weight),
                key=lambda each: each * left[each],
                default=None,
            )
            if lender is None:
                return ()
            left[lender] -= (Fraction(more) * weight - mass * (high + low)) / lender
    if any(mass < 0 for mass in left.values()):
        return ()
    found += [(float_below(m), float_below(w), float_below(w)) for w, m in left.items()]
    return rounded_atoms(found)


def _wider(high: Fraction, low: Fraction) -> tuple[float, float]:
    """Return floats around both ratios, whose mean is no smaller."""
    ratio0, ratio1 = float_above(high), float_below(low)
    while Fraction(ratio0) + Fraction(ratio1) < high + low:
        ratio0 = math.nextafter(ratio0, math.inf)
    return ratio0, ratio1
