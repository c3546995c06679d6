"""Figures on disk: an image, a table and a caption, each under its name only when complete."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from shuffledp.collection.output import write_rows, writing


class Drawable(Protocol):
    """A figure of numbers that can be written."""

    @property
    def name(self) -> str:
        """Its number in the paper."""
        ...

    @property
    def caption(self) -> str:
        """What it shows."""
        ...

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield one mapping a line of the CSV; all have the same keys."""
        ...


_Figure = TypeVar("_Figure", bound=Drawable)


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


def write_figure(
    figure: _Figure, folder: Path, draw: Callable[[_Figure, Path], None], *, stem: str
) -> WrittenFigure:
    """Write a figure as ``stem.csv``, ``stem.txt`` (the caption) and ``stem.png``.

    Parameters
    ----------
    figure : Drawable
        With at least one row.
    folder : Path
        Made if need be; files of the same names are replaced.
    draw : callable
        Draws the figure into a PNG file.
    stem : str
        The files' name without its ending.

    Returns
    -------
    WrittenFigure
        Where it is, and what it holds.

    Raises
    ------
    OutputError
        If the folder cannot be written to.
    """
    written = WrittenFigure(
        name=figure.name,
        csv=folder / f"{stem}.csv",
        png=folder / f"{stem}.png",
        caption=" ".join(figure.caption.split()),
        rows=tuple(figure.rows()),
    )
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _complete(written.csv, lambda path: write_rows(written.rows, path))
        _complete(folder / f"{stem}.txt", lambda path: _write_text(written.caption, path))
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
