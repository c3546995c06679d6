"""Laws of the signs: exact losses, and draws."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

from adversarial.tapes import ScriptedWords
from oracles.exchangeable_signs import ExchangeableSigns, predrawn_signs, signs_of
from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.core.errors import ParameterError
from shuffledp.monitoring.design import (
    SIGN_LAWS,
    PredrawnSigns,
    SampledChange,
    ball_patterns,
    sign_law,
)


@pytest.mark.parametrize("name", SIGN_LAWS)
def test_each_law_keeps_the_contract(name):
    law = sign_law(name, max_changes=3, epsilon0=1.0)
    assert law.name == name
    assert law.max_changes == 3
    assert 0.99 < law.epsilon0 <= 1.0
    assert 0.0 < law.gap < 1.0
    profile = law.profile(num_levels=5, alternating=True)
    assert profile.gap == law.gap
    assert float(profile.correlation(2)) == law.pair_correlation


def test_laws_have_different_identities():
    laws = [
        sign_law(name, max_changes=k, epsilon0=epsilon0)
        for name in SIGN_LAWS
        for k in (2, 3)
        for epsilon0 in (0.5, 1.0)
    ]
    assert len({law.identity for law in laws}) == len(laws)


def test_the_default_comes_first():
    assert next(iter(SIGN_LAWS)) == "predrawn-signs"


@pytest.mark.parametrize("name", ["predrawn", "Predrawn-Signs", "", None])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(ParameterError, match="is not one of predrawn-signs, sampled-change"):
        sign_law(name, max_changes=1, epsilon0=1.0)


@pytest.mark.parametrize("k", [0, 2.5, "2", None])
def test_changes_are_counted(k):
    with pytest.raises(ParameterError, match="max_changes"):
        sign_law("predrawn-signs", max_changes=k, epsilon0=1.0)


WEIGHTS = st.lists(st.integers(1, 50), min_size=2, max_size=8).map(tuple)


@given(weights=WEIGHTS)
def test_everything_is_a_sum_over_patterns(weights):
    law, k = ExchangeableSigns(weights=weights), len(weights) - 1
    patterns = list(product([1, -1], repeat=k))
    masses = [Fraction(weights[signs.count(-1)], law.total) for signs in patterns]
    assert sum(masses) == 1
    assert law.num_signs == k
    assert law.loss_ratio == max(masses) / min(masses)
    assert law.least_density == min(masses) * 2**k
    for order, correlation in enumerate(law.correlations):
        means = zip(patterns, masses, strict=True)
        assert correlation == sum(prod(signs[:order]) * mass for signs, mass in means)


def test_uniform_signs_say_nothing():
    law = ExchangeableSigns(weights=(7,) * 63)
    assert (law.loss_ratio, law.least_density) == (1, 1)
    assert law.correlations == (1,) + (0,) * 62


@pytest.mark.parametrize("epsilon0", [math.nan, math.inf, -1.0, "1", None])
def test_epsilon0_must_be_a_number(epsilon0):
    with pytest.raises(ParameterError, match="epsilon0"):
        SampledChange(max_changes=2, epsilon0=epsilon0)


@pytest.mark.parametrize("k", [0, -1, 1.0, None])
def test_changes_are_counted_of_sampled_change(k):
    with pytest.raises(ParameterError, match="max_changes"):
        SampledChange(max_changes=k, epsilon0=1.0)


EPSILON0 = st.floats(1e-6, 40.0)


def formula(k, radius, e0):
    """Return the gap of a threshold law at the whole loss."""
    ball = sum(comb(k, i) for i in range(radius + 1))
    return (e0 - 1) * comb(k - 1, radius) / (2**k + (e0 - 1) * ball)


def precise_log(ratio):
    """Return ln of a fraction to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


@given(k=st.integers(1, 62), epsilon0=EPSILON0)
def test_the_loss_is_exact_rounded_up_and_at_most_what_was_asked_for(k, epsilon0):
    law = PredrawnSigns(max_changes=k, epsilon0=epsilon0)
    exact = precise_log(signs_of(law).loss_ratio)
    assert exact <= Decimal(law.epsilon0) <= Decimal(epsilon0)
    assert Decimal(math.nextafter(law.epsilon0, 0.0)) <= exact
    # The coin's 64 bits lose little, as long as epsilon0 does not come near them.
    assert law.epsilon0 >= epsilon0 * (1 - 1e-9) - math.exp(epsilon0) / 2**62


@given(k=st.integers(1, 62), epsilon0=EPSILON0)
def test_the_gap_is_that_of_the_best_threshold(k, epsilon0):
    law = PredrawnSigns(max_changes=k, epsilon0=epsilon0)
    assert law.correlations[1] == signs_of(law).correlation(1)
    best = max(formula(k, radius, math.exp(epsilon0)) for radius in range(k))
    assert law.gap == pytest.approx(best, rel=1e-8)
    assert law.gap == pytest.approx(formula(k, law.radius, math.exp(epsilon0)), rel=1e-8)


@given(k=st.integers(1, 30), epsilon0=EPSILON0)
def test_patterns_are_likely_up_to_where_they_say_more_than_the_gap(k, epsilon0):
    # Dinkelbach: weight i is high if and only if (k - 2 i) / k is above the gap.
    law = PredrawnSigns(max_changes=k, epsilon0=epsilon0)
    slack = Fraction(1, 10**6)
    assert Fraction(k - 2 * law.radius, k) > law.correlations[1] - slack
    assert Fraction(k - 2 * law.radius - 2, k) < law.correlations[1] + slack


@given(k=st.integers(1, 62), epsilon0=EPSILON0)
def test_it_tells_at_least_what_a_sampled_change_tells(k, epsilon0):
    ours = PredrawnSigns(max_changes=k, epsilon0=epsilon0).gap
    sampled = SampledChange(max_changes=k, epsilon0=epsilon0).gap
    assert ours >= sampled * (1 - 1e-8)
    if k == 1:
        assert ours == pytest.approx(math.tanh(epsilon0 / 2), rel=1e-8)
    if epsilon0 > 0.01 and k > 1:
        assert ours > sampled


@given(k=st.integers(1, 62), epsilon0=st.floats(1e-3, 20.0))
def test_the_gap_falls_like_the_root_of_the_number_of_changes(k, epsilon0):
    gap = PredrawnSigns(max_changes=k, epsilon0=epsilon0).gap
    assert gap >= math.tanh(epsilon0 / 2) * math.sqrt(2 / (math.pi * (k + 1))) * (1 - 1e-8)
    assert gap <= math.expm1(epsilon0) / math.sqrt(math.pi * (2 * k - 1))


def best_exchangeable_gap(k, e0):
    """Return the largest gap of an exchangeable law with loss ln(e0), by linear programming."""
    # Variables: densities F_0 ... F_k relative to uniform, and the least of them, m.
    share = np.array([comb(k, i) / 2**k for i in range(k + 1)])
    means = np.array([(k - 2 * i) / k for i in range(k + 1)])
    upper = np.hstack([np.eye(k + 1), -e0 * np.ones((k + 1, 1))])
    lower = np.hstack([-np.eye(k + 1), np.ones((k + 1, 1))])
    answer = linprog(
        -np.append(share * means, 0.0),
        A_ub=np.vstack([upper, lower]),
        b_ub=np.zeros(2 * k + 2),
        A_eq=np.append(share, 0.0)[None, :],
        b_eq=[1.0],
    )
    assert answer.success
    return -answer.fun


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 12, 20])
def test_no_exchangeable_law_has_a_larger_gap(k, epsilon0):
    best = best_exchangeable_gap(k, math.exp(epsilon0))
    gap = PredrawnSigns(max_changes=k, epsilon0=epsilon0).gap
    assert gap == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("epsilon0", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_no_law_at_all_whose_signs_have_equal_means_has_a_larger_gap(k, epsilon0):
    # One variable a pattern, then the least probability and the gap.
    patterns = np.array(list(product([1, -1], repeat=k)))
    size, e0 = len(patterns), math.exp(epsilon0)
    columns = (np.full((size, 1), -e0), np.ones((size, 1)))
    bounds = [
        np.hstack([sign * np.eye(size), column, np.zeros((size, 1))])
        for sign, column in zip((1, -1), columns, strict=True)
    ]
    means = np.hstack([patterns.T, np.zeros((k, 1)), -np.ones((k, 1))])
    total = np.append(np.ones(size), [0.0, 0.0])[None, :]
    answer = linprog(
        np.append(np.zeros(size + 1), -1.0),
        A_ub=np.vstack(bounds),
        b_ub=np.zeros(2 * size),
        A_eq=np.vstack([total, means]),
        b_eq=np.append(1.0, np.zeros(k)),
    )
    assert answer.success
    gap = PredrawnSigns(max_changes=k, epsilon0=epsilon0).gap
    assert gap == pytest.approx(-answer.fun, rel=1e-6)


def annulus_law(k, kept, turned, inner, outer):
    """Return independent signs, but patterns outside an annulus are all equally likely."""
    inside = [kept ** (k - i) * turned**i for i in range(k + 1)]
    outside = [i for i in range(k + 1) if not inner <= i <= outer]
    if not outside:
        return ExchangeableSigns(weights=tuple(inside))
    count = sum(comb(k, i) for i in outside)
    level = sum(comb(k, i) * inside[i] for i in outside)
    return ExchangeableSigns(
        weights=tuple(level if i in outside else inside[i] * count for i in range(k + 1))
    )


@pytest.mark.parametrize("k", [3, 9, 16])
def test_flips_within_an_annulus_tell_less(k):
    closest = 0.0
    for kept in (101, 110, 130, 200, 300):
        for inner, outer in [(0, k), (0, k // 2), (1, k - 1), (k // 4, k // 2), (0, k - 2)]:
            signs = annulus_law(k, kept, 100, inner, outer)
            loss = float(precise_log(signs.loss_ratio))
            ours = PredrawnSigns(max_changes=k, epsilon0=loss).gap
            theirs = float(signs.correlation(1))
            assert theirs < ours
            closest = max(closest, theirs / ours)
    assert closest > 0.6  # else the comparison would be with poor laws only


def test_no_privacy_loss_tells_nothing_of_predrawn_signs():
    law = PredrawnSigns(max_changes=5, epsilon0=0.0)
    assert (law.epsilon0, law.gap, law.coin_threshold) == (0.0, 0.0, 0)
    assert signs_of(law).least_density == 1
    assert PredrawnSigns(max_changes=5, epsilon0=1e-30).epsilon0 == 0.0


@pytest.mark.parametrize("k", [1, 4, 62])
def test_any_large_epsilon0_gives_the_same_law_of_predrawn_signs(k):
    laws = {PredrawnSigns(max_changes=k, epsilon0=each) for each in (100.0, 1e3, 1e308)}
    (law,) = laws
    assert (law.radius, law.coin_threshold) == (0, 2**64 - 1)
    assert law.epsilon0 == pytest.approx((64 + k) * math.log(2), rel=1e-12)
    assert law.profile(num_levels=1, alternating=False).uniform_share > 0


@given(k=st.integers(1, 62), epsilon0=st.floats(0.0, 1e3))
def test_a_law_rebuilt_from_what_it_printed_is_the_same_of_predrawn_signs(k, epsilon0):
    law = PredrawnSigns(max_changes=k, epsilon0=epsilon0)
    again = PredrawnSigns(max_changes=k, epsilon0=law.epsilon0)
    assert again == law
    assert again.identity == law.identity


def test_one_sign_has_no_pairs():
    assert PredrawnSigns(max_changes=1, epsilon0=1.0).pair_correlation == 0.0
    law = PredrawnSigns(max_changes=2, epsilon0=1.0)
    assert law.pair_correlation == float(signs_of(law).correlation(2)) > 0


def test_the_profile_says_it_exactly_of_predrawn_signs():
    law = PredrawnSigns(max_changes=6, epsilon0=2.0)
    profile = law.profile(num_levels=9, alternating=True)
    assert profile.sign_correlations == signs_of(law).correlations
    assert len(profile.sign_correlations) == 7
    assert profile.uniform_share == signs_of(law).least_density
    assert profile.uniform_share == 1 - Fraction(law.coin_threshold, 2**64)
    assert (profile.protocol, profile.epsilon0) == ("predrawn-signs", law.epsilon0)
    assert (profile.max_changes, profile.num_levels, profile.alternating) == (6, 9, True)


@pytest.mark.parametrize("epsilon0", [math.nan, math.inf, -1.0, "1", None])
def test_epsilon0_must_be_a_number_of_predrawn_signs(epsilon0):
    with pytest.raises(ParameterError, match="epsilon0"):
        PredrawnSigns(max_changes=2, epsilon0=epsilon0)


@pytest.mark.parametrize("k", [0, -1, 1.0, None])
def test_changes_are_counted_of_predrawn_signs(k):
    with pytest.raises(ParameterError, match="max_changes"):
        PredrawnSigns(max_changes=k, epsilon0=1.0)


def test_too_many_signs_for_a_key():
    assert PredrawnSigns(max_changes=62, epsilon0=1.0).gap > 0.05
    with pytest.raises(ParameterError, match=r"max_changes = 63 is above 62.*sampled-change"):
        PredrawnSigns(max_changes=63, epsilon0=1.0)


WORDS = 2**64
LN_3 = 1.0986122886681098
CASES = [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 2), (5, 2), (6, 3), (7, 3), (8, 3)]

Density = Callable[[tuple[int, ...], int], dict[tuple[int, ...], Fraction]]


def histories(periods, max_changes):
    """Return the changes x[1] ... x[d] of every history of a bit with at most k changes."""
    out = []
    for states in product([0, 1], repeat=periods):
        changes = tuple(b - a for a, b in zip((0, *states), states, strict=False))
        if sum(map(abs, changes)) <= max_changes:
            out.append(changes)
    return out


def nodes(changes, level):
    """Return the changes within each complete node of a level."""
    length = 2 ** (level - 1)
    return [changes[end - length : end] for end in range(length, len(changes) + 1, length)]


def predrawn_density(signs: ExchangeableSigns) -> Density:
    """Return the density of reports relative to uniform ones, by summing over all keys."""
    k, total = signs.num_signs, signs.total
    keys = [
        (key, Fraction(signs.weights[key.count(-1)], total)) for key in product([1, -1], repeat=k)
    ]

    @cache
    def density(increments):
        used = sum(map(abs, increments))
        out = {}
        for reports in product([1, -1], repeat=len(increments)):
            pairs = [(u, v) for u, v in zip(reports, increments, strict=True) if v]
            agrees = [
                mass
                for key, mass in keys
                if all(u == v * sign for (u, v), sign in zip(pairs, key, strict=False))
            ]
            out[reports] = sum(agrees) * 2**used
        return out

    return lambda changes, level: density(tuple(sum(node) for node in nodes(changes, level)))


def sampled_density(law: SampledChange) -> Density:
    """Return the density of reports relative to uniform ones, by summing over kappa."""
    turned = Fraction(law.flip_threshold, WORDS)

    def density(changes, level):
        inside = nodes(changes, level)
        counted = [place for place, change in enumerate(changes) if change]
        out = {}
        for reports in product([1, -1], repeat=len(inside)):
            shares = []
            for kappa in range(law.max_changes):
                share = Fraction(1)
                if kappa < len(counted):
                    node = counted[kappa] // 2 ** (level - 1)
                    if node < len(inside):
                        kept = reports[node] == changes[counted[kappa]]
                        share = 2 * (1 - turned if kept else turned)
                shares.append(share)
            out[reports] = sum(shares) / law.max_changes
        return out

    return density


def worst_ratio(density, inputs, levels):
    """Return the largest ratio of probabilities of one set of reports; all are possible."""
    worst = Fraction(1)
    for level in levels:
        laws = [density(each, level) for each in inputs]
        for reports in laws[0]:
            values = [law[reports] for law in laws]
            worst = max(worst, max(values) / min(values))
    return worst


def laws_of(max_changes, epsilon0):
    """Return for each law: density, claimed ratio, gap, least density."""
    predrawn = PredrawnSigns(max_changes=max_changes, epsilon0=epsilon0)
    sampled = SampledChange(max_changes=max_changes, epsilon0=epsilon0)
    turned = Fraction(sampled.flip_threshold, WORDS)
    return {
        "predrawn-signs": (
            predrawn_density(signs_of(predrawn)),
            signs_of(predrawn).loss_ratio,
            predrawn.correlations[1],
            predrawn.profile(num_levels=1, alternating=True).uniform_share,
        ),
        "sampled-change": (
            sampled_density(sampled),
            (1 - turned) / turned,
            sampled.correlations[1],
            sampled.profile(num_levels=1, alternating=True).uniform_share,
        ),
    }


@pytest.mark.parametrize("name", ["predrawn-signs", "sampled-change"])
@pytest.mark.parametrize(("periods", "max_changes"), CASES)
def test_the_local_loss_is_the_claimed_one(periods, max_changes, name):
    density, claimed, _, _ = laws_of(max_changes, LN_3)[name]
    worst = worst_ratio(
        density, histories(periods, max_changes), range(1, periods.bit_length() + 1)
    )
    assert 1 < worst <= claimed
    if periods >= 2 * max_changes:
        # Two histories with changes at different periods agree and disagree with all reports.
        assert worst == claimed


@pytest.mark.parametrize("epsilon0", [0.1, LN_3, 5.0])
@pytest.mark.parametrize("max_changes", [1, 2, 3])
def test_the_loss_is_reached_for_increments_of_any_signs(max_changes, epsilon0):
    # What richer values can bring about: nonzero increments need not alternate.
    density, claimed, _, _ = laws_of(max_changes, epsilon0)["predrawn-signs"]
    inputs = [x for x in product([-1, 0, 1], repeat=4) if sum(map(abs, x)) <= max_changes]
    assert worst_ratio(density, inputs, [1]) == claimed


@pytest.mark.parametrize("coin", [1, 2**40, 2**63, 2**64 - 1])
@pytest.mark.parametrize(
    ("max_changes", "radius"), [(k, radius) for k in (1, 2, 3) for radius in range(k)]
)
def test_the_loss_of_every_radius_and_coin(max_changes, radius, coin):
    signs = predrawn_signs(max_changes, radius, coin)
    inputs = histories(6, max_changes)
    assert worst_ratio(predrawn_density(signs), inputs, [1, 2, 3]) == signs.loss_ratio


@pytest.mark.parametrize("name", ["predrawn-signs", "sampled-change"])
@pytest.mark.parametrize(
    ("periods", "max_changes"), [*CASES[:-1], pytest.param(*CASES[-1], marks=pytest.mark.slow)]
)
def test_reports_are_unbiased_and_never_below_the_uniform_share(periods, max_changes, name):
    density, _, gap, share = laws_of(max_changes, LN_3)[name]
    for changes in histories(periods, max_changes):
        for level in range(1, periods.bit_length() + 1):
            law = density(changes, level)
            assert sum(law.values()) == len(law)  # relative to uniform ones
            assert min(law.values()) >= share
            for place, node in enumerate(nodes(changes, level)):
                mean = sum(u[place] * value for u, value in law.items()) / len(law)
                assert mean == gap * sum(node)


def test_the_least_density_is_the_uniform_share():
    for density, _, _, share in laws_of(3, LN_3).values():
        reached = min(min(density(changes, 1).values()) for changes in histories(4, 3))
        assert reached == share


@pytest.mark.parametrize("max_changes", [2, 3])
def test_moments_of_reports_are_the_correlations_on_record(max_changes):
    # Products of reports at different nodes: the product of the increments times r_i.
    for name, (density, _, _, _) in laws_of(max_changes, LN_3).items():
        law = PredrawnSigns if name == "predrawn-signs" else SampledChange
        profile = law(max_changes=max_changes, epsilon0=LN_3).profile(
            num_levels=3, alternating=True
        )
        for changes in histories(4, max_changes):
            reports = density(changes, 1)
            places = [place for place, change in enumerate(changes) if change]
            for order in range(len(places) + 1):
                chosen = places[:order]
                mean = sum(
                    prod(u[place] for place in chosen) * value for u, value in reports.items()
                ) / len(reports)
                signs = prod(changes[place] for place in chosen)
                assert mean == signs * profile.correlation(order)


def test_a_planted_law_is_not_taken_for_private():
    # Independent signs, each with the loss that all of them may have: k times too much.
    kept, turned = 3, 1
    independent = ExchangeableSigns(weights=tuple(kept ** (3 - i) * turned**i for i in range(4)))
    worst = worst_ratio(predrawn_density(independent), histories(6, 3), [1])
    assert worst == 27 > laws_of(3, LN_3)["predrawn-signs"][1]


# Of all tests of this module together, were the laws drawn right.
FALSE_POSITIVE_RATE = 1e-10
NUM_TESTS = 10

NUM_DRAWS = 400_000


# Exact parts.


@given(num_signs=st.integers(1, 9), data=st.data())
def test_numbers_are_patterns_one_to_one(num_signs, data):
    radius = data.draw(st.integers(0, num_signs))
    expected = [each for each in range(2**num_signs) if each.bit_count() <= radius]
    ranks = np.arange(len(expected), dtype=np.uint64)
    assert sorted(ball_patterns(ranks, num_signs, radius).tolist()) == expected


def test_patterns_of_62_signs():
    ranks = np.array([0, 1, 2**61, 2**62 - 1], dtype=np.uint64)
    assert ball_patterns(ranks, 62, 62).tolist() == [0, 2**61, 1, 2**62 - 1]
    size = sum(comb(62, i) for i in range(32))
    ends = ball_patterns(np.array([0, size - 1], dtype=np.uint64), 62, 31)
    assert ends.tolist() == [0, 2**31 - 1]


def test_many_patterns_at_a_time_are_those_of_few():
    ranks = draw_below(Entropy.from_seed(3), 50_000, sum(comb(20, i) for i in range(5)))
    whole = ball_patterns(ranks, 20, 4)
    pieces = [ball_patterns(piece, 20, 4) for piece in np.array_split(ranks, 7)]
    assert (whole == np.concatenate(pieces)).all()


def test_the_coin_falls_at_its_threshold():
    # The first words are the coins, the next the uniform patterns, the last the likely ones.
    law = PredrawnSigns(max_changes=3, epsilon0=1.0)
    threshold = law.coin_threshold
    assert law.radius == 1
    coins = [threshold - 1, threshold, 0, 2**64 - 1]
    uniform = [0b111 << 61, 0b110 << 61, 0, 0b101 << 61]
    likely = [0, 3 << 62]  # numbers 0 and 3 of the 4 patterns with at most one minus
    keys = law.draw_keys(ScriptedWords([*coins, *uniform, *likely]), 4)
    assert keys.tolist() == [0b000, 0b110, 0b001, 0b101]


def test_the_change_that_counts_is_numbered_from_one():
    law = SampledChange(max_changes=4, epsilon0=1.0)
    words = [number << 62 for number in range(4)]
    assert law.draw_keys(ScriptedWords(words), 4).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("name", SIGN_LAWS)
def test_there_may_be_no_client(name):
    keys = sign_law(name, max_changes=5, epsilon0=1.0).draw_keys(Entropy.from_seed(0), 0)
    assert (keys.shape, keys.dtype) == ((0,), np.uint64)


# Frequencies, with negative controls.


def is_rejected(counts, probabilities):
    """Return whether counts of some events are not those of a law, by exact binomial tails.

    The events may overlap: each of them gets an equal share of the false-positive rate.
    """
    level = FALSE_POSITIVE_RATE / NUM_TESTS / len(counts)
    tails = (
        2 * min(binom.cdf(count, NUM_DRAWS, p), binom.sf(count - 1, NUM_DRAWS, p))
        for count, p in zip(counts, probabilities, strict=True)
    )
    return min(tails) < level


def grouped(cells, k):
    """Return sums for each pattern, for i minus signs in all, and for sign j being minus."""
    by_number = [sum(cells[p] for p in range(2**k) if p.bit_count() == i) for i in range(k + 1)]
    by_place = [sum(cells[p] for p in range(2**k) if p >> j & 1) for j in range(k)]
    return [*cells, *by_number, *by_place]


def pattern_counts(keys, k):
    return grouped(np.bincount(keys.astype(np.int64), minlength=2**k).tolist(), k)


def pattern_law(law):
    signs, k = signs_of(law), law.max_changes
    cells = [Fraction(signs.weights[p.bit_count()], signs.total) for p in range(2**k)]
    return [float(each) for each in grouped(cells, k)]


@pytest.mark.parametrize(("k", "epsilon0"), [(1, 0.5), (3, 1.0), (4, 3.0), (6, 8.0)])
def test_patterns_have_the_accounted_frequencies(k, epsilon0):
    law = PredrawnSigns(max_changes=k, epsilon0=epsilon0)
    counts = pattern_counts(law.draw_keys(Entropy.from_seed(k), NUM_DRAWS), k)
    assert not is_rejected(counts, pattern_law(law))


def minus_law(law):
    signs = signs_of(law)
    return [comb(62, i) * weight / signs.total for i, weight in enumerate(signs.weights)]


@pytest.mark.parametrize("epsilon0", [1.0, 30.0])
def test_numbers_of_minus_signs_of_long_patterns(epsilon0):
    law = PredrawnSigns(max_changes=62, epsilon0=epsilon0)
    keys = law.draw_keys(Entropy.from_seed(62), NUM_DRAWS)
    counts = np.bincount([int(key).bit_count() for key in keys], minlength=63)
    assert not is_rejected(counts, minus_law(law))


def test_each_place_of_long_patterns_has_the_gap():
    law = PredrawnSigns(max_changes=62, epsilon0=5.0)
    keys = law.draw_keys(Entropy.from_seed(1), NUM_DRAWS)
    counts = [int((keys >> np.uint64(place) & np.uint64(1)).sum()) for place in range(62)]
    assert not is_rejected(counts, [(1 - law.gap) / 2] * 62)


@pytest.mark.parametrize("k", [3, 40])
def test_the_change_that_counts_is_uniform(k):
    law = SampledChange(max_changes=k, epsilon0=1.0)
    keys = law.draw_keys(Entropy.from_seed(k), NUM_DRAWS).astype(np.int64)
    assert not is_rejected(np.bincount(keys, minlength=k + 1)[1:], [1 / k] * k)


def exact_radius_only(law, generator):
    """Draw likely patterns with exactly tau minus signs: a ball taken for a sphere."""
    keys = law.draw_keys(Entropy.from_seed(9), NUM_DRAWS)
    sphere = [sum(1 << i for i in each) for each in combinations(range(4), law.radius)]
    likely = generator.random(NUM_DRAWS) < law.coin_threshold / 2**64
    keys[likely] = generator.choice(sphere, size=int(likely.sum()))
    return keys


def slightly_weaker_coin(law, generator):
    """Draw every fiftieth key uniformly instead."""
    keys = law.draw_keys(Entropy.from_seed(9), NUM_DRAWS)
    keys[::50] = generator.integers(0, 16, size=keys[::50].size)
    return keys


def places_in_favour(law, generator):
    """Draw minus signs that prefer the first places."""
    keys = law.draw_keys(Entropy.from_seed(9), NUM_DRAWS)
    moved = generator.random(NUM_DRAWS) < 0.2
    return np.where(moved & (keys == 8), np.uint64(1), keys)


def never_all_minus(law, _generator):
    """Draw no pattern of minus signs alone: what cannot be drawn costs an infinite loss."""
    keys = law.draw_keys(Entropy.from_seed(9), NUM_DRAWS)
    return np.where(keys == 15, np.uint64(7), keys)


@pytest.mark.parametrize(
    "flawed",
    [
        exact_radius_only,
        slightly_weaker_coin,
        places_in_favour,
        never_all_minus,
    ],
)
def test_planted_flaws_are_found(flawed):
    law = PredrawnSigns(max_changes=4, epsilon0=3.0)
    keys = flawed(law, Entropy.from_seed(5).generator())
    assert is_rejected(pattern_counts(keys, 4), pattern_law(law))


def test_another_epsilon0_is_found():
    drawn = PredrawnSigns(max_changes=4, epsilon0=3.1)
    keys = drawn.draw_keys(Entropy.from_seed(5), NUM_DRAWS)
    claimed = PredrawnSigns(max_changes=4, epsilon0=3.0)
    assert is_rejected(pattern_counts(keys, 4), pattern_law(claimed))
