"""Both ends of the success probability from a coarse lattice of histograms, at any size.

Let D_x(h) = sum over y of (q_x R_xy - q_b R_by) G(h - e_y), b a fixed guess: V = q_b + T, T the sum
over h of max(0, max_x D_x(h)). *Lower end:* block sums of D_x. *Upper end:* coefficients a_x of
B-splines, with the remainder charged. Only as many Fourier nodes as blocks are needed. Every
error (nodes left out, images, round-off, wrapping) is charged, by Cauchy and Schwarz as the root of
a sum over nodes of its effect on the transform.

One outcome is implied by the others. Cut axis y into blocks of w_y numbers, let u be the uniform
law on the first block, U its transform, and B = (prod w_y) u*u*u*u.

*Theorem.* T >= sum over blocks of max(0, max_x sum of D_x(h) over the block). If
D_x(h) = sum_j a_x(j) B(h - j w) + E_x(h),

    T <= (prod w_y) sum_j max(0, max_x a_x(j)) + sum_h max(0, max_x E_x(h)).

*Proof.* The first is the guess of an adversary who sees only the block. For the second, B >= 0 and
the sum of B is prod w_y.

*Evaluation.* On a torus of M_y = w_y m_y numbers an axis D^_x(t) = G^(t) [q_x - q_b +
sum_y (q_x R_xy - q_b R_by)(e^(i t_y) - 1)]; block sums are that of D^_x conj(U), folded, and a_x is
D^_x/U^4 at frequencies within pi/w_y, which leaves E_x the images of B: D^_x(t) (U(t + 2 pi l/w) /
U(t))^4 at t + 2 pi l/w. Near ties of the largest a_x splines half as wide, weights 1, 4, 6, 4, 1
over 8, lose less; narrow blocks use six convolutions.

*Errors.* By Cauchy and Schwarz and Parseval sum_h max_x abs(E_x(h)) is at most the root of the sum
over nodes and x of abs(E^_x)^2. Nodes not computed: a report of law s has 1 - abs(phi)^2 =
sum_yz s_y s_z (1 - cos(t_y - t_z)), at least 2 sum_(y >= 1) s_0 s_y (1 - cos t_y) and, for any one
y, at least 2 (s_0 s_y/(s_0 + s_y)) (1 - cos t_y): each other outcome z adds at least
s_z (s_0 + s_y - abs(s_0 + s_y e^(i t_y))) >= (s_z s_0 s_y/(s_0 + s_y)) (1 - cos t_y), by
S - sqrt(S^2 - 2 c) >= c/S. Wrapping costs Bernstein's tail times sum_y (max_x (.)_+ + max_x (.)_-)
of the coefficients q_x R_xy - q_b R_by; rounding of the laws moves G by at most sqrt(n/2) times its
relative size (Pinsker), and T by the same coefficients times twice that.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats, Waves
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage.counts.fullest_bin import bernstein_reach
from shuffledp.leakage.counts.others import Kind, count_moments, fourier_slack

_ULP = math.ulp(1.0)

#: Outcomes of a channel, at most.
MOST_OUTCOMES = 5

#: Blocks times guesses: one to three seconds.
MOST_WORK = 2.4e7

# Blocks this narrow, in deviations, lose next to nothing.
_NARROW = 0.02

# Mass left out by the window: this over sqrt(n).
_TAIL = 1e-4

# Frequencies where abs(G^) is proved to be below e^-30 are left out.
_CUT = 30.0

# Frequencies where it is computed to be below this are left out too, and charged.
_SMALL = 1e-10

# B-splines whose coefficients are below this share of the largest are not refined.
_NEGLIGIBLE = 1e-3
_MOST_NODES = 1.5e7

# Numbers of blocks convolved to a B-spline: even, so that its middle is a whole number.
_ORDERS = (4, 6)

# A user's characteristic function is not taken to be nearer to zero than the root of this.
_SMALLEST_SQUARE = 1e-14
_MOST_DOUBT = 300.0


class Lattice(NamedTuple):
    """Blocks of ``widths`` numbers, ``lengths`` (odd) of them, on each axis."""

    implied: int
    kept: list[int]
    widths: list[int]
    lengths: list[int]
    offsets: Floats
    spreads: Floats  # sum over users of the product of the implied chance and the axis' own
    conductances: Floats  # the same over the sum of both chances
    tail: float


class Nodes(NamedTuple):
    """Frequencies that matter, with the last index >= 0, and values and error bounds there."""

    indices: NDArray[np.int32]  # shape (axes, nodes)
    tables: tuple[Waves, ...]
    weights: Floats
    transform: Waves
    ceilings: Floats
    doubts: Floats

    def where(self, chosen: NDArray[np.bool_]) -> "Nodes":
        """Return the chosen nodes."""
        rest: Any = (each[chosen] for each in self[2:])
        return Nodes(self.indices[:, chosen], self.tables, *rest)


def coarse_lattice(kinds: Sequence[Kind], *, most_cells: float) -> Lattice:
    """Return blocks, as narrow as the number of cells allows."""
    numbers = np.array([float(kind.number) for kind in kinds])
    laws = np.array([kind.law for kind in kinds])
    users, size = sum(kind.number for kind in kinds), laws.shape[1]
    log_rare = math.log(2.0 * size * math.sqrt(users + 1.0) / _TAIL)
    ends = []
    for y in range(size):
        mean, variance = count_moments(kinds, y)
        reach = Fraction(bernstein_reach(log_rare, variance) + 1e-6)
        low, high = max(math.floor(mean - reach), 0), min(math.ceil(mean + reach), users) + 1
        ends.append((high - low + 1, float(mean - round(mean)), math.sqrt(variance)))
    implied = max(range(size), key=lambda y: ends[y][0])
    kept = [y for y in range(size) if y != implied]
    reaches, offsets, deviations = map(np.array, zip(*(ends[y] for y in kept), strict=True))
    widths = np.maximum((0.5 * _NARROW * deviations).astype(np.int64) * 2, 1)
    # Odd numbers of blocks that hold the windows.
    while math.prod(lengths := (-(-reaches // widths) // 2 * 2 + 1).tolist()) > most_cells:
        at = int(np.argmin((widths + 2) / (deviations + 1e-9)))
        widths[at] = max(widths[at] // 2 + 1, math.floor(0.505 * widths[at])) * 2
    mine, others = laws[:, [implied]], laws[:, kept]
    return Lattice(
        implied=implied,
        kept=kept,
        widths=widths.tolist(),
        lengths=lengths,
        offsets=offsets,
        spreads=numbers @ (mine * others),
        conductances=numbers @ (mine * others / np.maximum(mine + others, 1e-300)),
        tail=2.0 * (size - 1) * math.exp(-log_rare),
    )


def coarse_vulnerability(
    kinds: Sequence[Kind], joint: Floats, *, work: float = MOST_WORK
) -> Enclosure | None:
    """Enclose the success probability of the best guess, for any law ``joint`` of value and report.

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
    # With equal priors the implied outcome's value: the others' differences are small there.
    prior = joint.sum(axis=1)
    base = int(prior.argmax())
    if lattice.implied < len(prior) and prior[lattice.implied] >= prior[base] * (1.0 - 8.0 * _ULP):
        base = lattice.implied
    changes = np.delete(joint - joint[base], base, axis=0)
    found = _sums(lattice, nodes, np.delete(prior - prior[base], base), changes)
    wrapped = float(sum(each.max(axis=0, initial=0.0).sum() for each in (changes, -changes)))
    # Bound on the change of G by rounding, in total variation: by Pinsker, or user by user.
    users = sum(number for number, _ in kinds)
    relative = math.fsum(n * (1.0 + 1.0 / max(law[lattice.implied], 1e-300)) for n, law in kinds)
    moved = 8.0 * _ULP * min(math.sqrt(0.5 * relative), 2.0 * users)
    # An error of G moves each D_x by that times its coefficients, in the l1 norm.
    slack = 2.0 * wrapped * moved + 64.0 * _ULP
    lower = float(prior[base]) + found.lower - slack
    upper = float(prior[base]) + found.upper + wrapped * lattice.tail + slack
    return Enclosure(lower, max(upper, 0.0)).clipped()


def _nodes(lattice: Lattice, kinds: Sequence[Kind]) -> Nodes | None:
    """Return the frequencies that matter, of the fine lattice, and G^ there; None if too many."""
    steps, turns = [], []
    for period, each in zip(_periods(lattice), lattice.conductances.tolist(), strict=True):
        share = min(_CUT / max(2.0 * each, 1e-300), 1.0)
        radius = math.ceil(math.asin(math.sqrt(share)) * period / math.pi)
        radius = min(radius, period // 2)
        # Negative indices count from the end of a table, as they should.
        steps.append(np.arange(-radius, radius + 1, dtype=np.int32))
        turns.append(2.0 * math.pi * np.roll(steps[-1], -radius) / period)
    steps[-1] = steps[-1][steps[-1] >= 0]
    if math.prod(float(each.size) for each in steps) > _MOST_NODES:
        return None
    tables = tuple(-2.0 * np.sin(0.5 * turn) ** 2 + 1j * np.sin(turn) for turn in turns)
    exponents = [
        -spread * table.real[step]
        for spread, table, step in zip(lattice.spreads, tables, steps, strict=True)
    ]
    places = np.nonzero(reduce(np.add, np.ix_(*exponents)) < _CUT)
    indices = np.array([step[at] for step, at in zip(steps, places, strict=True)])
    del places
    axes = [*zip(lattice.kept, tables, turns, indices, strict=True)]
    phases = np.zeros(indices.shape[1])
    for offset, (_, _, turn, index) in zip(lattice.offsets, axes, strict=True):
        phases += offset * turn[index]
    logs, doubts = np.zeros(phases.size), np.full(phases.size, 64.0 * _ULP)
    for number, law in kinds:
        change, turned, sizes = np.zeros(logs.size, dtype=np.complex128), 0.0 * logs, 0.0 * logs
        for y, table, turn, index in axes:
            change += (law[y] * table)[index]
            turned += (law[y] * turn)[index]
            sizes += (law[y] * np.abs(turn))[index]
        square = change.real * (change.real + 2.0) + change.imag * change.imag
        # Bounded below, so that values next to zero come out too large rather than too small.
        square = np.maximum(square, _SMALLEST_SQUARE - 1.0)
        logs += 0.5 * number * np.log1p(square)
        phases += number * (np.arctan2(change.imag, 1.0 + change.real) - turned)
        relative = -4.0 * change.real / (1.0 + square) + 2.0 * sizes / np.sqrt(1.0 + square)
        doubts += number * (len(tables) + 16.0) * _ULP * relative
    return Nodes(
        indices,
        tables,
        weights=np.where(indices[-1] == 0, 1.0, 2.0),
        transform=np.exp(logs + 1j * phases),
        ceilings=np.exp(np.minimum(logs + doubts, 0.0)),
        doubts=np.expm1(np.minimum(doubts, _MOST_DOUBT)),
    )


def _periods(lattice: Lattice) -> list[int]:
    """Return the numbers of entries in the blocks of each axis."""
    return [width * length for width, length in zip(lattice.widths, lattice.lengths, strict=True)]


def _filters(lattice: Lattice, nodes: Nodes) -> tuple[Floats, Waves, dict[int, Floats]]:
    """Return U at nodes within the blocks' own frequencies, without and with its phase.

    And the images of B over it, for each order.
    """
    from scipy.special import diric  # the modulus of U with its sign

    block, halves = np.ones(nodes.weights.size), np.zeros(nodes.weights.size)
    images = {order: np.ones(block.size) for order in _ORDERS}
    for indices, width, length in zip(nodes.indices, lattice.widths, lattice.lengths, strict=True):
        # Zero and the blocks' own frequencies, negative indices last.
        angles = 2.0 * math.pi * np.fft.fftfreq(length) / width
        own = diric(angles, width)
        turns = 2.0 * math.pi * np.arange(1, width)[:, None] / width
        others = np.square(diric(angles + turns, width) / own)
        for order in _ORDERS:
            images[order] *= (1.0 + (others**order).sum(axis=0))[indices]
        block *= own[indices]
        # A block of an even width has its middle between two numbers.
        halves += (0.5 * (1 - width % 2) * angles)[indices]
    spare = {order: image - 1.0 for order, image in images.items()}
    return block, block * np.exp(-1j * halves), spare


def _sums(lattice: Lattice, nodes: Nodes, starts: Floats, changes: Floats) -> Enclosure:
    """Enclose T on the window; rows of ``changes`` are guesses but the base, sum ``starts``."""
    inside = nodes.ceilings > _SMALL
    for index, length in zip(nodes.indices, lattice.lengths, strict=True):
        inside &= np.abs(index) <= length // 2
    left_out = _left_out(lattice, starts, changes)
    outer, inner = nodes.where(~inside), nodes.where(inside)
    outer = outer._replace(transform=outer.ceilings.astype(np.complex128))
    block, analysis, images = _filters(lattice, inner)
    squares, lows, error = np.zeros(block.size), np.zeros(lattice.lengths), 0.0
    guesses = [*zip(starts.tolist(), changes, strict=True)]
    for guess in guesses:
        away = _difference(lattice, outer, *guess)
        left_out += float((outer.weights * np.abs(away) ** 2).sum())
        wave = _difference(lattice, inner, *guess)
        squares += inner.weights * np.abs(wave) ** 2
        values, slack = _inverse(lattice, inner, wave * analysis)
        np.maximum(lows, values, out=lows)
        error += slack
    error += math.sqrt(left_out) + math.sqrt(float((squares * (block * inner.doubts) ** 2).sum()))
    lower = upper = float(lows.sum())
    more = 0.0
    if max(lattice.widths) > 1:
        costs = {each: math.sqrt(float((squares * images[each]).sum())) for each in _ORDERS}
        # As for five values, after refinement; the choice of the order affects the width alone.
        lost = 0.005 * lower * float(np.mean(np.square(lattice.widths) / lattice.spreads))
        order = min(_ORDERS, key=lambda each: costs[each] + each * lost)
        found, synthesis = np.empty((len(changes), *lattice.lengths)), block**-order
        for x, guess in enumerate(guesses):
            wave = _difference(lattice, inner, *guess)
            found[x], slack = _inverse(lattice, inner, wave * synthesis)
            more += slack
        more += costs[order] + math.sqrt(float((squares * (inner.doubts * synthesis) ** 2).sum()))
        upper = _synthesis_sum(lattice.widths, found, order)
    error += 64.0 * _ULP * max(lower, upper)
    return Enclosure(max(lower - 1.01 * error, 0.0), upper + 1.01 * (error + more))


def _synthesis_sum(widths: Sequence[int], found: Floats, order: int) -> float:
    """Return the sum of the largest coefficients, of B-splines half as wide near ties."""
    from shuffledp.leakage.counts.count_kernels import refinement_gain

    # Not argmax, which would copy all of them.
    largest, best = np.zeros(found.shape[1:]), np.zeros(found.shape[1:], dtype=np.int64)
    for x, values in enumerate(found, start=1):
        best[values > largest] = x
        np.maximum(largest, values, out=largest)
    stencils = _stencils([width % 2 == 0 for width in widths], order)
    gain = refinement_gain(
        found.reshape(len(found), -1),
        largest.ravel(),
        best.ravel(),
        np.array(largest.shape),
        np.array([offset for stencil in stencils for offset, _ in stencil]),
        np.array([weight for stencil in stencils for _, weight in stencil]),
        np.cumsum([0, *map(len, stencils)]),
        _NEGLIGIBLE * float(largest.max()),
    )
    return float(largest.sum()) - gain * (1.0 - 1e-9)


def _stencils(halves: Sequence[bool], order: int) -> list[list[tuple[tuple[int, ...], float]]]:
    """Return indices and weights of the coefficients of a refined one, for each parity."""
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


def _difference(lattice: Lattice, nodes: Nodes, start: float, change: Floats) -> Waves:
    """Return D^_x at the nodes."""
    factor = np.full(nodes.weights.size, complex(start))
    for y, table, index in zip(lattice.kept, nodes.tables, nodes.indices, strict=True):
        factor += (float(change[y]) * table)[index]
    found: Waves = nodes.transform * factor
    return found


def _inverse(lattice: Lattice, nodes: Nodes, term: Waves) -> tuple[Floats, float]:
    """Return the numbers on the blocks with this transform, and the l1 norm of their round-off."""
    import scipy.fft

    lengths = lattice.lengths
    spectrum = np.zeros((*lengths[:-1], lengths[-1] // 2 + 1), dtype=np.complex128)
    spectrum[tuple(nodes.indices)] = np.conj(term)
    norm = math.sqrt(float((nodes.weights * np.abs(term) ** 2).sum()))
    return scipy.fft.irfftn(spectrum, lengths), fourier_slack(norm, math.prod(lengths))


def _left_out(lattice: Lattice, starts: Floats, changes: Floats) -> float:
    """Bound the sum of all abs(D^_x)^2 where abs(G^) is proved to be below the cut."""
    # abs(D^_x)^2 <= (a + 1) (start^2 + sum of change^2 2 (1 - cos)) abs(G^)^2, and abs(G^)^2 =
    # abs(G^)^(3/2) abs(G^)^(1/2) <= e^(-3/2 cut) e^(-1/2 exponent).
    sums, weighted = [], []
    for period, spread in zip(_periods(lattice), lattice.spreads.tolist(), strict=True):
        turns = np.arange(-(period // 2), period // 2 + 1) / period
        versines = 2.0 * np.sin(math.pi * turns) ** 2
        masses = np.exp(-0.5 * spread * versines)
        sums.append(float(masses.sum()))
        weighted.append(float((2.0 * versines * masses).sum()))
    squares = np.square(changes[:, lattice.kept]).sum(axis=0)
    total = float(np.square(starts).sum()) + float((squares * weighted / np.array(sums)).sum())
    return (len(sums) + 1.0) * total * math.prod(sums) * math.exp(-1.5 * _CUT)
