"""Results that show themselves: in notebooks, on plots, and as tables of numbers.

The renderer of pages and plots is registered from above: ``shuffledp/__init__.py`` names it once,
through `register_renderer`. It is a module with the functions ``write_report(subject, path)``,
which returns the path, ``notebook_html(subject)``, HTML without scripts,
``terminal_text(subject)``, a few lines, and ``plot(subject, ax)``.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.errors import ParameterError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


_renderers: list[str] = []  # at most one; the last registered


class Shown:
    """Base of classes that display themselves in a notebook, through the registered renderer."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(registered_renderer().notebook_html(self))

    def plot(self, ax: Any = None) -> Any:
        """Draw on axes of matplotlib, which has to be installed, and return them.

        By default on a new figure. There are plots of results, plans, comparisons of bounds and
        running counts; others raise `TypeError`.
        """
        return registered_renderer().plot(self, ax)


def register_renderer(module: str) -> None:
    """Let the module of this name show results from now on."""
    _renderers[:] = [module]


def registered_renderer() -> Any:
    """Return the renderer; raise if none is registered."""
    if not _renderers:
        raise RuntimeError(
            "no renderer for results is registered: `import shuffledp` does it, or call "
            "shuffledp.core.shown.register_renderer('shuffledp.report')"
        )
    return import_module(_renderers[0])


Whole = int | np.integer[Any]
Real = float | np.floating[Any] | np.integer[Any]
Numbers = Real | Collection[Any] | NDArray[Any]
"""A number, or an array of them."""

# Integer parameters among those that may be arrays.
_WHOLE = frozenset(
    {"num_users", "domain_size", "dimension", "rounds", "sampled", "most_dummies", "dishonest"}
)


def broadcast(numbers: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the elements of the arrays among the numbers, by name, broadcast together."""
    try:
        arrays = {name: np.asarray(each) for name, each in numbers.items() if np.ndim(each)}
        together = np.broadcast_arrays(*arrays.values())
    except ValueError as error:
        raise ParameterError(
            f"arrays that do not go together ({error}): give arrays of one length, or shapes that "
            "NumPy broadcasts, such as (3, 1) and (4,)"
        ) from None
    if together and not together[0].size:
        raise ParameterError(f"{', '.join(arrays)}: arrays that hold nothing; give some numbers")
    found = {name: each.ravel().tolist() for name, each in zip(arrays, together, strict=True)}
    for name in _WHOLE & set(found):  # np.logspace makes floats
        found[name] = [
            int(x) if isinstance(x, float) and x.is_integer() else x for x in found[name]
        ]
    return found


def rows_of(columns: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of columns of equal lengths, each by the columns' names."""
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True))


class Frames(Shown):
    """Numbers by column, as plain Python, polars or pandas."""

    __slots__ = ()

    @abstractmethod
    def columns(self) -> Mapping[str, ArrayLike]:
        """Return columns of equal lengths by their names."""

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists of Python values."""
        return {name: np.asarray(each).tolist() for name, each in self.columns().items()}

    def to_polars(self) -> "pl.DataFrame":
        """Return the table as a polars data frame."""
        import polars as pl

        return pl.DataFrame(self.to_dict())

    def to_pandas(self) -> "pd.DataFrame":
        """Return the table as a pandas data frame; pandas must be installed."""
        import pandas as pd

        return pd.DataFrame(self.to_dict())

    def __str__(self) -> str:
        return self.to_markdown()

    def to_markdown(self) -> str:
        """Return a table in Markdown; numbers have six digits, bounds are rounded outwards.

        Examples
        --------
        >>> import shuffledp as sdp
        >>> print(sdp.account(epsilon0=[0.5, 1.0], num_users=1000, delta=1e-6).to_markdown())
        | epsilon0 | epsilon_lower | epsilon_upper | method |
        | --- | --- | --- | --- |
        | 0.5 | 0.0568538 | 0.0626866 | clones |
        | 1 | 0.130566 | 0.148671 | clones |
        """
        head, *rows = self._texts(str.maketrans({"|": r"\|", "\n": " "}))
        lines = [head, ["---"] * len(head), *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def to_latex(self) -> str:
        """Return a LaTeX ``tabular``; numbers as in `to_markdown`."""
        head, *rows = self._texts(LATEX)
        lines = [head, r"\hline", *rows]
        body = [each if isinstance(each, str) else " & ".join(each) + r" \\" for each in lines]
        return "\n".join([rf"\begin{{tabular}}{{{'l' * len(head)}}}", *body, r"\end{tabular}"])

    def _texts(self, escapes: dict[int, str]) -> list[list[str]]:
        """Return names and rows as texts, with special characters escaped."""
        columns = self.to_dict()
        texts = ([name, *(_text(name, each) for each in cells)] for name, cells in columns.items())
        return [[each.translate(escapes) for each in row] for row in zip(*texts, strict=True)]


LATEX = str.maketrans(
    {each: rf"\{each}" for each in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\n": " "}
    | {"<": r"\textless{}", ">": r"\textgreater{}"}
)
"""Special characters of LaTeX, and their replacements."""


def _text(name: str, cell: object) -> str:
    """Return a cell as text: a float to six digits, of bounds outwards; None as the empty text."""
    if not isinstance(cell, float):
        return "" if cell is None else str(cell)
    if name.endswith(("lower", "upper", "epsilon", "delta")):
        direction = ROUND_FLOOR if "lower" in name else ROUND_CEILING
        cell = float(Context(prec=6, rounding=direction).create_decimal(repr(cell)))
    return f"{cell:.6g}"
