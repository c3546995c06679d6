import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, chi2

from adversarial import exact
from adversarial.test_profiles_against_enumeration import check_blanket
from laws_of_parts import channel_of
from shuffledp.collection.dummies import draw_dummies, less_dummies
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.reports import Reports
from shuffledp.estimation.distributions import level_codes
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse
from shuffledp.randomizers.parts import AllLevels, SampledLevels, SampledParts

# Of the module: sums of squares against exact tails of chi-square, coverage against binomial ones.
FALSE_POSITIVE_RATE = 1e-9
NUM_COMPARISONS = 60
LEVEL = FALSE_POSITIVE_RATE / NUM_COMPARISONS

SIZES, NUM_BINS, NUM_USERS, TIMES = (3, 9), 9, 3_000, 300
SHARES = np.array([0.3, 0.02, 0.0, 0.18, 0.05, 0.15, 0.0, 0.2, 0.1])
BINS = np.repeat(np.arange(NUM_BINS), np.rint(NUM_USERS * SHARES).astype(int))
LAW = DummyLaw.from_text("laplace:8:80")

SAMPLED = {
    "a tree with little noise": SampledLevels(sizes=SIZES, epsilon0=6.0),
    "a tree with much noise": SampledLevels(sizes=SIZES, epsilon0=1.5),
    "flat": SampledLevels(sizes=(9,), epsilon0=2.0),
}
ALL = {
    "noise": AllLevels(sizes=SIZES, epsilon0=5.0),
    "dummies": AllLevels(sizes=SIZES, epsilon0=math.inf),
    "both": AllLevels(sizes=SIZES, epsilon0=8.0),
}


def estimated(law, bins, entropy, *, has_dummies, **how):
    """Return the estimates of one collection."""
    reports = law.randomize(bins, entropy)
    if not has_dummies:
        return law.estimate(reports, **how)
    laws, size = (LAW,) * len(law.sizes), len(bins)
    added = draw_dummies(law, laws, entropy, num_users=size)
    mixed = Reports(data=np.concatenate([reports.data, added]), fingerprint=law.fingerprint)
    return law.estimate(less_dummies(law.aggregate(mixed), laws, num_users=size), **how)


def collections(name, *, is_sample=False):
    """Return the estimates of many collections: from the same users, or from a population."""
    law, entropy = (SAMPLED | ALL)[name], Entropy.from_seed(1)
    has_dummies = name in {"dummies", "both"}
    for number in range(TIMES):
        bins = BINS
        if is_sample:
            drawn = Entropy.from_seed(1000 + number).generator()
            bins = drawn.choice(NUM_BINS, size=NUM_USERS, p=SHARES)
        yield estimated(law, bins, entropy, has_dummies=has_dummies, simultaneous=True)


class TestAccount:
    @pytest.mark.parametrize("epsilon0", [0.4, 2.0])
    @pytest.mark.parametrize("sizes", [(3, 6), (3, 7), (4,)])
    def test_the_blanket_bounds_all_data_of_a_few_users(self, sizes, epsilon0):
        law = SampledLevels(sizes=sizes, epsilon0=epsilon0)
        assert len(channel_of(law)) == sizes[-1]
        check_blanket(channel_of(law), law.profile, range(1, 3))

    @pytest.mark.parametrize("sizes", [(3, 6), (4,)])
    def test_published_bounds_enclose_all_data(self, sizes):
        law = SampledLevels(sizes=sizes, epsilon0=1.0)
        exact.check_guarantee(channel_of(law), law.profile, 2, by_floats=True)

    def test_bins_are_rows_of_codes(self):
        law, rows = (
            SampledLevels(sizes=SIZES, epsilon0=1.0),
            SampledParts(sizes=SIZES, epsilon0=1.0),
        )
        expected = {tuple(row) for row in channel_of(rows)}
        assert {tuple(row) for row in channel_of(law)} < expected
        assert law.profile.blanket == rows.profile.blanket
        assert law.profile.attack == rows.profile.attack
        assert law.fingerprint != rows.fingerprint
        bins = np.array([0, 4, 8])
        drawn = law.randomize(bins, Entropy.from_seed(3)).data
        same = rows.randomize(level_codes(bins, SIZES), Entropy.from_seed(3)).data
        assert drawn.tolist() == same.tolist()

    def test_one_level_is_k_rr(self):
        law, same = (
            SampledLevels(sizes=(9,), epsilon0=2.0),
            KRandomizedResponse(domain_size=9, epsilon0=2.0),
        )
        assert channel_of(law) == same.channel()
        assert law.epsilon0 == same.epsilon0


class TestErrors:
    @pytest.mark.slow
    @pytest.mark.parametrize("is_sample", [False, True])
    @pytest.mark.parametrize("name", [*SAMPLED, *ALL])
    def test_standard_errors_are_those_of_many_collections(self, name, is_sample):
        truth = np.cumsum(SHARES)[:-1]
        squares, middle = np.zeros(NUM_BINS - 1), 0.0
        for found in collections(name, is_sample=is_sample):
            errors = found.cumulative_standard_error
            if is_sample:
                errors = found.cumulative_population_standard_error
            squares += ((found.cumulative[:-1] - truth) / errors[:-1]) ** 2
            own = found.errors.of(1, 6).among(None if is_sample else NUM_USERS).standard_error[0]
            middle += ((found.between(1, 6).value - SHARES[1:6].sum()) / own) ** 2
        # The slack is for laws that are not quite normal, and errors that are estimated.
        for each in (*squares, middle):
            assert chi2.ppf(LEVEL, TIMES) / 1.05 < each < 1.05 * chi2.isf(LEVEL, TIMES)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["a tree with little noise", "flat", "both"])
    def test_coverage(self, name):
        truth, held = np.cumsum(SHARES), {"band": 0, "each": 0, "median": 0, "all medians": 0}
        for found in collections(name):
            lower, upper = found.cumulative_interval()
            held["band"] += bool(((lower <= truth + 1e-9) & (truth - 1e-9 <= upper)).all())
            lower, upper = found.cumulative_interval(simultaneous=False)
            held["each"] += bool(lower[4] <= truth[4] <= upper[4])
            # In the 5th and 6th bin the cumulative share rises from 0.5 to 0.7.
            one = replace(found, is_simultaneous=False)
            held["median"] += one.quantiles(0.6)[0].lower <= 5.5 <= one.quantiles(0.6)[0].upper
            median = found.quantiles(0.6)[0]
            held["all medians"] += median.lower <= 5.5 <= median.upper
        least = binom.ppf(LEVEL, TIMES, 0.94)
        assert min(held.values()) >= least
        assert held["each"] <= binom.isf(LEVEL, TIMES, 0.96)
        assert binom.cdf(binom.ppf(LEVEL, TIMES, 0.94), TIMES, 0.75) > 0.5  # halved ones are seen

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", [SampledLevels, AllLevels])
    def test_bins_of_few_people_are_covered(self, kind):
        # The variance at an estimate of 0 says that nobody is there: that covers 0.77 at best.
        law, users = kind(sizes=(4, 16), epsilon0=8.0), np.repeat([1, 5, 8, 14], [2, 101, 59, 38])
        truth, held = np.bincount(users, minlength=16) / users.size, 0
        entropy = Entropy.from_seed(4)
        for _ in range(TIMES):
            found = law.estimate(law.randomize(users, entropy))
            held += (found.lower <= truth) & (truth <= found.upper)
        assert binom.cdf(held, TIMES, 0.94).min() > LEVEL
        if law.is_sampled:
            assert binom.cdf(0.77 * TIMES, TIMES, 0.94) < LEVEL

    def test_errors_to_expect_are_those_found(self):
        even = np.repeat(np.arange(NUM_BINS), 1000)
        for name, law in (SAMPLED | ALL).items():
            has_dummies = name in {"dummies", "both"}
            found = estimated(law, even, Entropy.from_seed(2), has_dummies=has_dummies)
            edges = np.arange(1, NUM_BINS)
            laws = (LAW,) * len(law.sizes) if has_dummies else ()
            expected = law.expected_variance(edges, len(even), laws)
            if law.is_sampled:
                expected -= edges / 9 * (1 - edges / 9) / len(even)
            errors = found.cumulative_standard_error[:-1]
            assert np.sqrt((errors**2).mean()) == pytest.approx(np.sqrt(expected.mean()), rel=0.05)

    def test_everybody_in_one_bin(self):
        for name, law in (SAMPLED | ALL).items():
            found = estimated(
                law, np.full(2000, 4), Entropy.from_seed(4), has_dummies=name in {"dummies", "both"}
            )
            assert found.frequency[4] == pytest.approx(1.0, abs=0.2)
            assert found.frequency.sum() == pytest.approx(1.0)
            assert np.isfinite(found.standard_error).all()


class TestDishonestUsers:
    @pytest.mark.slow
    @pytest.mark.parametrize("sizes", [(9,), SIZES])
    def test_no_lie_moves_a_share_further(self, sizes):
        drawn = Entropy.from_seed(6).generator()
        for law in (SampledLevels(sizes=sizes, epsilon0=1.0), AllLevels(sizes=sizes, epsilon0=1.0)):
            is_all, number = not law.is_sampled, 3
            for _ in range(100):
                honest, lies = (
                    law.randomize(drawn.integers(9, size=40), Entropy.from_seed(seed)).data.copy()
                    for seed in drawn.integers(2**32, size=2).tolist()
                )
                messages = number * (len(sizes) if is_all else 1)
                if drawn.integers(2):  # all lies alike
                    lies[:messages] = np.tile(law.report_for(int(drawn.integers(9))), number)
                lies[messages:] = honest[messages:]
                both = [
                    law.estimate(Reports(data=each, fingerprint=law.fingerprint))
                    for each in (honest, lies)
                ]
                counts = law.aggregate(Reports(data=lies, fingerprint=law.fingerprint))
                limit = number * law.shift_by_one(40, counts) * (1.0 + 1e-9)
                for name in ("frequency", "cumulative"):
                    before, after = (each.columns()[name] for each in both)
                    assert (np.abs(after - before) <= limit)[
                        : -1 if name == "cumulative" else 9
                    ].all()

    @pytest.mark.parametrize("sizes", [(9,), SIZES])
    def test_messages_on_all_levels_reach_the_limit(self, sizes):
        law, num_users = AllLevels(sizes=sizes, epsilon0=math.inf), 20
        shares = []
        for place in (4, 8):
            data = law.randomize(np.arange(num_users) % 9, Entropy.from_seed(1)).data.copy()
            data[: len(sizes)] = law.report_for(place)
            shares.append(
                law.estimate(Reports(data=data, fingerprint=law.fingerprint)).frequency[4]
            )
        assert shares[0] - shares[1] <= law.shift_by_one(num_users)[4] * (1.0 + 1e-9)
        if len(sizes) == 1:
            assert shares[0] - shares[1] == pytest.approx(law.shift_by_one(num_users)[4])

    def test_reports_that_say_nothing(self):
        law = SampledLevels(sizes=SIZES, epsilon0=0.0)
        assert np.isinf(law.shift_by_one(10)).all()


class TestBadInput:
    @pytest.mark.parametrize("sizes", [(2, 4), (3, 2), (4, 5), (9, 3)])
    def test_levels_of_no_tree(self, sizes):
        with pytest.raises(ParameterError, match="no levels of a tree with at least 3 nodes"):
            SampledLevels(sizes=sizes, epsilon0=1.0)

    def test_bins(self):
        for law in (SampledLevels(sizes=SIZES, epsilon0=1.0), AllLevels(sizes=SIZES, epsilon0=1.0)):
            with pytest.raises(DomainError, match=r"codes\[1\] = 9 is not in \[0, 9\)"):
                law.randomize(np.array([3, 9]), Entropy.from_seed(1))
            with pytest.raises(ParameterError, match=r"shape \(1, 2\): give one code a user"):
                law.randomize(np.array([[3, 8]]), Entropy.from_seed(1))

    def test_too_few_reports(self):
        law = SampledLevels(sizes=SIZES, epsilon0=1.0)
        with pytest.raises(DataError, match="1 reports are too few for 2 parts"):
            law.estimate(law.randomize(np.array([3]), Entropy.from_seed(1)))

    def test_confidence(self):
        law = SampledLevels(sizes=SIZES, epsilon0=1.0)
        reports = law.randomize(BINS, Entropy.from_seed(1))
        for value in (0.0, 1.0, math.nan):
            with pytest.raises(ParameterError, match="confidence"):
                law.estimate(reports, confidence=value)


def test_the_error_of_a_large_share_is_not_diluted_by_the_noise_of_many_bins():
    law, users = SampledLevels(sizes=(4, 16, 64), epsilon0=2.0), 400
    own = np.repeat([20, 41, 62], [users // 2, 3 * users // 10, users // 5])
    entropy, place = Entropy.from_seed(1), np.array([20])
    found = [law.estimate(law.randomize(own, entropy)) for _ in range(40)]
    shares = np.bincount(own, minlength=64) / users
    noise = [
        law.node_variances(part, users / 3.0, np.add.reduceat(shares, np.arange(0, 64, 64 // size)))
        for part, size in enumerate(law.sizes)
    ]
    # Without the tilt, and what is subtracted for these users: both are small here.
    truth = law.tree.variance(place, place + 1, noise)[0] - 0.25 / users
    stated = np.mean([each.standard_error[20] ** 2 for each in found])
    assert 0.95 * truth < stated < 1.5 * truth
