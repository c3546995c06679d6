"""Doctests compare numbers to the digits that are promised; tests/conftest.py has the rest."""

import doctest

from printed_numbers import PromisedDigits

# pytest's checker and doctest's runner both build on this name.
doctest.OutputChecker = PromisedDigits  # type: ignore[misc]
