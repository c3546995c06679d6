"""Algorithms 1 and 2 of arXiv:1811.12469v2 as one would write them down, with the corrected scale.

`simulate_arrays` keeps the state of all users in NumPy arrays and handles one period after another;
`simulate_users` is one user after another in plain Python. Both take changes sorted by period, and
return the running counts by the dyadic cover.
"""

import math
from bisect import bisect_right

import numpy as np


def simulate_arrays(changes, *, num_users, periods, max_changes, epsilon0, entropy):
    """Simulate all users at once, period by period; draw only the signs that are reported."""
    users, times, values = changes
    generator = entropy.generator()
    num_levels = periods.bit_length()
    levels = generator.integers(1, num_levels + 1, num_users)
    chosen = generator.integers(1, max_changes + 1, num_users)
    keep = 1.0 / (1.0 + math.exp(-epsilon0))
    states, told = np.zeros(num_users, dtype=np.int8), np.zeros(num_users, dtype=np.int8)
    num_changes = np.zeros(num_users, dtype=np.int64)
    sums = {}
    ends = np.searchsorted(times, np.arange(periods + 1), side="right")
    for t in range(1, periods + 1):
        new = states.copy()
        new[users[ends[t - 1] : ends[t]]] = values[ends[t - 1] : ends[t]]
        change = new - states
        states = new
        num_changes += change != 0
        told = np.where((change != 0) & (num_changes == chosen), change, told)
        for level in range(1, num_levels + 1):
            if t % 2 ** (level - 1) == 0:
                here = np.flatnonzero(levels == level)
                kept = np.where(generator.random(here.size) < keep, told[here], -told[here])
                coins = 2 * generator.integers(2, size=here.size) - 1
                sums[level, t] = int(np.where(told[here] == 0, coins, kept).sum())
                told[here] = 0
    return running_counts(sums, periods, num_levels * max_changes / (2.0 * keep - 1.0))


def simulate_users(changes, *, num_users, periods, max_changes, epsilon0, entropy):
    """Simulate one user after another, one period after another."""
    histories = [[] for _ in range(num_users)]
    for user, time, value in zip(*(each.tolist() for each in changes), strict=True):
        histories[user].append((time, value))
    generator = entropy.generator()
    num_levels = periods.bit_length()
    keep = 1.0 / (1.0 + math.exp(-epsilon0))
    sums = {}
    for history in histories:
        reports = reports_of(history, periods, max_changes, keep, generator)
        for level, period, sign in reports:
            sums[level, period] = sums.get((level, period), 0) + sign
    return running_counts(sums, periods, num_levels * max_changes / (2.0 * keep - 1.0))


def reports_of(history, periods, max_changes, keep, generator):
    """Yield what one client reports."""
    level = int(generator.integers(1, periods.bit_length() + 1))
    chosen = int(generator.integers(1, max_changes + 1))
    draws = generator.random(periods).tolist()
    times = [time for time, _ in history]
    state, told, num_changes = 0, 0, 0
    for t in range(1, periods + 1):
        place = bisect_right(times, t)
        new = history[place - 1][1] if place else 0
        if new != state:
            num_changes += 1
            if num_changes == chosen:
                told = new - state
            state = new
        if t % 2 ** (level - 1) == 0:
            if told:
                yield level, t, told if draws[t - 1] < keep else -told
                told = 0
            else:
                yield level, t, 1 if draws[t - 1] < 0.5 else -1


def running_counts(sums, periods, scale):
    """Add up the sums of signs at the nodes of each cover."""
    estimates = []
    for t in range(1, periods + 1):
        total, end = 0, t
        while end:
            length = end & -end
            total += sums.get((length.bit_length(), end), 0)
            end -= length
        estimates.append(scale * total)
    return estimates


def ingest(reports):
    """Add reports, tuples of level, period and sign, to a dictionary, one by one."""
    sums = {}
    for level, period, sign in reports:
        sums[level, period] = sums.get((level, period), 0) + sign
    return sums


def ingest_arrays(levels, periods, signs, shape):
    """Add reports to a table of levels and periods, unchecked, and number them."""
    sums, numbers = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    np.add.at(sums, (levels, periods), signs)
    np.add.at(numbers, (levels, periods), 1)
    return sums, numbers
