"""``shuffledp attack`` and ``learnability``: what is inferred and learnt, as reports are arranged.

Both simulate a collection of true answers in three ways.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.console import (
    print_facts,
    print_json,
    print_table,
    print_warnings,
    progress_bar,
    read_paths,
)
from shuffledp.cli.options import (
    PATH,
    added,
    answer_list,
    json_option,
    out_option,
    overwrite_option,
    show_values_option,
    whole_number,
)
from shuffledp.cli.shuffles import GROUP_SHUFFLERS, AskedGroups, grouping_options
from shuffledp.report.formatting import fixed, given, rounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shuffledp.core.entropy import Entropy
    from shuffledp.core.progress import Progress
    from shuffledp.groups.attacks.survey import AttackedSurvey, ComparedArrangement, Measured
    from shuffledp.groups.grouping import GroupShuffler, OpenedGroups
    from shuffledp.groups.groups import Groups

_OWN_NAMES = (
    *("column", "domain", "epsilon0", "shuffler"),
    *("attack_radius", "public", "trials"),
)

_SIMULATION = "a simulation on true answers: nothing is released, and the figures are not private"


simulation_options = added(
    (
        click.argument("table", type=PATH),
        click.option("--column", required=True, help="Column with the true answers."),
        click.option(
            "--domain",
            type=answer_list,
            metavar="A,B,...",
            help="The possible answers; by default those found.",
        ),
        click.option(
            "--epsilon0",
            type=float,
            required=True,
            help="Local epsilon of k-ary randomized response, in nats.",
        ),
        click.option(
            "--shuffler",
            type=click.Choice(GROUP_SHUFFLERS),
            default="mallows",
            show_default=True,
            help="Shuffle within groups by a Mallows model, or by noise on places.",
        ),
        grouping_options,
        click.option(
            "--attack-radius",
            metavar="R",
            help="Neighbours that are read: within this radius, number of hops, or by this file "
            "of groups; by default as for the groups.",
        ),
        click.option(
            "--public",
            type=answer_list,
            metavar="A,B",
            help="Public columns of numbers to go by; by default those of --groups-by.",
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
            "--seed",
            type=whole_number,
            default="1",
            show_default=True,
            metavar="N",
            help="Of the simulation: the same seed, the same numbers.",
        ),
        out_option("a table (CSV) and charts (HTML)", required=False),
        overwrite_option,
        json_option,
        show_values_option,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A survey ready to be simulated, and the arrangements to compare."""

    survey: "AttackedSurvey"
    groups: "Groups"
    arrangements: "tuple[ComparedArrangement, ...]"
    facts: tuple[tuple[str, str], ...]
    metric: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Simulation:
    """The values of `simulation_options`, but for the output."""

    groups: AskedGroups
    column: str
    domain: tuple[str, ...] | None
    epsilon0: float
    shuffler: str
    attack_radius: str | None
    public: tuple[str, ...] | None
    trials: int

    @classmethod
    def take(cls, options: dict[str, Any]) -> "_Simulation":
        """Take the options out of a dictionary."""
        groups = AskedGroups.take(options)
        simulation = cls(groups=groups, **{name: options.pop(name) for name in _OWN_NAMES})
        groups.require_alpha()
        groups.grouping()
        return simulation

    def open(
        self,
        table: Path,
        *,
        privileged: tuple[str, ...] | None = None,
        on_progress: "Progress | None" = None,
    ) -> _Opened:
        """Read the answers, form groups and neighbourhoods, and find the shuffle."""
        import numpy as np

        from shuffledp.collection.source.answers import open_table
        from shuffledp.collection.source.tables import checked_domain
        from shuffledp.groups.attacks.survey import AttackedSurvey, read_traits
        from shuffledp.randomizers.k_randomized_response import (
            KRandomizedResponse,
        )

        listed = None if self.domain is None else checked_domain(self.domain)
        answers = open_table(table, self.column, domain=listed, on_progress=on_progress)
        randomizer = KRandomizedResponse(domain_size=len(answers.domain), epsilon0=self.epsilon0)
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
            ("answers", f"{survey.domain_size}"),
            ("epsilon0", given(randomizer.epsilon0)),
            *facts,
        )
        return _Opened(
            survey=survey,
            groups=opened.groups,
            arrangements=arrangements,
            facts=facts,
            metric="euclidean" if self.public else opened.grouping.metric_used,
        )

    def _public(self, table: Path, opened: "OpenedGroups") -> Any:
        """Return the public values: named columns, or where people are."""
        from shuffledp.core.errors import DataError
        from shuffledp.groups.attacks.survey import read_traits

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
        from shuffledp.groups.attacks.survey import (
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
        from shuffledp.groups.displacement import DisplacementShuffler

        if isinstance(shuffler, DisplacementShuffler):
            places = shuffler.places
            return "noise", f"b = {rounded(shuffler.scale, up=False)} {places.unit} ({places.name})"
        return "theta", f"{shuffler.theta:.4g} ({self.groups.rank_distance})"


def _print_measured(opened: _Opened, results: "Sequence[Measured]", *, as_json: bool) -> None:
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
    click.echo(_SIMULATION + "\n")
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


def _write_folder(results: "Sequence[Measured]", out: Path, name: str, *, overwrite: bool) -> None:
    """Create the folder with ``name``.csv and ``name``.html: both, or nothing."""
    from shuffledp.collection.output import results_folder
    from shuffledp.groups.attacks.survey import write_measured
    from shuffledp.report import write_report
    from shuffledp.report.charts import measured_page

    with results_folder(out, overwrite=overwrite, inputs=read_paths(out)) as folder:
        write_measured(results, folder / f"{name}.csv")
        command = click.get_current_context().command.name or ""
        write_report(measured_page(results, command), folder / f"{name}.html")


_ATTACKS = ("majority-vote", "gaussian-process", "re-identification")


@click.command(
    epilog="Example: shuffledp attack survey.csv --column answer --groups-by lat,lon "
    "--metric haversine --radius 5km --alpha 4 --epsilon0 2.5"
)
@simulation_options
@click.option(
    "--attack",
    "name",
    type=click.Choice([*_ATTACKS, "all"]),
    default="all",
    show_default=True,
    help="Which attack.",
)
@click.option(
    "--privileged",
    type=answer_list,
    metavar="A,B",
    help="Columns that the adversary knows besides: neighbours most similar in them are read.",
)
@click.option(
    "--resamplings",
    type=whole_number,
    default="50",
    show_default=True,
    metavar="N",
    help="Fresh local reports a trial of the majority vote.",
)
@click.option(
    "--plays",
    type=whole_number,
    default="1000",
    show_default=True,
    metavar="N",
    help="Games of re-identification.",
)
def attack(
    *, table: Path, seed: int, out: Path | None, overwrite: bool, as_json: bool, **options: Any
) -> None:
    """Attack simulated reports of the true answers in TABLE (CSV or Parquet).

    Compares raw local reports, a shuffle within groups and a uniform shuffle. It needs the true
    answers and releases nothing; what it prints is not private.
    """
    from shuffledp.core.entropy import Entropy

    privileged = options.pop("privileged")
    how = {name: options.pop(name) for name in _HOW}
    simulation = _Simulation.take(options)
    entropy = Entropy.from_seed(seed)
    with progress_bar() as on_progress:
        opened = simulation.open(table, privileged=privileged, on_progress=on_progress)
        results = _attacked(opened, simulation.trials, how, entropy, on_progress)
    if out is not None:
        _write_folder(results, out, "attacks", overwrite=overwrite)
    _print_measured(opened, results, as_json=as_json)


_HOW = ("name", "resamplings", "plays")


def _attacked(
    opened: _Opened,
    trials: int,
    how: dict[str, Any],
    entropy: "Entropy",
    on_progress: "Progress | None",
) -> "tuple[Measured, ...]":
    """Run the attacks that were asked for, one after the other."""
    from shuffledp.groups.attacks.attacking import (
        attack_by_gaussian_process,
        attack_by_majority_vote,
        play_reidentification,
    )
    from shuffledp.groups.attacks.survey import euclidean_positions

    wanted = _ATTACKS if how["name"] == "all" else (how["name"],)
    survey = opened.survey
    results: tuple[Measured, ...] = ()
    if "majority-vote" in wanted:
        results += attack_by_majority_vote(
            survey,
            opened.arrangements,
            num_resamplings=how["resamplings"],
            num_trials=trials,
            entropy=entropy,
            on_progress=on_progress,
        )
    if "gaussian-process" in wanted and how["name"] == "all" and survey.public is None:
        print_warnings(["no gaussian-process attack: groups without coordinates, and no --public"])
    elif "gaussian-process" in wanted:
        positions = euclidean_positions(survey.require_public(), opened.metric)
        results += attack_by_gaussian_process(
            replace(survey, public=positions),
            opened.arrangements,
            num_trials=trials,
            entropy=entropy,
            on_progress=on_progress,
        )
    if "re-identification" in wanted:
        results += play_reidentification(
            survey,
            opened.arrangements,
            opened.groups,
            num_plays=how["plays"],
            entropy=entropy,
            on_progress=on_progress,
        )
    return results


@click.command(
    epilog="Example: shuffledp learnability survey.csv --column answer --groups-by age "
    "--radius 5 --alpha 4 --epsilon0 2.5"
)
@simulation_options
def learnability(
    *, table: Path, seed: int, out: Path | None, overwrite: bool, as_json: bool, **options: Any
) -> None:
    """Measure what a model learns from simulated reports of the true answers in TABLE.

    lambda is the error of the learnt local law of the answers over that of the uniform guess: 0 is
    perfect, 1 as good as knowing nothing. Compares raw local reports, a shuffle within groups and
    a uniform shuffle. It needs the true answers and releases nothing; what it prints is not
    private.
    """
    from shuffledp.core.entropy import Entropy
    from shuffledp.groups.attacks.learnability import learn_local_laws

    simulation = _Simulation.take(options)
    entropy = Entropy.from_seed(seed)
    with progress_bar() as on_progress:
        opened = simulation.open(table, on_progress=on_progress)
        results = learn_local_laws(
            opened.survey,
            opened.arrangements,
            num_trials=simulation.trials,
            entropy=entropy,
            on_progress=on_progress,
        )
    if out is not None:
        _write_folder(results, out, "learnability", overwrite=overwrite)
    _print_measured(opened, results, as_json=as_json)
