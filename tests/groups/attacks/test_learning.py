"""Models learn much from raw reports of a simulated collection, and nothing from shuffled ones."""

import numpy as np
import pytest

from shuffledp.collection.shuffling import UniformShuffler
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.attacks.attacked_survey import AttackedSurvey, ComparedArrangement
from shuffledp.groups.attacks.learning import (
    LAMBDA,
    LAMBDA_DEBIASED,
    learn_local_laws,
)
from shuffledp.groups.formation.groups import Groups
from shuffledp.randomizers.categories.k_randomized_response import KRandomizedResponse

ARRANGEMENTS = (
    ComparedArrangement(name="raw"),
    ComparedArrangement(name="uniform", shuffler=UniformShuffler(), alpha=0.0),
)
AGES = np.arange(400) % 40


def survey(epsilon0=2.0, **changes):
    return AttackedSurvey(
        **{
            "codes": (AGES >= 20).astype(int),
            "randomizer": KRandomizedResponse(k=2, epsilon0=epsilon0),
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


def test_reports_without_information_have_no_inverse():
    results = learn_local_laws(
        survey(epsilon0=0.0), ARRANGEMENTS[:1], num_trials=1, entropy=Entropy.from_seed(1)
    )
    assert [result.measure for result in results] == [LAMBDA]


def test_public_values_are_needed():
    with pytest.raises(ParameterError, match="public values are needed"):
        learn_local_laws(survey(public=None), ARRANGEMENTS, entropy=Entropy.from_seed(1))
