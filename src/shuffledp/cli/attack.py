"""``shuffledp attack`` and ``learnability``: success of attacks and of learning from reports.

Both simulate a collection of true answers with three arrangements of the reports.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import shuffledp as sdp
from shuffledp.cli import console
from shuffledp.cli import options as shared
from shuffledp.cli.options import cli, options
from shuffledp.cli.shuffles import GROUP_SHUFFLERS, GROUPING, take_groups
from shuffledp.report.formatting import fixed, given, rounded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shuffledp.groups.attacks.survey import AttackedSurvey, Measured
    from shuffledp.groups.grouping import GroupShuffler

_SIMULATION = "a simulation on true answers: nothing is released, and the figures are not private"

simulation_options = options(
    f"""
    Table:
    --column TEXT  Column with the true answers.  [required]
    {shared.READING}
    {shared.DECIMAL}
    Shuffling:
    --epsilon0 FLOAT  Local epsilon of k-ary randomized response, in nats.  [required]
    --shuffler [{"|".join(GROUP_SHUFFLERS)}]  Shuffle within groups by a Mallows model or by noise
        on places.  [default: mallows]
    {GROUPING}
    Simulation:
    --attack-radius R  Neighbours whose rows the adversary reads: a radius, a number of hops, or a
        file of groups; by default the groups themselves.
    --public A,B  Public numeric columns that measure distance to neighbours; by default as
        for --groups-by. Needed with groups by a graph or a file, except for the majority vote.
    --trials N  Number of repetitions, for the mean and standard deviation.  [default: 10]
    --processes N  Number of worker processes; by default the available cores, once the work takes a
        second.
    --seed N       Seed of the simulation: the same seed gives the same numbers.  [default: 1]
    {shared.JSON}
    """,
)


def _simulate(
    table: Path, asked: dict[str, Any], measured: "Callable[..., Sequence[Measured]]"
) -> None:
    """Open the survey, measure the arrangements to compare, and print the results."""
    from shuffledp.groups.attacks.survey import open_survey, usual_arrangements

    (grouping, alpha, distance), name = take_groups(asked), asked.pop("shuffler")
    trials, entropy = asked.pop("trials"), sdp.Entropy.from_seed(asked.pop("seed"))
    asked["public"] = asked["public"] or ()
    with (
        console.progress_bar() as on_progress,
        sdp.engines.Processes(asked.pop("processes")) as workers,
    ):
        how: dict[str, Any] = {"on_progress": on_progress}
        asked |= shared.take_reading(asked)
        survey, opened = open_survey(table, asked.pop("column"), grouping, **asked, **how)
        shuffler = opened.shuffler(alpha, name=name, distance=distance)
        compared = usual_arrangements(shuffler)
        how |= {"num_trials": trials, "entropy": entropy, "engine": workers.map}
        results = measured(survey, compared, **how)
    record = {
        "simulation": True,
        "num_users": survey.num_users,
        "epsilon0": survey.randomizer.epsilon0,
        "results": [result.to_json_dict() for result in results],
    }
    if console.print_json(record):
        return
    sizes = opened.groups.sizes
    people = f"{int(sizes.min()):,} to {int(sizes.max()):,} people"
    click.echo(_SIMULATION + "\n")
    console.print_facts(
        [
            ("people", f"{survey.num_users:,}"),
            ("answers", f"{survey.domain_size}"),
            ("epsilon0", given(survey.randomizer.epsilon0)),
            ("groups", f"{opened.groups.description}: {people}"),
            ("alpha", given(alpha)),
            _model(shuffler, distance),
        ]
    )
    for task, measure in dict.fromkeys((result.task, result.measure) for result in results):
        found = [result for result in results if (result.task, result.measure) == (task, measure)]
        click.echo(f"\n{task}: {measure}")
        by = ("by",) if found[0].own_report else ()
        headings = ("reports", "mean", *by, "standard deviation", "trials")
        console.print_table(headings, [_row(each) for each in found])


def _model(shuffler: "GroupShuffler", distance: str) -> tuple[str, str]:
    """Return the name and the value of the parameter that states how far reports move."""
    if isinstance(shuffler, sdp.groups.DisplacementShuffler):
        places = shuffler.places
        return "noise", f"b = {rounded(shuffler.scale, up=False)} {places.unit} ({places.name})"
    return "theta", f"{shuffler.theta:.4g} ({distance})"


def _row(measured: "Measured") -> tuple[str, ...]:
    """Return a row of the table, for the better of the attack and each user's own report."""
    result = measured.of_better()
    deviation = result.standard_deviation
    return (
        result.arrangement,
        fixed(result.mean, 4),
        *((measured.better,) if measured.own_report else ()),
        "unknown" if deviation is None else fixed(deviation, 4),
        str(len(result.trials)),
    )


@cli.command(
    epilog="Example: shuffledp attack survey.csv --column answer --groups-by lat,lon "
    "--metric haversine --radius 5km --alpha 4 --epsilon0 2.5"
)
@click.argument("table", type=shared.PATH)
@simulation_options
@options(
    """
    Attack:
    name=--attack [majority-vote|gaussian-process|all]  Attack to simulate.  [default: all]
    --privileged A,B  Columns that the adversary also knows: the majority vote reads the neighbours
        most similar in them, instead of random ones.
    --resamplings N  Number of fresh shuffled releases in each trial of the majority vote.
        [default: 50]
    """,
)
def attack(*, table: Path, name: str, resamplings: int, **asked: Any) -> None:
    """Attack simulated reports of the true answers in TABLE (CSV or Parquet).

    Compares local reports without a shuffle, shuffled within groups, and shuffled uniformly. Reads
    the true answers and releases nothing: the printed figures are not private.
    """
    from shuffledp.groups.attacks import adversaries

    def attacked(survey: "AttackedSurvey", *compared: Any, **how: Any) -> "tuple[Measured, ...]":
        results: tuple[Measured, ...] = ()
        if name != "gaussian-process":
            results += adversaries.attack_by_majority_vote(
                survey, *compared, num_resamplings=resamplings, **how
            )
        if name == "all" and survey.public is None:
            missing = "no gaussian-process attack: groups without coordinates, and no --public"
            console.print_warnings([missing])
        elif name != "majority-vote":
            results += adversaries.attack_by_gaussian_process(survey, *compared, **how)
        return results

    if name == "gaussian-process" and (unread := shared.flags_given({"privileged", "resamplings"})):
        raise click.UsageError(f"{unread[0]} is for the majority vote: leave it out")
    asked["privileged"] = asked["privileged"] or ()
    _simulate(table, asked, attacked)


@cli.command(
    epilog="Example: shuffledp learnability survey.csv --column answer --groups-by age "
    "--radius 5 --alpha 4 --epsilon0 2.5"
)
@click.argument("table", type=shared.PATH)
@simulation_options
def learnability(*, table: Path, **asked: Any) -> None:
    """Measure what a model learns from simulated reports of the true answers in TABLE.

    lambda is the error of a learnt local distribution of the answers, divided by the error of the
    uniform guess: 0 is perfect, 1 as good as no data. Compares local reports without a shuffle,
    shuffled within groups, and shuffled uniformly. Reads the true answers and releases nothing: the
    printed figures are not private.
    """
    from shuffledp.groups.attacks.adversaries import learn_local_laws

    _simulate(table, asked, learn_local_laws)
