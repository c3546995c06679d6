"""One self-contained HTML file, which loads nothing.

A content security policy forbids the page the network and all scripts, so that even a label that
escaped escaping could do no harm. Templates escape all values.
"""

import json
import math
import re
from functools import cache, partial

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from shuffledp._version import __version__
from shuffledp.report import formatting

Paragraph = tuple[str, str]  # a short title and its text
Table = tuple[str, list[Paragraph]]  # a title, and names with their texts


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
    names = (
        "best_guess brief counted fixed given odds_factor one_in percent rounded shorten typeset"
    )
    names += " visible"
    environment.filters |= {name: getattr(formatting, name) for name in names.split()} | {
        "rounded_up": partial(formatting.rounded, up=True),
        "thousands": lambda number: f"{number:,}",
        "cell": lambda text: formatting.shown_label(text).replace("|", "\\|"),
        "json": _json,
    }
    environment.tests["infinite"] = math.isinf
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


def paragraphs(template: str, **facts: object) -> tuple[Paragraph, ...]:
    """Return the paragraphs of a rendered text: each is a line ``## title`` and those below it."""
    _, *found = re.split("^## ", render(template, **facts), flags=re.MULTILINE)
    parts = (each.partition("\n") for each in found)
    return tuple((title, " ".join(text.split())) for title, _, text in parts)


def rendered_rows(template: str, **facts: object) -> list[Paragraph]:
    """Return names and texts of a rendered list: each is a line ``- name: text``, and wrapped.

    Filters such as ``visible`` and ``shorten`` keep texts from outside from beginning a line.
    """
    return _rows(render(template, **facts))


def rendered_tables(template: str, **facts: object) -> tuple[Table, ...]:
    """Return the lists of a rendered text, as `rendered_rows`, each below its line ``## title``."""
    _, *found = re.split("^## (.*)\n", render(template, **facts), flags=re.MULTILINE)
    return tuple((title, _rows(text)) for title, text in zip(found[::2], found[1::2], strict=True))


def _rows(text: str) -> list[Paragraph]:
    """Return the names and texts of a list."""
    _, *found = re.split("^- ", text, flags=re.MULTILINE)
    lines = (re.sub(r"\s*\n\s*", " ", each.strip()).partition(": ") for each in found)
    return [(name, words) for name, _, words in lines]
