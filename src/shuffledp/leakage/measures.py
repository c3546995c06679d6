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
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channel import Channel, as_channel
from shuffledp.leakage.matrices import (
    as_numbers,
    checked_prior,
    is_exact_array,
    is_exact_prior,
    to_floats,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class GainFunction:
    """What each guess is worth for each secret; made by the functions of this module.

    Parameters
    ----------
    num_inputs : int
        Number of values of the secret.
    num_guesses : int
        Rows of ``table``, or number of classes. With ``tries`` > 1 a guess names that many classes.
    table : (num_guesses, num_inputs) array or None
        Gains, read-only: float64, or Fractions (object). Not both this and ``classes``.
    classes : (num_inputs,) array of int64 or None
        Class of each secret, 0 ... num_guesses - 1, read-only.
    tries : int
        Classes that the adversary may name.

    Examples
    --------
    >>> identity_gain(3)
    GainFunction(3 x 3, classes, tries=1)
    """

    num_inputs: int
    num_guesses: int
    table: NDArray[Any] | None = None
    classes: NDArray[np.int64] | None = None
    tries: int = 1

    @property
    def is_exact(self) -> bool:
        """Whether all gains are rational numbers known exactly."""
        return self.table is None or self.table.dtype == object

    @property
    def is_identity(self) -> bool:
        """Whether a guess names one value of the secret and is worth 1 if right, else 0."""
        return self.classes is not None and self.tries == 1 and self.num_guesses == self.num_inputs

    def __repr__(self) -> str:
        form = "table" if self.classes is None else f"classes, tries={self.tries}"
        return f"GainFunction({self.num_guesses} x {self.num_inputs}, {form})"


def identity_gain(size: int) -> GainFunction:
    """Return the gain of guessing the secret in one try: 1 if right, else 0.

    Parameters
    ----------
    size : int
        Number of values of the secret, at least 1.

    Raises
    ------
    ParameterError
        If the size is not a whole number above 0.

    Notes
    -----
    Its vulnerability is the adversary's chance of guessing right, the Bayes vulnerability.

    Examples
    --------
    >>> identity_gain(4)
    GainFunction(4 x 4, classes, tries=1)
    """
    return tries_gain(size, 1)


def tries_gain(size: int, tries: int) -> GainFunction:
    """Return the gain of guessing the secret in so many tries: 1 if one of them is right, else 0.

    Parameters
    ----------
    size
        As for `identity_gain`.
    tries : int
        At least 1. From ``size`` on, the adversary always gains 1.

    Raises
    ------
    ParameterError
        If a number is out of range.

    Examples
    --------
    >>> tries_gain(60, 3)
    GainFunction(60 x 60, classes, tries=3)
    """
    size = require_at_least("size", size, 1)
    return _by_classes(np.arange(size, dtype=np.int64), size, require_at_least("tries", tries, 1))


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
    >>> single_target_gain([("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")], target=1)
    GainFunction(2 x 4, classes, tries=1)
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
    return _by_classes(classes, len(numbers), require_at_least("tries", tries, 1))


def matrix_gain(matrix: ArrayLike) -> GainFunction:
    """Return the gain function with a given table.

    Parameters
    ----------
    matrix : (num_guesses, num_inputs) array_like
        Gain of each guess (row) for each secret (column), finite. Copied. Exact where all are whole
        numbers or Fractions, else float64. Where some are negative, one guess at least must be
        worth 0 or more for each secret, such as not to play: then no vulnerability is negative.

    Raises
    ------
    ParameterError
        If it is no table of finite numbers, or no guess is without risk.

    Examples
    --------
    Betting one's stake on a coin may lose it, and one may also not bet.

    >>> matrix_gain([[1, -1], [-1, 1], [0, 0]])
    GainFunction(3 x 2, table)
    """
    table = as_numbers("matrix", matrix, 2).copy()
    finite = np.isfinite(table) if table.dtype == np.float64 else np.ones(table.shape, np.bool_)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise ParameterError(
            f"matrix[{row}, {column}] = {table[row, column]} is not finite: give a finite gain"
        )
    if not np.all(table >= 0, axis=1).any():
        raise ParameterError(
            "matrix has a negative gain in every row, so that the best guess may be worth less "
            "than 0: add a guess worth 0 everywhere (not to play), or add a constant to all gains"
        )
    table.setflags(write=False)
    return GainFunction(num_inputs=table.shape[1], num_guesses=len(table), table=table)


def _by_classes(classes: NDArray[np.int64], num_classes: int, tries: int) -> GainFunction:
    """Return the gain of naming the class of the secret."""
    classes.setflags(write=False)
    return GainFunction(
        num_inputs=len(classes), num_guesses=num_classes, classes=classes, tries=tries
    )


# Cells of a block of columns: 16 MB of doubles.
_BLOCK_CELLS = 1 << 21


def joined(
    prior: ArrayLike | None, channel: Channel, gain: GainFunction
) -> tuple[NDArray[Any], Channel]:
    """Return the checked prior and the channel, both exact if all that is given is, else floats."""
    if gain.num_inputs != channel.num_inputs:
        raise ParameterError(
            f"gain has {gain.num_inputs} inputs, the channel {channel.num_inputs}: give a gain "
            "function for the channel's inputs"
        )
    exact = channel.is_exact and is_exact_prior(prior) and gain.is_exact
    law = checked_prior(prior, channel.num_inputs, exact=exact)
    return law, channel if exact else channel.to_float()


def _best_sums(prior: NDArray[Any], channel: Channel, gain: GainFunction) -> Iterator[Any]:
    """Yield the sums, over blocks of columns y, of max_w sum_x prior_x C_xy g(w, x)."""
    matrix, table = channel.matrix, gain.table
    if table is not None and not channel.is_exact and is_exact_array(table):
        table = to_floats(table)
    width = max(1, _BLOCK_CELLS // len(prior))
    for first in range(0, channel.num_outputs, width):
        worths = prior[:, None] * matrix[:, first : first + width]
        if table is not None:
            worths = table @ worths
        elif gain.classes is not None and not gain.is_identity:
            totals = np.zeros((gain.num_guesses, worths.shape[1]), dtype=worths.dtype)
            np.add.at(totals, gain.classes, worths)
            worths = totals
        if gain.tries == 1:
            yield worths.max(axis=0).sum()
        else:
            yield np.sort(worths, axis=0)[-gain.tries :].sum()


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
    return posterior_vulnerability(prior, Channel(blind), gain)


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
    law, seen = joined(prior, seen, chosen)
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


def _before_and_after(
    prior: ArrayLike | None, channel: Channel | ArrayLike, gain: GainFunction | None
) -> tuple[Any, Any]:
    """Return prior and posterior vulnerability, both exact or both floats."""
    seen = as_channel(channel)
    chosen = identity_gain(seen.num_inputs) if gain is None else gain
    law, seen = joined(prior, seen, chosen)
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
