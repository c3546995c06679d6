"""The re-identification game by hand, the informed adversary, and exact limits."""

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.stats import binomtest

from shuffledp.core.errors import ParameterError
from shuffledp.groups.attacks.adversaries import informed_rows, win_rate, wins_game


def test_games_by_hand():
    origins = np.array([2, 0, 1, 3])
    assert wins_game(origins, np.array([1, 2]), np.array([0, 1]))
    assert not wins_game(origins, np.array([0, 1]), np.array([0, 1]))  # half is not more than half
    assert wins_game(origins, np.array([0, 1, 3]), np.array([0, 2, 1]))  # two of three
    assert not wins_game(origins, np.array([3]), np.array([0]))


def test_naming_rows_of_a_uniform_shuffle_wins_as_often_as_counting_says():
    subset = np.array([0, 1, 2])
    wins = sum(wins_game(np.array(order), subset, subset) for order in permutations(range(5)))
    # At least 2 of 3 named rows hold one of 3 values out of 5: (3 * 2 + 1) / 10 of all sets.
    assert wins == 120 * 7 // 10


@pytest.mark.parametrize(
    ("rows", "subset"), [([0], [0, 1]), ([0, 0], [0, 1]), ([0, 1], [1, 1]), ([], [])]
)
def test_games_refuse(rows, subset):
    with pytest.raises(ParameterError, match="as many distinct rows"):
        wins_game(np.arange(3), np.array(rows), np.array(subset))


def test_the_informed_adversary_names_the_likeliest_rows():
    released = np.array([0, 1, 1, 0, 1])
    places = np.array([0.5, 0.5, 0.1, 0.4, 0.0])
    subset_law, other_law = np.array([0.2, 0.8]), np.array([0.7, 0.3])
    posterior = [
        place * subset_law[value] / (place * subset_law[value] + (1 - place) * other_law[value])
        for place, value in zip(places, released, strict=True)
    ]
    for size in range(1, 6):
        rows = informed_rows(
            released, place_probabilities=places, subset_law=subset_law, other_law=other_law,
            num_rows=size,
        ).tolist()  # fmt: skip
        best = max(combinations(range(5), size), key=lambda named: sum(posterior[i] for i in named))
        assert sum(posterior[i] for i in rows) == pytest.approx(sum(posterior[i] for i in best))


def test_certain_places_decide_and_impossible_values_do_not_divide_by_zero():
    rows = informed_rows(
        np.array([0, 1, 0]),
        place_probabilities=np.array([1.0, 0.0, 0.0]),
        subset_law=np.array([0.0, 1.0]),
        other_law=np.array([1.0, 0.0]),
        num_rows=2,
    )
    assert rows.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_rows": 0}, "num_rows = 0"),
        ({"num_rows": 3}, "num_rows = 3 is above the 2 rows"),
        ({"place_probabilities": np.array([0.5])}, "each of the 2 rows"),
        ({"place_probabilities": np.array([0.5, np.nan])}, "probabilities"),
        ({"place_probabilities": np.array([0.5, 1.5])}, "probabilities"),
        ({"subset_law": np.array([1.0])}, "one probability a value"),
        ({"subset_law": np.empty(0), "other_law": np.empty(0)}, "one probability a value"),
        ({"released": np.array([0, 2])}, r"outside \[0, 2\)"),
    ],
)
def test_informed_rows_refuse(changes, message):
    arguments = {
        "released": np.array([0, 1]),
        "place_probabilities": np.array([0.5, 0.5]),
        "subset_law": np.array([0.5, 0.5]),
        "other_law": np.array([0.5, 0.5]),
        "num_rows": 1,
    }
    with pytest.raises(ParameterError, match=message):
        informed_rows(**(arguments | changes))


@pytest.mark.parametrize(("wins", "plays"), [(0, 7), (7, 7), (3, 7), (150, 1000)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_limits_are_clopper_and_pearsons(wins, plays, confidence):
    found = win_rate(wins, plays, confidence=confidence)
    limits = binomtest(wins, plays).proportion_ci(confidence, method="exact")
    assert (found.lower, found.upper) == pytest.approx((limits.low, limits.high), rel=1e-9)
    assert found.rate == wins / plays
    assert 0.0 <= found.lower <= found.rate <= found.upper <= 1.0


@pytest.mark.parametrize(
    ("wins", "plays", "confidence", "message"),
    [
        (0, 0, 0.9, "num_plays = 0"),
        (-1, 2, 0.9, "num_wins = -1"),
        (3, 2, 0.9, "num_wins = 3 is above"),
        (1, 2, 1.0, "confidence"),
        (1, 2, float("nan"), "confidence"),
    ],
)
def test_limits_refuse(wins, plays, confidence, message):
    with pytest.raises(ParameterError, match=message):
        win_rate(wins, plays, confidence=confidence)
