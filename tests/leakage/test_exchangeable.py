"""One target in an exchangeable crowd: every way against enumeration, and against the others."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.multinomial_exact import exact_exchangeable_vulnerability
from oracles.shuffled_guesses import identity, k_rr, one_target, random_rows
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage import uninformed as exchangeable
from shuffledp.leakage.uninformed import (
    exchangeable_vulnerability,
    randomizer_vulnerability,
    shuffled_vulnerability,
)

FALSE_POSITIVE_RATE = 1e-8  # ten sampled calls at most, each of which fails with 1e-9

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "leakage_values.json").read_text(encoding="ascii")
)


@st.composite
def problems(draw, most_users=5):
    """A channel, a prior and perhaps a crowd, in fractions."""
    seed = draw(st.integers(0, 10**6))
    rng = Entropy.from_seed(seed).generator()
    num_values, num_outcomes = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    channel = random_rows(rng, num_values, num_outcomes)
    (prior,) = random_rows(rng, 1, num_values)
    crowd = random_rows(rng, 1, num_outcomes)[0] if rng.integers(2) else None
    return draw(st.integers(1, most_users)), channel, prior, crowd


def contains(found, exact, width):
    """Whether an enclosure holds and is no wider than said."""
    return found.lower <= exact <= found.upper and found.upper - found.lower <= width


@settings(max_examples=60)
@given(problems())
def test_all_data_listed(problem):
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
    """Listing, pairs and samples, where the first choice may be another."""
    num_users, channel, prior, crowd = problem
    exact = exact_exchangeable_vulnerability(num_users, channel, prior=prior, crowd=crowd)
    form = exchangeable.multinomial_form(num_users, channel, prior=prior, crowd=crowd)
    assert form.certain <= exact <= form.unshuffled * (1.0 + 1e-14)
    assert form.without_release <= exact * (1.0 + Fraction(1, 10**14))
    if len(form.gains) == 1:
        assert form.without_release == pytest.approx(float(exact), rel=1e-13)
        return
    windows = exchangeable.histogram_windows(form.num_users, form.law)
    gained = exchangeable._by_histograms(form, windows)
    assert gained.upper - gained.lower <= 1e-12
    assert form.without_release + gained.lower <= exact + Fraction(1, 10**14)
    assert form.without_release + gained.upper >= exact - Fraction(1, 10**14)
    paired = exchangeable._by_pairs(form)
    assert paired.lower - 1e-13 <= exact <= paired.upper + 1e-13


@pytest.mark.parametrize("entry", GOLDEN["exchangeable"])
def test_golden(entry):
    def law(weights):
        return None if weights is None else np.array(weights) / sum(weights)

    channel = [law(row) for row in entry["channel"]]
    found = exchangeable_vulnerability(
        entry["num_users"], channel, prior=law(entry["prior"]), crowd=law(entry["crowd"])
    )
    assert contains(found, entry["value"], 1e-11)


@pytest.mark.parametrize("num_values", [2, 3, 7])
@pytest.mark.parametrize("truth", [1.0, 0.8, 0.45])
def test_uniform_is_equation_17(num_values, truth):
    truth = max(truth, 1.0 / num_values + 0.1)
    for num_users in (1, 2, 10, 1000, 10**6):
        ours = exchangeable_vulnerability(num_users, k_rr(num_values, truth))
        paper = shuffled_vulnerability(num_users, num_values, truth)
        assert ours.lower <= paper.upper
        assert paper.lower <= ours.upper
        assert ours.upper - ours.lower <= 1e-7 * ours.upper


def by(monkeypatch, *left_out):
    """Leave ways out, so that the next one is taken."""
    nothing = {
        "load": ("_by_load", lambda _form: None),
        "histograms": ("MOST_HISTOGRAMS", 0),
    }
    monkeypatch.setattr(exchangeable, "_FEW_HISTOGRAMS", 0)
    for name in left_out:
        attribute, value = nothing[name]
        monkeypatch.setattr(exchangeable, attribute, value)


@pytest.mark.parametrize(
    ("num_users", "channel", "prior", "crowd"),
    [
        (60, identity(4), [0.25, 0.3, 0.25, 0.2], None),
        (60, k_rr(4, 0.7), None, [0.25, 0.3, 0.25, 0.2]),
        (60, k_rr(4, 0.7), None, None),
        # A shuffler that loses a third of the reports: the last column favours nobody.
        (40, [[2 / 3, 0, 0, 1 / 3], [0, 2 / 3, 0, 1 / 3], [0, 0, 2 / 3, 1 / 3]], None, None),
    ],
)
def test_load_and_histograms(monkeypatch, num_users, channel, prior, crowd):
    load = exchangeable_vulnerability(num_users, channel, prior=prior, crowd=crowd)
    by(monkeypatch, "load")
    listed = exchangeable_vulnerability(num_users, channel, prior=prior, crowd=crowd)
    assert (load.method, listed.method) == ("load", "histograms")
    assert max(load.lower, listed.lower) <= min(load.upper, listed.upper)
    assert load.upper - load.lower <= 1e-10
    assert listed.upper - listed.lower <= 1e-12


def test_load_is_for_one_favourite_a_column():
    # Each column has a favourite, but two have the same; and one column has two that differ.
    for channel in (
        [[0.4, 0.4, 0.2], [0.25, 0.25, 0.5], [0.25, 0.25, 0.5]],
        [[0.6, 0.2, 0.2], [0.3, 0.5, 0.2], [0.1, 0.3, 0.6]],
    ):
        found = exchangeable_vulnerability(9, channel)
        exact = exact_exchangeable_vulnerability(
            9, [[Fraction(round(20 * entry), 20) for entry in row] for row in channel]
        )
        assert found.method != "load"
        assert contains(found, exact, 1e-11)


def test_where_a_load_takes_too_long(monkeypatch):
    def refuse(*_arguments):
        raise OutOfRegimeError("too many balls")

    exact = exchangeable_vulnerability(300, identity(3))
    monkeypatch.setattr("shuffledp.leakage.fullest_bin.maximum_load", refuse)
    found = exchangeable_vulnerability(300, identity(3))
    assert (exact.method, found.method) == ("load", "histograms")
    assert max(exact.lower, found.lower) <= min(exact.upper, found.upper)


@pytest.mark.parametrize(
    ("num_users", "num_values", "truth", "prior", "share"),
    [
        (300, 3, 1.0, None, 0.06),
        (300, 3, 0.6, None, 0.06),
        (200, 4, 0.9, [0.26, 0.25, 0.25, 0.24], 0.08),
        (5, 4, 0.9, [0.7, 0.1, 0.1, 0.1], 0.4),  # a rare gain, and a range that is cut late
    ],
)
def test_samples_enclose_and_a_wrong_value_is_seen(
    monkeypatch, *, num_users, num_values, truth, prior, share
):
    channel = k_rr(num_values, truth)
    exact = exchangeable_vulnerability(num_users, channel, prior=prior)
    by(monkeypatch, "load", "histograms")
    found = exchangeable_vulnerability(
        num_users, channel, prior=prior, entropy=Entropy.from_seed(21), num_samples=100_000
    )
    assert found.method == "sampled"
    assert any("Monte Carlo over 100000" in each for each in found.assumptions)
    assert "Drawn from a seed." in found.assumptions
    assert found.lower <= exact.lower <= exact.upper <= found.upper
    gained = exact.upper - max(prior or [1.0 / num_values])
    # Had the gain been larger or smaller by that share, it would have shown.
    assert found.upper - found.lower <= share * gained
    assert found.upper < exact.upper + share * gained
    assert found.lower > exact.upper - share * gained


def test_samples_by_default_are_secret(monkeypatch):
    by(monkeypatch, "load", "histograms")
    found = exchangeable_vulnerability(50, k_rr(3, 0.6), num_samples=2000)
    assert "Drawn from the operating system's key." in found.assumptions
    exact = shuffled_vulnerability(50, 3, 0.6)
    assert found.lower <= exact.lower <= exact.upper <= found.upper


def test_without_samples_and_where_limits_fail(monkeypatch):
    by(monkeypatch, "load", "histograms")
    exact = shuffled_vulnerability(100, 5, 0.8)
    paired = exchangeable_vulnerability(100, k_rr(5, 0.8), num_samples=0)
    assert paired.method == "pairs"
    assert paired.lower <= exact.lower <= exact.upper <= paired.upper
    assert paired.upper - paired.lower < 0.5
    monkeypatch.setattr(
        exchangeable, "sampled_vulnerability", lambda *_args, **_named: Enclosure(0.9, 0.95)
    )
    assert exchangeable_vulnerability(100, k_rr(5, 0.8)) == paired


def test_many_rivals_are_not_paired(monkeypatch):
    monkeypatch.setattr(exchangeable, "_MOST_PAIRED", 5)
    by(monkeypatch, "load", "histograms")
    exact = shuffled_vulnerability(200, 3, 0.8)
    found = exchangeable_vulnerability(200, k_rr(3, 0.8), num_samples=0)
    assert found.method == "pairs"
    assert found.lower == pytest.approx(1.0 / 3.0)
    assert exact.upper <= found.upper < 0.5
    few = exchangeable_vulnerability(2, k_rr(3, 0.8), num_samples=0)
    assert shuffled_vulnerability(2, 3, 0.8).upper <= few.upper <= 0.8 * (1.0 + 1e-12)


def test_the_target_who_gives_himself_away():
    # Only the target can send outcome 1; everybody else sends 0.
    channel = [[Fraction(1, 4), Fraction(3, 4)], [Fraction(1, 2), Fraction(1, 2)]]
    crowd = [Fraction(1), Fraction(0)]
    exact = one_target(4, channel, [Fraction(1, 2)] * 2, crowd)
    found = exchangeable_vulnerability(4, channel, crowd=crowd)
    assert exact == Fraction(5, 8)
    assert contains(found, exact, 1e-13)
    assert found.upper == pytest.approx(randomizer_vulnerability(channel).upper)
    nobody = exchangeable_vulnerability(4, [[0, 1], [0, 1]], crowd=[Fraction(1), 0])
    assert contains(nobody, Fraction(1, 2), 1e-13)


def test_edges():
    point = exchangeable_vulnerability(10**9, k_rr(3, 0.8), prior=[0, 1, 0])
    assert point.method == "one guess"
    assert contains(point, 1, 1e-9)
    alone = exchangeable_vulnerability(1, k_rr(5, 0.4), prior=[0.3, 0.3, 0.2, 0.1, 0.1])
    assert alone.method == "one user"
    assert contains(
        alone, randomizer_vulnerability(k_rr(5, 0.4), [0.3, 0.3, 0.2, 0.1, 0.1]).upper, 1e-12
    )
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
        ((0, k_rr(2, 0.8)), {}, "num_users = 0"),
        ((10**16, k_rr(2, 0.8)), {}, "above 1e"),
        ((5, [[1.0]]), {}, "1 row"),
        ((5, [[0.5, 0.4], [0.5, 0.5]]), {}, "row 0"),
        ((5, [[0.5, 0.5], [1.5, -0.5]]), {}, "row 1"),
        ((5, k_rr(2, 0.8)), {"prior": [0.5, 0.25, 0.25]}, "prior has 3 entries"),
        ((5, k_rr(2, 0.8)), {"prior": [0.5, 0.4]}, "prior sums to"),
        ((5, k_rr(2, 0.8)), {"crowd": [1.0]}, "crowd has 1 entries, not 2"),
        ((5, k_rr(2, 0.8)), {"crowd": [0.5, 0.4]}, "crowd sums to 0.9"),
        ((5, k_rr(2, 0.8)), {"crowd": [1.5, -0.5]}, "crowd has an entry"),
        ((5, k_rr(2, 0.8)), {"crowd": [math.nan, 1.0]}, "crowd has an entry"),
        ((5, k_rr(2, 0.8)), {"crowd": [1.0, 1e-250]}, "below 1e-200"),
        ((5, k_rr(2, 0.8)), {"num_samples": 1}, "num_samples = 1"),
        ((5, k_rr(2, 0.8)), {"num_samples": -1}, "num_samples = -1"),
    ],
)
def test_refusals(arguments, named, match):
    with pytest.raises(ParameterError, match=match):
        exchangeable_vulnerability(*arguments, **named)


@pytest.mark.parametrize(
    ("arguments", "named", "match"),
    [
        ((5, k_rr(2, 0.8)), {}, "holds floats"),
        ((5, identity(2)), {"prior": [0.5, 0.5]}, "floats"),
        ((5, identity(2)), {"crowd": [0.5, 0.5]}, "floats"),
        ((10**5, identity(3)), {}, "histograms"),
    ],
)
def test_exact_refusals(arguments, named, match):
    with pytest.raises(ParameterError, match=match):
        exact_exchangeable_vulnerability(*arguments, **named)
