"""How often the best guess is right, from the law of the others' histogram.

The adversary knows the law G of the others' histogram, sees the histogram h of all, and guesses the
target's value x, of prior probability q_x, which is reported as y with probability R_xy:

    V = sum over h of max over x of q_x sum over y of R_xy G(h - e_y).

An error of G with l1 norm e moves V by at most e times sum over y of max over x of q_x R_xy, which
is at most one.
"""

import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage.informed.histogram_law import HistogramLaw

_ULP = math.ulp(1.0)


def best_guess(
    law: HistogramLaw, prior: NDArray[np.float64], matrix: NDArray[np.float64]
) -> Enclosure:
    """Enclose V for any randomizer.

    Parameters
    ----------
    law : HistogramLaw
        Of the others.
    prior : (k,) array of float64
        Of the target.
    matrix : (k, m) array of float64
        Row x is the law of the report of value x.

    Returns
    -------
    Enclosure
        In [0, 1]; errs by the error of the law and rounding.

    Notes
    -----
    O(k m) passes over the cells of the law.

    Examples
    --------
    Two people, the other's coin fair: the count of ones is 0 or 2 half of the time, which gives the
    target away.

    >>> from shuffledp.leakage.informed.histogram_law import Kind, histogram_box
    >>> from shuffledp.leakage.informed.histogram_law import histogram_law
    >>> kinds = [Kind(1, np.array([0.5, 0.5]))]
    >>> found = best_guess(
    ...     histogram_law(kinds, histogram_box(kinds)), np.array([0.5, 0.5]), np.eye(2)
    ... )
    >>> found.lower <= 0.75 <= found.upper <= 0.7500001
    True
    """
    num_axes = law.masses.ndim
    shifted = []
    kept = [y for y in range(num_axes + 1) if y != law.box.implied]
    for y in range(num_axes + 1):
        # The count of the implied outcome is no axis: nothing moves.
        pads = [(1, 0) if y == each else (0, 1) for each in kept]
        shifted.append(np.pad(law.masses, pads))
    best = np.zeros(shifted[0].shape)
    for x in np.flatnonzero(prior).tolist():
        chance = np.zeros(best.shape)
        for y in np.flatnonzero(matrix[x]).tolist():
            chance += (prior[x] * matrix[x, y]) * shifted[y]
        np.maximum(best, chance, out=best)
    value = float(best.sum())
    # Products and sums of positive terms; numpy adds in pairs.
    slack = value * _ULP * (num_axes + 32.0 + math.log2(best.size)) + law.error
    return Enclosure(max(value - slack, 0.0), min(value + slack, 1.0))
