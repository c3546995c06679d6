"""Simulated attacks: planted leaks are found, uniform shuffles leak nothing, exact small games."""

import math

import numpy as np
import pytest

from shuffledp.collection.uniform_shuffler import UniformShuffler
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.groups.attacks.adversaries import (
    attack_by_gaussian_process,
    attack_by_majority_vote,
)
from shuffledp.groups.attacks.survey import (
    AttackedSurvey,
    ComparedArrangement,
    Traits,
    euclidean_positions,
    own_neighbourhoods,
)
from shuffledp.groups.groups import Groups
from shuffledp.groups.mallows import MallowsShuffler
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse

RAW = ComparedArrangement(name="raw")
UNIFORM = ComparedArrangement(name="uniform", shuffler=UniformShuffler())


def entropy():
    return Entropy.from_seed(31)


def households(num=30, size=10, epsilon0=1.0, **changes):
    """Return households whose members all give the same of two answers, at places 0, 1, ..."""
    places = np.repeat(np.arange(float(num)), size)
    return AttackedSurvey(
        **{
            "codes": np.repeat(np.arange(num) % 2, size),
            "randomizer": KRandomizedResponse(domain_size=2, epsilon0=epsilon0),
            "neighbourhoods": Groups.from_distance(places, 0.0, metric="absolute"),
            "public": places,
        }
        | changes
    )


def shares(results):
    return {result.arrangement: result for result in results}


def test_a_planted_leak_is_found_and_a_shuffle_stops_it():
    survey = households()
    groups = Groups.from_distance(survey.public, 3.0, metric="absolute")
    within = ComparedArrangement(name="within", shuffler=MallowsShuffler.for_groups(groups, 0.5))
    steps = []
    found = shares(
        attack_by_majority_vote(
            survey,
            [RAW, within, UNIFORM],
            num_neighbours=9,
            num_resamplings=20,
            num_trials=3,
            entropy=entropy(),
            on_progress=lambda *step: steps.append(step),
        )
    )
    # Nine reports, each right with probability e/(1 + e) = 0.73: the vote is right in 0.94.
    assert found["raw"].mean > 0.6
    assert found["uniform"].mean < 0.05
    assert found["within"].mean < 0.3
    assert all(len(result.trials) == 3 for result in found.values())
    assert steps == [("majority vote", done, 3) for done in (1, 2, 3)]


def test_without_noise_and_without_a_shuffle_everybody_is_vulnerable():
    survey = households(epsilon0=45.0)
    (found,) = attack_by_majority_vote(
        survey, [RAW], num_resamplings=2, num_trials=1, entropy=entropy()
    )
    assert found.trials == (1.0,)
    assert found.standard_deviation is None


def test_privileged_data_pick_the_household_out_of_the_neighbourhood():
    everybody = Groups.from_sets([range(300)], num_users=300)
    blind = households(neighbourhoods=everybody, epsilon0=3.0)
    told = households(
        neighbourhoods=everybody, epsilon0=3.0,
        privileged=Traits(blind.public, np.array([True])),
    )  # fmt: skip
    rates = [
        attack_by_majority_vote(
            survey, [RAW], num_neighbours=9, num_resamplings=10, num_trials=1, entropy=entropy()
        )[0].mean
        for survey in (blind, told)
    ]
    assert rates[0] < 0.65  # half of all give each answer
    assert rates[1] > 0.99


def test_correlation_by_position():
    survey = households(num=4, size=60, codes=np.repeat([0, 0, 1, 2], 60),
                        randomizer=KRandomizedResponse(domain_size=3, epsilon0=1.5))  # fmt: skip
    results = attack_by_gaussian_process(
        survey, [RAW, UNIFORM], label_maps={"2 classes": np.array([0, 1, 1])}, num_trials=2,
        entropy=entropy(),
    )  # fmt: skip
    found = {(result.arrangement, result.measure): result.mean for result in results}
    assert found["raw", "accuracy"] == 1.0 == found["raw", "accuracy, 2 classes"]
    assert found["uniform", "accuracy"] <= found["uniform", "accuracy, 2 classes"] < 0.9


def test_an_attack_is_no_worse_than_the_report_of_the_person():
    # Answers that do not depend on places: neighbours tell nothing, and of raw reports the own one
    # is right with the probability e / (1 + e) = 0.73.
    codes = entropy().generator().integers(0, 2, 2_000)
    places = np.arange(2_000.0)
    survey = households(
        codes=codes, public=places, neighbourhoods=Groups.from_distance(places, 10.0)
    )
    (raw, uniform) = attack_by_gaussian_process(
        survey, [RAW, UNIFORM], num_inducing=40, num_trials=1, entropy=entropy()
    )
    right = math.e / (1.0 + math.e)
    assert raw.mean < right - 0.05
    assert raw.of_better().mean == pytest.approx(right, abs=0.06)  # six standard deviations
    assert raw.better == "own report"
    assert uniform.of_better().mean < 0.57
    noiseless = households(codes=codes, public=places, neighbourhoods=survey.neighbourhoods,
                           epsilon0=45.0)  # fmt: skip
    (found,) = attack_by_majority_vote(
        noiseless, [RAW], num_resamplings=2, num_trials=1, entropy=entropy()
    )
    assert found.trials[0] < 0.8
    assert found.of_better().trials == (1.0,)


def test_the_largest_group_that_holds_a_person_counts():
    groups = Groups.from_sets([[0, 1], [1, 2, 3], [3]], num_users=4)
    own = own_neighbourhoods(groups)
    members = [groups.members[groups.starts[a] : groups.starts[a + 1]].tolist() for a in own]
    assert members == [[0, 1], [1, 2, 3], [1, 2, 3], [1, 2, 3]]


def test_somebody_without_a_group():
    groups = Groups(num_users=3, starts=np.array([0, 2]), members=np.array([0, 2]))
    with pytest.raises(DataError, match="person 1 is in no group"):
        own_neighbourhoods(groups)


def test_chords_are_close_to_ways_along_the_surface():
    here, there = euclidean_positions(np.array([[10.0, 20.0], [10.5, 20.0]]), "haversine")
    assert math.dist(here, there) == pytest.approx(math.radians(0.5) * 6371.0, rel=1e-4)
    flat = np.array([[1.0, 2.0]])
    assert (euclidean_positions(flat, "euclidean") == flat).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"codes": np.zeros(300)}, "codes has dtype float64"),
        ({"codes": np.zeros((300, 1), dtype=int)}, "one code a user"),
        ({"codes": np.full(300, 2)}, r"not in \[0, 2\)"),
        ({"codes": np.zeros(3, dtype=int)}, "neighbourhoods are of 300 people and codes of 3"),
        ({"public": np.zeros(2)}, r"public has shape \(2, 1\) for 300 people"),
        ({"privileged": Traits(np.zeros((2, 1)), np.zeros(1, bool))}, r"privileged has shape \(2,"),
        ({"privileged": Traits(np.zeros((300, 0)), np.zeros(0, bool))}, "one column or more"),
        ({"public": np.full(300, np.nan)}, "public holds numbers that are not finite"),
        ({"neighbourhoods": Groups.from_sets([[0, 1]], num_users=2)}, "neighbourhoods are of 2"),
    ],
)
def test_surveys_refuse(changes, message):
    with pytest.raises((ParameterError, DomainError), match=message):
        households(**changes)


def test_attacks_refuse():
    survey = households(public=None)
    with pytest.raises(ParameterError, match="public values are needed"):
        attack_by_gaussian_process(survey, [RAW], entropy=entropy())
    with pytest.raises(ParameterError, match="num_trials = 0"):
        attack_by_majority_vote(survey, [RAW], num_trials=0, entropy=entropy())
