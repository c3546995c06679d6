"""The theorem against the release itself: all coins, all histories, of the target and of others."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from oracles import monitored_release as oracle
from shuffledp.monitoring.privacy.central import (
    central_delta_upper,
    central_guarantee,
    local_guarantee,
)
from shuffledp.monitoring.privacy.likelihoods import shifted_changes, unavoidable_delta

# Sums of doubles in the enumeration, and the width of the contour integral.
ROUND_OFF, WIDTH = 1e-12, 1e-3

FRACTIONS = (0.0, 0.1, 0.3, 0.6, 0.9)


def sampled(periods, max_changes, ratio):
    histories = oracle.bit_histories(periods, max_changes)
    laws = [oracle.user_law(states, ratio=ratio, max_changes=max_changes) for states in histories]
    levels = periods.bit_length()
    return histories, laws, oracle.sampled_profile(max_changes, ratio, num_levels=levels)


def predrawn(periods, max_changes, threshold, ratio):
    density = oracle.threshold_density(max_changes, threshold, ratio)
    histories = oracle.bit_histories(periods, max_changes)
    laws = [
        oracle.user_law(states, density=density, max_changes=max_changes) for states in histories
    ]
    return histories, laws, oracle.predrawn_profile(density, num_levels=periods.bit_length())


@pytest.mark.parametrize("law_of_all", [sampled(4, 2, 3), predrawn(4, 3, 1, 3)])
def test_oracle_laws_are_laws_of_the_stated_loss(law_of_all):
    _, laws, profile = law_of_all
    worst = 0.0
    for a in laws:
        assert math.isclose(math.fsum(a.values()), 1.0)
        worst = max(worst, *(math.log(a[key] / b[key]) for b in laws for key in a))
    assert worst == pytest.approx(profile.epsilon0)
    uniform = min(
        value * profile.num_levels * 2 ** len(key) for law in laws for key, value in law.items()
    )
    assert uniform >= float(profile.uniform_share) * (1 - ROUND_OFF)


@pytest.mark.parametrize(
    ("periods", "max_changes", "num_users", "ratio"),
    [
        (1, 1, 3, 3),
        (2, 1, 2, 3),
        (2, 2, 2, 3),
        (2, 1, 3, 3),
        (2, 2, 3, 20),
        (2, 1, 5, 3),
        (3, 2, 2, 3),
        (4, 1, 2, 3),
        (4, 2, 2, 3),
        (4, 3, 2, 8),
    ],
)
def test_sampled_change_is_between_the_pair_and_the_theorem(periods, max_changes, num_users, ratio):
    histories, laws, profile = sampled(periods, max_changes, ratio)
    epsilons = [part * profile.epsilon0 for part in FRACTIONS]
    exact = oracle.worst_deltas(laws, num_users, epsilons)
    pair = exact_of_pair(histories, laws, profile, num_users, epsilons)
    for i, epsilon in enumerate(epsilons):
        upper = central_delta_upper(profile, num_users=num_users, epsilon=epsilon)
        lower = unavoidable_delta(profile, num_users=num_users, epsilon=epsilon, level_hidden=True)
        assert lower <= pair[i] * (1 + ROUND_OFF) + ROUND_OFF
        assert lower >= pair[i] * (1 - WIDTH) - WIDTH * 1e-3
        assert pair[i] <= exact[i] + ROUND_OFF
        assert exact[i] <= upper + ROUND_OFF
    # The bound is not the local one dressed up.
    if num_users > 2:
        assert central_delta_upper(profile, num_users=num_users, epsilon=epsilons[2]) < 0.9 * (
            math.exp(profile.epsilon0) - math.exp(epsilons[2])
        ) / (1 + math.exp(profile.epsilon0))


def exact_of_pair(histories, laws, profile, num_users, epsilons, *, levels_seen=False):
    """The divergence of the explicit pair of the lower end, all others idle."""
    periods = len(histories[0])
    first, second = shifted_changes(profile.max_changes, profile.num_levels)
    states = [
        tuple(sum(place <= t for place in places) % 2 for t in range(1, periods + 1))
        for places in (first, second)
    ]
    places = {}
    rest = {0: 1.0}
    idle = laws[histories.index((0,) * periods)]
    for user in range(1, num_users):
        rest = oracle.together(rest, oracle.encoded(idle, places, user if levels_seen else None))
    pair = [
        oracle.together(
            rest,
            oracle.encoded(laws[histories.index(each)], places, 0 if levels_seen else None),
        )
        for each in states
    ]
    return [oracle.divergence(*pair, epsilon) for epsilon in epsilons]


@pytest.mark.parametrize(("periods", "max_changes", "num_users"), [(2, 1, 2), (2, 2, 3), (4, 1, 2)])
def test_levels_that_are_seen_cost_more_and_are_paid_for(periods, max_changes, num_users):
    histories, laws, profile = sampled(periods, max_changes, 3)
    epsilons = [part * profile.epsilon0 for part in FRACTIONS]
    exact = oracle.worst_deltas(laws, num_users, epsilons, levels_seen=True)
    hidden = oracle.worst_deltas(laws, num_users, epsilons)
    pair = exact_of_pair(histories, laws, profile, num_users, epsilons, levels_seen=True)
    for i, epsilon in enumerate(epsilons):
        upper = central_delta_upper(
            profile, num_users=num_users, epsilon=epsilon, level_hidden=False
        )
        lower = unavoidable_delta(profile, num_users=num_users, epsilon=epsilon, level_hidden=False)
        assert lower <= pair[i] * (1 + ROUND_OFF) + ROUND_OFF
        assert lower >= pair[i] * (1 - WIDTH) - WIDTH * 1e-3
        assert exact[i] <= upper + ROUND_OFF
    assert exact[2] > hidden[2] * 1.05


@pytest.mark.parametrize(
    ("periods", "threshold", "max_changes", "num_users"),
    [
        (2, 0, 1, 3),
        (2, 0, 2, 3),
        (2, 1, 2, 3),
        (4, 0, 1, 2),
        (4, 0, 2, 2),
        (4, 1, 2, 2),
        (4, 1, 3, 2),
    ],
)
def test_pre_drawn_signs_are_between_the_two_ends(periods, threshold, max_changes, num_users):
    histories, laws, profile = predrawn(periods, max_changes, threshold, 3)
    epsilons = [part * profile.epsilon0 for part in FRACTIONS]
    exact = oracle.worst_deltas(laws, num_users, epsilons)
    pair = exact_of_pair(histories, laws, profile, num_users, epsilons)
    for i, epsilon in enumerate(epsilons):
        upper = central_delta_upper(profile, num_users=num_users, epsilon=epsilon)
        lower = unavoidable_delta(profile, num_users=num_users, epsilon=epsilon, level_hidden=True)
        assert lower <= pair[i] + ROUND_OFF
        assert exact[i] <= upper + ROUND_OFF
    if max_changes == 1:
        assert lower == pytest.approx(pair[-1], rel=WIDTH, abs=1e-6)


@pytest.mark.parametrize(
    ("bit", "domain_size", "columns", "share", "periods", "max_changes", "num_users"),
    [
        (oracle.one_hot, 2, 2, 1.0, 1, 1, 3),
        (oracle.one_hot, 3, 3, 2 / 3, 1, 1, 3),
        (oracle.one_hot, 2, 2, 1.0, 2, 2, 2),
        (oracle.one_hot, 3, 3, 2 / 3, 2, 1, 2),
        (oracle.one_hot, 3, 3, 2 / 3, 2, 2, 2),
        (oracle.hadamard, 3, 4, 0.5, 1, 1, 3),
        (oracle.hadamard, 2, 4, 0.5, 2, 1, 2),
    ],
)
def test_public_columns(*, bit, domain_size, columns, share, periods, max_changes, num_users):
    histories = oracle.value_histories(periods, max_changes, domain_size)
    laws = [
        oracle.user_law(states, ratio=3, max_changes=max_changes, bit=bit, columns=columns)
        for states in histories
    ]
    profile = oracle.sampled_profile(
        max_changes, 3, num_levels=periods.bit_length(), alternating=False
    )
    epsilons = [part * profile.epsilon0 for part in FRACTIONS[1:4:2]]
    exact = oracle.worst_deltas(laws, num_users, epsilons)
    for i, epsilon in enumerate(epsilons):
        wide = central_delta_upper(profile, num_users=num_users, epsilon=epsilon)
        sharper = replace(profile, changing_share=share)
        upper = central_delta_upper(sharper, num_users=num_users, epsilon=epsilon)
        assert exact[i] <= upper + ROUND_OFF
        assert upper <= wide


def test_a_gap_too_small_would_be_found():
    """Negative control: three fifths of the gap, and the enumeration is above the bound."""
    from shuffledp.monitoring.privacy.likelihoods import linear_delta, worst_law

    _, laws, profile = sampled(2, 1, 3)
    epsilon = 0.1 * profile.epsilon0
    (exact,) = oracle.worst_deltas(laws, 3, [epsilon])
    law = worst_law(oracle.sampled_profile(1, 3, num_levels=1, alternating=True), epsilon=epsilon)
    bounds = [
        linear_delta(
            law,
            gap=factor * profile.gap,
            share=float(profile.uniform_share),
            num_users=3,
            epsilon=epsilon,
        )
        for factor in (1.0, 0.6)
    ]
    assert bounds[1] < exact <= bounds[0]


@pytest.mark.parametrize(
    ("periods", "max_changes"), [(1, 1), (2, 1), (2, 2), (3, 1), (4, 1), (4, 2), (4, 3), (4, 4)]
)
@pytest.mark.parametrize("kind", ["sampled", "first", "middle", "odd"])
def test_local_ends_enclose_the_listed_loss(periods, max_changes, kind):
    odd = [Fraction(1, 2), Fraction(5, 4), Fraction(3, 4), Fraction(1), Fraction(9, 10)]
    if kind == "sampled":
        _, laws, profile = sampled(periods, max_changes, 3)
    elif kind == "odd":
        if max_changes == 1:
            odd = [Fraction(3, 2), Fraction(1, 2)]
        weights = [math.comb(max_changes, i) for i in range(max_changes + 1)]
        total = sum(w * f for w, f in zip(weights, odd, strict=False)) / 2**max_changes
        # The commoner sign is plus in any profile.
        density = [f / total for f in odd[: max_changes + 1]]
        if (
            sum(
                w * f * (max_changes - 2 * i)
                for i, (w, f) in enumerate(zip(weights, density, strict=True))
            )
            < 0
        ):
            density.reverse()
        histories = oracle.bit_histories(periods, max_changes)
        laws = [oracle.user_law(s, density=density, max_changes=max_changes) for s in histories]
        profile = oracle.predrawn_profile(density, num_levels=periods.bit_length())
    else:
        threshold = 0 if kind == "first" else (max_changes - 1) // 2
        _, laws, profile = predrawn(periods, max_changes, threshold, 3)
    exact = max(math.log(a[key] / b[key]) for a in laws for b in laws for key in a)
    bound = local_guarantee(profile)
    assert bound.lower <= exact * (1 + ROUND_OFF)
    assert exact <= bound.upper * (1 + ROUND_OFF)
    if max_changes < 1 << (profile.num_levels - 1) and kind != "odd":
        assert bound.lower == pytest.approx(bound.upper, rel=1e-12)
    assert bound.lower > 0.0


def test_without_delta_nothing_is_gained():
    """All n may report what the target's history makes likeliest: the local loss is reached."""
    _, laws, profile = sampled(2, 1, 3)
    bound = central_guarantee(profile, num_users=2, delta=0.0)
    (left,) = oracle.worst_deltas(laws, 2, [bound.lower * (1 - 1e-9)])
    assert left > 0.0
    assert (bound.upper, bound.method) == (profile.epsilon0, "local")
