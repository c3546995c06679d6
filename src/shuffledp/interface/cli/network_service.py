"""``shuffledp network prepare``, ``relay``, ``peer`` and ``collect``: an exchange for real."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.core.checks import require_non_negative, require_open_unit
from shuffledp.core.errors import MissingPackageError
from shuffledp.interface.cli.asked import Asked, question_options
from shuffledp.interface.cli.console import (
    guarantee_facts,
    print_facts,
    print_json,
    print_warnings,
    progress_bar,
)
from shuffledp.interface.cli.options import json_option, randomizer_option, whole_number

if TYPE_CHECKING:
    from shuffledp.collection.protocol.terms import Terms
    from shuffledp.collection.results import RunResult
    from shuffledp.collection.service.asked_terms import AskedTerms
    from shuffledp.collection.service.node_values import NodeValues
    from shuffledp.collection.service.peer_runner import PeersOutcome
    from shuffledp.mechanisms.networks.graph import Graph

_LOOPBACK = "127.0.0.1"

_terms_argument = click.argument("terms", type=click.Path(path_type=Path))
_graph_option = click.option(
    "--graph",
    type=click.Path(path_type=Path),
    required=True,
    help="File of edges: who passes reports on to whom.",
)
_relay_option = click.option(
    "--relay", "url", required=True, metavar="URL", help="Where the relay is, as it printed."
)


@click.command(
    epilog="Example: shuffledp network prepare --graph edges.csv --domain yes,no --epsilon0 1 "
    "--rounds 20 --out collection/"
)
@_graph_option
@question_options
@randomizer_option
@click.option("--epsilon0", type=float, required=True, help="Local epsilon of every report.")
@click.option(
    "--rounds", type=whole_number, required=True, metavar="T", help="Rounds of the exchange."
)
@click.option(
    "--protocol",
    type=click.Choice(["all", "single"]),
    default="all",
    show_default=True,
    help="Holders hand in all reports they hold, or one.",
)
@click.option(
    "--lazy", type=float, default=0.0, metavar="P", help="Chance that a report rests for a round."
)
@click.option(
    "--least-registered",
    type=whole_number,
    metavar="N",
    help="Fewest registered users with whom a peer takes part; by default half of all.",
)
@click.option(
    "--even-traffic",
    is_flag=True,
    help="Send each neighbour equally many messages: more of them, and the relay learns less.",
)
@click.option("--delta", type=float, help="Also say the central epsilon at this delta.")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder for terms and key."
)
@json_option
def prepare(  # noqa: PLR0913  # one parameter an option
    *,
    graph: Path,
    randomizer: str | None,
    epsilon0: float,
    rounds: int,
    protocol: Any,
    lazy: float,
    even_traffic: bool,
    least_registered: int | None,
    delta: float | None,
    out: Path,
    as_json: bool,
    **question: Any,
) -> None:
    """Write the public terms of a collection, and the analyzer's private key.

    Hand terms.json and the file of edges to everybody; keep analyzer.key to yourself.
    """
    from shuffledp.collection.datasets.graph_files import read_graph
    from shuffledp.collection.network_mixing import NetworkMixing
    from shuffledp.collection.protocol.keys import AnalyzerKeys
    from shuffledp.collection.service.asked_terms import AskedTerms
    from shuffledp.collection.service.preparing import (
        prepare_terms,
        require_laziness_grid,
        traffic_facts,
        write_collection,
    )

    if delta is not None:
        require_open_unit("delta", delta)
    asked_question = Asked(**question).question()
    if asked_question is None:
        raise click.UsageError("give --domain or --domain-file: nobody's answers are known yet")
    name = randomizer or next(iter(asked_question.candidates()))
    asked = AskedTerms.of(asked_question, name, epsilon0)
    users = read_graph(graph)
    laziness = require_laziness_grid(lazy)
    NetworkMixing(users, laziness=laziness)  # refuses graphs on which reports never mix
    keys = AnalyzerKeys.generate()
    terms = prepare_terms(
        users,
        asked,
        keys,
        rounds=rounds,
        protocol=protocol,
        laziness=laziness,
        even_traffic=even_traffic,
        least_registered=least_registered,
    )
    expected = None if delta is None else _expected(terms, users, asked, delta)
    terms_path, key_path = write_collection(out, terms, keys)
    if as_json:
        print_json(
            {
                "terms": str(terms_path),
                "key": str(key_path),
                "num_users": terms.num_users,
                "rounds": terms.rounds,
                "slots": max(terms.slots),
                "envelope_bytes": terms.envelope_bytes,
                **({} if expected is None else {"guarantee": expected.to_json_dict()}),
            }
        )
        return
    facts = [
        ("terms", f"{terms_path} (public: everybody needs it)"),
        ("private key", f"{key_path} (keep it: without it nobody can open the reports)"),
        ("randomizer", f"{asked.randomizer.name}, epsilon0 = {asked.randomizer.epsilon0:.6g}"),
        *traffic_facts(terms, users),
    ]
    if expected is not None:
        facts += [*guarantee_facts(expected)[:3], ("assuming", "all register, none is ever away")]
    print_facts(facts)


def _expected(terms: "Terms", graph: "Graph", asked: "AskedTerms", delta: float) -> Any:
    """Return the guarantee if everybody takes part in every round."""
    import numpy as np

    from shuffledp.collection.service.exchange_account import ExchangeRecord, exchange_guarantee

    record = ExchangeRecord.of(terms, np.arange(terms.num_users), [[]] * terms.rounds)
    with progress_bar() as on_progress:
        return exchange_guarantee(
            terms, graph, record, asked.randomizer.profile, delta=delta, on_progress=on_progress
        )


@click.command(
    epilog="Example: shuffledp network relay collection/terms.json --graph edges.csv "
    "--store relay.db --port 8000 --round-seconds 60"
)
@_terms_argument
@_graph_option
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    required=True,
    help="File in which the relay keeps all; started again with it, it goes on.",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default=_LOOPBACK,
    show_default=True,
    help="Address to listen at, by HTTP; beyond this machine put a reverse proxy with TLS before.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 takes any free one.")
@click.option(
    "--round-seconds", type=float, default=60.0, show_default=True, help="Length of a round."
)
@click.option(
    "--register-seconds",
    type=float,
    help="Begin after this time with those who registered, rather than wait for all.",
)
@click.option(
    "--hand-in-seconds",
    type=float,
    help="Wait this long for hand-ins, rather than ten rounds.",
)
@click.option(
    "--clock",
    type=click.Choice(["interval", "all", "manual"]),
    default="interval",
    show_default=True,
    help="Rounds end after their time; as soon as all have sent; or with a line on stdin.",
)
@click.option("--until-collected", is_flag=True, help="Stop once the analyzer has fetched all.")
def relay(  # noqa: PLR0913  # one parameter an option
    *,
    terms: Path,
    graph: Path,
    store: Path,
    host: str,
    port: int,
    round_seconds: float,
    register_seconds: float | None,
    hand_in_seconds: float | None,
    clock: str,
    until_collected: bool,
) -> None:
    """Pass sealed messages between the peers of TERMS, round by round.

    Prints its URL and serves until it is stopped. Killed at any moment and started again with the
    same store it loses nothing.
    """
    _require_service()
    from shuffledp.collection.datasets.graph_files import read_graph
    from shuffledp.collection.service.preparing import read_terms
    from shuffledp.collection.service.relay_server import serve_relay
    from shuffledp.collection.service.round_clock import RoundClock

    read, _ = read_terms(terms)
    serve_relay(
        read,
        read_graph(graph),
        store,
        RoundClock(
            mode=clock,
            round_seconds=round_seconds,
            register_seconds=register_seconds,
            hand_in_seconds=hand_in_seconds,
        ),
        now=time.monotonic,
        on_ready=_say_url,
        host=host,
        port=port,
        until_collected=until_collected,
    )


def _say_url(url: str) -> None:
    """Print where the relay is, at once also into a pipe."""
    click.echo(url)
    sys.stdout.flush()


@click.command(
    epilog="Example: shuffledp network peer collection/terms.json --graph edges.csv --relay "
    "http://127.0.0.1:8000 --user 7 --answer yes --state me.db"
)
@_terms_argument
@_graph_option
@_relay_option
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
    patience: float,
) -> None:
    """Take part in the collection of TERMS, as one user or as many.

    Each value is randomized once, before anything is sent. Stopped at any moment and started again
    with the same state, it goes on where it was.
    """
    _require_service()
    require_non_negative("patience", patience)
    from shuffledp.collection.datasets.graph_files import read_graph
    from shuffledp.collection.service.node_values import parse_users, read_node_values, value_of_one
    from shuffledp.collection.service.peer_runner import PeerRunner, draw_reports
    from shuffledp.collection.service.peer_store import PeerStore
    from shuffledp.collection.service.relay_client import RelayClient
    from shuffledp.core.entropy import Entropy

    if (table is None) == (user is None) or (table is not None and answer is not None):
        raise click.UsageError("give --user and --answer, or --table")
    if table is None and (column is not None or id_column is not None or users is not None):
        raise click.UsageError("--column, --id and --users are for --table")
    if table is None and answer is None:
        answer = str(click.prompt("Answer"))
    read, asked = read_terms_of(terms)
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
            store, read, network, asked, nodes=nodes, values=lambda: wanted, entropy=entropy
        )
        with progress_bar() as on_progress:
            runner = PeerRunner(
                terms=read,
                graph=network,
                store=store,
                nodes=nodes,
                client=client,
                entropy=entropy,
                **({} if on_progress is None else {"on_progress": on_progress}),
            )
            outcome = runner.run()
    _print_outcome(outcome)


def read_terms_of(path: Path) -> "tuple[Terms, AskedTerms]":
    """Read the public terms of a collection, and what it asks."""
    from shuffledp.collection.service.preparing import read_terms

    return read_terms(path)


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
        ]
    )


@click.command(
    epilog="Example: shuffledp network collect collection/terms.json --key "
    "collection/analyzer.key --graph edges.csv --relay http://127.0.0.1:8000 --delta 1e-6 "
    "--out results/"
)
@_terms_argument
@_graph_option
@_relay_option
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    required=True,
    help="The analyzer's private key, as prepare wrote it.",
)
@click.option("--delta", type=float, required=True, help="Failure probability, far below 1/users.")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder to create for results."
)
@click.option("--wait", type=float, metavar="SECONDS", help="Give up waiting for the end.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of each interval.")
@click.option(
    "--interval",
    type=click.Choice(["wilson", "wald", "clopper-pearson"]),
    default="wilson",
    show_default=True,
    help="Kind of interval, for shares.",
)
@click.option("--simultaneous", is_flag=True, help="Intervals that all hold at once.")
@click.option("--overwrite", is_flag=True, help="Replace a folder of earlier results.")
@json_option
def collect(  # noqa: PLR0913  # one parameter an option
    *,
    terms: Path,
    graph: Path,
    url: str,
    key: Path,
    delta: float,
    out: Path,
    wait: float | None,
    confidence: float,
    interval: str,
    simultaneous: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Fetch what was handed in to the collection of TERMS, and estimate.

    Waits until the collection is over. Writes estimates.csv, privacy.json and report.html into the
    folder of --out: all of them, or nothing.
    """
    _require_service()
    require_open_unit("delta", delta)
    require_open_unit("confidence", confidence)
    if wait is not None:
        require_non_negative("wait", wait)
    from shuffledp.collection.datasets.graph_files import read_graph
    from shuffledp.collection.output import results_folder, write_results
    from shuffledp.collection.questions.question import EstimateOptions
    from shuffledp.collection.service.collecting import collection_result, fetch, fetched_facts
    from shuffledp.collection.service.preparing import read_key
    from shuffledp.collection.service.relay_client import RelayClient

    read, asked = read_terms_of(terms)
    keys = read_key(key, read)
    network = read_graph(graph)
    read.require_graph(network)
    options = EstimateOptions(confidence=confidence, interval=interval, simultaneous=simultaneous)
    with (
        results_folder(out, overwrite=overwrite) as folder,
        RelayClient(url) as client,
        progress_bar() as on_progress,
    ):
        fetched = fetch(read, keys, client, wait_seconds=wait, on_progress=on_progress)
        result = collection_result(
            read, asked, network, fetched, delta=delta, options=options, on_progress=on_progress
        )
        facts = fetched_facts(read, fetched)
        write_results(result, folder, parameters={"graph": str(graph), **facts})
    print_warnings(result.warnings)
    if as_json:
        print_json({**result.to_json_dict(), "collection": facts})
    else:
        _print_result(result, out)


def _print_result(result: "RunResult", out: Path) -> None:
    """Print the estimates, the guarantee and where the report is."""
    from dataclasses import replace

    from shuffledp.collection.output import REPORT_FILE
    from shuffledp.interface.reports import terminal_text

    click.echo(terminal_text(replace(result, warnings=())))  # these are on stderr already
    click.echo()
    print_facts([*guarantee_facts(result.guarantee), ("report", str(out / REPORT_FILE))])


def _require_service() -> None:
    """Raise unless the packages of the extra ``service`` are installed."""
    try:
        import httpx
        import starlette
        import uvicorn
    except ModuleNotFoundError as error:
        if error.name not in ("httpx", "starlette", "uvicorn"):
            raise
        raise MissingPackageError(
            "relays and peers need more packages: run pip install 'shuffledp[service]'",
            name=error.name,
        ) from None
    del httpx, starlette, uvicorn
