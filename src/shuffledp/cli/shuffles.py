"""What ``--shuffler`` brings with it: groups, or a network, as options of the command line.

The options of groups serve ``run``, ``attack`` and ``learnability``; all else is for ``run``.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from collections.abc import Callable

    from shuffledp.collection.plan import Plan
    from shuffledp.collection.question import Question
    from shuffledp.collection.results import Result
    from shuffledp.collection.run import ReportSink
    from shuffledp.core.progress import Progress
    from shuffledp.groups.arrangement import DisplacementArrangement, GroupArrangement
    from shuffledp.groups.grouping import Grouping, OpenedGroups
    from shuffledp.network.hiding import ReportingProtocol
    from shuffledp.network.run import NetworkPlan
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedGroups:
    """The values of `grouping_options`; ``ways`` is None where no way of forming was named."""

    ways: dict[str, Any] | None
    alpha: float | None
    rank_distance: str

    @classmethod
    def take(cls, options: dict[str, Any]) -> "AskedGroups":
        """Take the options out of a dictionary."""
        ways = taken(options, "metric", "radius", "group_size", "hops", "groups_file", "id_column")
        ways |= {"by": options.pop("by") or (), "graph": options.pop("groups_graph")}
        is_given = any(ways[name] for name in ("by", "graph", "groups_file"))
        found = taken(options, "alpha", "rank_distance")
        return cls(ways=ways if is_given else None, **found)

    def required(self) -> "tuple[Grouping, float]":
        """Return how groups are to be formed, and alpha, which has no default."""
        from shuffledp.groups.grouping import Grouping

        if self.alpha is None:
            raise click.UsageError(
                "give --alpha, the largest change of log-odds that the order may cause, such as 4"
            )
        if self.ways is None:
            raise click.UsageError(
                "say who shares a group: --groups-by COLUMNS with --radius or --group-size, "
                "--groups-graph FILE, or --groups-file FILE"
            )
        return Grouping(**self.ways), self.alpha


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


def take_shuffle(
    options: dict[str, Any], column: str | None, *, missing: str, save_reports: bool
) -> "Callable[..., _GroupedRun | _NetworkRun] | None":
    """Take `shuffler_options` out of a dictionary, and check that reading goes with them.

    Returns what opens the shuffle of a table; None for the uniform shuffle of everybody.
    """
    exchange = taken(options, "graph", "rounds", "protocol", "laziness")
    given = [name for name, value in exchange.items() if value is not None]
    exchange["id_column"] = options["id_column"]
    groups, shuffler = AskedGroups.take(options), options.pop("shuffler")
    keep = options.pop("keep") or ()
    if shuffler != "network" and given:
        option = given[0].replace("laziness", "lazy")
        raise click.UsageError(f"--{option} is for --shuffler network: add it, or leave it out")
    if shuffler in GROUP_SHUFFLERS:
        grouping, alpha = groups.required()
        _require_private(
            column, {"--groups-by": grouping.by, "--id": (grouping.id_column,), "--keep": keep}
        )
        if save_reports or missing == "drop":
            raise click.UsageError(
                f"--shuffler {shuffler} writes rows.csv or rows.parquet with every row of "
                "the table, so it takes neither --save-reports nor --missing drop"
            )
        how = {"name": shuffler, "distance": groups.rank_distance}
        return partial(_GroupedRun.open, grouping, alpha, keep=keep, **how)
    if groups.ways is not None or groups.alpha is not None or keep:
        raise click.UsageError(
            "groups and their options are for --shuffler mallows or displacement: add "
            "one, or leave them out"
        )
    if shuffler != "network":
        return None
    if exchange["graph"] is None:
        raise click.UsageError(
            "--shuffler network needs --graph FILE, which says who passes reports to whom"
        )
    _require_private(column, {"--id": (exchange["id_column"],)})
    if missing == "drop":
        raise click.UsageError(
            "--shuffler network passes on a report of every user of the graph, so it takes no "
            "--missing drop: count such rows with --missing category"
        )
    return partial(_NetworkRun.open, **exchange)


def _require_private(column: str | None, uses: dict[str, tuple[str | None, ...]]) -> None:
    """Raise if an option names the column of the answers."""
    for option, names in uses.items():
        if column is not None and column in names:
            raise click.UsageError(
                f"{option} {column}: that column holds the answers, which are private; name "
                "public columns only"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupedRun:
    """Groups and shuffler of one table, ready for its reports."""

    table: Path
    num_users: int
    keep: tuple[str, ...]
    alpha: float
    opened: "OpenedGroups"
    arrangement: "GroupArrangement | DisplacementArrangement"

    @classmethod
    def open(
        cls,
        grouping: "Grouping",
        alpha: float,
        table: Path,
        *,
        keep: tuple[str, ...],
        num_users: int,
        on_progress: "Progress | None",
        **how: str,
    ) -> "_GroupedRun":
        """Form the groups and find their shuffler, with a reference order or public places."""
        from shuffledp.core.progress import no_progress
        from shuffledp.groups.arrangement import DisplacementArrangement, GroupArrangement
        from shuffledp.groups.displacement import DisplacementShuffler

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
        return cls(
            table=table,
            num_users=num_users,
            keep=keep,
            alpha=alpha,
            opened=opened,
            arrangement=arrangement,
        )

    def setting(self, question: "Question", **asked: Any) -> "Plan":
        """Return the randomizer for a question, what it guarantees, and the shuffle."""
        from shuffledp.collection.plan import plan as make_plan

        return make_plan(question, num_users=self.num_users, shuffling=self.arrangement, **asked)

    def sink(
        self, folder: Path, setting: "Plan", column: str | None, *, save_reports: bool
    ) -> "ReportSink":
        """Return what stores every row with its shuffled report."""
        from shuffledp.groups.run import rows_writer

        del save_reports  # rows are written whether or not it was asked for
        public = dict.fromkeys((*self.opened.grouping.public_columns, *self.keep))
        return rows_writer(
            self.table, folder, column=column or "report", public=tuple(public), setting=setting
        )

    def with_facts(
        self, result: "Result", seed: int | None, on_progress: "Progress | None"
    ) -> "Result":
        """Return the result with all that its report says about the groups."""
        from shuffledp.collection.results import amplification_cautions
        from shuffledp.core.entropy import Entropy
        from shuffledp.groups.run import group_facts

        del on_progress  # quick
        facts = group_facts(
            self.opened,
            self.arrangement.shuffler,
            self.alpha,
            profile=result.randomizer.profile,
            # A stream that neither the randomizer nor the shuffler of this run draws from.
            entropy=Entropy.choose(seed).spawn().spawn().spawn(),
        )
        warnings = (
            *result.warnings,
            *self.opened.groups.cautions(),
            *amplification_cautions(result.guarantee, result.randomizer.profile.epsilon0, facts),
        )
        return replace(result, groups=facts, warnings=warnings)


@dataclass(frozen=True, slots=True, eq=False)
class _NetworkRun:
    """The network of one table, ready for its reports."""

    plan: "NetworkPlan"
    handed_in: "list[NetworkBatch]" = field(default_factory=list)

    @classmethod
    def open(
        cls,
        table: Path,
        *,
        graph: Path,
        rounds: "int | str | None",
        protocol: "ReportingProtocol | None",
        laziness: float | None,
        id_column: str | None,
        num_users: int,
        on_progress: "Progress | None",
    ) -> "_NetworkRun":
        """Read the graph and find out how its walk mixes."""
        from shuffledp.network.mixing import NetworkMixing
        from shuffledp.network.run import NetworkPlan, read_network

        found = read_network(graph, table, num_users=num_users, id_column=id_column)
        mixing = NetworkMixing(found, laziness=laziness or 0.0, on_progress=on_progress)
        return cls(
            NetworkPlan(
                name=graph.name,
                mixing=mixing,
                rounds=rounds if isinstance(rounds, int) else None,
                protocol=protocol or "all",
            )
        )

    def setting(self, question: "Question", **asked: Any) -> "Plan":
        """Return the randomizer for a question, and the exchange of its reports."""
        return self.plan.setting(question, on_batch=self.handed_in.append, **asked)

    def sink(
        self, folder: Path, setting: "Plan", column: str | None, *, save_reports: bool
    ) -> "ReportSink | None":
        """Return what stores reports beside their holders, if they are to be saved."""
        from shuffledp.collection.output import REPORTS_FILE
        from shuffledp.network.run import holders_writer

        del column  # reports stand beside holders, not in their users' rows
        path = folder / REPORTS_FILE
        graph = self.plan.mixing.graph
        return holders_writer(path, setting, graph, self.handed_in) if save_reports else None

    def with_facts(
        self, result: "Result", seed: int | None, on_progress: "Progress | None"
    ) -> "Result":
        """Return the result with all that its report says about the exchange."""
        from shuffledp.network.run import network_cautions, network_facts

        del seed  # nothing is drawn
        facts = network_facts(self.plan, result, self.handed_in[0], on_progress=on_progress)
        return replace(result, network=facts, warnings=(*result.warnings, *network_cautions(facts)))
