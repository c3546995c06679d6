"""How a result looks: a self-contained HTML report, a notebook fragment, lines in a terminal.

The module itself is the `shuffledp.collection.results.Renderer` that ``shuffledp/__init__.py``
registers.
"""

from shuffledp.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
