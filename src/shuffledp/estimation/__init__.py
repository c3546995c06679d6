"""Estimators: unbiased values with standard errors, from counts of reports.

Post-processing is separate, and applied only if asked for by name. The names below are loaded
at first use.
"""

from shuffledp.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
