"""``LocalProfile``: the privacy law of a randomizer, and all that the accountant sees of it.

``MonitoringProfile`` is its counterpart for collections over time.

Mechanisms and accounting never import each other; a frozen profile is the window between them.
"""

from collections.abc import Callable
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
