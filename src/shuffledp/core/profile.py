"""``LocalProfile``: all that a randomizer tells the accountant, and the only thing that crosses.

Mechanisms and accounting never import each other; a frozen profile is the window between them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from shuffledp.core.checks import require_at_least, require_delta, require_extended
from shuffledp.core.errors import ParameterError

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
        Local failure probability; 0 for pure randomizers.
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
        set_field = partial(object.__setattr__, self)
        set_field("epsilon0", require_extended("epsilon0", self.epsilon0, _HINT))
        set_field("delta0", require_delta(self.delta0, name="delta0"))
        if not self.delta0 <= self.participation <= 1.0:
            raise ParameterError(
                f"participation = {self.participation} is not in [delta0 = {self.delta0}, 1]"
            )
        if self.family not in list(RandomizerFamily):
            raise ParameterError(
                f"family = {self.family!r} is not one of {', '.join(RandomizerFamily)}"
            )
        set_field("family", RandomizerFamily(self.family))
        if self.domain_size is not None:
            size = require_at_least("domain_size", self.domain_size, 2, _LARGEST_DOMAIN)
            set_field("domain_size", size)
        if self.family is RandomizerFamily.K_RANDOMIZED_RESPONSE and self.domain_size is None:
            raise ParameterError("domain_size is needed for k-RR: pass the number of answers k")
