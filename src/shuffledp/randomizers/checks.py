"""Checks and small facts that all randomizers share: parameters, codes, reports, fingerprints."""

import hashlib
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Booleans
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import DomainError, FingerprintError, ParameterError
from shuffledp.core.reports import Reports, read_only
from shuffledp.randomizers.thresholds import WORD_VALUES

LARGEST_K = 2**32 - 1  # a category code fits 32 bits
_FINGERPRINT_DIGITS = 32  # 128 bits


def require_domain_size(value: SupportsIndex, largest: int = LARGEST_K) -> int:
    """Return ``value`` as an int in [2, largest], else raise `ParameterError`."""
    remedy = "group the values into fewer categories"
    return require_at_least("domain_size", value, 2, largest, remedy)


def fingerprint_of(name: str, **parameters: object) -> str:
    """Return the name of an exact law: 32 hexadecimal digits of SHA-256.

    ``parameters`` are all that the law depends on, as whole numbers or texts, in a fixed order.
    """
    stated = "/".join(f"{key}={value}" for key, value in parameters.items())
    law = f"shuffledp local randomizer/{name}/{stated}/{WORD_VALUES}"
    return hashlib.sha256(law.encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def code_type(k: int) -> np.dtype[Any]:
    """Return the narrowest unsigned type that holds the codes 0 ... k - 1."""
    return np.min_scalar_type(k - 1)


def plain_array(values: Any) -> NDArray[Any]:
    """Return ``values`` as an array, else raise `ParameterError` for one with masked elements."""
    if hasattr(values, "mask") and hasattr(values, "filled"):  # NumPy would drop the mask
        raise ParameterError(
            "values is a masked array: drop what is masked, or give it a category of its own"
        )
    return np.asarray(values)


def require_codes(codes: NDArray[np.integer[Any]], k: int) -> NDArray[Any]:
    """Return ``codes`` as an array of shape (n,) with values in [0, k), else raise."""
    array = plain_array(codes)
    if array.ndim != 1:
        raise ParameterError(f"codes has shape {array.shape}: give one code a user, shape (n,)")
    if array.size == 0:
        return array.astype(code_type(k))
    if array.dtype.kind not in "iu":  # durations are integers to NumPy, not to us
        raise ParameterError(
            f"codes has dtype {array.dtype}: give integers in [0, {k}), the positions of the "
            "values in the domain"
        )
    if int(array.min()) < 0 or int(array.max()) >= k:
        position = int(np.argmax((array < 0) | (array >= k)))
        raise DomainError(
            f"codes[{position}] = {array[position]} is not in [0, {k}): declare the value in the "
            "domain, or map it to a category for all others"
        )
    return array


def require_same_law(found: str, expected: str) -> None:
    """Raise `FingerprintError` unless reports, or counts of them, are of the law expected."""
    if found != expected:
        raise FingerprintError(
            f"these reports carry the fingerprint {found!r}, this randomizer's is {expected!r}: "
            "take the one that made them, with its name, k and epsilon0 (and max_answers, for sets)"
        )


def aggregate_of(randomizer: Any, data: Any) -> Any:
    """Return the aggregate of reports, or the one that is given; raise unless it is of this law."""
    found = randomizer.aggregate(data) if isinstance(data, Reports) else data
    require_same_law(found.fingerprint, randomizer.fingerprint)
    return found


def require_reports(
    reports: Reports, fingerprint: str, dtype: np.dtype[Any], row_shape: tuple[int, ...] = ()
) -> NDArray[Any]:
    """Return the contiguous data of ``reports`` if this law could have made them, else raise."""
    require_same_law(reports.fingerprint, fingerprint)
    data = reports.data
    if data.dtype != dtype or data.shape[1:] != row_shape:
        raise ParameterError(
            f"reports have dtype {data.dtype} and rows of shape {data.shape[1:]}, not {dtype} and "
            f"{row_shape}: pass Reports.data on as it was made"
        )
    # Always read-only, also where this had to copy: one compiled version of the loops serves all.
    return read_only(np.ascontiguousarray(data))


def require_possible(
    is_possible: Booleans, fault: str, of: NDArray[Any] | None = None, *, first: int = 0
) -> None:
    """Raise `DomainError` for the first report that is impossible; ``{}`` is its entry of ``of``.

    The rows of both arrays are the reports from number ``first`` on.
    """
    if not is_possible.all():
        row = int(np.argmin(is_possible))
        raise DomainError(
            f"report {first + row} {fault if of is None else fault.format(of[row])}: this "
            "randomizer makes no such report, so it is corrupt or forged; drop it and aggregate "
            "again"
        )


def require_whole_reports(
    reports: Reports, fingerprint: str, dtype: np.dtype[Any], end: int
) -> NDArray[Any]:
    """Return the contiguous data of reports that are whole numbers in [0, end), once checked."""
    codes = require_reports(reports, fingerprint, dtype)
    if codes.size and int(codes.max()) >= end:  # an unsigned type
        require_possible(codes < end, f"is {{}}, not in [0, {end})", codes)
    return codes
