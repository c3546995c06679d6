"""``shuffledp attack`` and ``learnability``: what is inferred and learnt, as reports are arranged.

Both simulate a collection of true answers in three ways.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.console import (
    print_facts,
    print_json,
    print_table,
    print_warnings,
    progress_bar,
)
from shuffledp.cli.options import (
    PATH,
    added,
    answer_list,
    json_option,
    whole_number,
)
from shuffledp.cli.shuffles import GROUP_SHUFFLERS, grouping_options, required_groups, take_groups
from shuffledp.report.formatting import fixed, given, rounded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shuffledp.groups.attacks.survey import AttackedSurvey, ComparedArrangement, Measured
    from shuffledp.groups.grouping import GroupShuffler

_SIMULATION = "a simulation on true answers: nothing is released, and the figures are not private"


_HINTS = dict.fromkeys(("majority vote", "Gaussian process", "learning"), "quicker: fewer --trials")

simulation_options = added(
    (
        click.argument("table", type=PATH),
        click.option("--column", required=True, help="Column with the true answers."),
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
        json_option,
    )
)


def _simulate(
    table: Path,
    options: dict[str, Any],
    measured: "Callable[..., Sequence[Measured]]",
    *,
    as_json: bool,
) -> None:
    """Open the survey, measure the arrangements to compare, and print what was found."""
    from shuffledp.core.entropy import Entropy
    from shuffledp.groups.attacks.survey import open_survey, usual_arrangements

    ways, alpha, distance = take_groups(options)
    (grouping, alpha), name = required_groups(ways, alpha), options.pop("shuffler")
    column, public = options.pop("column"), options.pop("public") or ()
    trials, entropy = options.pop("trials"), Entropy.from_seed(options.pop("seed"))
    with progress_bar(hints=_HINTS) as on_progress:
        survey, opened = open_survey(
            table, column, grouping, public=public, on_progress=on_progress, **options
        )
        shuffler = opened.shuffler(alpha, name=name, distance=distance)
        results = measured(
            survey,
            usual_arrangements(shuffler),
            num_trials=trials,
            entropy=entropy,
            on_progress=on_progress,
        )
    if as_json:
        print_json(
            {
                "simulation": True,
                "num_users": survey.num_users,
                "epsilon0": survey.randomizer.epsilon0,
                "results": [result.to_json_dict() for result in results],
            }
        )
        return
    sizes = opened.groups.sizes
    people = f"{int(sizes.min()):,} to {int(sizes.max()):,} people"
    click.echo(_SIMULATION + "\n")
    print_facts(
        [
            ("people", f"{survey.num_users:,}"),
            ("answers", f"{survey.domain_size}"),
            ("epsilon0", given(survey.randomizer.epsilon0)),
            ("groups", f"{grouping.describe()}: {people}"),
            ("alpha", given(alpha)),
            _model(shuffler, distance),
        ]
    )
    for task, measure in dict.fromkeys((result.task, result.measure) for result in results):
        found = [result for result in results if (result.task, result.measure) == (task, measure)]
        click.echo(f"\n{task}: {measure}")
        by = ("by",) if found[0].own_report else ()
        headings = ("reports", "mean", *by, "standard deviation", "trials")
        print_table(headings, [_row(each) for each in found])


def _model(shuffler: "GroupShuffler", distance: str) -> tuple[str, str]:
    """Return the fact that says how far reports move."""
    from shuffledp.groups.displacement import DisplacementShuffler

    if isinstance(shuffler, DisplacementShuffler):
        places = shuffler.places
        return "noise", f"b = {rounded(shuffler.scale, up=False)} {places.unit} ({places.name})"
    return "theta", f"{shuffler.theta:.4g} ({distance})"


def _row(measured: "Measured") -> tuple[str, ...]:
    """Return a row of the table: of an attack and everybody's own report, the better, named."""
    result = measured.of_better()
    deviation = result.standard_deviation
    return (
        result.arrangement,
        fixed(result.mean, 4),
        *((measured.better,) if measured.own_report else ()),
        "unknown" if deviation is None else fixed(deviation, 4),
        str(len(result.trials)),
    )


_ATTACKS = ("majority-vote", "gaussian-process")


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
def attack(*, table: Path, name: str, resamplings: int, as_json: bool, **options: Any) -> None:
    """Attack simulated reports of the true answers in TABLE (CSV or Parquet).

    Compares raw local reports, a shuffle within groups and a uniform shuffle. It needs the true
    answers and releases nothing; what it prints is not private.
    """
    from shuffledp.groups.attacks.adversaries import (
        attack_by_gaussian_process,
        attack_by_majority_vote,
    )

    options["privileged"] = options["privileged"] or ()

    def attacked(
        survey: "AttackedSurvey", arrangements: "tuple[ComparedArrangement, ...]", **how: Any
    ) -> "tuple[Measured, ...]":
        results: tuple[Measured, ...] = ()
        if name != "gaussian-process":
            results += attack_by_majority_vote(
                survey, arrangements, num_resamplings=resamplings, **how
            )
        if name == "all" and survey.public is None:
            print_warnings(
                ["no gaussian-process attack: groups without coordinates, and no --public"]
            )
        elif name != "majority-vote":
            results += attack_by_gaussian_process(survey, arrangements, **how)
        return results

    _simulate(table, options, attacked, as_json=as_json)


@click.command(
    epilog="Example: shuffledp learnability survey.csv --column answer --groups-by age "
    "--radius 5 --alpha 4 --epsilon0 2.5"
)
@simulation_options
def learnability(*, table: Path, as_json: bool, **options: Any) -> None:
    """Measure what a model learns from simulated reports of the true answers in TABLE.

    lambda is the error of the learnt local law of the answers over that of the uniform guess: 0 is
    perfect, 1 as good as knowing nothing. Compares raw local reports, a shuffle within groups and
    a uniform shuffle. It needs the true answers and releases nothing; what it prints is not
    private.
    """
    from shuffledp.groups.attacks.learnability import learn_local_laws

    _simulate(table, options, learn_local_laws, as_json=as_json)
