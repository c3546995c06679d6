"""``SampledParts``, ``AllParts``: several histograms of one value, by k-ary randomized response.

A value is a row of codes, one for each *part*, such as a column of a survey or a level of a tree. A
user reports one part drawn at random, or all of them as messages of their own.

`SampledLevels` and `AllLevels` do so for bins, a part for each level of a tree above them. The
reports of all levels are fitted by least squares, so that the share below any edge is about as
accurate.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.checks import (
    require_at_least,
    require_extended,
    require_non_negative,
    set_fields,
)
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.numerics.enclosure import float_below
from shuffledp.core.profile import (
    ExactAtom,
    LocalProfile,
    RandomizerFamily,
    mirrored,
    outward_atoms,
    rounded_atoms,
)
from shuffledp.core.reports import Counts, Reports
from shuffledp.estimation import distributions
from shuffledp.estimation.frequencies import (
    FrequencyEstimates,
    estimate_frequencies,
    unbiased_counts,
)
from shuffledp.estimation.intervals import simultaneous_confidence
from shuffledp.randomizers import checks
from shuffledp.randomizers.base import error_at
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse, histogram
from shuffledp.randomizers.thresholds import response_ratio

#: Most parts of a value.
LARGEST_NUM_PARTS = 1024

# Users whose values are processed together.
_BLOCK = 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(ABC):
    """Sizes and laws of the parts, common to all randomizers of parts."""

    prefix: ClassVar[str]
    is_sampled: ClassVar[bool]  # whether a user reports on one part, else on each

    sizes: tuple[int, ...]
    epsilon0: float
    levels: tuple[KRandomizedResponse, ...] = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    @property
    def name(self) -> str:
        """Name of the kind."""
        return self.prefix

    def _settle(self, each: float, epsilon0: float) -> None:
        """Set the fields, given the loss of each part and of all of them together."""
        number = require_at_least("number of parts", len(self.sizes), 1, LARGEST_NUM_PARTS)
        sizes = tuple(map(checks.require_domain_size, self.sizes))
        checks.require_domain_size(sum(sizes))
        levels = {size: KRandomizedResponse(domain_size=size, epsilon0=each) for size in set(sizes)}
        stated = ",".join(f"{size}:{levels[size].fingerprint}" for size in sizes)
        fingerprint = checks.fingerprint_of(self.name, parts=number, laws=stated)
        made = tuple(levels[size] for size in sizes)
        set_fields(self, sizes=sizes, epsilon0=epsilon0, levels=made, fingerprint=fingerprint)

    @property
    def num_report_bytes(self) -> int:
        """Bytes of all that a user sends."""
        number = 1 if self.is_sampled else len(self.sizes)
        return number * checks.code_type(self.num_bins).itemsize

    def bin_error(
        self, part: int, frequency: float, num_users: int, dummies: Sequence[DummyLaw] = ()
    ) -> float:
        """Return the standard error to expect of a bin of some share, among n users."""
        number = len(self.sizes)
        noise = error_at(self.levels[part], num_users, frequency, dummies[part::number])
        if not self.is_sampled:
            return noise
        sampling = (number - 1) * frequency * (1.0 - frequency) / num_users
        return math.sqrt(noise**2 * number + sampling)

    def reports_on_parts(self, num_users: int, counts: Counts | None = None) -> Floats:
        """Return the number of reports on each part: those counted, or those to expect."""
        if not self.is_sampled:
            return np.full(len(self.sizes), float(num_users))
        if counts is None:
            return np.full(len(self.sizes), num_users / len(self.sizes))
        return np.array([counts.support[bins].sum() for bins in self.part_slices], dtype=float)

    def shift_by_one(self, num_users: int, counts: Counts | None = None) -> Floats:
        """Return the largest change of each bin's share by one of n users who reports otherwise.

        With n_l reports on its part 1 / (n_l (p - q)). In a sample m of these are lies: the share
        c / n_l of reports for a bin was at least (c - m) / n_l, as honest ones on other parts would
        have made it (c - m) / (n_l - m), which is no less, if c >= m; so for the other bins.
        """
        informative = self.reports_on_parts(num_users, counts) * self.gains
        with np.errstate(divide="ignore"):
            return 1.0 / np.repeat(informative, self.sizes)

    def report_for(self, place: int) -> NDArray[Any]:
        """Return all messages of one user that raise the estimate of a bin most.

        That is the bin itself, and besides some bin of each other part that the user reports on.
        """
        slices = self.part_slices
        chosen = [place if bins.start <= place < bins.stop else bins.start for bins in slices]
        return self.report_columns().data[[place] if self.is_sampled else chosen]

    @property
    def gains(self) -> Floats:
        """Differences p - q, by part, of the chances of a code that is the truth and of another."""
        chances = np.array([level.support_probabilities for level in self.levels])
        gains: Floats = chances[:, 0] - chances[:, 1]
        return gains

    @property
    def num_bins(self) -> int:
        """Number of bins of all parts."""
        return sum(self.sizes)

    @property
    def part_slices(self) -> tuple[slice, ...]:
        """Slice of the bins of each part among all bins."""
        ends = accumulate(self.sizes, initial=0)
        return tuple(slice(start, end) for start, end in pairwise(ends))

    def report_columns(self) -> Reports:
        """Return all possible reports, in ascending order: the bins of each part."""
        data = np.arange(self.num_bins, dtype=checks.code_type(self.num_bins))
        return Reports(data=data, fingerprint=self.fingerprint)

    def aggregate(self, reports: Reports) -> Counts:
        """Return the number of reports of each bin; counts of one law add."""
        dtype, size = checks.code_type(self.num_bins), self.num_bins
        codes = checks.require_whole_reports(reports, self.fingerprint, dtype, size)
        return Counts(
            support=histogram(codes, size), num_reports=codes.size, fingerprint=self.fingerprint
        )

    def _checked(self, values: Any) -> NDArray[Any]:
        """Return rows of codes, shape (n, L), once checked."""
        rows = checks.plain_array(values)
        if rows.ndim != 2 or rows.shape[1] != len(self.sizes):
            raise ParameterError(
                f"values has shape {rows.shape}: give one row of {len(self.sizes)} codes a user"
            )
        for part, size in enumerate(self.sizes):
            checks.require_codes(rows[:, part], size)
        return rows

    def _blocks(self, values: Any) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield places and rows of codes, some at a time."""
        rows = self._checked(values)
        for start in range(0, len(rows), _BLOCK):
            where = slice(start, start + _BLOCK)
            yield where, rows[where]

    @abstractmethod
    def _counted(self, data: Reports | Counts) -> tuple[int, list[Counts]]:
        """Return the number of users and the counts of each part; raise unless they fit."""

    def estimate(
        self, data: Reports | Counts, *, confidence: float = 0.95, simultaneous: bool = False
    ) -> FrequencyEstimates:
        """Return the unbiased share of all users in each bin, with standard error and interval.

        ``data`` are reports of this law without dummies, or their aggregate; of messages of several
        parts also with dummies, whose laws for each part are among ``dummies``, and ``num_reports``
        messages of users. The options come from `estimate_frequencies`. Where each user reported on
        one part, errors count that those were a random sample of the users. `DataError` if nobody
        reported on some part, or the messages of each part are not one a user besides possible
        dummies.
        """
        num_users, parts = self._counted(data)
        return self._estimated(parts, num_users, confidence, simultaneous=simultaneous)

    def _frequencies(self, counts: Sequence[Counts]) -> list[Floats]:
        """Return the unbiased frequencies in each part."""
        return [
            unbiased_counts(part, level.support_probabilities)[1] / part.num_reports
            for part, level in zip(counts, self.levels, strict=True)
        ]

    def _estimated(
        self, counts: Sequence[Counts], num_users: int, confidence: float, *, simultaneous: bool
    ) -> FrequencyEstimates:
        """Return estimates over the bins of all parts, about all users, from counts of each."""
        each = simultaneous_confidence(confidence, self.num_bins) if simultaneous else confidence
        found = [
            estimate_frequencies(
                part, support_probabilities=level.support_probabilities, confidence=each
            ).for_all_users(num_users)
            for part, level in zip(counts, self.levels, strict=True)
        ]
        arrays: Any = {
            name: np.concatenate([getattr(part, name) for part in found])
            for name in found[0].given()
        }
        return FrequencyEstimates(
            **arrays,
            num_users=num_users,
            confidence=confidence,
            interval=found[0].interval,
            is_simultaneous=simultaneous,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledParts(Parts):
    """One part drawn uniformly at random by each user, in private, and k-RR of its code.

    Parameters
    ----------
    sizes : tuple of int
        Number of possible codes k_l of each part, in [2, 2^32 - 1]; at most 1,024 parts.
    epsilon0 : float
        Local privacy loss asked for, in nats, in [0, inf); then of the law drawn, rounded up. It
        covers the whole row: only one of its codes is reported on.
    tied : tuple of int
        Parts in which the data of the lower end have no third code, because not all rows are
        possible, as if a part was a pair of columns.

    Attributes
    ----------
    levels : tuple of KRandomizedResponse
        Randomizer of each part.

    Notes
    -----
    A report is the number of a bin: sizes[0] + ... + sizes[l - 1] + j for code j of part l.

    That the part is the user's own secret makes every user hide every other, whatever part they
    report on: with parts of equal size the blanket law is that of k-RR with all n users. Groups of
    users that are drawn in public, one for each part, have n / L of them. See
    docs/results/worst-pairs.md.

    Cost: 16 random bytes a report, and a pass over the users for each part.

    Examples
    --------
    >>> randomizer = SampledParts(sizes=(2, 3), epsilon0=1.0)
    >>> counts = Counts(
    ...     support=np.array([30, 20, 25, 15, 10]), num_reports=100,
    ...     fingerprint=randomizer.fingerprint,
    ... )
    >>> found = randomizer.estimate(counts)
    >>> [round(float(found.frequency[each].sum()), 9) for each in randomizer.part_slices]
    [1.0, 1.0]
    """

    prefix: ClassVar[str] = "sampled-parts"
    is_sampled: ClassVar[bool] = True

    tied: tuple[int, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        asked = require_non_negative("epsilon0", self.epsilon0)
        self._settle(asked, asked)
        set_fields(self, epsilon0=max(level.epsilon0 for level in self.levels))

    @property
    def profile(self) -> LocalProfile:
        """Privacy law for the accountant: the exact loss, the blanket of all parts, and an attack.

        The worst pair differs in every part: docs/results/worst-pairs.md has the proof. In the
        attack all other users have a third code, or in parts of two codes and tied ones the first.
        """
        share = Fraction(1, len(self.sizes))
        blanket: list[ExactAtom] = []
        attack: list[ExactAtom] = []
        neutral = Fraction(0)
        for part, (size, level) in enumerate(zip(self.sizes, self.levels, strict=True)):
            ratio = response_ratio(level.threshold, size) if level.epsilon0 else Fraction(1)
            mass = share / (ratio + size - 1)
            blanket += mirrored(mass, ratio, 1)
            neutral += (size - 2) * mass
            if size == 2 or part in self.tied:
                attack += [
                    (ratio * mass, 1, 1 / ratio),
                    (mass, 1, ratio),
                    ((size - 2) * mass, 1, 1),
                ]
            else:
                attack += [*mirrored(mass, ratio, 1), ((size - 3) * mass, 1, 1)]
                attack += [(ratio * mass, 1 / ratio, 1 / ratio)]
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            blanket=outward_atoms([*blanket, (neutral, 1, 1)]),
            attack=rounded_atoms(_merged(attack)),
        )

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return one report for each row of codes, shape (n, L); n = 0 too.

        `DomainError` names the first code that is out of range, and `ParameterError` is raised for
        another type or shape.
        """
        out = np.empty(len(values), dtype=checks.code_type(self.num_bins))
        for where, rows in self._blocks(values):
            chosen = draw_below(entropy, len(rows), len(self.sizes))
            block = out[where]
            for part, (level, bins) in enumerate(zip(self.levels, self.part_slices, strict=True)):
                own = chosen == part
                block[own] = _drawn(level, rows[own, part], bins.start, out.dtype, entropy)
        return Reports(data=out, fingerprint=self.fingerprint)

    def _counted(self, data: Reports | Counts) -> tuple[int, list[Counts]]:
        """Return the number of users and the counts of each part; raise if there are none."""
        counts = checks.aggregate_of(self, data)
        parts = [
            Counts(support=support, num_reports=int(support.sum()), fingerprint=self.fingerprint)
            for support in (counts.support[bins] for bins in self.part_slices)
        ]
        if not all(part.num_reports for part in parts):
            raise DataError(
                f"{counts.num_reports} reports are too few for {len(parts)} parts, of which each "
                "user reports on one: ask more users, or fewer columns"
            )
        return counts.num_reports, parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages(Parts):
    """Randomizers that send one message for each part."""

    is_sampled: ClassVar[bool] = False

    @property
    def profile(self) -> LocalProfile:
        """Privacy law of all messages as one report: shuffled part by part, they reveal no more."""
        return LocalProfile(epsilon0=self.epsilon0, family=RandomizerFamily.OTHER)

    @property
    def profiles(self) -> tuple[LocalProfile, ...]:
        """Privacy law of each part, for the accountant."""
        return tuple(level.profile for level in self.levels)

    @property
    @abstractmethod
    def dummy_shares(self) -> tuple[float, ...]:
        """Ratios of the variances of the parts' dummies."""

    def _counted(self, data: Reports | Counts) -> tuple[int, list[Counts]]:
        """Return the number of users and the counts of each part; raise unless they fit.

        Each part has one message of each user besides possible dummies.
        """
        counts = checks.aggregate_of(self, data)
        number = len(self.sizes)
        num_users, rest = divmod(counts.num_reports, number)
        laws = [counts.dummies[part::number] for part in range(number)]
        support = [counts.support[bins] for bins in self.part_slices]
        added = [int(each.sum()) - num_users for each in support]
        most = [
            sum(2 * law.half_width for law in own) * size
            for own, size in zip(laws, self.sizes, strict=True)
        ]
        if not num_users or rest or any(not 0 <= m <= n for m, n in zip(added, most, strict=True)):
            raise DataError(
                f"there are {', '.join(str(m + num_users) for m in added)} messages of the parts, "
                f"not those of {num_users} users with at most {', '.join(map(str, most))} dummies: "
                "check num_users, and that each user was admitted with one message a part"
            )
        how: Any = {"num_reports": num_users, "fingerprint": self.fingerprint}
        return num_users, [
            Counts(support=each, num_dummies=extra, dummies=own, **how)
            for each, extra, own in zip(support, added, laws, strict=True)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllParts(Messages):
    """One message for each part: k-RR of its code, at an even share of the loss.

    Parameters
    ----------
    sizes : tuple of int
        Number of possible codes k_l of each part, in [2, 2^32 - 1]; at most 1,024 parts.
    epsilon0 : float
        Local privacy loss of all messages of a user, in nats, in [0, inf]; at inf codes are sent as
        they are, and only dummies hide them.

    Attributes
    ----------
    levels : tuple of KRandomizedResponse
        Randomizer of each part.

    Notes
    -----
    Codes are numbered as in `SampledParts`. ``Reports.data`` holds messages, *not users*: L for
    each user, of which each must be shuffled as a report of its own, for the accounts assume that
    nothing links the parts. Without noise and without dummies nothing hides a rare code.

    Cost: with local noise 8 random bytes a message.

    Examples
    --------
    >>> randomizer = AllParts(sizes=(2, 3), epsilon0=math.inf)
    >>> randomizer.randomize(np.array([[1, 2], [0, 0]]), Entropy.from_seed(1)).data.tolist()
    [1, 4, 0, 2]
    """

    prefix: ClassVar[str] = "all-parts"

    def __post_init__(self) -> None:
        asked = require_extended("epsilon0", self.epsilon0, "give the local loss in nats")
        number = max(len(self.sizes), 1)
        each = asked if math.isinf(asked) else float_below(Fraction(asked) / number)
        self._settle(each, asked)

    @property
    def dummy_shares(self) -> tuple[float, ...]:
        """Ratios of the variances of the parts' dummies: all alike."""
        return (1.0,) * len(self.sizes)

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return the messages of each row of codes, one user after the other, shape (n L,).

        Raises as `SampledParts.randomize`.
        """
        out = np.empty((len(values), len(self.sizes)), dtype=checks.code_type(self.num_bins))
        for where, rows in self._blocks(values):
            for part, (level, bins) in enumerate(zip(self.levels, self.part_slices, strict=True)):
                out[where, part] = _drawn(level, rows[:, part], bins.start, out.dtype, entropy)
        return Reports(data=out.reshape(-1), fingerprint=self.fingerprint)


def _drawn(
    level: KRandomizedResponse, codes: NDArray[Any], start: int, dtype: Any, entropy: Entropy
) -> NDArray[Any]:
    """Return the numbers of the bins that are reported for true codes of one part."""
    places: NDArray[Any] = level.randomize(codes, entropy).data.astype(dtype) + dtype.type(start)
    return places


def _merged(atoms: list[ExactAtom]) -> Iterator[tuple[Fraction, float, float]]:
    """Yield atoms, merged where their ratios are the same doubles."""
    masses: dict[tuple[float, float], Fraction] = {}
    for mass, first, second in atoms:
        ratios = float(first), float(second)
        masses[ratios] = masses.get(ratios, Fraction(0)) + mass
    yield from ((mass, *ratios) for ratios, mass in masses.items())


# Below any variance of a share that noise could cause.
_NO_VARIANCE = 1e-300


class Levels(Parts):
    """Levels of a tree of bins; ``sizes`` are all of `level_sizes`, or the lowest of them."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Name with the number of levels, ``sampled-levels-3``."""
        return f"{self.prefix}-{len(self.sizes)}"

    def _settle(self, each: float, epsilon0: float) -> None:
        """Set the fields, if the levels make a tree with three nodes or more on top."""
        for above, below in zip(self.sizes, self.sizes[1:], strict=False):
            if above < 3 or -(-below // -(-below // above)) != above:
                raise ParameterError(
                    f"sizes = {self.sizes} are no levels of a tree with at least 3 nodes on top: "
                    "give those of level_sizes, or the lowest of them"
                )
        super()._settle(each, epsilon0)

    def _checked(self, values: Any) -> NDArray[Any]:
        """Return the node of each level above each bin, of bins of shape (n,)."""
        return distributions.level_codes(checks.require_codes(values, self.sizes[-1]), self.sizes)

    def node_law(
        self, part: int, num_reports: float, dummies: Iterable[DummyLaw] = ()
    ) -> distributions.NodeLaw:
        """Return the noise of the shares of a level's nodes, from the reports about it."""
        p, q = self.levels[part].support_probabilities
        gain = p - q
        known = 0.0 if self.is_sampled else gain  # each user's answer is fixed
        added = sum(law.variance for law in dummies) / num_reports**2
        return distributions.NodeLaw(
            base=max(q / num_reports + added, _NO_VARIANCE) / gain**2,
            slope=(1.0 - known) / (num_reports * gain),
            sampling=1.0 / num_reports if self.is_sampled else 0.0,
            step=1.0 / (num_reports * gain),
        )

    def node_variances(
        self, part: int, num_reports: float, share: Any, dummies: Iterable[DummyLaw] = ()
    ) -> Any:
        """Return the variances of nodes of a level with some shares, from the reports about it.

        Their errors sum to 0 within a level, and given that are independent. For reports of a
        sample the variances are about a population, up to the sampling of `NodeLaw`.
        """
        law = self.node_law(part, num_reports, dummies)
        return law.base + law.slope * share

    @property
    def tree(self) -> distributions.Tree:
        """The tree with the variances of local noise for values that are evenly spread.

        They depend on the law alone, and so does the largest change by a user.
        """
        each = (float(self.node_variances(i, 1.0, 1.0 / k)) for i, k in enumerate(self.sizes))
        return distributions.Tree(self.sizes, tuple(each))

    def expected_variance(
        self, edges: Integers, num_users: int, dummies: Sequence[DummyLaw] = ()
    ) -> Floats:
        """Return the variances to expect of the shares below edges, for values evenly spread.

        For reports of samples they are about a population.
        """
        number, each = len(self.sizes), self.reports_on_parts(num_users)
        noise = [
            self.node_variances(part, each[part], 1.0 / size, dummies[part::number])
            for part, size in enumerate(self.sizes)
        ]
        return self.tree.variance(np.zeros_like(edges), edges, noise)

    def shift_by_one(self, num_users: int, counts: Counts | None = None) -> Floats:
        """Return the largest change by one of n users of each bin's share, or of the share below.

        A share is a sum over the levels of the mean weight of the reports on each, over p - q.
        Another report on the same level changes one mean by at most the span of the weights over
        n_l, and a report on another level two means, each by at most that: the limit is the sum of
        the largest two. Messages on all levels change all means.
        """
        size = self.sizes[-1]
        if not min(level.epsilon0 for level in self.levels) > 0.0:
            return np.full(size, np.inf)
        places = np.arange(size)
        starts = np.concatenate([places, np.zeros_like(places)])
        spans = np.concatenate(
            [
                [np.ptp(own, axis=1) for own in found]
                for found in self.tree.weights(starts, np.tile(places + 1, 2))
            ],
            axis=1,
        )
        with np.errstate(divide="ignore"):
            changes = spans / (self.reports_on_parts(num_users, counts) * self.gains)[:, None]
        most = np.sort(changes, axis=0)[-2 if self.is_sampled else 0 :].sum(axis=0)
        largest: Floats = np.maximum(most[:size], most[size:])
        return largest

    def report_for(self, place: int) -> NDArray[Any]:
        """Return all messages of one user that raise the estimate of a bin most."""
        found = next(self.tree.weights(np.array([place]), np.array([place + 1])))
        best = [int(own.argmax()) for own in found]
        codes = [where.start + node for where, node in zip(self.part_slices, best, strict=True)]
        if self.is_sampled:
            rise = np.array([own.max() for own in found]) / self.gains
            codes = [codes[int(rise.argmax())]]
        return self.report_columns().data[codes]

    def _estimated(
        self, counts: Sequence[Counts], num_users: int, confidence: float, *, simultaneous: bool
    ) -> distributions.DistributionEstimates:
        """Return estimates over the bins, fitted to the counts of each level."""
        found = self._frequencies(counts)  # refuses reports that say nothing
        bins = self.tree.fit(found)
        # One more user, spread evenly, so that a range without users has a distribution.
        shares = np.maximum(bins, 0.0) + 1.0 / (num_users * bins.size)
        errors = distributions.RangeErrors(
            tree=self.tree,
            nodes=tuple(
                self.node_law(part, each.num_reports, each.dummies)
                for part, each in enumerate(counts)
            ),
            cumulative=_edges_of(bins),
            below=_edges_of(shares / shares.sum()),
            sampling=0.0 if self.is_sampled else 1.0 / num_users,
        )
        return distributions.DistributionEstimates.of(
            errors, simultaneous=simultaneous, num_users=num_users, confidence=confidence
        )


def _edges_of(shares: Floats) -> Floats:
    """Return the sum of the shares below each edge, of 1 in all."""
    return np.concatenate([[0.0], np.cumsum(shares)[:-1], [1.0]])


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledLevels(Levels, SampledParts):
    """k-RR of the node above the user's bin at one level, which each user draws in private.

    Parameters
    ----------
    sizes : tuple of int
        Number of nodes of each level, from the top down to the bins.
    epsilon0 : float
        As of `SampledParts`.

    Examples
    --------
    >>> from shuffledp import Entropy
    >>> law = SampledLevels(sizes=(3, 9), epsilon0=4.0)
    >>> reports = law.randomize(np.repeat([4, 8], 5000), Entropy.from_seed(1))
    >>> found = law.estimate(reports)
    >>> bool(abs(found.cumulative[4] - 0.5) < 5 * found.cumulative_standard_error[4])
    True
    """

    prefix: ClassVar[str] = "sampled-levels"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllLevels(Levels, AllParts):
    """k-RR of the node above the user's bin at each level, as messages of their own.

    Parameters
    ----------
    sizes : tuple of int
        Number of nodes of each level, from the top down to the bins.
    epsilon0 : float
        As of `AllParts`.
    """

    prefix: ClassVar[str] = "all-levels"

    @property
    def dummy_factor(self) -> float:
        """Error of a count below an edge under the least normal noise of dummies, times its mu.

        Another value moves two counts of each level by one, so that their noise has the variance
        2 L / mu^2; root mean square over the edges.
        """
        edges, number = distributions.inner_edges(self.sizes[-1]), len(self.sizes)
        variance = self.tree.variance(np.zeros_like(edges), edges, (2.0 * number,) * number)
        return math.sqrt(float(variance.mean()))
