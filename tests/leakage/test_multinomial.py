"""One multinomial histogram: its reduced form, and its tails."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from oracles.shuffled_guesses import identity, k_rr
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.leakage import uninformed as module
from shuffledp.leakage.uninformed import excess_means, multinomial_form


def test_unary_encoding_shrinks():
    # Two bits, the first about the value, the second a fair coin: as good as one bit.
    rows = [[0.4, 0.4, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4]]
    form = multinomial_form(10, rows)
    assert form.gains.shape == (2, 2)
    assert form.law.tolist() == [0.5, 0.5]
    assert form.unshuffled == pytest.approx(0.8, rel=1e-15)
    # In a crowd of another law columns of equal weights are merged only.
    uneven = multinomial_form(10, rows, crowd=[0.4, 0.2, 0.3, 0.1])
    assert uneven.gains.shape == (2, 4)


def test_equal_columns_that_were_computed_differently():
    third = 0.1 + 0.2
    form = multinomial_form(10, [[0.3, third, 1 - 0.3 - third], [0.2, 0.2, 0.6]])
    assert form.gains.shape == (2, 2)
    assert form.law.sum() == pytest.approx(1.0, rel=1e-15)


def test_rare_reports_keep_their_digits():
    # Weights of a rare report dwarf the others, which must not be rounded away.
    form = multinomial_form(
        10, [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]], crowd=[1e-150, 0.6, 0.4 - 1e-150]
    )
    assert form.gains.shape == (2, 3)
    assert form.slack < 1e-14
    assert form.means == pytest.approx([0.5, 0.5], rel=1e-14)


def test_needless_guesses():
    assert len(multinomial_form(5, k_rr(4, 0.7), prior=[0.97, 0.01, 0.01, 0.01]).gains) == 1
    assert len(multinomial_form(5, k_rr(4, 0.7), prior=[0.4, 0.2, 0.2, 0.2]).gains) == 4
    assert len(multinomial_form(5, [[0.5, 0.5]] * 3).gains) == 1
    assert len(multinomial_form(5, identity(4), prior=[0.5, 0.5, 0, 0]).gains) == 2


def test_too_large_to_look_for_needless_guesses(monkeypatch):
    monkeypatch.setattr(module, "_MOST_COMPARISONS", 10.0)
    assert len(multinomial_form(5, [[0.5, 0.5], [0.5, 0.5], [0.3, 0.7]]).gains) == 3


def test_what_is_certain():
    form = multinomial_form(5, [[0.75, 0.25, 0.0], [0.5, 0.1, 0.4]], crowd=[1, 0, 0])
    assert form.certain == pytest.approx(0.125 + 0.2)
    assert form.law.tolist() == [1.0]
    assert form.without_release == pytest.approx(0.325 + 0.375)
    assert form.differences.shape == (len(form.gains) - 1, 1)


def test_refusals():
    with pytest.raises(ParameterError, match="1 row"):
        multinomial_form(2, [[1.0]])
    with pytest.raises(ParameterError, match="not a whole number"):
        multinomial_form(2.5, identity(2))


def exact_means(num_users, law, parts):
    everything = product(range(num_users + 1), repeat=len(law))
    counts = np.array([each for each in everything if sum(each) == num_users])
    masses = stats.multinomial.pmf(counts, num_users, law)
    return masses @ np.maximum(counts @ parts.T / num_users, 0.0)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_errs_upwards(seed, num_users):
    rng = Entropy.from_seed(seed).generator()
    law = rng.dirichlet(np.ones(3))
    parts = rng.normal(size=(4, 3)) * 10.0 ** rng.integers(-6, 4)
    exact = exact_means(num_users, law, parts)
    assert (exact * (1.0 - 1e-9) <= excess_means(num_users, law, parts)).all()


def test_falls_exponentially():
    law, parts = np.array([0.6, 0.4]), np.array([[-1.0, 1.0]])
    found = [excess_means(n, law, parts)[0] for n in (100, 400, 1600, 10**9)]
    exact = exact_means(400, law, parts)[0]
    assert exact <= found[1] <= 30.0 * exact
    assert found[2] <= found[1] ** 2.5
    assert 0.0 < found[3] <= 1e-280


@pytest.mark.parametrize("parts", [[[0.0, 0.0]], [[1.0, 1.0]], [[-1e9, -1e9]], [[-1e6, 1e-3]]])
def test_constants_and_large_weights(parts):
    law, weights = np.array([0.5, 0.5]), np.array(parts)
    for num_users in (1, 30):
        found = excess_means(num_users, law, weights)
        assert np.isfinite(found).all()
        assert (exact_means(num_users, law, weights) <= found).all()
