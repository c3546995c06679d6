"""The mean positive part of a sum of i.i.d. terms, compiled: contour integral, and listed outcomes.

See `shuffledp.core.numerics.positive_part` for what is computed and why it is rigorous.

*Listing*, for few kinds of terms. An outcome is the number of times that each value beside the base
occurs. Outcomes that differ in the count of the first value alone are a *row*: their probabilities
are a binomial law's times a constant, so they rise to one mode and fall, ever faster, on both
sides. A row is summed from the mode outwards until the rest of it, which is below a geometric
series, is negligible; so a row of n terms costs O(sqrt(n)), however frequent the first value is.
"""

import math
from typing import NamedTuple

import numpy as np

from shuffledp.core.arrays import Floats
from shuffledp.core.compiled import njit
from shuffledp.core.numerics.binomial_kernels import log_binomial_pmf


class Terms(NamedTuple):
    """``number`` independent terms: ``base`` plus ``differences[i]`` with chance ``masses[i]``.

    Compiled loops read the fields; numba loads no method.
    """

    number: float
    base: float
    base_mass: float  # the chance of the base alone
    masses: Floats
    differences: Floats

    @property
    def size(self) -> int:
        """Number of values beside the base."""
        return self.masses.size

    @property
    def exponent(self) -> int:
        """The binary exponent of the largest value."""
        return math.frexp(max(abs(self.base), float(np.abs(self.differences).max())))[1]

    def scaled(self, exponent: int) -> "Terms":
        """Return 2^exponent times the terms."""
        base, differences = math.ldexp(self.base, exponent), np.ldexp(self.differences, exponent)
        return self._replace(base=base, differences=differences)


# exp(-46) = 1e-20: terms left out of sums and integrals, relative to the largest term.
_NEGLIGIBLE_EXPONENT = 46.0

# The t at which exp(-t^2 / 2) is as negligible.
_FREQUENCY = math.sqrt(2.0 * _NEGLIGIBLE_EXPONENT)

# exp(-25) = 1e-11: largest contribution of a period's neighbours, relative to the answer.
_ALIAS_EXPONENT = 25.0

# No tilt takes a term's weight beyond exp(600); any positive tilt is valid, if less good.
_LARGEST_TILT_EXPONENT = 600.0

# Tilting further, for a bound of the aliases, may multiply a weight by exp(90) at most.
_LARGEST_FURTHER_EXPONENT = 90.0

# ln 1e-300: results that are proved to be smaller are not worth a contour.
_LOG_SMALLEST = -690.7755278982137

# A value too far out for any tilt makes period and smoothing drive each other up: above this many
# times the allowed nodes no contour is summed.
_HOPELESS = 8.0

_UNIT_ROUND_OFF = 2.0**-53

# Probability of a value, tilted and in any of the terms, below which all such values are left out.
_UNSEEN = 1e-15


@njit
def tilted_moments(law: Terms, theta: float) -> tuple[float, float, float, float]:
    """Return ln E[e^(theta D)], mean and variance of D tilted, and the size of the logarithm's sum.

    D is a term minus the base.
    """
    masses, differences = law.masses, law.differences
    excess, size, first = 0.0, 0.0, 0.0
    for i in range(masses.size):
        growth = masses[i] * math.expm1(theta * differences[i])
        excess += growth
        size += abs(growth)
        first += masses[i] * math.exp(theta * differences[i]) * differences[i]
    total = 1.0 + excess
    mean = first / total
    second = law.base_mass * mean * mean  # about the mean: nothing cancels
    for i in range(masses.size):
        weight = masses[i] * math.exp(theta * differences[i])
        second += weight * (differences[i] - mean) ** 2
    return math.log1p(excess), mean, second / total, size / total


@njit
def saddle_point(law: Terms, largest: float) -> float:
    """Return roughly the theta > 0 that minimises the integrand's modulus, at most ``largest``.

    The root of n kappa'(theta) = 2 / theta, by Newton steps and bisection on a logarithmic scale in
    turn: a Newton step from too far out gets nowhere.
    """
    low, high = 0.0, largest
    _, mean, variance, _ = tilted_moments(law, 0.0)
    deviation = math.sqrt(law.number * variance)
    theta = 1.5 / deviation if deviation * largest > 1.5 else largest
    for turn in range(400):
        _, mean, variance, _ = tilted_moments(law, theta)
        slope = law.number * (law.base + mean) - 2.0 / theta
        if slope > 0.0:
            high = theta
        else:
            low = theta
            if theta >= largest:
                return largest
        following = theta - slope / max(law.number * variance + 2.0 / (theta * theta), 1e-300)
        if high <= 1.002 * low:
            return theta
        if turn % 2 == 1 or not low < following < high:
            following = math.sqrt(low) * math.sqrt(high) if low > 0.0 else 0.3 * theta
        theta = min(max(following, 0.1 * theta), largest)
    return theta


@njit
def period_and_aliases(
    law: Terms, smoothing: float, deviation: float, further: float
) -> tuple[float, float]:
    """Return a period T of the trapezoidal sum and a bound on its aliases, over e^(n kappa).

    In units in which theta = 1. With S the sum, smoothed: terms k >= 1 are e^(-k T) E(S + k T)_+
    and at most e^(-k T) (k T + E(S)_+); terms k <= -1 are e^(abs(k) T) E(S - abs(k) T)_+, at most
    exp(n kappa(1 + l) - abs(k) l T) / (e (1 + l)) for any l > 0, by x_+ <= e^(a x) / (e a).
    """
    log_moment, _, _, _ = tilted_moments(law, 1.0)
    log_scale = law.number * (log_moment + law.base) + 0.5 * smoothing**2
    log_answer = -math.log(deviation + 1.0) - 1.0
    tilt = 1.0 + further
    log_further, _, _, _ = tilted_moments(law, tilt)
    log_above = law.number * (log_further + tilt * law.base) + 0.5 * (smoothing * tilt) ** 2
    log_above -= log_scale + 1.0 + math.log(tilt)
    # E(S)_+ <= e^(n kappa) / e
    period = 12.0 * deviation
    right, left = 0.0, 0.0
    for _ in range(400):
        right = max(math.log(2.0 * period) - log_scale, math.log(2.0) - 1.0) - period
        left = log_above - further * period
        if max(left, right) <= log_answer - _ALIAS_EXPONENT:
            break
        period *= 1.15
    return period, 1.3 * (math.exp(min(right, 700.0)) + math.exp(min(left, 700.0)))


@njit
def seen(law: Terms) -> tuple[Terms, float]:
    """Return the law of the values that matter, and the mass of others, which count as the base."""
    weights, differences = law.masses, law.differences
    # No sorting, which takes seconds to compile: one threshold, low enough for all values together.
    most, heaviest = _UNSEEN / (law.number * weights.size), 0
    for i in range(weights.size):
        if weights[i] > weights[heaviest]:
            heaviest = i
    num_kept, unseen = 0, 0.0
    kept_weights, kept_differences = np.empty(weights.size), np.empty(weights.size)
    for i in range(weights.size):
        if weights[i] > most or i == heaviest:
            kept_weights[num_kept], kept_differences[num_kept] = weights[i], differences[i]
            num_kept += 1
        else:
            unseen += weights[i]
    kept = kept_weights[:num_kept], kept_differences[:num_kept]
    return Terms(law.number, law.base, law.base_mass, *kept), unseen * (1.0 + 1e-12)


class Grid(NamedTuple):
    """The trapezoidal sum: nodes up to ``near`` and from ``first_far`` to ``last_far`` matter."""

    smoothing: float
    near: float
    first_far: float
    last_far: float
    period: float
    aliases: float  # upper bound on their sum


@njit
def contour_sum(
    law: Terms, grid: Grid, deviation: float, unseen: float
) -> tuple[float, float, float, float]:
    """Return the sums for 1 / z^2 and for 1 over e^(n kappa(1)), and the error of each.

    ``law`` is the tilted law and ``deviation`` the standard deviation of one of its terms: its
    characteristic function changes in modulus by no more than that per unit of t, so where the
    modulus is far enough below 1, many nodes can be passed over at once. Values of mass ``unseen``
    were left out: they move the characteristic function by at most twice that.
    """
    num_terms, base, weights, differences = law.number, law.base, law.masses, law.differences
    step, smoothing = 2.0 * math.pi / grid.period, grid.smoothing
    # A modulus below this has an n-th power below exp(-46), also with the values left out.
    highest = 1.0 - _NEGLIGIBLE_EXPONENT / num_terms - 2.0 * unseen
    spread, square_spread = abs(base), 0.0
    for i in range(weights.size):
        spread += weights[i] * abs(differences[i])
        square_spread += weights[i] * differences[i] ** 2
    total, density, total_error, density_error = 0.0, 0.0, 0.0, 0.0
    total_size, density_size, num_added = 0.0, 0.0, 0.0
    node = 0.0
    while True:
        t = node * step
        if grid.near < t < grid.first_far:
            node = np.ceil(grid.first_far / step)  # a float: math.ceil's int64 may overflow
            t = node * step
        if t > grid.last_far:
            break
        node += 1.0
        real, imaginary = 0.0, 0.0  # of the tilted characteristic function, minus 1
        for i in range(weights.size):
            half = 0.5 * t * differences[i]
            sine = math.sin(half)
            real -= 2.0 * weights[i] * sine * sine
            imaginary += 2.0 * weights[i] * sine * math.cos(half)
        square = 2.0 * real + real * real + imaginary * imaginary
        gap = highest - math.sqrt(max(1.0 + square, 0.0))
        if gap > 0.0:
            node += min(np.floor(0.999999 * gap / (deviation * step)), 1e15)
            continue
        norm = 1.0 + t * t
        if 1.0 + square < 1e-9:  # only where there are few terms: too close to 0 for a logarithm
            modulus = 2.0 * math.exp(0.5 * num_terms * math.log(2e-9))
            total_error += modulus / norm / _UNIT_ROUND_OFF
            density_error += modulus / _UNIT_ROUND_OFF
            continue
        log_modulus = 0.5 * num_terms * math.log1p(square) - 0.5 * (smoothing * t) ** 2
        phase = num_terms * (t * base + math.atan2(imaginary, 1.0 + real))
        phase += smoothing * smoothing * t
        modulus = math.exp(log_modulus) * (1.0 if t == 0.0 else 2.0)
        cosine, sine = modulus * math.cos(phase), modulus * math.sin(phase)
        # 1 / z^2 = conj(z)^2 / abs(z)^4
        total += (cosine * (1.0 - t * t) + sine * 2.0 * t) / norm / norm
        density += cosine
        total_size += modulus / norm
        density_size += modulus
        num_added += 1.0
        error = (8.0 + weights.size) * num_terms * t * (spread + t * square_spread)
        error = 64.0 + (error + 2.1 * num_terms * unseen / _UNIT_ROUND_OFF) / (1.0 + square)
        total_error += modulus / norm * error
        density_error += modulus * error
    total_error += num_added * total_size
    density_error += num_added * density_size
    return total, density, total_error * _UNIT_ROUND_OFF, density_error * _UNIT_ROUND_OFF


@njit
def quadrature(
    law: Terms, width: float, most_nodes: float, variance: float, further: float
) -> Grid:
    """Return the nodes, in units in which theta = 1; ``variance`` is for one tilted term."""
    span = max(law.differences.max(), 0.0) - min(law.differences.min(), 0.0)
    deviation = math.sqrt(law.number * variance + 1.0)
    # As 1 - cos x >= 2 (x/pi)^2 up to x = pi, the modulus falls like exp(-2 n variance (t/pi)^2)
    # up to t = pi / span. Smoothing that leaves nothing beyond that needs few nodes; otherwise the
    # modulus may come back to 1 any number of times, and all of the line must be searched.
    near = math.pi * math.sqrt(0.5 * _NEGLIGIBLE_EXPONENT / (law.number * variance))
    first_far, last_far = math.pi / span, 0.0
    smoothing = _FREQUENCY * span / math.pi
    finest = math.sqrt(width) * deviation
    if smoothing > finest or near > first_far:
        smoothing = finest
        near = min(near, first_far)
        last_far = math.inf
    for _ in range(2):
        period, _ = period_and_aliases(law, smoothing, deviation, further)
        # No finer than the number of nodes allows.
        smoothing = max(smoothing, _FREQUENCY * period / (2.0 * math.pi * most_nodes))
    period, aliases = period_and_aliases(law, smoothing, deviation, further)
    near = min(near, _FREQUENCY / smoothing)
    last_far = max(min(last_far, _FREQUENCY / smoothing), near)
    return Grid(smoothing, near, first_far, last_far, period, aliases)


@njit
def enclose_positive_part(
    law: Terms, width: float, most_nodes: float, log_unit: float
) -> tuple[float, float]:
    """Return lower and upper ends of E[(n base + D_1 + ... + D_n)_+] / n times e^log_unit.

    At least one difference is not 0, all are within [-2, 2], and base plus the largest of them is
    above 0.
    """
    num_terms, largest = law.number, max(law.differences.max(), 0.0)
    most = min(_LARGEST_TILT_EXPONENT / (largest if largest > 0.0 else law.base), 1e150)
    theta = saddle_point(law, most)
    further = _LARGEST_FURTHER_EXPONENT
    if largest > 0.0:
        further = _LARGEST_FURTHER_EXPONENT / (theta * largest)
    # From here on in units in which theta = 1.
    base, differences = theta * law.base, theta * law.differences
    law = Terms(num_terms, base, law.base_mass, law.masses, differences)
    log_moment, _, variance, size = tilted_moments(law, 1.0)
    variance = max(variance, 1e-200)
    relative = (16.0 + differences.size) * _UNIT_ROUND_OFF * (1.0 + num_terms * (size + abs(base)))
    exponent = num_terms * (log_moment + base)
    # E[S_+] <= e^(n kappa(theta)) / (e theta)
    log_factor = log_unit - math.log(theta) - math.log(num_terms)
    relative += 4.0 * _UNIT_ROUND_OFF * (abs(exponent) + abs(log_factor))
    log_chernoff = exponent + log_factor - 1.0 + relative
    if log_chernoff < _LOG_SMALLEST:
        return 0.0, 0.0
    deviation = math.sqrt(num_terms * variance + 1.0)
    grid = quadrature(law, width, most_nodes, variance, min(7.0 / deviation, further))
    step = 2.0 * math.pi / grid.period
    if not grid.last_far <= _HOPELESS * most_nodes * step:  # NaN fails too
        return 0.0, math.exp(min(log_chernoff, 700.0))
    weights = law.masses * np.exp(differences - log_moment)
    tilted, unseen = seen(Terms(num_terms, base, law.base_mass, weights, differences))
    sums = contour_sum(tilted, grid, math.sqrt(variance), unseen)
    total, density, total_error, density_error = sums
    # Nodes passed over and beyond the last, on both sides: below e^-46 each, times 1 / abs(z)^2.
    left_out = 2.0 * math.exp(-_NEGLIGIBLE_EXPONENT)
    total_error += left_out * (1.0 + math.pi / step)
    density_error += left_out * (1.0 + 2.0 * _FREQUENCY / (grid.smoothing * step))
    per_node, square = step / (2.0 * math.pi), grid.smoothing**2
    upper = per_node * total
    lower = upper - per_node * square * (density + density_error) - grid.aliases
    upper += per_node * total_error
    lower -= per_node * total_error
    log_factor += exponent + 0.5 * square
    relative += 4.0 * _UNIT_ROUND_OFF * square
    return in_units(lower, upper, log_factor, relative, log_chernoff)


@njit
def in_units(
    lower: float, upper: float, log_factor: float, relative: float, log_chernoff: float
) -> tuple[float, float]:
    """Return both ends times e^log_factor, widened by their relative error; Chernoff's at most."""
    if not (relative < 0.5 and upper > 0.0):
        return 0.0, math.exp(min(log_chernoff, 700.0))  # round-off dominates
    upper = math.exp(min(math.log(upper) + log_factor + 2.0 * relative, log_chernoff))
    if lower <= 0.0:
        return 0.0, upper
    return math.exp(math.log(lower) + log_factor - 2.0 * relative), upper


# Part left out, relative to the sum: for each of at most 3e5 rows, and at either end of a row.
_NEGLIGIBLE = 1e-24


@njit
def log_products(first: float, step: float, most: int) -> np.ndarray:
    """Return ln of the products of 0 to ``most`` numbers from ``first`` on, by Kahan's sum."""
    sums, carried = np.zeros(most + 1), 0.0  # rounding error of the sum so far
    for j in range(most):
        term = math.log(first + j * step) - carried
        sums[j + 1] = sums[j] + term
        carried = (sums[j + 1] - sums[j]) - term
    return sums


@njit
def row_range(value: float, spread: float, step: float, room: float) -> tuple[float, float]:
    """Return the first and last count of a row at which the value may be above 0."""
    doubt = 2e-12 * (spread + room * abs(step))
    if step == 0.0:
        return 0.0, (room if value > -doubt else -1.0)
    if step > 0.0:
        return np.floor(min(max((-doubt - value) / step, 0.0), room + 1.0)), room
    return 0.0, np.ceil(min(max((value + doubt) / -step, -1.0), room))


@njit
def next_row(counts: np.ndarray, used: int, most: int) -> int:
    """Advance all counts but the first to the next row, as an odometer; return their sum, or -1."""
    i = 1
    while i < counts.size and used == most:
        used -= counts[i]
        counts[i] = 0
        i += 1
    if i >= counts.size:
        return -1
    counts[i] += 1
    return used + 1


@njit
def row_sum(
    start: float,
    last: float,
    num_terms: float,
    odds: float,
    mass: float,
    base_value: float,
    base_spread: float,
    step: float,
    sums: tuple[float, float, float],
) -> tuple[float, float, float]:
    """Return the sums plus the outcomes from ``start`` to ``last``: mean, and size of its terms.

    The third is the length of the longest row. ``mass`` is the probability at ``start``, ``odds``
    the ratio of the first value's probability to the base's.
    """
    total, size, longest = sums
    count, direction = start, 1.0 if start <= last else -1.0
    while True:
        value, spread = base_value + count * step, base_spread + count * abs(step)
        if value > -1e-12 * spread:
            total += mass * max(value, 0.0)
            size += mass * spread
        if count == last:
            break
        if direction > 0.0:
            ratio = (num_terms - count) / (count + 1.0) * odds
        else:
            ratio = count / ((num_terms - count + 1.0) * odds)
        # Ratios fall, so masses stay below a geometric series from here on; values grow by steps.
        left = 1.0 - ratio
        rest = mass * (max(value, 0.0) * left + abs(step))
        if left > 0.0 and rest <= _NEGLIGIBLE * total * left * left:
            break
        mass *= ratio
        count += direction
    return total, size, max(longest, abs(count - start))


@njit
def enumerate_positive_part(law: Terms, most: int, log_unit: float) -> tuple[float, float, float]:
    """Return the mean times e^log_unit, by listing the counts of all values, and its terms' size.

    At most ``most`` terms are neither the base nor the first value. The last number is the largest
    exponent's size: a mass is off by at most ten roundings of that. Cost: for m values beside the
    base, binomial(most + m - 1, m - 1) rows, and O(sqrt(n)) outcomes of each that matters.
    """
    num_terms, base, base_mass, masses, differences = law
    # ln of j! and of n (n - 1) ... (n - j + 1).
    log_factorial = log_products(1.0, 1.0, most)
    log_falling = log_products(num_terms, -1.0, most)
    log_masses = np.log(masses)
    rare = masses[1:].sum()
    log_frequent = math.log1p(-rare) if rare < 1.0 else -math.inf
    share, base_share = masses[0] / (masses[0] + base_mass), base_mass / (masses[0] + base_mass)
    odds = masses[0] / base_mass if base_mass > 0.0 else math.inf
    step = differences[0]
    counts = np.zeros(masses.size, np.int64)
    sums = 0.0, 0.0, 0.0
    largest, used = log_unit, 0
    while True:
        room = num_terms - used
        of_frequent = room * log_frequent if room > 0.0 else 0.0
        log_row, exponent = log_falling[used] + of_frequent, log_falling[used] - of_frequent
        value, spread = num_terms * base, num_terms * abs(base)
        for i in range(1, masses.size):
            logarithm = counts[i] * log_masses[i] - log_factorial[counts[i]]
            log_row, exponent = log_row + logarithm, exponent - logarithm
            value += counts[i] * differences[i]
            spread += counts[i] * abs(differences[i])
        first, last = room, room  # where there is no base
        if base_mass > 0.0:
            first, last = row_range(value, spread, step, room)
        if first <= last:
            start = np.floor(min(max((room + 1.0) * share, first), last))
            of_peak = log_binomial_pmf(room, start, share, base_share)
            peak = math.exp(log_unit + log_row + of_peak)
            highest = max(value + first * step, value + last * step)
            highest += 1e-12 * (spread + last * abs(step))
            before = sums[0]
            if peak * (last - first + 1.0) * highest >= _NEGLIGIBLE * before:
                sums = row_sum(start, last, room, odds, peak, value, spread, step, sums)
                if start > first:
                    mass = peak * start / ((room - start + 1.0) * odds)
                    sums = row_sum(start - 1.0, first, room, odds, mass, value, spread, step, sums)
                # The row's mean is off by three roundings, so ln mass by three of the distance.
                exponent += 0.3 * abs(start - room * share) - of_peak
                if sums[0] > before:
                    largest = max(largest, log_unit + exponent)
        used = next_row(counts, used, most)
        if used < 0:
            break
    # From outcome to outcome of a row a mass takes on seven roundings.
    return sums[0] / num_terms, sums[1] / num_terms, largest + 0.7 * sums[2]
