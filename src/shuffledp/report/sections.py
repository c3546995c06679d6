"""The sections of the report, each a function from a result to HTML.

Whatever comes from outside, labels and warnings above all, passes through ``escape``; our own
sentences pass through ``typeset``, which escapes too.
"""

from html import escape

from shuffledp._version import __version__
from shuffledp.collection.results import Result
from shuffledp.leakage.of_results import of_run
from shuffledp.report.figures import MOST_BARS, Figure
from shuffledp.report.formatting import brief, given, rounded, shorten
from shuffledp.report.group_sections import group_section
from shuffledp.report.leakage_sections import leakage_section
from shuffledp.report.network_sections import network_section
from shuffledp.report.reproduction import python_code
from shuffledp.report.statement import (
    SIMULATION_WARNING,
    meets_target,
    privacy_statement,
    safe_delta,
    safe_epsilon,
)
from shuffledp.report.tables import EstimateRow, estimate_headings, estimate_rows
from shuffledp.report.typesetting import typeset
from shuffledp.report.wording import randomizer_title, wording

_MINUS = "\u2212"
_MOST_LISTED = 12  # answers spelt out in running text; all are in the table


def title(result: Result) -> str:
    """Return the title of the page; it says so if nothing in it is private."""
    kind = "Simulated" if result.is_simulation else "Private"
    return f"{kind} estimates from {result.num_users:,} users"


def lead(result: Result) -> str:
    """Say in one sentence what happened."""
    shuffled = "a shuffler removed who said what"
    if result.groups is not None:
        shuffled = "a shuffler mixed the reports within groups"
    if result.network is not None:
        shuffled = "neighbours in a network passed the reports on until nobody knew whose they were"
    return (
        f"Each of {result.num_users:,} users randomized their own value "
        f"({escape(result.question.describe())}); {shuffled}; these are the "
        f"{wording(result).plural} estimated from what remained."
    )


def banners(result: Result) -> str:
    """Return what nobody may overlook."""
    alert = '<div class="banner alert" role="alert"><p><strong>{}</strong> {}</p></div>'
    banners = []
    if result.is_simulation:
        banners.append(alert.format("Simulation.", escape(SIMULATION_WARNING)))
    if not meets_target(result):
        missed = (
            f"Asked for was epsilon <= {brief(result.target_epsilon)} at delta <= "
            f"{brief(result.target_delta)}; this run gives epsilon <= "
            f"{safe_epsilon(result.guarantee)} at delta <= {safe_delta(result.guarantee)}."
        )
        banners.append(alert.format("Target missed.", typeset(missed)))
    banners += [
        f'<div class="banner"><p><strong>Warning.</strong> {escape(warning)}</p></div>'
        for warning in result.warnings
    ]
    return "\n".join(banners)


def key_figures(result: Result) -> str:
    """Return the strip of four figures on top."""
    guarantee, epsilon0 = result.guarantee, rounded(result.randomizer.epsilon0, up=True)
    cells = (
        ("Central privacy loss", "", f"epsilon <= {safe_epsilon(guarantee)}", "safe to publish"),
        ("Failure chance", "", f"delta <= {safe_delta(guarantee)}", "for each user"),
        ("Users", "", f"{result.num_users:,}", f"{result.shuffler} shuffler"),
        ("Randomizer", " words", _full_title(result).partition(" (")[0], f"epsilon0 = {epsilon0}"),
    )
    return '<dl class="key-figures">{}</dl>'.format(
        "".join(
            f'<div><dt>{name}</dt><dd class="figure{style}">{typeset(figure)}</dd>'
            f'<dd class="detail">{typeset(detail)}</dd></div>'
            for name, style, figure, detail in cells
        )
    )


def _full_title(result: Result) -> str:
    """Return the randomizer's full name."""
    return randomizer_title(result.randomizer)


def section(name: str, heading: str, body: str) -> str:
    """Return a section with its heading."""
    return (
        f'<section id="{name}" aria-labelledby="{name}-heading">'
        f'<h2 id="{name}-heading">{heading}</h2>\n{body}\n</section>'
    )


def facts_list(rows: list[tuple[str, str]]) -> str:
    """Return names and values; values are HTML."""
    inner = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in rows)
    return f'<dl class="facts">{inner}</dl>'


def asked_and_done(result: Result) -> str:
    """Return what was asked for beside what was done."""
    estimates, randomizer = result.estimates, result.randomizer
    labels = ", ".join(
        f"<bdi>{escape(shorten(label, 40))}</bdi>" for label in result.domain[:_MOST_LISTED]
    )
    rest = len(result.domain) - _MOST_LISTED
    more = f" and {rest:,} more" if rest > 0 else ""
    asked = [
        (
            "Privacy",
            typeset(
                f"epsilon <= {brief(result.target_epsilon)} at delta <= "
                f"{brief(result.target_delta)}"
            ),
        ),
        ("Question", escape(result.question.describe())),
        (wording(result).labels, f"{labels}{more}"),
    ]
    done = [
        ("Randomizer", typeset(_full_title(result))),
        ("Local loss", typeset(f"epsilon0 = {rounded(randomizer.epsilon0, up=True)}")),
        ("Shuffler", escape(result.shuffler)),
        (
            "Randomness",
            "reproducible, from a seed: a simulation"
            if result.is_simulation
            else "cryptographic, keyed by the operating system",
        ),
        (
            "Intervals",
            f"{escape(estimates.interval.capitalize())}, "
            f"{given(round(100.0 * estimates.confidence, 6))}% "
            + ("for all of them at once" if estimates.is_simultaneous else "for each")
            + ", about these users",
        ),
        (
            "Afterwards",
            escape(", ".join(estimates.post_processing)) or "nothing: the estimates are unbiased",
        ),
    ]
    return section(
        "method",
        "What was asked, and what was done",
        f'<div class="columns"><div><h3>Asked</h3>{facts_list(asked)}</div>'
        f"<div><h3>Done</h3>{facts_list(done)}</div></div>",
    )


_ABOUT = (
    "Standard errors and intervals are about these {:,} users: how far the randomization may have "
    "moved an estimate. The population standard error adds the sampling, for users drawn at random."
)


def estimates(result: Result, figure: Figure) -> str:
    """Return the chart, one line on how to read it, and the complete table."""
    k, words = len(result.domain), wording(result)
    reading = (
        words.caution
        if not result.estimates.post_processing
        else "Post-processing was applied, so the estimates are no longer unbiased: "
        + escape(", ".join(result.estimates.post_processing))
        + "."
    )
    head = estimate_headings(result)
    caption = f"Bars are estimated {words.plural}, whiskers {head.interval}s."
    if k > MOST_BARS:
        caption += (
            f" Shown are the {MOST_BARS} largest of {k:,} estimates; being picked for their size, "
            "they tend to be a little too large."
        )
    body = "".join(_estimate_row(row, head) for row in estimate_rows(result))
    header = "".join(
        f'<th scope="col" role="columnheader">{name}</th>' for name in (head.value, *head.numbers)
    )
    style = "table estimates long" if k > MOST_BARS else "table estimates"
    table = (
        f'<div class="{style}" role="region" tabindex="0" aria-label="Table of estimates">'
        f'<table role="table"><thead role="rowgroup"><tr role="row">{header}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )
    if k > MOST_BARS:
        table = f"<details open><summary>All {k:,} estimates</summary>{table}</details>"
    return section(
        "estimates",
        "Estimates",
        f'<p class="soft">{reading} {_ABOUT.format(result.num_users)}</p>'
        f"{figure_place(figure, caption)}{table}",
    )


def _estimate_row(row: EstimateRow, head: EstimateRow) -> str:
    """Return one answer; on a phone each number shows its label."""
    cells = "".join(
        f'<td role="cell" data-label="{label}">{number.replace("-", _MINUS)}</td>'
        for label, number in zip(head.numbers, row.numbers, strict=True)
    )
    value = f'<th scope="row" role="rowheader"><bdi>{escape(row.value)}</bdi></th>'
    return f'<tr role="row">{value}{cells}</tr>\n'


def figure_place(figure: Figure, caption: str) -> str:
    """Return the place where the script draws a chart."""
    return (
        f"<figure><figcaption>{caption}</figcaption>"
        f'<div class="chart" id="{figure.name}" role="img" '
        f'aria-label="{escape(figure.description)}"></div>'
        '<noscript><p class="soft">The chart needs JavaScript; the table holds its numbers.</p>'
        "</noscript></figure>"
    )


def privacy(result: Result) -> str:
    """Return the statement in plain words, then the facts that it rests on."""
    statement = privacy_statement(result)
    words = "".join(
        f"<p><strong>{typeset(title)}</strong> {typeset(text)}</p>"
        for title, text in statement.paragraphs
    )
    facts = facts_list([(name, typeset(value)) for name, value in statement.facts])
    return section("privacy", "Privacy statement", f'<div class="statement">{words}</div>{facts}')


def groups(result: Result) -> str:
    """Return what a shuffle within groups did; nothing for other shuffles."""
    if result.groups is None:
        return ""
    return section("groups", "Shuffled within groups", group_section(result.groups))


def network(result: Result, figure: Figure | None) -> str:
    """Return what an exchange through a network did; nothing for other shuffles."""
    if result.network is None:
        return ""
    chart = ""
    if figure is not None:
        caption = "Safe epsilon if reports had been handed in after fewer rounds."
        chart = figure_place(figure, caption) + _numbers(figure)
    return section("network", "Network shuffle", network_section(result.network, chart))


def leakage(result: Result) -> str:
    """Return how often an adversary guesses right; nothing where that was not computed."""
    found = of_run(result)
    if found is None:
        return ""
    return section("leakage", "What an adversary can guess", leakage_section(found))


def outlook(figures: list[Figure]) -> str:
    """Return how epsilon would change; nothing where that was not computed."""
    if not figures:
        return ""
    captions = {
        "chart-num-users": "If more or fewer users took part, all else being equal.",
        "chart-honest-share": "If some of the users drop out, are fake, or collude with the "
        "adversary: only honest reports hide others.",
    }
    blocks = "".join(
        f"<div>{figure_place(figure, captions[figure.name])}{_numbers(figure)}</div>"
        for figure in figures
    )
    return section(
        "outlook", "How the guarantee would change", f'<div class="columns">{blocks}</div>'
    )


def _numbers(figure: Figure) -> str:
    """Return a chart's numbers as a table that can be opened."""
    head = "".join(f'<th scope="col">{typeset(name)}</th>' for name in figure.headings)
    rows = "".join(f"<tr><td>{x}</td><td>{typeset(y)}</td></tr>" for x, y in figure.rows)
    return (
        "<details><summary>The numbers</summary><table>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></details>"
    )


def assumptions(result: Result) -> str:
    """Return everything that must hold for the statement to be true."""
    items = "".join(f"<li>{typeset(text)}</li>" for text in result.guarantee.bound.assumptions)
    return section(
        "assumptions",
        "Assumptions",
        f'<p>The statement is true if all of these hold.</p><ul class="assumptions">{items}</ul>',
    )


def reproduce(result: Result) -> str:
    """Return how to run it again and what to cite."""
    law, guarantee = result.randomizer, result.guarantee
    facts = facts_list(
        [
            ("Software", f"shuffledp {__version__}"),
            ("Randomizer", f"<code>{escape(repr(law))}</code>"),
            ("Exact law", f"<code>{escape(law.fingerprint)}</code>"),
            ("Theorem to cite", typeset(guarantee.bound.source)),
        ]
    )
    return section(
        "reproduce", "Reproduce and cite", f"<pre>{escape(python_code(result))}</pre>{facts}"
    )
