"""The main job: plans a collection, runs it, and holds what came out."""

from shuffledp.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
