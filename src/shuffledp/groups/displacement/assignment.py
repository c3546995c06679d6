r"""How far the members of a group can move in all if they trade places: an assignment problem.

Delta(G) is the maximum over the permutations s of a group of the sum of d(c_i, c_s(i)). On a line
it is twice the sum of abs(c_i - m) for a median m (the footrule of docs/results). In several
dimensions two upper bounds are computed, and the smaller counts:

- **star**: 2 sum of d(c_i, m), for any point m, by the triangle inequality; m near the geometric
  median. Never more than 2 / sqrt(3) times Delta in the plane, as far as is known.
- **dual**: for any numbers v, the sum of v_j and of u_i = max over j of (d(c_i, c_j) - v_j), since
  every d(c_i, c_j) <= u_i + v_j. With v from an optimal assignment it is Delta itself, up to
  rounding, and it is a bound whether or not the assignment is optimal.

Only the largest group counts for a shuffle. So groups are taken in descending order of the first
bound, until it falls below what is proved for those before.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shuffledp.groups.formation.groups import Groups
from shuffledp.groups.formation.rows import BLOCK_MEMBERSHIPS

# Groups for which the assignment problem is solved: no larger, and no more of them.
_LARGEST_SOLVED = 512
_MOST_SOLVED = 32

# Weiszfeld's steps towards the geometric median; any point gives a bound.
_STEPS = 6

# Longest paths are found after as many rounds as the longest has steps; few have many.
_MOST_ROUNDS = 100


def largest_assignment(groups: Groups, cells: NDArray[np.int64]) -> float:
    """Return an upper bound on how far the members of any one group can move in all.

    Parameters
    ----------
    groups : Groups
        The groups.
    cells : ndarray of int64, shape (num_users, d)
        Public places, below 2^33 in size.

    Returns
    -------
    float
        In cells; exact on a line and rounded up by less than 1e-9 of itself where the assignment
        problem was solved, which is so for groups of up to 512 if no more than 32 of them compete.
        Else at most some 15 % too large in the plane. Errs upwards.

    Notes
    -----
    Source: this module. Cost: O(memberships), and up to a second for assignment problems.

    Examples
    --------
    Corners of a square: both diagonals twice.

    >>> corners = np.array([[0, 0], [0, 3], [4, 0], [4, 3]])
    >>> round(largest_assignment(Groups.from_sets([range(4)], num_users=4), corners), 9)
    20.0
    """
    if cells.shape[1] == 1:
        return max((int(each.max()) for each in _on_a_line(groups, cells)), default=0)
    points = cells.astype(np.float64)
    stars = np.concatenate([*_stars(groups, points), np.zeros(0)])
    largest, solved = 0.0, 0
    for group in np.argsort(-stars, kind="stable"):
        star = float(stars[group])
        if star <= largest:
            break
        members = groups.group(group)
        if members.size <= _LARGEST_SOLVED and solved < _MOST_SOLVED:
            solved += 1
            star = min(star, _dual(points[members]))
        largest = max(largest, star)
    return largest


def largest_star(groups: Groups, points: NDArray[np.float64]) -> float:
    """Return the star bound of the largest group, for any points; see the module."""
    return max((float(each.max()) for each in _stars(groups, points)), default=0.0)


def _blocks(groups: Groups) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
    """Yield members of some groups at a time, with where each group starts among them."""
    first = 0
    while first < groups.num_groups:
        end = int(np.searchsorted(groups.starts, groups.starts[first] + BLOCK_MEMBERSHIPS))
        end = min(max(end - 1, first + 1), groups.num_groups)
        starts = groups.starts[first : end + 1]
        yield groups.members[starts[0] : starts[-1]], starts - starts[0]
        first = end


def _on_a_line(groups: Groups, cells: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield twice the sums of distances from a median of each group, exact."""
    for members, bounds in _blocks(groups):
        starts, sizes = bounds[:-1], np.diff(bounds)
        values = cells[members, 0]
        values = values[np.lexsort((values, np.repeat(np.arange(sizes.size), sizes)))]
        medians = values[starts + sizes // 2]
        yield 2 * np.add.reduceat(np.abs(values - np.repeat(medians, sizes)), starts)


def _stars(groups: Groups, points: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Yield the star bound of each group, rounded up."""
    for members, bounds in _blocks(groups):
        starts, sizes = bounds[:-1], np.diff(bounds)
        held = points[members]
        centres = np.add.reduceat(held, starts) / sizes[:, None]
        least = np.full(sizes.size, np.inf)
        for _ in range(_STEPS):
            offsets = held - np.repeat(centres, sizes, axis=0)
            distances = np.sqrt((offsets * offsets).sum(axis=1))
            sums = np.add.reduceat(distances, starts)
            least = np.minimum(least, sums)
            # Nobody's own place draws all: distances count as at least some share of the mean.
            floors = np.repeat(1e-6 * sums / sizes + 1e-300, sizes)
            weights = 1.0 / np.maximum(distances, floors)
            totals = np.add.reduceat(weights, starts)
            centres = np.add.reduceat(held * weights[:, None], starts) / totals[:, None]
        # Coordinates are subtracted, squared, added, and so are the members.
        yield 2.0 * least * (1.0 + (sizes + 32.0) * 2.0**-52)


def _dual(points: NDArray[np.float64]) -> float:
    """Return the bound of the dual problem for one group, rounded up."""
    from scipy.optimize import linear_sum_assignment

    offsets = points[:, None, :] - points[None, :, :]
    distances = np.sqrt((offsets * offsets).sum(axis=2))
    _, taken = linear_sum_assignment(distances, maximize=True)
    # v_j >= d_ij - d_i,taken(i) + v_taken(i): longest paths, which end where the choice is optimal.
    gains = distances - distances[np.arange(taken.size), taken][:, None]
    found = np.zeros(taken.size)
    for _ in range(_MOST_ROUNDS):
        longer = np.maximum(found, (gains + found[taken][:, None]).max(axis=0))
        if np.array_equal(longer, found):
            break
        found = longer
    others = (distances - found[None, :]).max(axis=1)
    doubt = (taken.size + 32.0) * 2.0**-51 * (np.abs(found).sum() + np.abs(others).sum())
    return float(found.sum() + others.sum() + doubt)
