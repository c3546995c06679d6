"""Sketches of strings and randomizers of sets follow their laws; planted errors are seen."""

import copy
import itertools
import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, chi2

from shuffledp.core.entropy import Entropy
from shuffledp.randomizers import CountMeanSketch, SampledAnswers, SplitAnswers
from shuffledp.randomizers.keyed_hash import buckets_of, digests_of, new_key

# Probability that correct code fails this module: Bonferroni over all of its tests. Every cell
# expects at least LEAST_EXPECTED reports, so that the chi-square tail is close to the exact one.
FALSE_POSITIVE_RATE = 1e-9
NUM_TESTS = 100
REJECTION_LEVEL = FALSE_POSITIVE_RATE / NUM_TESTS
LEAST_EXPECTED = 2_000

NUM_REPORTS = 3_000_000
KEY = bytes(range(16))
EPSILON0 = (0.0, 0.5, 2.0)
SETS = list(
    itertools.product((SampledAnswers, SplitAnswers), ("k-rr", "symmetric-unary"), EPSILON0)
)


def p_value(observed, probabilities):
    """Return the chi-square tail probability of the observed cell counts."""
    expected = observed.sum() * np.asarray(probabilities, dtype=float)
    assert expected.min() >= LEAST_EXPECTED
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), observed.size - 1))


def p_value_of_neighbours(columns, row):
    """Test that a report and the next are independent, in pairs that do not overlap."""
    pairs = columns[:-1:2].astype(np.int64) * len(row) + columns[1::2]
    joint = np.outer(np.array(row, dtype=float), np.array(row, dtype=float)).reshape(-1)
    return p_value(np.bincount(pairs, minlength=joint.size), joint)


def with_threshold_times(randomizer, factor):
    """Return a randomizer that draws with another threshold than it should."""
    planted = copy.copy(randomizer)
    object.__setattr__(planted, "threshold", int(randomizer.threshold * factor))
    return planted


def tiny(epsilon0, num_buckets=4):
    return CountMeanSketch(epsilon0=epsilon0, key=KEY, num_hashes=2, num_buckets=num_buckets)


def sketch_columns(sketch, text, seed):
    """Return reports of one string as small integers, those of `sketch_law`."""
    texts = pl.Series([text]).new_from_index(0, NUM_REPORTS)
    data = sketch.randomize(texts, Entropy.from_seed(seed)).data
    assert not data[:, 1].any()
    return data[:, 0].astype(np.int64) * 2**sketch.num_buckets + data[:, 2]


def sketch_law(sketch, text):
    """Return the probability of each report, by its column."""
    flip, m, w = sketch.threshold / 2**64, sketch.num_hashes, sketch.num_buckets
    hashes = np.arange(m, dtype=np.uint64)
    digests = np.repeat(digests_of([text], KEY), m)
    law = []
    for bucket in buckets_of(digests, hashes, key=KEY, num_buckets=w).tolist():
        for bits in range(2**w):
            flipped = (bits ^ (1 << bucket)).bit_count()
            law.append(flip**flipped * (1 - flip) ** (w - flipped) / m)
    return law


def p_value_of_sketch(sampler, law, seed):
    row = sketch_law(law, "text")
    return p_value(np.bincount(sketch_columns(sampler, "text", seed), minlength=len(row)), row)


@pytest.mark.parametrize("epsilon0", EPSILON0)
def test_sketches_follow_their_law(epsilon0):
    law = tiny(epsilon0)
    assert p_value_of_sketch(law, law, seed=1) > REJECTION_LEVEL


def test_neighbouring_reports_of_sketches_are_independent():
    law = tiny(0.5, num_buckets=2)
    columns = sketch_columns(law, "text", seed=2)
    row = sketch_law(law, "text")
    assert p_value_of_neighbours(columns, row) > REJECTION_LEVEL
    # One pair in a hundred has the same words behind both of its reports.
    columns = columns.copy()
    columns[1::200] = columns[:-1:200]
    assert p_value_of_neighbours(columns, row) < REJECTION_LEVEL


@pytest.mark.parametrize("factor", [0.985, 1.015])
def test_a_threshold_of_a_sketch_that_is_off_is_rejected(factor):
    law = tiny(0.5)
    planted = with_threshold_times(law, factor)
    assert p_value_of_sketch(planted, law, seed=3) < REJECTION_LEVEL
    assert p_value_of_sketch(law, planted, seed=3) < REJECTION_LEVEL


def set_columns(randomizer, held, seed, num_reports=NUM_REPORTS):
    """Return reports of one set as small integers, those of `set_law`."""
    values = np.broadcast_to(np.array(held, dtype=np.int8), (num_reports, len(held)))
    data = randomizer.randomize(values, Entropy.from_seed(seed)).data.reshape(num_reports, -1)
    num_columns = len(randomizer.base.channel()[0])
    columns = np.zeros(num_reports, dtype=np.int64)
    for slot in range(data.shape[1]):
        columns = columns * num_columns + data[:, slot]
    return columns


def set_law(randomizer, held):
    """Return the probability of each report, by its column."""
    dummies = [randomizer.domain_size] * (randomizer.max_answers - len(held))
    rows = [
        np.array(randomizer.base.channel()[code], dtype=float)
        for code in [*sorted(held, reverse=True), *dummies]
    ]
    if isinstance(randomizer, SampledAnswers):
        return np.mean(rows, axis=0)
    return np.outer(rows[0], rows[1]).reshape(-1)


def p_value_of_sets(sampler, law, held, seed):
    row = set_law(law, held)
    return p_value(np.bincount(set_columns(sampler, held, seed), minlength=len(row)), row)


@pytest.mark.parametrize("held", [(), (1,), (0, 1)])
@pytest.mark.parametrize(("kind", "base_name", "epsilon0"), SETS)
def test_sets_follow_their_law(kind, base_name, epsilon0, held):
    law = kind(base_name=base_name, domain_size=2, max_answers=2, epsilon0=epsilon0)
    assert p_value_of_sets(law, law, held, seed=4) > REJECTION_LEVEL


@pytest.mark.parametrize("factor", [0.985, 1.015])
@pytest.mark.parametrize("kind", [SampledAnswers, SplitAnswers])
def test_a_base_that_is_off_is_rejected(kind, factor):
    law = kind(base_name="k-rr", domain_size=2, max_answers=2, epsilon0=2.0)
    planted = copy.copy(law)
    object.__setattr__(planted, "base", with_threshold_times(law.base, factor))
    assert p_value_of_sets(planted, law, (0,), seed=5) < REJECTION_LEVEL
    assert p_value_of_sets(law, planted, (0,), seed=5) < REJECTION_LEVEL


@pytest.mark.parametrize("max_answers", [2, 3])
def test_an_uneven_draw_of_the_slot_is_rejected(max_answers, monkeypatch):
    law = SampledAnswers(base_name="k-rr", domain_size=3, max_answers=max_answers, epsilon0=2.0)
    assert p_value_of_sets(law, law, (2, 0), seed=6) > REJECTION_LEVEL

    def uneven(entropy, count, bound):
        words = entropy.words(count)
        first = words < np.uint64(int(2**64 * (1 / bound + 0.01)))
        others = np.uint64(1) + words % np.uint64(bound - 1)
        return np.where(first, np.uint64(0), others)

    monkeypatch.setattr("shuffledp.randomizers.answer_sets.draw_below", uneven)
    assert p_value_of_sets(law, law, (2, 0), seed=6) < REJECTION_LEVEL


# ---------------------------------------------------------------- estimates over random keys

NUM_RUNS = 1_500
NUM_USERS = 20_000
CONFIDENCE = 0.95
# Two thirds of the users hold one of 60 strings with falling frequencies; the rest 2,000 others.
COMMON = [f"common {i}" for i in range(60)]
NUM_BY_COMMON = np.array([round(3_000 / (i + 1)) for i in range(60)])
SHARES = NUM_BY_COMMON / NUM_USERS
ASKED = (0, 5, 59)  # of the common strings; besides a string that nobody holds


def population():
    rest = NUM_USERS - int(NUM_BY_COMMON.sum())
    texts = np.repeat(np.array(COMMON, dtype=object), NUM_BY_COMMON).tolist()
    return pl.Series([*texts, *(f"rare {i % 2_000}" for i in range(rest))])


def other_squares(share):
    """Return the sum of the squared frequencies of all strings but one of that share."""
    num_rare = NUM_USERS - int(NUM_BY_COMMON.sum())
    by_rare = np.bincount(np.arange(num_rare) % 2_000) / NUM_USERS
    return float((SHARES**2).sum() + (by_rare**2).sum() - share**2)


@pytest.fixture(scope="module")
def runs():
    """Return shares, and estimates, errors, lower and upper ends over runs with fresh keys."""
    texts = population()
    dictionary = [*(COMMON[i] for i in ASKED), "nobody"]
    entropy = Entropy.from_seed(7)
    found = []
    for _ in range(NUM_RUNS):
        sketch = CountMeanSketch(epsilon0=4.0, key=new_key(entropy), num_hashes=16, num_buckets=16)
        estimates = sketch.estimate(
            sketch.randomize(texts, entropy), dictionary=dictionary, confidence=CONFIDENCE
        )
        found.append(
            [getattr(estimates, name) for name in ("frequency", "standard_error", "lower", "upper")]
        )
    shares = [*SHARES[list(ASKED)].tolist(), 0.0]
    exact = [
        sketch.expected_standard_error(
            num_users=NUM_USERS, frequency=share, sum_of_other_squares=other_squares(share)
        )
        for share in shares
    ]
    return sketch, np.array(shares), np.array(exact), np.moveaxis(np.array(found), 1, 0)


def p_value_of_mean(estimates, share, standard_error):
    """Return Bernstein's bound on the probability of a mean so far from the share, or 1.

    An estimate is the mean of a support over n users, in [0, 1], stretched: it cannot be farther
    than 4 from its mean here.
    """
    off = abs(float(estimates.mean()) - share)
    exponent = len(estimates) * off**2 / (2 * standard_error**2 + 2 * 4 * off / 3)
    return min(1.0, 2 * math.exp(-exponent))


def p_value_of_coverage(num_covered, least, most):
    """Return the tail probability of so few, or so many, if the coverage is in [least, most]."""
    too_few = float(binom.cdf(num_covered, NUM_RUNS, least))
    too_many = float(binom.sf(num_covered - 1, NUM_RUNS, most))
    return min(too_few, too_many)


def test_sketches_are_unbiased_over_keys(runs):
    sketch, shares, exact, (frequency, *_) = runs
    p, q = sketch.support_probabilities
    assert 1 / (p - q) < 4
    other = sketch.bit_probabilities[1]
    for i, share in enumerate(shares):
        assert p_value_of_mean(frequency[:, i], share, exact[i]) > REJECTION_LEVEL
        # Whoever forgets that strings collide takes q0 for q.
        planted = (frequency[:, i] * (p - q) + q - other) / (p - other)
        assert p_value_of_mean(planted, share, exact[i]) < REJECTION_LEVEL


def test_stated_errors_of_sketches_are_those_of_the_spread(runs):
    _, shares, exact, (frequency, *_) = runs
    for i, share in enumerate(shares):
        scores = np.abs(frequency[:, i] - share) / exact[i]
        for stretch, is_right in ((1.0, True), (0.7, False), (1.6, False)):
            num_covered = int((scores < 1.96 * stretch).sum())
            # Collisions are a sum of many terms, but not quite a normal variable.
            value = p_value_of_coverage(num_covered, 0.935, 0.965)
            assert (value > REJECTION_LEVEL) is is_right


def test_intervals_of_sketches_cover(runs):
    sketch, shares, _, (_, standard_error, lower, upper) = runs
    for i, share in enumerate(shares):
        covered = (lower[:, i] <= share) & (share <= upper[:, i])
        # At least nominal but for the shape; and not twice as wide as need be.
        assert p_value_of_coverage(int(covered.sum()), 0.935, 0.99) > REJECTION_LEVEL
        # Intervals of the reports' noise alone cover far less.
        noise = sketch.expected_standard_error(
            num_users=NUM_USERS, frequency=share, sum_of_other_squares=0.0
        )
        ratio = noise / standard_error[:, i]
        centre, half_width = (lower[:, i] + upper[:, i]) / 2, (upper[:, i] - lower[:, i]) / 2
        covered = np.abs(centre - share) <= ratio * half_width
        assert p_value_of_coverage(int(covered.sum()), 0.935, 0.99) < REJECTION_LEVEL
