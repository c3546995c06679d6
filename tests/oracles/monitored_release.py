"""Everything that monitoring releases, by listing all coins: nothing here is taken from the source.

A user's law is a dict from what he reports to its probability; a report is (level, node, column,
sign). What is released is how often each report occurs, written as one integer.
"""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

from shuffledp.core.profile import MonitoringProfile

# No more users than a digit of the released number can count.
RADIX = 8


def bit_histories(periods, max_changes):
    """All states of a bit with at most so many changes, a first 1 counted."""
    return [
        states
        for states in itertools.product((0, 1), repeat=periods)
        if sum(a != b for a, b in zip((0, *states), states, strict=False)) <= max_changes
    ]


def value_histories(periods, max_changes, domain_size):
    """All histories of a value that may begin late; -1 stands for nothing yet."""
    return [
        states
        for states in itertools.product(range(-1, domain_size), repeat=periods)
        if sum(a != b for a, b in zip((-1, *states), states, strict=False)) <= max_changes
        and all(b >= 0 for a, b in itertools.pairwise(states) if a >= 0)
    ]


def one_bit(_column, value):
    return value


def one_hot(column, value):
    return int(column == value)


def hadamard(column, value):
    """Row value + 1 of the Hadamard matrix in Sylvester's order; 0 for nothing yet."""
    return 0 if value < 0 else int((column & (value + 1)).bit_count() % 2 == 0)


def threshold_density(max_changes, threshold, ratio):
    """F(i) for i minus signs: ``ratio`` times as likely up to the threshold as beyond."""
    ball = sum(math.comb(max_changes, i) for i in range(threshold + 1))
    least = 1 / (1 + (ratio - 1) * Fraction(ball, 2**max_changes))
    return [least * ratio if i <= threshold else least for i in range(max_changes + 1)]


def sampled_density(ratio):
    """The two densities of a sampled change's sign."""
    return 2 * ratio / (1 + ratio), 2 / (1 + ratio)


def predrawn_profile(density, *, num_levels, alternating=True):
    """The profile of an exchangeable law of the signs, by listing all patterns."""
    k = len(density) - 1
    correlations = []
    for order in range(k + 1):
        total = Fraction(0)
        for signs in itertools.product((1, -1), repeat=k):
            total += density[signs.count(-1)] * math.prod(signs[:order])
        correlations.append(Fraction(total) / 2**k)
    loss = math.log(max(density) / min(density)) * (1 + 1e-14)
    return MonitoringProfile(
        protocol="predrawn",
        epsilon0=loss,
        max_changes=k,
        num_levels=num_levels,
        sign_correlations=tuple(correlations),
        uniform_share=min(density),
        alternating=alternating,
    )


def sampled_profile(max_changes, ratio, *, num_levels, alternating=True):
    """The profile of the sampled change: only one sign, of one change in k, is not uniform."""
    keep = Fraction(ratio) / (1 + ratio)
    return MonitoringProfile(
        protocol="sampled-change",
        epsilon0=math.log(ratio) * (1 + 1e-14),
        max_changes=max_changes,
        num_levels=num_levels,
        sign_correlations=(Fraction(1), (2 * keep - 1) / max_changes),
        uniform_share=2 * (1 - keep),
        alternating=alternating,
    )


def user_law(states, *, density=None, ratio=None, max_changes, bit=one_bit, columns=1):
    """The law of all that a user reports: pre-drawn signs if ``density`` is given, else sampled."""
    periods, law = len(states), defaultdict(float)
    nothing = 0 if bit is one_bit else -1
    path = (nothing, *states)
    num_levels = periods.bit_length()
    for level in range(num_levels):
        nodes = periods >> level
        for drawn in itertools.product(range(columns), repeat=nodes):
            listed = _single_changes if density is None else _net_changes
            changes = listed(path, level, drawn, bit)
            for signs in itertools.product((1, -1), repeat=nodes):
                share = 1.0 / (num_levels * (2 * columns) ** nodes)
                outcome = tuple(
                    (level, j, c, u) for j, (c, u) in enumerate(zip(drawn, signs, strict=True))
                )
                if density is None:
                    factor = _sampled(changes, signs, ratio, max_changes)
                else:
                    factor = _predrawn(changes, signs, density)
                law[outcome] += share * factor
    return law


def _net_changes(path, level, drawn, bit):
    """The net change of the bit within each node, under the node's column."""
    length = 1 << level
    return [bit(c, path[(j + 1) * length]) - bit(c, path[j * length]) for j, c in enumerate(drawn)]


def _single_changes(path, level, drawn, bit):
    """For each change of the value: its node, and what it does to the bit there."""
    found = []
    for t in range(1, len(path)):
        if path[t] != path[t - 1]:
            j = (t - 1) >> level
            inside = j < len(drawn)
            found.append((j, bit(drawn[j], path[t]) - bit(drawn[j], path[t - 1]) if inside else 0))
    return found


def _sampled(changes, signs, ratio, max_changes):
    same, other = sampled_density(ratio)
    total = float(max_changes - len(changes))
    for j, change in changes:
        total += 1.0 if change == 0 else float(same if signs[j] == change else other)
    return total / max_changes


def _predrawn(changes, signs, density):
    nonzero = sum(change != 0 for change in changes)
    differing = sum(change == -u for change, u in zip(changes, signs, strict=True))
    rest = len(density) - 1 - nonzero
    total = sum(math.comb(rest, i) * density[differing + i] for i in range(rest + 1))
    return float(total) / 2**rest


def encoded(law, places, user=None):
    """A user's law with what he reports as one number; a digit a kind of report.

    ``places`` gives each kind its digit, and grows. With ``user`` his level is kept as well, in
    digits of his own beyond all counts.
    """
    coded = defaultdict(float)
    for outcome, chance in law.items():
        number = 0
        for report in outcome:
            number += RADIX ** places.setdefault(report, len(places))
        if user is not None:
            number += outcome[0][0] * RADIX ** (1000 + user)
        coded[number] += chance
    return coded


def together(first, second):
    """The law of what two independent groups of users release together."""
    found = defaultdict(float)
    for a, p in first.items():
        for b, q in second.items():
            found[a + b] += p * q
    return found


def divergence(first, second, epsilon):
    """The hockey-stick divergence of two laws."""
    growth = math.exp(epsilon)
    return math.fsum(max(p - growth * second.get(key, 0.0), 0.0) for key, p in first.items())


def worst_deltas(laws, num_users, epsilons, *, levels_seen=False):
    """The largest divergence over all pairs of histories and all others' histories, per epsilon."""
    places = {}
    coded = [
        [encoded(law, places, user if levels_seen else None) for law in laws]
        for user in range(num_users)
    ]
    worst = [0.0] * len(epsilons)
    for others in itertools.combinations_with_replacement(range(len(laws)), num_users - 1):
        rest = {0: 1.0}
        for user, index in enumerate(others, start=1):
            rest = together(rest, coded[user][index])
        released = [together(rest, law) for law in coded[0]]
        for a, b in itertools.permutations(released, 2):
            for i, epsilon in enumerate(epsilons):
                worst[i] = max(worst[i], divergence(a, b, epsilon))
    return worst
