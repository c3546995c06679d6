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

**Groups.** The places outside R are put into groups B of similar ones. For j in B, the ratio is
between 1 -+ s_i(r) max_B s_j(t - r), and, function by function, the sum above is between its
extremes over the box that psi takes on B, or, for graphs of some 10^4 users, between the extremes
of all the sums, each with its own error. So with l_iB and h_iB: l_iB <= P_i(j)/pi_j <= h_iB, each
place of R a group of its own.

**Lowering Q.** Few remote places take much from kappa. With any c_B in (0, 1], Z = sum_j pi_j c_j
and the law Q = c pi / Z: kappa_i >= Z min_B l_iB / c_B, P_v / Q <= Z max_B h_vB / c_B, and
1 + chi2(P_v||Q) = Z sum_j P_v(j)^2 / (pi_j c_j), at most
Z (1 + chi2(P_v||pi) + sum_B (1/c_B - 1) pi(B) h_vB^2). Here c_B is what most of a sample of users
reach, so that kappa_i is about Z for them, and then moved a little, so as to lower
(1 + chi2) / (mean kappa) of the worst user whose chi2 to pi is at most 0.1. Any c is sound, so that
how it is chosen is no part of the proof.

**Weights.** Of a law known up to additive errors the upper ends, put on the grid, have larger tails
than the law; cut off at 1 these are tails of a law (`positions`).
"""

from dataclasses import replace
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.reports import Floats, Indices
from shuffledp.network.eigenvalue_certificate import loss_of
from shuffledp.network.positions import (
    PositionBounds,
    lowered_shares,
    rounded_up,
    second_moments,
    weight_grid,
    worst_hidden,
)
from shuffledp.network.spectral_bounds import (
    MARGIN,
    chi_squares_after,
    drifts,
    power_above,
    spectral_position_bounds,
)
from shuffledp.network.spectrum import Spectrum
from shuffledp.network.walk import (
    LEAST_PROBABILITY,
    RandomWalk,
    columns_at_a_time,
    move_laws,
    point_laws,
    relative_error,
)

# Rows times users, and additions of rows that are followed: a second or two each.
_MOST_ENTRIES, _MOST_ADDITIONS = 2e7, 2e10
_FEWEST_ROWS, _MOST_ROWS = 16, 1024

# Laws of more users than this outgrow the cache.
_CACHED_USERS = 1 << 16

# Fewer rows than this part of the users are followed only where more than the second factor is lost
# without them.
_FEW, _NEAR = 1e-3, 1.15

# Laws that are only roughly known from eigenpairs are followed where this part of them can be.
_MANY = 0.05

# Where the most remote users are within this factor of the median, none is followed.
_ALIKE = 1.5

# The last so many rounds are smoothed.
_MOST_SMOOTHING = 6

# Other places are bounded in so many groups; users times groups at most the last number.
_FEWEST_GROUPS, _MOST_GROUPS, _MOST_GROUPED = 4, 256, 4e6

# Q is lowered for about so many users.
_SAMPLE = 2048

_NOTHING = 1e-9

# Laws summed over eigenpairs may be off by this, or by more of the middle user where all are made.
_LARGEST_ERROR, _LARGEST_MIDDLE_ERROR = 1e-3, 0.05

# Where boxes leave more than this of a ratio open for the middle user, all sums are made: pairs of
# users times eigenpairs, some seconds.
_OPEN, _MOST_SUMS = 0.02, 2e11
_USERS_AT_A_TIME = 64


#: Minus the size, the first place (so that no two compare equal), the function, the group.
_Box = tuple[float, int, int, Indices]


class _Laws(NamedTuple):
    """Ratios to pi of some laws, a column each, enclosed."""

    lower: Floats
    upper: Floats


class _Known(NamedTuple):
    """What is known of all users, relative to pi."""

    pi: Floats
    laws: _Laws  # a column for each row that is followed, then one for each group of places
    rows: Indices
    groups: list[Indices]
    chi_square: Floats


class _Remainders(NamedTuple):
    """u_i after the longer and after the shorter half of the rounds."""

    near: Floats
    far: Floats


def remote_position_bounds(
    walk: RandomWalk, spectrum: Spectrum, rounds: int, followed: "FollowedLaws"
) -> PositionBounds:
    """Return bounds on the law of the holder of each user's report.

    Parameters
    ----------
    walk : RandomWalk
        On one connected graph, without absent users.
    spectrum : Spectrum
        Of the walk.
    rounds : int
        How many rounds t >= 1.
    followed : FollowedLaws
        Laws that were followed for other numbers of rounds on the same walk, and are moved on.

    Returns
    -------
    PositionBounds
        At least as good as `spectral_position_bounds`, with the weights of the most remote users.

    Notes
    -----
    Source: the module has the proofs. Cost: a second or two, whatever the rounds; some 15 where
    all sums are made, and where laws of 10^6 users are followed.

    Examples
    --------
    >>> from shuffledp.network.graph import Graph
    >>> from shuffledp.network.spectrum import walk_spectrum
    >>> triangle = Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    >>> walk, spectrum = RandomWalk(triangle), walk_spectrum(triangle)
    >>> bounds = remote_position_bounds(walk, spectrum, 2, FollowedLaws())
    >>> bounds.low.round(9).tolist(), bounds.high.round(9).tolist()
    ([0.75, 0.75, 0.75], [1.5, 1.5, 1.5])
    """
    base = spectral_position_bounds(spectrum, rounds)
    half = rounds // 2
    near = far = _smoothed_norms(walk, spectrum, half)
    ahead = behind = _remainder_norms(walk, spectrum, half)
    if rounds % 2:
        near = _one_more(walk, spectrum, half + 1, far)
        ahead = _remainder_norms(walk, spectrum, half + 1)
    remainders = _Remainders(ahead, behind)
    errors = _errors(spectrum, rounds, remainders)
    chi = np.square(_smoothed_norms(walk, spectrum, rounds)) * (1.0 + MARGIN)
    is_summed = _is_summed(walk, spectrum, rounds, remainders)

    def bounds_with(rows: Indices) -> PositionBounds:
        """Return bounds with the laws from some users."""
        groups = _groups(spectrum, rounds, rows, far, by_functions=is_summed)
        laws = _empty_laws(base.low.size, rows.size + len(groups))
        if is_summed:
            _sum_laws(laws, spectrum, rows, rounds, errors)
        elif rows.size:  # nobody's laws would drop those that are kept
            followed.write(laws, walk, rows, rounds)
        sums = _extreme_sums(spectrum, rounds, errors, groups)
        widest = (sums.upper - sums.lower).max(axis=1, initial=0.0)
        if is_summed and _is_small(spectrum) and groups and float(np.median(widest)) > _OPEN:
            sums = _all_sums(spectrum, rounds, errors, groups)
        farthest = np.array([far[each].max() for each in groups])
        away = np.multiply.outer(near, farthest) * (1.0 + MARGIN)
        laws.lower[:, rows.size :] = np.maximum(1.0 - away * (1.0 + MARGIN), sums.lower)
        laws.upper[:, rows.size :] = np.minimum((1.0 + away) * (1.0 + MARGIN), sums.upper)
        np.maximum(laws.lower, base.low[:, None], out=laws.lower)
        np.minimum(laws.upper, base.high[:, None], out=laws.upper)
        known = _Known(spectrum.stationary_law, laws, rows, groups, chi)
        bounds = _compared(base, known, np.ones(laws.lower.shape[1]))
        return replace(bounds, lowered=_compared(base, known, _shares(known)))

    rows = _remote_rows(walk, spectrum, rounds, far, is_summed=is_summed)
    if rows.size and not is_summed and _most_followed(walk, rounds) < _FEW * chi.size:
        bounds = bounds_with(rows[:0])
        best = bounds.lowered or bounds
        if 1.0 + float(best.chi_square.max()) <= _NEAR * float(best.low.mean()):
            return bounds
    return bounds_with(rows)


class FollowedLaws:
    """Laws from some users, kept after the last rounds asked for, and after the octave before."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._rows = np.empty(0, np.int64)
        self._kept: dict[int, tuple[Floats, int]] = {}

    def write(self, laws: _Laws, walk: RandomWalk, rows: Indices, rounds: int) -> None:
        """Write the ratios to pi of the laws from ``rows`` to the first columns, enclosed.

        Always of the same walk.
        """
        if not np.array_equal(rows, self._rows):
            self._rows, self._kept = rows, {}
        stops = (_octave(rounds) // 2, rounds)
        for stop in stops:
            if stop not in self._kept:
                start = max((each for each in self._kept if each <= stop), default=0)
                before, flushed = self._kept.get(start, (point_laws(walk, rows), 0))
                moved = before.copy()
                flushed += move_laws(walk, moved, start, stop)
                self._kept[stop] = moved, flushed
        self._kept = {stop: self._kept[stop] for stop in stops}
        moved, flushed = self._kept[rounds]
        pi, error = walk.graph.stationary_law(), relative_error(walk, rounds) + MARGIN
        ratios = moved / pi[:, None]
        np.multiply(ratios, 1.0 - error, out=laws.lower[:, : rows.size])
        np.multiply(ratios, 1.0 + error, out=laws.upper[:, : rows.size])
        laws.upper[:, : rows.size] += (LEAST_PROBABILITY * flushed / pi)[:, None]


def _octave(rounds: int) -> int:
    """Return the least power of two that is no less."""
    return 1 << max(rounds - 1, 0).bit_length()


def _empty_laws(num_users: int, num_columns: int) -> _Laws:
    """Return room for so many laws."""
    return _Laws(np.empty((num_users, num_columns)), np.empty((num_users, num_columns)))


def _masses(known: _Known) -> Floats:
    """Return the stationary mass of each column's places."""
    return np.concatenate([known.pi[known.rows], [known.pi[each].sum() for each in known.groups]])


def _shares(known: _Known) -> Floats:
    """Return a c by column with a small (1 + chi2) / (mean overlap) for the worst who is hidden."""
    worst = worst_hidden(known.chi_square)
    weights = _masses(known) * np.square(known.laws.upper[worst])
    sample = known.laws.lower[:: max(known.pi.size // _SAMPLE, 1)]
    return lowered_shares(sample, weights, float(known.chi_square[worst]))


def _compared(base: PositionBounds, known: _Known, shares: Floats) -> PositionBounds:
    """Return what is known relative to the law Q in proportion to c pi, c given by column."""
    pi, laws, rows, groups, chi_square = known
    c = np.ones(pi.size)
    c[rows] = shares[: rows.size]
    for share, group in zip(shares[rows.size :], groups, strict=True):
        c[group] = share
    total = float((pi * c).sum())
    law, by_column, by_place = pi * c / total, total / shares, total / c
    low = (laws.lower * by_column).min(axis=1, initial=np.inf)
    high = (laws.upper * by_column).max(axis=1, initial=0.0)
    weights = _masses(known) * (1.0 / shares - 1.0)
    more = np.einsum("ij,ij,j->i", laws.upper, laws.upper, weights)
    chi = np.minimum(total * (1.0 + chi_square + more), (1.0 + chi_square) * float(by_place.max()))
    # Where all shares are 1, exactly the variance to pi, which may be far below an ulp of 1.
    chi = chi_square.copy() if (shares == 1.0).all() else chi * (1.0 + MARGIN) - 1.0 + MARGIN
    grid = weight_grid(float(1.0 / law.min()))
    tails = np.zeros((rows.size, grid.size - 1), np.float32)
    width = columns_at_a_time(pi.size)
    for first in range(0, rows.size, width):
        chosen = slice(first, min(first + width, rows.size))
        low[rows[chosen]] = (laws.lower[:, chosen] * by_place[:, None]).min(axis=0)
        high[rows[chosen]] = (laws.upper[:, chosen] * by_place[:, None]).max(axis=0)
        tails[chosen] = _tails(laws.upper[:, chosen], pi, law, grid)
    chi[rows] = np.minimum(chi[rows], second_moments(grid, tails) - 1.0)
    low, high = np.clip(low * (1.0 - MARGIN), 0.0, 1.0), high * (1.0 + MARGIN)
    return PositionBounds(
        rounds=base.rounds,
        low=low,
        high=high,
        collision=base.collision,
        method="spectral",
        reference=law,
        chi_square=np.maximum(chi, 0.0),
        grid=grid,
        tails=tails,
        followed=rows,
        error=(pi.size + 64) * 2.0**-50,
    )


def _mean_of_neighbours(walk: RandomWalk, values: Floats) -> Floats:
    """Return sum_k P(i, k) values_k for each i, rounded up."""
    graph = walk.graph
    means: Floats = (graph.matrix() @ values) / graph.degrees
    means = walk.laziness * values + (1.0 - walk.laziness) * means
    return means * (1.0 + loss_of(int(graph.degrees.max()) + 8))


def _smoothed_norms(walk: RandomWalk, spectrum: Spectrum, rounds: int) -> Floats:
    """Return s_i after so many rounds."""
    first = max(rounds - _MOST_SMOOTHING, 0)
    norms = _alone(spectrum, first)
    for done in range(first + 1, rounds + 1):
        norms = _one_more(walk, spectrum, done, norms)
    return norms


def _one_more(walk: RandomWalk, spectrum: Spectrum, rounds: int, norms: Floats) -> Floats:
    """Return s_i after so many rounds, from norms after one round less."""
    return np.minimum(_mean_of_neighbours(walk, norms), _alone(spectrum, rounds))


def _alone(spectrum: Spectrum, rounds: int) -> Floats:
    """Return s_i after so many rounds, by eigenvalues alone."""
    told = np.minimum(chi_squares_after(spectrum, rounds), 1.0 / spectrum.stationary_law)
    norms: Floats = np.sqrt(told) * (1.0 + MARGIN)
    return norms


def _remainder_norms(walk: RandomWalk, spectrum: Spectrum, rounds: int) -> Floats:
    """Return u_i after so many rounds; without eigenpairs they are not needed."""
    most = np.sqrt(1.0 / spectrum.stationary_law) * (1.0 + MARGIN)
    if not spectrum.deflation.num_pairs:
        return most
    first = max(rounds - _MOST_SMOOTHING, 0)
    norms = most
    for done in range(first, rounds + 1):
        if done > first:
            before = power_above(spectrum.remainder, done - 1)
            norms = _mean_of_neighbours(walk, norms) + spectrum.deflation.residual * before * most
        norms = np.minimum(norms, power_above(spectrum.remainder, done) * most) * (1.0 + MARGIN)
    return norms


def _is_summed(walk: RandomWalk, spectrum: Spectrum, rounds: int, remainders: _Remainders) -> bool:
    """Return whether eigenpairs give all laws, nearly, or better than the few to be followed."""
    error = float(remainders.near.max()) * float(remainders.far.max())
    middle = float(np.median(remainders.near)) * float(np.median(remainders.far))
    is_near = _is_small(spectrum) and middle <= _LARGEST_MIDDLE_ERROR and error <= 1.0
    is_sharper = is_near and _most_followed(walk, rounds) < _MANY * spectrum.num_users
    return (is_sharper or error <= _LARGEST_ERROR) and spectrum.deflation.num_pairs > 0


def _is_small(spectrum: Spectrum) -> bool:
    """Return whether all sums over eigenpairs are affordable."""
    return float(spectrum.num_users) ** 2 * spectrum.deflation.num_pairs <= _MOST_SUMS


def _most_rows(num_users: int) -> int:
    """Return of how many users laws are kept."""
    return min(_MOST_ROWS, max(int(_MOST_ENTRIES / num_users), _FEWEST_ROWS), num_users)


def _most_followed(walk: RandomWalk, rounds: int) -> int:
    """Return of how many users laws are followed, the same for an octave of rounds."""
    work = _octave(rounds) * float(walk.graph.neighbours.size)
    if walk.num_users > _CACHED_USERS:
        work *= 2.0
    return min(_most_rows(walk.num_users), int(_MOST_ADDITIONS / max(work, 1.0)))


def _remote_rows(
    walk: RandomWalk, spectrum: Spectrum, rounds: int, norms: Floats, *, is_summed: bool
) -> Indices:
    """Return the users whose laws are worth knowing; if followed, the same for an octave."""
    most = _most_rows(norms.size)
    if not is_summed:
        norms = _smoothed_norms(walk, spectrum, _octave(rounds) // 2)
        most = _most_followed(walk, rounds)
        if most < norms.size and norms.max() <= _ALIKE * float(np.median(norms)):
            most = 0
    return np.sort(np.argsort(-norms, kind="stable")[:most])


class _Errors(NamedTuple):
    """Factors whose products, added up, bound what a sum over eigenpairs is off by."""

    near: Floats  # of a start, shape (num_users, 4)
    far: Floats  # of a place
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


def _extreme_sums(spectrum: Spectrum, rounds: int, errors: _Errors, groups: list[Indices]) -> _Laws:
    """Return bounds on each user's ratios over groups of places, function by function."""
    functions, powers = spectrum.deflation.eigenfunctions, spectrum.deflation.eigenvalues**rounds
    near, far, loss = errors
    if not groups or not powers.size:  # without pairs the norms say as much
        shape = near.shape[0], len(groups)
        return _Laws(np.full(shape, -np.inf), np.full(shape, np.inf))
    least = np.array([functions[each].min(axis=0) for each in groups]) * powers
    most = np.array([functions[each].max(axis=0) for each in groups]) * powers
    middle, radius = 0.5 * (least + most), 0.5 * np.abs(most - least)
    farthest = np.array([far[each].max(axis=0) for each in groups])
    # The losses of the sums are in proportion to the sums of the sizes.
    spreads = np.abs(functions) @ (radius + loss * (np.abs(middle) + radius)).T
    spreads += near @ farthest.T + loss
    spreads *= 1.0 + MARGIN
    sums = 1.0 + functions @ middle.T
    return _Laws(sums - spreads, sums + spreads)


def _all_sums(spectrum: Spectrum, rounds: int, errors: _Errors, groups: list[Indices]) -> _Laws:
    """Return bounds on each user's ratios over groups of places, place by place."""
    functions, powers = spectrum.deflation.eigenfunctions, spectrum.deflation.eigenvalues**rounds
    near, far, loss = errors
    places = np.concatenate(groups)
    starts = np.cumsum([0, *(each.size for each in groups[:-1])])
    of_places = np.ascontiguousarray((functions[places] * powers).T)
    of_errors = np.ascontiguousarray(far[places].T)
    laws = _empty_laws(near.shape[0], len(groups))
    for first in range(0, near.shape[0], _USERS_AT_A_TIME):
        users = slice(first, first + _USERS_AT_A_TIME)
        sums = functions[users] @ of_places
        sums += 1.0
        spreads = near[users] @ of_errors
        spreads += loss
        spreads *= 1.0 + MARGIN
        laws.upper[users] = np.maximum.reduceat(sums + spreads, starts, axis=1)
        sums -= spreads
        laws.lower[users] = np.minimum.reduceat(sums, starts, axis=1)
    return laws


def _groups(
    spectrum: Spectrum, rounds: int, rows: Indices, norms: Floats, *, by_functions: bool
) -> list[Indices]:
    """Return groups of the places whose laws are not known, each of similar places."""
    others = np.setdiff1d(np.arange(norms.size), rows)
    most = min(max(int(_MOST_GROUPED / norms.size), _FEWEST_GROUPS), _MOST_GROUPS, others.size)
    if not by_functions:
        order = others[np.argsort(norms[others], kind="stable")]
        return [each for each in np.array_split(order, max(most, 1)) if each.size]
    deflation = spectrum.deflation
    points = deflation.eigenfunctions * np.abs(deflation.eigenvalues) ** (rounds / 2.0)
    pending = [_box(points, others)] if others.size else []
    while len(pending) < most:
        size, _, function, group = heappop(pending)
        if size == 0.0:
            heappush(pending, (size, int(group[0]), function, group))
            break
        values = points[group, function]
        is_low = values < 0.5 * (values.min() + values.max())
        for part in (group[is_low], group[~is_low]):
            heappush(pending, _box(points, part))
    return [group for *_, group in pending]


def _box(points: Floats, group: Indices) -> _Box:
    """Return a group with what it is split by: the function that varies most; widest first."""
    sizes = np.ptp(points[group], axis=0)
    function = int(np.argmax(sizes))
    size = float(sizes[function])
    # Between neighbouring floats there is no middle.
    is_one = size <= 1e-9 * float(np.abs(points[group, function]).max())
    return (0.0 if is_one else -size, int(group[0]), function, group)


def _sum_laws(laws: _Laws, spectrum: Spectrum, rows: Indices, rounds: int, errors: _Errors) -> None:
    """Write the laws from some users, as ratios, summed over eigenpairs, to the first columns."""
    functions, powers = spectrum.deflation.eigenfunctions, spectrum.deflation.eigenvalues**rounds
    near, far, loss = errors
    spreads = (near @ far[rows].T + loss) * (1.0 + MARGIN)
    sums = 1.0 + functions @ (functions[rows] * powers).T
    np.maximum(sums - spreads, 0.0, out=laws.lower[:, : rows.size])
    np.maximum(sums + spreads, 0.0, out=laws.upper[:, : rows.size])


def _tails(ratios: Floats, pi: Floats, law: Floats, grid: Floats) -> NDArray[np.float32]:
    """Return tails, relative to ``law``, of laws at most pi times these ratios, one a column."""
    from shuffledp.network import walk_kernels as kernels

    shares = np.zeros((ratios.shape[1], grid.size - 1))
    laws = ratios * pi[:, None]
    kernels.add_weights(laws, np.arange(pi.size), 1.0 / law, grid, shares)
    tails = np.cumsum(shares[:, ::-1], axis=1)[:, ::-1]
    return rounded_up(np.minimum(tails * (1.0 + (pi.size + 64) * 2.0**-50), 1.0))
