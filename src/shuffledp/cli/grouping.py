"""Options that say which people share a group, for all commands that shuffle within groups."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shuffledp.cli.options import answer_list, whole_number

if TYPE_CHECKING:
    from shuffledp.core.progress import Progress
    from shuffledp.groups.grouping import Grouping, GroupShuffler, OpenedGroups

Command = TypeVar("Command", bound=Callable[..., Any])


#: The shufflers that keep the order within groups private.
GROUP_SHUFFLERS = ("mallows", "displacement")

# The first is the last in the list that --help prints.
_OPTIONS = (
    click.option(
        "--rank-distance",
        type=click.Choice(["kendall", "hamming", "cayley"]),
        default="kendall",
        show_default=True,
        help="Distance between orders, by which the Mallows model decays. Only kendall keeps "
        "reports near; for many users it gives next to no central amplification.",
    ),
    click.option(
        "--alpha",
        type=float,
        help="Largest change of log-odds by the order within a group: 0 is a uniform shuffle.",
    ),
    click.option(
        "--id",
        "id_column",
        metavar="COLUMN",
        help="Column by which edges or groups name people; by default rows from 0.",
    ),
    click.option(
        "--groups-file",
        type=click.Path(path_type=Path),
        help="Groups listed in a file: columns group and member.",
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
        "--groups-graph",
        type=click.Path(path_type=Path),
        help="Groups by a graph: a file with one edge a row.",
    ),
    click.option(
        "--group-size",
        type=whole_number,
        metavar="G",
        help="Groups of a person and the G - 1 nearest, instead of --radius.",
    ),
    click.option(
        "--radius",
        metavar="R",
        help="People at most this far apart share a group; for haversine a length like 5km.",
    ),
    click.option(
        "--metric",
        type=click.Choice(["euclidean", "haversine", "absolute"]),
        help="Distance between people; by default absolute for one column, else euclidean.",
    ),
    click.option(
        "--groups-by",
        "by",
        type=answer_list,
        metavar="A,B",
        help="Groups by public columns, such as lat,lon or age.",
    ),
)


def grouping_options(command: Command) -> Command:
    """Add the options that say who shares a group; `AskedGroups` takes their values."""
    for option in _OPTIONS:
        command = option(command)
    return command


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
        return Grouping(
            by=self.by or (),
            metric=self.metric,
            radius=self.radius,
            group_size=self.group_size,
            graph=self.groups_graph,
            hops=self.hops,
            groups_file=self.groups_file,
            id_column=self.id_column,
        )

    def shuffler_of(self, opened: "OpenedGroups", name: str) -> "GroupShuffler":
        """Return the shuffler of a name for these groups."""
        return opened.shuffler(self.require_alpha(), name=name, distance=self.rank_distance)

    def open(self, table: Path, *, on_progress: "Progress | None" = None) -> "OpenedGroups":
        """Form the groups of the people in a table."""
        opened = self.grouping().open(table)
        if on_progress is not None:
            on_progress("grouping", opened.num_users, opened.num_users)
        return opened
