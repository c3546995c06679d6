"""The fullest bin without contours: in whole numbers, from all histograms, and by convolution."""

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy import stats

from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.leakage.counts.fullest_bin import maximum_load_excess


def num_ways(num_balls: int, num_bins: int, load: int) -> int:
    """Return in how many of k^n ways n balls leave no bin above ``load`` >= 1.

    By the recurrence of `shuffledp.leakage.counts.fullest_bin`, in whole numbers.
    """
    depth = min(num_balls // (load + 1), num_bins)
    below: list[int] = []
    for level in range(depth, -1, -1):
        bins = num_bins - level
        ways = 1
        row = [1]
        choices = 1  # C(s, m), from s = m on
        for s in range(num_balls - level * (load + 1)):
            ways *= bins
            if s >= load:
                ways -= bins * choices * below[s - load]
                choices = choices * (s + 1) // (s + 1 - load)
            row.append(ways)
        below = row
    return below[num_balls]


def exact_maximum_load(num_balls: int, num_bins: int) -> Fraction:
    """Return E[max load] of n balls thrown uniformly into k bins; a second at n = 500.

    >>> exact_maximum_load(3, 3)
    Fraction(17, 9)
    """
    everything = num_bins**num_balls
    least = -(-num_balls // num_bins)
    above = sum(everything - num_ways(num_balls, num_bins, m) for m in range(least, num_balls))
    return least + Fraction(above, everything)


def by_listing(balls, law):
    """Return E[max load] for bins of any law, from all histograms."""
    total = []
    for head in itertools.product(range(balls + 1), repeat=len(law) - 1):
        loads = (*head, balls - sum(head))
        if loads[-1] < 0:
            continue
        chance = float(math.factorial(balls))
        for load, mass in zip(loads, law, strict=True):
            chance *= mass**load / math.factorial(load)
        total.append(chance * max(loads))
    return math.fsum(total)


def by_convolution(balls, law):
    """Return E[max load] of bins of any law of sum at most 1, the other balls falling elsewhere.

    Given that they add up to n, Poisson variables have the law of the counts.
    """
    counts = np.arange(balls + 1)
    masses = [stats.poisson.pmf(counts, balls * chance) for chance in law]
    rest = max(1.0 - math.fsum(law), 0.0)
    elsewhere = stats.poisson.pmf(counts, balls * rest) if rest > 1e-12 else np.eye(1, balls + 1)[0]

    def all_balls(load):
        inside = elsewhere
        for mass in masses:
            inside = np.convolve(inside, np.where(counts <= load, mass, 0.0))[: balls + 1]
        return inside[balls]

    # By the same convolutions, so that errors of the masses cancel.
    whole = all_balls(balls)
    total = 0.0
    for load in range(balls):
        share = all_balls(load) / whole
        total += 1.0 - share
        if share > 1.0 - 1e-13:
            break
    return total


def maximum_load(balls: int, bins: int) -> Enclosure:
    """Return what the package says of the mean of the largest load itself, nearly."""
    excess = maximum_load_excess(balls, bins)
    mean = balls / bins
    return Enclosure(mean + excess.lower, min(mean + excess.upper, balls))
