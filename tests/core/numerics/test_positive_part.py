import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from oracles.positive_parts import fair_walk, listed, on_a_lattice, rare_hits
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics import positive_part
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.positive_part import SMALLEST_UPPER, mean_positive_part

# Round-off of the oracles, of sixty digits.
SLACK = mpf(10) ** -40


def enclose(num_terms, base, masses, differences, **options):
    return mean_positive_part(
        num_terms, base, np.array(masses, float), np.array(differences, float), **options
    )


def assert_encloses(found, exact, case=None):
    assert found.lower <= exact * (1 + SLACK), case
    assert exact * (1 - SLACK) <= found.upper, case


@pytest.fixture(params=["listing", "contour"])
def branch(request, monkeypatch):
    """Both ways of computing the same."""
    if request.param == "contour":
        monkeypatch.setattr(positive_part, "_MOST_OUTCOMES", 0)
    return request.param


# ------------------------------------------------------------------ adversarial small laws

# How the values are drawn from standard normal ones, and the masses from exponential ones.
SHAPES = (
    "plain",
    "one tiny mass",
    "masses of all sizes",
    "lattice",
    "one huge value",
    "one small gain",
    "nearly one value",
    "nearly a lattice",
)


def draw_masses(shape, size, generator):
    masses = generator.exponential(size=size)
    if shape == "one tiny mass":
        masses[1] *= 1e-12
    elif shape == "masses of all sizes":
        masses *= 10.0 ** generator.uniform(-12.0, 0.0, size=size)
    return masses / masses.sum()


def draw_values(shape, size, generator):
    values = generator.normal(size=size)
    if shape == "lattice":
        values = generator.integers(-4, 5, size=size).astype(float)
    elif shape == "one huge value":
        values[int(generator.integers(0, size))] *= 1e6
    elif shape == "one small gain":
        values = -np.abs(values)
        values[-1] = 10.0 ** generator.uniform(-14.0, 0.0)
    elif shape == "nearly one value":
        values = values[0] + values * 10.0 ** generator.uniform(-12.0, -1.0)
    elif shape == "nearly a lattice":
        values = generator.choice([-1.0, 1.0, 2.0, -3.0], size=size)
        values *= 1.0 + 1e-9 * generator.integers(-3, 4, size=size)
    return values


def draw(shape, generator):
    """n, base, masses and differences of a random law, most often with the heaviest value first."""
    size = int(generator.integers(2, 6))
    num_terms = int(generator.choice([1, 2, 3, 5, 8, 12, 20, 40, 60]))
    while math.comb(num_terms + size - 1, size - 1) > 700:
        num_terms = max(1, num_terms // 2)
    masses, values = draw_masses(shape, size, generator), draw_values(shape, size, generator)
    if generator.random() < 0.8:
        heaviest = int(np.argmax(masses))
        masses[[0, heaviest]] = masses[[heaviest, 0]]
    if generator.random() < 0.5:
        values = values - (values @ masses) * generator.uniform(0.0, 2.0)
    return num_terms, float(values[0]), masses[1:], values[1:] - values[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_no_small_law_escapes(shape, branch):
    generator = Entropy.from_seed(SHAPES.index(shape)).generator()
    for _ in range(20):
        law = draw(shape, generator)
        found, exact = enclose(*law, most_nodes=1e5), listed(*law)
        assert_encloses(found, exact, law)
        if exact > 0 and branch == "listing" and shape != "one small gain":
            assert found.upper - found.lower <= 1e-6 * exact + SMALLEST_UPPER, law


@settings(max_examples=40)
@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.floats(1e-12, 1.0), st.floats(-1e6, 1e6)), min_size=2, max_size=4),
)
def test_listing_and_contour_meet(num_terms, law):
    masses, values = np.array(law).T
    heaviest = int(np.argmax(masses))
    others = [i for i in range(masses.size) if i != heaviest]
    arguments = (
        num_terms,
        float(values[heaviest]),
        (masses / masses.sum())[others],
        values[others] - values[heaviest],
    )
    by_listing = enclose(*arguments)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(positive_part, "_MOST_OUTCOMES", 0)
        by_contour = enclose(*arguments, most_nodes=1e5)
    assert by_listing.lower <= by_contour.upper
    assert by_contour.lower <= by_listing.upper
    assert_encloses(by_listing, listed(*arguments))


@pytest.mark.parametrize("num_terms", [446, 447, 630, 631, 632, 10_000, 199_998, 199_999, 200_000])
def test_fair_walks_across_the_switch(num_terms):
    # Two values; the third has next to no mass, and makes the list longer.
    exact = fair_walk(num_terms)
    found = enclose(num_terms, -1.0, [0.5], [2.0])
    assert_encloses(found, exact)
    assert found.upper - found.lower <= 1e-6 * exact
    if num_terms <= 10_000:
        found = enclose(num_terms, -1.0, [0.5, 1e-300], [2.0, 0.5])
        assert_encloses(found, exact)
        assert found.upper - found.lower <= 1e-5 * exact


# ------------------------------------------------------------------ many terms

LATTICE_LAWS = {
    "two": ((0.5,), (2,)),
    "lazy": ((0.2, 0.3), (1, -1)),
    "skewed": ((0.3, 0.1, 0.05), (1, -2, 5)),
    "heavy side": ((0.05, 0.4), (7, -1)),
}


@pytest.mark.parametrize("deviations", [0.0, 1.0, 12.0, 34.0])
@pytest.mark.parametrize("num_terms", [10**6, pytest.param(10**10, marks=pytest.mark.slow), 10**15])
@pytest.mark.parametrize("name", LATTICE_LAWS)
def test_large_crowds_on_a_lattice(name, num_terms, deviations):
    # From 0.4 sd down to 1e-260: base puts zero so many deviations above the mean.
    masses, multiples = LATTICE_LAWS[name]
    mean = sum(m * k for m, k in zip(masses, multiples, strict=True))
    variance = sum(m * k * k for m, k in zip(masses, multiples, strict=True)) - mean**2
    base = -mean - deviations * math.sqrt(variance / num_terms)
    exact = on_a_lattice(num_terms, base, masses, [k // math.gcd(*multiples) for k in multiples],
                         float(math.gcd(*multiples)))  # fmt: skip
    found = enclose(num_terms, base, masses, multiples)
    assert_encloses(found, exact)
    # (tau / sd)^2 of the threshold, and round-off that grows like sqrt(n)
    allowed = 3e-7 * max(deviations, 3.0) ** 2 + 1e-13 * math.sqrt(num_terms)
    assert found.upper - found.lower <= allowed * exact


@pytest.mark.parametrize("mass", [1e-13, 1e-9, 1e-6])
@pytest.mark.parametrize("needed", [0.3, 1.5, 5.2, 30.5])
def test_a_handful_of_hits_in_a_large_crowd(mass, needed):
    # Up to 1e-290: where so few terms differ, the sum is a lattice of few points.
    num_terms = 10**7
    base = -needed / num_terms
    exact = rare_hits(num_terms, base, mass, 1.0)
    found = enclose(num_terms, base, [mass], [1.0])
    assert_encloses(found, exact)
    if exact > 1e-295:
        assert found.upper - found.lower <= 1e-4 * exact


@pytest.mark.parametrize("deviations", [-30.0, -1.0, 0.0, 5.0, 34.0])
@pytest.mark.parametrize(
    ("num_terms", "mass"),
    [
        *itertools.product([1000], [1e-6, 0.03, 0.5]),
        *itertools.product([10**8], [1e-6, 0.03]),
        pytest.param(10**8, 0.5, marks=pytest.mark.slow),
        *(pytest.param(10**5, mass, marks=pytest.mark.slow) for mass in (1e-6, 0.03, 0.5)),
    ],
)
def test_a_row_of_two_values_is_summed_from_its_mode(monkeypatch, mass, num_terms, deviations):
    def refused(*_):
        raise AssertionError("a contour was summed")

    monkeypatch.setattr(positive_part, "_by_contour", refused)
    deviation = math.sqrt(mass * (1.0 - mass) / num_terms)
    base = -min(max(mass + deviations * deviation, 0.5 / num_terms), 1.0 - 0.5 / num_terms)
    found = enclose(num_terms, base, [mass], [1.0])
    exact = two_values(num_terms, mpf(base), mpf(mass))
    assert_encloses(found, exact)
    if exact > 1e-290:
        assert found.upper - found.lower <= 1e-8 * exact


def two_values(num_terms, base, mass):
    """The mean positive part of base and base + 1, from the mode outwards with 60 digits."""
    least = max(int(mp.ceil(-num_terms * base)), 0)
    mode = max(least, int(num_terms * mass))
    log_mass = (
        mp.loggamma(num_terms + 1) - mp.loggamma(mode + 1) - mp.loggamma(num_terms - mode + 1)
    )
    log_mass += mode * mp.log(mass) + (num_terms - mode) * mp.log1p(-mass)
    total = mpf(0)
    for direction in (1, -1):
        count, weight = mode, mp.exp(log_mass)
        while least <= count <= num_terms:
            term = weight * (num_terms * base + count)
            total += term if direction > 0 or count < mode else 0
            if term < mpf(10) ** -25 * total:
                break
            up, down = (num_terms - count) * mass, count * (1 - mass)
            if direction > 0:
                weight *= up / ((count + 1) * (1 - mass))
            else:
                weight *= down / ((num_terms - count + 1) * mass)
            count += direction
    return total / num_terms


@pytest.mark.parametrize("needed", [-3.0, 0.0, 40.0])
def test_two_frequent_values_beside_a_rare_one(monkeypatch, needed):
    # The rare value is huge; how much of it is left depends on the count of the frequent one.
    monkeypatch.setattr(positive_part, "_MOST_OUTCOMES", 5_000)
    law = 300, 0.0, [0.5, 1e-9], [-1.0, 150.0 + needed]
    found, exact = enclose(*law), listed(*law)
    assert_encloses(found, exact)
    assert found.upper - found.lower <= 1e-9 * exact


@pytest.mark.parametrize("exponent", [-140, -90, -30, 0, 30, 90, 140])
def test_the_unit_of_the_values_does_not_matter(exponent):
    unit = 2.0**exponent * 10.0**exponent
    one = enclose(10**6, -1.001, [0.5], [2.0])
    found = enclose(10**6, -1.001 * unit, [0.5], [2.0 * unit])
    assert found.upper == pytest.approx(one.upper * unit, rel=1e-9)
    assert found.lower == pytest.approx(one.lower * unit, rel=1e-9)


@pytest.mark.parametrize("hits", [1, 2, 3, 4, 5, 6, 7])
def test_rare_hits_of_a_huge_value_do_not_underflow(hits):
    # Pr[S > 0] down to 1e-420 and values of 1e205: the product is what counts.
    num_terms, loss = 10**6, 1e200
    gain = loss * num_terms / (hits - 0.5)
    found = enclose(num_terms, -loss, [1e-66], [gain + loss])
    exact = rare_hits(num_terms, -loss, 1e-66, gain + loss)
    assert exact > 1e-240
    assert_encloses(found, exact)


@pytest.mark.parametrize("num_terms", [10**6, 10**9, 10**15])
@pytest.mark.parametrize("mean", [1.0, 1e-3, 1e-6])
def test_sums_that_are_hardly_ever_negative(num_terms, mean):
    # E[S_+] is at least E[S], and not much more.
    found = enclose(num_terms, mean - 0.5 * 0.1, [0.5], [0.1])
    deviation = 0.05 / math.sqrt(num_terms)
    assert found.lower <= mean + deviation
    assert found.upper >= mean * (1.0 - 1e-12)
    if mean > 40.0 * deviation:
        assert found.lower == pytest.approx(mean, rel=1e-6)
    assert found.upper <= mean + deviation


def test_a_term_alone_bounds_any_number():
    # (1/n) E[S_+] falls with n, by Jensen.
    uppers = [
        enclose(n, -0.3, [0.2, 1e-7], [1.0, 50.0]).upper for n in (1, 10, 10**3, 10**5, 10**9)
    ]
    assert uppers == sorted(uppers, reverse=True)


@pytest.mark.parametrize("num_terms", [1, 50, 10**4, 10**6, 10**12, 10**15])
@pytest.mark.parametrize("gain", [2.0**-52, 1e-13, 1e-9, 1e-4])
@pytest.mark.parametrize("masses", [(0.3,), (0.3, 0.2, 0.1, 0.05)])
def test_gains_barely_above_zero(num_terms, gain, masses):
    # As close to the largest loss as doubles come: only terms that all gain leave anything.
    found = enclose(num_terms, -1.0, masses, [1.0 + gain, 0.5, 0.25, 0.7][: len(masses)])
    gain = (1.0 + gain) - 1.0
    log_least = math.log(gain) + num_terms * math.log(0.3)
    assert found.upper >= math.exp(max(log_least, math.log(SMALLEST_UPPER))) * (1.0 - 1e-9)
    # One term alone cannot do less.
    assert found.lower <= 0.3 * gain * (1.0 + 1e-9)
    assert found.upper <= max(0.3 * gain * (1.0 + 1e-2) + 1e-14, SMALLEST_UPPER)


def test_light_bases_cost_width_not_truth():
    # A base that hardly ever occurs, far away: everything cancels, and the ends say so.
    num_terms = 10**4
    found = enclose(num_terms, -1e8, [0.5 - 1e-12, 0.5], [1e8 - 1.0, 1e8 + 1.0])
    exact = listed_light_base(num_terms)
    assert_encloses(found, exact)


def listed_light_base(num_terms):
    masses = [mpf(0.5 - 1e-12), mpf(0.5)]
    rest = 1 - sum(masses)
    total = mpf(0)
    # Any term at the base takes the sum below zero.
    assert num_terms < 1e8
    for ups in range(num_terms // 2, num_terms + 1):
        total += (
            mp.binomial(num_terms, ups)
            * masses[1] ** ups
            * masses[0] ** (num_terms - ups)
            * max(2 * ups - num_terms, 0)
        )
    assert rest > 0
    return total / num_terms


# ------------------------------------------------------------------ what must not matter


@pytest.mark.parametrize("num_terms", [7, 3000, 10**8])
def test_order_splitting_and_empty_values(num_terms, branch):
    masses, differences = [0.1, 0.2, 0.05], [2.0, 0.5, -3.0]
    plain = enclose(num_terms, -0.31, masses, differences)
    for order in ([1, 2, 0], [2, 1, 0]):
        found = enclose(num_terms, -0.31, np.take(masses, order), np.take(differences, order))
        assert found.upper == pytest.approx(plain.upper, rel=1e-7)
        assert found.lower == pytest.approx(plain.lower, rel=1e-7)
    empty = enclose(num_terms, -0.31, [*masses, 0.0, 0.3], [*differences, 9.0, 0.0])
    assert (empty.lower, empty.upper) == (plain.lower, plain.upper)
    if num_terms != 7:
        return
    split = enclose(num_terms, -0.31, [0.05, 0.05, *masses[1:]], [2.0, *differences])
    assert split.upper == pytest.approx(plain.upper, rel=1e-6)


@settings(max_examples=40)
@given(
    st.integers(1, 10**15),
    st.floats(0.001, 0.5),
    st.floats(-0.5, 0.0),
    st.floats(0.0, 0.3),
)
def test_it_grows_with_values_and_falls_with_terms(num_terms, mass, base, more):
    found = enclose(num_terms, base, [mass], [1.0])
    assert enclose(num_terms, base + more, [mass], [1.0]).upper >= found.lower
    assert enclose(num_terms, base, [mass], [1.0 + more]).upper >= found.lower
    assert enclose(num_terms, base, [mass + more * 0.5], [1.0]).upper >= found.lower
    assert enclose(min(2 * num_terms, 10**15), base, [mass], [1.0]).lower <= found.upper
    mean = base + mass
    assert found.upper >= max(mean, 0.0) * (1.0 - 1e-12)


@pytest.mark.parametrize("width", [1e-4, 1e-6, 1e-10, 0.0])
def test_the_width_asked_for_is_what_is_paid_for(monkeypatch, width):
    monkeypatch.setattr(positive_part, "_MOST_OUTCOMES", 0)  # all of it could be listed
    exact = fair_walk(10**6)
    found = enclose(10**6, -1.0, [0.5], [2.0], width=width)
    assert_encloses(found, exact)
    assert found.upper - found.lower <= (10.0 * width + 1e-6) * exact


def test_a_small_budget_of_nodes_leaves_it_wider(monkeypatch):
    monkeypatch.setattr(positive_part, "_MOST_OUTCOMES", 0)  # all of it could be listed
    exact = fair_walk(10**6)
    wide = enclose(10**6, -1.0, [0.5], [2.0], width=1e-12, most_nodes=1e3)
    narrow = enclose(10**6, -1.0, [0.5], [2.0], width=1e-12)
    for found in (wide, narrow):
        assert_encloses(found, exact)
    assert wide.upper - wide.lower > narrow.upper - narrow.lower


# ------------------------------------------------------------------ edges


def test_what_cannot_be_positive_is_zero(branch):
    assert enclose(10, -1.0, [0.5], [1.0]) == Enclosure(0.0, 0.0)
    assert enclose(10**9, -1.0, [0.5, 0.2], [1.0, -3.0]) == Enclosure(0.0, 0.0)
    assert enclose(10, -1.0, [], []) == Enclosure(0.0, 0.0)
    assert enclose(10, 0.0, [0.0], [1.0]) == Enclosure(0.0, 0.0)


def test_constants_are_themselves():
    assert enclose(10**9, 2.5, [], []) == Enclosure(2.5, 2.5)
    assert enclose(10**9, 2.5, [0.5], [0.0]) == Enclosure(2.5, 2.5)


def test_what_is_possible_is_never_said_to_be_impossible(branch):
    for num_terms in (5000, 10**6, 10**15):
        found = enclose(num_terms, -0.9, [0.1, 0.01], [1.0, -1.0])
        assert found.lower <= SMALLEST_UPPER
        assert SMALLEST_UPPER <= found.upper <= 1.0


def test_all_mass_off_the_base(branch):
    # Nothing is left for the base, which then must not matter.
    found = enclose(12, -5.0, [0.5, 0.5], [4.0, 6.0])
    assert_encloses(found, fair_walk(12))
    if branch == "listing":
        assert found.upper == pytest.approx(float(fair_walk(12)), rel=1e-12)


@pytest.mark.parametrize(
    ("num_terms", "match"),
    [(0, "num_terms"), (-3, "num_terms"), (10**15 + 1, "above 1,000,000,000,000,000")],
)
def test_numbers_of_terms_in_range(num_terms, match):
    with pytest.raises(ParameterError, match=match):
        enclose(num_terms, -1.0, [0.5], [2.0])


@pytest.mark.parametrize(
    ("base", "masses", "differences"),
    [
        (math.nan, [0.5], [2.0]),
        (math.inf, [0.5], [2.0]),
        (-math.inf, [0.5], [2.0]),
        (-1.0, [1.5], [2.0]),
        (-1.0, [0.7, 0.7], [2.0, 3.0]),
        (-1.0, [-0.1], [2.0]),
        (-1.0, [math.nan], [2.0]),
        (-1.0, [0.5], [math.nan]),
        (-1.0, [0.5], [math.inf]),
    ],
)
def test_what_is_no_law_is_refused(base, masses, differences):
    with pytest.raises(ParameterError):
        enclose(10, base, masses, differences)


@pytest.mark.parametrize(
    ("num_terms", "masses", "differences"),
    [
        (1_373_295_020, [1.6e-3, 1.6e-40, 1.7e-50], [-600.0, -9.8e36, 3.96e37]),
        (288_452_646_207_362, [8e-92, 4e-191, 1.0, 3e-172], [8e7, -7e75, -4e-3, 1e126]),
    ],
)
def test_values_that_no_tilt_reaches_end_in_what_one_term_gives(num_terms, masses, differences):
    # Period and smoothing drive each other up, and nodes beyond int64; both once went on forever.
    found = enclose(num_terms, 0.0, masses, differences, width=1e-4, most_nodes=3100.0)
    # The huge value comes alone: the others take next to nothing off, and add next to nothing.
    exact = masses[-1] * differences[-1]
    assert found.lower <= exact * (1.0 - 1e-12)
    assert exact * (1.0 - 1e-12) <= found.upper <= exact * (1.0 + 1e-9)


def test_below_the_smallest_doubles_nothing_is_claimed_from_below():
    masses, values = [6.516e-24, 1.551e-23], [1.268, 2.565]
    found = enclose(22, -1.517, masses, values)  # about 7e-315, of few digits
    assert found == Enclosure(0.0, SMALLEST_UPPER)
