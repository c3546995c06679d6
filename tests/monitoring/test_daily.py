"""What can be done without monitoring: exact variances, and guarantees that hold."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.accounting import ShuffledRelease
from shuffledp.accounting.amplification.registry import account_delta
from shuffledp.core.profile import LocalProfile
from shuffledp.monitoring.comparison import (
    FEW_ANSWERS,
    RepeatedTask,
    _error,
    everybody_at_central,
    everybody_at_local,
    few_answers,
    few_answers_seen,
)
from shuffledp.randomizers.registry import make_randomizer

BIT, FIVE = 2, 5  # possible answers


def task(num_categories=BIT, periods=12, num_users=10_000, delta=1e-6):
    return RepeatedTask(
        num_categories=num_categories, periods=periods, num_users=num_users, delta=delta
    )


@pytest.mark.parametrize("rounds", [12, 36])
def test_the_same_local_total(rounds):
    found = everybody_at_local(task(periods=rounds), epsilon0=3.0)
    assert found.answers_per_user == rounds
    assert found.epsilon0_per_answer == pytest.approx(3.0 / rounds)
    assert rounds * Fraction(found.epsilon0_per_answer) <= 3
    assert found.local_epsilon == 3.0
    # randomized response: sqrt(n b (1 - b)) / (2 b - 1) = sqrt(n) / (2 sinh(epsilon0 / 2))
    closed = 100.0 / (2.0 * math.sinh(0.5 * 3.0 / rounds))
    assert found.standard_error == pytest.approx(closed, rel=1e-9)
    assert found.least_standard_error == found.standard_error


def variance_of_one_user(law, categories, bit, questions, answers):
    """Exact mean and variance of one user's part of a count, by enumeration.

    ``law`` is the probability of support given the bit; the user draws ``answers`` of
    ``questions``, and the first question is looked at.
    """
    p, q = law
    centre = Fraction(1, categories)
    share = Fraction(answers, questions)
    draws = list(itertools.combinations(range(questions), answers))
    mean = square = Fraction(0)
    for drawn in draws:
        outcomes = [(Fraction(1), centre)]
        if 0 in drawn:
            chance = p if bit else q
            outcomes = [
                (weight, centre + ((support - q) / (p - q) - centre) / share)
                for weight, support in ((chance, 1), (1 - chance, 0))
            ]
        for weight, value in outcomes:
            mean += weight * value / len(draws)
            square += weight * value**2 / len(draws)
    return mean, square - mean**2


@pytest.mark.parametrize(("categories", "answers"), [(2, 1), (2, 3), (2, 4), (3, 2), (5, 1)])
def test_the_variance_is_that_of_enumeration(categories, answers):
    questions, epsilon0 = 4, 2.0
    asked = task(categories, periods=questions, num_users=700)
    each = epsilon0 / answers
    randomizer = make_randomizer("k-rr", k=categories, epsilon0=each)
    p, q = (Fraction(chance) for chance in randomizer.support_probabilities)
    total = Fraction(0)
    for bit, users in ((1, Fraction(1, categories)), (0, 1 - Fraction(1, categories))):
        mean, variance = variance_of_one_user((p, q), categories, bit, questions, answers)
        assert mean == bit  # unbiased
        total += users * variance
    found = _error(asked, "k-rr", each, share=answers / questions)
    assert found == pytest.approx(math.sqrt(700 * total), rel=1e-9)


@pytest.mark.parametrize("question", [BIT, FIVE])
def test_few_answers_keep_both_guarantees(question):
    asked = task(question)
    found = few_answers(asked, epsilon0=4.0, epsilon=0.1)
    assert found.name == FEW_ANSWERS
    assert found.local_epsilon <= 4.0
    assert found.answers_per_user * Fraction(found.epsilon0_per_answer) <= 4
    assert found.central.upper <= 0.1
    whole = LocalProfile(epsilon0=found.local_epsilon)
    proved = account_delta(whole, num_users=10_000, epsilon=0.1, with_lower=False)
    assert proved.upper <= 1e-6
    assert found.least_standard_error <= found.standard_error
    # nothing is given away: a little more would break the target
    more = LocalProfile(epsilon0=1.01 * found.local_epsilon)
    assert account_delta(more, num_users=10_000, epsilon=0.1, with_lower=False).upper > 1e-6


def test_the_number_of_answers_is_the_best_one():
    asked = task(periods=30)
    for epsilon0 in (0.5, 6.0, 30.0):
        found = few_answers(asked, epsilon0=epsilon0, epsilon=40.0)
        errors = []
        for answers in range(1, 31):
            share = answers / 30
            noise = 1.0 / (2.0 * math.sinh(0.5 * epsilon0 / answers)) ** 2
            errors.append(math.sqrt(10_000 * (noise / share + 0.25 * (1.0 / share - 1.0))))
        assert found.local_epsilon == epsilon0
        assert found.standard_error == pytest.approx(min(errors), rel=0.01)
        assert found.standard_error >= min(errors) * (1.0 - 1e-9)
        assert found.least_standard_error == found.standard_error
        assert errors[found.answers_per_user - 1] == pytest.approx(found.standard_error)


@pytest.mark.parametrize("question", [BIT, FIVE])
def test_the_same_central_guarantee(question):
    asked = task(question)
    found = everybody_at_central(asked, epsilon=0.3)
    assert found.central.upper <= 0.3
    randomizer = make_randomizer(found.randomizer, k=question, epsilon0=found.epsilon0_per_answer)
    release = ShuffledRelease(profile=randomizer.profile, num_users=10_000)
    year = (release * asked.periods).epsilon(1e-6)
    assert year.lower <= 0.3
    assert 0.97 * 0.3 <= year.upper <= 0.3 * (1.0 + 1e-9)
    assert found.local_epsilon >= asked.periods * found.epsilon0_per_answer
    # of other questions than bits only what is proved is known
    assert (found.least_standard_error is None) == (question is FIVE)


def test_less_privacy_less_noise():
    asked = task(periods=2, num_users=500)
    errors = [everybody_at_central(asked, epsilon=each).standard_error for each in (0.2, 0.3)]
    assert errors[1] < errors[0]


def test_the_error_of_bits_is_known_from_both_sides():
    found = everybody_at_central(task(num_users=10**6, periods=365), epsilon=0.01)
    assert 0.98 * found.standard_error < found.least_standard_error < found.standard_error
    # sqrt(n) / strength, and the strength of Gaussian noise: error = sqrt(d) / mu
    normal = math.sqrt(365.0) / gaussian_mu(0.01, 1e-6)
    assert found.least_standard_error <= 1.01 * normal
    assert found.standard_error >= 0.99 * normal


def gaussian_mu(epsilon, delta):
    """Return mu with Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) = delta."""
    low, high = 1e-6, 10.0
    for _ in range(200):
        mu = 0.5 * (low + high)
        first = 0.5 * math.erfc(-(0.5 * mu - epsilon / mu) / math.sqrt(2.0))
        second = 0.5 * math.erfc((0.5 * mu + epsilon / mu) / math.sqrt(2.0))
        low, high = (mu, high) if first - math.exp(epsilon) * second < delta else (low, mu)
    return low


def test_one_period_is_one_collection():
    asked = task(periods=1)
    local = everybody_at_local(asked, epsilon0=1.0)
    few = few_answers(asked, epsilon0=1.0, epsilon=1.0)
    assert local.epsilon0_per_answer == few.epsilon0_per_answer == 1.0
    assert local.standard_error == few.standard_error
    assert few.answers_per_user == 1


@pytest.mark.parametrize("question", [BIT, FIVE])
def test_where_the_analyst_knows_who_answers(question):
    asked = task(question, num_users=100_000)
    seen = few_answers_seen(asked, epsilon0=2.0, epsilon=0.03, typical_epsilon0=0.4)
    assert seen.local_epsilon <= 2.0
    assert seen.central.upper <= 0.03
    assert 1 <= seen.answers_per_user <= 12
    assert seen.answers_per_user * Fraction(seen.epsilon0_per_answer) <= 2
    secret = few_answers(asked, epsilon0=2.0, epsilon=0.03)
    assert seen.standard_error > secret.standard_error
    if question is BIT:
        assert seen.least_standard_error <= seen.standard_error
    else:
        assert seen.least_standard_error is None


def test_somebody_answers_each_question():
    found = few_answers_seen(
        task(periods=12, num_users=5), epsilon0=0.1, epsilon=1.0, typical_epsilon0=0.1
    )
    assert found.answers_per_user == 3  # 5 * 3 / 12 users a period: at least one
    assert found.local_epsilon <= 0.1


def test_beyond_forty_nothing_is_hidden_and_nothing_gained():
    found = everybody_at_local(task(periods=2), epsilon0=300.0)
    assert found.epsilon0_per_answer == 40.0
    assert found.local_epsilon == 300.0
    assert found.central.upper <= 80.0 * (1.0 + 1e-12)


def test_noise_without_end():
    found = everybody_at_local(task(), epsilon0=1e-18)
    assert found.standard_error == math.inf
    record = found.to_dict()
    assert record["standard_error"] is None
    assert record["least_standard_error"] is None
    json.dumps(record, allow_nan=False)


def test_what_programs_read():
    record = few_answers(task(), epsilon0=1.0, epsilon=1.0).to_dict()
    assert list(record) == [
        "name",
        "randomizer",
        "answers_per_user",
        "epsilon0_per_answer",
        "local_epsilon",
        "central_epsilon",
        "standard_error",
        "least_standard_error",
    ]
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_errors_grow_with_the_root_of_users():
    few = few_answers(task(), epsilon0=1.0, epsilon=30.0)
    many = few_answers(replace(task(), num_users=40_000), epsilon0=1.0, epsilon=30.0)
    assert np.isclose(many.standard_error, 2.0 * few.standard_error)
