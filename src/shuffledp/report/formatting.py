"""Numbers and labels for people: few digits, rounded to the safe side, nothing that can escape.

A bound that is safe to publish is rounded up and one that is unavoidable down, so what a reader
sees is never a stronger claim than what was computed.
"""

import math
import unicodedata
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from shuffledp.core.display import visible

_JOINERS = "\u200d\ufe0f"  # never leave one dangling at a cut
_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"))


def shown_label(label: str) -> str:
    """Return a label as readers see it, also where it is empty.

    Examples
    --------
    >>> shown_label("yes"), shown_label("")
    ('yes', '(empty)')
    """
    return visible(label) or "(empty)"


def shorten(label: str, limit: int) -> str:
    """Return the visible label in at most ``limit`` characters, an ellipsis being one of them."""
    text = shown_label(label)
    if len(text) <= limit:
        return text
    return text[: limit - 1].rstrip().rstrip(_JOINERS) + "\u2026"


def rounded(value: float, *, up: bool, digits: int = 4) -> str:
    """Return ``value`` with ``digits`` significant digits, rounded up or down, never to nearest.

    Examples
    --------
    >>> rounded(0.43214, up=True), rounded(0.43214, up=False), rounded(1.00001e-8, up=True)
    ('0.4322', '0.4321', '1.001e-8')
    """
    if math.isinf(value):
        return "infinity"
    if value == 0.0:
        return "0"
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    # Of the shortest decimal that reads back as the float: 0.1 is 0.1, not 0.1001.
    decimal = context.create_decimal(repr(float(value)))
    if 1e-4 <= abs(value) < 1e6:
        places = max(0, digits - 1 - decimal.adjusted())
        return f"{decimal:.{places}f}"
    return _plain_exponent(f"{decimal.normalize():e}")


def given(value: float) -> str:
    """Return a number that the user gave, as short as it can be written exactly.

    Examples
    --------
    >>> given(0.5), given(1e-8), given(2.0)
    ('0.5', '1e-8', '2')
    """
    return _plain_exponent(repr(float(value)).removesuffix(".0"))


def brief(value: float) -> str:
    """Return a number exactly if that takes few digits, else rounded up.

    Examples
    --------
    >>> brief(0.125), brief(0.12345678901)
    ('0.125', '0.1235')
    """
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
    """Return how many decimals show the smallest standard error with two significant digits.

    Parameters
    ----------
    standard_errors : list of float
        In the unit that will be printed; zeros and non-finite ones do not count.
    most : int
        Never more than this.

    Examples
    --------
    >>> decimals_for([52.3, 0.0]), decimals_for([0.6, 0.05])
    (0, 3)
    """
    smallest = min((e for e in standard_errors if 0.0 < e < math.inf), default=1.0)
    return min(most, max(0, 1 - math.floor(math.log10(smallest))))


def fixed(value: float, decimals: int) -> str:
    """Return a number with that many decimals and thousands separators, and no ``-0``.

    Examples
    --------
    >>> fixed(-0.4, 0), fixed(12345.6, 1)
    ('0', '12,345.6')
    """
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text


def percent(value: float, decimals: int) -> str:
    """Return a share in [0, 1] as a percentage, ``decimals`` counted in percent."""
    return fixed(100.0 * value, decimals) + "%"


def odds_factor(epsilon: float) -> str:
    """Return ``exp(epsilon)``, by which odds can change, in three digits rounded up.

    Examples
    --------
    >>> odds_factor(0.5), odds_factor(0.0), odds_factor(9.0), odds_factor(100.0)
    ('1.65', '1', '8,104', '10^44')
    """
    if epsilon == 0.0:
        return "1"
    if epsilon > 20.0:
        return f"10^{math.ceil(epsilon / math.log(10.0))}"
    factor = math.exp(epsilon)
    return rounded(factor, up=True, digits=3) if factor < 100.0 else f"{math.ceil(factor):,}"


def best_guess(epsilon: float, delta: float) -> str:
    """Return the largest chance to guess right between two equally likely answers, rounded up.

    Notes
    -----
    Total variation is at most (e^epsilon - 1 + 2 delta)/(e^epsilon + 1) under (epsilon, delta),
    where the two regions of testing meet (Kairouz, Oh, Viswanath 2015), and the best guess is
    right with probability (1 + TV)/2 = (e^epsilon + delta)/(e^epsilon + 1).

    Examples
    --------
    >>> best_guess(0.5, 1e-8), best_guess(0.0, 0.0), best_guess(8.0, 0.0)
    ('62.3%', '50%', '99.97%')
    """
    doubt = (1.0 - delta) / (1.0 + math.exp(min(epsilon, 700.0)))
    if doubt == 0.5:
        return "50%"
    if doubt < 1e-6:
        return "100%"
    decimals = max(1, -math.floor(math.log10(100.0 * doubt)))
    # What is left for doubt is rounded down, hence the chance up.
    return f"{100 - math.floor(doubt * 100 * 10**decimals) / 10**decimals:.{decimals}f}%"


def one_in(probability: float) -> str:
    """Return a probability as ``1 in ...``, the second number rounded down (so: at most).

    Examples
    --------
    >>> one_in(1e-8), one_in(0.25), one_in(3e-5), one_in(1e-20)
    ('1 in 100 million', '1 in 4', '1 in 33,300', '1 in 10^20')
    """
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


def display_width(text: str) -> int:
    """Return how many terminal columns a text takes: wide characters two, combining ones none."""
    return sum(
        0
        if unicodedata.combining(character) or character in _JOINERS
        else 2
        if unicodedata.east_asian_width(character) in {"W", "F"}
        else 1
        for character in text
    )
