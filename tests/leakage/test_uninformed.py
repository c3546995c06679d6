"""The uninformed adversary, against all data and all ways against one another."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.fullest_bin import by_listing, exact_maximum_load, maximum_load
from oracles.multinomial_exact import exact_exchangeable_vulnerability
from oracles.shuffled_guesses import identity, k_rr, one_target, random_rows
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage import uninformed as exchangeable
from shuffledp.leakage.counts.others import Kind, by_histograms
from shuffledp.leakage.uninformed import (
    exchangeable_vulnerability,
    largest_share_upper,
    many_values_ends,
    shuffled_vulnerability,
)

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "leakage_values.json").read_text(encoding="ascii")
)
TRUTHS = (Fraction(1), Fraction(9, 10), Fraction(3, 5))


def exact_shuffled(num_users, domain_size, truth):
    """Eq. 17 in fractions, with Theorem 17 for two values."""
    if domain_size == 2:
        half = num_users // 2
        load = Fraction(1, 2) + Fraction(math.comb(2 * half, half), 2 ** (2 * half + 1))
        return 1 - truth + (2 * truth - 1) * load
    false = (1 - Fraction(truth)) / (domain_size - 1)
    return false + (truth - false) * exact_maximum_load(num_users, domain_size) / num_users


def uniform(domain_size):
    return [Fraction(1, domain_size)] * domain_size


@pytest.mark.parametrize("domain_size", [2, 3, 4])
@pytest.mark.parametrize("truth", [Fraction(1), Fraction(3, 5), "least"])
def test_all_data_listed(domain_size, truth):
    truth = Fraction(1, domain_size) if truth == "least" else truth
    for num_users in range(1, 7 if domain_size == 2 else 5):
        exact = one_target(num_users, k_rr(domain_size, truth), uniform(domain_size))
        assert exact_shuffled(num_users, domain_size, truth) == exact
        found = shuffled_vulnerability(num_users, domain_size, truth)
        assert found.lower <= exact <= found.upper
        assert found.upper - found.lower <= 2e-12
        as_float = shuffled_vulnerability(num_users, domain_size, float(truth))
        assert as_float.upper == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("truth", TRUTHS)
def test_propositions_by_histograms(truth):
    # Props. 16, 18, 20 and 21 sum over histograms; Theorems 17 and 19 and eq. 17 do not.
    for num_users, domain_size in ((7, 2), (24, 2), (9, 3), (20, 3), (8, 5)):
        summed = exact_exchangeable_vulnerability(num_users, k_rr(domain_size, truth))
        assert exact_shuffled(num_users, domain_size, truth) == summed


def test_theorem_17_as_printed():
    for num_users in [*range(1, 60), 200, 1001]:
        printed = Fraction(1, 2) + Fraction(
            math.comb(num_users - 1, (num_users - 1) // 2), 2**num_users
        )
        found = shuffled_vulnerability(num_users, 2, 1)
        assert found.lower <= printed <= found.upper
        assert found.upper - found.lower <= 1e-14


@pytest.mark.parametrize("num_users", [126, 128, 129, 130, 131, 1000, 99_999, 100_000])
def test_theorem_17_across_the_series(num_users):
    exact = exact_shuffled(num_users, 2, 1)
    found = shuffled_vulnerability(num_users, 2, 1)
    assert found.lower <= exact <= found.upper


@pytest.mark.parametrize("entry", GOLDEN["shuffled"])
def test_golden(entry):
    found = shuffled_vulnerability(entry["num_users"], entry["domain_size"], entry["truth"])
    assert found.lower <= entry["value"] <= found.upper or found.upper == pytest.approx(
        entry["value"], rel=1e-14
    )
    assert found.upper - found.lower <= 1e-10 * found.upper


@pytest.mark.parametrize(
    ("num_users", "domain_size", "truth", "digits"),
    [
        (200, 2, 1.0, "0.5282"),  # printed as .5286
        (200, 2, 0.9, "0.5225"),
        (200, 2, 0.6, "0.5056"),
        (100, 3, 1.0, "0.3826"),
        (1000, 3, 1.0, "0.3488"),
    ],
)
def test_values_in_the_text(num_users, domain_size, truth, digits):
    found = shuffled_vulnerability(num_users, domain_size, truth)
    assert f"{found.lower:.4f}" == f"{found.upper:.4f}" == digits


@pytest.mark.parametrize(("domain_size", "truth"), [(2, 0.9), (5, 0.8)])
def test_the_excess_falls_as_a_root_and_not_exponentially(domain_size, truth):
    few, many = (  # Sec. IV-B and VI-B print "exponentially"
        shuffled_vulnerability(n, domain_size, truth).lower - 1.0 / domain_size
        for n in (200, 20_000)
    )
    assert few / many == pytest.approx(10.0, rel=0.02)


@given(st.integers(1, 10**15), st.floats(0.5, 1.0), st.floats(0.5, 1.0))
def test_two_values_monotone(num_users, first, second):
    low, high = sorted((first, second))
    noisy, clear = (shuffled_vulnerability(num_users, 2, truth) for truth in (low, high))
    assert noisy.lower <= clear.upper
    assert 0.5 * (1.0 - 1e-12) <= noisy.lower <= noisy.upper <= high * (1.0 + 1e-12)
    more = shuffled_vulnerability(min(num_users + 1, 10**15), 2, low)
    assert more.lower <= noisy.upper


@given(st.integers(1, 400), st.integers(3, 30), st.floats(0.0, 1.0))
def test_many_values_monotone(num_users, domain_size, share):
    truth = 1.0 / domain_size + share * (1.0 - 1.0 / domain_size)
    found = shuffled_vulnerability(num_users, domain_size, truth)
    assert found.lower <= truth * (1.0 + 1e-12)  # never beyond the randomizer alone
    assert found.upper >= 1.0 / domain_size
    assert shuffled_vulnerability(num_users + 1, domain_size, truth).lower <= found.upper
    assert found.lower <= shuffled_vulnerability(num_users, domain_size, 1).upper


def test_edges():
    for domain_size in (2, 3, 10_000):
        for num_users in (1, 2, 10**9):
            blind = shuffled_vulnerability(num_users, domain_size, 1.0 / domain_size)
            assert blind.upper == pytest.approx(1.0 / domain_size, rel=1e-14)
        alone = shuffled_vulnerability(1, domain_size, 1)
        assert alone.upper == 1.0
        assert alone.lower == pytest.approx(1.0, rel=1e-14)
    half = shuffled_vulnerability(1, 3, Fraction(1, 2))
    assert half.lower <= Fraction(1, 2) <= half.upper


@pytest.mark.parametrize("domain_size", [2, 3, 7, 10_000])
def test_a_rounded_blind_guess_is_no_refusal(domain_size):
    truth = 1.0 / (1.0 + (domain_size - 1) * math.exp(-0.0))
    assert shuffled_vulnerability(10, domain_size, truth).upper == pytest.approx(1.0 / domain_size)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: shuffled_vulnerability(0, 2, 1.0), ParameterError, "num_users = 0"),
        (lambda: shuffled_vulnerability(10**15 + 1, 2, 1.0), ParameterError, "is above"),
        (lambda: shuffled_vulnerability(5, 1, 1.0), ParameterError, "domain_size = 1"),
        (lambda: shuffled_vulnerability(5, 2, 1.01), ParameterError, "truth"),
        (lambda: shuffled_vulnerability(5, 2, -0.1), ParameterError, "truth"),
        (lambda: shuffled_vulnerability(5, 2, math.nan), ParameterError, "truth"),
        (lambda: shuffled_vulnerability(5, 3, 0.3), OutOfRegimeError, "p >= 1/k"),
        (lambda: shuffled_vulnerability(5, 3, Fraction(3, 10)), OutOfRegimeError, "p >= 1/k"),
    ],
)
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_oracle_knows_the_shuffler():
    # Three users, two values: 3/4 by hand.
    assert one_target(3, identity(2), uniform(2)) == Fraction(3, 4)


@st.composite
def problems(draw, most_users=5):
    """A channel, a prior and perhaps a crowd, in fractions."""
    seed = draw(st.integers(0, 10**6))
    rng = Entropy.from_seed(seed).generator()
    domain_size, num_outcomes = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    channel = random_rows(rng, domain_size, num_outcomes)
    (prior,) = random_rows(rng, 1, domain_size)
    crowd = random_rows(rng, 1, num_outcomes)[0] if rng.integers(2) else None
    return draw(st.integers(1, most_users)), channel, prior, crowd


def contains(found, exact, width):
    """Whether an enclosure holds and is no wider than said."""
    return found.lower <= exact <= found.upper and found.upper - found.lower <= width


@settings(max_examples=60)
@given(problems())
def test_all_data_listed_of_exchangeable(problem):
    num_users, channel, prior, crowd = problem
    if crowd is None and len(channel) ** num_users > 300:
        num_users = 3
    exact = one_target(num_users, channel, prior, crowd)
    assert exact_exchangeable_vulnerability(num_users, channel, prior=prior, crowd=crowd) == exact
    found = exchangeable_vulnerability(num_users, channel, prior=prior, crowd=crowd)
    assert contains(found, exact, 2e-11)
    assert found.upper == pytest.approx(float(exact), rel=1e-11)


@settings(max_examples=40)
@given(problems(most_users=12))
def test_every_way_agrees(problem):
    """Histograms and pairs, where the first choice may be another."""
    num_users, channel, prior, crowd = problem
    exact = exact_exchangeable_vulnerability(num_users, channel, prior=prior, crowd=crowd)
    form = exchangeable.multinomial_form(num_users, channel, prior=prior, crowd=crowd)
    assert form.certain <= exact <= form.unshuffled * (1.0 + 1e-14)
    assert form.without_release <= exact * (1.0 + Fraction(1, 10**14))
    if len(form.gains) == 1:
        assert form.without_release == pytest.approx(float(exact), rel=1e-13)
        return
    found = by_histograms([Kind(num_users - 1, form.law)], form.gains * form.law)
    assert found.upper - found.lower <= 1e-11
    assert form.certain + found.lower <= exact + Fraction(1, 10**14)
    assert form.certain + found.upper >= exact - Fraction(1, 10**14)
    paired = exchangeable._by_pairs(form)
    assert paired.lower - 1e-13 <= exact <= paired.upper + 1e-13


@pytest.mark.parametrize("entry", GOLDEN["exchangeable"])
def test_golden_of_exchangeable(entry):
    def law(weights):
        return None if weights is None else np.array(weights) / sum(weights)

    channel = [law(row) for row in entry["channel"]]
    found = exchangeable_vulnerability(
        entry["num_users"], channel, prior=law(entry["prior"]), crowd=law(entry["crowd"])
    )
    assert contains(found, entry["value"], 1e-11)


@pytest.mark.parametrize("domain_size", [2, 3, 7])
@pytest.mark.parametrize("truth", [1.0, 0.8, 0.45])
def test_uniform_is_equation_17(domain_size, truth):
    truth = max(truth, 1.0 / domain_size + 0.1)
    for num_users in (1, 2, 10, 1000, 10**6):
        ours = exchangeable_vulnerability(num_users, k_rr(domain_size, truth))
        paper = shuffled_vulnerability(num_users, domain_size, truth)
        assert ours.lower <= paper.upper
        assert paper.lower <= ours.upper
        assert ours.upper - ours.lower <= 1e-7 * ours.upper


def by(monkeypatch, *left_out):
    """Leave ways out, so that the next one is taken."""
    ways = {"load": "_by_load", "histograms": "by_histograms"}
    for name in left_out:
        monkeypatch.setattr(exchangeable, ways[name], lambda *_: None)


@pytest.mark.parametrize(
    ("num_users", "channel", "prior"),
    [
        (60, identity(4), [0.25, 0.3, 0.25, 0.2]),
        (60, k_rr(4, 0.7), None),
        (8, identity(5), [0.1, 0.2, 0.2, 0.2, 0.3]),
    ],
)
def test_load_and_histograms(monkeypatch, num_users, channel, prior):
    load = exchangeable_vulnerability(num_users, channel, prior=prior)
    by(monkeypatch, "load")
    listed = exchangeable_vulnerability(num_users, channel, prior=prior)
    assert (load.method, listed.method) == ("load", "histograms")
    assert max(load.lower, listed.lower) <= min(load.upper, listed.upper)
    assert load.upper - load.lower <= 1e-9
    assert listed.upper - listed.lower <= 1e-10


def test_load_is_for_one_favourite_a_column():
    # Each column has a favourite, but two have the same; and one column has two that differ.
    for channel in (
        [[0.4, 0.4, 0.2], [0.25, 0.25, 0.5], [0.25, 0.25, 0.5]],
        [[0.6, 0.2, 0.2], [0.3, 0.5, 0.2], [0.1, 0.3, 0.6]],
        # A shuffler that loses a fifth of the reports: the last column favours nobody.
        [[0.8, 0.0, 0.0, 0.2], [0.0, 0.8, 0.0, 0.2], [0.0, 0.0, 0.8, 0.2]],
    ):
        found = exchangeable_vulnerability(9, channel)
        exact = exact_exchangeable_vulnerability(
            9, [[Fraction(round(20 * entry), 20) for entry in row] for row in channel]
        )
        assert found.method != "load"
        assert contains(found, exact, 1e-11)


def test_where_a_load_takes_too_long(monkeypatch):
    exact = exchangeable_vulnerability(300, identity(3), prior=[0.3, 0.3, 0.4])
    monkeypatch.setattr("shuffledp.leakage.counts.fullest_bin._MOST_STEPS", 0.0)
    found = exchangeable_vulnerability(300, identity(3), prior=[0.3, 0.3, 0.4])
    assert (exact.method, found.method) == ("load", "histograms")
    assert max(exact.lower, found.lower) <= min(exact.upper, found.upper)


def test_the_target_who_gives_himself_away():
    # Only the target can send outcome 1; everybody else sends 0.
    channel = [[Fraction(1, 4), Fraction(3, 4)], [Fraction(1, 2), Fraction(1, 2)]]
    crowd = [Fraction(1), Fraction(0)]
    exact = one_target(4, channel, [Fraction(1, 2)] * 2, crowd)
    found = exchangeable_vulnerability(4, channel, crowd=crowd)
    assert exact == Fraction(5, 8)
    assert contains(found, exact, 1e-13)
    nobody = exchangeable_vulnerability(4, [[0, 1], [0, 1]], crowd=[Fraction(1), 0])
    assert contains(nobody, Fraction(1, 2), 1e-13)


def test_edges_of_exchangeable():
    point = exchangeable_vulnerability(10**9, k_rr(3, 0.8), prior=[0, 1, 0])
    assert point.method == "one guess"
    assert contains(point, 1, 1e-9)
    alone = exchangeable_vulnerability(1, k_rr(5, 0.4), prior=[0.3, 0.3, 0.2, 0.1, 0.1])
    assert alone.method == "one user"
    assert alone.upper == pytest.approx(0.12 + 0.12 + 0.08 + 2 * 0.045, rel=1e-12)
    silent = exchangeable_vulnerability(10**6, np.full((4, 4), 0.25))
    assert contains(silent, Fraction(1, 4), 1e-10)
    largest = exchangeable_vulnerability(10**15, k_rr(2, 0.75))
    assert contains(largest, shuffled_vulnerability(10**15, 2, 0.75).upper, 1e-6)


@pytest.mark.parametrize("num_users", [10**3, 10**6, 10**9, 10**12])
def test_two_values_at_any_size(num_users):
    # With two outcomes V - 1/2 is that of the closed form; and a third outcome is as good as none.
    closed = shuffled_vulnerability(num_users, 2, 0.8)
    split = [[0.4, 0.4, 0.2], [0.1, 0.1, 0.8]]
    for channel in (k_rr(2, 0.8), split):
        found = exchangeable_vulnerability(num_users, channel)
        assert found.method == "two guesses"
        assert found.lower <= closed.upper
        assert closed.lower <= found.upper
        gap = (found.upper - found.lower) / (closed.upper - 0.5)
        assert gap <= 1e-5 + 2e-14 * num_users


def test_a_clear_favourite_stays_the_guess():
    found = exchangeable_vulnerability(10**6, k_rr(6, 0.5), prior=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    assert found.method == "pairs"
    assert contains(found, 0.3, 1e-11)


@settings(max_examples=25)
@given(problems(most_users=8), st.integers(0, 10**6))
def test_invariances(problem, seed):
    num_users, channel, prior, crowd = problem
    rng = Entropy.from_seed(seed).generator()
    exact = exact_exchangeable_vulnerability(num_users, channel, prior=prior, crowd=crowd)
    # Names of values and of outcomes do not matter.
    rows, columns = rng.permutation(len(channel)), rng.permutation(len(channel[0]))
    renamed = [[channel[x][y] for y in columns] for x in rows]
    named_crowd = None if crowd is None else [crowd[y] for y in columns]
    found = exchangeable_vulnerability(
        num_users, renamed, prior=[prior[x] for x in rows], crowd=named_crowd
    )
    assert contains(found, exact, 2e-11)
    # One user more never helps the adversary: he could add a report himself.
    more = exchangeable_vulnerability(num_users + 1, channel, prior=prior, crowd=crowd)
    assert more.lower <= exact
    # Nor does noise on every report.
    noise = random_rows(rng, len(channel[0]), 3)
    noisy = [[sum(a * noise[y][z] for y, a in enumerate(row)) for z in range(3)] for row in channel]
    noisy_crowd = None
    if crowd is not None:
        noisy_crowd = [sum(a * noise[y][z] for y, a in enumerate(crowd)) for z in range(3)]
    less = exchangeable_vulnerability(num_users, noisy, prior=prior, crowd=noisy_crowd)
    assert less.lower <= exact


@pytest.mark.parametrize(
    ("arguments", "named", "match"),
    [
        ((5, k_rr(2, 0.8)), {}, "holds floats"),
        ((10**5, identity(3)), {}, "histograms"),
    ],
)
def test_exact_refusals(arguments, named, match):
    with pytest.raises(ParameterError, match=match):
        exact_exchangeable_vulnerability(*arguments, **named)


@pytest.mark.parametrize("law", [[0.5, 0.5], [0.7, 0.2, 0.1], [1.0]])
@pytest.mark.parametrize("num_balls", [1, 3, 7])
def test_it_is_above_the_exact_mean(num_balls, law):
    upper = largest_share_upper(num_balls, np.array(law))
    assert by_listing(num_balls, law) / num_balls <= upper <= 1.0


@pytest.mark.parametrize(("num_balls", "num_bins"), [(1_000, 10), (10**6, 1_000), (10**9, 10**4)])
def test_it_is_near_for_many_balls(num_balls, num_bins):
    upper = largest_share_upper(num_balls, np.full(num_bins, 1.0 / num_bins))
    exact = maximum_load(num_balls, num_bins).upper / num_balls
    assert exact <= upper
    # The excess over an even share is at most doubled.
    assert upper - 1.0 / num_bins <= 2.0 * (exact - 1.0 / num_bins)


@pytest.mark.parametrize(
    "law", [[Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], [Fraction(1, 3)] * 3, [1, 0, 0]]
)
@pytest.mark.parametrize("truth", [Fraction(1), Fraction(3, 5), Fraction(1, 3)])
def test_the_ends_hold_for_all_reports_of_few_users(law, truth, monkeypatch):
    prior = np.array([float(each) for each in law])
    for num_users in (1, 2, 5):
        exact = float(one_target(num_users, k_rr(3, truth), [Fraction(each) for each in law]))
        found = many_values_ends(num_users, float(truth), prior)
        assert found.lower <= exact <= found.upper
        if truth == 1 or np.ptp(prior) == 0.0:
            assert found.upper - found.lower < 1e-9
        # Moments where the load takes long.
        with monkeypatch.context() as patch:
            patch.setattr("shuffledp.leakage.uninformed.uneven_maximum", lambda *_: None)
            wide = many_values_ends(num_users, float(truth), prior)
        assert wide.lower <= found.lower + 1e-12
        assert exact <= wide.upper <= 2.0 * found.upper


def in_pairs(num_users, rows):
    return exchangeable.exchangeable_vulnerability(num_users, rows, prior=None, work=0.0)


def test_pairs_of_guesses(monkeypatch):
    by(monkeypatch, "load", "histograms")
    exact = shuffled_vulnerability(100, 5, 0.8)
    paired = in_pairs(100, k_rr(5, 0.8))
    assert paired.method == "pairs"
    assert paired.lower <= exact.lower <= exact.upper <= paired.upper
    assert paired.upper - paired.lower < 0.5


def test_many_rivals_are_not_paired(monkeypatch):
    monkeypatch.setattr(exchangeable, "_MOST_PAIRED", 5)
    by(monkeypatch, "load", "histograms")
    exact = shuffled_vulnerability(200, 3, 0.8)
    found = in_pairs(200, k_rr(3, 0.8))
    assert found.method == "pairs"
    assert found.lower == pytest.approx(1.0 / 3.0)
    assert exact.upper <= found.upper < 0.5
    few = in_pairs(2, k_rr(3, 0.8))
    assert shuffled_vulnerability(2, 3, 0.8).upper <= few.upper <= 0.8 * (1.0 + 1e-12)


@pytest.mark.parametrize(
    ("arguments", "named", "match"),
    [
        ((0, k_rr(2, 0.8)), {}, "num_users = 0"),
        ((10**16, k_rr(2, 0.8)), {}, "is above"),
        ((5, [[1.0]]), {}, "1 row"),
        ((5, [[0.5, 0.4], [0.5, 0.5]]), {}, "row 0"),
        ((5, [[0.5, 0.5], [1.5, -0.5]]), {}, "row 1"),
        ((5, k_rr(2, 0.8)), {"prior": [0.5, 0.25, 0.25]}, "prior has 3 entries"),
        ((5, k_rr(2, 0.8)), {"prior": [0.5, 0.4]}, "prior sums to"),
        ((5, k_rr(2, 0.8)), {"crowd": [1.0]}, "crowd has 1 entries, not 2"),
        ((5, k_rr(2, 0.8)), {"crowd": [0.5, 0.4]}, "crowd sums to 0.9"),
        ((5, k_rr(2, 0.8)), {"crowd": [1.5, -0.5]}, r"crowd\[\d\] = .* is not in"),
        ((5, k_rr(2, 0.8)), {"crowd": [math.nan, 1.0]}, r"crowd\[\d\] = .* is not in"),
        ((5, k_rr(2, 0.8)), {"crowd": [1.0, 1e-250]}, "below 1e-200"),
    ],
)
def test_refusals_of_exchangeable(arguments, named, match):
    with pytest.raises(ParameterError, match=match):
        exchangeable_vulnerability(*arguments, **named)
