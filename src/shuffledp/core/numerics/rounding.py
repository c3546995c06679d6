"""Outward rounding of a few floating-point operations."""

import math


def round_up(value: float, *, operations: int = 8) -> float:
    """Return a number at least as large as the exact value behind ``value`` >= 0.

    ``operations`` counts correctly rounded steps (or library calls good to an ulp) that led to
    ``value`` without cancellation; each may have lost half an ulp, and one is given back for each.

    Examples
    --------
    >>> round_up(1.0) > 1.0
    True
    """
    return value * (1.0 + operations * math.ulp(1.0))


def exp_minus_one_upper(value: float) -> float:
    """Return an upper bound of exp(value) - 1 for value >= 0.

    Examples
    --------
    >>> exp_minus_one_upper(0.0)
    0.0
    """
    return round_up(math.expm1(value), operations=2)
