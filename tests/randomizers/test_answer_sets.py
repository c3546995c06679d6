import itertools
import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.collection.uniform_shuffler import UniformShuffler
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, FingerprintError, ParameterError
from shuffledp.core.profile import RandomizerFamily
from shuffledp.randomizers import Counts, Reports, SampledAnswers, SplitAnswers
from shuffledp.randomizers.base import error_at

KINDS = (SampledAnswers, SplitAnswers)
BASES = ("k-rr", "symmetric-unary", "optimized-unary")
ASKED_EPSILON0 = (0.0, 5e-324, 1e-18, 1e-9, 0.1, math.log(3), 4.0, 60.0, 1e300)
EXACT = Context(prec=60)


@pytest.fixture(params=KINDS, ids=["sampled", "split"])
def kind(request):
    return request.param


@pytest.fixture(params=BASES)
def base_name(request):
    return request.param


@pytest.fixture
def make(kind, base_name):
    def make_randomizer(epsilon0=1.0, domain_size=3, max_answers=2):
        return kind(
            base_name=base_name, domain_size=domain_size, max_answers=max_answers, epsilon0=epsilon0
        )

    return make_randomizer


def all_sets(k, max_answers):
    """Return every set of at most so many answers."""
    sizes = range(max_answers + 1)
    return [held for size in sizes for held in itertools.combinations(range(k), size)]


def slots_of(randomizer, held):
    """Return the base's codes of a set, dummies included."""
    return [
        *sorted(held, reverse=True),
        *[randomizer.domain_size] * (randomizer.max_answers - len(held)),
    ]


def channel(randomizer, held):
    """Return the exact law of a report: by column of the base, or by tuples of them."""
    base = randomizer.base.channel()
    rows = [base[code] for code in slots_of(randomizer, held)]
    if isinstance(randomizer, SampledAnswers):
        return {y: sum(column) / len(rows) for y, column in enumerate(zip(*rows, strict=True))}
    return {
        columns: math.prod(row[y] for row, y in zip(rows, columns, strict=True))
        for columns in itertools.product(range(len(base[0])), repeat=len(rows))
    }


def as_reports(randomizer, columns):
    """Return reports of the columns of a small channel."""
    empty = randomizer.randomize(np.empty((0, 0)), Entropy.from_seed(0)).data
    data = np.array(columns, dtype=empty.dtype).reshape(len(columns), *empty.shape[1:])
    return Reports(data=data, fingerprint=randomizer.fingerprint)


def exact_support(randomizer, held):
    """Return the exact mean and the exact mean square of the support of each category."""
    law = channel(randomizer, held)
    support = [randomizer.aggregate(as_reports(randomizer, [y])).support.tolist() for y in law]
    means, squares = (
        [
            sum(p * s[v] ** power for p, s in zip(law.values(), support, strict=True))
            for v in range(randomizer.domain_size)
        ]
        for power in (1, 2)
    )
    return means, squares


class TestLaw:
    @pytest.mark.parametrize("asked", ASKED_EPSILON0)
    @pytest.mark.parametrize("max_answers", [1, 2, 3])
    def test_epsilon0_is_at_most_what_was_asked_and_a_fixed_point(self, make, asked, max_answers):
        randomizer = make(asked, max_answers=max_answers)
        assert 0.0 <= randomizer.epsilon0 <= asked
        if 1e-3 < asked < 20.0:
            assert randomizer.epsilon0 == pytest.approx(asked, rel=1e-12)
        again = make(randomizer.epsilon0, max_answers=max_answers)
        assert again == randomizer
        assert again.fingerprint == randomizer.fingerprint

    @pytest.mark.parametrize("asked", [0.0, 1e-9, 0.1, math.log(3), 4.0, 60.0])
    @pytest.mark.parametrize(("k", "max_answers"), [(2, 1), (2, 2), (3, 2)])
    def test_the_loss_of_all_pairs_of_sets_is_epsilon0(self, make, asked, k, max_answers):
        randomizer = make(asked, domain_size=k, max_answers=max_answers)
        laws = [channel(randomizer, held) for held in all_sets(k, max_answers)]
        assert all(sum(law.values()) == 1 for law in laws)
        loss = max(max(law[y] for law in laws) / min(law[y] for law in laws) for y in laws[0])
        assert randomizer.profile.epsilon0 == randomizer.epsilon0
        quotient = EXACT.divide(Decimal(loss.numerator), Decimal(loss.denominator))
        exact = EXACT.ln(quotient)
        # Never below; above by the rounding of the base's loss, s times.
        assert exact <= Decimal(randomizer.epsilon0)
        assert float(exact) == pytest.approx(randomizer.epsilon0, rel=1e-14, abs=1e-300)

    def test_frequencies_are_unbiased_and_errors_exact(self, make):
        randomizer = make(1.0)
        p, q = (Fraction(float(x)) for x in randomizer.support_probabilities)
        users = [(), (0,), (1, 2), (0, 2), (0,)]
        supports = [exact_support(randomizer, held) for held in users]
        num_users, num_slots = len(users), randomizer.num_slots
        for v in range(randomizer.domain_size):
            share = sum(v in held for held in users) / num_users
            mean = sum(means[v] for means, _ in supports)
            found = (mean - num_users * num_slots * q) / (p - q) / num_users
            assert float(found) == pytest.approx(share, abs=1e-14)
            variance = sum(squares[v] - means[v] ** 2 for means, squares in supports)
            expected = error_at(randomizer, num_users, share)
            error = math.sqrt(variance) / float(p - q) / num_users
            assert error == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("epsilon0", [0.5, 2.0])
    @pytest.mark.parametrize("num_users", [1, 2])
    def test_the_blanket_bounds_every_shuffled_pair(self, make, epsilon0, num_users):
        """Enumerates the hockey-stick divergence of the multiset of reports."""
        randomizer = make(epsilon0, domain_size=2, max_answers=2)
        laws = [
            {y: float(p) for y, p in channel(randomizer, held).items()} for held in all_sets(2, 2)
        ]
        factor = math.exp(0.6 * epsilon0)
        atoms = [(a.mass, a.ratio0 - factor * a.ratio1) for a in randomizer.profile.blanket]
        atoms.append((1.0 - sum(mass for mass, _ in atoms), 0.0))
        bound = (
            sum(
                math.prod(mass for mass, _ in drawn) * max(sum(g for _, g in drawn), 0.0)
                for drawn in itertools.product(atoms, repeat=num_users)
            )
            / num_users
        )

        def shuffled(first, others):
            law = {}
            for reports in itertools.product(*(list(user.items()) for user in [first, *others])):
                batch = tuple(sorted(y for y, _ in reports))
                law[batch] = law.get(batch, 0.0) + math.prod(p for _, p in reports)
            return law

        worst = 0.0
        for others in itertools.product(laws, repeat=num_users - 1):
            batches = [shuffled(law, others) for law in laws]
            for first, second in itertools.permutations(batches, 2):
                delta = sum(max(first[y] - factor * second[y], 0.0) for y in first)
                worst = max(worst, delta)
        assert 0.0 < worst <= bound * (1 + 1e-12)
        if num_users == 1 and isinstance(randomizer, SplitAnswers):
            assert worst == pytest.approx(bound, rel=1e-9)
        for ratio in ("ratio0", "ratio1"):
            total = sum(a.mass * getattr(a, ratio) for a in randomizer.profile.blanket)
            assert total == pytest.approx(1.0, rel=1e-12)

    def test_a_product_of_too_many_atoms_is_left_out(self):
        def blanket(max_answers):
            randomizer = SplitAnswers(
                base_name="k-rr", domain_size=100, max_answers=max_answers, epsilon0=2.0
            )
            assert randomizer.profile.family is RandomizerFamily.OTHER
            return randomizer.profile.blanket

        assert len(blanket(1)) == 3
        assert 0 < len(blanket(20)) <= 1024
        assert blanket(99) == ()

    def test_a_base_without_a_blanket_has_no_product(self, monkeypatch):
        from shuffledp.core.profile import LocalProfile
        from shuffledp.randomizers import KRandomizedResponse

        monkeypatch.setattr(
            KRandomizedResponse, "profile", property(lambda self: LocalProfile(epsilon0=1.0))
        )
        randomizer = SplitAnswers(base_name="k-rr", domain_size=3, max_answers=2, epsilon0=1.0)
        assert randomizer.profile.blanket == ()

    def test_the_fingerprint_has_every_parameter(self):
        prints = [
            kind(base_name=base, domain_size=k, max_answers=s, epsilon0=epsilon0).fingerprint
            for kind, base, k, s, epsilon0 in itertools.product(
                KINDS, BASES, (2, 3), (1, 2), (0.0, 1.0, 2.0)
            )
        ]
        assert len(set(prints)) == len(prints)

    def test_names_tell_kind_and_base(self):
        options = {"domain_size": 3, "max_answers": 2, "epsilon0": 1.0}
        assert SampledAnswers(base_name="k-rr", **options).name == "sampled:k-rr"
        assert SplitAnswers(base_name="optimized-unary", **options).name == "split:optimized-unary"

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"domain_size": 1}, "domain_size = 1"),
            ({"domain_size": 2**32 - 1}, "domain_size = 4294967295 is above 4,294,967,294"),
            ({"domain_size": 2.5}, "domain_size = 2.5"),
            ({"max_answers": 0}, "max_answers = 0"),
            ({"max_answers": 4}, "max_answers = 4 is above k = 3"),
            ({"epsilon0": math.nan}, "epsilon0"),
            ({"epsilon0": math.inf}, "epsilon0"),
            ({"epsilon0": -1.0}, "epsilon0"),
        ],
    )
    def test_parameters_out_of_range_are_refused(self, make, wrong, message):
        with pytest.raises(ParameterError, match=message):
            make(**wrong)

    def test_an_unknown_base_is_refused(self, kind):
        with pytest.raises(ParameterError, match="did you mean"):
            kind(base_name="k-r", domain_size=3, max_answers=2, epsilon0=1.0)


class TestWhichIsBetter:
    def variances(self, base_name, epsilon0, max_answers, frequency, k=16):
        return [
            error_at(
                kind(
                    base_name=base_name, domain_size=k, max_answers=max_answers, epsilon0=epsilon0
                ),
                1,
                frequency,
            )
            ** 2
            for kind in KINDS
        ]

    @pytest.mark.parametrize("epsilon0", [0.1, 1.0, 4.0, 10.0])
    @pytest.mark.parametrize("max_answers", [2, 3, 5])
    def test_closed_form_for_rare_categories(self, epsilon0, max_answers):
        s = max_answers
        sampled, split = self.variances("optimized-unary", epsilon0, s, 0.0)
        assert sampled == pytest.approx(s**2 / math.sinh(epsilon0 / 2) ** 2, rel=1e-9)
        assert split == pytest.approx(s / math.sinh(epsilon0 / (2 * s)) ** 2, rel=1e-9)
        assert split >= s * sampled

    @pytest.mark.parametrize(
        ("base_name", "max_answers", "frequency", "crossover"),
        [
            ("k-rr", 2, 0.01, 10.9),
            ("k-rr", 2, 0.1, 7.5),
            ("k-rr", 2, 0.5, 6.2),
            ("k-rr", 3, 0.01, 15.5),
            ("k-rr", 3, 0.1, 10.4),
            ("k-rr", 3, 0.5, 8.1),
            ("optimized-unary", 2, 0.01, 12.0),
            ("optimized-unary", 2, 0.1, 7.4),
            ("optimized-unary", 2, 0.5, 4.3),
            ("optimized-unary", 3, 0.01, 17.2),
            ("optimized-unary", 3, 0.1, 10.4),
            ("optimized-unary", 3, 0.5, 6.1),
        ],
    )
    def test_crossovers_of_the_table(self, base_name, max_answers, frequency, crossover):
        for epsilon0 in (0.1, 1.0, crossover - 0.15):
            sampled, split = self.variances(base_name, epsilon0, max_answers, frequency)
            assert sampled < split
        sampled, split = self.variances(base_name, crossover + 0.15, max_answers, frequency)
        assert sampled > split


class TestRandomize:
    @pytest.mark.parametrize("k", [3, 8, 100])
    @pytest.mark.parametrize("num_users", [0, 1, 1001])
    def test_reports_have_the_stated_size(self, make, k, num_users):
        randomizer = make(domain_size=k)
        reports = randomizer.randomize(np.tile([2, -1, 0], (num_users, 1)), Entropy.from_seed(1))
        assert reports.num_reports == num_users
        assert reports.data.ndim <= 2  # as the shuffler takes them
        assert reports.data.nbytes == num_users * randomizer.num_report_bytes
        assert reports.fingerprint == randomizer.fingerprint
        counts = randomizer.aggregate(reports)
        assert counts.num_reports == num_users
        assert counts.support.size == k
        assert counts.supports_per_report == randomizer.num_slots

    def test_at_a_huge_epsilon0_the_answers_are_supported(self, make):
        randomizer = make(1e300, domain_size=5, max_answers=3)
        values = np.array([[3, 1, -1, -1], [-1, -1, -1, -1], [4, -1, 0, 1]] * 3000)
        reports = randomizer.randomize(values, Entropy.from_seed(2))
        found = randomizer.estimate(reports)
        sampling = 6 * math.sqrt(2 / 9000)
        margin = 1e-6 if isinstance(randomizer, SplitAnswers) else sampling
        if randomizer.base_name == "optimized-unary":
            margin += 6 * math.sqrt(3 / 9000)  # a true bit is set half of the time
        assert np.abs(found.frequency - np.array([1, 2, 0, 1, 1]) / 3).max() < margin

    def test_order_in_a_row_and_width_do_not_matter(self, make):
        randomizer = make(domain_size=5, max_answers=3)
        narrow = np.array([[4, 1], [0, -1], [-1, -1]] * 50)
        wide = np.array([[-1, 1, -1, 4, -1], [-1, -1, -1, -1, 0], [-1] * 5] * 50, dtype=np.int8)
        expected = randomizer.randomize(narrow, Entropy.from_seed(3)).data
        assert np.array_equal(randomizer.randomize(wide, Entropy.from_seed(3)).data, expected)
        assert not np.array_equal(randomizer.randomize(wide, Entropy.from_seed(4)).data, expected)

    def test_unsigned_integers_are_answers_too(self, make):
        values = np.array([[2, 1]] * 9, dtype=np.uint64)
        assert make().randomize(values, Entropy.from_seed(5)).num_reports == 9

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ([[0, 1], [2, 3]], r"values\[1, 1\] = 3 is not in \[0, 3\)"),
            ([[0, 1], [-2, 0]], r"values\[1, 0\] = -2"),
            ([[0, 1], [2, 2]], "row 1 of values holds an answer twice"),
            ([[0, 1, -1], [2, -1, 2]], "row 1 of values holds an answer twice"),
            ([[0, -1, -1], [2, 1, 0]], "row 1 of values holds 3 answers.*max_answers to 3"),
        ],
    )
    def test_impossible_sets_are_named(self, make, values, message):
        with pytest.raises(DomainError, match=message):
            make().randomize(np.array(values), Entropy.from_seed(6))

    def test_a_code_beyond_all_integers_with_a_sign_is_named(self, make):
        with pytest.raises(DomainError, match="18446744073709551615"):
            make().randomize(np.array([[2**64 - 1]], dtype=np.uint64), Entropy.from_seed(6))

    @pytest.mark.parametrize(
        "values",
        [
            np.array([0, 1]),
            np.array([[0.0, 1.0]]),
            np.array([[np.nan]]),
            np.array([[True, False]]),
            np.array([["a"]]),
            np.zeros((1, 1, 1), int),
        ],
    )
    def test_other_arrays_are_refused(self, make, values):
        with pytest.raises(ParameterError, match="give one row of integers"):
            make().randomize(values, Entropy.from_seed(7))


class TestAggregate:
    @given(
        kind=st.sampled_from(KINDS),
        base_name=st.sampled_from(BASES),
        num_users=st.integers(0, 200),
        cut=st.floats(0.0, 1.0),
        seed=st.integers(0, 2**32),
    )
    def test_order_and_parts_do_not_matter(self, kind, base_name, num_users, cut, seed):
        randomizer = kind(base_name=base_name, domain_size=9, max_answers=3, epsilon0=1.0)
        entropy = Entropy.from_seed(seed)
        values = np.argsort(entropy.generator().random((num_users, 9)), axis=1)[:, :2]
        data = randomizer.randomize(values, entropy).data

        def count(part):
            return randomizer.aggregate(Reports(data=part, fingerprint=randomizer.fingerprint))

        split = int(cut * num_users)
        whole = count(data)
        for other in (count(data[:split]) + count(data[split:]), count(data[::-1])):
            assert isinstance(other, Counts)
            assert np.array_equal(other.support, whole.support)
            assert other.num_reports == whole.num_reports == num_users

    def test_reports_survive_the_shuffler(self, make):
        randomizer = make(domain_size=20)
        entropy = Entropy.from_seed(9)
        reports = randomizer.randomize(np.tile([[3, 1]], (500, 1)), entropy)
        before = randomizer.aggregate(reports).support
        data = UniformShuffler().shuffle(reports.data, entropy)
        shuffled = Reports(data=data, fingerprint=randomizer.fingerprint)
        assert np.array_equal(randomizer.aggregate(shuffled).support, before)

    def test_reports_of_another_law_are_refused(self, make):
        reports = make().randomize(np.array([[0, 1]]), Entropy.from_seed(10))
        for other in (make(2.0), make(domain_size=4), make(max_answers=1)):
            with pytest.raises(FingerprintError, match="max_answers"):
                other.aggregate(reports)
            with pytest.raises(FingerprintError):
                other.estimate(make().aggregate(reports))
        with pytest.raises(FingerprintError):
            make().base.aggregate(reports)

    def test_reports_of_another_shape_or_type_are_refused(self, make):
        randomizer = make(domain_size=20)
        data = randomizer.randomize(np.zeros((5, 1), int), Entropy.from_seed(11)).data
        for wrong in (data.astype(np.int64), data[:, None], np.zeros((5, 99), np.uint8)):
            with pytest.raises(ParameterError, match="as it was made"):
                randomizer.aggregate(Reports(data=wrong, fingerprint=randomizer.fingerprint))

    def test_impossible_reports_are_refused(self, make):
        randomizer = make(domain_size=4)  # five categories in the base
        data = randomizer.randomize(np.zeros((9, 1), int), Entropy.from_seed(12)).data.copy()
        data[3] |= 1 << 5
        with pytest.raises(DomainError):
            randomizer.aggregate(Reports(data=data, fingerprint=randomizer.fingerprint))


class TestEstimate:
    def test_nothing_to_say_is_said(self, make):
        values = np.array([[0, 1]] * 9)
        with pytest.raises(ParameterError, match="say nothing"):
            make(0.0).estimate(make(0.0).randomize(values, Entropy.from_seed(13)))
        with pytest.raises(DataError, match="no reports"):
            make().estimate(make().randomize(values[:0], Entropy.from_seed(13)))

    def test_options_are_passed_on(self, make):
        reports = make().randomize(np.array([[0, 1]] * 900), Entropy.from_seed(14))
        alone = make().estimate(reports, confidence=0.9)
        together = make().estimate(make().aggregate(reports), confidence=0.9, simultaneous=True)
        assert alone.confidence == together.confidence == 0.9
        assert together.is_simultaneous
        assert (together.upper - together.lower > alone.upper - alone.lower).all()
