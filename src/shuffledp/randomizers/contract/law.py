"""Checks of the law that a randomizer states: exact, where it states its channel."""

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.profile import RandomizerFamily
from shuffledp.core.reports import Reports
from shuffledp.randomizers.contract.tools import (
    LARGE_K,
    SMALL_K,
    ExactLaw,
    Make,
    demand,
    describe,
    draw,
    exact_laws,
    laws,
    on_exact_laws,
)
from shuffledp.randomizers.thresholds import log_ratio_upper

_NO_RATIO = "if the two-valued likelihood does not hold, give the class likelihood_ratio = None"


def check_epsilon0_is_at_most_asked(make: Make) -> bool:
    """Check that the loss is at most the one asked for, and not much less where it need not be."""
    for randomizer, asked in laws(make):
        found = randomizer.epsilon0
        demand(0.0 <= found <= asked, f"{describe(randomizer)} costs more than asked, {asked}")
        if 0.01 <= asked <= 10.0:
            what = f"{describe(randomizer)} leaves privacy loss unused: {asked} were asked for"
            demand(found >= asked * (1.0 - 1e-6), what)
    return True


def check_rebuilding_gives_the_same_law(make: Make) -> bool:
    """Check that a randomizer made from the epsilon0 that another one prints is the same."""
    for randomizer, _ in laws(make):
        again = make(randomizer.k, randomizer.epsilon0)
        demand(
            (again.epsilon0, again.fingerprint) == (randomizer.epsilon0, randomizer.fingerprint),
            f"{describe(randomizer)}, made again from its own epsilon0, is {describe(again)} "
            "with another law; see thresholds.settle",
        )
    return True


def check_fingerprints_name_the_law(make: Make) -> bool:
    """Check that different laws have different fingerprints."""
    law_of: dict[str, tuple[int, float]] = {}
    for k, asked in itertools.product((*SMALL_K, LARGE_K), (0.0, 1.0, 1.0 + 1e-12, 2.0)):
        randomizer = make(k, asked)
        law = randomizer.k, randomizer.epsilon0
        known = law_of.setdefault(randomizer.fingerprint, law)
        what = f"{describe(randomizer)} has the fingerprint of the law with (k, epsilon0) = {known}"
        demand(known == law, what)
    return True


def check_profile_states_the_law(make: Make) -> bool:
    """Check that the accountant is told this law, and no analysis of another family."""
    for randomizer in [law for law, _ in laws(make)] + [make(LARGE_K, 1.0)]:
        profile, what = randomizer.profile, f"the profile of {describe(randomizer)} states"
        demand(profile.epsilon0 == randomizer.epsilon0, f"{what} epsilon0 = {profile.epsilon0}")
        demand(profile.delta0 == 0.0, f"{what} delta0 = {profile.delta0}, not 0")
        demand(profile.domain_size == randomizer.k, f"{what} {profile.domain_size} categories")
        allowed = {RandomizerFamily.ANY, RandomizerFamily.OTHER, randomizer.name}
        what_else = f"{what} the family {profile.family.value!r}, whose analysis is not its own"
        demand(profile.family in allowed, what_else)
        if profile.channel is not None:
            demand(randomizer.k < LARGE_K, f"{what} a channel, too large to be written out")
            demand(profile.channel() == randomizer.channel(), f"{what} another channel")
    return True


@on_exact_laws
def check_channel(law: ExactLaw) -> None:
    """Check that the channel is exact, and its rows are probabilities."""
    demand(len(law.channel) == law.randomizer.k, f"the channel of {law} has not k rows")
    for code, row in enumerate(law.channel):
        what = f"row {code} of the channel of {law}"
        exact = all(isinstance(probability, Fraction) for probability in row)
        demand(exact, f"{what} is not of fractions, so that it is not exact")
        demand(min(row) >= 0 and sum(row) == 1, f"{what} sums to {float(sum(row))}, not to 1")


@on_exact_laws
def check_epsilon0_is_exact(law: ExactLaw) -> None:
    """Check that the loss is the largest log-ratio in the channel, rounded up."""
    ratio = Fraction(1)
    for number, column in law.possible_columns():
        what = f"report {number} of {law} rules out a category, at an infinite loss"
        demand(min(column) > 0, what)
        ratio = max(ratio, max(column) / min(column))
    loss = log_ratio_upper(ratio)
    found = law.randomizer.epsilon0
    demand(found >= loss, f"{law} understates its loss, which is {loss} by its channel")
    above = math.nextafter(loss, math.inf)
    demand(found <= above, f"{law} overstates its loss, which is {loss} by its channel")


def check_blanket_is_the_infimum(make: Make) -> bool:
    """Check that the atoms are those of the infimum of the channel, whatever the pair."""
    stating = [law for law in exact_laws(make) if law.randomizer.profile.blanket]
    for law in stating:
        stated: dict[tuple[float, float], float] = defaultdict(float)
        for atom in law.randomizer.profile.blanket:
            stated[_snap(atom.ratio0), _snap(atom.ratio1)] += atom.mass
        for pair in itertools.permutations(range(law.randomizer.k), 2):
            _demand_blanket(law, pair, stated)
    return bool(stating)


def _demand_blanket(
    law: ExactLaw, pair: tuple[int, int], stated: Mapping[tuple[float, float], float]
) -> None:
    """Raise `ContractError` unless the infimum of the channel has these atoms for the pair."""
    exact: dict[tuple[float, float], Fraction] = defaultdict(Fraction)
    for _, column in law.possible_columns():
        omega = min(column)
        first, second = (float(column[truth] / omega) for truth in pair)
        exact[_snap(first), _snap(second)] += omega
    for ratios in sorted(exact.keys() | stated.keys()):
        expected, found = float(exact.get(ratios, 0)), stated.get(ratios, 0.0)
        # Mass times ratio is what counts: it may be large where mass is nearly nothing.
        error = abs(found - expected) * max(ratios)
        demand(
            error <= 1e-9 * expected * max(ratios) + 1e-12,
            f"{law} states the mass {found} for the ratios {ratios}, where the infimum of its "
            f"channel has {expected} for categories {pair}: state the atoms of the infimum, or no "
            "blanket where pairs of categories differ in them",
        )


def _snap(ratio: float) -> float:
    """Return the ratio to nine digits, so that round-off does not tell atoms apart."""
    return float(f"{ratio:.9g}")


def check_blanket_means_are_one(make: Make) -> bool:
    """Check that mass times ratio sums to 1, as it does for two probability laws."""
    randomizers = [law for law, _ in laws(make)] + [make(k, 1.0) for k in (16, LARGE_K)]
    stating = [randomizer for randomizer in randomizers if randomizer.profile.blanket]
    for randomizer in stating:
        atoms, what = randomizer.profile.blanket, f"the blanket of {describe(randomizer)} has"
        mass = math.fsum(atom.mass for atom in atoms)
        demand(mass <= 1.0 + 1e-9, f"{what} mass {mass}, above 1")
        for name in ("ratio0", "ratio1"):
            mean = math.fsum(atom.mass * getattr(atom, name) for atom in atoms)
            demand(abs(mean - 1.0) <= 1e-9, f"{what} mass times {name} of {mean}, not 1")
    return bool(stating)


def _rows(data: NDArray[Any]) -> list[bytes]:
    """Return each report as bytes."""
    return [row.tobytes() for row in data]


@on_exact_laws
def check_report_columns(law: ExactLaw) -> None:
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
    k = law.randomizer.k
    demand(law.supported.dtype == np.bool_, f"supports of {law} are not booleans")
    demand(law.supported.shape == (law.columns.num_reports, k), f"supports of {law} are not (n, k)")
    stated = law.randomizer.support_probabilities
    exact: dict[bool, Fraction] = {}
    for truth, category in itertools.product(range(k), repeat=2):
        is_other = truth != category
        found = law.support(truth, category)
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
    for truth, category in itertools.product(range(law.randomizer.k), repeat=2):
        row = zip(law.channel[truth], estimates, strict=True)
        mean = sum((share * one[category] for share, one in row), start=Fraction(0))
        demand(
            abs(float(mean - (truth == category))) <= 1e-12 + 1e-14 / (p - q),
            f"estimates of {law} are biased: a user of category {truth} adds {float(mean)} users "
            f"to category {category} in expectation",
        )


@on_exact_laws
def check_likelihood_ratio(law: ExactLaw) -> None:
    """Check that likelihood_ratio is that of the channel, if it is stated."""
    stated = law.randomizer.likelihood_ratio
    if stated is None:
        return
    for number, column in law.possible_columns():
        is_supported = law.supported[number].tolist()
        inside = set(itertools.compress(column, is_supported))
        outside = set(itertools.compress(column, [not each for each in is_supported]))
        uniform = len(inside) <= 1 and len(outside) <= 1
        demand(uniform, f"report {number} of {law} says more than what it supports: {_NO_RATIO}")
        if inside and outside:
            ratio = float(inside.pop() / outside.pop())
            what = f"report {number} of {law} has the likelihood ratio {ratio}, not {stated}"
            demand(math.isclose(ratio, stated, rel_tol=1e-12), f"{what}: {_NO_RATIO}")
