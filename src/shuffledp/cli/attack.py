"""``shuffledp attack``: what an adversary infers, as the reports are arranged."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shuffledp.cli.console import print_warnings, progress_bar
from shuffledp.cli.options import answer_list, whole_number
from shuffledp.cli.simulation import (
    Simulation,
    print_measured,
    simulation_options,
    write_measured_folder,
)

if TYPE_CHECKING:
    from shuffledp.cli.simulation import Opened
    from shuffledp.core.entropy import Entropy
    from shuffledp.core.progress import Progress
    from shuffledp.groups.attacks.survey import Measured

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
    "--neighbours",
    type=whole_number,
    default="25",
    show_default=True,
    metavar="N",
    help="Rows that a majority vote reads about each person.",
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
    "--success",
    type=float,
    default=0.9,
    show_default=True,
    help="Whose answer is found in this share of the resamplings is vulnerable.",
)
@click.option(
    "--subset-size",
    type=whole_number,
    default="3",
    show_default=True,
    metavar="K",
    help="People whose reports a re-identification looks for.",
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
    from shuffledp.report.drawing import require_matplotlib

    privileged = options.pop("privileged")
    how = {name: options.pop(name) for name in list(options) if name in _HOW}
    simulation = Simulation.take(options)
    entropy = Entropy.from_seed(seed)
    if out is not None:
        require_matplotlib(", or leave out --out")  # before the work, not after it
    with progress_bar() as on_progress:
        opened = simulation.open(table, privileged=privileged, on_progress=on_progress)
        results = _attacked(opened, simulation.trials, how, entropy, on_progress)
    if out is not None:
        write_measured_folder(results, out, "attacks", overwrite=overwrite)
    print_measured(opened, results, as_json=as_json)


_HOW = ("name", "neighbours", "resamplings", "success", "subset_size", "plays")


def _attacked(
    opened: "Opened",
    trials: int,
    how: dict[str, Any],
    entropy: "Entropy",
    on_progress: "Progress | None",
) -> "tuple[Measured, ...]":
    """Run the attacks that were asked for, one after the other."""
    from dataclasses import replace

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
            num_neighbours=how["neighbours"],
            num_resamplings=how["resamplings"],
            num_trials=trials,
            success=how["success"],
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
            subset_size=how["subset_size"],
            num_plays=how["plays"],
            entropy=entropy,
            on_progress=on_progress,
        )
    return results
