"""The bound beside those of uniform shuffles, its edges, and what it refuses.

That it is above exact divergences is tested by enumeration, in tests/adversarial.
"""

import itertools
import math

import numpy as np
import pytest

from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily
from shuffledp.network.privacy import (
    NETWORK_ASSUMPTIONS,
    WeightedWalk,
    Weights,
    _places_taken,
    network_walk_delta,
    network_walk_epsilon,
)
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse

ANY = LocalProfile(epsilon0=1.0)
BINARY = LocalProfile(epsilon0=1.0, family=RandomizerFamily.K_RANDOMIZED_RESPONSE, domain_size=2)


@pytest.mark.parametrize("profile", [ANY, BINARY])
@pytest.mark.parametrize("n", [1, 2, 50, 10**6])
def test_once_mixed_it_is_a_uniform_shuffle(profile, n):
    uniform = account_epsilon(profile, num_users=n, delta=1e-6)
    found = network_walk_epsilon(profile, overlaps=np.ones(n - 1), delta=1e-6)
    assert (found.upper, found.lower) == (uniform.upper, uniform.lower)
    if n > 2:
        assert found.method == f"network-walk/{uniform.method}"
    assert found.assumptions[:3] == NETWORK_ASSUMPTIONS
    uniform = account_delta(profile, num_users=n, epsilon=0.01)
    found = network_walk_delta(profile, overlaps=np.ones(n - 1), epsilon=0.01, delta=1e-6)
    assert uniform.upper <= found <= uniform.upper * (1.0 + 1e-12)


@pytest.mark.parametrize("overlaps", [[], [0.0] * 99])
@pytest.mark.parametrize("protocol", ["all", "single"])
def test_nobody_hides(overlaps, protocol):
    law = np.eye(len(overlaps) + 1)[0]
    for delta in (0.0, 1e-6):
        local = account_epsilon(ANY, num_users=1, delta=delta).upper
        found = network_walk_epsilon(
            ANY, overlaps=overlaps, delta=delta, protocol=protocol, position_law=law
        )
        assert found.upper == local
        assert found.method == "local" or not overlaps
    walk = {"overlaps": overlaps, "protocol": protocol}
    found = network_walk_delta(ANY, **walk, epsilon=0.5, delta=0.1)
    assert found == account_delta(ANY, num_users=1, epsilon=0.5).upper


@pytest.mark.slow
def test_dummies_walk_too():
    """Once mixed it is a uniform shuffle with dummies; where nobody hides the victim's own do."""
    law = DummyLaw.from_text("poisson:0.02")
    krr = KRandomizedResponse(domain_size=4, epsilon0=3.0).profile
    for n in (50, 2000):
        uniform = account_epsilon(krr, num_users=n, delta=1e-6, dummies=law)
        found = network_walk_epsilon(krr, overlaps=np.ones(n - 1), delta=1e-6, dummies=law)
        assert (found.upper, found.lower) == (uniform.upper, uniform.lower)
    walk = {"overlaps": np.zeros(99), "dummies": law}
    found = network_walk_delta(krr, **walk, epsilon=0.5, delta=0.1)
    alone = account_delta(krr, num_users=1, epsilon=0.5, dummies=law)
    assert found == pytest.approx(alone.upper, rel=1e-9)
    half = [
        network_walk_epsilon(krr, overlaps=np.full(1999, 0.5), delta=1e-6, dummies=each).upper
        for each in (None, law, DummyLaw.from_text("poisson:0.2"))
    ]
    assert half[0] > half[1] > half[2]
    told = network_walk_epsilon(krr, overlaps=np.full(1999, 0.5), delta=1e-6, dummies=law)
    assert any("the law poisson:0.02," in each for each in told.assumptions)  # what users send
    single = {"protocol": "single", "overlaps": np.full(199, 0.5), "delta": 1e-6}
    without = network_walk_epsilon(krr, **single)
    assert network_walk_epsilon(krr, **single, dummies=law).upper == without.upper
    liars = network_walk_epsilon(
        krr, overlaps=np.full(1999, 0.5), delta=1e-6, dummies=law, num_dishonest=1000
    )
    honest = network_walk_epsilon(krr, overlaps=np.full(999, 0.5), delta=1e-6, dummies=law)
    assert liars.upper == honest.upper
    with pytest.raises(ParameterError, match="shuffler's law"):
        network_walk_epsilon(
            krr, overlaps=[0.5], delta=1e-6, dummies=DummyLaw.from_text("laplace:2:20")
        )


def test_odd_numbers():
    others = np.full(99, 0.5)
    zero = LocalProfile(epsilon0=0.0)
    assert network_walk_epsilon(zero, overlaps=others, delta=1e-6).upper == 0.0
    assert network_walk_delta(zero, overlaps=others, epsilon=0.0, delta=0.1) == 0.0
    assert network_walk_epsilon(ANY, overlaps=others, delta=0.0).upper == 1.0
    assert network_walk_delta(ANY, overlaps=others, epsilon=1.0, delta=0.1) == 0.0
    assert network_walk_delta(ANY, overlaps=others, epsilon=2.0, delta=0.1) == 0.0
    huge = LocalProfile(epsilon0=500.0)
    assert network_walk_epsilon(huge, overlaps=others, delta=1e-6).upper <= 500.0
    impure = LocalProfile(epsilon0=1.0, delta0=1e-9)
    loose = network_walk_epsilon(impure, overlaps=others, delta=1e-6).upper
    assert network_walk_epsilon(ANY, overlaps=others, delta=1e-6).upper <= loose <= 1.0
    with pytest.raises(OutOfRegimeError):
        network_walk_epsilon(impure, overlaps=others, delta=1e-12)


@pytest.mark.parametrize("protocol", ["all", "single"])
def test_epsilon_and_delta_are_inverse(protocol):
    generator = Entropy.from_seed(3).generator()
    overlaps = generator.random(999)
    law = np.full(1000, 1e-3)
    options = {"overlaps": overlaps, "protocol": protocol, "position_law": law}
    for delta in (1e-3, 1e-7):
        epsilon = network_walk_epsilon(ANY, delta=delta, **options).upper
        back = network_walk_delta(ANY, epsilon=epsilon, delta=delta, **options)
        assert back == pytest.approx(delta, rel=0.05)


def test_larger_overlaps_hide_better():
    values = [
        network_walk_epsilon(ANY, overlaps=np.full(500, kappa), delta=1e-6, with_lower=False).upper
        for kappa in (0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0 - 1e-12, 1.0)
    ]
    assert values == sorted(values, reverse=True)
    assert values[-2] == pytest.approx(values[-1], rel=1e-4)
    crowd = account_epsilon(ANY, num_users=451, delta=1e-6, with_lower=False).upper
    assert crowd < values[4] < 1.02 * crowd


def test_the_dishonest_take_the_largest_overlaps():
    overlaps = [0.9] * 100 + [0.3] * 400
    left = network_walk_epsilon(ANY, overlaps=[0.3] * 400, delta=1e-6)
    found = network_walk_epsilon(ANY, overlaps=overlaps, delta=1e-6, num_dishonest=100)
    assert (found.upper, found.lower) == (left.upper, left.lower)
    alone = network_walk_epsilon(ANY, overlaps=overlaps, delta=1e-6, num_dishonest=500)
    assert alone.upper == account_epsilon(ANY, num_users=1, delta=1e-6).upper


@pytest.mark.slow
@pytest.mark.parametrize("profile", [ANY, BINARY])
def test_single_is_never_worse_than_all(profile):
    generator = Entropy.from_seed(4).generator()
    for law in (np.full(400, 1.0 / 400), np.eye(400)[0], generator.dirichlet(np.ones(400))):
        for overlaps in (np.ones(399), np.full(399, 0.4)):
            everything = network_walk_epsilon(profile, overlaps=overlaps, delta=1e-5)
            one = network_walk_epsilon(
                profile, overlaps=overlaps, delta=1e-5, protocol="single", position_law=law
            )
            assert one.upper <= everything.upper * (1.0 + 1e-5)
            assert one.lower is None
            bare = network_walk_epsilon(profile, overlaps=overlaps, delta=1e-5, protocol="single")
            assert bare.upper == everything.upper
    # Everybody's report ends at one place, and one of them is handed in.
    point = network_walk_delta(
        ANY,
        overlaps=np.ones(399),
        epsilon=0.0,
        delta=0.1,
        protocol="single",
        position_law=np.eye(400)[0],
    )
    assert point == pytest.approx(account_delta(ANY, num_users=1, epsilon=0.0).upper / 400)


def test_single_at_stationarity_against_the_sampling_result():
    # A regular graph: about 1 - 1/e of the reports are handed in.
    n = 100_000
    found = network_walk_epsilon(
        ANY,
        overlaps=np.ones(n - 1),
        delta=1e-6,
        protocol="single",
        position_law=np.full(n, 1.0 / n),
    )
    share = 1.0 - math.exp(-1.0)
    inner = account_epsilon(ANY, num_users=int(share * n), delta=1e-6 / share).upper
    ideal = math.log1p(share * math.expm1(inner))
    assert ideal * (1.0 - 1e-4) < found.upper < 1.01 * ideal
    everything = account_epsilon(ANY, num_users=n, delta=1e-6).upper
    assert found.upper < 0.8 * everything
    assert found.method == "network-walk-single/clones"


def test_places_taken_against_simulation():
    # 2000 trials: the level of 1e-4 is passed with probability 0.2 at most, that of 1e-7 never.
    generator = Entropy.from_seed(11).generator()
    law = generator.dirichlet(np.full(300, 0.5))
    trials = np.array([len(np.unique(generator.choice(300, 250, p=law))) for _ in range(2000)])
    levels = _places_taken(law, (250, 249, 100))
    assert levels[250] == levels[249]  # close enough to share a law
    assert levels[100] != levels[250]
    for taken, miss in levels[250]:
        assert np.mean(trials > taken) <= miss + 3.0 * math.sqrt(miss / 2000.0)
    assert trials.max() <= next(taken for taken, miss in levels[250] if miss <= 1e-10)
    assert np.mean(trials > levels[250][0][0] - 10) > levels[250][0][1]  # a smaller one is caught
    assert [taken for taken, _ in levels[250]] == sorted({taken for taken, _ in levels[250]})
    assert _places_taken(np.eye(5)[0], (3,)) == {3: [(1, 0.0)]}


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_places_taken_by_enumeration(size):
    law = np.array([0.5, 0.3, 0.2])
    places = [list(each) for each in itertools.product(range(3), repeat=size)]
    for taken, miss in _places_taken(law, (size,))[size]:
        more = math.fsum(law[each].prod() for each in places if len(set(each)) > taken)
        assert more <= miss


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"overlaps": [0.5, math.nan]}, "overlaps"),
        ({"overlaps": [1.5]}, "overlaps"),
        ({"overlaps": 0.5}, "shape"),
        ({"overlaps": np.empty((0, 4))}, "shape"),
        ({"overlaps": [[[0.5]]]}, "shape"),
        ({"protocol": "some"}, "protocol"),
        ({"num_dishonest": 3}, "num_dishonest"),
        ({"num_dishonest": -1}, "num_dishonest"),
        ({"position_law": [0.5, 0.4]}, "position_law"),
        ({"position_law": [[1.0]]}, "position_law"),
        ({"position_law": [2.0]}, "position_law"),
    ],
)
def test_refused(options, match):
    arguments = {"overlaps": [0.5, 0.5], **options}
    with pytest.raises(ParameterError, match=match):
        network_walk_epsilon(ANY, delta=1e-6, **arguments)
    with pytest.raises(ParameterError, match=match):
        network_walk_delta(ANY, epsilon=0.1, delta=1e-6, **arguments)


@pytest.mark.parametrize("value", [math.nan, -1.0, math.inf])
def test_targets_refused(value):
    with pytest.raises(ParameterError, match="delta"):
        network_walk_epsilon(ANY, overlaps=[0.5], delta=value)


def test_without_a_lower_end():
    assert network_walk_epsilon(ANY, overlaps=[0.5], delta=0.1, with_lower=False).lower is None


EVEN = Weights(np.ones(1), np.ones(1))
# Asymmetric: one order of the pair loses more than the other.
ATOMS = ((0.1, 2.5, 1.0), (0.3, 1.0, 1.5), (0.45, 1.0, 1.0))
STATED = LocalProfile(
    epsilon0=1.0,
    family=RandomizerFamily.OTHER,
    blanket=tuple(BlanketAtom(mass=m, ratio0=a, ratio1=b) for m, a, b in ATOMS),
)


@pytest.mark.parametrize(
    "profile",
    [
        ANY,
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER),
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.K_RANDOMIZED_RESPONSE, domain_size=9),
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.SYMMETRIC_UNARY),
        LocalProfile(epsilon0=1.0, family=RandomizerFamily.OPTIMIZED_UNARY),
        STATED,
    ],
)
def test_with_even_weights_it_is_a_uniform_shuffle(profile):
    uniform = account_epsilon(profile, num_users=1000, delta=1e-6, with_lower=False).upper
    walk = WeightedWalk(profile, np.ones(999), delta=1e-6)
    # For unary encodings the accountant rounds the law up to one of three kinds of reports.
    assert uniform * (1.0 - 5e-3) <= walk.epsilon(EVEN, 1e-6) <= uniform * (1.0 + 1e-3)


def test_wider_weights_and_fewer_others_hide_less():
    def delta(values, overlap=1.0, **options):
        masses = np.full(len(values), 1.0 / len(values))
        walk = WeightedWalk(ANY, np.full(200, overlap), delta=1e-3, **options)
        return walk.delta(Weights(np.array(values), np.array(masses)), 0.3)

    even = delta([1.0])
    wide = delta([0.5, 1.5])
    wider = delta([0.0, 2.0])
    assert even < wide < wider < delta([0.0, 2.0], 0.8) < delta([0.0, 2.0], 0.8, num_dishonest=50)
    alone = account_delta(ANY, num_users=1, epsilon=0.3).upper
    assert delta([1.0], num_dishonest=300) == alone
    assert delta([1.0], 0.0) == alone


def test_what_is_missed_is_added():
    walk = WeightedWalk(ANY, np.ones(999), delta=1e-3)
    alone = account_delta(ANY, num_users=1, epsilon=0.2).upper
    hidden = walk.delta(EVEN, 0.2)
    found = walk.delta(EVEN._replace(missed=0.25), 0.2)
    assert found == pytest.approx(0.75 * hidden + 0.25 * alone)
    assert walk.delta(EVEN._replace(missed=1.0), 0.2) == alone


def test_the_error_of_the_weights_is_paid_for():
    walk = WeightedWalk(ANY, np.ones(999), delta=1e-3)
    exact, rough = (walk.delta(EVEN._replace(accuracy=each), 0.1) for each in (0.0, 1e-3))
    assert rough > 1.001 * exact


def test_without_a_blanket_the_report_alone_counts():
    impure = LocalProfile(epsilon0=1.0, delta0=1e-9)
    walk = WeightedWalk(impure, np.ones(999), delta=1e-6)
    assert walk.epsilon(EVEN, 1e-6) == account_epsilon(impure, num_users=1, delta=1e-6).upper
    assert walk.delta(EVEN, 0.1) == account_delta(impure, num_users=1, epsilon=0.1).upper
    huge_profile = LocalProfile(epsilon0=500.0)
    huge = WeightedWalk(huge_profile, np.ones(9), delta=1e-6)
    assert huge.delta(EVEN, 1.0) == account_delta(huge_profile, num_users=1, epsilon=1.0).upper
    walk = WeightedWalk(ANY, np.ones(999), delta=1e-6)
    assert walk.delta(EVEN, 1.0) == 0.0
    assert walk.epsilon(EVEN, 0.0) == 1.0


def test_values_and_masses_out_of_range_are_refused():
    walk = WeightedWalk(ANY, np.ones(9), delta=1e-3)
    for values, masses in (([-1.0], [1.0]), ([1.0], [1.5]), ([math.nan], [1.0])):
        with pytest.raises(ParameterError):
            walk.delta(Weights(np.array(values), np.array(masses)), 0.1)
