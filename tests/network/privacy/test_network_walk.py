"""The bound beside those of uniform shuffles, its edges, and what it refuses.

That it is above exact divergences is tested by enumeration, in tests/adversarial.
"""

import math

import numpy as np
import pytest

from shuffledp.accounting.amplification.registry import account_delta, account_epsilon
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.network.privacy.network_walk import (
    NETWORK_ASSUMPTIONS,
    _places_taken,
    network_walk_delta,
    network_walk_epsilon,
)

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
    found = network_walk_delta(profile, overlaps=np.ones(n - 1), epsilon=0.01)
    assert (found.upper, found.lower) == (uniform.upper, uniform.lower)


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
    found = network_walk_delta(ANY, overlaps=overlaps, epsilon=0.5, protocol=protocol)
    assert found.upper == account_delta(ANY, num_users=1, epsilon=0.5).upper


def test_odd_numbers():
    others = np.full(99, 0.5)
    zero = LocalProfile(epsilon0=0.0)
    assert network_walk_epsilon(zero, overlaps=others, delta=1e-6).upper == 0.0
    assert network_walk_delta(zero, overlaps=others, epsilon=0.0).upper == 0.0
    assert network_walk_epsilon(ANY, overlaps=others, delta=0.0).upper == 1.0
    assert network_walk_delta(ANY, overlaps=others, epsilon=1.0).upper == 0.0
    assert network_walk_delta(ANY, overlaps=others, epsilon=2.0).upper == 0.0
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
    options = {"overlaps": overlaps, "protocol": protocol, "position_law": law, "missed": 1e-9}
    for delta in (1e-3, 1e-7):
        epsilon = network_walk_epsilon(ANY, delta=delta, **options).upper
        back = network_walk_delta(ANY, epsilon=epsilon, **options).upper
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


def test_what_the_victim_misses():
    ones = np.ones(999)
    without = network_walk_delta(ANY, overlaps=ones, epsilon=0.2).upper
    local = account_delta(ANY, num_users=1, epsilon=0.2).upper
    for missed in (1e-8, 0.3):
        found = network_walk_delta(ANY, overlaps=ones, epsilon=0.2, missed=missed).upper
        assert found == pytest.approx((1.0 - missed) * without + missed * local, rel=1e-9)
    assert network_walk_delta(ANY, overlaps=ones, epsilon=0.2, missed=1.0).upper == local
    everything = network_walk_epsilon(ANY, overlaps=ones, delta=1e-6, missed=1.0)
    assert everything.method == "local"


def test_the_best_decomposition_counts():
    rows = [np.full(999, 0.2), np.full(999, 0.9)]
    missed = [0.0, 1e-8]
    each = [
        network_walk_epsilon(ANY, overlaps=row, missed=share, delta=1e-6).upper
        for row, share in zip(rows, missed, strict=True)
    ]
    both = network_walk_epsilon(ANY, overlaps=rows, missed=missed, delta=1e-6).upper
    assert both == min(each)
    values = [
        network_walk_delta(ANY, overlaps=row, missed=share, epsilon=0.3).upper
        for row, share in zip(rows, missed, strict=True)
    ]
    assert network_walk_delta(ANY, overlaps=rows, missed=missed, epsilon=0.3).upper == min(values)


def test_the_dishonest_take_the_largest_overlaps():
    overlaps = [0.9] * 100 + [0.3] * 400
    left = network_walk_epsilon(ANY, overlaps=[0.3] * 400, delta=1e-6)
    found = network_walk_epsilon(ANY, overlaps=overlaps, delta=1e-6, num_dishonest=100)
    assert (found.upper, found.lower) == (left.upper, left.lower)
    alone = network_walk_epsilon(ANY, overlaps=overlaps, delta=1e-6, num_dishonest=500)
    assert alone.upper == account_epsilon(ANY, num_users=1, delta=1e-6).upper


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
        protocol="single",
        position_law=np.eye(400)[0],
    )
    assert point.upper == pytest.approx(account_delta(ANY, num_users=1, epsilon=0.0).upper / 400)


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


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"overlaps": [0.5, math.nan]}, "overlaps"),
        ({"overlaps": [1.5]}, "overlaps"),
        ({"overlaps": 0.5}, "shape"),
        ({"overlaps": np.empty((0, 4))}, "shape"),
        ({"overlaps": [[[0.5]]]}, "shape"),
        ({"missed": -0.1}, "missed"),
        ({"missed": [0.1, 0.2]}, "missed has shape"),
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
        network_walk_delta(ANY, epsilon=0.1, **arguments)


@pytest.mark.parametrize("value", [math.nan, -1.0, math.inf])
def test_targets_refused(value):
    with pytest.raises(ParameterError, match="delta"):
        network_walk_epsilon(ANY, overlaps=[0.5], delta=value)
    with pytest.raises(ParameterError, match="epsilon"):
        network_walk_delta(ANY, overlaps=[0.5], epsilon=value)


def test_without_a_lower_end():
    assert network_walk_epsilon(ANY, overlaps=[0.5], delta=0.1, with_lower=False).lower is None
    assert network_walk_delta(ANY, overlaps=[0.5], epsilon=0.1, with_lower=False).lower is None
