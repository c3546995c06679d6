"""Splitting: each user reports all of their answers, each at a part of the privacy loss."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_non_negative
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.exact_atoms import outward_pairs, rounded_atoms
from shuffledp.core.numerics.enclosure import float_above
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily
from shuffledp.core.reports import Counts, Reports
from shuffledp.randomizers.category_randomizer import CategoryRandomizer
from shuffledp.randomizers.checks import fingerprint_of
from shuffledp.randomizers.registry import make_randomizer
from shuffledp.randomizers.sets.answers import NO_ANSWER, require_answers
from shuffledp.randomizers.sets.set_randomizer import (
    SetRandomizer,
    require_own,
    require_set_size,
)

# Beyond this many atoms the blanket is left out, and the accountant knows epsilon0 only; so it is
# where ratios are too large for floats.
_MOST_ATOMS = 1024
_LARGEST_LOSS = 700.0

# More than what rounding to floats may have taken off a mass or ratio of the base.
_RAISED = 1 + Fraction(1, 2**48)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitAnswers(SetRandomizer):
    """Fill up to s answers with dummies, and report each of the s at epsilon0 / s.

    Parameters
    ----------
    base_name : str
        Name of the base, as in ``make_randomizer``.
    k : int
        Number of categories, in [2, 2^32 - 2].
    max_answers : int
        The most answers s that a user may hold, in [1, k].
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf), of the whole report. The attribute of
        the same name is s times the base's exact loss, rounded up, which is at most that.

    Attributes
    ----------
    base : CategoryRandomizer
        The base, of k + 1 categories, at epsilon0 / s.
    fingerprint : str
        Name of the exact law, carried by its reports.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or no randomizer has that name.

    Notes
    -----
    Source: basic composition (Dwork, Roth 2014, Theorem 3.14): two sets may differ in all s slots,
    which are randomized independently. A row of s reports of the base is *one* report, and is
    shuffled as one: nothing here claims what shuffling the slots apart would give.

    A category that a user holds has the support p + (s - 1) q of one report on average, another
    one s q. `SampledAnswers` has the variance of both, and says which is better: nearly always
    sampling.

    Slots are in falling order of the answers, dummies last; the order carries nothing else. A
    report is one row of s reports of the base, one after the other.

    Cost: s times that of the base.

    Examples
    --------
    >>> randomizer = SplitAnswers(base_name="k-rr", k=4, max_answers=2, epsilon0=60.0)
    >>> 2 * randomizer.base.epsilon0 == randomizer.epsilon0 <= 60.0
    True
    >>> randomizer.randomize(np.array([[3, 1], [-1, 3]]), Entropy.from_seed(1)).data.tolist()
    [[3, 1], [3, 4]]
    """

    base_name: str
    k: int
    max_answers: int
    epsilon0: float
    base: CategoryRandomizer = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        k, max_answers = require_set_size(self.k, self.max_answers)
        loss = require_non_negative("epsilon0", self.epsilon0)
        # Twice, so that the law rebuilt from the loss that it states is the same: as in `settle`.
        for _ in range(2):
            each = _share_lower(loss, max_answers)
            base = make_randomizer(self.base_name, k=k + 1, epsilon0=each)
            loss = _sum_upper(base.epsilon0, max_answers)
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "max_answers", max_answers)
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "epsilon0", loss)
        fingerprint = fingerprint_of(self.name, base=base.fingerprint, k=k, max_answers=max_answers)
        object.__setattr__(self, "fingerprint", fingerprint)

    @property
    def name(self) -> str:
        """``"split:"`` and the base's name."""
        return f"split:{self.base_name}"

    @property
    def num_slots(self) -> int:
        """As many as ``max_answers``."""
        return self.max_answers

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Chance that a slot supports its own answer, and that it supports another category.

        Rounded to the nearest floats.
        """
        return self.base.support_probabilities

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the loss, and the product of the slots' blankets.

        Notes
        -----
        The product of s times the base's blanket lies below the law of every set. The worst pair
        of sets differs in every slot: where a slot has the same answer in both, its two ratios
        are one variable R; where not, they are two with the law of R each, if the base treats all
        categories alike. The hockey-stick terms are convex in c0 ratio0 - c1 ratio1, c0, c1 >= 0,
        so submodular in both ratios, and among all couplings of given marginals equal ratios make
        the expectation of those least (Tchen 1980). Products are
        rounded so that no bound falls, unless nearly all reports tell a pair apart (see
        `_product`), and left out altogether where there would be more than 1024 atoms.
        """
        blanket = self.base.profile.blanket if self.epsilon0 <= _LARGEST_LOSS else ()
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=_product(blanket, self.max_answers) if blanket else (),
        )

    def randomize(self, values: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return the base's reports on all answers of each set. See `SetRandomizer`."""
        answers = require_answers(values, k=self.k, max_answers=self.max_answers)
        codes = np.where(answers == NO_ANSWER, self.k, answers)
        slots = self.base.randomize(codes.reshape(-1), entropy).data
        width = self.max_answers * int(np.prod(slots.shape[1:], dtype=np.int64))
        return Reports(data=slots.reshape(answers.shape[0], width), fingerprint=self.fingerprint)

    def aggregate(self, reports: Reports) -> Counts:
        """Return how many slots of reports support each category. See `SetRandomizer`."""
        require_own(reports, self.fingerprint)
        slot = self.base.randomize(np.empty(0, dtype=np.int64), Entropy.from_seed(0)).data.shape[1:]
        width = self.max_answers * int(np.prod(slot, dtype=np.int64))
        if reports.data.shape[1:] != (width,):
            raise ParameterError(
                f"reports have rows of shape {reports.data.shape[1:]}, not ({width},): pass "
                "Reports.data on as it was made"
            )
        num_slots = reports.num_reports * self.max_answers
        return self._count_slots(reports.data.reshape(num_slots, *slot), reports.num_reports)


def _share_lower(loss: float, num_parts: int) -> float:
    """Return the largest float of which ``num_parts`` times is at most ``loss``, exactly."""
    share = loss / num_parts
    while Fraction(share) * num_parts > Fraction(loss):
        share = math.nextafter(share, 0.0)
    return share


def _sum_upper(loss: float, num_parts: int) -> float:
    """Return ``num_parts`` times ``loss``, rounded up to a float."""
    return float_above(Fraction(loss) * num_parts)


def _product(atoms: tuple[BlanketAtom, ...], num_parts: int) -> tuple[BlanketAtom, ...]:
    """Return the law of products of independent ratios, or nothing if it has too many atoms.

    Rounded outward. Where nearly all reports tell the pair apart, neutral atoms have too little to
    give: then to the nearest floats, for which `stated-blanket` makes up.
    """
    if num_parts == 1:
        return atoms
    ratio = Fraction(max(atom.ratio0 for atom in atoms)) * _RAISED
    slot = _slot_law(atoms, ratio)
    unit = max(mass.denominator for mass in slot.values())  # of all, since floats are dyadic
    steps = {powers: int(mass * unit) for powers, mass in slot.items()}
    masses = {(0, 0): 1}
    for _ in range(num_parts):
        held, masses = masses, {}
        for (power0, power1), mass in held.items():
            for (more0, more1), own in steps.items():
                powers = (power0 + more0, power1 + more1)
                masses[powers] = masses.get(powers, 0) + mass * own
        if len(masses) > _MOST_ATOMS:
            return ()
    powers_of = [ratio**power for power in range(num_parts + 1)]
    listed = [
        (Fraction(mass, unit**num_parts), powers_of[power0], powers_of[power1])
        for (power0, power1), mass in masses.items()
    ]
    return (outward_pairs(listed) if slot[0, 0] > 0 else ()) or rounded_atoms(listed)


def _slot_law(atoms: tuple[BlanketAtom, ...], ratio: Fraction) -> dict[tuple[int, int], Fraction]:
    """Return masses by powers of the ratio that dominate a slot's exact law, with means of 1.

    Means must be exact, or products would not dominate products. The floats are within two units
    in the last place of the exact law; all masses and ratios are raised by more than that, and
    reports of ratios (1, 1) have what is left of the mean.
    """
    masses = {
        (int(atom.ratio0 > 1.0), int(atom.ratio1 > 1.0)): Fraction(atom.mass) * _RAISED
        for atom in atoms
    }
    masses.pop((0, 0), None)
    used = sum((mass * ratio**power0 for (power0, _), mass in masses.items()), Fraction(0))
    return {**masses, (0, 0): max(1 - used, Fraction(0))}
