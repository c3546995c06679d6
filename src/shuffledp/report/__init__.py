"""How results look: self-contained HTML pages, notebook fragments, lines in a terminal.

The module itself is the `shuffledp.core.shown.Renderer` that ``shuffledp/__init__.py``
registers. Names below are loaded when they are first used.
"""

from shuffledp.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
