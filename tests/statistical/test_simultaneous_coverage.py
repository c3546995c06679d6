"""Simultaneous intervals hold all true frequencies at once as often as they say."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from shuffledp.core.entropy import Entropy
from shuffledp.estimation import estimate_frequencies, intervals
from shuffledp.estimation.intervals import simultaneous_confidence
from shuffledp.randomizers import RANDOMIZERS, Counts, make_randomizer

# Probability that correct code fails this module: Bonferroni over all comparisons made in it.
FALSE_POSITIVE_RATE = 1e-9

CONFIDENCE = 0.95
NUM_RUNS = 600
# Randomizer, k, users a run. Where chance supports a category so rarely that its law is far from
# normal, roots of the score alone are too short; that is tested apart.
SETTINGS = [
    *((name, 16, 2_000) for name in RANDOMIZERS),
    *((name, 1024, 1_000) for name in RANDOMIZERS if name != "k-rr"),
]
RARE_SETTINGS = [("k-rr", 1024, 1_000), ("k-rr", 1024, 10_000)]
INDEPENDENT = ("symmetric-unary", "optimized-unary")  # each bit is drawn for itself
NUM_COMPARISONS = 2 * (len(SETTINGS) + len(RARE_SETTINGS))
REJECTION_LEVEL = FALSE_POSITIVE_RATE / NUM_COMPARISONS


def truth(k, num_users):
    """Return the users' codes: most have the first two categories, and nobody the last ones."""
    num_by_code = np.zeros(k, dtype=int)
    num_by_code[:4] = num_users // 2, num_users // 4, num_users // 5, num_users // 20
    assert num_by_code.sum() == num_users
    return np.repeat(np.arange(k), num_by_code), num_by_code


def simulate(randomizer, num_users, seed):
    """Return the support of each category in each of many collections from the same users."""
    codes, _ = truth(randomizer.domain_size, num_users)
    entropy = Entropy.from_seed(seed)
    return np.array(
        [
            randomizer.aggregate(randomizer.randomize(codes, entropy)).support
            for _ in range(NUM_RUNS)
        ]
    )


def held(randomizer, num_users, support, *, simultaneous=True, stretch=1.0):
    """Return, for each run, whether all intervals hold their true frequencies."""
    frequency = truth(randomizer.domain_size, num_users)[1] / num_users
    result = []
    for run in support:
        estimates = estimate_frequencies(
            Counts(support=run, num_reports=num_users, fingerprint=""),
            support_probabilities=randomizer.support_probabilities,
            confidence=CONFIDENCE,
            simultaneous=simultaneous,
        )
        centre = (estimates.lower + estimates.upper) / 2
        margin = stretch * (estimates.upper - estimates.lower) / 2
        result.append((np.abs(frequency - centre) <= margin).all())
    return np.array(result)


def misses(probabilities, k, num_users, num_supporters):
    """Return the exact probabilities that one of k intervals lies above the truth, and below it."""
    p, q = probabilities
    law = np.convolve(
        binom.pmf(np.arange(num_supporters + 1), num_supporters, p),
        binom.pmf(np.arange(num_users - num_supporters + 1), num_users - num_supporters, q),
    )
    possible = np.flatnonzero(law > 1e-18)
    lower, upper = intervals.SupportLaw(p, q, num_users).wilson_interval(
        (possible / num_users - q) / (p - q),
        simultaneous_confidence(CONFIDENCE, k),
    )
    share = num_supporters / num_users
    law = law[possible]
    return float(law[lower > share].sum()), float(law[upper < share].sum())


def exact_bracket(randomizer, num_users):
    """Return bounds of the coverage of all intervals at once, from the exact law of each support.

    Bonferroni below. Above, the rarest of them alone; or where bits are independent, both ends are
    the product.
    """
    k, probabilities = randomizer.domain_size, randomizer.support_probabilities
    each = {
        num: sum(misses(probabilities, k, num_users, num))
        for num in set(truth(k, num_users)[1].tolist())
    }
    all_misses = [each[num] for num in truth(k, num_users)[1].tolist()]
    if randomizer.name in INDEPENDENT:
        product = math.prod(1.0 - miss for miss in all_misses)
        return product, product
    return 1.0 - sum(all_misses), 1.0 - max(all_misses)


def p_values(num_held, lower, upper):
    """Return binomial tails: that so few runs are held at least, and that so many are at most."""
    few = binom.cdf(num_held, NUM_RUNS, max(lower, 0.0))
    many = binom.sf(num_held - 1, NUM_RUNS, upper)
    return float(few), float(many)


@pytest.fixture(scope="module", params=SETTINGS, ids=lambda setting: f"{setting[0]}-{setting[1]}")
def collections(request):
    """Return a randomizer, the number of users, and the supports of many collections."""
    name, k, num_users = request.param
    randomizer = make_randomizer(name, domain_size=k, epsilon0=1.0)
    return randomizer, num_users, simulate(randomizer, num_users, seed=k)


def test_all_intervals_hold_at_once(collections):
    lower, upper = exact_bracket(*collections[:2])
    assert CONFIDENCE - 0.01 < lower <= upper < 1.0
    few, many = p_values(int(held(*collections).sum()), lower, upper)
    assert min(few, many) > REJECTION_LEVEL


def test_intervals_for_each_alone_do_not_hold_at_once(collections):
    num_held = int(held(*collections, simultaneous=False).sum())
    assert p_values(num_held, CONFIDENCE - 0.01, 1.0)[0] < REJECTION_LEVEL
    if collections[0].domain_size == 1024:
        assert num_held == 0


def test_intervals_too_short_are_rejected(collections):
    num_held = int(held(*collections, stretch=0.7).sum())
    lower, _ = exact_bracket(*collections[:2])
    assert p_values(num_held, lower, 1.0)[0] < REJECTION_LEVEL


def test_intervals_too_long_are_rejected(collections):
    randomizer, num_users, _ = collections
    if randomizer.name not in INDEPENDENT:
        return  # the coverage is not known exactly
    _, upper = exact_bracket(randomizer, num_users)
    if upper**NUM_RUNS > REJECTION_LEVEL:
        return  # so many categories are rare that even the right intervals hardly ever miss
    num_held = int(held(*collections, stretch=1.6).sum())
    assert p_values(num_held, 0.0, upper)[1] < REJECTION_LEVEL


@pytest.mark.parametrize(("name", "k", "num_users"), RARE_SETTINGS)
def test_rare_categories_are_held_by_the_exact_law_and_not_by_roots(
    name, k, num_users, monkeypatch
):
    # Chance supports a category 1 time here, and 10 times there: a normal law it is not.
    randomizer = make_randomizer(name, domain_size=k, epsilon0=1.0)
    support = simulate(randomizer, num_users, seed=1)
    lower, _ = exact_bracket(randomizer, num_users)
    assert lower >= CONFIDENCE
    assert (
        p_values(int(held(randomizer, num_users, support).sum()), lower, 1.0)[0] > REJECTION_LEVEL
    )
    monkeypatch.setattr(intervals, "_NORMAL_FROM", 0.0)
    above, below = misses(randomizer.support_probabilities, k, num_users, 0)
    assert below < 1e-12  # of categories that nobody has, so that only large supports miss
    num_empty = int((truth(k, num_users)[1] == 0).sum())
    # The numbers of reports of k-RR are negatively associated (Joag-Dev, Proschan 1983), so that
    # all are small at once with at most the product of their probabilities.
    assert (1.0 - above) ** num_empty < CONFIDENCE - 0.1
    num_held = int(held(randomizer, num_users, support).sum())
    assert p_values(num_held, CONFIDENCE, 1.0)[0] < REJECTION_LEVEL


# Few users, many categories or little noise: what chance supports is skewed.
SKEWED = [
    ("k-rr", 1000, 1.0, 100),
    ("k-rr", 1000, 2.0, 100),
    ("k-rr", 1000, 8.0, 100),
    ("k-rr", 4, 8.0, 200),
    ("optimized-unary", 1000, 2.0, 100),
    ("k-rr", 1024, 1.0, 3_000),
]


@pytest.mark.parametrize("num_intervals", [1, 1000])
@pytest.mark.parametrize(("name", "k", "epsilon0", "num_users"), SKEWED)
def test_a_skewed_law_is_covered_whatever_the_share(name, k, epsilon0, num_users, num_intervals):
    probabilities = make_randomizer(name, domain_size=k, epsilon0=epsilon0).support_probabilities
    allowed = 1.0 - simultaneous_confidence(CONFIDENCE, num_intervals)
    for holders in range(0, num_users + 1, num_users // 20):
        assert sum(misses(probabilities, num_intervals, num_users, holders)) <= allowed


def test_roots_alone_cover_a_rare_category_too_seldom(monkeypatch):
    # What the docstring of `SupportLaw.wilson_interval` says of a category that nobody has.
    monkeypatch.setattr(intervals, "_NORMAL_FROM", 0.0)
    monkeypatch.setattr(intervals, "_FINE_FROM", 0.0)
    probabilities = make_randomizer("k-rr", domain_size=1000, epsilon0=2.0).support_probabilities
    assert 1.0 - sum(misses(probabilities, 1, 100, 0)) == pytest.approx(0.905, abs=5e-4)


@pytest.mark.parametrize("num_users", [1_000, 10_000, 100_000])
def test_a_category_that_nobody_has_is_missed_seldom_enough(num_users):
    probabilities = make_randomizer("k-rr", domain_size=1024, epsilon0=1.0).support_probabilities
    missed = sum(misses(probabilities, 1024, num_users, 0))
    assert missed <= 1.0 - simultaneous_confidence(CONFIDENCE, 1024)


@pytest.mark.parametrize("num_slots", [1, 3])
def test_tails_of_a_support_are_those_of_two_binomials(num_slots):
    law = intervals.SupportLaw(p=0.7, q=0.04, num_users=30, num_slots=num_slots)
    for holders in (0, 11, 30):
        exact = np.convolve(
            binom.pmf(np.arange(holders + 1), holders, 0.7),
            binom.pmf(np.arange(30 * num_slots - holders + 1), 30 * num_slots - holders, 0.04),
        )
        for support in (0, 1, 8, 30):
            above = law.tail(holders, support, is_lower=True)
            below = law.tail(holders, support, is_lower=False)
            assert above == pytest.approx(exact[support:].sum(), abs=1e-12)
            assert below == pytest.approx(exact[: support + 1].sum(), abs=1e-12)
