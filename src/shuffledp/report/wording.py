"""Words and numbers that pages, notebooks and terminals share: names, units, rows of estimates.

What differs between kinds of questions is how their estimates are spoken of: shares of users, or
means.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from shuffledp.collection.results import Guarantee, Result
from shuffledp.core.bound import Bound
from shuffledp.core.profile import LocalProfile
from shuffledp.report.formatting import (
    best_guess,
    brief,
    decimals_for,
    display_width,
    fixed,
    given,
    odds_factor,
    percent,
    rounded,
    shown_label,
)

if TYPE_CHECKING:
    from shuffledp.collection.plan import Plan
    from shuffledp.collection.question import Question

#: Full names of the randomizers; one that is not listed goes by its registered name.
RANDOMIZER_TITLES: Mapping[str, str] = MappingProxyType(
    {
        "k-rr": "k-ary randomized response",
        "symmetric-unary": "Symmetric unary encoding (basic RAPPOR)",
        "optimized-unary": "Optimized unary encoding (OUE)",
        "optimized-local-hashing": "Optimized local hashing (OLH)",
        "hadamard-response": "Hadamard response",
        "subset-selection": "Subset selection",
        "duchi": "Duchi's one-bit mechanism",
        "piecewise": "Piecewise mechanism",
        "privunit": "PrivUnit",
        "count-mean-sketch": "Count-mean sketch (CMS)",
    }
)

_KINDS_OF_MEANS = ("mean", "vector-mean")

_SET_WORDS = {"sampled": "one answer drawn of each set", "split": "epsilon0 split over the answers"}


def randomizer_title(randomizer: Any) -> str:
    """Return the full name of a randomizer."""
    name = str(randomizer.name)
    strategy, found, base = name.partition(":")
    if found and strategy in _SET_WORDS:
        return f"{RANDOMIZER_TITLES.get(base, base)}, {_SET_WORDS[strategy]}"
    return RANDOMIZER_TITLES.get(name, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """How to speak about the estimates of one kind."""

    label: str  # heading of what is estimated
    labels: str
    estimate: str  # heading of the estimates
    plural: str  # what they are, in running text
    format: Callable[[float, int], str]  # of a value with a number of decimals
    unit: float  # what a standard error is multiplied by before its decimals are chosen
    caution: str  # why estimates may look impossible
    is_share: bool  # whether charts show percent


_FREQUENCIES = Wording(
    label="Answer",
    labels="Answers",
    estimate="Frequency",
    plural="frequencies",
    format=percent,
    unit=100.0,
    caution=(
        "Estimates are unbiased: noise can carry a rare answer below zero, and cutting that off "
        "would make the others too large."
    ),
    is_share=True,
)

_MEANS = Wording(
    label="Column",
    labels="Columns",
    estimate="Mean",
    plural="means",
    format=fixed,
    unit=1.0,
    caution=(
        "Estimates are unbiased: noise can carry a mean beyond the limits of the values, and "
        "cutting that off would make it wrong on average. For Duchi's mechanism and for vectors, "
        "whose reports do not tell noise from the spread of the values, standard errors are upper "
        "bounds."
    ),
    is_share=False,
)


def wording(question: "Question") -> Wording:
    """Return how to speak about the estimates of a question."""
    return _MEANS if question.kind in _KINDS_OF_MEANS else _FREQUENCIES


def main_estimates(result: Result) -> list[float]:
    """Return the frequencies, or the means."""
    columns = result.estimates.columns()
    values: list[float] = columns.get(
        "frequency", columns.get("mean", next(iter(columns.values())))
    ).tolist()
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRow:
    """One estimate, every number formatted; ``count`` is empty where nothing is counted."""

    value: str
    count: str
    estimate: str
    standard_error: str
    population_standard_error: str
    interval: str

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns beside the label that there are."""
        return (*self.few_numbers[:-1], self.population_standard_error, self.interval)

    @property
    def few_numbers(self) -> tuple[str, ...]:
        """The same about these users only, for narrow tables."""
        counted = (self.count,) if self.count else ()
        return (*counted, self.estimate, self.standard_error, self.interval)


def estimate_headings(result: Result) -> EstimateRow:
    """Return the headings of the columns."""
    words = wording(result.question)
    kind = "simultaneous interval" if result.estimates.is_simultaneous else "interval"
    return EstimateRow(
        value=words.label,
        count="Estimated count" if "count" in result.estimates.columns() else "",
        estimate=words.estimate,
        standard_error="Standard error",
        population_standard_error="Population standard error",
        interval=f"{given(round(100.0 * result.estimates.confidence, 6))}% {kind}",
    )


def estimate_rows(result: Result) -> list[EstimateRow]:
    """Return a row for each estimate in the order of the question's labels."""
    estimates, words = result.estimates, wording(result.question)
    errors = estimates.standard_error.tolist()
    decimals = decimals_for([words.unit * error for error in errors])
    count_decimals = decimals_for([result.num_users * error for error in errors])
    counts = estimates.columns().get("count")
    shown_counts = [""] * len(errors)
    if counts is not None:
        shown_counts = [fixed(count, count_decimals) for count in counts.tolist()]
    columns = zip(
        result.domain,
        shown_counts,
        main_estimates(result),
        errors,
        estimates.population_standard_error.tolist(),
        estimates.lower.tolist(),
        estimates.upper.tolist(),
        strict=True,
    )
    return [
        EstimateRow(
            value=shown_label(value),
            count=count,
            estimate=words.format(estimate, decimals),
            standard_error=words.format(error, decimals),
            population_standard_error=words.format(of_population, decimals),
            interval=f"{words.format(lower, decimals)} to {words.format(upper, decimals)}",
        )
        for value, count, estimate, error, of_population, lower, upper in columns
    ]


def epsilon_text(guarantee: Guarantee) -> str:
    """Return the upper bound on epsilon: as given, or rounded up."""
    return _safe(guarantee.epsilon)


def delta_text(guarantee: Guarantee) -> str:
    """Return the upper bound on delta: as given, or rounded up."""
    return _safe(guarantee.delta)


def _safe(value: Bound | float) -> str:
    """Return a bound rounded up, or a given number as it is where that is short."""
    return rounded(value.upper, up=True) if isinstance(value, Bound) else brief(value)


def local_limits(profile: LocalProfile, *, rounds: int = 1) -> tuple[str, str, str]:
    """Return the local epsilon, the factor by which odds change, and the chance of a right guess.

    For an adversary who sees who sent which reports, of all rounds together. All are rounded up;
    the guess is between two answers that seemed equally likely, as that of the central guarantee,
    and not among all of them, as that of `Result.without_shuffler`.
    """
    epsilon0, delta0 = rounds * profile.epsilon0, min(1.0, rounds * profile.delta0)
    return rounded(epsilon0, up=True), odds_factor(epsilon0), best_guess(epsilon0, delta0)


def without_shuffler_line(profile: LocalProfile, *, rounds: int = 1) -> str:
    """Return the same on one line."""
    epsilon0, odds, guess = local_limits(profile, rounds=rounds)
    name = "epsilon0" if rounds == 1 else f"epsilon of {rounds:,} rounds"
    return (
        f"{name} = {epsilon0}: odds change by up to {odds}, "
        f"a guess between two answers is right up to {guess}"
    )


PLAN_HEADINGS = ("", "epsilon0", "bytes", "standard error", "epsilon")


def plan_rows(plan: "Plan") -> list[tuple[str, ...]]:
    """Return name, epsilon0, bytes, standard error and epsilon of each randomizer and model."""
    target, own = given(plan.target_epsilon), error_text(plan, plan.expected_standard_error)
    reached = plan.guarantee.epsilon_upper
    choices: list[tuple[str, Any]] = [
        ("chosen:", plan),
        *(("or", each) for each in plan.alternatives),
    ]
    rows: list[tuple[str, ...]] = [
        (
            f"{name} {choice.randomizer.name}",
            rounded(choice.randomizer.epsilon0, up=True),
            f"{choice.randomizer.num_report_bytes:,}",
            error_text(plan, choice.expected_standard_error),
            target
            if choice is not plan or reached > 0.99 * plan.target_epsilon
            else rounded(reached, up=True),
        )
        for name, choice in choices
    ]
    for name, model in (
        ("without a shuffler", plan.local_model),
        ("with a trusted curator", plan.central_model),
    ):
        error = error_text(plan, model.standard_error_at_same_epsilon)
        rows.append((name, "", "", error, target))
        cost = rounded(model.epsilon_for_same_error, up=True)
        rows.append((f"same error {name}", "", "", own, cost))
    return rows


def error_text(plan: "Plan", error: float) -> str:
    """Return a standard error of the plan in the unit of its estimates: percent, or as it is."""
    words = wording(plan.question)
    return words.format(error, decimals_for([words.unit * plan.expected_standard_error]))


def curve_table(
    plan: "Plan", points: Sequence[tuple[float, tuple[float, ...]]]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and rows of the errors at other central targets; no rows where unknown."""
    second = plan.runner_up
    names = (plan.randomizer.name, *(() if second is None else (second.randomizer.name,)))
    rows = [
        (given(epsilon), *("no estimate" if math.isinf(e) else error_text(plan, e) for e in errors))
        for epsilon, errors in points
    ]
    return ("epsilon", *(f"error, {name}" for name in names)), rows


def expected_errors(plan: "Plan") -> list[tuple[str, str]]:
    """Return both expected errors with their names: about these users, and about a population."""
    about_users = error_text(plan, plan.expected_standard_error)
    about_population = error_text(plan, plan.expected_population_standard_error)
    return [
        ("standard error", f"{about_users} expected, {plan.question.expected_for}"),
        ("population", f"standard error {about_population} expected, with sampling"),
    ]


def guarantee_facts(guarantee: Guarantee) -> list[tuple[str, str]]:
    """Return the proved upper bound first, then how far it is from what is unavoidable."""
    bound = guarantee.bound
    name, given_name = ("epsilon", "delta")
    given_value = guarantee.delta_upper
    if isinstance(guarantee.delta, Bound):
        name, given_name = given_name, name
        given_value = guarantee.epsilon_upper
    return [
        (name, f"{rounded(bound.upper, up=True, digits=6)} (proved upper bound)"),
        ("gap", gap_text(bound, name)),
        (given_name, given(given_value)),
        *_batches(guarantee),
        ("method", bound.method),
        ("source", bound.source),
    ]


def _batches(guarantee: Guarantee) -> list[tuple[str, str]]:
    """Return how many users there are, and how many rounds, if there are several."""
    if guarantee.rounds == 1:
        return [("users", f"{guarantee.num_users:,}")]
    return [
        ("rounds", f"{guarantee.rounds:,}"),
        ("users", f"{guarantee.num_users:,} in the smallest batch"),
    ]


def gap_text(bound: Bound, name: str) -> str:
    """Return how far a bound is from what is unavoidable."""
    if bound.lower is None or bound.gap is None:
        return "not known"
    gap = gap_percent(bound.gap) if bound.gap else "none"
    lower = rounded(bound.lower, up=False, digits=6)
    return f"{gap}: no analysis can show {name} below {lower}"


def gap_percent(gap: float) -> str:
    """Return a relative gap, rounded to few digits of percent."""
    if gap == 0.0:
        return "0%"
    return "below 0.001%" if gap < 1e-5 else percent(gap, 1 if gap >= 0.01 else 3)


def same_width(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines, the first column to the left and the others to the right."""
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = [first + " " * (widths[0] - display_width(first))]
        cells += [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join(cells))
    return lines
