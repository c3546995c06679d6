"""``shuffledp network peer``: taking part in a collection, as one user or as many."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.console import print_facts, print_warnings, progress_bar
from shuffledp.cli.options import (
    PATH,
    digest,
    graph_option,
    relay_option,
    require_service,
    terms_argument,
    whole_number,
)
from shuffledp.core.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from shuffledp.collection.question import Question
    from shuffledp.deploy.peers.node_values import NodeValues
    from shuffledp.deploy.peers.peer_runner import PeersOutcome
    from shuffledp.network.graph import Graph


@click.command(
    epilog="Example: shuffledp network peer collection/terms.json --graph edges.csv --relay "
    "http://127.0.0.1:8000 --user 7 --answer yes --state me.db"
)
@terms_argument
@graph_option
@relay_option
@click.option(
    "--state",
    type=PATH,
    required=True,
    help="File for keys and reports, to go on from; readable by you only.",
)
@click.option("--user", type=whole_number, metavar="NODE", help="Take part as this node.")
@click.option(
    "--answer",
    help="The value of --user; asked for if left out, since others may see a command line.",
)
@click.option(
    "--table",
    type=PATH,
    help="Values of many users, one row each; instead of --user and --answer.",
)
@click.option("--column", help="Column of --table with the values.")
@click.option(
    "--id",
    "id_column",
    metavar="COLUMN",
    help="Column of --table with the users' names in the graph; else row numbers are nodes.",
)
@click.option(
    "--max-epsilon0",
    "most_epsilon0",
    type=float,
    metavar="X",
    help="Most epsilon0, in nats, of all reports on one question; by default 4.",
)
@click.option(
    "--least-users",
    type=whole_number,
    metavar="N",
    help="Fewest registered users to take part with; by default 10.",
)
@click.option(
    "--max-megabytes",
    "most_megabytes",
    type=float,
    metavar="X",
    help="Most traffic in all; by default 100.",
)
@click.option(
    "--terms-digest",
    type=digest,
    metavar="HEX",
    help="Take part by these terms only; their digest is printed.",
)
@click.option(
    "--most-absences",
    type=whole_number,
    metavar="N",
    help="Hand in nothing after more missed rounds than this; by default a quarter of all.",
)
@click.option(
    "--roster-digest",
    type=digest,
    metavar="HEX",
    help="Take part with the users of this roster only; its digest is printed.",
)
def peer(  # one parameter an option
    *,
    terms: Path,
    graph: Path,
    url: str,
    state: Path,
    user: int | None,
    answer: str | None,
    table: Path | None,
    column: str | None,
    id_column: str | None,
    **agreed: Any,
) -> None:
    """Take part in the collection of TERMS, as one user or as many.

    Says first what is asked, what a report tells, and what taking part costs; refuses more than the
    limits allow. Each value is randomized once, before anything is sent. Stopped at any moment and
    started again with the same state, it goes on where it was.
    """
    if (table is None) == (user is None) or (table and answer is not None):
        raise click.UsageError("give --user and --answer, or --table")
    if table is None and (column, id_column) != (None, None):
        raise click.UsageError("--column and --id are for --table")
    require_service()
    from shuffledp.core.entropy import Entropy
    from shuffledp.deploy.http_client import cautions_about
    from shuffledp.deploy.peers.peer_runner import PeerRunner, draw_reports, spending_facts
    from shuffledp.deploy.peers.preparing import read_terms, traffic_facts
    from shuffledp.deploy.peers.protocol.terms import Limits
    from shuffledp.deploy.peers.relay_client import RelayClient, answer_sizes
    from shuffledp.deploy.peers.stores import PeerStore
    from shuffledp.network.graph_files import read_graph

    limits = Limits(**{name: value for name, value in agreed.items() if value is not None})
    read, asked = read_terms(terms)
    network = read_graph(graph)
    read.require_graph(network)
    limits.require_terms(read, network, user or 0)
    entropy = Entropy.from_operating_system()
    print_warnings(cautions_about(url, "relay"))
    with PeerStore(state, read) as store, RelayClient(url, answer_sizes(read, network)) as client:
        print_facts(
            [
                *asked.facts(),
                *traffic_facts(read, network),
                ("least crowd", f"{max(read.least_registered, limits.least_users):,} users"),
                *([] if user is None else spending_facts(store, asked, "")),
                ("terms", read.digest().hex()),
            ]
        )
        names, values = _names_and_values(
            asked.question, network, user, answer, table=table, column=column, id_column=id_column
        )
        if user is not None and store.states().keys() - names:
            raise DataError(f"{state} is of another user: name a file of this user's own")
        draw_reports(
            store, read, network, asked,
            names=names, values=values, entropy=entropy, limits=limits,
        )  # fmt: skip
        with progress_bar() as on_progress:
            runner = PeerRunner(
                terms=read,
                graph=network,
                store=store,
                nodes=list(names),
                client=client,
                entropy=entropy,
                limits=limits,
                on_roster=lambda found: print_facts([("roster", found)]),
                **({} if on_progress is None else {"on_progress": on_progress}),
            )
            outcome = runner.run()
    _print_outcome(outcome)


def _names_and_values(
    question: "Question",
    network: "Graph",
    user: int | None,
    answer: str | None,
    *,
    table: Path | None,
    column: str | None,
    id_column: str | None,
) -> "tuple[dict[int, str], Callable[[], NodeValues]]":
    """Return names by node, the same in all collections, and what reads their values."""
    from shuffledp.deploy.peers.node_values import read_node_values, value_of_one

    if table is not None:
        many = read_node_values(
            question,
            table,
            column,
            labels=network.labels,
            num_nodes=network.num_users,
            id_column=id_column,
        )
        return {node: network.name_of(node) for node in sorted(many.nodes.tolist())}, lambda: many

    def of_one() -> "NodeValues":
        said = str(click.prompt("Answer")) if answer is None else answer
        return value_of_one(question, user or 0, said)

    return {user or 0: ""}, of_one


_ENDED_BADLY = {
    "late": "came after registration had ended and took no part",
    "lost": "came after handing in had ended: the reports they held are lost",
    "withheld": "missed more rounds than --most-absences and handed in nothing: a relay that "
    "refuses all that one user sends would get a report whose author it knows",
    "short": "missed mail that was sent to them, or heard of others who did: the analyzer is told, "
    "and claims no more than epsilon0",
}


def _print_outcome(outcome: "PeersOutcome") -> None:
    """Print how it went, and what went wrong."""
    found = [
        f"{len(nodes):,} users, node {nodes[0]} among them, {what}"
        for name, what in _ENDED_BADLY.items()
        if (nodes := getattr(outcome, name))
    ]
    if outcome.num_dropped:
        found.append(f"{outcome.num_dropped:,} reports were dropped, for want of messages")
    if outcome.refused:
        reasons = "; ".join(f"{number:,} {reason}" for reason, number in outcome.refused.items())
        found.append(f"messages were refused: {reasons}")
    print_warnings(found)
    print_facts(
        [
            ("handed in", f"{outcome.num_handed_in:,} of {outcome.num_users:,} users"),
            ("rounds missed", f"{outcome.absences:,}"),
            ("transcript", ", ".join(each[:16] for each in outcome.transcripts) or "none"),
        ]
    )
