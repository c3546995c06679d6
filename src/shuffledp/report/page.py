"""One HTML file with everything in it, which loads nothing from anywhere.

The page forbids itself the network by a content security policy, and runs only the two scripts
whose hashes stand in it; so even a label that slipped through escaping could do no harm. Templates
escape whatever they are given, but for our own style sheet, scripts and charts.
"""

import base64
import hashlib
import json
import os
from collections.abc import Iterable
from functools import cache, singledispatch
from os import PathLike
from pathlib import Path
from uuid import uuid4

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from shuffledp._version import __version__
from shuffledp.core.errors import OutputError
from shuffledp.report.figures import Figure
from shuffledp.report.formatting import brief, given, rounded, shorten, typeset


@singledispatch
def page_html(subject: object) -> str:
    """Return the whole page about a result, plan, comparison of bounds or set of charts.

    Parameters
    ----------
    subject : Result, Plan, BoundCurves, MonitorView or ChartPage
        Sections whose data is empty are left out.

    Returns
    -------
    str
        HTML of about 5 MB, nearly all of it plotly.js. Depends on nothing but ``subject``: the
        same subject gives the same page.
    """
    raise TypeError(f"there is no page about a {type(subject).__name__}")


def write_report(subject: object, path: str | PathLike[str]) -> Path:
    """Write a self-contained HTML page, which opens with no network.

    Parameters
    ----------
    subject : Result, Plan, BoundCurves, MonitorView or ChartPage
        What to report.
    path : str or path-like
        Where to; an existing file is replaced in one step.

    Returns
    -------
    Path
        The file written, about 5 MB.

    Raises
    ------
    OutputError
        If the file cannot be written; then nothing is left behind.
    """
    return write_text_atomically(path, page_html(subject))


def write_text_atomically(path: str | PathLike[str], text: str) -> Path:
    """Write a UTF-8 text file beside its place and move it there in one step, or leave nothing."""
    path = Path(path)
    part = path.with_name(f".shuffledp-{uuid4().hex}.part")
    try:
        with part.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # a full disk must fail here, not after the move
        part.replace(path)
    except OSError as error:
        raise OutputError(
            f"path = {str(path)!r} cannot be written ({error.strerror or error}): "
            "choose another place, or make room"
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return path


@cache
def _templates() -> Environment:
    """Return the templates with their filters."""
    environment = Environment(
        loader=PackageLoader("shuffledp.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "typeset": typeset,
        "shorten": shorten,
        "rounded_up": lambda value, digits=4: rounded(value, up=True, digits=digits),
        "brief": brief,
        "given": given,
        "minus": lambda text: text.replace("-", "\u2212"),
        "thousands": lambda number: f"{number:,}",
    }
    environment.globals["version"] = __version__
    return environment


def render(template: str, **facts: object) -> str:
    """Return what a template makes of facts; it escapes them all."""
    return _templates().get_template(template).render(**facts)


def render_page(template: str, figures: Iterable[Figure], **facts: object) -> str:
    """Return a page of this house: its template's header and sections, and charts, in one file."""
    charts = json.dumps({figure.name: figure.spec for figure in figures}, allow_nan=False)
    plotly, script = _plotly_script(), _own_file("report.js")
    return render(
        template,
        policy=_policy(plotly, script),
        style=_own_file("report.css"),
        # "<" could end the script element; JSON may write it as an escape.
        charts=Markup(charts.replace("<", "\\u003c")),  # noqa: S704
        plotly=plotly,
        script=script,
        **facts,
    )


def _own_file(name: str) -> Markup:
    """Return the style sheet or the script, which stay as they are."""
    environment = _templates()
    assert environment.loader is not None  # noqa: S101  # narrows the type
    return Markup(environment.loader.get_source(environment, name)[0])  # noqa: S704


def _plotly_script() -> Markup:
    """Return plotly.js."""
    from plotly.offline import get_plotlyjs

    # A browser turns line ends into "\n" before it compares the hash of a script.
    return Markup(get_plotlyjs().replace("\r\n", "\n"))  # noqa: S704


def _policy(*scripts: str) -> str:
    """Return a content security policy that allows these scripts and no network at all."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
