"""Sets of answers: several categories per user, through a randomizer of one category.

As arrays they have one row per user, padded with -1.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Integers
from shuffledp.core.checks import require_at_least, require_non_negative, set_fields
from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.numerics.enclosure import float_above, float_below
from shuffledp.core.profile import (
    BlanketAtom,
    LocalProfile,
    RandomizerFamily,
    outward_pairs,
    rounded_atoms,
)
from shuffledp.core.reports import Counts, Reports
from shuffledp.randomizers import checks
from shuffledp.randomizers.base import CategoryRandomizer, FrequencyRandomizer, bytes_of_row
from shuffledp.randomizers.registry import RANDOMIZERS, make_randomizer
from shuffledp.randomizers.thresholds import settle

#: Stands for no answer in a row of answers.
NO_ANSWER = -1


def require_answers(values: NDArray[np.integer[Any]], *, k: int, max_answers: int) -> Integers:
    """Return rows of answers as (n, max_answers): in falling order, then -1; else raise.

    ``values`` has answers in [0, k), or -1 for none, anywhere in the row, and no answer twice. The
    order in which a user gave them is lost.
    """
    array = checks.plain_array(values)
    if array.ndim != 2 or (array.size and array.dtype.kind not in "iu"):
        raise ParameterError(
            f"values has shape {array.shape} and dtype {array.dtype}: give one row of integers a "
            f"user, answers in [0, {k}) padded with {NO_ANSWER}"
        )
    if array.size and (int(array.min()) < NO_ANSWER or int(array.max()) >= k):
        row, place = np.argwhere((array < NO_ANSWER) | (array >= k))[0].tolist()
        raise DomainError(
            f"values[{row}, {place}] = {array[row, place]} is not in [0, {k}), nor {NO_ANSWER} for "
            "no answer: declare the value in the domain, or map it to a category for all others"
        )
    # Wide enough for the most answers; what is padded comes last.
    padded = np.pad(array.astype(np.int64), ((0, 0), (0, max_answers)), constant_values=NO_ANSWER)
    ordered = np.sort(padded, axis=1)[:, ::-1]
    is_twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NO_ANSWER)).any(axis=1)
    if is_twice.any():
        raise DomainError(
            f"row {int(np.argmax(is_twice))} of values holds an answer twice: a set has each "
            "answer once, so drop the repetition"
        )
    num_answers = (ordered != NO_ANSWER).sum(axis=1)
    if num_answers.size and int(num_answers.max()) > max_answers:
        row = int(np.argmax(num_answers > max_answers))
        raise DomainError(
            f"row {row} of values holds {num_answers[row]} answers, more than max_answers = "
            f"{max_answers}: keep a random {max_answers} of them, or raise max_answers to "
            f"{num_answers.max()} if that many are known to be possible without looking at the data"
        )
    return ordered[:, :max_answers]


def require_set_size(domain_size: SupportsIndex, max_answers: SupportsIndex) -> tuple[int, int]:
    """Return both numbers if 2 <= k <= 2^32 - 2 and 1 <= max_answers <= k, else raise."""
    k = checks.require_domain_size(domain_size, checks.LARGEST_K - 1)
    most = require_at_least("max_answers", max_answers, 1)
    if most > k:
        raise ParameterError(
            f"max_answers = {most} is above k = {k}: nobody holds more different answers than "
            "there are; give the most that one user holds"
        )
    return k, most


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRandomizer(FrequencyRandomizer):
    """A `LocalRandomizer` of sets of at most s = ``max_answers`` of the categories 0, ..., k - 1.

    Sets are filled up to exactly s answers with *dummies*, a category k of its own, so that a
    report hides the number of a user's answers. Answers go through a `CategoryRandomizer` of
    k + 1 categories, the base.

    Attributes
    ----------
    base_name : str
        Name of the base, as in ``make_randomizer``.
    domain_size : int
        Number of categories, in [2, 2^32 - 2].
    max_answers : int
        The most answers s that a user may hold, in [1, k].
    epsilon0 : float
        Local privacy loss in nats of a whole report, rounded up. Neighbours differ in the whole
        set of one user, not in one answer of it.
    base : CategoryRandomizer
        Randomizer of one answer.
    fingerprint : str
        Name of the exact law.
    """

    base_name: str
    domain_size: int
    max_answers: int
    epsilon0: float
    base: CategoryRandomizer = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    prefix: ClassVar[str]

    def __post_init__(self) -> None:
        k, most = require_set_size(self.domain_size, self.max_answers)
        set_fields(self, domain_size=k, max_answers=most)
        base, loss = settle(require_non_negative("epsilon0", self.epsilon0), self._law_for)
        fingerprint = checks.fingerprint_of(self.name, base=base.fingerprint, k=k, max_answers=most)
        set_fields(self, base=base, epsilon0=loss, fingerprint=fingerprint)

    def _law_for(self, epsilon0: float) -> tuple[CategoryRandomizer, float]:
        """Return the base, of k + 1 categories at one slot's loss, and the loss of all slots."""
        each = float_below(Fraction(epsilon0) / self.num_slots)
        base = make_randomizer(self.base_name, domain_size=self.domain_size + 1, epsilon0=each)
        return base, float_above(Fraction(base.epsilon0) * self.num_slots)

    @property
    def name(self) -> str:
        """Name of the kind and of the base, with a colon between."""
        return f"{self.prefix}:{self.base_name}"

    @property
    @abstractmethod
    def num_slots(self) -> int:
        """Largest number of times that one report supports one category."""

    @abstractmethod
    def _reported(self, codes: Integers, entropy: Entropy) -> NDArray[Any]:
        """Return the rows of reports on users' slots, with codes in [0, k], k for a dummy."""

    def _slots(self, data: NDArray[Any]) -> NDArray[Any]:
        """Return the base's reports that the rows hold."""
        return data

    def report_for(self, category: int) -> NDArray[Any]:
        """Return the base's report that raises the estimate of a category most."""
        return self.base.report_for(category)

    def randomize(self, values: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return one report for each set of answers, one row a user.

        A row of ``values``, integers of shape (n, any width), has the answers of a user, in [0, k)
        and each once, and -1 in places left over; their order does not matter.
        `DomainError` names the first row with another answer, one twice, or more than
        ``max_answers``.
        """
        answers = require_answers(values, k=self.domain_size, max_answers=self.max_answers)
        codes = np.where(answers == NO_ANSWER, self.domain_size, answers)
        return Reports(data=self._reported(codes, entropy), fingerprint=self.fingerprint)

    @property
    def num_report_bytes(self) -> int:
        """Bytes per report."""
        return bytes_of_row(self.randomize(np.empty((0, 0), np.int64), Entropy.from_seed(0)))

    def aggregate(self, reports: Reports) -> Counts:
        """Support counts of each category over the slots of reports; counts of one law add."""
        checks.require_same_law(reports.fingerprint, self.fingerprint)
        of_base = Reports(data=self._slots(reports.data), fingerprint=self.base.fingerprint)
        return Counts(
            support=self.base.aggregate(of_base).support[: self.domain_size],
            num_reports=reports.num_reports,
            fingerprint=self.fingerprint,
            supports_per_report=self.num_slots,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledAnswers(SetRandomizer):
    """Fill up to s answers with dummies, draw one of the s, and report it at the full epsilon0.

    Parameters
    ----------
    base_name : str
        Name of the base, as in ``make_randomizer``.
    domain_size : int
        Number of categories, in [2, 2^32 - 2].
    max_answers : int
        The most answers s that a user may hold, in [1, k].
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then of the law drawn, rounded up.

    Attributes
    ----------
    base : CategoryRandomizer
        The base, of k + 1 categories.
    fingerprint : str
        Name of the exact law, carried by its reports.

    Notes
    -----
    Source: Qin et al., "Heavy hitter estimation over set-valued data with local differential
    privacy", CCS 2016; Wang, Li, Jha, "Locally differentially private frequent itemset mining",
    S&P 2018 (arXiv:1708.06674). Without the truncation of longer sets that these allow for, the
    estimate is unbiased: longer sets are refused.

    With p and q of the base, a report supports a category that the user holds with probability
    p' = q + (p - q)/s, and any other one with probability q, so that the share f of its holders
    has the variance

        [f p' (1 - p') + (1 - f) q (1 - q)] s^2 / (n (p - q)^2)        (sampling)
        [f p1 (1 - p1) + (s - f) q1 (1 - q1)] / (n (p1 - q1)^2)        (`SplitAnswers`)

    p1 and q1 being the base's at epsilon0 / s. *Which is better*: sampling, unless the privacy is
    so weak that the draw itself makes the error, f (s - 1)/n. For a rare category and base
    optimized-unary these are s^2 / sinh(epsilon0/2)^2 against s / sinh(epsilon0/(2 s))^2, and
    sinh(s x) >= s sinh(x) makes sampling better at every epsilon0, by a factor of at least s. For
    f > 0, splitting wins from some epsilon0 on: at k = 16 from 4.3 (optimized-unary, s = 2,
    f = 0.5) to 17.2 (s = 3, f = 0.01).

    Cost: the base's, and 8 random bytes a report; sorting each set.

    Examples
    --------
    >>> randomizer = SampledAnswers(base_name="k-rr", domain_size=4, max_answers=2, epsilon0=40.0)
    >>> randomizer.name
    'sampled:k-rr'
    >>> sets = np.array([[3, 1], [-1, 3]])
    >>> [[round(p, 6) for p in randomizer.support_probabilities], randomizer.num_report_bytes]
    [[0.5, 0.0], 1]
    >>> randomizer.randomize(sets, Entropy.from_seed(1)).data.shape
    (2,)
    """

    prefix: ClassVar[str] = "sampled"

    @property
    def num_slots(self) -> int:
        """One: a report is about one answer."""
        return 1

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Chance of support of a category that the user holds, and of another one."""
        p, q = self.base.support_probabilities
        return q + (p - q) / self.max_answers, q

    @property
    def profile(self) -> LocalProfile:
        """Privacy law for the accountant: the exact loss, and the blanket of the base.

        The law of a set is the mean of the base's laws over its s slots. It has the loss of the
        base, which the empty set and a set of s answers reach. Hockey-stick divergences are
        jointly convex, so the losses of two sets are at most the largest of two single answers; and
        telling the adversary which answers the other users drew can only help. So the base's
        blanket, for its worst pair, bounds this one too. It is not always attained.
        """
        return LocalProfile(
            epsilon0=self.epsilon0, family=RandomizerFamily.OTHER, blanket=self.base.profile.blanket
        )

    def _reported(self, codes: Integers, entropy: Entropy) -> NDArray[Any]:
        """Return the base's report on one slot of each user."""
        slots = draw_below(entropy, codes.shape[0], self.max_answers)
        drawn = np.take_along_axis(codes, slots.astype(np.int64)[:, None], axis=1)[:, 0]
        return self.base.randomize(drawn, entropy).data


# Beyond this many atoms the blanket is left out, and the accountant knows epsilon0 only; so it is
# where ratios are too large for floats.
_MOST_ATOMS = 1024
_LARGEST_LOSS = 700.0
# Exceeds the loss of a mass or ratio of the base by rounding to floats.
_RAISED = 1 + Fraction(1, 2**48)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitAnswers(SetRandomizer):
    """Fill up to s answers with dummies, and report each of the s at epsilon0 / s.

    Parameters
    ----------
    base_name : str
        Name of the base, as in ``make_randomizer``.
    domain_size : int
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

    Notes
    -----
    Source: basic composition (Dwork, Roth 2014, Theorem 3.14): two sets may differ in all s slots,
    which are randomized independently. A row of s reports of the base is *one* report, and is
    shuffled as one: no claim is made for shuffling the slots apart.

    A category that a user holds has the support p + (s - 1) q of one report on average, another
    one s q. `SampledAnswers` has the variance of both, and states which is better: nearly always
    sampling.

    Slots are in falling order of the answers, dummies last; the order carries nothing else. A
    report is one row of s reports of the base, one after the other.

    Cost: s times the base's.

    Examples
    --------
    >>> randomizer = SplitAnswers(base_name="k-rr", domain_size=4, max_answers=2, epsilon0=60.0)
    >>> 2 * randomizer.base.epsilon0 == randomizer.epsilon0 <= 60.0
    True
    >>> randomizer.randomize(np.array([[3, 1], [-1, 3]]), Entropy.from_seed(1)).data.tolist()
    [[3, 1], [3, 4]]
    """

    prefix: ClassVar[str] = "split"

    @property
    def num_slots(self) -> int:
        """Equal to ``max_answers``."""
        return self.max_answers

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Chance that a slot supports its own answer, and that it supports another category."""
        return self.base.support_probabilities

    @property
    def profile(self) -> LocalProfile:
        """Privacy law for the accountant: the loss, and the product of the slots' blankets.

        The product of s times the base's blanket lies below the law of every set. The worst pair
        of sets differs in every slot: where a slot has the same answer in both, its two ratios
        are one variable R; where not, they are two with the law of R each, if the base treats all
        categories alike. The hockey-stick terms are convex in c0 ratio0 - c1 ratio1, c0, c1 >= 0,
        so submodular in both ratios, and among all couplings of given marginals equal ratios make
        the expectation of those least (Tchen 1980). Products are rounded so that no bound falls,
        unless nearly all reports tell a pair apart (see `_product`), and left out altogether where
        there would be more than 1024 atoms.
        """
        blanket = self.base.profile.blanket if self.epsilon0 <= _LARGEST_LOSS else ()
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=_product(blanket, self.max_answers) if blanket else (),
        )

    def _reported(self, codes: Integers, entropy: Entropy) -> NDArray[Any]:
        """Return the base's reports on all slots of each user."""
        slots = self.base.randomize(codes.reshape(-1), entropy).data
        return slots.reshape(len(codes), self.max_answers * math.prod(slots.shape[1:]))

    def report_for(self, category: int) -> NDArray[Any]:
        """Return a report that supports a category in each of its slots."""
        return np.tile(self.base.report_for(category).reshape(1, -1), self.num_slots)

    def _slots(self, data: NDArray[Any]) -> NDArray[Any]:
        """Return the base's reports, one after the other; `ParameterError` for other rows."""
        slot = self.base.randomize(np.empty(0, np.int64), Entropy.from_seed(0)).data.shape[1:]
        width = self.max_answers * math.prod(slot)
        if data.shape[1:] != (width,):
            raise ParameterError(
                f"reports have rows of shape {data.shape[1:]}, not ({width},): pass Reports.data "
                "on as it was made"
            )
        return data.reshape(-1, *slot)


def _product(atoms: tuple[BlanketAtom, ...], num_parts: int) -> tuple[BlanketAtom, ...]:
    """Return the law of products of independent ratios, or nothing if it has too many atoms.

    Rounded outward. Where nearly all reports distinguish the pair, neutral atoms have too little
    mass to lend: then to the nearest floats, for which `stated-blanket` makes up.
    """
    if num_parts == 1:
        return atoms
    ratio = Fraction(max(atom.ratio0 for atom in atoms)) * _RAISED
    # Masses by powers of the ratio that dominate a slot's exact law, with means of 1: means must be
    # exact, or products would not dominate products. The floats are within two units in the last
    # place of the exact law; all masses and ratios are raised by more than that, and reports of
    # ratios (1, 1) have the rest of the mean.
    slot = {
        (int(atom.ratio0 > 1.0), int(atom.ratio1 > 1.0)): Fraction(atom.mass) * _RAISED
        for atom in atoms
    }
    slot.pop((0, 0), None)
    used = sum((mass * ratio**power0 for (power0, _), mass in slot.items()), Fraction(0))
    slot[0, 0] = max(1 - used, Fraction(0))
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


#: Randomizers of a set of answers by name; each takes ``k``, ``max_answers`` and ``epsilon0``.
ANSWER_SET_RANDOMIZERS: Mapping[str, Callable[..., SetRandomizer]] = {
    f"{make.prefix}:{base_name}": partial(make, base_name=base_name)
    for make in (SampledAnswers, SplitAnswers)
    for base_name in RANDOMIZERS
}
