"""Words and tables about exchanges along a graph."""

from typing import Any

from shuffledp.network.run import ExchangeFacts, NetworkFacts
from shuffledp.report.formatting import fixed, percent, rounded, shorten
from shuffledp.report.page import Paragraph, paragraphs
from shuffledp.report.wording import ShuffleWords


def words(_: str, facts: NetworkFacts | None, *, collected_by: str) -> ShuffleWords:
    """Return the words about an exchange along a graph."""
    how = "" if collected_by == "devices" else ", as simulated on one machine,"
    known: dict[str, Any] = {}
    if facts is not None:
        network, walk = network_rows(facts), walk_rows(facts)
        is_exchange = isinstance(facts, ExchangeFacts)
        known = {
            "paragraphs": (network_paragraph(facts, collected_by=collected_by),),
            "rows": (*network, *walk),
            "values": {"network": network, "walk": walk, "is_exchange": is_exchange},
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


def network_rows(facts: NetworkFacts) -> list[tuple[str, str]]:
    """Return names and values that describe the graph."""
    dropped = facts.num_self_loops + facts.num_duplicates
    left_out = f" ({dropped:,} rows left out: edges to oneself or given twice)" if dropped else ""
    return [
        ("Graph", shorten(facts.graph, 60)),
        ("Edges", f"{facts.num_edges:,}{left_out}"),
        ("Neighbours", f"{facts.fewest_neighbours:,} to {facts.most_neighbours:,}"),
        ("Irregularity", f"Gamma = {facts.irregularity:.4f} (1 where all have equally many)"),
    ]


def walk_rows(facts: NetworkFacts) -> list[tuple[str, str]]:
    """Return names and values that describe the exchange."""
    chosen = ", chosen to come close to endless rounds" if facts.are_rounds_chosen else ""
    lazy = f", resting with a chance of {percent(facts.laziness, 1)}" if facts.laziness else ""
    passed, gap = facts.rounds * (1.0 - facts.laziness), rounded(facts.spectral_gap, up=False)
    if isinstance(facts, ExchangeFacts) and facts.num_absences:
        passed *= 1.0 - facts.num_absences / (facts.num_users * facts.rounds)
        gap += " if nobody is away"
    protocol = "all: everybody hands in all reports they hold"
    if facts.protocol != "all":
        protocol = (
            "single: everybody hands in one of the reports they hold; "
            f"{facts.num_released:,} reports, and {facts.num_dummies:,} empty answers of those who "
            "held none"
        )
    messages = (
        f"{fixed(passed, 0)} reports passed on by a user on average; at a time the best connected "
        f"holds about {fixed(facts.most_held, 1)}"
    )
    return [
        ("Rounds", f"{facts.rounds:,}{chosen}{lazy}"),
        *(_attendance_rows(facts) if isinstance(facts, ExchangeFacts) else []),
        ("Protocol", protocol),
        ("Spectral gap", gap),
        ("Separation left", rounded(facts.separation, up=True, digits=2)),
        ("Uniform shuffle", f"epsilon <= {rounded(facts.uniform_epsilon, up=True)}"),
        ("Hidden least", f"the report of user {shorten(facts.worst_user, 40)}"),
        ("Laws of holders", facts.method),
        ("Messages", messages),
    ]


def _attendance_rows(facts: ExchangeFacts) -> list[tuple[str, str]]:
    """Return names and values about participation and losses."""
    came = f"{facts.num_users:,} of {facts.num_invited:,} users registered"
    handed_in = f"{came}, and {facts.num_handed_in:,} handed in"
    if facts.num_dishonest:
        handed_in += f"; dishonest, who hide nobody: {facts.num_dishonest:,}"
    away = "nobody, in any round"
    if facts.num_absences:
        away = (
            f"users sent nothing {facts.num_absences:,} times; the reports they held stayed, which "
            "the guarantee accounts for"
        )
    traffic = "every user sent the same number of envelopes in each round"
    if facts.is_traffic_even:
        traffic += ", as many to each neighbour"
    overload = f"a chance of at most {rounded(facts.overload, up=True, digits=2)}, charged to delta"
    return [
        ("Took part", handed_in),
        ("Away", away),
        ("Traffic", traffic),
        ("Overflow", f"{overload}, that somebody held more reports than envelopes"),
    ]


def network_paragraph(facts: NetworkFacts, *, collected_by: str) -> Paragraph:
    """Return the trust assumptions, as title and text."""
    is_exchange = isinstance(facts, ExchangeFacts)
    how = {"collected_by": collected_by, "is_exchange": is_exchange}
    (found,) = paragraphs("network.txt", facts=facts, **how)
    return found
