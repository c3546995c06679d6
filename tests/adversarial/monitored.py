"""Longitudinal monitoring gone through by hand: every coin of a client, every view of the analyst.

Written from Algorithms 1 and 2 of Erlingsson et al. (arXiv:1811.12469v2) and from the documentation
alone. Nothing here shares code or formulas with the package: increments are taken from states, laws
by going through all draws.
"""

import itertools
from collections import defaultdict
from fractions import Fraction

import numpy as np


def histories(num_periods, max_changes):
    """All lists of states that change at most so often, counted from a 0 before the first."""
    for states in itertools.product((0, 1), repeat=num_periods):
        changes = sum(now != before for before, now in itertools.pairwise((0, *states)))
        if changes <= max_changes:
            yield states


def levels(num_periods):
    """Lengths of the nodes of each level: powers of two that fit."""
    return [2**height for height in range(num_periods.bit_length())]


def algorithm_1(states, length, kappa):
    """What Algorithm 1 holds in c at the end of each node of one level."""
    kept, seen, pending = [], 0, 0
    for period, (before, now) in enumerate(itertools.pairwise((0, *states)), start=1):
        if now != before:
            seen += 1
            if seen == kappa:
                pending = now - before
        if period % length == 0:
            kept.append(pending)
            pending = 0
    return kept


def increments(states, length):
    """State at the end of each node, less the state before the node."""
    ends = [0, *states[length - 1 :: length]]
    return [after - before for before, after in itertools.pairwise(ends)]


def sampled_change_reports(states, max_changes, keep):
    """Law of (node length, reports) of a client of Algorithm 1; a sign is kept with this chance."""
    lengths = levels(len(states))
    law = defaultdict(Fraction)
    for length in lengths:
        for kappa in range(1, max_changes + 1):
            told = algorithm_1(states, length, kappa)
            for reports in itertools.product((1, -1), repeat=len(told)):
                chance = Fraction(1, len(lengths) * max_changes)
                for sign, report in zip(told, reports, strict=True):
                    chance *= Fraction(1, 2) if sign == 0 else keep if sign == report else 1 - keep
                law[length, reports] += chance
    return law


def predrawn_reports(states, patterns):
    """Law of (node length, reports) of a client whose signs have this law.

    ``patterns`` maps tuples of k signs to their chances.
    """
    lengths = levels(len(states))
    law = defaultdict(Fraction)
    for length in lengths:
        told = increments(states, length)
        blanks = [node for node, sign in enumerate(told) if sign == 0]
        for signs, chance in patterns.items():
            drawn = iter(signs)
            fixed = [sign * next(drawn) if sign else 0 for sign in told]
            for coins in itertools.product((1, -1), repeat=len(blanks)):
                reports = list(fixed)
                for node, coin in zip(blanks, coins, strict=True):
                    reports[node] = coin
                law[length, tuple(reports)] += chance / (len(lengths) * 2 ** len(blanks))
    return law


def views(laws):
    """Law of what the analyst sees: how many reports of either sign each node received."""
    seen = {(): 1.0}
    for law in laws:
        after = defaultdict(float)
        for view, chance in seen.items():
            for (length, reports), weight in law.items():
                counts = dict(view)
                for node, report in enumerate(reports):
                    plus, minus = counts.get((length, node), (0, 0))
                    counts[length, node] = (plus + (report > 0), minus + (report < 0))
                after[tuple(sorted(counts.items()))] += chance * float(weight)
        seen = after
    return seen


def neighbouring_views(laws, num_users):
    """For everybody else: a matrix, each row the law of views for a history of the target."""
    for others in itertools.combinations_with_replacement(laws, num_users - 1):
        released = [views([*others, law]) for law in laws]
        seen = sorted(set().union(*released))
        yield np.array([[float(law.get(view, 0.0)) for view in seen] for law in released])


def worst_divergence(matrices, likelihood_ratio):
    """The largest hockey-stick divergence at e^epsilon over all neighbours."""
    return max(
        float(np.maximum(matrix[:, None, :] - likelihood_ratio * matrix, 0.0).sum(axis=2).max())
        for matrix in matrices
    )
