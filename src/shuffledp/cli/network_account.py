"""``shuffledp network account`` and ``curve``: how private an exchange along a graph is."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import shuffledp as sdp
from shuffledp import report
from shuffledp.cli import console
from shuffledp.cli import options as shared
from shuffledp.cli.options import PATH, network, options, taken, whole_number
from shuffledp.report.formatting import counted, given, rounded
from shuffledp.report.wording import gap_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shuffledp.core.progress import Progress
    from shuffledp.network.account import NetworkAccount, NetworkCurve


def _up(value: float | None, digits: int = 6) -> str:
    """Return an upper bound, rounded up; a dash where there is none."""
    return "-" if value is None else rounded(value, up=True, digits=digits)


@network.command(
    name="account",
    epilog="Example: shuffledp network account edges.csv --epsilon0 1 --delta 1e-6 --rounds auto",
)
@click.argument("graph_file", metavar="GRAPH", type=PATH)
@options(
    f"""
    --epsilon0 FLOAT  Local privacy loss, in nats.  [required]
    --delta FLOAT     Failure probability, far below 1/users.  [required]
    --rounds T|auto
        Rounds of the exchange; auto: the fewest that come near a trusted shuffler.  [required]
    {shared.PROTOCOL}
    {shared.LAZY}
    --within FLOAT    For --rounds auto: how near, relative to epsilon.  [default: 0.01]
    --positions [auto|exact|spectral]
        Follow all reports exactly, or bound where they are by eigenvalues.  [default: auto]
    --components [connected|largest]
        A graph in pieces: refuse it, or take the largest.  [default: connected]
    {shared.DISHONEST}
    {shared.USERS}
    --randomizer NAME  As for `shuffledp account`; by default any.
    {shared.K}
    {shared.DIMENSION}
    {shared.JSON}
    """,
)
def account(*, graph_file: Path, epsilon0: float, randomizer: str | None, **asked: Any) -> None:
    """Bound the privacy of reports that walk along a graph before they are handed in.

    GRAPH is an edge list: CSV, text with spaces or tabs, or Parquet. The upper bound holds for
    every user and is proved.
    """
    from shuffledp.accounting.profiles import named_profile
    from shuffledp.collection.cautions import delta_cautions
    from shuffledp.core.guarantee import Guarantee
    from shuffledp.network.run import local_cautions

    law = taken(asked, "domain_size", "dimension")
    profile = named_profile(randomizer, epsilon0=epsilon0, **law)
    graph = sdp.network.read_graph(graph_file)
    with console.progress_bar() as on_progress:
        found = sdp.network.account_network(graph, profile, on_progress=on_progress, **asked)
    guarantee = Guarantee(epsilon=found.epsilon, delta=found.delta, num_users=found.num_users)
    console.print_warnings(delta_cautions(found.delta, found.num_users))
    console.print_warnings(local_cautions(profile, guarantee))
    if console.print_json({"graph": str(graph_file), "epsilon0": epsilon0, **found.to_json_dict()}):
        return
    dropped = [
        (graph.num_self_loops, "edges from a user to themself"),
        (graph.num_duplicates, "edges given twice"),
    ]
    left_out = ", ".join(f"{number:,} {what}" for number, what in dropped if number)
    console.print_facts(account_facts(found, left_out))
    console.print_list("assumptions", found.epsilon.assumptions)


def account_facts(found: "NetworkAccount", left_out: str = "") -> list[tuple[str, str]]:
    """Return the proved upper bound first, then what it is compared with, then the graph."""
    bound, held = found.epsilon, "every report" if found.protocol == "all" else "one report"
    published = "says nothing here"
    if found.published_epsilon is not None:
        published = _up(found.published_epsilon)
    pieces = counted(found.num_components, "component")
    shape = "bipartite" if found.is_bipartite else "not bipartite"
    shape += ", regular" if found.is_regular else ""
    lazy = f", lazy {found.laziness:g}" if found.laziness else ""
    most = None
    if found.rounds_for_most is not None:
        most = f"{found.rounds_for_most:,} rounds are enough for 99 % of the users"
    facts = [
        ("epsilon", f"{_up(bound.upper)} (upper bound, for every user)"),
        *(
            (f"{100.0 * share:.3g} % of users", f"{_up(epsilon)} (upper bound)")
            for share, epsilon in reversed(found.epsilon_of_shares)
        ),
        ("gap", gap_text(bound, "epsilon")),
        ("delta", given(found.delta)),
        ("trusted shuffler", _up(found.uniform_epsilon.upper)),
        ("published", f"{published} ({found.published_source})"),
        ("rounds", f"{found.rounds:,} ({found.protocol}: {held} held{lazy})"),
        ("for 99 %", most),
        ("worst user", found.worst_user),
        ("method", f"{bound.method}; positions {found.method}"),
        ("source", bound.source),
        ("graph", f"{found.num_users:,} users, {found.num_edges:,} edges, {pieces}, {shape}"),
        ("left out", left_out or None),
        ("Gamma", f"{found.irregularity:.4f}"),
        ("spectral gap", f"{found.spectral_gap:.6f}"),
        ("separation", f"{found.separation:.3g} after {found.rounds:,} rounds"),
        ("rounds to mix", f"{found.rounds_to_mix:,} until eigenvalues show separation < 0.01"),
    ]
    return [(name, text) for name, text in facts if text is not None]


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


@network.command(
    epilog="Example: shuffledp network curve friends.csv --epsilon0 1 --delta 1e-6 --out curves"
)
@click.argument("graphs", nargs=-1, type=PATH, metavar="[GRAPH]...")
@options(
    f"""
    --epsilon0 FLOAT   Local privacy loss of each report, in nats.  [required]
    --delta FLOAT      Central failure probability.  [required]
    --rounds LIST
        Numbers and ranges, such as 1-20,50,100; 30 values of a long range.  [default: 1-100]
    --regular K,K,...  Also random graphs in which everybody has K neighbours.  [=]
    --num-users N      Users of the --regular graphs.  [default: 10000]
    {shared.PROTOCOL}
    {shared.LAZY}
    {shared.USERS}
    --seed N           Of the --regular graphs.  [default: 1]
    --out FOLDER       Folder for network-curve.html.  [required]
    {shared.JSON}
    """,
    rounds=round_numbers,
)
def curve(
    *, graphs: tuple[Path, ...], epsilon0: float, out: Path, laziness: float, **asked: Any
) -> None:
    """Draw epsilon against rounds, for graphs from files and k-regular ones.

    Ours, the published theorem in its corrected form, and the level of a trusted uniform shuffler
    on the same axes. Of a file, its largest component is taken.
    """
    from shuffledp.collection.output import writing
    from shuffledp.network.account import network_curve
    from shuffledp.report.charts import network_page

    random = taken(asked, "regular", "num_users", "seed")
    if not graphs and not random["regular"]:
        raise click.UsageError("give an edge list, or --regular 10 for a random regular graph")
    profile = sdp.LocalProfile(epsilon0=epsilon0)
    with console.progress_bar() as progress:
        found = []
        for name, graph in _named_graphs(graphs, progress, **random):
            mixing = sdp.network.NetworkMixing(graph, laziness=laziness, on_progress=progress)
            one = network_curve(mixing, profile, name=name, on_progress=progress, **asked)
            found.append(one)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    page = report.write_report(network_page(found), out / "network-curve.html")
    if console.print_json({"page": str(page), "curves": [each.to_json_dict() for each in found]}):
        return
    console.print_table(_HEADINGS, [_row(each) for each in found])
    console.print_facts([("figure", str(page))])


def _named_graphs(
    paths: tuple[Path, ...],
    progress: "Progress | None",
    *,
    regular: tuple[int, ...],
    num_users: int,
    seed: int,
) -> "Iterator[tuple[str, sdp.network.Graph]]":
    """Yield one graph after the other, so that only one is in memory."""
    from shuffledp.network.graph import random_regular_graph

    for path in paths:
        if progress is not None:
            progress(f"reading {path.name}", 0, None)
        yield path.stem, sdp.network.read_graph(path).largest_component()[0]
    root = sdp.Entropy.from_seed(seed)
    for degree in regular:
        yield f"{degree}-regular", random_regular_graph(num_users, degree, root.spawn())


_HEADINGS = ("graph", "users", "rounds", "epsilon", "published", "uniform", "within 1% after")


def _row(found: "NetworkCurve") -> tuple[str, ...]:
    """Return the last point of a curve, and when it comes close to a uniform shuffle."""
    near = found.rounds_within(0.01)
    return (
        found.name,
        f"{found.num_users:,}",
        f"{found.rounds[-1]:,}",
        *(_up(each, 5) for each in (found.epsilon[-1], found.published[-1], found.uniform_epsilon)),
        "-" if near is None else f"{near:,}",
    )
