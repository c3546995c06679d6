"""What ``--shuffler`` brings with it: groups, or a network, as options of the command line.

The options of groups serve ``run``, ``attack`` and ``learnability``; all else is for ``run``.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from shuffledp.cli.options import (
    PATH,
    added,
    answer_list,
    rounds_or_auto,
    taken,
    whole_number,
)

if TYPE_CHECKING:
    from shuffledp.collection.plan import Plan
    from shuffledp.collection.results import Result
    from shuffledp.collection.run import ReportSink
    from shuffledp.core.progress import Progress
    from shuffledp.groups.grouping import Grouping
    from shuffledp.network.shuffler import NetworkBatch

#: The shufflers that keep the order within groups private.
GROUP_SHUFFLERS = ("mallows", "displacement")

grouping_options = added(
    (
        click.option(
            "--groups-by",
            "by",
            type=answer_list,
            metavar="A,B",
            help="Groups by public columns, such as lat,lon or age.",
        ),
        click.option(
            "--metric",
            type=click.Choice(["euclidean", "haversine", "absolute"]),
            help="Distance between people; by default absolute for one column, else euclidean.",
        ),
        click.option(
            "--radius",
            metavar="R",
            help="People at most this far apart share a group; for haversine a length like 5km.",
        ),
        click.option(
            "--group-size",
            type=whole_number,
            metavar="G",
            help="Groups of a person and the G - 1 nearest, instead of --radius.",
        ),
        click.option(
            "--groups-graph", type=PATH, help="Groups by a graph: a file with one edge a row."
        ),
        click.option(
            "--hops",
            type=whole_number,
            default=1,
            show_default=True,
            metavar="H",
            help="For --groups-graph: people so many edges apart share a group.",
        ),
        click.option(
            "--groups-file", type=PATH, help="Groups listed in a file: columns group and member."
        ),
        click.option(
            "--id",
            "id_column",
            metavar="COLUMN",
            help="Column by which edges or groups name people; by default rows from 0.",
        ),
        click.option(
            "--alpha",
            type=float,
            help="Largest change of log-odds by the order within a group: 0 is a uniform shuffle.",
        ),
        click.option(
            "--rank-distance",
            type=click.Choice(["kendall", "hamming", "cayley"]),
            default="kendall",
            show_default=True,
            help="Distance between orders, by which the Mallows model decays. Only kendall keeps "
            "reports near; for many users it gives next to no central amplification.",
        ),
    )
)


def take_groups(options: dict[str, Any]) -> tuple[dict[str, Any] | None, float | None, str]:
    """Take `grouping_options` out of a dictionary: how groups are formed, alpha, rank distance.

    The first is None where no way of forming was named.
    """
    ways = taken(options, "metric", "radius", "group_size", "hops", "groups_file", "id_column")
    ways |= {"by": options.pop("by") or (), "graph": options.pop("groups_graph")}
    is_given = any(ways[name] for name in ("by", "graph", "groups_file"))
    return ways if is_given else None, options.pop("alpha"), options.pop("rank_distance")


def required_groups(ways: dict[str, Any] | None, alpha: float | None) -> "tuple[Grouping, float]":
    """Return how groups are to be formed, and alpha, which has no default."""
    from shuffledp.groups.grouping import Grouping

    if alpha is None:
        raise click.UsageError(
            "give --alpha, the largest change of log-odds that the order may cause, such as 4"
        )
    if ways is None:
        raise click.UsageError(
            "say who shares a group: --groups-by COLUMNS with --radius or --group-size, "
            "--groups-graph FILE, or --groups-file FILE"
        )
    return Grouping(**ways), alpha


shuffler_options = added(
    (
        click.option(
            "--shuffler",
            type=click.Choice(["uniform", *GROUP_SHUFFLERS, "network"]),
            default="uniform",
            show_default=True,
            help="Shuffle everybody; within groups, by a Mallows model or by noise on places; or "
            "through a network.",
        ),
        grouping_options,
        click.option(
            "--keep",
            type=answer_list,
            metavar="A,B",
            help="More public columns to release beside the shuffled answers.",
        ),
        click.option(
            "--graph",
            type=PATH,
            help="Who passes reports to whom: a file with one edge a row; --id names its users.",
        ),
        click.option(
            "--rounds",
            type=rounds_or_auto,
            metavar="T|auto",
            help="How often reports are passed on; auto (default): until epsilon is within 1% of "
            "its limit.",
        ),
        click.option(
            "--protocol",
            type=click.Choice(["all", "single"]),
            help="Holders hand in all reports they hold (default), or one of them.",
        ),
        click.option(
            "--lazy",
            "laziness",
            type=float,
            metavar="X",
            help="Chance that a report rests in a round, by a coin of its own; by default 0.",
        ),
    )
)


class Shuffle(NamedTuple):
    """A shuffle ready for the reports of one table: what it makes of a run."""

    plan: "Callable[..., Plan]"
    sink: "Callable[[Path, Plan], ReportSink | None]"
    with_facts: "Callable[[Result], Result]"


def take_shuffle(
    options: dict[str, Any],
    table: Path,
    column: str | None,
    reading: dict[str, Any],
    *,
    save_reports: bool,
    seed: int | None,
) -> "Callable[[int, Progress | None], Shuffle]":
    """Take `shuffler_options` out of a dictionary, and check that reading goes with them.

    Returns what opens the shuffle for a number of users.
    """
    is_dropping = reading["missing"] == "drop"
    exchange = taken(options, "graph", "rounds", "protocol", "laziness")
    given = [name for name, value in exchange.items() if value is not None]
    id_column = options["id_column"]
    ways, alpha, distance = take_groups(options)
    shuffler, keep = options.pop("shuffler"), options.pop("keep") or ()
    if shuffler != "network" and given:
        option = given[0].replace("laziness", "lazy")
        raise click.UsageError(f"--{option} is for --shuffler network: add it, or leave it out")
    if shuffler in GROUP_SHUFFLERS:
        grouping, alpha = required_groups(ways, alpha)
        _require_private(column, {"--groups-by": grouping.by, "--id": (id_column,), "--keep": keep})
        if save_reports or is_dropping:
            raise click.UsageError(
                f"--shuffler {shuffler} writes rows.csv or rows.parquet with every row of "
                "the table, so it takes neither --save-reports nor --missing drop"
            )
        how = {"name": shuffler, "distance": distance}
        return partial(_grouped, table, column, grouping, alpha, keep=keep, seed=seed, how=how)
    if ways is not None or alpha is not None or keep:
        raise click.UsageError(
            "groups and their options are for --shuffler mallows or displacement: add "
            "one, or leave them out"
        )
    if shuffler != "network":
        return partial(_uniform, save_reports=save_reports)
    if exchange["graph"] is None:
        raise click.UsageError(
            "--shuffler network needs --graph FILE, which says who passes reports to whom"
        )
    _require_private(column, {"--id": (id_column,)})
    if is_dropping:
        raise click.UsageError(
            "--shuffler network passes on a report of every user of the graph, so it takes no "
            "--missing drop: count such rows with --missing category"
        )
    return partial(_networked, table, id_column, save_reports=save_reports, **exchange)


def _require_private(column: str | None, uses: dict[str, tuple[str | None, ...]]) -> None:
    """Raise if an option names the column of the answers."""
    for option, names in uses.items():
        if column is not None and column in names:
            raise click.UsageError(
                f"{option} {column}: that column holds the answers, which are private; name "
                "public columns only"
            )


def _grouped(  # noqa: PLR0917  # those of the table, then those of the run
    table: Path,
    column: str | None,
    grouping: "Grouping",
    alpha: float,
    num_users: int,
    on_progress: "Progress | None",
    *,
    keep: tuple[str, ...],
    seed: int | None,
    how: dict[str, str],
) -> Shuffle:
    """Form the groups and find their shuffler, with a reference order or public places."""
    from shuffledp.collection.plan import plan as make_plan
    from shuffledp.collection.results import amplification_cautions
    from shuffledp.core.entropy import Entropy
    from shuffledp.core.progress import no_progress
    from shuffledp.groups.arrangement import DisplacementArrangement, GroupArrangement
    from shuffledp.groups.displacement import DisplacementShuffler
    from shuffledp.groups.run import group_facts, rows_writer

    report = on_progress or no_progress
    opened = grouping.open(table)
    report("grouping", opened.num_users, opened.num_users)
    shuffler = opened.shuffler(alpha, **how)
    report("ordering", opened.num_users, opened.num_users)
    arrangement = (
        DisplacementArrangement(shuffler=shuffler)
        if isinstance(shuffler, DisplacementShuffler)
        else GroupArrangement(shuffler=shuffler)
    )
    public = tuple(dict.fromkeys((*opened.grouping.public_columns, *keep)))

    def with_facts(result: "Result") -> "Result":
        law = result.randomizer.profile
        # A stream that neither the randomizer nor the shuffler of this run draws from.
        entropy = Entropy.choose(seed).spawn().spawn().spawn()
        facts = group_facts(opened, shuffler, alpha, profile=law, entropy=entropy)
        warnings = (
            *result.warnings,
            *opened.groups.cautions(),
            *amplification_cautions(result.guarantee, law.epsilon0, facts),
        )
        return replace(result, groups=facts, warnings=warnings)

    return Shuffle(
        plan=partial(make_plan, num_users=num_users, shuffling=arrangement),
        sink=lambda folder, plan: rows_writer(
            table, folder, column=column or "report", public=public, setting=plan
        ),
        with_facts=with_facts,
    )


def _networked(
    table: Path,
    id_column: str | None,
    num_users: int,
    on_progress: "Progress | None",
    *,
    save_reports: bool,
    graph: Path,
    rounds: int | str | None,
    protocol: Any,
    laziness: float | None,
) -> Shuffle:
    """Read the graph and find out how its walk mixes."""
    from shuffledp.collection.output import REPORTS_FILE
    from shuffledp.network.mixing import NetworkMixing
    from shuffledp.network.run import (
        NetworkPlan,
        holders_writer,
        network_cautions,
        network_facts,
        read_network,
    )

    found = read_network(graph, table, num_users=num_users, id_column=id_column)
    exchange = NetworkPlan(
        name=graph.name,
        mixing=NetworkMixing(found, laziness=laziness or 0.0, on_progress=on_progress),
        rounds=rounds if isinstance(rounds, int) else None,
        protocol=protocol or "all",
    )
    handed_in: list[NetworkBatch] = []

    def sink(folder: Path, plan: "Plan") -> "ReportSink | None":
        if not save_reports:
            return None
        return holders_writer(folder / REPORTS_FILE, plan, exchange.mixing.graph, handed_in)

    def with_facts(result: "Result") -> "Result":
        facts = network_facts(exchange, result, handed_in[0], on_progress=on_progress)
        return replace(result, network=facts, warnings=(*result.warnings, *network_cautions(facts)))

    return Shuffle(
        plan=partial(exchange.setting, on_batch=handed_in.append),
        sink=sink,
        with_facts=with_facts,
    )


def _uniform(num_users: int, _on_progress: object, *, save_reports: bool) -> Shuffle:
    """Return the shuffle of everybody."""
    from shuffledp.collection.output import REPORTS_FILE
    from shuffledp.collection.plan import plan as make_plan
    from shuffledp.collection.report_files import reports_writer

    def sink(folder: Path, plan: "Plan") -> "ReportSink | None":
        return reports_writer(folder / REPORTS_FILE, plan) if save_reports else None

    return Shuffle(
        plan=partial(make_plan, num_users=num_users), sink=sink, with_facts=lambda result: result
    )
