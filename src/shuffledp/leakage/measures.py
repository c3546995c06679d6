"""How well the best adversary does before and after seeing a channel's output, for any goal.

A gain g(w, x) is what the guess w is worth where the secret is x, a table with a row for each
guess. V_g(prior) = max_w sum_x prior_x g(w, x) before, and V_g[prior > C] = sum_y max_w sum_x
prior_x C_xy g(w, x) after. Without a gain, guessing the secret, both are the chance to guess right.

*Accuracy.* With fractions throughout, exact. Otherwise nearest, in no direction: guessing the
secret in one try is right to a relative 1e-14; otherwise to (num_inputs + 50) u, u = 2^-53, where
gains are not negative, and to that of the vulnerability for the absolute gains where some are.
Priors and rows that sum to one only within 1e-9 add as much.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1, Definitions 1, 2 and 13.
"""

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channel import Channel, as_channel, as_numbers, checked_prior, is_exact_array


def single_target_gain(
    inputs: Sequence[Sequence[Hashable]] | None, target: int = 0
) -> NDArray[np.int64]:
    """Return the gain of guessing what one person said: 1 if right, else 0.

    Parameters
    ----------
    inputs : sequence of sequences
        Each value of the secret, as the list of what everybody said: ``channel.inputs``.
    target : int
        Place of the person in each of them, from 0.

    Returns
    -------
    ndarray of int64, shape (num_answers, num_inputs)
        A row for each answer, in the order in which they appear.

    Raises
    ------
    ParameterError
        If there are no inputs, or one of them is too short.

    Notes
    -----
    Source: Jurado et al. 2023, Definition 13 (the person there is number 0).

    Examples
    --------
    >>> single_target_gain([("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")], target=1)
    array([[1, 0, 1, 0],
           [0, 1, 0, 1]])
    """
    target = require_at_least("target", target, 0)
    if not inputs:
        raise ParameterError("inputs is empty: give what everybody said, as tuples")
    people = min(map(len, inputs))
    if target >= people:
        raise ParameterError(f"target = {target} is not among the {people} people of each input")
    said = [values[target] for values in inputs]
    return np.array([[int(each == guess) for each in said] for guess in dict.fromkeys(said)])


def _checked_gain(gain: ArrayLike, num_inputs: int) -> NDArray[Any]:
    """Return a table of gains, some guess of which loses nothing whatever the secret."""
    table = as_numbers("gain", gain, 2)
    if table.shape[1] != num_inputs:
        raise ParameterError(
            f"gain has {table.shape[1]} inputs, the channel {num_inputs}: give a column for each"
        )
    if not all(map(math.isfinite, table.ravel().tolist())):
        raise ParameterError("gain has an entry that is not finite: give finite gains")
    if not np.all(table >= 0, axis=1).any():
        raise ParameterError(
            "gain has a negative entry in every row: add a guess worth 0 (not to play)"
        )
    return table


def prior_vulnerability(
    prior: ArrayLike | None, gain: ArrayLike | None = None, *, tries: int = 1
) -> float | Fraction:
    """Return the expected gain of the best guess before any output is seen.

    Parameters
    ----------
    prior : (num_inputs,) array_like or None
        Law of the secret; None stands for the uniform law, for which ``gain`` must be given.
    gain, tries
        As for `posterior_vulnerability`.

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
    >>> prior_vulnerability([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], tries=2)
    Fraction(5, 6)
    """
    if gain is not None:
        size = as_numbers("gain", gain, 2).shape[1]
    elif prior is not None:
        size = np.size(prior)
    else:
        raise ParameterError("prior and gain are both missing: the number of inputs is unknown")
    # The channel whose only output tells nothing.
    blind = Channel(np.ones((size, 1), dtype=np.int64))
    return posterior_vulnerability(prior, blind, gain, tries=tries)


def posterior_vulnerability(
    prior: ArrayLike | None,
    channel: Channel | ArrayLike,
    gain: ArrayLike | None = None,
    *,
    tries: int = 1,
) -> float | Fraction:
    """Return the expected gain of the best guess once the output is seen.

    The additive leakage is this less `prior_vulnerability`, the multiplicative one their ratio.

    Parameters
    ----------
    prior : (num_inputs,) array_like or None
        Law of the secret; None stands for the uniform law.
    channel : Channel or (num_inputs, num_outputs) array_like
        Law of the output of each secret.
    gain : (num_guesses, num_inputs) array_like, optional
        What each guess is worth for each secret, finite; by default 1 for the secret itself. Where
        some are negative, one guess at least must be worth 0 or more for each secret, such as not
        to play: then no vulnerability is negative.
    tries : int
        So many different guesses may be made, at least 1, whose gains are added up.

    Returns
    -------
    float or Fraction
        A Fraction where all three are exact. Nearest; see the module.

    Raises
    ------
    ParameterError
        If the prior is no law, the channel none, a gain has no guess without risk, or the numbers
        of inputs differ.

    Notes
    -----
    Source: Jurado et al. 2023, Definition 2.

    Examples
    --------
    >>> posterior_vulnerability([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    0.75
    """
    number, seen = require_at_least("tries", tries, 1), as_channel(channel)
    parts = [checked_prior(prior, seen.num_inputs, exact=True), seen.matrix]
    if gain is not None:
        parts.append(_checked_gain(gain, seen.num_inputs))
    exact = all(map(is_exact_array, parts))
    law, matrix, *table = parts if exact else [part.astype(np.float64) for part in parts]
    worths = law[:, None] * matrix
    if table:
        worths = table[0] @ worths
    best = worths.max(axis=0) if number == 1 else np.sort(worths, axis=0)[-number:].sum(axis=0)
    return Fraction(best.sum()) if exact else max(math.fsum(best), 0.0)


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
    return max(math.log2(math.fsum(as_channel(channel).matrix.max(axis=0))), 0.0)
