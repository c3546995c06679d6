"""Published tools and proofs that are unsound, each refuted by an exact number.

The truth is found by listing all outcomes in fractions. What the tool says is computed from its own
statement, written anew here. Our bound must be above the truth. docs/explanation/counterexamples.md
tells the same in words.
"""

import itertools
import math
from collections import defaultdict
from fractions import Fraction
from math import comb
from statistics import NormalDist

import mpmath
import numpy as np
import pytest

from oracles import enumeration, profiles
from oracles.laplace_pairs import laplace_profile
from shuffledp.amplification.channel_rows import channel_profile
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.composition.compose_losses import compose
from shuffledp.composition.release import StatedRelease
from shuffledp.core.profile import LocalProfile

# The accountant's epsilon0 = ln(p) is a double: off by a rounding from the fractions of a test.
ROUNDING = 1e-12


def binomial(n, k, q):
    """Pr[Bin(n, q) = k], exactly."""
    return comb(n, k) * q**k * (1 - q) ** (n - k) if 0 <= k <= n else Fraction(0)


def divergence(p, q, e):
    """Sum of (P - e Q)_+ over all outcomes of two laws given as mappings."""
    return sum((max(p[z] - e * q[z], Fraction(0)) for z in p), Fraction(0))


# ---------------------------------------------------------------- the truth


def reports_of_a_crowd(rows, data):
    """Exact law of how many reports of each kind there are, for rows of any fractions."""
    law = {(0,) * len(rows[0]): Fraction(1)}
    for value in data:
        grown = defaultdict(Fraction)
        for counts, mass in law.items():
            for y, chance in enumerate(rows[value]):
                grown[(*counts[:y], counts[y] + 1, *counts[y + 1 :])] += mass * chance
        law = grown
    return law


def third_answer_divergence(n, k, p, e):
    """Divergence of the first two answers of k-RR where all others hold the third.

    Reports of the other k - 3 answers are merged into one kind. That is post-processing, so the
    divergence of the reports themselves is at least this; it is this, as they are equally likely
    for all three inputs.
    """
    s = 1 / (p + k - 1)
    rows = [[p * s if y == x else s for y in range(3)] + [(k - 3) * s] for x in range(3)]
    if n > 10:  # listing the reports one by one would take too long
        return _third_answer_by_multinomials(n, rows, e)
    first, second = (reports_of_a_crowd(rows, (x, *[2] * (n - 1))) for x in (0, 1))
    return divergence(first, second, e)


def _third_answer_by_multinomials(n, rows, e):
    total = Fraction(0)
    powers = [[q**i for i in range(n + 1)] for q in rows[2]]

    def others(counts):
        if min(counts) < 0:
            return Fraction(0)
        ways = math.factorial(n - 1)
        for c in counts:
            ways //= math.factorial(c)
        return ways * math.prod(powers[y][c] for y, c in enumerate(counts))

    for a in range(n + 1):
        for b in range(n + 1 - a):
            for c in range(n + 1 - a - b):
                counts = (a, b, c, n - a - b - c)
                excess = sum(
                    (rows[0][y] - e * rows[1][y])
                    * others(tuple(v - (i == y) for i, v in enumerate(counts)))
                    for y in range(4)
                )
                total += max(excess, Fraction(0))
    return total


def binary_divergence(n, p, e):
    """The larger divergence of shuffled binary randomized response, all others holding one value.

    The number of other reports that are wrong is Bin(n - 1, 1 / (p + 1)).
    """
    q = 1 / (p + 1)
    others = [binomial(n - 1, s, q) for s in range(n)] + [Fraction(0)]

    def with_victim(chance):
        return {s: others[s] * (1 - chance) + others[s - 1] * chance for s in range(n + 1)}

    first, second = with_victim(q), with_victim(1 - q)
    return max(divergence(first, second, e), divergence(second, first, e))


def test_the_two_ways_to_the_truth_agree():
    p, e = Fraction(3), Fraction(2)
    rows = enumeration.randomized_response(4, p)
    listed = next(
        enumeration.hockey_stick(first, second, e)
        for first, second, pair, others in enumeration.neighbouring_laws(rows, 4)
        if pair == (0, 1) and set(others) == {2}
    )
    assert third_answer_divergence(4, 4, p, e) == listed
    s = 1 / (p + 3)
    merged = [[p * s if y == x else s for y in range(4)] for x in range(3)]
    assert _third_answer_by_multinomials(4, merged, e) == listed
    binary = enumeration.randomized_response(2, p)
    extremes = [
        enumeration.hockey_stick(first, second, e)
        for first, second, _, others in enumeration.neighbouring_laws(binary, 5)
        if len(set(others)) == 1
    ]
    assert binary_divergence(5, p, e) == max(extremes)


# ---------------------------------------------------------------- variation-ratio


def variation_ratio_delta(n, k, p, e):
    """What the variation-ratio reduction (arXiv:2304.05007) says of k-RR.

    With beta = (p - 1)/(p + k - 1) the total variation, a = beta/(p - 1) and q = p: the victim's
    report is in the first place with probability p a, in the second with a, elsewhere otherwise;
    Bin(n - 1, 2 a) others fall on the two places at random. What is elsewhere is not counted.
    """
    a = 1 / (p + k - 1)
    first, second = defaultdict(Fraction), defaultdict(Fraction)
    for c in range(n):
        for i in range(c + 1):
            mass = binomial(n - 1, c, 2 * a) * Fraction(comb(c, i), 2**c)
            for here, there, chance in ((1, 0, p * a), (0, 1, a), (0, 0, 1 - (p + 1) * a)):
                first[i + here, c - i + there] += mass * chance
                second[i + there, c - i + here] += mass * chance
    return divergence(first, second, e)


def test_variation_ratio_in_small_fractions():
    p, e = Fraction(3), Fraction(2)
    exact, claimed = third_answer_divergence(3, 8, p, e), variation_ratio_delta(3, 8, p, e)
    assert exact == Fraction(7, 500)
    assert claimed == Fraction(11, 1000)
    ours = account_delta(profiles.k_rr(math.log(3.0), 8), num_users=3, epsilon=math.log(2.0))
    assert ours.lower <= float(exact) * (1.0 + ROUNDING)
    assert claimed < exact <= ours.upper * (1.0 + ROUNDING)


@pytest.mark.parametrize(
    ("n", "k", "epsilon0", "exact", "claimed"),
    [(4, 4, 2.0, 0.0955, 0.0647), (20, 128, 3.0, 1.347e-5, 6.14e-6)],
)
def test_variation_ratio_at_the_published_numbers(n, k, epsilon0, exact, claimed):
    epsilon = 1.5
    p, e = Fraction(math.exp(epsilon0)), Fraction(math.exp(epsilon))
    truth, said = third_answer_divergence(n, k, p, e), variation_ratio_delta(n, k, p, e)
    assert float(truth) == pytest.approx(exact, rel=1e-3)
    assert float(said) == pytest.approx(claimed, rel=1e-3)
    ours = account_delta(profiles.k_rr(epsilon0, k), num_users=n, epsilon=epsilon)
    assert ours.lower <= float(truth) * (1.0 + ROUNDING)
    assert said < truth <= ours.upper * (1.0 + ROUNDING)


def test_variation_ratio_is_right_for_two_answers():
    # Nothing is elsewhere then: the same formula is the clone pair, and an upper bound.
    p, e = Fraction(3), Fraction(2)
    assert variation_ratio_delta(6, 2, p, e) >= binary_divergence(6, p, e)


# ---------------------------------------------------------------- a central limit is no bound


def gaussian_form_delta(n, p, e):
    """delta of mu-Gaussian DP with the mu of arXiv:2312.14388v1, abstract, for equal epsilon0.

    mu^2 = 2 / (sum of 1/(1 + p) over all users - the largest of them) = 2 (p + 1)/(n - 1).
    """
    mu, epsilon = math.sqrt(2.0 * (p + 1) / (n - 1)), math.log(e)
    normal = NormalDist()
    return normal.cdf(-epsilon / mu + mu / 2) - e * normal.cdf(-epsilon / mu - mu / 2)


@pytest.mark.parametrize(("n", "p", "e"), [(10, 5, 4), (50, 20, 10), (100, 20, 10), (100, 50, 20)])
def test_gaussian_form_below_binary_randomized_response(n, p, e):
    exact = binary_divergence(n, Fraction(p), Fraction(e))
    is_below = gaussian_form_delta(n, p, e) < float(exact)
    assert is_below == (n > 10)  # a tail of few wrong reports is no Gaussian tail
    ours = account_delta(
        LocalProfile(epsilon0=math.log(p)), num_users=n, epsilon=math.log(e), method="clones"
    )
    assert ours.upper >= float(exact) * (1.0 - ROUNDING)


def test_gaussian_form_by_how_much():
    exact = binary_divergence(100, Fraction(20), Fraction(10))
    assert float(exact) == pytest.approx(0.0038022, rel=1e-4)
    assert gaussian_form_delta(100, 20, 10) == pytest.approx(9.984e-5, rel=1e-3)


# ---------------------------------------------------------------- a continuous report in bins


def blanket_delta(p_row, q_row, omega, n, e):
    """(B) by its definition: the mean of (G_1 + ... + G_n)_+ over all outcomes, over n."""
    atoms = [(w, (p - e * q) / w) for p, q, w in zip(p_row, q_row, omega, strict=True)]
    atoms.append((1 - sum(omega), Fraction(0)))
    total = Fraction(0)
    for outcome in itertools.product(atoms, repeat=n):
        gain = sum(g for _, g in outcome)
        if gain > 0:
            total += math.prod(m for m, _ in outcome) * gain
    return total / n


def laplace_channel(num_steps, q):
    """Discrete Laplace noise with ratio q a step, on a grid; reports beyond an end count as it."""
    rows = []
    for x in range(num_steps + 1):
        row = [(1 - q) / (1 + q) * q ** abs(y - x) for y in range(num_steps + 1)]
        row[0], row[-1] = q**x / (1 + q), q ** (num_steps - x) / (1 + q)
        rows.append(row)
    assert all(sum(row) == 1 for row in rows)
    return rows


def test_the_blanket_of_binned_laplace_reports_is_no_upper_bound():
    q, e, n = Fraction(1, 2), Fraction(2), 3
    fine = laplace_channel(4, q)
    bins = ((0, 1, 2), (3, 4))
    coarse = [[sum(row[y] for y in each) for each in bins] for row in fine]

    def of(rows):
        omega = [min(column) for column in zip(*rows, strict=True)]
        return max(
            blanket_delta(rows[0], rows[4], omega, n, e),
            blanket_delta(rows[4], rows[0], omega, n, e),
        )

    exact = max(
        divergence(reports_of_a_crowd(fine, (0, x, x)), reports_of_a_crowd(fine, (4, x, x)), e)
        for x in (0, 4)
    )
    assert of(coarse) < exact < of(fine)
    assert (of(coarse), exact, of(fine)) == (
        Fraction(847, 1728),
        Fraction(860, 1728),
        Fraction(7891, 13824),
    )
    epsilon = math.log(2.0)
    drawn = laplace_profile(math.log(16.0), num_steps=4)
    for profile in (drawn, channel_profile(fine)):
        ours = account_delta(profile, num_users=n, epsilon=epsilon)
        assert ours.upper >= float(exact) * (1.0 - ROUNDING)


# ---------------------------------------------------------------- a withdrawn proof


def test_the_withdrawn_decomposition_is_false_and_its_bound_is_true():
    # Subsets of two of three answers, p = 3: the third subset is likely for both of the pair.
    p = Fraction(3)
    rows = [[Fraction(w, 7) for w in row] for row in ((3, 1, 3), (1, 3, 3), (3, 3, 1))]
    assert all(max(column) == p * min(column) for column in zip(*rows, strict=True))
    r = 1 / (p + 1)
    remainder = [x - r * (a + b) for a, b, x in zip(*rows, strict=True)]
    assert remainder == [Fraction(2, 7), Fraction(2, 7), Fraction(-1, 14)]  # no law has a mass < 0
    e = Fraction(2)
    worst = max(
        divergence(reports_of_a_crowd(rows, (x, *rest)), reports_of_a_crowd(rows, (y, *rest)), e)
        for x, y in itertools.permutations(range(3), 2)
        for rest in itertools.combinations_with_replacement(range(3), 3)
    )
    ours = account_delta(
        LocalProfile(epsilon0=math.log(3.0)), num_users=4, epsilon=math.log(2.0), method="clones"
    )
    assert 0 < worst <= ours.upper


# ---------------------------------------------------------------- blocks that reach below zero


def weak_clone_delta(c, p, e):
    """Divergence of the pair of arXiv:2012.12803 given that c others are clones."""
    likely, rare = p / (p + 1), 1 / (p + 1)
    heads = [Fraction(comb(c, i), 2**c) for i in range(c + 1)] + [Fraction(0)]
    first = {i: likely * heads[i] + rare * heads[i - 1] for i in range(c + 2)}
    second = {i: rare * heads[i] + likely * heads[i - 1] for i in range(c + 2)}
    return max(divergence(first, second, e), divergence(second, first, e))


def blocks_from_the_middle_delta(n, p, e, step):
    """What blocks of ``step`` from n/2 outwards give if a block's lower end below zero is lost.

    The divergence falls with the number of clones, so a block's upper bound stands at its lower
    end. In the code published with arXiv:2012.12803 (apple/ml-shuffling-amplification, function
    deltacomp) that end may be negative. Then its value is no number, and a maximum that compares
    with it keeps the value at the upper end. Here n is even and step >= n, so there are three.
    """
    middle, chance = n // 2, 1 / p
    blocks = (range(middle, middle + 1), range(middle + 1, n), range(middle))
    ends = (middle, middle + step, middle - 1)
    return sum(
        sum(binomial(n - 1, c, chance) for c in block) * weak_clone_delta(end, p, e)
        for block, end in zip(blocks, ends, strict=True)
    )


def test_clone_blocks_that_reach_below_zero():
    n, p, e, step = 50, Fraction(20), Fraction(5), 100
    claimed, exact = blocks_from_the_middle_delta(n, p, e, step), binary_divergence(n, p, e)
    assert float(claimed) == pytest.approx(1.44e-5, rel=1e-2)
    assert float(exact) == pytest.approx(0.0654, rel=1e-3)
    honest = sum(binomial(n - 1, c, 1 / p) * weak_clone_delta(c, p, e) for c in range(n))
    assert honest > exact  # the theorem is true; only its evaluation is not
    for method in ("clones", "feldman-2021-numerical"):
        ours = account_delta(
            LocalProfile(epsilon0=math.log(20.0)), num_users=n, epsilon=math.log(5.0), method=method
        )
        assert ours.upper >= float(exact) * (1.0 - ROUNDING)
    assert ours.upper == pytest.approx(float(honest), rel=1e-6)


# ---------------------------------------------------------------- round-off without a budget


def composed_binary_delta(step, count, epsilon):
    """delta of ``count`` binary randomized responses of that loss each, in 40 digits."""
    with mpmath.workdps(40):
        up = 1 / (1 + mpmath.exp(-mpmath.mpf(step)))
        m = math.floor((count + epsilon / step) / 2) + 1
        mass = mpmath.binomial(count, m) * up**m * (1 - up) ** (count - m)
        total = mpmath.mpf(0)
        while m <= count and mass > total * mpmath.mpf(10) ** -25:
            total += mass * (1 - mpmath.exp(epsilon - (2 * m - count) * mpmath.mpf(step)))
            mass *= mpmath.mpf(count - m) / (m + 1) * up / (1 - up)
            m += 1
        return total


def test_pessimistic_composition_loses_to_round_off():
    from dp_accounting.pld import common, privacy_loss_distribution

    step, count = 0.01, 10_000  # losses are multiples of 0.01: discretising them costs nothing
    composed = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(step, 0.0), value_discretization_interval=step
    ).self_compose(count)
    each = StatedRelease(epsilon=step, delta=0.0).exact_loss(upper=True)
    errors = {}
    for epsilon in (6.0, 6.5, 7.0, 7.5):
        exact = composed_binary_delta(step, count, epsilon)
        claimed = composed.get_delta_for_epsilon(epsilon)
        errors[epsilon] = float(claimed / exact - 1)
        ours = compose([(each, count)], float(exact)).delta(epsilon)
        assert exact * (1 - mpmath.mpf(ROUNDING)) <= ours <= exact * mpmath.mpf("1.001")
    # How the round-off falls depends on the FFT; that it is there does not.
    assert max(abs(error) for error in errors.values()) > 0.03, errors


# ---------------------------------------------------------------- no data are always the worst


def test_the_worst_data_of_the_others_depend_on_epsilon():
    p, n = Fraction(math.exp(1.0)), 3
    rows = enumeration.randomized_response(3, p)
    uniform = [1 / (p + 2)] * 3
    worst = set()
    for epsilon, shown in ((0.7, (0.04956, 0.03352, 0.05332)), (0.1, None)):
        e = Fraction(math.exp(epsilon))
        by_others = defaultdict(Fraction)
        for first, second, pair, others in enumeration.neighbouring_laws(rows, n):
            if pair == (0, 1):
                by_others[others] = max(
                    enumeration.hockey_stick(first, second, e),
                    enumeration.hockey_stick(second, first, e),
                )
        worst.add(max(by_others, key=lambda others: by_others[others]))
        bound = blanket_delta(rows[0], rows[1], uniform, n, e)
        if shown is not None:
            found = (by_others[0, 0], by_others[2, 2], bound)
            assert [float(value) for value in found] == pytest.approx(shown, abs=5e-6)
        ours = account_delta(profiles.k_rr(1.0, 3), num_users=n, epsilon=epsilon)
        assert max(by_others.values()) <= bound <= ours.upper * (1.0 + ROUNDING)
    assert len(worst) == 2, worst


def test_the_gap_between_tools_in_epsilon():
    # What an unsound delta means for epsilon: the accountant's lower end is explicit data.
    bound = account_epsilon(profiles.k_rr(3.0, 128), num_users=20, delta=6.14e-6)
    assert np.isfinite(bound.upper)
    assert bound.lower is not None
    assert bound.lower > 1.5
