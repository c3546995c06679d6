"""Words about shuffles within groups.

The statements are theorems of Meehan, Roy Chowdhury, Chaudhuri and Jha (arXiv:2106.06603v2), in
corrected form. They follow from alpha alone, so that they hold for noise on places.
"""

from typing import Any

from shuffledp.groups.facts import GroupFacts, MallowsFacts
from shuffledp.report.page import paragraphs, rendered_tables
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
        known = {
            "paragraphs": paragraphs("groups.txt", facts=facts),
            "tables": rendered_tables(
                "groups-rows.txt",
                facts=facts,
                is_mallows=isinstance(facts, MallowsFacts),
                kinds=_KINDS,
            ),
        }
    return ShuffleWords(
        notice=_NOTICES[shuffler],
        done="a shuffler mixed the reports within groups",
        template="groups.html",
        section=("groups", "Shuffled within groups"),
        **known,
    )
