"""Sections of the report for a shuffle through a network: the exchange, and who learns what."""

from html import escape

from shuffledp.collection.results import NetworkFacts
from shuffledp.network.exchange_facts import ExchangeFacts
from shuffledp.report.formatting import fixed, percent, rounded, shorten
from shuffledp.report.typesetting import typeset

_USERS = (
    "Users on the way",
    "nothing about values: a report is sealed for the analyst. They do see which neighbour "
    "passed it on to them, so they must not collude with the analyst.",
)
_ANALYST = ("The analyst", "every report handed in, and who handed it in; not who it came from.")

_SIMULATED = (
    (
        "The relay",
        "who is in the network, and envelopes that it cannot open: from each user the same number "
        "in each round, all of one size.",
    ),
    _USERS,
    _ANALYST,
    (
        "Who watches the lines",
        "when envelopes pass. Without cover messages also how many reports each user holds, which "
        "the guarantee does not cover.",
    ),
)

_QUIET_RELAY = (
    "The relay",
    "who took part and who was away when, and envelopes that it cannot open: how many each user "
    "sent to which neighbours. Reports went along some of these, so it must keep its record from "
    "the analyst.",
)
_OPEN_RELAY = (
    "The relay",
    "who took part and who was away when, and envelopes that it cannot open: from each user the "
    "same number to each neighbour in each round. It may show all that to the analyst.",
)
_WATCHERS = (
    "Who watches the lines",
    "when envelopes pass: from each user the same number in each round. Where lines are not "
    "encrypted (TLS), all that the relay sees.",
)

_WHERE_IT_RAN = (
    "The exchange of this run was simulated on one machine. The documentation says under Threat "
    "model what a real one hides, and what it does not."
)
_WHAT_RAN = (
    "This exchange took place: a relay passed sealed envelopes between the users. The "
    "documentation says under Threat model what that hides, and what it does not."
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
    return [
        ("Rounds", f"{facts.rounds:,}{chosen}{lazy}"),
        *(_attendance_rows(facts) if isinstance(facts, ExchangeFacts) else []),
        ("Protocol", _protocol(facts)),
        ("Spectral gap", gap),
        ("Separation left", rounded(facts.separation, up=True, digits=2)),
        ("Uniform shuffle", f"epsilon <= {rounded(facts.uniform_epsilon, up=True)}"),
        ("Published theorem", _published(facts)),
        ("Hidden least", f"the report of user {shorten(facts.worst_user, 40)}"),
        ("Laws of holders", facts.method),
        (
            "Messages",
            f"{fixed(passed, 0)} reports passed on by a user on average; at a time the best "
            f"connected holds about {fixed(facts.most_held, 1)}",
        ),
    ]


def _attendance_rows(facts: ExchangeFacts) -> list[tuple[str, str]]:
    """Return names and values about those who took part, and what got lost."""
    away = "nobody, in any round"
    if facts.num_absences:
        away = (
            f"users sent nothing {facts.num_absences:,} times; the reports they held stayed, which "
            "the guarantee accounts for"
        )
    traffic = "every user sent the same number of envelopes in each round"
    if facts.is_traffic_even:
        traffic += ", as many to each neighbour"
    return [
        (
            "Took part",
            f"{facts.num_users:,} of {facts.num_invited:,} users registered, and "
            f"{facts.num_handed_in:,} handed in",
        ),
        ("Away", away),
        ("Traffic", traffic),
        (
            "Overflow",
            f"a chance of at most {rounded(facts.overload, up=True, digits=2)}, taken off delta, "
            "that somebody held more reports than envelopes",
        ),
    ]


def _protocol(facts: NetworkFacts) -> str:
    """Say what holders handed in."""
    if facts.protocol == "all":
        return "all: everybody hands in all reports they hold"
    return (
        f"single: everybody hands in one of the reports they hold; {facts.num_released:,} reports, "
        f"and {facts.num_dummies:,} empty answers of those who held none"
    )


def _published(facts: NetworkFacts) -> str:
    """Say what the paper's theorem gives."""
    if facts.published_epsilon is None:
        return "says no more than epsilon0"
    return f"epsilon <= {rounded(facts.published_epsilon, up=True)} (Liew et al., corrected)"


def network_section(facts: NetworkFacts, chart: str) -> str:
    """Return graph, exchange, curve and what each party learns, as HTML.

    Parameters
    ----------
    facts : NetworkFacts
        Of one exchange.
    chart : str
        Place of the curve, as HTML; empty where there is none.
    """
    learn, where = _SIMULATED, _WHERE_IT_RAN
    if isinstance(facts, ExchangeFacts):
        relay = _OPEN_RELAY if facts.is_traffic_even else _QUIET_RELAY
        learn, where = (relay, _USERS, _ANALYST, _WATCHERS), _WHAT_RAN
    parties = "".join(f"<li><strong>{who}:</strong> {typeset(what)}</li>" for who, what in learn)
    return "".join(
        (
            '<div class="columns"><div><h3>Network</h3>',
            _list(network_rows(facts)),
            "</div><div><h3>Exchange</h3>",
            _list(walk_rows(facts)),
            "</div></div>",
            chart,
            f"<h3>Who learns what</h3><ul>{parties}</ul>",
            f'<p class="soft">{where}</p>',
        )
    )


def statement_paragraph(facts: NetworkFacts) -> tuple[str, str]:
    """Return what nobody has to be trusted with, and with what they have, as title and text."""
    rounds = "1 round" if facts.rounds == 1 else f"{facts.rounds:,} rounds"
    relay = ""
    if isinstance(facts, ExchangeFacts):
        relay = (
            "The relay may show the adversary all its records, since every user sent each "
            "neighbour equally many envelopes. "
            if facts.is_traffic_even
            else "The relay is trusted to keep from the adversary who sent envelopes to whom. "
        )
    return (
        "Who has to be trusted.",
        "No shuffler. Reports were passed from neighbour to neighbour for "
        f"{rounds}; the adversary is counted on to see the graph, every report and who handed it "
        f"in, but not which way it went. {relay}A trusted shuffler would give epsilon <= "
        f"{rounded(facts.uniform_epsilon, up=True)}.",
    )


def _list(rows: list[tuple[str, str]]) -> str:
    """Return names and values."""
    inner = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{typeset(value)}</dd></div>" for name, value in rows
    )
    return f'<dl class="facts">{inner}</dl>'
