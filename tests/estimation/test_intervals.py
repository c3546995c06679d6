import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, poisson

from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import ParameterError
from shuffledp.estimation.intervals import (
    KnownTotal,
    ShareLaw,
    SupportLaw,
    normal_quantile,
    simultaneous_confidence,
)


def wilson_interval(frequency, *, support_probabilities, num_users, confidence, num_slots=1):
    """Return the interval as a function of all that the law of a support needs."""
    law = SupportLaw(*support_probabilities, num_users, num_slots)
    return law.wilson_interval(frequency, confidence)


def variance(f, p, q):
    """Return V(f), also outside [0, 1]."""
    return f * p * (1 - p) + (1 - f) * q * (1 - q)


@given(
    q=st.floats(0.001, 0.5),
    gap=st.floats(0.001, 0.499),
    num_users=st.integers(1, 10**9),
    share=st.floats(0.0, 1.0),
    confidence=st.floats(0.01, 0.999999),
)
def test_wilson_solves_the_score_equation_or_ends_further_out(q, gap, num_users, share, confidence):
    p = q + gap
    estimate = (share - q) / (p - q)
    lower, upper = (
        float(end[0])
        for end in wilson_interval(
            np.array([estimate]),
            support_probabilities=(p, q),
            num_users=num_users,
            confidence=confidence,
        )
    )
    assert lower <= estimate <= upper
    z = normal_quantile(confidence)
    for end in (lower, upper):
        score = (estimate - end) ** 2 * (p - q) ** 2 * num_users
        wanted = z**2 * variance(end, p, q)
        assert score >= wanted * (1.0 - 1e-6) - 1e-9
        if num_users * q >= 1e6:  # so little skewed that the exact law moves no end
            assert score == pytest.approx(wanted, rel=1e-6, abs=1e-9)


def test_wilson_of_a_value_as_likely_to_show_as_not():
    # p (1 - p) = q (1 - q) = 3/16: V does not depend on f, and the margin is z sqrt(V/n) / (p - q).
    lower, upper = wilson_interval(
        np.array([0.3]), support_probabilities=(0.75, 0.25), num_users=12_000, confidence=0.95
    )
    assert [lower[0], upper[0]] == pytest.approx([0.3 - 0.0154948757, 0.3 + 0.0154948757])


@pytest.mark.parametrize(("confidence", "num_users", "p"), [(0.5, 20, 0.88), (0.8, 200, 0.574)])
def test_low_confidences_cover_too(confidence, num_users, p):
    # Enumerated, for every number of holders; Wilson's alone cover 0.285 and 0.776.
    supports, q = np.arange(num_users + 1), 1.0 - p
    found = (supports / num_users - q) / (p - q)
    how = {"support_probabilities": (p, q), "num_users": num_users}
    lower, upper = wilson_interval(found, confidence=confidence, **how)
    for h in range(num_users + 1):
        chances = np.convolve(
            binom.pmf(np.arange(h + 1), h, p),
            binom.pmf(np.arange(num_users - h + 1), num_users - h, q),
        )
        share = h / num_users
        covered = (lower <= share + 1e-12) & (share - 1e-12 <= upper)
        assert chances[covered].sum() >= confidence - 0.003


def test_without_noise_the_fixed_users_are_known():
    # p = 1, q = 0: the support is the count itself, and nothing is left to chance.
    lower, upper = wilson_interval(
        np.array([0.3]), support_probabilities=(1.0, 0.0), num_users=10, confidence=0.95
    )
    assert lower[0] == upper[0] == 0.3


@pytest.mark.parametrize("p", [1.0, 0.75])
def test_extreme_supports_give_finite_intervals(p):
    q = 2.0**-64 if p == 1.0 else 0.1
    ends = np.array([-q / (p - q), (1 - q) / (p - q)])
    how = {"support_probabilities": (p, q), "num_users": 3, "confidence": 0.999}
    lower, upper = wilson_interval(ends, **how)
    assert np.isfinite([lower, upper]).all()
    assert (lower <= upper).all()


def test_standard_error_is_for_fixed_users():
    # theory 1: Var = [q (1 - q) + f (p - q) (1 - p - q)] / (n (p - q)^2). With users sampled from
    # a population it is s (1 - s) / (n (p - q)^2), s = q + f (p - q): larger by f (1 - f) / n.
    p, q, n = 0.6, 0.15, 1000
    for f in (0.0, 0.01, 0.3, 1.0):
        error = SupportLaw(p, q, n).standard_error(np.array([f]))[0]
        fixed = (q * (1 - q) + f * (p - q) * (1 - p - q)) / (n * (p - q) ** 2)
        s = q + f * (p - q)
        sampled = s * (1 - s) / (n * (p - q) ** 2)
        assert error**2 == pytest.approx(fixed)
        assert error**2 + f * (1 - f) / n == pytest.approx(sampled)


def test_impossible_estimates_use_the_nearest_possible_variance():
    errors = SupportLaw(0.6, 0.15, 10).standard_error(np.array([-5.0, 0.0, 1.0, 7.0]))
    assert errors[0] == errors[1]
    assert errors[2] == errors[3]


@pytest.mark.parametrize("confidence", [2.0**-30, 0.5, 0.95, 1 - 2**-40, 1 - 2**-53])
def test_quantiles_leave_the_right_tails(confidence):
    tails = math.erfc(normal_quantile(confidence) / math.sqrt(2))
    assert tails == pytest.approx(1 - confidence, rel=1e-12)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, math.nan])
def test_confidence_out_of_range_is_refused(confidence):
    with pytest.raises(ParameterError, match="confidence"):
        normal_quantile(confidence)


def test_simultaneous_confidence_shares_the_error():
    assert simultaneous_confidence(0.95, 1) == 0.95
    assert simultaneous_confidence(0.5, 4) == 0.875
    assert simultaneous_confidence(0.75, 2**20) == 1 - 2**-22


@given(confidence=st.floats(0.001, 0.999), num_intervals=st.integers(1, 10**7))
def test_simultaneous_tails_add_up_to_the_error(confidence, num_intervals):
    each = normal_quantile(simultaneous_confidence(confidence, num_intervals))
    tails = num_intervals * math.erfc(each / math.sqrt(2))
    assert tails == pytest.approx(1 - confidence, rel=1e-5)
    assert each >= normal_quantile(confidence) - 1e-12


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, math.nan])
def test_simultaneous_confidence_out_of_range_is_refused(confidence):
    with pytest.raises(ParameterError, match="confidence"):
        simultaneous_confidence(confidence, 3)


def probabilities(law):
    """Return those of one bin's dummies by the table; of a Poisson law up to where it ends."""
    if law.shape == "poisson":
        return poisson.pmf(np.arange(60 + int(4 * law.scale)), law.scale)
    return np.array([float(each) for each in law.table]) / 2.0**64


def number_in_all(law, num_bins):
    """Return the probabilities of 0, 1, ... dummies in all bins, by direct convolution."""
    total = np.ones(1)
    for _ in range(num_bins):
        total = np.convolve(total, probabilities(law))
    return total


class TestDummies:
    @pytest.mark.parametrize("text", ["laplace:1.3:4", "gaussian:2:5", "poisson:3"])
    @pytest.mark.parametrize("num_bins", [1, 2, 3, 5])
    def test_the_law_given_the_total_is_the_enumerated_one(self, text, num_bins):
        law = DummyLaw.from_text(text)
        one, rest = probabilities(law), number_in_all(law, num_bins - 1)
        for total in range(8 * num_bins):
            values = np.arange(max(total - rest.size + 1, 0), min(total + 1, one.size))
            joint = one[values] * rest[total - values]
            if joint.sum() < 1e-5:
                continue
            found = KnownTotal.of((law,), total, num_bins)
            law_found = np.zeros(total + one.size)
            law_found[found.first : found.first + found.at_most.size - 1] = np.diff(found.at_most)
            assert law_found[values] == pytest.approx(joint / joint.sum(), abs=1e-9)
            spread = (values - total / num_bins) ** 2 @ joint / joint.sum()
            assert found.variance == pytest.approx(spread, abs=1e-9)

    @pytest.mark.parametrize("text", ["laplace:2.025:27", "gaussian:40:400"])
    def test_of_many_bins_a_long_circle_is_enough(self, text):
        # Bins so many hardly depend on each other: only the mean moves.
        law = DummyLaw.from_text(text)
        total = int(3000 * law.mean) + 200
        found = KnownTotal.of((law,), total, 3000)
        assert found.variance == pytest.approx(law.variance * (1.0 - 1.0 / 3000), rel=0.01)
        assert found.mean_variance == pytest.approx(law.error_variance(3000))
        mean = (1.0 - found.at_most[1:]).sum()
        assert mean == pytest.approx(total / 3000, abs=1e-6)

    def test_dummies_of_two_batches_are_those_of_their_sum(self):
        law = DummyLaw.from_text("laplace:1.3:4")
        two = np.convolve(probabilities(law), probabilities(law))
        found = KnownTotal.of((law, law), 18, 2)
        values = np.arange(2, 17)
        joint = two[values] * two[18 - values]
        wanted = np.concatenate([[0.0, 0.0], np.cumsum(joint / joint.sum())])
        assert found.at_most[1:] == pytest.approx(wanted, abs=1e-9)

    def test_whole_numbers_of_a_symmetric_law_are_as_skewed_as_coins(self):
        known = KnownTotal.of((DummyLaw.from_text("laplace:1.3:4"),), 8, 2)
        assert known.third == known.variance > 0.0

    @staticmethod
    def coverage(law, users, chances, total, *, num_bins, confidence=0.95):
        """Return the exact coverage given the number of dummies."""
        (num_users, num_holders), (p, q) = users, chances
        known = KnownTotal.of((law,), total, num_bins)
        noise = np.convolve(
            binom.pmf(np.arange(num_holders + 1), num_holders, p),
            binom.pmf(np.arange(num_users - num_holders + 1), num_users - num_holders, q),
        )
        chance = np.convolve(noise, np.diff(known.at_most))
        supports = known.first + np.arange(chance.size)
        frequency = (supports - known.mean - num_users * q) / (num_users * (p - q))
        made = SupportLaw(p, q, num_users, 1, known)
        lower, upper = made.wilson_interval(frequency, confidence)
        share, slack = num_holders / num_users, 1e-12
        return float(chance @ ((lower <= share + slack) & (share <= upper + slack)))

    @pytest.mark.parametrize("text", ["laplace:2.025:27", "gaussian:6:60", "poisson:40"])
    @pytest.mark.parametrize("num_users", [20, 100, 1000])
    def test_bare_values_are_covered_given_any_number_of_dummies(self, text, num_users):
        # All error is the dummies'; the exact law decides, so that nothing is left to a limit.
        law = DummyLaw.from_text(text)
        for num_bins, away in ((2, 0), (2, 9), (3, -5), (16, 13)):
            total = int(num_bins * law.mean) + away
            for holders in (0, 1, num_users // 3, num_users):
                found = self.coverage(
                    law,
                    (num_users, holders),
                    (1.0, 0.0),
                    total,
                    num_bins=num_bins,
                )
                assert found >= 0.95 - 1e-9, (num_bins, away, holders)

    @pytest.mark.parametrize("text", ["laplace:2.025:27", "laplace:20:219", "poisson:40"])
    @pytest.mark.parametrize("num_users", [20, 100, 500])
    def test_randomized_values_are_covered(self, text, num_users):
        law = DummyLaw.from_text(text)
        for p, q in ((0.88, 0.12), (0.33, 0.045)):
            for num_bins, away in ((2, 9), (16, -13)):
                total = int(num_bins * law.mean) + away
                for holders in (0, 1, num_users // 3):
                    found = self.coverage(
                        law,
                        (num_users, holders),
                        (p, q),
                        total,
                        num_bins=num_bins,
                    )
                    assert found >= 0.95 - 0.05 / 20, (p, num_bins, holders)

    def test_simultaneous_intervals_need_the_law_and_not_its_variance(self):
        # Discrete Laplace: at a tail of 2.4e-5 the normal law's quantile is far too near.
        law, each = DummyLaw.from_text("laplace:2.025:27"), simultaneous_confidence(0.95, 1024)
        how = {"num_bins": 1024, "confidence": each}
        found = self.coverage(law, (100, 3), (1.0, 0.0), 27_648, **how)
        assert 1.0 - found <= (1.0 - each) * (1.0 + 1e-6)

    def test_a_table_that_never_varies_adds_a_constant(self):
        law = DummyLaw.from_text("laplace:0.01:5")
        known = KnownTotal.of((law,), 10, 2)
        lower, upper = SupportLaw(1.0, 0.0, 10, 1, known).wilson_interval(np.array([0.3]), 0.95)
        assert [*lower, *upper] == pytest.approx([0.3, 0.3])


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.955, 0.99, 0.9999])
def test_counts_in_steps_are_covered_whatever_their_mean(confidence):
    z, counts = normal_quantile(confidence), np.arange(2_000.0)
    share, flat = counts / 1e4, np.zeros_like(counts)
    lower, upper, *bare = (
        1e4 * end
        for step in (1e-4, 0.0)
        for end in ShareLaw(share, flat, flat + 1e-4, flat, flat + step).interval(z)
    )
    found = []
    for mean in np.geomspace(1e-3, 1e3, 300):
        law = poisson.pmf(counts, mean)
        found.append([law[(low > mean) | (up < mean)].sum() for low, up in ((lower, upper), bare)])
    missed, by_roots = np.array(found).max(axis=0) / (1.0 - confidence)
    assert missed <= 1.1
    assert by_roots > 1.3  # just below the lower end of a count of 1
    wider = (upper - lower) - (bare[1] - bare[0])
    assert wider[100:].max() <= 1.1 * max(1.0, (z**2 - 1.0) / 3.0)


def test_a_share_law_ends_where_its_variance_says():
    values = {"constant": 1e-2, "linear": 0.02, "square": -0.01, "step": 0.004}
    arrays = {name: np.array([each]) for name, each in values.items()}
    for share in (-0.4, 0.0, 0.3, 1.0):
        law = ShareLaw(value=np.array([share]), **arrays)
        for way, (end,) in zip((-1, 1), law.interval(2.0), strict=True):
            at = min(max(end, 0.0), 1.0)
            variance = 1e-2 + 0.02 * at - 0.01 * at**2
            assert share + way * 0.002 - end == pytest.approx(-way * 2.0 * math.sqrt(variance))
    half = law._replace(value=np.array([0.5]))
    less = half.standard_error**2 - half.among(1000).standard_error ** 2
    assert less[0] == pytest.approx(0.25 / 1000)
    assert half.among(None) is half
    # Outside of [0, 1] too, an interval about a population is no shorter than about the users.
    for share in (-0.3, 0.0, 0.01, 0.5, 1.3):
        law = ShareLaw(value=np.array([share]), **arrays)
        (low, high), (own_low, own_high) = law.interval(2.0), law.among(300).interval(2.0)
        assert low <= own_low < own_high <= high
