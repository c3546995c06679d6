"""The mean positive part of a sum of few kinds of terms by listing its outcomes, compiled.

An outcome says how often each value beside the base occurs. Outcomes that differ in the count of
the first value alone are a *row*: their probabilities are a binomial law's times a constant, so
they rise to one mode and fall, ever faster, on both sides. A row is summed from the mode outwards
until the rest of it, which is below a geometric series, is negligible; so a row of n terms costs
O(sqrt(n)), and the first value may be as frequent as it likes.
"""

import math

import numpy as np

from shuffledp.core.compiled import patient_njit
from shuffledp.core.numerics.binomial_kernels import log_binomial_pmf
from shuffledp.core.numerics.terms import Terms

# What is left out, relative to the sum: of at most 3e5 rows each, and of each at either end.
_NEGLIGIBLE = 1e-24


@patient_njit
def log_products(first: float, step: float, most: int) -> np.ndarray:
    """Return ln of the products of 0 to ``most`` numbers from ``first`` on, by Kahan's sum."""
    sums, carried = np.zeros(most + 1), 0.0  # what the sum has lost so far
    for j in range(most):
        term = math.log(first + j * step) - carried
        sums[j + 1] = sums[j] + term
        carried = (sums[j + 1] - sums[j]) - term
    return sums


@patient_njit
def row_range(value: float, spread: float, step: float, room: float) -> tuple[float, float]:
    """Return the first and last count of a row at which the value may be above 0."""
    doubt = 2e-12 * (spread + room * abs(step))
    if step == 0.0:
        return 0.0, (room if value > -doubt else -1.0)
    if step > 0.0:
        return np.floor(min(max((-doubt - value) / step, 0.0), room + 1.0)), room
    return 0.0, np.ceil(min(max((value + doubt) / -step, -1.0), room))


@patient_njit
def next_row(counts: np.ndarray, used: int, most: int) -> int:
    """Turn all counts but the first to the next row's, as an odometer; their sum, or -1."""
    i = 1
    while i < counts.size and used == most:
        used -= counts[i]
        counts[i] = 0
        i += 1
    if i >= counts.size:
        return -1
    counts[i] += 1
    return used + 1


@patient_njit
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
    """Return the sums with the outcomes from ``start`` towards ``last``: mean, its terms' size.

    The third is the length of the longest row. ``mass`` is the probability at ``start``, ``odds``
    are the first value's to the base's.
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


@patient_njit
def enumerate_positive_part(law: Terms, most: int, log_unit: float) -> tuple[float, float, float]:
    """Return the mean times e^log_unit by listing how often each value occurs, and its terms' size.

    At most ``most`` terms are neither the base nor the first value. The last number is the largest
    exponent's size: a mass is off by at most ten roundings of that. Cost: for m values
    beside the base, binomial(most + m - 1, m - 1) rows, and O(sqrt(n)) outcomes of each that
    matters.
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
                # The row's mean is off by three roundings, so ln mass by as many of the distance.
                exponent += 0.3 * abs(start - room * share) - of_peak
                if sums[0] > before:
                    largest = max(largest, log_unit + exponent)
        used = next_row(counts, used, most)
        if used < 0:
            break
    # From outcome to outcome of a row a mass takes on seven roundings.
    return sums[0] / num_terms, sums[1] / num_terms, largest + 0.7 * sums[2]
