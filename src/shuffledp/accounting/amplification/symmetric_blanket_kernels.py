"""The double sum behind every symmetric blanket law, compiled. See `symmetric_blanket`."""

import math

import numpy as np
from numba import njit

from shuffledp.core.numerics.binomial_kernels import (
    binomial_blocks,
    binomial_pmf,
    binomial_window,
    fair_tail_ratio,
)

# What `fair_tail` remembers: coins, heads, Pr[Bin = heads], Pr[Bin >= heads], steps since the tail
# was last computed afresh, and its value then.
TailState = tuple[float, float, float, float, float, float]
NO_TAIL = (-1.0, 0.0, 0.0, 0.0, 0.0, 0.0)

# gain, loss, slope and pair weight of `positive_part`.
Rates = tuple[float, float, float, float]

# A tail is carried on for so many steps before it is computed afresh, and so many at once.
_STEPS_PER_ANCHOR = 256.0
_STEPS_AT_ONCE = 64.0

# Below this, probabilities have lost digits to underflow and are not carried on.
_UNDERFLOW = 1e-280


@njit(cache=True, nogil=True)
def fair_tail(coins: float, heads: float, state: TailState) -> TailState:
    """Return the state whose tail is Pr[Bin(coins, 1/2) >= heads], from a state near by if it can.

    One more coin, or one head less, adds a positive term; one head more takes one away. As long as
    the tail stays above half of what it was when computed afresh, the steps lose at most 256 * 2
    roundings, 2e-13 in all; otherwise, or from afar, it is computed afresh.
    """
    size, position, pmf, tail, steps, anchor = state
    distance = abs(coins - size) + abs(heads - position)
    if (
        coins >= size >= 0.0
        and pmf >= _UNDERFLOW
        and distance <= _STEPS_AT_ONCE
        and steps + distance <= _STEPS_PER_ANCHOR
    ):
        while size < coins:
            tail += 0.5 * pmf * position / (size - position + 1.0)
            size += 1.0
            pmf *= 0.5 * size / (size - position)
        while position > heads:
            pmf *= position / (size - position + 1.0)
            tail += pmf
            position -= 1.0
        while position < heads:
            tail -= pmf
            pmf *= (size - position) / (position + 1.0)
            position += 1.0
        if tail >= 0.5 * anchor:
            return size, position, pmf, tail, steps + distance, anchor
    pmf = binomial_pmf(coins, heads, 0.5, 0.5)
    tail = pmf * fair_tail_ratio(coins, heads)
    return coins, heads, pmf, tail, 0.0, tail


@njit(cache=True, nogil=True)
def positive_part(
    walk: float, rest: float, rates: Rates, state: TailState
) -> tuple[float, float, TailState]:
    """Return E[(V)_+], the size of the terms that cancel in it, and the state of `fair_tail`."""
    gain, loss, slope, pair_weight = rates
    everything = gain * walk
    burden = slope * rest
    size = everything + abs(burden)
    if walk < 1.0 or size == 0.0:
        return 0.0, 0.0, state
    best = everything - burden
    if best <= 0.0:
        # Zero, unless rounding made it so.
        close = best > -1e-12 * size
        return 0.0, (size * 0.5**walk if close else 0.0), state
    heads = min(math.floor((loss * walk + burden) / (gain + loss)) + 1.0, walk)
    heads = max(heads, 1.0)
    if walk == 1.0:
        return 0.5 * best, 0.5 * size, state
    if heads == walk:
        all_heads = 0.5**walk
        return all_heads * best, all_heads * size, state
    state = fair_tail(walk - 1.0, heads, state)
    # Pr[Bin(L) = m] m / L = Pr[Bin(L-1) = m-1] / 2 = Pr[Bin(L-1) = m] m / (L - m) / 2
    first = 0.5 * state[2] * heads / (walk - heads)
    weight = slope * (pair_weight * walk + rest)
    return max(first * best - weight * state[3], 0.0), first * size + weight * state[3], state


@njit(cache=True, nogil=True)
def rest_laws(
    num_users: float,
    rest_probability: float,
    rest_complement: float,
    boundaries: np.ndarray,
    tail_exponent: float,
    max_blocks: int,
    most_outcomes: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return blocks of Z ~ Bin(num_users - b, rest_probability) for each b of ``boundaries``.

    ``rest_complement`` is 1 - rest_probability. A law with more than ``most_outcomes`` in its
    window is one block, with the mass and the mean of all of it (docs/results/kernel.md).

    Flattened: law j owns blocks offsets[j] .. offsets[j+1] - 1; every law ends with one extra
    start, so its starts begin at offsets[j] + j.
    """
    offsets = np.zeros(boundaries.size + 1, np.int64)
    capacity = boundaries.size * max_blocks
    starts = np.empty(capacity + boundaries.size)
    masses = np.empty(capacity)
    means = np.empty(capacity)
    for j in range(boundaries.size):
        remaining = num_users - boundaries[j]
        first, last = binomial_window(remaining, rest_probability, rest_complement, tail_exponent)
        if last - first >= most_outcomes:
            law_starts = np.array([first, last + 1.0])
            law_masses, law_means = np.ones(1), np.array([remaining * rest_probability])
        else:
            law_starts, law_masses, law_means = binomial_blocks(
                remaining, rest_probability, rest_complement, first, last, max_blocks
            )
        begin = offsets[j]
        end = begin + law_masses.size
        for i in range(law_masses.size):  # assigning slices takes seconds to compile
            starts[begin + j + i] = law_starts[i]
            masses[begin + i], means[begin + i] = law_masses[i], law_means[i]
        starts[end + j] = law_starts[-1]
        offsets[j + 1] = end
    return (
        offsets,
        starts[: offsets[-1] + boundaries.size],
        masses[: offsets[-1]],
        means[: offsets[-1]],
    )


@njit(cache=True, nogil=True)
def mean_weight_sum(
    walk: float,
    rest: float,
    rest_weight: float,
    means: np.ndarray,
    masses: np.ndarray,
    rates: Rates,
    state: TailState,
) -> tuple[float, float, TailState]:
    """Return the sum of masses * E[(V)_+] at the weights ``rest + rest_weight * means``.

    With the size of its terms and the tail state of the heaviest weight. Weights ascend and are
    visited in descending order, so that tails are carried downwards.
    """
    total = 0.0
    size = 0.0
    heaviest = state
    for j in range(masses.size - 1, -1, -1):
        value, terms, state = positive_part(walk, rest + rest_weight * means[j], rates, state)
        if j == masses.size - 1:
            heaviest = state
        total += masses[j] * value
        size += masses[j] * terms
    return total, size, heaviest


@njit(cache=True, nogil=True)
def end_weights_sum(
    walk: float,
    low_rest: float,
    mean_rest: float,
    high_rest: float,
    rest_weight: float,
    starts: np.ndarray,
    means: np.ndarray,
    masses: np.ndarray,
    rates: Rates,
    state: TailState,
) -> tuple[float, float, TailState]:
    """Return the same sum with each weight spread, keeping its mean, onto the ends of its cell."""
    total = 0.0
    size = 0.0
    heaviest = state
    for j in range(masses.size - 1, -1, -1):
        high = high_rest + rest_weight * (starts[j + 1] - 1.0)
        low = low_rest + rest_weight * starts[j]
        at_high, terms, state = positive_part(walk, high, rates, state)
        if j == masses.size - 1:
            heaviest = state
        total += masses[j] * at_high
        if high > low:
            at_low, terms, state = positive_part(walk, low, rates, state)
            middle = mean_rest + rest_weight * means[j]
            share = min(max((high - middle) / (high - low), 0.0), 1.0)
            total += masses[j] * share * (at_low - at_high)
        size += masses[j] * terms
    return total, size, heaviest


@njit(cache=True, nogil=True)
def enclose_expectation(
    rates: Rates,
    base_weight: float,
    rest_weight: float,
    num_users: float,
    pair_starts: np.ndarray,
    pair_masses: np.ndarray,
    pair_means: np.ndarray,
    law_of_block: np.ndarray,
    boundaries: np.ndarray,
    offsets: np.ndarray,
    rest_starts: np.ndarray,
    rest_masses: np.ndarray,
    rest_means: np.ndarray,
    rest_probability: float,
    rest_tail: float,
) -> tuple[float, float, float, float]:
    """Return lower and upper sums for E[(V)_+], the part for tails, and the size of all terms.

    Beside B pair reports, Z others weigh rest_weight *more* than the base weight of the remaining
    n - B - Z. Z given B is Bin(n - B, rest_probability): the tabulated law of a boundary b >= B,
    plus b - B further trials. In a cell of blocks, the lower sum takes the shortest walk and the
    mean weight (Jensen), the upper sum the longest walk and the two end weights with the cell's
    mean (Edmundson and Madansky): walks grow in convex order, and values are convex in weights.
    The upper sum leaves out Z beyond its window; adding the third number puts that right.
    """
    pair_weight = rates[3]
    lower, upper, tail, size = 0.0, 0.0, 0.0, 0.0
    # Walks lengthen from block to block, so the tail of the heaviest weight is carried over, too.
    below, above, lightest = NO_TAIL, NO_TAIL, NO_TAIL
    for i in range(pair_masses.size):
        shortest, longest = pair_starts[i], pair_starts[i + 1] - 1.0
        law = law_of_block[i]
        first, last = offsets[law], offsets[law + 1]
        starts = rest_starts[first + law : last + law + 1]
        means, masses = rest_means[first:last], rest_masses[first:last]
        # Up to `further` trials are missing from the law; their mean is in the mean weight.
        further = boundaries[law] - shortest
        mean_base = base_weight * (num_users - pair_means[i])
        mean_base += rest_weight * rest_probability * (boundaries[law] - pair_means[i])
        mean_rest = mean_base + pair_weight * (pair_means[i] - shortest)
        cell_lower, terms, below = mean_weight_sum(
            shortest, mean_rest, rest_weight, means, masses, rates, below
        )
        cell_upper = cell_lower
        low_rest = base_weight * (num_users - shortest) + pair_weight * (shortest - longest)
        if shortest < longest or further > 0.0 or starts[1] - starts[0] > 1.0:
            cell_upper, upper_terms, above = end_weights_sum(
                longest,
                low_rest,
                mean_base + pair_weight * (pair_means[i] - longest),
                base_weight * (num_users - longest) + rest_weight * further,
                rest_weight,
                starts,
                means,
                masses,
                rates,
                above,
            )
            terms = max(terms, upper_terms)
        if rest_tail > 0.0:
            # Z beyond its window, on either side, is worth at most what Z = 0 is; and a law of one
            # block has the mean of all Z, which moves its chord by less than once more.
            at_zero, _, lightest = positive_part(longest, low_rest, rates, lightest)
            tail += pair_masses[i] * 3.0 * rest_tail * at_zero
        lower += pair_masses[i] * cell_lower
        upper += pair_masses[i] * cell_upper
        size += pair_masses[i] * terms
    return lower, upper, tail, size
