"""Words and tables about shuffles within groups.

The statements are theorems of Meehan, Roy Chowdhury, Chaudhuri and Jha (arXiv:2106.06603v2), in
corrected form. They follow from alpha alone, so that they hold for noise on places.
"""

import math
from typing import Any

from shuffledp.groups.facts import DisplacementFacts, GroupFacts, MallowsFacts
from shuffledp.report.formatting import percent, rounded
from shuffledp.report.page import Paragraph, paragraphs
from shuffledp.report.wording import ShuffleWords

_NOTICES = {
    "mallows": "The randomized answers are mixed among participants who are alike in public "
    "respects, such as where they live.",
    "displacement": "Each randomized answer is moved to a random place near the participant's.",
}

_KINDS = {"kendall": "Kendall's", "hamming": "Hamming", "cayley": "Cayley"}


def words(shuffler: str, facts: GroupFacts | None, **_: Any) -> ShuffleWords:
    """Return the words about a shuffle within groups, or about noise on places."""
    known: dict[str, Any] = {}
    if facts is not None:
        groups, shuffle = group_rows(facts), shuffle_rows(facts)
        orders = facts.orders_tried if isinstance(facts, MallowsFacts) else ()
        known = {
            "paragraphs": group_paragraphs(facts),
            "rows": (*groups, *shuffle),
            "values": {
                "groups": groups,
                "shuffle": shuffle,
                "orders": [(name, f"{number:,}") for name, number in orders],
            },
        }
    return ShuffleWords(
        notice=_NOTICES[shuffler],
        done="a shuffler mixed the reports within groups",
        template="groups.html",
        section=("groups", "Shuffled within groups"),
        **known,
    )


def group_paragraphs(facts: GroupFacts) -> tuple[Paragraph, ...]:
    """Return the ordinal guarantee in plain words."""
    return paragraphs("groups.txt", facts=facts)


def group_rows(facts: GroupFacts) -> list[tuple[str, str]]:
    """Return names and values that describe the groups."""
    sizes = f"{facts.smallest_group:,} to {facts.largest_group:,}, median {facts.median_group:,}"
    rows = [
        ("Who shares one", facts.description),
        ("Different groups", f"{facts.num_groups:,}"),
        ("Sizes", sizes),
    ]
    if isinstance(facts, MallowsFacts):
        rows.append(("Widest", f"{facts.largest_width:,} places apart in the reference order"))
    if facts.preserved > 0.0:
        kept = f"at least {percent(facts.preserved, 1)} of its reports, but for a chance of 5%"
        rows.append(("Stays in largest", f"{kept}, by simulation (95% confidence)"))
    return rows


def shuffle_rows(facts: GroupFacts) -> list[tuple[str, str]]:
    """Return names and values that describe the shuffle: a Mallows model, or noise on places."""
    loss = ("Ordinal loss", f"alpha = {rounded(facts.alpha, up=True)}")
    moved = f"{rounded(facts.mean_displacement, up=True)} {facts.unit} on average, by simulation"
    if isinstance(facts, DisplacementFacts):
        scale = "none" if math.isinf(facts.theta) else "without end: a uniform shuffle"
        if 0.0 < facts.theta < math.inf:
            scale = f"discrete Laplace, b = {rounded(1.0 / facts.theta, up=False)} {facts.unit}"
        least, most_people, half = (rounded(each, up=False) for each in facts.expected_crowd)
        hidden = (
            f"{least} for the person whom the fewest hide, {most_people} for all but 1%, {half} "
            "for half of the people"
        )
        return [
            loss,
            ("Noise on places", scale),
            ("Places", facts.reference_order),
            ("Sensitivity", f"{rounded(facts.sensitivity, up=True)} {facts.unit}"),
            ("A report moves", moved),
            ("Others who hide it", hidden),
        ]
    assert isinstance(facts, MallowsFacts)  # noqa: S101  # narrows the type
    return [
        loss,
        ("Mallows model", f"{_KINDS[facts.rank_distance]} distance, theta = {facts.theta:.4g}"),
        ("Reference order", facts.reference_order),
        ("Sensitivity", f"{facts.sensitivity:,}"),
        ("A report moves", moved),
    ]
