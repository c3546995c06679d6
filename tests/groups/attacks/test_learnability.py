"""Learnability: local laws by counting, exact inversion of the noise, and what trees learn."""

import builtins
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.collection.uniform_shuffler import UniformShuffler
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import MissingPackageError, OutOfRegimeError, ParameterError
from shuffledp.groups.attacks.adversaries import (
    LAMBDA,
    LAMBDA_DEBIASED,
    debiased_laws,
    learn_local_laws,
    learnability,
    local_laws,
    predicted_laws,
)
from shuffledp.groups.attacks.survey import AttackedSurvey, ComparedArrangement
from shuffledp.groups.groups import Groups
from shuffledp.groups.mallows import MallowsShuffler
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse

GROUPS = Groups(num_users=4, starts=[0, 3, 5], members=[0, 1, 2, 2, 3])
OWN = np.array([0, 0, 1, 1])


def entropy():
    return Entropy.from_seed(29)


def test_local_laws_are_counts():
    laws = local_laws(np.array([0, 2, 2, 1]), GROUPS, OWN, domain_size=3)
    third, half = 1 / 3, 1 / 2
    assert laws.tolist() == [
        [third, 0.0, 2 * third],
        [third, 0.0, 2 * third],
        [0.0, half, half],
        [0.0, half, half],
    ]


@given(
    weights=st.lists(st.integers(0, 20), min_size=2, max_size=6).filter(any),
    gap=st.integers(1, 9),
)
def test_inverting_gives_the_law_back(weights, gap):
    k = len(weights)
    law = [Fraction(weight, sum(weights)) for weight in weights]
    advantage = Fraction(gap, 10)
    other = (1 - advantage) / k
    noisy = [other + advantage * share for share in law]
    found = debiased_laws(
        np.array([noisy], dtype=float),
        (float(other + advantage), float(other)),
    )
    assert found[0].tolist() == pytest.approx([float(share) for share in law], abs=1e-12)


@given(st.lists(st.floats(-1.0, 2.0), min_size=2, max_size=5))
def test_what_is_no_law_becomes_the_nearest_one(numbers):
    raw = np.array([numbers])
    found = debiased_laws(raw, (1.0, 0.0))
    assert found.sum() == pytest.approx(1.0)
    assert found.min() >= 0.0
    # Nearest point of a convex set: no law lies on the other side (its corners decide).
    outward = raw[0] - found[0]
    assert (outward @ (np.eye(raw.size) - found).T <= 1e-9).all()


def test_lambda_by_hand():
    truth = np.array([[1.0, 0.0], [0.25, 0.75]])
    uniform = np.full((2, 2), 0.5)
    assert learnability(truth, truth) == 0.0
    assert learnability(uniform, truth) == 1.0
    assert learnability(np.array([[0.75, 0.25], [0.25, 0.75]]), truth) == pytest.approx(1 / 3)


def test_lambda_needs_something_to_learn():
    with pytest.raises(OutOfRegimeError, match="uniform around everybody"):
        learnability(np.ones((3, 2)) / 2, np.ones((3, 2)) / 2)


def steps(num_people=120):
    """Return ages and answers that change at an age, one in seven of them otherwise."""
    ages = np.arange(num_people) % 40
    return ages[:, None], (ages >= 20).astype(int) ^ (np.arange(num_people) % 7 == 0)


def test_trees_learn_a_step():
    ages, answers = steps()
    laws = predicted_laws(ages, answers, domain_size=2, entropy=entropy())
    assert laws.sum(axis=1) == pytest.approx(np.ones(120))
    assert laws[5, 0] > 0.6 < laws[35, 1]


def test_the_same_public_value_has_one_law_and_seeds_repeat():
    ages, answers = steps(80)
    first, second = (
        predicted_laws(ages, answers, domain_size=2, entropy=entropy()) for _ in range(2)
    )
    assert (first == second).all()
    assert (first[:40] == first[40:]).all()


def test_values_too_rare_to_learn_are_predicted_nowhere():
    ages, answers = steps(80)
    answers = answers.copy()
    answers[:2] = 2
    laws = predicted_laws(ages, answers, domain_size=4, entropy=entropy())
    assert (laws[:, 2:] == 0.0).all()
    assert laws.sum(axis=1) == pytest.approx(np.ones(80))


@pytest.mark.parametrize(("answers", "winner"), [([1, 1, 1, 0], 1), ([2, 0, 2, 1], 2)])
def test_one_value_or_none_is_common_enough(answers, winner):
    laws = predicted_laws(
        np.arange(4)[:, None], np.array(answers), domain_size=3, entropy=entropy()
    )
    assert laws.tolist() == [[float(value == winner) for value in range(3)]] * 4


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.calibration", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'shuffledp\[attacks\]'"):
        predicted_laws(*steps(), domain_size=2, entropy=entropy())


def test_other_missing_modules_are_not_blamed_on_scikit_learn(monkeypatch):
    whole = builtins.__import__

    def without_joblib(name, *arguments):
        if name.startswith("sklearn"):
            raise ModuleNotFoundError("No module named 'joblib'", name="joblib")
        return whole(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_joblib)
    with pytest.raises(ModuleNotFoundError, match="joblib") as caught:
        predicted_laws(*steps(), domain_size=2, entropy=entropy())
    assert not isinstance(caught.value, MissingPackageError)


ARRANGEMENTS = (
    ComparedArrangement(name="raw"),
    ComparedArrangement(name="uniform", shuffler=UniformShuffler()),
)
AGES = np.arange(400) % 40


def survey(epsilon0=2.0, **changes):
    return AttackedSurvey(
        **{
            "codes": (AGES >= 20).astype(int),
            "randomizer": KRandomizedResponse(domain_size=2, epsilon0=epsilon0),
            "neighbourhoods": Groups.from_distance(AGES, 2.0, metric="absolute"),
            "public": AGES,
        }
        | changes
    )


def test_lambda_tells_raw_from_shuffled_and_inverting_the_noise_helps():
    steps = []
    results = learn_local_laws(
        survey(), ARRANGEMENTS, num_trials=2, entropy=Entropy.from_seed(1),
        on_progress=lambda *step: steps.append(step),
    )  # fmt: skip
    found = {(result.arrangement, result.measure): result.mean for result in results}
    assert found["raw", LAMBDA_DEBIASED] < found["raw", LAMBDA] < 0.8
    assert found["uniform", LAMBDA] > 0.9
    assert steps[-1] == ("learning", 2, 2)
    assert all(len(result.trials) == 2 for result in results)


def averages(released, width=60):
    """Return moving averages along a road, a learner that knows how smooth the law is."""
    ones = np.convolve(released, np.ones(2 * width + 1), mode="same")
    share = ones / np.convolve(np.ones(released.size), np.ones(2 * width + 1), mode="same")
    return np.stack([1.0 - share, share], axis=1)


def test_a_road_with_one_step_is_learnt_as_by_moving_averages():
    road = np.arange(2_000)
    nearby = Groups.from_distance(road, 20.0, metric="absolute")
    known = survey(
        epsilon0=1.0, codes=(road >= 1_000).astype(int), neighbourhoods=nearby, public=road
    )
    groups = Groups.from_nearest(road[:, None].astype(float), 20)
    shuffler = MallowsShuffler.for_groups(groups, alpha=8.0)
    arrangements = (*ARRANGEMENTS, ComparedArrangement(name="within groups", shuffler=shuffler))
    results = learn_local_laws(known, arrangements, num_trials=1, entropy=Entropy.from_seed(2))
    found = {(result.arrangement, result.measure): result.mean for result in results}
    released = known.reports(Entropy.from_seed(2))
    inverted = debiased_laws(averages(released), known.randomizer.support_probabilities)
    truth = local_laws(known.codes, nearby, np.arange(2_000), domain_size=2)
    # Trees that learnt the noise of single reports had 0.28, six times the averages' error.
    assert found["raw", LAMBDA_DEBIASED] < 2.0 * learnability(inverted, truth) < 0.15
    for measure in (LAMBDA, LAMBDA_DEBIASED):
        assert found["raw", measure] < found["within groups", measure] < found["uniform", measure]


@pytest.mark.slow
def test_households_do_not_hide_the_law_of_a_town():
    # Trees follow households of 8, which agree; what is asked for is the law of 41 households.
    homes = np.repeat(np.arange(250), 8)
    codes = (entropy().generator().random(250) < 0.2 + 0.6 * (np.arange(250) >= 125)).astype(int)
    nearby = Groups.from_distance(homes, 20.0, metric="absolute")
    known = survey(epsilon0=1.5, codes=codes[homes], neighbourhoods=nearby, public=homes)
    groups = Groups.from_distance(homes, 1.0, metric="absolute")
    shuffler = MallowsShuffler.for_groups(groups, alpha=4.0)
    arrangements = (ARRANGEMENTS[0], ComparedArrangement(name="within", shuffler=shuffler))
    results = learn_local_laws(known, arrangements, num_trials=2, entropy=Entropy.from_seed(4))
    raw, within = (each.mean for each in results if each.measure == LAMBDA_DEBIASED)
    assert raw < min(0.15, within)


def test_laws_that_change_often_are_learnt_by_large_trees():
    places = np.arange(1_000)
    answers = places // 40 % 2
    laws = predicted_laws(places[:, None], answers, domain_size=2, entropy=entropy())
    assert np.abs(laws[places, answers] - 1.0).mean() < 0.2


@pytest.mark.parametrize("tallies", [(3, 3), (60, 3), (3,) * 8, (100, 40, 3, 3, 3)])
def test_few_people_are_enough(tallies):
    answers = np.repeat(np.arange(len(tallies)), tallies)
    places = np.arange(answers.size)[:, None]
    laws = predicted_laws(places, answers, domain_size=len(tallies), entropy=entropy())
    assert laws.sum(axis=1) == pytest.approx(np.ones(answers.size))


def test_reports_without_information_have_no_inverse():
    results = learn_local_laws(
        survey(epsilon0=0.0), ARRANGEMENTS[:1], num_trials=1, entropy=Entropy.from_seed(1)
    )
    assert [result.measure for result in results] == [LAMBDA]


def test_public_values_are_needed():
    with pytest.raises(ParameterError, match="public values are needed"):
        learn_local_laws(survey(public=None), ARRANGEMENTS, entropy=Entropy.from_seed(1))
