"""Blanket laws in which the two inputs of the pair play symmetric roles.

The kernel of the accountant, (B) of docs/results/kernel.md: with G_1 .. G_n i.i.d.,

    delta(epsilon) = (1/n) E[(G_1 + ... + G_n)_+].

A report of the *pair* carries likelihood ratios (h, l) or (l, h), equally likely; any other report
carries (w, w), so it says nothing by itself but dilutes. With e = exp(epsilon), a sum of such
terms is

    step * D - slope * W,   step = (h - l)(1 + e)/2,   slope = e - 1,

where D is a fair +-1 walk with one step for each pair report and W the total weight, (h + l)/2 for
a pair report and w for another. The walk is fair *whatever the weights*, which makes D | B exact in
closed form and leaves a double sum over binomials, enclosed from both sides by convexity. (The
kernels work with gain = h - e l and loss = e h - l instead of step, which cancel less.) Where many
pair reports are expected, `core.numerics.positive_part` does the same at a constant cost.
"""

import functools
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.numerics.positive_part import (
    MOST_NODES,
    SMALLEST_UPPER,
    few_nodes,
    mean_positive_part,
)

# No double below this keeps its relative accuracy; an upper bound is never reported below it.
SMALLEST_DELTA = SMALLEST_UPPER

# Pair reports expected from which on the contour integral is quicker than the sum. Its answer is
# taken up to a relative width: close to epsilon0 few outcomes are left, and only sums are narrow.
_CONTOUR_PAIRS, _CONTOUR_PAIRS_WITH_REST, _CONTOUR_PAIRS_WHEN_WIDE = 1e4, 500.0, 30.0
_CONTOUR_WIDTH = 1e-5

# The relative width of sums up to which the coarse grid does without the integral.
_COARSE_WIDTH = 0.1

# Width of epsilon that the contour integral aims at.
_CONTOUR_RELATIVE_WIDTH = 1e-7

# Relative error of a term of `positive_part` against the size of its two parts.
_TERM_ERROR = 4e-13

# Relative width to which epsilon is inverted, an order below what the blocks of large sums leave.
_EPSILON_TOLERANCE = 2e-8

# Blocks of B. A block of L walks among b leaves a gap of L / (2 b) of epsilon, so ever fewer blocks
# keep it below 1e-6; up to about n = 1e6 the largest number leaves every B its own.
_PAIR_BLOCK_SCALE = 2e7
_MOST_PAIR_BLOCKS = 16_000
_MOST_PAIR_BLOCKS_WITH_REST = 6_000

# Blocks of the grid that only has to find the neighbourhood of an answer.
_COARSE_BLOCKS = 300

# Blocks of the grid for a wide enclosure, and cells where few reports are expected, instead of
# `_CHEAP_CELLS`; and the width that they are enough for.
_WIDE_BLOCKS, _WIDE_CELLS, WIDE_WIDTH = 2000, 1e4, 3e-5

# The relative width of a wide delta below e^-100 that is enough, over that of epsilon; and at how
# many deviations delta is about so small.
_WIDE_ENOUGH, _FAR, _FAR_STEPS = 10.0, 100.0, 14.0

# Deviations of the loss that are as good as infinitely many; their square is a float.
MANY_DEVIATIONS = 1e100

# Cells of pair and rest blocks at most, and the tail exponent from which on they are fewer.
_MOST_CELLS, _CHEAP_CELLS = 3e6, 1e5
_FAR_TAIL, _FARTHEST_TAIL = 150.0, 740.0

# Outcomes of rest laws visited when a grid is built, at most about, and how many laws share them at
# least. A law with more outcomes by itself becomes one block: its weight hardly varies.
_REST_OUTCOMES = 4_000_000
_FEWEST_LAWS, _ONE_BLOCK_LAWS = 2, 24


@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetricLaw:
    """One user's law of G, without epsilon.

    Parameters
    ----------
    epsilon0 : float
        Local privacy loss in nats, > 0: the two likelihood ratios of a pair report have
        h / l = e^epsilon0.
    low : float
        The smaller of them, l.
    pair_mass, rest_mass, base_mass : float
        Probabilities of a pair report (both kinds together), of a report of the first other kind,
        and of any other report. They sum to one, and are all given because any may be tiny.
    rest_weight, base_weight : float
        Weights of the latter two, base_weight <= rest_weight and <= (h + l)/2.

    Notes
    -----
    Likelihood ratios have mean 1, so weights have; a law for an upper bound may have less.
    """

    epsilon0: float
    low: float
    pair_mass: float
    rest_mass: float
    base_mass: float
    rest_weight: float = 1.0
    base_weight: float = 0.0

    @property
    def difference(self) -> float:
        """Difference h - l of the two likelihood ratios."""
        return self.low * math.expm1(self.epsilon0)

    @property
    def pair_weight(self) -> float:
        """Weight of a pair report, (h + l)/2."""
        return self.low + 0.5 * self.difference

    @property
    def mean_weight(self) -> float:
        """Mean weight of a report."""
        return (
            self.pair_mass * self.pair_weight
            + self.rest_mass * self.rest_weight
            + self.base_mass * self.base_weight
        )


@dataclass(frozen=True, slots=True)
class _Grid:
    """Blocks of B and of Z | B for one law and one number of users; independent of epsilon."""

    tables: tuple[Any, ...]  # the trailing arguments of `enclose_expectation`, in order
    pair_tail: float
    num_cells: float
    most_pairs: float


class SymmetricBlanket:
    """delta(epsilon) of a symmetric law for ``num_users`` users, enclosed from both sides.

    Parameters
    ----------
    law : SymmetricLaw
        One user's law.
    num_users : int
        Number n of users, at least 1 and at most 1e15.
    max_blocks : int, optional
        Blocks of the outer sum; more make the enclosure narrower and the call slower.
    width : float
        Width of an enclosure, relative to epsilon, that is narrow enough, where that saves time.

    Notes
    -----
    Cost: tenths of a millisecond per epsilon by the contour integral. Otherwise, for small batches
    and close to epsilon0, O(sqrt(n)) once for the blocks, then O(max_blocks) per epsilon without
    rest reports and at most 3e6 cells with them, whatever n. Error budget of the sums: 4e-13 of
    the size of the cancelling terms, plus 1e-12 + 4e-15 sqrt(n) of the value for each binomial
    mass, plus Chernoff bounds of what lies outside the windows; all of it is added to the upper
    and taken off the lower end.
    """

    def __init__(
        self,
        law: SymmetricLaw,
        num_users: int,
        *,
        max_blocks: int | None = None,
        width: float = 0.0,
    ) -> None:
        if max_blocks is None and width >= WIDE_WIDTH:
            max_blocks = _WIDE_BLOCKS
        if max_blocks is None:
            most = _MOST_PAIR_BLOCKS if law.rest_mass == 0.0 else _MOST_PAIR_BLOCKS_WITH_REST
            pairs = max(num_users * law.pair_mass, 1.0)
            max_blocks = int(min(max(_PAIR_BLOCK_SCALE / math.sqrt(pairs), 2000.0), most))
        self._law = law
        self._num_users = float(num_users)
        self._max_blocks = max_blocks
        self._width = max(width, _CONTOUR_RELATIVE_WIDTH)
        few = _CONTOUR_PAIRS if law.rest_mass == 0.0 else _CONTOUR_PAIRS_WITH_REST
        self._many_pairs = num_users * law.pair_mass > few
        self._enough = _COARSE_WIDTH if max_blocks == _COARSE_BLOCKS else _CONTOUR_WIDTH
        self._wide = width >= WIDE_WIDTH
        self._contour_far_out = self._wide and num_users * law.pair_mass > _CONTOUR_PAIRS_WHEN_WIDE
        self._cheap_cells = _CHEAP_CELLS if width < WIDE_WIDTH else _WIDE_CELLS
        self._grid_for = functools.lru_cache(maxsize=8)(self._build_grid)

    def enclose(self, epsilon: float) -> Enclosure:
        """Enclose delta at one epsilon >= 0 (nats).

        ``upper`` is at least `SMALLEST_DELTA` unless delta is exactly 0.
        """
        return self._resolve(epsilon, 0.0)

    def enclose_epsilon(self, delta: float, highest: float) -> Enclosure:
        """Enclose the least epsilon in [0, highest] whose delta is at most ``delta`` > 0.

        ``highest`` must be an epsilon whose delta is 0, such as epsilon0.
        """
        return self._inverted(delta, highest, with_lower=True)

    def epsilon_above(self, delta: float, highest: float) -> float:
        """Return the upper end of `enclose_epsilon` alone, which saves a third of the time."""
        return self._inverted(delta, highest, with_lower=False).upper

    def _inverted(self, delta: float, highest: float, *, with_lower: bool) -> Enclosure:
        """Enclose the same epsilon, or give 0 and its upper end."""
        if delta < SMALLEST_DELTA and not with_lower:
            return Enclosure(0.0, highest)  # no upper end of delta is below that before
        guess = self._gaussian_epsilon(delta)
        if guess >= highest:
            # Hardly any amplification, if any: a bisection to there would take long.
            near = highest * (1.0 - _EPSILON_TOLERANCE)
            if self._resolve(near).lower > delta:
                return Enclosure(near, highest)
        if self._many_pairs:
            return self._invert(self._resolve, delta, highest, guess, with_lower=with_lower)
        # A Gaussian guess leads a coarse grid to the neighbourhood of the answer, so that the fine
        # grid is asked only a few times; tails far below delta need not be resolved on the way. The
        # fine grid is asked as `enclose` asks it: what is published here must hold there.
        coarse = SymmetricBlanket(self._law, int(self._num_users), max_blocks=_COARSE_BLOCKS)
        negligible = 1e-9 * delta
        _, near = last_above_first_below(
            lambda epsilon: coarse._resolve(epsilon, negligible).upper,
            delta,
            0.0,
            highest,
            guess=guess,
            relative_tolerance=1e-4,
        )
        return self._invert(self._resolve, delta, highest, near, with_lower=with_lower)

    @staticmethod
    def _invert(
        resolve: Callable[[float], Enclosure],
        delta: float,
        highest: float,
        guess: float,
        *,
        with_lower: bool,
    ) -> Enclosure:
        """Return the same, looked for near a guess."""
        resolve = functools.cache(resolve)
        _, upper = last_above_first_below(
            lambda epsilon: resolve(epsilon).upper,
            delta,
            0.0,
            highest,
            guess=guess,
            relative_tolerance=_EPSILON_TOLERANCE,
        )
        if not with_lower:
            return Enclosure(0.0, upper)
        lower, _ = last_above_first_below(
            lambda epsilon: resolve(epsilon).lower,
            delta,
            0.0,
            highest,
            guess=upper,
            relative_tolerance=_EPSILON_TOLERANCE,
        )
        return Enclosure(min(lower, upper), upper)

    def _gaussian_epsilon(self, delta: float) -> float:
        """Return the central-limit epsilon: delta = mu (phi(t) - t Phi(-t)), epsilon = t mu."""
        mu = self._deviation()
        low, high = 0.0, 40.0
        for _ in range(40):
            t = 0.5 * (low + high)
            density = math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
            value = mu * (density - 0.5 * t * math.erfc(t / math.sqrt(2.0)))
            low, high = (t, high) if value > delta else (low, t)
        return mu * low

    def _resolve(self, epsilon: float, negligible: float = 0.0) -> Enclosure:
        """Enclose delta, with truncated tails below 1e-8 of it or below ``negligible``."""
        if epsilon >= self._law.epsilon0:
            return Enclosure(0.0, 0.0)  # no report ever has a likelihood ratio above e
        found, by_contour = Enclosure(0.0, 1e300), self._many_pairs
        if self._contour_far_out and self._steps(epsilon) > _FAR_STEPS:
            by_contour = True  # sums would take windows as far out
        if by_contour:
            found = self._by_contour(epsilon)
            if self._is_narrow(found, epsilon):
                return found
        for most in (_FAR_TAIL, _FARTHEST_TAIL):
            with suppress(PrecisionError):
                found = _both(found, self._by_sums(epsilon, negligible, most))
            if not by_contour and not self._is_narrow(found, epsilon):
                found, by_contour = _both(found, self._by_contour(epsilon)), True
            if self._is_narrow(found, epsilon):
                break
        return found

    def _by_sums(self, epsilon: float, negligible: float, most: float) -> Enclosure:
        """Enclose delta by the double sum; its truncated tails are at least e^-``most``."""
        tail_exponent = 32.0 if negligible == 0.0 else max(4.0 - math.log(negligible), 32.0)
        while True:
            result, tail = self._sum(epsilon, min(tail_exponent, most))
            if tail <= max(1e-8 * result.lower, negligible) or tail_exponent >= most:
                return result
            # The windows were too narrow for so small a delta: widen until outside is e^-22 of it.
            answer = max(result.lower, negligible, SMALLEST_DELTA)
            tail_exponent = max(22.0 - math.log(answer), tail_exponent + 32.0)
            # In steps, so that windows are shared by all epsilon near by.
            tail_exponent = 16.0 * math.ceil(tail_exponent / 16.0)

    def _is_narrow(self, found: Enclosure, epsilon: float) -> bool:
        """Tell whether a delta, or next to none, is known as well as asked.

        It may be wider by -ln(delta)/5, as delta moves by about -2 ln(delta) times as much as
        epsilon.
        """
        if found.upper <= 1e3 * SMALLEST_DELTA:
            # Sums add their tails and underflows, of e^-740, to an upper end. No narrower end is
            # needed: this one is proved, and none is reported below 1e-300.
            return True
        exponent = -math.log(found.upper)
        slope = min(self._steps(epsilon) ** 2, 2.0 * exponent)
        enough = _WIDE_ENOUGH * self._width if self._wide and exponent > _FAR else self._enough
        relative = max(enough * max(0.2 * exponent, 1.0), 4.0 * self._width * max(slope, 1.0))
        return found.upper - found.lower <= relative * found.upper

    def _steps(self, epsilon: float) -> float:
        """Return how many deviations an epsilon is."""
        deviation = self._deviation()  # 0 for denormal losses
        return min(epsilon / deviation, MANY_DEVIATIONS) if deviation > 0.0 else MANY_DEVIATIONS

    def _deviation(self) -> float:
        """Return the deviation that the loss of a large crowd has."""
        return self._law.difference * math.sqrt(self._law.pair_mass / self._num_users)

    def _by_contour(self, epsilon: float) -> Enclosure:
        """Enclose delta by the contour integral."""
        law = self._law
        slope = math.expm1(epsilon)
        gain = law.low * math.exp(epsilon) * math.expm1(law.epsilon0 - epsilon)
        loss = law.low * math.expm1(law.epsilon0 + epsilon)
        base = -slope * law.base_weight
        return mean_positive_part(
            int(self._num_users),
            base,
            np.array([0.5 * law.pair_mass, 0.5 * law.pair_mass, law.rest_mass]),
            np.array([gain - base, -loss - base, slope * (law.base_weight - law.rest_weight)]),
            width=self._width,
            most_nodes=few_nodes(3) if self._wide else MOST_NODES,
        )

    def _sum(self, epsilon: float, tail_exponent: float) -> tuple[Enclosure, float]:
        """Return the enclosure and how much of its upper end pays for truncation."""
        from shuffledp.accounting.amplification.symmetric_blanket_kernels import enclose_expectation

        law, users, grid = self._law, self._num_users, self._grid_for(tail_exponent)
        slope = math.expm1(epsilon)
        # h - e l without cancellation, however close epsilon is to epsilon0
        gain = law.low * math.exp(epsilon) * math.expm1(law.epsilon0 - epsilon)
        loss = law.low * math.expm1(law.epsilon0 + epsilon)
        lower, upper, rest_tail, size = enclose_expectation(
            (gain, loss, slope, law.pair_weight),
            law.base_weight,
            law.rest_weight - law.base_weight,
            users,
            *grid.tables,
        )
        # A pair report adds at most the gain, so all that lies outside the window is at most this.
        # In this order, since a tail times a mass may underflow where their product does not.
        tail = rest_tail / users + grid.pair_tail * (law.pair_mass * gain)
        # Products of masses below 2^-1074 are 0, and each stood for its pairs, each worth the gain.
        lost = math.ldexp(grid.num_cells * (grid.most_pairs / users) * gain, -1073)
        relative = 4.0 * (1e-12 + 4e-15 * math.sqrt(users))
        error = _TERM_ERROR * size / users
        if error > 0.5 * upper / users and error > SMALLEST_DELTA:
            raise PrecisionError(
                f"delta at epsilon = {epsilon} for num_users = {users:.0f} is a difference of "
                f"terms of size {size / users:.2g}: round-off dominates; use a smaller epsilon"
            )
        enclosure = Enclosure(
            max(lower / users * (1.0 - relative) - error, 0.0),
            max(upper / users * (1.0 + relative) + error + tail + lost, SMALLEST_DELTA),
        )
        return enclosure, tail

    def _build_grid(self, tail_exponent: float) -> _Grid:
        from shuffledp.accounting.amplification.symmetric_blanket_kernels import rest_laws
        from shuffledp.core.numerics.binomial_kernels import (
            binomial_blocks,
            binomial_window,
            chernoff_exponent,
        )

        law, users = self._law, self._num_users
        others = law.rest_mass + law.base_mass
        first, last = binomial_window(users, law.pair_mass, others, tail_exponent)
        starts, masses, means = binomial_blocks(
            users, law.pair_mass, others, first, last, self._max_blocks
        )
        pair_tail = 0.0
        if first > 0.0:
            pair_tail += math.exp(-chernoff_exponent(users, first - 1.0, law.pair_mass, others))
        if last < users:  # E[B; B > last] = users * pair_mass * Pr[Bin(users - 1) >= last]
            pair_tail += math.exp(-chernoff_exponent(users - 1.0, last, law.pair_mass, others))
        if law.rest_mass > 0.0:
            probability, complement = law.rest_mass / others, law.base_mass / others
            boundaries, law_of_block = self._rest_boundaries(starts, probability * complement)
            num_blocks = self._rest_blocks(masses.size, probability * complement, tail_exponent)
            limits = (tail_exponent, num_blocks, float(_REST_OUTCOMES))
            rest = rest_laws(users, probability, complement, boundaries, *limits)
            rest_tail = math.exp(-tail_exponent)
        else:
            probability, rest_tail = 0.0, 0.0
            boundaries, law_of_block = starts[-1:] - 1.0, np.zeros(masses.size, np.int64)
            rest = (np.array([0, 1]), np.array([0.0, 1.0]), np.ones(1), np.zeros(1))
        tables = (starts, masses, means, law_of_block, boundaries, *rest, probability, rest_tail)
        num_cells = float(masses.size) * float(rest[2].size)
        return _Grid(tables, pair_tail, num_cells, float(starts[-1]))

    def _rest_boundaries(
        self, starts: NDArray[np.float64], variance: float
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Choose for which B the law of Z | B is tabulated: the last B of each group of blocks."""
        spread = math.sqrt(self._num_users * variance)
        affordable = max(_FEWEST_LAWS, int(_REST_OUTCOMES / (16.0 * spread + 1.0)))
        if 16.0 * spread > _REST_OUTCOMES:
            affordable = _ONE_BLOCK_LAWS
        num_blocks = starts.size - 1
        group = -(-num_blocks // min(affordable, self._max_blocks))
        group_ends = np.append(starts[:-1][::group][1:], starts[-1])
        return group_ends - 1.0, np.arange(num_blocks) // group

    def _rest_blocks(self, num_pair_blocks: int, variance: float, tail_exponent: float) -> int:
        """Return how many blocks of Z keep the convexity gap far below that of the pair blocks.

        A block whose reports weigh 0.001 n in all moves epsilon by about 1e-7 of itself.
        """
        window = 3.0 * math.sqrt(self._num_users * variance * tail_exponent)
        heaviest = max(self._law.rest_weight - self._law.base_weight, 1.0)
        narrow = window * heaviest / (1e-3 * self._num_users)
        # Far out in the tails probabilities underflow and each must be computed afresh.
        cells = _MOST_CELLS if tail_exponent < _FAR_TAIL else 0.03 * _MOST_CELLS
        # Where only few such reports are expected, each number of them gets its own block.
        few = max(64.0, self._cheap_cells / num_pair_blocks)
        return int(max(8.0, min(max(narrow, few), cells / num_pair_blocks, self._max_blocks)))


def _both(first: Enclosure, second: Enclosure) -> Enclosure:
    """Return what two enclosures of one number say together."""
    return Enclosure(max(first.lower, second.lower), min(first.upper, second.upper))


def least_enclosure(
    laws: Sequence[SymmetricLaw],
    num_users: int,
    enclose: Callable[[SymmetricBlanket], Enclosure],
    *,
    width: float = 0.0,
) -> Enclosure:
    """Return the enclosure with the smallest upper end among laws that are all upper bounds."""
    found = []
    for law in laws[:-1]:
        with suppress(PrecisionError):
            found.append(enclose(blanket_of(law, num_users, width)))
    try:
        found.append(enclose(blanket_of(laws[-1], num_users, width)))
    except PrecisionError:
        if not found:
            raise
    return min(found, key=lambda enclosure: enclosure.upper)


def upper_delta(
    laws: Sequence[SymmetricLaw], num_users: int, epsilon: float, width: float
) -> float:
    """Return the least upper end of delta among laws that are all upper bounds."""
    return least_enclosure(
        laws, num_users, lambda blanket: blanket.enclose(epsilon), width=width
    ).upper


def blanket_of(law: SymmetricLaw, num_users: int, width: float) -> SymmetricBlanket:
    """Return the blanket; the same one again where it is wide, so that its grids are made once."""
    if width < WIDE_WIDTH:
        return SymmetricBlanket(law, num_users, width=width)
    return _wide_blanket(law, num_users, width)


@functools.lru_cache(maxsize=8)
def _wide_blanket(law: SymmetricLaw, num_users: int, width: float) -> SymmetricBlanket:
    return SymmetricBlanket(law, num_users, width=width)
