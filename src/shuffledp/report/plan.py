"""Figures of a plan: the error of every randomizer, and published parameters of deployments.

A published number is not thereby safe. Units differ, so that each number states its unit.
"""

from typing import Any, NamedTuple

from shuffledp.collection.plan import Plan
from shuffledp.report import wording
from shuffledp.report.drawing import Axis, Bar, Figure, bars_figure
from shuffledp.report.formatting import given, rounded

_MOST_TIMES = 20.0  # worse than the best: no bar


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
            wording.error_text(plan, plan.expected_standard_error),
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
                text=wording.error_text(plan, error) if is_near else "more than 20 times the least",
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
