"""How probably k-ary randomized response turns one histogram into another: a closed form.

A report is kept with probability d = p - r and else, with probability k r, drawn uniformly. If N_v
of the a_v users with value v are kept, the others make up the difference to b in B!/prod (b_v -
N_v)! ways, B = n - sum N_v. So the probability is

    sum over N of r^B B! prod over v of C(a_v, N_v) d^N_v / (b_v - N_v)!.

Source: Jurado et al. 2023, hal-04349295v1, Lemma 30, for two values; the form for any k is ours.
"""

import math
from fractions import Fraction


def histogram_probability(before, after, truth):
    """Return the probability that reports of a data set of one histogram have another."""
    n, k = sum(before), len(before)
    noise = (1 - Fraction(truth)) / (k - 1)
    total = [Fraction(1)]  # by the number of those kept
    for a, b in zip(before, after, strict=True):
        ways = [
            math.comb(a, m) * (truth - noise) ** m / math.factorial(b - m)
            for m in range(min(a, b) + 1)
        ]
        longer = [Fraction(0)] * (len(total) + len(ways) - 1)
        for i, left in enumerate(total):
            for j, right in enumerate(ways):
                longer[i + j] += left * right
        total = longer
    return sum(
        ways * noise ** (n - kept) * math.factorial(n - kept) for kept, ways in enumerate(total)
    )
