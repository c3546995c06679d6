"""What ``--shuffler`` brings with it: groups, or a network, as options of the command line.

The options of groups serve ``run``, ``attack`` and ``learnability``; all else is for ``run``.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from shuffledp.cli.options import PATH, added, answer_list, whole_number

if TYPE_CHECKING:
    from shuffledp.collection.plan import Plan
    from shuffledp.collection.question import Question
    from shuffledp.collection.results import Result
    from shuffledp.collection.run import ReportSink
    from shuffledp.core.progress import Progress
    from shuffledp.groups.arrangement import DisplacementArrangement, GroupArrangement
    from shuffledp.groups.grouping import Grouping, GroupShuffler, OpenedGroups
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
            type=click.Choice(["kendall", "hamming"]),
            default="kendall",
            show_default=True,
            help="Distance between orders, by which the Mallows model decays. Only kendall keeps "
            "reports near; for many users it gives next to no central amplification.",
        ),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedGroups:
    """The values of `grouping_options`."""

    by: tuple[str, ...] | None
    metric: str | None
    radius: str | None
    group_size: int | None
    groups_graph: Path | None
    hops: int
    groups_file: Path | None
    id_column: str | None
    alpha: float | None
    rank_distance: str

    @classmethod
    def take(cls, options: dict[str, Any]) -> "AskedGroups":
        """Take the options out of a dictionary."""
        return cls(**{name: options.pop(name) for name in cls.__dataclass_fields__})

    @property
    def are_given(self) -> bool:
        """Whether any way of forming groups was named."""
        return bool(self.by) or self.groups_graph is not None or self.groups_file is not None

    def require_alpha(self) -> float:
        """Return alpha, which has no default."""
        if self.alpha is None:
            raise click.UsageError(
                "give --alpha, the largest change of log-odds that the order may cause, such as 4"
            )
        return self.alpha

    def grouping(self) -> "Grouping":
        """Return how groups are to be formed."""
        from shuffledp.groups.grouping import Grouping

        if not self.are_given:
            raise click.UsageError(
                "say who shares a group: --groups-by COLUMNS with --radius or --group-size, "
                "--groups-graph FILE, or --groups-file FILE"
            )
        same = ("metric", "radius", "group_size", "hops", "groups_file", "id_column")
        options: dict[str, Any] = {name: getattr(self, name) for name in same}
        return Grouping(by=self.by or (), graph=self.groups_graph, **options)

    def shuffler_of(self, opened: "OpenedGroups", name: str) -> "GroupShuffler":
        """Return the shuffler of a name for these groups."""
        return opened.shuffler(self.require_alpha(), name=name, distance=self.rank_distance)

    def open(self, table: Path, *, on_progress: "Progress | None" = None) -> "OpenedGroups":
        """Form the groups of the people in a table."""
        opened = self.grouping().open(table)
        if on_progress is not None:
            on_progress("grouping", opened.num_users, opened.num_users)
        return opened


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


def take_shuffle(options: dict[str, Any]) -> "_GroupedRun | _NetworkRun | None":
    """Take `shuffler_options` out of a dictionary; None for the uniform shuffle of everybody."""
    network = _NetworkRun.take(options)
    grouped = _GroupedRun.take(options)
    return network or grouped


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupedRun:
    """A shuffle within groups, as asked for."""

    shuffler: str
    groups: AskedGroups
    keep: tuple[str, ...]

    @classmethod
    def take(cls, options: dict[str, Any]) -> "_GroupedRun | None":
        """Take the options out of a dictionary; None for a shuffle without groups."""
        groups = AskedGroups.take(options)
        shuffler, keep = options.pop("shuffler"), options.pop("keep") or ()
        if shuffler not in GROUP_SHUFFLERS:
            if groups.are_given or groups.alpha is not None or keep:
                raise click.UsageError(
                    "groups and their options are for --shuffler mallows or displacement: add "
                    "one, or leave them out"
                )
            return None
        groups.require_alpha()
        groups.grouping()
        return cls(shuffler=shuffler, groups=groups, keep=keep)

    def require_fitting(self, column: str | None, *, missing: str, save_reports: bool) -> None:
        """Raise unless reading and writing go with it, and answers are used for nothing else."""
        uses = {
            "--groups-by": self.groups.by or (),
            "--id": (self.groups.id_column,),
            "--keep": self.keep,
        }
        for option, names in uses.items():
            if column is not None and column in names:
                raise click.UsageError(
                    f"{option} {column}: that column holds the answers, which are private; name "
                    "public columns only"
                )
        if save_reports or missing == "drop":
            raise click.UsageError(
                f"--shuffler {self.shuffler} writes rows.csv or rows.parquet with every row of "
                "the table, so it takes neither --save-reports nor --missing drop"
            )

    def open(
        self, table: Path, *, num_users: int, on_progress: "Progress | None"
    ) -> "_PreparedGroups":
        """Form the groups and find their shuffler, with a reference order or public places."""
        from shuffledp.groups.arrangement import DisplacementArrangement, GroupArrangement
        from shuffledp.groups.displacement import DisplacementShuffler

        opened = self.groups.open(table, on_progress=on_progress)
        shuffler = self.groups.shuffler_of(opened, self.shuffler)
        if on_progress is not None:
            on_progress("ordering", opened.num_users, opened.num_users)
        arrangement = (
            DisplacementArrangement(shuffler=shuffler)
            if isinstance(shuffler, DisplacementShuffler)
            else GroupArrangement(shuffler=shuffler)
        )
        return _PreparedGroups(
            asked=self, table=table, num_users=num_users, opened=opened, arrangement=arrangement
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PreparedGroups:
    """Groups and shuffler of one table, ready for its reports."""

    asked: _GroupedRun
    table: Path
    num_users: int
    opened: "OpenedGroups"
    arrangement: "GroupArrangement | DisplacementArrangement"

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
        public = dict.fromkeys((*self.opened.grouping.public_columns, *self.asked.keep))
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
            self.asked.groups.require_alpha(),
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


def rounds_or_auto(text: str) -> int | None:
    """Return a number of rounds; None where it is to be chosen."""
    if text == "auto":
        return None
    rounds = whole_number(text)
    if rounds < 0:
        raise click.BadParameter(f"{text!r} is below 0; write a number of rounds, or auto")
    return rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class _NetworkRun:
    """A shuffle through a network, as asked for."""

    graph: Path
    rounds: int | None
    protocol: Literal["all", "single"]
    laziness: float
    id_column: str | None

    @classmethod
    def take(cls, options: dict[str, Any]) -> "_NetworkRun | None":
        """Take the options out of a dictionary; None for other shufflers."""
        values = {name: options.pop(name) for name in ("graph", "rounds", "protocol", "laziness")}
        given = [name for name, value in values.items() if value is not None]
        if options["shuffler"] != "network":
            if given:
                option = given[0].replace("laziness", "lazy")
                raise click.UsageError(
                    f"--{option} is for --shuffler network: add it, or leave it out"
                )
            return None
        if values["graph"] is None:
            raise click.UsageError(
                "--shuffler network needs --graph FILE, which says who passes reports to whom"
            )
        return cls(
            graph=values["graph"],
            rounds=rounds_or_auto(values["rounds"] or "auto"),
            protocol=values["protocol"] or "all",
            laziness=values["laziness"] or 0.0,
            id_column=options["id_column"],
        )

    def require_fitting(self, column: str | None, *, missing: str, save_reports: bool) -> None:
        """Raise unless reading goes with it, and answers are used for nothing else."""
        del save_reports  # either will do
        if column is not None and column == self.id_column:
            raise click.UsageError(
                f"--id {column}: that column holds the answers, which are private; name a public "
                "column"
            )
        if missing == "drop":
            raise click.UsageError(
                "--shuffler network passes on a report of every user of the graph, so it takes no "
                "--missing drop: count such rows with --missing category"
            )

    def open(
        self, table: Path, *, num_users: int, on_progress: "Progress | None"
    ) -> "_PreparedNetwork":
        """Read the graph and find out how its walk mixes."""
        from shuffledp.network.mixing import NetworkMixing
        from shuffledp.network.run import NetworkPlan, read_network

        graph = read_network(self.graph, table, num_users=num_users, id_column=self.id_column)
        mixing = NetworkMixing(graph, laziness=self.laziness, on_progress=on_progress)
        return _PreparedNetwork(
            plan=NetworkPlan(
                name=self.graph.name, mixing=mixing, rounds=self.rounds, protocol=self.protocol
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PreparedNetwork:
    """The network of one table, ready for its reports."""

    plan: "NetworkPlan"
    handed_in: "list[NetworkBatch]" = field(default_factory=list)

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
