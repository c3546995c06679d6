"""Words about a shuffle, from the module of its kind."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from shuffledp.collection.result import Result

# Module and class by the name of a shuffle. A new shuffle is a line here.
_WORDS = {
    "mallows": ("groups", "MallowsWords"),
    "displacement": ("groups", "DisplacementWords"),
    "network": ("network", "NetworkWords"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleWords:
    """Words about a uniform shuffle; subclasses replace some."""

    facts: Any = None
    collected_by: str = "devices"

    #: Treatment of the randomized answers, for a notice to participants.
    notice: ClassVar[str] = (
        "The randomized answers of all participants are mixed before anyone looks at them, and "
        "nothing is kept that tells whose is whose."
    )
    #: Title of the paragraph about a failure of the shuffle, and time of the randomization.
    failure: ClassVar[tuple[str, str]] = ("If the shuffler fails.", "before it was shuffled")
    #: Section of the report: its template, its anchor and title.
    template: ClassVar[str] = ""
    section: ClassVar[tuple[str, str]] = ("", "")

    @property
    def done(self) -> str:
        """Clause about the treatment of the reports."""
        return "a shuffler removed who said what"

    def seen(self, num_users: int) -> str:
        """Return the adversary's view."""
        return f"all {num_users:,} shuffled reports"

    def paragraphs(self) -> tuple[tuple[str, str], ...]:
        """Return further paragraphs of the privacy statement, as titles and texts."""
        return ()

    def values(self) -> dict[str, Any]:
        """Return the values of the template."""
        return {}

    def rows(self) -> list[tuple[str, str]]:
        """Return names and values for the terminal."""
        return []


def shuffle_words(
    shuffler: str, facts: Any = None, *, collected_by: str = "devices"
) -> ShuffleWords:
    """Return the words about a shuffle, by its name and facts."""
    module, name = _WORDS.get(shuffler, ("shuffles", "ShuffleWords"))
    words = getattr(import_module(f"shuffledp.report.{module}"), name)
    found: ShuffleWords = words(facts=facts, collected_by=collected_by)
    return found


def words_of_result(result: Result) -> ShuffleWords:
    """Return the words about the shuffle of a result."""
    return shuffle_words(result.shuffler, result.facts, collected_by=result.collected_by)
