"""Law of the histogram of the others' reports, and the success probability that it leaves.

Groups of users whose reports have one law are independent coins, or kinds. The law of their number
of ones, or of their histogram, comes from its characteristic function, a product of powers, by an
inverse Fourier transform on a window outside which Bernstein's inequality leaves 1e-19. Each node's
round-off is bounded; the l2 norm of these bounds bounds the l1 error of the masses, and so the
error of the success probability. docs/results/leakage.md.
"""

import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import NamedTuple

import numpy as np

from shuffledp.core.arrays import Floats
from shuffledp.core.numerics.enclosure import Enclosure, round_down, round_up
from shuffledp.leakage.channel import Truth, checked_truth
from shuffledp.leakage.counts.fullest_bin import bernstein_reach

_ULP = math.ulp(1.0)

#: Number of users up to which everything here is tested.
MOST_USERS = 10**10

# Each tail beyond the window is below e^-44 = 8e-20.
_TAIL_EXPONENT = 44.0
_TAIL = 2.0 * math.exp(-_TAIL_EXPONENT)

# Nodes with a modulus below e^-60 = 9e-27 are left out.
_NEGLIGIBLE_EXPONENT = 60.0
_NEGLIGIBLE = math.exp(-_NEGLIGIBLE_EXPONENT)

# Below this angle the remainder of a phase is a series in it.
_SERIES_ANGLE = 0.03


class Coins(NamedTuple):
    """A group of independent coins with the same chance."""

    number: int
    chance: Fraction


class Nodes(NamedTuple):
    """Values of the characteristic function of S - ``center`` at t_j = 2 pi j / period, j >= 1."""

    first: int  # of the window
    period: int
    center: int
    angles: Floats
    moduli: Floats
    phases: Floats
    errors: Floats


class HistogramLaw(NamedTuple):
    """Approximate masses of histograms, one axis for each outcome but ``implied``."""

    masses: Floats
    error: float
    implied: int = 0
    first: int = 0  # of two outcomes, the number that the masses begin with


def bernstein_window(mean: Fraction, variance: float, most: int) -> tuple[int, int]:
    """Return ends outside which S has mass at most ``_TAIL``, for 0 <= S <= ``most``.

    Bernstein: Pr[S - mean >= t] <= exp(-t^2 / (2 (v + t / 3))), and the same below.
    """
    distance = Fraction(bernstein_reach(_TAIL_EXPONENT, variance) * (1.0 + 1e-9) + 1e-9)
    return max(math.floor(mean - distance), 0), min(math.ceil(mean + distance), most)


def fourier_slack(spectrum_norm: float, cells: int) -> float:
    """Return the l1 round-off of a transform: 8 u log2(M) of the l2 norm of its input.

    Higham 2002, "Accuracy and Stability of Numerical Algorithms", Theorem 24.2, has less than 7.
    """
    return 8.0 * _ULP * math.log2(cells + 2.0) * spectrum_norm


def phase_remainder(chance: float, angles: Floats) -> Floats:
    """Return arg(1 - a + a e^(i t)) - a t for 0 <= a <= 1/2."""
    versine = 2.0 * np.sin(0.5 * angles) ** 2
    sine = np.sin(angles)
    real = 1.0 - chance * versine
    direct = np.arctan2(chance * sine, real) - chance * angles
    square = angles * angles
    sine_left = -1.0 + square * (1.0 - square * (1.0 - square / 72.0) / 42.0) / 20.0
    sine_left *= angles * square / 6.0
    slope = chance * sine / np.where(real > 0.5, real, 1.0)
    slopes = slope * slope
    tangent_left = -slope * slopes * (1 / 3 - slopes * (1 / 5 - slopes * (1 / 7 - slopes / 9)))
    series = tangent_left + chance * (sine_left + slope * versine)
    return np.where(angles <= _SERIES_ANGLE, series, direct)


def sum_nodes(groups: Sequence[Coins]) -> Nodes:
    """Return the nodes that matter."""
    mean = sum((number * chance for number, chance in groups), Fraction(0))
    variance = math.fsum(number * float(chance) * float(1 - chance) for number, chance in groups)
    first, last = bernstein_window(mean, variance, sum(group.number for group in groups))
    # An odd period: every node but the first has a conjugate partner.
    period = last - first + 1
    period += 1 - period % 2
    center = round(mean)
    highest = 0.5 * _NEGLIGIBLE_EXPONENT / max(variance, 1e-300)
    largest = math.pi if highest >= 1.0 else 2.0 * math.asin(math.sqrt(highest))
    count = min(math.ceil(largest * period / (2.0 * math.pi)), (period - 1) // 2)
    angles = 2.0 * math.pi * np.arange(1, count + 1) / period
    versine = 2.0 * np.sin(0.5 * angles) ** 2
    logs, phases, doubts = np.zeros(count), float(mean - center) * angles, 2.0 * _ULP * angles
    # The series is right to some units of its terms of third order, the other way of the first.
    order = np.where(angles <= _SERIES_ANGLE, angles**3, angles)
    for number, chance in groups:
        high = chance > Fraction(1, 2)
        rarer = float(1 - chance if high else chance)
        phase = number * phase_remainder(rarer, angles)
        phases += -phase if high else phase
        spread = 2.0 * rarer * (1.0 - rarer) * versine
        logs += 0.5 * number * np.log1p(-np.minimum(spread, 1.0 - 1e-300))
        doubts += 8.0 * _ULP * number * rarer * order
    with np.errstate(over="ignore"):
        moduli = np.exp(logs)
    errors = moduli * (doubts + 8.0 * _ULP * (1.0 - np.maximum(logs, -1e6)))
    return Nodes(first, period, center, angles, moduli, phases, errors)


def report_law(groups: Sequence[Coins]) -> HistogramLaw:
    """Return the law of the sum of all coins."""
    import scipy.fft

    nodes = sum_nodes(groups)
    count, period = nodes.angles.size, nodes.period
    turns = np.arange(1, count + 1) * ((nodes.center - nodes.first) % period) % period
    phases = nodes.phases + 2.0 * math.pi * turns / period
    spectrum = np.zeros((period + 1) // 2, dtype=np.complex128)
    spectrum[0] = 1.0
    spectrum[1 : count + 1] = nodes.moduli * np.exp(-1j * phases)
    masses = np.maximum(scipy.fft.irfft(spectrum, period), 0.0)
    norm = math.sqrt(1.0 + 2.0 * float(np.square(nodes.moduli).sum()))
    # An error of the spectrum in the l2 norm is one of the masses in the l1 norm.
    doubts = nodes.errors + 8.0 * _ULP * nodes.moduli
    error = math.sqrt(2.0 * float(np.square(doubts).sum())) + fourier_slack(norm, period)
    error += 2.0 * _TAIL + period * _NEGLIGIBLE
    return HistogramLaw(masses, 1.01 * error, first=nodes.first)


def mode_mass(groups: Sequence[Coins]) -> Enclosure:
    """Enclose the largest mass of the sum of all coins, to a relative 1e-13.

    The mode is less than one away from the mean (Darroch, "On the distribution of the number of
    successes in independent trials", Annals of Mathematical Statistics 35, 1964): three masses are
    enough.
    """
    nodes = sum_nodes(groups)
    shifts = np.array([-1.0, 0.0, 1.0])
    sums = np.cos(nodes.phases[None, :] - shifts[:, None] * nodes.angles) @ nodes.moduli
    largest = float((1.0 + 2.0 * sums).max()) / nodes.period
    doubts = nodes.errors + nodes.moduli * 4.0 * _ULP * (nodes.angles.size + 4.0)
    error = 1.01 * ((2.0 * float(doubts.sum()) + 4.0 * _ULP) / nodes.period + _TAIL + _NEGLIGIBLE)
    return Enclosure.around(largest, error).clipped()


# Moduli below this count as this: errors are divided by them.
_SMALLEST_MODULUS = 1e-100


class Kind(NamedTuple):
    """Users whose reports are independent with the same law, a (m,) array of float64."""

    number: int
    law: Floats


class Box(NamedTuple):
    """For each outcome but ``implied``, the first count within reach, and the number of them."""

    implied: int
    firsts: tuple[int, ...]
    lengths: tuple[int, ...]


def count_moments(kinds: Sequence[Kind], y: int) -> tuple[Fraction, float]:
    """Return mean and variance of the number of reports of outcome y."""
    mean = sum((kind.number * Fraction(float(kind.law[y])) for kind in kinds), Fraction(0))
    return mean, math.fsum(kind.number * kind.law[y] * (1.0 - kind.law[y]) for kind in kinds)


def histogram_box(kinds: Sequence[Kind]) -> Box:
    """Return the box for these users; constant cost for each kind and outcome."""
    most = sum(kind.number for kind in kinds)
    # Roundings of the law move the mean by less than the sum of the users' roundings.
    slack, ends = Fraction(most * 4.0 * _ULP), []
    for y in range(kinds[0].law.size):
        mean, variance = count_moments(kinds, y)
        low, _ = bernstein_window(mean - slack, variance, most)
        _, high = bernstein_window(mean + slack, variance, most)
        ends.append((low, high - low + 1))
    implied = max(range(len(ends)), key=lambda y: ends[y][1])
    firsts, lengths = zip(*ends[:implied], *ends[implied + 1 :], strict=True)
    return Box(implied, firsts, lengths)


def histogram_law(kinds: Sequence[Kind], box: Box) -> HistogramLaw:
    """Return the law of the others' histogram on a box."""
    import scipy.fft

    sizes, num_axes = box.lengths, len(box.lengths)
    steps = [np.arange(size) for size in (*sizes[:-1], sizes[-1] // 2 + 1)]
    # e^(-i t_y) on each axis, and the phase that moves the box to zero.
    axes = [*zip(steps, sizes, box.firsts, strict=True)]
    turns = np.ix_(*(np.exp(-2j * math.pi * step / size) for step, size, _ in axes))
    shifts = (step * (first % size) % size / size for step, size, first in axes)
    spectrum = reduce(np.multiply, np.ix_(*(np.exp(2j * math.pi * each) for each in shifts)))
    doubts = np.full(spectrum.shape, 8.0 * num_axes * _ULP)
    for number, law in kinds:
        rarer = np.delete(law, box.implied)
        factor = law[box.implied] + sum(map(operator.mul, rarer, turns))
        moduli = np.maximum(np.abs(factor), _SMALLEST_MODULUS)
        spectrum *= np.exp(number * np.log(moduli) + 1j * number * np.angle(factor))
        doubts += number * (num_axes + 24.0) * _ULP / moduli
    masses = np.maximum(scipy.fft.irfftn(spectrum, sizes), 0.0)
    squares = np.square(np.abs(spectrum))
    # Half of the nodes stand for both of a pair of conjugates.
    norm = math.sqrt(2.0 * float(squares.sum()))
    doubt = math.sqrt(2.0 * float((squares * np.square(doubts)).sum()))
    error = doubt + fourier_slack(norm, masses.size) + 2.0 * num_axes * _TAIL
    error += sum(kind.number for kind in kinds) * 2.0 * (num_axes + 1) * _ULP
    return HistogramLaw(masses, 1.01 * error, implied=box.implied)


def unshuffled(rows: Floats, prior: Floats) -> float:
    """Return the success probability given the target's own report, of law ``rows``."""
    return math.fsum((prior[:, None] * rows).max(axis=0))


#: Most histograms within reach that are listed, and most of these times entries of the channel.
MOST_HISTOGRAMS = 2_000_000
_MOST_WORK = 1e8
#: Most different reports with which that is tried.
MOST_AXES = 20


def by_histograms(kinds: Sequence[Kind], joint: Floats) -> Enclosure | None:
    """Enclose V over all histograms within reach, if they are few enough; see `best_guess`."""
    if joint.shape[1] > MOST_AXES:
        return None
    box = histogram_box(kinds)
    if math.prod(box.lengths) > min(MOST_HISTOGRAMS, _MOST_WORK / joint.size):
        return None
    return best_guess(histogram_law(kinds, box), joint)


def best_guess(law: HistogramLaw, joint: Floats) -> Enclosure:
    """Enclose V from the law of the others' histogram, for any law of value and report.

    An error of that law with l1 norm e moves V by at most e.
    """
    num_axes = law.masses.ndim
    kept = [y for y in range(num_axes + 1) if y != law.implied]
    # The count of the implied outcome is no axis: nothing moves.
    shifted = [
        np.pad(law.masses, [(1, 0) if y == each else (0, 1) for each in kept])
        for y in range(num_axes + 1)
    ]
    best = np.zeros(shifted[0].shape)
    for row in joint[joint.any(axis=1)]:
        chance = np.zeros(best.shape)
        for y in np.flatnonzero(row).tolist():
            chance += row[y] * shifted[y]
        np.maximum(best, chance, out=best)
    value = float(best.sum())
    # Products and sums of positive terms; numpy adds in pairs.
    slack = value * _ULP * (num_axes + 32.0 + math.log2(best.size)) + law.error
    return Enclosure.around(value, slack).clipped()


class Response(NamedTuple):
    """k-ary randomized response: ``domain_size`` k, ``truth`` p in [1/k, 1]."""

    domain_size: int
    truth: Fraction

    @classmethod
    def of(cls, truth: Truth, domain_size: int) -> "Response":
        """Return the response for checked numbers; a double is exact, or 1/k if just below it."""
        number = Fraction(checked_truth(truth, domain_size))
        return cls(domain_size, max(number, Fraction(1, domain_size)))

    @property
    def answer(self) -> Fraction:
        """Probability r = (1 - p) / (k - 1) of any one wrong report."""
        return (1 - self.truth) / (self.domain_size - 1)

    @property
    def kept(self) -> Fraction:
        """Probability p - r that the value is kept; otherwise the report is uniform."""
        return self.truth - self.answer

    @property
    def noise(self) -> Fraction:
        """Probability k r of a uniform report."""
        return 1 - self.kept

    def matrix(self) -> Floats:
        """Return the channel matrix, shape (k, k)."""
        matrix = np.full((self.domain_size, self.domain_size), float(self.answer))
        np.fill_diagonal(matrix, float(self.truth))
        return matrix

    def unshuffled(self, prior: Floats) -> float:
        """Return the success probability given the target's own report, in O(k)."""
        chances = np.maximum(float(self.truth) * prior, float(self.answer) * prior.max())
        return min(math.fsum(chances), 1.0)

    def leaked(self, share: Enclosure, factor: float = 1.0) -> Enclosure:
        """Enclose 1/k + (p - r) times an enclosed number and a factor: V for a uniform target."""
        even, kept = 1.0 / self.domain_size, float(self.kept)
        lower, upper = (even + kept * (factor * each) for each in (share.lower, share.upper))
        return Enclosure(round_down(lower), round_up(upper)).clipped()
