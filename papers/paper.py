"""The command line that all papers share: which figures, at what size, from which data."""

import argparse
import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from shuffledp import Entropy
from shuffledp.core.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What all figures of a paper share."""

    data: Path | None = None  # folder with data sets
    fetch: bool = False  # download what is not there
    quick: bool = False  # few people, trials and points

    @property
    def trials(self) -> int:
        """Return the number of trials behind each mean and standard deviation."""
        return 2 if self.quick else 10


class Drawable(Protocol):
    """A figure, or a table that is drawn as one."""

    caption: str

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield the lines of the CSV; all have the same keys."""

    def draw(self, path: Path) -> None:
        """Draw it into a PNG file."""


def main(
    figures: Mapping[str, Callable[[Settings, Entropy], Drawable]],
    arguments: Sequence[str] | None = None,
) -> None:
    """Compute figures, and write each as ``figure-N.png``, ``.csv`` and ``.txt`` (the caption).

    Each has a stream of random numbers of its own, so that it does not depend on the others.
    """
    parser = argparse.ArgumentParser(description="Compute the figures of a paper again.")
    parser.add_argument("--out", type=Path, required=True, help="folder for images and tables")
    parser.add_argument("--figure", nargs="+", choices=list(figures), help="by default all")
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--fetch", action="store_true", help="download what --data does not have")
    parser.add_argument("--quick", action="store_true", help="few people, trials and points")
    parser.add_argument("--seed", type=int, default=2022)
    asked = parser.parse_args(arguments)
    if asked.fetch and asked.data is None:
        parser.error("--fetch needs --data: the folder to download into")
    settings = Settings(data=asked.data, fetch=asked.fetch, quick=asked.quick)
    root = Entropy.from_seed(asked.seed)
    streams = {name: root.spawn() for name in figures}
    asked.out.mkdir(parents=True, exist_ok=True)
    for name in asked.figure or figures:
        try:
            figure = figures[name](settings, streams[name])
        except DataError as error:
            if asked.figure:
                parser.exit(1, f"{name}: {error}\n")
            print(f"{name}: left out: {error}")
        else:
            print(f"{name}: {_written(figure, asked.out, name)}", flush=True)


def _written(figure: Drawable, folder: Path, name: str) -> Path:
    """Write table, caption and image; return the image."""
    stem = name if name.startswith("table-") else f"figure-{name}"
    rows = list(figure.rows())
    with (folder / f"{stem}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (folder / f"{stem}.txt").write_text(" ".join(figure.caption.split()) + "\n", encoding="utf-8")
    figure.draw(folder / f"{stem}.png")
    return folder / f"{stem}.png"
