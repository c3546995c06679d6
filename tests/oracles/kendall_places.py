"""The law of each place under Kendall's Mallows model.

Write q = e^-theta, [m] = (1 - q^m) / (1 - q), [m]! = [1] [2] ... [m], and [a, b] for the Gaussian
binomial [a]! / ([b]! [a - b]!), which is the sum of q^inversions over words of b and a - b equal
letters. Let l of the i earlier places hold larger items than place i, and r of the n - 1 - i later
places smaller ones; then pi[i] = i - l + r =: a. The inversions are: r + l with place i; l r
between the l and the r places; inversions of the word marking places that hold small items, before
i (weight [i, l]) and after it ([n - 1 - i, r]); and those among the a small items and among the
n - 1 - a large ones ([a]! and [n - 1 - a]!). So

    P(r, l) = q^(r + l + r l) [i, l] [n - 1 - i, r] [a]! [n - 1 - a]! / [n]!.
"""

import math

import numpy as np

TAIL_EXPONENT = 50.0  # a truncated geometric variate exceeds 50 / theta with probability < 2e-22


def displacement_law(num_items, theta, place):
    """Return consecutive displacements pi[place] - place and their probabilities."""
    n = num_items
    if theta == 0.0:
        return np.arange(-place, n - place), np.full(n, 1.0 / n)
    width = int(min(TAIL_EXPONENT / theta, 2**32)) + 1
    most_left, most_right = min(place, width), min(n - 1 - place, width)
    factorials = _log_q_factorials(n, theta)
    before, after = place, n - 1 - place
    r = np.arange(most_right + 1)
    after_words = factorials[after] - factorials[r] - factorials[after - r]
    probabilities = np.zeros(most_left + most_right + 1)
    for left in range(most_left + 1):
        item = place - left + r
        before_words = factorials[before] - factorials[left] - factorials[before - left]
        others = factorials[item] + factorials[n - 1 - item] - factorials[n]
        start = most_left - left
        probabilities[start : start + r.size] += np.exp(
            before_words + after_words + others - min(theta, 1e6) * (r + left + r * left)
        )
    return np.arange(-most_left, most_right + 1), probabilities


def place_law(num_items, theta, place):
    """Return the probability of each item at a place."""
    displacements, probabilities = displacement_law(num_items, theta, place)
    table = np.zeros(num_items)
    table[displacements + place] = probabilities
    return table


def _log_q_factorials(num_items, theta):
    """Return ln [m]! for m = 0, ..., n, theta > 0."""
    m = np.arange(1, num_items + 1, dtype=np.float64)
    shares = np.expm1(-min(theta, 1e6) * (m - 1.0)) / math.expm1(-theta)
    logs = np.zeros(num_items + 1)
    np.cumsum(np.log1p(math.exp(-theta) * shares), out=logs[1:])
    return logs
