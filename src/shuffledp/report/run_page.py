"""The report of a run: what its template shows, and the Python that repeats the run."""

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from shuffledp._version import __version__
from shuffledp.collection.results import GroupFacts, NetworkFacts, Result
from shuffledp.core.bound import Bound
from shuffledp.leakage.of_runs import of_run
from shuffledp.network.run import ExchangeFacts
from shuffledp.report.charts import Line, lines_figure
from shuffledp.report.figures import MOST_BARS, Figure, figure_of_estimates
from shuffledp.report.formatting import best_guess, brief, odds_factor, rounded, shorten
from shuffledp.report.leakage import leakage_facts
from shuffledp.report.page import page_html, render_page
from shuffledp.report.shuffles import (
    group_rows,
    group_tables,
    network_rows,
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
    randomizer_title,
    wording,
)

_MINUS = "\u2212"
_MOST_LISTED = 12  # answers spelt out in running text; all are in the table
_MOST_SUMMARIZED, _LONGEST_SUMMARIZED = 8, 32  # estimates on the first printed page, letters
_LONGEST_LIST = 400  # characters of code; the table of estimates lists all labels

_CAPTIONS = (
    "If more or fewer users took part, all else being equal. The dotted line up is this run.",
    "If some of the users drop out, are fake, or collude with the adversary: only honest reports "
    "hide others.",
)


@page_html.register
def _(subject: Result) -> str:
    bars, by_rounds = figure_of_estimates(subject), figure_by_rounds(subject.network)
    curves = (figure_by_num_users(subject), figure_by_honest_share(subject))
    outlook = [
        (figure, caption)
        for figure, caption in zip(curves, _CAPTIONS, strict=True)
        if figure is not None
    ]
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
        bars=bars,
        **_estimates(subject),
        statement=privacy_statement(subject),
        summary=_summary(subject),
        **leakage_facts(of_run(subject)),
        **({} if subject.groups is None else _groups(subject.groups)),
        **({} if subject.network is None else _network(subject.network)),
        by_rounds=by_rounds,
        outlook=outlook,
        code=python_code(subject),
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


def _key_figures(result: Result) -> list[tuple[str, str, str, str]]:
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
        ("Central privacy loss", f"epsilon <= {epsilon_text(guarantee)}", central, ""),
        ("Failure chance", f"delta <= {delta_text(guarantee)}", "for each user", ""),
        (
            "Without the shuffler",
            f"epsilon0 = {epsilon0}",
            f"odds up to {odds}, right guess up to {guess}",
            "",
        ),
        ("Users", f"{result.num_users:,}", f"{result.shuffler} shuffler", ""),
    ]


def _estimates(result: Result) -> dict[str, Any]:
    """Return the complete table, and how to read the chart."""
    head, rows = estimate_headings(result), estimate_rows(result)
    are_many = len(rows) > MOST_BARS
    plural = wording(result.question).plural
    caption = f"Bars are estimated {plural}, whiskers {head.interval}s."
    if are_many:
        caption += (
            f" Shown are the {MOST_BARS} largest of {len(rows):,} estimates; being picked for "
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


# What the one printed page says of the guarantees; the key figures stand above it.
_SUMMARIZED = frozenset(
    {
        "What the reports reveal.",
        "The exception.",
        "If the shuffler fails.",
        "If reports are followed on their way.",
    }
)


def _summary(result: Result) -> dict[str, Any]:
    """Return what fits a printed page beside the headline and the key figures."""
    about, law = result.about.to_json_dict(), result.randomizer
    head, rows = estimate_headings(result), estimate_rows(result)
    asked = [(name.capitalize(), text) for name, text in about.items() if name != "title"]
    return {
        "facts": [
            *asked,
            ("Randomizer", f"{randomizer_title(law)}, epsilon0 = {rounded(law.epsilon0, up=True)}"),
        ],
        "headings": (head.value, *head.few_numbers),
        "rows": [
            (
                shorten(row.value, _LONGEST_SUMMARIZED),
                *(number.replace("-", _MINUS) for number in row.few_numbers),
            )
            for row in rows[:_MOST_SUMMARIZED]
        ],
        "num_more": max(0, len(rows) - _MOST_SUMMARIZED),
        "paragraphs": [
            paragraph
            for paragraph in privacy_statement(result).paragraphs
            if paragraph[0] in _SUMMARIZED
        ],
    }


def _groups(facts: GroupFacts) -> dict[str, Any]:
    """Return what a shuffle within groups did."""
    return {
        "group_rows": group_rows(facts),
        "shuffle_rows": shuffle_rows(facts),
        "group_tables": group_tables(facts),
        "orders_tried": [(name, f"{number:,}") for name, number in facts.orders_tried],
    }


def _network(facts: NetworkFacts) -> dict[str, Any]:
    """Return what an exchange through a network did."""
    return {
        "is_exchange": isinstance(facts, ExchangeFacts),
        "network_rows": network_rows(facts),
        "walk_rows": walk_rows(facts),
    }


# --------------------------------------------------------------------- how it would change
def figure_by_num_users(result: Result) -> Figure | None:
    """Return epsilon against the number of users, or None with fewer than two finite points."""
    asked = _level(f"asked: {brief(result.target_epsilon)}", result.target_epsilon)
    return _epsilon_figure(
        "chart-num-users",
        result.epsilon_by_num_users,
        [asked],
        x_title="number of users",
        x_scale="log",
        here=result.guarantee.num_users,
    )


def figure_by_honest_share(result: Result) -> Figure | None:
    """Return epsilon against the share of honest users, or None as above."""
    asked = _level(f"asked: {brief(result.target_epsilon)}", result.target_epsilon)
    return _epsilon_figure(
        "chart-honest-share",
        [(100.0 * share, epsilon) for share, epsilon in result.epsilon_by_honest_share],
        [asked],
        x_title="honest users, in %",
        here=100.0 if result.guarantee.num_users == result.num_users else None,
    )


def figure_by_rounds(facts: NetworkFacts | None) -> Figure | None:
    """Return epsilon against the rounds of a network shuffle, or None as above.

    The level is what a trusted uniform shuffler of all reports would give. Where holders hand in
    all they hold, the walk comes down to it and cannot go below; with one report each it ends near.
    """
    if facts is None:
        return None
    others = [_level("trusted uniform shuffler", facts.uniform_epsilon)]
    if facts.most_by_rounds:
        rounds, epsilons = zip(*facts.most_by_rounds, strict=True)
        most = Line(
            name="for 99 % of the users",
            x=tuple(map(float, rounds)),
            y=epsilons,
            colour="var(--accent)",
            width=1.0,
            dash="dash",
        )
        others.append(most)
    return _epsilon_figure(
        "chart-rounds", facts.epsilon_by_rounds, others, x_title="rounds", here=facts.rounds
    )


def _level(name: str, value: float) -> Line:
    """Return a dotted line across."""
    return Line(name=name, y=(value,), colour="var(--ink-soft)", dash="dot", width=1.3)


def _epsilon_figure(
    name: str, points: Sequence[tuple[float, float]], others: list[Line], **axes: Any
) -> Figure | None:
    """Return the upper bound on epsilon as a curve, with what it is compared with."""
    points = sorted((float(x), epsilon) for x, epsilon in points if math.isfinite(epsilon))
    if len(points) < 2:
        return None
    xs, epsilons = zip(*points, strict=True)
    curve = Line(name="upper bound on epsilon", x=xs, y=epsilons, colour="var(--accent)")
    # It falls as 1/sqrt(n): a straight line
    is_log = max(epsilons) > 10.0 * min(epsilons) > 0.0
    return lines_figure(
        name,
        [curve, *others],
        y_title="\u03b5",
        y_scale="log" if is_log else "linear",
        y_axis={} if is_log else {"rangemode": "tozero"},
        **axes,
    )


# --------------------------------------------------------------------- the code that repeats it
def python_code(result: Result) -> str:
    """Return Python that computes the same guarantee and plans the same collection.

    It runs as it is, but for ``values`` and lists of labels too long to be written out: ``[...]``.
    Within groups and through networks guarantees follow from more than fits here: the law alone.
    """
    law = result.randomizer
    head = (
        f"import shuffledp as sdp  # version {__version__}",
        f"from {type(law).__module__} import {type(law).__name__}",
    )
    if result.groups is not None or result.network is not None:
        return _joined(head, (f"law = {law!r}", "print(law.profile)"))
    guarantee = result.guarantee
    given_one = (
        f"delta={guarantee.delta_upper!r}"
        if isinstance(guarantee.epsilon, Bound)
        else f"epsilon={guarantee.epsilon_upper!r}"
    )
    call = f"run(plan, values{', seed=...' if result.is_simulation else ''})"
    if result.is_from_reports:
        call = "estimate(reports, plan)"
    return _joined(
        head,
        (
            "# The guarantee, which needs no data:",
            f"law = {law!r}",
            f"print(sdp.account(law.profile, num_users={guarantee.num_users}, {given_one}).bound)",
        ),
        (
            "# A collection that asks for the same:",
            f"question = sdp.{_question(result.question, law)}",
            "plan = sdp.plan(",
            f"    question, num_users={result.num_users},",
            f"    epsilon={result.target_epsilon!r}, delta={result.target_delta!r},",
            f"    randomizer={law.name!r},",
            ")",
            f"result = sdp.{call}",
        ),
    )


def _joined(*parts: tuple[str, ...]) -> str:
    """Return blocks of lines with an empty line between them."""
    return "\n\n".join("\n".join(lines) for lines in parts)


def _question(question: Any, law: Any) -> str:
    """Return what makes the question; the user's own randomizers go by the one that was chosen."""
    arguments = [
        f"{each.name}={_value(getattr(question, each.name))}"
        for each in fields(question)
        if each.repr
    ]
    if getattr(question, "own", ()):
        arguments.append(f"own=({type(law).__name__},)")
    return f"{type(question).__name__}({', '.join(arguments)})"


def _value(value: object) -> str:
    """Return a value as Python, or an ellipsis in place of a list that is too long to read."""
    text = repr(value)
    is_too_long = isinstance(value, tuple) and len(text) > _LONGEST_LIST
    return "[...]" if is_too_long else text
