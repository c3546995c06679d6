"""``shuffledp learnability``: what a model still learns, as the reports are arranged."""

from pathlib import Path
from typing import Any

import click

from shuffledp.cli.console import progress_bar
from shuffledp.cli.simulation import (
    Simulation,
    print_measured,
    simulation_options,
    write_measured_folder,
)


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
    from shuffledp.report.drawing import require_matplotlib

    simulation = Simulation.take(options)
    entropy = Entropy.from_seed(seed)
    if out is not None:
        require_matplotlib(", or leave out --out")  # before the work, not after it
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
        write_measured_folder(results, out, "learnability", overwrite=overwrite)
    print_measured(opened, results, as_json=as_json)
