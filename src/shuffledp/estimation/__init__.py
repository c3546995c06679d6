"""Estimators: counts of reports go in, unbiased values with standard errors come out.

Post-processing stands apart, and is never applied unless asked for by name. Names below are loaded
when they are first used.
"""

from shuffledp.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
