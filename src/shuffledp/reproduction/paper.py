"""``Paper``: the figures of a published paper, computed again one by one."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, SupportsIndex, TypeVar

from shuffledp.collection.output import writing
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.reproduction.settings import Settings
from shuffledp.reproduction.written_figures import (
    Drawable,
    WrittenFigure,
    write_figure,
)

_Figure = TypeVar("_Figure", bound=Drawable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper(Generic[_Figure]):
    """What computes each figure of a paper, and which of them need data.

    Parameters
    ----------
    figures : mapping
        Number in the paper to what computes the figure; tables have names such as ``"table-1a"``.
    need_data : frozenset of str
        Figures that need data sets from the user's folder.
    """

    figures: Mapping[str, Callable[[Settings, Entropy], _Figure]]
    need_data: frozenset[str]

    def wanted(self, names: Iterable[str], data: Path | None) -> tuple[str, ...]:
        """Return the figures asked for, all of them if none is named.

        Parameters
        ----------
        names : iterable of str
            Numbers in the paper.
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
        for name in sorted(asked - set(self.figures)):
            raise ParameterError(f"figure = {name!r} is not one of {', '.join(self.figures)}")
        wanted = tuple(name for name in self.figures if name in asked or not asked)
        lacking = [name for name in wanted if name in self.need_data and data is None]
        if lacking:
            rest = [name for name in self.figures if name not in self.need_data]
            raise ParameterError(
                f"figure {lacking[0]} needs data: give --data FOLDER (with --fetch to download "
                f"into it), or ask for --figure {' or '.join(rest)}"
            )
        return wanted

    def reproduce(
        self,
        out: str | os.PathLike[str],
        draw: Callable[[_Figure, Path], None],
        *,
        figures: Iterable[str] = (),
        settings: Settings | None = None,
        seed: SupportsIndex,
    ) -> tuple[WrittenFigure, ...]:
        """Compute figures and write each as soon as it is computed.

        So an interruption loses only the one in work.

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
            Of simulations and random graphs; each figure has a stream of its own, so that it does
            not depend on which others are asked for.

        Returns
        -------
        tuple of WrittenFigure
            ``figure-N.csv``, ``figure-N.txt`` and ``figure-N.png``, and so ``table-N``, in the
            paper's order.

        Raises
        ------
        ParameterError
            If a figure does not exist or lacks its data.
        DataError
            If data cannot be read, or a package is missing.
        OutputError
            If the folder cannot be written to.
        """
        asked = Settings() if settings is None else settings
        wanted = self.wanted(figures, asked.data)
        root = Entropy.from_seed(seed)
        streams = {name: root.spawn() for name in self.figures}
        folder = Path(out)
        with writing(folder):  # better found out before the work than after it
            folder.mkdir(parents=True, exist_ok=True)
        return tuple(
            write_figure(self.figures[name](asked, streams[name]), folder, draw, stem=_stem(name))
            for name in wanted
        )


def _stem(name: str) -> str:
    """Return the name of a figure's files; that of a table is one already."""
    return name if name.startswith("table-") else f"figure-{name}"
