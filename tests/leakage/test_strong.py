"""The informed adversary: every way against the listing of all reports, and against one another."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.informed_guesses import all_counts, informed_guess, known_laws, mixed_law, uniform
from oracles.shuffled_guesses import k_rr
from shuffledp.amplification.registry import account_delta
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.leakage import strong
from shuffledp.leakage.channel import Channel
from shuffledp.leakage.counts import coarse_lattice
from shuffledp.leakage.counts.others import Coins, mode_mass
from shuffledp.leakage.strong import (
    _checked,
    strong_vulnerability,
    vulnerability_ends,
    worst_knowledge,
)

EVEN = np.full(2, 0.5)
TRUTHS = (Fraction(1, 2), Fraction(4, 5), Fraction(19, 20))
PRIORS = {
    2: ([0.5, 0.5], [0.75, 0.25]),
    3: ([1 / 3, 1 / 3, 1 / 3], [0.5, 0.375, 0.125]),
    4: ([0.25] * 4, [0.5, 0.25, 0.125, 0.125]),
}


def ends(randomizer, counts, *, prior=None, num_unknown=0):
    """Return the enclosure without anything exact."""
    return vulnerability_ends(_checked(randomizer, counts, prior, num_unknown))


def fractions(values):
    exact = [Fraction(value) for value in values]
    return [value / sum(exact) for value in exact]


@pytest.mark.parametrize("domain_size", [2, 3, 4])
@pytest.mark.parametrize("truth", TRUTHS)
def test_all_knowledge_of_small_collections(domain_size, truth):
    channel = k_rr(domain_size, truth)
    for total in range({2: 6, 3: 5, 4: 3}[domain_size]):
        for counts, prior in itertools.product(all_counts(total, domain_size), PRIORS[domain_size]):
            exact = informed_guess(fractions(prior), channel, known_laws(channel, counts))
            found = strong_vulnerability(truth, counts, prior=prior)
            assert found.lower - 1e-15 <= exact <= found.upper + 1e-15
            assert found.upper - found.lower <= 1e-11
            around = ends(truth, counts, prior=prior)
            assert around.lower - 1e-15 <= exact <= around.upper + 1e-15


@pytest.mark.parametrize("domain_size", [2, 3])
def test_partial_knowledge(domain_size):
    truth = Fraction(7, 10)
    channel = k_rr(domain_size, truth)
    for total, unknown in itertools.product(range(3), range(1, 3)):
        for counts, prior in itertools.product(all_counts(total, domain_size), PRIORS[domain_size]):
            law = fractions(prior)
            laws = known_laws(channel, counts) + [mixed_law(law, channel)] * unknown
            exact = float(informed_guess(law, channel, laws))
            found = strong_vulnerability(truth, counts, prior=prior, num_unknown=unknown)
            assert found.lower - 1e-15 <= exact <= found.upper + 1e-15
            assert found.upper - found.lower <= 1e-11
            around = ends(truth, counts, prior=prior, num_unknown=unknown)
            assert around.lower - 1e-15 <= exact <= around.upper + 1e-15


@st.composite
def channels(draw):
    domain_size, num_outcomes = draw(st.integers(2, 3)), draw(st.integers(1, 4))
    rows = [
        draw(st.lists(st.integers(0, 6), min_size=num_outcomes, max_size=num_outcomes).filter(any))
        for _ in range(domain_size)
    ]
    counts = draw(st.lists(st.integers(0, 2), min_size=domain_size, max_size=domain_size))
    parts = draw(
        st.lists(st.integers(0, 5), min_size=domain_size, max_size=domain_size).filter(any)
    )
    law = [Fraction(part, sum(parts)) for part in parts]
    return (
        [[Fraction(a, sum(row)) for a in row] for row in rows],
        counts,
        law,
        draw(st.integers(0, 1)),
    )


@settings(max_examples=50)
@given(channels())
def test_any_channel(case):
    channel, counts, law, unknown = case
    laws = known_laws(channel, counts) + [mixed_law(law, channel)] * unknown
    exact = float(informed_guess(law, channel, laws))
    prior = [float(each) for each in law]
    floats = [[float(each) for each in row] for row in channel]
    for given_as in (floats, Channel(channel)):
        found = strong_vulnerability(given_as, counts, prior=prior, num_unknown=unknown)
        assert found.lower - 1e-14 <= exact <= found.upper + 1e-14
        assert found.upper - found.lower <= 1e-11
    around = ends(floats, counts, prior=prior, num_unknown=unknown)
    assert around.lower - 1e-14 <= exact <= around.upper + 1e-14


def test_the_figure_of_the_source():
    none, half = strong_vulnerability(0.8, [0, 200]), strong_vulnerability(0.8, [100, 100])
    assert (round(none.upper, 5), round(half.upper, 5)) == (0.52111, 0.52116)
    assert none.upper - none.lower < 1e-14
    # Its eq. 10 as printed, with the maximum over reports inside the sum over values, is no
    # probability of a right guess: mean modes, two per cent instead of fifty-two.
    assert half.method == none.method == "mode"


@pytest.mark.parametrize("num_users", [2, 3, 10, 101, 1000, 100_001])
@pytest.mark.parametrize("truth", [0.55, 0.8, 0.99])
def test_total_variation_of_the_accountant(num_users, truth):
    """At the worst knowledge 2 V - 1 is delta at epsilon = 0, which is accounted for otherwise."""
    profile = LocalProfile(
        epsilon0=float(np.log(truth / (1.0 - truth))),
        family=RandomizerFamily.K_RANDOMIZED_RESPONSE,
        domain_size=2,
    )
    delta = account_delta(profile, num_users=num_users, epsilon=0.0, method="binary-exact")
    worst, counts = worst_knowledge(num_users, truth, EVEN)
    assert (counts is not None) == (num_users % 2 == 1 or num_users <= 501)
    assert 2.0 * worst.upper - 1.0 >= delta.lower * (1.0 - 1e-9)
    assert 2.0 * worst.lower - 1.0 <= delta.upper * (1.0 + 1e-9)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.5001, 0.4999], [0.6, 0.4]])
@pytest.mark.parametrize("others", [1000, 10**9])
def test_ways_agree_for_two_values(prior, others):
    """Mode, numbers of one report, and the mean positive part of i.i.d. terms."""
    counted = strong_vulnerability([[0.8, 0.2], [0.2, 0.8]], [0, others], prior=prior)
    named = strong_vulnerability(0.8, [0, others], prior=prior)
    assert counted.method == "count"
    from shuffledp.leakage.uninformed import exchangeable_vulnerability

    summed = exchangeable_vulnerability(
        others + 1, [[0.8, 0.2], [0.2, 0.8]], prior=prior, crowd=[0.2, 0.8]
    )
    for one, other in itertools.combinations((counted, named, summed), 2):
        assert one.lower <= other.upper + 1e-14
        assert other.lower <= one.upper + 1e-14
    assert counted.upper - counted.lower < 1e-12


def test_ways_agree_for_one_law():
    """All histograms by transform against the largest weighted load."""
    counts, truth = (0, 60, 0), 0.6
    listed = strong_vulnerability(truth, counts)
    assert listed.method == "histograms"
    from shuffledp.leakage.uninformed import exchangeable_vulnerability

    rows = np.full((3, 3), 0.2) + 0.4 * np.eye(3)
    other = exchangeable_vulnerability(61, rows, crowd=rows[1])
    assert listed.lower <= other.upper + 1e-12
    assert other.lower <= listed.upper + 1e-12
    assert other.upper - other.lower < 1e-9


@pytest.mark.parametrize("prior", [None, [0.4, 0.3, 0.3]])
def test_ends_at_moderate_sizes(prior):
    for counts, unknown in [((40, 30, 20), 0), ((90, 0, 0), 0), ((0, 0, 0), 90), ((50, 0, 0), 40)]:
        exact = strong_vulnerability(0.7, counts, prior=prior, num_unknown=unknown)
        around = ends(0.7, counts, prior=prior, num_unknown=unknown)
        assert exact.upper - exact.lower < 1e-9
        assert around.lower <= exact.upper
        assert exact.lower <= around.upper


@pytest.fixture
def few_nodes(monkeypatch):
    """Leave blocks of four and five values out, for the time they take."""
    monkeypatch.setattr(coarse_lattice, "_MOST_NODES", 1e5)


@pytest.mark.slow
@pytest.mark.usefixtures("few_nodes")
def test_large_sizes():
    even = strong_vulnerability(0.6, [10**6] * 5)
    assert 0.2 < even.lower < even.upper < 0.2002
    many = strong_vulnerability(0.3, [10**5] * 10**4)
    assert 1e-4 < many.lower < many.upper < 1.005e-4
    prior = np.full(3000, 1.0 / 3001)
    prior[0] *= 2.0
    skewed = strong_vulnerability(0.3, [10**5] * 3000, prior=prior)
    assert 2.0 / 3001 * (1.0 - 1e-14) <= skewed.lower < skewed.upper < 2.1 / 3001
    one = strong_vulnerability(0.5, [10**9 - 1, 0, 0, 0])
    assert 0.25 < one.lower < one.upper < 0.25 + 1e-4
    unknown = strong_vulnerability(0.5, [0] * 1000, num_unknown=10**6)
    assert unknown.method == "uniform crowd"
    assert unknown.upper - unknown.lower < 1e-12


def test_two_values_and_many_reports():
    rows = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]
    listed = strong_vulnerability(rows, [300, 500])
    around = ends(rows, [300, 500])
    assert listed.method == "histograms"
    assert around.lower <= listed.lower <= listed.upper <= around.upper
    wide = strong_vulnerability(rows, [10**5, 2 * 10**5])
    assert wide.method == "coarse lattice"
    assert 0.5 < wide.lower < wide.upper < 0.501
    assert wide.upper - wide.lower < 1e-3 * (wide.upper - 0.5)
    alike = strong_vulnerability(rows, [10**5, 0])
    assert alike.upper - alike.lower < 1e-9


def test_more_reports_than_axes_and_useless_sets():
    rng = Entropy.from_seed(11).generator()
    rows = rng.dirichlet(np.ones(25), size=2)
    found = strong_vulnerability(rows, [1, 1])
    exact = float(
        informed_guess(
            uniform(2),
            [[Fraction(each) for each in row] for row in rows],
            known_laws([[Fraction(each) for each in row] for row in rows], [1, 1]),
        )
    )
    assert found.lower - 1e-12 <= exact <= found.upper + 1e-12
    assert found.method == "ends"
    # No report is better evidence for the second of two values: no set is worth counting.
    same = ends([[0.5, 0.5], [0.5, 0.5]], [1, 1], prior=[0.9, 0.1])
    assert same.lower == pytest.approx(0.9, abs=1e-12)


# ---------------------------------------------------------------- edges


def test_edges_of_the_regime():
    assert strong_vulnerability(0.75, [0, 0]).upper == pytest.approx(0.75, abs=1e-12)
    assert strong_vulnerability(0.75, [0, 0], prior=[0.9, 0.1]).lower == pytest.approx(0.9)
    assert strong_vulnerability(1, [3, 2, 0]).upper == 1.0
    assert strong_vulnerability(1, [3, 2, 0]).lower == 1.0
    assert strong_vulnerability(1 / 3, [3, 2, 0]).method == "no information"
    assert strong_vulnerability(1 / 3, [3, 2, 0]).upper == pytest.approx(1 / 3)
    assert strong_vulnerability(0.6, [3, 2, 0], prior=[0, 1, 0]).upper == pytest.approx(1.0)
    partly = strong_vulnerability(1, [100, 50], num_unknown=7)
    assert partly.upper == pytest.approx(strong_vulnerability(1, [0, 0], num_unknown=7).upper)
    assert partly.upper == pytest.approx(0.5 + 35 / 256)  # Theorem 17 at n = 8
    assert strong_vulnerability([[1.0], [1.0]], [3, 4]).upper == pytest.approx(0.5)


# ---------------------------------------------------------------- invariance


@settings(max_examples=30)
@given(st.permutations([5, 2, 0, 1]), st.floats(0.3, 0.95))
def test_names_of_values_do_not_matter(counts, truth):
    first = strong_vulnerability(truth, [5, 2, 0, 1])
    again = strong_vulnerability(truth, counts)
    assert again.upper == pytest.approx(first.upper, abs=1e-12)


def test_knowing_more_tells_more_on_average():
    """A uniform user who becomes known, averaged over what is learnt of him."""
    truth = 0.7
    for counts, unknown in [((2, 1, 0), 1), ((1, 1, 1), 3), ((4, 0, 0), 2)]:
        less = strong_vulnerability(truth, counts, num_unknown=unknown)
        more = [
            strong_vulnerability(
                truth,
                [count + (x == learnt) for x, count in enumerate(counts)],
                num_unknown=unknown - 1,
            )
            for learnt in range(3)
        ]
        assert less.lower <= np.mean([each.upper for each in more])


def test_more_noise_and_more_users_tell_less():
    last = 1.0
    for truth in (0.99, 0.9, 0.7, 0.5, 0.4):
        found = strong_vulnerability(truth, [5, 5, 5])
        assert found.upper <= last + 1e-12
        last = found.upper
    last = 1.0
    for each in (1, 2, 5, 10, 100):
        found = strong_vulnerability(0.7, [0, each, 0])
        assert found.upper <= last
        last = found.upper


def test_ends_are_close_next_to_no_information(monkeypatch):
    monkeypatch.setattr(strong, "coarse_vulnerability", lambda *_: None)
    found = strong_vulnerability(0.2000001, (2000, 2000, 2000, 2000, 1000))
    assert found.method == "ends"
    assert found.upper - found.lower < 1e-6 * found.upper


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((0.8, [3]), {}, ParameterError, "known_counts has 1 entries"),
        ((0.8, [3, -1]), {}, ParameterError, "known_counts = -1"),
        ((0.8, [3, 1.5]), {}, ParameterError, "known_counts"),
        ((0.3, [3, 1]), {}, OutOfRegimeError, "= 0.3 is below 1/k"),
        ((float("nan"), [3, 1]), {}, ParameterError, "truth"),
        ((0.8, [10**10, 1]), {}, ParameterError, "num_users"),
        ((0.8, [3, 1]), {"num_unknown": -1}, ParameterError, "num_unknown = -1"),
        ((0.8, [3, 1]), {"prior": [0.5, 0.6]}, ParameterError, "prior"),
        (([[0.8, 0.2], [0.2, 0.8]], [3, 1, 1]), {}, ParameterError, "the channel 2 rows"),
        (([[0.8, 0.3], [0.2, 0.8]], [3, 1]), {}, ParameterError, "row"),
    ],
)
def test_refusals(arguments, options, error, message):
    with pytest.raises(error, match=message):
        strong_vulnerability(*arguments, **options)


def test_mixed_counts_are_enclosed_closely():
    found = strong_vulnerability(0.6, (12_000, 9_000, 8_999))
    assert found.method == "coarse lattice"
    assert found.upper - found.lower < 2e-4 * (found.lower - 1 / 3)
    six = strong_vulnerability(0.6, (2000,) * 6)
    assert six.method == "ends"
    assert 1 / 6 < six.lower < six.upper < six.lower + 3e-3


# ---------------------------------------------------------------- the worst knowledge


@pytest.mark.parametrize(
    ("num_users", "domain_size"), [(1, 2), (2, 2), (5, 2), (6, 2), (1, 3), (4, 3), (5, 3), (4, 4)]
)
@pytest.mark.parametrize("truth", [Fraction(11, 20), Fraction(4, 5)])
def test_all_knowledge_by_enumeration(num_users, domain_size, truth):
    channel = k_rr(domain_size, truth)
    values = {
        counts: informed_guess(uniform(domain_size), channel, known_laws(channel, counts))
        for counts in all_counts(num_users - 1, domain_size)
    }
    exact = max(values.values())
    found, counts = worst_knowledge(num_users, truth, np.full(domain_size, 1.0 / domain_size))
    assert found.lower <= exact <= found.upper
    assert found.upper - found.lower < 1e-10
    assert float(values[counts]) == pytest.approx(float(exact), abs=1e-12)


def test_half_of_an_even_number_is_the_worst_case():
    truth = Fraction(4, 5)
    for others in (2, 8, 50):
        best = max(
            mode_mass([Coins(c, truth), Coins(others - c, 1 - truth)]).lower
            for c in range(others + 1)
        )
        balanced, counts = worst_knowledge(others + 1, truth, EVEN)
        assert 0.5 + 0.3 * best <= balanced.upper
        assert counts == (others // 2, others // 2)


def test_ends_are_close_where_not_all_is_compared(monkeypatch):
    one, counts = worst_knowledge(400, 0.8, EVEN)
    assert counts is not None
    monkeypatch.setattr(strong, "_MOST_SCANNED", 10)
    other, counts = worst_knowledge(400, 0.8, EVEN)
    assert counts is None
    assert other.lower <= one.upper
    assert one.lower <= other.upper
    assert other.upper - other.lower < 3e-5


@pytest.mark.parametrize("num_users", [10**9, 10**9 + 1])
def test_two_values_at_any_size(num_users):
    worst, _ = worst_knowledge(num_users, 0.8, EVEN)
    for counts in ((num_users // 2, (num_users - 1) // 2), (0, num_users - 1)):
        assert strong_vulnerability(0.8, counts).lower <= worst.upper


def test_ends_for_more_values(monkeypatch):
    even = np.full(3, 1 / 3)
    exact, counts = worst_knowledge(14, 0.6, even)
    assert counts is not None
    for limit, value in (("_MOST_VALUES", 2), ("_MOST_COUNTS", 3)):
        with monkeypatch.context() as patch:
            patch.setattr(strong, limit, value)
            ends, counts = worst_knowledge(14, 0.6, even)
            assert counts is None
            assert ends.lower <= exact.lower <= exact.upper <= ends.upper
    # The worst case of fewer users is above.
    monkeypatch.setattr(strong, "_MOST_COUNTS", 20)
    fewer, counts = worst_knowledge(13, 0.6, even)
    assert counts is not None
    ends, counts = worst_knowledge(14, 0.6, even)
    assert counts is None
    assert exact.upper <= ends.upper <= fewer.upper


@pytest.mark.usefixtures("few_nodes")
@pytest.mark.parametrize(
    ("num_users", "domain_size"), [(10**4, 5), (10**6, 100), (10**9, 10**4), (10**9, 3)]
)
def test_worst_knowledge_of_many(num_users, domain_size):
    worst, counts = worst_knowledge(num_users, 0.6, np.full(domain_size, 1.0 / domain_size))
    assert counts is None
    assert 1.0 / domain_size < worst.lower < worst.upper < 1.2 / domain_size


def test_edges_of_the_worst_knowledge():
    for values in (2, 3):
        prior = np.full(values, 1.0 / values)
        assert worst_knowledge(1, 0.75, prior)[0].upper == pytest.approx(0.75)
        assert worst_knowledge(9, 1, prior)[0].lower == 1.0
        assert worst_knowledge(9, 1 / values, prior)[0].upper == pytest.approx(1.0 / values)
        with pytest.raises(OutOfRegimeError):
            worst_knowledge(9, 0.2, prior)


@pytest.mark.parametrize("prior", [[0.5, 0.3, 0.2], [1 / 3, 1 / 3, 1 / 3]])
def test_any_prior_and_channel_by_enumeration(prior):
    rows = [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5]]
    law = [Fraction(each) / sum(map(Fraction, prior)) for each in prior]
    for randomizer, channel in [
        (0.6, k_rr(3, Fraction(0.6))),
        (rows, [[Fraction(each) for each in row] for row in rows]),
    ]:
        values = {
            counts: float(informed_guess(law, channel, known_laws(channel, counts)))
            for counts in all_counts(3, 3)
        }
        found, counts = worst_knowledge(4, randomizer, np.array(prior))
        exact = max(values.values())
        assert found.lower - 1e-14 <= exact <= found.upper + 1e-14
        assert found.upper - found.lower < 1e-10
        assert values[counts] == pytest.approx(exact, abs=1e-12)


def test_more_users_never_help():
    last = 1.0
    for num_users in (2, 5, 9, 14):
        worst, _ = worst_knowledge(num_users, 0.6, np.full(3, 1 / 3))
        assert worst.upper <= last
        last = worst.upper
