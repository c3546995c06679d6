"""Local limits of a plan, what holds without the shuffler, and plans as files."""

import json
import math
from dataclasses import replace

import pytest

import shuffledp as sdp
from collection.kinds import DOMAIN, KINDS
from shuffledp.amplification.registry import account_epsilon
from shuffledp.collection.cautions import without_shuffler
from shuffledp.collection.choices import Target, planned_guarantee
from shuffledp.collection.questions.question import chosen_candidates
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import (
    DataError,
    InfeasibleTargetError,
    OutOfRegimeError,
    ParameterError,
)
from shuffledp.core.profile import LocalProfile
from shuffledp.groups import Groups, GroupShuffling, MallowsShuffler
from shuffledp.randomizers.registry import RANDOMIZERS, make_randomizer

QUESTION = sdp.Categories(DOMAIN)


def planned(**asked):
    return sdp.plan(QUESTION, **{"num_users": 100_000, "epsilon": 0.5, "delta": 1e-8} | asked)


# ---------------------------------------------------------------- the local limit
def test_either_limit_may_bind():
    free, capped, loose = planned(), planned(max_epsilon0=2.0), planned(max_epsilon0=50.0)
    assert (free.binding, capped.binding, loose.binding) == ("epsilon", "max_epsilon0", "epsilon")
    assert loose.randomizer == free.randomizer
    assert capped.randomizer.epsilon0 == pytest.approx(2.0)
    assert capped.guarantee.epsilon_upper < 0.5
    assert all(each.randomizer.epsilon0 <= 2.0 for each in capped.alternatives)
    assert capped.expected_standard_error > free.expected_standard_error
    assert capped.to_json_dict()["binding"] == "max_epsilon0"


def test_a_limit_holds_for_rounds_and_for_other_shuffles_too():
    limited = planned(rounds=10, epsilon=2.0, max_epsilon0=0.5, randomizer="k-rr")
    assert limited.randomizer.epsilon0 <= 0.5
    near = Groups.from_distance([user // 4 for user in range(200)], radius=2, metric="absolute")
    within = GroupShuffling(shuffler=MallowsShuffler.for_groups(near, 4.0, distance="hamming"))
    plan = planned(num_users=200, epsilon=1.0, max_epsilon0=0.8, shuffling=within)
    assert (plan.randomizer.epsilon0, plan.binding) == (pytest.approx(0.8), "max_epsilon0")
    with pytest.raises(ParameterError, match="only plans of uniform shuffles are saved"):
        plan.save("plan.json")


def test_a_limit_that_drowns_every_estimate_is_refused():
    with pytest.raises(InfeasibleTargetError, match="max_epsilon0 may have to be larger"):
        planned(num_users=200, max_epsilon0=0.01)


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan, math.inf, "2"])
def test_limits_out_of_range(limit):
    with pytest.raises(ParameterError, match="max_epsilon0 = "):
        planned(max_epsilon0=limit)


def test_a_limit_is_for_a_central_target():
    with pytest.raises(ParameterError, match=r"max_epsilon0 = 2.0 goes with a central target"):
        planned(epsilon=None, epsilon0=1.0, max_epsilon0=2.0)
    assert planned(epsilon=None, epsilon0=1.0).binding == "epsilon0"


# ---------------------------------------------------------------- without the shuffler
@pytest.mark.parametrize("name", sorted(RANDOMIZERS))
@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_best_guess_is_that_of_the_written_out_law(name, k):
    law = make_randomizer(name, domain_size=k, epsilon0=1.5)
    local = without_shuffler(sdp.Categories(range(k)), law)
    columns = zip(*law.channel(), strict=True)
    assert local.right_guess == pytest.approx(float(sum(map(max, columns)) / k), rel=1e-11)
    bound = math.exp(law.epsilon0) / (math.exp(law.epsilon0) + k - 1)
    assert 1.0 / k < local.right_guess <= bound * (1.0 + 1e-11)
    assert local.odds == math.exp(law.epsilon0)
    assert (local.epsilon0, local.num_values) == (law.epsilon0, k)


def test_beyond_small_domains_the_bound_of_any_randomizer_holds():
    law = make_randomizer("optimized-unary", domain_size=100, epsilon0=2.0)
    local = without_shuffler(sdp.Categories(range(100)), law)
    assert local.right_guess == pytest.approx(1.0 / (1.0 + 99.0 * math.exp(-law.epsilon0)))


def test_numbers_are_told_apart_in_pairs_and_rounds_add_up():
    plan = sdp.plan(
        sdp.Mean(0, 1), num_users=5000, epsilon=1.0, delta=1e-6, rounds=3, randomizer="duchi"
    )
    local, loss = plan.without_shuffler, 3 * plan.randomizer.epsilon0
    assert (local.num_values, local.epsilon0) == (2, loss)
    assert local.right_guess == pytest.approx(1.0 / (1.0 + math.exp(-loss)))


def test_a_chance_to_reveal_everything_counts():
    class Leaky:
        name = "leaky"
        epsilon0 = 0.0
        profile = LocalProfile(epsilon0=0.0, delta0=0.1)

    # Two answers: the report is the answer with probability 0.1, and says nothing otherwise.
    local = without_shuffler(sdp.Categories(["a", "b"]), Leaky())
    assert local.right_guess == pytest.approx(0.1 + 0.9 / 2)


def test_without_limits_nothing_overflows():
    law = make_randomizer("k-rr", domain_size=2, epsilon0=40.0)
    local = without_shuffler(QUESTION, law, rounds=100)
    assert (local.odds, local.right_guess) == (math.inf, 1.0)


def test_weak_promises_are_warned_about_and_not_refused():
    assert planned().warnings == ()
    weak = planned(num_users=10**8, delta=1e-10)
    (sentence,) = weak.warnings
    assert "epsilon0 = 12.81 is above 8: only the shuffler protects" in sentence
    assert "99.9995 %, among 3 equally likely ones" in sentence
    first, second = planned(epsilon=20.0).warnings
    assert first.startswith("epsilon = 20 is above 5: the odds")
    assert "epsilon0" in second
    result = sdp.run(planned(num_users=100, epsilon=6.0, delta=1e-4), ["yes", "no"] * 50, seed=1)
    assert result.warnings[0].startswith("epsilon = ")
    assert result.to_json_dict()["without_shuffler"]["num_values"] == 3


# ---------------------------------------------------------------- files
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_plan_survives_its_file(tmp_path, kind):
    plan = sdp.plan(kind.question, num_users=1200, epsilon=1.0, delta=1e-6)
    again = sdp.Plan.load(plan.save(tmp_path / "deep" / "plan.json"))
    assert again.randomizer == plan.randomizer
    assert again.question == plan.question
    assert again.guarantee == plan.guarantee
    assert again.alternatives == ()
    assert sdp.run(again, kind.values, seed=1).guarantee == plan.guarantee


@pytest.mark.parametrize(
    "asked",
    [
        {"max_epsilon0": 2.0},
        {"rounds": 5, "randomizer": "k-rr"},
        {"epsilon": None, "epsilon0": 1.0, "randomizer": "hadamard-response"},
    ],
)
def test_all_that_was_asked_for_is_in_the_file(tmp_path, asked):
    plan = planned(**asked)
    again = sdp.Plan.load(plan.save(tmp_path / "plan.json"))
    written = json.loads((tmp_path / "plan.json").read_text())
    assert (written["schema"], written["shuffledp_version"]) == (1, sdp.__version__)
    assert again.randomizer == plan.randomizer
    assert (again.binding, again.rounds) == (plan.binding, plan.rounds)
    assert again.guarantee.epsilon_upper == pytest.approx(plan.guarantee.epsilon_upper, rel=1e-9)
    assert again.target_epsilon == plan.target_epsilon


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: "no json", "is no plan of Plan.save, or is damaged .*: plan again"),
        (lambda _: "[]", "is no plan"),
        (lambda _: "{}", "is no plan .*'schema'"),
        (lambda text: text.replace('"schema": 1', '"schema": 9'), "has schema 9"),
        (lambda text: text.replace("frequencies", "votes"), "is no plan .*'votes'"),
        (lambda text: text.replace('"k-rr"', '"x-rr"'), "randomizer 'x-rr' is not one of"),
        (lambda text: text.replace('"refused"', '"refused", "late"'), "names the law"),
        (lambda text: text.replace('_epsilon": 0.5', '_epsilon": 0.01'), "target epsilon <= 0.01,"),
        (lambda text: text.replace('_epsilon": 0.5', '_epsilon": -1.0'), "target_epsilon = -1"),
        (lambda text: text.replace('"rounds": 1', '"rounds": 0'), "rounds = 0 is below 1"),
        (lambda text: text.replace('_users": 100000', '_users": "all"'), "num_users = 'all'"),
        (lambda text: text.replace('_delta": 1e-08', '_delta": 7'), "delta = 7"),
        (lambda text: text.replace('"binding": "epsilon"', '"binding": "no"'), "binding = 'no'"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path, change, message):
    path = planned().save(tmp_path / "plan.json")
    path.write_text(change(path.read_text()))
    with pytest.raises((DataError, ParameterError), match=message) as error:
        sdp.Plan.load(path)
    assert "\n" not in str(error.value)
    with pytest.raises(DataError, match="No such file"):
        sdp.Plan.load(tmp_path / "none.json")


# ---------------------------------------------------------------- dummies
def with_dummies(question=QUESTION, *, text="laplace:2.0:27", epsilon0=math.inf, **asked):
    """Return a plan with dummies of this law, made by hand."""
    target = Target(**{"num_users": 1000, "epsilon": 1.0, "delta": 1e-6} | asked)
    law = question.dummy_candidates()["k-rr"](epsilon0)
    dummies = (DummyLaw.from_text(text),)
    return replace(
        sdp.plan(question, num_users=target.num_users, epsilon=1.0, delta=target.delta),
        randomizer=law,
        alternatives=(),
        asked_epsilon0=epsilon0,
        dummies=dummies,
        binding="no_local_noise" if math.isinf(epsilon0) else "max_epsilon0",
        guarantee=planned_guarantee(law, target, dummies),
    )


def test_three_lines_of_a_plan_with_dummies():
    bare, noisy = with_dummies(), with_dummies(epsilon0=4.0)
    assert bare.guarantee.epsilon_upper == pytest.approx(1.0, rel=1e-5)
    assert noisy.guarantee.epsilon_upper < bare.guarantee.epsilon_upper
    assert (bare.guarantee.num_users, bare.guarantee.bound.method) == (1, "shuffler-dummies")
    assert bare.without_dummies.epsilon_upper == bare.without_shuffler.odds == math.inf
    crowd = account_epsilon(noisy.randomizer.profile, num_users=1000, delta=1e-6)
    assert noisy.without_dummies.bound == crowd
    assert noisy.without_shuffler.epsilon0 == noisy.randomizer.epsilon0
    assert planned().without_dummies is None
    printed = bare.to_json_dict()
    assert printed["dummies"] == ["laplace:2.0:27"]
    assert printed["without_dummies"]["epsilon"]["upper"] is None
    assert "dummies" not in planned().to_json_dict()


@pytest.mark.parametrize(("text", "senders"), [("laplace:2.0:27", 1)])
def test_errors_with_dummies_by_closed_form(text, senders):
    plan = with_dummies(text=text)
    variance = senders * plan.dummies[0].variance * 2.0 / 3.0
    assert plan.expected_standard_error == pytest.approx(math.sqrt(variance) / 1000)
    noisy = with_dummies(text=text, epsilon0=4.0)
    p, q = noisy.randomizer.support_probabilities
    variance += 1000 * (q * (1.0 - q) + (p - q) * (1.0 - p - q) / 3.0)
    assert noisy.expected_standard_error == pytest.approx(math.sqrt(variance) / 1000 / (p - q))


@pytest.mark.parametrize("asked", [{}, {"epsilon0": 4.0}])
def test_a_plan_with_dummies_survives_its_file(tmp_path, asked):
    plan = with_dummies(**asked)
    assert sdp.Plan.load(plan.save(tmp_path / "plan.json")) == plan
    assert json.loads((tmp_path / "plan.json").read_text())["schema"] == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"schema": 2', '"schema": 1', "has schema 1, not 2"),
        ("laplace:2.0:27", "laplace:1.9:27", "only guarantees epsilon <= "),
        ("laplace:2.0:27", "laplace:2.0:20", "dummies .* give no finite epsilon"),
        ("laplace:2.0:27", "laplace:2.0", "is no plan .* is no law"),
        ('"k-rr"', '"optimized-unary"', "which are those for frequencies with dummies"),
    ],
)
def test_files_whose_dummies_miss_the_target_are_refused(tmp_path, old, new, message):
    path = with_dummies().save(tmp_path / "plan.json")
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises((DataError, ParameterError, OutOfRegimeError), match=message):
        sdp.Plan.load(path)


def test_dummies_are_for_answers():
    for kind in (KINDS["answer-sets"],):
        with pytest.raises(ParameterError, match=f"none for {kind.question.kind}"):
            chosen_candidates(kind.question, None, with_dummies=True)


# ---------------------------------------------------------------- frames
def test_estimates_as_frames():
    result = sdp.run(planned(num_users=100), ["yes", "no"] * 50, seed=1)
    columns = result.to_dict()
    assert columns["value"] == list(DOMAIN)
    assert columns["frequency"] == result.estimates.frequency.tolist()
    assert result.to_polars().to_dict(as_series=False) == columns
    assert result.to_pandas().to_dict("list") == columns
    assert list(result.estimates.to_dict()) == list(columns)[1:]


def test_bounds_as_frames():
    compared = sdp.compare_bounds(epsilon0=1.0, num_users=1000, delta=1e-6)
    frame = compared.to_polars()
    assert frame["epsilon"][0] == compared.best
    assert frame["method"].to_list() == [each.method.name for each in compared.bounds]


def test_public_results_show_themselves_in_notebooks():
    guarantee = sdp.account(epsilon0=1.0, num_users=1000, delta=1e-6)
    for text in ("1,000", "0.1305 to 0.1487 (proved, clones)"):
        assert text in guarantee._repr_html_()
    assert "num users" in sdp.calibrate(epsilon0=0.5, epsilon=1.0, delta=1e-6)._repr_html_()
    compared = sdp.compare_bounds(epsilon0=1.0, num_users=1000, delta=1e-6)
    assert "smallest first" in compared._repr_html_()
