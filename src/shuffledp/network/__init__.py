"""Graphs of users who can pass reports on, and random walks on them."""

from shuffledp.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
