"""Display of results in notebooks and plots, by a renderer that is registered from above.

``shuffledp/__init__.py`` names it once, through `register_renderer`. It is a module with the
functions ``write_report(subject, path)``, which returns the path, ``notebook_html(subject)``, HTML
without scripts, ``terminal_text(subject)``, a few lines, and ``plot(subject, ax)``.
"""

from importlib import import_module
from typing import Any

_renderers: list[str] = []  # at most one; the last registered


class Shown:
    """Base of classes that display themselves in a notebook, through the registered renderer."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(registered_renderer().notebook_html(self))

    def plot(self, ax: Any = None) -> Any:
        """Draw on axes of matplotlib, which has to be installed, and return them.

        By default on a new figure. There are plots of results, plans, comparisons of bounds and
        running counts; others raise `TypeError`.
        """
        return registered_renderer().plot(self, ax)


def register_renderer(module: str) -> None:
    """Let the module of this name show results from now on."""
    _renderers[:] = [module]


def registered_renderer() -> Any:
    """Return the renderer; raise if none is registered."""
    if not _renderers:
        raise RuntimeError(
            "no renderer for results is registered: `import shuffledp` does it, or call "
            "shuffledp.core.shown.register_renderer('shuffledp.report')"
        )
    return import_module(_renderers[0])
