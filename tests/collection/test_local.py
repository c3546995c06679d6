"""The local engine randomizes once, shuffles all, and counts what it shuffled."""

import numpy as np
import pytest
from scipy import stats

from collection.kinds import KINDS, NUM_USERS
from shuffledp.collection import counting
from shuffledp.collection import shuffling as arrangements
from shuffledp.collection.run import collect
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.reports import Reports
from shuffledp.randomizers.registry import RANDOMIZERS, make_randomizer

# Chance that a correct engine fails one of the two chi-square tests below, half of it each.
FALSE_POSITIVE_RATE = 2e-9
LEAST_P_VALUE = FALSE_POSITIVE_RATE / 2


class Recorder:
    """Passes everything to a randomizer and counts how often each user was randomized."""

    def __init__(self, randomizer):
        self.randomizer = randomizer
        self.seen = []

    def __getattr__(self, name):
        return getattr(self.randomizer, name)

    def randomize(self, codes, entropy):
        self.seen.append(np.array(codes))
        return self.randomizer.randomize(codes, entropy)


def blocks_of(codes, size=1000):
    for start in range(0, len(codes), size):
        yield codes[start : start + size]


@pytest.fixture
def codes():
    return np.repeat(np.arange(5, dtype=np.int32), [4000, 3000, 2000, 900, 100])


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_every_value_is_randomized_exactly_once(name, codes):
    recorder = Recorder(make_randomizer(name, domain_size=5, epsilon0=1.0))
    collect(recorder, blocks_of(codes), num_users=len(codes), entropy=Entropy.from_seed(1))
    np.testing.assert_array_equal(np.concatenate(recorder.seen), codes)


@pytest.mark.parametrize("name", RANDOMIZERS)
def test_counts_are_those_of_the_reports_handed_out(name, codes):
    randomizer = make_randomizer(name, domain_size=5, epsilon0=1.0)
    kept = []
    counts = collect(
        randomizer,
        blocks_of(codes),
        num_users=len(codes),
        entropy=Entropy.from_seed(2),
        sink=kept.extend,
    )
    assert counts.num_reports == len(codes) == sum(reports.num_reports for reports in kept)
    recount = sum(
        (randomizer.aggregate(reports) for reports in kept[1:]), randomizer.aggregate(kept[0])
    )
    np.testing.assert_array_equal(counts.support, recount.support)
    assert counts.fingerprint == randomizer.fingerprint


def test_counts_follow_the_law_of_the_randomizer(codes):
    randomizer = make_randomizer("k-rr", domain_size=5, epsilon0=2.0)
    counts = collect(
        randomizer, blocks_of(codes), num_users=len(codes), entropy=Entropy.from_seed(3)
    )
    p, q = randomizer.support_probabilities
    true = np.bincount(codes, minlength=5)
    expected = true * p + (len(codes) - true) * q
    assert stats.chisquare(counts.support, expected).pvalue > LEAST_P_VALUE
    unrandomized = stats.chisquare(true, expected)  # a planted wrong law is found
    assert unrandomized.pvalue < LEAST_P_VALUE


def test_reports_leave_in_random_order(codes):
    randomizer = make_randomizer(
        "k-rr", domain_size=5, epsilon0=30.0
    )  # reports are the values themselves

    def half_table(shuffled):
        first = np.bincount(shuffled[: len(codes) // 2], minlength=5)
        return np.array([first, np.bincount(shuffled, minlength=5) - first])

    kept = []
    collect(
        randomizer,
        blocks_of(codes),
        num_users=len(codes),
        entropy=Entropy.from_seed(4),
        sink=kept.extend,
    )
    shuffled = np.concatenate([reports.data for reports in kept])
    np.testing.assert_array_equal(np.sort(shuffled), codes)
    assert stats.chi2_contingency(half_table(shuffled)).pvalue > LEAST_P_VALUE
    assert stats.chi2_contingency(half_table(codes)).pvalue < LEAST_P_VALUE  # unshuffled


def test_a_seed_gives_the_same_counts_again(codes):
    randomizer = make_randomizer("k-rr", domain_size=5, epsilon0=1.0)
    first, second, other = (
        collect(randomizer, blocks_of(codes), num_users=len(codes), entropy=Entropy.from_seed(seed))
        for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(first.support, second.support)
    assert (first.support != other.support).any()


def test_empty_blocks_do_no_harm():
    randomizer = make_randomizer("k-rr", domain_size=2, epsilon0=1.0)
    blocks = [np.empty(0, np.int32), np.array([0, 1, 1], np.int32), np.empty(0, np.int32)]
    counts = collect(randomizer, blocks, num_users=3, entropy=Entropy.from_seed(7))
    assert counts.num_reports == 3


def test_the_number_of_users_must_be_true():
    randomizer = make_randomizer("k-rr", domain_size=2, epsilon0=1.0)
    blocks = [np.array([0, 1, 1], np.int32)]
    with pytest.raises(DataError, match=r"3 values, not num_users = 4"):
        collect(randomizer, blocks, num_users=4, entropy=Entropy.from_seed(8))
    with pytest.raises(ParameterError, match="num_users"):
        collect(randomizer, [], num_users=0, entropy=Entropy.from_seed(8))


def test_progress_reaches_the_end(codes):
    calls = []
    collect(
        make_randomizer("k-rr", domain_size=5, epsilon0=1.0),
        blocks_of(codes),
        num_users=len(codes),
        entropy=Entropy.from_seed(9),
        on_progress=lambda *call: calls.append(call),
    )
    assert calls[0] == ("randomizing", 1000, 10_000)
    assert calls[-1] == ("counting", 10_000, 10_000)


def test_scratch_files_go_where_they_are_told_and_vanish(codes, tmp_path, monkeypatch):
    made = []

    class SmallShuffle(arrangements.ExternalShuffle):
        def __init__(self, **options):
            super().__init__(**options, memory_limit_bytes=3000)
            made.append((options["directory"], self))

    monkeypatch.setattr(arrangements, "ExternalShuffle", SmallShuffle)
    counts = collect(
        make_randomizer("optimized-unary", domain_size=5, epsilon0=1.0),
        blocks_of(codes),
        num_users=len(codes),
        entropy=Entropy.from_seed(10),
        scratch=tmp_path,
    )
    assert counts.num_reports == len(codes)
    assert made[0][0] == tmp_path
    assert made[0][1].scratch_bytes == len(codes)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ every kind of randomizer


@pytest.mark.parametrize("batch_bytes", [1, 3000, 1 << 23])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_batches_add_up_to_all_reports_at_once(kind, batch_bytes, monkeypatch):
    monkeypatch.setattr(counting, "BATCH_BYTES", batch_bytes)
    randomizer = next(iter(kind.question.candidates().values()))(2.0)
    (values,) = kind.question.column(kind.values).blocks()
    kept = []
    aggregate = collect(
        randomizer,
        [values[:500], values[500:]],
        num_users=NUM_USERS,
        entropy=Entropy.from_seed(11),
        sink=kept.extend,
    )
    data = np.concatenate([reports.data for reports in kept])
    at_once = randomizer.aggregate(Reports(data=data, fingerprint=randomizer.fingerprint))
    assert aggregate.num_reports == at_once.num_reports == NUM_USERS
    for name in ("support", "total", "total_of_squares"):
        if hasattr(at_once, name):
            np.testing.assert_allclose(
                getattr(aggregate, name), getattr(at_once, name), rtol=1e-12, atol=1e-9
            )


class Aggregations:
    """Passes everything to a randomizer and notes the sizes of what is aggregated."""

    def __init__(self, randomizer):
        self.randomizer = randomizer
        self.sizes = []

    def __getattr__(self, name):
        return getattr(self.randomizer, name)

    def aggregate(self, reports):
        self.sizes.append(reports.data.nbytes)
        return self.randomizer.aggregate(reports)


def test_reports_are_aggregated_in_batches_of_eight_mebibytes(monkeypatch):
    shuffled = [np.zeros((1000, 1024), np.uint8)] * 20  # blocks as a shuffler hands them out
    randomizer = Aggregations(make_randomizer("symmetric-unary", domain_size=8192, epsilon0=1.0))
    calls = []
    tally = counting.Tally(randomizer, lambda *call: calls.append(call), 20_000)
    law = randomizer.fingerprint
    handed_on = list(tally.of(Reports(data=data, fingerprint=law) for data in shuffled))
    assert [len(each.data) for each in handed_on] == [9000, 9000, 2000]
    assert tally.found.num_reports == 20_000
    assert randomizer.sizes == [9 * 1_024_000, 9 * 1_024_000, 2 * 1_024_000]
    assert [done for _, done, _ in calls] == [9000, 18_000, 20_000]
