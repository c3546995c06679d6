"""Checks of the law that a randomizer states: exact, where it states its channel, or by samples."""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ShuffledpError
from shuffledp.core.profile import RandomizerFamily
from shuffledp.core.reports import Counts, Reports
from shuffledp.randomizers.base import CategoryRandomizer, Channel
from shuffledp.randomizers.thresholds import log_ratio_upper

_T = TypeVar("_T")

# The channel of 5 categories shows all there is to see of a law; 8 fill a byte of packed bits.
SMALL_K = (2, 3, 5)
LARGE_K = 1000
# From nothing over the least float to more than any law of 64-bit words can cost.
_ASKED = (0.0, 5e-324, 1e-18, 1e-9, 0.1, math.log(3.0), 4.0, 60.0, 1e300)
Make: TypeAlias = Callable[[int, float], CategoryRandomizer]
"""Returns a randomizer of k categories for the epsilon0 asked for."""
Check: TypeAlias = Callable[[Make], None]
"""Raises `ContractError`, or `NothingToCheck` where the promise does not apply."""


class ContractError(ShuffledpError, AssertionError):
    """A randomizer breaks a promise; the message names the promise and the law."""


class NothingToCheck(Exception):  # noqa: N818  # no error
    """The randomizer makes no promise of this kind."""


def demand(condition: bool, message: str) -> None:
    """Raise `ContractError` unless the condition holds."""
    if not condition:
        raise ContractError(message)


def demand_refusal(
    expected: type[Exception], action: Callable[[], object], what: str, *mentions: str
) -> None:
    """Raise `ContractError` unless the action raises as expected, with certain texts."""
    try:
        action()
    except expected as refusal:
        silent = [mention for mention in mentions if mention not in str(refusal)]
        demand(not silent, f"{what}: the message {str(refusal)!r} should say {silent}")
    except Exception as error:
        name = type(error).__name__
        raise ContractError(f"{what} raises {name} ({error}), not {expected.__name__}") from error
    else:
        raise ContractError(f"{what} is accepted, where {expected.__name__} should be raised")


def describe(randomizer: CategoryRandomizer) -> str:
    """Return the name of a law for messages."""
    return f"{randomizer.name} (k = {randomizer.domain_size}, epsilon0 = {randomizer.epsilon0})"


def draw(
    randomizer: CategoryRandomizer, num_users: int, seed: int = 1, codes: Any = None
) -> Reports:
    """Return reports of users with all categories in turn, or with those given."""
    truth = np.arange(num_users) % randomizer.domain_size if codes is None else codes
    return randomizer.randomize(truth, Entropy.from_seed(seed))


def aggregate_of(randomizer: CategoryRandomizer, data: NDArray[Any]) -> Counts:
    """Return the aggregate of some rows of reports."""
    return randomizer.aggregate(Reports(data=data, fingerprint=randomizer.fingerprint))


def laws(make: Make) -> Iterator[tuple[CategoryRandomizer, float]]:
    """Yield randomizers of few categories, with the epsilon0 that each was asked for."""
    for k, asked in itertools.chain(itertools.product(SMALL_K, _ASKED), [(8, 1.0)]):
        yield make(k, asked), asked


@dataclass(frozen=True, slots=True, eq=False)
class ExactLaw:
    """A randomizer, its channel, the reports of its columns, and the categories they support."""

    randomizer: CategoryRandomizer
    channel: Channel
    columns: Reports
    supported: NDArray[np.bool_]

    @classmethod
    def of(cls, randomizer: CategoryRandomizer) -> "ExactLaw":
        """Return the exact law; raises `ParameterError` if the randomizer does not state it."""
        columns = randomizer.report_columns()
        return cls(randomizer, randomizer.channel(), columns, randomizer.supports(columns))

    def __str__(self) -> str:
        return describe(self.randomizer)

    def possible_columns(self) -> Iterator[tuple[int, tuple[Fraction, ...]]]:
        """Yield the columns that are not zero throughout, with their numbers."""
        for number, column in enumerate(zip(*self.channel, strict=True)):
            if any(column):
                yield number, column

    def support(self, truth: int, category: int) -> Fraction:
        """Return the exact probability that a report supports the category."""
        supports = self.supported[:, category].tolist()
        return sum(itertools.compress(self.channel[truth], supports), start=Fraction(0))


def some(found: Iterable[_T]) -> list[_T]:
    """Return the items to check; raise `NothingToCheck` if there are none."""
    listed = list(found)
    if not listed:
        raise NothingToCheck
    return listed


def exact_laws(make: Make) -> list[ExactLaw]:
    """Return the exact laws of those small randomizers that state them, at least one."""
    randomizers = (randomizer for randomizer, _ in laws(make))
    return some(ExactLaw.of(each) for each in randomizers if each.profile.channel is not None)


def on_exact_laws(check: Callable[[ExactLaw], None]) -> Check:
    """Return the check of one exact law as one of all of them."""

    @wraps(check)
    def check_all(make: Make) -> None:
        for law in exact_laws(make):
            check(law)

    return check_all


def check_epsilon0_is_at_most_asked(make: Make) -> None:
    """Check that the loss is at most the one asked for, and not much less where it need not be."""
    for randomizer, asked in laws(make):
        found = randomizer.epsilon0
        demand(0.0 <= found <= asked, f"{describe(randomizer)} costs more than asked, {asked}")
        if 0.01 <= asked <= 10.0:
            what = f"{describe(randomizer)} leaves privacy loss unused: {asked} were asked for"
            demand(found >= asked * (1.0 - 1e-6), what)


def check_rebuilding_gives_the_same_law(make: Make) -> None:
    """Check that a randomizer made from the epsilon0 that another one prints is the same."""
    for randomizer, _ in laws(make):
        again = make(randomizer.domain_size, randomizer.epsilon0)
        demand(
            (again.epsilon0, again.fingerprint) == (randomizer.epsilon0, randomizer.fingerprint),
            f"{describe(randomizer)}, made again from its own epsilon0, is {describe(again)} "
            "with another law; see thresholds.settle",
        )


def check_fingerprints_name_the_law(make: Make) -> None:
    """Check that different laws have different fingerprints."""
    law_of: dict[str, tuple[int, float]] = {}
    for k, asked in itertools.product((*SMALL_K, LARGE_K), (0.0, 1.0, 1.0 + 1e-12, 2.0)):
        randomizer = make(k, asked)
        law = randomizer.domain_size, randomizer.epsilon0
        known = law_of.setdefault(randomizer.fingerprint, law)
        what = f"{describe(randomizer)} has the fingerprint of the law with (k, epsilon0) = {known}"
        demand(known == law, what)


def check_profile_states_the_law(make: Make) -> None:
    """Check that the profile states this law, and no analysis of another family."""
    for randomizer in [law for law, _ in laws(make)] + [make(LARGE_K, 1.0)]:
        profile, what = randomizer.profile, f"the profile of {describe(randomizer)} states"
        size = profile.domain_size
        demand(profile.epsilon0 == randomizer.epsilon0, f"{what} epsilon0 = {profile.epsilon0}")
        demand(profile.delta0 == 0.0, f"{what} delta0 = {profile.delta0}, not 0")
        share = profile.participation
        demand(share == 1.0, f"{what} participation = {share}, though each user sends a report")
        demand(size == randomizer.domain_size, f"{what} {size} categories")
        allowed = {RandomizerFamily.ANY, RandomizerFamily.OTHER, randomizer.name}
        other = f"{what} the family {profile.family.value!r}, whose analysis is not its own"
        demand(profile.family in allowed, other)
        if profile.channel is not None:
            small = randomizer.domain_size < LARGE_K
            demand(small, f"{what} a channel, too large to be written out")
            demand(profile.channel() == randomizer.channel(), f"{what} another channel")


@on_exact_laws
def check_channel_rows_sum_to_one(law: ExactLaw) -> None:
    """Check that the channel is exact, and its rows are probabilities."""
    demand(len(law.channel) == law.randomizer.domain_size, f"the channel of {law} has not k rows")
    for code, row in enumerate(law.channel):
        what = f"row {code} of the channel of {law}"
        exact = all(isinstance(probability, Fraction) for probability in row)
        demand(exact, f"{what} is not of fractions, so that it is not exact")
        demand(min(row) >= 0 and sum(row) == 1, f"{what} sums to {float(sum(row))}, not to 1")


@on_exact_laws
def check_epsilon0_is_the_exact_loss(law: ExactLaw) -> None:
    """Check that the loss is the largest log-ratio in the channel, rounded up."""
    ratio = Fraction(1)
    for number, column in law.possible_columns():
        what = f"report {number} of {law} rules out a category, at an infinite loss"
        demand(min(column) > 0, what)
        ratio = max(ratio, max(column) / min(column))
    loss, found = log_ratio_upper(ratio), law.randomizer.epsilon0
    demand(found >= loss, f"{law} understates its loss, which is {loss} by its channel")
    above = math.nextafter(loss, math.inf)
    demand(found <= above, f"{law} overstates its loss, which is {loss} by its channel")


def check_blanket_is_the_infimum(make: Make) -> None:
    """Check that the atoms come from the infimum of the channel, whatever the pair."""
    for law in some(law for law in exact_laws(make) if law.randomizer.profile.blanket):
        stated: dict[tuple[float, float], float] = defaultdict(float)
        for atom in law.randomizer.profile.blanket:
            stated[_snap(atom.ratio0), _snap(atom.ratio1)] += atom.mass
        for pair in itertools.permutations(range(law.randomizer.domain_size), 2):
            exact: dict[tuple[float, float], Fraction] = defaultdict(Fraction)
            for _, column in law.possible_columns():
                omega = min(column)
                first, second = (_snap(float(column[truth] / omega)) for truth in pair)
                exact[first, second] += omega
            for ratios in sorted(exact.keys() | stated.keys()):
                expected, found = float(exact.get(ratios, 0)), stated.get(ratios, 0.0)
                # Mass times ratio matters: it may be large where mass is nearly nothing.
                error = abs(found - expected) * max(ratios)
                demand(
                    error <= 1e-9 * expected * max(ratios) + 1e-12,
                    f"{law} states the mass {found} for the ratios {ratios}, where the infimum of "
                    f"its channel has {expected} for categories {pair}: state the atoms of the "
                    "infimum, or no blanket where pairs of categories differ in them",
                )


def _snap(ratio: float) -> float:
    """Return the ratio to nine digits, so that round-off does not tell atoms apart."""
    return float(f"{ratio:.9g}")


def check_attack_is_possible(make: Make) -> None:
    """Check that reports of three categories tell as much as the attack states, however merged.

    No linear test of (law of all others, of the first, of the second) may tell more. Edges of the
    zonoid of the exact law span the tests to ask (Koshevoy and Mosler, 1998).
    """
    for law in some(law for law in exact_laws(make) if law.randomizer.profile.attack):
        attack = law.randomizer.profile.attack
        stated = np.array([(a.mass, a.mass * a.ratio0, a.mass * a.ratio1) for a in attack])
        total = stated.sum(axis=0)
        demand(bool(np.allclose(total, 1.0, 1e-9)), f"the attack of {law} sums to {total}, not 1")
        others = range(law.randomizer.domain_size)
        asked = ([z, *pair] for pair in itertools.permutations(others, 2) for z in others)
        excess = min(_excess(np.array(law.channel, float)[triple].T, stated) for triple in asked)
        what = f"the attack of {law} tells more than its channel by {excess:.3g}: state the ratios"
        demand(excess <= 1e-9, f"{what} of the laws of two categories to that of a third one")


def _excess(exact: NDArray[np.float64], stated: NDArray[np.float64]) -> float:
    """Return by how much some linear test gains more from one law than from another one."""
    kinds = np.unique(exact.round(12), axis=0)
    tests = np.cross(kinds[:, None], kinds).reshape(-1, 3)
    tests /= np.abs(tests).max(axis=1, keepdims=True) + 1e-300
    gains = (np.maximum(law @ tests.T, 0.0).sum(axis=0) for law in (stated, exact))
    return float(np.subtract(*gains).max())


def check_blanket_means_are_one(make: Make) -> None:
    """Check that mass times ratio sums to 1, as it does for two probability laws."""
    randomizers = [law for law, _ in laws(make)] + [make(k, 1.0) for k in (16, LARGE_K)]
    for randomizer in some(each for each in randomizers if each.profile.blanket):
        atoms, what = randomizer.profile.blanket, f"the blanket of {describe(randomizer)} has"
        mass = math.fsum(atom.mass for atom in atoms)
        demand(mass <= 1.0 + 1e-9, f"{what} mass {mass}, above 1")
        for name in ("ratio0", "ratio1"):
            mean = math.fsum(atom.mass * getattr(atom, name) for atom in atoms)
            demand(abs(mean - 1.0) <= 1e-9, f"{what} mass times {name} of {mean}, not 1")


def _rows(data: NDArray[Any]) -> list[bytes]:
    """Return each report as bytes."""
    return [row.tobytes() for row in data]


@on_exact_laws
def check_report_columns_are_all_reports(law: ExactLaw) -> None:
    """Check that each column of the channel has its report, and no other report is drawn."""
    columns, what = law.columns, f"report_columns of {law}"
    num_columns = len(law.channel[0])
    demand(columns.num_reports == num_columns, f"{what} has not one report a column")
    demand(len(set(_rows(columns.data))) == num_columns, f"{what} has a report twice")
    drawn = draw(law.randomizer, 2_000).data
    demand(drawn.dtype == columns.data.dtype, f"{what} has another type than those drawn")
    possible = {number for number, _ in law.possible_columns()}
    listed = {row for number, row in enumerate(_rows(columns.data)) if number in possible}
    demand(listed.issuperset(_rows(drawn)), f"{law} draws reports that its channel rules out")


@on_exact_laws
def check_supports_have_two_probabilities(law: ExactLaw) -> None:
    """Check the probabilities to support the truth, and each other category."""
    k = law.randomizer.domain_size
    demand(law.supported.dtype == np.bool_, f"supports of {law} are not booleans")
    demand(law.supported.shape == (law.columns.num_reports, k), f"supports of {law} are not (n, k)")
    stated = law.randomizer.support_probabilities
    exact: dict[bool, Fraction] = {}
    for truth, category in itertools.product(range(k), repeat=2):
        is_other, found = truth != category, law.support(truth, category)
        demand(
            math.isclose(float(found), stated[is_other], rel_tol=1e-14),
            f"a report of {law} supports category {category} with probability {float(found)} if "
            f"the truth is {truth}, not {stated[is_other]} as in support_probabilities",
        )
        # Where nothing can be estimated, the float nearest to them is all that they share.
        if law.randomizer.epsilon0 > 0.0:
            same = exact.setdefault(is_other, found) == found
            demand(same, f"the support probabilities of {law} differ from category to category")


@on_exact_laws
def check_estimates_are_unbiased(law: ExactLaw) -> None:
    """Check that a report is estimated, in expectation, as one user of its true category."""
    p, q = law.randomizer.support_probabilities
    if p - q < 1e-12:
        return  # nothing can be estimated, or not in floats
    each = [
        law.randomizer.estimate(Reports(data=row[None], fingerprint=law.columns.fingerprint))
        for row in law.columns.data
    ]
    estimates = [[Fraction(value) for value in one.frequency.tolist()] for one in each]
    for truth, category in itertools.product(range(law.randomizer.domain_size), repeat=2):
        row = zip(law.channel[truth], estimates, strict=True)
        mean = sum((share * one[category] for share, one in row), start=Fraction(0))
        demand(
            abs(float(mean - (truth == category))) <= 1e-12 + 1e-14 / (p - q),
            f"estimates of {law} are biased: a user of category {truth} adds {float(mean)} users "
            f"to category {category} in expectation",
        )


# Probability that correct reports fail `check_samples_follow_channel`.
_FALSE_POSITIVE_RATE = 1e-12
_SAMPLES = 100_000  # a category, where all checks are run
_BATCH, _BATCHES = 3, 300  # users of a batch, and batches a category, whose ends are checked


def check_samples_follow_channel(
    randomizer: CategoryRandomizer, *, seed: int, num_reports: int = 1_000_000
) -> None:
    """Check that reports are drawn from the channel, and each independently of the one before.

    Parameters
    ----------
    randomizer : CategoryRandomizer
        With a `channel` and `report_columns`.
    seed : int
        Seed of the simulation, >= 0. The same seed gives the same answer.
    num_reports : int
        Reports drawn for each category, at least 2.

    Raises
    ------
    ContractError
        If the reports are too unlikely: with a probability of at most 1e-12 if they are correct.
    ParameterError
        If the randomizer has no channel, or an argument is out of range.

    Notes
    -----
    Source: Chernoff's bound (1952): a share s of n reports, each with probability p, is that far
    above p or further with probability at most exp(-n KL(s, p)), and likewise below, for the
    divergence KL of two coins. Bonferroni over all reports of all categories, and over all pairs
    of a report and the next one. The bound holds for every n and p. A share p is found wrong when
    it is off by more than about 8 sqrt(p / n).

    Examples
    --------
    >>> from shuffledp.randomizers import KRandomizedResponse
    >>> law = KRandomizedResponse(domain_size=3, epsilon0=1.0)
    >>> check_samples_follow_channel(law, seed=1, num_reports=10_000)
    """
    n = require_at_least("num_reports", num_reports, 2)
    law = ExactLaw.of(randomizer)
    k, num_columns = len(law.channel), len(law.channel[0])
    codes = np.repeat(np.arange(k), n)
    reports = randomizer.randomize(codes, Entropy.from_seed(seed))
    columns = _columns_of(law, reports).reshape(k, n)
    num_cells = k * (num_columns + num_columns**2)
    least_log = math.log(_FALSE_POSITIVE_RATE / (2 * num_cells))
    for code, row in enumerate(law.channel):
        probabilities = np.array(row, dtype=np.float64)
        drawn = columns[code]
        _demand_shares(drawn, probabilities, least_log, f"{law} draws, for category {code}, report")
        pairs = drawn[: n // 2 * 2].reshape(-1, 2) @ np.array([num_columns, 1])
        joint = np.outer(probabilities, probabilities).reshape(-1)
        what = f"{law} does not draw reports independently: for category {code}, pair"
        _demand_shares(pairs, joint, least_log, what)


def _demand_shares(
    cells: NDArray[np.int64], probabilities: NDArray[np.float64], least_log: float, what: str
) -> None:
    """Raise `ContractError` if a cell is hit so often, or so rarely, that Chernoff objects."""
    shares = np.bincount(cells, minlength=probabilities.size) / cells.size
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(shares > 0.0, shares * np.log(shares / probabilities), 0.0)
        missed = (1.0 - shares) * np.log((1.0 - shares) / (1.0 - probabilities))
    divergence = hit + np.where(shares < 1.0, missed, 0.0)
    worst = int(divergence.argmax())
    demand(
        -cells.size * float(divergence[worst]) >= least_log,
        f"{what} {worst} with a share of {shares[worst]:.6g}, not {probabilities[worst]:.6g}",
    )


def _columns_of(law: ExactLaw, reports: Reports) -> NDArray[np.int64]:
    """Return the column of the channel that each report stands for."""
    data = np.concatenate([law.columns.data, reports.data])
    rows = data.reshape(len(data), -1).view(np.uint8)
    keys, number = np.unique(rows.view(f"V{rows.shape[1]}").ravel(), return_inverse=True)
    num_columns = law.columns.num_reports
    demand(len(keys) == num_columns, f"{law} draws reports that report_columns does not list")
    column_of = np.empty(num_columns, dtype=np.int64)
    column_of[number[:num_columns]] = np.arange(num_columns)
    return column_of[number[num_columns:]]


def check_samples_follow_the_channel(make: Make) -> None:
    """Check that reports of few categories and two losses pass `check_samples_follow_channel`."""
    randomizers = [make(k, epsilon0) for k, epsilon0 in itertools.product(SMALL_K, (0.5, 2.0))]
    for randomizer in some(each for each in randomizers if each.profile.channel is not None):
        check_samples_follow_channel(randomizer, seed=1, num_reports=_SAMPLES)


def check_ends_of_batches_follow_the_channel(make: Make) -> None:
    """Check that the first and the last report of a batch follow the channel as all others do."""
    made = [make(k, 0.5) for k in SMALL_K]
    for law in some(ExactLaw.of(each) for each in made if each.profile.channel is not None):
        num_cells = 2 * len(law.channel) * len(law.channel[0])
        least_log = math.log(_FALSE_POSITIVE_RATE / (2 * num_cells))
        entropy = Entropy.from_seed(1)
        for code, row in enumerate(law.channel):
            codes, probabilities = np.full(_BATCH, code), np.array(row, dtype=np.float64)
            drawn = [law.randomizer.randomize(codes, entropy).data for _ in range(_BATCHES)]
            for place in ("first", "last"):
                data = np.stack([batch[0 if place == "first" else -1] for batch in drawn])
                reports = Reports(data=data, fingerprint=law.randomizer.fingerprint)
                what = f"{law} draws, for category {code} of the {place} user, report"
                _demand_shares(_columns_of(law, reports), probabilities, least_log, what)
