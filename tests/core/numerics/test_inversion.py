import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.numerics.inversion import last_above_first_below, last_within, neighbours


class Counted:
    """A function that knows where, and how often, it was asked."""

    def __init__(self, function):
        self.function, self.asked = function, []

    def __call__(self, point):
        self.asked.append(point)
        return self.function(point)


FUNCTIONS = {
    "hyperbola": lambda x: 1.0 / x,
    "gaussian": lambda x: math.exp(-x * x),
    "steep": lambda x: math.exp(-200.0 * x),
    "straight to zero": lambda x: max(5.0 - x, 0.0),
    "stairs": lambda x: 2.0 ** -math.floor(x),
    "one step": lambda x: 1.0 if x < 3.7 else 0.0,
    "one step up from tiny": lambda x: 1.0 if x < 3.7 else 1e-300,
    "cliff at the start": lambda x: 1.0 if x <= 1e-3 else 0.0,
    "flat, then nothing": lambda x: 0.3 if x < 9.0 else 0.0,
}


def test_a_secant_that_ends_where_it_started_is_a_bisection():
    # At the low end the function is almost the target: a secant step from there is below an ulp.
    def function(x):
        return 1.0 + 1e-15 if x < 1.5 else 1e-300

    found = last_above_first_below(function, 1.0, 1.0, 2.0, relative_tolerance=1e-16)
    assert found == (math.nextafter(1.5, 0.0), 1.5)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("target", [1e-250, 1e-9, 0.2, 0.29])
@pytest.mark.parametrize("guess", [None, 1e-3, 1.0, 3.7, 9.999, 1e-300, 11.0, -1.0, math.nan])
def test_both_ends_are_proved(name, target, guess):
    low, high = 1e-3, 10.0
    function = Counted(FUNCTIONS[name])
    above, below = last_above_first_below(function, target, low, high, guess=guess)
    assert low <= above <= below <= high
    assert below == high or below in function.asked
    assert below == high or function.function(below) <= target
    if above < below:
        assert above in function.asked
        assert function.function(above) > target
        assert below - above <= 1e-9 * below
    else:
        assert function.function(low) <= target
    assert len(function.asked) <= 80


@given(st.floats(1e-12, 1e12), st.floats(1e-12, 1.0), st.floats(1e-3, 1e3), st.floats(0.05, 20.0))
def test_power_laws_anywhere(root, low_share, high_factor, power):
    low, high = root * low_share * 0.999, root * (1.001 + high_factor)
    above, below = last_above_first_below(lambda x: (root / x) ** power, 1.0, low, high)
    assert above <= root * (1.0 + 1e-15)
    assert below >= root * (1.0 - 1e-15)
    assert below - above <= 1e-9 * below


@given(st.floats(1.1, 99.0), st.floats(1.001, 99.999))
def test_a_guess_changes_the_cost_only(root, guess):
    function = Counted(lambda x: root / x)
    above, below = last_above_first_below(function, 1.0, 1.0, 100.0, guess=guess)
    assert above <= root * (1.0 + 1e-15)
    assert below >= root * (1.0 - 1e-15)
    assert len(function.asked) < 40


@pytest.mark.parametrize(("off", "most"), [(1e-2, 12), (1e-4, 12), (1e-6, 10)])
def test_a_good_guess_needs_few_evaluations(off, most):
    for root in (0.01, 1.0, 300.0):
        function = Counted(lambda x, root=root: math.exp(-((x / root) ** 2)))
        last_above_first_below(function, math.exp(-1.0), 0.0, 700.0, guess=root * (1.0 + off))
        assert len(function.asked) <= most


def test_a_rough_guess_of_known_error_needs_few_evaluations():
    for off in (-9e-3, 9e-3):
        for spread, most in ((1e-2, 9), (1e-6, 13)):
            function = Counted(lambda x: math.exp(-x * x))
            above, below = last_above_first_below(
                function, math.exp(-1.0), 0.0, 700.0, guess=1.0 + off, spread=spread
            )
            assert above < 1.0 <= below
            assert len(function.asked) <= most


def test_below_the_target_from_the_start():
    assert last_above_first_below(lambda x: 0.1, 0.1, 2.0, 5.0) == (2.0, 2.0)
    assert last_above_first_below(lambda x: 0.0, 0.1, 2.0, 5.0, guess=3.0) == (2.0, 2.0)


def test_nothing_between_the_ends():
    above, below = last_above_first_below(lambda x: 1.0 / x, 1e-9, 1.0, math.nextafter(1.0, 2.0))
    assert above == 1.0
    assert below == math.nextafter(1.0, 2.0)


def test_an_interval_of_one_point():
    above, below = last_above_first_below(lambda x: 1.0, 0.5, 3.0, 3.0)
    assert above == below == 3.0


@pytest.mark.parametrize("root", [1.0371214768941655, 3.161971639093193, 8.709732250267507])
@pytest.mark.parametrize("power", [1, 20])
@pytest.mark.parametrize("guess", [None, 2.0])
def test_a_tolerance_below_the_spacing_of_doubles_ends_at_neighbours(root, power, guess):
    # A step that rounds onto an end must not stop the search while the bracket is still wide.
    above, below = last_above_first_below(
        lambda x: (root / x) ** power, 1.0, 1.0, 10.0, guess=guess, relative_tolerance=0.0
    )
    assert below - above <= 2.0 * math.ulp(root)


def test_a_root_next_to_zero_ends():
    above, below = last_above_first_below(lambda x: 1.0 if x == 0.0 else 0.0, 0.5, 0.0, 1.0)
    assert above == 0.0
    assert 0.0 < below < 1e-300


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-12, 0.0])
def test_the_tolerance_is_kept(tolerance):
    above, below = last_above_first_below(
        lambda x: 1.0 / x, 1.0 / 3.0, 1.0, 10.0, relative_tolerance=tolerance
    )
    assert above <= 3.0 <= below
    assert below - above <= max(tolerance * below, 2.0 * math.ulp(3.0))


@given(
    threshold=st.integers(0, 10**6),
    most=st.integers(0, 10**6),
    power=st.sampled_from([0.0, 0.3, 0.5, 1.0, 3.0]),
)
def test_the_search_finds_the_last_number_within(threshold, most, power):
    asked = []

    def cost(number):
        asked.append(number)
        return number**power if number <= threshold else math.inf

    found = last_within(cost, float(max(threshold, 1) ** power), most=most)
    truth = min(threshold, most)
    assert truth * (1 - 1e-4) - 1e-9 <= found <= truth
    assert found == 0 or found in asked
    # One in five halves the bracket, whose logarithm is at most 14.6 at first and 1e-4 at last.
    assert len(asked) <= 5 * math.ceil(math.log2(14.6 / 1e-4))


def test_the_search_is_quick_where_costs_grow_like_roots():
    asked = []

    def cost(number):
        asked.append(number)
        return math.sqrt(number) + 0.001 * number

    assert last_within(lambda number: 5e-324 * number, 1e4, most=99) == 99  # no power law shows
    found = last_within(cost, 100.0, most=10**6)
    assert cost(found) <= 100.0 < cost(found + 2)
    assert len(asked) <= 15


@pytest.mark.parametrize("power", [1.0, -1.0])
def test_a_cost_that_jumps_from_0_is_bisected(power):
    tried = []

    def cost(number):
        tried.append(number)
        beyond = number - 765_432 if power > 0.0 else 765_432 - number
        return max(beyond, 0.0) * 1e9

    low, high = neighbours(cost, 1.0, power=power, most=10**9, guess=1e6)
    assert low <= 765_432 <= high
    assert high - low <= 1 + low // 10_000
    assert len(tried) <= 25
