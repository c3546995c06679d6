"""Clients, shuffler and analyzer together on a clock of our own, with faults in between."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from deploy.databases import ENGINES, store_of
from deploy.make_vectors import (
    ANALYZER_KEY,
    SEALING,
    SIGNING,
    make_task,
    public,
)
from deploy.steps import advance, open_outer, take
from shuffledp.accounting.account import account
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import open_ledger, save_ledger
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.errors import BudgetError, DataError, DomainError
from shuffledp.deploy import messages as m
from shuffledp.deploy.analyzer import Analyzer, batch_facts
from shuffledp.deploy.client import Client, Limits
from shuffledp.deploy.messages import Answer
from shuffledp.deploy.shuffler import GRACE_SECONDS, Shuffler
from shuffledp.deploy.wire import Fault, ProtocolError, Reason

SMALL = {"min_batch": 3, "honest_ppm": 1_000_000, "epsilon": "2"}
TASK = make_task(**SMALL)
LAW = TASK.asked.randomizer.profile
# Of which three reports keep what two do not.
FEW = SMALL | {"delta": "0.05", "epsilon": "1.93"}
DAY = TASK.epoch_seconds


ENGINE = {"now": "sqlite"}


@pytest.fixture(autouse=True, params=ENGINES)
def engine(request):
    """Each test of this file runs on each kind of database."""
    ENGINE["now"] = request.param
    yield request.param
    ENGINE["now"] = "sqlite"


def shuffler_for(task, folder, **more):
    return Shuffler(
        task,
        folder,
        signing_key=SIGNING["shuffler"],
        sealing_keys=dict.fromkeys(range(task.num_epochs), SEALING["shuffler"]),
        **{"database": store_of(ENGINE["now"], folder), **more},
    )


def analyzer_for(task, folder, **more):
    return Analyzer(
        task,
        folder,
        shuffler_key=public(SIGNING["shuffler"]),
        **{
            "opening_keys": {9: SEALING["analyzer"]},
            "database": store_of(ENGINE["now"], folder),
            **more,
        },
    )


def key_of(epoch):
    """Return the key of an epoch; each epoch's is the same here."""
    return m.SealKey(number=epoch % 256, public_key=public(SEALING["shuffler"]))


SHUFFLER_KEY = key_of(0)


def upload(task, report, *, number, epoch=0, key=None, analyzer=ANALYZER_KEY):
    """Return one sealed report."""
    return m.Report.sealed_for(
        task.task_id,
        report,
        report_id=number.to_bytes(16, "big"),
        epoch=epoch,
        shuffler=key or key_of(epoch),
        analyzer=analyzer,
    ).encode()


def at(epoch, seconds=0):
    return TASK.start + epoch * DAY + seconds


OVER = DAY + GRACE_SECONDS  # when an epoch's batch is due, after its beginning


# ---------------------------------------------------------------- the whole way
def test_reports_travel_from_clients_to_estimates(tmp_path):
    answers = ["yes", "no", "no", "no"]
    sent = []
    with shuffler_for(TASK, tmp_path) as shuffler, analyzer_for(TASK, tmp_path) as analyzer:
        for index, answer in enumerate(answers):
            with Client(TASK, tmp_path / f"client-{index}.db") as client:
                kept = client.report(answer, at(0, 60))
                body = client.sealed(shuffler=SHUFFLER_KEY, analyzer=ANALYZER_KEY)
                assert take(shuffler, body, at(0, 61)) == [Answer.ACCEPTED]
                client.done()
                assert client.is_done
                sent.append(kept.report)
        assert advance(shuffler, at(0, OVER - 1)) == []
        (state,) = advance(shuffler, at(0, OVER))
        assert (state.number, state.state, state.size) == (1, "sealed", 4)
        assert shuffler.sealed_after(0) == [1]
        opened = analyzer.take(shuffler.fetch(1))
        assert sorted(bytes(opened.reports.data)) == sorted(b"".join(sent))
        assert opened.guarantee == TASK.guarantee(4)
        law = TASK.asked.randomizer.profile
        assert opened.guarantee.epsilon == account(law, num_users=4, delta=1e-8).epsilon
        shuffler.forget(1)
        shuffler.forget(1)
        assert shuffler.sealed_after(0) == []
        assert list(tmp_path.glob("*.sdp")) == []
        with pytest.raises(ProtocolError, match="fetched"):
            shuffler.fetch(1)


def test_a_client_sends_the_same_report_after_a_restart_and_whatever_it_is_told(tmp_path):
    with Client(TASK, tmp_path / "c.db") as client:
        first = client.report("yes", at(0))
        one = client.sealed(shuffler=SHUFFLER_KEY, analyzer=ANALYZER_KEY)
    with Client(TASK, tmp_path / "c.db") as client:
        assert client.report("no", at(3)) == first
        other_key = m.SealKey(number=8, public_key=SHUFFLER_KEY.public_key)
        two = client.sealed(shuffler=other_key, analyzer=ANALYZER_KEY)
    assert one != two
    assert one[:20] == two[:20]  # id and epoch


def test_a_client_refuses_what_its_user_would_not_answer(tmp_path):
    with pytest.raises(ProtocolError, match="promises"):
        Client(make_task(epsilon="0.01"), tmp_path / "a.db")
    for limits in (Limits(max_epsilon0=1.0), Limits(least_batch=100), Limits(max_epsilon0=np.nan)):
        with pytest.raises(ProtocolError) as caught:
            Client(TASK, tmp_path / "b.db", limits=limits)
        assert caught.value.reason is Reason.LIMIT
    single = make_task(min_batch=1, honest_ppm=1_000_000, epsilon="2")
    with pytest.raises(ProtocolError, match="at least 1 reports"):
        Client(single, tmp_path / "b.db")
    Client(single, tmp_path / "d.db", limits=Limits(least_batch=1)).close()
    Client(TASK, tmp_path / "e.db", limits=Limits(operator_key=TASK.operator_key)).close()
    with Client(TASK, tmp_path / "c.db") as client:
        for now, reason in ((at(-1), Reason.EARLY), (at(30), Reason.LATE)):
            with pytest.raises(ProtocolError) as caught:
                client.report("yes", now)
            assert caught.value.reason is reason
        with pytest.raises(DomainError):
            client.report("perhaps", at(0))
        with pytest.raises(DataError, match="answer first"):
            client.sealed(shuffler=SHUFFLER_KEY, analyzer=ANALYZER_KEY)
        assert not client.is_done
    with pytest.raises(DataError, match="other terms"):
        Client(make_task(**SMALL, info="another"), tmp_path / "c.db")


# ---------------------------------------------------------------- the shuffler
def test_each_upload_is_answered_report_by_report(tmp_path):
    with shuffler_for(TASK, tmp_path) as shuffler:
        first = upload(TASK, b"\0", number=1)
        again = upload(TASK, b"\0", number=1)  # sealed anew
        early = upload(TASK, b"\0", number=2, epoch=1)
        never = upload(TASK, b"\0", number=2, epoch=30)
        key = upload(
            TASK, b"\0", number=3, key=m.SealKey(number=1, public_key=SHUFFLER_KEY.public_key)
        )
        answers = take(shuffler, first + first + again + early + never + key, at(0))
        assert [each.name for each in answers] == [
            "ACCEPTED", "ACCEPTED", "REPLAYED", "EARLY", "EARLY", "UNKNOWN_KEY",
        ]  # fmt: skip
        late = upload(TASK, b"\0", number=4)
        assert take(shuffler, late, at(0, OVER)) == [Answer.LATE]
        advance(shuffler, at(0, OVER))
        assert take(shuffler, late, at(0)) == [Answer.LATE]  # also if the clock goes back
        assert take(shuffler, first, at(0)) == [Answer.LATE]  # its id is forgotten
        with pytest.raises(ProtocolError) as caught:
            take(shuffler, first[:-1], at(0))
        assert caught.value.fault is Fault.CLIENT
        assert shuffler.counts() == {
            "accepted": 1, "repeated": 1, "replayed": 1, "early": 2, "unknown_key": 1, "late": 3,
        }  # fmt: skip


def test_a_batch_that_is_too_small_waits_or_is_dropped(tmp_path):
    for name, number in (("hold", 2), ("drop", 0)):
        task = make_task(**SMALL, short_batch=name)
        folder = tmp_path / name
        folder.mkdir()
        with shuffler_for(task, folder) as shuffler:
            for index in range(2):
                take(shuffler, upload(task, b"\0", number=index), at(0))
            assert advance(shuffler, at(0, OVER))[0].state in ("short", "dropped")
            take(shuffler, upload(task, b"\1", number=2, epoch=1), at(1, GRACE_SECONDS))
            (state,) = advance(shuffler, at(1, OVER))
            assert state.state == ("sealed" if name == "hold" else "dropped")
            assert shuffler.sealed_after(0) == ([number] if number else [])
            with pytest.raises(ProtocolError):
                shuffler.fetch(1)
            with pytest.raises(ProtocolError, match="no batch 9"):
                shuffler.fetch(9)


def test_what_does_not_open_or_stands_twice_does_not_count(tmp_path):
    with shuffler_for(TASK, tmp_path) as shuffler:
        for index in range(3):
            take(shuffler, upload(TASK, b"\0", number=index), at(0))
        other = make_task(**SMALL, info="another")
        take(shuffler, upload(other, b"\0", number=8), at(0))  # bound to another task
        assert advance(shuffler, at(0, OVER))[0].size == 3
        assert shuffler.counts()["unopened"] == 1


def test_the_last_short_batch_is_not_kept_for_ever(tmp_path):
    task = make_task(**SMALL, num_epochs=1)
    with shuffler_for(task, tmp_path) as shuffler:
        take(shuffler, upload(task, b"\0", number=1), at(0))
        assert advance(shuffler, at(5))[0].state == "dropped"


def test_nothing_but_the_multiset_is_released(tmp_path):
    """The same reports in another order, at other times and under other ids: the same bytes."""
    inner = [m.decode_upload(upload(TASK, bytes([i % 2]), number=0), 1)[0] for i in range(4)]
    inner = [open_outer(each, TASK.task_id, SEALING["shuffler"]) for each in inner]
    released = []
    for name, order in (("a", (0, 1, 2, 3)), ("b", (3, 1, 0, 2))):
        folder = tmp_path / name
        folder.mkdir()
        with shuffler_for(TASK, folder) as shuffler:
            for place, index in enumerate(order):
                report_id = (name.encode() * 15) + bytes([place])
                info = m.outer_info(TASK.task_id, 0, report_id)
                sealed = m.seal(inner[index], SHUFFLER_KEY.public_key, info)
                report = m.Report(report_id=report_id, epoch=0, key=0, sealed=sealed)
                take(shuffler, report.encode(), at(0, 100 * place))
            advance(shuffler, at(0, OVER))
            released.append(shuffler.fetch(1))
    assert released[0] == released[1]


def test_after_sealing_no_id_and_no_ciphertext_is_on_disk(tmp_path):
    bodies = [upload(TASK, b"\0", number=index) for index in range(3)]
    with shuffler_for(TASK, tmp_path) as shuffler:
        for body in bodies:
            take(shuffler, body, at(0))
        advance(shuffler, at(0, OVER))
        shuffler.fetch(1)
        shuffler.forget(1)
    everything = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(body[21:53] in everything for body in bodies)


# ---------------------------------------------------------------- the analyzer
def batch_of(task, records, *, number=1, signer="shuffler", num_held=0):
    num_opened = len(records) + num_held
    batch = m.Batch.signed(
        SIGNING[signer],
        task.task_id,
        records,
        number=number,
        epochs=(0, 0),
        record_size=m.sealed_size(task.asked.codec.num_report_bytes),
        num_opened=num_opened,
        num_dishonest=task.most_dishonest(num_opened),
    )
    return b"".join(batch.encode())


def record(report, task=TASK, key=9):
    inner = m.seal(report, ANALYZER_KEY.public_key, m.inner_info(task.task_id))
    return bytes([key]) + inner


def test_what_a_batch_says_counts_the_valid_the_new_and_the_honest(tmp_path):
    task = make_task(**SMALL | {"honest_ppm": 500_000, "epsilon": "2.1"})
    good = [record(bytes([i % 2]), task) for i in range(6)]
    bad = [record(b"\7", task), record(b"\0", TASK), record(b"\0", task, key=3)]
    with analyzer_for(task, tmp_path) as analyzer:
        opened = analyzer.take(batch_of(task, good + bad))
        assert (
            opened.counts["num_released"],
            opened.counts["num_invalid"],
            opened.counts["num_unopened"],
        ) == (9, 1, 2)
        assert opened.reports.num_reports == 6
        assert opened.guarantee.num_users == 4  # five may be dishonest, of which three are seen
        assert analyzer.take(batch_of(task, good + bad)).guarantee == opened.guarantee
        again = analyzer.take(
            batch_of(task, [*good, *(record(b"\0", task) for _ in range(9))], number=2)
        )
        assert (again.counts["num_repeated"], again.reports.num_reports) == (6, 9)
        assert again.guarantee.num_users == 1  # what is repeated is no sign of who is dishonest


@pytest.mark.parametrize(
    ("num_old", "num_honest", "num_reports", "num_kept"), [(4, 4, 9, 0), (2, 5, 5, 2)]
)
def test_a_user_is_hidden_among_the_reports_of_one_key_only(
    tmp_path, num_old, num_honest, num_reports, num_kept
):
    task = make_task(**FEW)
    info = m.inner_info(task.task_id)
    records = [record(b"\0", task) for _ in range(5)]
    records += [b"\3" + m.seal(b"\1", SHUFFLER_KEY.public_key, info) for _ in range(num_old)]
    keys = {9: SEALING["analyzer"], 3: SEALING["shuffler"]}
    with analyzer_for(task, tmp_path, opening_keys=keys) as analyzer:
        opened = analyzer.take(batch_of(task, records))
    assert opened.reports.num_reports == num_reports
    assert opened.counts["num_kept"] == num_kept
    assert opened.guarantee == task.guarantee(num_honest)


def test_what_is_too_few_is_kept_and_counted_once_with_the_next(tmp_path):
    """Also where the same batch comes again, or the ledger refuses one in between."""
    ledger = tmp_path / "ledger.json"
    save_ledger(Ledger(epsilon=2.2, delta=0.05), ledger)
    task = make_task(**FEW)
    batches = [
        batch_of(task, [*(record(b"\0", task) for _ in range(good)), record(b"\7", task)], number=n)
        for n, good in enumerate((2, 2, 2, 3), start=1)
    ]
    with analyzer_for(task, tmp_path, ledger=ledger) as analyzer:
        assert analyzer.take(batches[0]) is None
        assert list(analyzer.taken()) == []
        for _ in range(2):
            assert analyzer.take(batches[0]) is None
            opened = analyzer.take(batches[1])
            assert (opened.reports.num_reports, opened.counts["num_earlier"]) == (4, 2)
            assert opened.guarantee == task.guarantee(2)
        assert analyzer.take(batches[2]) is None
        with pytest.raises(BudgetError):
            analyzer.take(batches[3])
    ledger.unlink()
    save_ledger(Ledger(epsilon=9.0, delta=0.5), ledger)
    with analyzer_for(task, tmp_path, ledger=ledger) as analyzer:
        opened = analyzer.take(batches[3])
        assert (opened.reports.num_reports, opened.counts["num_invalid"]) == (3, 1)
        (entry,) = open_ledger(ledger).entries
        assert entry.releases == ShuffledRelease(profile=LAW, num_users=3) * 1
        assert list(analyzer.taken()) == [2, 4]


@pytest.mark.parametrize("what", ["number", "root", "signer"])
def test_a_shuffler_that_misbehaves_is_noticed(tmp_path, what):
    first = [record(b"\0") for _ in range(3)]
    with analyzer_for(TASK, tmp_path) as analyzer:
        analyzer.take(batch_of(TASK, first))
        data = {
            "number": batch_of(TASK, [record(b"\0") for _ in range(3)]),
            "root": batch_of(TASK, first, number=2),
            "signer": batch_of(TASK, first, number=2, signer="analyzer"),
        }[what]
        with pytest.raises(ProtocolError) as caught:
            analyzer.take(data)
        assert caught.value.fault is Fault.SHUFFLER


def test_a_batch_is_spent_once_and_before_it_is_said(tmp_path):
    ledger = tmp_path / "ledger.json"
    save_ledger(Ledger(epsilon=3.0, delta=1e-6), ledger)
    data = batch_of(TASK, [record(b"\0") for _ in range(3)])
    with analyzer_for(TASK, tmp_path, ledger=ledger) as analyzer:
        analyzer.take(data)
        analyzer.take(data)
        assert len(open_ledger(ledger).entries) == 1
        more = batch_of(TASK, [record(b"\0") for _ in range(3)], number=2)
        with pytest.raises(BudgetError):
            analyzer.take(more)
        with pytest.raises(BudgetError):  # and it does not count as seen
            analyzer.take(more)


def test_a_shuffler_releases_no_batch_beyond_its_own_budget(tmp_path):
    ledger = tmp_path / "ledger.json"
    save_ledger(Ledger(epsilon=3.0, delta=1e-6), ledger)
    with shuffler_for(TASK, tmp_path, ledger=ledger) as shuffler:
        for epoch, states in enumerate(("sealed", "short", "sealed")):
            bodies = (upload(TASK, b"\0", number=i, epoch=epoch) for i in range(3))
            take(shuffler, b"".join(bodies), at(epoch, GRACE_SECONDS))
            (state,) = advance(shuffler, at(epoch, OVER))
            assert state.state == states
            if state.state == "short":  # nothing is spent; who is asked for more may give more
                assert len(open_ledger(ledger).entries) == 1
                ledger.unlink()
                save_ledger(Ledger(epsilon=9.0, delta=1e-6), ledger)
        assert (state.first_epoch, state.size) == (1, 6)
        (entry,) = open_ledger(ledger).entries
        assert entry.key == state.root.hex()
        release = ShuffledRelease(profile=TASK.asked.randomizer.profile, num_users=6)
        assert entry.releases == release * 1


def test_a_result_names_what_was_spent_and_what_is_left(tmp_path):
    ledger = tmp_path / "ledger.json"
    save_ledger(Ledger(epsilon=3.0, delta=1e-6), ledger)
    with analyzer_for(TASK, tmp_path, ledger=ledger) as analyzer:
        opened = analyzer.take(batch_of(TASK, [record(b"\0") for _ in range(3)]))
    budget = batch_facts(TASK, opened)["budget"]
    after = open_ledger(ledger)
    assert budget == {
        "spent_under": opened.root.hex(),
        "epsilon": 3.0,
        "delta": 1e-6,
        "spent": after.spent.upper,
        "left": after.remaining,
    }
    assert 0.0 < budget["left"] < 3.0


# ---------------------------------------------------------------- any order of events, with faults
class Deployment(RuleBasedStateMachine):
    """Each report has an answer that nobody else has, so that one counted twice is seen."""

    def __init__(self):
        super().__init__()
        import tempfile
        from pathlib import Path

        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        from shuffledp import Categories
        from shuffledp.deploy.asked_terms import AskedTerms

        domain = [str(i) for i in range(60)]
        asked = AskedTerms.of(Categories(domain), "k-rr", 1.0)
        self.task = make_task(**SMALL | {"asked": asked, "num_epochs": 6})
        self.now = float(at(0))
        self.sent, self.acknowledged, self.seen = {}, set(), []
        self.restart()

    def restart(self):
        for each in (getattr(self, "shuffler", None), getattr(self, "analyzer", None)):
            if each is not None:
                each.close()
        self.shuffler = shuffler_for(self.task, self.path)
        self.analyzer = analyzer_for(self.task, self.path)

    @rule(seconds=st.integers(0, DAY))
    def wait(self, seconds):
        self.now += seconds

    @precondition(lambda self: len(self.sent) < 60)
    @rule(is_answered=st.booleans())
    def send_new(self, is_answered):
        number = len(self.sent)
        epoch = self.task.epoch_at(self.now)
        body = upload(self.task, bytes([number]), number=number, epoch=epoch or 0)
        self.sent[number] = body
        self._send(number, is_answered)

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), is_answered=st.booleans())
    def send_again(self, data, is_answered):
        self._send(data.draw(st.sampled_from(sorted(self.sent))), is_answered)

    def _send(self, number, is_answered):
        (answer,) = take(self.shuffler, self.sent[number], self.now)
        if answer is Answer.ACCEPTED and is_answered:
            self.acknowledged.add(number)

    @rule(is_killed=st.booleans())
    def batch(self, is_killed):
        advance(self.shuffler, self.now)
        if is_killed:
            self.restart()

    @rule()
    def die(self):
        self.restart()

    @rule(is_killed=st.booleans())
    def collect(self, is_killed):
        for number in self.shuffler.sealed_after(0):
            opened = self.analyzer.take(self.shuffler.fetch(number))
            if is_killed:
                self.restart()
                again = self.analyzer.take(self.shuffler.fetch(number))
                assert again.reports.data.tolist() == opened.reports.data.tolist()
            self.seen += opened.reports.data.tolist()
            self.shuffler.forget(number)

    @invariant()
    def nothing_is_released_twice_and_nothing_is_forged(self):
        assert len(set(self.seen)) == len(self.seen)
        assert set(self.seen) <= set(self.sent)

    def teardown(self):
        """At the end of time each acknowledged report is released, or was in a dropped batch."""
        self.now = float(at(20))
        self.batch(is_killed=False)
        self.collect(is_killed=False)
        states = [
            self.shuffler.batch(number).state
            for (number,) in self.shuffler._store.rows("SELECT number FROM batches")
        ]
        if "dropped" not in states:
            assert self.acknowledged <= set(self.seen)
        assert all(state in ("fetched", "short", "dropped") for state in states)
        self.shuffler.close()
        self.analyzer.close()
        self.folder.cleanup()


def test_any_order_of_events():
    """On the clock of the machine, on each kind of database."""
    found = settings(
        max_examples=15,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Deployment, settings=found)
