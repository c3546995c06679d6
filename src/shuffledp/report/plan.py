"""Figures and words about a plan, and published parameters of deployments.

A published number is not thereby safe. Units differ, so that each number states its unit.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from shuffledp.collection.plan import Plan
from shuffledp.report import dummies, wording
from shuffledp.report.drawing import Axis, Bar, Figure, bars_figure
from shuffledp.report.formatting import decimals_for, fixed, given, rounded
from shuffledp.report.page import rendered_rows

_MOST_TIMES = 20.0  # worse than the best: no bar
_SEAL_SECONDS = 1e-4  # of a report, approximately


def key_figures(plan: Plan) -> tuple[tuple[str, str, str], ...]:
    """Return the strip of figures on top: both guarantees first."""
    return (
        (
            "Central privacy loss",
            f"epsilon <= {rounded(plan.guarantee.epsilon_upper, up=True)}",
            f"proved upper bound, at delta = {given(plan.target_delta)}",
        ),
        ("Without the shuffler", *wording.local_figure(plan.randomizer.profile)),
        (
            "Standard error",
            error_text(plan, plan.expected_standard_error),
            f"expected, {plan.question.expected_for}",
        ),
        ("Users", f"{plan.num_users:,}", plan.randomizer.name),
    )


def figure_of_errors(plan: Plan) -> Figure:
    """Return a bar for each randomizer; without a finite error, or far above the least, none."""
    choices: list[Any] = [plan, *plan.alternatives]
    choices.sort(key=lambda each: each.expected_standard_error)
    most = _MOST_TIMES * choices[0].expected_standard_error
    bars = []
    for each in choices:
        error = each.expected_standard_error
        is_near = error <= most
        bars.append(
            Bar(
                label=each.randomizer.name,
                value=error if is_near else 0.0,
                text=error_text(plan, error) if is_near else "more than 20 times the least",
                colour="var(--accent)" if each is plan else "var(--accent-soft)",
                title=f"{wording.randomizer_title(each.randomizer)}\n"
                f"\u03b5\u2080 = {rounded(each.randomizer.epsilon0, up=True)}\n"
                f"{each.randomizer.num_report_bytes:,} bytes a report",
            )
        )
    return bars_figure(
        "chart-errors",
        bars,
        x=Axis(is_share=wording.wording(plan.question).is_share),
        description=(
            f"Bar chart of the expected standard error of {len(choices)} randomizers. The table "
            "below holds the same numbers."
        ),
    )


# --------------------------------------------------------------------- words
def plan_rows(plan: Plan) -> list[tuple[str, str]]:
    """Return laws, numbers and cost of a plan's dummies, and the three guarantees; or no rows."""
    if not plan.dummies:
        return []
    number = plan.expected_dummies
    each, cost = (
        given(float(f"{value:.2g}")) for value in (number / plan.num_users, number * _SEAL_SECONDS)
    )
    when = "in all" if plan.rounds == 1 else "in each round"
    text = (
        f"{fixed(number, 0)} expected {when}, {each} a user, {', '.join(map(str, plan.dummies))}; "
        f"about {cost} s of one processor to seal"
    )
    return [("dummies", text), *dummies.guarantee_rows(plan)]


def expected_errors(plan: Plan) -> list[tuple[str, str]]:
    """Return both expected errors with their names: about these users, and about a population.

    If the first is for one case, as for sets, the worst case too.
    """
    found = plan.question.prospects(plan.randomizer, plan.num_users, plan.dummies)
    others = [*wording.dishonest_facts(plan), *wording.finding_rows(found)]
    return rendered_rows(
        "plan-rows.txt",
        others=others,
        plan=plan,
        frequent=frequent_name(plan),
        error=partial(error_text, plan),
    )


def frequent_name(plan: Plan) -> str:
    """Return the heading for errors of a frequent answer; empty if none is stated."""
    if not plan.is_compared or plan.frequent_error() is None:
        return ""
    return "worst case" if plan.frequency is None else f"at {given(100.0 * plan.frequency)}%"


def plan_table(plan: Plan) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and rows of each randomizer and model: name, epsilon0, bytes, errors, target.

    If dummies are among the choices, or a frequency is given, the bytes are replaced by the errors
    of a frequent answer and of sampling, with which all others are to be compared.
    """
    target, own = given(plan.target_epsilon), error_text(plan, plan.expected_standard_error)
    reached, sampling = plan.guarantee.epsilon_upper, error_text(plan, plan.sampling_error)
    frequent, is_compared = frequent_name(plan), plan.is_compared

    def errors(error: float, at_frequency: float | None) -> list[str]:
        both = [error, at_frequency] if frequent and at_frequency is not None else [error]
        return [error_text(plan, each) for each in both] + [sampling] * is_compared

    def cost(choice: Any) -> str:
        if reached > 0.99 * plan.target_epsilon:
            return target
        return rounded(reached, up=True) if choice is plan else f"<= {target}"

    headings = ["", "epsilon0", "bytes", "standard error", "epsilon"]
    if is_compared:
        headings = ["", "epsilon0", "error", *filter(None, [frequent]), "sampling", "epsilon"]
    choices: list[Any] = [plan, *plan.alternatives]
    rows: list[tuple[str, ...]] = [
        (
            f"{'chosen:' if each is plan else 'or'} {choice_name(each)}",
            rounded(each.randomizer.epsilon0, up=True),
            *([] if is_compared else [f"{each.randomizer.num_report_bytes:,}"]),
            *errors(each.expected_standard_error, plan.frequent_error(each)),
            cost(each),
        )
        for each in choices
    ]
    blank = [""] * (1 if is_compared else 2)
    for name, short, model, at_frequency in (
        ("without a shuffler", "without one", plan.local_model, plan.local_frequent_error),
        ("with a trusted curator", "with one", plan.central_model, None),
    ):
        error = model.standard_error_at_same_epsilon
        texts = errors(error, error if at_frequency is None else at_frequency)
        same_error = rounded(model.epsilon_for_same_error, up=True)
        same = [f"same error {short if is_compared else name}", *blank, own]
        rows += [
            (name, *blank, *texts, target),
            (*same, *[""] * (len(headings) - len(same) - 1), same_error),
        ]
    return tuple(headings), rows


def choice_name(choice: Any) -> str:
    """Return the name of a plan's or an alternative's randomizer, or of its dummies."""
    if not choice.dummies:
        return str(choice.randomizer.name)
    return "users' dummies" if choice.dummies[0].sender == "users" else "shuffler's dummies"


def curve_table(
    plan: Plan, points: Sequence[tuple[float, tuple[float, ...]]]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and rows of the errors at other central targets; no rows if unknown."""
    second = plan.runner_up
    names = (choice_name(plan), *(() if second is None else (choice_name(second),)))
    rows = [
        (given(epsilon), *("no estimate" if math.isinf(e) else error_text(plan, e) for e in errors))
        for epsilon, errors in points
    ]
    return ("epsilon", *(f"error, {name}" for name in names)), rows


def error_text(plan: Plan, error: float) -> str:
    """Return a standard error of the plan in the unit of its estimates: percent, or as it is."""
    words = wording.wording(plan.question)
    return words.format(error, decimals_for([words.unit * plan.expected_standard_error]))


# --------------------------------------------------------------------- known deployments
class Precedent(NamedTuple):
    """Published parameters of one deployment; ``is_local`` if no curator or shuffler is trusted."""

    name: str
    year: int
    is_local: bool
    epsilon: float
    delta: float
    unit: str
    source: str

    @property
    def parameters(self) -> str:
        """Local or central epsilon, and delta, with their unit."""
        kind = "local" if self.is_local else "central"
        delta = f", delta {self.delta:g}".replace("e-0", "e-") if self.delta else ""
        return f"{kind} epsilon {self.epsilon:g}{delta} for each {self.unit}"

    @property
    def title(self) -> str:
        """Name and year of the deployment."""
        return f"{self.name} ({self.year})"


_WINDOWS = "Ding, Kulkarni, Yekhanin, arXiv:1712.01524, section 5"
_APPLE = "Apple, Learning with Privacy at Scale, 2017"
_EXPOSURE = "Exposure Notification Privacy-preserving Analytics, white paper, 2021"
_SCENES = "Apple, Learning Iconic Scenes with Differential Privacy, 2023"
_MOBILITY = "Aktay et al., arXiv:2004.04145"
_CENSUS = "Abowd et al., arXiv:2204.08986"
_LINKEDIN = "Rogers et al., arXiv:2002.05839"

_AGGREGATED = "report, then aggregated without names"

# Name, year, is_local, epsilon, delta, unit, source.
_ROWS = (
    ("Microsoft, Windows telemetry", 2017, True, 1.672, 0.0, "user and six hours", _WINDOWS),
    ("Apple, health data types", 2017, True, 2.0, 0.0, "report", _APPLE),
    ("Apple, popular emojis", 2017, True, 4.0, 0.0, "report", _APPLE),
    ("Apple, playback preferences of web sites", 2017, True, 8.0, 0.0, "report", _APPLE),
    ("Exposure notifications (Apple, Google)", 2021, True, 8.0, 0.0, _AGGREGATED, _EXPOSURE),
    ("Apple, iconic scenes", 2023, False, 1.0, 1.5e-7, "user, after secure aggregation", _SCENES),
    ("Google, community mobility", 2020, False, 2.64, 0.0, "user and day", _MOBILITY),
    ("US Census, redistricting, persons", 2021, False, 17.14, 1e-10, "person", _CENSUS),
    ("LinkedIn, audience engagement", 2020, False, 34.9, 7e-9, "user and month", _LINKEDIN),
)
PRECEDENTS = tuple(Precedent(*row) for row in _ROWS)


def nearest(epsilon: float, *, is_local: bool, most: int = 2) -> tuple[Precedent, ...]:
    """Return the deployments of one kind whose epsilon is nearest by ratio, smaller first."""
    # Both are > 0; the nearest by ratio has the least larger-over-smaller.
    same = (each for each in PRECEDENTS if each.is_local is is_local)
    near = sorted(same, key=lambda each: max(each.epsilon, epsilon) / min(each.epsilon, epsilon))
    return tuple(sorted(near[:most], key=lambda each: each.epsilon))
