"""``shuffledp reproduce``: the figures of published papers, computed again."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shuffledp.cli.console import print_facts, print_json, progress_bar
from shuffledp.cli.options import json_option, whole_number

if TYPE_CHECKING:
    from shuffledp.reproduction.settings import Settings
    from shuffledp.reproduction.written_figures import WrittenFigure

# Written out, since --help must not load the figures; a test compares them.
MALLOWS_FIGURES = ("1", "4", "5", "7", "8")
NETWORK_FIGURES = ("4", "5", "6", "7", "8", "9")
LEAKAGE_FIGURES = (
    *("2", "3", "4", "5", "6", "7"),
    *("table-1a", "table-1b", "table-1c", "table-2", "table-3", "table-4", "table-5"),
)
SEED = 2022
_FEW = "few people and trials, so these do not show what the paper shows"
_QUICK = {"mallows": _FEW, "network": _FEW, "leakage": "few points, each as in the full figure"}


@click.command()
@click.argument("paper", type=click.Choice(["mallows", "network", "leakage"]))
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder with the data sets: for mallows 4 and 8, for network 4, 6, 7 and 9.",
)
@click.option("--fetch", is_flag=True, help="Download data sets that --data does not have.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    required=True,
    help="Folder for the images and tables.",
)
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="N",
    help=f"One figure or table; may be given more than once. By default all: mallows "
    f"{', '.join(MALLOWS_FIGURES)}; network {', '.join(NETWORK_FIGURES)}; leakage "
    f"{', '.join(LEAKAGE_FIGURES)}.",
)
@click.option("--quick", is_flag=True, help="Few people and trials: a try in seconds.")
@click.option(
    "--seed",
    type=whole_number,
    metavar="N",
    default=SEED,
    show_default=True,
    help="Of the simulation.",
)
@json_option
def reproduce(
    *,
    paper: str,
    data: Path | None,
    fetch: bool,
    out: Path,
    figures: tuple[str, ...],
    quick: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Compute the figures of a paper again, as images and tables.

    mallows: Meehan et al., "Privacy Implications of Shuffling", shuffling within groups as
    published and with the exact sensitivity.

    network: Liew et al., "Network Shuffling", random walks on real and regular graphs, the
    published theorems and ours.

    leakage: Jurado et al., "Analyzing the Shuffle Model through the Lens of Quantitative
    Information Flow", what an adversary guesses, and channels as tables, misprints corrected and
    marked. Nothing is random, so --seed changes nothing. All need pip install
    'shuffledp[attacks]'.
    """
    from shuffledp.report.drawing import require_matplotlib
    from shuffledp.reproduction.settings import Settings

    if fetch and data is None:
        raise click.UsageError("--fetch needs --data: the folder to download into")
    require_matplotlib()
    with progress_bar(hidden=as_json) as progress:
        settings = Settings(data=data, fetch=fetch, quick=quick, on_progress=progress)
        written = _written(paper, out, figures, settings, seed)
    if as_json:
        print_json(
            {
                "paper": paper,
                "seed": seed,
                "quick": quick,
                "figures": [each.to_json_dict() for each in written],
            }
        )
    else:
        if quick:
            click.echo(f"--quick: {_QUICK[paper]}\n")
        print_facts((_words(each.name), f"{each.png}, {each.csv.name}") for each in written)


def _written(
    paper: str, out: Path, figures: tuple[str, ...], settings: "Settings", seed: int
) -> "Sequence[WrittenFigure]":
    """Compute and write the figures of one paper."""
    if paper == "leakage":
        from shuffledp.report.leakage_figures import draw_leakage_figure
        from shuffledp.reproduction.leakage import LEAKAGE

        return LEAKAGE.reproduce(
            out, draw_leakage_figure, figures=figures, settings=settings, seed=seed
        )
    if paper == "network":
        from shuffledp.report.network_figures import draw_network_figure
        from shuffledp.reproduction.network import NETWORK

        return NETWORK.reproduce(
            out, draw_network_figure, figures=figures, settings=settings, seed=seed
        )
    from shuffledp.report.mallows_figures import draw_figure
    from shuffledp.reproduction.mallows import MALLOWS

    return MALLOWS.reproduce(out, draw_figure, figures=figures, settings=settings, seed=seed)


def _words(name: str) -> str:
    """Return a figure's number or a table's name in words.

    Examples
    --------
    >>> _words("2"), _words("table-1a")
    ('figure 2', 'table 1a')
    """
    return name.replace("-", " ") if name.startswith("table-") else f"figure {name}"
