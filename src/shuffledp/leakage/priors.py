"""Laws over secrets, checked: what an adversary believes before he sees anything."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels.matrices import (
    SUM_TOLERANCE,
    as_numbers,
    frozen,
    is_exact_array,
    to_floats,
)


def uniform_prior(size: int, *, exact: bool = False) -> NDArray[Any]:
    """Return the uniform law on ``size`` secrets.

    Parameters
    ----------
    size : int
        Number of secrets, at least 1.
    exact : bool, optional
        Return fractions.

    Returns
    -------
    numpy.ndarray, shape (size,)
        Read-only; float64, each entry the double nearest to 1/size, or object, of
        `fractions.Fraction`.

    Raises
    ------
    ParameterError
        If ``size`` is no whole number >= 1.

    Examples
    --------
    >>> uniform_prior(4)
    array([0.25, 0.25, 0.25, 0.25])
    >>> uniform_prior(3, exact=True).sum()
    Fraction(1, 1)
    """
    number = require_at_least("size", size, 1)
    if exact:
        return frozen(np.array([Fraction(1, number)] * number, dtype=np.object_))
    return frozen(np.full(number, 1.0 / number))


def is_exact_prior(prior: ArrayLike | None) -> bool:
    """Whether ``prior`` holds fractions and integers only; None, the uniform law, does.

    Use it to choose ``exact`` of `checked_prior` where both kinds will do. Cost linear in the size.

    Raises
    ------
    ParameterError
        If ``prior`` is no flat list of numbers.

    Examples
    --------
    >>> is_exact_prior([Fraction(1, 3), Fraction(2, 3)]), is_exact_prior([0.5, 0.5])
    (True, False)
    """
    return prior is None or is_exact_array(as_numbers("prior", prior, 1))


def _check_law(law: NDArray[Any]) -> None:
    """Raise unless entries are non-negative and sum to one."""
    least = int(law.argmin())  # the first NaN, where there is one
    if not law[least] >= 0:
        raise ParameterError(
            f"prior[{least}] = {law[least]} is not in [0, 1]: probabilities are non-negative"
        )
    with np.errstate(over="ignore"):
        total = law.sum()
    if is_exact_array(law):
        if total != 1:
            raise ParameterError(
                f"prior sums to {total}, not 1, off by {total - 1}: divide it by its sum"
            )
    elif not abs(total - 1.0) <= SUM_TOLERANCE:
        raise ParameterError(
            f"prior sums to {total:.12g}, not 1, off by {total - 1.0:.3g}, more than "
            f"{SUM_TOLERANCE:g}: divide it by its sum"
        )


def checked_prior(prior: ArrayLike | None, num_inputs: int, *, exact: bool = False) -> NDArray[Any]:
    """Return ``prior`` as a read-only law over ``num_inputs`` secrets, or raise.

    Parameters
    ----------
    prior : array_like, shape (num_inputs,), or None
        Non-negative numbers that sum to one: doubles within 1e-9, fractions exactly. None stands
        for the uniform law.
    num_inputs : int
        Number of secrets, at least 1.
    exact : bool, optional
        Return fractions, and refuse doubles: their binary values rarely sum to one.
        `is_exact_prior` tells which kind was given.

    Returns
    -------
    numpy.ndarray, shape (num_inputs,)
        A copy, read-only. float64, as given and not rescaled (fractions are rounded to the nearest
        double); with ``exact``, object, of `fractions.Fraction`.

    Raises
    ------
    ParameterError
        If the length is wrong, an entry is NaN or negative, or the sum is not one; with ``exact``,
        if entries are floats.

    Examples
    --------
    >>> checked_prior([0.25, 0.75], 2)
    array([0.25, 0.75])
    >>> checked_prior(None, 2, exact=True).tolist()
    [Fraction(1, 2), Fraction(1, 2)]
    """
    size = require_at_least("num_inputs", num_inputs, 1)
    if prior is None:
        return uniform_prior(size, exact=exact)
    law = as_numbers("prior", prior, 1)
    if len(law) != size:
        raise ParameterError(
            f"prior has {len(law)} entries, not {size}: give one probability for each input"
        )
    _check_law(law)
    if is_exact_array(law):
        return frozen(law.copy() if exact else to_floats(law))
    if exact:
        raise ParameterError(
            "prior holds floats where exact fractions are needed: give Fractions, or make the "
            "channel a float one with to_float()"
        )
    return frozen(law.copy())
