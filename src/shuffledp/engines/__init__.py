"""Execution on all cores of this machine, or on a cluster of Apache Spark."""

from shuffledp.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
