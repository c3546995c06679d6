"""Both ends of the success probability from a coarse lattice of histograms, at any size.

Let D_x(h) = sum over y of (q_x R_xy - q_b R_by) G(h - e_y), b a fixed guess: V = q_b + T, T the sum
over h of max(0, max_x D_x(h)). *Lower end:* block sums of D_x. *Upper end:* coefficients a_x of
B-splines, with what they leave charged. Only as many Fourier nodes as blocks are needed. Every
error (nodes left out, images, round-off, wrapping) is charged, by Cauchy and Schwarz as the root of
a sum over nodes of what it does to the transform. Proof and figures:
docs/results/leakage-strong.md.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage.others import Kind, fourier_slack

_ULP = math.ulp(1.0)

#: Outcomes of a channel, at most.
MOST_OUTCOMES = 5

#: Blocks times guesses: one to three seconds.
MOST_WORK = 2.4e7

# Blocks this narrow, in deviations, lose next to nothing.
_NARROW = 0.02

# The window leaves this out, over sqrt(n).
_TAIL = 1e-4

# Frequencies where abs(G^) is proved to be below e^-30 are left out; and how many there may be.
_CUT = 30.0

# So are, and are charged as they are, those where it is computed to be below this.
_SMALL = 1e-10

# B-splines whose coefficients are below this share of the largest are not refined.
_NEGLIGIBLE = 1e-3
_MOST_NODES = 1.5e7

# How many blocks are convolved to the B-spline: even numbers, so that its middle is a number.
_ORDERS = (4, 6)

# A user's characteristic function is not taken to be nearer to zero than the root of this.
_SMALLEST_SQUARE = 1e-14
_MOST_DOUBT = 300.0

_Values = NDArray[np.float64]
_Waves = NDArray[np.complex128]


class Lattice(NamedTuple):
    """Blocks of ``widths`` numbers, ``lengths`` (odd) of them, on each axis."""

    implied: int
    kept: tuple[int, ...]
    widths: tuple[int, ...]
    lengths: tuple[int, ...]
    offsets: tuple[float, ...]
    spreads: tuple[float, ...]
    conductances: tuple[float, ...]
    tail: float


class Nodes(NamedTuple):
    """Frequencies that matter, with the last index >= 0, and what is known there."""

    indices: tuple[NDArray[np.int32], ...]
    tables: tuple[_Waves, ...]
    weights: _Values
    transform: _Waves
    ceilings: _Values
    doubts: _Values

    def where(self, chosen: NDArray[np.bool_]) -> "Nodes":
        """Return some of them."""
        return Nodes(
            tuple(each[chosen] for each in self.indices),
            self.tables,
            self.weights[chosen],
            self.transform[chosen],
            self.ceilings[chosen],
            self.doubts[chosen],
        )


class _Filters(NamedTuple):
    """U at the nodes, without and with its phase, and the images of B over it for each order."""

    block: _Values
    analysis: _Waves
    images: dict[int, _Values]


def coarse_lattice(kinds: Sequence[Kind], *, most_cells: float) -> Lattice:
    """Return blocks, as narrow as the number of cells allows."""
    users, size = sum(kind.number for kind in kinds), kinds[0].law.size
    log_rare = math.log(2.0 * size * math.sqrt(users + 1.0) / _TAIL)
    third, ends = log_rare / 3.0, []
    for y in range(size):
        mean = sum((kind.number * Fraction(float(kind.law[y])) for kind in kinds), Fraction(0))
        variance = math.fsum(kind.number * kind.law[y] * (1.0 - kind.law[y]) for kind in kinds)
        reach = Fraction(third + math.sqrt(third * third + 2.0 * log_rare * variance) + 1e-6)
        low, high = max(math.floor(mean - reach), 0), min(math.ceil(mean + reach), users) + 1
        ends.append((high - low + 1, float(mean - round(mean)), math.sqrt(variance)))
    implied = max(range(size), key=lambda y: ends[y][0])
    kept = tuple(y for y in range(size) if y != implied)
    widths = [max(math.floor(0.5 * _NARROW * ends[y][2]) * 2, 1) for y in kept]
    while math.prod(lengths := _lengths([ends[y][0] for y in kept], widths)) > most_cells:
        narrow = min(range(size - 1), key=lambda i: (widths[i] + 2) / (ends[kept[i]][2] + 1e-9))
        widths[narrow] = max(widths[narrow] // 2 + 1, math.floor(0.505 * widths[narrow])) * 2
    return Lattice(
        implied=implied,
        kept=kept,
        widths=tuple(widths),
        lengths=tuple(lengths),
        offsets=tuple(ends[y][1] for y in kept),
        spreads=tuple(
            math.fsum(kind.number * float(kind.law[implied] * kind.law[y]) for kind in kinds)
            for y in kept
        ),
        conductances=tuple(
            math.fsum(
                kind.number
                * float(kind.law[implied] * kind.law[y])
                / max(float(kind.law[implied] + kind.law[y]), 1e-300)
                for kind in kinds
            )
            for y in kept
        ),
        tail=2.0 * (size - 1) * math.exp(-log_rare),
    )


def _lengths(reaches: list[int], widths: list[int]) -> list[int]:
    """Return odd numbers of blocks that hold the windows."""
    return [-(-reach // width) // 2 * 2 + 1 for reach, width in zip(reaches, widths, strict=True)]


def coarse_vulnerability(
    kinds: Sequence[Kind], joint: _Values, *, work: float = MOST_WORK
) -> Enclosure | None:
    """Enclose how often the best guess is right, for any law ``joint`` of value and report.

    None unless there are 2 to `MOST_OUTCOMES` outcomes, with noise on each. At n = 1e9: 0.1 s for
    three outcomes, 2 s for four, 5 s and up to 1 GB of memory for five; less ``work`` is quicker
    and coarser.
    """
    if not 2 <= joint.shape[1] <= MOST_OUTCOMES:
        return None
    lattice = coarse_lattice(kinds, most_cells=work / (len(joint) - 1))
    nodes = _nodes(lattice, kinds)
    if nodes is None:
        return None
    # Of equal priors the implied outcome's value: the others' differences are small there.
    prior = joint.sum(axis=1)
    base = int(prior.argmax())
    if lattice.implied < len(prior) and prior[lattice.implied] >= prior[base] * (1.0 - 8.0 * _ULP):
        base = lattice.implied
    changes = np.delete(joint - joint[base], base, axis=0)
    found = _sums(lattice, nodes, np.delete(prior - prior[base], base), changes)
    wrapped = float(np.maximum(changes, 0.0).max(axis=0).sum())
    wrapped += float(np.maximum(-changes, 0.0).max(axis=0).sum())
    # An error of G moves each D_x by what it is multiplied with, in the l1 norm.
    slack = 2.0 * wrapped * _law_slack(kinds, lattice) + 64.0 * _ULP
    lower = float(prior[base]) + found.lower - slack
    upper = float(prior[base]) + found.upper + wrapped * lattice.tail + slack
    return Enclosure(min(max(lower, 0.0), 1.0), min(max(upper, 0.0), 1.0))


def _law_slack(kinds: Sequence[Kind], lattice: Lattice) -> float:
    """Bound how much rounding moves G, in total variation: by Pinsker, or user by user."""
    relative = math.fsum(
        kind.number * (1.0 + 1.0 / max(float(kind.law[lattice.implied]), 1e-300)) for kind in kinds
    )
    users = sum(kind.number for kind in kinds)
    return 8.0 * _ULP * min(math.sqrt(0.5 * relative), 2.0 * users)


def _grid(lattice: Lattice) -> list[tuple[NDArray[np.int64], _Values]] | None:
    """Return the indices and angles on each axis that matter, or None if they are too many."""
    axes, total = [], 1.0
    last = len(lattice.kept) - 1
    for i, (width, length, spread) in enumerate(
        zip(lattice.widths, lattice.lengths, lattice.conductances, strict=True)
    ):
        period = width * length
        share = _CUT / max(2.0 * spread, 1e-300)
        far = math.pi if share >= 1.0 else 2.0 * math.asin(math.sqrt(share))
        radius = min(math.ceil(far * period / (2.0 * math.pi)), period // 2)
        indices = np.arange(0 if i == last else -radius, radius + 1)
        axes.append((indices, 2.0 * math.pi * indices / period))
        total *= indices.size
    return axes if total <= _MOST_NODES else None


def _nodes(lattice: Lattice, kinds: Sequence[Kind]) -> Nodes | None:
    """Return the frequencies that matter, of the fine lattice, and G^ there."""
    axes = _grid(lattice)
    if axes is None:
        return None
    exponents = np.zeros([indices.size for indices, _ in axes])
    for i, ((_, each), spread) in enumerate(zip(axes, lattice.spreads, strict=True)):
        shape = [1] * len(axes)
        shape[i] = -1
        exponents += (spread * 2.0 * np.sin(0.5 * each) ** 2).reshape(shape)
    places = np.nonzero(exponents < _CUT)
    del exponents
    # Negative indices count from the end of a table, as they should.
    indices = tuple(
        axis[0][place].astype(np.int32) for axis, place in zip(axes, places, strict=True)
    )
    turns = [np.roll(angles, -int(np.argmax(index == 0))) for index, angles in axes]
    tables = tuple(-2.0 * np.sin(0.5 * each) ** 2 + 1j * np.sin(each) for each in turns)
    logs, doubts = np.zeros(places[0].size), np.full(places[0].size, 64.0 * _ULP)
    phases = np.zeros(places[0].size)
    for offset, each, index in zip(lattice.offsets, turns, indices, strict=True):
        phases += offset * each[index]
    for kind in kinds:
        change, turn, sizes = np.zeros(logs.size, dtype=np.complex128), 0.0 * logs, 0.0 * logs
        for y, table, each, index in zip(lattice.kept, tables, turns, indices, strict=True):
            change += (kind.law[y] * table)[index]
            turn += (kind.law[y] * each)[index]
            sizes += (kind.law[y] * np.abs(each))[index]
        square = change.real * (change.real + 2.0) + change.imag * change.imag
        # No less, so that what is next to zero is computed too large rather than too small.
        square = np.maximum(square, _SMALLEST_SQUARE - 1.0)
        logs += 0.5 * kind.number * np.log1p(square)
        phases += kind.number * (np.arctan2(change.imag, 1.0 + change.real) - turn)
        relative = -4.0 * change.real / (1.0 + square) + 2.0 * sizes / np.sqrt(1.0 + square)
        doubts += kind.number * (len(tables) + 16.0) * _ULP * relative
    return Nodes(
        indices=indices,
        tables=tables,
        weights=np.where(indices[-1] == 0, 1.0, 2.0),
        transform=np.exp(logs + 1j * phases),
        ceilings=np.exp(np.minimum(logs + doubts, 0.0)),
        doubts=np.expm1(np.minimum(doubts, _MOST_DOUBT)),
    )


def _block_wave(angles: _Values, width: int) -> _Values:
    """Return the modulus of U with its sign: that of numbers symmetric around zero."""
    low = np.sin(0.5 * angles)
    safe = np.where(low == 0.0, 1.0, low)
    return np.where(low == 0.0, 1.0, np.sin(0.5 * width * angles) / (width * safe))


def _filters(lattice: Lattice, nodes: Nodes) -> _Filters:
    """Return the factors for nodes within the blocks' own frequencies."""
    size = nodes.weights.size
    block, halves = np.ones(size), np.zeros(size)
    images = {order: np.ones(size) for order in _ORDERS}
    for indices, width, length in zip(nodes.indices, lattice.widths, lattice.lengths, strict=True):
        # Zero and what is within the blocks' own frequencies, negative indices last.
        angles = (
            2.0 * math.pi * np.fft.ifftshift(np.arange(length) - length // 2) / (width * length)
        )
        own = _block_wave(angles, width)
        totals = {order: np.ones(length) for order in _ORDERS}
        for image in range(1, width):
            other = _block_wave(angles + 2.0 * math.pi * image / width, width)
            for order in _ORDERS:
                totals[order] += (other / own) ** (2 * order)
        block *= own[indices]
        for order in _ORDERS:
            images[order] *= totals[order][indices]
        # A block of an even width has its middle between two numbers.
        halves += (0.5 * (1 - width % 2) * angles)[indices]
    spare = {order: image - 1.0 for order, image in images.items()}
    return _Filters(block, block * np.exp(-1j * halves), spare)


def _sums(lattice: Lattice, nodes: Nodes, starts: _Values, changes: _Values) -> Enclosure:
    """Enclose T on the window; rows of ``changes`` are guesses but the base, sum ``starts``."""
    inside = nodes.ceilings > _SMALL
    for index, length in zip(nodes.indices, lattice.lengths, strict=True):
        inside &= np.abs(index) <= length // 2
    left_out = _left_out(lattice, starts, changes)
    outer, inner = nodes.where(~inside), nodes.where(inside)
    outer = outer._replace(transform=outer.ceilings.astype(np.complex128))
    filters = _filters(lattice, inner)
    squares = np.zeros(inner.weights.size)
    lows = np.zeros(lattice.lengths)
    error = 0.0
    for start, change in zip(starts.tolist(), changes, strict=True):
        away = _difference(lattice, outer, start, change)
        left_out += float((outer.weights * np.abs(away) ** 2).sum())
        wave = _difference(lattice, inner, start, change)
        squares += inner.weights * np.abs(wave) ** 2
        values, slack = _inverse(lattice, inner, wave * filters.analysis)
        np.maximum(lows, values, out=lows)
        error += slack
    doubt = float((squares * np.square(filters.block * inner.doubts)).sum())
    error += math.sqrt(left_out) + math.sqrt(doubt)
    lower = float(lows.sum())
    upper, more = lower, 0.0
    if any(width > 1 for width in lattice.widths):
        order, images = _best_order(lattice, squares, filters, lower)
        found = np.empty((len(changes), *lattice.lengths))
        for x, (start, change) in enumerate(zip(starts.tolist(), changes, strict=True)):
            wave = _difference(lattice, inner, start, change)
            found[x], slack = _inverse(lattice, inner, wave * filters.block**-order)
            more += slack
        doubt = float((squares * np.square(inner.doubts * filters.block**-order)).sum())
        more += images + math.sqrt(doubt)
        upper = _synthesis_sum(lattice, found, order)
    error += 64.0 * _ULP * max(lower, upper)
    return Enclosure(max(lower - 1.01 * error, 0.0), upper + 1.01 * (error + more))


def _best_order(
    lattice: Lattice, squares: _Values, filters: _Filters, lower: float
) -> tuple[int, float]:
    """Return the order of the B-spline that should lose least, and what its images cost."""
    variances = [
        width**2 / spread for width, spread in zip(lattice.widths, lattice.spreads, strict=True)
    ]
    found = {}
    for order in _ORDERS:
        images = math.sqrt(float((squares * filters.images[order]).sum()))
        # As for five values, after refinement; which order is taken is a matter of width alone.
        lost = 0.005 * order * math.fsum(variances) / len(variances) * lower
        found[order] = (images + lost, images)
    order = min(_ORDERS, key=lambda each: found[each][0])
    return order, found[order][1]


def _synthesis_sum(lattice: Lattice, found: _Values, order: int) -> float:
    """Return the sum of the largest coefficients, those of B-splines half as wide near ties."""
    from shuffledp.leakage.informed_kernels import refinement_gain

    largest = np.zeros(lattice.lengths)
    best = np.zeros(lattice.lengths, dtype=np.int64)
    for x, values in enumerate(found, start=1):
        best[values > largest] = x
        np.maximum(largest, values, out=largest)
    stencils = _stencils([width % 2 == 0 for width in lattice.widths], order)
    gain = refinement_gain(
        found.reshape(len(found), -1),
        largest.ravel(),
        best.ravel(),
        np.array(lattice.lengths),
        np.array([offset for stencil in stencils for offset, _ in stencil]),
        np.array([weight for stencil in stencils for _, weight in stencil]),
        np.cumsum([0, *map(len, stencils)]),
        _NEGLIGIBLE * float(largest.max()),
    )
    return float(largest.sum()) - gain * (1.0 - 1e-9)


def _stencils(halves: Sequence[bool], order: int) -> list[list[tuple[tuple[int, ...], float]]]:
    """Return which coefficients, and how much of each, make a refined one, for each parity."""
    even, odd = (
        [
            (step, math.comb(order, place) / 2 ** (order - 1))
            for step in range(-order, order + 1)
            if 0 <= (place := order // 2 + parity - 2 * step) <= order
        ]
        for parity in (0, 1)
    )
    choices = [[even, odd] if is_half else [[(0, 1.0)]] for is_half in halves]
    return [
        [
            (tuple(step for step, _ in steps), math.prod(share for _, share in steps))
            for steps in product(*parity)
        ]
        for parity in product(*choices)
    ]


def _difference(lattice: Lattice, nodes: Nodes, start: float, change: _Values) -> _Waves:
    """Return D^_x at the nodes."""
    factor = np.full(nodes.weights.size, complex(start))
    for y, table, index in zip(lattice.kept, nodes.tables, nodes.indices, strict=True):
        factor += (float(change[y]) * table)[index]
    found: _Waves = nodes.transform * factor
    return found


def _inverse(lattice: Lattice, nodes: Nodes, term: _Waves) -> tuple[_Values, float]:
    """Return the numbers on the blocks with this transform, and the l1 norm of their round-off."""
    import scipy.fft

    lengths = lattice.lengths
    spectrum = np.zeros((*lengths[:-1], lengths[-1] // 2 + 1), dtype=np.complex128)
    spectrum[nodes.indices] = np.conj(term)
    norm = math.sqrt(float((nodes.weights * np.abs(term) ** 2).sum()))
    return scipy.fft.irfftn(spectrum, lengths), fourier_slack(norm, math.prod(lengths))


def _left_out(lattice: Lattice, starts: _Values, changes: _Values) -> float:
    """Bound the sum of all abs(D^_x)^2 where abs(G^) is proved to be below the cut."""
    # abs(D^_x)^2 <= (a + 1) (start^2 + sum of change^2 2 (1 - cos)) abs(G^)^2, and abs(G^)^2 =
    # abs(G^)^(3/2) abs(G^)^(1/2) <= e^(-3/2 cut) e^(-1/2 exponent).
    sums, weighted = [], []
    for width, length, spread in zip(lattice.widths, lattice.lengths, lattice.spreads, strict=True):
        half = width * length // 2
        versines = 2.0 * np.sin(math.pi * np.arange(-half, half + 1) / (width * length)) ** 2
        masses = np.exp(-0.5 * spread * versines)
        sums.append(float(masses.sum()))
        weighted.append(float((2.0 * versines * masses).sum()))
    all_sums = math.prod(sums)
    total = float(np.square(starts).sum()) * all_sums
    for y, one, other in zip(lattice.kept, sums, weighted, strict=True):
        total += float(np.square(changes[:, y]).sum()) * all_sums / one * other
    return (len(sums) + 1.0) * total * math.exp(-1.5 * _CUT)
