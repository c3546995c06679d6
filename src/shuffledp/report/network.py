"""Words about exchanges along a graph."""

from typing import Any

from shuffledp.network.run import ExchangeFacts, NetworkFacts
from shuffledp.report.page import paragraphs, rendered_tables
from shuffledp.report.wording import ShuffleWords


def words(_: str, facts: NetworkFacts | None, *, collected_by: str) -> ShuffleWords:
    """Return the words about an exchange along a graph."""
    how = "" if collected_by == "devices" else ", as simulated on one machine,"
    known: dict[str, Any] = {}
    if facts is not None:
        passed = facts.rounds * (1.0 - facts.laziness)
        if is_exchange := isinstance(facts, ExchangeFacts):
            passed *= 1.0 - facts.num_absences / (facts.num_users * facts.rounds)
        given: dict[str, Any] = {"facts": facts, "is_exchange": is_exchange}
        known = {
            "paragraphs": paragraphs("network.txt", collected_by=collected_by, **given),
            "tables": rendered_tables("network-rows.txt", passed=passed, **given),
            "values": {"is_exchange": is_exchange},
        }
    return ShuffleWords(
        notice="The randomized answers are passed on at random from participant to participant, "
        "encrypted, before they are handed in.",
        done=f"neighbours in a network passed the reports on{how} until nobody knew whose they "
        "were",
        seen="all reports handed in, and who handed in which,",
        failure=("If reports are followed on their way.", "before it was passed on"),
        template="network.html",
        section=("network", "Network shuffle"),
        **known,
    )
