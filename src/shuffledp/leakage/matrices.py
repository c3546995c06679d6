"""Numbers as they are taken: channel matrices, laws and gains, exact where all are rational."""

import math
from collections.abc import Hashable, Iterable
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least, require_finite
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.reports import read_only

Truth = float | int | Fraction
Labels = tuple[Hashable, ...] | None

# A Fraction takes some 100 bytes: an array of this size about half a gigabyte. Doubles: 1.6 GB.
LARGEST_EXACT_CELLS = 4_000_000
LARGEST_DENSE_CELLS = 200_000_000

# How far a sum of doubles may be from one. A law that is off by t changes what is computed from it,
# where gains are non-negative, by a factor within 1 - t and 1 + t.
SUM_TOLERANCE = 1e-9


def is_exact_array(values: NDArray[Any]) -> bool:
    """Whether ``values`` is an array of fractions, as `as_numbers` makes them."""
    return values.dtype == np.object_


def require_cells(what: str, num_inputs: int, num_outputs: int, *, exact: bool) -> None:
    """Refuse matrices beyond 2e8 doubles, or 4e6 fractions, before they are made."""
    limit = LARGEST_EXACT_CELLS if exact else LARGEST_DENSE_CELLS
    if num_inputs * num_outputs > limit:
        raise ParameterError(
            f"{what} would have {num_inputs} x {num_outputs} = {num_inputs * num_outputs} "
            f"{'exact fractions' if exact else 'cells'}, above {limit}: "
            + ("use floats, or " if exact else "")
            + "work with the closed forms"
        )


def as_numbers(name: str, values: object, num_dimensions: int) -> NDArray[Any]:
    """Return ``values`` as an array of doubles, or of fractions where all entries are rational."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ParameterError(f"{name} has rows of different lengths: give a full table") from None
    if array.ndim != num_dimensions:
        raise ParameterError(
            f"{name} has {array.ndim} dimensions, not {num_dimensions}: give "
            + ("a flat list of numbers" if num_dimensions == 1 else "a list of rows")
        )
    if array.size == 0:
        raise ParameterError(f"{name} is empty, of shape {array.shape}: give at least one number")
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    require_cells(name, array.size, 1, exact=True)
    entries = array.ravel().tolist()
    if not all(isinstance(entry, Real) for entry in entries):
        raise ParameterError(f"{name} has an entry that is not a number: give real numbers")
    if not all(isinstance(entry, Rational) for entry in entries):
        return np.array([float(entry) for entry in entries]).reshape(array.shape)
    exact = np.empty(array.size, dtype=np.object_)
    # Python's own integers: NumPy's would overflow without a word.
    exact[:] = [Fraction(int(entry.numerator), int(entry.denominator)) for entry in entries]
    return exact.reshape(array.shape)


def checked_labels(name: str, labels: Iterable[Hashable] | None, size: int) -> Labels:
    """Return labels as a tuple of distinct names, one for each of ``size``; None stays None."""
    names = None if labels is None else tuple(labels)
    if names is not None and (len(names) != size or len(set(names)) < size):
        raise ParameterError(
            f"{name} has {len(names)} labels, {len(set(names))} of them different, not {size}: "
            "give a different one for each"
        )
    return names


def check_law(name: str, law: NDArray[Any]) -> None:
    """Raise unless entries are non-negative and sum to one."""
    least = int(law.argmin())  # the first NaN, where there is one
    if not law[least] >= 0:
        raise ParameterError(
            f"{name}[{least}] = {law[least]} is not in [0, 1]: probabilities are non-negative"
        )
    with np.errstate(over="ignore"):
        total = law.sum()
    if is_exact_array(law):
        if total != 1:
            raise ParameterError(
                f"{name} sums to {total}, not 1, off by {total - 1}: divide it by its sum"
            )
    elif not abs(total - 1.0) <= SUM_TOLERANCE:
        raise ParameterError(
            f"{name} sums to {total:.12g}, not 1, off by {total - 1.0:.3g}, more than "
            f"{SUM_TOLERANCE:g}: divide it by its sum"
        )


def checked_matrix(matrix: object) -> NDArray[Any]:
    """Return a read-only copy of a channel matrix, whose rows are laws; else raise."""
    array = as_numbers("the channel matrix", matrix, 2)
    require_cells("the channel", *array.shape, exact=is_exact_array(array))
    with np.errstate(over="ignore"):
        is_off = abs(array.sum(axis=1) - 1) > (0 if is_exact_array(array) else SUM_TOLERANCE)
    for row in np.flatnonzero(is_off | ~(array >= 0).all(axis=1))[:1].tolist():
        check_law(f"row {row} of the channel", array[row])
    return read_only(array.copy(order="C"))


def float_channel(channel: Any) -> NDArray[np.float64]:
    """Return the matrix of a `Channel` or array_like as doubles."""
    matrix: NDArray[np.float64] = checked_matrix(getattr(channel, "matrix", channel))
    return matrix.astype(np.float64)


def uniform_prior(size: int) -> NDArray[np.float64]:
    """Return the uniform law on ``size`` secrets."""
    return np.full(size, 1.0 / size)


def checked_prior(prior: ArrayLike | None, num_inputs: int, *, exact: bool = False) -> NDArray[Any]:
    """Return ``prior``, or the uniform law for None, as a read-only law over the secrets, or raise.

    Doubles must sum to one within 1e-9 and are not rescaled; with ``exact``, fractions stay what
    they are.
    """
    if prior is None:
        return np.full(num_inputs, Fraction(1, num_inputs)) if exact else uniform_prior(num_inputs)
    law = as_numbers("prior", prior, 1)
    if len(law) != num_inputs:
        raise ParameterError(
            f"prior has {len(law)} entries, not {num_inputs}: give one probability for each input"
        )
    check_law("prior", law)
    return read_only(law.copy() if exact else law.astype(np.float64))


def checked_truth(truth: Truth, domain_size: int) -> float | Fraction:
    """Return the probability of a true report, exact where it is an integer or a fraction.

    Of doubles, those within rounding of 1/k count as 1/k; below that results for randomized
    response fail.
    """
    k = require_at_least("domain_size", domain_size, 2)
    number: float | Fraction
    if isinstance(truth, Rational):
        number = Fraction(int(truth.numerator), int(truth.denominator))
        least: float | Fraction = Fraction(1, k)
    else:
        number, least = require_finite("truth (p)", truth), (1.0 - 4.0 * math.ulp(1.0)) / k
    if not 0 <= number <= 1:
        raise ParameterError(
            f"truth (p) = {truth} is not in [1/k, 1]: it is a probability; try 0.75"
        )
    if number < least:
        remedy = "use the channel matrix instead"
        if k == 2:
            remedy = f"p = {float(1 - number):.6g} is the same randomizer with its reports swapped"
        raise OutOfRegimeError(
            f"truth (p) = {truth} is below 1/k = {1.0 / k:.6g}: the formulas hold where the truth "
            f"is at least as likely as any other report (p >= 1/k); {remedy}"
        )
    return number
