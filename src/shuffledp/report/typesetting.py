"""Mathematics in our own sentences, from plain text to HTML."""

import re
from html import escape

_NO_BREAK = "\u00a0"

_LETTERS = {"alpha": "\u03b1", "delta": "\u03b4", "theta": "\u03b8"}


def typeset(text: str) -> str:
    """Return one of our own sentences as HTML, its mathematics set with symbols.

    Examples
    --------
    >>> typeset("epsilon0 < 10^3").encode("ascii", "xmlcharrefreplace")
    b'&#949;<sub>0</sub> &lt; 10<sup>3</sup>'
    """
    html = escape(text, quote=False)
    html = re.sub(r"\b1e-(\d+)\b", "10<sup>\u2212\\1</sup>", html)
    html = re.sub(r"(\d)e-(\d+)\b", "\\1 \u00d7 10<sup>\u2212\\2</sup>", html)
    html = re.sub(r"\b(\d+)\^(\d+)\b", r"\1<sup>\2</sup>", html)
    html = re.sub(r"\be\^(epsilon|alpha)\b", r"e<sup>\1</sup>", html)
    html = re.sub(r"\bepsilon0\b", "\u03b5<sub>0</sub>", html)
    html = re.sub(r"\bepsilon\b", "\u03b5", html)
    for name, letter in _LETTERS.items():
        html = re.sub(rf"\b{name}\b", letter, html)
    html = html.replace("&lt;=", "\u2264").replace("&gt;=", "\u2265")
    return re.sub(r" ([=\u2264\u2265\u00d7]) ", rf"{_NO_BREAK}\1{_NO_BREAK}", html)
