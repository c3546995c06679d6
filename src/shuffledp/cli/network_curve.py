"""``shuffledp network curve``: epsilon against rounds, for several graphs on the same axes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.console import print_facts, print_json, print_table, progress_bar
from shuffledp.cli.network_options import (
    lazy_option,
    positions_option,
    protocol_option,
    users_option,
)
from shuffledp.cli.options import json_option, whole_number
from shuffledp.report.formatting import rounded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shuffledp.core.progress import Progress
    from shuffledp.network.account import NetworkCurve
    from shuffledp.network.graph import Graph

_DIGITS = 5
_NEAR = 0.01


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
@click.argument("graphs", nargs=-1, type=click.Path(path_type=Path), metavar="[GRAPH]...")
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
@positions_option
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
    type=click.Path(path_type=Path),
    required=True,
    metavar="FOLDER",
    help="Folder for network-curve.png and network-curve.csv.",
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
    as_json: bool,
    **asked: Any,
) -> None:
    """Draw epsilon against rounds, for graphs from files and k-regular ones.

    Ours, the published theorem in its corrected form, and the level of a trusted uniform shuffler
    on the same axes. Of a file, its largest component is taken. Needs pip install
    'shuffledp[attacks]'.
    """
    from shuffledp.core.profile import LocalProfile
    from shuffledp.network.account import network_curve
    from shuffledp.report.drawing import require_matplotlib
    from shuffledp.report.network_figures import write_network_curves

    if not graphs and not regular:
        raise click.UsageError("give an edge list, or --regular 10 for a random regular graph")
    require_matplotlib()
    profile = LocalProfile(epsilon0=epsilon0)
    with progress_bar(hidden=as_json) as progress:
        found = [
            network_curve(graph, profile, name=name, on_progress=progress, **asked)
            for name, graph in _named_graphs(graphs, regular, num_users, seed, progress)
        ]
    image = write_network_curves(found, out)
    if as_json:
        print_json({"png": str(image), "curves": [each.to_json_dict() for each in found]})
        return
    print_table(_HEADINGS, [_row(each) for each in found])
    print_facts([("figure", f"{image}, network-curve.csv")])


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
        rounded(found.epsilon[-1], up=True, digits=_DIGITS),
        "-" if published is None else rounded(published, up=True, digits=_DIGITS),
        rounded(found.uniform_epsilon, up=True, digits=_DIGITS),
        "-" if near is None else f"{near:,}",
    )
