"""Reference orders by one number a person: the Fiedler vector, and the longest axis of coordinates.

The Fiedler vector solves the relaxed problem exactly: of all ways to give people numbers (of mean
zero and a fixed spread), it is the one in which members of a group differ least from each other on
average. Sorting by it puts the members of groups close together, without looking at the worst one.
"""

import numpy as np
from numpy.typing import NDArray

from shuffledp.groups.formation.memberships import Memberships

#: Components with fewer people keep the order that they have, which is hardly worse.
LEAST_PEOPLE = 16

#: So many of the largest components are solved for; each costs a call of some milliseconds.
MOST_COMPONENTS = 256

# Of the Lanczos iteration: an order needs few digits, and where the vector does not come
# within these restarts, groups form a long chain, which a traversal follows well anyway.
_TOLERANCE = 1e-3
_BASIS = 12
_RESTARTS = 6


def fiedler_order(
    memberships: Memberships, order: NDArray[np.int64], component: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Sort the people of each large component by its Fiedler vector.

    Parameters
    ----------
    memberships : Memberships
        Who is in which group.
    order : ndarray of int64, shape (num_users,)
        An order in which components fill places in a row; where to start, and what is kept where
        the vector does not converge.
    component : ndarray of int64, shape (num_users,)
        The number of each person's component, ascending in ``order``.

    Returns
    -------
    ndarray of int64, shape (num_users,)
        The new order. The same for the same arguments.

    Notes
    -----
    Source: Fiedler, "A property of eigenvectors of nonnegative symmetric matrices and its
    application to graph theory", Czechoslovak Mathematical Journal 25, 1975; with the incidence B
    of groups and people normalised by the degrees of both, the vector is the second right singular
    vector of D_g^(-1/2) B D_u^(-1/2), scaled by D_u^(-1/2). Cost: some fifty passes over the
    memberships; memory: O(num_users).

    Examples
    --------
    A path of twenty, whose people are numbered from both ends by turns:

    >>> from shuffledp.groups.formation.groups import Groups
    >>> from shuffledp.groups.orders.traversals import breadth_first
    >>> path = [*range(0, 20, 2), *range(19, 0, -2)]
    >>> groups = Groups.from_sets(zip(path[:-1], path[1:]), num_users=20)
    >>> memberships = Memberships.of(groups)
    >>> found = fiedler_order(memberships, *breadth_first(memberships)).tolist()
    >>> found in (path, path[::-1])
    True
    """
    ends = np.flatnonzero(np.diff(component[order], append=-1)) + 1
    starts = np.concatenate([[0], ends[:-1]])
    largest = np.argsort(starts - ends, kind="stable")[:MOST_COMPONENTS]
    groups = memberships.groups
    component_of_group = component[groups.members[groups.starts[:-1]]]
    rows = np.argsort(component_of_group, kind="stable")
    row_ends = np.cumsum(np.bincount(component_of_group, minlength=ends.size))
    found = order.copy()
    for number in largest.tolist():
        people = order[starts[number] : ends[number]]
        if people.size >= LEAST_PEOPLE:
            first = row_ends[number - 1] if number else 0
            vector = _fiedler_vector(memberships, people, rows[first : row_ends[number]])
            if vector is not None:
                by_vector = np.argsort(vector, kind="stable")
                found[starts[number] : ends[number]] = people[by_vector]
    return found


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


def _fiedler_vector(
    memberships: Memberships, people: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """Return the Fiedler vector of a component, or None where Lanczos does not converge.

    ``people`` are its people in the order to start from, ``rows`` its groups.
    """
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    roots = np.sqrt(np.diff(memberships.user_starts)[people])
    constant = roots / np.linalg.norm(roots)  # the first singular vector, whose value is 1
    values = np.zeros(memberships.groups.num_users)
    centres = np.zeros(memberships.sizes.size)

    def without_constant(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        rest: NDArray[np.float64] = vector - constant * (constant @ vector)
        return rest

    def apply(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        values[people] = vector / roots
        centres[rows] = memberships.sums_over_members(rows, values) / memberships.sizes[rows]
        return without_constant(memberships.sums_over_groups(people, centres) / roots)

    start = without_constant(np.arange(float(people.size)) * roots)
    operator = LinearOperator((people.size, people.size), matvec=apply, dtype=np.float64)
    try:
        _, vectors = eigsh(
            operator, k=1, which="LA", v0=start, ncv=_BASIS, maxiter=_RESTARTS, tol=_TOLERANCE
        )
    except ArpackError:
        return None
    vector: NDArray[np.float64] = vectors[:, 0]
    # A singular vector has two signs; this one goes the way of the order before.
    return vector / roots if vector @ start >= 0.0 else -vector / roots
