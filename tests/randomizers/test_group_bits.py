"""A number and a group in one report, or in a message for each bit."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from adversarial import exact
from adversarial.test_profiles_against_enumeration import check_blanket
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.randomizers.bit_sums import GroupBits

# Normal tails beyond seven standard errors, some thirty comparisons with a slack for their skew.
FALSE_POSITIVE_RATE = 1e-9

VALUES = np.array([[0, 0.0], [0, 3.0], [1, 12.0], [1, 7.0], [1, 1.0], [2, 6.0]])
LAWS = tuple(DummyLaw(shape="gaussian", scale=3.0 * (b + 1), half_width=30) for b in range(3))


def made(epsilon0=2.0, num_bits=1, num_groups=3):
    return GroupBits(num_groups=num_groups, low=0, high=12, epsilon0=epsilon0, num_bits=num_bits)


def truth_of(values, num_groups=3):
    """Return zeros and ones of each group, as shares of all users."""
    groups, position = values[:, 0].astype(int), values[:, 1] / 12.0
    weights = (1.0 - position, position)
    return np.stack([np.bincount(groups, each, num_groups) / len(values) for each in weights])


class TestAccount:
    @pytest.mark.parametrize("epsilon0", [0.4, 2.0])
    def test_reports_of_rounded_numbers_are_as_private_as_those_of_codes(self, epsilon0):
        law = made(epsilon0, num_groups=2)
        codes = law.levels[0].channel()
        half = Fraction(1, 2)
        rows = tuple(
            tuple((1 - x) * zero + x * one for zero, one in zip(*pair, strict=True))
            for pair in (codes[:2], codes[2:])
            for x in (Fraction(0), half, Fraction(1))
        )
        check_blanket(rows, law.profile, range(1, 3))
        exact.check_guarantee(rows, law.profile, 2, by_floats=True)

    def test_all_messages_together_lose_no_more_than_was_asked(self):
        law = made(3.0, num_bits=4)
        assert sum(level.epsilon0 for level in law.levels) <= law.epsilon0 == 3.0
        assert law.profile.epsilon0 == 3.0
        assert made(3.0).epsilon0 == made(3.0).levels[0].epsilon0 <= 3.0


class TestEstimates:
    @pytest.mark.parametrize(
        ("epsilon0", "num_bits"), [(1.0, 1), (6.0, 1), (math.inf, 3), (9.0, 3)]
    )
    def test_totals_are_unbiased_and_err_as_stated(self, epsilon0, num_bits):
        law, entropy, runs = made(epsilon0, num_bits), Entropy.from_seed(5), 400
        values, truth = np.tile(VALUES, (50, 1)), truth_of(VALUES)
        dummies = LAWS if num_bits == 3 else ()
        found = []
        for _ in range(runs):
            counts = law.aggregate(law.randomize(values, entropy))
            if dummies:
                added = np.concatenate([each.draw(6, entropy) for each in dummies])
                counts = law.aggregate(law.randomize(values, entropy))
                support = counts.support + added
                sent = type(counts)(
                    support=support, num_reports=int(support.sum()), fingerprint=law.fingerprint
                )
                counts = sent.less_dummies(*dummies, num_users=len(values))
            found.append(law.totals(counts)[1])
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0) / math.sqrt(runs)
        assert (np.abs(mean - truth) <= 7.0 * spread).all()
        # T(r) at the true r varies as stated about these users, or less.
        share = truth.sum(axis=0)
        position = truth[1] / share
        noise, population = law.noise(len(values), dummies)
        totals = np.array(found)
        away = (1.0 - position) * totals[:, 1] - position * totals[:, 0]
        stated = noise.variance(position, share)
        assert (away.var(axis=0) <= stated * (1.0 + 7.0 * math.sqrt(2.0 / runs))).all()
        assert (population.variance(position, share) >= stated).all()
        of_share = totals.sum(axis=1).var(axis=0)
        sized = 2.0 * (noise.one + noise.both) + noise.size * share
        assert of_share == pytest.approx(sized, rel=7.0 * math.sqrt(2.0 / runs))

    @pytest.mark.parametrize("epsilon0", [0.5, 2.0, 5.0])
    def test_the_variance_of_one_bit_is_exact_but_for_the_spread(self, epsilon0):
        """Second moments of each user's part of T(r), over both bits and all reports."""
        law, n = made(epsilon0), len(VALUES)
        p, q = law.levels[0].support_probabilities
        truth = truth_of(VALUES)
        share = truth.sum(axis=0)
        for group, r in enumerate(truth[1] / share):
            signs = np.zeros(6)
            signs[[2 * group, 2 * group + 1]] = -r, 1.0 - r
            parts = (signs - (1.0 - 2.0 * r) * q) / (p - q)  # of each report, by its code
            total = 0.0
            for own, value in VALUES:
                x = value / 12.0
                chances = np.full(6, q)
                chances[2 * int(own)] += (1.0 - x) * (p - q)
                chances[2 * int(own) + 1] += x * (p - q)
                total += chances @ parts**2
            stated = law.noise(n)[0].variance(np.array([r]), share[[group]])
            assert stated[0] == pytest.approx(total / n**2)

    def test_groups_of_few_people_near_an_end_are_covered(self):
        # Where single reports matter; without the steps the third group had 0.92, and all 0.85.
        law, runs, entropy = made(8.0), 300, Entropy.from_seed(5)
        values = np.column_stack([np.repeat([0, 1, 2], [180, 16, 4]), np.zeros(200)])
        values[[0, 3, 7, 70, 90, 120, 185, 196], 1] = 12.0, 6.0, 12.0, 3.0, 12.0, 12.0, 6.0, 4.0
        truth = 12.0 * np.divide(truth_of(values)[1], truth_of(values).sum(axis=0))
        held = {False: 0, True: 0}
        for _ in range(runs):
            counts = law.aggregate(law.randomize(values, entropy))
            for is_at_once in held:
                found = law.estimate(counts, groups=tuple("abc"), simultaneous=is_at_once)
                covered = (found.lower <= truth) & (truth <= found.upper)
                held[is_at_once] += covered.all() if is_at_once else covered
        assert min(binom.cdf(each, runs, 0.94).min() for each in held.values()) > 1e-9 / 4

    def test_bits_are_those_of_the_number(self):
        law = made(math.inf, num_bits=4)
        drawn = law.randomize(np.array([[1, 12.0], [2, 0.0], [0, 8.8]]), Entropy.from_seed(1))
        codes = drawn.data.reshape(3, 4) - 6 * np.arange(4)
        assert (codes // 2).tolist() == [[1] * 4, [2] * 4, [0] * 4]
        assert (codes % 2).tolist() == [[1] * 4, [0] * 4, [1, 0, 1, 1]]

    def test_reports_of_nobody(self):
        assert made(1.0, 2).randomize(np.empty((0, 2)), Entropy.from_seed(1)).num_reports == 0

    def test_the_worst_report_raises_one_mean_by_the_influence(self):
        law = made(4.0, num_bits=3)
        drawn = law.randomize(np.tile(VALUES, (30, 1)), Entropy.from_seed(3))
        lie = law.report_for(1)
        zeros = lie - 1
        totals = []
        for rows in (lie, zeros):
            reports = type(drawn)(
                data=np.concatenate([drawn.data, rows]), fingerprint=drawn.fingerprint
            )
            number, found = law.totals(law.aggregate(reports))
            totals.append(number * found)
        assert (totals[0] - totals[1])[:, 1] == pytest.approx([-law.influence, law.influence])


class TestInput:
    @pytest.mark.parametrize(
        ("values", "error", "message"),
        [
            ([[3, 1.0]], DomainError, "not in \\[0, 3\\)"),
            ([[0, 13.0]], DomainError, "not in \\[0.0, 12.0\\]"),
            ([[0, math.nan]], DomainError, "missing values"),
            ([[0.5, 1.0]], ParameterError, "a whole number"),
            ([[math.nan, 1.0]], ParameterError, "a whole number"),
            ([[0, 1.0, 2.0]], ParameterError, "one row of two numbers"),
            ([1.0], ParameterError, "one row of two numbers"),
        ],
    )
    def test_values_that_cannot_be(self, values, error, message):
        with pytest.raises(error, match=message):
            made().randomize(np.array(values), Entropy.from_seed(1))

    @pytest.mark.parametrize(
        ("how", "message"),
        [
            ({"num_groups": 1}, "num_groups"),
            ({"num_bits": 0}, "num_bits"),
            ({"high": 0.0}, "wrong way round"),
            ({"epsilon0": 1e-20, "num_bits": 3}, "fewer bits"),
            ({"epsilon0": math.nan}, "epsilon0"),
        ],
    )
    def test_laws_that_cannot_be(self, how, message):
        usual = {"num_groups": 2, "low": 0.0, "high": 1.0, "epsilon0": 1.0, "num_bits": 1}
        with pytest.raises(ParameterError, match=message):
            GroupBits(**(usual | how))

    def test_laws_of_another_range_do_not_add(self):
        narrow = GroupBits(num_groups=3, low=0, high=6, epsilon0=2.0, num_bits=1)
        assert narrow.fingerprint != made().fingerprint
        assert made().fingerprint != made(num_bits=2).fingerprint


@pytest.mark.parametrize("pairs", [[["0", "1"]], [[np.inf, 1.0]], [[np.nan, 1.0]], [[0.5, 1.0]]])
def test_groups_are_whole_numbers(pairs):
    law = GroupBits(num_groups=2, low=0, high=12, epsilon0=1.0, num_bits=2)
    with pytest.raises(ParameterError, match="one row of two numbers a user"):
        law.randomize(np.array(pairs), Entropy.from_seed(1))
