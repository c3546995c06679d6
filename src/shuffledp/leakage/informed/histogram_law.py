"""The joint law of how often each report occurs among others of several kinds.

Let kind g have c_g users who report y with probability s_g(y). Without the outcome whose count is
implied by the others, the histogram has the characteristic function

    product over g of (s_g(0) + sum over y >= 1 of s_g(y) e^(i t_y))^c_g,

and an inverse Fourier transform on a box with one axis for each y gives all of its masses. A box as
long as `bernstein_window` on each axis misses, or wraps around, no more than its tails.

*Rounding.* A factor is right to (m + 2) units of 1; its power loses count times that relative to
its modulus, node by node; the l2 norm of these errors bounds the l1 error of the masses, as in
`report_law`. Laws given as doubles sum to 1 up to rounding, which moves the histogram's law by at
most that for each user.

*The law of a sum of groups of independent coins, from its characteristic function, at any size.*

S = sum over groups g of Bin(c_g, a_g) has the characteristic function product of
(1 - a_g + a_g e^(i t))^c_g. On M equally spaced nodes,

    (1 / M) sum_j phi(t_j) e^(-i t_j s) = sum over all whole l of Pr[S = s + l M],

so what is wrong is the mass outside a window of M numbers (Bernstein's inequality makes it 1e-19)
and rounding. The modulus is at most e^(-v (1 - cos t)), v the variance: only some sixty nodes
matter, whatever the number of coins.

*Rounding.* Moduli are powers of 1 - 2 a (1 - a) (1 - cos t), in logarithms. Phases are taken
relative to the mean, which is an exact fraction: what is left of each coin's phase is of the third
order in t, and is computed as such where t is small. Each node's error is bounded and added up; for
the whole law, the error of the Fourier transform is added (see `fourier_slack`).

*How often the best guess is right, from the law of the others' histogram.*

The adversary knows the law G of the others' histogram, sees the histogram h of all, and guesses the
target's value x, of prior probability q_x, which is reported as y with probability R_xy:

    V = sum over h of max over x of q_x sum over y of R_xy G(h - e_y).

An error of G with l1 norm e moves V by at most e times sum over y of max over x of q_x R_xy, which
is at most one.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.numerics.enclosure import Enclosure

_ULP = math.ulp(1.0)

# Each tail beyond the window is below e^-44 = 8e-20.
_TAIL_EXPONENT = 44.0
TAIL = 2.0 * math.exp(-_TAIL_EXPONENT)

# Nodes with a modulus below e^-60 = 9e-27 are left out.
_NEGLIGIBLE_EXPONENT = 60.0
NEGLIGIBLE = math.exp(-_NEGLIGIBLE_EXPONENT)

# Below this angle the remainder of a phase is a series in it.
SERIES_ANGLE = 0.03


class Coins(NamedTuple):
    """A group of independent coins with the same chance."""

    number: int
    chance: Fraction


class Nodes(NamedTuple):
    """Values of the characteristic function of S - ``center`` at t_j = 2 pi j / period, j >= 1."""

    period: int
    center: int
    angles: NDArray[np.float64]
    moduli: NDArray[np.float64]
    phases: NDArray[np.float64]
    errors: NDArray[np.float64]


class ReportLaw(NamedTuple):
    """The law of S, nearly: masses of ``first``, ``first`` + 1, ...

    ``error`` bounds the sum of all absolute errors, masses left out included.
    """

    first: int
    masses: NDArray[np.float64]
    error: float


def bernstein_window(mean: Fraction, variance: float, most: int) -> tuple[int, int]:
    """Return ends outside which S has mass at most ``TAIL``, for 0 <= S <= ``most``.

    Bernstein: Pr[S - mean >= t] <= exp(-t^2 / (2 (v + t / 3))), and the same below.
    """
    third = _TAIL_EXPONENT / 3.0
    reach = third + math.sqrt(third * third + 2.0 * _TAIL_EXPONENT * variance)
    reach = reach * (1.0 + 1e-9) + 1e-9
    distance = Fraction(reach)
    return max(math.floor(mean - distance), 0), min(math.ceil(mean + distance), most)


def fourier_slack(spectrum_norm: float, cells: int) -> float:
    """Return the l1 round-off of a transform: 8 u log2(M) of the l2 norm of what goes in.

    With u the unit round-off (Higham 2002, "Accuracy and Stability of Numerical Algorithms",
    Theorem 24.2, has less than 7). The result has l2 norm M^(-1/2) times that of the spectrum, and
    an l1 norm at most M^(1/2) times that.
    """
    return 8.0 * _ULP * math.log2(cells + 2.0) * spectrum_norm


def _moments(groups: Sequence[Coins]) -> tuple[int, Fraction, float]:
    """Return number of coins, mean and variance."""
    most = sum(group.number for group in groups)
    mean = sum((group.number * group.chance for group in groups), Fraction(0))
    variance = math.fsum(
        group.number * float(group.chance) * float(1 - group.chance) for group in groups
    )
    return most, mean, variance


def phase_remainder(chance: float, angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return arg(1 - a + a e^(i t)) - a t for 0 <= a <= 1/2."""
    versine = 2.0 * np.sin(0.5 * angles) ** 2
    sine = np.sin(angles)
    real = 1.0 - chance * versine
    direct = np.arctan2(chance * sine, real) - chance * angles
    square = angles * angles
    sine_left = (
        angles
        * square
        * (-1.0 + square * (1.0 - square * (1.0 - square / 72.0) / 42.0) / 20.0)
        / 6.0
    )
    slope = chance * sine / np.where(real > 0.5, real, 1.0)
    slopes = slope * slope
    tangent_left = -slope * slopes * (1 / 3 - slopes * (1 / 5 - slopes * (1 / 7 - slopes / 9)))
    series = tangent_left + chance * (sine_left + slope * versine)
    return np.where(angles <= SERIES_ANGLE, series, direct)


def sum_nodes(groups: Sequence[Coins], *, period: int | None = None) -> tuple[Nodes, int]:
    """Return the nodes that matter, and the first number of the window.

    A ``period`` may be given that is odd and at least as long as the window.
    """
    most, mean, variance = _moments(groups)
    first, last = bernstein_window(mean, variance, most)
    # An odd period: every node but the first has a conjugate partner.
    if period is None:
        period = last - first + 1
        period += 1 - period % 2
    center = round(mean)
    offset = float(mean - center)
    highest = 0.5 * _NEGLIGIBLE_EXPONENT / max(variance, 1e-300)
    largest = math.pi if highest >= 1.0 else 2.0 * math.asin(math.sqrt(highest))
    count = min(math.ceil(largest * period / (2.0 * math.pi)), (period - 1) // 2)
    angles = 2.0 * math.pi * np.arange(1, count + 1) / period
    versine = 2.0 * np.sin(0.5 * angles) ** 2
    logs, phases, doubts = np.zeros(count), offset * angles, 2.0 * _ULP * angles
    for group in groups:
        high = group.chance > Fraction(1, 2)
        rarer = float(1 - group.chance if high else group.chance)
        phase = group.number * phase_remainder(rarer, angles)
        phases += -phase if high else phase
        spread = 2.0 * rarer * (1.0 - rarer) * versine
        logs += 0.5 * group.number * np.log1p(-np.minimum(spread, 1.0 - 1e-300))
        # The series is right to some units of its terms of third order, the other way of the first.
        order = np.where(angles <= SERIES_ANGLE, angles**3, angles)
        doubts += 8.0 * _ULP * group.number * rarer * order
    with np.errstate(over="ignore"):
        moduli = np.exp(logs)
    errors = moduli * (doubts + 8.0 * _ULP * (1.0 - np.maximum(logs, -1e6)))
    return Nodes(period, center, angles, moduli, phases, errors), first


def report_law(groups: Sequence[Coins]) -> ReportLaw:
    """Return the law of the sum of all coins.

    Parameters
    ----------
    groups : sequence of Coins
        Counts >= 0, chances in [0, 1], taken as exact.

    Returns
    -------
    ReportLaw
        Masses >= 0; ``error`` is about 1e-13, whatever the number of coins.

    Notes
    -----
    O(s log s), s the standard deviation of the sum; 30 ms at 1e9 coins.

    Examples
    --------
    >>> law = report_law([Coins(2, Fraction(1, 2)), Coins(1, Fraction(1))])
    >>> law.first, law.masses.round(12).tolist()
    (0, [0.0, 0.25, 0.5, 0.25, 0.0])
    """
    import scipy.fft

    nodes, first = sum_nodes(groups)
    count, period = nodes.angles.size, nodes.period
    turns = np.arange(1, count + 1) * ((nodes.center - first) % period) % period
    spectrum = np.zeros((period + 1) // 2, dtype=np.complex128)
    spectrum[0] = 1.0
    spectrum[1 : count + 1] = nodes.moduli * np.exp(
        -1j * (nodes.phases + 2.0 * math.pi * turns / period)
    )
    masses = np.maximum(scipy.fft.irfft(spectrum, period), 0.0)
    norm = math.sqrt(1.0 + 2.0 * float(np.square(nodes.moduli).sum()))
    # An error of the spectrum in the l2 norm is one of the masses in the l1 norm.
    doubts = nodes.errors + 8.0 * _ULP * nodes.moduli
    error = math.sqrt(2.0 * float(np.square(doubts).sum())) + fourier_slack(norm, period)
    error += 2.0 * TAIL + period * NEGLIGIBLE
    return ReportLaw(first, masses, 1.01 * error)


def mode_mass(groups: Sequence[Coins]) -> Enclosure:
    """Return the largest mass of the sum of all coins.

    Parameters
    ----------
    groups : sequence of Coins
        Counts >= 0, chances in [0, 1], taken as exact.

    Returns
    -------
    Enclosure
        Relative width about 1e-13.

    Notes
    -----
    The mode is less than one away from the mean (Darroch, "On the distribution of the number of
    successes in independent trials", Annals of Mathematical Statistics 35, 1964), so three masses
    are enough. Constant cost, 0.1 ms.

    Examples
    --------
    >>> found = mode_mass([Coins(2, Fraction(1, 2))])
    >>> found.lower <= 0.5 <= found.upper <= 0.5 + 1e-12
    True
    """
    nodes, _ = sum_nodes(groups)
    shifts = np.array([-1.0, 0.0, 1.0])
    sums = np.cos(nodes.phases[None, :] - shifts[:, None] * nodes.angles) @ nodes.moduli
    largest = float((1.0 + 2.0 * sums).max()) / nodes.period
    doubts = nodes.errors + nodes.moduli * 4.0 * _ULP * (nodes.angles.size + 4.0)
    error = 1.01 * ((2.0 * float(doubts.sum()) + 4.0 * _ULP) / nodes.period + TAIL + NEGLIGIBLE)
    return Enclosure(max(largest - error, 0.0), min(largest + error, 1.0))


# Moduli below this count as this: errors are divided by them.
_SMALLEST = 1e-100


class Kind(NamedTuple):
    """Users whose reports are independent with the same law, a (m,) array of float64."""

    number: int
    law: NDArray[np.float64]


class Box(NamedTuple):
    """For each outcome but ``implied``, the first count within reach, and how many there are."""

    implied: int
    firsts: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def num_cells(self) -> int:
        """Number of histograms in the box."""
        return math.prod(self.lengths)


class HistogramLaw(NamedTuple):
    """Masses of the histograms of a box, one axis for each outcome but ``box.implied``.

    ``error`` bounds the sum of all absolute errors, masses outside the box included.
    """

    box: Box
    masses: NDArray[np.float64]
    error: float


def histogram_box(kinds: Sequence[Kind]) -> Box:
    """Return the box for these users; constant cost for each kind and outcome.

    Examples
    --------
    >>> histogram_box([Kind(3, np.array([0.5, 0.25, 0.25]))]).lengths
    (4, 4)
    """
    most = sum(kind.number for kind in kinds)
    ends = []
    for y in range(kinds[0].law.size):
        mean = sum((kind.number * Fraction(float(kind.law[y])) for kind in kinds), Fraction(0))
        variance = math.fsum(kind.number * kind.law[y] * (1.0 - kind.law[y]) for kind in kinds)
        # Roundings of the law move the mean by less than what a user's rounding adds up to.
        slack = Fraction(most * 4.0 * _ULP)
        low, _ = bernstein_window(mean - slack, variance, most)
        _, high = bernstein_window(mean + slack, variance, most)
        ends.append((low, high - low + 1))
    implied = max(range(len(ends)), key=lambda y: ends[y][1])
    kept = [end for y, end in enumerate(ends) if y != implied]
    return Box(implied, tuple(end[0] for end in kept), tuple(end[1] for end in kept))


def _axis(values: NDArray[np.complex128], axis: int, num_axes: int) -> NDArray[np.complex128]:
    """Return a vector as an array that varies along one axis only."""
    shape = [1] * num_axes
    shape[axis] = -1
    return values.reshape(shape)


def histogram_law(kinds: Sequence[Kind], box: Box) -> HistogramLaw:
    """Return the law of the others' histogram on a box.

    Parameters
    ----------
    kinds : sequence of Kind
        At least one; laws over the same outcomes.
    box : Box
        From `histogram_box`.

    Returns
    -------
    HistogramLaw
        Masses >= 0.

    Notes
    -----
    O(cells (kinds outcomes + log cells)) and 60 bytes a cell: about 0.3 s for 1e6 cells and three
    kinds.

    Examples
    --------
    >>> kinds = [Kind(2, np.array([0.5, 0.5]))]
    >>> histogram_law(kinds, histogram_box(kinds)).masses.round(12).tolist()
    [0.25, 0.5, 0.25]
    """
    import scipy.fft

    sizes, num_axes = box.lengths, len(box.lengths)
    half = sizes[-1] // 2 + 1
    shape = (*sizes[:-1], half)
    steps = [np.arange(size) for size in (*sizes[:-1], half)]
    # e^(-i t_y) on each axis, and the phase that moves the box to zero.
    turns = [np.exp(-2j * math.pi * step / size) for step, size in zip(steps, sizes, strict=True)]
    spectrum = np.ones(shape, dtype=np.complex128)
    for axis, (step, size, first) in enumerate(zip(steps, sizes, box.firsts, strict=True)):
        shift = np.exp(2j * math.pi * (step * (first % size) % size) / size)
        spectrum *= _axis(shift, axis, num_axes)
    doubts = np.full(shape, 8.0 * num_axes * _ULP)
    kept = [y for y in range(num_axes + 1) if y != box.implied]
    for kind in kinds:
        if kind.number == 0:
            continue
        factor = np.full(shape, complex(kind.law[box.implied]))
        for axis, y in enumerate(kept):
            factor += kind.law[y] * _axis(turns[axis], axis, num_axes)
        moduli = np.maximum(np.abs(factor), _SMALLEST)
        phases = kind.number * np.angle(factor)
        spectrum *= np.exp(kind.number * np.log(moduli) + 1j * phases)
        doubts += kind.number * (num_axes + 24.0) * _ULP / moduli
    masses = np.maximum(scipy.fft.irfftn(spectrum, sizes), 0.0)
    squares = np.square(np.abs(spectrum))
    # Half of the nodes stand for both of a pair of conjugates.
    norm = math.sqrt(2.0 * float(squares.sum()))
    doubt = math.sqrt(2.0 * float((squares * np.square(doubts)).sum()))
    users = sum(kind.number for kind in kinds)
    error = doubt + fourier_slack(norm, box.num_cells) + 2.0 * num_axes * TAIL
    error += users * 2.0 * (num_axes + 1) * _ULP
    return HistogramLaw(box, masses, 1.01 * error)


def best_guess(
    law: HistogramLaw, prior: NDArray[np.float64], matrix: NDArray[np.float64]
) -> Enclosure:
    """Enclose V for any randomizer.

    Parameters
    ----------
    law : HistogramLaw
        Of the others.
    prior : (k,) array of float64
        Of the target.
    matrix : (k, m) array of float64
        Row x is the law of the report of value x.

    Returns
    -------
    Enclosure
        In [0, 1]; errs by the error of the law and rounding.

    Notes
    -----
    O(k m) passes over the cells of the law.

    Examples
    --------
    Two people, the other's coin fair: the count of ones is 0 or 2 half of the time, which gives the
    target away.

    >>> from shuffledp.leakage.informed.histogram_law import Kind, histogram_box
    >>> from shuffledp.leakage.informed.histogram_law import histogram_law
    >>> kinds = [Kind(1, np.array([0.5, 0.5]))]
    >>> found = best_guess(
    ...     histogram_law(kinds, histogram_box(kinds)), np.array([0.5, 0.5]), np.eye(2)
    ... )
    >>> found.lower <= 0.75 <= found.upper <= 0.7500001
    True
    """
    num_axes = law.masses.ndim
    shifted = []
    kept = [y for y in range(num_axes + 1) if y != law.box.implied]
    for y in range(num_axes + 1):
        # The count of the implied outcome is no axis: nothing moves.
        pads = [(1, 0) if y == each else (0, 1) for each in kept]
        shifted.append(np.pad(law.masses, pads))
    best = np.zeros(shifted[0].shape)
    for x in np.flatnonzero(prior).tolist():
        chance = np.zeros(best.shape)
        for y in np.flatnonzero(matrix[x]).tolist():
            chance += (prior[x] * matrix[x, y]) * shifted[y]
        np.maximum(best, chance, out=best)
    value = float(best.sum())
    # Products and sums of positive terms; numpy adds in pairs.
    slack = value * _ULP * (num_axes + 32.0 + math.log2(best.size)) + law.error
    return Enclosure(max(value - slack, 0.0), min(value + slack, 1.0))
