"""``shuffledp network prepare`` and ``relay``: terms of a collection, and what carries its mail."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.asked import Asked, question_options
from shuffledp.cli.console import print_facts, print_json, progress_bar
from shuffledp.cli.deployment import say_url
from shuffledp.cli.options import (
    PATH,
    graph_option,
    json_option,
    lazy_option,
    out_option,
    protocol_option,
    randomizer_option,
    require_service,
    terms_argument,
    whole_number,
)
from shuffledp.core.checks import require_open_unit
from shuffledp.report.wording import guarantee_facts

if TYPE_CHECKING:
    from shuffledp.deploy.asked_terms import AskedTerms
    from shuffledp.deploy.peers.protocol.terms import Terms
    from shuffledp.network.graph import Graph


@click.command(
    epilog="Example: shuffledp network prepare --graph edges.csv --domain yes,no --epsilon0 1 "
    "--rounds 20 --out collection/"
)
@graph_option
@question_options
@click.option("--question", "text", default="", help="The question in words, for users to read.")
@randomizer_option
@click.option("--epsilon0", type=float, required=True, help="Local epsilon of every report.")
@click.option(
    "--rounds", type=whole_number, required=True, metavar="T", help="Rounds of the exchange."
)
@protocol_option
@lazy_option
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
@out_option("terms and key")
@json_option
def prepare(  # noqa: PLR0913  # one parameter an option
    *,
    graph: Path,
    randomizer: str | None,
    epsilon0: float,
    rounds: int,
    protocol: Any,
    laziness: float,
    even_traffic: bool,
    least_registered: int | None,
    delta: float | None,
    out: Path,
    text: str,
    as_json: bool,
    **question: Any,
) -> None:
    """Write the public terms of a collection, and the analyzer's private key.

    Hand terms.json and the file of edges to everybody; keep analyzer.key to yourself.
    """
    from shuffledp.deploy.asked_terms import AskedTerms
    from shuffledp.deploy.peers.preparing import (
        prepare_terms,
        require_laziness_grid,
        traffic_facts,
        write_collection,
    )
    from shuffledp.deploy.peers.protocol.keys import PrivateKeys
    from shuffledp.network.graph_files import read_graph
    from shuffledp.network.mixing import NetworkMixing

    if delta is not None:
        require_open_unit("delta", delta)
    asked_question = Asked(**question).question()
    if asked_question is None:
        raise click.UsageError("give --domain or --domain-file: nobody's answers are known yet")
    name = randomizer or next(iter(asked_question.candidates()))
    asked = AskedTerms.of(asked_question, name, epsilon0, text)
    users = read_graph(graph)
    laziness = require_laziness_grid(laziness)
    NetworkMixing(users, laziness=laziness)  # refuses graphs on which reports never mix
    keys = PrivateKeys.generate()
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
                "terms_digest": terms.digest().hex(),
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
        facts += [
            *guarantee_facts(expected)[:3],
            ("assuming", "all register, none is ever away, all arrives"),
        ]
    print_facts(facts)


def _expected(terms: "Terms", graph: "Graph", asked: "AskedTerms", delta: float) -> Any:
    """Return the guarantee if everybody takes part in every round."""
    import numpy as np

    from shuffledp.deploy.peers.exchange_account import Arrived, Exchange, ExchangeRecord

    everybody = np.arange(terms.num_users)
    record = ExchangeRecord.of(terms, everybody, [[]] * terms.rounds)
    arrived = Arrived(num_reports=terms.num_users, handed_in=everybody)
    with progress_bar() as on_progress:
        exchange = Exchange(terms, graph, record, arrived, on_progress=on_progress)
        return exchange.guarantee(asked.randomizer.profile, delta=delta)


@click.command(
    epilog="Example: shuffledp network relay collection/terms.json --graph edges.csv "
    "--store relay.db --port 8000 --round-seconds 60"
)
@terms_argument
@graph_option
@click.option(
    "--store",
    type=PATH,
    required=True,
    help="File in which the relay keeps all; started again with it, it goes on.",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
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
    "--clock",
    type=click.Choice(["interval", "all"]),
    default="interval",
    show_default=True,
    help="Rounds end after their time, or as soon as all have sent.",
)
@click.option("--until-collected", is_flag=True, help="Stop once the analyzer has all in a file.")
def relay(  # one parameter an option
    *,
    terms: Path,
    graph: Path,
    store: Path,
    host: str,
    port: int,
    round_seconds: float,
    register_seconds: float | None,
    clock: str,
    until_collected: bool,
) -> None:
    """Pass sealed messages between the peers of TERMS, round by round.

    Prints its URL and serves until it is stopped. Killed at any moment and started again with the
    same store it loses nothing.
    """
    require_service()
    from shuffledp.deploy.peers.preparing import read_terms
    from shuffledp.deploy.peers.relay_server import serve_relay
    from shuffledp.network.graph_files import read_graph

    read, _ = read_terms(terms)
    serve_relay(
        read,
        read_graph(graph),
        store,
        on_ready=say_url,
        address=(host, port),
        until_collected=until_collected,
        is_eager=clock == "all",
        round_seconds=round_seconds,
        register_seconds=register_seconds,
    )
