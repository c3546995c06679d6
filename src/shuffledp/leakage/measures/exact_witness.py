"""A post-processing in fractions, from the places where one in floating point is positive.

The linear program ends in a vertex: the columns of its constraints that belong to positive entries
are linearly independent, so the constraints alone determine those entries once their places are
known. Solving for them in fractions turns an answer that is right within round-off into a proof.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Unknowns times constraints times unknowns, in products of fractions: some seconds.
MOST_WORK = 20_000_000

# Entries below it are zero at the vertex.
_POSITIVE = 1e-9


def exact_witness(
    first: NDArray[Any], second: NDArray[Any], near: NDArray[np.float64]
) -> NDArray[Any] | None:
    """Return a channel W in fractions with C W = D exactly, positive where ``near`` is, or None.

    Parameters
    ----------
    first, second : arrays of Fraction, shapes (n, k) and (n, m)
        C and D.
    near : (k, m) array
        W in floating point.

    Returns
    -------
    (k, m) array of Fraction, or None
        Verified: all entries are at least 0, rows sum to one, and C W = D. None where there is no
        such W, or the system of equations is too large to be solved in fractions.
    """
    places = np.argwhere(near > _POSITIVE)
    num_equations = first.shape[0] * second.shape[1] + first.shape[1]
    if num_equations * len(places) ** 2 > MOST_WORK:
        return None
    found = _solved(_equations(first, second, places), len(places))
    if found is None:
        return None
    witness = np.full(near.shape, Fraction(0), dtype=np.object_)
    for (row, column), value in zip(places, found, strict=True):
        witness[row, column] = value
    is_channel = bool(np.all(witness >= 0)) and bool(np.all(witness.sum(axis=1) == 1))
    return witness if is_channel and bool(np.all(first @ witness == second)) else None


def _equations(
    first: NDArray[Any], second: NDArray[Any], places: NDArray[np.int64]
) -> list[list[Fraction]]:
    """Return the rows of the system, each with its right-hand side as the last entry."""
    num_middle, num_last = first.shape[1], second.shape[1]
    pairs = places.tolist()
    rows = [
        [first[x, y] if column == z else Fraction(0) for y, column in pairs] + [second[x, z]]
        for x in range(len(first))
        for z in range(num_last)
    ]
    sums = [
        [Fraction(int(y == row)) for y, _ in pairs] + [Fraction(1)] for row in range(num_middle)
    ]
    return rows + sums


def _solved(rows: list[list[Fraction]], num_unknowns: int) -> Sequence[Fraction] | None:
    """Return the solution by Gauss and Jordan, or None unless there is one and only one."""
    for unknown in range(num_unknowns):
        pivot = next((i for i in range(unknown, len(rows)) if rows[i][unknown] != 0), None)
        if pivot is None:
            return None
        rows[unknown], rows[pivot] = rows[pivot], rows[unknown]
        lead = rows[unknown][unknown]
        top = [entry / lead if entry else entry for entry in rows[unknown]]
        rows[unknown] = top
        for i, row in enumerate(rows):
            factor = row[unknown]
            if i != unknown and factor != 0:
                rows[i] = [
                    entry - factor * above if above else entry
                    for entry, above in zip(row, top, strict=True)
                ]
    if any(row[num_unknowns] != 0 for row in rows[num_unknowns:]):
        return None
    return [row[num_unknowns] for row in rows[:num_unknowns]]
