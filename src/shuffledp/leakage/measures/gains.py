"""Gain functions: what each guess is worth to the adversary, for each value of the secret.

Two forms are kept. A *table* has one row a guess. *Classes* say that a guess is right or wrong: the
secret falls into one class, the adversary names ``tries`` different classes, and gains 1 if that of
the secret is among them. Guessing the secret (every value a class of its own), guessing what one
person said (all data sets in which that person said the same are a class), and guessing in several
tries are classes; their tables, which may be huge, are never written out.

A gain may be negative as long as the best guess is worth at least 0 whatever the prior. Then, and
only then, ratios of vulnerabilities mean something (Jurado et al. 2023, footnote 4). By the minimax
theorem, with m a law on the guesses,

    min over priors of max_w sum_x prior_x g(w, x) = max over m of min_x sum_w m_w g(w, x),

so this holds exactly if some mixture of guesses is worth at least 0 for every secret: one linear
program decides.

Source: Alvim, Chatzikokolakis, Palamidessi, Smith, "Measuring Information Leakage Using Generalized
Gain Functions", CSF 2012; Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through
the Lens of Quantitative Information Flow", CSF 2023, hal-04349295v1, Definitions 1, 2 and 13.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.leakage.channels.matrices import as_numbers, to_floats

# A mixture of guesses may fall below 0 by this share of the largest entry: the linear program's
# round-off. The vulnerability may be negative by as much, and is then given as 0.
NEGATIVE_TOLERANCE = 1e-9

# Cells of a table that is written out on request, 0.8 GB of floating-point numbers.
_MOST_CELLS = 10**8

# What one solves by hand is shown in full in a message.
_MOST_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GainFunction:
    """What each guess is worth for each secret; made by the functions of this module.

    Parameters
    ----------
    num_inputs : int
        Number of values of the secret.
    guesses : sequence of hashable
        Label of each row of ``table``, or of each class. With ``tries`` > 1 a guess is that many
        different labels.
    table : (num_guesses, num_inputs) array or None
        Gains, read-only: float64, or Fractions (object). Not both this and ``classes``.
    classes : (num_inputs,) array of int64 or None
        Class of each secret, 0 ... len(guesses) - 1, read-only.
    tries : int
        Classes that the adversary may name.

    Examples
    --------
    >>> identity_gain(3).matrix.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    num_inputs: int
    guesses: Sequence[Hashable]
    table: NDArray[Any] | None = None
    classes: NDArray[np.int64] | None = None
    tries: int = 1

    @property
    def num_guesses(self) -> int:
        """Number of guesses: the sets of ``tries`` labels count one each."""
        return math.comb(len(self.guesses), min(self.tries, len(self.guesses)))

    @property
    def is_exact(self) -> bool:
        """Whether all gains are rational numbers known exactly."""
        return self.table is None or self.table.dtype == object

    @property
    def is_identity(self) -> bool:
        """Whether a guess names one value of the secret and is worth 1 if right, else 0."""
        return self.classes is not None and self.tries == 1 and len(self.guesses) == self.num_inputs

    @property
    def matrix(self) -> NDArray[Any]:
        """Gains written out, a row for each guess; Fractions if the table has them.

        Raises
        ------
        ParameterError
            With several tries, whose guesses are too many to write out, or above 1e8 cells.
        """
        if self.classes is None:
            return np.asarray(self.table)  # one of the two is there
        if self.tries > 1:
            raise ParameterError(
                f"tries = {self.tries} has {self.num_guesses} guesses: a matrix of gains is "
                "written out for one try only"
            )
        require_cells(len(self.guesses), self.num_inputs)
        written = np.zeros((len(self.guesses), self.num_inputs))
        written[self.classes, np.arange(self.num_inputs)] = 1.0
        written.setflags(write=False)
        return written

    def __repr__(self) -> str:
        form = "table" if self.classes is None else f"classes, tries={self.tries}"
        return f"GainFunction({len(self.guesses)} x {self.num_inputs}, {form})"


def identity_gain(size: int, *, labels: Sequence[Hashable] | None = None) -> GainFunction:
    """Return the gain of guessing the secret in one try: 1 if right, else 0.

    Parameters
    ----------
    size : int
        Number of values of the secret, at least 1.
    labels : sequence, optional
        Their names; 0 ... size - 1 by default.

    Raises
    ------
    ParameterError
        If the size is not a whole number above 0, or is not that of the labels.

    Notes
    -----
    Its vulnerability is the adversary's chance of guessing right, the Bayes vulnerability.

    Examples
    --------
    >>> identity_gain(4)
    GainFunction(4 x 4, classes, tries=1)
    """
    return tries_gain(size, 1, labels=labels)


def tries_gain(size: int, tries: int, *, labels: Sequence[Hashable] | None = None) -> GainFunction:
    """Return the gain of guessing the secret in so many tries: 1 if one of them is right, else 0.

    Parameters
    ----------
    size, labels
        As for `identity_gain`.
    tries : int
        At least 1. From ``size`` on, the adversary always gains 1.

    Raises
    ------
    ParameterError
        If a number is out of range, or the labels are not ``size`` many.

    Examples
    --------
    >>> tries_gain(60, 3).num_guesses
    34220
    """
    size = require_at_least("size", size, 1)
    tries = require_at_least("tries", tries, 1)
    names: Sequence[Hashable] = range(size) if labels is None else tuple(labels)
    _require_labels(names, size, "values of the secret")
    return _by_classes(np.arange(size, dtype=np.int64), names, tries)


def single_target_gain(
    inputs: Sequence[Sequence[Hashable]] | None, target: int = 0, *, tries: int = 1
) -> GainFunction:
    """Return the gain of guessing what one person said: 1 if right, else 0.

    Parameters
    ----------
    inputs : sequence of sequences
        Each value of the secret, as the list of what everybody said: ``channel.inputs``.
    target : int
        Place of the person in each of them, from 0.
    tries : int
        Answers that the adversary may name, at least 1.

    Raises
    ------
    ParameterError
        If there are no inputs, or one of them is no list or too short.

    Notes
    -----
    Source: Jurado et al. 2023, Definition 13 (the person there is number 0).

    Examples
    --------
    >>> gain = single_target_gain([("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")], target=1)
    >>> gain.matrix.tolist(), gain.guesses
    ([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]], ('a', 'b'))
    """
    target = require_at_least("target", target, 0)
    if inputs is None or len(inputs) == 0:
        raise ParameterError(
            "inputs is empty: give the data sets as tuples, such as the inputs of "
            "randomizer_channel(...)"
        )
    numbers: dict[Hashable, int] = {}
    classes = np.empty(len(inputs), dtype=np.int64)
    for row, values in enumerate(inputs):
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
            raise ParameterError(f"inputs[{row}] = {values!r} is no tuple: give everybody's values")
        if target >= len(values):
            raise ParameterError(
                f"target = {target} is not among the {len(values)} people of inputs[{row}]"
            )
        classes[row] = numbers.setdefault(values[target], len(numbers))
    return _by_classes(classes, tuple(numbers), require_at_least("tries", tries, 1))


def matrix_gain(
    matrix: ArrayLike,
    *,
    guesses: Sequence[Hashable] | None = None,
) -> GainFunction:
    """Return the gain function with a given table.

    Parameters
    ----------
    matrix : (num_guesses, num_inputs) array_like
        Gain of each guess (row) for each secret (column), finite. Copied. Exact where all are whole
        numbers or Fractions, else float64.
    guesses : sequence, optional
        Names of the rows; 0, 1, ... by default.

    Raises
    ------
    ParameterError
        If it is no table of finite numbers, or there is a prior under which even the best guess
        has a negative worth; the message shows that prior and the way out.

    Examples
    --------
    Betting one's stake on a coin may lose it, and one may also not bet.

    >>> matrix_gain([[1, -1], [-1, 1], [0, 0]])
    GainFunction(3 x 2, table)
    >>> matrix_gain([[1, -2], [-2, 1]])
    Traceback (most recent call last):
    ...
    shuffledp.core.errors.ParameterError: matrix has negative vulnerability: under the prior
    (0.5, 0.5) the best guess is worth -0.5; add a guess worth 0 everywhere (not to play), or add
    a constant to all gains
    """
    table = _parsed(matrix)
    names: Sequence[Hashable] = range(len(table)) if guesses is None else tuple(guesses)
    _require_labels(names, len(table), "guesses")
    _require_no_negative_vulnerability(to_floats(table) if table.dtype == object else table)
    table.setflags(write=False)
    return GainFunction(num_inputs=table.shape[1], guesses=names, table=table)


def distance_gain(
    points: Sequence[Any],
    *,
    guesses: Sequence[Any] | None = None,
    distance: Callable[[Any, Any], Any] | None = None,
    worth: Callable[[Any], Any] | None = None,
) -> GainFunction:
    """Return the gain of a guess that is worth more the closer it is.

    Parameters
    ----------
    points : sequence
        The values of the secret: numbers, or tuples of numbers.
    guesses : sequence, optional
        Points that may be guessed; by default those of the secret.
    distance : callable, optional
        Takes a guess and a point to a number >= 0. By default the absolute difference of numbers
        and the Euclidean distance of tuples.
    worth : callable, optional
        Takes a distance to a gain. By default 1 - distance / d, with d the largest distance.

    Raises
    ------
    ParameterError
        If a distance is negative or no number, or as for `matrix_gain`.

    Notes
    -----
    Exact where distances and worths are whole numbers or Fractions. One call of ``distance`` and
    ``worth`` for each cell.

    Examples
    --------
    >>> distance_gain([0, 1, 2]).matrix.tolist()[0]
    [Fraction(1, 1), Fraction(1, 2), Fraction(0, 1)]
    """
    named = list(points if guesses is None else guesses)
    if len(points) == 0 or not named:
        raise ParameterError("points or guesses is empty: give at least one of each")
    require_cells(len(named), len(points))
    measure = _difference if distance is None else distance
    distances = [[measure(guess, point) for point in points] for guess in named]
    for row, values in enumerate(distances):
        for column, value in enumerate(values):
            if not value >= 0 or value == math.inf:  # NaN fails
                raise ParameterError(
                    f"distance = {value} from guess {row} to point {column} is not in [0, inf)"
                )
    largest = max(max(values) for values in distances)
    if worth is None:
        # Division of whole numbers would round.
        scale = Fraction(largest) if isinstance(largest, Rational) else largest
        gains = [[1 if scale == 0 else 1 - value / scale for value in row] for row in distances]
    else:
        gains = [[worth(value) for value in row] for row in distances]
    labels = [tuple(label) if isinstance(label, list) else label for label in named]
    return matrix_gain(gains, guesses=labels)


def _difference(guess: Any, point: Any) -> Any:
    """Return the absolute difference of numbers, or the Euclidean distance of tuples."""
    if isinstance(guess, (Sequence, np.ndarray)):
        return math.dist(guess, point)
    return abs(guess - point)


def _by_classes(classes: NDArray[np.int64], names: Sequence[Hashable], tries: int) -> GainFunction:
    """Return the gain of naming the class of the secret."""
    classes.setflags(write=False)
    return GainFunction(num_inputs=len(classes), guesses=names, classes=classes, tries=tries)


def require_cells(num_rows: int, num_columns: int) -> None:
    """Refuse tables that do not fit into memory."""
    if num_rows * num_columns > _MOST_CELLS:
        raise ParameterError(
            f"a table of gains would have {num_rows} x {num_columns} cells, at most "
            f"{_MOST_CELLS:.0e} are written out: use identity_gain, tries_gain or "
            "single_target_gain, which need no table"
        )


def _require_labels(names: Sequence[Hashable], size: int, what: str) -> None:
    """Refuse names that are too few, too many, or given twice."""
    if len(names) != size:
        raise ParameterError(f"{len(names)} labels were given for {size} {what}: give one for each")
    if not isinstance(names, range) and len(set(names)) != size:
        raise ParameterError(f"labels of the {what} are not all different: rename the repeated one")


def _parsed(matrix: object) -> NDArray[Any]:
    """Return a table of Fractions or of float64, all finite, that nobody else holds."""
    table = as_numbers("matrix", matrix, 2).copy()
    if table.dtype == np.float64 and not np.all(np.isfinite(table)):
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise ParameterError(
            f"matrix[{row}, {column}] = {table[row, column]} is not finite: give a finite gain"
        )
    return table


def _require_no_negative_vulnerability(table: NDArray[np.float64]) -> None:
    """Refuse gains for which some prior leaves even the best guess worth less than 0."""
    if np.all(table >= 0.0) or np.any(np.all(table >= 0.0, axis=1)):
        return
    from scipy.optimize import linprog

    num_guesses, num_inputs = table.shape
    scale = float(np.max(np.abs(table)))
    # Largest v such that a mixture of guesses is worth at least v for every secret.
    found = linprog(
        np.append(np.zeros(num_guesses), -1.0),
        A_ub=np.column_stack([-table.T / scale, np.ones(num_inputs)]),
        b_ub=np.zeros(num_inputs),
        A_eq=np.append(np.ones(num_guesses), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0.0, None)] * num_guesses + [(None, None)],
        method="highs",
    )
    if not found.success:
        raise PrecisionError(f"no mixture of guesses was found: {found.message}")
    mixture = np.maximum(found.x[:-1], 0.0)
    if np.min(mixture @ table) >= -NEGATIVE_TOLERANCE * scale * np.sum(mixture):
        return
    # The multipliers of the secrets are the prior that is worst for the adversary.
    prior = np.maximum(-found.ineqlin.marginals, 0.0)
    prior /= np.sum(prior)
    worth = float(np.max(table @ prior))
    numbers = ", ".join(f"{chance:.6g}" for chance in prior[:_MOST_SHOWN])
    more = ", ..." if num_inputs > _MOST_SHOWN else ""
    raise ParameterError(
        f"matrix has negative vulnerability: under the prior ({numbers}{more}) the best guess is "
        f"worth {worth:.6g}; add a guess worth 0 everywhere (not to play), or add a constant to "
        "all gains"
    )
