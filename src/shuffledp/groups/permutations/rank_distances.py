"""Distances between permutations: Kendall, Hamming, Cayley and the footrule.

All four are right-invariant: they do not change when the places of both permutations are
relabelled in the same way. So the distance of two permutations is that of first second^-1 from
the identity.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.groups.permutations.permutation_arrays import require_permutation


def kendall_distance(first: ArrayLike, second: ArrayLike | None = None) -> int:
    """Return the number of pairs of places that two permutations order differently.

    Parameters
    ----------
    first : array_like, shape (n,)
        A permutation of 0, ..., n - 1.
    second : array_like, shape (n,), optional
        Another one; the identity by default, so that inversions are counted.

    Returns
    -------
    int
        Exact, in [0, n (n - 1) / 2].

    Raises
    ------
    ParameterError
        If one is not a permutation, or their sizes differ.

    Notes
    -----
    Cost: O(n log n), by merge sort.

    Examples
    --------
    >>> kendall_distance([2, 1, 0])
    3
    >>> kendall_distance([2, 1, 0], [2, 0, 1])
    1
    """
    from shuffledp.groups.permutations import rank_distances_kernels as kernels

    pi = _relative(first, second)
    return int(kernels.count_inversions(pi, np.empty_like(pi)))


def hamming_distance(first: ArrayLike, second: ArrayLike | None = None) -> int:
    """Return the number of places at which two permutations differ.

    Parameters
    ----------
    first : array_like, shape (n,)
        A permutation of 0, ..., n - 1.
    second : array_like, shape (n,), optional
        Another one; the identity by default.

    Returns
    -------
    int
        Exact, in [0, n], and never 1.

    Raises
    ------
    ParameterError
        If one is not a permutation, or their sizes differ.

    Notes
    -----
    Cost: O(n).

    Examples
    --------
    >>> hamming_distance([2, 1, 0])
    2
    """
    pi = _relative(first, second)
    return int(np.count_nonzero(pi != np.arange(pi.size)))


def cayley_distance(first: ArrayLike, second: ArrayLike | None = None) -> int:
    """Return the least number of swaps of two places that turn one permutation into another.

    Parameters
    ----------
    first : array_like, shape (n,)
        A permutation of 0, ..., n - 1.
    second : array_like, shape (n,), optional
        Another one; the identity by default.

    Returns
    -------
    int
        Exact, in [0, n - 1]: n less the number of cycles of first second^-1.

    Raises
    ------
    ParameterError
        If one is not a permutation, or their sizes differ.

    Notes
    -----
    Cost: O(n).

    Examples
    --------
    >>> cayley_distance([1, 2, 0])
    2
    """
    from shuffledp.groups.permutations import rank_distances_kernels as kernels

    pi = _relative(first, second)
    return pi.size - int(kernels.count_cycles(pi))


def footrule_distance(first: ArrayLike, second: ArrayLike | None = None) -> int:
    """Return Spearman's footrule: the sum over places of abs(first[i] - second[i]).

    Parameters
    ----------
    first : array_like, shape (n,)
        A permutation of 0, ..., n - 1.
    second : array_like, shape (n,), optional
        Another one; the identity by default.

    Returns
    -------
    int
        Exact, even, in [0, n^2 / 2].

    Raises
    ------
    ParameterError
        If one is not a permutation, or their sizes differ.

    Notes
    -----
    Cost: O(n).

    Examples
    --------
    >>> footrule_distance([2, 1, 0])
    4
    """
    pi = _relative(first, second)
    return int(np.abs(pi - np.arange(pi.size)).sum())


def _relative(first: ArrayLike, second: ArrayLike | None) -> NDArray[np.int64]:
    """Return first second^-1, a new array."""
    pi = require_permutation("first", first)
    if second is None:
        return pi.copy()
    other = require_permutation("second", second)
    if other.size != pi.size:
        raise ParameterError(
            f"first has {pi.size} places and second {other.size}: give permutations of one size"
        )
    relative = np.empty_like(pi)
    relative[other] = pi
    return relative
