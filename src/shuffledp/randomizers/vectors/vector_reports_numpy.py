"""Loops over rows of vectors in NumPy: turning reports to their inputs, and summing them.

Sums over coordinates are taken in another order than in the compiled loops: they differ in the
last bits of double precision.
"""

import numpy as np
from numpy.typing import NDArray


def turn_to_directions(
    directions: NDArray[np.float64],
    along: NDArray[np.float64],
    across: NDArray[np.float64],
    normals: NDArray[np.float64],
    is_on_sphere: bool,
    out: NDArray[np.float32],
) -> None:
    """Write along[i] x + across[i] g for each direction x, with g from normals, orthogonal to x.

    See the compiled loop for the reflection that turns g.
    """
    first_of_x, rest_of_x = directions[:, :1], directions[:, 1:]
    signs = np.where(first_of_x >= 0.0, 1.0, -1.0)
    lengths = 1.0 + np.abs(first_of_x)  # |u|^2 / 2, and the first coordinate of u
    dots = np.einsum("ij,ij->i", normals, rest_of_x)[:, None]
    scales = across[:, None]
    if is_on_sphere:
        scales = scales / np.sqrt(np.einsum("ij,ij->i", normals, normals))[:, None]
    firsts = -signs * along[:, None]
    factors = firsts + scales * signs * dots / lengths
    out[:, :1] = firsts - factors * lengths
    out[:, 1:] = scales * normals - factors * signs * rest_of_x


def add_rows(
    rows: NDArray[np.float32],
    total: NDArray[np.float64],
    total_of_squares: NDArray[np.float64],
) -> None:
    """Add each coordinate and its square over the rows, in double precision."""
    values = rows.astype(np.float64)
    total += values.sum(axis=0)
    total_of_squares += np.einsum("ij,ij->j", values, values)


def squared_norms(rows: NDArray[np.float32], out: NDArray[np.float64]) -> None:
    """Write the squared norm of each row, in double precision."""
    with np.errstate(invalid="ignore"):  # a forged NaN may signal; the caller refuses it
        values = rows.astype(np.float64)
    np.einsum("ij,ij->i", values, values, out=out)
