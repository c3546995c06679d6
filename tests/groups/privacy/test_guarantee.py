import itertools
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import ParameterError
from shuffledp.groups.privacy.guarantee import ORDINAL_ASSUMPTIONS, OrdinalGuarantee
from shuffledp.groups.privacy.odds import odds_factor


def of(alpha, groups="households", **fields):
    return OrdinalGuarantee(alpha=alpha, groups=groups, **fields)


@given(alphas=st.lists(st.floats(0.0, 1e6), min_size=2, max_size=6))
def test_composition_adds_upwards(alphas):
    total = OrdinalGuarantee.composed([of(alpha) for alpha in alphas]).alpha
    assert total >= math.fsum(alphas)
    assert total == pytest.approx(math.fsum(alphas), rel=1e-15)


def test_composition_at_the_ends():
    assert OrdinalGuarantee.composed([of(0.0), of(0.0)]).alpha == 0.0
    assert OrdinalGuarantee.composed([of(1.0), of(math.inf)]).alpha == math.inf
    assert OrdinalGuarantee.composed([of(1.5)]) == of(1.5)
    assert OrdinalGuarantee.composed([of(0.1), of(0.2)]).alpha > 0.1 + 0.2 - 1e-17


def test_a_coin_takes_the_largest():
    mixed = OrdinalGuarantee.mixed([of(1.0), of(3.0), of(2.0)])
    assert mixed.alpha == 3.0
    assert "coin" in mixed.assumptions[-1]
    assert OrdinalGuarantee.mixed([of(2.0)]) == of(2.0)


def test_assumptions_are_united_once_each():
    first, second = of(1.0, assumptions=("a", "b")), of(1.0, assumptions=["b", "c"])
    composed = OrdinalGuarantee.composed([first, second])
    assert composed.assumptions[:3] == ("a", "b", "c")
    assert "independently" in composed.assumptions[3]
    assert OrdinalGuarantee.mixed([first, second]).assumptions[:3] == ("a", "b", "c")
    assert of(1.0).assumptions == ORDINAL_ASSUMPTIONS


def test_what_is_computed_from_the_release_is_as_private():
    guarantee = of(2.0)
    assert guarantee.post_processed() is guarantee
    assert guarantee.odds_factor == odds_factor(2.0)


@pytest.mark.parametrize("combine", [OrdinalGuarantee.composed, OrdinalGuarantee.mixed])
def test_only_like_is_combined_with_like(combine):
    with pytest.raises(ParameterError, match="at least one"):
        combine([])
    with pytest.raises(ParameterError, match="different groups"):
        combine([of(1.0), of(1.0, groups="streets")])


@pytest.mark.parametrize("alpha", [-1e-9, math.nan, "4", b"4", None, object()])
def test_alpha_is_a_number_from_zero_on(alpha):
    with pytest.raises(ParameterError, match="alpha"):
        of(alpha)


def test_a_guarantee_does_not_change():
    with pytest.raises(FrozenInstanceError):
        of(1.0).alpha = 2.0


def worst_log_ratio(channel):
    """Largest log-ratio of two rows of a channel from arrangements to outputs."""
    logs = np.log(channel)
    return max(float((p - q).max()) for p, q in itertools.permutations(logs, 2))


def test_composition_and_convexity_hold_for_enumerated_shuffles():
    # Three users with distinct reports, one group: a shuffle is a channel on arrangements.
    arrangements = list(itertools.permutations(range(3)))

    def channel(theta):
        rows = []
        for before in arrangements:
            row = []
            for after in arrangements:
                pi = [before.index(each) for each in after]
                inversions = sum(pi[i] > pi[j] for i, j in itertools.combinations(range(3), 2))
                row.append(math.exp(-theta * inversions))
            rows.append(np.array(row) / sum(row))
        return np.array(rows)

    one, two = channel(0.3), channel(0.5)
    alphas = [worst_log_ratio(each) for each in (one, two)]
    assert alphas == pytest.approx([0.9, 1.5])
    guarantees = [of(alpha) for alpha in alphas]
    both = (one[:, :, None] * two[:, None, :]).reshape(6, -1)
    composed = OrdinalGuarantee.composed(guarantees).alpha
    assert worst_log_ratio(both) <= composed * (1.0 + 1e-14)
    assert worst_log_ratio(both) == pytest.approx(composed)  # attained: no smaller sum would do
    mixed = OrdinalGuarantee.mixed(guarantees).alpha
    assert worst_log_ratio(0.4 * one + 0.6 * two) <= mixed
    public_coin = np.concatenate([0.4 * one, 0.6 * two], axis=1)
    assert worst_log_ratio(public_coin) == pytest.approx(mixed)
    merged = np.add.reduceat(one, [0, 2, 5], axis=1)
    assert worst_log_ratio(merged) <= guarantees[0].post_processed().alpha
