"""Estimators: counts of reports go in, unbiased values with standard errors come out.

Post-processing stands apart, and is never applied unless asked for by name.
"""

from shuffledp.estimation.frequencies import (
    FrequencyEstimates,
    estimate_frequencies,
    expected_standard_error,
)
from shuffledp.estimation.means import MeanEstimates
from shuffledp.estimation.post_processing import POST_PROCESSING, clip, norm_sub

__all__ = [
    "POST_PROCESSING",
    "FrequencyEstimates",
    "MeanEstimates",
    "clip",
    "estimate_frequencies",
    "expected_standard_error",
    "norm_sub",
]
