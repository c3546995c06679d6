"""A number of each member of private groups: the mean of each group."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.questions import question
from shuffledp.collection.questions.categories import coding
from shuffledp.collection.questions.mean import Mean
from shuffledp.collection.source import columns, single, tables
from shuffledp.core import labels as spelt
from shuffledp.core.checks import set_fields
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.estimation.group_means import GroupMeanEstimates, largest_shift, require_pair
from shuffledp.randomizers.bit_sums import LARGEST_NUM_BITS, GroupBits


@dataclass(frozen=True, slots=True, init=False)
class MeanByGroup(Mean):
    """Each user is in one group and has one number between two limits; each group's mean is asked.

    For the share of a group who say yes, give 1 for yes and 0 for no, with the limits 0 and 1.

    Parameters
    ----------
    groups : iterable
        The possible groups, at least two, all different.
    low, high : float
        The limits of the number, low < high; known without looking at the data.
    name : str
        Name of the column of numbers.
    by : str
        Name of the column of groups.
    compare : iterable of str
        Two groups whose means are compared, or none.

    Raises
    ------
    DomainError
        If there are fewer than two groups, or one is repeated.
    ParameterError
        If the range is empty, infinite or the wrong way round, both names are the same, or
        ``compare`` is not two different groups.
    """

    kind: ClassVar[str] = "mean-by-group"
    stated: ClassVar[tuple[str, ...]] = (*Mean.stated, "by")
    listed: ClassVar[str] = "groups"
    checked_by: ClassVar[tuple[str, ...]] = ("groups", *Mean.checked_by)
    no_values: ClassVar[NDArray[np.float64]] = np.empty((0, 2))
    central_noise: ClassVar[str] = (
        "{} on each mean times the number of users, of a trusted curator who may tell the sizes of "
        "groups, all equal"
    )
    expected_for: ClassVar[str] = "for groups of equal size, values spread evenly over the range"

    groups: tuple[str, ...]
    by: str
    compare: tuple[str, ...]

    def __init__(
        self,
        groups: Iterable[object],
        low: float,
        high: float,
        *,
        name: str = "mean",
        by: str = "group",
        compare: Iterable[str] = (),
    ) -> None:
        Mean.__init__(self, low, high, name=name)
        spelt.require_list("compare", compare)
        listed = question.checked_answers(groups, "groups")
        pair = tuple(map(spelt.label_of, compare))
        if pair:
            require_pair(pair, listed)
        if name == by:
            raise ParameterError(
                f"by = {by!r} is the column of the numbers too: name the one with the groups"
            )
        set_fields(self, groups=listed, by=by, compare=pair)

    @classmethod
    def from_json(cls, particulars: Any, labels: Iterable[str]) -> "MeanByGroup":
        """Return the question that `to_json_dict` wrote."""
        given = {name: particulars[name] for name in cls.stated}
        return cls(groups=labels, compare=particulars.get("compare", ()), **given)

    labels = question.Question.labels

    @property
    def table_columns(self) -> tuple[str, ...]:
        """The columns of the groups and of the numbers."""
        return self.by, self.name

    @property
    def central_sensitivity(self) -> float:
        """L1 sensitivity at known, equal group sizes: a value moves g means by g/n ranges in all.

        With numbers measured from the middle: two sums by half of the range, or one by all of it.
        """
        return len(self.groups) * (self.high - self.low)

    @property
    def expected_spread(self) -> float:
        """Variance of values spread evenly over the range, for groups of equal size."""
        return len(self.groups) * (self.high - self.low) ** 2 / 12.0

    def candidates(self) -> question.Candidates:
        """Return the randomizer of the group and one bit."""
        return self._candidates(1)

    def dummy_candidates(self) -> question.Candidates:
        """Return a randomizer for each number of bits: dummies are ordinary messages."""
        return self._candidates(LARGEST_NUM_BITS)

    def _candidates(self, most: int) -> question.Candidates:
        """Return a randomizer for each number of bits up to the largest."""
        numbers = range(1, most + 1)
        makers = {f"{GroupBits.prefix}-{b}": partial(GroupBits, num_bits=b) for b in numbers}
        return question.candidates_of(
            makers, num_groups=len(self.groups), low=self.low, high=self.high
        )

    def expected_error(self, randomizer: Any, num_users: int, dummies: question.Laws = ()) -> float:
        """Return the standard error of the mean of a group with one user in g."""
        if randomizer.epsilon0 == 0.0:
            return math.inf
        noise, _ = randomizer.noise(num_users, dummies)
        share = 1.0 / len(self.groups)
        variance = float(noise.variance(np.array(0.5), np.array(share)))
        if randomizer.num_bits == 1:  # one bit cannot separate spread from noise
            variance -= share / 12.0 / num_users
        return math.sqrt(variance) / share * (self.high - self.low)

    def shift_by_one(self, randomizer: Any, num_users: int, counts: Any = None) -> Any:
        """Return the largest change of each mean as a function of the number of dishonest users.

        Before the collection for groups of equal size, whose mean is at the worst place.
        """
        totals = np.zeros((2, len(self.groups)))
        totals[1] = 1.0 / len(self.groups)
        if counts is not None:
            _, totals = randomizer.totals(counts)
        return partial(
            largest_shift,
            width=self.high - self.low,
            totals=totals,
            each=randomizer.influence / num_users,
        )

    def estimate(
        self, randomizer: Any, aggregate: Any, options: question.EstimateOptions
    ) -> GroupMeanEstimates:
        """Return the mean and the size of each group."""
        self.require_post_processing(options.post_processing)
        found = randomizer.estimate(
            aggregate,
            groups=self.groups,
            confidence=options.confidence,
            simultaneous=options.simultaneous,
        )
        estimates: GroupMeanEstimates = replace(found, compare=self.compare)
        return estimates

    def read(self, source: tables.Source) -> columns.Column:
        """Return columns of groups and numbers, checked; codes and numbers, shape (m, 2)."""
        by, number = (replace(source, names=(name,)) for name in source.names)
        groups = coding(by, self.groups)
        what = f"whose group, in column {by.names[0]!r}, is {groups.fault.what}"
        fault = columns.Fault(what, "add it to domain=[...], or leave such rows out")
        groups = groups._replace(fault=fault)
        return columns.numbers(number, self, groups=groups)

    def value_of_one(self, answer: Any) -> NDArray[np.float64]:
        """Return the code of one user's group and the number, shape (1, 2)."""
        if spelt.is_gap(answer):
            raise single.no_answer()
        pair = [answer] if isinstance(answer, str) else list(answer)
        if len(pair) != 2:
            raise DataError(
                f"the answer has {len(pair)} parts: give the group and the number, such as "
                f"{self.groups[0]},{self.low:g}"
            )
        place = single.place_of(single.label_of_one(pair[0], self.groups), self.groups)
        return np.array([[place, single.number_of(pair[1], self.limits)[0]]])

    def describe(self) -> str:
        """Return the range and the number of groups."""
        return f"{Mean.describe(self)} by {len(self.groups)} groups"

    def to_json_dict(self) -> dict[str, object]:
        """Return kind, names, limits and compared groups; all groups are the ``domain``."""
        compared = {"compare": list(self.compare)} if self.compare else {}
        return Mean.to_json_dict(self) | compared
