"""Shuffling within overlapping groups: reports stay near their users (Meehan et al.)."""

from shuffledp.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
