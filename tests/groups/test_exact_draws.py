"""Exact decisions about a uniform number, against 400-digit arithmetic and by counting."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mpmath import mp
from scipy.special import chdtri

from adversarial.tapes import LARGEST, Tape
from shuffledp.core.entropy import Entropy
from shuffledp.groups import exact_draws as truncated_poisson
from shuffledp.groups.exact_draws import (
    LIBRARY_MARGIN,
    SMALLEST_THETA,
    LazyUniform,
    draw_against_odds,
    draw_geometric,
    draw_geometrics,
    draw_lattice_noise,
    draw_norm_acceptance,
    draw_truncated_poisson,
)


class Script:
    """Hands out given words, and then fails."""

    def __init__(self, *words):
        self.left = list(words)

    def words(self, count):
        return np.array([self.left.pop(0) for _ in range(count)], dtype=np.uint64)


def begin(*words):
    return LazyUniform(prefix=words[0], num_bits=64, entropy=Script(*words[1:]))


def value_of(*words):
    """Return the U that these words are followed by, and then a bit and zeros."""
    prefix = 0
    for word in words:
        prefix = prefix << 64 | word
    return (mpmath.mpf(prefix) + 0.5) / mpmath.mpf(2) ** (64 * len(words))


WORDS = st.lists(
    st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]) | st.integers(0, 2**64 - 1),
    min_size=4,
    max_size=4,
)
# Enough to decide on all words of a script that does not end in zeros or ones throughout.
LAST = 0x123456789ABCDEF0


@given(words=WORDS, theta=st.floats(1e-9, 60.0))
def test_geometric_variates(words, theta):
    with mpmath.workdps(400):
        expected = int(mpmath.floor(-mpmath.log(value_of(*words, LAST)) / mpmath.mpf(theta)))
    assert draw_geometric(begin(*words, LAST), theta) == expected


@given(words=WORDS, theta=st.floats(SMALLEST_THETA, 1e300) | st.floats(1e-9, 60.0))
def test_geometric_variates_decided_by_floats(words, theta):
    expected = draw_geometric(begin(*words, LAST), theta)
    for margin in (LIBRARY_MARGIN, 0.05):
        assert draw_geometrics(1, theta, Script(*words, LAST), margin=margin) == expected


@pytest.mark.parametrize("theta", [0.01, 0.3, 2.0])
def test_words_next_to_a_boundary_ask_for_more_bits(theta):
    # U = e^(-theta j) is where the variate passes from j - 1 to j.
    for j in (1, 2, 7):
        with mpmath.workdps(60):
            border = int(mpmath.floor(mpmath.exp(-mpmath.mpf(theta) * j) * 2**64))
        for change, value, asked in ((-(2**20), j, 0), (0, None, 1), (2**20, j - 1, 0)):
            tape = Tape([border + change, LAST])
            found = draw_geometrics(1, theta, tape).item()
            assert found in ({j - 1, j} if value is None else {value})
            assert tape.num_left == 1 - asked


@given(words=WORDS, threshold=st.floats(1e-9, 200.0))
def test_exponential_variates(words, threshold):
    with mpmath.workdps(400):
        expected = bool(-mpmath.log(value_of(*words, LAST)) > threshold)
    assert draw_norm_acceptance(begin(*words, LAST), threshold, 0.0, (1,)) == expected


@given(words=WORDS, weight=st.integers(1, 2**32), theta=st.floats(0.0, 200.0))
def test_odds(words, weight, theta):
    with mpmath.workdps(400):
        bound = weight / (weight + mpmath.exp(theta))
        uniform = value_of(*words, LAST)
        # A script of words that all equal the digits of the bound does not decide.
        assume(abs(uniform - bound) > mpmath.mpf(2) ** -250)
        expected = bool(uniform < bound)
    assert draw_against_odds(begin(*words, LAST), weight, theta) == expected


def test_words_at_a_boundary_are_decided_by_further_bits():
    # The first 64 bits of e^-1: what follows says on which side U lies.
    with mpmath.workdps(100):
        digits = int(mpmath.floor(mpmath.exp(-1) * 2**128))
    first, second = divmod(digits, 2**64)
    for change, is_above in ((-1, True), (1, False)):
        for draw in (
            lambda uniform: draw_norm_acceptance(uniform, 1.0, 0.0, (1,)),
            lambda uniform: draw_geometric(uniform, 1.0) >= 1,
        ):
            uniform = begin(first, second + change)
            assert draw(uniform) is is_above
            assert uniform.num_bits == 128


def test_tails_go_far_beyond_one_word():
    # P(G >= 1) = e^-700 = 2^-1009.9: sixteen words of zeros are not enough, but almost.
    assert draw_geometric(begin(*[0] * 15, 2**14), 700.0) == 1
    assert draw_geometric(begin(*[0] * 15, 2**15), 700.0) == 0
    assert draw_against_odds(begin(*[0] * 15, 2**14), 1, 700.0)
    assert not draw_against_odds(begin(*[0] * 15, 2**15), 1, 700.0)


def test_the_least_theta():
    # 1 - e^-t is just below t = 2^-1074: a one less in 16 words and 50 bits, or in the next bits.
    ones = [2**64 - 1] * 16
    for last, is_above in ((2**64 - 2**15, True), (2**64 - 2**14 + 1, False)):
        assert draw_norm_acceptance(begin(*ones, last), 5e-324, 0.0, (1,)) is is_above


@pytest.mark.parametrize("bits", [0, 1, 7])
def test_probabilities_do_not_depend_on_the_bits_drawn_at_first(bits):
    # However few bits are known, the decisions are those of the same number with many.
    entropy = Entropy.from_seed(3)
    for _ in range(300):
        words = [int(word) for word in entropy.words(3)]
        whole = words[0] << 128 | words[1] << 64 | words[2]
        prefix, rest = whole >> (192 - bits), whole & ((1 << (192 - bits)) - 1)
        rest >>= 192 - bits - 128
        script = Script(rest >> 64, rest & (2**64 - 1))
        short = LazyUniform(prefix=prefix, num_bits=bits, entropy=script)
        assert draw_geometric(short, 0.01) == draw_geometric(begin(*words), 0.01)
        assert short.num_bits > 0


def test_theta_beyond_all_logarithms():
    assert draw_geometric(begin(1), 1e308) == 0
    assert not draw_against_odds(begin(1), 2**32, 1e308)
    assert not draw_against_odds(begin(0, 1), 2**32, math.nextafter(math.inf, 0.0))


def cumulative(num_items, theta):
    """Return P(s <= x) for x = 0, ..., n."""
    rate = mpmath.expm1(mpmath.mpf(theta))
    weights = [rate**s / mpmath.factorial(s) for s in range(num_items + 1)]
    total = mpmath.fsum(weights)
    return [mpmath.fsum(weights[: s + 1]) / total for s in range(num_items + 1)]


TRUNCATED_POISSON_WORDS = st.lists(
    st.sampled_from([0, 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1), min_size=3, max_size=3
)


@given(
    words=TRUNCATED_POISSON_WORDS,
    bits=st.integers(0, 64),
    num_items=st.integers(1, 30),
    theta=st.floats(0.0, 60.0) | st.sampled_from([5e-324, 1e-300, 1e-12, math.log(2)]),
)
def test_the_least_value_whose_cumulative_probability_exceeds_u(words, bits, num_items, theta):
    with mpmath.workdps(400):
        known = words[0] >> (64 - bits)
        prefix = known << 128 | words[1] << 64 | words[2]
        u = (mpmath.mpf(prefix) + 0.5) / mpmath.mpf(2) ** (bits + 128)
        law = cumulative(num_items, theta)
        assume(min(abs(u - p) for p in law[:-1]) > mpmath.mpf(2) ** (-bits - 100))
        expected = next(s for s, p in enumerate(law) if u < p)
    uniform = LazyUniform(prefix=known, num_bits=bits, entropy=Script(*words[1:]))
    assert draw_truncated_poisson(num_items, theta, uniform) == expected


def test_words_at_a_boundary_are_decided_by_further_bits_of_truncated_poisson():
    with mpmath.workdps(100):
        digits = int(mpmath.floor(cumulative(9, 1.5)[4] * 2**128))
    first, second = divmod(digits, 2**64)
    for change, expected in ((-1, 4), (1, 5)):
        uniform = LazyUniform(prefix=first, num_bits=64, entropy=Script(second + change))
        assert draw_truncated_poisson(9, 1.5, uniform) == expected
        assert uniform.num_bits == 128


@pytest.mark.parametrize(
    ("num_items", "theta"), [(1000, 3.0), (1000, 6.0), (1000, 9.0), (10**6, 9.0), (10**6, 13.8)]
)
def test_sums_of_many_items_lie_within_the_stated_error(num_items, theta):
    first, sums, is_complete = truncated_poisson._weights(num_items, theta, 64)
    finer_first, finer, _ = truncated_poisson._weights(num_items, theta, 128)
    # 64 more bits show the error of the coarser sums, and those of its tails.
    shift = first - finer_first
    assert shift >= 0
    for index in range(0, len(sums), 97):
        exact = Fraction(finer[index + shift], 2**64)
        assert abs(exact - sums[index]) < truncated_poisson.ERROR_UNITS
    whole = Fraction(finer[-1], 2**64)
    assert abs(whole - sums[-1]) < truncated_poisson.ERROR_UNITS
    assert is_complete == (first + len(sums) == num_items + 1)


@pytest.mark.parametrize("theta", [46.0, 60.0, 700.0, 1e308])
def test_large_theta_forces_every_place(theta):
    uniform = LazyUniform(prefix=2**62, num_bits=64, entropy=Script())
    assert draw_truncated_poisson(10**6, theta, uniform) == 10**6


def test_tails_go_far_beyond_one_word_of_truncated_poisson():
    # P(s < 1) = 1 / e^700 = 2^-1009.9 for one item.
    def draw(last):
        uniform = LazyUniform(prefix=0, num_bits=64, entropy=Script(*[0] * 14, last))
        return draw_truncated_poisson(1, 700.0, uniform)

    assert draw(2**14 - 1) == 0
    assert draw(2**15) == 1


def test_outside_the_weights_worked_out_more_bits_are_drawn():
    # No bits known: the first table settles nothing, whatever the law.
    entropy = Entropy.from_seed(4)
    for theta in (0.0, 1.0, 8.0):
        uniform = LazyUniform(prefix=0, num_bits=0, entropy=entropy)
        value = draw_truncated_poisson(10**5, theta, uniform)
        assert 0 <= value <= 10**5
        assert uniform.num_bits == 64


# For the whole module; each of the tests takes an equal share.
FALSE_POSITIVE_RATE = 1e-9
NUM_TESTS = 7
NUM_DRAWS = 40_000


def statistic(points, theta, *, shape=lambda k: math.sqrt(sum(x * x for x in k))):
    """Chi-square of points near 0 and of all others, with its degrees of freedom."""
    dimensions = points.shape[1]
    reach = math.ceil(60 / theta) if dimensions == 1 else math.ceil(25 / theta)
    axis = np.arange(-reach, reach + 1)
    squares = np.zeros((1,) * dimensions)
    for d in range(dimensions):
        squares = squares + (axis**2).reshape([-1 if d == e else 1 for e in range(dimensions)])
    total = np.exp(-theta * np.sqrt(squares)).sum()
    near = list(itertools.product((-1, 0, 1, 2), repeat=dimensions))
    chances = [math.exp(-theta * shape(k)) / total for k in near]
    counts = [int((points == np.array(k)).all(axis=1).sum()) for k in near]
    expected = np.array([*chances, 1.0 - sum(chances)]) * len(points)
    counts = np.array([*counts, len(points) - sum(counts)])
    return float(((counts - expected) ** 2 / expected).sum()), len(near)


def critical(degrees):
    return chdtri(degrees, FALSE_POSITIVE_RATE / NUM_TESTS)


@pytest.mark.parametrize(
    ("dimensions", "theta"), [(1, 0.7), (1, 2.0), (2, 0.6), (2, 1.5), (3, 1.1)]
)
def test_points_have_their_law(dimensions, theta):
    points = draw_lattice_noise(NUM_DRAWS, dimensions, theta, Entropy.from_seed(5))
    found, degrees = statistic(points, theta)
    assert found < critical(degrees)


def test_the_statistic_rejects_the_law_of_another_norm():
    points = draw_lattice_noise(NUM_DRAWS, 2, 1.0, Entropy.from_seed(5))
    found, degrees = statistic(points, 1.0, shape=lambda k: max(abs(x) for x in k))
    assert found > critical(degrees)


def test_decimals_decide_as_floats_do():
    for dimensions in (1, 2, 3):
        for theta in (0.01, 0.4, 5.0):
            quick = draw_lattice_noise(60, dimensions, theta, Entropy.from_seed(2))
            exact = draw_lattice_noise(60, dimensions, theta, Entropy.from_seed(2), margin=math.inf)
            assert np.array_equal(quick, exact)


def test_a_word_of_zeros_asks_for_more_bits():
    # U = 2^-128 and a little: -ln U is just below 128 ln 2 = 88.7.
    assert draw_lattice_noise(1, 1, 1.0, Tape([0, 1, 0, 0])).tolist() == [[88]]


def test_minus_zero_is_refused_so_that_zero_is_not_drawn_twice():
    # Magnitude 0 with a minus, then magnitude 0 with a plus, then one of 1 with a minus.
    one = math.floor(math.exp(-1.5) * 2**64)
    tape = Tape([LARGEST, 1, LARGEST, 0, one, 1])
    assert draw_lattice_noise(2, 1, 1.0, Tape([LARGEST, one, 1, 1, LARGEST, 0])).tolist() == [
        [-1],
        [0],
    ]
    assert draw_lattice_noise(1, 1, 1.0, tape).tolist() == [[0]]
    assert tape.num_left == 2


@pytest.mark.parametrize("point", [(3, -4), (1, 1), (0, 0), (7, 0, -2)])
def test_acceptance_has_the_exact_probability(point):
    theta, rate = 0.7, 0.7 / 2.0
    with mp.workdps(60):
        norm = mp.sqrt(sum(x * x for x in point))
        chance = mp.exp(mp.mpf(rate) * sum(abs(x) for x in point) - mp.mpf(theta) * norm)
        border = int(mp.floor(chance * 2**64))
    entropy = Entropy.from_seed(1)
    for word, passes in ((border - 2, True), (border + 2, False)):
        if 0 <= word <= LARGEST:
            uniform = LazyUniform(prefix=word, num_bits=64, entropy=entropy)
            assert draw_norm_acceptance(uniform, theta, rate, point) is passes
            assert uniform.num_bits == 64
