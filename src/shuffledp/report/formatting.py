"""Numbers and labels for readers: few digits, rounded to the safe side, safely escaped.

A proved upper bound is rounded up and a lower bound down, so that readers never see a stronger
claim than was computed.
"""

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from html import escape

from markupsafe import Markup

from shuffledp.core.display import visible

_JOINERS = "\u200d\ufe0f"  # never leave one dangling at a cut
_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"))


def shown_label(label: str) -> str:
    """Return a label in its visible form, also if it is empty."""
    return visible(label) or "(empty)"


def shorten(label: str, limit: int) -> str:
    """Return the visible label in at most ``limit`` characters, an ellipsis being one of them."""
    text = shown_label(label)
    if len(text) <= limit:
        return text
    return text[: limit - 1].rstrip().rstrip(_JOINERS) + "\u2026"


def rounded(value: float, *, up: bool, digits: int = 4) -> str:
    """Return ``value`` with ``digits`` significant digits, rounded up or down, never to nearest."""
    if math.isinf(value):
        return "infinity"
    if value == 0.0:
        return "0"
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    # The shortest decimal that reads back as the float: 0.1 is 0.1, not 0.1001.
    decimal = context.create_decimal(repr(float(value)))
    if 1e-4 <= abs(value) < 1e6:
        places = max(0, digits - 1 - decimal.adjusted())
        return f"{decimal:.{places}f}"
    return _plain_exponent(f"{decimal.normalize():e}")


def given(value: float) -> str:
    """Return a number that the user gave, in its shortest exact form."""
    return _plain_exponent(repr(float(value)).removesuffix(".0"))


def brief(value: float) -> str:
    """Return a number exactly if that takes few digits, else rounded up."""
    exact = given(value)
    return exact if len(exact) <= 8 else rounded(value, up=True)


def _plain_exponent(text: str) -> str:
    """Turn ``1.0e-08`` and ``1e+06`` into ``1e-8`` and ``1e6``."""
    mantissa, found, exponent = text.partition("e")
    if not found:
        return text
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}"


def decimals_for(standard_errors: list[float], *, most: int = 6) -> int:
    """Return the number of decimals for two significant digits of the smallest standard error."""
    smallest = min((e for e in standard_errors if 0.0 < e < math.inf), default=1.0)
    return min(most, max(0, 1 - math.floor(math.log10(smallest))))


def fixed(value: float, decimals: int) -> str:
    """Return a number with these decimals and thousands separators, and no ``-0``."""
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text


def percent(value: float, decimals: int) -> str:
    """Return a share in [0, 1] as a percentage, ``decimals`` counted in percent."""
    return fixed(100.0 * value, decimals) + "%"


def counted(number: int, noun: str) -> str:
    """Return a number with a noun, in the plural except for 1."""
    return f"{number:,} {noun}" + "s" * (number != 1)


def odds_factor(epsilon: float) -> str:
    """Return ``exp(epsilon)``, the factor by which odds can change, in three digits rounded up."""
    if epsilon == 0.0:
        return "1"
    if epsilon > 20.0:
        return f"10^{math.ceil(epsilon / math.log(10.0))}"
    factor = math.exp(epsilon)
    return rounded(factor, up=True, digits=3) if factor < 100.0 else f"{math.ceil(factor):,}"


def best_guess(epsilon: float, delta: float) -> str:
    """Return the largest chance to guess right between two equally likely answers, rounded up.

    Total variation is at most (e^epsilon - 1 + 2 delta)/(e^epsilon + 1) under (epsilon, delta),
    where the two regions of testing meet (Kairouz, Oh, Viswanath 2015), and the best guess is
    right with probability (1 + TV)/2 = (e^epsilon + delta)/(e^epsilon + 1).
    """
    doubt = (1.0 - delta) / (1.0 + math.exp(min(epsilon, 700.0)))
    if doubt == 0.5:
        return "50%"
    if doubt < 1e-6:
        return "100%"
    decimals = max(1, -math.floor(math.log10(100.0 * doubt)))
    # The remaining doubt is rounded down, hence the probability up.
    return f"{100 - math.floor(doubt * 100 * 10**decimals) / 10**decimals:.{decimals}f}%"


def one_in(probability: float) -> str:
    """Return a probability as ``1 in ...``, the second number rounded down, so an upper bound."""
    if probability == 0.0:
        return "zero"
    # A hair more than 1/probability, so that 1e-8 reads 100 and not 99.9 million.
    times = (1.0 + 1e-12) / probability
    if times >= 1e15:
        return f"1 in 10^{math.floor(math.log10(times))}"
    scale, name = next((pair for pair in _SCALES if times >= pair[0]), (1, ""))
    number = times / scale
    digits = 2 - math.floor(math.log10(number))
    kept = math.floor(number * 10.0**digits) / 10.0**digits
    text = f"{kept:,.{max(0, digits)}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"1 in {text} {name}".rstrip()


_LETTERS = {"alpha": "\u03b1", "delta": "\u03b4", "theta": "\u03b8"}
_NO_BREAK = "\u00a0"


def literal(text: str) -> Markup:
    """Return text as escaped HTML that `typeset` leaves alone: labels may be called "delta"."""
    return Markup(escape(text, quote=False))  # noqa: S704  # escaped


def typeset(text: str) -> Markup:
    """Return text as escaped HTML with mathematical symbols; HTML is not changed."""
    if isinstance(text, Markup):
        return text
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
    html = re.sub(r" ([=\u2264\u2265\u00d7]) ", rf"{_NO_BREAK}\1{_NO_BREAK}", html)
    return Markup(html)  # noqa: S704  # escaped above; the tags are ours
