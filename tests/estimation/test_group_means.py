"""Fieller's intervals of groups' means, their differences, and what dishonest users can do."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import Counts
from shuffledp.estimation.group_means import (
    GroupNoise,
    estimate_group_means,
    largest_shift,
)
from shuffledp.estimation.intervals import normal_quantile
from shuffledp.randomizers.bit_sums import GroupBits

# Each coverage is rejected where it is below a stated one with that chance; some sixty of them.
REJECTED_AT = 1e-11
FALSE_POSITIVE_RATE = 1e-9

RUNS = 1_500
MEMBERS = np.array([2_400, 1_300, 260, 40])
POSITIONS = np.array([0.3, 0.5, 0.7, 0.9])
NOBODY = GroupNoise(one=0.0, both=0.0, fixed=0.0, mixed=0.0, size=0.0)


def counts_of(law, codes, number, entropy):
    """Return supports of k-RR, one row a run, for users with given codes."""
    p, q = law.levels[0].support_probabilities
    chances = np.full((codes.size, codes.size), q)
    np.fill_diagonal(chances, p)
    rows = zip(codes, chances, strict=True)
    drawn = [entropy.multinomial(own, row, size=number) for own, row in rows]
    return np.sum(drawn, axis=0)


def runs(epsilon0, members, positions, *, is_spread, number=RUNS, seed=1):
    """Yield the estimates of many runs, about users whose values are spread, or 0 and 1."""
    law = GroupBits(num_groups=members.size, low=0, high=1, epsilon0=epsilon0, num_bits=1)
    entropy = Entropy.from_seed(seed).generator()
    ones = np.rint(members * positions).astype(np.int64)
    for _ in range(number):
        # Values are all equal to the mean of their group, or the two ends of the range.
        drawn = entropy.binomial(members, positions) if is_spread else ones
        codes = np.stack([members - drawn, drawn], axis=1).reshape(-1)
        support = counts_of(law, codes, 1, entropy)[0]
        made = {"num_reports": int(members.sum()), "fingerprint": law.fingerprint}
        yield law.estimate(Counts(support=support, **made))


def require_coverage(hits, number, least):
    """Fail if the coverage is below the least one, for all that the runs show."""
    assert binom.cdf(hits, number, least) > REJECTED_AT, (hits / number, least)


class TestCoverage:
    @pytest.mark.parametrize("epsilon0", [1.0, 3.0, 6.0])
    @pytest.mark.parametrize("is_spread", [True, False])
    def test_of_means_and_sizes_however_small_the_group(self, epsilon0, is_spread):
        positions = np.rint(MEMBERS * POSITIONS) / MEMBERS
        of_means, of_sizes = np.zeros(4), np.zeros(4)
        share = MEMBERS / MEMBERS.sum()
        for found in runs(epsilon0, MEMBERS, positions, is_spread=is_spread):
            of_means += (found.lower <= positions) & (positions <= found.upper)
            of_sizes += (found.sizes.lower <= share) & (share <= found.sizes.upper)
        for hits in (*of_means, *of_sizes):
            require_coverage(hits, RUNS, 0.94)

    @pytest.mark.parametrize("holders", [0, 1, 10, 33])
    @pytest.mark.parametrize("epsilon0", [3.0, 7.2, 10.0])
    def test_of_sizes_exactly_where_single_reports_matter(self, epsilon0, holders):
        law, number = GroupBits(num_groups=10, low=0, high=1, epsilon0=epsilon0, num_bits=1), 100
        p, q = law.levels[0].support_probabilities
        own, others = (
            binom.pmf(np.arange(n + 1), n, chance)
            for n, chance in ((holders, p + q), (number - holders, 2.0 * q))
        )
        covered = 0.0
        for support, chance in enumerate(np.convolve(own, others)):
            counts = np.zeros(20, dtype=np.int64)
            counts[0], counts[2] = support, number - support
            made = {"num_reports": number, "fingerprint": law.fingerprint}
            sizes = law.estimate(Counts(support=counts, **made)).sizes
            covered += chance * (sizes.lower[0] <= holders / number <= sizes.upper[0])
        assert covered >= 0.945

    def test_a_narrower_interval_is_found_out(self):
        hits = 0
        for found in runs(3.0, MEMBERS, POSITIONS, is_spread=True):
            hits += abs(found.mean[1] - 0.5) <= 1.4 * found.standard_error[1]
        with pytest.raises(AssertionError):
            require_coverage(hits, RUNS, 0.94)

    @pytest.mark.parametrize("epsilon0", [0.5, 3.0])
    @pytest.mark.parametrize("positions", [(0.1, 0.15), (0.05, 0.95), (0.5, 0.6)])
    def test_of_differences(self, epsilon0, positions):
        members = np.array([30_000, 20_000])
        positions = np.array(positions)
        hits = 0
        for found in runs(epsilon0, members, positions, is_spread=True):
            _, lower, upper = found.difference("0", "1")
            hits += lower <= positions[0] - positions[1] <= upper
        require_coverage(hits, RUNS, 0.94)

    def test_a_group_of_nobody_gets_no_statement(self):
        members = np.array([3_000, 1_000, 0])
        positions = np.array([0.3, 0.6, 0.5])
        silent = 0
        for found in runs(2.0, members, positions, is_spread=True, number=500):
            is_silent = bool(np.isnan(found.mean[2]))
            assert is_silent == ((found.lower[2], found.upper[2]) == (0.0, 1.0))
            assert not is_silent or found.standard_error[2] == 0.5
            silent += is_silent
        require_coverage(silent, 500, 0.94)


def estimates(totals, noise=NOBODY, **how):
    totals = np.array(totals, dtype=float)
    groups = tuple("abcdef"[: totals.shape[1]])
    rest = {"groups": groups, "limits": (0.0, 1.0), "noise": (noise, noise), "num_users": 100}
    return estimate_group_means(totals, **(rest | how))


class TestClosedForms:
    def test_coins_of_one_group_have_wilsons_interval(self):
        z, n, share = normal_quantile(0.95), 100, 0.3
        found = estimates([[0.7], [0.3]], NOBODY._replace(mixed=1.0 / n))
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        reach = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        assert found.lower[0] == pytest.approx(middle - reach)
        assert found.upper[0] == pytest.approx(middle + reach)
        assert found.standard_error[0] == pytest.approx(math.sqrt(share * (1 - share) / n))

    def test_ends_are_where_the_total_is_as_far_as_the_quantile(self):
        noise = GroupNoise(one=2e-4, both=-3e-5, fixed=1e-4, mixed=2e-4, size=1e-4)
        found = estimates([[0.2, 0.1], [0.1, 0.3]], noise)
        ones, share = found.ones, found.sizes.frequency
        for r in (found.lower, found.upper):
            away = np.abs(ones - r * share) / np.sqrt(noise.variance(r, share))
            assert away == pytest.approx(normal_quantile(0.95))

    def test_steps_move_ends_outwards(self):
        noise = GroupNoise(one=2e-4, both=-3e-5, fixed=1e-4, mixed=2e-4, size=1e-4, step=0.01)
        found = estimates([[0.2, 0.1], [0.1, 0.3]], noise)
        ones, share = found.ones, found.sizes.frequency
        for way, r in ((-1, found.lower), (1, found.upper)):
            away = np.abs(ones + way * 0.005 - r * share) / np.sqrt(noise.variance(r, share))
            assert away == pytest.approx(normal_quantile(0.95))
        # Less than half a report at an end leaves that end possible.
        assert (
            estimates([[0.2, 0.1], [0.004, 0.3]], noise._replace(one=0.0, both=0.0)).lower[0] <= 0
        )

    def test_limits_are_units(self):
        noise = GroupNoise(one=2e-4, both=-3e-5, fixed=0.0, mixed=0.0, size=0.0)
        unit, wide = (
            estimates([[0.2, 0.1], [0.1, 0.3]], noise, limits=each)
            for each in ((0.0, 1.0), (-5.0, 15.0))
        )
        for name in ("mean", "lower", "upper", "population_lower"):
            assert getattr(wide, name) == pytest.approx(20.0 * getattr(unit, name) - 5.0)
        assert wide.difference("a", "b") == pytest.approx(
            tuple(20.0 * each for each in unit.difference("a", "b"))
        )

    def test_all_at_once_is_wider(self):
        noise = GroupNoise(one=1e-4, both=0.0, fixed=0.0, mixed=0.0, size=0.0)
        alone = estimates([[0.2, 0.3], [0.2, 0.3]], noise)
        together = estimates([[0.2, 0.3], [0.2, 0.3]], noise, simultaneous=True)
        assert (together.lower < alone.lower).all()
        assert (together.sizes.upper > alone.sizes.upper).all()

    def test_a_table_has_the_members_too(self):
        found = estimates([[0.2, 0.1], [0.1, 0.3]], NOBODY._replace(one=1e-4))
        columns = found.columns()
        assert list(columns)[-3:] == ["members", "members_lower", "members_upper"]
        assert columns["members"] == pytest.approx([30.0, 40.0])
        assert "ones" not in columns

    def test_a_difference_of_a_group_too_small(self):
        found = estimates([[0.2, 0.0], [0.1, 0.001]], NOBODY._replace(one=1e-4))
        value, *ends = found.difference("a", "b")
        assert math.isnan(value)
        assert ends == [-1.0, 1.0]

    @pytest.mark.parametrize("pair", [("a", "a"), ("a", "z"), ("", "b")])
    def test_only_two_groups_are_compared(self, pair):
        found = estimates([[0.2, 0.1], [0.1, 0.3]], NOBODY._replace(one=1e-4))
        with pytest.raises(ParameterError, match="are not two different groups"):
            found.difference(*pair)

    def test_a_sample_of_the_reports_says_the_same_of_means(self):
        found = estimates([[0.2, 0.1], [0.1, 0.3]], NOBODY._replace(one=1e-4))
        whole = found.for_all_users(400)
        assert whole.population_upper == pytest.approx(found.population_upper)
        assert whole.sizes.count == pytest.approx(4 * found.sizes.count)
        assert (whole.sizes.standard_error > found.sizes.standard_error).all()


class TestDishonestUsers:
    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_the_shift_is_the_largest_over_all_reports(self, number):
        """Of reports without noise: each user names one of two groups and a bit."""
        honest = np.array([[2, 4], [5, 3]])  # zeros and ones of both groups, of 14 users
        n, largest = honest.sum(), np.zeros(2)
        codes = [(0, 0), (0, 1), (1, 0), (1, 1)]
        before = honest[1] / honest.sum(axis=0)
        for away in itertools.combinations_with_replacement(codes, number):
            for back in itertools.combinations_with_replacement(codes, number):
                counts = honest.copy()
                for bit, group in away:
                    counts[bit, group] -= 1
                for bit, group in back:
                    counts[bit, group] += 1
                if (counts >= 0).all():
                    shift = np.abs(counts[1] / counts.sum(axis=0) - before)
                    largest = np.maximum(largest, shift)
        found = largest_shift(number, totals=honest / n, each=1.0 / n, width=1.0)
        if number <= honest.min():
            assert found == pytest.approx(largest)
        assert (found >= largest - 1e-12).all()

    def test_a_group_that_can_be_emptied_has_no_limit(self):
        totals = np.array([[0.2, 0.01], [0.2, 0.01]])
        found = largest_shift(3, totals=totals, each=0.01, width=1.0)
        assert math.isfinite(found[0])
        assert math.isinf(found[1])
