"""What ``attack`` and ``learnability`` share: true answers, collected in three ways."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shuffledp.cli.console import print_facts, print_json, print_table, read_paths
from shuffledp.cli.grouping import GROUP_SHUFFLERS, AskedGroups, grouping_options
from shuffledp.cli.options import (
    answer_list,
    json_option,
    show_values_option,
    whole_number,
)
from shuffledp.report.formatting import fixed, given, rounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shuffledp.core.progress import Progress
    from shuffledp.groups.attacks.attacked_survey import AttackedSurvey, ComparedArrangement
    from shuffledp.groups.attacks.trials import Measured
    from shuffledp.groups.formation.groups import Groups
    from shuffledp.groups.grouping import GroupShuffler, OpenedGroups

Command = TypeVar("Command", bound=Callable[..., Any])

_OWN_NAMES = (
    *("column", "domain", "domain_file", "epsilon0", "shuffler"),
    *("attack_radius", "public", "trials"),
)

SIMULATION = "a simulation on true answers: nothing is released, and the figures are not private"
"""What both commands say about their output: it is computed from answers without noise."""


_SHUFFLER = click.option(
    "--shuffler",
    type=click.Choice(GROUP_SHUFFLERS),
    default="mallows",
    show_default=True,
    help="Shuffle within groups by a Mallows model, or by noise on places.",
)


def simulation_options(command: Command) -> Command:
    """Add the options of a simulated collection; `Simulation` takes their values."""
    for option in (
        show_values_option,
        json_option,
        click.option("--overwrite", is_flag=True, help="Replace a folder of earlier results."),
        click.option(
            "--out",
            type=click.Path(path_type=Path),
            help="Folder to create for a table (CSV) and a figure (PNG).",
        ),
        click.option(
            "--seed",
            type=whole_number,
            default="1",
            show_default=True,
            metavar="N",
            help="Of the simulation: the same seed, the same numbers.",
        ),
        click.option(
            "--trials",
            type=whole_number,
            default="10",
            show_default=True,
            metavar="N",
            help="Repetitions, for the error bars.",
        ),
        click.option(
            "--public",
            type=answer_list,
            metavar="A,B",
            help="Public columns of numbers to go by; by default those of --groups-by.",
        ),
        click.option(
            "--attack-radius",
            metavar="R",
            help="Neighbours that are read: within this radius, number of hops, or by this file "
            "of groups; by default as for the groups.",
        ),
        grouping_options,
        _SHUFFLER,
        click.option(
            "--epsilon0",
            type=float,
            required=True,
            help="Local epsilon of k-ary randomized response, in nats.",
        ),
        click.option(
            "--domain-file",
            type=click.Path(path_type=Path),
            help="The possible answers, one a line, in a text file.",
        ),
        click.option("--domain", type=answer_list, metavar="A,B,...", help="The possible answers."),
        click.option("--column", required=True, help="Column with the true answers."),
        click.argument("table", type=click.Path(path_type=Path)),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A survey ready to be simulated, and the arrangements to compare."""

    survey: "AttackedSurvey"
    groups: "Groups"
    arrangements: "tuple[ComparedArrangement, ...]"
    facts: tuple[tuple[str, str], ...]
    metric: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """The values of `simulation_options`, but for the output."""

    groups: AskedGroups
    column: str
    domain: tuple[str, ...] | None
    domain_file: Path | None
    epsilon0: float
    shuffler: str
    attack_radius: str | None
    public: tuple[str, ...] | None
    trials: int

    @classmethod
    def take(cls, options: dict[str, Any]) -> "Simulation":
        """Take the options out of a dictionary."""
        groups = AskedGroups.take(options)
        simulation = cls(groups=groups, **{name: options.pop(name) for name in _OWN_NAMES})
        groups.require_alpha()
        groups.grouping()
        if simulation.domain is not None and simulation.domain_file is not None:
            raise click.UsageError("give --domain or --domain-file, not both")
        return simulation

    def open(
        self,
        table: Path,
        *,
        privileged: tuple[str, ...] | None = None,
        on_progress: "Progress | None" = None,
    ) -> Opened:
        """Read the answers, form groups and neighbourhoods, and find the shuffle."""
        import numpy as np

        from shuffledp.collection.source.answers import open_table
        from shuffledp.collection.source.tables import checked_domain, read_domain
        from shuffledp.groups.attacks.attacked_survey import AttackedSurvey
        from shuffledp.groups.attacks.traits import read_traits
        from shuffledp.randomizers.categories.k_randomized_response import (
            KRandomizedResponse,
        )

        listed = None if self.domain is None else checked_domain(self.domain)
        if self.domain_file is not None:
            listed = read_domain(self.domain_file)
        answers = open_table(table, self.column, domain=listed, on_progress=on_progress)
        randomizer = KRandomizedResponse(k=len(answers.domain), epsilon0=self.epsilon0)
        opened = self.groups.open(table, on_progress=on_progress)
        neighbourhoods = opened.groups
        if self.attack_radius is not None:
            neighbourhoods = opened.grouping.within(self.attack_radius).open(table).groups
        traits = None if privileged is None else read_traits(table, privileged)
        survey = AttackedSurvey(
            codes=np.concatenate(list(answers.blocks())),
            randomizer=randomizer,
            neighbourhoods=neighbourhoods,
            privileged=None if traits is None else traits.values,
            is_category=None if traits is None else traits.is_category,
            public=self._public(table, opened),
        )
        arrangements, facts = self._arrangements(opened)
        facts = (
            ("people", f"{survey.num_users:,}"),
            ("answers", f"{survey.k}"),
            ("epsilon0", given(randomizer.epsilon0)),
            *facts,
        )
        return Opened(
            survey=survey,
            groups=opened.groups,
            arrangements=arrangements,
            facts=facts,
            metric="euclidean" if self.public else opened.grouping.metric_used,
        )

    def _public(self, table: Path, opened: "OpenedGroups") -> Any:
        """Return the public values: named columns, or where people are."""
        from shuffledp.core.errors import DataError
        from shuffledp.groups.attacks.traits import read_traits

        if not self.public:
            return opened.coordinates
        traits = read_traits(table, self.public)
        if traits.is_category.any():
            name = self.public[int(traits.is_category.argmax())]
            raise DataError(
                f"column {name!r} of {table.name} holds categories: --public takes numbers only"
            )
        return traits.values

    def _arrangements(
        self, opened: "OpenedGroups"
    ) -> "tuple[tuple[ComparedArrangement, ...], tuple[tuple[str, str], ...]]":
        """Return the three arrangements, and what there is to say about the middle one."""
        from shuffledp.collection.shuffling import UniformShuffler
        from shuffledp.groups.attacks.attacked_survey import (
            RAW,
            UNIFORM,
            WITHIN_GROUPS,
            ComparedArrangement,
        )

        alpha = self.groups.require_alpha()
        shuffler = self.groups.shuffler_of(opened, self.shuffler)
        sizes = opened.groups.sizes
        people = f"{int(sizes.min()):,} to {int(sizes.max()):,} people"
        facts = (
            ("groups", f"{opened.grouping.describe()}: {people}"),
            ("alpha", given(alpha)),
            self._model(shuffler),
        )
        arrangements = (
            ComparedArrangement(name=RAW),
            ComparedArrangement(name=WITHIN_GROUPS, shuffler=shuffler, alpha=alpha),
            ComparedArrangement(name=UNIFORM, shuffler=UniformShuffler(), alpha=0.0),
        )
        return arrangements, facts

    def _model(self, shuffler: "GroupShuffler") -> tuple[str, str]:
        """Return the fact that says how far reports move."""
        from shuffledp.groups.displacement.shuffler import DisplacementShuffler

        if isinstance(shuffler, DisplacementShuffler):
            places = shuffler.places
            return "noise", f"b = {rounded(shuffler.scale, up=False)} {places.unit} ({places.name})"
        return "theta", f"{shuffler.theta:.4g} ({self.groups.rank_distance})"


def print_measured(opened: Opened, results: "Sequence[Measured]", *, as_json: bool) -> None:
    """Print what was simulated, then one table for each measure."""
    if as_json:
        print_json(
            {
                "simulation": True,
                "num_users": opened.survey.num_users,
                "epsilon0": opened.survey.randomizer.epsilon0,
                "results": [result.to_json_dict() for result in results],
            }
        )
        return
    click.echo(SIMULATION + "\n")
    print_facts(opened.facts)
    for task, measure in dict.fromkeys((result.task, result.measure) for result in results):
        found = [result for result in results if (result.task, result.measure) == (task, measure)]
        click.echo(f"\n{task}: {measure}")
        with_limits = found[0].lower is not None
        last = ("95% limits", "bound") if with_limits else ("standard deviation", "trials")
        by = ("by",) if found[0].own_report else ()
        print_table(("reports", "mean", *by, *last), [_row(each) for each in found])


def _row(measured: "Measured") -> tuple[str, ...]:
    """Return a row of the table: of an attack and everybody's own report, the better, named."""
    result = measured.of_better()
    mean = fixed(result.mean, 4)
    if result.lower is not None and result.upper is not None:
        limits = f"{fixed(result.lower, 4)} to {fixed(result.upper, 4)}"
        return result.arrangement, mean, limits, _bound_text(result.bound)
    deviation = result.standard_deviation
    return (
        result.arrangement,
        mean,
        *((measured.better,) if measured.own_report else ()),
        "unknown" if deviation is None else fixed(deviation, 4),
        str(len(result.trials)),
    )


def _bound_text(bound: float | None) -> str:
    """Return a bound rounded up, or that there is none."""
    return "none" if bound is None else rounded(bound, up=True)


def write_measured_folder(
    results: "Sequence[Measured]", out: Path, name: str, *, overwrite: bool
) -> None:
    """Create the folder with ``name``.csv and ``name``.png: both, or nothing."""
    from shuffledp.collection.output import results_folder
    from shuffledp.groups.attacks.trials import write_measured
    from shuffledp.report.attack_figures import write_measured_figure

    with results_folder(out, overwrite=overwrite, inputs=read_paths(out)) as folder:
        write_measured(results, folder / f"{name}.csv")
        write_measured_figure(results, folder / f"{name}.png")
