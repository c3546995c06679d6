"""Dummies: drawn once, like any report, kept with the batch, and never released twice otherwise."""

import json
import shutil
from collections import Counter
from itertools import starmap

import pytest

from deploy.databases import store_of
from deploy.make_vectors import (
    ANALYZER_KEY,
    RECORD_SIZE,
    SEALING,
    SIGNING,
    make_task,
    open_record,
    public,
)
from deploy.roles import (
    BARE,
    HIDDEN,
    NEW_KEY,
    OVER,
    analyzer_for,
    at,
    batch_of,
    engine,  # noqa: F401  # each test on each kind of database
    record,
    sent,
    shuffler_for,
    upload,
)
from deploy.steps import advance, forget, take
from deploy.test_parts import BOTH_KEYS
from shuffledp import Categories
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import open_ledger, save_ledger
from shuffledp.cli.main import main
from shuffledp.collection.output import write_results
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import DataError
from shuffledp.deploy import messages as m
from shuffledp.deploy.analyzer import batch_facts, result_of
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.remote import checked_record
from shuffledp.deploy.servers.batches import (
    HandedOut,
    open_texts,
    sealed_dummies,
)
from shuffledp.deploy.shuffler import Shuffler
from shuffledp.deploy.shuffler_server import destroy_finished, open_shuffler
from shuffledp.deploy.wire import Fault, ProtocolError
from shuffledp.report.statement import privacy_statement

TASK, NOISY = make_task(**BARE), make_task(**HIDDEN)
KEYS = {key.number: key.public_key for key in (ANALYZER_KEY, NEW_KEY)}


def records_of(data):
    """Return the records of a batch with dummies, and how many are reports."""
    batch = m.Batch.decode(data, TASK, public(SIGNING["shuffler"]))
    return set(batch.records), batch.num_true


def close(shuffler, epoch=0, *, settles=True):
    """Make the batch of an epoch as the server does, and return what was written."""
    (state,) = shuffler.closed(at(epoch, OVER))
    held, _, pages = shuffler.to_open(state)
    opened = list(starmap(open_texts, pages))
    dummies = shuffler.keep_dummies(state, shuffler.seal_dummies(held, opened))
    written = shuffler.write(state, held, opened, dummies)
    return shuffler.settle(state, written) if settles else written


class TestSealing:
    def test_each_class_has_each_answer_and_looks_like_reports(self):
        made = sealed_dummies(NOISY, {9, 10}, KEYS)
        assert [each[0] for each in made if len(each) == 1] == [9, 10]
        for number, key in BOTH_KEYS.items():
            own = [each for each in made if len(each) == RECORD_SIZE and each[0] == number]
            texts = Counter(open_record(NOISY.task_id, each, {number: key}) for each in own)
            assert texts.keys() == {b"\0", b"\1"}  # of each that is possible, sent or not
            # At most 2 t an answer, and all of one size: nothing else is in the batch.
            assert all(0 < each <= 54 for each in texts.values())
        assert {len(each) for each in made} == {1, RECORD_SIZE}

    def test_none_are_alike_and_a_task_without_has_none(self):
        made = [each for _ in range(2) for each in sealed_dummies(NOISY, {9}, KEYS)]
        assert len({each for each in made if len(each) > 1}) == len(made) - 2
        assert sealed_dummies(make_task(), {9}, KEYS) == []

    def test_numbers_follow_the_law(self):
        # Z is 0, 1 or 2 with probability 1/4, 1/2, 1/4, about.
        law = DummyLaw.from_text("laplace:1.4427:1")
        task = make_task(**HIDDEN | {"dummies": law, "epsilon": "9", "delta": "0.9"})
        drawn = Counter()
        for _ in range(150):
            made = sealed_dummies(task, {9}, KEYS)
            texts = [open_record(task.task_id, each, BOTH_KEYS) for each in made if len(each) > 1]
            drawn.update([texts.count(b"\0"), texts.count(b"\1")])
        # Seven standard deviations of a binomial count: a false alarm in 10^11 runs.
        for outcome, numerator in enumerate(law.table):
            mean = 300 * numerator / 2**64
            assert abs(drawn[outcome] - mean) < 7 * (mean * (1 - mean / 300)) ** 0.5


class TestHandedOut:
    def test_the_largest_number_counts_whatever_a_power_cut_left(self, tmp_path):
        path = tmp_path / "handed_out"
        path.touch()
        assert HandedOut(path).newest() == 0
        HandedOut(path).note(12)
        path.write_bytes(path.read_bytes() + b"\n1")  # of 13, which was never handed out
        HandedOut(path).note(13)
        HandedOut(path).note(5)
        assert HandedOut(path).newest() == 13

    @pytest.mark.parametrize("content", [None, b"twelve"])
    def test_a_shuffler_does_not_start_without_it(self, tmp_path, content):
        path = tmp_path / "lost"
        if content:
            path.write_bytes(content)
        with pytest.raises(DataError, match="write the largest number into it that the analyzer"):
            shuffler_for(TASK, tmp_path, handed_out=path)


@pytest.mark.parametrize("task", [TASK, NOISY], ids=["bare", "noisy"])
def test_one_report_is_released_soundly_and_its_estimate_is_unbiased(tmp_path, task):
    with shuffler_for(task, tmp_path) as shuffler, analyzer_for(task, tmp_path) as analyzer:
        take(shuffler, upload(task, b"\1", number=1), at(0))
        (state,) = advance(shuffler, at(0, OVER))
        opened = analyzer.take(shuffler.fetch(1))
    assert state.state == "sealed"
    assert (opened.num_users, opened.num_dummies) == (1, state.size - 1)
    assert opened.reports.num_reports == state.size
    assert opened.guarantee == task.guarantee()
    assert opened.guarantee.epsilon_upper <= 1.0
    assert opened.guarantee.num_users == 1


@pytest.mark.parametrize("task", [TASK, NOISY], ids=["bare", "noisy"])
def test_the_result_has_three_lines_and_is_checked_by_who_collects(tmp_path, task):
    """Reports under two keys, so that dummies were drawn twice."""
    with (
        shuffler_for(task, tmp_path) as shuffler,
        analyzer_for(task, tmp_path, opening_keys=BOTH_KEYS) as analyzer,
    ):
        for number in range(40):
            key = NEW_KEY if number % 4 == 3 else ANALYZER_KEY
            take(shuffler, upload(task, b"\1", number=number, analyzer=key), at(0))
        close(shuffler)
        opened = analyzer.take(shuffler.fetch(1))
    result = result_of(task, opened)
    p, q = task.asked.randomizer.support_probabilities
    variance = 2 * task.dummies.error_variance(2) + 40 * q * (1 - q)
    error = variance**0.5 / (40 * (p - q))
    # Dummies stray by 27 at most for each key.
    assert abs(result.estimates.count[1] - (40 - 40 * q) / (p - q)) <= 54 / (p - q)
    assert result.root_mean_square_error == pytest.approx(error, rel=0.2)
    assert (result.num_users, result.num_dummies) == (40, opened.num_dummies)
    assert result.guarantee.epsilon_upper == task.guarantee().epsilon_upper
    assert result.without_dummies == task.without_dummies(opened.num_honest)
    assert result.without_shuffler.epsilon0 == task.asked.randomizer.epsilon0
    assert "cannot check that there are any" in str(privacy_statement(result))
    folder = tmp_path / "result"
    folder.mkdir()
    write_results(result, folder, parameters=batch_facts(task, opened))
    data = (folder / "privacy.json").read_bytes()
    record = checked_record(task, data)
    assert record["dummies"] == [str(task.dummies)]
    forged = [
        {"guarantee": record["guarantee"] | {"epsilon": {"lower": 0.0, "upper": 0.1}}},
        {"without_dummies": {"epsilon": {"upper": 0.1}}},
        {"dummies": ["laplace:3.0:27"]},
        {"num_dummies": None},
        {"epsilon0": 0.1},
    ]
    for each in forged:
        with pytest.raises(ProtocolError) as caught:
            checked_record(task, json.dumps(record | each).encode())
        assert caught.value.fault is Fault.ANALYZER


def intersected(first, second):
    """Attack: records in both batches are reports, for dummies are new; None if that tells none."""
    (one, num_true), (two, _) = map(records_of, (first, second))
    both = one & two
    return both if len(both) == num_true else None


@pytest.mark.parametrize("is_planted", [False, True])
def test_a_batch_that_is_made_again_does_not_tell_dummies_from_reports(
    tmp_path, is_planted, monkeypatch
):
    """Killed before it was settled, and started again; planted: new dummies each time."""
    if is_planted:
        monkeypatch.setattr(Shuffler, "keep_dummies", lambda _, __, sealed: sealed)
    with shuffler_for(TASK, tmp_path) as shuffler:
        for number in range(3):
            take(shuffler, upload(TASK, b"\1", number=number), at(0))
        close(shuffler, settles=False)
        first = shuffler._batches.read(1)
    with shuffler_for(TASK, tmp_path) as shuffler:
        close(shuffler)
        second = shuffler.fetch(1)
        assert shuffler.fetch(1) == second
    assert (first == second) is not is_planted
    found = intersected(first, second)
    if is_planted:
        texts = {open_record(TASK.task_id, each, BOTH_KEYS) for each in found}
        assert (len(found), texts) == (3, {b"\1"})  # everybody's answer, for certain
    else:
        assert found is None


def test_a_file_that_is_not_the_stores_is_not_handed_out(tmp_path):
    """What another process wrote over it, or a backup of one of the two."""
    with shuffler_for(TASK, tmp_path) as shuffler:
        take(shuffler, upload(TASK, b"\1", number=1), at(0))
        close(shuffler)
        data = bytearray(shuffler.fetch(1))
        data[-1] ^= 1
        shuffler._batches.write(1, bytes(data))
        with pytest.raises(ProtocolError, match="other records than the store says"):
            shuffler.fetch(1)


def test_each_class_has_its_own_and_none_is_released_without(tmp_path):
    with (
        shuffler_for(TASK, tmp_path) as shuffler,
        analyzer_for(TASK, tmp_path, opening_keys=BOTH_KEYS) as analyzer,
    ):
        other = m.SealKey(number=77, public_key=NEW_KEY.public_key)
        for number, key in enumerate((ANALYZER_KEY, ANALYZER_KEY, NEW_KEY, other)):
            take(shuffler, upload(TASK, b"\0", number=number, analyzer=key), at(0))
        shuffler.inner_keys = KEYS  # so the last one is no report
        close(shuffler)
        data = shuffler.fetch(1)
        opened = analyzer.take(data)
    records, num_true = records_of(data)
    assert num_true == 3
    assert Counter(each[0] for each in records).keys() == {9, 10}
    assert min(Counter(each[0] for each in records).values()) > 3
    assert (opened.num_users, opened.num_draws) == (3, 2)
    assert opened.num_honest == 1  # all dummies may be in the part of the other key
    with shuffler_for(TASK, tmp_path, handed_out=tmp_path / "handed_out") as shuffler:
        take(shuffler, upload(TASK, b"\0", number=9, epoch=1), at(1))
        (state,) = shuffler.closed(at(1, OVER))
        held, _, pages = shuffler.to_open(state)
        written = shuffler.write(state, held, starmap(open_texts, pages))  # nobody drew any
        assert (written.root, len(written.held.records)) == (None, 1)


def test_a_batch_below_the_least_waits_and_its_dummies_are_forgotten(tmp_path):
    task = make_task(**BARE | {"min_batch": 3})
    with shuffler_for(task, tmp_path) as shuffler, analyzer_for(task, tmp_path) as analyzer:
        for number in range(2):
            take(shuffler, upload(task, b"\0", number=number), at(0))
        assert close(shuffler).state == "short"
        assert shuffler._store.rows("SELECT * FROM dummies") == []
        take(shuffler, upload(task, b"\0", number=2, epoch=1), at(1))
        assert close(shuffler, 1).state == "sealed"
        assert analyzer.take(shuffler.fetch(2)).num_users == 3


def test_after_sealing_nothing_tells_which_records_are_dummies(tmp_path):
    with shuffler_for(TASK, tmp_path) as shuffler:
        take(shuffler, upload(TASK, b"\1", number=1), at(0))
        (state,) = shuffler.closed(at(0, OVER))
        held, _, pages = shuffler.to_open(state)
        opened = list(starmap(open_texts, pages))
        dummies = shuffler.keep_dummies(state, shuffler.seal_dummies(held, opened))
        assert shuffler.keep_dummies(state, shuffler.seal_dummies(held, opened)) == sorted(dummies)
        shuffler.settle(state, shuffler.write(state, held, opened, dummies))
        # One that was slower draws none, and writes nothing.
        assert shuffler.keep_dummies(state, shuffler.seal_dummies(held, opened)) == ()
        assert shuffler.counts() == {"accepted": 1}
        shuffler.fetch(1)
        forget(shuffler, 1)
    everything = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert not any(each[:40] in everything for each in dummies if len(each) > 1)


@pytest.mark.parametrize("number", [1, 3])
def test_the_budget_pays_for_dummies_once(tmp_path, number):
    ledger = tmp_path / "ledger.json"
    save_ledger(Ledger(epsilon=1.0, delta=1e-6), ledger)
    with shuffler_for(TASK, tmp_path, ledger=ledger) as shuffler:
        for index in range(number):
            take(shuffler, upload(TASK, b"\1", number=index), at(0))
        close(shuffler, settles=False)
        close(shuffler)
        take(shuffler, upload(TASK, b"\1", number=9, epoch=1), at(1))
        assert close(shuffler, 1).state == "short"  # beyond the budget
    (entry,) = open_ledger(ledger).entries
    ((release, _),) = entry.releases.parts
    assert (release.num_users, release.dummies) == (1, TASK.dummies)


class TestAnalyzer:
    @staticmethod
    def dummies(number):
        """Return dummies of each answer."""
        return [record(bytes([i % 2]), TASK) for i in range(number)]

    def test_what_is_invalid_lowers_the_number_of_true_reports(self, tmp_path):
        bad = [record(b"\7", TASK), record(b"\0", NOISY), record(b"\0", TASK)]
        with analyzer_for(TASK, tmp_path) as analyzer:
            data = batch_of(TASK, [*self.dummies(50), *bad, record(b"\1", TASK)], num_true=4)
            opened = analyzer.take(data)
            assert (opened.num_users, opened.num_dummies) == (2, 50)
            assert analyzer.take(data).num_users == 2  # and once more
            again = [*self.dummies(54), bad[2], record(b"\1", TASK)]
            opened = analyzer.take(batch_of(TASK, again, number=2, num_true=2))
            assert (opened.num_users, opened.num_dummies) == (1, 54)  # one was counted before
            assert opened.counts["num_repeated"] == 1
            junk = [*self.dummies(50), record(b"\7", TASK)]
            assert analyzer.take(batch_of(TASK, junk, number=3, num_true=1)) is None
            assert analyzer.kept() == [3]
            opened = analyzer.take(batch_of(TASK, self.dummies(60), number=4, num_true=3))
            assert opened.num_users == 3  # nothing of the third batch

    def test_a_shuffler_that_miscounts_is_noticed(self, tmp_path):
        with analyzer_for(TASK, tmp_path) as analyzer:
            bad = [record(b"\7", TASK) for _ in range(3)]
            with pytest.raises(ProtocolError, match="fewer records are valid") as caught:
                analyzer.take(batch_of(TASK, [*self.dummies(50), *bad], num_true=2))
            assert caught.value.fault is Fault.SHUFFLER
            for num_true in (None, 51):  # of no dummies, or of more reports than records
                with pytest.raises(ProtocolError):
                    analyzer.take(batch_of(TASK, self.dummies(50), num_true=num_true))
            assert analyzer.taken() == {}
        with pytest.raises(ProtocolError, match="only one of batch and task has dummies"):
            m.Batch.decode(
                batch_of(TASK, self.dummies(5), num_true=5),
                make_task(),
                public(SIGNING["shuffler"]),
            )

    def test_a_lost_key_is_named_where_dummies_could_be_taken_for_junk(self, tmp_path):
        with (
            analyzer_for(TASK, tmp_path, opening_keys={8: SEALING["analyzer"]}) as analyzer,
            pytest.raises(ProtocolError, match="sealed to key 9, which is not here"),
        ):
            analyzer.take(batch_of(TASK, self.dummies(50), num_true=2))


@pytest.fixture
def made(make):
    """A task in files whose shuffler adds dummies."""
    changes = {name: BARE[name] for name in ("dummies", "epsilon", "delta", "min_batch", "asked")}
    return make(**changes)


def test_settings_name_the_dummies_or_the_shuffler_does_not_start(made, make, tmp_path, capsys):
    _, settings, _ = made
    config = tmp_path / "task" / "shuffler.toml"
    text = config.read_text()
    with open_shuffler(settings):
        pass
    for changed in ("", 'dummies = "laplace:2.0:27"'):
        config.write_text(text.replace('dummies = "laplace:2.025:27"', changed))
        assert main(["serve", "shuffler", "--check", "--config", str(config)]) == 2
        assert "the task promises laplace:2.025:27" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "task")
    make()
    with config.open("a") as file:
        file.write('dummies = "laplace:2.025:27"\n')
    assert main(["serve", "shuffler", "--check", "--config", str(config)]) == 2
    assert "the task promises none" in capsys.readouterr().err


def test_a_store_from_before_a_batch_was_handed_out_releases_none_of_it(made, tmp_path, capsys):
    """Restored, with all keys: else who has both batches knows everybody's answer."""
    task, settings, _ = made
    config, store = tmp_path / "task" / "shuffler.toml", settings.store

    def verified():
        status = main(["restore", "--verify", "--config", str(config)])
        return status, capsys.readouterr().err

    with open_shuffler(settings) as shuffler:
        take(shuffler, sent(task, settings, epoch=0, numbers=(1, 2)), at(0))
        take(shuffler, sent(task, settings, epoch=1, numbers=(3,)), at(1))
    shutil.copytree(store, tmp_path / "before")
    with open_shuffler(settings) as shuffler:
        assert advance(shuffler, at(0, OVER))[0].state == "sealed"
    shutil.copytree(store, tmp_path / "sealed")
    with open_shuffler(settings) as shuffler:
        handed_out = shuffler.fetch(1)
    # Sealed, and put back: the same bytes, and what came later is still there.
    shutil.rmtree(store)
    shutil.copytree(tmp_path / "sealed", store)
    assert verified() == (0, "")
    with open_shuffler(settings) as shuffler:
        assert shuffler.fetch(1) == handed_out
        assert shuffler.num_unreleased() == 1
    # From before: refused, said, dropped and counted, and the shuffler goes on.
    shutil.rmtree(store)
    shutil.copytree(tmp_path / "before", store)
    status, said = verified()
    assert status == 2
    assert "batch 1: it was handed out, and the store is older" in said
    with open_shuffler(settings) as shuffler:
        assert advance(shuffler, at(0, OVER)) == []
        assert shuffler.sealed_after(0) == []
        assert shuffler.batch(1).state == "dropped"
        assert shuffler.counts()["dropped"] == 2
        assert advance(shuffler, at(1, OVER))[0].state == "sealed"
        assert shuffler.sealed_after(0) == [2]
        assert list(destroy_finished(shuffler, settings.sealing_keys)) == [0, 1]
    assert verified() == (0, "")
    # Without its bytes a sealed batch is refused as well.
    (store / "batch-000002.sdp").unlink()
    status, said = verified()
    assert status == 2
    assert "batch 2: cannot read" in said


def test_of_two_processes_on_one_database_one_draws(tmp_path):
    url = store_of("postgresql", tmp_path)
    with (
        shuffler_for(TASK, tmp_path, database=url) as one,
        shuffler_for(TASK, tmp_path, database=url) as two,
    ):
        take(one, upload(TASK, b"\1", number=1), at(0))
        (state,) = one.closed(at(0, OVER))
        assert two.closed(at(0, OVER)) == []  # the first one leads
        results = []
        for shuffler in (one, two):  # as if the second had been made leader meanwhile
            held, _, pages = shuffler.to_open(state)
            opened = list(starmap(open_texts, pages))
            dummies = shuffler.keep_dummies(state, shuffler.seal_dummies(held, opened))
            results.append((held, opened, dummies, shuffler.write(state, held, opened, dummies)))
        assert results[0][3].root == results[1][3].root
        assert one.settle(state, results[0][3]) == two.settle(state, results[1][3])
        assert one.fetch(1) == two.fetch(1)
        for shuffler, (*given, _) in zip((one, two), results, strict=True):
            shuffler.write(state, *given)  # too late: the same bytes
        assert len(records_of(two.fetch(1))[0]) == one.batch(1).size


def test_many_answers_are_estimated_from_few_people(tmp_path):
    """Also answers that nobody gave get their dummies."""
    labels = [str(number) for number in range(20)]
    asked = AskedTerms.of(Categories(labels), "k-rr", float("inf"), no_local_noise=True)
    task = make_task(**BARE | {"asked": asked})
    with shuffler_for(task, tmp_path) as shuffler, analyzer_for(task, tmp_path) as analyzer:
        for number in range(4):
            take(shuffler, upload(task, b"\3", number=number), at(0))
        close(shuffler)
        opened = analyzer.take(shuffler.fetch(1))
    counts = Counter(opened.reports.data.tolist())
    assert counts.keys() == set(range(20))
    assert max(counts.values()) <= 58
