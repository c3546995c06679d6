"""The majority vote by hand and against plain Python; ties and strangers are drawn fairly."""

from collections import Counter

import numpy as np
import pytest
from scipy.special import chdtri
from scipy.stats import binomtest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.attacks import adversaries as attack
from shuffledp.groups.attacks.adversaries import (
    choose_neighbours,
    gaussian_process_guess,
    is_vulnerable,
)
from shuffledp.groups.attacks.survey import Traits
from shuffledp.groups.group_kernels import vote
from shuffledp.groups.groups import Groups

# For the whole module; each of its statistical tests takes an equal share.
FALSE_POSITIVE_RATE = 1e-9
NUM_TESTS = 3
RATE_PER_TEST = FALSE_POSITIVE_RATE / NUM_TESTS


def majority_guesses(released, neighbours, *, domain_size, entropy):
    codes = np.array(released, dtype=np.int32)
    return vote(codes, neighbours, domain_size, entropy.words(1)[0])


def entropy():
    return Entropy.from_seed(17)


def everybody(num_people):
    """Return one neighbourhood of all, and that it is everybody's."""
    groups = Groups(num_users=num_people, starts=[0, num_people], members=np.arange(num_people))
    return groups, np.zeros(num_people, dtype=np.int64)


EVERYBODY = everybody(5)


def numbers(table):
    """Traits that are all numbers."""
    return Traits(table, np.zeros(table.shape[1], dtype=bool))


def by_sorting(person, row, traits, is_category, size):
    """Return the most similar members of a row, in plain Python."""

    def distance(other):
        apart = np.abs(traits[person] - traits[other])
        return float(np.where(is_category, apart > 0, apart).sum())

    return [person, *sorted(set(row) - {person}, key=distance)][:size]


def test_the_most_similar_are_read():
    traits = np.array([[0.0], [10.0], [1.0], [11.0], [3.0]])
    rows = choose_neighbours(
        *EVERYBODY, num_neighbours=3, privileged=numbers(traits), entropy=entropy()
    )
    assert [set(row) for row in rows.tolist()] == [
        {0, 2, 4},
        {1, 3, 4},
        {2, 0, 4},
        {3, 1, 4},
        {4, 2, 0},
    ]
    assert rows[:, 0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("privileged", [None, numbers(np.arange(5.0)[:, None])])
def test_only_the_own_row(privileged):
    rows = choose_neighbours(*EVERYBODY, num_neighbours=1, privileged=privileged, entropy=entropy())
    assert rows.tolist() == [[0], [1], [2], [3], [4]]


@pytest.mark.parametrize("privileged", [None, numbers(np.arange(5.0)[:, None])])
def test_small_neighbourhoods_leave_places_free(privileged):
    groups = Groups(num_users=5, starts=[0, 1, 5], members=np.arange(5))
    rows = choose_neighbours(
        groups, np.array([0, 1, 1, 1, 1]), num_neighbours=6, privileged=privileged,
        entropy=entropy(),
    )  # fmt: skip
    assert rows[0].tolist() == [0, -1, -1, -1, -1, -1]
    assert sorted(rows[3].tolist()) == [-1, -1, 1, 2, 3, 4]


def test_categories_are_one_apart_or_equal():
    traits = np.array([[0, 0.0], [7, 0.0], [0, 0.9], [7, 0.3], [1, 0.0]])
    rows = choose_neighbours(
        *EVERYBODY, num_neighbours=2, privileged=Traits(traits, np.array([True, False])),
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
        Groups(num_users=60, starts=cuts, members=rows), own, num_neighbours=7,
        privileged=Traits(traits, is_category), entropy=entropy(),
    )  # fmt: skip
    for person in range(num_people):
        row = rows[cuts[own[person]] : cuts[own[person] + 1]].tolist()
        expected = by_sorting(person, row, traits, is_category, 7)
        assert sorted(chosen[person].tolist()) == sorted(expected)


def test_strangers_are_members_and_distinct():
    starts, members = np.array([0, 30, 70]), np.concatenate([np.arange(30), np.arange(30, 70)])
    own = np.repeat([0, 1], [35, 35])  # people 30 to 34 read a neighbourhood without themselves
    groups = Groups(num_users=70, starts=starts, members=members)
    chosen = choose_neighbours(groups, own, num_neighbours=10, entropy=entropy())
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
                *everybody(5),
                num_neighbours=2,
                privileged=numbers(np.zeros((5, 1))),
                entropy=source,
            )[0:1, 1]
            for _ in range(2_000)
        ]
    )
    observed = np.bincount(chosen, minlength=5)[1:]
    assert observed.sum() == 2_000
    assert ((observed - 500.0) ** 2 / 500.0).sum() <= chdtri(3, RATE_PER_TEST)


def test_equally_frequent_values_are_equally_likely():
    neighbours = np.tile(np.arange(4, dtype=np.int32), (4_000, 1))
    guesses = majority_guesses(np.array([0, 2, 2, 0]), neighbours, domain_size=3, entropy=entropy())
    assert set(guesses.tolist()) == {0, 2}
    assert binomtest(int((guesses == 0).sum()), 4_000).pvalue > RATE_PER_TEST
    assert binomtest(2_300, 4_000).pvalue < RATE_PER_TEST


def test_votes_by_hand():
    released = np.array([0, 1, 1, 2, 2, 2], dtype=np.uint8)
    neighbours = np.array(
        [[0, 1, 2, -1], [3, 4, 1, 2], [3, 4, 5, 1], [-1, -1, -1, -1], [0, -1, -1, -1]],
        dtype=np.int32,
    )
    guesses = majority_guesses(released, neighbours, domain_size=3, entropy=entropy())
    assert guesses[[0, 2, 3, 4]].tolist() == [1, 2, -1, 0]
    assert guesses[1] in {1, 2}


def test_renaming_the_values_renames_the_guesses():
    generator = entropy().generator()
    released = generator.integers(0, 5, 200)
    neighbours = choose_neighbours(
        *everybody(200),
        num_neighbours=25,
        privileged=numbers(generator.random((200, 1))),
        entropy=entropy(),
    )
    counts = np.array([np.bincount(released[row], minlength=5) for row in neighbours])
    clear = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) == 1
    names = np.array([3, 0, 4, 1, 2])
    before, after = (
        majority_guesses(codes, neighbours, domain_size=5, entropy=entropy())
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


def test_nobody_is_read():
    with pytest.raises(ParameterError, match="num_neighbours = 0"):
        choose_neighbours(*EVERYBODY, num_neighbours=0, entropy=entropy())


def test_nobody():
    empty = np.empty(0, dtype=int)
    rows = np.empty((0, 25), dtype=np.int32)
    assert majority_guesses(empty, rows, domain_size=2, entropy=entropy()).size == 0


def entropy_of_gaussian_process():
    return Entropy.from_seed(23)


def two_halves(num_people=240):
    """Return positions in the unit square, three values by position, and noisy labels."""
    generator = entropy_of_gaussian_process().generator()
    positions = generator.random((num_people, 2))
    truth = (positions[:, 0] > 0.5).astype(int) * (1 + (positions[:, 1] > 0.5))
    noisy = np.where(
        generator.random(num_people) < 0.7, truth, generator.integers(0, 3, num_people)
    )
    return positions, truth, noisy


def test_with_all_positions_it_is_the_full_posterior_mean():
    positions, _, labels = two_halves(40)
    shares = np.bincount(labels, minlength=3) / 40
    length, noise = 0.4, 0.5
    covariances = np.exp(
        -((positions[:, None] - positions[None]) ** 2).sum(axis=2) / (2 * length**2)
    )
    targets = np.eye(3)[labels] - shares
    full = covariances @ np.linalg.solve(covariances + noise * np.eye(40), targets)
    features = attack._features(positions, length)(positions)
    sparse = features @ attack._ridge(features.T @ features, features.T @ targets, noise)
    assert np.abs(sparse - full).max() < 1e-6


def test_it_finds_what_goes_with_the_position():
    positions, truth, labels = two_halves()
    found = gaussian_process_guess(
        positions,
        labels,
        domain_size=3,
        num_inducing=50,
        entropy=entropy_of_gaussian_process(),
    )
    assert (found == truth).mean() > 0.9 > (labels == truth).mean() + 0.05


def test_it_finds_nothing_in_shuffled_labels():
    positions, truth, labels = two_halves()
    shuffled = entropy_of_gaussian_process().generator().permutation(labels)
    found = gaussian_process_guess(
        positions,
        shuffled,
        domain_size=3,
        num_inducing=50,
        entropy=entropy_of_gaussian_process(),
    )
    assert (found == truth).mean() < 0.65  # half of the people have value 0


def test_position_and_unit_do_not_matter():
    positions, _, labels = two_halves()
    plain, moved = (
        gaussian_process_guess(
            points,
            labels,
            domain_size=3,
            num_inducing=50,
            entropy=entropy_of_gaussian_process(),
        )
        for points in (positions, 1024.0 * positions + 4096.0)
    )
    assert (plain == moved).mean() > 0.99


def test_blocks_change_nothing(monkeypatch):
    positions, _, labels = two_halves()
    at_once = gaussian_process_guess(
        positions,
        labels,
        domain_size=3,
        num_inducing=50,
        entropy=entropy_of_gaussian_process(),
    )
    monkeypatch.setattr(attack, "_BLOCK_ROWS", 7)
    in_blocks = gaussian_process_guess(
        positions,
        labels,
        domain_size=3,
        num_inducing=50,
        entropy=entropy_of_gaussian_process(),
    )
    assert (at_once == in_blocks).all()


def test_one_place_gives_the_commonest_value():
    found = gaussian_process_guess(
        np.zeros((9, 1)),
        np.array([2] * 5 + [0] * 4),
        domain_size=3,
        entropy=entropy_of_gaussian_process(),
    )
    assert found.tolist() == [2] * 9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_inducing": 0}, "num_inducing = 0"),
        (
            {"positions": np.zeros((1, 1)), "released": np.zeros(1, dtype=int)},
            "number of people = 1",
        ),
    ],
)
def test_refusals(changes, message):
    arguments = {"positions": np.zeros((2, 1)), "released": np.array([0, 1]), "domain_size": 2}
    with pytest.raises(ParameterError, match=message):
        gaussian_process_guess(**(arguments | changes), entropy=entropy_of_gaussian_process())
