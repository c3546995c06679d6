"""The discrete Laplace law: its sampler against exact chances, its atoms against the whole law."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from oracles.convex_order import as_tuples, largest_excess
from shuffledp.core.entropy import Entropy
from shuffledp.core.profile import RandomizerFamily
from shuffledp.randomizers import DiscreteLaplace, laplace
from shuffledp.randomizers import number_kernels as laplace_kernels
from shuffledp.randomizers.laplace import (
    MOST_ATOMS,
    LaplaceLaw,
    laplace_attack,
    laplace_blanket,
)

RATES = (1, 2**20 + 1, 2**28, 2**42, 3 * 2**41, 2**48)


class Stream:
    """Words one after the other, each once."""

    def __init__(self, words):
        self.words = list(words)
        self.used = 0

    def __next__(self):
        if self.used == len(self.words):
            raise EOFError
        self.used += 1
        return self.words[self.used - 1]


def is_zero_below(k, stream):
    """Draw a number below k from 64 bits, and tell whether it is 0."""
    while (word := next(stream)) >= 2**64 // k * k:
        pass
    return word % k == 0


def has_exp_minus(numerator, stream):
    """Canonne, Kamath, Steinke, Algorithm 1, the coin x / k as two coins."""
    k = 1
    while True:
        if numerator < 2**52 and next(stream) // 2**12 >= numerator:
            return k % 2 == 1
        if k > 1 and not is_zero_below(k, stream):
            return k % 2 == 1
        k += 1


def discrete_laplace(rate, stream):
    """Canonne, Kamath, Steinke, Algorithm 2."""
    while True:
        word = next(stream)
        if not has_exp_minus(word // 2**12, stream):
            continue
        num_units = 0
        while has_exp_minus(2**52, stream):
            num_units += 1
        size = (word // 2**12 + 2**52 * num_units) // rate
        if word % 2 == 0:
            return size
        if size > 0:
            return -size


@pytest.mark.parametrize("rate", RATES)
def test_noise_is_that_of_plain_integers(rate):
    words = Entropy.from_seed(rate % 97).words(20_000)
    out = np.zeros(5000, dtype=np.int32)
    limit = 2**31 - 1
    points = np.arange(5000, dtype=np.int32) % 7
    written, used = laplace_kernels.add_noise(
        points, words, np.uint64(rate), np.int64(-limit), np.int64(limit), out
    )
    stream = Stream(words.tolist())
    for i in range(written):
        exact = int(points[i]) + discrete_laplace(rate, stream)
        assert out[i] == min(max(exact, -limit), limit)
    assert stream.used == used
    assert 1500 < written < 5000  # the words ran out, so that this was tried as well
    with pytest.raises(EOFError):
        discrete_laplace(rate, stream)


@pytest.mark.parametrize("k", [2, 3, 5, 7, 2**20 - 3])
def test_words_beyond_the_last_multiple_are_rejected(k):
    last = 2**64 // k * k - 1
    words = np.array([2**64 - 1, last, 0], dtype=np.uint64)
    outcome, position = laplace_kernels._one_in(words, 0, k)
    if last == 2**64 - 1:
        assert (outcome, position) == (0, 1)
    else:
        assert (outcome, position) == (0, 2)
    assert laplace_kernels._one_in(words, 2, k) == (1, 3)
    assert laplace_kernels._one_in(words, 3, k) == (laplace_kernels.OUT_OF_WORDS, 3)
    if last < 2**64 - 1:
        assert laplace_kernels._one_in(words[:1], 0, k) == (laplace_kernels.OUT_OF_WORDS, 1)


def test_the_series_of_the_coin_is_the_exponential():
    # The first k whose coin x / k fails is odd with probability sum over odd k of
    # x^(k-1) / (k-1)! (1 - x / k), which is the series of exp(-x).
    for x in (0.0, 0.3, 1.0):
        odd = sum(x ** (k - 1) / math.factorial(k - 1) * (1 - x / k) for k in range(1, 40, 2))
        assert odd == pytest.approx(math.exp(-x), rel=1e-14)


@pytest.mark.parametrize("buffer", [64, 999, 2**15])
def test_reports_do_not_depend_on_the_size_of_the_buffer(monkeypatch, buffer):
    # A report that is not finished is drawn again from its own words. Were they dropped, the
    # reports would depend on where the buffers end; and reports that need few words would win.
    monkeypatch.setattr(laplace, "_WORD_BUFFER", buffer)
    randomizer = DiscreteLaplace(low=0, high=1, epsilon0=1.0)
    num_users = 3000
    values = np.full(num_users, 0.5)
    found = randomizer.randomize(values, Entropy.from_seed(5)).data.tolist()
    stream = Stream(Entropy.from_seed(5).words(20 * num_users)[num_users:].tolist())
    expected = [512 + discrete_laplace(randomizer.law.rate, stream) for _ in range(num_users)]
    assert found == expected


def test_a_report_longer_than_the_buffer_is_finished(monkeypatch):
    monkeypatch.setattr(laplace, "_WORD_BUFFER", 1)
    randomizer = DiscreteLaplace(low=0, high=1, epsilon0=1.0)
    assert randomizer.randomize(np.zeros(50), Entropy.from_seed(5)).num_reports == 50


def test_twins_agree():
    assert laplace_kernels._UNIT_BITS == laplace._UNIT_BITS
    assert laplace_kernels._LARGEST_NUM_UNITS == laplace._LARGEST_NUM_UNITS


class TestLaw:
    @pytest.mark.parametrize("resolution", [1, 2, 4, None])
    @pytest.mark.parametrize(
        "asked", [2.0**-24, 1e-7, 1e-5, 0.001, 0.1, 0.3, 1.0, math.pi, 20.0, 63.99, 64.0, 1e300]
    )
    def test_the_loss_is_a_float_that_is_asked_for_and_met(self, asked, resolution):
        randomizer = DiscreteLaplace(low=0, high=1, epsilon0=asked, resolution=resolution)
        m, s = randomizer.law
        assert Fraction(randomizer.epsilon0) == Fraction(m * s, 2**52) <= Fraction(asked)
        if asked < 64:
            assert Fraction(m * (s + 1), 2**52) > Fraction(asked)
        assert m <= (1024 if resolution is None else resolution)
        # Noise that reaches the cut-off of whole units lies beyond the clamp.
        assert 128 * 2**52 // s >= m + randomizer.law.margin
        assert m + randomizer.law.margin < 2**31

    @pytest.mark.parametrize("resolution", [1, 2, 4])
    @pytest.mark.parametrize("asked", [0.5, 1.0, 7.0, 64.0])
    def test_the_ratio_of_clamped_laws_is_the_loss(self, asked, resolution):
        # With q = exp(-s / 2^52): Pr[z] = (1-q)/(1+q) q^abs(z) and Pr[z >= k] = q^k / (1+q) for
        # k >= 0. So the exponent of q decides every ratio at one output, ends included.
        randomizer = DiscreteLaplace(low=0, high=1, epsilon0=asked, resolution=resolution)
        m, s = randomizer.law
        margin = randomizer.law.margin
        rate = Fraction(s, 2**52)
        ratios = [
            rate * (abs(y - i) - abs(y - j))
            for y in range(-margin, m + margin + 1)
            for i, j in itertools.permutations(range(m + 1), 2)
        ]
        assert max(ratios) == Fraction(randomizer.epsilon0)

    def test_below_the_limit_nothing_is_said(self):
        assert DiscreteLaplace(low=0, high=1, epsilon0=2.0**-24).epsilon0 == 2.0**-24
        below = DiscreteLaplace(low=0, high=1, epsilon0=math.nextafter(2.0**-24, 0.0))
        assert below.epsilon0 == 0.0
        assert below.law == LaplaceLaw(1, 0)
        assert below.law.margin == 0

    def test_variance_is_that_of_the_law(self):
        for asked, resolution in itertools.product((0.5, 1.0, 4.0, 64.0), (1, 4, 64)):
            randomizer = DiscreteLaplace(low=-1, high=1, epsilon0=asked, resolution=resolution)
            q = math.exp(-randomizer.law.rate / 2**52)
            series = sum(2 * z**2 * q**z for z in range(1, 20_000)) * (1 - q) / (1 + q)
            assert randomizer.law.noise_variance == pytest.approx(series, rel=1e-9)
            step = 2 / resolution
            assert randomizer.report_variance(-1.0) == pytest.approx(series * step**2, rel=1e-9)
            between = -1 + step / 4  # rounding adds f (1 - f) squared steps
            assert randomizer.report_variance(between) == pytest.approx(
                (series + 3 / 16) * step**2, rel=1e-9
            )

    @pytest.mark.parametrize("epsilon0", [1e-6, 0.01, 1.0, 10.0])
    def test_variance_is_close_to_the_continuous_one(self, epsilon0):
        randomizer = DiscreteLaplace(low=0, high=1, epsilon0=epsilon0)
        for variance in (
            randomizer.mean_report_variance(),
            randomizer.worst_report_variance(),
            randomizer.report_variance(0.3),
        ):
            assert variance == pytest.approx(2 / epsilon0**2, rel=2e-5)


def test_extreme_noise_is_clamped_to_the_ends():
    randomizer = DiscreteLaplace(low=0, high=1, epsilon0=2.0**-24)
    m, s = randomizer.law
    margin = randomizer.law.margin
    assert (m, margin) == (1, 2**30)
    # All words 0: the fraction 0 is kept, and every coin of a whole unit comes up, but at k where
    # words run out; so feed words that make each exp(-1) succeed: k = 2 fails, at odd k it is 1.
    words = np.zeros(100_000, dtype=np.uint64)
    out = np.zeros(1, dtype=np.int32)
    # The first word makes a fraction near 1 with the sign plus; next the coin of x fails at once
    # (k = 1, odd: kept); then each unit takes k = 2 up, k = 3 down: odd, kept.
    words[0] = np.uint64(0xFFFFFFFFFFFFF000)
    words[1] = np.uint64(0xFFFFFFFFFFFFFFFF)
    words[2::2] = 0
    words[3::2] = 1
    for sign, end in ((0, m + margin), (1, -margin)):
        words[0] = np.uint64(0xFFFFFFFFFFFFF000 + sign)
        written, used = laplace_kernels.add_noise(
            np.zeros(1, dtype=np.int32),
            words,
            np.uint64(s),
            np.int64(-margin),
            np.int64(m + margin),
            out,
        )
        assert (written, used) == (1, 2 + 2 * 128)
        assert out[0] == end


RATIOS = (Fraction(1, 3), Fraction(1), Fraction(8, 7), Fraction(2), Fraction(9))


def exact_law(num_steps, q):
    """Rows of all grid points for a rational q, the reports beyond either end as one each."""
    return [
        [
            q**i / (1 + q),
            *((1 - q) / (1 + q) * q ** abs(y - i) for y in range(1, num_steps)),
            q ** (num_steps - i) / (1 + q),
        ]
        for i in range(num_steps + 1)
    ]


def atoms_of(rows, first, second, base=None):
    """Atoms of the infimum of all rows, or of the row ``base``, report by report."""
    law = [min(column) for column in zip(*rows, strict=True)] if base is None else rows[base]
    return [
        (mass, r0 / mass, r1 / mass)
        for mass, r0, r1 in zip(law, rows[first], rows[second], strict=True)
    ]


def float_law(num_steps, step):
    """Masses of all reports of the lower end, and of the other end, in floats."""
    places = np.arange(num_steps + 1)
    masses = math.tanh(step / 2) * np.exp(-step * places)
    masses[0] = 1.0 / (1.0 + math.exp(-step))
    masses[-1] = math.exp(-step * num_steps) * masses[0]
    return masses, masses[::-1].copy()


def collected(atoms):
    """Masses by ratios, to 10 digits."""
    masses = {}
    for mass, *ratios in atoms:
        key = tuple(float(f"{float(ratio):.10g}") for ratio in ratios)
        masses[key] = masses.get(key, 0.0) + float(mass)
    return masses


@pytest.mark.parametrize("num_steps", [1, 2, 4, 8])
@pytest.mark.parametrize("q", [Fraction(9, 10), Fraction(1, 2), Fraction(1, 50)])
def test_small_grids_are_exact(num_steps, q):
    rows = exact_law(num_steps, q)
    assert all(sum(row) == 1 for row in rows)
    step = -math.log(q)
    found = collected(as_tuples(laplace_blanket(num_steps, step)))
    expected = collected(atoms_of(rows, 0, num_steps))
    assert found == pytest.approx(expected, rel=1e-12)
    found = collected(as_tuples(laplace_attack(num_steps, step)))
    expected = collected(atoms_of(rows, 0, num_steps, base=0))
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("num_steps", [1, 2, 4, 6, 7])  # also such as no randomizer has
@pytest.mark.parametrize("q", [Fraction(9, 10), Fraction(1, 2), Fraction(1, 50)])
def test_the_ends_are_the_worst_pair(num_steps, q):
    rows = exact_law(num_steps, q)
    worst = atoms_of(rows, 0, num_steps)
    for pair in itertools.permutations(range(num_steps + 1), 2):
        for e in RATIOS:
            assert largest_excess(atoms_of(rows, *pair), worst, e) == 0  # 0 is that of the means


def test_a_pair_that_is_not_worst_is_told_apart():
    rows = exact_law(4, Fraction(1, 2))
    inner, ends = atoms_of(rows, 1, 3), atoms_of(rows, 0, 4)
    assert largest_excess(ends, inner, Fraction(1)) > 0


@pytest.mark.parametrize("num_steps", [32, 64, 256])
@pytest.mark.parametrize("loss", [1e-4, 0.5, 2.0, 6.0, 20.0])
def test_few_atoms_dominate_all(num_steps, loss):
    step = loss / num_steps
    low, high = float_law(num_steps, step)
    omega = np.minimum(low, high)
    exact = list(zip(omega.tolist(), (low / omega).tolist(), (high / omega).tolist(), strict=True))
    stated = as_tuples(laplace_blanket(num_steps, step))
    assert len(stated) <= max(MOST_ATOMS, 33)
    if num_steps == 32:
        assert collected(stated) == pytest.approx(collected(exact), rel=1e-9)
    assert math.fsum(mass for mass, _, _ in stated) == pytest.approx(omega.sum(), rel=1e-12)
    assert max(r0 for _, r0, _ in stated) == pytest.approx(math.exp(loss), rel=1e-12)
    assert min(min(r0, r1) for _, r0, r1 in stated) == 1.0
    for e in (1.0, 1.0 + loss / 50, math.exp(loss / 2)):
        assert largest_excess(exact, stated, e) <= 1e-14 * (1.0 + e)

    def variance(atoms):
        return math.fsum(mass * (r0 - r1) ** 2 for mass, r0, r1 in atoms)

    most = 1.012 if loss > 6.0 else 1.0015
    assert 1.0 - 1e-9 <= variance(stated) / variance(exact) <= most


@pytest.mark.parametrize("num_steps", [64, 256])
@pytest.mark.parametrize("loss", [1e-4, 0.5, 2.0, 6.0, 20.0])
def test_merged_data_are_dominated_and_lose_little(num_steps, loss):
    step = loss / num_steps
    low, high = float_law(num_steps, step)
    exact = [
        (mass, 1.0, ratio) for mass, ratio in zip(low.tolist(), (high / low).tolist(), strict=True)
    ]
    stated = as_tuples(laplace_attack(num_steps, step))
    assert len(stated) <= MOST_ATOMS
    assert math.fsum(mass for mass, _, _ in stated) == pytest.approx(1.0, rel=1e-14)
    for e in (1.0, 1.0 + loss / 50, math.exp(loss / 2)):
        assert largest_excess(stated, exact, e) <= 1e-14 * (1.0 + e)

    def variance(atoms):
        return math.fsum(mass * (r0 - r1) ** 2 for mass, r0, r1 in atoms)

    assert 0.99 <= variance(stated) / variance(exact) <= 1.0 + 1e-9


@pytest.mark.parametrize("q", [Fraction(19, 20), Fraction(1, 2), Fraction(1, 50)])
def test_the_others_separate_the_ends_most_at_an_end(q):
    rows = exact_law(8, q)

    def separation(base):
        return sum(mass * (r0 - r1) ** 2 for mass, r0, r1 in atoms_of(rows, 0, 8, base=base))

    assert max(range(9), key=separation) in (0, 8)


@pytest.mark.parametrize("epsilon0", [0.0, 1e-9, 1e-7, 1e-3, 1.0, 10.0, 64.0, 1e300])
@pytest.mark.parametrize("resolution", [None, 4])
def test_profile(epsilon0, resolution):
    randomizer = DiscreteLaplace(low=0, high=1, epsilon0=epsilon0, resolution=resolution)
    profile = randomizer.profile
    assert profile.family is RandomizerFamily.OTHER
    assert profile.epsilon0 == randomizer.epsilon0
    for atoms in (profile.blanket, profile.attack):
        assert 1 <= len(atoms) <= MOST_ATOMS
        for ratio in ("ratio0", "ratio1"):
            mean = math.fsum(atom.mass * getattr(atom, ratio) for atom in atoms)
            assert mean == pytest.approx(1.0, rel=1e-13)
    largest = max(atom.ratio0 for atom in profile.blanket)
    assert math.log(largest) == pytest.approx(randomizer.epsilon0, rel=1e-14, abs=1e-15)
    if randomizer.epsilon0 == 0.0:
        assert largest == 1.0
