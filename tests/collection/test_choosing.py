"""How a plan chooses, and what it is compared with: rules and closed forms."""

import math
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

import shuffledp as sdp
from collection.kinds import DOMAIN, KINDS
from shuffledp.collection.plan import Alternative, _best
from shuffledp.core.errors import DomainError, InfeasibleTargetError, ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Reports
from shuffledp.randomizers.category_randomizer import CategoryRandomizer

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
        Alternative(randomizer=Sized(name, size), expected_standard_error=error)
        for name, size, error in choices
    ]
    ranked = sorted(alternatives, key=lambda each: each.expected_standard_error)
    return _best(ranked, [name for name, _, _ in choices]).randomizer.name


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
        least = min(plan.expected_standard_error, *errors)
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
             "words": 2.0, "answer-sets": 4.0}[kind.question.kind]  # fmt: skip
    at_same = math.sqrt(2.0) * scale / 0.8 / 1000
    assert plan.central_model.standard_error_at_same_epsilon == pytest.approx(at_same)
    assert plan.central_model.epsilon_for_same_error == pytest.approx(
        0.8 * at_same / plan.expected_standard_error
    )
    assert f"scale {scale:.6g}/epsilon" in plan.central_model.mechanism


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
    epsilon = float(re.search(r"epsilon >= ([\d.]+) with", message)[1])
    sdp.plan(kind.question, num_users=5, epsilon=epsilon, delta=1e-9)


# ------------------------------------------------------------------ a class of one's own


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRandomizer(CategoryRandomizer):
    """Tells the truth in six of eight cases, else the next answer: written in a few lines."""

    name = "own"

    k: int
    epsilon0: float
    fingerprint: str = "own"

    def __post_init__(self):
        # p = 1 - (k - 1) q with q = 1/(e^epsilon0 + k - 1), rounded to multiples of 2^-32
        q = math.ceil(2**32 / (math.exp(min(self.epsilon0, 15.0)) + self.k - 1)) + 1
        object.__setattr__(self, "epsilon0", math.log((2**32 - (self.k - 1) * q) / q))
        object.__setattr__(self, "fingerprint", f"own:{self.k}:{q}")

    @property
    def _threshold(self):
        return int(self.fingerprint.rpartition(":")[2])

    @property
    def profile(self):
        return LocalProfile(epsilon0=self.epsilon0, family=RandomizerFamily.OTHER)

    @property
    def support_probabilities(self):
        q = self._threshold / 2**32
        return 1.0 - (self.k - 1) * q, q

    def randomize(self, values, entropy):
        place = entropy.generator().integers(0, 2**32, size=len(values)) // self._threshold + 1
        step = np.where(place < self.k, place, 0)
        data = ((np.asarray(values) + step) % self.k).astype(np.uint8)
        return Reports(data=data, fingerprint=self.fingerprint)

    def supports(self, reports):
        return reports.data[:, None] == np.arange(self.k)


# The frequencies of 3000 users within eight standard errors: below 4e-15 by a normal law, and by
# Bernstein's inequality below this.
FALSE_POSITIVE_RATE = 1e-9


def test_a_class_of_ones_own_is_planned_and_run():
    plan = sdp.plan(
        sdp.Categories(DOMAIN), num_users=3000, epsilon=1.0, delta=1e-6, randomizer=OwnRandomizer
    )
    assert isinstance(plan.randomizer, OwnRandomizer)
    assert plan.alternatives == ()
    assert plan.guarantee.epsilon_upper <= 1.0
    # Nothing is known of it but epsilon0, so it gets what any randomizer may have.
    known = sdp.accounting.largest_epsilon0(
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
    from shuffledp.collection import plan as choosing

    plan = sdp.plan(
        sdp.Categories(DOMAIN), num_users=1000, epsilon=1.0, delta=1e-6, randomizer="k-rr"
    )
    inverted = replace(plan.guarantee.bound, upper=1.0 + 1e-9)
    above = replace(plan.guarantee, epsilon=inverted)
    monkeypatch.setattr(choosing, "guarantee_for", lambda *_, **__: above)
    capped = choosing.guarantee_within(plan.randomizer, 1000, 1.0, 1e-6)
    assert capped.epsilon_upper == 1.0
    assert capped.lower <= 1.0
    # One that does not hold at the target is not hidden.
    looser = sdp.randomizers.KRandomizedResponse(k=3, epsilon0=8.0)
    assert choosing.guarantee_within(looser, 1000, 1.0, 1e-6) is above
    unknown = replace(above, epsilon=replace(inverted, lower=None))
    monkeypatch.setattr(choosing, "guarantee_for", lambda *_, **__: unknown)
    assert choosing.guarantee_within(plan.randomizer, 1000, 1.0, 1e-6).lower is None


def test_bad_names_of_vectors():
    with pytest.raises(ParameterError, match="names = 'age' is a single string"):
        sdp.plan(sdp.VectorMean("age"), num_users=1000, epsilon=1.0, delta=1e-6)
    with pytest.raises(DomainError):
        sdp.run(
            sdp.plan(sdp.VectorMean(["a", "b"]), num_users=1000, epsilon=1.0, delta=1e-6),
            sdp.Mean(low=0, high=1).column([0.5, 0.5]),
        )
