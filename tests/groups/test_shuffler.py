"""The shuffler within groups: how it applies a permutation, its theta and alpha, its refusals."""

import math
from fractions import Fraction
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import chdtri

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups import mallows
from shuffledp.groups.exact_draws import SMALLEST_THETA
from shuffledp.groups.groups import Groups
from shuffledp.groups.mallows import MallowsShuffler
from shuffledp.groups.reference_orders import ReferenceOrder, sensitivity

# For the whole module; each of the tests takes an equal share.
FALSE_POSITIVE_RATE = 1e-9
NUM_TESTS = 4
NUM_TRIALS = 12_000

GROUPS = Groups.from_sets([[0, 2, 4], [1, 2], [3]], num_users=5)

finite = st.floats(0.0, allow_infinity=False)


def shuffler_in(order, *, theta=1.0, distance="kendall"):
    reference = ReferenceOrder(
        order=np.array(order), name="test", distance=distance, sensitivity=99
    )
    return MallowsShuffler(reference=reference, theta=theta)


def with_draw(monkeypatch, pi):
    """Let every model draw ``pi``."""
    model = SimpleNamespace(sample=lambda entropy: np.array(pi))
    monkeypatch.setattr(mallows, "MallowsModel", lambda **_: model)


@pytest.mark.parametrize("order", [*permutations(range(4))])
def test_it_applies_pi_in_the_coordinates_of_the_order(monkeypatch, order):
    shuffler = shuffler_in(order)
    answers = np.array([10, 11, 12, 13])
    for pi in permutations(range(4)):
        with_draw(monkeypatch, pi)
        shuffled = shuffler.shuffle(answers, Entropy.from_seed(0))
        sigma = shuffler.draw(Entropy.from_seed(0))
        # The person at place j gets the answer of the person at place pi(j).
        for j in range(4):
            assert shuffled[order[j]] == answers[order[pi[j]]]
            assert sigma[order[j]] == order[pi[j]]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, "S3", bool])
@pytest.mark.parametrize("row", [(), (3,), (0,), (2, 5)])
def test_any_rows(dtype, row):
    generator = Entropy.from_seed(41).generator()
    rows = generator.integers(0, 100, size=(6, *row)).astype(dtype)
    shuffler = shuffler_in(range(6), theta=0.1)
    sigma = shuffler.draw(Entropy.from_seed(42))
    kept = rows.copy()
    for layout in (rows, np.asfortranarray(rows)):
        shuffled = shuffler.shuffle(layout, Entropy.from_seed(42))
        assert shuffled.dtype == rows.dtype
        assert shuffled.flags.c_contiguous
        assert (shuffled == rows[sigma]).all()
    assert (rows == kept).all()


def test_one_person():
    groups = Groups.from_sets([[0]], num_users=1)
    for alpha in (0.0, 1.0, math.inf):
        shuffler = MallowsShuffler.for_groups(groups, alpha)
        assert shuffler.theta == math.inf
        assert shuffler.alpha_for(groups) == 0.0
        assert shuffler.shuffle(np.array([7]), Entropy.from_seed(0)).tolist() == [7]
    assert shuffler_in([0]).shuffle(np.array([7]), Entropy.from_seed(0)).tolist() == [7]


def test_an_infinite_alpha_shuffles_nothing():
    shuffler = MallowsShuffler.for_groups(GROUPS, math.inf)
    assert shuffler.alpha_for(GROUPS) == math.inf
    assert shuffler.draw(Entropy.from_seed(1)).tolist() == [0, 1, 2, 3, 4]


def test_a_zero_alpha_is_a_uniform_shuffle():
    shuffler = MallowsShuffler.for_groups(GROUPS, 0.0)
    assert (shuffler.theta, shuffler.alpha_for(GROUPS)) == (0.0, 0.0)


@given(finite, st.sampled_from(["kendall", "hamming", "cayley"]))
def test_theta_is_rounded_down(alpha, distance):
    shuffler = MallowsShuffler.for_groups(GROUPS, alpha, distance=distance)
    delta = shuffler.reference.sensitivity
    assert delta == sensitivity(distance, GROUPS, shuffler.reference.places) > 0
    assert Fraction(shuffler.theta) * delta <= Fraction(alpha)
    # And no further than to the next number that can be drawn.
    above = max(math.nextafter(shuffler.theta, math.inf), SMALLEST_THETA)
    assert Fraction(above) * delta > Fraction(alpha)


@given(finite)
def test_alpha_is_rounded_up(theta):
    assume(theta == 0.0 or theta >= SMALLEST_THETA)
    shuffler = shuffler_in(range(5), theta=theta)
    alpha = shuffler.alpha_for(GROUPS)
    exact = Fraction(theta) * 7
    if math.isinf(alpha):
        assert float.fromhex("0x1.fffffffffffffp1023") < exact
    else:
        assert Fraction(alpha) >= exact
        assert alpha == 0.0 or Fraction(math.nextafter(alpha, 0.0)) < exact


def test_theorem_4_4_for_other_groups():
    shuffler = shuffler_in([0, 2, 4, 1, 3], theta=0.5)
    assert shuffler.alpha_for(Groups.from_sets([[0, 2, 4], [1, 3]], num_users=5)) == 1.5
    assert shuffler.alpha_for(Groups.from_sets([range(5)], num_users=5)) == 5.0
    assert shuffler.alpha_for(Groups.from_sets([[i] for i in range(5)], num_users=5)) == 0.0
    assert shuffler_in(range(5), theta=math.inf).alpha_for(GROUPS) == math.inf
    assert shuffler_in(range(5), theta=1e308).alpha_for(GROUPS) == math.inf
    with pytest.raises(ParameterError, match="5 entries for 3 people"):
        shuffler.alpha_for(Groups.from_sets([[0, 1, 2]], num_users=3))


def test_coordinates_are_used():
    degrees = [[89.0, 0.0], [89.0, 180.0], [88.0, 0.0], [88.0, 180.0]]
    groups = Groups.from_distance(degrees, 250_000, metric="haversine")
    shuffler = MallowsShuffler.for_groups(groups, 1.0, coordinates=degrees, metric="haversine")
    assert shuffler.reference.num_users == 4
    with pytest.raises(ParameterError, match="latitude"):
        MallowsShuffler.for_groups(groups, 1.0, coordinates=[[95.0, 0.0]] * 4, metric="haversine")


@pytest.mark.parametrize("alpha", [-1e-300, -1, math.nan, -math.inf, "4", None, -(10**400)])
def test_bad_alphas_are_named(alpha):
    with pytest.raises(ParameterError, match="alpha = "):
        MallowsShuffler.for_groups(GROUPS, alpha)


@pytest.mark.parametrize("theta", [-1.0, math.nan, "1"])
def test_bad_thetas_are_named(theta):
    with pytest.raises(ParameterError, match="theta = "):
        shuffler_in(range(5), theta=theta)


@pytest.mark.parametrize("distance", ["footrule", "ulam"])
def test_distances_without_sampler_are_refused(distance):
    with pytest.raises(ParameterError, match="has no sampler: choose one of kendall, hamming"):
        MallowsShuffler.for_groups(GROUPS, 1.0, distance=distance)


def test_a_reference_order_of_the_footrule_is_refused():
    with pytest.raises(ParameterError, match="'footrule' has no sampler"):
        shuffler_in(range(5), distance="footrule")


def test_wrong_reports_are_refused():
    shuffler = shuffler_in(range(5))
    for reports, message in (
        (np.array(3), "single number"),
        (np.array(["a", None, 1, 2, 3]), "Python objects"),
        (np.zeros(4), "4 rows for 5 people"),
        (np.zeros((0, 5)), "0 rows for 5 people"),
    ):
        with pytest.raises(ParameterError, match=message):
            shuffler.shuffle(reports, Entropy.from_seed(0))


def test_it_has_a_name():
    assert MallowsShuffler.name == "mallows"


# ---------------------------------------------------------------- the law of what comes out

ORDER = (2, 0, 3, 1)


def inversions(pi):
    return sum(pi[i] > pi[j] for i in range(len(pi)) for j in range(i + 1, len(pi)))


def law_of_sigma(theta, apply):
    """Return the law of sigma as it should be, by permutation."""
    weights = {pi: math.exp(-theta * inversions(pi)) for pi in permutations(range(4))}
    total = sum(weights.values())
    law = {}
    for pi, weight in weights.items():
        sigma = tuple(apply(pi))
        law[sigma] = law.get(sigma, 0.0) + weight / total
    return law


def conjugated(pi):
    place = {user: j for j, user in enumerate(ORDER)}
    return [ORDER[pi[place[user]]] for user in range(4)]


def is_rejected(counts, law):
    """Chi-square at the declared rate; every permutation is expected ten times at least."""
    expected = {sigma: NUM_TRIALS * probability for sigma, probability in law.items()}
    assert min(expected.values()) >= 10.0
    statistic = sum((counts.get(s, 0) - e) ** 2 / e for s, e in expected.items())
    return statistic > chdtri(len(law) - 1, FALSE_POSITIVE_RATE / NUM_TESTS)


@pytest.fixture(scope="module", params=[0.25, 0.6])
def drawn(request):
    shuffler = shuffler_in(ORDER, theta=request.param)
    entropy = Entropy.from_seed(44)
    counts = {}
    for _ in range(NUM_TRIALS):
        sigma = tuple(shuffler.shuffle(np.arange(4), entropy).tolist())
        counts[sigma] = counts.get(sigma, 0) + 1
    return request.param, counts


def test_the_law_of_the_output(drawn):
    theta, counts = drawn
    assert not is_rejected(counts, law_of_sigma(theta, conjugated))


def test_other_laws_are_rejected(drawn):
    theta, counts = drawn
    # The identity as reference, which the literal line 8 of Algorithm 1 comes to.
    assert is_rejected(counts, law_of_sigma(theta, lambda pi: pi))
    # Without going back to people.
    assert is_rejected(counts, law_of_sigma(theta, lambda pi: [ORDER[j] for j in pi]))
    assert is_rejected(counts, law_of_sigma(1.3 * theta, conjugated))
