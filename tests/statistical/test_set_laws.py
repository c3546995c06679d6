"""Randomizers of sets follow their laws; planted errors are seen."""

import copy
import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from shuffledp.core.entropy import Entropy
from shuffledp.randomizers import SampledAnswers, SplitAnswers

# Probability that correct code fails this module: Bonferroni over all of its tests. Every cell
# expects at least LEAST_EXPECTED reports, so that the chi-square tail is close to the exact one.
FALSE_POSITIVE_RATE = 1e-9
NUM_TESTS = 100
REJECTION_LEVEL = FALSE_POSITIVE_RATE / NUM_TESTS
LEAST_EXPECTED = 2_000

NUM_REPORTS = 3_000_000
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
