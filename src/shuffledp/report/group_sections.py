"""Sections of the report for a shuffle within groups: what it hides, what it keeps, how it ran.

Every sentence is a theorem of Meehan, Roy Chowdhury, Chaudhuri and Jha (arXiv:2106.06603), in the
corrected form, without its symbols. They follow from alpha alone, so they hold for noise on places.
"""

import math
from collections.abc import Sequence
from html import escape

from shuffledp.collection.results import GroupFacts
from shuffledp.report.formatting import percent, rounded
from shuffledp.report.typesetting import typeset

_KINDS = {"kendall": "Kendall's", "hamming": "Hamming", "cayley": "Cayley"}


def statement_paragraphs(facts: GroupFacts) -> tuple[tuple[str, str], ...]:
    """Return the ordinal guarantee in plain words, as title and text.

    Parameters
    ----------
    facts : GroupFacts
        Of one release.
    """
    return (
        ("What the order reveals.", _odds(facts)),
        ("Whose answer is whose.", _reidentification(facts)),
        (
            "What stays visible.",
            "Statistics of a whole group are meant to be learned, and so is anything about a "
            "person that follows from them. Hidden is which members of a group gave which of its "
            "answers.",
        ),
    )


def _odds(facts: GroupFacts) -> str:
    """Say what Theorem 4.1 says."""
    factor = rounded(facts.odds_factor, up=True)
    return (
        "Take an adversary who knows every report outside a person's group, and all reports inside "
        "it, but not whose is which. The released order changes its odds between any two answers "
        f"of that person by a factor of at most {factor}, which is e^alpha for alpha = "
        f"{rounded(facts.alpha, up=True)}."
    )


def _reidentification(facts: GroupFacts) -> str:
    """Say what Theorem 4.2 says."""
    if not facts.reidentification:
        return (
            "The theorem on re-identification says nothing here: the smallest group is too small "
            "for it, which needs twice as many people as an adversary looks for, or the "
            "randomizer may exceed epsilon0 with a chance of delta0."
        )
    words = "; ".join(
        f"{each.subset_size} {'person' if each.subset_size == 1 else 'people'} in a group of "
        f"{each.group_size:,}: {percent(each.most_probable, 1)}"
        for each in facts.reidentification
    )
    return (
        "An adversary names as many rows as there are people in a household, and wins if more than "
        f"half of these rows hold the household's reports. Its chance is at most: {words}."
    )


def group_section(facts: GroupFacts) -> str:
    """Return the groups, the reference order and what stays in place, as HTML.

    Parameters
    ----------
    facts : GroupFacts
        Of one release.
    """
    return "".join(
        (
            '<div class="columns"><div><h3>Groups</h3>',
            _list([(name, escape(value)) for name, value in group_rows(facts)]),
            "</div><div><h3>Shuffle</h3>",
            _list([(name, typeset(value)) for name, value in shuffle_rows(facts)]),
            "</div></div>",
            _preservation(facts),
            _others(facts),
            _orders(facts),
        )
    )


def group_rows(facts: GroupFacts) -> list[tuple[str, str]]:
    """Return names and values that describe the groups."""
    sizes = f"{facts.smallest_group:,} to {facts.largest_group:,}, median {facts.median_group:,}"
    rows = [
        ("Who shares one", facts.description),
        ("Different groups", f"{facts.num_groups:,}"),
        ("Sizes", sizes),
    ]
    if facts.largest_width is not None:
        rows.append(("Widest", f"{facts.largest_width:,} places apart in the reference order"))
    return rows


def shuffle_rows(facts: GroupFacts) -> list[tuple[str, str]]:
    """Return names and values that describe the shuffle."""
    if facts.rank_distance is None:
        return _displacement_rows(facts)
    sensitivity = f"{facts.sensitivity:,}"
    published = facts.published_sensitivity
    if published is not None and facts.sensitivity:
        times = published / facts.sensitivity
        sensitivity += f" (the paper's formula: {published:,}, {times:.3g} times as much)"
    moved = f"{rounded(facts.mean_displacement, up=True)} places on average"
    if not facts.is_displacement_exact:
        moved += ", by simulation"
    return [
        ("Ordinal loss", f"alpha = {rounded(facts.alpha, up=True)}"),
        ("Mallows model", f"{_KINDS[facts.rank_distance]} distance, theta = {facts.theta:.4g}"),
        ("Reference order", facts.reference_order),
        ("Sensitivity", sensitivity),
        ("A report moves", moved),
    ]


def _displacement_rows(facts: GroupFacts) -> list[tuple[str, str]]:
    """Return names and values that describe noise on places."""
    scale = "none" if math.isinf(facts.theta) else "without end: a uniform shuffle"
    if 0.0 < facts.theta < math.inf:
        scale = f"discrete Laplace, b = {rounded(1.0 / facts.theta, up=False)} {facts.unit}"
    least, most_people, half = (rounded(each, up=False) for each in facts.expected_crowd)
    moved = rounded(facts.mean_displacement, up=True)
    return [
        ("Ordinal loss", f"alpha = {rounded(facts.alpha, up=True)}"),
        ("Noise on places", scale),
        ("Places", facts.reference_order),
        ("Sensitivity", f"{rounded(facts.sensitivity, up=True)} {facts.unit}"),
        ("A report moves", f"{moved} {facts.unit} on average, by simulation"),
        (
            "Others who hide it",
            f"{least} for the person whom the fewest hide, {most_people} for all but 1%, {half} "
            "for half of the people",
        ),
    ]


def _list(rows: list[tuple[str, str]]) -> str:
    """Return names and values; values are HTML."""
    inner = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in rows)
    return f'<dl class="facts">{inner}</dl>'


def _preservation(facts: GroupFacts) -> str:
    """Return the table of what stays within chosen subsets."""
    rows = [
        (
            each.name,
            f"{each.size:,}",
            f"at least {percent(each.eta, 1)}",
            f"{each.delta:.3g}",
            "exact" if each.confidence is None else f"{percent(each.confidence, 0)} confidence",
        )
        for each in facts.preservation
    ]
    return _table(
        "What stays learnable: reports that stay among the people they come from",
        ("People", "How many", "Stay among them", "But for a chance of", "How known"),
        rows,
    )


def _others(facts: GroupFacts) -> str:
    """Return the table of other groupings (Theorem 4.4)."""
    rows = [
        (
            each.description,
            f"{each.largest_group:,}",
            f"{each.sensitivity:,.6g}",
            rounded(each.alpha, up=True),
        )
        for each in facts.other_groupings
    ]
    return _table(
        "The same release, with people hidden among others",
        ("Who shares a group", "Largest group", "Sensitivity", "alpha"),
        rows,
    )


def _orders(facts: GroupFacts) -> str:
    """Return the reference orders that were tried."""
    rows = [(name, f"{sensitivity:,}") for name, sensitivity in facts.orders_tried]
    table = _table("", ("Reference order", "Sensitivity"), rows)
    if not table:
        return ""
    return f"<details><summary>Reference orders that were tried</summary>{table}</details>"


def _table(title: str, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table with a heading, or nothing where there are no rows."""
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{typeset(name)}</th>' for name in headings)
    body = "".join(
        f'<tr><th scope="row"><bdi>{escape(first)}</bdi></th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return (
        (f"<h3>{escape(title)}</h3>" if title else "")
        + '<div class="table" role="region" tabindex="0" '
        + f'aria-label="{escape(title or headings[0])}"><table><thead><tr>{head}</tr></thead>'
        + f"<tbody>{body}</tbody></table></div>"
    )
