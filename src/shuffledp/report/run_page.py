"""The report of a run: what its template shows."""

import math
from functools import partial
from typing import Any

from shuffledp.collection.results import GroupFacts, NetworkFacts, Result
from shuffledp.leakage.of_runs import of_run
from shuffledp.network.run import ExchangeFacts
from shuffledp.report.drawing import Axis, Bar, Figure, Line, bars_figure, isolated, lines_figure
from shuffledp.report.formatting import best_guess, brief, odds_factor
from shuffledp.report.leakage import leakage_facts
from shuffledp.report.page import page_html, render_page
from shuffledp.report.shuffles import (
    group_rows,
    network_rows,
    preservation_rows,
    shuffle_rows,
    walk_rows,
)
from shuffledp.report.statement import SIMULATION_WARNING, meets_target, privacy_statement
from shuffledp.report.wording import (
    delta_text,
    epsilon_text,
    estimate_headings,
    estimate_rows,
    local_limits,
    main_estimates,
    randomizer_title,
    wording,
)

_MINUS = "\u2212"
_MOST_LISTED = 12  # answers spelt out in running text; all are in the table
_MOST_BARS = 30  # more cannot be read; the table beside the chart is complete


@page_html.register
def _(subject: Result) -> str:
    kind = "Simulated" if subject.is_simulation else "Private"
    return render_page(
        "run.html",
        title=subject.about.title or f"{kind} estimates from {subject.num_users:,} users",
        asked_by=[
            (name.capitalize(), text)
            for name, text in subject.about.to_json_dict().items()
            if name != "title"
        ],
        result=subject,
        words=wording(subject.question),
        simulation_warning=SIMULATION_WARNING,
        missed="" if meets_target(subject) else _missed(subject),
        asked_privacy=_target(subject),
        key_figures=_key_figures(subject),
        labels=subject.domain[:_MOST_LISTED],
        between="; " if any("," in label for label in subject.domain) else ", ",
        randomness=_randomness(subject),
        num_more_labels=max(0, len(subject.domain) - _MOST_LISTED),
        randomizer_title=randomizer_title(subject.randomizer),
        bars=figure_of_estimates(subject),
        **_estimates(subject),
        statement=privacy_statement(subject),
        **leakage_facts(of_run(subject)),
        **({} if subject.groups is None else _groups(subject.groups)),
        **({} if subject.network is None else _network(subject.network)),
        by_rounds=figure_by_rounds(subject.network),
    )


def _randomness(result: Result) -> str:
    """Say where reports got their randomness from."""
    if result.is_from_reports or isinstance(result.network, ExchangeFacts):
        return "of those who sent the reports"
    if result.is_simulation:
        return "reproducible, from a seed: a simulation"
    return "cryptographic, keyed by the operating system"


def _target(result: Result) -> str:
    """Return what was asked for."""
    return f"epsilon <= {brief(result.target_epsilon)} at delta <= {brief(result.target_delta)}"


def _missed(result: Result) -> str:
    """Say what was asked for and not met."""
    return (
        f"Asked for was {_target(result)}; this run gives epsilon <= "
        f"{epsilon_text(result.guarantee)} at delta <= {delta_text(result.guarantee)}."
    )


def _key_figures(result: Result) -> list[tuple[str, str, str]]:
    """Return the strip of four figures on top: both guarantees first."""
    guarantee = result.guarantee
    epsilon0, odds, guess = local_limits(result.randomizer.profile)
    central = "proved upper bound"
    if math.isfinite(guarantee.epsilon_upper):
        chance = best_guess(guarantee.epsilon_upper, guarantee.delta_upper)
        central += (
            f": odds up to {odds_factor(guarantee.epsilon_upper)}, right guess up to {chance}"
        )
    return [
        ("Central privacy loss", f"epsilon <= {epsilon_text(guarantee)}", central),
        ("Failure chance", f"delta <= {delta_text(guarantee)}", "for each user"),
        (
            "Without the shuffler",
            f"epsilon0 = {epsilon0}",
            f"odds up to {odds}, right guess up to {guess}",
        ),
        ("Users", f"{result.num_users:,}", f"{result.shuffler} shuffler"),
    ]


def _estimates(result: Result) -> dict[str, Any]:
    """Return the complete table, and how to read the chart."""
    head, rows = estimate_headings(result), estimate_rows(result)
    are_many = len(rows) > _MOST_BARS
    plural = wording(result.question).plural
    caption = f"Bars are estimated {plural}, whiskers {head.interval}s."
    if are_many:
        caption += (
            f" Shown are the {_MOST_BARS} largest of {len(rows):,} estimates; being picked for "
            "their size, they tend to be a little too large."
        )
    return {
        "headings": (head.value, *head.numbers),
        "rows": [
            (row.value, *(number.replace("-", _MINUS) for number in row.numbers)) for row in rows
        ],
        "are_many": are_many,
        "bars_caption": caption,
    }


def _groups(facts: GroupFacts) -> dict[str, Any]:
    """Return what a shuffle within groups did."""
    return {
        "group_rows": group_rows(facts),
        "shuffle_rows": shuffle_rows(facts),
        "preservation_rows": preservation_rows(facts),
        "orders_tried": [(name, f"{number:,}") for name, number in facts.orders_tried],
    }


def _network(facts: NetworkFacts) -> dict[str, Any]:
    """Return what an exchange through a network did."""
    return {
        "is_exchange": isinstance(facts, ExchangeFacts),
        "network_rows": network_rows(facts),
        "walk_rows": walk_rows(facts),
    }


# --------------------------------------------------------------------- charts
def figure_of_estimates(result: Result) -> Figure:
    """Return bars with intervals: up to 30 in the question's order; of more, the 30 largest."""
    rows, words, values = estimate_rows(result), wording(result.question), main_estimates(result)
    lower, upper = result.estimates.lower.tolist(), result.estimates.upper.tolist()
    interval = estimate_headings(result).interval
    shown = list(range(len(rows)))
    if len(rows) > _MOST_BARS:
        shown = sorted(shown, key=lambda i: -values[i])[:_MOST_BARS]
    which = f"each of {len(rows)}" if len(shown) == len(rows) else f"the {_MOST_BARS} largest"
    return bars_figure(
        "chart-estimates",
        [
            Bar(
                label=rows[i].value,
                value=values[i],
                title=f"{isolated(rows[i].value, 60)}\n{rows[i].estimate}\n"
                f"{interval}: {rows[i].interval}",
                interval=(lower[i], upper[i]),
            )
            for i in shown
        ],
        x=Axis(is_share=words.is_share),
        description=(
            f"Bar chart of the estimated {words.plural}, {which}, with {interval}s. The table of "
            "estimates holds the same numbers."
        ),
    )


def figure_by_rounds(facts: NetworkFacts | None) -> Figure | None:
    """Return epsilon against the rounds of a network shuffle; None with fewer than two of them.

    The level is what a trusted uniform shuffler of all reports would give. Where holders hand in
    all they hold, the walk comes down to it and cannot go below; with one report each it ends near.
    """
    points = [] if facts is None else [p for p in facts.epsilon_by_rounds if math.isfinite(p[1])]
    if facts is None or len(points) < 2:
        return None
    rounds, epsilons = zip(*points, strict=True)
    accent = partial(Line, x=tuple(map(float, rounds)), colour="var(--accent)")
    lines = [accent(name="upper bound on epsilon", y=epsilons)]
    if facts.most_by_rounds:
        of_most = dict(facts.most_by_rounds)
        most = tuple(of_most.get(each) for each in rounds)
        lines.append(accent(name="for 99 % of the users", y=most, width=1.0, dash="dash"))
    level, soft = (facts.uniform_epsilon,), "var(--ink-soft)"
    lines.append(Line(name="trusted uniform shuffler", y=level, colour=soft, dash="dot", width=1.3))
    # It may fall by powers of ten: then only logarithms show how.
    is_log = max(epsilons) > 10.0 * min(epsilons) > 0.0
    return lines_figure(
        "chart-rounds",
        lines,
        x=Axis(title="rounds"),
        y=Axis(title="\u03b5", is_log=is_log, has_zero=not is_log),
        here=facts.rounds,
    )
