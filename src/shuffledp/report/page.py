"""The report: one HTML file with everything in it, which loads nothing from anywhere.

The page forbids itself the network by a content security policy, and runs only the two scripts
whose hashes stand in it; so even a label that slipped through escaping could do no harm.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from importlib.resources import files
from os import PathLike
from pathlib import Path
from string import Template

from shuffledp._version import __version__
from shuffledp.collection.results import Result
from shuffledp.report import sections
from shuffledp.report.figures import (
    Figure,
    estimates_figure,
    honest_share_figure,
    num_users_figure,
)
from shuffledp.report.rounds_figure import rounds_figure
from shuffledp.report.writing import write_text_atomically


def report_html(result: Result) -> str:
    """Return the whole page.

    Parameters
    ----------
    result : Result
        Sections whose data is empty are left out.

    Returns
    -------
    str
        HTML of about 5 MB, nearly all of it plotly.js. Depends on nothing but ``result``: the
        same result gives the same page.
    """
    bars = estimates_figure(result)
    curves = [f for f in (num_users_figure(result), honest_share_figure(result)) if f is not None]
    by_rounds = rounds_figure(result)
    body = (
        sections.asked_and_done(result),
        sections.estimates(result, bars),
        sections.privacy(result),
        sections.leakage(result),
        sections.groups(result),
        sections.network(result, by_rounds),
        sections.outlook(curves),
        sections.assumptions(result),
        sections.reproduce(result),
    )
    return document(
        title=sections.title(result),
        lead=sections.lead(result),
        banners=sections.banners(result),
        key_figures=sections.key_figures(result),
        body=body,
        figures=(bars, *curves, *(() if by_rounds is None else (by_rounds,))),
    )


def document(
    *,
    title: str,
    lead: str,
    body: Iterable[str],
    figures: Iterable[Figure],
    banners: str = "",
    key_figures: str = "",
    eyebrow: str = "shuffledp report",
) -> str:
    """Return a page of this house: header, sections and charts in one file.

    Parameters
    ----------
    title, lead, banners, key_figures, eyebrow : str
        The header, as HTML.
    body : iterable of str
        The sections, as HTML.
    figures : iterable of Figure
        Charts, each of which has its place in one of the sections.
    """
    charts = json.dumps({figure.name: figure.spec for figure in figures}, allow_nan=False)
    plotly, script = _plotly_script(), _resource("report.js")
    return Template(_resource("report.html")).substitute(
        policy=_policy(plotly, script),
        version=__version__,
        eyebrow=eyebrow,
        title=title,
        lead=lead,
        style=_resource("report.css"),
        banners=banners,
        key_figures=key_figures,
        sections="\n".join(body),
        # "<" could end the script element; JSON may write it as an escape.
        charts=charts.replace("<", "\\u003c"),
        plotly=plotly,
        script=script,
    )


def _resource(name: str) -> str:
    """Return a text file that lies beside this module."""
    return files("shuffledp.report").joinpath(name).read_text(encoding="utf-8")


def _plotly_script() -> str:
    """Return plotly.js."""
    from plotly.offline import get_plotlyjs

    # A browser turns line ends into "\n" before it compares the hash of a script.
    return str(get_plotlyjs()).replace("\r\n", "\n")


def _policy(*scripts: str) -> str:
    """Return a content security policy that allows these scripts and no network at all."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def write_report(result: Result, path: str | PathLike[str]) -> Path:
    """Write a self-contained HTML report, which opens with no network.

    Parameters
    ----------
    result : Result
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
    return write_text_atomically(path, report_html(result))
