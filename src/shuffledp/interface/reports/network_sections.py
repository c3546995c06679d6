"""Sections of the report for a shuffle through a network: the exchange, and who learns what."""

from html import escape

from shuffledp.collection.network_facts import NetworkFacts
from shuffledp.interface.reports.formatting import fixed, percent, rounded, shorten
from shuffledp.interface.reports.typesetting import typeset

_WHAT_THEY_LEARN = (
    (
        "The relay",
        "who is in the network, and envelopes that it cannot open: from each user the same number "
        "in each round, all of one size.",
    ),
    (
        "Users on the way",
        "nothing about values: a report is sealed for the analyst. They do see which neighbour "
        "passed it on to them, so they must not collude with the analyst.",
    ),
    ("The analyst", "every report handed in, and who handed it in; not who it came from."),
    (
        "Who watches the lines",
        "when envelopes pass. Without cover messages also how many reports each user holds, which "
        "the guarantee does not cover.",
    ),
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
    passed = facts.rounds * (1.0 - facts.laziness)
    return [
        ("Rounds", f"{facts.rounds:,}{chosen}{lazy}"),
        ("Protocol", _protocol(facts)),
        ("Spectral gap", rounded(facts.spectral_gap, up=False)),
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
    parties = "".join(
        f"<li><strong>{who}:</strong> {typeset(what)}</li>" for who, what in _WHAT_THEY_LEARN
    )
    return "".join(
        (
            '<div class="columns"><div><h3>Network</h3>',
            _list(network_rows(facts)),
            "</div><div><h3>Exchange</h3>",
            _list(walk_rows(facts)),
            "</div></div>",
            chart,
            f"<h3>Who learns what</h3><ul>{parties}</ul>",
            '<p class="soft">The exchange of this run was simulated on one machine. The '
            "documentation says under Threat model what a real one hides, and what it does not."
            "</p>",
        )
    )


def statement_paragraph(facts: NetworkFacts) -> tuple[str, str]:
    """Return what nobody has to be trusted with, and with what they have, as title and text."""
    rounds = "1 round" if facts.rounds == 1 else f"{facts.rounds:,} rounds"
    return (
        "Who has to be trusted.",
        "No shuffler. Reports were passed from neighbour to neighbour for "
        f"{rounds}; the adversary is counted on to see the graph, every report and who handed it "
        "in, but not which way it went. A trusted shuffler would give epsilon <= "
        f"{rounded(facts.uniform_epsilon, up=True)}.",
    )


def _list(rows: list[tuple[str, str]]) -> str:
    """Return names and values."""
    inner = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{typeset(value)}</dd></div>" for name, value in rows
    )
    return f'<dl class="facts">{inner}</dl>'
