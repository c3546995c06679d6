"""Ceilings on the blanket's bound for all pairs of rows at once: which pairs cannot be the worst.

For every lambda > 0, x_+ <= e^(lambda x) / (e lambda), so that with M = E[e^(lambda G)]

    (1/n) E[(G_1 + ... + G_n)_+] <= M^n / (n e lambda).

As e^(a - b) - 1 = (e^a - 1)(e^-b - 1) + (e^a - 1) + (e^-b - 1), M - 1 is, for all ordered pairs of
k rows over m outputs, one product of matrices of k by m and m by k. At some five or ten times the
truth, a ceiling is enough to pass over most pairs of a channel whose rows are not alike.
"""

import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.amplification.channel_rows import UNIT_ROUND_OFF, ChannelRows

# Multiples of the tilt that suits the widest pair.
_TILTS = (0.5, 0.7, 1.0, 1.4, 2.0)

# Largest exponent of a single factor.
_LARGEST_EXPONENT = 300.0

# Outputs at a time, so that temporary arrays stay small.
_COLUMNS = 8192

# What underflow may hide.
_SMALLEST = 1e-307


def ceilings(channel: ChannelRows, num_users: int, epsilon: float) -> NDArray[np.float64]:
    """Return a bound from above on the blanket's bound for every ordered pair of inputs.

    Parameters
    ----------
    channel : ChannelRows
        Of k rows.
    num_users : int
        Number n of users, 1 to 1e15.
    epsilon : float
        In [0, 650].

    Returns
    -------
    (k, k) array
        Entry (i, j) bounds (Z) of `channel_gains` for P = row i and Q = row j; ``inf`` where
        nothing is said; -inf on the diagonal. Rounded up.

    Notes
    -----
    Cost: some ten products of k by m and m by k; O(k^2 m) more where entries are 0.
    """
    crowded = _crowded(channel, num_users, math.exp(epsilon))
    standing_out = _standing_out(channel, math.exp(epsilon))
    with np.errstate(over="ignore"):
        found = np.exp(crowded) * (1.0 + 1e-12) + _SMALLEST + standing_out
    np.fill_diagonal(found, -math.inf)
    return found


def _crowded(channel: ChannelRows, num_users: int, ratio: float) -> NDArray[np.float64]:
    """Return logarithms of ceilings on the first term, the least over some tilts."""
    inside = channel.hidden > 0.0
    size = channel.num_inputs
    least = np.full((size, size), math.inf)
    if not inside.any():
        return np.full((size, size), -math.inf)
    relative = channel.rows[:, inside] / channel.hidden[inside]
    omega = channel.hidden[inside]
    widest, largest = _widest(relative, omega, ratio), float(relative.max())
    drift = num_users * (ratio - 1.0)
    spread = num_users * widest
    if spread <= 0.0:
        return least
    tilt = (drift + math.sqrt(drift * drift + 4.0 * spread)) / (2.0 * spread)
    for multiple in _TILTS:
        used = min(multiple * tilt, _LARGEST_EXPONENT / (largest * ratio))
        growth, error = _growth(relative, omega, used, ratio)
        exponents = num_users * np.log1p(growth + error) - math.log(num_users * used) - 1.0
        least = np.minimum(least, exponents)
    return least


def _widest(relative: NDArray[np.float64], omega: NDArray[np.float64], ratio: float) -> float:
    """Return about the largest variance of a gain over all pairs."""
    size = relative.shape[0]
    products = np.zeros((size, size))
    for start in range(0, omega.size, _COLUMNS):
        block = relative[:, start : start + _COLUMNS]
        products += (block * omega[start : start + _COLUMNS]) @ block.T
    squares = np.diag(products)
    moments = squares[:, None] + ratio**2 * squares[None, :] - 2.0 * ratio * products
    return max(float(moments.max()) - (ratio - 1.0) ** 2, 0.0)


def _growth(
    relative: NDArray[np.float64], omega: NDArray[np.float64], tilt: float, ratio: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return E[e^(tilt G)] - 1 for all ordered pairs, and how far each may be off."""
    size = relative.shape[0]
    growth, sizes = np.zeros((size, size)), np.zeros((size, size))
    for start in range(0, omega.size, _COLUMNS):
        block, weights = relative[:, start : start + _COLUMNS], omega[start : start + _COLUMNS]
        up = np.expm1(tilt * block) * weights
        down = np.expm1(-tilt * ratio * block)
        products = up @ down.T  # all of one sign
        alone, other = up.sum(axis=1)[:, None], (down @ weights)[None, :]
        growth += products + alone + other
        sizes += alone - other - products
    # An exponent x <= 300 is off by 2 entries' error and 3 roundings, so e^x - 1 by (1 + x) times
    # that; the sums, by one rounding for each output.
    count = omega.size + 64 + 32 * _LARGEST_EXPONENT
    return growth, count * UNIT_ROUND_OFF * sizes


def _standing_out(channel: ChannelRows, ratio: float) -> NDArray[np.float64]:
    """Return the second term for all ordered pairs, rounded up."""
    rows = channel.rows[:, channel.hidden == 0.0]
    total = np.zeros((channel.num_inputs, channel.num_inputs))
    for start in range(0, rows.shape[1], _COLUMNS):
        block = rows[:, start : start + _COLUMNS]
        for number, row in enumerate(block):
            excess = row * (1.0 + 1e-14) - ratio * block * (1.0 - 1e-14)
            total[number] += np.maximum(excess, 0.0).sum(axis=1)
    total *= 1.0 + (rows.shape[1] + 16) * UNIT_ROUND_OFF
    return total
