"""What a plan promises, how it chooses, and what it is compared with."""

import json
import math
import pickle
import re
from dataclasses import dataclass, replace
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shuffledp as sdp
from collection.kinds import DOMAIN, KINDS
from shuffledp import Categories, Mean, accounting
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.collection import choices as choosing
from shuffledp.collection.choices import Alternative, best_of
from shuffledp.collection.plan import plan as make_plan
from shuffledp.collection.run import run as run_plan
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import DomainError, InfeasibleTargetError, ParameterError, PlanWarning
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Reports
from shuffledp.estimation.frequencies import expected_standard_error
from shuffledp.randomizers.base import CategoryRandomizer
from shuffledp.randomizers.registry import RANDOMIZERS, make_randomizer

# ---------------- plan
NAMES = sorted(RANDOMIZERS)


def domain(k):
    return [f"answer {i}" for i in range(k)]


@settings(max_examples=25)
@given(
    st.floats(1.5, 6.0).map(lambda exponent: round(10.0**exponent)),
    st.integers(2, 40),
    st.floats(-1.5, 1.0).map(lambda exponent: 10.0**exponent),
    st.floats(-14.0, -2.0).map(lambda exponent: 10.0**exponent),
    st.sampled_from([None, *NAMES]),
)
def test_the_guarantee_meets_the_target(num_users, k, epsilon, delta, name):
    try:
        plan = make_plan(
            Categories(domain(k)),
            num_users=num_users,
            epsilon=epsilon,
            delta=delta,
            randomizer=name,
        )
    except InfeasibleTargetError:
        assert num_users * epsilon < 200.0
        return
    assert plan.guarantee.epsilon_upper <= epsilon
    assert plan.guarantee.delta_upper == delta
    assert plan.guarantee.num_users == num_users
    at_target = account_delta(plan.randomizer.profile, num_users=num_users, epsilon=epsilon)
    assert at_target.upper <= delta
    # nothing is given away: the guarantee comes close to the target unless epsilon0 ends at 40
    assert plan.guarantee.epsilon_upper >= 0.999 * epsilon or plan.randomizer.epsilon0 > 39.0
    assert plan.expected_standard_error <= plan.question.useless_error
    for other in plan.alternatives:
        assert 1.02 * other.expected_standard_error >= plan.expected_standard_error
        other_delta = account_delta(
            other.randomizer.profile, num_users=num_users, epsilon=epsilon, with_lower=False
        )
        assert other_delta.upper <= delta


def test_the_expected_error_is_that_of_the_randomizer():
    plan = make_plan(Categories(domain(5)), num_users=10_000, epsilon=0.5, delta=1e-8)
    variances = [
        expected_standard_error(
            support_probabilities=plan.randomizer.support_probabilities,
            num_users=10_000,
            frequency=frequency,
        )
        ** 2
        for frequency in (0.5, 0.25, 0.25, 0.0, 0.0)
    ]
    assert plan.expected_standard_error == pytest.approx(math.sqrt(sum(variances) / 5))


def test_other_trust_models():
    plan = make_plan(Categories(domain(3)), num_users=10_000, epsilon=0.5, delta=1e-8)
    assert plan.local_model.epsilon_for_same_error == plan.randomizer.epsilon0 > 0.5
    assert plan.local_model.standard_error_at_same_epsilon > plan.expected_standard_error
    assert plan.central_model.standard_error_at_same_epsilon < plan.expected_standard_error
    assert plan.central_model.epsilon_for_same_error < 0.5
    # Laplace noise of scale 2/epsilon: standard deviation sqrt(2) 2/epsilon on a count
    same = plan.central_model.epsilon_for_same_error
    assert plan.expected_standard_error == pytest.approx(math.sqrt(2.0) * 2.0 / same / 10_000)


def test_json_keys():
    plan = make_plan(Categories(domain(3)), num_users=np.int64(10_000), epsilon=0.5, delta=1e-8)
    printed = json.loads(json.dumps(plan.to_json_dict(), allow_nan=False))
    assert {
        "randomizer", "epsilon0", "guarantee", "expected_standard_error", "alternatives"
    } <= set(printed)  # fmt: skip
    assert printed["expected_for"] == "root mean square over the answers"
    both = printed["expected_standard_error"] ** 2 + 2 / 9 / 10_000
    assert printed["expected_population_standard_error"] == pytest.approx(math.sqrt(both))
    assert set(printed["guarantee"]) == {"epsilon", "delta", "method", "source", "assumptions"}
    assert printed["guarantee"]["epsilon"]["upper"] <= 0.5
    assert printed["guarantee"]["delta"] == 1e-8
    assert printed["domain"] == domain(3)
    assert printed["num_users"] == 10_000
    assert [set(each) for each in printed["alternatives"]] == [
        {"randomizer", "epsilon0", "num_report_bytes", "expected_standard_error"}
    ] * (len(RANDOMIZERS) - 1)
    assert set(printed["local_model"]) == set(printed["central_model"])


def test_json_has_no_infinity():
    plan = make_plan(Categories(domain(3)), num_users=100, epsilon0=0.0, delta=1e-8, frequency=0.1)
    printed = json.loads(json.dumps(plan.to_json_dict(), allow_nan=False))
    assert printed["expected_standard_error"] is None
    assert printed["local_model"]["standard_error_at_same_epsilon"] is None
    assert printed["frequent_standard_errors"]["plan"] is None


@pytest.mark.parametrize("name", NAMES)
def test_a_chosen_randomizer_is_the_one_used(name):
    plan = make_plan(
        Categories(domain(4)), num_users=5000, epsilon=0.7, delta=1e-7, randomizer=name
    )
    assert plan.randomizer.name == name
    assert plan.alternatives == ()


def check_advice(arguments, caught):
    """Feed what the message promises back in."""
    message = str(caught.value)
    enough = int(re.search(r"([\d,]+) users would do", message)[1].replace(",", ""))
    assert enough > arguments["num_users"]
    make_plan(**arguments | {"num_users": enough})
    by_epsilon = re.search(r"epsilon >= ([\d.e+-]+) with", message)
    if by_epsilon:
        large = float(by_epsilon[1])
        assert large > arguments["epsilon"]
        make_plan(**arguments | {"epsilon": large})
    return bool(by_epsilon)


@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow), 50])
@pytest.mark.parametrize(
    ("num_users", "epsilon", "delta"),
    [(1, 0.1, 1e-9), (1, 1.0, 1e-6), (3, 0.5, 1e-9), (7, 0.3, 1e-6), (11, 0.17, 1e-4),
     (20, 0.05, 1e-12)],
)  # fmt: skip
def test_what_an_infeasible_target_advises_really_does(k, num_users, epsilon, delta):
    arguments = {
        "question": Categories(domain(k)),
        "num_users": num_users,
        "epsilon": epsilon,
        "delta": delta,
    }
    with pytest.raises(InfeasibleTargetError) as caught:
        make_plan(**arguments)
    assert check_advice(arguments, caught)


@pytest.mark.parametrize("name", NAMES)
def test_the_advice_is_for_the_randomizer_asked_for(name):
    arguments = {
        "num_users": 5,
        "question": Categories(domain(4)),
        "epsilon": 0.3,
        "delta": 1e-8,
        "randomizer": name,
    }
    with pytest.raises(InfeasibleTargetError) as caught:
        make_plan(**arguments)
    check_advice(arguments, caught)


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6, 1e-12, 1e-300])
def test_hopeless_targets_are_refused_soon(epsilon, monkeypatch):
    # However many users it would take: the refusal must not take minutes, nor blame num_users for
    # being above the accountant's own limit.
    calibrated = Mock(wraps=choosing.largest_epsilon0)
    monkeypatch.setattr(choosing, "largest_epsilon0", calibrated)
    with pytest.raises(InfeasibleTargetError):
        make_plan(
            Categories(domain(2)), num_users=100, epsilon=epsilon, delta=1e-9, randomizer="k-rr"
        )
    assert 0 < calibrated.call_count <= 100


@pytest.mark.parametrize("epsilon", [12.0, 20.0, 33.0, 39.0, 45.0, 1e308])
@pytest.mark.parametrize("num_users", [10, 10**6])
def test_generous_targets(epsilon, num_users):
    plan = make_plan(Categories(domain(3)), num_users=num_users, epsilon=epsilon, delta=1e-9)
    assert plan.guarantee.epsilon_upper <= epsilon
    # Nothing is lost on the local epsilon but what multiples of 2^-64 cannot express.
    alone = make_randomizer("k-rr", domain_size=3, epsilon0=min(epsilon, 39.9)).epsilon0
    assert plan.randomizer.epsilon0 >= alone * (1.0 - 1e-12)


@pytest.mark.parametrize("answers", [[], ["only"], ["a", "b", "a"]])
def test_unusable_domains(answers):
    with pytest.raises(DomainError):
        make_plan(Categories(answers), num_users=1000, epsilon=1.0, delta=1e-6)


def test_a_text_is_not_a_list_of_answers():
    with pytest.raises(ParameterError, match="is a single string: give a list"):
        make_plan(Categories("yes,no"), num_users=1000, epsilon=1.0, delta=1e-6)


def test_an_unknown_randomizer_gets_a_suggestion():
    with pytest.raises(ParameterError, match="symmetric-unary"):
        make_plan(
            Categories(domain(3)),
            num_users=1000,
            epsilon=1.0,
            delta=1e-6,
            randomizer="symetric-unary",
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"num_users": 0},
        {"num_users": 10.0},
        {"num_users": "10"},
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"epsilon": math.inf},
        {"epsilon": "1"},
        {"delta": 0.0},
        {"delta": 1.0},
        {"delta": math.nan},
        {"delta": None},
        {"epsilon0": "1", "epsilon": None},
        {"frequency": True},
        {"frequency": "0.5"},
        {"randomizer": ["k-rr"]},
        {"shuffling": "uniform"},
    ],
)
def test_targets_out_of_range(changes):
    asked = {"question": Categories(domain(3)), "num_users": 100, "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(ParameterError, match=next(iter(changes))):
        make_plan(**asked | changes)


def test_a_plan_runs():
    plan = make_plan(Categories(["yes", "no"]), num_users=500, epsilon=1.0, delta=1e-6)
    result = run_plan(plan, ["yes"] * 300 + ["no"] * 200, seed=1)
    assert result.num_users == 500
    assert result.is_simulation
    bound = account_epsilon(plan.randomizer.profile, num_users=500, delta=1e-6)
    assert result.guarantee.epsilon_upper == pytest.approx(bound.upper, rel=1e-5)


# ---------------- choosing
EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@dataclass(frozen=True)
class Sized:
    """A randomizer of which only name and size matter."""

    name: str
    num_report_bytes: int
    epsilon0: float = 1.0


def chosen(*choices):
    """Return the name of the best of (name, bytes, error), listed in the order of candidates."""
    alternatives = [
        Alternative(randomizer=Sized(name, size), expected_standard_error=error, asked_epsilon0=1.0)
        for name, size, error in choices
    ]
    return best_of(alternatives).randomizer.name


@pytest.mark.parametrize(
    ("choices", "best"),
    [
        ([("a", 8, 1.0), ("b", 1, 1.03)], "a"),  # small reports do not pay for 3 %
        ([("a", 8, 1.0), ("b", 1, 1.02)], "b"),  # but for 2 %
        ([("a", 8, 1.0), ("b", 2, 1.01), ("c", 1, 1.5)], "b"),
        ([("a", 1, 1.01), ("b", 1, 1.0)], "b"),  # of the same size the better one
        ([("a", 1, 1.00005), ("b", 1, 1.0)], "a"),  # the same law: the first
        ([("a", 1, 1.0), ("b", 1, 1.00005)], "a"),
        ([("a", 8, 1.0), ("b", 1, 1.01), ("c", 1, 1.00501)], "c"),
        ([("a", 9, math.inf), ("b", 9, 1.0)], "b"),
    ],
)
def test_the_smallest_reports_within_two_percent_of_the_least_error(choices, best):
    assert chosen(*choices) == best


@EACH
def test_every_plan_follows_the_rule(kind):
    for num_users in (300, 30_000):
        plan = sdp.plan(kind.question, num_users=num_users, epsilon=1.0, delta=1e-7)
        errors = [each.expected_standard_error for each in plan.alternatives]
        assert errors == sorted(errors)
        least = min([plan.expected_standard_error, *errors])
        assert plan.expected_standard_error <= 1.02 * least
        for other in plan.alternatives:
            if other.expected_standard_error <= 1.02 * least:
                assert other.randomizer.num_report_bytes >= plan.randomizer.num_report_bytes
        names = {plan.randomizer.name, *(each.randomizer.name for each in plan.alternatives)}
        assert names == set(kind.question.candidates())


def test_of_two_guises_of_one_law_the_better_analysed_is_taken():
    # Subset selection of one answer is k-RR, whose lower end is known.
    plan = sdp.plan(sdp.Categories(DOMAIN), num_users=100_000, epsilon=0.5, delta=1e-8)
    assert plan.randomizer.name == "k-rr"
    assert plan.alternatives[0].randomizer.name == "subset-selection"
    assert plan.guarantee.lower is not None


# ------------------------------------------------------------------ other trust models


@EACH
def test_a_trusted_curator_adds_laplace_noise(kind):
    plan = sdp.plan(kind.question, num_users=1000, epsilon=0.8, delta=1e-6)
    # Laplace noise of scale b has the standard deviation sqrt(2) b.
    scale = {"frequencies": 2.0, "mean": 120.0, "vector-mean": 2.0 * math.sqrt(3.0),
             "mean-by-group": 240.0, "answer-sets": 4.0, "columns": 2.0,
             "distribution": 2.0 * math.sqrt(5.0 / 3.0)}[kind.question.kind]  # fmt: skip
    at_same = math.sqrt(2.0) * scale / 0.8 / 1000
    assert plan.central_model.standard_error_at_same_epsilon == pytest.approx(at_same)
    assert plan.central_model.epsilon_for_same_error == pytest.approx(
        0.8 * at_same / plan.expected_standard_error
    )
    assert f"scale {scale:.6g}/epsilon" in plan.central_model.mechanism
    # Such noise on the sums of groups, or on cumulative totals, would not be what is compared.
    on_totals = plan.central_model.mechanism.endswith(" on each total of a trusted curator")
    assert on_totals == (kind.question.kind not in {"mean-by-group", "distribution"})


@EACH
def test_whoever_reads_a_record_finds_its_epsilon_again(kind):
    asked = {"num_users": 1000, "delta": 1e-6}
    plan = sdp.plan(kind.question, epsilon=0.8, **asked)
    law = plan.randomizer
    again = sdp.plan(kind.question, epsilon0=law.epsilon0, randomizer=law.name, **asked)
    epsilon = plan.guarantee.epsilon_upper
    assert again.guarantee.epsilon_upper == pytest.approx(epsilon, rel=1e-9)


@EACH
def test_without_a_shuffler_epsilon0_is_epsilon(kind):
    plan = sdp.plan(kind.question, num_users=1000, epsilon=0.8, delta=1e-6)
    assert plan.local_model.epsilon_for_same_error == plan.randomizer.epsilon0
    errors = [
        kind.question.expected_error(make(0.8), 1000)
        for make in kind.question.candidates().values()
    ]
    assert plan.local_model.standard_error_at_same_epsilon == min(errors)
    assert plan.local_model.standard_error_at_same_epsilon > plan.expected_standard_error


def test_local_errors_by_closed_form():
    k, n, epsilon = 3, 1000, 0.8
    power = math.exp(epsilon)
    p, q = power / (power + k - 1), 1.0 / (power + k - 1)
    share = (p + (k - 1) * q) / k  # a report's chance to support a category, on average
    variance = share - (p * p + (k - 1) * q * q) / k
    plan = sdp.plan(
        sdp.Categories(DOMAIN), num_users=n, epsilon=epsilon, delta=1e-6, randomizer="k-rr"
    )
    expected = math.sqrt(variance / n) / (p - q)
    assert plan.local_model.standard_error_at_same_epsilon == pytest.approx(expected)
    mean = sdp.plan(sdp.Mean(0, 120), num_users=n, epsilon=epsilon, delta=1e-6, randomizer="duchi")
    # Duchi's report is +-60 (e+1)/(e-1) around the middle; values spread evenly have 120^2/12.
    size = 60.0 * (power + 1.0) / (power - 1.0)
    expected = math.sqrt((size**2 - 120.0**2 / 12.0) / n)
    assert mean.local_model.standard_error_at_same_epsilon == pytest.approx(expected, rel=1e-6)


# ------------------------------------------------------------------ infeasible targets


@EACH
def test_infeasible_targets_say_what_would_do(kind):
    with pytest.raises(InfeasibleTargetError, match=r"too few for epsilon = 0\.05") as caught:
        sdp.plan(kind.question, num_users=5, epsilon=0.05, delta=1e-9)
    message = str(caught.value)
    assert kind.question.describe() in message
    enough = int(re.search(r"([\d,]+) users would do", message)[1].replace(",", ""))
    sdp.plan(kind.question, num_users=enough, epsilon=0.05, delta=1e-9)
    found = re.search(r"epsilon >= ([\d.]+) with", message)
    if kind.question.kind == "mean-by-group":  # two or three bits say little without noise, too
        assert found is None
    else:
        sdp.plan(kind.question, num_users=5, epsilon=float(found[1]), delta=1e-9)


# ------------------------------------------------------------------ a class of one's own


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRandomizer(CategoryRandomizer):
    """Tells the truth in six of eight cases, else the next answer: written in a few lines."""

    name = "own"

    domain_size: int
    epsilon0: float
    fingerprint: str = "own"

    def __post_init__(self):
        # p = 1 - (k - 1) q with q = 1/(e^epsilon0 + k - 1), rounded to multiples of 2^-32
        q = math.ceil(2**32 / (math.exp(min(self.epsilon0, 15.0)) + self.domain_size - 1)) + 1
        object.__setattr__(self, "epsilon0", math.log((2**32 - (self.domain_size - 1) * q) / q))
        object.__setattr__(self, "fingerprint", f"own:{self.domain_size}:{q}")

    @property
    def _threshold(self):
        return int(self.fingerprint.rpartition(":")[2])

    @property
    def profile(self):
        return LocalProfile(epsilon0=self.epsilon0, family=RandomizerFamily.OTHER)

    @property
    def support_probabilities(self):
        q = self._threshold / 2**32
        return 1.0 - (self.domain_size - 1) * q, q

    def randomize(self, values, entropy):
        place = entropy.generator().integers(0, 2**32, size=len(values)) // self._threshold + 1
        step = np.where(place < self.domain_size, place, 0)
        data = ((np.asarray(values) + step) % self.domain_size).astype(np.uint8)
        return Reports(data=data, fingerprint=self.fingerprint)

    def supports(self, reports):
        return reports.data[:, None] == np.arange(self.domain_size)


# The frequencies of 3000 users within eight standard errors: below 4e-15 by a normal law, and by
# Bernstein's inequality below this.
FALSE_POSITIVE_RATE = 1e-9


def test_a_class_of_ones_own_is_planned_and_run():
    plan = sdp.plan(
        sdp.Categories(DOMAIN, own=[OwnRandomizer]), num_users=3000, epsilon=1.0, delta=1e-6
    )
    assert isinstance(plan.randomizer, OwnRandomizer)
    assert plan.alternatives == ()
    assert plan.guarantee.epsilon_upper <= 1.0
    # Nothing is known of it but epsilon0, so it gets what any randomizer may have.
    known = choosing.largest_epsilon0(
        lambda epsilon0: LocalProfile(epsilon0=epsilon0), num_users=3000, epsilon=1.0, delta=1e-6
    )
    assert plan.randomizer.epsilon0 == pytest.approx(known, rel=1e-6)
    result = sdp.run(plan, ["yes"] * 600 + ["no"] * 2400, seed=1)
    error = np.abs(result.estimates.frequency - [0.2, 0.8, 0.0])
    assert (error < 8.0 * np.maximum(result.estimates.standard_error, 0.01)).all()
    assert plan.expected_standard_error < 0.01
    assert result.randomizer.name == "own"


def test_a_class_is_for_frequencies():
    with pytest.raises(ParameterError, match="did you mean"):
        sdp.plan(KINDS["mean"].question, num_users=1000, epsilon=1.0, delta=1e-6, randomizer="own")


def test_a_guarantee_is_never_above_its_target(monkeypatch):
    from shuffledp.collection import choices as choosing

    plan = sdp.plan(
        sdp.Categories(DOMAIN), num_users=1000, epsilon=1.0, delta=1e-6, randomizer="k-rr"
    )
    inverted = replace(plan.guarantee.bound, upper=1.0 + 1e-9)
    above = replace(plan.guarantee, epsilon=inverted)
    monkeypatch.setattr(choosing, "guarantee_for", lambda *_, **__: above)
    target = choosing.Target(1000, 1.0, 1e-6)
    capped = choosing.guarantee_within(plan.randomizer, target)
    assert capped.epsilon_upper == 1.0
    assert capped.lower <= 1.0
    # One that does not hold at the target is not hidden.
    looser = sdp.randomizers.KRandomizedResponse(domain_size=3, epsilon0=8.0)
    assert choosing.guarantee_within(looser, target) is above
    unknown = replace(above, epsilon=replace(inverted, lower=None))
    monkeypatch.setattr(choosing, "guarantee_for", lambda *_, **__: unknown)
    assert choosing.guarantee_within(plan.randomizer, target).lower is None


def test_bad_names_of_vectors():
    with pytest.raises(ParameterError, match="names = 'age' is a single string"):
        sdp.plan(sdp.VectorMean("age"), num_users=1000, epsilon=1.0, delta=1e-6)
    with pytest.raises(DomainError):
        sdp.run(
            sdp.plan(sdp.VectorMean(["a", "b"]), num_users=1000, epsilon=1.0, delta=1e-6),
            sdp.Mean(low=0, high=1).column([0.5, 0.5]),
        )


# ---------------- repeated plans
YES_OR_NO = ["yes", "no"]


@pytest.fixture(scope="module")
def plan():
    return make_plan(
        Categories(YES_OR_NO), num_users=2000, epsilon=1.0, delta=1e-6, randomizer="k-rr", rounds=12
    )


def test_all_rounds_together_meet_the_target(plan):
    release = accounting.ShuffledRelease(profile=plan.randomizer.profile, num_users=2000)
    assert plan.guarantee.bound == (release * 12).epsilon(1e-6)
    assert 0.98 < plan.guarantee.epsilon_upper <= 1.0
    assert plan.guarantee.rounds == plan.rounds == 12
    assert plan.to_json_dict()["rounds"] == 12


def test_more_rounds_need_more_noise(plan):
    once = make_plan(
        Categories(YES_OR_NO), num_users=2000, epsilon=1.0, delta=1e-6, randomizer="k-rr"
    )
    assert once.rounds == 1
    assert plan.randomizer.epsilon0 < once.randomizer.epsilon0
    assert plan.expected_standard_error > once.expected_standard_error


def test_the_other_models_share_epsilon_among_rounds(plan):
    assert plan.local_model.epsilon_for_same_error == pytest.approx(12 * plan.randomizer.epsilon0)
    once = make_plan(
        Categories(YES_OR_NO), num_users=2000, epsilon=1.0, delta=1e-6, randomizer="k-rr"
    )
    assert plan.central_model.standard_error_at_same_epsilon == pytest.approx(
        12 * once.central_model.standard_error_at_same_epsilon
    )


def test_one_run_has_its_own_guarantee_and_names_that_of_all(plan):
    result = run_plan(plan, ["yes"] * 500 + ["no"] * 1500, seed=5)
    assert result.guarantee.rounds == 1
    assert result.guarantee.epsilon_upper < plan.guarantee.epsilon_upper / 2.0
    (sentence,) = [text for text in result.warnings if "12 planned rounds" in text]
    assert "above" not in sentence


def test_fewer_users_than_planned_are_told(plan):
    with pytest.warns(PlanWarning, match="12 planned rounds"):
        result = run_plan(plan, ["yes"] * 250 + ["no"] * 750, seed=5)
    (sentence,) = [text for text in result.warnings if "12 planned rounds" in text]
    assert "above the 1 planned, since 2,000 users were planned and 1,000 answered" in sentence


def test_means_are_repeated_too():
    plan = make_plan(
        Mean(0.0, 120.0), num_users=5000, epsilon=1.0, delta=1e-6, randomizer="duchi", rounds=3
    )
    assert plan.rounds == 3
    assert plan.guarantee.epsilon_upper <= 1.0


def test_too_many_rounds_for_so_few_users():
    with pytest.raises(InfeasibleTargetError, match="in 400 rounds: the noise"):
        make_plan(
            Categories(YES_OR_NO),
            num_users=20,
            epsilon=0.1,
            delta=1e-6,
            randomizer="k-rr",
            rounds=400,
        )


@pytest.mark.parametrize("rounds", [0, -1, 1.5, "3"])
def test_rounds_are_a_count(rounds):
    with pytest.raises(ParameterError, match="rounds"):
        make_plan(Categories(YES_OR_NO), num_users=20, epsilon=1.0, delta=1e-6, rounds=rounds)


# ------------------------------------------------------------------ epsilon0 instead of a target


def test_a_given_epsilon0_is_kept():
    asked = Categories(["yes", "no"])
    plan = make_plan(asked, num_users=500, epsilon0=1.5, delta=1e-6)
    assert plan.randomizer.name == "k-rr"
    assert plan.randomizer.epsilon0 == pytest.approx(1.5)
    assert plan.target_epsilon == plan.guarantee.epsilon_upper < 1.5
    assert plan.alternatives == ()
    named = make_plan(asked, num_users=500, epsilon0=1.5, delta=1e-6, randomizer="optimized-unary")
    assert named.randomizer.name == "optimized-unary"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "exactly one of them"),
        ({"epsilon": 1.0, "epsilon0": 1.0}, "exactly one of them"),
        ({"epsilon0": 1.0, "rounds": 2}, "leave rounds out"),
        ({"epsilon0": 1.0, "num_users": 10.5}, "num_users"),
    ],
)
def test_what_a_plan_is_asked_for(given, message):
    with pytest.raises(ParameterError, match=message):
        make_plan(Categories(["yes", "no"]), **{"num_users": 500, "delta": 1e-6} | given)


# ---------------- error against epsilon
def test_errors_at_other_targets_are_those_of_plans_for_them():
    asked = {"num_users": 10_000, "delta": 1e-6}
    plan = sdp.plan(sdp.Categories(["a", "b", "c"]), epsilon=1.0, **asked)
    names = (plan.randomizer.name, plan.runner_up.randomizer.name)
    points = plan.errors_by_epsilon()
    assert [epsilon for epsilon, _ in points] == [0.25, 0.5, 1.0, 2.0, 4.0]
    for errors in zip(*(errors for _, errors in points), strict=True):
        assert list(errors) == sorted(errors, reverse=True)
    for epsilon, errors in (points[0], points[-1]):
        for name, error in zip(names, errors, strict=True):
            there = sdp.plan(plan.question, epsilon=epsilon, randomizer=name, **asked)
            assert error == there.expected_standard_error
    assert points[2][1][0] == plan.expected_standard_error


@pytest.mark.slow
def test_errors_at_other_targets_keep_the_limit_on_epsilon0():
    asked = {"num_users": 10_000, "delta": 1e-6, "max_epsilon0": 1.0}
    plan = sdp.plan(sdp.Categories(["a", "b", "c"]), epsilon=1.0, **asked)
    assert plan.binding == "max_epsilon0"
    found = [errors[0] for _, errors in plan.errors_by_epsilon()]
    assert found == [plan.expected_standard_error] * 5


def test_a_plan_without_a_target_has_no_errors_at_others():
    plan = sdp.plan(sdp.Categories(["a", "b"]), num_users=100, epsilon0=1.0, delta=1e-6)
    assert plan.errors_by_epsilon() == ()


@pytest.mark.parametrize(
    "field",
    [
        {"num_users": 500},
        {"target_delta": 1e-12},
        {"randomizer": make_randomizer("k-rr", domain_size=2, epsilon0=9.0)},
        # Another law may cost more in the centre at the same epsilon0.
        {"randomizer": make_randomizer("optimized-unary", domain_size=2, epsilon0=1.0)},
        {"rounds": 10},
        {"dummies": (DummyLaw.from_text("laplace:3:60"),)},
    ],
)
def test_a_plan_with_a_field_replaced_does_not_keep_the_guarantee(field):
    planned = make_plan(Categories(["yes", "no"]), num_users=1000, epsilon=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="plan again"):
        replace(planned, **field)


@pytest.mark.parametrize(
    "question",
    [Categories(["a", "b"]), sdp.Mean(0.0, 1.0), sdp.AnswerSets(["a", "b", "c"], max_answers=2)],
)
def test_a_plan_goes_to_another_process(question):
    planned = make_plan(question, num_users=1000, epsilon=1.0, delta=1e-6)
    received = pickle.loads(pickle.dumps(planned))  # noqa: S301  # of our own
    assert received == planned
    assert received.errors_by_epsilon() == planned.errors_by_epsilon()
