"""The mean positive part of a sum of few kinds of terms by listing its outcomes.

An outcome says how often each value beside the base occurs. Outcomes that differ in the count of
the first value alone are a *row*: their probabilities are a binomial law's times a constant, so
they rise to one mode and fall, ever faster, on both sides. A row is summed from the mode outwards
until the rest of it, which is below a geometric series, is negligible; so a row of n terms costs
O(sqrt(n)), and the first value may be as frequent as it likes. All rows take their steps together.

*Error budget.* With u = 2^-53: library functions may be off by eight u of their result, as those of
NumPy may. A probability of m + 1 sums of masses is off by (m + 3) u of itself, so a binomial mass
by 2 (m + 4) u of the distance from its mean; its exponent has some fifteen roundings; a step from
outcome to outcome has seven. `_UNIT` times m + 2, which is at least 27 u, is charged for each unit
of the exponents, for 3/10 of a unit of distance, and for 7/10 of a step. Sums are pairwise: some
forty u, that is two units, which also cover the final exponential.
"""

import functools
import math

import numpy as np

from shuffledp.core.numerics.binomial import Numbers, log_binomial_pmf
from shuffledp.core.numerics.contour import TermLaw

# What is left out, relative to the sum: of at most 3e5 rows each, and of each at either end.
_NEGLIGIBLE = 1e-20

_UNIT = 1e-15

# Outcomes that are looked at together.
_BLOCK = 1 << 13


@functools.lru_cache(maxsize=16)
def _log_factorials(most: int) -> Numbers:
    """Return ln(j!) for j up to ``most``."""
    return np.array([math.lgamma(j + 1.0) for j in range(most + 1)])


def _rare_counts(most: int, shares: Numbers, differences: Numbers) -> Numbers:
    """List how often rare values occur, at most so often in all, shape (5, rows).

    Each row: how often in all, what that adds to the sum, the size of it, the logarithm of the
    multinomial probability given the first but for its factorial, and the size of that.
    """
    logs = _log_factorials(most) if shares.size > 1 else np.zeros(most + 1)
    found = np.zeros((5, 1))
    for log_share, difference in zip(np.log(shares), differences, strict=True):
        choices = most + 1 - found[0].astype(np.int64)
        parents = np.repeat(np.arange(choices.size), choices)
        counts = np.arange(parents.size) - np.repeat(np.cumsum(choices) - choices, choices)
        each = np.array([1.0, difference, abs(difference), log_share, -log_share])
        found = found[:, parents] + each[:, None] * counts
        found[3:] += np.multiply.outer([-1.0, 1.0], logs[counts])
    found[3:] += logs[found[0].astype(np.int64)]
    return found


@np.errstate(all="ignore")
def listed_positive_part(law: TermLaw, most: int, log_unit: float) -> tuple[float, float]:
    """Return E[(G_1 + ... + G_n)_+] times e^log_unit / n by listing outcomes, and its error.

    At most ``most`` terms are neither the base nor the first value. Cost: for m values beside the
    base, binomial(most + m - 1, m - 1) rows, and O(sqrt(n)) outcomes of each that matters.
    """
    num_terms, base, base_mass, masses, differences = law
    rare, frequent, step = math.fsum(masses[1:]), masses[0] + base_mass, differences[0]
    used, value, spread, log_row, size = _rare_counts(most, masses[1:] / rare, differences[1:])
    room = num_terms - used
    value, spread = num_terms * base + value, num_terms * abs(base) + spread
    # Where in a row the value may be above 0.
    share, doubt = masses[0] / frequent, 2e-12 * (spread + room * abs(step))
    first, last = np.zeros_like(room), room
    if base_mass == 0.0:
        first = room
    elif step > 0.0:
        first = np.ceil(np.clip((-doubt - value) / step, 0.0, room + 1.0))
    elif step < 0.0:
        last = np.floor(np.clip((value + doubt) / -step, -1.0, room))
    start = np.floor(np.clip((room + 1.0) * share, first, last))
    in_all = num_terms + 0.0 * room
    of_used, of_start = log_binomial_pmf(
        np.stack([in_all, room]),
        np.stack([used, start]),
        np.array([[rare], [share]]),
        np.array([[frequent], [base_mass / frequent]]),
    )
    off = np.abs(used - num_terms * rare) + np.abs(start - room * share)
    exponent = log_unit + size - of_used - of_start + 0.3 * off
    peak = np.exp(log_unit + log_row + of_used + of_start)
    highest = np.maximum(value + first * step, value + last * step) + doubt
    value, spread = value + start * step, spread + start * abs(step)
    at_least = float(np.where(first <= last, peak * np.maximum(value, 0.0), 0.0).sum())
    most_of_row = np.where(first <= last, peak * (last - first + 1.0) * highest, 0.0)
    rows = np.flatnonzero((most_of_row > 0.0) & (most_of_row >= _NEGLIGIBLE * at_least))
    # Downwards from the mode is upwards in the count of the base.
    down = rows[start[rows] > first[rows]]
    odds, inverse = masses[0] / base_mass if base_mass > 0.0 else 0.0, base_mass / masses[0]
    below = peak * start / (room - start + 1.0) * inverse
    upwards = room, start, last, peak, value, spread, exponent
    downwards = room, room - start + 1.0, room - first, below, value - step, spread, exponent
    parts = np.hstack([np.stack(upwards)[:, rows], np.stack(downwards)[:, down]])
    up = np.arange(parts.shape[1]) < rows.size
    parts = np.vstack([parts, np.where(up, odds, inverse), np.where(up, step, -step)])
    total, error = _row_sums(parts, at_least)
    return total / num_terms, error * _UNIT * (2.0 + masses.size) / num_terms


def _steps_needed(law: Numbers, at_least: float) -> Numbers:
    """Return about how many outcomes of each row matter."""
    room, begin, top, mass, value, _, _, odds, step = law
    exponent = 2.0 * np.log(mass * (np.abs(value) + abs(step)) / (_NEGLIGIBLE * at_least))
    slope = -np.log(np.minimum((room - begin) / (begin + 1.0) * odds, 1.0))
    curvature = (1.0 + odds) ** 2 / (room * odds)
    steps = exponent / (slope + np.sqrt(slope * slope + exponent * curvature))
    needed: Numbers = 8.0 + np.clip(np.nan_to_num(steps), 0.0, top - begin)
    return needed


def _row_sums(law: Numbers, at_least: float) -> tuple[float, float]:
    """Return the mean over the rows' outcomes upwards from where they begin, and its error's size.

    Rows of ``law``: terms, first count and last, mass and value at the first, its size, the size of
    the mass's exponent, the odds of one more, and what it adds to the value.
    """
    total, error = 0.0, 0.0
    needed = _steps_needed(law, at_least)
    order = np.argsort(-needed)
    while order.size:
        width = int(min(needed[order[0]], _BLOCK))
        part, order = np.split(order, [_BLOCK // width])
        rows, offset = law[:, part, None], 0.0
        while rows.size:
            room, begin, top, mass, value, spread, exponent, odds, step = rows
            steps = offset + np.arange(width)
            counts = begin + steps
            ratios = (room - counts) * (counts < top) / (counts + 1.0) * odds
            masses = np.hstack([mass, ratios[:, :-1]]).cumprod(axis=1)
            values = np.maximum(value + steps * step, 0.0)
            gained = masses * values
            sums = gained.sum(axis=1)
            total += sums.sum()
            error += sums @ (8.0 + exponent[:, 0]) + 0.7 * (gained @ steps).sum()
            error += masses.sum(axis=1) @ spread[:, 0] + (masses @ steps) @ abs(step[:, 0])
            # Ratios fall, so masses stay below a geometric series from here on; values grow.
            mass, ratio, highest = masses[:, -1:], ratios[:, -1:], values[:, -1:]
            gap = 1.0 - ratio
            rest = mass * (highest * gap + abs(step))
            goes_on = (gap <= 0.0) | (rest > _NEGLIGIBLE * max(total, at_least) * gap * gap)
            rows[3] = mass * ratio
            rows = rows[:, (goes_on & (ratio > 0.0))[:, 0]]
            offset, width = offset + width, min(2 * width, _BLOCK)
    return float(total), float(error)
