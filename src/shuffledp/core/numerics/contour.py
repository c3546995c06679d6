"""The mean positive part of a sum of many i.i.d. terms by a contour integral.

See `shuffledp.core.numerics.positive_part` for what is computed and why it is rigorous.

*Error budget.* With u = 2^-53: library functions may be off by eight u of their result, as those of
NumPy may, and what they are given by the roundings that led to it. Constants below leave room for
twice that; sums are pairwise, or of as many terms as there are values.
"""

import math
from typing import NamedTuple

import numpy as np

from shuffledp.core.numerics.binomial import Numbers

# exp(-46) = 1e-20: what is left out of sums and integrals, relative to their largest term.
_NEGLIGIBLE_EXPONENT = 46.0

# Where exp(-t^2 / 2) has become as negligible.
_FREQUENCY = math.sqrt(2.0 * _NEGLIGIBLE_EXPONENT)

# exp(-25) = 1e-11: what one period's neighbours may add, relative to the answer.
_ALIAS_EXPONENT = 25.0

# No tilt takes a term's weight beyond exp(600); any positive tilt is valid, if less good.
_LARGEST_TILT_EXPONENT = 600.0

# Tilting further, for a bound of the aliases, may multiply a weight by exp(90) at most.
_LARGEST_FURTHER_EXPONENT = 90.0

# ln 1e-300: what is proved to be smaller is not worth a contour.
_LOG_SMALLEST = -690.7755278982137

# Where a value lies so far out that no tilt reaches it, period and smoothing drive each other up:
# with this many times the nodes allowed, there is no contour to sum.
_HOPELESS = 8.0

_UNIT_ROUND_OFF = 2.0**-53

# Chance of a value, tilted and in any of the terms, below which values are left out together.
_UNSEEN = 1e-15

# Nodes times values that are looked at together; and into how many parts a block of nodes is cut.
_MOST_TOGETHER, _PARTS = 1 << 16, 4


class TermLaw(NamedTuple):
    """A term: ``base``, and more than that by differences[i] with probability masses[i]."""

    num_terms: float
    base: float
    base_mass: float
    masses: Numbers
    differences: Numbers

    @property
    def highest(self) -> float:
        """Of the values."""
        return self.base + float(self.differences.max(initial=0.0))

    def log_moment(self, theta: float) -> tuple[float, float]:
        """Return ln E[e^(theta D)], D the term minus the base, and its error in roundings."""
        exponents = theta * self.differences
        growth = self.masses * np.expm1(exponents)
        excess = float(growth.sum())
        # An exponent's own rounding counts as often as it is large.
        sizes = np.abs(growth) * (24.0 + growth.size + np.maximum(exponents, 0.0))
        return math.log1p(excess), float(sizes.sum()) / (1.0 + excess)

    def tilted_moments(self, theta: float) -> tuple[float, float]:
        """Return mean and variance of D tilted by e^(theta D)."""
        weights = self.masses * np.exp(theta * self.differences)
        total = self.base_mass + float(weights.sum())
        mean = float(weights @ self.differences) / total
        # About the mean: nothing cancels.
        second = self.base_mass * mean * mean + float(weights @ (self.differences - mean) ** 2)
        return mean, second / total


def _saddle_point(law: TermLaw, largest: float) -> float:
    """Return about the theta > 0 that minimises the integrand's modulus, at most ``largest``.

    The root of n kappa'(theta) = 2 / theta, by Newton steps and bisection on a logarithmic scale in
    turn: a Newton step from too far out gets nowhere.
    """
    low, high = 0.0, largest
    deviation = math.sqrt(law.num_terms * law.tilted_moments(0.0)[1])
    theta = 1.5 / deviation if deviation * largest > 1.5 else largest
    for turn in range(400):
        mean, variance = law.tilted_moments(theta)
        slope = law.num_terms * (law.base + mean) - 2.0 / theta
        if slope > 0.0:
            high = theta
        else:
            low = theta
            if theta >= largest:
                return largest
        following = theta - slope / max(law.num_terms * variance + 2.0 / (theta * theta), 1e-300)
        if high <= 1.002 * low:
            break
        if turn % 2 == 1 or not low < following < high:
            following = math.sqrt(low) * math.sqrt(high) if low > 0.0 else 0.3 * theta
        theta = min(max(following, 0.1 * theta), largest)
    return theta


class _Grid(NamedTuple):
    """Smoothing, and nodes: up to ``near``, and ``first_far`` to ``last_far``; units of 1/theta."""

    smoothing: float
    near: float
    first_far: float
    last_far: float
    period: float
    aliases: float

    @property
    def step(self) -> float:
        """Between two nodes."""
        return 2.0 * math.pi / self.period


def _grid(law: TermLaw, variance: float, width: float, most_nodes: float, further: float) -> _Grid:
    """Return the grid for a law in units in which theta = 1; ``variance`` is that of it tilted.

    ``further`` is the tilt beyond 1 that bounds aliases.
    """
    deviation = math.sqrt(law.num_terms * variance + 1.0)
    tilt = 1.0 + further
    log_scale = law.num_terms * (law.log_moment(1.0)[0] + law.base)
    log_above = law.num_terms * (law.log_moment(tilt)[0] + tilt * law.base)
    log_enough = -math.log(deviation + 1.0) - 1.0 - _ALIAS_EXPONENT

    def period_and_aliases(smoothing: float) -> tuple[float, float]:
        """Return a period T of the trapezoidal sum and what aliases can add, over e^(n kappa).

        With S the sum, smoothed: terms k >= 1 are e^(-k T) E(S + k T)_+ and at most e^(-k T) (k T +
        E(S)_+), with E(S)_+ <= e^(n kappa) / e; terms k <= -1 are e^(abs(k) T) E(S - abs(k) T)_+,
        at most exp(n kappa(1 + l) - abs(k) l T) / (e (1 + l)) for any l > 0, by x_+ <= e^(a x) /
        (e a).
        """
        scale = log_scale + 0.5 * smoothing**2
        above = log_above + 0.5 * (smoothing * tilt) ** 2 - scale - 1.0 - math.log(tilt)
        period, right, left = 12.0 * deviation, 0.0, 0.0
        for _ in range(400):
            right = max(math.log(2.0 * period) - scale, math.log(2.0) - 1.0) - period
            left = above - further * period
            if max(left, right) <= log_enough:
                break
            period *= 1.15
        return period, 1.3 * (math.exp(min(right, 700.0)) + math.exp(min(left, 700.0)))

    span = max(law.differences.max(), 0.0) - min(law.differences.min(), 0.0)
    # As 1 - cos x >= 2 (x/pi)^2 up to x = pi, the modulus falls like exp(-2 n variance (t/pi)^2)
    # up to t = pi / span. Smoothing that leaves nothing beyond that needs few nodes; otherwise the
    # modulus may come back to 1 as often as it likes, and all of the line must be searched.
    near = math.pi * math.sqrt(0.5 * _NEGLIGIBLE_EXPONENT / (law.num_terms * variance))
    first_far, last_far = math.pi / span, 0.0
    smoothing = _FREQUENCY * span / math.pi
    finest = math.sqrt(width) * deviation
    if smoothing > finest or near > first_far:
        smoothing, near, last_far = finest, min(near, first_far), math.inf
    for _ in range(2):  # no finer than the number of nodes allows
        period, _ = period_and_aliases(smoothing)
        smoothing = max(smoothing, _FREQUENCY * period / (2.0 * math.pi * most_nodes))
    near = min(near, _FREQUENCY / smoothing)
    last_far = max(min(last_far, _FREQUENCY / smoothing), near)
    return _Grid(smoothing, near, first_far, last_far, *period_and_aliases(smoothing))


def _characteristic(law: TermLaw, t: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return real and imaginary part of E[e^(i t D)] - 1, and of its modulus the square - 1."""
    half = np.multiply.outer(law.differences, 0.5 * t)
    sine = np.sin(half)
    weighted = 2.0 * law.masses[:, None] * sine
    real, imaginary = -(weighted * sine).sum(axis=0), (weighted * np.cos(half)).sum(axis=0)
    return real, imaginary, 2.0 * real + real * real + imaginary * imaginary


def _pieces(law: TermLaw, nodes: Numbers) -> list[Numbers]:
    """Cut nodes into as many as are looked at together."""
    return np.array_split(nodes, math.ceil(nodes.size * law.masses.size / _MOST_TOGETHER) or 1)


def _seen_nodes(
    law: TermLaw, step: float, ends: tuple[float, float], deviation: float, lost: float
) -> Numbers:
    """Return nodes from a first to a last, but for those with a modulus below 1 - ``lost``.

    ``deviation`` is that of one tilted term: the modulus changes by no more than that per unit of
    t, so where it is far enough below 1 in the middle of a block, all of the block is passed over.
    """
    first, last = ends
    size = 1
    while 16 * size < last - first and size * step * deviation < 0.25:
        size *= _PARTS
    nodes = first + size * np.arange(max(np.ceil((last - first + 1.0) / size), 0.0))
    while size > 1:
        gap = lost + 0.500001 * (size - 1) * step * deviation
        if gap < 1.0:
            middles = (nodes + 0.5 * (size - 1)) * step
            squares = [_characteristic(law, piece)[2] for piece in _pieces(law, middles)]
            nodes = nodes[np.concatenate(squares) > gap * gap - 2.0 * gap]
        size //= _PARTS
        nodes = np.add.outer(nodes, size * np.arange(_PARTS)).ravel()
    return nodes[nodes <= last]


def _contour_sum(law: TermLaw, grid: _Grid, deviation: float, unseen: float) -> Numbers:
    """Return the sums for 1 / z^2 and for 1 over e^(n kappa(1)), and the error of each.

    The law is the tilted one, that of one term has this ``deviation``, and values of the mass
    ``unseen`` were left out: they move the characteristic function by twice it.
    """
    step, tau = grid.step, grid.smoothing
    # The n-th power of what is below is below exp(-46), also with the unseen.
    lost = _NEGLIGIBLE_EXPONENT / law.num_terms + 2.0 * unseen
    nearest = np.floor(grid.near / step)
    first_far = max(np.ceil(grid.first_far / step), nearest + 1.0)
    ranges = (0.0, nearest), (first_far, np.floor(grid.last_far / step))
    nodes = np.concatenate(
        [_seen_nodes(law, step, ends, deviation, lost) for ends in ranges], dtype=np.float64
    )
    roundings = law.masses * (64.0 + law.masses.size + np.abs(law.differences))
    spread = 4.0 * abs(law.base) + float(roundings @ np.abs(law.differences))
    square_spread = float(roundings @ law.differences**2)
    sums = np.zeros(4)
    for piece in _pieces(law, nodes):
        t = piece * step
        real, imaginary, square = _characteristic(law, t)
        norm = 1.0 + t * t
        # Only where there are few terms is it too close to 0 for a logarithm.
        faint = square < 1e-9 - 1.0
        square = np.where(faint, 2e-9 - 1.0, square)
        modulus = np.exp(0.5 * law.num_terms * np.log1p(square) - 0.5 * (tau * t) ** 2)
        modulus *= np.where(t == 0.0, 1.0, 2.0)
        phase = law.num_terms * (t * law.base + np.arctan2(imaginary, 1.0 + real)) + tau * tau * t
        cosine, sine = modulus * np.cos(phase), modulus * np.sin(phase)
        errors = law.num_terms * t * (spread + t * square_spread)
        errors += 2.1 * law.num_terms * unseen / _UNIT_ROUND_OFF
        errors = 512.0 + errors / (1.0 + square)
        errors = modulus * np.where(faint, 2.0 / _UNIT_ROUND_OFF, errors)
        # 1 / z^2 = conj(z)^2 / abs(z)^4
        terms = (cosine * (1.0 - t * t) + sine * 2.0 * t) / norm / norm, cosine
        sums += [each.sum() for each in (*terms, errors / norm, errors)]
    sums[2:] *= _UNIT_ROUND_OFF
    return sums


@np.errstate(all="ignore")
def contour_positive_part(
    law: TermLaw, width: float, most_nodes: float, log_unit: float
) -> tuple[float, float]:
    """Return lower and upper ends of E[(G_1 + ... + G_n)_+] / n times e^log_unit.

    At least one difference is not 0, all are within [-2, 2], and base plus the largest of them is
    above 0.
    """
    largest = max(float(law.differences.max()), 0.0)
    most = min(_LARGEST_TILT_EXPONENT / (largest if largest > 0.0 else law.base), 1e150)
    theta = _saddle_point(law, most)
    # From here on in units in which theta = 1.
    law = law._replace(base=theta * law.base, differences=theta * law.differences)
    num_terms, base, _, masses, differences = law
    log_moment, error = law.log_moment(1.0)
    exponent = num_terms * (log_moment + base)
    # E[S_+] <= e^(n kappa(theta)) / (e theta)
    log_factor = log_unit - math.log(theta) - math.log(num_terms)
    roundings = 64.0 + num_terms * (error + 8.0 * abs(base))
    relative = _UNIT_ROUND_OFF * (roundings + 4.0 * (abs(exponent) + abs(log_factor)))
    log_chernoff = exponent + log_factor - 1.0 + relative
    if log_chernoff < _LOG_SMALLEST:
        return 0.0, 0.0
    chernoff = math.exp(min(log_chernoff, 700.0))
    variance = max(law.tilted_moments(1.0)[1], 1e-200)
    further = _LARGEST_FURTHER_EXPONENT / (theta * largest if largest > 0.0 else 1.0)
    further = min(7.0 / math.sqrt(num_terms * variance + 1.0), further)
    grid = _grid(law, variance, width, most_nodes, further)
    step, tau = grid.step, grid.smoothing
    if not grid.last_far <= _HOPELESS * most_nodes * step:  # NaN fails too
        return 0.0, chernoff
    weights = masses * np.exp(differences - log_moment)
    kept = weights > _UNSEEN / (num_terms * weights.size)
    kept[np.argmax(weights)] = True
    unseen = float(weights[~kept].sum()) * (1.0 + 1e-12)
    seen = law._replace(masses=weights[kept], differences=differences[kept])
    total, density, total_error, density_error = _contour_sum(
        seen, grid, math.sqrt(variance), unseen
    ).tolist()
    # Nodes passed over and beyond the last, on both sides: below e^-46 each, times 1 / abs(z)^2.
    left_out = 2.0 * math.exp(-_NEGLIGIBLE_EXPONENT)
    total_error += left_out * (1.0 + math.pi / step)
    density_error += left_out * (1.0 + 2.0 * _FREQUENCY / (tau * step))
    upper = total + total_error
    lower = total - total_error - tau * tau * (density + density_error)
    lower = lower / grid.period - grid.aliases
    log_factor += exponent + 0.5 * tau**2
    relative += 4.0 * _UNIT_ROUND_OFF * tau**2
    if not (relative < 0.5 and upper > 0.0):
        return 0.0, chernoff  # round-off dominates
    upper = math.exp(min(math.log(upper / grid.period) + log_factor + 2.0 * relative, log_chernoff))
    if lower <= 0.0:
        return 0.0, upper
    return math.exp(math.log(lower) + log_factor - 2.0 * relative), upper
