"""What a shuffle within groups in ``shuffledp run`` does besides: released rows, facts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shuffledp.cli.grouping import GROUP_SHUFFLERS, AskedGroups, grouping_options
from shuffledp.cli.options import answer_list

if TYPE_CHECKING:
    from shuffledp.collection.results import Result
    from shuffledp.core.progress import Progress
    from shuffledp.groups.arrangement import DisplacementArrangement, GroupArrangement
    from shuffledp.groups.grouping import GroupShuffler, OpenedGroups

Command = TypeVar("Command", bound=Callable[..., Any])


def grouped_run_options(command: Command) -> Command:
    """Add the options of a shuffle within groups; `GroupedRun` takes their values."""
    for option in (
        click.option(
            "--subsets",
            "subset_column",
            metavar="COLUMN",
            help="Say how much of each value of this public column stays learnable.",
        ),
        click.option(
            "--compare",
            multiple=True,
            metavar="SIZE",
            help="Also give alpha for another radius, hops, group size or file of groups.",
        ),
        click.option(
            "--keep",
            type=answer_list,
            metavar="A,B",
            help="More public columns to release beside the shuffled answers.",
        ),
        grouping_options,
        click.option(
            "--shuffler",
            type=click.Choice(["uniform", *GROUP_SHUFFLERS, "network"]),
            default="uniform",
            show_default=True,
            help="Shuffle everybody; within groups, by a Mallows model or by noise on places; or "
            "through a network.",
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRun:
    """The values of `grouped_run_options` for a shuffle within groups."""

    shuffler: str
    groups: AskedGroups
    keep: tuple[str, ...]
    compare: tuple[str, ...]
    subset_column: str | None

    @classmethod
    def take(cls, options: dict[str, Any]) -> "GroupedRun | None":
        """Take the options out of a dictionary; None for a shuffle without groups."""
        shuffler = options.pop("shuffler")
        groups = AskedGroups.take(options)
        keep, compare = options.pop("keep") or (), options.pop("compare")
        subset_column = options.pop("subset_column")
        if shuffler not in GROUP_SHUFFLERS:
            if groups.are_given or groups.alpha is not None or keep or compare or subset_column:
                raise click.UsageError(
                    "groups and their options are for --shuffler mallows or displacement: add "
                    "one, or leave them out"
                )
            return None
        groups.require_alpha()
        groups.grouping()
        return cls(
            shuffler=shuffler,
            groups=groups,
            keep=keep,
            compare=compare,
            subset_column=subset_column,
        )

    def require_public(self, column: str | None) -> None:
        """Raise unless the column of answers is used for nothing but the answers."""
        uses = {
            "--groups-by": self.groups.by or (),
            "--id": (self.groups.id_column,),
            "--keep": self.keep,
            "--subsets": (self.subset_column,),
        }
        for option, names in uses.items():
            if column is not None and column in names:
                raise click.UsageError(
                    f"{option} {column}: that column holds the answers, which are private; name "
                    "public columns only"
                )

    def open(self, table: Path, on_progress: "Progress | None") -> "PreparedGroups":
        """Form the groups and find their shuffler, with a reference order or public places."""
        opened = self.groups.open(table, on_progress=on_progress)
        arrangement = group_arrangement(self.groups.shuffler_of(opened, self.shuffler))
        if on_progress is not None:
            on_progress("ordering", opened.num_users, opened.num_users)
        return PreparedGroups(asked=self, table=table, opened=opened, arrangement=arrangement)


def group_arrangement(
    shuffler: "GroupShuffler",
) -> "GroupArrangement | DisplacementArrangement":
    """Return the arrangement of a shuffler within groups."""
    from shuffledp.groups.arrangement import DisplacementArrangement, GroupArrangement
    from shuffledp.groups.displacement.shuffler import DisplacementShuffler

    if isinstance(shuffler, DisplacementShuffler):
        return DisplacementArrangement(shuffler=shuffler)
    return GroupArrangement(shuffler=shuffler)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedGroups:
    """Groups and shuffler of one table, ready for its reports."""

    asked: GroupedRun
    table: Path
    opened: "OpenedGroups"
    arrangement: "GroupArrangement | DisplacementArrangement"

    @property
    def public_columns(self) -> tuple[str, ...]:
        """Columns that the released rows keep, each once."""
        return tuple(dict.fromkeys((*self.opened.grouping.public_columns, *self.asked.keep)))

    def with_facts(self, result: "Result", seed: int | None) -> "Result":
        """Return the result with all that its report says about the groups."""
        from shuffledp.collection.results import amplification_cautions
        from shuffledp.core.entropy import Entropy
        from shuffledp.groups.run import group_facts, largest_group, read_subsets

        column = self.asked.subset_column
        grouping = self.opened.grouping
        others = [
            grouping.varied(value).open(self.table, num_users=result.num_users)
            for value in self.asked.compare
        ]
        facts = group_facts(
            self.opened,
            self.arrangement.shuffler,
            self.asked.groups.require_alpha(),
            profile=result.randomizer.profile,
            subsets=[
                largest_group(self.opened),
                *([] if column is None else read_subsets(self.table, column)),
            ],
            others=others,
            # A stream that neither the randomizer nor the shuffler of this run draws from.
            entropy=Entropy.choose(seed).spawn().spawn().spawn(),
        )
        warnings = (
            *result.warnings,
            *self.opened.groups.cautions(),
            *amplification_cautions(result.guarantee, result.randomizer.profile.epsilon0, facts),
        )
        return replace(result, groups=facts, warnings=warnings)
