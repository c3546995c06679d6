"""Reports that are vectors: drawing them block by block, checking them, summing them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError
from shuffledp.core.reports import Reports, Sums
from shuffledp.randomizers.checks import require_reports
from shuffledp.randomizers.vectors.normals import standard_normals
from shuffledp.randomizers.vectors.unit_ball import require_vectors, to_sphere

# Coordinates drawn or checked together: half a megabyte in each of the two arrays at work.
_CELLS_AT_A_TIME = 2**16

Lengths = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Of each report: its component along the input, and its size across it."""


def randomize_vectors(
    values: NDArray[Any],
    *,
    dimension: int,
    norm_bound: float,
    entropy: Entropy,
    draw_lengths: Callable[[int, Entropy], Lengths],
    is_on_sphere: bool,
) -> NDArray[np.float32]:
    """Return along x + across g for each value, with x on the sphere standing for the value.

    Parameters
    ----------
    values : ndarray of numbers, shape (n, d)
        In the ball of radius ``norm_bound``.
    dimension : int
        d, at least 2.
    norm_bound : float
        Radius of the ball.
    entropy : Entropy
        Source of randomness.
    draw_lengths : callable
        Draws "along" and "across" for a number of reports.
    is_on_sphere : bool
        Whether g is a uniform direction orthogonal to x, or else a standard normal vector there.

    Returns
    -------
    ndarray of float32, shape (n, d)
        Computed in float64 and rounded once.

    Raises
    ------
    DomainError
        If a vector is too long, or holds NaN or infinity; the message names the first.
    ParameterError
        If ``values`` is not an array of numbers of that shape.
    """
    from shuffledp.randomizers.vectors.vector_reports_kernels import turn_to_directions

    vectors = require_vectors(values, dimension)
    num_users = vectors.shape[0]
    out = np.empty((num_users, dimension), dtype=np.float32)
    step = _rows_at_a_time(dimension)
    for start in range(0, num_users, step):
        directions = to_sphere(
            vectors[start : start + step], norm_bound=norm_bound, entropy=entropy, first_row=start
        )
        num_rows = directions.shape[0]
        along, across = draw_lengths(num_rows, entropy)
        normals = standard_normals(num_rows * (dimension - 1), entropy)
        turn_to_directions(
            directions,
            along,
            across,
            normals.reshape(num_rows, dimension - 1),
            is_on_sphere,
            out[start : start + step],
        )
    return out


def require_vector_reports(
    reports: Reports, *, dimension: int, fingerprint: str
) -> NDArray[np.float32]:
    """Return the vectors of ``reports`` if they are of that law, else raise."""
    rows: NDArray[np.float32] = require_reports(
        reports, fingerprint=fingerprint, dtype=np.dtype(np.float32), row_shape=(dimension,)
    )
    return rows


def require_possible_norms(
    rows: NDArray[np.float32], *, norm_range: tuple[float, float], first_row: int = 0
) -> None:
    """Raise `DomainError` unless all rows have norms that the law can give.

    Parameters
    ----------
    rows : ndarray of float32, shape (n, d)
        Read-only.
    norm_range : (float, float)
        The least and the largest norm of a report.
    first_row : int
        Number of the first row, for the message.
    """
    from shuffledp.randomizers.vectors.vector_reports_kernels import squared_norms

    squares = np.empty(rows.shape[0])
    squared_norms(rows, squares)
    norms = np.sqrt(squares)
    least, largest = norm_range
    is_wrong = ~((least <= norms) & (norms <= largest))  # NaN is, too
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise DomainError(
            f"report {row + first_row} has the norm {norms[row]:.6g}, which this law never gives: "
            "it is corrupt or forged; drop it and sum again"
        )


def sum_vectors(
    rows: NDArray[np.float32], *, norm_range: tuple[float, float], fingerprint: str
) -> Sums:
    """Return the sums of the rows and of their squares, without a copy of them all.

    Parameters
    ----------
    rows : ndarray of float32, shape (n, d)
        Read-only.
    norm_range : (float, float)
        As for `require_possible_norms`.
    fingerprint : str
        Law that made them.

    Returns
    -------
    Sums
        In double precision: relative round-off at most n 2^-53 of the sum of magnitudes.

    Raises
    ------
    DomainError
        As `require_possible_norms`.
    """
    from shuffledp.randomizers.vectors.vector_reports_kernels import add_rows

    num_reports, dimension = rows.shape
    total = np.zeros(dimension)
    total_of_squares = np.zeros(dimension)
    step = _rows_at_a_time(dimension)
    for start in range(0, num_reports, step):
        block = rows[start : start + step]
        require_possible_norms(block, norm_range=norm_range, first_row=start)
        add_rows(block, total, total_of_squares)
    return Sums(
        total=total,
        total_of_squares=total_of_squares,
        num_reports=num_reports,
        fingerprint=fingerprint,
    )


def _rows_at_a_time(dimension: int) -> int:
    """Return the number of rows of a block."""
    return max(1, _CELLS_AT_A_TIME // dimension)
