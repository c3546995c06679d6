"""Graphs of who can pass reports on to whom, and random walks on them."""

from shuffledp.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
