import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from adversarial import exact
from adversarial.test_profiles_against_enumeration import check_blanket, mean_positive_part
from laws_of_parts import channel_of
from shuffledp.accounting.guarantees import guarantee_for
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, FingerprintError, ParameterError
from shuffledp.core.reports import Counts, Reports
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse
from shuffledp.randomizers.parts import AllParts, SampledParts

# Normal tails beyond seven standard errors, some forty comparisons with a slack for their skew.
FALSE_POSITIVE_RATE = 1e-9

SIZES = ((2, 2), (2, 3), (3, 3), (2, 2, 2), (4,))


def rows_of(sizes, num_users, seed=1):
    """Return rows of codes in which each part leans towards its first codes."""
    drawn = Entropy.from_seed(seed).generator()
    return np.stack(
        [
            np.minimum(drawn.integers(size, size=num_users), drawn.integers(size, size=num_users))
            for size in sizes
        ],
        axis=1,
    )


def shares_of(sizes, rows):
    return np.concatenate(
        [np.bincount(rows[:, part], minlength=size) / len(rows) for part, size in enumerate(sizes)]
    )


class TestAccount:
    @pytest.mark.parametrize("epsilon0", [0.2, 1.0, 3.0])
    @pytest.mark.parametrize("sizes", SIZES)
    def test_the_blanket_bounds_all_data_of_a_few_users(self, sizes, epsilon0):
        law = SampledParts(sizes=sizes, epsilon0=epsilon0)
        most = 3 if sum(sizes) < 6 else 2
        check_blanket(channel_of(law), law.profile, range(1, most + 1))

    @pytest.mark.parametrize("epsilon0", [0.5, 2.0])
    @pytest.mark.parametrize("sizes", [(2, 2), (2, 3)])
    def test_published_bounds_enclose_all_data(self, sizes, epsilon0):
        law = SampledParts(sizes=sizes, epsilon0=epsilon0)
        exact.check_guarantee(channel_of(law), law.profile, 3, by_floats=True)

    @pytest.mark.parametrize("sizes", [(2, 3), (3, 4)])
    def test_the_attack_is_that_of_data(self, sizes):
        law = SampledParts(sizes=sizes, epsilon0=1.0)
        rows = list(itertools.product(*map(range, sizes)))
        third = tuple(0 if size == 2 else 2 for size in sizes)
        where = rows.index((0,) * len(sizes)), rows.index((1,) * len(sizes)), rows.index(third)
        channel = np.array(channel_of(law), dtype=np.float64)
        for epsilon in (0.1, 0.5):
            data = exact.agreeing_delta(channel, where, 3, epsilon)
            found = mean_positive_part(law.profile.attack, 3, epsilon)
            assert found == pytest.approx(data, rel=1e-3)

    def test_all_users_hide_each_report(self):
        """As k-RR with as many users, and by far better than with those of one part."""
        parts = SampledParts(sizes=(16,) * 8, epsilon0=2.0).profile
        alone = KRandomizedResponse(domain_size=16, epsilon0=2.0).profile
        found = guarantee_for(parts, 8_000, delta=1e-6).epsilon
        same = guarantee_for(alone, 8_000, delta=1e-6).epsilon
        assert found.upper == pytest.approx(same.upper, rel=1e-6)
        assert found.upper < 0.4 * guarantee_for(alone, 1_000, delta=1e-6).epsilon_upper
        assert found.lower > 0.99 * found.upper

    def test_epsilon0_of_0_says_nothing(self):
        law = SampledParts(sizes=(2, 3), epsilon0=0.0)
        assert law.epsilon0 == 0.0
        assert guarantee_for(law.profile, 5, delta=0.1).epsilon_upper == 0.0
        assert law.bin_error(0, 0.5, 10) == math.inf

    def test_the_loss_is_that_of_the_worst_part(self):
        law = SampledParts(sizes=(2, 2**31), epsilon0=1.0)  # a large domain has a coarse grid
        losses = [level.epsilon0 for level in law.levels]
        assert min(losses) < max(losses) == law.epsilon0 <= 1.0

    def test_messages_have_the_loss_asked_for_at_most(self):
        law = AllParts(sizes=(2, 3, 5, 2, 2, 2, 2), epsilon0=0.3)  # the double 0.3 / 7 is too large
        assert sum(Fraction(each.epsilon0) for each in law.profiles) <= Fraction(0.3)
        assert law.profile.epsilon0 == 0.3


class TestDraws:
    @pytest.mark.parametrize("sizes", [(2, 3), (3, 3, 2)])
    def test_reports_follow_the_channel(self, sizes):
        law, num_users = SampledParts(sizes=sizes, epsilon0=1.0), 40_000
        rows = list(itertools.product(*map(range, sizes)))
        for number in (0, len(rows) - 1):
            values = np.tile(rows[number], (num_users, 1))
            counts = law.aggregate(law.randomize(values, Entropy.from_seed(number))).support
            chances = np.array([float(each) for each in channel_of(law)[number]])
            spread = np.sqrt(num_users * chances * (1.0 - chances))
            assert (np.abs(counts - num_users * chances) < 7.0 * spread).all()

    def test_bare_messages_are_the_codes(self):
        law = AllParts(sizes=(2, 300), epsilon0=math.inf)
        found = law.randomize(np.array([[1, 299], [0, 7]]), Entropy.from_seed(1)).data
        assert found.tolist() == [1, 301, 0, 9]
        assert found.dtype == np.uint16

    def test_nobody(self):
        for law in (SampledParts(sizes=(2, 3), epsilon0=1.0), AllParts(sizes=(2, 3), epsilon0=1.0)):
            reports = law.randomize(np.empty((0, 2), dtype=np.int64), Entropy.from_seed(1))
            assert reports.num_reports == 0
            with pytest.raises(DataError, match=r"0 reports|messages of the parts"):
                law.estimate(reports)


class TestEstimates:
    @pytest.mark.parametrize("sizes", [(2, 5), (3, 3, 16)])
    def test_shares_of_all_users(self, sizes):
        law, num_users = SampledParts(sizes=sizes, epsilon0=3.0), 30_000
        rows = rows_of(sizes, num_users)
        reports = law.randomize(rows, Entropy.from_seed(2))
        found = law.estimate(reports)
        away = (found.frequency - shares_of(sizes, rows)) / found.standard_error
        assert (np.abs(away) < 7.0).all()
        assert found.num_users == num_users
        assert (found.lower < found.frequency).all()
        assert (found.upper > found.frequency).all()
        assert (found.population_upper > found.upper).all()
        sums = [found.frequency[bins].sum() for bins in law.part_slices]
        assert sums == pytest.approx([1.0] * len(sizes))
        expected = [
            law.bin_error(part, share, num_users)
            for part, bins in enumerate(law.part_slices)
            for share in shares_of(sizes, rows)[bins]
        ]
        assert found.standard_error == pytest.approx(expected, rel=0.05)

    @pytest.mark.slow
    def test_the_standard_error_is_that_of_many_collections(self):
        sizes, num_users, times = (2, 3), 500, 2_000
        law, rows = SampledParts(sizes=sizes, epsilon0=2.0), rows_of((2, 3), 500)
        entropy = Entropy.from_seed(3)
        drawn = np.array(
            [law.estimate(law.randomize(rows, entropy)).frequency for _ in range(times)]
        )
        shares = shares_of(sizes, rows)
        errors = np.array(
            [law.bin_error(*each, num_users) for each in zip((0, 0, 1, 1, 1), shares, strict=True)]
        )
        assert (np.abs(drawn.mean(axis=0) - shares) < 7.0 * errors / math.sqrt(times)).all()
        # A variance from 2,000 draws has a relative error of about sqrt(2 / 2,000) = 0.032.
        assert drawn.var(axis=0) == pytest.approx(errors**2, rel=0.25)

    def test_messages_with_dummies(self):
        sizes, num_users = (2, 3), 5_000
        law, rows = AllParts(sizes=sizes, epsilon0=math.inf), rows_of((2, 3), 5_000)
        dummies = DummyLaw.from_text("gaussian:20:90"), DummyLaw.from_text("gaussian:30:140")
        entropy = Entropy.from_seed(4)
        counts = law.aggregate(law.randomize(rows, entropy))
        added = np.concatenate(
            [each.draw(size, entropy) for each, size in zip(dummies, sizes, strict=True)]
        )
        counts = replace(
            counts,
            support=counts.support + added,
            num_reports=num_users * 2,
            num_dummies=int(added.sum()),
            dummies=dummies,
        )
        found = law.estimate(counts, simultaneous=True)
        away = (found.frequency - shares_of(sizes, rows)) / found.standard_error
        assert (np.abs(away) < 7.0).all()
        errors = [law.bin_error(part, 0.0, num_users, dummies) for part in (0, 0, 1, 1, 1)]
        assert found.standard_error == pytest.approx(errors, rel=1e-3)
        assert found.is_simultaneous
        # Five intervals that hold together with 0.95 hold with 0.99 each: 2.576 standard errors.
        assert found.upper - found.lower == pytest.approx(5.152 * found.standard_error, rel=0.01)
        for wrong in (num_users * 4, num_users * 2 + 1):
            with pytest.raises(DataError, match="check num_users"):
                law.estimate(replace(counts, num_reports=wrong))

    def test_too_few_users_for_the_parts(self):
        law = SampledParts(sizes=(2,) * 30, epsilon0=1.0)
        reports = law.randomize(np.zeros((5, 30), dtype=np.int64), Entropy.from_seed(1))
        with pytest.raises(DataError, match="5 reports are too few for 30 parts"):
            law.estimate(reports)


class TestRefusals:
    @pytest.mark.parametrize(
        ("values", "error", "match"),
        [
            ([[0, 3]], DomainError, r"codes\[0\] = 3 is not in \[0, 3\)"),
            ([[-1, 0]], DomainError, r"= -1 is not in"),
            ([[0.0, 1.0]], ParameterError, "dtype float64"),
            ([0, 1], ParameterError, "one row of 2 codes a user"),
            ([[0, 1, 2]], ParameterError, "one row of 2 codes a user"),
        ],
    )
    @pytest.mark.parametrize("kind", [SampledParts, AllParts])
    def test_values(self, kind, values, error, match):
        with pytest.raises(error, match=match):
            kind(sizes=(2, 3), epsilon0=1.0).randomize(np.array(values), Entropy.from_seed(1))

    @pytest.mark.parametrize("kind", [SampledParts, AllParts])
    def test_laws(self, kind):
        for sizes in ((), (2, 1), (2,) * 1025):
            with pytest.raises(ParameterError):
                kind(sizes=sizes, epsilon0=1.0)
        for epsilon0 in (-1.0, math.nan):
            with pytest.raises(ParameterError, match="epsilon0"):
                kind(sizes=(2, 3), epsilon0=epsilon0)
        with pytest.raises(ParameterError, match="epsilon0"):
            SampledParts(sizes=(2, 3), epsilon0=math.inf)

    @pytest.mark.parametrize("kind", [SampledParts, AllParts])
    def test_reports_of_another_law(self, kind):
        law, other = kind(sizes=(2, 3), epsilon0=1.0), kind(sizes=(3, 2), epsilon0=1.0)
        reports = Reports(data=np.array([5], dtype=np.uint8), fingerprint=law.fingerprint)
        with pytest.raises(DomainError, match="is 5, not in"):
            law.aggregate(reports)
        counts = Counts(support=np.ones(5, int), num_reports=5, fingerprint=other.fingerprint)
        with pytest.raises(FingerprintError):
            law.estimate(counts)
