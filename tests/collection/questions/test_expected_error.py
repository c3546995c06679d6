"""The expected error of a plan is attained by the estimates of simulated collections."""

import math

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from collection.kinds import KINDS
from shuffledp.collection.question import EstimateOptions
from shuffledp.core.entropy import Entropy
from shuffledp.randomizers.registry import STRING_RANDOMIZERS

# Some thirty means of squares, each within eight of its own standard errors: below 1e-13 by normal
# tails, and squares of bounded reports have tails less than a thousand times as heavy there.
FALSE_POSITIVE_RATE = 1e-10
STANDARD_ERRORS = 8.0
NUM_REPORTS = 4000
NUM_COLLECTIONS = 200
EPSILON0 = 2.0


def decoded(question, randomizer, values, label):
    """Return what each report alone would estimate, for one label."""
    reports = randomizer.randomize(values, Entropy.from_seed(11))
    if hasattr(randomizer, "scores"):
        offset, factor = randomizer.score_scale
        return offset + factor * randomizer.scores(reports)[:, label]
    p, q = randomizer.support_probabilities
    supported = randomizer.supports(reports)[:, label]
    return (supported - q) / (p - q)


def assert_variance(squares, expected):
    """Compare the mean squared deviation of reports with what was promised for one."""
    margin = STANDARD_ERRORS * squares.std(ddof=1) / math.sqrt(squares.size)
    assert abs(squares.mean() - expected) <= margin
    assert abs(squares.mean() - 1.5 * expected) > margin  # a planted wrong promise is found


@pytest.mark.parametrize("name", KINDS["frequencies"].question.candidates())
def test_frequencies(name):
    question = KINDS["frequencies"].question
    randomizer = question.candidates()[name](EPSILON0)
    # A user in three has the answer: variance of a report, given its user, averaged.
    holders = decoded(question, randomizer, np.full(NUM_REPORTS, 1), 1)
    others = decoded(question, randomizer, np.full(NUM_REPORTS, 2), 1)
    expected = question.expected_error(randomizer, 1) ** 2
    assert_variance((holders - 1.0) ** 2 / 3 + others**2 * 2 / 3, expected)


@pytest.mark.parametrize("name", KINDS["mean"].question.candidates())
def test_means(name):
    question = KINDS["mean"].question
    randomizer = question.candidates()[name](EPSILON0)
    values = np.linspace(0.0, 120.0, NUM_REPORTS)  # spread evenly, as the promise says
    samples = decoded(question, randomizer, values, 0)
    assert_variance((samples - values) ** 2, question.expected_error(randomizer, 1) ** 2)


@pytest.mark.parametrize("name", KINDS["vector-mean"].question.candidates())
def test_vectors(name):
    question = KINDS["vector-mean"].question
    randomizer = question.candidates()[name](EPSILON0)
    samples = decoded(question, randomizer, np.zeros((NUM_REPORTS, 3)), 1)
    assert_variance(samples**2, question.expected_error(randomizer, 1) ** 2)


def assert_error_of_collections(question, randomizer, values, truth):
    """Compare squared errors of many small collections of the same values with the promise."""
    num_users = len(values)
    errors = []
    for seed in range(NUM_COLLECTIONS):
        reports = randomizer.randomize(values, Entropy.from_seed(seed))
        estimates = question.estimate(randomizer, randomizer.aggregate(reports), EstimateOptions())
        errors.append(estimates.frequency - truth)
    squares = (np.array(errors) ** 2).mean(axis=1)  # of one collection, which are independent
    expected = question.expected_error(randomizer, num_users) ** 2
    margin = STANDARD_ERRORS * squares.std(ddof=1) / math.sqrt(NUM_COLLECTIONS)
    assert abs(squares.mean() - expected) <= margin
    assert abs(squares.mean() - 4.0 * expected) > margin  # a planted wrong promise is found


@pytest.mark.parametrize("name", STRING_RANDOMIZERS)
def test_words(name):
    question = KINDS["words"].question
    randomizer = STRING_RANDOMIZERS[name](
        epsilon0=EPSILON0, key=question.key, num_hashes=64, num_buckets=256
    )
    values = pl.Series([f"user {i}" for i in range(30)])  # nobody has a word of the dictionary
    assert_error_of_collections(question, randomizer, values, 0.0)


@pytest.mark.parametrize("name", KINDS["answer-sets"].question.candidates())
def test_answer_sets(name):
    question = sdp.AnswerSets(domain=tuple("abcd"), max_answers=2)
    column = question.column([["a", "b"], [], ["c"], ["d"]] * 8)  # each answer: one user in four
    values = np.concatenate(list(column.blocks()))
    assert_error_of_collections(question, question.candidates()[name](EPSILON0), values, 0.25)
