"""Display of results in notebooks and plots, by a renderer that is registered from above.

``shuffledp/__init__.py`` hands it in once, through `register_renderer`.
"""

from importlib import import_module
from typing import Any, Protocol, cast


class Shown:
    """Base of classes that display themselves in a notebook, through the registered renderer."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return registered_renderer().notebook_html(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw on axes of matplotlib, which has to be installed, and return them.

        By default on a new figure. There are plots of results, plans, comparisons of bounds and
        running counts; others raise `TypeError`.
        """
        return registered_renderer().plot(self, ax)


class Renderer(Protocol):
    """Turns plans and results into something to look at; ``shuffledp.report`` is one."""

    def write_report(self, subject: Any, path: Any) -> Any:
        """Write a self-contained HTML report and return its path."""

    def notebook_html(self, subject: object) -> str:
        """Return an HTML fragment without scripts."""

    def terminal_text(self, subject: Any) -> str:
        """Return a few lines of plain text."""

    def plot(self, subject: object, ax: Any) -> Any:
        """Draw on axes of matplotlib, new ones for None, and return them."""


_renderers: list[Renderer | str] = []  # at most one; the last registered


def register_renderer(renderer: Renderer | str) -> None:
    """Let ``renderer``, or the module of that name, show results from now on."""
    _renderers[:] = [renderer]


def registered_renderer() -> Renderer:
    """Return the renderer; raise if none is registered."""
    if not _renderers:
        raise RuntimeError(
            "no renderer for results is registered: `import shuffledp` does it, or call "
            "shuffledp.core.shown.register_renderer(shuffledp.report)"
        )
    found = _renderers[0]
    return cast(Renderer, import_module(found)) if isinstance(found, str) else found
