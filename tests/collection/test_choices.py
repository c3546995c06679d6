"""Planning with dummies: what is chosen, by closed forms, and what is refused."""

import json
import math
from itertools import pairwise

import pytest

import shuffledp as sdp
from collection.kinds import KINDS
from shuffledp.amplification.registry import account_delta
from shuffledp.core.errors import InfeasibleTargetError, ParameterError


def planned(k=16, **asked):
    how = {"num_users": 10_000, "epsilon": 1.0, "delta": 1e-6, "dummies": "shuffler"} | asked
    if "max_epsilon0" not in how:
        how.setdefault("no_local_noise", True)
    return sdp.plan(sdp.Categories(range(k)), **how)


def noise_of(plan, share, variance):
    """Return the standard error of a share: randomization and dummies of this variance a bin."""
    p, q = plan.randomizer.support_probabilities
    n, k = plan.num_users, plan.randomizer.domain_size
    own = n * (q * (1.0 - q) + share * (p - q) * (1.0 - p - q))
    return math.sqrt(own + variance * (1.0 - 1.0 / k)) / (n * (p - q))


# ---------------------------------------------------------------- what is chosen
@pytest.mark.parametrize(("k", "most"), [(2, 8.04), (16, 8.04), (1024, 8.04)])
def test_bare_values_have_a_trusted_curators_error(k, most):
    plan = planned(k)
    (law,) = plan.dummies
    assert 7.83 < law.variance < most  # a discrete Laplace law of a trusted curator has 7.84
    assert plan.expected_standard_error == pytest.approx(
        math.sqrt(law.variance * (1.0 - 1.0 / k)) / 10_000
    )
    assert plan.binding == "no_local_noise"
    assert math.isinf(plan.randomizer.epsilon0)
    assert 0.999 < plan.guarantee.epsilon_upper <= 1.0
    assert plan.guarantee.num_users == 1
    assert plan.expected_dummies == k * law.half_width
    # The crowd alone stands beside it, with its own error, and no other dummies.
    alone = planned(k, dummies="none", no_local_noise=False)
    assert [each.dummies for each in plan.alternatives] == [()] * len(plan.alternatives)
    assert plan.alternatives[0].expected_standard_error == alone.expected_standard_error


@pytest.mark.parametrize("sender", ["shuffler", "users"])
def test_local_noise_beside_dummies(sender):
    plan, bare = planned(dummies=sender, max_epsilon0=8.0), planned(dummies=sender)
    (law,) = plan.dummies
    senders = 10_000 if sender == "users" else 1
    assert (law.sender, plan.binding) == (sender, "max_epsilon0")
    assert plan.randomizer.epsilon0 == pytest.approx(8.0)
    assert plan.expected_standard_error == pytest.approx(
        noise_of(plan, 1 / 16, senders * law.variance)
    )
    assert law.variance <= bare.dummies[0].variance
    assert bare.expected_standard_error < plan.expected_standard_error
    found = account_delta(
        plan.randomizer.profile, num_users=plan.guarantee.num_users, epsilon=1.0, dummies=law
    )
    assert found.upper <= 1e-6
    assert plan.guarantee.num_users == senders
    assert plan.without_dummies.epsilon_upper > 1.0
    assert plan.expected_dummies == pytest.approx(senders * 16 * law.mean)


def test_users_dummies_by_their_reference():
    """Without local noise 42.7 in each bin at epsilon = 1, 136.1 at 0.5, and delta = 1e-6."""
    for epsilon, rate in ((1.0, 42.7), (0.5, 136.1)):
        plan = planned(dummies="users", epsilon=epsilon)
        assert 10_000 * plan.dummies[0].scale == pytest.approx(rate, rel=2e-3)
        assert plan.expected_standard_error == pytest.approx(
            math.sqrt(rate * 15 / 16) / 10_000, rel=1e-3
        )


def test_the_best_of_all_and_none_where_it_is_no_better():
    best = planned(dummies="best", max_epsilon0=8.0)
    assert best.dummies == planned(max_epsilon0=8.0).dummies
    senders = [each.dummies[0].sender for each in best.alternatives if each.dummies]
    assert senders == ["users"]
    errors = [each.expected_standard_error for each in best.alternatives]
    assert best.expected_standard_error < min(errors)
    assert errors == sorted(errors)
    # At epsilon0 = 4 the crowd alone meets the target: dummies only cost.
    alone = planned(dummies="best", max_epsilon0=4.0)
    assert (alone.dummies, alone.without_dummies, alone.randomizer.name) == ((), None, "k-rr")
    assert alone.alternatives[1].dummies[0].sender == "shuffler"
    assert alone.expected_standard_error < alone.alternatives[1].expected_standard_error
    # Below epsilon none are needed at all.
    assert not any(each.dummies for each in planned(dummies="best", max_epsilon0=1.0).alternatives)


def test_too_few_users_for_a_crowd_are_enough_with_dummies():
    with pytest.raises(InfeasibleTargetError):
        planned(dummies="none", no_local_noise=False, num_users=15)
    plan = planned(num_users=15)
    assert plan.alternatives == ()
    assert plan.expected_standard_error == pytest.approx(2.71 / 15, rel=1e-3)


def test_a_limit_of_dummies_costs_error():
    free, tight = planned(max_epsilon0=8.0), planned(max_epsilon0=8.0, most_dummies=400)
    assert tight.expected_dummies <= 400 < free.expected_dummies
    assert tight.randomizer.epsilon0 < 8.0
    assert tight.binding == "epsilon"
    assert tight.expected_standard_error > free.expected_standard_error


# ---------------------------------------------------------------- what it is compared with
@pytest.mark.parametrize(
    "asked", [{}, {"max_epsilon0": 8.0}, {"max_epsilon0": 8.0, "dummies": "users"}]
)
def test_errors_of_frequent_answers_by_closed_form(asked):
    plan, worst = planned(frequency=0.3, **asked), planned(**asked)
    variance = plan.dummies[0].error_variance(16, num_senders=10_000) * 16 / 15
    assert plan.frequent_error() == pytest.approx(noise_of(plan, 0.3, variance))
    ends = [noise_of(plan, share, variance) for share in (0.0, 1.0)]
    assert worst.frequent_error() == pytest.approx(max(ends))
    assert plan.sampling_error == pytest.approx(math.sqrt(0.21 / 10_000))
    assert worst.sampling_error == pytest.approx(math.sqrt(15 / 256 / 10_000))
    crowd = plan.alternatives[0]
    assert plan.frequent_error(crowd) == sdp.Categories(range(16)).frequent_error(
        crowd.randomizer, 10_000, 0.3
    )


def test_a_frequency_is_stated_without_dummies_too():
    plan = sdp.plan(
        sdp.Categories(range(4)), num_users=1000, epsilon=1.0, delta=1e-6, frequency=0.5
    )
    printed = json.loads(json.dumps(plan.to_json_dict(), allow_nan=False))
    assert printed["frequency"] == 0.5
    assert printed["dummies"] == []
    assert printed["sampling_standard_error"] == pytest.approx(math.sqrt(0.25 / 1000))
    errors = printed["frequent_standard_errors"]
    assert errors["plan"] == plan.frequent_error()
    assert len(errors["alternatives"]) == len(plan.alternatives)
    assert errors["central_model"] == printed["central_model"]["standard_error_at_same_epsilon"]
    assert errors["local_model"] > errors["plan"]


@pytest.mark.parametrize(
    ("k", "scale", "share"), [(2, 1.0, 1.0), (3, 2.0, 2 / 3), (16, 2.0, 15 / 16)]
)
def test_a_trusted_curator_draws_whole_laplace_noise(k, scale, share):
    plan = planned(k)
    keep = math.exp(-1.0 / scale)
    variance = 2.0 * keep / (1.0 - keep) ** 2 * share
    curator = plan.central_model
    assert curator.standard_error_at_same_epsilon == pytest.approx(math.sqrt(variance) / 10_000)
    assert curator.standard_error_at_same_epsilon < 1.0001 * plan.expected_standard_error
    keep = math.exp(-curator.epsilon_for_same_error / scale)
    variance = 2.0 * keep / (1.0 - keep) ** 2 * share
    assert plan.expected_standard_error == pytest.approx(math.sqrt(variance) / 10_000)
    assert curator.epsilon_for_same_error < 1.0001
    assert planned(k, epsilon=2000.0).central_model.standard_error_at_same_epsilon > 0.0


def test_without_any_loss_a_trusted_curator_learns_nothing():
    plan = sdp.plan(sdp.Categories([1, 2]), num_users=9, epsilon0=0.0, delta=1e-6, frequency=0.5)
    assert plan.central_model.standard_error_at_same_epsilon == math.inf
    assert "with a trusted curator" in str(plan)


def test_the_same_error_without_a_shuffler():
    plan = planned(max_epsilon0=8.0)
    epsilon = plan.local_model.epsilon_for_same_error
    assert epsilon < 8.0
    same = plan.question.dummy_candidates()["k-rr"](epsilon)
    assert plan.question.expected_error(same, 10_000) == pytest.approx(
        plan.expected_standard_error, rel=1e-4
    )
    assert planned().local_model.epsilon_for_same_error < 40.0


@pytest.mark.slow
def test_errors_at_other_targets_are_those_of_plans_for_them():
    plan = planned(max_epsilon0=2.0, num_users=1000)
    points = plan.errors_by_epsilon()
    for epsilon, errors in points[:3]:
        again = planned(max_epsilon0=2.0, num_users=1000, epsilon=epsilon)
        assert errors[0] == pytest.approx(again.expected_standard_error)
    for (_, (more, *_)), (_, (less, *_)) in pairwise(points):
        assert less <= more
    # From epsilon = epsilon0 on local noise is enough.
    assert points[-1][1][0] == points[-2][1][0]
    assert planned(num_users=20).errors_by_epsilon()[0][1] == (pytest.approx(0.546, rel=1e-2),)


# ---------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"dummies": "mine"}, "dummies = 'mine' is not one of none, shuffler, users, best"),
        ({"no_local_noise": False}, "needs exactly one of max_epsilon0=.* and no_local_noise"),
        ({"max_epsilon0": 2.0, "no_local_noise": True}, "needs exactly one of"),
        ({"dummies": "none"}, "no_local_noise = True .* give dummies"),
        ({"randomizer": "optimized-unary"}, "is not one of k-rr, .* frequencies with dummies"),
        ({"max_epsilon0": 1.0}, "epsilon0 = 1 meets the target without them; leave them out"),
        ({"dummies": "users", "max_epsilon0": 4.0}, "epsilon0 = 4 meets the target without"),
        ({"epsilon": None, "epsilon0": 2.0}, "planned for uniform shuffles to a target"),
        ({"most_dummies": 0}, "most_dummies = 0"),
        ({"frequency": 1.5}, r"frequency = 1.5 is not in \[0, 1\]"),
        ({"frequency": math.nan}, "frequency = nan"),
    ],
)
def test_what_cannot_be_asked_for(asked, message):
    with pytest.raises(ParameterError, match=message):
        planned(**asked)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"most_dummies": 100},
            "half width 27, above 6: .* coarser answers, or allow more than .* with most_dummies",
        ),
        ({"most_dummies": 15}, "16 answers are too many for dummies"),
        ({"dummies": "users", "most_dummies": 100}, "needs 682 dummies in all: raise epsilon"),
        ({"num_users": 5}, "num_users = 5 is too few .* would drown every estimate; ask more"),
    ],
)
def test_what_cannot_be_met(asked, message):
    with pytest.raises(InfeasibleTargetError, match=message):
        planned(**asked)


@pytest.mark.parametrize("name", ["vector-mean", "answer-sets"])
def test_questions_without_dummies(name):
    asked = {"num_users": 10_000, "epsilon": 1.0, "delta": 1e-6, "max_epsilon0": 4.0}
    with pytest.raises(ParameterError, match=f"dummies: there are none for {name}; leave them"):
        sdp.plan(KINDS[name].question, dummies="best", **asked)


def test_a_frequency_is_of_answers():
    with pytest.raises(ParameterError, match=r"frequency = 0\.3 is for questions about shares"):
        sdp.plan(sdp.Mean(0, 1), num_users=100, epsilon=1.0, delta=1e-6, frequency=0.3)


# ---------------------------------------------------------------- rounds
@pytest.mark.slow
@pytest.mark.parametrize(("rounds", "variance"), [(2, 31.8), (4, 143.0)])
def test_rounds_take_the_shape_that_is_least(rounds, variance):
    """For four rounds Laplace laws need 127.8, a little less: compositions take the Gaussian."""
    plan = planned(rounds=rounds)
    (law,) = plan.dummies
    assert law.variance == pytest.approx(variance, rel=1e-2)
    assert law.shape == ("laplace" if rounds == 2 else "gaussian")
    assert 0.98 < plan.guarantee.epsilon_upper <= 1.0
    assert (plan.guarantee.rounds, plan.rounds) == (rounds, rounds)
    assert plan.expected_standard_error == pytest.approx(math.sqrt(law.variance * 15 / 16) / 10_000)


@pytest.mark.slow
def test_rounds_beside_local_noise_and_without_dummies(tmp_path):
    plan = planned(rounds=3, max_epsilon0=6.0)
    crowd = sdp.accounting.ShuffledRelease(profile=plan.randomizer.profile, num_users=10_000) * 3
    assert plan.without_dummies.bound == crowd.epsilon(1e-6)
    again = sdp.Plan.load(plan.save(tmp_path / "plan.json"))
    assert (again.dummies, again.guarantee) == (plan.dummies, plan.guarantee)
    assert planned(rounds=3, dummies="best", max_epsilon0=6.0).dummies == plan.dummies
    with pytest.raises(ParameterError, match="users' for one round"):
        planned(rounds=3, dummies="users")
    with pytest.raises(ParameterError, match="meets the target without them"):
        planned(rounds=3, max_epsilon0=0.3)
