"""Monitor, or repeat a one-shot collection? The answer in words, with the numbers behind it.

Two comparisons decide, both of the root mean square standard error of a count over all periods:

- *the same local and central guarantee*: nobody learns more about a user than from monitoring,
  neither who reads the reports before the shuffler nor who reads what is published;
- *the same central guarantee only*: whoever runs the shuffler is trusted not to look.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from enum import StrEnum

from shuffledp.monitoring.planning.daily import RepeatedCollection

# Errors that are this close are taken to be the same.
_NEARLY = 0.98

# Numbers of users from here on are printed without decimals.
_MANY = 100.0


class Verdict(StrEnum):
    """What to do."""

    ONE_SHOT = "one-shot"
    MONITOR = "monitor"
    REPEAT = "repeat"
    ABOUT_EVEN = "about even"
    TRUST_DECIDES = "trust decides"


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorComparison:
    """Monitoring beside what can be done without it.

    Parameters
    ----------
    periods : int
        d, at least 1.
    standard_error : float
        Of monitoring, online least squares: root mean square over the periods, in users.
    smoothed_standard_error : float
        The same once all reports are there.
    local_epsilon, central_epsilon : float
        What monitoring guarantees; upper ends, in nats.
    everybody_local : RepeatedCollection
        Everybody answers in every period, at the same total local loss.
    everybody_central : RepeatedCollection
        Everybody answers in every period, at the same central guarantee.
    few_answers : RepeatedCollection
        Each user answers in a few periods, at the same total local loss and central guarantee.
    """

    periods: int
    standard_error: float
    smoothed_standard_error: float
    local_epsilon: float
    central_epsilon: float
    everybody_local: RepeatedCollection
    everybody_central: RepeatedCollection
    few_answers: RepeatedCollection

    @property
    def collections(self) -> tuple[RepeatedCollection, ...]:
        """All that monitoring is compared with."""
        return (self.everybody_local, self.everybody_central, self.few_answers)

    @property
    def best_at_both(self) -> RepeatedCollection:
        """The least error among those that give both guarantees."""
        choices = [
            each
            for each in self.collections
            if each.local_epsilon <= self.local_epsilon
            and each.central.upper <= self.central_epsilon
        ]
        return min(choices, key=lambda each: each.standard_error)

    @property
    def factor_at_both(self) -> float:
        """Its error over that of monitoring: above 1 monitoring is better."""
        return self.best_at_both.standard_error / self.standard_error

    @property
    def least_factor_at_both(self) -> float:
        """The same at the least error that any analysis could allow."""
        known = [
            each.standard_error if each.least_standard_error is None else each.least_standard_error
            for each in (self.everybody_local, self.few_answers)
        ]
        return min(self.best_at_both.standard_error, *known) / self.standard_error

    @property
    def factor_at_local(self) -> float:
        """Error of `everybody_local` over that of monitoring."""
        return self.everybody_local.standard_error / self.standard_error

    @property
    def factor_at_central(self) -> float:
        """Error of `everybody_central`, as far as proved, over that of monitoring."""
        return self.everybody_central.standard_error / self.standard_error

    @property
    def least_factor_at_central(self) -> float:
        """The same at the least error that any accounting could allow; what is proved if unknown.

        Monitoring is called better only where it is better than this.
        """
        least = self.everybody_central.least_standard_error
        return self.factor_at_central if least is None else least / self.standard_error

    @property
    def verdict(self) -> Verdict:
        """What to do."""
        if self.periods == 1:
            return Verdict.ONE_SHOT
        if self.factor_at_both <= 1.0:
            return Verdict.REPEAT
        if self.least_factor_at_both <= 1.0:
            return Verdict.ABOUT_EVEN
        if self.least_factor_at_central > 1.0:
            return Verdict.MONITOR
        return Verdict.TRUST_DECIDES

    def to_dict(self) -> dict[str, object]:
        """Return everything as JSON values; an infinite factor is None."""
        return {
            "verdict": str(self.verdict),
            "advice": list(advice(self)),
            "standard_error": self.standard_error,
            "smoothed_standard_error": self.smoothed_standard_error,
            "factor_at_both": _finite(self.factor_at_both),
            "least_factor_at_both": _finite(self.least_factor_at_both),
            "factor_at_local": _finite(self.factor_at_local),
            "factor_at_central": _finite(self.factor_at_central),
            "least_factor_at_central": _finite(self.least_factor_at_central),
            "everybody_local": self.everybody_local.to_dict(),
            "everybody_central": self.everybody_central.to_dict(),
            "few_answers": self.few_answers.to_dict(),
        }


def advice(compared: MonitorComparison) -> tuple[str, ...]:
    """Say what to do and why, one sentence each.

    Parameters
    ----------
    compared : MonitorComparison
        With its numbers.

    Returns
    -------
    tuple of str
        The first is the verdict.
    """
    if compared.verdict is Verdict.ONE_SHOT:
        return (
            "One period is a one-shot collection: use `shuffledp run`, whose standard error at the "
            f"same local loss is {_users(compared.everybody_local.standard_error)}, against "
            f"{_users(compared.standard_error)} here.",
        )
    return (_opening(compared), *_reasons(compared))


def _opening(compared: MonitorComparison) -> str:
    """Return the verdict as a sentence or two."""
    if compared.verdict is Verdict.REPEAT:
        return (
            "Repeat a one-shot collection instead: it gives the same local and central guarantee "
            "with a smaller error."
        )
    if compared.verdict is Verdict.MONITOR:
        return (
            "Monitor: no repeated collection has a smaller error, neither at the same local and "
            "central guarantee nor at the same central one alone."
        )
    if compared.verdict is Verdict.ABOUT_EVEN:
        return (
            "About even: take what is easier to run. Few answers each come close to monitoring at "
            "the same local and central guarantee."
        )
    return (
        "Monitor if reports have to be private by themselves. Repeat a one-shot collection if the "
        "shuffler is trusted and only what is published has to be private."
    )


def _reasons(compared: MonitorComparison) -> tuple[str, ...]:
    """Return the numbers."""
    own, later = _users(compared.standard_error), _users(compared.smoothed_standard_error)
    best, local, central = (
        compared.best_at_both,
        compared.everybody_local,
        compared.everybody_central,
    )
    trusted = ""
    if central.local_epsilon > compared.local_epsilon:
        trusted = (
            " But whoever sees the reports before the shuffler may then learn "
            f"epsilon = {_loss(central.local_epsilon)} about each user instead of "
            f"{_loss(compared.local_epsilon)}."
        )
    both = _instead(best, compared, compared.factor_at_both)
    return (
        f"Monitoring has a standard error of {own} on average over the periods, and of {later} "
        "once all reports are there.",
        f"Same local and central guarantee: {both}",
        f"Same local loss: {_instead(local, compared, compared.factor_at_local)}",
        f"Same central guarantee: {_instead(central, compared, compared.factor_at_central)}"
        f"{trusted}",
    )


def _instead(collection: RepeatedCollection, compared: MonitorComparison, factor: float) -> str:
    """Return what is done instead, and with which error, as the rest of a sentence."""
    answers, questions = collection.answers_per_user, collection.num_questions
    who = "everybody answering in every period"
    if answers != questions:
        of = "periods" if questions == compared.periods else "questions"
        who = f"each user answering in {answers:,} of {questions:,} {of}"
    return (
        f"with {who} (epsilon0 = {collection.epsilon0_per_answer:.3g} each time) it is "
        f"{_users(collection.standard_error)}{_times(factor)}.{_unproved(collection)}"
    )


def _unproved(collection: RepeatedCollection) -> str:
    """Return a warning where a better analysis might allow less noise."""
    least, proved = collection.least_standard_error, collection.standard_error
    if least is None:
        return " A better analysis might allow less noise."
    if least > _NEARLY * proved or not math.isfinite(proved):
        return ""
    return f" A better analysis might allow less noise, but not below {_users(least)}."


def _loss(epsilon: float) -> str:
    """Return a privacy loss with four digits, never rounded down."""
    upwards = Context(prec=4, rounding=ROUND_CEILING)
    return format(upwards.create_decimal_from_float(epsilon).normalize(), "f")


def _users(error: float) -> str:
    """Return a standard error as a number of users."""
    if not math.isfinite(error):
        return "infinite"
    return f"{error:,.0f} users" if error >= _MANY else f"{error:.3g} users"


def _times(factor: float) -> str:
    """Return a factor in words."""
    return f", {factor:.3g} times that" if math.isfinite(factor) else ""


def _finite(number: float) -> float | None:
    """Return a number for JSON, which has no infinity."""
    return number if math.isfinite(number) else None
