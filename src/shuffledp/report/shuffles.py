"""Words about shuffles: a row of a table each, with templates of its own.

Statements about groups are theorems of Meehan, Roy Chowdhury, Chaudhuri and Jha
(arXiv:2106.06603v2), in corrected form. They follow from alpha alone, so that they hold for noise
on places.
"""

from dataclasses import dataclass, replace
from typing import Any

from shuffledp.collection.result import Result
from shuffledp.report.page import Paragraph, Table, paragraphs, rendered_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleWords:
    """Words about a shuffle; those about a uniform one by default."""

    #: Treatment of the randomized answers, for a notice to participants.
    notice: str = (
        "The randomized answers of all participants are mixed before anyone looks at them, and "
        "no list is kept of which is whose."
    )
    #: Clause about the treatment of the reports; ``{}`` stands for its simulation.
    done: str = "a shuffler removed who said what"
    #: The adversary's view, if it is not the shuffled reports.
    seen: str = ""
    #: Title of the paragraph about a failure of the shuffle, and time of the randomization.
    failure: tuple[str, str] = ("If the shuffler fails.", "before it was shuffled")
    #: Name of the templates about facts, which is the anchor of the report's section; its title.
    section: tuple[str, str] = ("", "")
    #: Further paragraphs of the privacy statement.
    paragraphs: tuple[Paragraph, ...] = ()
    #: Tables of names and values, by their titles.
    tables: tuple[Table, ...] = ()

    @property
    def rows(self) -> list[Paragraph]:
        """Names and values for the terminal."""
        return [row for _, rows in self.tables for row in rows]


_GROUPS = ShuffleWords(
    notice="The randomized answers are mixed among participants who are alike in public "
    "respects, such as where they live.",
    done="a shuffler mixed the reports within groups",
    section=("groups", "Shuffled within groups"),
)

# By the name of a shuffle. A new shuffle is a row here, and templates.
_WORDS = {
    "mallows": _GROUPS,
    "displacement": replace(
        _GROUPS, notice="Each randomized answer is moved to a random place near the participant's."
    ),
    "network": ShuffleWords(
        notice="The randomized answers are passed on at random from participant to participant, "
        "encrypted, before they are handed in.",
        done="neighbours in a network passed the reports on{} until nobody knew whose they were",
        seen="all reports handed in, and who handed in which,",
        failure=("If reports are followed on their way.", "before it was passed on"),
        section=("network", "Network shuffle"),
    ),
}


def shuffle_words(
    shuffler: str, facts: Any = None, *, collected_by: str = "devices"
) -> ShuffleWords:
    """Return the words about a shuffle, by its name and facts."""
    words = _WORDS.get(shuffler, ShuffleWords())
    how = "" if collected_by == "devices" else ", as simulated on one machine,"
    words = replace(words, done=words.done.format(how))
    if facts is None:
        return words
    (name, _), known = words.section, {"facts": facts, "collected_by": collected_by}
    texts, tables = paragraphs(f"{name}.txt", **known), rendered_tables(f"{name}-rows.txt", **known)
    return replace(words, paragraphs=texts, tables=tables)


def words_of_result(result: Result) -> ShuffleWords:
    """Return the words about the shuffle of a result."""
    return shuffle_words(result.shuffler, result.facts, collected_by=result.collected_by)
