"""Gain functions, and how well the best adversary does before and after seeing a channel's output.

V_g(prior) = max_w sum_x prior_x g(w, x) before, and V_g[prior > C] = sum_y max_w sum_x prior_x C_xy
g(w, x) after. With the default gain, guessing the secret, both are the chance to guess right. A
gain may be negative as long as the best guess is worth at least 0 whatever the prior.

*Accuracy.* With fractions throughout, exact. Otherwise nearest, in no direction: guessing the
secret in one try is right to a relative 1e-14; otherwise to (num_inputs + 50) u, u = 2^-53, where
gains are not negative, and to that of the vulnerability for the absolute gains where some are.
Priors and rows that sum to one only within 1e-9 add as much. Memory beyond the channel is some tens
of megabytes.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1, Definitions 1, 2 and 13.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.leakage.channel import Channel, as_channel
from shuffledp.leakage.matrices import (
    as_numbers,
    checked_prior,
    is_exact_array,
    is_exact_prior,
    to_floats,
)

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


# Cells of a block: 16 MB of doubles.
BLOCK_CELLS = 1 << 21

# Columns and cells of a tile that stays in a fast cache.
_TILE_COLUMNS, _TILE_CELLS = 4096, 1 << 15


def joined(
    prior: ArrayLike | None, channel: Channel, *, gain: GainFunction | None = None
) -> tuple[NDArray[Any], Channel]:
    """Return the checked prior and the channel, both exact if all that is given is, else floats."""
    if gain is not None and gain.num_inputs != channel.num_inputs:
        raise ParameterError(
            f"gain has {gain.num_inputs} inputs, the channel {channel.num_inputs}: give a gain "
            "function for the channel's inputs"
        )
    exact = channel.is_exact and is_exact_prior(prior) and (gain is None or gain.is_exact)
    law = checked_prior(prior, channel.num_inputs, exact=exact)
    return law, channel if exact else channel.to_float()


def column_width(num_rows: int) -> int:
    """Return how many columns of so many rows make a block."""
    return max(1, BLOCK_CELLS // num_rows)


def worth_blocks(
    prior: NDArray[Any], channel: Channel, gain: GainFunction
) -> Iterator[NDArray[Any]]:
    """Yield sum_x prior_x C_xy g(w, x), a row for each guess or class, in blocks of columns."""
    if channel.is_exact:
        yield _exact_worths(prior, channel.matrix, gain)
    elif gain.classes is None:
        yield from _table_worths(prior, channel, gain.matrix)
    else:
        from scipy.sparse import csr_array

        # It adds up the chances of the secrets of each class.
        inputs = np.arange(len(prior))
        members = csr_array((prior, (gain.classes, inputs)), shape=(len(gain.guesses), len(prior)))
        for block in channel.column_blocks(column_width(channel.num_inputs)):
            yield members @ block


def _exact_worths(
    prior: NDArray[Any], matrix: NDArray[Any], gain: GainFunction
) -> NDArray[np.object_]:
    """Return all of them in Fractions."""
    joint = prior[:, None] * matrix
    if gain.classes is None:
        return np.asarray(gain.matrix @ joint)
    totals = np.zeros((len(gain.guesses), matrix.shape[1]), dtype=np.object_)
    np.add.at(totals, gain.classes, joint)
    return totals


def _table_worths(
    prior: NDArray[np.float64], channel: Channel, table: NDArray[Any]
) -> Iterator[NDArray[np.float64]]:
    """Yield them by products of matrices."""
    weights = (to_floats(table) if is_exact_array(table) else table) * prior
    matrix = channel.matrix
    width = column_width(len(weights))
    for first in range(0, channel.num_outputs, width):
        yield np.asarray(weights @ matrix[:, first : first + width])


def sum_of_best(worths: NDArray[Any], tries: int) -> Any:
    """Return the sum over columns of the largest entries, ``tries`` of each."""
    if tries >= len(worths):
        best = worths.sum(axis=0)
    elif tries == 1:
        best = worths.max(axis=0)
    elif worths.dtype == np.object_:
        best = np.sort(worths, axis=0)[-tries:].sum(axis=0)
    else:
        best = np.partition(worths, len(worths) - tries, axis=0)[-tries:].sum(axis=0)
    return best.sum()


def _right_in_one(prior: NDArray[np.float64], matrix: NDArray[np.float64]) -> Iterator[float]:
    """Yield the sums over slices of columns of max_x prior_x matrix_xy, in tiles."""
    for first in range(0, matrix.shape[1], _TILE_COLUMNS):
        part = matrix[:, first : first + _TILE_COLUMNS]
        largest = np.zeros(part.shape[1])
        height = max(1, _TILE_CELLS // part.shape[1])
        for top in range(0, len(part), height):
            joint = prior[top : top + height, None] * part[top : top + height]
            np.maximum(largest, joint.max(axis=0), out=largest)
        yield float(largest.sum())


def prior_vulnerability(
    prior: ArrayLike | None, gain: GainFunction | None = None
) -> float | Fraction:
    """Return what the best guess is worth before anything is seen.

    Parameters
    ----------
    prior : (num_inputs,) array_like or None
        Law of the secret; None stands for the uniform law, for which ``gain`` must be given.
    gain : GainFunction, optional
        By default the gain of guessing the secret.

    Returns
    -------
    float or Fraction
        A Fraction where prior and gains are exact. Nearest; see the module.

    Raises
    ------
    ParameterError
        If the prior is no law, or for another number of inputs than the gain.

    Notes
    -----
    Source: Jurado et al. 2023, Definition 1.

    Examples
    --------
    >>> prior_vulnerability([0.5, 0.25, 0.25])
    0.5
    >>> from shuffledp.leakage.measures import tries_gain
    >>> prior_vulnerability([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], tries_gain(3, 2))
    Fraction(5, 6)
    """
    if gain is None:
        if prior is None:
            raise ParameterError("prior and gain are both missing: the number of inputs is unknown")
        gain = identity_gain(np.size(prior))
    # The channel whose only output tells nothing, exact where the others are.
    exact = gain.is_exact and is_exact_prior(prior)
    blind = np.ones((gain.num_inputs, 1), dtype=np.int64 if exact else None)
    return posterior_vulnerability(prior, Channel.from_matrix(blind), gain)


def posterior_vulnerability(
    prior: ArrayLike | None, channel: Channel | ArrayLike, gain: GainFunction | None = None
) -> float | Fraction:
    """Return what the best guess is worth on average once the output is seen.

    Parameters
    ----------
    prior : (num_inputs,) array_like or None
        Law of the secret; None stands for the uniform law.
    channel : Channel or (num_inputs, num_outputs) array_like
        Law of the output of each secret.
    gain : GainFunction, optional
        By default the gain of guessing the secret.

    Returns
    -------
    float or Fraction
        A Fraction where all three are exact. Nearest; see the module.

    Raises
    ------
    ParameterError
        If the prior is no law, the channel none, or the numbers of inputs differ.

    Notes
    -----
    Source: Jurado et al. 2023, Definition 2.

    Examples
    --------
    >>> posterior_vulnerability([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    0.75
    """
    seen = as_channel(channel)
    chosen = identity_gain(seen.num_inputs) if gain is None else gain
    law, seen = joined(prior, seen, gain=chosen)
    if seen.is_exact:
        return Fraction(sum(_best_sums(law, seen, chosen), Fraction(0)))
    return max(math.fsum(_best_sums(law, seen, chosen)), 0.0)


def additive_leakage(
    prior: ArrayLike | None, channel: Channel | ArrayLike, gain: GainFunction | None = None
) -> float | Fraction:
    """Return by how much the output raises the vulnerability: posterior minus prior.

    Parameters, errors and accuracy are those of `posterior_vulnerability`. At least 0 but for
    round-off, and 0 where the output tells nothing that changes the guess.

    Examples
    --------
    >>> additive_leakage([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    0.25
    """
    before, after = _before_and_after(prior, channel, gain)
    leakage: float | Fraction = after - before
    return leakage


def multiplicative_leakage(
    prior: ArrayLike | None, channel: Channel | ArrayLike, gain: GainFunction | None = None
) -> float | Fraction:
    """Return by what factor the output raises the vulnerability: posterior over prior.

    Parameters, errors and accuracy are those of `posterior_vulnerability`. At least 1 but for
    round-off.

    Raises
    ------
    ParameterError
        Also if the prior vulnerability is 0, so that there is no ratio.

    Examples
    --------
    >>> multiplicative_leakage([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    1.5
    """
    before, after = _before_and_after(prior, channel, gain)
    if before == 0:
        raise ParameterError(
            "prior vulnerability is 0, so that the leakage is no ratio: use additive_leakage, or "
            "add a constant to all gains"
        )
    leakage: float | Fraction = after / before
    return leakage


def best_strategy(
    prior: ArrayLike | None, channel: Channel | ArrayLike, gain: GainFunction | None = None
) -> tuple[Hashable, ...]:
    """Return the label of a best guess for each output, in the order of the columns.

    With several tries each is a tuple of labels, the likeliest first. Where guesses are equally
    good the first is taken, so also for outputs that never occur. Parameters and errors are those
    of `posterior_vulnerability`.

    Examples
    --------
    >>> best_strategy([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    (0, 1)
    """
    seen = as_channel(channel)
    chosen = identity_gain(seen.num_inputs) if gain is None else gain
    law, seen = joined(prior, seen, gain=chosen)
    found: list[Hashable] = []
    for worths in worth_blocks(law, seen, chosen):
        if chosen.tries == 1:
            found.extend(chosen.guesses[row] for row in worths.argmax(axis=0).tolist())
            continue
        order = np.argsort(-worths, axis=0, kind="stable")[: chosen.tries]
        found.extend(tuple(chosen.guesses[row] for row in rows) for rows in order.T.tolist())
    return tuple(found)


def _best_sums(law: NDArray[Any], channel: Channel, gain: GainFunction) -> Iterable[Any]:
    """Return the vulnerability in parts, by the cheapest way there is."""
    if gain.is_identity and not channel.is_exact:
        return _right_in_one(law, channel.matrix)
    return (sum_of_best(worths, gain.tries) for worths in worth_blocks(law, channel, gain))


def _before_and_after(
    prior: ArrayLike | None, channel: Channel | ArrayLike, gain: GainFunction | None
) -> tuple[Any, Any]:
    """Return prior and posterior vulnerability, both exact or both floats."""
    seen = as_channel(channel)
    chosen = identity_gain(seen.num_inputs) if gain is None else gain
    law, seen = joined(prior, seen, gain=chosen)
    return prior_vulnerability(law, chosen), posterior_vulnerability(law, seen, chosen)


def min_capacity_bits(channel: Channel | ArrayLike) -> float:
    """Return log2 of the largest factor by which the output can raise any vulnerability, in bits.

    Parameters
    ----------
    channel : Channel or (num_inputs, num_outputs) array_like
        Law of the output of each secret.

    Returns
    -------
    float
        log2 sum_y max_x C_xy, in [0, log2 min(num_inputs, num_outputs)]: no prior and no gain that
        is not negative leaks more. Nearest.

    Raises
    ------
    ParameterError
        If the matrix is no channel.

    Notes
    -----
    Attained by guessing the secret under the uniform prior. Source: Alvim, Chatzikokolakis,
    Palamidessi, Smith, "Measuring Information Leakage Using Generalized Gain Functions", CSF 2012,
    the "Miracle" theorem; docs/results/leakage-channels.md.

    Examples
    --------
    >>> min_capacity_bits([[1.0, 0.0], [0.0, 1.0]])
    1.0
    """
    return max(math.log2(multiplicative_leakage(None, channel)), 0.0)
