"""Channels of all randomizers, written out from their documented laws in Fractions.

Of a randomizer only its published integers are read: thresholds, sizes, numbers of buckets. Its
own ``channel`` is not; the tests compare the two. Rows are values, columns are reports.
"""

import itertools
import math
from fractions import Fraction

from mpmath import mp, mpf

WORDS = 2**64


def k_rr(k, threshold):
    """Any other category with probability T / 2^64; a word modulo k where T cannot be private."""
    if threshold == WORDS // k:
        whole, extra = divmod(WORDS, k)
        row = [Fraction(whole + (y < extra), WORDS) for y in range(k)]
        return [row] * k
    other = Fraction(threshold, WORDS)
    return [[other if y != x else 1 - (k - 1) * other for y in range(k)] for x in range(k)]


def bits(k, own, other):
    """k bits: the own one is set with probability ``own``, any other one with ``other``."""
    rows = []
    for x in range(k):
        row = []
        for report in range(2**k):
            chance = Fraction(1)
            for i in range(k):
                is_set = own if i == x else other
                chance *= is_set if report >> i & 1 else 1 - is_set
            row.append(chance)
        rows.append(row)
    return rows


def linear_hashing(k, g, threshold):
    """A uniform seed a over Z_g and g-ary randomized response on the sum of a_i x_i; a g + y."""
    num_digits = next(m for m in itertools.count(1) if g**m >= k)
    num_seeds = g**num_digits
    lie = Fraction(threshold, WORDS)
    keep = 1 - (g - 1) * lie
    rows = []
    for x in range(k):
        row = []
        for seed in range(num_seeds):
            bucket = sum(seed // g**i % g * (x // g**i % g) for i in range(num_digits)) % g
            row += [(keep if y == bucket else lie) / num_seeds for y in range(g)]
        rows.append(row)
    return rows


def hadamard(k, threshold):
    """A uniform row j < 2^m and the parity of j & x, flipped with probability T / 2^64; 2 j + b."""
    num_rows = next(2**m for m in itertools.count(1) if 2**m >= k)
    flip = Fraction(threshold, WORDS)
    return [
        [
            (1 - flip if (j & x).bit_count() % 2 == b else flip) / num_rows
            for j in range(num_rows)
            for b in (0, 1)
        ]
        for x in range(k)
    ]


def subsets(k, size, threshold):
    """A subset of ``size``: with the truth with probability T / 2^64, uniform given that or not."""
    hit = Fraction(threshold, WORDS)
    if threshold == WORDS * size // k:
        hit = Fraction(size, k)
    reports = [y for y in range(2**k) if y.bit_count() == size]
    with_truth, without = math.comb(k - 1, size - 1), math.comb(k - 1, size)
    return [
        [hit / with_truth if y >> x & 1 else (1 - hit) / without for y in reports] for x in range(k)
    ]


def category(randomizer):
    """Channel of a randomizer of categories."""
    k = randomizer.domain_size
    threshold = randomizer.threshold
    flip = Fraction(threshold, WORDS)
    match randomizer.name:
        case "k-rr":
            return k_rr(k, threshold)
        case "symmetric-unary":
            return bits(k, 1 - flip, flip)
        case "optimized-unary":
            return bits(k, Fraction(1, 2), flip)
        case "optimized-local-hashing":
            return linear_hashing(k, randomizer.num_buckets, threshold)
        case "hadamard-response":
            return hadamard(k, threshold)
        case "subset-selection":
            return subsets(k, randomizer.subset_size, threshold)
    raise AssertionError(randomizer.name)


def mixture(weights, rows):
    """Return the mixture of rows, whose weights sum to 1."""
    return [
        sum(weight * entry for weight, entry in zip(weights, column, strict=True))
        for column in zip(*rows, strict=True)
    ]


def between(rows, position):
    """Row of a value at ``position`` of 0 ... m: a mixture of the two grid points around it."""
    below = math.floor(position)
    share = position - below
    return rows[below] if share == 0 else mixture((1 - share, share), rows[below : below + 2])


def duchi(threshold):
    """Both ends of the range, with bits that are wrong with probability T / 2^64."""
    wrong = Fraction(threshold, WORDS)
    return [[1 - wrong, wrong], [wrong, 1 - wrong]]


def piecewise(law):
    """All m + 1 grid points: W outputs from the point on with H / 2^64, m others with T / 2^64."""
    num_steps, window, threshold = law.num_steps, law.window, law.threshold
    high, rest = divmod(WORDS - num_steps * threshold, window)
    assert rest == 0
    return [
        [
            Fraction(high if i <= y < i + window else threshold, WORDS)
            for y in range(num_steps + window)
        ]
        for i in range(num_steps + 1)
    ]


def number(randomizer, values):
    """Channel of a randomizer of numbers, for values given as shares of the range."""
    match randomizer.name:
        case "duchi":
            return [between(duchi(randomizer.law.threshold), value) for value in values]
        case "piecewise":
            rows = piecewise(randomizer.law)
            return [between(rows, value * randomizer.law.num_steps) for value in values]
    raise AssertionError(randomizer.name)


def answer_sets(k, max_answers):
    """All sets of up to ``max_answers`` of the categories, answers in falling order."""
    return [
        tuple(reversed(chosen))
        for size in range(max_answers + 1)
        for chosen in itertools.combinations(range(k), size)
    ]


def set_channel(randomizer, sets):
    """Channel of a randomizer of sets, for sets in falling order."""
    base = category(randomizer.base)
    k, slots = randomizer.domain_size, randomizer.max_answers
    filled = [(*answers, *[k] * (slots - len(answers))) for answers in sets]
    if randomizer.name.startswith("sampled:"):
        share = [Fraction(1, slots)] * slots
        return [mixture(share, [base[answer] for answer in answers]) for answers in filled]
    return [
        [math.prod(reports) for reports in itertools.product(*(base[answer] for answer in answers))]
        for answers in filled
    ]


def cap_share(randomizer):
    """Base measure q of the cap of an input, to 60 digits."""
    with mp.workdps(60):
        a = mpf(randomizer.dimension - 1) / 2
        return mp.betainc(a, a, 0, (1 - mpf(randomizer.gamma)) / 2, regularized=True)


def opposite_vectors(randomizer):
    """Unit vectors x and -x, and 0: reports by whether they lie in the cap of x, of -x, or none."""
    share = _fraction(cap_share(randomizer))
    hit = 1 - Fraction(randomizer.threshold, WORDS)
    own, far = hit, (1 - hit) * share / (1 - share)
    rows = [[own, 1 - own - far, far], [far, 1 - own - far, own], [share, 1 - 2 * share, share]]
    return [*rows, mixture((Fraction(3, 4), Fraction(1, 4)), rows[:2])]


def circle_vectors(randomizer, num_inputs):
    """Unit vectors at equal angles in the plane: reports by the set of caps that they lie in."""
    with mp.workdps(60):
        half = mp.acos(mpf(randomizer.gamma))
        turn = 2 * mp.pi
        angles = [turn * i / num_inputs for i in range(num_inputs)]
        edges = sorted((angle + side) % turn for angle in angles for side in (-half, half))
        gaps = zip(edges, [*edges[1:], edges[0] + turn], strict=True)
        masses = {}
        for start, stop in gaps:
            middle = (start + stop) / 2
            caps = tuple(mp.cos(middle - angle) >= mpf(randomizer.gamma) for angle in angles)
            masses[caps] = masses.get(caps, mpf(0)) + (stop - start) / turn
        exact = {caps: _fraction(mass) for caps, mass in masses.items()}
    hit = 1 - Fraction(randomizer.threshold, WORDS)
    rows = []
    for i in range(num_inputs):
        share = sum(mass for caps, mass in exact.items() if caps[i])
        rows.append(
            [
                mass * (hit / share if caps[i] else (1 - hit) / (1 - share))
                for caps, mass in exact.items()
            ]
        )
    return rows


def _fraction(number):
    """Return a positive number of mpmath as the Fraction that it is."""
    sign, mantissa, exponent, _ = number._mpf_
    assert sign == 0
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
