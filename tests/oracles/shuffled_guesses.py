"""What the best guess of shuffled values gains, by listing all data and all reports in fractions.

Nothing here knows a multinomial coefficient: histograms are built up one user at a time.
"""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import product


def k_rr(domain_size, truth):
    """Rows of k-ary randomized response."""
    lie = (1 - truth) / (domain_size - 1)
    return [[truth if x == y else lie for y in range(domain_size)] for x in range(domain_size)]


def identity(domain_size):
    """Rows of the channel that says the truth."""
    return k_rr(domain_size, Fraction(1))


def random_rows(generator, num_rows, num_columns, *, zeros=True):
    """Rows of small fractions, some of them 0."""
    weights = generator.integers(0 if zeros else 1, 5, (num_rows, num_columns))
    for row in weights:
        row[int(generator.integers(num_columns))] += 1
    return [[Fraction(int(entry), int(row.sum())) for entry in row] for row in weights]


def _with_report(law, row):
    """The law of a histogram with one more report."""
    longer = defaultdict(Fraction)
    for histogram, mass in law.items():
        for y, chance in enumerate(row):
            if chance:
                longer[(*histogram[:y], histogram[y] + 1, *histogram[y + 1 :])] += mass * chance
    return longer


def histogram_law(rows):
    """The law of the histogram of independent reports, one from each row."""
    law = {(0,) * len(rows[0]): Fraction(1)}
    for row in rows:
        law = _with_report(law, row)
    return law


def one_target(num_users, channel, prior, crowd=None):
    """Success with one target; the others' reports have the law ``crowd``, or are like it."""
    domain_size, num_outcomes = len(channel), len(channel[0])
    best = defaultdict(lambda: [Fraction(0)] * domain_size)
    if crowd is not None:
        others = [([crowd] * (num_users - 1), Fraction(1))]
    else:
        others = [
            ([channel[x] for x in values], math.prod((prior[x] for x in values), start=Fraction(1)))
            for values in product(range(domain_size), repeat=num_users - 1)
        ]
    start = (0,) * num_outcomes
    for rows, chance in others:
        known = histogram_law(rows) if rows else {start: Fraction(1)}
        for x in range(domain_size):
            for histogram, mass in _with_report(known, channel[x]).items():
                best[histogram][x] += chance * prior[x] * mass
    return sum(max(joint) for joint in best.values())


def several_targets(num_users, channel, prior, num_targets):
    """Best gains of one guess of several targets: all right, any right, expected number right."""
    values = range(len(channel))
    joint = defaultdict(lambda: defaultdict(Fraction))
    for data in product(values, repeat=num_users):
        chance = math.prod((prior[x] for x in data), start=Fraction(1))
        for histogram, mass in histogram_law([channel[x] for x in data]).items():
            joint[histogram][data[:num_targets]] += chance * mass
    gains = {"all": Fraction(0), "any": Fraction(0), "expected": Fraction(0)}
    for law in joint.values():
        right = {}
        for guess in product(values, repeat=num_targets):
            hits = [(sum(map(int.__eq__, guess, truth)), mass) for truth, mass in law.items()]
            right[guess] = (
                sum(mass for count, mass in hits if count == num_targets),
                sum(mass for count, mass in hits if count),
                sum(count * mass for count, mass in hits),
            )
        for place, name in enumerate(gains):
            gains[name] += max(gain[place] for gain in right.values())
    return gains
