"""``shuffledp reproduce mallows``: the figures of "Privacy Implications of Shuffling".

Meehan, Roy Chowdhury, Chaudhuri, Jha, ICLR 2022, arXiv:2106.06603v3. Each figure is written as soon
as it is computed, so that an interruption loses only the one in work.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import SupportsIndex

from shuffledp.collection.output import writing
from shuffledp.collection.reproduction.adult_figure import adult_figure
from shuffledp.collection.reproduction.crescents_figures import accuracy_figure, map_figure
from shuffledp.collection.reproduction.figure_data import FigureData
from shuffledp.collection.reproduction.preservation_figure import preservation_figure
from shuffledp.collection.reproduction.settings import Settings
from shuffledp.collection.reproduction.twitch_figure import twitch_figure
from shuffledp.collection.reproduction.written_figures import WrittenFigure, write_figure
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError

#: What computes each figure, by its number in the paper.
FIGURES: Mapping[str, Callable[[Settings, Entropy], FigureData]] = {
    "1": map_figure,
    "4": twitch_figure,
    "5": accuracy_figure,
    "7": preservation_figure,
    "8": adult_figure,
}

#: Figures that need data sets from the user's folder.
NEED_DATA = frozenset({"4", "8"})

#: Used unless another seed is given, so that the figures are the same everywhere.
DEFAULT_SEED = 2022

Draw = Callable[[FigureData, Path], None]


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
        If there is no such figure, or it needs data and there is no folder.
    """
    asked = set(names)
    for name in asked - set(FIGURES):
        raise ParameterError(f"figure = {name!r} is not one of {', '.join(FIGURES)}")
    wanted = tuple(name for name in FIGURES if name in asked or not asked)
    lacking = [name for name in wanted if name in NEED_DATA and data is None]
    if lacking:
        rest = [name for name in FIGURES if name not in NEED_DATA]
        raise ParameterError(
            f"figure {lacking[0]} needs data: give --data FOLDER (with --fetch to download into "
            f"it), or ask for --figure {' or '.join(rest)}"
        )
    return wanted


def reproduce_mallows(
    out: str | os.PathLike[str],
    draw: Draw,
    *,
    figures: Iterable[str] = (),
    settings: Settings | None = None,
    seed: SupportsIndex = DEFAULT_SEED,
) -> tuple[WrittenFigure, ...]:
    """Compute figures and write each as ``figure-N.csv`` and ``figure-N.png``.

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
        Of the simulation; each figure has a stream of its own, so that it does not depend on
        which others are asked for.

    Returns
    -------
    tuple of WrittenFigure
        In the paper's order.

    Raises
    ------
    ParameterError
        If a figure does not exist or lacks its data.
    DataError
        If data cannot be read, or matplotlib or scikit-learn is missing.
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
