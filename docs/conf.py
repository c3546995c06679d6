"""How the documentation is built: `make docs`, every warning an error, no network needed."""

from shuffledp._version import __version__

project = "shuffledp"
copyright = "the shuffledp developers"
author = "the shuffledp developers"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.apidoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
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
            "../src/shuffledp/**/*_numpy.py",
            "../src/shuffledp/_version.py",
            "../src/shuffledp/interface/cli",
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
default_role = "py:obj"
napoleon_google_docstring = False
# Parameter types in docstrings are prose ("tuple of str"), not references to look up.
napoleon_use_param = False
napoleon_use_rtype = False

# References to our own public objects must resolve; those of other packages are not looked up,
# since that would need the network.
nitpick_ignore_regex = [(r"py:.*", r"(?!shuffledp\b).*"), (r"py:.*", r"shuffledp\..*\._\w+")]
