"""Dummies that devices send: drawn once, in the same upload, and counted as one device's."""

import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from deploy.make_vectors import ANALYZER_KEY, RECORD_SIZE, SEALING, SIGNING, make_task, public
from deploy.make_vectors import open_record as open_inner
from deploy.roles import (
    NEW_KEY,
    OVER,
    OWN,
    OWN_BARE,
    SHUFFLER_KEY,
    analyzer_for,
    at,
    batch_of,
    engine,  # noqa: F401  # each test on each kind of database
    record,
    shuffler_for,
    upload,
)
from deploy.steps import advance, open_outer, take
from deploy.test_parts import BOTH_KEYS
from shuffledp.accounting.guarantees import guarantee_for
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import open_ledger, save_ledger
from shuffledp.collection.output import write_results
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.deploy import messages as m
from shuffledp.deploy.analyzer import batch_facts, result_of
from shuffledp.deploy.client import Client, Limits
from shuffledp.deploy.remote import checked_record
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import ProtocolError
from shuffledp.report.statement import privacy_statement

TASK, NOISY = make_task(**OWN_BARE), make_task(**OWN)
EITHER = pytest.mark.parametrize("task", [TASK, NOISY], ids=["bare", "noisy"])
AGREED = Limits(no_local_noise=True)


def opened_upload(task, body):
    """Return the records that the shuffler finds in an upload of one device."""
    (report,) = m.decode_upload(body, task)
    text = open_outer(report, task.task_id, SEALING["shuffler"])
    return m.records_of(text, RECORD_SIZE, task.num_slots)


def packed_upload(records, *, number):
    """Return an upload of records as they are given, which no honest device may send."""
    report_id, text = number.to_bytes(16, "big"), len(records).to_bytes(2, "big")
    text += b"".join(records)
    text += bytes(2 + TASK.num_slots * RECORD_SIZE - len(text))
    sealed = m.seal(text, SHUFFLER_KEY.public_key, m.outer_info(TASK.task_id, 0, report_id))
    return m.Report(report_id, 0, 0, sealed).encode()


def texts_of(task, records):
    return [open_inner(task.task_id, each, BOTH_KEYS) for each in records]


def answer(shuffler, task, number, *, report=b"\1", seed=None, **how):
    """Send a report with dummies as a device does; return how many records it has."""
    texts = task.with_own_dummies(report, Entropy.from_seed(number if seed is None else seed))
    epoch = how.get("epoch", 0)
    (found,) = take(shuffler, upload(task, b"".join(texts), number=number, **how), at(epoch))
    assert found is m.Answer.ACCEPTED
    return len(texts)


class TestDevice:
    def test_report_and_dummies_are_kept_and_sent_again_the_same(self, tmp_path):
        with Client(TASK, tmp_path / "c.db", limits=AGREED) as client:
            kept = client.report("yes", at(0), entropy=Entropy.from_seed(4))
            one = client.sealed(shuffler=SHUFFLER_KEY, analyzer=ANALYZER_KEY)
        with Client(TASK, tmp_path / "c.db", limits=AGREED) as client:
            assert client.report("no", at(3)) == kept
            two = client.sealed(shuffler=SHUFFLER_KEY, analyzer=ANALYZER_KEY)
        assert one[:20] == two[:20]
        found = [sorted(texts_of(TASK, opened_upload(TASK, body))) for body in (one, two)]
        assert found[0] == found[1] == m.split(kept.report, 1) == sorted(found[0])
        assert len(kept.report) > 1
        assert b"\0" in kept.report

    def test_an_upload_has_one_size_whatever_is_in_it(self):
        sizes, numbers = set(), set()
        for number in range(30):
            texts = TASK.with_own_dummies(b"\0", Entropy.from_seed(number))
            body = upload(TASK, b"".join(texts), number=number)
            sizes.add(len(body))
            records = opened_upload(TASK, body)
            assert records == sorted(records)  # so that nothing tells which is the report
            numbers.add(len(records))
        assert sizes == {m.report_size(1, TASK.num_slots)}
        assert len(numbers) > 2

    def test_numbers_follow_the_law_whatever_the_answer(self):
        # Seven standard deviations of a Poisson sum: a false alarm in 10^11 runs.
        totals = {report: Counter() for report in (b"\0", b"\1")}
        entropy = Entropy.from_seed(5)
        for report, total in totals.items():
            for _ in range(400):
                texts = TASK.with_own_dummies(report, entropy)
                total.update(texts)
            total[report] -= 400
            for each in (b"\0", b"\1"):
                assert abs(total[each] - 200) < 7 * 200**0.5

    def test_more_than_may_be_sent_are_drawn_anew(self, monkeypatch):
        drawn = iter([np.array([TASK.num_slots, 0]), np.array([0, 2])])
        monkeypatch.setattr(DummyLaw, "draw", lambda *_: next(drawn))
        assert TASK.with_own_dummies(b"\0", Entropy.from_seed(1)) == [b"\0", b"\1", b"\1"]

    def test_other_tasks_have_one_report_a_device(self):
        assert make_task().with_own_dummies(b"\1", Entropy.from_seed(1)) == [b"\1"]


class TestTask:
    def test_slots_are_exceeded_by_a_device_in_2_to_the_128(self):
        for mean, bins in (("0.5", 2), ("0.0007", 16), ("40", 3), ("2.5", 1)):
            law = DummyLaw.from_text(f"poisson:{mean}")
            number, total = law.rare_number(bins), Fraction(mean) * bins
            term, tail = Fraction(1), Fraction(0)
            for j in range(1, number + 200):
                term *= total / j
                tail += term if j >= number else 0
            assert tail <= Fraction(1, 2**128)  # e^-mean left out

    @pytest.mark.parametrize(("mean", "most"), [(0.3, 1), (0.3, 2), (1.0, 3), (0.5, 6)])
    def test_what_is_taken_off_delta_for_the_slots_is_enough(self, mean, most):
        """All views of two devices that draw anew what is more than they may send, exactly."""
        size = 2 * most + 2
        one = np.zeros((size, size))
        for a, b in np.ndindex(most + 1, most + 1):
            if a + b <= most:
                one[a, b] = mean ** (a + b) / math.factorial(a) / math.factorial(b)
        failure = 1.0 - math.exp(-2 * mean) * one.sum()
        one /= one.sum()
        both = np.zeros((size, size))
        for (a, b), mass in np.ndenumerate(one):
            both[a:, b:] += mass * one[: size - a, : size - b]
        first, second = np.zeros_like(both), np.zeros_like(both)
        first[1:], second[:, 1:] = both[:-1], both[:, :-1]  # the victim's report
        law, dummies = TASK.asked.randomizer.profile, DummyLaw.from_text(f"poisson:{mean}")
        for epsilon in (0.0, 0.3, 1.0, 2.0):
            true = np.maximum(first - math.exp(epsilon) * second, 0.0).sum()
            whole = guarantee_for(law, 2, epsilon=epsilon, dummies=dummies).delta_upper
            assert whole < true <= whole + 2 * failure * (1.0 + math.exp(epsilon))

    def test_both_laws_of_every_device_count_for_the_slots(self):
        most = 1e-3 * 2.0**76  # 2 n 2^-128 (1 + e^0) is 2^-50 of delta = 1e-3
        assert NOISY._spares(int(0.99 * most), 0.0)
        assert not NOISY._spares(int(1.01 * most), 0.0)
        assert [part.failure for part, _ in NOISY.release(20).parts] == [0.0, 20 * 2.0**-62]

    def test_the_promise_counts_honest_devices_and_pays_for_the_slots(self):
        law, dummies = NOISY.asked.randomizer.profile, NOISY.dummies
        found = NOISY.guarantee()
        whole = guarantee_for(law, 20, delta=1e-3, dummies=dummies)
        assert whole.epsilon_upper <= found.epsilon_upper < whole.epsilon_upper * (1 + 1e-6)
        assert (found.num_users, found.delta, found.lower) == (20, 1e-3, None)
        assert NOISY.num_honest == 20
        assert make_task(**OWN | {"min_batch": 40, "honest_ppm": 500_000}).num_honest == 20
        assert NOISY.without_dummies().epsilon_upper > 2 * found.epsilon_upper
        TASK.check()
        with pytest.raises(
            ProtocolError, match=r"what is proved is 1\.48152 for 20 honest reports"
        ):
            make_task(**OWN_BARE | {"epsilon": "1.48"}).check()
        assert Task.decode(TASK.encode()) == TASK

    def test_where_delta_cannot_pay_for_the_slots_dummies_count_for_nothing(self):
        law, many = NOISY.asked.randomizer.profile, DummyLaw.from_text("poisson:20")
        tiny = replace(NOISY, delta="1e-35", epsilon="1.9", dummies=many)
        assert guarantee_for(law, 20, delta=1e-35).epsilon_upper > 1.9
        assert guarantee_for(law, 20, epsilon=1.9, dummies=many).delta_upper < 1e-35
        assert tiny.guarantee() == tiny.without_dummies()
        assert not tiny.keeps(20)

    def test_too_few_devices_for_any_epsilon_keep_none(self):
        assert TASK.guarantee(1).epsilon_upper == math.inf
        assert not TASK.keeps(1)
        assert NOISY.guarantee(1).epsilon_upper <= 2.0

    def test_a_shufflers_limits_are_not_met_by_devices(self, tmp_path):
        single = make_task(**OWN | {"min_batch": 1, "epsilon": "2.1"})
        with pytest.raises(ProtocolError, match="batches of at least 1 reports"):
            Client(single, tmp_path / "a.db")

    def test_too_many_a_device_are_refused(self):
        many = DummyLaw.from_text("poisson:501")
        with pytest.raises(ParameterError, match="1,002 a device for 2 answers, above 1,000"):
            make_task(**OWN | {"dummies": many})


class TestRecords:
    """What one device may send: else nothing of it counts."""

    SIZE, SLOTS = 3, 4

    def packed(self, *records, number=None):
        text = b"".join(records)
        count = len(records) if number is None else number
        return count.to_bytes(2, "big") + text + bytes(self.SIZE * self.SLOTS - len(text))

    def test_what_is_well_made_is_taken_apart(self):
        records = [b"\1ab", b"\1ac"]
        assert m.records_of(self.packed(*records), self.SIZE, self.SLOTS) == records
        four = [bytes([9, 0, i]) for i in range(4)]
        assert m.records_of(self.packed(*four), self.SIZE, self.SLOTS) == four
        assert m.records_of(b"\1ab", self.SIZE) == [b"\1ab"]

    def test_what_is_not_is_refused(self):
        pack = self.packed
        for wrong in (
            pack(b"\1ac", b"\1ab"),  # not in order
            pack(b"\1ab", b"\1ab"),  # twice
            pack(b"\1ab", b"\2ab"),  # under two keys
            pack(number=0),
            pack(b"\1ab", b"\1ac", number=1),  # something behind
            pack(b"\1ab", number=2),
            pack(*(bytes([9, 0, i]) for i in range(4)), number=5),
            pack(b"\1ab") + b"\0",
            pack(b"\1ab")[:-1],
            b"",
        ):
            assert m.records_of(wrong, self.SIZE, self.SLOTS) == []
        for wrong in (b"", b"\1a", b"\1ab\1ac"):
            assert m.records_of(wrong, self.SIZE) == []


@EITHER
def test_a_batch_says_its_devices_and_the_result_has_three_lines(tmp_path, task):
    ledger = tmp_path / "ledger.json"
    save_ledger(Ledger(epsilon=9.0, delta=1e-2), ledger)
    with (
        shuffler_for(task, tmp_path, ledger=ledger) as shuffler,
        analyzer_for(task, tmp_path) as analyzer,
    ):
        sent = sum(answer(shuffler, task, number) for number in range(60))
        (state,) = advance(shuffler, at(0, OVER))
        opened = analyzer.take(shuffler.fetch(1))
    assert (state.size, opened.num_users, opened.num_dummies) == (sent, 60, sent - 60)
    assert opened.num_honest == 60
    assert opened.guarantee == task.guarantee(60)
    (entry,) = open_ledger(ledger).entries
    releases = [release for release, _ in entry.releases.parts]
    assert [getattr(each, "dummies", None) for each in releases] == [task.dummies, None]
    assert 0.0 < releases[1].stated_delta < 1e-15
    result = result_of(task, opened)
    p, q = task.asked.randomizer.support_probabilities
    deviation = (60 * q * (1 - q) + task.dummies.error_variance(2, num_senders=60)) ** 0.5
    # All were b"\1": eight standard deviations, of reports and dummies.
    assert abs(result.estimates.count[1] - (60 - 60 * q) / (p - q)) <= 8 * deviation / (p - q)
    assert result.root_mean_square_error == pytest.approx(deviation / (60 * (p - q)), rel=0.3)
    assert result.without_dummies == task.without_dummies(60)
    assert (result.num_users, result.num_dummies) == (60, sent - 60)
    assert "dummy reports, which belong to nobody" in str(privacy_statement(result))
    folder = tmp_path / "result"
    folder.mkdir()
    write_results(result, folder, parameters=batch_facts(task, opened))
    data = (folder / "privacy.json").read_bytes()
    assert checked_record(task, data)["dummies"] == ["poisson:0.5"]
    with pytest.raises(ProtocolError):
        forged = json.loads(data) | {"guarantee": {"epsilon": {"upper": 0.1}, "delta": 1e-3}}
        checked_record(task, json.dumps(forged).encode())


@pytest.mark.slow
def test_intervals_cover_over_many_collections():
    """At 95 %: fewer than 420 of 500 would be a chance of 1e-18."""
    covered, entropy = 0, Entropy.from_seed(8)
    made = NOISY.asked.randomizer
    for _ in range(500):
        truth = np.repeat([0, 1], [12, 18])
        reports = NOISY.asked.codec.encode(made.randomize(truth, entropy))
        texts = [each for one in reports for each in NOISY.with_own_dummies(one, entropy)]
        counted = made.aggregate(NOISY.asked.codec.decode(texts))
        less = counted.less_dummies(NOISY.dummies, num_users=30)
        found = made.estimate(less, confidence=0.95)
        covered += bool(found.lower[1] <= 18 / 30 <= found.upper[1])
    assert covered >= 420


class TestShuffler:
    def test_what_is_not_well_made_is_dropped_whole(self, tmp_path):
        with shuffler_for(TASK, tmp_path) as shuffler, analyzer_for(TASK, tmp_path) as analyzer:
            sent = sum(answer(shuffler, TASK, number) for number in range(25))
            one = record(b"\1", TASK)
            for number, records in ((90, []), (91, [one, one])):
                body = packed_upload(records, number=number)
                assert take(shuffler, body, at(0)) == [m.Answer.ACCEPTED]
            # Sent again: the first one counts, and all of it.
            again = upload(TASK, b"\0\0\0", number=3)
            assert take(shuffler, again, at(0)) == [m.Answer.REPLAYED]
            (state,) = advance(shuffler, at(0, OVER))
            assert (state.size, shuffler.counts()["unopened"]) == (sent, 2)
            assert analyzer.take(shuffler.fetch(1)).num_users == 25

    def test_a_record_in_two_uploads_does_not_make_more_devices_than_records(self, tmp_path):
        mine = sorted(record(b"\1", TASK) for _ in range(2))
        shares = [mine[:1], mine, mine[1:]]
        with shuffler_for(TASK, tmp_path) as shuffler, analyzer_for(TASK, tmp_path) as analyzer:
            for number in range(25):
                answer(shuffler, TASK, number)
            for number, share in enumerate(shares, start=90):
                take(shuffler, packed_upload(share, number=number), at(0))
            advance(shuffler, at(0, OVER))
            opened = analyzer.take(shuffler.fetch(1))
        assert opened.num_users in {26, 27}  # in bytewise order one of three, or two

    def test_of_two_keys_the_larger_class_is_released_and_the_other_waits(self, tmp_path):
        with (
            shuffler_for(TASK, tmp_path) as shuffler,
            analyzer_for(TASK, tmp_path, opening_keys=BOTH_KEYS) as analyzer,
        ):
            for number in range(46):
                key = NEW_KEY if number < 22 else ANALYZER_KEY
                answer(shuffler, TASK, number, analyzer=key)
            advance(shuffler, at(0, OVER))
            one = analyzer.take(shuffler.fetch(1))
            assert (one.num_users, one.counts["num_held"]) == (24, 22)
            for number in range(60, 83):
                answer(shuffler, TASK, number, epoch=1, analyzer=ANALYZER_KEY)
            answer(shuffler, TASK, 90, epoch=1, analyzer=NEW_KEY)
            answer(shuffler, TASK, 91, epoch=1, analyzer=NEW_KEY)
            advance(shuffler, at(1, OVER))
            two = analyzer.take(shuffler.fetch(2))
            assert (two.num_users, two.counts["num_held"]) == (24, 23)  # held devices are whole

    def test_too_few_devices_wait_however_many_records_they_send(self, tmp_path):
        with shuffler_for(TASK, tmp_path) as shuffler, analyzer_for(TASK, tmp_path) as analyzer:
            for number in range(19):
                take(shuffler, upload(TASK, bytes(30), number=number), at(0))
            assert advance(shuffler, at(0, OVER))[0].state == "short"
            answer(shuffler, TASK, 30, epoch=1)
            assert advance(shuffler, at(1, OVER))[0].state == "sealed"
            opened = analyzer.take(shuffler.fetch(2))
            assert (opened.num_users, opened.num_dummies >= 19 * 29) == (20, True)
        warned = [each for each in result_of(TASK, opened).warnings if "dummies, where" in each]
        assert len(warned) == 1
        assert "Each may send 34, all of one answer." in warned[0]


class TestAnalyzer:
    @staticmethod
    def records(number):
        return [record(bytes([i % 2]), TASK) for i in range(number)]

    def test_junk_is_of_as_few_devices_as_could_have_sent_it(self, tmp_path):
        task = make_task(**OWN_BARE | {"min_batch": 25, "honest_ppm": 800_000})
        with analyzer_for(task, tmp_path) as analyzer:
            valid = [record(bytes([i % 2]), task) for i in range(50)]
            junk = [record(b"\7", task) for _ in range(3)]
            opened = analyzer.take(batch_of(task, [*valid, *junk], num_true=25))
            assert (opened.num_users, opened.num_dummies) == (24, 26)
            assert opened.num_honest == 20  # a fifth of 25 lies, whoever sent the junk
            # Counted before: each may be of a device of its own.
            again = [*valid[:2], *(record(b"\0", task) for _ in range(40))]
            opened = analyzer.take(batch_of(task, again, number=2, num_true=30))
            assert (opened.num_users, opened.num_honest) == (28, 22)

    def test_what_is_kept_is_counted_as_so_many_devices_with_a_later_batch(self, tmp_path):
        junk = [record(b"\7", TASK) for _ in range(2)]
        with analyzer_for(TASK, tmp_path) as analyzer:
            assert analyzer.take(batch_of(TASK, [*self.records(40), *junk], num_true=20)) is None
            assert analyzer.kept() == [1]
        with analyzer_for(TASK, tmp_path) as analyzer:
            opened = analyzer.take(batch_of(TASK, self.records(30), number=2, num_true=20))
            assert (opened.num_users, opened.num_dummies) == (39, 31)
            assert opened.num_honest == 19
            assert opened.guarantee == TASK.guarantee(19)

    def test_a_batch_of_two_keys_is_the_shufflers_fault(self, tmp_path):
        inner = m.seal(b"\0", NEW_KEY.public_key, m.inner_info(TASK.task_id))
        other = bytes([10]) + inner
        with (
            analyzer_for(TASK, tmp_path, opening_keys=BOTH_KEYS) as analyzer,
            pytest.raises(ProtocolError, match="records under several keys"),
        ):
            analyzer.take(batch_of(TASK, [*self.records(30), other], num_true=25))

    def test_the_head_of_a_batch_has_dummies(self):
        data = batch_of(TASK, self.records(30), num_true=25)
        key = public(SIGNING["shuffler"])
        batch = m.Batch.decode(data, TASK, key)
        assert (batch.num_dummies, batch.num_held) == (5, 0)
        with pytest.raises(ProtocolError):
            m.Batch.decode(data, make_task(), key)
