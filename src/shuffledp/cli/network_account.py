"""``shuffledp network account``: central epsilon of an exchange along a graph."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import shuffledp as sdp
from shuffledp.cli import console
from shuffledp.cli import options as shared
from shuffledp.cli.options import PATH, network, options, taken
from shuffledp.report.formatting import rounded
from shuffledp.report.wording import gap_text

if TYPE_CHECKING:
    from shuffledp.network.account import NetworkAccount


def _up(value: float | None) -> str:
    """Return an upper bound, rounded up; a dash where there is none."""
    return "-" if value is None else rounded(value, up=True, digits=6)


@network.command(
    name="account",
    epilog="Example: shuffledp network account edges.csv --epsilon0 1 --delta 1e-6 --rounds auto",
)
@click.argument("graph_file", metavar="GRAPH", type=PATH)
@options(
    f"""
    Exchange:
    --rounds T|T,T,...|auto
        Number of rounds, or several for a table; auto: the fewest that come close to a trusted
        shuffler.  [required]
    --within FLOAT  Tolerance of --rounds auto, relative to epsilon.  [default: 0.01]
    {shared.PROTOCOL}
    {shared.LAZY}
    --components [connected|largest]
        Refuse a graph in pieces, or take the largest piece.  [default: connected]
    Reports:
    --epsilon0 FLOAT  Local epsilon of each report, in nats.  [required]
    --delta FLOAT     Central delta, far below 1/users.  [required]
    {shared.REPORT_LAW}
    --dummies LAW  Dummies that each honest user sends for every answer, such as poisson:0.001;
        with --protocol single they do not lower epsilon.
    {shared.DISHONEST}
    Computation:
    --positions [auto|exact|spectral]
        Follow each report exactly, or bound its position by eigenvalues.  [default: auto]
    --processes N  Number of processes that follow reports exactly; by default two threads.
    {shared.JSON}
    """,
)
def account(
    *,
    graph_file: Path,
    epsilon0: float,
    randomizer: str | None,
    processes: int | None,
    **asked: Any,
) -> None:
    """Compute epsilon of reports that users pass on along a graph before they hand them in.

    GRAPH is an edge list: CSV, text with spaces or tabs, or Parquet. Prints a proved upper bound
    that holds for every user.
    """
    from shuffledp.accounting.profiles import named_profile
    from shuffledp.collection.cautions import delta_cautions
    from shuffledp.core.bound import Guarantee
    from shuffledp.network.account import NetworkAccount
    from shuffledp.network.run import local_cautions
    from shuffledp.report.page import rendered_rows

    law = taken(asked, "domain_size", "dimension")
    profile = named_profile(randomizer, epsilon0=epsilon0, **law)
    graph = sdp.network.read_graph(graph_file)
    with (
        console.progress_bar() as on_progress,
        sdp.engines.Processes(processes) as workers,
    ):
        asked["engine"] = None if processes is None else workers.map
        found = sdp.network.account_network(graph, profile, on_progress=on_progress, **asked)
    rows = (found,) if isinstance(found, NetworkAccount) else found.rows
    best = min(rows, key=lambda each: each.epsilon.upper)
    guarantee = Guarantee(epsilon=best.epsilon, delta=best.delta, num_users=best.num_users)
    console.print_warnings(delta_cautions(best.delta, best.num_users))
    console.print_warnings(local_cautions(profile, guarantee))
    if console.print_json({"graph": str(graph_file), "epsilon0": epsilon0, **found.to_json_dict()}):
        return
    if len(rows) == 1:
        gap = gap_text(best.epsilon, "epsilon")
        console.print_facts(rendered_rows("network-account.txt", found=best, gap=gap, graph=graph))
    else:
        console.print_table(_HEADINGS, [_row(each) for each in rows])
    console.print_list("assumptions", rows[-1].epsilon.assumptions)


_HEADINGS = ("rounds", "epsilon", "no smaller than", "trusted shuffler", "positions")


def _row(found: "NetworkAccount") -> tuple[str, ...]:
    """Return the table row of one number of rounds."""
    lower = found.epsilon.lower
    return (
        f"{found.rounds:,}",
        _up(found.epsilon.upper),
        "-" if lower is None else rounded(lower, up=False, digits=6),
        _up(found.uniform_epsilon.upper),
        found.method,
    )
