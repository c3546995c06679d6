"""An oracle: how often the best guess is right, by listing all reports in exact fractions."""

import itertools
from fractions import Fraction


def histogram(reports, num_outcomes):
    """Return how often each report occurs."""
    return tuple(reports.count(y) for y in range(num_outcomes))


def others_law(laws, num_outcomes):
    """Return the law of the histogram of independent reports, by listing all of them."""
    found = {}
    for reports in itertools.product(range(num_outcomes), repeat=len(laws)):
        chance = Fraction(1)
        for law, y in zip(laws, reports, strict=True):
            chance *= law[y]
        key = histogram(reports, num_outcomes)
        found[key] = found.get(key, 0) + chance
    return found


def informed_guess(prior, channel, laws):
    """Return V for others with these laws: a sum over histograms of the best joint chance."""
    num_outcomes = len(channel[0])
    joint = {}
    for seen, chance in others_law(laws, num_outcomes).items():
        for x, y in itertools.product(range(len(prior)), range(num_outcomes)):
            key = tuple(count + (y == each) for each, count in enumerate(seen))
            chances = joint.setdefault(key, [Fraction(0)] * len(prior))
            chances[x] += prior[x] * channel[x][y] * chance
    return sum(max(chances) for chances in joint.values())


def known_laws(channel, counts):
    """Return the laws of the reports of others with these counts of values."""
    return [channel[v] for v, count in enumerate(counts) for _ in range(count)]


def mixed_law(prior, channel):
    """Return the law of the report of a value with this prior."""
    return [
        sum(q * row[y] for q, row in zip(prior, channel, strict=True))
        for y in range(len(channel[0]))
    ]


def uniform(size):
    """Return the uniform law."""
    return [Fraction(1, size)] * size


def all_counts(total, parts):
    """Return all tuples of ``parts`` non-negative whole numbers with this sum."""
    return [
        counts
        for counts in itertools.product(range(total + 1), repeat=parts)
        if sum(counts) == total
    ]
