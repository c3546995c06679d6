"""Laws of dummies: tables are the same on every machine, and what is drawn follows them."""

import math
from bisect import bisect_right
from decimal import localcontext
from fractions import Fraction
from itertools import accumulate
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from shuffledp.core import dummies
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError

# Five chi-square tests at 1e-9; and normal tails beyond eight deviations, 1e-15 each.
FALSE_POSITIVE_RATE = 6e-9
REJECTION_LEVEL = 1e-9

LAWS = ("laplace:20.25:219", "laplace:4.05:51", "laplace:2.025:27", "gaussian:6.0:40")


@pytest.mark.parametrize("text", LAWS)
def test_a_table_is_symmetric_and_has_mass_one(text):
    law = DummyLaw.from_text(text)
    assert sum(law.table) == 2**64
    assert law.table == law.table[::-1]
    assert len(law.table) == 2 * law.half_width + 1
    assert str(law) == text
    assert DummyLaw(**law.to_json_dict()) == law


def test_a_table_follows_its_formula_to_one_unit():
    law = DummyLaw.from_text("laplace:2.025:27")
    weights = np.exp(-np.abs(np.arange(-27, 28)) / 2.025)
    masses = [mass / 2**64 for mass in law.table]
    np.testing.assert_allclose(masses, weights / weights.sum(), rtol=1e-12)
    assert law.variance == pytest.approx(8.0355278, rel=1e-8)


def test_tables_are_pinned():
    # Every machine has to have the very integers of its peers: the law is in the name of a task.
    # By mpmath with 60 digits, floors, the rest at the centre.
    with localcontext(prec=3):  # of the program, which makes no difference
        assert dummies._table.__wrapped__("gaussian", 1.5, 3) == PINNED


PINNED = (
    675756723217298400, 2052767671988273361, 3998245473108119009, 4993204337082170076,
    3998245473108119009, 2052767671988273361, 675756723217298400,
)  # fmt: skip


@pytest.mark.parametrize("text", LAWS)
def test_draws_follow_the_table(text):
    law = DummyLaw.from_text(text)
    drawn = np.bincount(law.draw(200_000, Entropy.from_seed(5)), minlength=len(law.table))
    chances = np.array([mass / 2**64 for mass in law.table])
    frequent = 200_000 * chances > 10
    found, expected = drawn[frequent], 200_000 * chances[frequent]
    expected *= found.sum() / expected.sum()
    assert stats.chisquare(found, expected).pvalue > REJECTION_LEVEL


def test_sums_of_users_draws_are_poisson():
    law = DummyLaw.from_text("poisson:0.004")
    entropy = Entropy.from_seed(6)
    drawn = np.array([law.draw(3, entropy, num_senders=700) for _ in range(3000)])
    counts = np.bincount(drawn.ravel(), minlength=20)[:20]
    expected = 9000 * stats.poisson.pmf(np.arange(20), 2.8)
    frequent = expected > 10
    total = counts[frequent].sum()
    expected = expected[frequent] * total / expected[frequent].sum()
    assert stats.chisquare(counts[frequent], expected).pvalue > REJECTION_LEVEL
    # Bins of one draw are independent: their covariance is 0 within eight deviations.
    assert abs(np.cov(drawn[:, 0], drawn[:, 1])[0, 1]) < 8 * 2.8 / math.sqrt(3000)


def test_one_user_sends_its_share():
    law = DummyLaw.from_text("poisson:0.25")  # half a dummy in all: a thinned draw, not a coin
    entropy = Entropy.from_seed(7)
    totals = np.array([law.draw(2, entropy).sum() for _ in range(2_000)])
    expected = 2_000 * stats.poisson.pmf(np.arange(5), 0.5)
    found = np.bincount(totals, minlength=5)[:5]
    assert np.all(np.abs(found - expected) < 8 * np.sqrt(expected))


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("laplace:2", "is no law"),
        ("laplace:2:a", "is no law"),
        ("uniform:2:3", "shape = 'uniform'"),
        ("poisson:1:2", "is no law"),
        ("laplace:0:3", "scale"),
        ("laplace:nan:3", "scale"),
        ("laplace:inf:3", "scale"),
        ("gaussian:2:0", "half_width"),
        ("gaussian:2:20001", "half_width"),
        ("poisson:-1", "scale"),
    ],
)
def test_what_is_no_law_is_refused(text, about):
    with pytest.raises(ParameterError, match=about):
        DummyLaw.from_text(text)


def test_outcomes_too_rare_for_a_word_never_happen():
    law = DummyLaw.from_text("laplace:1.0:60")
    assert law.table[0] == 0
    assert Fraction(sum(law.table), 2**64) == 1


@pytest.mark.parametrize("text", ["gaussian:3:100", "laplace:1:120", "laplace:0.01:5"])
def test_draws_follow_a_table_whose_ends_are_empty(text):
    law = DummyLaw.from_text(text)
    # Each word lands where a search of exact numbers finds it: at either side of each end, too.
    ends = list(accumulate(law.table))
    words = [w for end in ends for w in (end - 1, end) if 0 <= w < 2**64]
    stream = SimpleNamespace(words=lambda _: np.array(words, dtype=np.uint64))
    assert law.draw(len(words), stream).tolist() == [bisect_right(ends, w) for w in words]


def test_the_error_of_a_bin_whose_mean_is_known():
    law = DummyLaw.from_text("laplace:2.025:27")
    assert law.error_variance(4) == pytest.approx(0.75 * law.variance)
    assert law.error_variance(4, num_senders=9) == law.error_variance(4)
    assert DummyLaw.from_text("poisson:0.5").error_variance(2, num_senders=8) == 2.0


@pytest.mark.parametrize(("words", "falls"), [([2**63 - 1], True), ([2**63, 5], False)])
def test_a_coin_reads_more_digits_where_the_first_are_equal(words, falls):
    drawn = iter(words)
    stream = SimpleNamespace(words=lambda _: [next(drawn)])
    assert dummies._coin(Fraction(1, 2), stream) is falls
    assert next(drawn, None) is None


@pytest.mark.parametrize(("mean", "num_bins"), [(1e-6, 2), (0.25, 10), (3.0, 100)])
def test_a_rare_number_is_hardly_ever_reached(mean, num_bins):
    law = DummyLaw(shape="poisson", scale=mean)
    number = law.rare_number(num_bins)
    assert stats.poisson.sf(number - 1, mean * num_bins) * 2.0**128 <= 1.0
