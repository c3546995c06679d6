"""``shuffledp network peer``: taking part in a collection, as one user or as many."""

from collections.abc import Callable
from dataclasses import dataclass
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
from shuffledp.core.checks import require_non_negative
from shuffledp.core.errors import DataError

if TYPE_CHECKING:
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
@click.option("--users", metavar="0-99,150", help="Nodes of --table to take part as; else all.")
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
@click.option(
    "--patience",
    type=float,
    default=300.0,
    show_default=True,
    help="Seconds to try again while the relay does not answer.",
)
def peer(
    *, terms: Path, graph: Path, url: str, state: Path, patience: float, **options: Any
) -> None:
    """Take part in the collection of TERMS, as one user or as many.

    Says first what is asked, what a report tells, and what taking part costs; refuses more than the
    limits allow. Each value is randomized once, before anything is sent. Stopped at any moment and
    started again with the same state, it goes on where it was.
    """
    require_service()
    require_non_negative("patience", patience)
    from shuffledp.core.entropy import Entropy
    from shuffledp.deploy.peers.peer_runner import PeerRunner, draw_reports, spending_facts
    from shuffledp.deploy.peers.preparing import read_terms, traffic_facts
    from shuffledp.deploy.peers.protocol.terms import Limits
    from shuffledp.deploy.peers.relay_client import AnswerSizes, RelayClient, plain_text_cautions
    from shuffledp.deploy.peers.stores import PeerStore
    from shuffledp.network.graph_files import read_graph

    who = _Users(**{name: options.pop(name) for name in _USER_OPTIONS})
    limits = Limits(**{name: value for name, value in options.items() if value is not None})
    read, asked = read_terms(terms)
    network = read_graph(graph)
    read.require_graph(network)
    limits.require_terms(read, network, who.user or 0)
    entropy = Entropy.from_operating_system()
    sizes = AnswerSizes.of(read, network)
    print_warnings(plain_text_cautions(url))
    with (
        PeerStore(state, read) as store,
        RelayClient(url, patience_seconds=patience, sizes=sizes) as client,
    ):
        print_facts(
            [
                *asked.facts(),
                *traffic_facts(read, network),
                ("least crowd", f"{max(read.least_registered, limits.least_users):,} users"),
                *([] if who.user is None else spending_facts(store, asked, "")),
                ("terms", read.digest().hex()),
            ]
        )
        nodes, names, values = who.values(asked.question, network)
        if who.user is not None and set(store.states()) - {who.user}:
            raise DataError(f"{state} is of another user: name a file of this user's own")
        draw_reports(
            store, read, network, asked,
            nodes=nodes, values=values, entropy=entropy, limits=limits, users=names,
        )  # fmt: skip
        with progress_bar() as on_progress:
            runner = PeerRunner(
                terms=read,
                graph=network,
                store=store,
                nodes=nodes,
                client=client,
                entropy=entropy,
                limits=limits,
                on_roster=lambda found: print_facts([("roster", found)]),
                **({} if on_progress is None else {"on_progress": on_progress}),
            )
            outcome = runner.run()
    _print_outcome(outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Users:
    """Whom the command stands for, by its options."""

    user: int | None
    answer: str | None
    table: Path | None
    column: str | None
    id_column: str | None
    users: str | None

    def __post_init__(self) -> None:
        if (self.table is None) == (self.user is None) or (self.table and self.answer is not None):
            raise click.UsageError("give --user and --answer, or --table")
        if self.table is None and (self.column, self.id_column, self.users) != (None, None, None):
            raise click.UsageError("--column, --id and --users are for --table")

    def values(
        self, question: "Question", network: "Graph"
    ) -> "tuple[list[int], list[str], Callable[[], NodeValues]]":
        """Return nodes, names that are the same in all collections, and what returns values."""
        from shuffledp.deploy.peers.node_values import (
            parse_users,
            read_node_values,
            value_of_one,
        )

        if self.table is not None:
            read = read_node_values(
                question,
                self.table,
                self.column,
                labels=network.labels,
                num_nodes=network.num_users,
                id_column=self.id_column,
                users=None if self.users is None else parse_users(self.users),
            )
            nodes = [int(node) for node in read.nodes]
            labels = network.labels
            return (
                nodes,
                [str(node) if labels is None else labels[node] for node in nodes],
                (lambda: read),
            )
        node = self.user or 0

        def of_one() -> "NodeValues":
            said = str(click.prompt("Answer")) if self.answer is None else self.answer
            return value_of_one(question, node, said)

        return [node], [""], of_one


_USER_OPTIONS = ("user", "answer", "table", "column", "id_column", "users")


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
