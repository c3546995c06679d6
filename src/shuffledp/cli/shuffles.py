"""Options of ``--shuffler``: groups, or a network.

The options of groups serve ``run``, ``attack`` and ``learnability``; the others only ``run``.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import shuffledp as sdp
from shuffledp.cli.options import flags_given, taken
from shuffledp.collection.output import REPORTS_FILE
from shuffledp.core.progress import Progress, no_progress

if TYPE_CHECKING:
    from shuffledp.collection.run import ReportSink
    from shuffledp.groups.grouping import Grouping

# The shufflers that keep the order within groups private.
GROUP_SHUFFLERS = ("mallows", "displacement")

# Parameters that only they read.
_OF_GROUPS = {"by", "metric", "radius", "group_size", "groups_graph", "hops", "groups_file"}
_OF_GROUPS |= {"alpha", "rank_distance", "keep"}

_GROUPING = """
    Groups:
    by=--groups-by A,B  Group people by public columns, such as lat,lon or age.
    --metric [euclidean|haversine|absolute]  Distance between people; by default absolute for one
        column, else euclidean. haversine takes latitude and longitude in degrees.
    --radius R  Largest distance to others in a person's group; for haversine such as 900m, 5km or
        3mi.
    --group-size G  Group each person with the G - 1 nearest, instead of by --radius.
    --groups-graph PATH  Group people by a graph: a file with one edge a row.
    --hops H  With --groups-graph: largest number of edges to others in a group.  [default: 1]
    --groups-file PATH  File of groups with columns group and member. Groups may overlap and must
        cover everybody.
    id_column=--id COLUMN  Column with the ids that edges or groups use; by default row numbers from
        0.{on_spark}
    --alpha FLOAT  Ordinal privacy loss, in nats: largest change of the adversary's log-odds by the
        order within a group. 0 shuffles uniformly, inf moves no report.
    --rank-distance [kendall|hamming|cayley]  Distance between orders in the Mallows model. Only
        kendall keeps reports near their users; with many users it hardly lowers epsilon.
        [default: kendall]
    """
GROUPING = _GROUPING.format(on_spark="")
GROUPING_OF_RUN = _GROUPING.format(
    on_spark=" On Spark required, and the same in every run, such as a primary key."
)


def take_groups(options: dict[str, Any]) -> "tuple[Grouping, float, str]":
    """Remove options of `GROUPING` from all; return the grouping, alpha and the rank distance."""
    ways = taken(options, "metric", "radius", "group_size", "hops", "groups_file", "id_column")
    ways |= {"by": options.pop("by") or (), "graph": options.pop("groups_graph")}
    alpha, distance = options.pop("alpha"), options.pop("rank_distance")
    if alpha is None:
        raise click.UsageError(
            "give --alpha, the largest change of log-odds that the order may cause, such as 4"
        )
    if not any(ways[name] for name in ("by", "graph", "groups_file")):
        raise click.UsageError("say who shares a group: --groups-by, --groups-graph, --groups-file")
    return sdp.groups.Grouping(**ways), alpha, distance


SHUFFLER = f"""
    Shuffling:
    --shuffler [{"|".join(("uniform", *GROUP_SHUFFLERS, "network"))}]  Shuffle everybody; within
        groups, by a Mallows model or by noise on places; or through a network.  [default: uniform]
    """
SHUFFLED = """
    Groups:
    --keep A,B  Further public columns to release with the reports.
    Network:
    --graph PATH  File of edges between users, named by --id: connected, without weights, and not
        bipartite unless --lazy is above 0.
    --rounds T|auto  Number of rounds in which each report is passed on; auto (default) is the
        fewest that are proved to bring epsilon within 1% of its limit.
    --protocol [all|single]  At the end users hand in all reports they hold (default), or one drawn
        at random.
    laziness=--lazy X  Probability that a report stays where it is in a round, 0 by default; above 0
        on bipartite graphs. Not a model of users who are offline.
    --dummies LAW  Dummies that each user sends for every answer, such as poisson:0.001 for 0.001 on
        average. Other collections have dummies by --plan.
    """


class Shuffle(NamedTuple):
    """A shuffle ready for the reports of one table."""

    plan: "Callable[..., sdp.Plan]"
    sink: "Callable[[Path, sdp.Plan], ReportSink | None]"


def take_shuffle(
    options: dict[str, Any], table: Path, column: str | None, *, leaves_out: bool, **others: Any
) -> "Callable[[int, Progress | None], Shuffle]":
    """Remove the options of a shuffle from all, and check that they fit the others.

    The others: ``leaves_out`` (some rows are left out), ``save_reports``, ``seed``, and ``ways`` to
    read the table. Returns a function that opens the shuffle for a number of users.
    """
    exchange = taken(options, "graph", "rounds", "protocol", "laziness", "dummies")
    id_column = options["id_column"]
    shuffler, keep = options.pop("shuffler"), options.pop("keep") or ()
    asked = SimpleNamespace(table=table, column=column, id_column=id_column, **exchange, **others)
    if shuffler != "network" and (unread := flags_given(exchange)):
        raise click.UsageError(f"{unread[0]} is for --shuffler network: add it, or leave it out")
    if shuffler in GROUP_SHUFFLERS:
        asked.grouping, asked.alpha, distance = take_groups(options)
        asked.keep, asked.how = keep, {"name": shuffler, "distance": distance}
        uses = {"--groups-by": asked.grouping.by, "--id": (id_column,), "--keep": keep}
        _require_private(column, uses)
        if asked.save_reports or leaves_out:
            raise click.UsageError(
                f"--shuffler {shuffler} writes rows.csv or rows.parquet with every row of the "
                "table, so it takes none of --save-reports, --missing drop and --weight"
            )
        return partial(_grouped, asked)
    if flags_given(_OF_GROUPS):
        raise click.UsageError(
            "groups and their options are for --shuffler mallows or displacement: add "
            "one, or leave them out"
        )
    if shuffler != "network":
        if id_column is not None:
            raise click.UsageError(
                f"--id {id_column} is for edges, a file of groups and --engine spark, and not read "
                "by a uniform shuffle on this machine: leave it out, and one row a person"
            )
        return partial(_uniform, asked)
    if asked.graph is None:
        raise click.UsageError("--shuffler network needs --graph: who passes reports to whom")
    _require_private(column, {"--id": (id_column,)})
    if leaves_out:
        raise click.UsageError(
            "--shuffler network needs a report of every user: no --missing drop, no --weight"
        )
    return partial(_networked, asked)


def _require_private(column: str | None, uses: dict[str, tuple[str | None, ...]]) -> None:
    """Raise if an option names the column of the answers."""
    for option, names in uses.items():
        if column is not None and column in names:
            raise click.UsageError(f"{option} {column} holds the answers: name public columns only")


def _grouped(asked: Any, num_users: int, on_progress: "Progress | None") -> Shuffle:
    """Form the groups and find their shuffler, with a reference order or public places."""
    from shuffledp.groups.shuffling import rows_writer

    report = on_progress or no_progress
    opened = asked.grouping.open(asked.table, **asked.ways)
    report("grouping", opened.num_users, opened.num_users)
    shuffler = opened.shuffler(asked.alpha, **asked.how)
    report("ordering", opened.num_users, opened.num_users)
    kind: Any = sdp.groups.GroupShuffling
    if isinstance(shuffler, sdp.groups.DisplacementShuffler):
        kind = sdp.groups.DisplacementShuffling
    arrangement = kind(shuffler=shuffler)
    public = tuple(dict.fromkeys((*opened.grouping.public_columns, *asked.keep)))

    def sink(folder: Path, plan: "sdp.Plan") -> "ReportSink":
        column = asked.column or "report"
        return rows_writer(
            asked.table, folder, column=column, public=public, setting=plan, **asked.ways
        )

    return Shuffle(partial(sdp.plan, num_users=num_users, shuffling=arrangement), sink)


def _networked(asked: Any, num_users: int, on_progress: "Progress | None") -> Shuffle:
    """Read the graph and compute how fast its walk mixes."""
    from shuffledp.network import run

    graph, laziness = asked.graph, asked.laziness or 0.0
    found = run.read_network(
        graph, asked.table, num_users=num_users, id_column=asked.id_column, **asked.ways
    )
    exchange = run.NetworkPlan(
        name=graph.name,
        mixing=sdp.network.NetworkMixing(found, laziness=laziness, on_progress=on_progress),
        rounds=asked.rounds if isinstance(asked.rounds, int) else None,
        protocol=asked.protocol or "all",
    )
    planned = partial(exchange.setting, dummies=asked.dummies)
    return Shuffle(planned, partial(_reports_sink, asked, None))


def _uniform(asked: Any, num_users: int, _on_progress: object) -> Shuffle:
    """Return the uniform shuffle."""
    planned = partial(sdp.plan, num_users=num_users)
    return Shuffle(planned, partial(_reports_sink, asked, num_users))


def _reports_sink(
    asked: Any, num_users: int | None, folder: Path, plan: "sdp.Plan"
) -> "ReportSink | None":
    """Return a writer of the shuffled reports, if asked for.

    The file states where reports were randomized and, with dummies, the number of users, if given.
    """
    from shuffledp.collection.report_files import reports_writer

    if not asked.save_reports:
        return None
    origin = "table" if asked.seed is None else "simulation"
    told = num_users if plan.dummies else None
    return reports_writer(folder / REPORTS_FILE, plan, collected_by=origin, num_users=told)
