"""Steps that make estimates look possible, at the price of bias: explicit, named, never default.

Each returns new estimates with its name appended to ``post_processing``. Only ``count`` and
``frequency`` change. Standard errors and intervals stay those of the unbiased estimate: an interval
that holds the truth 95 times in 100 still does so whatever value is printed beside it, whereas the
error of the changed value depends on the unknown truth and has no valid estimate of this form. So a
changed value may lie outside its interval.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shuffledp.mechanisms.estimators.frequencies import FrequencyEstimates


def clip(estimates: FrequencyEstimates) -> FrequencyEstimates:
    """Return the estimates with each frequency moved to the nearest value in [0, 1].

    Parameters
    ----------
    estimates : FrequencyEstimates
        Left as they are.

    Returns
    -------
    FrequencyEstimates
        Frequencies in [0, 1], biased upwards for rare values; their sum is in general not 1.
        ``"clip"`` is appended to ``post_processing``.

    Examples
    --------
    >>> from shuffledp.mechanisms.estimators.frequencies import Counts, estimate_frequencies
    >>> counts = Counts(support=np.array([80, 20]), num_reports=100, fingerprint="")
    >>> clip(estimate_frequencies(counts, support_probabilities=(0.75, 0.25))).count.tolist()
    [100.0, 0.0]
    """
    return _with_frequency(estimates, np.clip(estimates.frequency, 0.0, 1.0), "clip")


def project_onto_simplex(estimates: FrequencyEstimates) -> FrequencyEstimates:
    """Return the estimates with the frequencies moved to the nearest probability vector.

    Parameters
    ----------
    estimates : FrequencyEstimates
        Left as they are. The k categories must be all the values that users can have.

    Returns
    -------
    FrequencyEstimates
        Frequencies that are non-negative and sum to 1, nearest in Euclidean distance.
        ``"project_onto_simplex"`` is appended to ``post_processing``.

    Notes
    -----
    Source: Held, Wolfe, Crowder 1974: the projection is max(x - t, 0), with the shift t fixed by
    the sum. With x in descending order, t = (x_1 + ... + x_m - 1) / m for the largest m at which
    x_m exceeds that. O(k log k).

    Examples
    --------
    >>> from shuffledp.mechanisms.estimators.frequencies import Counts, estimate_frequencies
    >>> counts = Counts(support=np.array([80, 20]), num_reports=100, fingerprint="")
    >>> estimates = estimate_frequencies(counts, support_probabilities=(0.75, 0.25))
    >>> project_onto_simplex(estimates).frequency.tolist()
    [1.0, 0.0]
    """
    descending = np.sort(estimates.frequency)[::-1]
    shifts = (np.cumsum(descending) - 1.0) / np.arange(1, descending.size + 1)
    kept = np.flatnonzero(descending > shifts)[-1]  # the first always is: x_1 > x_1 - 1
    projected = np.maximum(estimates.frequency - shifts[kept], 0.0)
    return _with_frequency(estimates, projected, "project_onto_simplex")


def _with_frequency(
    estimates: FrequencyEstimates, frequency: NDArray[np.float64], step: str
) -> FrequencyEstimates:
    """Return the estimates with other frequencies, and the step that made them on record."""
    return replace(
        estimates,
        frequency=frequency,
        count=frequency * estimates.num_users,
        post_processing=(*estimates.post_processing, step),
    )
