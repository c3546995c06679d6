"""Bounds on the holders' laws: followed from the most remote users, by eigenvalues elsewhere.

In l2(pi), with f_i the function P^t(i, .) / pi = P^t e_i (see `spectrum`), let s_i(t) be at
least norm(P^t e_i - 1), the root of V_i, and u_i(t) at least norm(C^t (I - Pi) e_i).

**Smoothing.** P e_i = sum_k P(i, k) e_k. So s_i(t) <= sum_k P(i, k) s_k(t - 1) by the triangle
inequality, and, as (I - Pi) P Pi has norm rho at most (`Deflation`),
u_i(t) <= sum_k P(i, k) u_k(t - 1) + rho mu^(t-1) / sqrt(pi_i). Eigenvalues alone give
s_i(t) <= lambda^t / sqrt(pi_i): a user who is remote by few neighbours is so for one round only.

**Two halves.** P^t(i, j) / pi_j - 1 = <P^r e_i - 1, P^(t-r) e_j - 1>, at most s_i(r) s_j(t - r).

**Rows.** P^t(i, j) / pi_j = P^t(j, i) / pi_i: the law from j, divided by pi, has the ratios of all
other users at the place j. So with the laws of the most remote users j in R, the least ratio of i
is at least the smaller of the least of these laws at i, and 1 - s_i(r) max_{j not in R} s_j(t - r).
A law from R is followed round by round or, where u is small, summed over the eigenpairs:
P^t(i, j) / pi_j = 1 + sum_k theta_k^t psi_k(i) psi_k(j) + <C^r r_i, C^(t-r) r_j> + drift, the
product at most u_i(r) u_j(t - r), the drift as in `spectrum`, and psi exchanged for phi at
eta (norm(D phi_i) / sqrt(pi_j) + norm(D phi_j) / sqrt(pi_i) + eta / sqrt(pi_i pi_j)) at most,
D = diag(theta^t).

**Groups.** The places outside R are put into groups B of similar ones. For j in B, the ratio is
between 1 -+ s_i(r) max_B s_j(t - r), and, function by function, the sum above is between its
extremes over the box that psi takes on B, or, for graphs of some 10^4 users, between the extremes
of all the sums, each with its own error. So with l_iB and h_iB: l_iB <= P_i(j)/pi_j <= h_iB, each
place of R a group of its own.

**Weights.** The upper ends of a law known up to additive errors, put on the grid, have larger tails
than the law; cut off at 1 these are tails of a law (`positions`).
"""

from collections.abc import Callable
from dataclasses import replace
from heapq import heappop, heappush

import numpy as np

from shuffledp.core.arrays import Floats, Integers
from shuffledp.network.positions import bounds as positions
from shuffledp.network.positions.bounds import PositionBounds
from shuffledp.network.positions.spectrum import (
    MARGIN,
    Spectrum,
    coarse,
    loss_of,
    power_above,
    spectral_position_bounds,
    walk_matrix,
)
from shuffledp.network.walk import (
    LEAST_PROBABILITY,
    RandomWalk,
    columns_at_a_time,
    move_laws,
    point_laws,
    relative_error,
)

# Rows times users, and additions of followed rows: a second or two each.
_MOST_ENTRIES, _MOST_ADDITIONS = 2e7, 2e10
_FEWEST_ROWS, _MOST_ROWS = 16, 1024

# Laws of more users than this do not fit the cache.
_CACHED_USERS = 1 << 16

# Fewer rows than this part of the users are followed only if more than the second factor is lost
# without them.
_FEW, _NEAR = 1e-3, 1.15

# Laws known only roughly from eigenpairs are followed if this part of them can be.
_MANY = 0.05

# If the most remote users are within this factor of the median, none is followed.
_ALIKE = 1.5

# Number of last rounds that are smoothed.
_MOST_SMOOTHING = 6

# Numbers of groups in which other places are bounded; users times groups at most the last number.
_FEWEST_GROUPS, _MOST_GROUPS, _MOST_GROUPED = 4, 256, 4e6

# Largest error of laws summed over eigenpairs, and of the median user's if all sums are made.
_LARGEST_ERROR, _LARGEST_MIDDLE_ERROR = 1e-3, 0.05

# If boxes leave more than this of a ratio open for the median user, all sums are made: pairs of
# users times eigenpairs, some seconds.
_OPEN, _MOST_SUMS = 0.02, 2e11
_SUMS_AT_A_TIME = 1 << 21


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
        Number of rounds t >= 1.
    followed : FollowedLaws
        Laws that were followed for other numbers of rounds on the same walk, and are moved on.

    Returns
    -------
    PositionBounds
        At least as good as `spectral_position_bounds`, with the weights of the most remote users.

    Notes
    -----
    Source: the module has the proofs. Cost: a second or two, for any number of rounds; some 15 if
    all sums are made, or laws of 10^6 users are followed.

    Examples
    --------
    >>> from shuffledp.network.graph import Graph
    >>> from shuffledp.network.positions.spectrum import walk_spectrum
    >>> triangle = Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    >>> walk, spectrum = RandomWalk(triangle), walk_spectrum(triangle)
    >>> bounds = remote_position_bounds(walk, spectrum, 2, FollowedLaws())
    >>> bounds.low.round(9).tolist(), bounds.high.round(9).tolist()
    ([0.75, 0.75, 0.75], [1.5, 1.5, 1.5])
    """
    base = spectral_position_bounds(spectrum, rounds)
    half = rounds // 2
    norms = _norms(walk, spectrum, half, rounds - half)
    far, near = norms[0], norms[-1]
    behind = ahead = _remainder_norms(walk, spectrum, half)
    if rounds % 2:
        ahead = _remainder_norms(walk, spectrum, half + 1)
    sums = _Sums(spectrum, rounds, ahead, behind)
    # True if eigenpairs give all laws, nearly, or better than the few to be followed.
    error = float(ahead.max()) * float(behind.max())
    middle = float(np.median(ahead)) * float(np.median(behind))
    is_near = sums.are_few and middle <= _LARGEST_MIDDLE_ERROR and error <= 1.0
    is_sharper = is_near and _most_followed(walk, rounds) < _MANY * far.size
    is_summed = (is_sharper or error <= _LARGEST_ERROR) and spectrum.deflation.num_pairs > 0
    chi_square = np.square(_norms(walk, spectrum, rounds, rounds)[0]) * (1.0 + MARGIN)
    coarse(chi_square, up=True)

    def bounds_with(rows: Integers) -> PositionBounds:
        """Return bounds with the laws from some users."""
        groups = _groups(spectrum, rounds, rows, far, by_functions=is_summed)
        laws = np.empty((2, far.size, rows.size + len(groups)))
        of_rows, of_groups = laws[:, :, : rows.size], laws[:, :, rows.size :]
        if is_summed and rows.size:
            of_rows[:] = sums.by_place(list(rows[:, None]))
        elif rows.size:  # an empty list would drop the laws that are kept
            followed.write(of_rows, walk, rows, rounds)
        found = sums.by_function(groups)
        widest = np.ptp(found, axis=0).max(axis=1, initial=0.0)
        if is_summed and sums.are_few and groups and float(np.median(widest)) > _OPEN:
            found = sums.by_place(groups)
        away = np.outer(near, [far[each].max() for each in groups]) * (1.0 + MARGIN)
        np.maximum(1.0 - away * (1.0 + MARGIN), found[0], out=of_groups[0])
        np.minimum((1.0 + away) * (1.0 + MARGIN), found[1], out=of_groups[1])
        np.maximum(laws[0], base.low[:, None], out=laws[0])
        np.clip(laws[1], 0.0, base.high[:, None], out=laws[1])
        coarse(laws[0], up=False)
        coarse(laws[1], up=True)
        return _sharpened(base, laws, rows, chi_square)

    rows = _remote_rows(walk, spectrum, rounds, far, is_summed=is_summed)
    if rows.size and not is_summed and _most_followed(walk, rounds) < _FEW * far.size:
        bounds = bounds_with(rows[:0])
        if 1.0 + float(bounds.chi_square.max()) <= _NEAR * float(bounds.low.mean()):
            return bounds
    return bounds_with(rows)


class FollowedLaws:
    """Laws from some users, kept after the last rounds asked for, and after the octave before."""

    def __init__(self) -> None:
        """Begin without laws."""
        self._rows = np.empty(0, np.int64)
        self._kept: dict[int, tuple[Floats, int]] = {}

    def write(self, out: Floats, walk: RandomWalk, rows: Integers, rounds: int) -> None:
        """Write lower and upper bounds on ratios to pi of the laws from ``rows``, of one walk."""
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
        np.multiply(ratios, 1.0 - error, out=out[0])
        np.multiply(ratios, 1.0 + error, out=out[1])
        out[1] += (LEAST_PROBABILITY * flushed / pi)[:, None]


def _octave(rounds: int) -> int:
    """Return the least power of two that is at least this number."""
    return 1 << max(rounds - 1, 0).bit_length()


def _sharpened(
    base: PositionBounds, laws: Floats, rows: Integers, chi_square: Floats
) -> PositionBounds:
    """Return bounds with bounds on ratios to pi, lower and upper: a column each place or group.

    The first columns are of the places ``rows``, and so bound all ratios of the users there.
    """
    pi, (lower, upper) = base.reference, laws
    low, high = lower.min(axis=1, initial=np.inf), upper.max(axis=1, initial=0.0)
    of_rows = slice(rows.size)
    low[rows], high[rows] = lower[:, of_rows].min(axis=0), upper[:, of_rows].max(axis=0)
    grid = positions.weight_grid(float(1.0 / pi.min()))
    tails = np.zeros((rows.size, grid.size - 1), np.float32)
    width = columns_at_a_time(pi.size)
    for first in range(0, rows.size, width):
        chosen = slice(first, min(first + width, rows.size))
        widened = 1.0 + (pi.size + 64) * 2.0**-50
        held = upper[:, chosen] * pi[:, None]
        tails[chosen] = positions.tails_of_laws(held, pi, grid, widened)[0]
    chi = chi_square.copy()
    chi[rows] = np.minimum(chi[rows], positions.second_moments(grid, tails) - 1.0)
    return replace(
        base,
        low=np.clip(low * (1.0 - MARGIN), 0.0, 1.0),
        high=high * (1.0 + MARGIN),
        chi_square=np.maximum(chi, 0.0),
        grid=grid,
        tails=tails,
        followed=rows,
        error=(pi.size + 64) * 2.0**-50,
    )


def _averaging(walk: RandomWalk) -> Callable[[Floats], Floats]:
    """Return a function that computes sum_k P(i, k) values_k for each i, rounded up."""
    matrix = walk_matrix(walk.graph, walk.laziness)
    growth = 1.0 + loss_of(int(walk.graph.degrees.max()) + 8)

    def averaged(values: Floats) -> Floats:
        means: Floats = matrix @ values
        return means * growth

    return averaged


def _norms(walk: RandomWalk, spectrum: Spectrum, first: int, last: int) -> list[Floats]:
    """Return s_i after each of these rounds, smoothed over some rounds before the first too."""
    found: list[Floats] = []
    start, averaged = max(first - _MOST_SMOOTHING, 0), _averaging(walk)
    for done in range(start, last + 1):
        told = np.minimum(spectrum.chi_squares(done), 1.0 / spectrum.stationary_law)
        alone = np.sqrt(told) * (1.0 + MARGIN)
        found += [np.minimum(averaged(found[-1]), alone) if found else alone]
    return found[first - start :]


def _remainder_norms(walk: RandomWalk, spectrum: Spectrum, rounds: int) -> Floats:
    """Return u_i after this number of rounds; not needed without eigenpairs."""
    most = np.sqrt(1.0 / spectrum.stationary_law) * (1.0 + MARGIN)
    if not spectrum.deflation.num_pairs:
        return most
    first, averaged = max(rounds - _MOST_SMOOTHING, 0), _averaging(walk)
    norms = most
    for done in range(first, rounds + 1):
        if done > first:
            before = power_above(spectrum.remainder, done - 1)
            norms = averaged(norms) + spectrum.deflation.residual * before * most
        norms = np.minimum(norms, power_above(spectrum.remainder, done) * most) * (1.0 + MARGIN)
    return norms


def _most_rows(num_users: int) -> int:
    """Return the number of users whose laws are kept."""
    return min(_MOST_ROWS, max(int(_MOST_ENTRIES / num_users), _FEWEST_ROWS), num_users)


def _most_followed(walk: RandomWalk, rounds: int) -> int:
    """Return the number of users whose laws are followed, the same for an octave of rounds."""
    work = _octave(rounds) * float(walk.graph.neighbours.size)
    if walk.num_users > _CACHED_USERS:
        work *= 2.0
    return min(_most_rows(walk.num_users), int(_MOST_ADDITIONS / max(work, 1.0)))


def _remote_rows(
    walk: RandomWalk, spectrum: Spectrum, rounds: int, norms: Floats, *, is_summed: bool
) -> Integers:
    """Return the users whose laws are worth knowing; if followed, the same for an octave."""
    most = _most_rows(norms.size)
    if not is_summed:
        halfway = _octave(rounds) // 2
        norms = _norms(walk, spectrum, halfway, halfway)[0]
        most = _most_followed(walk, rounds)
        if most < norms.size and norms.max() <= _ALIKE * float(np.median(norms)):
            most = 0
    return np.sort(np.argsort(-norms, kind="stable")[:most])


class _Sums:
    """Bounds on all ratios by sums over eigenpairs; see the module."""

    def __init__(self, spectrum: Spectrum, rounds: int, ahead: Floats, behind: Floats) -> None:
        """``ahead`` and ``behind`` are u_i after the longer and the shorter half of the rounds."""
        deflation = spectrum.deflation
        self.functions, self.powers = deflation.eigenfunctions, deflation.eigenvalues**rounds
        inverse = (1.0 + MARGIN) / np.sqrt(spectrum.stationary_law)
        squares = np.square(self.functions)
        norms = np.sqrt(squares.sum(axis=1)) * (1.0 + MARGIN)
        tilted = np.sqrt(squares @ np.square(self.powers)) * (1.0 + MARGIN)
        eta, drift = deflation.defect, spectrum.drift(rounds)
        # Powers and sums are off by their relative loss.
        self.loss = loss_of(4 * self.powers.size + 64) + 2.0 * MARGIN
        # Factors of a start and of a place: products, added up, bound the error of a sum.
        self.near = np.column_stack([ahead, inverse, tilted, self.loss * norms])
        shared = (drift + eta * eta) * inverse + eta * tilted
        self.far = np.column_stack([behind, shared, eta * inverse, tilted]) * (1.0 + MARGIN)
        #: True if all pairs of users are affordable.
        self.are_few = float(inverse.size) ** 2 * self.powers.size <= _MOST_SUMS

    def by_function(self, groups: list[Integers]) -> Floats:
        """Return bounds over groups of places, lower and upper, from extremes of functions."""
        shape = self.near.shape[0], len(groups)
        if not groups or not self.powers.size:  # without pairs the norms give the same
            return np.stack([np.full(shape, -np.inf), np.full(shape, np.inf)])
        least = np.array([self.functions[each].min(axis=0) for each in groups]) * self.powers
        most = np.array([self.functions[each].max(axis=0) for each in groups]) * self.powers
        middle, radius = 0.5 * (least + most), 0.5 * np.abs(most - least)
        farthest = np.array([self.far[each].max(axis=0) for each in groups])
        # The losses of the sums are in proportion to the sums of the sizes.
        spreads = np.abs(self.functions) @ (radius + self.loss * (np.abs(middle) + radius)).T
        spreads += self.near @ farthest.T + self.loss
        spreads *= 1.0 + MARGIN
        sums = 1.0 + self.functions @ middle.T
        return np.stack([sums - spreads, sums + spreads])

    def by_place(self, groups: list[Integers]) -> Floats:
        """Return bounds over groups of places, lower and upper, from the sums of each place."""
        places = np.concatenate(groups)
        starts = np.cumsum([0, *(each.size for each in groups[:-1])])
        of_places = np.ascontiguousarray((self.functions[places] * self.powers).T)
        of_errors = np.ascontiguousarray(self.far[places].T)
        found = np.empty((2, self.near.shape[0], len(groups)))
        width = max(_SUMS_AT_A_TIME // places.size, 1)
        for first in range(0, self.near.shape[0], width):
            users = slice(first, first + width)
            sums = self.functions[users] @ of_places
            sums += 1.0
            spreads = self.near[users] @ of_errors
            spreads += self.loss
            spreads *= 1.0 + MARGIN
            found[1, users] = np.maximum.reduceat(sums + spreads, starts, axis=1)
            sums -= spreads
            found[0, users] = np.minimum.reduceat(sums, starts, axis=1)
        return found


def _groups(
    spectrum: Spectrum, rounds: int, rows: Integers, norms: Floats, *, by_functions: bool
) -> list[Integers]:
    """Return groups of similar places among the places whose laws are not known."""
    others = np.setdiff1d(np.arange(norms.size), rows)
    most = min(max(int(_MOST_GROUPED / norms.size), _FEWEST_GROUPS), _MOST_GROUPS, others.size)
    if not by_functions:
        order = others[np.argsort(norms[others], kind="stable")]
        return [each for each in np.array_split(order, max(most, 1)) if each.size]
    deflation = spectrum.deflation
    points = deflation.eigenfunctions * np.abs(deflation.eigenvalues) ** (rounds / 2.0)

    def box(group: Integers) -> tuple[float, int, int, Integers]:
        """Return minus the size, the first place, as a tie-breaker, the function to split by."""
        sizes = np.ptp(points[group], axis=0)
        function = int(np.argmax(sizes))
        size = float(sizes[function])
        # Between neighbouring floats there is no middle.
        is_one = size <= 1e-9 * float(np.abs(points[group, function]).max())
        return (0.0 if is_one else -size, int(group[0]), function, group)

    pending = [box(others)] if others.size else []
    while len(pending) < most and pending[0][0] < 0.0:
        *_, function, group = heappop(pending)
        values = points[group, function]
        is_low = values < 0.5 * (values.min() + values.max())
        for part in (group[is_low], group[~is_low]):
            heappush(pending, box(part))
    return [group for *_, group in pending]
