"""The least dummies that meet a target."""

import math

import pytest

from shuffledp.accounting import dummies
from shuffledp.accounting.dummies import least_dummies
from shuffledp.amplification.registry import account_delta
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.core.profile import LocalProfile

BARE = LocalProfile(epsilon0=math.inf)
NOISY = LocalProfile(epsilon0=4.0, family="k-rr", domain_size=16)


@pytest.mark.parametrize("profile", [BARE, NOISY])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-2])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("sender", ["shuffler", "users"])
def test_the_target_is_met_and_hardly_more(profile, delta, epsilon, sender):
    users = 10 if sender == "users" else 1
    law = least_dummies(profile, epsilon=epsilon, delta=delta, sender=sender, num_users=users)
    assert law.sender == sender

    less = DummyLaw(shape=law.shape, scale=0.999 * law.scale, half_width=law.half_width)

    def at(epsilon, law):
        return account_delta(profile, num_users=users, epsilon=epsilon, dummies=law).upper

    assert at(epsilon, law) <= delta
    assert at(epsilon, less) > delta if sender == "users" else at(0.9 * epsilon, law) > delta


def test_a_trusted_curators_variance():
    assert least_dummies(BARE, epsilon=1.0, delta=1e-6).variance < 7.84
    assert least_dummies(BARE, epsilon=0.1, delta=1e-6).variance < 799.9


def test_local_noise_of_many_bins_needs_hardly_any_dummies():
    profile = LocalProfile(epsilon0=5.0, family="k-rr", domain_size=1_024)
    law = least_dummies(profile, epsilon=1.0, delta=1e-6)
    assert law.variance == pytest.approx(0.28, abs=0.005)
    assert law.half_width == 6


def test_a_limit_of_dummies_is_kept():
    assert least_dummies(BARE, epsilon=1.0, delta=1e-6, most_half_width=27).half_width == 27
    with pytest.raises(InfeasibleTargetError, match="half width 27, above 26"):
        least_dummies(BARE, epsilon=1.0, delta=1e-6, most_half_width=26)


def test_a_delta_below_the_unit_of_tables_is_refused_with_one_that_would_do():
    for profile in (BARE, LocalProfile(epsilon0=4.0, family="k-rr", domain_size=3)):
        for delta in (1e-30, 5.5e-20):
            with pytest.raises(InfeasibleTargetError, match=r"2\^-64: raise delta to 8") as error:
                least_dummies(profile, epsilon=1.0, delta=delta)
            enough = float(str(error.value).rpartition(" ")[2])
            assert least_dummies(profile, epsilon=1.0, delta=enough).half_width < 120


@pytest.mark.slow
def test_what_no_table_reaches_is_refused_with_what_would_do():
    with pytest.raises(InfeasibleTargetError, match=r"half width 21,640.* raise epsilon to 0.0013"):
        least_dummies(BARE, epsilon=0.001, delta=1e-8)
    assert least_dummies(BARE, epsilon=0.0013, delta=1e-8).half_width <= 20_000


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"delta": 0.0},
        {"sender": "nobody"},
        {"shapes": ("poisson",)},
        {"shapes": ()},
        {"most_half_width": 0},
    ],
)
def test_arguments_are_checked(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        least_dummies(BARE, **({"epsilon": 1.0, "delta": 1e-6} | wrong))


def test_no_noise_is_needed_where_local_noise_is_enough():
    assert least_dummies(NOISY, epsilon=4.0, delta=1e-6).variance < 1e-3
    rate = least_dummies(NOISY, epsilon=4.0, delta=1e-6, sender="users", num_users=10).scale
    assert rate == pytest.approx(1e-4, rel=2e-4)


def test_a_second_table_that_is_no_better_is_left(monkeypatch):
    least, made = dummies._least_table, {}

    def only_laplace(profile, asked, shape, *rest):
        made[shape] = least(profile, asked, shape, *rest) if shape == "laplace" else None
        return made[shape]

    monkeypatch.setattr(dummies, "_least_table", only_laplace)
    assert least_dummies(BARE, epsilon=0.1, delta=1e-3).shape == "laplace"
    assert made["gaussian"] is None  # it was tried


def test_targets_of_approximate_reports_are_kept():
    assert dummies._target(LocalProfile(epsilon0=1.0, delta0=1e-9), 0.5, 1e-6) == (0.5, 1e-6)


def test_more_dummies_of_users_than_can_be_are_refused():
    with pytest.raises(InfeasibleTargetError, match="dummies in each bin: raise epsilon"):
        least_dummies(BARE, epsilon=1e-4, delta=1e-12, sender="users", num_users=100)


def test_levels_that_no_dummies_hide_are_refused(monkeypatch):
    monkeypatch.setattr(dummies, "_gaussian", lambda *_: DummyLaw.from_text("gaussian:2.0:12"))
    with pytest.raises(InfeasibleTargetError, match="for 2 batches is met by no dummies"):
        dummies.least_level_dummies([BARE], [1.0], epsilon=0.1, delta=1e-6, rounds=2)
