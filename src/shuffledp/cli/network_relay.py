"""``shuffledp network relay``: what carries sealed messages between peers."""

import sys
import time
from pathlib import Path

import click

from shuffledp.cli.network_service_options import (
    graph_option,
    require_service,
    terms_argument,
)

_LOOPBACK = "127.0.0.1"


@click.command(
    epilog="Example: shuffledp network relay collection/terms.json --graph edges.csv "
    "--store relay.db --port 8000 --round-seconds 60"
)
@terms_argument
@graph_option
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
@click.option("--until-collected", is_flag=True, help="Stop once the analyzer has all in a file.")
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
    require_service()
    from shuffledp.deploy.peers.service.preparing import read_terms
    from shuffledp.deploy.peers.service.relay_server import serve_relay
    from shuffledp.deploy.peers.service.round_clock import RoundClock
    from shuffledp.network.graph_files import read_graph

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
