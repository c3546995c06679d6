"""Alternatives to monitoring: one-shot collections, repeated or spread over the users.

Three ways to learn d running counts without a tree, each the best one known to us: everybody
answers in every period, at the same local total (each answer gets epsilon0 / d) or at the same
central guarantee; or every user draws r of the d periods in secret, once and for all, and answers
then with epsilon0 / r each time: one report of local loss epsilon0, so that one round of n users
accounts for the whole.

Variances. Let v be the variance of one answer's unbiased estimate of the bit "the value is this
one", c any constant, and s = r / d the share of the users who answer in a period. The sum over them
of (estimate - c) / s, plus n c, is unbiased, and its variance is

    n [ v / s + (1/s - 1) (bit - c)^2 ],

(bit - c)^2 averaged over users: 1/4 for binary values with c = 1/2, and on average over k values
(1/k) (1 - 1/k) with c = 1/k. For r = d only the first term is left.

A fourth needs no secret and no crowd: everybody answers in every period, and the shuffler adds
dummies to each period's reports. A report is drawn once for each value and used again, so that the
draws, once revealed, are data like any other, and the periods compose as periods of bare reports.
The guarantee is for the whole history, however often values change. But an adversary who links the
reports of a user sees when they change, and so no local epsilon holds between histories that
change at different times.

Two comparisons decide, both of the root mean square standard error of a count over all periods: at
the same local and central guarantee, and at the same central one only, for a shuffler that is
trusted not to look at the reports before they are shuffled.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from shuffledp.accounting.calibration import (
    LARGEST_CALIBRATED,
    largest_epsilon0,
    largest_local_epsilon,
)
from shuffledp.accounting.dummies import least_level_dummies, level_guarantee
from shuffledp.amplification.registry import account_epsilon
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.bound import Bound, finite
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.core.profile import LocalProfile
from shuffledp.estimation.frequencies import expected_standard_error
from shuffledp.randomizers.registry import make_randomizer

EVERYBODY_LOCAL = "everybody, every period, same local total"
EVERYBODY_CENTRAL = "everybody, every period, same central guarantee"
WITH_DUMMIES = "everybody, every period, under a shuffler's dummies"
FEW_ANSWERS = "few answers each, in periods drawn in secret"

# For one out of several values: the randomizers with the least error at small and large epsilon0.
_CANDIDATES = ("k-rr", "subset-selection", "hadamard-response")

# Numbers of answers that are tried one by one; then each is this much larger than the last.
_TRIED_SINGLY = 16
_GROWTH = 1.1

# A loss is divided slightly too small, so that rounding cannot make the total too large.
_SLACK = 1.0 - 1e-12

# Relative factors beyond the largest loss that meets a target, at which a lower bound is tried.
_FURTHER = (1.002, 1.01, 1.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedTask:
    """Question of a repeated collection, with its users, periods and delta."""

    domain_size: int  # k >= 2: possible answers in each period; 2 for a state that is on or off
    periods: int  # d, at least 1
    num_users: int  # n, at least 1
    delta: float  # for everything published together, in (0, 1)

    @property
    def candidates(self) -> tuple[str, ...]:
        """Randomizers to choose among."""
        return ("k-rr",) if self.domain_size == 2 else _CANDIDATES

    def profile(self, name: str, epsilon0: float) -> LocalProfile:
        """Return the accountant's input for the randomizer of one answer."""
        return make_randomizer(name, domain_size=self.domain_size, epsilon0=epsilon0).profile

    def error(
        self, name: str, epsilon0: float, *, share: float = 1.0, dummy_variance: float = 0.0
    ) -> float:
        """Return the standard error of a count if a share of the users answers."""
        k, n, even = self.domain_size, self.num_users, 1.0 / self.domain_size
        p, q = make_randomizer(name, domain_size=k, epsilon0=epsilon0).support_probabilities
        if not p > q:
            return math.inf
        answered = n * expected_standard_error(
            support_probabilities=(p, q), num_users=n, frequency=even, dummy_variance=dummy_variance
        )
        left_out = n * (1.0 / share - 1.0) * even * (1.0 - even)
        return math.sqrt(answered * answered / share + left_out)

    def best(self, epsilon0: float, *, share: float = 1.0) -> tuple[float, str]:
        """Return the least error of the randomizers, and the name of the best one."""
        return min((self.error(each, epsilon0, share=share), each) for each in self.candidates)

    def best_number(self, epsilon0: float) -> tuple[float, int, str]:
        """Return the least error at a total local loss, with number of answers and randomizer."""
        choices = []
        for answers in _numbers_of_answers(self.periods):
            share = answers / self.periods
            error, name = self.best(_share_of(epsilon0, answers), share=share)
            choices.append((error, answers, name))
        return min(choices)

    def rounds_epsilon(self, name: str, epsilon0: float) -> Bound:
        """Bound the central epsilon if each user gives an answer in every period."""
        release = ShuffledRelease(profile=self.profile(name, epsilon0), num_users=self.num_users)
        return (release * self.periods).epsilon(self.delta, with_lower=self.domain_size == 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedCollection:
    """One alternative to monitoring, with its privacy and its error."""

    name: str  # Name of the collection
    randomizer: str  # Name of the randomizer of each answer
    answers_per_user: int  # Number of periods in which each user answers
    epsilon0_per_answer: float  # Local privacy loss of one answer, in nats
    local_epsilon: float  # for all answers of a user together, rounded up
    central: Bound  # Central epsilon of everything that is published, at the plan's delta
    # Error of the count of one value in one period, in users; root mean square over the values.
    # ``inf`` if answers carry no information.
    standard_error: float
    # No analysis of the same collection allows less noise; None if nothing is known.
    least_standard_error: float | None
    dummies: DummyLaw | None = None  # Added by the shuffler to each possible report every period

    @property
    def least(self) -> float:
        """Least error that any analysis could allow; the proved error if none is known."""
        known = self.least_standard_error
        return self.standard_error if known is None else known

    def to_dict(self) -> dict[str, object]:
        """Return the fields as JSON values; an infinite error is None."""
        least = self.least_standard_error if math.isfinite(self.standard_error) else None
        return {
            "name": self.name,
            "randomizer": self.randomizer,
            "answers_per_user": self.answers_per_user,
            "epsilon0_per_answer": finite(self.epsilon0_per_answer),
            "local_epsilon": finite(self.local_epsilon),
            "central_epsilon": {"lower": self.central.lower, "upper": self.central.upper},
            "standard_error": finite(self.standard_error),
            "least_standard_error": least,
            **({} if self.dummies is None else {"dummies": str(self.dummies)}),
        }


def everybody_at_local(task: RepeatedTask, *, epsilon0: float) -> RepeatedCollection:
    """Return the collection in which everybody always answers, at a total local loss.

    Each answer has epsilon0 / d: pure composition, which is exact for values that differ in every
    period.
    """
    each = _share_of(epsilon0, task.periods)
    error, name = task.best(each)
    return RepeatedCollection(
        name=EVERYBODY_LOCAL,
        randomizer=name,
        answers_per_user=task.periods,
        epsilon0_per_answer=each,
        local_epsilon=epsilon0,
        central=task.rounds_epsilon(name, each),
        standard_error=error,
        least_standard_error=error,
    )


def everybody_at_central(task: RepeatedTask, *, epsilon: float) -> RepeatedCollection:
    """Return the collection in which everybody always answers, at a central guarantee.

    Its error is proved to be enough by the accountant. For binary values the least error that any
    accountant could allow is within about 1 %.
    """
    choices, rounds = [], task.periods
    asked: dict[str, Any] = {"num_users": task.num_users, "delta": task.delta, "rounds": rounds}
    for name in task.candidates:
        make = partial(task.profile, name)
        each = largest_local_epsilon(epsilon=epsilon, profile_for=make, **asked)
        choices.append((task.error(name, each), name, each))
    error, name, each = min(choices)
    # A slightly larger loss that no analysis allows; for more values lower ends are too far below.
    further = [each * more for more in _FURTHER if task.domain_size == 2]
    refused = (loss for loss in further if (task.rounds_epsilon(name, loss).lower or 0.0) > epsilon)
    least = next(refused, None)
    return RepeatedCollection(
        name=EVERYBODY_CENTRAL,
        randomizer=name,
        answers_per_user=rounds,
        epsilon0_per_answer=each,
        local_epsilon=round_up(rounds * each, operations=2),
        central=task.rounds_epsilon(name, each).at_most(epsilon),  # proved by calibration
        standard_error=error,
        least_standard_error=None if least is None else min(task.error(name, least), error),
    )


def few_answers(task: RepeatedTask, *, epsilon0: float, epsilon: float) -> RepeatedCollection:
    """Return the collection in which each user answers in a few periods, drawn in secret.

    With the number of answers that has the least error; the central guarantee holds for any
    randomizer of the same local loss, among n users. ``least_standard_error`` is the error that
    the local loss alone would allow.
    """
    asked: dict[str, Any] = {"num_users": task.num_users, "delta": task.delta}
    allowed = largest_epsilon0(lambda loss: LocalProfile(epsilon0=loss), epsilon=epsilon, **asked)
    total = min(epsilon0, allowed)
    error, answers, name = task.best_number(total)
    least = error if total == epsilon0 else task.best_number(epsilon0)[0]
    central = account_epsilon(LocalProfile(epsilon0=total), with_lower=False, **asked)
    return RepeatedCollection(
        name=FEW_ANSWERS,
        randomizer=name,
        answers_per_user=answers,
        epsilon0_per_answer=_share_of(total, answers),
        local_epsilon=total,
        central=central.at_most(epsilon),  # proved, since total <= allowed
        standard_error=error,
        least_standard_error=min(least, error),
    )


def everybody_with_dummies(
    task: RepeatedTask, *, epsilon: float, epsilon0: float
) -> RepeatedCollection:
    """Return the collection in which everybody always answers, with the least dummies.

    By k-RR with ``epsilon0`` for each distinct value, infinite without local noise. The dummies
    suffice for reports without noise: repeated draws do not hide a value every time.
    """
    bare, asked = LocalProfile(epsilon0=math.inf), dict[str, Any](delta=task.delta)
    asked["rounds"] = task.periods
    (law,) = least_level_dummies([bare], [1.0], epsilon=epsilon, **asked)
    randomizer = make_randomizer("k-rr", domain_size=task.domain_size, epsilon0=epsilon0)
    variance = law.error_variance(task.domain_size)
    central = level_guarantee([bare], [law], **asked)
    if math.isfinite(epsilon0):  # data attain that bound where reports are the values
        central = central.without_lower()
    return RepeatedCollection(
        name=WITH_DUMMIES,
        randomizer=randomizer.name,
        answers_per_user=task.periods,
        epsilon0_per_answer=randomizer.epsilon0,
        local_epsilon=math.inf,
        central=central.bound,
        standard_error=task.error("k-rr", epsilon0, dummy_variance=variance),
        least_standard_error=None,
        dummies=law,
    )


def _numbers_of_answers(most: int) -> Iterator[int]:
    """Yield 1, 2, ... and then ever larger steps, up to ``most``."""
    number = 1
    while number < most:
        yield number
        number = max(number + 1, int(number * _GROWTH)) if number >= _TRIED_SINGLY else number + 1
    yield most


def _share_of(epsilon0: float, answers: int) -> float:
    """Return the loss of one answer of several; beyond 40 an answer is nearly exact."""
    share = epsilon0 if answers == 1 else epsilon0 / answers * _SLACK
    return min(share, LARGEST_CALIBRATED)


class Verdict(StrEnum):
    """Recommendation of a comparison."""

    ONE_SHOT = "one-shot"
    MONITOR = "monitor"
    REPEAT = "repeat"
    ABOUT_EVEN = "about even"
    TRUST_DECIDES = "trust decides"


_ADVICE = {
    Verdict.ONE_SHOT: "One period is a one-shot collection: use `shuffledp run`.",
    Verdict.MONITOR: "Monitor: no repeated collection has a smaller error, neither at the same "
    "local and central guarantee nor at the same central one alone.",
    Verdict.REPEAT: "Repeat a one-shot collection instead: it gives the same local and central "
    "guarantee with a smaller error.",
    Verdict.ABOUT_EVEN: "About even: take what is easier to run. Few answers each come close to "
    "monitoring at the same local and central guarantee.",
    Verdict.TRUST_DECIDES: "Monitor if reports have to be private by themselves. Repeat a one-shot "
    "collection if the shuffler is trusted and only what is published has to be private.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorComparison:
    """Comparison of monitoring with collections without it."""

    periods: int  # d, at least 1
    # Error of monitoring, online least squares: root mean square over the periods, in users.
    standard_error: float
    smoothed_standard_error: float  # The same once all reports are there
    local_epsilon: float  # Local guarantee of monitoring; upper end, in nats
    central_epsilon: float  # Central guarantee of monitoring; upper end, in nats
    # Everybody answers in every period, at the same total local loss.
    everybody_local: RepeatedCollection
    # Everybody answers in every period, at the same central guarantee.
    everybody_central: RepeatedCollection
    # Each user answers in a few periods, at the same total local loss and central guarantee.
    few_answers: RepeatedCollection
    # Everybody answers in every period, under a shuffler's dummies; None unless asked for.
    with_dummies: RepeatedCollection | None = None

    @property
    def collections(self) -> tuple[RepeatedCollection, ...]:
        """All collections with which monitoring is compared."""
        known = (self.everybody_local, self.everybody_central, self.few_answers)
        return known if self.with_dummies is None else (*known, self.with_dummies)

    @property
    def best_at_both(self) -> RepeatedCollection:
        """The collection of least error among those that give both guarantees."""
        local, central = self.local_epsilon, self.central_epsilon
        choices = [each for each in self.collections if each.local_epsilon <= local]
        choices = [each for each in choices if each.central.upper <= central]
        return min(choices, key=lambda each: each.standard_error)

    @property
    def factors(self) -> dict[str, float]:
        """Errors divided by monitoring's: above 1 monitoring is better.

        At both guarantees, at the same local and at the same central one. The least factors are at
        the least errors that any analysis could allow, or as proved.
        """
        both, local, central = self.best_at_both, self.everybody_local, self.everybody_central
        dummies = math.inf if self.with_dummies is None else self.with_dummies.standard_error
        errors = {
            "factor_at_both": both.standard_error,
            "least_factor_at_both": min(both.standard_error, local.least, self.few_answers.least),
            "factor_at_local": local.standard_error,
            "factor_at_central": min(central.standard_error, dummies),
            "least_factor_at_central": min(central.least, dummies),
        }
        return {name: error / self.standard_error for name, error in errors.items()}

    @property
    def verdict(self) -> Verdict:
        """Recommended way to collect."""
        factors = self.factors
        if self.periods == 1:
            return Verdict.ONE_SHOT
        if factors["factor_at_both"] <= 1.0:
            return Verdict.REPEAT
        if factors["least_factor_at_both"] <= 1.0:
            return Verdict.ABOUT_EVEN
        if factors["least_factor_at_central"] > 1.0:
            return Verdict.MONITOR
        return Verdict.TRUST_DECIDES

    @property
    def advice(self) -> str:
        """The verdict in words."""
        return _ADVICE[self.verdict]

    def to_dict(self) -> dict[str, object]:
        """Return everything as JSON values; an infinite factor is None."""
        factors = self.factors.items()
        return {
            "verdict": str(self.verdict),
            "advice": self.advice,
            "standard_error": self.standard_error,
            "smoothed_standard_error": self.smoothed_standard_error,
            **{name: finite(each) for name, each in factors},
            "everybody_local": self.everybody_local.to_dict(),
            "everybody_central": self.everybody_central.to_dict(),
            "few_answers": self.few_answers.to_dict(),
            **({} if self.with_dummies is None else {"with_dummies": self.with_dummies.to_dict()}),
        }
