"""Presentation of results: self-contained HTML pages, notebook fragments, lines in a terminal.

The module itself is the renderer of `shuffledp.core.shown` that ``shuffledp/__init__.py``
registers. The names below are loaded at first use.
"""

from shuffledp.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
