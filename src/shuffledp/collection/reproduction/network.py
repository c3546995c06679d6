"""``shuffledp reproduce network``: the figures of "Network Shuffling".

Liew, Takahashi, Takagi, Kato, Cao, Yoshikawa, "Network Shuffling: Privacy Amplification via Random
Walks", SIGMOD 2022, arXiv:2204.03919. Each figure is written as soon as it is computed.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import SupportsIndex

from shuffledp.collection.output import writing
from shuffledp.collection.reproduction.network_charts import NetworkFigure
from shuffledp.collection.reproduction.network_epsilon0_figures import (
    graphs_figure,
    protocols_figure,
    stationary_figure,
)
from shuffledp.collection.reproduction.network_mean_figure import mean_figure
from shuffledp.collection.reproduction.network_rounds_figures import (
    real_graphs_figure,
    regular_graphs_figure,
)
from shuffledp.collection.reproduction.settings import Settings
from shuffledp.collection.reproduction.written_figures import WrittenFigure, write_figure
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError

#: What computes each figure, by its number in the paper.
FIGURES: Mapping[str, Callable[[Settings, Entropy], NetworkFigure]] = {
    "4": real_graphs_figure,
    "5": regular_graphs_figure,
    "6": graphs_figure,
    "7": protocols_figure,
    "8": stationary_figure,
    "9": mean_figure,
}

#: Figures that need graphs from the user's folder.
NEED_DATA = frozenset({"4", "6", "7", "9"})

Draw = Callable[[NetworkFigure, Path], None]


def require_figures(names: Iterable[str], data: Path | None) -> tuple[str, ...]:
    """Return the figures asked for, all of them if none is named.

    Parameters
    ----------
    names : iterable of str
        Keys of `FIGURES`.
    data : Path or None
        The user's folder.

    Returns
    -------
    tuple of str
        Each once, in the paper's order.

    Raises
    ------
    ParameterError
        If there is no such figure, or it needs graphs and there is no folder.
    """
    asked = set(names)
    for name in sorted(asked - set(FIGURES)):
        raise ParameterError(f"figure = {name!r} is not one of {', '.join(FIGURES)}")
    wanted = tuple(name for name in FIGURES if name in asked or not asked)
    lacking = [name for name in wanted if name in NEED_DATA and data is None]
    if lacking:
        rest = [name for name in FIGURES if name not in NEED_DATA]
        raise ParameterError(
            f"figure {lacking[0]} needs real graphs: give --data FOLDER, or ask for --figure "
            f"{' or '.join(rest)}"
        )
    return wanted


def reproduce_network(
    out: str | os.PathLike[str],
    draw: Draw,
    *,
    figures: Iterable[str] = (),
    settings: Settings | None = None,
    seed: SupportsIndex,
) -> tuple[WrittenFigure, ...]:
    """Compute figures and write each as ``figure-N.csv``, ``figure-N.txt`` and ``figure-N.png``.

    Parameters
    ----------
    out : str or path-like
        Folder, made if need be; files of earlier reproductions are replaced.
    draw : callable
        Draws a figure into a PNG file.
    figures : iterable of str
        Numbers in the paper; all by default.
    settings : Settings, optional
        How much to compute, and from which data.
    seed : int
        Of random graphs and of the simulation; each figure has a stream of its own.

    Returns
    -------
    tuple of WrittenFigure
        In the paper's order.

    Raises
    ------
    ParameterError
        If a figure does not exist or lacks its data.
    DataError
        If a graph cannot be read, or matplotlib is missing.
    OutputError
        If the folder cannot be written to.
    """
    asked = Settings() if settings is None else settings
    wanted = require_figures(figures, asked.data)
    root = Entropy.from_seed(seed)
    streams = {name: root.spawn() for name in FIGURES}
    folder = Path(out)
    with writing(folder):  # better found out before the work than after it
        folder.mkdir(parents=True, exist_ok=True)
    return tuple(
        write_figure(FIGURES[name](asked, streams[name]), folder, draw, stem=f"figure-{name}")
        for name in wanted
    )
