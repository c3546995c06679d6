"""``shuffledp reproduce mallows``: the figures of "Privacy Implications of Shuffling".

Meehan, Roy Chowdhury, Chaudhuri, Jha, ICLR 2022, arXiv:2106.06603v3. Each figure is written as soon
as it is computed, so that an interruption loses only the one in work.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import SupportsIndex

from shuffledp.collection.output import write_rows, writing
from shuffledp.collection.reproduction.adult_figure import adult_figure
from shuffledp.collection.reproduction.crescents_figures import accuracy_figure, map_figure
from shuffledp.collection.reproduction.figure_data import FigureData
from shuffledp.collection.reproduction.preservation_figure import preservation_figure
from shuffledp.collection.reproduction.settings import Settings
from shuffledp.collection.reproduction.twitch_figure import twitch_figure
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFigure:
    """A figure that is on disk.

    Parameters
    ----------
    name : str
        Its number in the paper.
    csv, png : Path
        Where it was written.
    caption : str
        What it shows.
    rows : tuple of dict
        What the CSV holds.
    """

    name: str
    csv: Path
    png: Path
    caption: str
    rows: tuple[dict[str, object], ...]

    def to_json_dict(self) -> dict[str, object]:
        """Return the figure as JSON values."""
        return {
            "figure": self.name,
            "csv": str(self.csv),
            "png": str(self.png),
            "caption": self.caption,
            "rows": list(self.rows),
        }


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
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return tuple(_write(FIGURES[name](asked, streams[name]), folder, draw) for name in wanted)


def _write(figure: FigureData, folder: Path, draw: Draw) -> WrittenFigure:
    """Write one figure; each file gets its name when it is complete."""
    written = WrittenFigure(
        name=figure.name,
        csv=folder / f"figure-{figure.name}.csv",
        png=folder / f"figure-{figure.name}.png",
        caption=" ".join(figure.caption.split()),
        rows=tuple(figure.rows()),
    )
    caption = folder / f"figure-{figure.name}.txt"
    with writing(folder):
        _complete(written.csv, lambda path: write_rows(written.rows, path))
        _complete(caption, lambda path: _write_text(written.caption, path))
        _complete(written.png, lambda path: draw(figure, path))
    return written


def _write_text(text: str, path: Path) -> None:
    """Write one line of text."""
    path.write_text(text + "\n", encoding="utf-8")


def _complete(target: Path, write: Callable[[Path], None]) -> None:
    """Have a file written under another name, and give it its own at the end."""
    partial = target.with_name(f".{target.name}.partial")
    try:
        write(partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
