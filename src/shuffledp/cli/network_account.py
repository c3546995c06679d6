"""``shuffledp network account``: how private an exchange along a graph is."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.console import (
    print_facts,
    print_json,
    print_list,
    print_warnings,
    progress_bar,
    relative,
)
from shuffledp.cli.network_options import (
    lazy_option,
    positions_option,
    protocol_option,
    users_option,
)
from shuffledp.cli.options import json_option, whole_number
from shuffledp.report.formatting import given, rounded

if TYPE_CHECKING:
    from shuffledp.network.account import NetworkAccount

_DIGITS = 6


def rounds_or_auto(text: str) -> "int | str":
    """Return a number of rounds, or the word auto.

    Examples
    --------
    >>> rounds_or_auto("60"), rounds_or_auto("auto")
    (60, 'auto')
    """
    return text if text == "auto" else whole_number(text)


@click.command(
    name="account",
    epilog="Example: shuffledp network account edges.csv --epsilon0 1 --delta 1e-6 --rounds auto",
)
@click.argument("graph_file", metavar="GRAPH", type=click.Path(path_type=Path))
@click.option("--epsilon0", type=float, required=True, help="Local privacy loss, in nats.")
@click.option("--delta", type=float, required=True, help="Failure probability, far below 1/users.")
@click.option(
    "--rounds",
    type=rounds_or_auto,
    required=True,
    metavar="T|auto",
    help="Rounds of the exchange; auto: the fewest that come near a trusted shuffler.",
)
@protocol_option
@lazy_option
@click.option(
    "--within",
    type=float,
    default=0.01,
    show_default=True,
    help="For --rounds auto: how near, relative to epsilon.",
)
@positions_option
@click.option(
    "--components",
    type=click.Choice(["connected", "largest", "each"]),
    default="connected",
    show_default=True,
    help="A graph in pieces: refuse it, take the largest, or account for the worst of them.",
)
@click.option(
    "--dishonest",
    "num_dishonest",
    type=whole_number,
    default="0",
    metavar="N",
    show_default=True,
    help="So many users may tell the adversary their own reports.",
)
@click.option(
    "--colluding",
    "colluding_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Users who may tell him all that passes through their hands, one a line.",
)
@users_option
@click.option("--randomizer", metavar="NAME", help="As for `shuffledp account`; by default any.")
@click.option("--k", type=whole_number, metavar="K", help="Number of possible answers.")
@click.option("--dimension", type=whole_number, metavar="D", help="Length of vectors.")
@json_option
def account(
    *,
    graph_file: Path,
    epsilon0: float,
    colluding_file: Path | None,
    randomizer: str | None,
    k: int | None,
    dimension: int | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Bound the privacy of reports that walk along a graph before they are handed in.

    GRAPH is an edge list: CSV, text with spaces or tabs, or Parquet. The upper bound holds for
    every user and is safe to publish.
    """
    from shuffledp.collection.profiles import named_profile
    from shuffledp.collection.results import delta_cautions
    from shuffledp.network.account import account_network
    from shuffledp.network.graphs.graph_files import read_graph, read_users

    profile = named_profile(randomizer, epsilon0=epsilon0, k=k, dimension=dimension)
    graph = read_graph(graph_file)
    colluding = () if colluding_file is None else read_users(colluding_file)
    with progress_bar(hidden=as_json) as on_progress:
        found = account_network(
            graph, profile, colluding=colluding, on_progress=on_progress, **asked
        )
    print_warnings(delta_cautions(found.delta, found.num_users))
    if as_json:
        print_json({"graph": str(graph_file), "epsilon0": epsilon0, **found.to_json_dict()})
        return
    dropped = [
        (graph.num_self_loops, "edges from a user to themself"),
        (graph.num_duplicates, "edges given twice"),
    ]
    left_out = ", ".join(f"{number:,} {what}" for number, what in dropped if number)
    print_facts(account_facts(found, left_out))
    print_list("assumptions", found.epsilon.assumptions)


def account_facts(found: "NetworkAccount", left_out: str = "") -> list[tuple[str, str]]:
    """Return what is safe to publish first, then what it is compared with, then the graph."""
    bound, uniform = found.epsilon, found.uniform_epsilon
    gap = "not known"
    if bound.lower is not None and bound.gap is not None:
        lower = rounded(bound.lower, up=False, digits=_DIGITS)
        gap = f"{relative(bound.gap)}: no analysis can show epsilon below {lower}"
    published = "says nothing here"
    if found.published_epsilon is not None:
        published = rounded(found.published_epsilon, up=True, digits=_DIGITS)
    shape = ["bipartite" if found.is_bipartite else "not bipartite"]
    shape += ["regular"] if found.is_regular else []
    pieces = f"{found.num_components:,} component{'s' * (found.num_components != 1)}"
    return [
        (
            "epsilon",
            f"{rounded(bound.upper, up=True, digits=_DIGITS)} (upper bound, for every user)",
        ),
        *(
            (_share_text(share), f"{rounded(epsilon, up=True, digits=_DIGITS)} (upper bound)")
            for share, epsilon in reversed(found.epsilon_of_shares)
        ),
        ("gap", gap),
        ("delta", given(found.delta)),
        ("trusted shuffler", rounded(uniform.upper, up=True, digits=_DIGITS)),
        ("published", f"{published} ({found.published_source})"),
        ("rounds", f"{found.rounds:,} ({_protocol_text(found)})"),
        *(
            [("for 99 %", f"{found.rounds_for_most:,} rounds are enough for 99 % of the users")]
            if found.rounds_for_most is not None
            else []
        ),
        ("worst user", found.worst_user),
        ("method", f"{bound.method}; positions {found.method}"),
        ("source", bound.source),
        (
            "graph",
            f"{found.num_users:,} users, {found.num_edges:,} edges, {pieces}, {', '.join(shape)}",
        ),
        *([("left out", left_out)] if left_out else []),
        ("Gamma", f"{found.irregularity:.4f}"),
        ("spectral gap", f"{found.spectral_gap:.6f}"),
        ("separation", f"{found.separation:.3g} after {found.rounds:,} rounds"),
        ("rounds to mix", f"{found.rounds_to_mix:,} until eigenvalues show separation < 0.01"),
    ]


def _share_text(share: float) -> str:
    """Return what a share of the users is called.

    Examples
    --------
    >>> _share_text(0.99), _share_text(0.5)
    ('99 % of users', '50 % of users')
    """
    return f"{100.0 * share:.3g} % of users"


def _protocol_text(found: "NetworkAccount") -> str:
    """Return what holders hand in, and how lazy reports are."""
    text = f"{found.protocol}: {'every report' if found.protocol == 'all' else 'one report'} held"
    return text + (f", lazy {found.laziness:g}" if found.laziness else "")
