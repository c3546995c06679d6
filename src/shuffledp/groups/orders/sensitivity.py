r"""By how much a rearrangement inside one group can change a rank distance: exact sensitivities.

The shuffle draws a permutation pi with probability proportional to exp(-theta d(pi)), where d is
the distance from the identity, in the coordinates of a reference order. If two data sets differ by
a rearrangement inside a group, then pi gives from one what kappa pi gives from the other, where
kappa moves only the set W of the places of the group. So the logarithms of the probabilities of an
output differ by at most theta Delta, with

    Delta = max over pi, and kappa that moves only W, of d(kappa pi) - d(pi).

Let w_1 < ... < w_g be the members of W. Each maximum is attained with pi the identity.

- Kendall, the number of inversions: Delta = g (g - 1) / 2 + 2 sum of min(a_m, b_m) over all
  m outside W, with b_m members of W below m and a_m = g - b_m above.
  Proof: kappa rearranges the values of W among the positions that hold them; other values stay.
  Each pair of those positions adds at most 1 to the change. A value m outside W stays where it is,
  with s of those positions to its left. If x of the b_m smaller values of W stand to its right,
  then s - b_m + x of the larger ones stand to its left, so it is in 2 x + s - b_m inversions with
  W. As max(0, b_m - s) <= x <= min(b_m, g - s), that changes by at most 2 min(a_m, b_m). For the
  identity against the reversal of W, s = b_m, and x goes from 0 to min(a_m, b_m): the reversal of
  W has exactly Delta inversions.
- Hamming, the number of places that are moved: g for g >= 2, else 0. It changes only where a value
  of W stands. A cycle through W moves them all.
- Cayley, n minus the number of cycles: g - 1. A rearrangement of W is a product of at most g - 1
  transpositions, and each changes the number of cycles by one. A cycle through W needs them all.
- Spearman's footrule, the sum of abs(pi(i) - i): Delta = sum over i of abs(w_i - w_{g+1-i}). By
  the triangle inequality the change is at most the sum of abs(kappa(w) - w) over W, which is
  largest for the reversal of W.

The paper's bound for Kendall, from the width w_g - w_1 alone, is safe but mostly many times larger,
so that answers are shuffled more than their privacy needs.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, Definition 4.3, Section 4.3 and Property 4 of the appendix, for the
definition and the bound by the width. The exact forms are proved above.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import read_only
from shuffledp.groups.formation.groups import Groups
from shuffledp.groups.formation.memberships import Memberships
from shuffledp.groups.permutations.permutation_arrays import inverse, require_permutation

#: The rank distances whose sensitivities are known.
DISTANCES = ("kendall", "hamming", "cayley", "footrule")

#: Those that are the same in every reference order.
ORDER_FREE_DISTANCES = ("hamming", "cayley")


def require_distance(distance: str) -> str:
    """Return the name of a rank distance, else raise `ParameterError`.

    Examples
    --------
    >>> require_distance("kendall")
    'kendall'
    """
    if distance not in DISTANCES:
        raise ParameterError(f"distance = {distance!r} is not one of {', '.join(DISTANCES)}")
    return distance


def group_sensitivities(distance: str, groups: Groups, places: NDArray[Any]) -> NDArray[np.int64]:
    """Return the exact sensitivity of a rank distance to each group.

    Parameters
    ----------
    distance : {"kendall", "hamming", "cayley", "footrule"}
        The rank distance.
    groups : Groups
        The groups.
    places : ndarray of int, shape (num_users,)
        ``places[i]`` is the place of person i in the reference order, in [0, num_users).

    Returns
    -------
    ndarray of int64, shape (num_groups,)
        Exact; 0 for groups of one. Up to 2^31 people there is no overflow.

    Raises
    ------
    ParameterError
        If the distance is unknown, or ``places`` are not the places of these people.

    Notes
    -----
    Source: this module. Cost: O(memberships + num_users), without sorting.

    Examples
    --------
    The groups at places 0, 2, 4 and 1, 2 of five:

    >>> groups = Groups.from_sets([[0, 2, 4], [1, 2], [3]], num_users=5)
    >>> group_sensitivities("kendall", groups, np.arange(5)).tolist()
    [7, 1, 0]
    """
    require_distance(distance)
    order = inverse(require_permutation("places", places, groups.num_users))
    if distance in ORDER_FREE_DISTANCES:
        return _order_free(distance, groups.sizes)
    return sensitivities_in_order(distance, Memberships.of(groups), order)


def sensitivity(distance: str, groups: Groups, places: NDArray[Any]) -> int:
    """Return the exact sensitivity of a rank distance: the largest over the groups.

    Parameters
    ----------
    distance, groups, places
        As for `group_sensitivities`.

    Returns
    -------
    int
        Exact; 0 where every group is one person, or there is no group.

    Examples
    --------
    >>> groups = Groups.from_sets([[0, 2, 4], [1, 2], [3]], num_users=5)
    >>> [sensitivity(distance, groups, np.arange(5)) for distance in DISTANCES]
    [7, 3, 2, 8]
    """
    return int(group_sensitivities(distance, groups, places).max(initial=0))


def smallest_possible_sensitivity(distance: str, groups: Groups) -> int:
    """Return what the sensitivity cannot go below, whatever the reference order.

    It is that of the largest group at places in a row: no place in between makes it smaller. An
    order may not exist that puts all groups in a row, so this is a lower bound only.

    Parameters
    ----------
    distance, groups
        As for `group_sensitivities`.

    Returns
    -------
    int
        With g the size of the largest group: g (g - 1) / 2 for Kendall, floor(g^2 / 2) for the
        footrule; for Hamming and Cayley the sensitivity itself.

    Examples
    --------
    >>> groups = Groups.from_sets([[0, 2, 4], [1, 2], [3]], num_users=5)
    >>> [smallest_possible_sensitivity(distance, groups) for distance in DISTANCES]
    [3, 3, 2, 4]
    """
    size = groups.largest_size
    if require_distance(distance) == "kendall":
        return size * (size - 1) // 2
    if distance == "footrule":
        return size * size // 2
    return int(_order_free(distance, np.array([size])).max())


def group_widths(groups: Groups, places: NDArray[Any]) -> NDArray[np.int64]:
    """Return the largest place minus the smallest of each group.

    Parameters
    ----------
    groups, places
        As for `group_sensitivities`.

    Returns
    -------
    ndarray of int64, shape (num_groups,)
        The widths of the paper's Section 4.3, exact; 0 for groups of one.

    Examples
    --------
    >>> group_widths(Groups.from_sets([[0, 2, 4], [1, 3]], num_users=5), np.arange(5)).tolist()
    [4, 2]
    """
    from shuffledp.groups.orders import sensitivity_kernels as kernels

    checked = require_permutation("places", places, groups.num_users)
    return kernels.widths(groups.starts, groups.members, checked)


def paper_sensitivity(groups: Groups, places: NDArray[Any]) -> int:
    """Return the paper's bound of Kendall's sensitivity: w (w + 1) / 2 for the largest width w.

    Parameters
    ----------
    groups, places
        As for `group_sensitivities`.

    Returns
    -------
    int
        At least ``sensitivity("kendall", groups, places)``, with equality if a group fills its
        width. For comparison only: nothing is gained by using it.

    Notes
    -----
    Source: the paper's Section 4.3 and Property 4, where it is printed as an equality.

    Examples
    --------
    >>> paper_sensitivity(Groups.from_sets([[0, 2, 4], [1, 3]], num_users=5), np.arange(5))
    10
    """
    width = int(group_widths(groups, places).max(initial=0))
    return width * (width + 1) // 2


def sensitivities_in_order(
    distance: str, memberships: Memberships, order: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Do what `group_sensitivities` does for Kendall or the footrule, without its checks.

    ``order`` is a permutation, ``order[j]`` being the person at place j. Cost: one pass.
    """
    from shuffledp.groups.orders import sensitivity_kernels as kernels

    loop = (
        kernels.kendall_sensitivities if distance == "kendall" else kernels.footrule_sensitivities
    )
    return loop(
        read_only(order), memberships.user_starts, memberships.user_groups, memberships.sizes
    )


def _order_free(distance: str, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sensitivities of Hamming's or Cayley's distance to groups of these sizes."""
    if distance == "cayley":
        return np.maximum(sizes - 1, 0)
    return np.where(sizes > 1, sizes, 0)
