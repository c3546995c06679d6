"""The law of the histogram of n reports, for every histogram of the n true values.

Users report independently through one channel R, so the law depends on the values only through
their histogram a. Take one user with value v away: the histogram of all reports is that of the
others plus one more, drawn from row v. So the law of a is made from that of a - e_v, user by user,
without ever listing datasets. All terms are non-negative: doubles are good to a relative error of
about n times the number of outputs times 1e-16.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels.histograms import (
    histogram_ranks,
    histograms,
    num_histograms,
)
from shuffledp.leakage.channels.matrices import require_dense_size
from shuffledp.leakage.channels.rationals import is_exact_array, scaled_rows

# Multiplications that take ten or twenty seconds, of doubles and of long integers; and what a user
# costs besides, however few histograms there are.
_MOST_STEPS = 10**9
_MOST_STEPS_EXACT = 5 * 10**7
_STEPS_PER_USER = 10**4


def _require_feasible(num_users: int, shape: tuple[int, int], *, exact: bool) -> None:
    """Refuse what takes too much memory or too long, with the size it would need."""
    num_inputs, num_outputs = shape
    rows = num_histograms(num_users, num_inputs)
    columns = num_histograms(num_users, num_outputs)
    require_dense_size("the channel on histograms", rows, columns, exact=exact)
    steps = 0
    limit = _MOST_STEPS_EXACT if exact else _MOST_STEPS
    for users in range(1, num_users + 1):
        cells = num_histograms(users, num_inputs) * num_histograms(users, num_outputs)
        steps += num_outputs * cells + (0 if exact else _STEPS_PER_USER)
        if steps > limit:
            raise ParameterError(
                f"the channel on histograms, {rows} x {columns}, would take above {limit:.0e} "
                "multiplications: use fewer users" + (", or floats" if exact else "")
            )


def _grow(laws: NDArray[Any], response: NDArray[Any], users: int) -> NDArray[Any]:
    """Return the laws for ``users`` users, given those for one fewer; a column for each law.

    Laws are columns, so that what is added for one report are whole rows.
    """
    num_inputs, num_outputs = response.shape
    values = histograms(users, num_inputs)
    last = np.argmax(values > 0, axis=1)  # any value that somebody has
    values[np.arange(len(values)), last] -= 1
    others = np.take(laws, histogram_ranks(values), axis=1)
    reports = histograms(users - 1, num_outputs)
    shape = (num_histograms(users, num_outputs), len(values))
    grown = np.zeros(shape, dtype=laws.dtype)
    for report in range(num_outputs):
        reports[:, report] += 1
        target = histogram_ranks(reports)
        reports[:, report] -= 1
        grown[target] += others * response[last, report]
    return grown


def count_laws(response: NDArray[Any], num_users: int) -> NDArray[Any]:
    """Return the law of the histogram of reports for each histogram of values.

    Parameters
    ----------
    response : numpy.ndarray, shape (k, m)
        The channel R of one user: float64, or object, of `fractions.Fraction`.
    num_users : int
        n >= 1.

    Returns
    -------
    numpy.ndarray, shape (num_histograms(n, k), num_histograms(n, m))
        Of the same kind; rows and columns in lexicographic order.

    Raises
    ------
    ParameterError
        If that has more than 2e8 cells (exact: 4e6) or takes more than 1e9 multiplications (exact:
        5e7); sizes are named.

    Examples
    --------
    >>> count_laws(np.array([[0.75, 0.25], [0.25, 0.75]]), 2)
    array([[0.5625, 0.375 , 0.0625],
           [0.1875, 0.625 , 0.1875],
           [0.0625, 0.375 , 0.5625]])
    """
    exact = is_exact_array(response)
    _require_feasible(num_users, response.shape, exact=exact)
    if not exact:
        return _count_laws(response, num_users)
    flat, (scale,) = scaled_rows(response.reshape(1, -1))
    integers = _count_laws(flat.reshape(response.shape), num_users)
    whole = scale**num_users
    fractions = np.empty(integers.size, dtype=np.object_)
    fractions[:] = [Fraction(entry, whole) for entry in integers.ravel().tolist()]
    return fractions.reshape(integers.shape)


def _count_laws(response: NDArray[Any], num_users: int) -> NDArray[Any]:
    laws = np.ones((1, 1), dtype=response.dtype)
    for users in range(1, num_users + 1):
        laws = _grow(laws, response, users)
    return np.ascontiguousarray(laws.T)
