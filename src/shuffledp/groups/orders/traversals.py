"""Orders to start from: breadth first, Cuthill-McKee, and the longest axis of coordinates.

The first two walk through people and groups as they are: a person opens their groups, a group
admits its members. The graph that joins any two members of a group would need the square of the
group sizes.
"""

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.reports import read_only
from shuffledp.groups.formation.memberships import Memberships
from shuffledp.groups.permutations.permutation_arrays import inverse


def breadth_first(memberships: Memberships) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Visit people breadth first, starting from the largest group.

    Parameters
    ----------
    memberships : Memberships
        Who is in which group.

    Returns
    -------
    order : ndarray of int64, shape (num_users,)
        The people in the order of the visit. Each component, that is people linked by shared
        groups, fills places in a row, and starts with the one whose group is largest.
    component : ndarray of int64, shape (num_users,)
        The number of each person's component, in the order of the visit.

    Notes
    -----
    Source: the paper's Algorithm 1, steps 2 to 4. Ties, which the paper leaves open, go to
    the lower number; people open their own group before the others that they are in, as in the
    paper's Appendix A.10. Cost: O(memberships + num_users log num_users).

    Examples
    --------
    >>> from shuffledp.groups.formation.groups import Groups
    >>> groups = Groups.from_sets([[0, 5], [1, 3, 4], [4, 5], [2]], num_users=6)
    >>> order, component = breadth_first(Memberships.of(groups))
    >>> order.tolist(), component.tolist()
    ([1, 3, 4, 5, 0, 2], [0, 0, 1, 0, 0, 0])
    """
    groups = memberships.groups
    if groups.group_of is None:
        size_of = groups.size_protecting()
    else:
        size_of = memberships.sizes[groups.group_of]
    roots = np.argsort(-size_of, kind="stable")
    return _traverse(memberships, roots, np.arange(groups.num_users))


def cuthill_mckee(memberships: Memberships, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Visit people breadth first from the far end of each component, those in few groups first.

    Parameters
    ----------
    memberships : Memberships
        Who is in which group.
    order : ndarray of int64, shape (num_users,)
        The order of `breadth_first`; the last of each component is where the search for a far end
        starts.

    Returns
    -------
    ndarray of int64, shape (num_users,)
        The order of Cuthill and McKee. The reversed one, which saves fill-in when matrices are
        factorised, has the same sensitivities, since these do not change when places are reversed.

    Notes
    -----
    Source: Cuthill, McKee, "Reducing the bandwidth of sparse symmetric matrices", ACM National
    Conference, 1969; the far end as by Gibbs, Poole, Stockmeyer, SIAM Journal on Numerical
    Analysis 13(2), 1976, with two rounds. Cost: O(memberships + num_users log num_users).

    Examples
    --------
    >>> from shuffledp.groups.formation.groups import Groups
    >>> groups = Groups.from_sets([[1, 3], [3, 0], [0, 2]], num_users=4)
    >>> memberships = Memberships.of(groups)
    >>> cuthill_mckee(memberships, breadth_first(memberships)[0]).tolist()
    [2, 0, 3, 1]
    """
    by_degree = np.argsort(np.diff(memberships.user_starts), kind="stable")
    for _ in range(2):
        # Components fill places in a row, so their last persons come first when reversed.
        order, _ = _traverse(memberships, order[::-1], by_degree)
    return order


def principal_axis_order(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Sort people along the line on which their coordinates spread most.

    Parameters
    ----------
    points : ndarray of float64, shape (num_users, d)
        Finite, in a space where distances are straight lines; up to 1e150 in size.

    Returns
    -------
    ndarray of int64, shape (num_users,)
        With one column: sorted by it. Of people at one place, the lower number comes first.

    Notes
    -----
    Source: Pearson, "On lines and planes of closest fit to systems of points in space",
    Philosophical Magazine 2(11), 1901. Cost: O(num_users (d^2 + log num_users)).

    Examples
    --------
    >>> principal_axis_order(np.array([[3.0, 0.1], [1.0, 0.0], [2.0, -0.1]])).tolist()
    [1, 2, 0]
    """
    # In units of the largest coordinate, so that squares stay in range.
    scaled = points / max(1.0, float(np.abs(points).max()))
    scaled -= scaled.mean(axis=0)
    _, axes = np.linalg.eigh(scaled.T @ scaled)
    axis = axes[:, -1]
    # An axis has two directions; this one has its largest entry positive.
    along = scaled @ (axis * np.sign(axis[np.argmax(np.abs(axis))]))
    return np.argsort(along, kind="stable")


def _traverse(
    memberships: Memberships, roots: NDArray[np.int64], by_rank: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Call the compiled traversal with arrays of one layout, so that it is compiled once."""
    from shuffledp.groups.formation import memberships_kernels as kernels

    groups = memberships.groups
    chosen = np.full(groups.num_users, -1) if groups.group_of is None else groups.group_of
    return kernels.traverse(
        read_only(np.ascontiguousarray(roots)),
        read_only(chosen),
        memberships.user_starts,
        memberships.user_groups,
        groups.starts,
        groups.members,
        inverse(by_rank),
        read_only(by_rank),
    )
