"""Plans: laws chosen, errors, and repeated collections beside them."""

import functools
import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.accounting import ShuffledRelease
from shuffledp.amplification.registry import account_delta
from shuffledp.core.bound import Bound
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import DomainError, InfeasibleTargetError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.monitoring import plan as planning
from shuffledp.monitoring.comparison import (
    FEW_ANSWERS,
    MonitorComparison,
    RepeatedCollection,
    RepeatedTask,
    Verdict,
    everybody_at_central,
    everybody_at_local,
    everybody_with_dummies,
    few_answers,
)
from shuffledp.monitoring.design import SIGN_LAWS, sign_law
from shuffledp.monitoring.plan import plan_monitoring
from shuffledp.monitoring.privacy.central import central_guarantee, local_guarantee
from shuffledp.monitoring.server import MonitorServer
from shuffledp.randomizers.registry import make_randomizer

ASKED = {
    "periods": 13,
    "max_changes": 3,
    "num_users": 40_000,  # a multiple of the 4 levels
    "delta": 1e-6,
    "epsilon0": 1.0,
}


@functools.cache
def planned(**changes):
    """Plan once what several tests look at."""
    return plan_monitoring(**{**ASKED, **changes})


@pytest.fixture
def plan():
    return planned()


@pytest.mark.parametrize("domain", [None, range(5)])
def test_errors_are_those_of_the_server(domain):
    plan = planned(domain=domain)
    server = MonitorServer(plan.design)
    for simultaneous in (True, False):
        asked = {"num_users": 40_000, "confidence": 0.95, "simultaneous": simultaneous}
        found = server.running_counts(13, **asked)
        errors = found.standard_errors.reshape(13, -1)
        assert np.allclose(errors, plan.standard_errors[:, None], rtol=1e-9)
        half = (found.upper - found.lower).reshape(13, -1) / 2.0
        expected = plan.half_widths(simultaneous=simultaneous)
        assert np.allclose(half, expected[:, None], rtol=1e-9)
    smoothed = server.running_counts(13, smoothed=True, num_users=40_000).standard_errors
    assert np.allclose(smoothed.reshape(13, -1), plan.smoothed_standard_errors[:, None], rtol=1e-9)


def test_errors_are_below_those_of_the_cover(plan):
    nodes = np.array([t.bit_count() for t in range(1, 14)])
    cover = np.sqrt(40_000 * 4 * nodes) / plan.design.law.gap
    assert np.all(plan.standard_errors <= cover * (1.0 + 1e-12))
    assert np.all(plan.smoothed_standard_errors <= plan.standard_errors * (1.0 + 1e-9))
    together, alone = (plan.half_widths(simultaneous=each) for each in (True, False))
    # Bernstein's inequality needs no normal law, and so cannot be below one
    assert np.all(plan.proven_errors > together)
    assert np.all(together >= alone)
    assert np.allclose(alone, 1.959964 * plan.standard_errors)


def test_guarantees_are_those_of_the_accountant(plan):
    profile = plan.design.profile
    assert plan.local == local_guarantee(profile)
    assert plan.central == central_guarantee(profile, num_users=40_000, delta=1e-6)
    assert plan.central.upper < plan.local.upper <= 1.0
    columns = planned(domain=range(5))
    assert columns.bits_per_report == 2 + 3 + 1
    profile = columns.design.profile
    assert profile.changing_share == 0.5
    assert columns.central == central_guarantee(profile, num_users=40_000, delta=1e-6)


def test_reports_and_bits(plan):
    # levels with 13, 6, 3 and 1 nodes
    assert plan.reports_per_user == 23 / 4
    assert plan.bits_per_report == 3
    assert plan.to_dict()["bits_per_user"] == 69 / 4


def test_the_law_with_the_smallest_error_is_taken(plan):
    gaps = {name: sign_law(name, max_changes=3, epsilon0=1.0).gap for name in SIGN_LAWS}
    assert plan.design.law.gap == max(gaps.values())
    asked = plan_monitoring(**ASKED, protocol="sampled-change")
    assert asked.design.protocol == "sampled-change"
    assert asked.standard_errors.max() > plan.standard_errors.max()


@pytest.mark.slow
def test_with_many_changes_only_one_law_is_left():
    many = plan_monitoring(**{**ASKED, "periods": 70, "max_changes": 63})
    assert many.design.protocol == "sampled-change"


@pytest.fixture
def plan_alone(monkeypatch, plan):
    """Plan without looking at repeated collections, which takes nearly all of the time."""
    monkeypatch.setattr(planning, "_compared", lambda *_: plan.comparison)
    return lambda **changes: plan_monitoring(**{**ASKED, **changes})


def test_a_central_target_is_met(plan_alone):
    asked = {"epsilon0": None, "epsilon": 0.05, "num_users": 10_000}
    plan = plan_alone(**asked)
    assert plan.asked_epsilon == 0.05
    assert plan.central.upper <= 0.05
    assert plan.central.upper == pytest.approx(0.05, rel=0.01)
    # a little more local loss would break the target
    more = plan_alone(num_users=10_000, epsilon0=1.01 * plan.design.epsilon0)
    assert more.central.upper > 0.05
    looser = plan_alone(**{**asked, "epsilon": 0.1})
    assert looser.standard_errors.max() < plan.standard_errors.max()


@pytest.mark.parametrize(("max_changes", "epsilon"), [(1, 0.05), (3, 0.02), (3, 0.2)])
def test_the_other_law_has_the_larger_error_at_a_central_target(plan_alone, max_changes, epsilon):
    asked = {"max_changes": max_changes, "epsilon0": None, "epsilon": epsilon}
    plan, other = (plan_alone(**asked, protocol=name) for name in (None, "sampled-change"))
    assert plan.design.law.gap >= other.design.law.gap * (1.0 - 1e-5)


def test_more_users_help_everybody(plan):
    more = plan_monitoring(**{**ASKED, "num_users": 160_000})
    assert more.central.upper < plan.central.upper
    assert np.allclose(more.standard_errors, 2.0 * plan.standard_errors)


def test_the_comparison_is_at_the_same_guarantees(plan):
    compared = plan.comparison
    assert compared.standard_error == pytest.approx(
        math.sqrt((plan.standard_errors**2).mean()), rel=1e-12
    )
    assert compared.local_epsilon == plan.design.epsilon0
    assert compared.everybody_local.local_epsilon == plan.design.epsilon0
    assert compared.everybody_central.central.upper <= plan.central.upper
    assert compared.few_answers.central.upper <= plan.central.upper
    assert compared.few_answers.local_epsilon <= plan.design.epsilon0


@pytest.mark.slow
def test_few_periods_are_repeated_and_many_are_monitored():
    few = plan_monitoring(**{**ASKED, "periods": 4, "max_changes": 4})
    assert few.comparison.verdict is Verdict.REPEAT
    many = plan_monitoring(**{**ASKED, "periods": 1024, "max_changes": 1})
    assert many.comparison.verdict is Verdict.MONITOR
    assert many.comparison.advice.startswith("Monitor: no ")


def test_one_period():
    plan = plan_monitoring(**{**ASKED, "periods": 1, "max_changes": 1})
    assert plan.comparison.verdict is Verdict.ONE_SHOT
    assert "shuffledp run" in plan.comparison.advice
    # one level, one node, no smoothing
    assert plan.reports_per_user == 1.0
    assert plan.standard_errors.max() == pytest.approx(200.0 / plan.design.law.gap)


def test_a_user_alone():
    plan = plan_monitoring(**{**ASKED, "num_users": 1})
    assert plan.central.upper <= plan.local.upper
    assert any("drowns" in caution for caution in plan.cautions)


def test_cautions(plan):
    assert plan.cautions == ()
    delta, bare = planned(epsilon0=12.0, delta=0.1).cautions
    assert "1/num_users" in delta
    assert "only the shuffler" in bare


@pytest.mark.slow
def test_where_delta_pays_for_everything():
    plan = plan_monitoring(**{**ASKED, "epsilon0": 0.1, "delta": 0.99})
    assert plan.central.upper == 0.0
    assert plan.comparison.central_epsilon > 0.0
    json.dumps(plan.to_dict(), allow_nan=False)


def test_what_programs_read(plan):
    record = plan.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["periods"] == 13
    assert record["central"]["upper"] == plan.central.upper
    errors = record["errors"]
    assert errors["worst_standard_error"] == plan.standard_errors.max()
    assert len(errors["proven_errors"]) == 13
    assert record["comparison"]["verdict"] == str(plan.comparison.verdict)


def test_arrays_are_read_only(plan):
    with pytest.raises(ValueError, match="read-only"):
        plan.standard_errors[0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        plan.smoothed_standard_errors[0] = 0.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": 1.0}, "give exactly one"),
        ({"epsilon0": None}, "give exactly one"),
        ({"epsilon0": 0.0}, "epsilon0"),
        ({"epsilon0": math.nan}, "epsilon0"),
        ({"epsilon0": math.inf}, "epsilon0"),
        ({"epsilon0": 1e-25}, "say nothing"),
        ({"epsilon0": None, "epsilon": 0.0}, "epsilon"),
        ({"periods": 0}, "periods"),
        ({"periods": 2.5}, "periods"),
        ({"periods": 2**20 + 1}, "fewer and longer"),
        ({"max_changes": 0}, "max_changes"),
        ({"max_changes": 14}, "max_changes"),
        ({"num_users": 0}, "num_users"),
        ({"delta": 0.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"confidence": 1.0}, "confidence"),
        ({"protocol": "magic"}, "protocol"),
    ],
)
def test_arguments_out_of_range(changes, words):
    with pytest.raises(ParameterError, match=words) as caught:
        plan_monitoring(**{**ASKED, **changes})
    assert "\n" not in str(caught.value)


def test_a_domain_that_cannot_be_used():
    with pytest.raises(DomainError):
        plan_monitoring(**ASKED, domain=["a", "a"])


BIT, FIVE = 2, 5  # possible answers


def task(domain_size=BIT, periods=12, num_users=10_000, delta=1e-6):
    return RepeatedTask(domain_size=domain_size, periods=periods, num_users=num_users, delta=delta)


@pytest.mark.parametrize("rounds", [12, 36])
def test_the_same_local_total(rounds):
    found = everybody_at_local(task(periods=rounds), epsilon0=3.0)
    assert found.answers_per_user == rounds
    assert found.epsilon0_per_answer == pytest.approx(3.0 / rounds)
    assert rounds * Fraction(found.epsilon0_per_answer) <= 3
    assert found.local_epsilon == 3.0
    # randomized response: sqrt(n b (1 - b)) / (2 b - 1) = sqrt(n) / (2 sinh(epsilon0 / 2))
    closed = 100.0 / (2.0 * math.sinh(0.5 * 3.0 / rounds))
    assert found.standard_error == pytest.approx(closed, rel=1e-9)
    assert found.least_standard_error == found.standard_error


def variance_of_one_user(law, categories, bit, questions, answers):
    """Exact mean and variance of one user's part of a count, by enumeration.

    ``law`` is the probability of support given the bit; the user draws ``answers`` of
    ``questions``, and the first question is looked at.
    """
    p, q = law
    centre = Fraction(1, categories)
    share = Fraction(answers, questions)
    draws = list(itertools.combinations(range(questions), answers))
    mean = square = Fraction(0)
    for drawn in draws:
        outcomes = [(Fraction(1), centre)]
        if 0 in drawn:
            chance = p if bit else q
            outcomes = [
                (weight, centre + ((support - q) / (p - q) - centre) / share)
                for weight, support in ((chance, 1), (1 - chance, 0))
            ]
        for weight, value in outcomes:
            mean += weight * value / len(draws)
            square += weight * value**2 / len(draws)
    return mean, square - mean**2


@pytest.mark.parametrize(("categories", "answers"), [(2, 1), (2, 3), (2, 4), (3, 2), (5, 1)])
def test_the_variance_is_that_of_enumeration(categories, answers):
    questions, epsilon0 = 4, 2.0
    asked = task(categories, periods=questions, num_users=700)
    each = epsilon0 / answers
    randomizer = make_randomizer("k-rr", domain_size=categories, epsilon0=each)
    p, q = (Fraction(chance) for chance in randomizer.support_probabilities)
    total = Fraction(0)
    for bit, users in ((1, Fraction(1, categories)), (0, 1 - Fraction(1, categories))):
        mean, variance = variance_of_one_user((p, q), categories, bit, questions, answers)
        assert mean == bit  # unbiased
        total += users * variance
    found = asked.error("k-rr", each, share=answers / questions)
    assert found == pytest.approx(math.sqrt(700 * total), rel=1e-9)


@pytest.mark.parametrize("question", [BIT, FIVE])
def test_few_answers_keep_both_guarantees(question):
    asked = task(question)
    found = few_answers(asked, epsilon0=4.0, epsilon=0.1)
    assert found.name == FEW_ANSWERS
    assert found.local_epsilon <= 4.0
    assert found.answers_per_user * Fraction(found.epsilon0_per_answer) <= 4
    assert found.central.upper <= 0.1
    whole = LocalProfile(epsilon0=found.local_epsilon)
    proved = account_delta(whole, num_users=10_000, epsilon=0.1, with_lower=False)
    assert proved.upper <= 1e-6
    assert found.least_standard_error <= found.standard_error
    # nothing is given away: a little more would break the target
    more = LocalProfile(epsilon0=1.01 * found.local_epsilon)
    assert account_delta(more, num_users=10_000, epsilon=0.1, with_lower=False).upper > 1e-6


def test_the_number_of_answers_is_the_best_one():
    asked = task(periods=30)
    for epsilon0 in (0.5, 6.0, 30.0):
        found = few_answers(asked, epsilon0=epsilon0, epsilon=40.0)
        errors = []
        for answers in range(1, 31):
            share = answers / 30
            noise = 1.0 / (2.0 * math.sinh(0.5 * epsilon0 / answers)) ** 2
            errors.append(math.sqrt(10_000 * (noise / share + 0.25 * (1.0 / share - 1.0))))
        assert found.local_epsilon == epsilon0
        assert found.standard_error == pytest.approx(min(errors), rel=0.01)
        assert found.standard_error >= min(errors) * (1.0 - 1e-9)
        assert found.least_standard_error == found.standard_error
        assert errors[found.answers_per_user - 1] == pytest.approx(found.standard_error)


@pytest.mark.parametrize("question", [BIT, FIVE])
def test_the_same_central_guarantee(question):
    asked = task(question)
    found = everybody_at_central(asked, epsilon=0.3)
    assert found.central.upper <= 0.3
    randomizer = make_randomizer(
        found.randomizer, domain_size=question, epsilon0=found.epsilon0_per_answer
    )
    release = ShuffledRelease(profile=randomizer.profile, num_users=10_000)
    year = (release * asked.periods).epsilon(1e-6)
    assert year.lower <= 0.3
    assert 0.97 * 0.3 <= year.upper <= 0.3 * (1.0 + 1e-9)
    assert found.local_epsilon >= asked.periods * found.epsilon0_per_answer
    # of other questions than bits only what is proved is known
    assert (found.least_standard_error is None) == (question is FIVE)


def test_less_privacy_less_noise():
    asked = task(periods=2, num_users=500)
    errors = [everybody_at_central(asked, epsilon=each).standard_error for each in (0.2, 0.3)]
    assert errors[1] < errors[0]


def test_the_error_of_bits_is_known_from_both_sides():
    found = everybody_at_central(task(num_users=10**6, periods=365), epsilon=0.01)
    assert 0.98 * found.standard_error < found.least_standard_error < found.standard_error
    # sqrt(n) / strength, and the strength of Gaussian noise: error = sqrt(d) / mu
    normal = math.sqrt(365.0) / gaussian_mu(0.01, 1e-6)
    assert found.least_standard_error <= 1.01 * normal
    assert found.standard_error >= 0.99 * normal


def gaussian_mu(epsilon, delta):
    """Return mu with Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) = delta."""
    low, high = 1e-6, 10.0
    for _ in range(200):
        mu = 0.5 * (low + high)
        first = 0.5 * math.erfc(-(0.5 * mu - epsilon / mu) / math.sqrt(2.0))
        second = 0.5 * math.erfc((0.5 * mu + epsilon / mu) / math.sqrt(2.0))
        low, high = (mu, high) if first - math.exp(epsilon) * second < delta else (low, mu)
    return low


def test_one_period_is_one_collection():
    asked = task(periods=1)
    local = everybody_at_local(asked, epsilon0=1.0)
    few = few_answers(asked, epsilon0=1.0, epsilon=1.0)
    assert local.epsilon0_per_answer == few.epsilon0_per_answer == 1.0
    assert local.standard_error == few.standard_error
    assert few.answers_per_user == 1


def test_beyond_forty_nothing_is_hidden_and_nothing_gained():
    found = everybody_at_local(task(periods=2), epsilon0=300.0)
    assert found.epsilon0_per_answer == 40.0
    assert found.local_epsilon == 300.0
    assert found.central.upper <= 80.0 * (1.0 + 1e-12)


def test_noise_without_end():
    found = everybody_at_local(task(), epsilon0=1e-18)
    assert found.standard_error == math.inf
    record = found.to_dict()
    assert record["standard_error"] is None
    assert record["least_standard_error"] is None
    json.dumps(record, allow_nan=False)


def test_what_programs_read_of_daily():
    record = few_answers(task(), epsilon0=1.0, epsilon=1.0).to_dict()
    assert list(record) == [
        "name",
        "randomizer",
        "answers_per_user",
        "epsilon0_per_answer",
        "local_epsilon",
        "central_epsilon",
        "standard_error",
        "least_standard_error",
    ]
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_errors_grow_with_the_root_of_users():
    few = few_answers(task(), epsilon0=1.0, epsilon=30.0)
    many = few_answers(replace(task(), num_users=40_000), epsilon0=1.0, epsilon=30.0)
    assert np.isclose(many.standard_error, 2.0 * few.standard_error)


def collection(error, *, least=None, local=1.0, central=0.1, answers=10):
    return RepeatedCollection(
        name="made up",
        randomizer="k-rr",
        answers_per_user=answers,
        epsilon0_per_answer=local / answers,
        local_epsilon=local,
        central=Bound(lower=None, upper=central, method="", source="", assumptions=()),
        standard_error=error,
        least_standard_error=least,
    )


COMPARED = MonitorComparison(
    periods=10,
    standard_error=100.0,
    smoothed_standard_error=70.0,
    local_epsilon=1.0,
    central_epsilon=0.1,
    everybody_local=collection(500.0, least=500.0, central=0.01),
    everybody_central=collection(300.0, least=297.0, local=9.0),
    few_answers=collection(250.0, least=240.0, answers=1),
)


def test_factors():
    assert COMPARED.best_at_both is COMPARED.few_answers
    assert COMPARED.factors["factor_at_both"] == 2.5
    assert COMPARED.factors["least_factor_at_both"] == 2.4
    assert COMPARED.factors["factor_at_local"] == 5.0
    assert COMPARED.factors["factor_at_central"] == 3.0
    assert COMPARED.factors["least_factor_at_central"] == 2.97
    unknown = replace(COMPARED, everybody_central=collection(300.0), few_answers=collection(250.0))
    assert unknown.factors["least_factor_at_central"] == 3.0
    assert unknown.factors["least_factor_at_both"] == 2.5


def test_only_what_gives_both_guarantees_is_best_at_both():
    open_local = replace(COMPARED, few_answers=collection(10.0, local=1.1))
    assert open_local.best_at_both is COMPARED.everybody_local
    open_central = replace(COMPARED, few_answers=collection(10.0, central=0.11))
    assert open_central.best_at_both is COMPARED.everybody_local
    # a repeated collection may give both without having been made for it
    good = replace(COMPARED, everybody_central=collection(200.0))
    assert good.best_at_both is good.everybody_central


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({}, Verdict.MONITOR, "Monitor: no repeated collection"),
        ({"periods": 1}, Verdict.ONE_SHOT, "use `shuffledp run`"),
        ({"few_answers": collection(99.0, least=90.0)}, Verdict.REPEAT, "Repeat a one-shot"),
        ({"everybody_local": collection(99.0, least=99.0)}, Verdict.REPEAT, "Repeat"),
        (
            {"few_answers": collection(120.0, least=95.0)},
            Verdict.ABOUT_EVEN,
            "About even: take what is easier",
        ),
        (
            {"everybody_central": collection(101.0, least=99.5, local=9.0)},
            Verdict.TRUST_DECIDES,
            "if the shuffler is trusted",
        ),
    ],
)
def test_verdicts(changes, verdict, words):
    compared = replace(COMPARED, **changes)
    assert compared.verdict is verdict
    assert words in compared.advice


def test_noise_without_end_of_advice():
    endless = collection(math.inf, least=math.inf)
    compared = replace(COMPARED, everybody_local=endless, few_answers=endless)
    record = compared.to_dict()
    assert record["factor_at_local"] is None
    json.dumps(record, allow_nan=False)


def test_what_programs_read_of_advice():
    record = COMPARED.to_dict()
    assert record["verdict"] == "monitor"
    assert record["advice"] == COMPARED.advice
    assert record["few_answers"] == COMPARED.few_answers.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record


# ------------------------------------------------------------- under a shuffler's dummies
def seen_of_memoised(history, law, flip):
    """Return the law of (ones, zeros) of each period, of one user who draws one report a value."""
    table = [each / 2**64 for each in law.table]
    size, total = len(table) + 1, 0.0
    for drawn in itertools.product((0, 1), repeat=2):  # the reports of the values 0 and 1
        chance, joint = 1.0, np.ones(1)
        for value, report in enumerate(drawn):
            chance *= flip if report != value else 1.0 - flip
        for value in history:
            period = np.zeros((size, size))
            period[drawn[value] :, 1 - drawn[value] :][: size - 1, : size - 1] = np.outer(
                table, table
            )
            joint = np.outer(joint, period).ravel()
        total = total + chance * joint
    return total


@pytest.mark.parametrize("epsilon0", [0.3, 3.0, math.inf])
def test_memoised_reports_are_hidden_as_bare_ones(epsilon0):
    law = DummyLaw.from_text("gaussian:1.2:2")
    randomizer = make_randomizer("k-rr", domain_size=2, epsilon0=epsilon0)
    seen = {
        history: seen_of_memoised(history, law, randomizer.threshold / 2**64)
        for history in itertools.product((0, 1), repeat=2)
    }
    for epsilon in (0.0, 0.7, 1.5):
        found = max(
            np.maximum(one - math.exp(epsilon) * other, 0.0).sum()
            for one, other in itertools.permutations(seen.values(), 2)
        )
        proved, fresh = (
            (ShuffledRelease(profile=each, num_users=1, dummies=law) * 2).delta(epsilon).upper
            for each in (LocalProfile(epsilon0=math.inf), randomizer.profile)
        )
        assert found <= proved * (1.0 + 1e-9)
        if epsilon0 < 1.0 and epsilon > 0.0:
            # Accounts of fresh reports would be too small: 2 epsilon0 in all. So would epsilon0
            # for each distinct value: histories that change at different times are told apart.
            assert found > 0.01 > 1.1 * fresh


def test_the_same_question_every_period_under_dummies():
    # 34 users' error for 64 periods at epsilon = 1: sqrt(64) / mu, as a normal law would have.
    task = RepeatedTask(domain_size=2, periods=64, num_users=10**6, delta=1e-6)
    found = everybody_with_dummies(task, epsilon=1.0, epsilon0=math.inf)
    variance = found.dummies.variance
    assert found.standard_error == pytest.approx(math.sqrt(variance / 2))
    assert found.standard_error == pytest.approx(33.8, abs=0.1)
    assert 0.99 < found.central.lower <= found.central.upper <= 1.0
    assert math.isinf(found.local_epsilon)
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert record["local_epsilon"] is record["epsilon0_per_answer"] is None
    assert DummyLaw.from_text(record["dummies"]) == found.dummies

    noisy = everybody_with_dummies(task, epsilon=1.0, epsilon0=6.0)
    assert noisy.dummies == found.dummies
    flip = 1 / (math.exp(6.0) + 1)
    noise = (10**6 * flip * (1 - flip) + variance / 2) / (1 - 2 * flip) ** 2
    assert noisy.standard_error == pytest.approx(math.sqrt(noise))
    assert noisy.epsilon0_per_answer == pytest.approx(6.0)
    assert math.isinf(everybody_with_dummies(task, epsilon=1.0, epsilon0=1e-20).standard_error)

    # Noise hides, too: one report of epsilon0 = 0.05 has no larger epsilon, whatever the dummies.
    once = RepeatedTask(domain_size=2, periods=1, num_users=1_000, delta=1e-6)
    central = everybody_with_dummies(once, epsilon=0.1, epsilon0=0.05).central
    assert central.lower is None
    assert central.upper <= 0.1


def test_a_plan_is_compared_with_it():
    asked = {"periods": 4, "num_users": 2_000, "max_changes": 1}
    found = planned(**asked, dummies="shuffler", max_epsilon0=20.0).comparison
    repeated = found.with_dummies
    assert repeated is found.collections[-1]
    assert repeated.central.upper <= found.central_epsilon
    assert repeated is not found.best_at_both
    plain = planned(**asked).comparison
    own = repeated.standard_error / found.standard_error
    assert found.factors["factor_at_central"] == min(own, plain.factors["factor_at_central"])
    assert found.factors["least_factor_at_central"] <= own
    assert found.to_dict()["with_dummies"]["name"] == repeated.name


def test_without_dummies_nothing_is_said_of_them(plan):
    assert plan.comparison.with_dummies is None
    assert len(plan.comparison.collections) == 3
    assert "with_dummies" not in plan.to_dict()["comparison"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"dummies": "users"}, "dummies = 'users' is not one of none, shuffler"),
        ({"dummies": "shuffler"}, "give exactly one of them with 'shuffler'"),
        ({"dummies": "shuffler", "max_epsilon0": 1.0, "no_local_noise": True}, "give exactly one"),
        ({"dummies": "shuffler", "max_epsilon0": 0.0}, "max_epsilon0 = 0.0 is not in"),
        ({"max_epsilon0": 1.0}, "neither with 'none'"),
        ({"no_local_noise": True}, "neither with 'none'"),
    ],
)
def test_options_of_dummies_that_do_not_go_together(given, words):
    with pytest.raises(ParameterError, match=words):
        plan_monitoring(**ASKED, **given)


def test_dummies_beyond_a_table_are_refused():
    task = RepeatedTask(domain_size=2, periods=4096, num_users=10**6, delta=1e-8)
    with pytest.raises(InfeasibleTargetError, match="half width"):
        everybody_with_dummies(task, epsilon=0.01, epsilon0=1.0)


@pytest.mark.slow
def test_as_many_periods_as_there_may_be():
    plan = plan_monitoring(periods=2**20, max_changes=4, num_users=10**6, epsilon0=1.0, delta=1e-8)
    assert plan.comparison.everybody_local.answers_per_user == 2**20
