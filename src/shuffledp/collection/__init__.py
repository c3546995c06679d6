"""Collections: questions, plans, runs and results."""

from shuffledp.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
