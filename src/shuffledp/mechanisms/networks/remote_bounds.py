"""Bounds on the laws of the holders: followed from the most remote users, by eigenvalues elsewhere.

In l2(pi), with f_i the function P^t(i, .) / pi = P^t e_i (see `spectral_bounds`), let s_i(t) be at
least norm(P^t e_i - 1), the root of V_i, and u_i(t) at least norm(C^t (I - Pi) e_i).

**Smoothing.** P e_i = sum_k P(i, k) e_k. So s_i(t) <= sum_k P(i, k) s_k(t - 1) by the triangle
inequality, and, as (I - Pi) P Pi has norm rho at most (`Deflation`),
u_i(t) <= sum_k P(i, k) u_k(t - 1) + rho mu^(t-1) / sqrt(pi_i). Eigenvalues alone say
s_i(t) <= lambda^t / sqrt(pi_i): who is remote by having few neighbours is so for one round only.

**Two halves.** P^t(i, j) / pi_j - 1 = <P^r e_i - 1, P^(t-r) e_j - 1>, at most s_i(r) s_j(t - r).

**Rows.** P^t(i, j) / pi_j = P^t(j, i) / pi_i: the law from j, divided by pi, holds what all others
give to the place j. So with the laws of the most remote users j in R, the least ratio of user i is
at least the smaller of the least of these laws at i, and 1 - s_i(r) max_{j not in R} s_j(t - r).
A law from R is followed round by round or, where u is small, summed over the eigenpairs:
P^t(i, j) / pi_j = 1 + sum_k theta_k^t psi_k(i) psi_k(j) + <C^r r_i, C^(t-r) r_j> + drift, the
product at most u_i(r) u_j(t - r), the drift as in `spectral_bounds`, and psi exchanged for phi at
eta (norm(D phi_i) / sqrt(pi_j) + norm(D phi_j) / sqrt(pi_i) + eta / sqrt(pi_i pi_j)) at most,
D = diag(theta^t).

**Weights.** Of a law known up to additive errors the upper ends, put on the grid, have larger tails
than the law; cut off at 1 these are tails of a law (`position_weights`).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.mechanisms.networks.deflation import loss_of
from shuffledp.mechanisms.networks.position_bounds import PositionBounds
from shuffledp.mechanisms.networks.position_weights import rounded_up, second_moments, weight_grid
from shuffledp.mechanisms.networks.random_walk import (
    RandomWalk,
    columns_at_a_time,
    move_laws,
    point_laws,
    relative_error,
)
from shuffledp.mechanisms.networks.spectral_bounds import (
    MARGIN,
    chi_squares_after,
    drifts,
    power_above,
    spectral_position_bounds,
)
from shuffledp.mechanisms.networks.spectrum import Spectrum

# Rows times users, and additions of rows that are followed: a second or two each.
_MOST_ENTRIES, _MOST_ADDITIONS = 2e7, 1e10
_FEWEST_ROWS, _MOST_ROWS = 16, 1024

# The last so many rounds are smoothed.
_MOST_SMOOTHING = 6

# Laws summed over eigenpairs may be off by this.
_LARGEST_ERROR = 1e-3


class _Laws(NamedTuple):
    """Ratios to pi of some laws, a column each, enclosed."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class _Remainders(NamedTuple):
    """u_i after the longer and after the shorter half of the rounds."""

    near: NDArray[np.float64]
    far: NDArray[np.float64]


def remote_position_bounds(walk: RandomWalk, spectrum: Spectrum, rounds: int) -> PositionBounds:
    """Return bounds on the law of the holder of each user's report.

    Parameters
    ----------
    walk : RandomWalk
        On one connected graph, without colluding or absent users.
    spectrum : Spectrum
        Of the walk.
    rounds : int
        How many rounds t >= 1.

    Returns
    -------
    PositionBounds
        At least as good as `spectral_position_bounds`, with the weights of the most remote users.

    Notes
    -----
    Source: the module has the proofs. Cost: a second or two, whatever the rounds.

    Examples
    --------
    >>> from shuffledp.mechanisms.networks.graph import Graph
    >>> from shuffledp.mechanisms.networks.spectrum import walk_spectrum
    >>> triangle = Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    >>> bounds = remote_position_bounds(RandomWalk.on(triangle), walk_spectrum(triangle), 2)
    >>> bounds.low.round(9).tolist(), bounds.high.round(9).tolist()
    ([0.75, 0.75, 0.75], [1.5, 1.5, 1.5])
    """
    base = spectral_position_bounds(spectrum, rounds)
    pi = spectrum.stationary_law
    half = rounds // 2
    near, far = (_smoothed_norms(walk, spectrum, each) for each in (rounds - half, half))
    remainders = _Remainders(
        *(_remainder_norms(walk, spectrum, each) for each in (rounds - half, half))
    )
    rows, is_summed = _remote_rows(walk, spectrum, rounds, far, remainders)
    others = np.ones(pi.size, dtype=np.bool_)
    others[rows] = False
    away = near * float(far[others].max(initial=0.0)) * (1.0 + MARGIN)
    low, high = 1.0 - away * (1.0 + MARGIN), 1.0 + away
    np.maximum(low, _least_sums(spectrum, rounds, remainders, others), out=low)
    grid = weight_grid(float(1.0 / pi.min()))
    tails = np.zeros((rows.size, grid.size - 1), np.float32)
    row_low, row_high = np.zeros(rows.size), np.zeros(rows.size)
    width = columns_at_a_time(pi.size)
    for first in range(0, rows.size, width):
        chosen = rows[first : first + width]
        if is_summed:
            laws = _summed(spectrum, chosen, rounds, remainders)
        else:
            laws = _followed(walk, pi, chosen, rounds)
        np.minimum(low, laws.lower.min(axis=1), out=low)
        np.maximum(high, laws.upper.max(axis=1), out=high)
        row_low[first : first + width] = laws.lower.min(axis=0)
        row_high[first : first + width] = laws.upper.max(axis=0)
        tails[first : first + width] = _tails(laws.upper, pi, grid)
    low[rows], high[rows] = row_low, row_high
    chi = np.square(_smoothed_norms(walk, spectrum, rounds)) * (1.0 + MARGIN)
    chi[rows] = np.minimum(chi[rows], second_moments(grid, tails) - 1.0)
    low, high = np.clip(np.maximum(low, base.low), 0.0, 1.0), np.minimum(high, base.high)
    return PositionBounds(
        rounds=rounds,
        low=low,
        high=high,
        collision=base.collision,
        load=base.load,
        method="spectral",
        reference=pi,
        least=low * pi * (1.0 - MARGIN),
        greatest=np.minimum(1.0, high * pi * (1.0 + MARGIN)),
        chi_square=chi,
        grid=grid,
        tails=tails,
        followed=rows,
        error=(pi.size + 64) * 2.0**-50,
    )


def _mean_of_neighbours(walk: RandomWalk, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sum_k P(i, k) values_k for each i, rounded up."""
    from shuffledp.mechanisms.networks import spectrum_kernels as kernels

    graph = walk.graphs[0]
    out = np.empty((values.size, 1))
    kernels.step_functions(
        graph.starts, graph.neighbours, walk.laziness, 1.0 - walk.laziness, values[:, None], out
    )
    loss = loss_of(kernels.additions_of_means(int(graph.degrees.max())) + 8)
    return np.ascontiguousarray(out[:, 0]) * (1.0 + loss)


def _smoothed_norms(walk: RandomWalk, spectrum: Spectrum, rounds: int) -> NDArray[np.float64]:
    """Return s_i after so many rounds."""
    most = np.sqrt(1.0 / spectrum.stationary_law) * (1.0 + MARGIN)
    first = max(rounds - _MOST_SMOOTHING, 0)
    norms = most
    for done in range(first, rounds + 1):
        alone = np.sqrt(chi_squares_after(spectrum, done)) * (1.0 + MARGIN)
        if done > first:
            norms = _mean_of_neighbours(walk, norms)
        norms = np.minimum(np.minimum(norms, alone), most)
    return norms


def _remainder_norms(walk: RandomWalk, spectrum: Spectrum, rounds: int) -> NDArray[np.float64]:
    """Return u_i after so many rounds."""
    most = np.sqrt(1.0 / spectrum.stationary_law) * (1.0 + MARGIN)
    first = max(rounds - _MOST_SMOOTHING, 0)
    norms = most
    for done in range(first, rounds + 1):
        if done > first:
            before = power_above(spectrum.remainder, done - 1)
            norms = _mean_of_neighbours(walk, norms) + spectrum.deflation.residual * before * most
        norms = np.minimum(norms, power_above(spectrum.remainder, done) * most) * (1.0 + MARGIN)
    return norms


def _remote_rows(
    walk: RandomWalk,
    spectrum: Spectrum,
    rounds: int,
    norms: NDArray[np.float64],
    remainders: _Remainders,
) -> tuple[NDArray[np.int64], bool]:
    """Return the users whose laws are worth knowing, and whether eigenpairs give these."""
    most = min(_MOST_ROWS, max(int(_MOST_ENTRIES / norms.size), _FEWEST_ROWS), norms.size)
    error = float(remainders.near.max()) * float(remainders.far.max())
    is_summed = error <= _LARGEST_ERROR and spectrum.deflation.num_pairs > 0
    if not is_summed:
        work = rounds * float(walk.graphs[0].neighbours.size)
        most = min(most, int(_MOST_ADDITIONS / max(work, 1.0)))
    return np.sort(np.argsort(-norms, kind="stable")[:most]), is_summed


def _followed(
    walk: RandomWalk, pi: NDArray[np.float64], rows: NDArray[np.int64], rounds: int
) -> _Laws:
    """Return the laws from some users round by round, as ratios."""
    laws = point_laws(walk, rows)
    lost = 1e-280 * move_laws(walk, laws, 0, rounds)
    laws /= pi[:, None]
    error = relative_error(walk, rounds) + MARGIN
    upper = laws * (1.0 + error)
    upper += lost / pi[:, None]
    laws *= 1.0 - error
    return _Laws(laws, upper)


class _Errors(NamedTuple):
    """Factors whose products, added up, bound what a sum over eigenpairs is off by."""

    near: NDArray[np.float64]  # of a start, shape (num_users, 4)
    far: NDArray[np.float64]  # of a place
    loss: float


def _errors(spectrum: Spectrum, rounds: int, remainders: _Remainders) -> _Errors:
    """Return what sums over eigenpairs are off by, as the module says."""
    deflation = spectrum.deflation
    functions, powers = deflation.eigenfunctions, deflation.eigenvalues**rounds
    inverse = (1.0 + MARGIN) / np.sqrt(spectrum.stationary_law)
    norms = np.sqrt(np.square(functions).sum(axis=1)) * (1.0 + MARGIN)
    tilted = np.sqrt(np.square(functions) @ np.square(powers)) * (1.0 + MARGIN)
    eta, drift = deflation.defect, drifts(spectrum, rounds)
    # Powers and sums are off by their relative loss.
    loss = loss_of(4 * powers.size + 64) + 2.0 * MARGIN
    near = np.column_stack([remainders.near, inverse, tilted, loss * norms])
    shared = (drift + eta * eta) * inverse + eta * tilted
    far = np.column_stack([remainders.far, shared, eta * inverse, tilted])
    return _Errors(near, far * (1.0 + MARGIN), loss)


def _least_sums(
    spectrum: Spectrum, rounds: int, remainders: _Remainders, others: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return at most the least ratio of each user's law over other places, function by function."""
    if not others.any():
        return np.ones(others.size)
    deflation = spectrum.deflation
    functions, powers = deflation.eigenfunctions, deflation.eigenvalues**rounds
    ends = functions[others].min(axis=0) * powers, functions[others].max(axis=0) * powers
    sums = np.minimum(functions * ends[0], functions * ends[1]).sum(axis=1)
    near, far, loss = _errors(spectrum, rounds, remainders)
    sizes = np.abs(functions) @ np.maximum(np.abs(ends[0]), np.abs(ends[1]))
    errors = near @ far[others].max(axis=0) + loss * (1.0 + sizes)
    least: NDArray[np.float64] = 1.0 + sums - errors * (1.0 + MARGIN)
    return least


def _summed(
    spectrum: Spectrum, rows: NDArray[np.int64], rounds: int, remainders: _Remainders
) -> _Laws:
    """Return the laws from some users as sums over eigenpairs, as ratios."""
    functions, powers = spectrum.deflation.eigenfunctions, spectrum.deflation.eigenvalues**rounds
    near, far, loss = _errors(spectrum, rounds, remainders)
    errors = (near @ far[rows].T + loss) * (1.0 + MARGIN)
    sums = 1.0 + functions @ (functions[rows] * powers).T
    return _Laws(np.maximum(sums - errors, 0.0), np.maximum(sums + errors, 0.0))


def _tails(
    ratios: NDArray[np.float64], pi: NDArray[np.float64], grid: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Return tails of laws at most pi times these ratios, a row for each column."""
    from shuffledp.mechanisms.networks import position_bounds_kernels as kernels

    shares = np.zeros((ratios.shape[1], grid.size - 1))
    laws = ratios * pi[:, None]
    scales = np.ones(ratios.shape[1])
    kernels.add_weights(laws, np.arange(pi.size), 1.0 / pi, scales, grid, shares)
    tails = np.cumsum(shares[:, ::-1], axis=1)[:, ::-1]
    return rounded_up(np.minimum(tails * (1.0 + (pi.size + 64) * 2.0**-50), 1.0))
