"""Profiles by name, and schedules."""

import pytest

from oracles import profiles
from shuffledp.accounting import profiles as schedules
from shuffledp.accounting.profiles import named_profile, read_schedule
from shuffledp.composition.release import ShuffledRelease, StatedRelease
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.randomizers.number_randomizer import Duchi
from shuffledp.randomizers.privunit import PrivUnit
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS,
    RANDOMIZERS,
    VECTOR_RANDOMIZERS,
    make_randomizer,
)

ACCOUNTED = (*RANDOMIZERS, *NUMBER_RANDOMIZERS, *VECTOR_RANDOMIZERS)


# ---------------- named profiles
def needed(name):
    if name in RANDOMIZERS:
        return {"domain_size": 5}
    return {} if name in NUMBER_RANDOMIZERS else {"dimension": 8}


@pytest.mark.parametrize("name", ACCOUNTED)
def test_every_randomizer_has_a_profile(name):
    profile = named_profile(name, epsilon0=1.0, **needed(name))
    assert 0.0 < profile.epsilon0 <= 1.0
    assert profile.family is not RandomizerFamily.ANY


def test_limits_and_norms_make_no_difference():
    wide = Duchi(low=0.0, high=120.0, epsilon0=0.8).profile
    assert named_profile("duchi", epsilon0=0.8).blanket == wide.blanket
    long = PrivUnit(dimension=8, norm_bound=7.0, epsilon0=0.8).profile
    assert named_profile("privunit", epsilon0=0.8, dimension=8).blanket == long.blanket


def test_no_name_is_any_randomizer():
    assert named_profile(None, epsilon0=2.0) == LocalProfile(epsilon0=2.0)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (None, {"domain_size": 3}, "domain_size = 3 makes no difference without a randomizer"),
        (None, {"dimension": 3}, "dimension = 3 makes no difference"),
        ("duchi", {"domain_size": 3}, "domain_size = 3 makes no difference for duchi"),
        ("k-rr", {"domain_size": 3, "dimension": 2}, "dimension = 2 makes no difference for k-rr"),
        (
            "privunit",
            {"domain_size": 3, "dimension": 2},
            "domain_size = 3 makes no difference for privunit",
        ),
        ("privunit", {}, "dimension is needed for privunit"),
        ("subset-selection", {}, "domain_size is needed for subset-selection"),
        ("k-rr", {}, "k-RR"),
        ("krr", {"domain_size": 3}, "'krr' is not one of k-rr, "),
        ("piecewise", {"epsilon0": -1.0}, "epsilon0 = -1"),
    ],
)
def test_what_does_not_fit_is_refused(name, given, message):
    with pytest.raises(ParameterError, match=message):
        named_profile(name, **{"epsilon0": 1.0, **given})


# ---------------- schedules
@pytest.fixture
def written(tmp_path):
    """Return what writes a schedule and reads it."""

    def write(text):
        path = tmp_path / "year.csv"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_schedule(path)

    return write


def test_every_column_counts(written):
    year = written(
        "epsilon0,num_users,rounds,randomizer,k,sampled_from,participation,epsilon,delta\n"
        "1.0,100000,365,,,,,,\n"
        "2.0,5e4,12,k-rr,16,,,,\n"
        "2.0,5000,,subset-selection,16,,,,\n"
        "1.0,1_000,4,,,10000,,,\n"
        "1.0,1000,4,symmetric-unary,,,0.25,,\n"
        ",,2,,,,,0.1,1e-9\n"
        ",,,,,,,0.5,\n"
    )
    subset = make_randomizer("subset-selection", domain_size=16, epsilon0=2.0).profile
    unary = profiles.symmetric_unary(1.0)
    assert year == (
        ShuffledRelease(epsilon0=1.0, num_users=100_000) * 365
        + ShuffledRelease(profile=profiles.k_rr(2.0, 16), num_users=50_000) * 12
        + ShuffledRelease(profile=subset, num_users=5000)
        + ShuffledRelease(epsilon0=1.0, num_users=1000, sampled_from=10_000) * 4
        + ShuffledRelease(profile=unary, num_users=1000, participation=0.25) * 4
        + StatedRelease(epsilon=0.1, delta=1e-9) * 2
        + StatedRelease(epsilon=0.5)
    )


def test_two_columns_are_enough_and_equal_rows_add_up(written):
    year = written("\ufeff num_users , epsilon0 \r\n 10 , 1.0 \r\n\r\n10,1\r\n")
    assert year == ShuffledRelease(epsilon0=1.0, num_users=10) * 2


def test_no_rounds_are_none(written):
    assert written("epsilon0,num_users,rounds\n1,10,0\n").rounds == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows"),
        ("epsilon0,num_users\n", "no rows"),
        (
            "epsilon0,users\n1,2\n",
            "line 1: 'users' stands twice, or is not one of the columns epsilon0, num_users",
        ),
        ("epsilon0,epsilon0\n1,2\n", "line 1: 'epsilon0' stands twice"),
        ("epsilon0,num_users\n1,10\n1,ten\n", "line 3, column num_users: 'ten' is no whole number"),
        ("epsilon0,num_users\n1,1.5\n", "line 2, column num_users: '1.5' is no whole number"),
        ("epsilon0,num_users\nx,15\n", "line 2, column epsilon0: 'x' is no number"),
        ("epsilon0,num_users\n1,\n", "line 2, column num_users: the field is empty"),
        ("epsilon0,num_users\n,10\n", "line 2, column epsilon0: the field is empty"),
        ("epsilon0,num_users\n1,10,3\n", "line 2 has more fields"),
        ("epsilon0,num_users\n1,0\n", "line 2: num_users = 0"),
        ("epsilon0,num_users\nnan,10\n", "line 2: epsilon0 = nan"),
        ("epsilon0,num_users,rounds\n1,10,-3\n", "line 2: rounds = -3"),
        ("epsilon0,num_users,rounds\n1,10,inf\n", "line 2, column rounds: 'inf' is no whole"),
        ("epsilon0,num_users,rounds\n1,10,2000000\n", "above 1,048,576"),
        ("epsilon0,num_users,k\n1,10,3\n", "column k: k = 3 needs a randomizer"),
        ("epsilon0,num_users,randomizer\n1,10,magic\n", "line 2: randomizer = 'magic'"),
        ("epsilon0,num_users,randomizer\n1,10,k-rr\n", "line 2: .*k"),
        ("epsilon0,num_users,sampled_from\n1,10,5\n", "line 2: sampled_from = 5 is below"),
        ("epsilon0,num_users,participation\n1,10,2\n", "line 2: participation = 2"),
        ("epsilon,delta\n,1e-9\n", "line 2, column epsilon: the field is empty"),
        ("epsilon,delta\n1,2\n", "line 2: delta = 2"),
        ("epsilon,num_users\n1,2\n", "line 2: epsilon states a guarantee, so num_users"),
        (b"epsilon0,num_users\n\xff,1\n", "not text in UTF-8"),
        ('epsilon0,num_users\n"' + "1" * 200_000, "field larger than field limit"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(written, text, message):
    with pytest.raises(DataError, match=message) as caught:
        written(text)
    assert "\n" not in str(caught.value)
    assert "year.csv" in str(caught.value)


def test_files_that_are_none(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        read_schedule(tmp_path / "none.csv")
    with pytest.raises(DataError, match="cannot read"):
        read_schedule(tmp_path)


def test_a_long_file_is_no_schedule(written, monkeypatch):
    monkeypatch.setattr(schedules, "_MOST_ROWS", 3)
    with pytest.raises(DataError, match="more than 3 rows"):
        written("epsilon0,num_users\n" + "1,10\n" * 4)


def test_a_schedule_of_different_pairs_of_dummies(tmp_path):
    path = tmp_path / "levels.csv"
    path.write_text(
        "epsilon0,num_users,dummies\ninf,1,laplace:4.0:50\ninf,1,gaussian:9.0:60\n1,5,\n"
    )
    laws = [getattr(release.dummies, "shape", None) for release, _ in read_schedule(path).parts]
    assert laws == ["laplace", "gaussian", None]
    path.write_text("epsilon0,num_users,dummies\ninf,1,laplace\n")
    with pytest.raises(DataError, match="line 2: dummies = 'laplace' is no law"):
        read_schedule(path)
