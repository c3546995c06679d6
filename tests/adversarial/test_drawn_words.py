"""Which words lead to which report: laws counted exactly, out of the code that draws.

A report is constant on cells of words, whose borders are multiples of the thresholds. Both ends of
each cell are drawn with, so that a border that is off by one word is seen; the sizes of the cells
then are the law, as whole numbers, and it must be the documented one.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from adversarial import laws
from adversarial.tapes import (
    LARGEST,
    WORDS,
    Tape,
    assert_is_row,
    cells,
    drawn_law,
    edges,
    leading_cells,
    uniform_cells,
)
from laws_of_numbers import coarse
from shuffledp.core.entropy import Entropy
from shuffledp.randomizers.answer_sets import ANSWER_SET_RANDOMIZERS
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS,
    RANDOMIZERS,
    VECTOR_RANDOMIZERS,
)

HALF_WORDS = 2**32


EPSILON0S = (0.0, 1e-18, 0.01, 0.7, 2.0, 4.0, 20.0, 60.0)


@pytest.mark.parametrize("epsilon0", EPSILON0S)
@pytest.mark.parametrize("k", [2, 3, 5, 16])
def test_k_randomized_response(k, epsilon0):
    randomizer = RANDOMIZERS["k-rr"](domain_size=k, epsilon0=epsilon0)
    if randomizer.epsilon0 == 0.0:
        words = [*edges(*(j * (WORDS // k) for j in range(k + 1))), WORDS - k, WORDS - k + 1]
        reports = randomizer.randomize(np.zeros(len(words), dtype=int), Tape(words)).data
        assert reports.tolist() == [word % k for word in words]
        return
    choices = cells(*(j * randomizer.threshold for j in range(1, k)))
    channel = laws.category(randomizer)
    for x in range(k):

        def draw(words, x=x):
            return randomizer.randomize(np.full(len(words), x), Tape(words)).data.tolist()

        assert_is_row(drawn_law(draw, choices), channel[x], range(k))


@pytest.mark.parametrize("epsilon0", EPSILON0S)
@pytest.mark.parametrize("k", [2, 3, 4, 8])
@pytest.mark.parametrize("name", ["optimized-local-hashing", "hadamard-response"])
def test_hashing(name, k, epsilon0):
    randomizer = RANDOMIZERS[name](domain_size=k, epsilon0=epsilon0)
    g = getattr(randomizer, "num_buckets", 2)
    num_seeds = next(g**m for m in itertools.count(1) if g**m >= k)
    seeds = [(*ends, 1) for ends in leading_cells(num_seeds)]
    coins = cells(*(j * randomizer.threshold for j in range(1, g)))
    channel = laws.category(randomizer)
    for x in range(k):

        def draw(words, x=x):
            # First the words of all seeds, then all coins.
            codes = np.full(len(words), x)
            return randomizer.randomize(codes, Tape(words.T.ravel())).data.tolist()

        assert_is_row(drawn_law(draw, seeds, coins), channel[x], range(num_seeds * g))


def test_a_seed_that_would_be_biased_is_drawn_again():
    randomizer = RANDOMIZERS["optimized-local-hashing"](domain_size=9, epsilon0=2.0)
    g = randomizer.num_buckets
    num_seeds = next(g**m for m in itertools.count(1) if g**m >= 9)
    accepted = leading_cells(num_seeds)
    step = accepted[0][1] + 1
    refused = range(accepted[-1][1] + 1, WORDS, step)
    assert len(refused) == 2 ** (num_seeds - 1).bit_length() - num_seeds > 0
    for i, first in enumerate(refused):
        for word in (first, first + step - 1):
            tape = Tape([word, accepted[i % num_seeds][0], LARGEST])
            report = int(randomizer.randomize(np.array([0]), tape).data[0])
            assert report // g == i % num_seeds
            assert tape.num_left == 0


@pytest.mark.parametrize("epsilon0", EPSILON0S)
@pytest.mark.parametrize("k", [2, 3, 4, 5, 8])
def test_subset_selection(k, epsilon0):
    randomizer = RANDOMIZERS["subset-selection"](domain_size=k, epsilon0=epsilon0)
    size = randomizer.subset_size
    is_blind = randomizer.epsilon0 == 0.0
    others = k if is_blind else k - 1
    coins = cells() if is_blind else cells(randomizer.threshold)
    members = [
        [(*ends, 1) for ends in uniform_cells(others - size + 1 + step, HALF_WORDS)]
        for step in range(size)
    ]
    channel = laws.category(randomizer)
    reports = [y for y in range(2**k) if y.bit_count() == size]
    for x in range(k) if size < 4 else (0, k - 1):

        def draw(words, x=x):
            reports = []
            for start in range(0, len(words), 2**14):  # each call its coins, then its half words
                part = words[start : start + 2**14]
                halves = part[:, 1:].ravel().astype(np.uint32)
                packed = np.append(halves, np.zeros(halves.size % 2, dtype=np.uint32))
                tape = Tape(np.concatenate([part[:, 0], packed.view(np.uint64)]))
                rows = randomizer.randomize(np.full(len(part), x), tape).data
                reports += rows[:, 0].tolist()
                assert tape.num_left == 0
            return reports

        assert_is_row(drawn_law(draw, coins, *members), channel[x], reports)


@pytest.mark.parametrize("epsilon0", EPSILON0S)
@pytest.mark.parametrize("name", ["symmetric-unary", "optimized-unary"])
def test_bits_are_compared_with_the_threshold_digit_by_digit(name, epsilon0):
    randomizer = RANDOMIZERS[name](domain_size=8, epsilon0=epsilon0)
    threshold = randomizer.threshold
    generator = Entropy.from_seed(11).generator()
    special = [*edges(threshold), threshold ^ 1, threshold & (threshold - 1), WORDS // 2]
    drawn = generator.integers(0, LARGEST, 64 - len(special), dtype=np.uint64, endpoint=True)
    numbers = [*special, *drawn.tolist()]
    # Digit j of number p is bit p of word j, the most significant first.
    digits = [
        sum((number >> (63 - j) & 1) << p for p, number in enumerate(numbers)) for j in range(64)
    ]
    truth = np.arange(8)
    # T itself is among the numbers, so that words are read up to the last 1 of T.
    num_read = 65 - (threshold & -threshold).bit_length()
    own_bits = 0b10110100
    rows = randomizer.randomize(truth, Tape([*digits[:num_read], own_bits])).data[:, 0].tolist()
    for user, row in enumerate(rows):
        for category in range(8):
            is_below = numbers[8 * user + category] < threshold
            if category == user:
                is_below = not is_below if name == "symmetric-unary" else own_bits >> user & 1
            assert row >> category & 1 == is_below


@pytest.mark.parametrize("epsilon0", EPSILON0S)
def test_duchi_at_the_ends_and_between(epsilon0):
    randomizer = NUMBER_RANDOMIZERS["duchi"](low=0, high=4, epsilon0=epsilon0)
    for value in range(5):
        roundings = cells(value * WORDS // 4)
        coins = cells(randomizer.law.threshold)

        def draw(words, value=value):
            return randomizer.randomize(
                np.full(len(words), value), Tape(words.T.ravel())
            ).data.tolist()

        row = laws.number(randomizer, [Fraction(value, 4)])[0]
        assert_is_row(drawn_law(draw, roundings, coins), row, (0, 1))


@pytest.mark.parametrize("epsilon0", EPSILON0S)
@pytest.mark.parametrize("resolution", [1, 4, 256])
def test_piecewise_at_the_edges_of_windows(resolution, epsilon0):
    shape = coarse(resolution)(low=0, high=1, epsilon0=epsilon0).law
    m, window, threshold = shape.num_steps, shape.window, shape.threshold
    randomizer = coarse(resolution)(low=0, high=m, epsilon0=epsilon0)
    high = (WORDS - m * threshold) // window
    if m + window > 600:  # the edges at both ends, and some in between
        low_cells = sorted({*range(0, m, m // 50), m - 1})
        high_cells = sorted({*range(0, window, max(window // 20, 1)), window - 1})
    else:
        low_cells, high_cells = range(m), range(window)
    ends = [(j * threshold, (j + 1) * threshold - 1, j) for j in low_cells]
    ends += [
        (m * threshold + j * high, m * threshold + (j + 1) * high - 1, m + j) for j in high_cells
    ]
    assert ends[-1][1] == LARGEST
    for point in sorted({0, 1, m // 2, m - 1, m}):
        words = [end for first, last, _ in ends for end in (first, last)]
        tape = Tape([LARGEST] * len(words) + words)
        reports = randomizer.randomize(np.full(len(words), point), tape).data.tolist()
        outside = [y for y in range(m + window) if not point <= y < point + window]
        inside = list(range(point, point + window))
        expected = [(outside + inside)[number] for _, _, number in ends for _ in range(2)]
        assert reports == expected


@pytest.mark.parametrize("epsilon0", [0.3, 0.7, 1.4, 2.8])  # 1, 1, 2 and 4 steps: floats are exact
def test_numbers_between_grid_points(epsilon0):
    law = coarse(1)(low=0, high=1, epsilon0=epsilon0).law
    m, window, threshold = law.num_steps, law.window, law.threshold
    high = (WORDS - m * threshold) // window
    randomizer = coarse(1)(low=0, high=4 * m, epsilon0=epsilon0)
    outputs = cells(
        *(j * threshold for j in range(m)), *(m * threshold + j * high for j in range(window))
    )
    for value in range(4 * m + 1):
        position = Fraction(value, 4)
        roundings = cells(int((position - math.floor(position)) * WORDS))
        row = laws.number(randomizer, [Fraction(value, 4 * m)])[0]

        def draw(words, value=value):
            values = np.full(len(words), value)
            return randomizer.randomize(values, Tape(words.T.ravel())).data.tolist()

        assert_is_row(drawn_law(draw, roundings, outputs), row, range(m + window))


@pytest.mark.parametrize("max_answers", [1, 2, 3])
def test_sampled_answers_draw_each_slot_alike(max_answers):
    randomizer = ANSWER_SET_RANDOMIZERS["sampled:k-rr"](
        domain_size=3, max_answers=max_answers, epsilon0=1.0
    )
    coins = cells(*(j * randomizer.base.threshold for j in range(1, 4)))
    # A single slot takes no word.
    slots = [(*ends, 1) for ends in leading_cells(max_answers)]
    sets = laws.answer_sets(3, max_answers)
    for answers, row in zip(sets, laws.set_channel(randomizer, sets), strict=True):
        padded = np.array([*answers, *[-1] * (max_answers - len(answers))])

        def draw(words, padded=padded):
            values = np.tile(padded, (len(words), 1))
            used = words if max_answers > 1 else words[:, 1:]
            return randomizer.randomize(values, Tape(used.T.ravel())).data.tolist()

        assert_is_row(drawn_law(draw, slots, coins), row, range(4))


def test_a_slot_that_would_be_biased_is_drawn_again():
    randomizer = ANSWER_SET_RANDOMIZERS["sampled:k-rr"](domain_size=3, max_answers=3, epsilon0=60.0)
    tape = Tape([LARGEST, 1 << 62, LARGEST])
    # The leading two bits are 3, which no slot has, then 1. Slots in falling order: 2, 1, 0.
    assert randomizer.randomize(np.array([[0, 1, 2]]), tape).data.tolist() == [1]
    assert tape.num_left == 0


@pytest.mark.parametrize("epsilon0", [1e-18, 1e-5, 1.0, 9.0, 22.0, 44.0, 60.0])
def test_quotients_by_reciprocals_are_exact_for_many_categories(epsilon0):
    generator = Entropy.from_seed(5).generator()
    for k in (2, 257, 65_537, 10**7 + 19, 2**32 - 1):
        randomizer = RANDOMIZERS["k-rr"](domain_size=k, epsilon0=epsilon0)
        if randomizer.epsilon0 == 0.0:
            continue
        threshold = randomizer.threshold
        numbers = {0, 1, k // 2, k - 2, k - 1, *generator.integers(0, k, 300).tolist()}
        words = edges(*(number * threshold for number in numbers))
        for x in {0, k // 3, k - 1}:
            reports = randomizer.randomize(np.full(len(words), x), Tape(words)).data.tolist()
            assert reports == [
                (x + 1 + word // threshold) % k if word < (k - 1) * threshold else x
                for word in words
            ]


@pytest.mark.parametrize("epsilon0", [0.2, 3.0, 7.0, 14.5, 60.0])
def test_hashes_are_exact_for_many_categories(epsilon0):
    generator = Entropy.from_seed(6).generator()
    for k in (100, 65_537, 10**9, 2**32 - 1):
        randomizer = RANDOMIZERS["optimized-local-hashing"](domain_size=k, epsilon0=epsilon0)
        g, threshold = randomizer.num_buckets, randomizer.threshold
        num_digits = next(m for m in itertools.count(1) if g**m >= k)
        num_seeds = g**num_digits
        numbers = [0, 1, num_seeds - 1, *generator.integers(0, num_seeds, 200).tolist()]
        shift = 64 - (num_seeds - 1).bit_length()
        starts = [(a << shift, a) for a in numbers]
        ends = [((a + 1 << shift) - 1, a) for a in numbers]
        seeds = [*starts, *ends]
        codes = generator.integers(0, k, len(seeds))
        codes[:3] = 0, k - 1, k - 1
        coins = generator.integers(0, LARGEST, len(seeds), dtype=np.uint64, endpoint=True)
        tape = Tape([*(word for word, _ in seeds), *coins.tolist()])
        reports = randomizer.randomize(codes, tape).data.tolist()
        for (_, a), x, coin, report in zip(
            seeds, codes.tolist(), coins.tolist(), reports, strict=True
        ):
            bucket = sum(a // g**i % g * (x // g**i % g) for i in range(num_digits)) % g
            if coin < (g - 1) * threshold:
                bucket = (bucket + 1 + coin // threshold) % g
            assert report == a * g + bucket


EXTREME_WORDS = (0, 1, 255, 2**11 - 1, 2**63 - 1, 2**63, WORDS - 2**11, LARGEST)


@pytest.mark.parametrize("word", EXTREME_WORDS)
def test_no_tape_makes_a_report_that_the_law_cannot(word):
    codes = np.array([0, 1, 2, 2, 0])
    numbers = np.array([-1.0, -0.3, 0.0, 1.0])
    sets = np.array([[0, 1], [-1, 2], [-1, -1]])
    vectors = np.array([[1.0, 0.0, 0.0], [0.0, -0.4, 0.3], [0.0, 0.0, 0.0]])
    for epsilon0 in (0.0, 1e-13, 1e-9, 0.5, 3.0, 30.0, 1e300):
        made = [
            *((make(domain_size=3, epsilon0=epsilon0), codes) for make in RANDOMIZERS.values()),
            *(
                (make(low=-1, high=1, epsilon0=epsilon0), numbers)
                for make in NUMBER_RANDOMIZERS.values()
            ),
            *(
                (make(domain_size=3, max_answers=2, epsilon0=epsilon0), sets)
                for make in ANSWER_SET_RANDOMIZERS.values()
            ),
            *(
                (make(dimension=3, epsilon0=epsilon0), vectors)
                for make in VECTOR_RANDOMIZERS.values()
            ),
        ]
        for randomizer, values in made:
            for length in (5, 40):
                reports = randomizer.randomize(values, Tape([word] * length))
                assert np.isfinite(reports.data).all()
                assert randomizer.aggregate(reports).num_reports == len(values)


@pytest.mark.parametrize("dimension", [2, 3, 4, 17, 1000])
@pytest.mark.parametrize("name", VECTOR_RANDOMIZERS)
def test_extreme_words_keep_vectors_on_their_side_of_the_cut(name, dimension):
    x = np.zeros((1, dimension))
    x[0, -1] = 1.0
    for epsilon0 in (1e-9, 0.1, 4.0, 60.0):
        randomizer = VECTOR_RANDOMIZERS[name](dimension=dimension, epsilon0=epsilon0)
        cut = randomizer.gamma if name == "privunit" else randomizer.cut / math.sqrt(dimension)
        threshold = randomizer.threshold
        for coin, place in itertools.product(edges(threshold), (0, 2**12, LARGEST // 2, LARGEST)):
            tape = Tape([0, coin, place])  # the first word keeps the unit vector as it is
            along = float(randomizer.randomize(x, tape).data[0, -1])
            if coin < threshold:
                assert along <= cut * (1.0 + 1e-6) + 1e-7
            else:
                assert along >= cut * (1.0 - 1e-6) - 1e-7


def test_a_border_that_is_off_by_one_word_is_caught():
    randomizer = RANDOMIZERS["k-rr"](domain_size=3, epsilon0=1.0)

    def draw(words):
        return randomizer.randomize(np.zeros(len(words), dtype=int), Tape(words)).data.tolist()

    for shift in (-1, 1):
        choices = cells(randomizer.threshold + shift, 2 * randomizer.threshold)
        with pytest.raises(AssertionError):
            drawn_law(draw, choices)
    right = drawn_law(draw, cells(randomizer.threshold, 2 * randomizer.threshold))
    row = laws.category(randomizer)[0]
    assert_is_row(right, row, range(3))
    with pytest.raises(AssertionError):
        assert_is_row(right, row[::-1], range(3))
