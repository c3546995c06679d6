"""Compares output that is shown with output that is printed, to the digits that are promised.

Elementary functions differ in the last place from one processor and C library to another. So a
number with a decimal point or an exponent may differ by a part in 10^9 (`PROMISED`), or, if at
least `FEWEST_DIGITS` digits are printed, by one unit of the last of them: a value near the middle
of two may be rounded either way. All else, whole numbers included, is compared exactly, except for
white space and the lengths of rules, which depend on the widths of numbers. ``...`` stands for
anything. `conftest.py` at the root installs the checker for all doctests.
"""

import doctest
import math
import re
from decimal import Decimal

PROMISED = 1e-9
FEWEST_DIGITS = 3

# A decimal point or an exponent, and no part of a name, a version or a date, nor cut off by "...".
NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)(?!\w|\.\d|\.\.\.)")
RULE = re.compile("[\u2500\u2501]+")


def close(shown: str, printed: str) -> bool:
    """Tell whether two printed numbers agree to the digits that are promised.

    >>> close("3.0", "3.0000000000000004"), close("0.0432062", "0.0432063")
    (True, True)
    >>> close("3.0", "3.1"), close("0.0432062", "0.0432064"), close("0.25", "0.26")
    (False, False, False)
    """
    if math.isclose(float(shown), float(printed), rel_tol=PROMISED):
        return True
    both = Decimal(shown), Decimal(printed)
    if max(len(number.as_tuple().digits) for number in both) < FEWEST_DIGITS:
        return False
    return abs(both[0] - both[1]) <= min(Decimal(1).scaleb(n.as_tuple().exponent) for n in both)


def agree(shown: str, printed: str) -> bool:
    """Tell whether two texts agree but for the digits of numbers that are not promised.

    >>> agree("a: 0.5, ... 2.0", "a:  0.50000000000000011, b: 7, c: 1.9999999999999998")
    True
    """
    shown, printed = (" ".join(RULE.sub("\u2500", text).split()) for text in (shown, printed))
    pieces = shown.split("...")
    position = 0
    for index, piece in enumerate(pieces):
        numbers = NUMBER.findall(piece)
        texts = [re.escape(text) for text in NUMBER.split(piece)]
        pattern = f"({NUMBER.pattern})".join(texts) + (r"\Z" if index == len(pieces) - 1 else "")
        if index == 0:
            first = re.compile(pattern).match(printed)
            found = iter([first] if first else [])
        else:
            found = re.compile(pattern).finditer(printed, position)
        fitting = (
            match
            for match in found
            if all(close(*pair) for pair in zip(numbers, match.groups(), strict=True))
        )
        if (match := next(fitting, None)) is None:
            return False
        position = match.end()
    return True


class PromisedDigits(doctest.OutputChecker):
    """A checker for doctests that compares numbers to the digits that are promised."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Tell whether an example printed what it should, exactly or as `agree` has it."""
        return super().check_output(want, got, optionflags) or agree(want, got)
