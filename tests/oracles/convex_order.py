"""Convex order of the terms G = r0 - e r1 of two laws, at every place where it could fail.

(B) is an expectation of a convex function of each user's term. If the means of G are equal and
E(G - t)_+ is at least as large for one law as for another at all t, then so is (B), whatever n.
"""

from collections.abc import Sequence
from typing import Any

Atoms = Sequence[tuple[Any, Any, Any]]
"""(mass, ratio0, ratio1); the mass missing from 1 has both ratios 0."""


def as_tuples(atoms: Sequence[Any]) -> list[tuple[Any, Any, Any]]:
    """Atoms of a profile as tuples."""
    return [(atom.mass, atom.ratio0, atom.ratio1) for atom in atoms]


def to_14_digits(ratio: Any) -> float:
    """A ratio without the last digits, in which blankets are rounded outward."""
    return float(f"{float(ratio):.14g}")


def largest_excess(small: Atoms, large: Atoms, e: Any) -> Any:
    """Return by how much ``large`` fails to dominate ``small``: 0 if it does, in exact numbers.

    The largest difference of E(G - t)_+ over t >= 0, of E(t - G)_+ over t <= 0, and that of the
    means. Both are linear in t between kinks, and with equal means they tell the same. Outside
    the atoms G is 0, which adds nothing to either.
    """
    first, second = ([(m, r0 - e * r1) for m, r0, r1 in atoms] for atoms in (small, large))

    def excess(t: Any) -> Any:
        sign = 1 if t >= 0 else -1
        values = [sum(m * max(sign * (g - t), 0) for m, g in terms) for terms in (first, second)]
        return values[0] - values[1]

    mean = sum(m * g for m, g in first) - sum(m * g for m, g in second)
    return max([abs(mean), excess(0), *(excess(t) for t in {g for _, g in (*first, *second)})])
