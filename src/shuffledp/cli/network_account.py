"""``shuffledp network account`` and ``curve``: how private an exchange along a graph is."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.console import (
    print_facts,
    print_json,
    print_list,
    print_table,
    print_warnings,
    progress_bar,
)
from shuffledp.cli.options import (
    PATH,
    dimension_option,
    json_option,
    k_option,
    lazy_option,
    positions_option,
    protocol_option,
    rounds_or_auto,
    users_option,
    whole_number,
)
from shuffledp.report.formatting import given, rounded
from shuffledp.report.wording import gap_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shuffledp.core.progress import Progress
    from shuffledp.network.account import NetworkAccount, NetworkCurve
    from shuffledp.network.graph import Graph

_DIGITS = 6
_CURVE_DIGITS = 5
_NEAR = 0.01


@click.command(
    name="account",
    epilog="Example: shuffledp network account edges.csv --epsilon0 1 --delta 1e-6 --rounds auto",
)
@click.argument("graph_file", metavar="GRAPH", type=PATH)
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
    type=click.Choice(["connected", "largest"]),
    default="connected",
    show_default=True,
    help="A graph in pieces: refuse it, or take the largest.",
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
@users_option
@click.option("--randomizer", metavar="NAME", help="As for `shuffledp account`; by default any.")
@k_option
@dimension_option
@json_option
def account(
    *,
    graph_file: Path,
    epsilon0: float,
    randomizer: str | None,
    domain_size: int | None,
    dimension: int | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Bound the privacy of reports that walk along a graph before they are handed in.

    GRAPH is an edge list: CSV, text with spaces or tabs, or Parquet. The upper bound holds for
    every user and is proved.
    """
    from shuffledp.collection.profiles import named_profile
    from shuffledp.collection.results import delta_cautions
    from shuffledp.network.account import account_network
    from shuffledp.network.graph_files import read_graph

    profile = named_profile(
        randomizer, epsilon0=epsilon0, domain_size=domain_size, dimension=dimension
    )
    graph = read_graph(graph_file)
    with progress_bar(hidden=as_json) as on_progress:
        found = account_network(graph, profile, on_progress=on_progress, **asked)
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
    """Return the proved upper bound first, then what it is compared with, then the graph."""
    bound, uniform = found.epsilon, found.uniform_epsilon
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
        ("gap", gap_text(bound, "epsilon")),
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
    """Return what a share of the users is called."""
    return f"{100.0 * share:.3g} % of users"


def _protocol_text(found: "NetworkAccount") -> str:
    """Return what holders hand in, and how lazy reports are."""
    text = f"{found.protocol}: {'every report' if found.protocol == 'all' else 'one report'} held"
    return text + (f", lazy {found.laziness:g}" if found.laziness else "")


def round_numbers(text: str) -> tuple[int, ...]:
    """Return numbers of rounds written as numbers and ranges; long ranges are thinned out.

    Examples
    --------
    >>> round_numbers("0,2-4,100")
    (0, 2, 3, 4, 100)
    >>> len(round_numbers("1-1000")) <= 30
    True
    """
    from shuffledp.network.account import spread_rounds

    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        low = whole_number(first)
        high = whole_number(last) if dash else low
        if not 0 <= low <= high:
            raise click.BadParameter(f"{part!r}: give a range of rounds like 1-100")
        found.update(spread_rounds(low, high))
    return tuple(sorted(found))


def degrees(text: str) -> tuple[int, ...]:
    """Return numbers of neighbours, separated by commas.

    Examples
    --------
    >>> degrees("10, 20")
    (10, 20)
    """
    return tuple(whole_number(part) for part in text.split(",") if text)


@click.command(
    epilog="Example: shuffledp network curve friends.csv --epsilon0 1 --delta 1e-6 --out curves"
)
@click.argument("graphs", nargs=-1, type=PATH, metavar="[GRAPH]...")
@click.option(
    "--epsilon0", type=float, required=True, help="Local privacy loss of each report, in nats."
)
@click.option("--delta", type=float, required=True, help="Central failure probability.")
@click.option(
    "--rounds",
    type=round_numbers,
    default="1-100",
    show_default=True,
    metavar="LIST",
    help="Numbers and ranges, such as 1-20,50,100; 30 values of a long range.",
)
@click.option(
    "--regular",
    type=degrees,
    default="",
    metavar="K,K,...",
    help="Also random graphs in which everybody has K neighbours.",
)
@click.option(
    "--num-users",
    type=whole_number,
    default="10000",
    show_default=True,
    metavar="N",
    help="Users of the --regular graphs.",
)
@protocol_option
@lazy_option
@users_option
@click.option(
    "--seed",
    type=whole_number,
    metavar="N",
    default=1,
    show_default=True,
    help="Of the --regular graphs.",
)
@click.option(
    "--out",
    type=PATH,
    required=True,
    metavar="FOLDER",
    help="Folder for network-curve.html.",
)
@json_option
def curve(
    *,
    graphs: tuple[Path, ...],
    regular: tuple[int, ...],
    num_users: int,
    seed: int,
    epsilon0: float,
    out: Path,
    laziness: float,
    as_json: bool,
    **asked: Any,
) -> None:
    """Draw epsilon against rounds, for graphs from files and k-regular ones.

    Ours, the published theorem in its corrected form, and the level of a trusted uniform shuffler
    on the same axes. Of a file, its largest component is taken.
    """
    from shuffledp.collection.output import writing
    from shuffledp.core.profile import LocalProfile
    from shuffledp.network.account import network_curve
    from shuffledp.network.mixing import NetworkMixing
    from shuffledp.report import write_report
    from shuffledp.report.charts import network_page

    if not graphs and not regular:
        raise click.UsageError("give an edge list, or --regular 10 for a random regular graph")
    profile = LocalProfile(epsilon0=epsilon0)
    with progress_bar(hidden=as_json) as progress:
        found = [
            network_curve(
                NetworkMixing(graph, laziness=laziness, on_progress=progress),
                profile,
                name=name,
                on_progress=progress,
                **asked,
            )
            for name, graph in _named_graphs(graphs, regular, num_users, seed, progress)
        ]
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    page = write_report(network_page(found), out / "network-curve.html")
    if as_json:
        print_json({"page": str(page), "curves": [each.to_json_dict() for each in found]})
        return
    print_table(_HEADINGS, [_row(each) for each in found])
    print_facts([("figure", str(page))])


def _named_graphs(
    paths: tuple[Path, ...],
    regular: tuple[int, ...],
    num_users: int,
    seed: int,
    progress: "Progress | None",
) -> "Iterator[tuple[str, Graph]]":
    """Yield one graph after the other, so that only one is in memory."""
    from shuffledp.core.entropy import Entropy
    from shuffledp.network.families import random_regular_graph
    from shuffledp.network.graph_files import read_graph

    for path in paths:
        if progress is not None:
            progress(f"reading {path.name}", 0, None)
        yield path.stem, read_graph(path).largest_component()[0]
    root = Entropy.from_seed(seed)
    for degree in regular:
        yield f"{degree}-regular", random_regular_graph(num_users, degree, root.spawn())


_HEADINGS = ("graph", "users", "rounds", "epsilon", "published", "uniform", "within 1% after")


def _row(found: "NetworkCurve") -> tuple[str, ...]:
    """Return the last point of a curve, and when it comes close to a uniform shuffle."""
    published, near = found.published[-1], found.rounds_within(_NEAR)
    return (
        found.name,
        f"{found.num_users:,}",
        f"{found.rounds[-1]:,}",
        rounded(found.epsilon[-1], up=True, digits=_CURVE_DIGITS),
        "-" if published is None else rounded(published, up=True, digits=_CURVE_DIGITS),
        rounded(found.uniform_epsilon, up=True, digits=_CURVE_DIGITS),
        "-" if near is None else f"{near:,}",
    )
