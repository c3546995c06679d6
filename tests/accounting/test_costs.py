"""Costs that the documentation promises, as counts of nodes, divergences, outcomes and knots."""

import math

import numpy as np
import pytest

from oracles.laplace_pairs import laplace_profile
from oracles.profiles import k_rr
from shuffledp.accounting import calibration
from shuffledp.accounting.calibration import epsilon_upper
from shuffledp.accounting.ledger import Ledger
from shuffledp.amplification import binary_randomized_response_kernels as kernels
from shuffledp.amplification.atom_law import WIDE_WIDTH, AtomLaw, atom_delta
from shuffledp.amplification.binary_randomized_response import BinaryRandomizedResponse
from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.composition import compose_losses as composition
from shuffledp.composition import composition as composed
from shuffledp.composition.privacy_loss import PrivacyLoss, loss_on_lattice, value_at
from shuffledp.composition.release import ShuffledRelease, StatedRelease
from shuffledp.core.errors import PrecisionError
from shuffledp.core.numerics import positive_part, positive_part_kernels
from shuffledp.core.numerics.binomial_kernels import trapezoidal_nodes
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.numerics.inversion import last_above_first_below
from shuffledp.core.profile import LocalProfile
from shuffledp.randomizers.registry import make_randomizer


@pytest.fixture
def divergences(monkeypatch):
    """How many divergences of binary randomized response are computed."""
    count = [0]

    def counting(function):
        def counted(*arguments):
            count[0] += 1
            return function(*arguments)

        return counted

    monkeypatch.setattr(kernels, "pair_divergence_upper", counting(kernels.pair_divergence_upper))
    monkeypatch.setattr(kernels, "pair_divergence", counting(kernels.pair_divergence))
    monkeypatch.setattr(kernels, "first_excess", kernels.first_excess.py_func)
    monkeypatch.setattr(kernels, "worst_sampled", kernels.worst_sampled.py_func)
    return count


@pytest.mark.parametrize("epsilon0", [1e-8, 1e-6, 0.01, 1.0, 8.0, 30.0])
@pytest.mark.parametrize("num_users", [10**3, 10**6, 10**9, 10**15])
def test_no_pair_needs_many_nodes_however_far_out(monkeypatch, epsilon0, num_users):
    nodes = [0]

    def counting(high, low, q, s, tilt):
        nodes[0] += trapezoidal_nodes(high, low, q, s, tilt)[1]
        return points(high, low, q, s, tilt)

    points = kernels.points_and_tail
    monkeypatch.setattr(kernels, "points_and_tail", counting)
    monkeypatch.setattr(kernels, "divergence_terms", kernels.divergence_terms.py_func)
    others = num_users - 1.0
    deviation = 2.0 * math.sinh(0.5 * epsilon0) / math.sqrt(num_users)
    standardised = [t * deviation / epsilon0 for t in (0.0, 1.0, 6.0, 20.0, 36.0, 45.0)]
    for share in (*standardised, 0.5, 0.999, 1.0 - 1e-8):
        if share >= 1.0:
            continue
        excess = math.exp(epsilon0 * share) * math.expm1(epsilon0 * (1.0 - share))
        rates = kernels.Rates(math.expm1(epsilon0), math.expm1(epsilon0 * share), excess)
        for ones in (0.0, others // 3.0, others):
            nodes[0] = 0
            kernels.pair_divergence.py_func(ones, others - ones, rates)
            assert nodes[0] <= 2000, (share, ones)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon0", "num_users", "delta"),
    [(0.01, 10**6, 1e-6), (8.0, 10**5, 1e-6), (1.0, 10**9, 1e-6)],
)
def test_binary_accounts_take_a_bounded_number_of_divergences(
    divergences, epsilon0, num_users, delta
):
    binary = BinaryRandomizedResponse(epsilon0, num_users)
    epsilon = binary.enclose_epsilon(delta, epsilon0).upper
    assert divergences[0] <= 300_000
    divergences[0] = 0
    wide = BinaryRandomizedResponse(epsilon0, num_users, width=1e-3).enclose(epsilon)
    assert divergences[0] <= 3_000
    assert wide.lower <= delta <= wide.upper * (1.0 + 1e-3)


def test_binary_far_below_all_doubles_is_left_by_a_chernoff_bound(divergences):
    found = BinaryRandomizedResponse(1e-6, 10**9).enclose(1e-6 * (1.0 - 1e-8))
    assert (found.lower, found.upper) == (0.0, 1e-300)
    assert divergences[0] <= 1_000


@pytest.mark.slow
def test_composed_binary_rounds_take_a_bounded_number_of_divergences(divergences):
    release = ShuffledRelease(profile=k_rr(0.01, 2), num_users=999_983)
    bound = (release * 10).epsilon(1e-6)
    assert divergences[0] <= 250_000
    assert bound.upper <= bound.lower * 1.01
    divergences[0] = 0
    Ledger(epsilon=0.1, delta=1e-6).fits(release)
    assert divergences[0] <= 250_000


@pytest.mark.parametrize(
    ("profile", "num_users", "delta", "rounds"),
    [
        (LocalProfile(epsilon0=1.0), 10**5 + 3, 1e-300, 1000),
        (k_rr(1e-3, 4), 10**6 + 3, 1e-300, 10),
        (
            make_randomizer("hadamard-response", domain_size=100, epsilon0=16.0).profile,
            10**11,
            1e-30,
            2,
        ),
    ],
)
def test_curves_are_asked_at_a_bounded_number_of_knots(profile, num_users, delta, rounds):
    before = value_at.cache_info().misses
    (ShuffledRelease(profile=profile, num_users=num_users) * rounds).epsilon(delta)
    assert value_at.cache_info().misses - before <= 6_000


def test_a_release_beside_a_stated_one_is_asked_at_few_knots():
    """The lattice follows the stated loss of 0.01; 1420 knots of the other release once did so."""
    release = ShuffledRelease(profile=k_rr(2.0, 16), num_users=99_001)
    before = value_at.cache_info().misses
    found = (release + StatedRelease(epsilon=0.01, delta=1e-9)).epsilon(1e-6)
    assert value_at.cache_info().misses - before <= 1_200
    assert found.lower is not None
    assert found.upper <= found.lower * 1.002


@pytest.mark.slow
def test_searches_take_few_compositions(monkeypatch):
    compositions = [0]

    def counting(releases, delta):
        compositions[0] += 1
        return epsilon_upper(releases, delta)

    monkeypatch.setattr(calibration, "epsilon_upper", counting)
    local_hashing = make_randomizer(
        "optimized-local-hashing", domain_size=100, epsilon0=8.0
    ).profile
    target = {"epsilon": 1.0, "delta": 1e-6}
    assert calibration.least_users(rounds=10, profile=local_hashing, **target) > 1_000_000
    assert compositions[0] <= 7  # 11 once
    compositions[0] = 0
    calibration.largest_local_epsilon(
        num_users=10**6, rounds=1000, profile_for=lambda epsilon0: k_rr(epsilon0, 4), **target
    )
    assert compositions[0] <= 7  # 9 once
    compositions[0] = 0
    found = calibration.largest_local_epsilon(
        num_users=30, rounds=10**6, epsilon=100.0, delta=1e-300, profile_for=lambda e: k_rr(e, 4)
    )
    assert found == pytest.approx(1e-4)  # nothing but the sum of all losses holds
    assert compositions[0] <= 4  # 18 once
    compositions[0] = 0
    calibration.least_users(rounds=10, epsilon=18.0, delta=1e-100, profile=k_rr(18.0, 16))
    assert compositions[0] <= 8  # 18 once


def test_basic_composition_is_not_computed_for_releases_of_one_kind(monkeypatch):
    def refused(*_):
        raise AssertionError("basic composition was computed")

    monkeypatch.setattr(composed, "_basic_epsilon", refused)
    found = (ShuffledRelease(profile=k_rr(1.0, 4), num_users=10**5) * 100).epsilon(1e-6)
    assert found.method == "composed k-rr-blanket"


@pytest.mark.slow
@pytest.mark.parametrize("chance", [1e-8, 1e-20])
def test_rare_participants_compose_without_a_lattice_that_is_too_long(chance):
    """Their losses are rare and large; the lattice once had 7e10 points."""
    release = ShuffledRelease(
        profile=LocalProfile(epsilon0=1.0), num_users=1003, participation=chance
    )
    found = (release * 10).epsilon(1e-10 * chance)
    assert found.lower is not None
    assert 0.0 <= found.lower <= found.upper <= 0.02
    assert (release * 10).delta(0.1).upper <= 1e-100


def test_a_lattice_of_too_many_points_is_refused():
    def falling(epsilon):
        return Enclosure(0.0, 0.1 * max(1.0 - epsilon, 0.0))

    curve = HockeyStickCurve(forward=falling, backward=falling, highest=1.0)
    with pytest.raises(PrecisionError, match="points of the lattice"):
        loss_on_lattice(curve, 2.0**-30, 1e-6, stride=2**20, upper=True)


def test_long_laws_are_inverted_by_few_sums(monkeypatch):
    calls = [0]
    delta = PrivacyLoss.delta

    def counting(self, epsilon):
        calls[0] += 1
        return delta(self, epsilon)

    places = np.arange(-30_000, 30_001)
    masses = np.exp(-0.5 * (places / 4000.0) ** 2)
    loss = PrivacyLoss(
        interval=1e-4,
        first=-30_000,
        masses=masses / masses.sum(),
        infinite_mass=0.0,
        error=0.0,
        is_upper=True,
    )
    monkeypatch.setattr(PrivacyLoss, "delta", counting)
    found = loss.epsilon(1e-6)
    assert calls[0] <= 12
    assert delta(loss, found) <= 1e-6 < delta(loss, found * (1.0 - 1e-8))


def test_rare_terms_are_listed_as_far_as_it_takes(monkeypatch):
    listed = []
    original = positive_part._listed

    def recording(law, most):
        listed.append(most)
        return original(law, most)

    monkeypatch.setattr(positive_part, "_listed", recording)
    masses, differences = np.full(3, 1e-12), np.array([3.0, 2.0, -1.0])
    found = positive_part.mean_positive_part(10**9, -1e-9, masses, differences)
    assert max(listed) <= 16
    assert found.lower <= found.upper <= found.lower * (1.0 + 1e-9)


@pytest.mark.slow
def test_tails_too_many_for_doubles_are_refused_before_anything_is_composed(monkeypatch):
    directions = []
    original = composition.convolve

    def recording(parts, *arguments, **keywords):
        directions.append(parts[0].count)
        return original(parts, *arguments, **keywords)

    monkeypatch.setattr(composition, "convolve", recording)
    before = value_at.cache_info().misses
    release = ShuffledRelease(profile=k_rr(0.0995, 2), num_users=10**15)
    bound = (release * 10**6).epsilon(1e-300)
    assert len(directions) == 1  # from below
    assert value_at.cache_info().misses - before <= 800
    assert bound.method == "basic composition"
    assert bound.lower > 1e-4


def test_points_of_curves_take_few_nodes(monkeypatch):
    nodes = []

    def contour(*arguments):
        nodes.append(arguments[2])
        return enclosed(*arguments)

    enclosed = positive_part_kernels.enclose_positive_part
    monkeypatch.setattr(positive_part_kernels, "enclose_positive_part", contour)
    hadamard = make_randomizer("hadamard-response", domain_size=100, epsilon0=120.0).profile
    (ShuffledRelease(profile=hadamard, num_users=1009) * 10).epsilon(1e-6)
    assert len(nodes) <= 40  # 77 once
    nodes.clear()
    laplace = laplace_profile(60.0)
    (ShuffledRelease(profile=laplace, num_users=10**6 + 3) * 10).epsilon(1e-6)
    assert sum(nodes) <= 5e6


def test_no_secant_is_drawn_from_the_least_value_that_there_is():
    asked = []

    def floored(point):
        asked.append(point)
        return max(math.exp(-100.0 * point), 1e-300)

    _, below = last_above_first_below(floored, 1e-300, 0.0, 31.0, relative_tolerance=2e-8)
    assert below == pytest.approx(6.9077552790)
    assert len(asked) <= 40


def test_a_contour_leaves_out_values_that_never_occur(monkeypatch):
    """41 atoms a node made composed accounts of discrete Laplace take 2 to 20 s."""
    sizes, unseen = [], []
    summed = positive_part_kernels.contour_sum

    def recording(law, grid, deviation, left_out):
        sizes.append(law.masses.size)
        unseen.append(law.number * left_out)
        return summed(law, grid, deviation, left_out)

    law = AtomLaw.from_atoms(laplace_profile(60.0).attack)
    compiled = positive_part_kernels.enclose_positive_part
    monkeypatch.setattr(positive_part_kernels, "contour_sum", recording)
    monkeypatch.setattr(positive_part_kernels, "enclose_positive_part", compiled.py_func)
    for epsilon in (20.0, 30.0, 35.0, 42.0):
        few = atom_delta(law, 10**9, epsilon, width=WIDE_WIDTH)
        assert 0.0 < few.lower <= few.upper
        with monkeypatch.context() as patched:
            patched.setattr(positive_part_kernels, "seen", lambda law: (law, 0.0))
            everything = atom_delta(law, 10**9, epsilon, width=WIDE_WIDTH)
        assert max(few.lower, everything.lower) <= min(few.upper, everything.upper)
        assert few.upper - few.lower <= (everything.upper - everything.lower) + 1e-10 * few.upper
    assert law.masses.size >= 41
    assert max(sizes) >= 40  # with nothing left out
    assert np.median([size for size, mass in zip(sizes, unseen, strict=True) if mass > 0.0]) <= 10
    assert max(unseen) <= 1e-14


@pytest.mark.slow
def test_a_point_of_a_curve_takes_one_contour(monkeypatch):
    """A first try at a width of 1e-4 was in vain for most points."""
    widths = []
    enclosed = positive_part_kernels.enclose_positive_part

    def contour(*arguments):
        widths.append(arguments[1])
        return enclosed(*arguments)

    monkeypatch.setattr(positive_part_kernels, "enclose_positive_part", contour)
    laplace = laplace_profile(1.392)
    (ShuffledRelease(profile=laplace, num_users=79) * 10).delta(2.3279)
    assert len(widths) <= 1000  # 1680 once


@pytest.mark.slow
def test_a_search_keeps_what_its_guesses_have_bracketed(monkeypatch):
    compositions = [0]

    def counting(releases, delta):
        compositions[0] += 1
        return epsilon_upper(releases, delta)

    monkeypatch.setattr(calibration, "epsilon_upper", counting)
    found = calibration.largest_local_epsilon(
        num_users=10**9, rounds=2, epsilon=3.0, delta=1e-6, profile_for=lambda e: k_rr(e, 10_000)
    )
    assert found == pytest.approx(17.9702, rel=1e-3)
    assert compositions[0] <= 15  # 18 once
