"""Steps that make estimates look possible, at the price of bias: explicit, named, never default.

Each returns new estimates with its name in `POST_PROCESSING` appended to ``post_processing``. Only
``count`` and ``frequency`` change. Standard errors and intervals still refer to the unbiased
estimate: an interval that holds the truth 95 times in 100 still does so whatever value is printed
beside it, whereas the error of the changed value depends on the unknown truth and has no valid
estimate of this form. So a changed value may lie outside its interval.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.estimation.frequencies import FrequencyEstimates

EstimatesT = TypeVar("EstimatesT", bound=FrequencyEstimates)


def clip(estimates: EstimatesT) -> EstimatesT:
    """Return the estimates with each frequency moved to the nearest value in [0, 1].

    Parameters
    ----------
    estimates : FrequencyEstimates
        The estimates; not changed.

    Returns
    -------
    FrequencyEstimates
        Frequencies in [0, 1], biased upwards for rare values; their sum is in general not 1.
        ``"clip"`` is appended to ``post_processing``.

    Examples
    --------
    >>> from shuffledp.estimation.frequencies import Counts, estimate_frequencies
    >>> counts = Counts(support=np.array([80, 20]), num_reports=100, fingerprint="")
    >>> clip(estimate_frequencies(counts, support_probabilities=(0.75, 0.25))).count.tolist()
    [100.0, 0.0]
    """
    return with_frequency(estimates, np.clip(estimates.frequency, 0.0, 1.0), "clip")


def norm_sub(estimates: FrequencyEstimates) -> FrequencyEstimates:
    """Return the estimates with negatives at zero and the others shifted equally to sum to 1.

    Parameters
    ----------
    estimates : FrequencyEstimates
        The estimates; not changed. The k categories must be all the values that users can have.

    Returns
    -------
    FrequencyEstimates
        Frequencies that are non-negative and sum to 1. A category whose estimate is not
        positive gets 0, unless all are so: then each gets ``1 / k``. ``"norm-sub"`` is
        appended to ``post_processing``.

    Notes
    -----
    Source: Norm-Sub of Wang, Lopuhaa-Zwakenberg, Li, Skoric, Li, NDSS 2020, arXiv:1905.08320:
    negatives go to zero, the positive ones are shifted equally to the sum wanted, and both steps
    are repeated until nothing is negative.

    That ends at the simplex projection max(x - t, 0) of the *positive* estimates, computed here in
    O(k log k). Proof (Michelot 1986): if they sum to less than 1, the first shift is upwards, makes
    nothing negative, and is -t. Otherwise write s for the sum of all shifts down so far. At t the
    values not yet dropped sum to 1 or less, as long as they include the values that the projection
    keeps; so s <= t, and none of these is dropped. s never falls, since dropped values are
    negative. So if no more values are dropped, the result is max(x - s, 0) with the right sum,
    which defines the projection.

    Examples
    --------
    >>> from shuffledp.estimation.frequencies import Counts, estimate_frequencies
    >>> counts = Counts(support=np.array([55, 35, 20]), num_reports=100, fingerprint="")
    >>> estimates = estimate_frequencies(counts, support_probabilities=(0.75, 0.25))
    >>> norm_sub(estimates).count.round(9).tolist()  # from 60, 20, -10
    [70.0, 30.0, 0.0]
    """
    is_positive = estimates.frequency > 0.0
    if not is_positive.any():
        is_positive = np.ones_like(is_positive)
    frequency = np.zeros_like(estimates.frequency)
    kept = np.maximum(estimates.frequency[is_positive], 0.0)
    frequency[is_positive] = nearest_with_sum(kept, 1.0)
    return with_frequency(estimates, frequency, "norm-sub")


#: Name of each step, as recorded in ``post_processing``, and its function.
POST_PROCESSING: Mapping[str, Callable[[FrequencyEstimates], FrequencyEstimates]] = (
    MappingProxyType({"clip": clip, "norm-sub": norm_sub})
)


def nearest_with_sum(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return the nearest non-negative rows, along the last axis, of the given sum > 0.

    One threshold is subtracted, so that the positive parts have the sum (Held, Wolfe, Crowder,
    Mathematical Programming 6, 1974).
    """
    # A common shift changes nothing; this one keeps the total from being lost in round-off.
    shifted = values - values.max(axis=-1, keepdims=True)
    descending = -np.sort(-shifted, axis=-1)
    shifts = (np.cumsum(descending, axis=-1) - total) / np.arange(1, values.shape[-1] + 1)
    kept = (descending > shifts).sum(axis=-1, keepdims=True) - 1  # at least 0: 0 > -total
    nearest = np.maximum(shifted - np.take_along_axis(shifts, kept, axis=-1), 0.0)
    return np.asarray(nearest)


def with_frequency(estimates: EstimatesT, frequency: NDArray[np.float64], step: str) -> EstimatesT:
    """Return the estimates with other frequencies, and record the step that made them."""
    return replace(
        estimates,
        frequency=frequency,
        count=frequency * estimates.num_users,
        post_processing=(*estimates.post_processing, step),
    )
