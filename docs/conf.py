"""How the documentation is built: `make docs`, every warning an error, no network needed."""

import re
from functools import cache
from typing import Any

import click
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.statemachine import StringList
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.logging import getLogger

from shuffledp._version import __version__
from shuffledp.cli.main import cli
from shuffledp.cli.options import headed

logger = getLogger(__name__)

project = "shuffledp"
copyright = "the shuffledp developers"
author = "the shuffledp developers"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.apidoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build", "api/generated/modules.rst"]
html_theme = "furo"
html_title = f"shuffledp {version}"
html_static_path = ["_static"]
html_css_files = ["tables.css"]

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

# The API reference: one page a module, written anew at each build into api/generated. Commands have
# pages of their own.
apidoc_modules = [
    {
        "path": "../src/shuffledp",
        "destination": "api/generated",
        "exclude_patterns": [
            "../src/shuffledp/**/*_kernels.py",
            "../src/shuffledp/_version.py",
            "../src/shuffledp/cli",
        ],
        "separate_modules": True,
        "module_first": True,
        "automodule_options": {"members"},
    }
]
# Each object is documented where it is written, not again where it is re-exported.
autodoc_default_options = {"ignore-module-all": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_use_type_comments = False
default_role = "py:obj"
napoleon_google_docstring = False
# Parameter types in docstrings are prose ("tuple of str"), not references to look up.
napoleon_use_param = False
napoleon_use_rtype = False

# References to our own public objects must resolve; those of other packages are not looked up,
# since that would need the network.
# Nor are private names, and type variables, which are named after what they stand for.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!shuffledp\b).*"),
    (r"py:.*", r"shuffledp\..*\._\w+"),
    (r"py:class", r"shuffledp\..*\.(Estimates(T|_co)|Batch)"),
]

# Every page has the tree of all pages at its side. Of the modules, hundreds, it shows the topmost.
NAVIGATION_DEPTH = 3


@cache
def whole_navigation(builder: Any) -> str:
    """Return the tree of all pages as the topmost page has it: to resolve it takes a second."""
    how = {"collapse": False, "titles_only": True, "includehidden": True}
    return builder._get_local_toctree("index", maxdepth=NAVIGATION_DEPTH, **how)


def navigation(builder: Any, pagename: str) -> str:
    """Return the same tree with the links of a page, which is marked, or the one above it."""
    tree = BeautifulSoup(whole_navigation(builder), "html.parser")
    links = {link["href"].removesuffix(".html"): link for link in tree.find_all("a")}
    here = pagename
    while here not in links and "." in here:
        here = here.rpartition(".")[0]
    for target, link in links.items():
        link["href"] = builder.get_relative_uri(pagename, target)
    for above in links[here].parents if here in links else ():
        if above.name in ("li", "ul"):
            above["class"] = [*above.get("class", ()), "current"]
    return str(tree)


def share_navigation(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Have the tree of pages resolved once, not for each page, which takes half of a build."""
    del templatename, doctree
    if "toctree" in context:
        context["toctree"] = lambda **_: navigation(app.builder, pagename)


def look_up_whole_names(app: Sphinx, doctree: nodes.document) -> None:
    """Look types up by their whole names, which is what signatures hold.

    Else each `int` is compared to the ends of all our names, which takes a fifth of the build.
    """
    del app
    for node in doctree.findall(pending_xref):
        if node.get("refspecific") is False:
            del node["refspecific"]


class Options(SphinxDirective):
    """The options of a command with their help texts, below the headings of ``--help``."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Write a list of definitions in Markdown, and have it read as a part of the page."""
        context, command = click.Context(cli), cli
        for name in self.arguments[0].split():
            command = command.get_command(context, name)
        lines: list[str] = []
        for heading, records in headed(context, command.params).items():
            lines += [f"**{heading}**", ""]
            for usage, text in records:
                # Other options in a help text are code, as in Markdown; so are none in code.
                shown = re.sub(r"`[^`]*`|(?<![\w-])--[a-z][\w-]*", _as_code, text)
                lines += [f"`{usage}`", f": {shown}", ""]
        held = nodes.container()
        self.state.nested_parse(StringList(lines, self.get_source_info()[0]), 0, held)
        return held.children


def _as_code(found: re.Match[str]) -> str:
    """Put an option into backticks, and leave what has them."""
    return found[0] if found[0].startswith("`") else f"`{found[0]}`"


def formulas_as_mathml(app: Sphinx, doctree: nodes.document) -> None:
    """Turn formulas into MathML, which browsers show by themselves: no script, no network."""
    del app
    for node in [*doctree.findall(nodes.math), *doctree.findall(nodes.math_block)]:
        # What the converter does not know, in words that it does.
        text = re.sub(r"\\[bB]ig(?![a-z])", "", node.astext()).replace(r"\dots", r"\ldots")
        text = re.sub(r"\\tag\{(.*?)\}", r"\\qquad(\\text{\1})", text)
        text = re.sub(r"\\([td]?)frac(\d)(\d)", r"\\\1frac{\2}{\3}", text)
        is_block = isinstance(node, nodes.math_block)
        try:
            formula = tex2mathml(text, as_block=is_block)
        except MathError as error:
            logger.warning(f"a formula cannot be shown: {error}", location=node)
            formula = ""
        if is_block:
            formula = f'<div class="math">{formula}</div>'
        node.replace_self(nodes.raw("", formula, format="html"))


def setup(app: Sphinx) -> None:
    """Have the navigation made before the theme, of priority 500, takes it."""
    app.add_directive("options", Options)
    app.connect("doctree-read", look_up_whole_names)
    app.connect("doctree-read", formulas_as_mathml)
    app.add_html_math_renderer("mathml")  # none is left to it, and MathJax is not fetched
    app.connect("html-page-context", share_navigation, priority=400)
