import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import discrete_pairs, dp_accounting_oracle, gaussian_pairs
from oracles.family_laws import both_ends
from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.composition import compose_losses
from shuffledp.composition import compose_losses as composition
from shuffledp.composition import compose_losses as convolution
from shuffledp.composition.compose_losses import (
    compose,
    compose_curves,
)
from shuffledp.composition.privacy_loss import PrivacyLoss, loss_on_lattice
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import LocalProfile


def bracket(parts, delta):
    lower = compose_curves(parts, smallest_delta=delta, upper=False)
    return lower, compose_curves(parts, smallest_delta=delta, upper=True)


# ------------------------------------------------------------ normal laws: exact at every count
@pytest.mark.parametrize("mu", [1e-8, 0.01, 1.0])
@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.slow), 50, 1000])
@pytest.mark.parametrize("delta", [1e-3, pytest.param(1e-9, marks=pytest.mark.slow), 1e-15, 1e-60])
def test_gaussian_compositions_are_enclosed(mu, count, delta):
    lower, upper = bracket([(gaussian_pairs.curve(mu), count)], delta)
    total = mu * math.sqrt(count)
    above, below = upper.epsilon(delta), lower.epsilon(delta)
    assert gaussian_pairs.delta(total, above) <= delta
    assert below == 0.0 or gaussian_pairs.delta(total, below) > delta
    assert above - below <= 2.2e-3 * above
    for epsilon in (-0.3 * above, 0.0, 0.5 * above, above):
        exact = gaussian_pairs.delta(total, epsilon)
        assert lower.delta(epsilon) <= exact <= upper.delta(epsilon)


@pytest.mark.parametrize("delta", [1e-6, 1e-12])
def test_a_million_releases(delta):
    lower, upper = bracket([(gaussian_pairs.curve(0.004), 10**6)], delta)
    above, below = upper.epsilon(delta), lower.epsilon(delta)
    assert gaussian_pairs.delta(4.0, above) <= delta < gaussian_pairs.delta(4.0, below)
    assert above - below <= 2.5e-3 * above


def test_the_accuracy_is_kept(monkeypatch):
    parts = [(gaussian_pairs.curve(0.1), 100)]
    for accuracy in (1e-2, 1e-3, 1e-4):
        monkeypatch.setattr(compose_losses, "_ACCURACY", accuracy)
        lower, upper = bracket(parts, 1e-9)
        above, below = upper.epsilon(1e-9), lower.epsilon(1e-9)
        assert gaussian_pairs.delta(1.0, above) <= 1e-9 < gaussian_pairs.delta(1.0, below)
        assert above - below <= 1.6 * accuracy * above


def test_wide_enclosures_cost_little_and_stay_sound():
    lower, upper = bracket([(gaussian_pairs.curve(0.1, width=1e-6), 100)], 1e-9)
    above, below = upper.epsilon(1e-9), lower.epsilon(1e-9)
    assert gaussian_pairs.delta(1.0, above) <= 1e-9 < gaussian_pairs.delta(1.0, below)
    assert above - below <= 2e-3 * above


# ------------------------------------------------------------ small pairs: exact by enumeration
weights = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=2, max_size=3)


@settings(max_examples=25)
@given(
    weights.filter(lambda rows: all(sum(column) > 0 for column in zip(*rows, strict=True))),
    st.sampled_from([1, 2, 5, 12]),
    st.sampled_from([0.05, 1e-6, 1e-12]),
)
def test_enumerated_compositions_are_enclosed(rows, count, delta):
    total_p, total_q = (sum(column) for column in zip(*rows, strict=True))
    pair = [(Fraction(p, total_p), Fraction(q, total_q)) for p, q in rows]
    lower, upper = bracket([(discrete_pairs.curve_of(pair), count)], delta)
    outcomes = discrete_pairs.power(pair, count)
    for epsilon in (-2.0, -0.1, 0.0, 0.3, 1.7, 6.0):
        exact = discrete_pairs.divergence(outcomes, epsilon)
        assert lower.delta(epsilon) <= exact <= upper.delta(epsilon)
    above, below = upper.epsilon(delta), lower.epsilon(delta)
    assert math.isinf(above) or discrete_pairs.divergence(outcomes, above) <= delta
    assert below == 0.0 or discrete_pairs.divergence(outcomes, below) > delta * (1.0 - 1e-12)


ONE_BIT = [(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))]
THREE = [
    (Fraction(1, 2), Fraction(1, 4)),
    (Fraction(1, 4), Fraction(5, 12)),
    (Fraction(1, 4), Fraction(1, 3)),
]


def test_different_releases():
    curves = [discrete_pairs.curve_of(pair) for pair in (ONE_BIT, THREE)]
    outcomes = discrete_pairs.product(
        discrete_pairs.power(ONE_BIT, 4), discrete_pairs.power(THREE, 3)
    )
    parts = list(zip(curves, (4, 3), strict=True))
    lower, upper = bracket(parts, 1e-9)
    for epsilon in (0.0, 1.0, 3.0, 5.0):
        exact = discrete_pairs.divergence(outcomes, epsilon)
        assert 0.93 * exact - 1e-9 <= lower.delta(epsilon) <= exact
        assert exact <= upper.delta(epsilon) <= 1.03 * exact + 1e-9
    # The order of the list is of no account, and equal entries add up.
    again = compose_curves(
        [(curves[1], 1), (curves[0], 4), (curves[1], 2)],
        smallest_delta=1e-9,
        upper=True,
    )
    assert again.epsilon(1e-6) == pytest.approx(upper.epsilon(1e-6), rel=1e-6)


def test_a_wide_release_among_narrow_ones():
    # variances 1 and 1000 * 1e-6: knots of the wide one need not be those of the narrow ones
    wide, narrow = gaussian_pairs.curve(1.0), gaussian_pairs.curve(1e-3)
    lower, upper = bracket([(wide, 1), (narrow, 1000)], 1e-9)
    total = math.sqrt(1.001)
    above, below = upper.epsilon(1e-9), lower.epsilon(1e-9)
    assert gaussian_pairs.delta(total, above) <= 1e-9 < gaussian_pairs.delta(total, below)
    assert above - below <= 5e-3 * above


# ------------------------------------------------------------ shuffled releases
def shuffled(epsilon0, num_users):
    profile = LocalProfile(epsilon0=epsilon0)

    def delta(epsilon):
        return both_ends(profile, num_users, epsilon)

    return HockeyStickCurve(forward=delta, backward=delta, highest=epsilon0)


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_shuffled_releases_of_many_users(count):
    lower, upper = bracket([(shuffled(1.0, 100_000), count)], 1e-6)
    above, below = upper.epsilon(1e-6), lower.epsilon(1e-6)
    assert below < above <= 1.002 * below
    assert above <= count * 1.0
    if count == 1:
        assert below <= 0.01242990 <= above


def test_clones_of_three_users_by_enumeration():
    # (A, C - A) of n - 1 clones, r = 1/(p + 1), plus the victim's own report
    n, p = 3, Fraction(3)
    pair = {}
    share = 1 / (p + 1)
    for clones in range(n):
        chance = (
            math.comb(n - 1, clones) * (2 * share) ** clones * (1 - 2 * share) ** (n - 1 - clones)
        )
        for ones in range(clones + 1):
            weight = chance * math.comb(clones, ones) / Fraction(2) ** clones
            for own in (0, 1):
                key = (clones + 1, ones + own)
                first = p * share if own else share
                entry = pair.setdefault(key, [Fraction(0), Fraction(0)])
                entry[0] += weight * first
                entry[1] += weight * (1 - first)
    rows = [tuple(entry) for entry in pair.values()]
    outcomes = discrete_pairs.product(
        *[[(discrete_pairs.exact(a), discrete_pairs.exact(b)) for a, b in rows]] * 3
    )
    lower, upper = bracket([(shuffled(math.log(3.0), n), 3)], 1e-6)
    for epsilon in (0.0, 0.5, 1.5, 2.5):
        exact = discrete_pairs.divergence(outcomes, epsilon)
        assert lower.delta(epsilon) <= exact <= upper.delta(epsilon)


# ------------------------------------------------------------ against dp-accounting
@pytest.mark.parametrize(("mu", "count"), [(1.0, 3), (0.1, 1000)])
def test_gaussians_against_dp_accounting(mu, count):
    lower, upper = bracket([(gaussian_pairs.curve(mu), count)], 1e-9)
    for epsilon in (0.0, 1.0, 6.0):
        theirs = dp_accounting_oracle.gaussian_delta(mu, count, epsilon, upper=True)
        assert upper.delta(epsilon) == pytest.approx(theirs, rel=0.02)
        theirs = dp_accounting_oracle.gaussian_delta(mu, count, epsilon, upper=False)
        assert theirs <= upper.delta(epsilon)
        assert lower.delta(epsilon) <= upper.delta(epsilon)


def test_randomized_response_against_dp_accounting():
    noise, size = 0.3, 4
    rest = Fraction(3, 10) / size
    same = 1 - (size - 1) * rest
    pair = [(same, rest), (rest, same), *[(rest, rest)] * (size - 2)]
    _, upper = bracket([(discrete_pairs.curve_of(pair), 8)], 1e-9)
    for epsilon in (0.0, 4.0, 12.0):
        theirs = dp_accounting_oracle.randomized_response_delta(noise, size, 8, epsilon)
        assert upper.delta(epsilon) == pytest.approx(theirs, rel=0.02)


@pytest.mark.parametrize("delta", [1e-12, 1e-14, 1e-16])
def test_small_deltas_are_not_lost_to_the_transform(delta):
    # Without tilting, round-off of the transform exceeds these; "pessimistic" laws of other
    # packages fall below the exact value here.
    _, upper = bracket([(gaussian_pairs.curve(0.1), 1000)], delta)
    epsilon = upper.epsilon(delta)
    exact = gaussian_pairs.delta(0.1 * math.sqrt(1000.0), epsilon)
    assert 0.9 * delta <= exact <= delta


# ------------------------------------------------------------ laws of composition
def discretised(interval=0.03125, tail=1e-15):
    curve = discrete_pairs.curve_of(THREE)
    return loss_on_lattice(curve, interval, tail, upper=True), loss_on_lattice(
        curve, interval, tail, upper=False
    )


@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(1, 40))
def test_composing_twice_is_composing_once(first, second):
    for law in discretised():
        together = compose([(law, first + second)], 1e-6)
        halves = [compose([(law, count)], 1e-12) for count in (first, second)]
        stepwise = compose([(halves[0], 1), (halves[1], 1)], 1e-6)
        for epsilon in (0.0, 1.0):
            assert stepwise.delta(epsilon) == pytest.approx(
                together.delta(epsilon), rel=1e-6, abs=1e-9
            )


@settings(max_examples=20)
@given(st.integers(1, 1000), st.integers(1, 1000), st.floats(1e-9, 0.1))
def test_more_releases_are_never_more_private(first, second, delta):
    law, _ = discretised()
    fewer, more = sorted((first, second))
    least = compose([(law, fewer)], 1e-9).epsilon(delta)
    assert least <= compose([(law, more)], 1e-9).epsilon(delta) * (1.0 + 1e-6) + 1e-9


def test_tilts_do_not_change_the_answer(monkeypatch):
    law, _ = discretised()
    reference = compose([(law, 500)], 1e-12)
    for step in (1.0, 2.5, 5.0):
        monkeypatch.setattr(convolution, "_TILT_STEP", step)
        other = compose([(law, 500)], 1e-12)
        for epsilon in (0.0, 20.0, reference.epsilon(1e-12)):
            assert other.delta(epsilon) == pytest.approx(reference.delta(epsilon), rel=1e-7)


def test_a_window_too_small_is_wide_and_not_wrong(monkeypatch):
    law, lower = discretised()
    expected = compose([(law, 100)], 1e-9).epsilon(1e-9)
    monkeypatch.setattr(convolution, "_OUTSIDE_EXPONENT", 5.0)
    assert compose([(lower, 100)], 1e-9).epsilon(1e-9) <= expected
    assert compose([(law, 100)], 1e-9).epsilon(1e-9) >= expected * (1.0 - 1e-9)


def test_round_off_that_grows_with_the_count_is_refused():
    law = PrivacyLoss(
        interval=1e-9,
        first=-1,
        masses=np.array([0.5, 0.0, 0.5]),
        infinite_mass=0.0,
        error=0.0,
        is_upper=True,
    )
    with pytest.raises(PrecisionError, match=r"round-off|spread"):
        compose([(law, 10**18)], 1e-9)


def test_infinite_losses_add_up():
    one = PrivacyLoss(
        interval=0.5,
        first=0,
        masses=np.array([0.9]),
        infinite_mass=0.1,
        error=0.0,
        is_upper=True,
    )
    twice = compose([(one, 2)], 1e-6)
    assert 0.19 <= twice.infinite_mass <= 0.19 + 1e-12
    assert twice.error <= 1e-12
    assert twice.epsilon(0.1) == math.inf
    hopeless = PrivacyLoss(
        interval=0.5,
        first=3,
        masses=np.array([0.0]),
        infinite_mass=1.0,
        error=0.0,
        is_upper=True,
    )
    assert compose([(one, 2), (hopeless, 1)], 1e-6).delta(5.0) == 1.0


@pytest.mark.parametrize(
    ("is_upper", "masses", "infinite"),
    [(True, [0.29, 0.52], 0.05), (False, [0.24, 0.48], 0.01)],
)
def test_errors_of_a_convolution_go_the_safe_way(is_upper, masses, infinite, monkeypatch):
    found = convolution.Convolution(
        first=3,
        masses=np.array([0.25, 0.5]),
        doubts=np.array([0.01, 0.02]),
        below=0.03,
        beyond=0.04,
    )
    monkeypatch.setattr(convolution, "convolve", lambda *_: found)
    loss = PrivacyLoss(
        interval=0.5, first=-1, masses=np.ones(3), infinite_mass=0.01, is_upper=is_upper
    )
    one = PrivacyLoss(interval=0.5, first=0, masses=np.ones(1), is_upper=is_upper)
    composed = compose([(loss, 1), (one, 1)], 1e-9)
    assert composed.first == 3
    assert composed.masses == pytest.approx(masses, rel=1e-14)
    assert composed.infinite_mass == pytest.approx(infinite, rel=1e-12)


def test_what_was_cut_off_is_told_from_what_is_infinite():
    lower, upper = bracket([(gaussian_pairs.curve(0.3), 10)], 1e-6)
    assert 0.0 < upper.infinite_mass == upper.error < 1.1e-9
    assert lower.infinite_mass == 0.0
    with pytest.raises(PrecisionError, match="cut off"):
        upper.epsilon(1e-10)
    assert lower.epsilon(1e-10) > 0.0


# ------------------------------------------------------------ arguments and edges
def test_nothing_to_compose():
    zero = HockeyStickCurve(
        forward=lambda _: Enclosure(0.0, 0.0), backward=lambda _: Enclosure(0.0, 0.0), highest=0.0
    )
    assert compose_curves([(zero, 5)], smallest_delta=1e-6, upper=True).epsilon(0.0) == 0.0
    mixed = compose_curves(
        [(zero, 5), (gaussian_pairs.curve(1.0), 1)], smallest_delta=1e-6, upper=True
    )
    assert mixed.epsilon(1e-6) == pytest.approx(4.8865, rel=2e-3)


def test_losses_on_different_lattices_are_refused():
    law, lower = discretised()
    other, _ = discretised(interval=0.0625)
    for parts in ([(law, 1), (lower, 1)], [(law, 1), (other, 1)]):
        with pytest.raises(ParameterError, match="interval or direction"):
            compose(parts, 1e-6)


def test_a_single_law_is_left_as_it_is():
    law, _ = discretised()
    assert compose([(law, 1)], 1e-6) is law


def test_intervals_are_short():
    # so that all their multiples are exact
    for value in (1.0, math.pi, 1e-9 / 3.0, 0.1):
        short = composition._short(value)
        assert value <= short <= value * (1.0 + 2.0**-19)
        assert Fraction(short) * 999_983 == Fraction(short * 999_983)
