"""The blanket bound, and the loads that it is made of."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, poisson

from oracles.fullest_bin import by_convolution, maximum_load
from oracles.informed_guesses import all_counts, informed_guess, known_laws
from oracles.shuffled_guesses import k_rr
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.counts import blanket as blanket_vulnerability
from shuffledp.leakage.counts.blanket import (
    blanket_vulnerability_upper,
    channel_blanket_upper,
)
from shuffledp.leakage.counts.count_kernels import group_waves
from shuffledp.leakage.counts.fullest_bin import alike_excess, excess_share, maximum_load_excess


def parts(total, size):
    """Yield all tuples of ``size`` numbers with this sum."""
    if size == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in parts(total - first, size - 1):
            yield (first, *rest)


def listed(balls, bins, chance):
    rest = 1 - bins * chance
    total = Fraction(0)
    for loads in parts(balls, bins + 1):
        number = math.factorial(balls) // math.prod(map(math.factorial, loads))
        total += number * chance ** (balls - loads[-1]) * rest ** loads[-1] * max(loads[:-1])
    return total - balls * chance


@pytest.mark.parametrize(("balls", "bins"), [(10**6, 5), (10**9, 10**4)])
def test_against_the_mean_over_how_many_are_in_bins(balls, bins):
    """Means of the excess at two ends of a narrow range of numbers of balls."""
    chance = Fraction(1, 2 * bins)
    found = alike_excess(balls, bins, chance)
    spread = 9 * math.isqrt(balls // 4)
    low = maximum_load_excess(balls // 2 - spread, bins).lower
    high = maximum_load_excess(balls // 2 + spread, bins).upper
    assert low * (1.0 - 1e-12) <= found.lower <= found.upper <= high * (1.0 + 1e-12)
    assert found.upper - found.lower < 1e-6 * found.upper


def test_everything_in_bins():
    for balls, bins in ((50, 4), (3000, 3)):
        found = alike_excess(balls, bins, Fraction(1, bins))
        other = maximum_load_excess(balls, bins)
        assert found.lower <= other.upper
        assert other.lower <= found.upper
        assert found.upper - found.lower < 1e-7


def test_waves():
    masses = poisson.pmf(np.arange(300), 120.0)
    angles = np.array([0.0, 0.01, 0.5, 3.0])
    starts, stops = np.array([0, 100, 250]), np.array([100, 250, 250])
    found = group_waves(masses, -120.0, angles, starts, stops)
    numbers = np.arange(300) - 120.0
    for group, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        waves = np.exp(1j * np.outer(angles, numbers[start:stop])) @ masses[start:stop]
        assert np.abs(found[group] - waves).max() < 1e-14


def test_above_all_knowledge():
    for values, total, truth in itertools.product(
        (2, 3), (1, 2, 4), (Fraction(1, 2), Fraction(4, 5))
    ):
        channel = k_rr(values, truth)
        for law in (
            [Fraction(1, values)] * values,
            [Fraction(1, 2), *[Fraction(1, 2 * values - 2)] * (values - 1)],
        ):
            prior = [float(each) for each in law]
            worst = max(
                informed_guess(law, channel, known_laws(channel, counts))
                for counts in all_counts(total, values)
            )
            for bound in (
                blanket_vulnerability_upper(total + 1, values, truth, prior),
                channel_blanket_upper(
                    total + 1, [[float(a) for a in row] for row in channel], prior=prior
                ),
            ):
                assert worst <= bound + 1e-15
                assert (
                    bound
                    <= sum(
                        max(
                            q * row[y]
                            for q, row in zip(prior, np.array(channel, float), strict=True)
                        )
                        for y in range(values)
                    )
                    + 1e-12
                )


@pytest.mark.parametrize(
    ("num_users", "domain_size", "truth"), [(1, 3, 0.5), (5, 3, 0.5), (40, 4, 0.6), (900, 2, 0.8)]
)
def test_against_the_plain_sum(num_users, domain_size, truth):
    answer = (1.0 - truth) / (domain_size - 1)
    law = binom.pmf(np.arange(num_users), num_users - 1, domain_size * answer)
    shares = [
        1.0 if m == 1 else maximum_load(m, domain_size).upper / m for m in range(1, num_users + 1)
    ]
    plain = answer + (truth - answer) * float(law @ shares)
    found = blanket_vulnerability_upper(num_users, domain_size, truth)
    assert plain <= found + 1e-13
    # Ranges stand at their left ends: half of a per cent of what is leaked, where there are many.
    assert found - plain <= 0.005 * (plain - 1.0 / domain_size) + 1e-12


def test_edges():
    assert blanket_vulnerability_upper(1, 4, 0.7) == pytest.approx(0.7, abs=1e-14)
    assert blanket_vulnerability_upper(10**6, 4, 1) == 1.0
    assert blanket_vulnerability_upper(50, 4, 0.25) == pytest.approx(0.25)
    assert blanket_vulnerability_upper(10**9, 2, 0.8) < 0.50002
    assert blanket_vulnerability_upper(10, 3, 0.5, [1.0, 0.0, 0.0]) == 1.0
    assert blanket_vulnerability_upper(10, 3, 0.9, [0.9, 0.05, 0.05]) <= 0.901
    with pytest.raises(OutOfRegimeError, match="truth"):
        blanket_vulnerability_upper(10, 3, 0.2)
    with pytest.raises(ParameterError, match="num_users"):
        blanket_vulnerability_upper(0, 3, 0.5)
    with pytest.raises(ParameterError, match="num_users"):
        blanket_vulnerability_upper(10**10 + 1, 3, 0.5)
    with pytest.raises(ParameterError, match="domain_size"):
        blanket_vulnerability_upper(10, 1, 0.5)


def test_no_common_noise_hides_nobody():
    rows = [[1.0, 0.0], [0.0, 1.0]]
    assert channel_blanket_upper(100, rows) == 1.0
    assert channel_blanket_upper(100, rows, prior=[0.7, 0.3]) == 1.0


def test_both_bounds_agree_for_randomized_response():
    rows = np.full((3, 3), 0.2) + 0.4 * np.eye(3)
    one, other = blanket_vulnerability_upper(60, 3, 0.6), channel_blanket_upper(60, rows)
    assert one <= other <= one + 0.03 * (one - 1 / 3)


def test_falls_with_users_and_noise():
    users = [blanket_vulnerability_upper(n, 3, 0.6) for n in (1, 2, 5, 20, 100, 1000, 10**5, 10**7)]
    assert users == sorted(users, reverse=True)
    noise = [blanket_vulnerability_upper(50, 3, p) for p in (0.4, 0.5, 0.7, 0.9, 0.99)]
    assert noise == sorted(noise)


def test_shares_of_the_fullest_bin():
    for balls, bins in itertools.product((1, 2, 7, 50), (2, 3, 8)):
        share = excess_share(balls, bins)
        load = maximum_load(balls, bins)
        assert 1.0 / bins + share.lower <= load.upper / balls + 1e-14
        assert load.lower / balls <= 1.0 / bins + share.upper + 1e-14


def test_ranges_are_above_what_is_exact(monkeypatch):
    exact = [blanket_vulnerability_upper(n, 3, 0.6) for n in (1, 5, 30, 3000)]
    monkeypatch.setattr(blanket_vulnerability, "alike_excess", lambda *_: None)
    blanket_vulnerability._uniform_upper.cache_clear()
    ranged = [blanket_vulnerability_upper(n, 3, 0.6) for n in (1, 5, 30, 3000)]
    blanket_vulnerability._uniform_upper.cache_clear()
    for one, other in zip(exact, ranged, strict=True):
        assert one <= other * (1.0 + 1e-12)
        assert other - 1 / 3 < 1.01 * (one - 1 / 3)


def test_no_noise_hides_nothing():
    assert blanket_vulnerability_upper(9, 3, 1) == 1.0


def test_ranges_where_almost_all_is_noise():
    """At 1/k and a little more all n users are noise: V_S(n), a little wider."""
    found = blanket_vulnerability_upper(10**9, 5, 0.2000001)
    truth = Fraction(0.2000001)
    kept = truth - (1 - truth) / 4
    even = maximum_load(10**9, 5).lower / 10**9 - 0.2
    assert 0.0 < 0.99 * float(kept) * even < found - 0.2 < 1.01 * float(kept) * even


def test_against_fractions():
    for balls, (bins, chance) in itertools.product(
        (1, 2, 3, 7, 15),
        [(1, "1/5"), (2, "1/4"), (2, "1/3"), (3, "1/10"), (4, "1/5"), (3, "1/1000")],
    ):
        exact = listed(balls, bins, Fraction(chance))
        found = alike_excess(balls, bins, Fraction(chance))
        assert Fraction(found.lower) <= exact <= Fraction(found.upper)
        assert found.upper - found.lower < 1e-11


@pytest.mark.parametrize(
    ("balls", "bins", "chance"), [(1000, 4, "1/10"), (1000, 2, "1/5"), (500, 30, "1/60")]
)
def test_against_all_loads(balls, bins, chance):
    share = float(Fraction(chance))
    found = alike_excess(balls, bins, Fraction(chance))
    other = by_convolution(balls, [share] * bins) - balls * share
    assert found.lower <= other + 1e-8
    assert other - 1e-8 <= found.upper
    assert found.upper - found.lower < 1e-8


def test_too_long():
    assert alike_excess(10**9, 4, Fraction(1, 4) - Fraction(1, 10**12)) is None
