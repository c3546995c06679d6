"""Collections across machines: a task, the devices that answer it, and the servers."""

from shuffledp.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
