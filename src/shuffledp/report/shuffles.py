"""Words about a shuffle, from the module of its kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from shuffledp.collection.result import Result

# Module by the name of a shuffle: its function `words` takes that name, facts or None, and the way
# of collection. A new shuffle is a line here.
_MODULES = {
    "mallows": "shuffledp.report.groups",
    "displacement": "shuffledp.report.groups",
    "network": "shuffledp.report.network",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleWords:
    """Words about a shuffle; those about a uniform one by default."""

    #: Treatment of the randomized answers, for a notice to participants.
    notice: str = (
        "The randomized answers of all participants are mixed before anyone looks at them, and "
        "nothing is kept that tells whose is whose."
    )
    #: Clause about the treatment of the reports.
    done: str = "a shuffler removed who said what"
    #: The adversary's view, if it is not the shuffled reports.
    seen: str = ""
    #: Title of the paragraph about a failure of the shuffle, and time of the randomization.
    failure: tuple[str, str] = ("If the shuffler fails.", "before it was shuffled")
    #: Section of the report: its template with its values, its anchor and title.
    template: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    section: tuple[str, str] = ("", "")
    #: Further paragraphs of the privacy statement, as titles and texts.
    paragraphs: tuple[tuple[str, str], ...] = ()
    #: Names and values for the terminal.
    rows: tuple[tuple[str, str], ...] = ()


def shuffle_words(
    shuffler: str, facts: Any = None, *, collected_by: str = "devices"
) -> ShuffleWords:
    """Return the words about a shuffle, by its name and facts."""
    if shuffler not in _MODULES:
        return ShuffleWords()
    module: Any = import_module(_MODULES[shuffler])
    found: ShuffleWords = module.words(shuffler, facts, collected_by=collected_by)
    return found


def words_of_result(result: Result) -> ShuffleWords:
    """Return the words about the shuffle of a result."""
    return shuffle_words(result.shuffler, result.facts, collected_by=result.collected_by)
