"""One self-contained HTML file, which loads nothing.

A content security policy forbids the page the network and all scripts, so that even a label that
escaped escaping could do no harm. Templates escape all values except our own style sheet.
"""

import json
from functools import cache, partial, singledispatch
from importlib import import_module
from os import PathLike
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from shuffledp._version import __version__
from shuffledp.collection.output import whole_file
from shuffledp.report import formatting

# Module with the page of each class of subjects; loaded on demand.
_MODULES = {
    "shuffledp.collection.result.Result": "run",
    "shuffledp.report.monitor.MonitorView": "monitor",
}


@singledispatch
def page_html(subject: object) -> str:
    """Return the whole page about a result.

    Parameters
    ----------
    subject : Result or MonitorView
        Sections whose data is empty are left out.

    Returns
    -------
    str
        HTML, its charts as SVG; below 500 kB up to some thousand estimates. Depends on nothing but
        ``subject``: the same subject gives the same page.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> plan = sdp.plan(sdp.Categories(["yes", "no"]), num_users=100, epsilon0=2.0, delta=1e-6)
    >>> result = sdp.run(plan, ["yes", "no"] * 50, seed=1)
    >>> page_html(result).startswith("<!DOCTYPE html>")
    True
    """
    classes = (f"{each.__module__}.{each.__name__}" for each in type(subject).__mro__)
    module = next((_MODULES[each] for each in classes if each in _MODULES), None)
    if module is None:
        raise TypeError(f"there is no page about a {type(subject).__name__}")
    import_module(f"shuffledp.report.{module}")  # registers its page
    page: str = page_html.dispatch(type(subject))(subject)
    return page


def write_report(subject: object, path: str | PathLike[str]) -> Path:
    """Write a self-contained HTML page, which opens without a network.

    Parameters
    ----------
    subject : Result or MonitorView
        Subject of the report.
    path : str or path-like
        Path of the report; an existing file is replaced in one step.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    OutputError
        If the file cannot be written; no file is then left behind.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> plan = sdp.plan(sdp.Categories(["yes", "no"]), num_users=100, epsilon0=2.0, delta=1e-6)
    >>> result = sdp.run(plan, ["yes", "no"] * 50, seed=1)
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(result, f"{folder}/report.html").name
    'report.html'
    """
    html = page_html(subject)
    with whole_file(path) as partial:
        partial.write_text(html, encoding="utf-8", newline="")
    return Path(path)


@cache
def templates() -> Environment:
    """Return the templates with their filters."""
    environment = Environment(
        loader=PackageLoader("shuffledp.report"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = ("best_guess", "brief", "given", "odds_factor", "one_in", "shorten", "typeset")
    environment.filters |= {name: getattr(formatting, name) for name in names} | {
        "rounded_up": partial(formatting.rounded, up=True),
        "thousands": lambda number: f"{number:,}",
        "cell": lambda text: formatting.shown_label(text).replace("|", "\\|"),
        "json": _json,
    }
    environment.globals["version"] = __version__
    return environment


def _json(value: str | float) -> str:
    """Return a text or number as JSON that YAML reads, too."""
    text = json.dumps(value, ensure_ascii=False)
    # Readers of YAML 1.1 take 1e-06 for a text and 1.0e-06 for a number.
    is_short = isinstance(value, float) and "." not in text
    return text.replace("e", ".0e") if is_short else text


def render(template: str, **facts: object) -> str:
    """Return a rendered template; all facts are escaped."""
    return templates().get_template(template).render(**facts)


def render_page(template: str, **facts: object) -> str:
    """Return a page: header and sections of its template, in one file."""
    environment = templates()
    assert environment.loader is not None  # noqa: S101  # narrows the type
    style = environment.loader.get_source(environment, "report.css")[0]
    return render(template, style=Markup(style), **facts)  # noqa: S704  # our own
