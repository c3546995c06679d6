"""The report of a run: what its template shows, and the Python that repeats the run."""

from dataclasses import fields
from typing import Any

from shuffledp._version import __version__
from shuffledp.collection.results import GroupFacts, NetworkFacts, Result
from shuffledp.core.bound import Bound
from shuffledp.leakage.of_runs import of_run
from shuffledp.network.run import ExchangeFacts
from shuffledp.report.figures import (
    MOST_BARS,
    figure_by_honest_share,
    figure_by_num_users,
    figure_by_rounds,
    figure_of_estimates,
)
from shuffledp.report.formatting import brief, rounded
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
    estimate_headings,
    estimate_rows,
    randomizer_title,
    safe_delta,
    safe_epsilon,
    wording,
)

_MINUS = "\u2212"
_MOST_LISTED = 12  # answers spelt out in running text; all are in the table
_LONGEST_LIST = 400  # characters of code; the table of estimates lists all labels

_CAPTIONS = (
    "If more or fewer users took part, all else being equal.",
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
        title=f"{kind} estimates from {subject.num_users:,} users",
        result=subject,
        words=wording(subject.question),
        simulation_warning=SIMULATION_WARNING,
        missed="" if meets_target(subject) else _missed(subject),
        asked_privacy=_target(subject),
        key_figures=_key_figures(subject),
        labels=subject.domain[:_MOST_LISTED],
        num_more_labels=max(0, len(subject.domain) - _MOST_LISTED),
        randomizer_title=randomizer_title(subject.randomizer),
        bars=bars,
        **_estimates(subject),
        statement=privacy_statement(subject),
        **leakage_facts(of_run(subject)),
        **({} if subject.groups is None else _groups(subject.groups)),
        **({} if subject.network is None else _network(subject.network)),
        by_rounds=by_rounds,
        outlook=outlook,
        code=python_code(subject),
    )


def _target(result: Result) -> str:
    """Return what was asked for."""
    return f"epsilon <= {brief(result.target_epsilon)} at delta <= {brief(result.target_delta)}"


def _missed(result: Result) -> str:
    """Say what was asked for and not met."""
    return (
        f"Asked for was {_target(result)}; this run gives epsilon <= "
        f"{safe_epsilon(result.guarantee)} at delta <= {safe_delta(result.guarantee)}."
    )


def _key_figures(result: Result) -> list[tuple[str, str, str, bool]]:
    """Return the strip of four figures on top."""
    guarantee, epsilon0 = result.guarantee, rounded(result.randomizer.epsilon0, up=True)
    randomizer = randomizer_title(result.randomizer).partition(" (")[0]
    return [
        ("Central privacy loss", f"epsilon <= {safe_epsilon(guarantee)}", "safe to publish", False),
        ("Failure chance", f"delta <= {safe_delta(guarantee)}", "for each user", False),
        ("Users", f"{result.num_users:,}", f"{result.shuffler} shuffler", False),
        ("Randomizer", randomizer, f"epsilon0 = {epsilon0}", True),
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


# --------------------------------------------------------------------- the code that repeats it
def python_code(result: Result) -> str:
    """Return Python that computes the same guarantee and plans the same collection.

    It runs as it is, but for ``values`` and lists of labels too long to be written out: ``[...]``.
    """
    law = result.randomizer
    head = (
        f"import shuffledp as sdp  # version {__version__}",
        f"from {type(law).__module__} import {type(law).__name__}",
    )
    if result.groups is not None:
        return _joined(head, *_code_within_groups(result, result.groups))
    if result.network is not None:
        return _code_through_network(result, result.network, head)
    guarantee = result.guarantee
    given_one = (
        f"delta={guarantee.delta_upper!r}"
        if isinstance(guarantee.epsilon, Bound)
        else f"epsilon={guarantee.epsilon_upper!r}"
    )
    values = "values, seed=..." if result.is_simulation else "values"
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
            f"result = sdp.run(plan, {values})",
        ),
    )


def _joined(*parts: tuple[str, ...]) -> str:
    """Return blocks of lines with an empty line between them."""
    return "\n\n".join("\n".join(lines) for lines in parts)


def _code_within_groups(result: Result, groups: GroupFacts) -> list[tuple[str, ...]]:
    """Return code for a shuffle within groups: its guarantee depends on theta or on the crowd."""
    delta = result.guarantee.delta_upper
    if groups.rank_distance is None:
        name, module, how = "displaced_epsilon", "displaced", (
            f"    expected_crowd={groups.expected_crowd[0]!r},",
            f"    delta={delta!r},",
        )  # fmt: skip
        made = (
            f"shuffler = sdp.groups.DisplacementShuffler.for_groups(groups, {groups.alpha!r}, "
            "coordinates=points, metric=metric)"
        )
    else:
        name, module, how = "grouped_epsilon", "grouped", (
            f"    theta={groups.theta!r}, distance={groups.rank_distance!r},",
            f"    delta={delta!r},",
        )  # fmt: skip
        made = (
            f"shuffler = sdp.groups.MallowsShuffler.for_groups(groups, {groups.alpha!r}, "
            f"distance={groups.rank_distance!r})"
        )
    return [
        (f"from shuffledp.groups.privacy.{module} import {name}",),
        (
            "# The guarantee, which needs no data:",
            f"law = {result.randomizer!r}",
            f"print({name}(",
            f"    law.profile, num_users={result.num_users},",
            *how,
            "))",
        ),
        (
            "# The same shuffle of other reports, one a row:",
            "groups = sdp.groups.Groups.from_distance(points, radius)  # or from_graph, from_sets",
            made,
            "released = shuffler.shuffle(reports, sdp.Entropy.from_operating_system())",
        ),
    ]


def _code_through_network(result: Result, facts: NetworkFacts, head: tuple[str, ...]) -> str:
    """Return code for a shuffle through a network, whose guarantee depends on the graph."""
    delta = result.guarantee.delta_upper
    if isinstance(facts, ExchangeFacts):
        if facts.num_absences or facts.num_users < facts.num_invited:
            return (
                "# The guarantee depends on who took part and was away when: the relay's record\n"
                "# has that, and `shuffledp network collect` computes it."
            )
        delta -= facts.overload
    return _joined(
        (
            *head,
            "from shuffledp.network.graph_files import read_graph",
            "from shuffledp.network.mixing import NetworkMixing",
            "from shuffledp.network.shuffler import NetworkShuffler",
        ),
        (
            "# The guarantee, which needs the graph and no data:",
            f"law = {result.randomizer!r}",
            f"graph = read_graph({facts.graph!r})",
            f"mixing = NetworkMixing(graph, laziness={facts.laziness!r})",
            "print(mixing.epsilon(",
            f"    law.profile, rounds={facts.rounds}, delta={delta!r},",
            f"    protocol={facts.protocol!r},",
            "))",
        ),
        (
            "# The same exchange of other reports, one for each user of the graph:",
            "shuffler = NetworkShuffler(",
            f"    walk=mixing.walk, rounds={facts.rounds}, protocol={facts.protocol!r}",
            ")",
            "handed_in = shuffler.shuffle(reports, sdp.Entropy.from_operating_system())",
        ),
    )


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
