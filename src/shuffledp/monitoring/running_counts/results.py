"""What a server of a longitudinal collection hands out: counts, standard errors and bands."""

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_positive
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only

_ARRAYS = ("counts", "standard_errors", "lower", "upper")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunningEstimate:
    """How many users have a value at one period; arrays read-only.

    Parameters
    ----------
    period : int
        t.
    counts : ndarray of float64, shape () or (num_values,)
        Unbiased numbers of users; may be negative or above their number. A plain number for
        booleans.
    standard_errors : ndarray of float64, same shape
        Of ``counts``.
    lower, upper : ndarray of float64, same shape
        Band; not clipped.
    method : str
        Estimator.
    confidence : float
        Nominal coverage of the band, in (0, 1).
    is_simultaneous : bool
        Whether the bands of all periods and values of the design hold at once with that
        confidence, rather than each alone.
    labels : tuple
        What is counted, one entry a value.
    post_processing : tuple of str
        Names of the steps applied to ``counts`` after estimation, in order. Empty: unbiased.
    """

    period: int
    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    method: str
    confidence: float
    is_simultaneous: bool
    labels: tuple[Hashable, ...] = ()
    post_processing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            object.__setattr__(self, name, read_only(np.asarray(getattr(self, name))))

    def clipped(self, num_users: float) -> "RunningEstimate":
        """Return the estimate with counts moved into [0, num_users]. See `RunningCounts.clipped`.

        Parameters
        ----------
        num_users : float
            Number of users, in (0, inf).

        Returns
        -------
        RunningEstimate
            ``"clip"`` is appended to ``post_processing``.

        Raises
        ------
        ParameterError
            If ``num_users`` is out of range.
        """
        return replace(
            self,
            counts=_clip(self.counts, num_users),
            post_processing=(*self.post_processing, "clip"),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunningCounts:
    """How many users have a value at each of the periods 1 ... T; arrays read-only.

    Parameters
    ----------
    periods : ndarray of int64, shape (T,)
        1 ... T.
    counts : ndarray of float64, shape (T,) or (T, num_values)
        Unbiased numbers of users; may be negative or above their number. One axis for booleans.
    standard_errors : ndarray of float64, same shape
        Of ``counts``.
    lower, upper : ndarray of float64, same shape
        Bands; not clipped.
    method : str
        Estimator.
    is_smoothed : bool
        Whether the reports of all T periods were used for every period, so that ``counts`` change
        when more arrive; else the counts at t are what was known at t.
    confidence : float
        Nominal coverage of the bands, in (0, 1).
    is_simultaneous : bool
        Whether all bands hold at once with that confidence, rather than each alone.
    labels : tuple
        What is counted, one entry a value.
    post_processing : tuple of str
        Names of the steps applied to ``counts`` after estimation, in order. Empty: unbiased.
    """

    periods: NDArray[np.int64]
    counts: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    method: str
    is_smoothed: bool
    confidence: float
    is_simultaneous: bool
    labels: tuple[Hashable, ...] = ()
    post_processing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("periods", *_ARRAYS):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __len__(self) -> int:
        return int(self.periods.size)

    def at(self, t: int) -> RunningEstimate:
        """Return the estimate for one of the periods.

        Parameters
        ----------
        t : int
            In [1, T].

        Returns
        -------
        RunningEstimate
            With this method, these bands and steps.

        Raises
        ------
        ParameterError
            If ``t`` is out of range.
        """
        if not 1 <= t <= len(self):
            raise ParameterError(f"t = {t} is not in [1, {len(self)}]: no other period is here")
        return RunningEstimate(
            period=t,
            counts=self.counts[t - 1],
            standard_errors=self.standard_errors[t - 1],
            lower=self.lower[t - 1],
            upper=self.upper[t - 1],
            method=self.method,
            confidence=self.confidence,
            is_simultaneous=self.is_simultaneous,
            labels=self.labels,
            post_processing=self.post_processing,
        )

    def clipped(self, num_users: float) -> "RunningCounts":
        """Return the running counts with each moved to the nearest number in [0, num_users].

        Parameters
        ----------
        num_users : float
            Number of users, in (0, inf).

        Returns
        -------
        RunningCounts
            Biased, upwards for rare values. Standard errors and bands stay those of the unbiased
            counts: a band that holds the truth does so whatever is printed beside it. ``"clip"``
            is appended to ``post_processing``.

        Raises
        ------
        ParameterError
            If ``num_users`` is out of range.
        """
        return replace(
            self,
            counts=_clip(self.counts, num_users),
            post_processing=(*self.post_processing, "clip"),
        )


def _clip(counts: NDArray[np.float64], num_users: float) -> NDArray[np.float64]:
    """Return counts in [0, num_users], as float64 of the same shape."""
    return np.asarray(np.clip(counts, 0.0, require_positive("num_users", num_users)))
