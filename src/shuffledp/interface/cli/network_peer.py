"""``shuffledp network peer``: taking part in a collection, as one user or as many."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shuffledp.core.checks import require_non_negative
from shuffledp.interface.cli.console import print_facts, print_warnings, progress_bar
from shuffledp.interface.cli.network_service_options import (
    digest,
    graph_option,
    relay_option,
    require_service,
    terms_argument,
)
from shuffledp.interface.cli.options import whole_number

if TYPE_CHECKING:
    from shuffledp.collection.service.node_values import NodeValues
    from shuffledp.collection.service.peer_runner import PeersOutcome


@click.command(
    epilog="Example: shuffledp network peer collection/terms.json --graph edges.csv --relay "
    "http://127.0.0.1:8000 --user 7 --answer yes --state me.db"
)
@terms_argument
@graph_option
@relay_option
@click.option(
    "--state",
    type=click.Path(path_type=Path),
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
    type=click.Path(path_type=Path),
    help="Values of many users, one row each; instead of --user and --answer.",
)
@click.option("--column", help="Column of --table with the values.")
@click.option(
    "--id",
    "id_column",
    metavar="COLUMN",
    help="Column of --table with the users' names in the graph; else row numbers are nodes.",
)
@click.option("--users", metavar="0-99,150", help="Nodes of --table to take part as; else all.")
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
@click.option(
    "--patience",
    type=float,
    default=300.0,
    show_default=True,
    help="Seconds to try again while the relay does not answer.",
)
def peer(  # noqa: PLR0913  # one parameter an option
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
    users: str | None,
    most_absences: int | None,
    roster_digest: bytes | None,
    patience: float,
) -> None:
    """Take part in the collection of TERMS, as one user or as many.

    Each value is randomized once, before anything is sent. Stopped at any moment and started again
    with the same state, it goes on where it was.
    """
    require_service()
    require_non_negative("patience", patience)
    from shuffledp.collection.datasets.graph_files import read_graph
    from shuffledp.collection.protocol.limits import Limits
    from shuffledp.collection.service.node_values import parse_users, read_node_values, value_of_one
    from shuffledp.collection.service.peer_runner import PeerRunner, draw_reports
    from shuffledp.collection.service.peer_store import PeerStore
    from shuffledp.collection.service.preparing import read_terms
    from shuffledp.collection.service.relay_client import RelayClient
    from shuffledp.core.entropy import Entropy

    if (table is None) == (user is None) or (table is not None and answer is not None):
        raise click.UsageError("give --user and --answer, or --table")
    if table is None and (column is not None or id_column is not None or users is not None):
        raise click.UsageError("--column, --id and --users are for --table")
    if table is None and answer is None:
        answer = str(click.prompt("Answer"))
    limits = Limits(most_absences=most_absences, roster_digest=roster_digest)
    read, asked = read_terms(terms)
    network = read_graph(graph)
    read.require_graph(network)

    def values() -> "NodeValues":
        if table is None:
            return value_of_one(asked.question, user or 0, answer or "")
        return read_node_values(
            asked.question,
            table,
            column,
            labels=network.labels,
            num_nodes=network.num_users,
            id_column=id_column,
            users=None if users is None else parse_users(users),
        )

    entropy = Entropy.from_operating_system()
    with PeerStore(state, read) as store, RelayClient(url, patience_seconds=patience) as client:
        wanted = values()
        nodes = [int(node) for node in wanted.nodes]
        draw_reports(
            store,
            read,
            network,
            asked,
            nodes=nodes,
            values=lambda: wanted,
            entropy=entropy,
            limits=limits,
        )
        with progress_bar() as on_progress:
            runner = PeerRunner(
                terms=read,
                graph=network,
                store=store,
                nodes=nodes,
                client=client,
                entropy=entropy,
                limits=limits,
                on_roster=lambda digest: print_facts([("roster", digest)]),
                **({} if on_progress is None else {"on_progress": on_progress}),
            )
            outcome = runner.run()
    _print_outcome(outcome)


def _print_outcome(outcome: "PeersOutcome") -> None:
    """Print how it went, and what went wrong."""
    found = []
    if outcome.late:
        found.append(
            f"{len(outcome.late):,} users came after registration had ended and took no part, node "
            f"{outcome.late[0]} among them"
        )
    if outcome.lost:
        found.append(
            f"{len(outcome.lost):,} users came after handing in had ended, node {outcome.lost[0]} "
            "among them: the reports they held are lost"
        )
    if outcome.withheld:
        found.append(
            f"{len(outcome.withheld):,} users, node {outcome.withheld[0]} among them, missed more "
            "rounds than --most-absences and handed in nothing: a relay that refuses all that one "
            "user sends would get a report whose author it knows"
        )
    if outcome.num_dropped:
        found.append(f"{outcome.num_dropped:,} reports were dropped, for want of messages")
    if outcome.num_late_reports:
        found.append(f"{outcome.num_late_reports:,} onions missed their round and were lost")
    if outcome.short:
        found.append(
            f"{len(outcome.short):,} users, node {outcome.short[0]} among them, missed mail that "
            "was sent to them, or heard of others who did: the analyzer is told, and claims no "
            "more than epsilon0"
        )
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
