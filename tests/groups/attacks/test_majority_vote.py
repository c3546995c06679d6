"""The majority vote by hand and against plain Python; ties and strangers are drawn fairly."""

from collections import Counter

import numpy as np
import pytest
from scipy.special import chdtri
from scipy.stats import binomtest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.groups.attacks.adversaries import (
    choose_neighbours,
    is_vulnerable,
    majority_guesses,
)

# For the whole module; each of its statistical tests takes an equal share.
FALSE_POSITIVE_RATE = 1e-9
NUM_TESTS = 3
RATE_PER_TEST = FALSE_POSITIVE_RATE / NUM_TESTS

EVERYBODY = (np.array([0, 5]), np.arange(5), np.zeros(5, dtype=int))


def entropy():
    return Entropy.from_seed(17)


def everybody(num_people):
    return np.array([0, num_people]), np.arange(num_people), np.zeros(num_people, dtype=int)


def by_sorting(person, row, traits, is_category, size):
    """Return the most similar members of a row, in plain Python."""

    def distance(other):
        apart = np.abs(traits[person] - traits[other])
        return float(np.where(is_category, apart > 0, apart).sum())

    return [person, *sorted(set(row) - {person}, key=distance)][:size]


def test_the_most_similar_are_read():
    traits = np.array([0.0, 10.0, 1.0, 11.0, 3.0])
    rows = choose_neighbours(*EVERYBODY, num_neighbours=3, privileged=traits, entropy=entropy())
    assert [set(row) for row in rows.tolist()] == [
        {0, 2, 4},
        {1, 3, 4},
        {2, 0, 4},
        {3, 1, 4},
        {4, 2, 0},
    ]
    assert rows[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_without_the_own_row():
    traits = np.array([0.0, 10.0, 1.0, 11.0, 3.0])
    rows = choose_neighbours(
        *EVERYBODY, num_neighbours=1, privileged=traits, include_own=False, entropy=entropy()
    )
    assert rows.tolist() == [[2], [3], [0], [1], [2]]
    rows = choose_neighbours(*EVERYBODY, num_neighbours=9, include_own=False, entropy=entropy())
    assert [sorted(row) for row in rows.tolist()] == [
        [-1] * 5 + sorted(set(range(5)) - {person}) for person in range(5)
    ]


@pytest.mark.parametrize("privileged", [None, np.arange(5.0)])
def test_only_the_own_row(privileged):
    rows = choose_neighbours(*EVERYBODY, num_neighbours=1, privileged=privileged, entropy=entropy())
    assert rows.tolist() == [[0], [1], [2], [3], [4]]


@pytest.mark.parametrize("privileged", [None, np.arange(5.0)])
def test_small_neighbourhoods_leave_places_free(privileged):
    starts, members = np.array([0, 1, 5]), np.array([0, 1, 2, 3, 4])
    rows = choose_neighbours(
        starts, members, np.array([0, 1, 1, 1, 1]), num_neighbours=6, privileged=privileged,
        entropy=entropy(),
    )  # fmt: skip
    assert rows[0].tolist() == [0, -1, -1, -1, -1, -1]
    assert sorted(rows[3].tolist()) == [-1, -1, 1, 2, 3, 4]


def test_categories_are_one_apart_or_equal():
    traits = np.array([[0, 0.0], [7, 0.0], [0, 0.9], [7, 0.3], [1, 0.0]])
    rows = choose_neighbours(
        *EVERYBODY, num_neighbours=2, privileged=traits, is_category=np.array([True, False]),
        entropy=entropy(),
    )  # fmt: skip
    # Person 0: row 2 is 0.9 away, rows 1 and 4 are 1 away whatever their codes.
    assert rows.tolist()[:4] == [[0, 2], [1, 3], [2, 0], [3, 1]]


def test_large_neighbourhoods_agree_with_sorting():
    generator = entropy().generator()
    num_people = 60
    traits = np.stack([generator.integers(0, 3, num_people), generator.random(num_people)], axis=1)
    is_category = np.array([True, False])
    cuts = np.array([0, 40, 85])
    rows = np.concatenate(
        [np.sort(generator.permutation(60)[:40]), np.sort(generator.permutation(60)[:45])]
    )
    own = generator.integers(0, 2, num_people)
    chosen = choose_neighbours(
        cuts, rows, own, num_neighbours=7, privileged=traits, is_category=is_category,
        entropy=entropy(),
    )  # fmt: skip
    for person in range(num_people):
        row = rows[cuts[own[person]] : cuts[own[person] + 1]].tolist()
        expected = by_sorting(person, row, traits, is_category, 7)
        assert sorted(chosen[person].tolist()) == sorted(expected)


def test_strangers_are_members_and_distinct():
    starts, members = np.array([0, 30, 70]), np.concatenate([np.arange(30), np.arange(30, 70)])
    own = np.repeat([0, 1], [35, 35])  # people 30 to 34 read a neighbourhood without themselves
    chosen = choose_neighbours(starts, members, own, num_neighbours=10, entropy=entropy())
    for person, row in enumerate(chosen.tolist()):
        assert row[0] == person
        assert len(set(row)) == 10
        group = set(members[starts[own[person]] : starts[own[person] + 1]].tolist())
        assert set(row[1:]) <= group


def test_every_set_of_strangers_is_equally_likely():
    source = entropy()
    counts = Counter(
        frozenset(row[1:])
        for _ in range(1_500)
        for row in choose_neighbours(*everybody(6), num_neighbours=3, entropy=source).tolist()
        if row[0] == 2
    )
    assert len(counts) == 10  # 2 of the 5 others
    observed = np.array(list(counts.values()))
    statistic = ((observed - 150.0) ** 2 / 150.0).sum()
    limit = chdtri(9, RATE_PER_TEST)
    assert statistic <= limit
    observed[0] += 150  # a set that is twice as likely is found
    assert ((observed - 165.0) ** 2 / 165.0).sum() > limit


def test_the_equally_similar_are_equally_likely():
    source = entropy()
    chosen = np.concatenate(
        [
            choose_neighbours(
                *everybody(5), num_neighbours=2, privileged=np.zeros(5), entropy=source
            )[0:1, 1]
            for _ in range(2_000)
        ]
    )
    observed = np.bincount(chosen, minlength=5)[1:]
    assert observed.sum() == 2_000
    assert ((observed - 500.0) ** 2 / 500.0).sum() <= chdtri(3, RATE_PER_TEST)


def test_equally_frequent_values_are_equally_likely():
    neighbours = np.tile(np.arange(4, dtype=np.int32), (4_000, 1))
    guesses = majority_guesses(np.array([0, 2, 2, 0]), neighbours, num_values=3, entropy=entropy())
    assert set(guesses.tolist()) == {0, 2}
    assert binomtest(int((guesses == 0).sum()), 4_000).pvalue > RATE_PER_TEST
    assert binomtest(2_300, 4_000).pvalue < RATE_PER_TEST


def test_votes_by_hand():
    released = np.array([0, 1, 1, 2, 2, 2], dtype=np.uint8)
    neighbours = np.array(
        [[0, 1, 2, -1], [3, 4, 1, 2], [3, 4, 5, 1], [-1, -1, -1, -1], [0, -1, -1, -1]],
        dtype=np.int32,
    )
    guesses = majority_guesses(released, neighbours, num_values=3, entropy=entropy())
    assert guesses[[0, 2, 3, 4]].tolist() == [1, 2, -1, 0]
    assert guesses[1] in {1, 2}


def test_renaming_the_values_renames_the_guesses():
    generator = entropy().generator()
    released = generator.integers(0, 5, 200)
    neighbours = choose_neighbours(
        *everybody(200), num_neighbours=25, privileged=generator.random(200), entropy=entropy()
    )
    counts = np.array([np.bincount(released[row], minlength=5) for row in neighbours])
    clear = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) == 1
    names = np.array([3, 0, 4, 1, 2])
    before, after = (
        majority_guesses(codes, neighbours, num_values=5, entropy=entropy())
        for codes in (released, names[released])
    )
    assert clear.sum() > 50
    assert (before[clear] == counts.argmax(axis=1)[clear]).all()
    assert (names[before[clear]] == after[clear]).all()


@pytest.mark.parametrize(
    ("success", "expected"),
    [(0.9, [False, True, True]), (1.0, [False, False, True]), (0.87, [True, True, True])],
)
def test_who_is_vulnerable(success, expected):
    found = is_vulnerable(np.array([44, 45, 50]), num_resamplings=50, success=success)
    assert found.tolist() == expected


@pytest.mark.parametrize("success", [0.0, 1.1, float("nan")])
def test_a_share_out_of_range(success):
    with pytest.raises(ParameterError, match="success"):
        is_vulnerable(np.array([1]), num_resamplings=1, success=success)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_neighbours": 0}, "num_neighbours = 0"),
        ({"privileged": np.zeros(4)}, "one row for each of the 5"),
        ({"privileged": np.zeros((5, 1, 1))}, "one row for each of the 5"),
        (
            {"privileged": np.zeros(5), "is_category": np.zeros(2, dtype=bool)},
            "each of the 1 columns",
        ),
        ({"starts": np.array([0, 4])}, "must rise from 0 to 5"),
        ({"starts": np.array([0, 6, 5])}, "must rise"),
        ({"starts": np.array([0])}, "must rise"),
        ({"starts": np.array([[0, 5]])}, "one axis"),
        ({"members": np.array([0, 1, 2, 3, 5])}, r"members holds numbers outside \[0, 5\)"),
        ({"group_of": np.array([0, 0, 0, 0, 1])}, r"group_of holds numbers outside \[0, 1\)"),
    ],
)
def test_neighbours_refuse(changes, message):
    arguments = {"starts": EVERYBODY[0], "members": EVERYBODY[1], "group_of": EVERYBODY[2]}
    with pytest.raises(ParameterError, match=message):
        choose_neighbours(**(arguments | changes), entropy=entropy())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_privileged_data_must_be_finite(bad):
    with pytest.raises(DataError, match="row 1"):
        choose_neighbours(
            *EVERYBODY, privileged=np.array([0.0, bad, 0.0, 0.0, 0.0]), entropy=entropy()
        )


@pytest.mark.parametrize(
    ("released", "neighbours", "message"),
    [
        ([0.5, 1.0], [[0, 1]], "whole number a person"),
        ([[0, 1]], [[0, 1]], "whole number a person"),
        ([0, 2], [[0, 1]], r"outside \[0, 2\)"),
        ([-1, 0], [[0, 1]], r"outside \[0, 2\)"),
        ([0, 1], [0, 1], "1 axes"),
        ([0, 1], [[0, 2]], "the release has 2 rows"),
        ([0, 1], [[0, -2]], "the release has 2 rows"),
    ],
)
def test_votes_refuse(released, neighbours, message):
    with pytest.raises(ParameterError, match=message):
        majority_guesses(np.array(released), np.array(neighbours), num_values=2, entropy=entropy())


def test_nobody():
    empty = np.empty(0, dtype=int)
    rows = choose_neighbours(np.array([0, 0]), empty, empty, entropy=entropy())
    assert rows.shape == (0, 25)
    assert majority_guesses(empty, rows, num_values=2, entropy=entropy()).size == 0
