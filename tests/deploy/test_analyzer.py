"""The analyzer: what a batch says, what it keeps for the next, and what is spent for it."""

import pytest

from deploy.make_vectors import (
    SEALING,
    make_task,
)
from deploy.roles import (
    FEW,
    GRACE_SECONDS,
    LAW,
    OVER,
    SHUFFLER_KEY,
    SMALL,
    TASK,
    analyzer_for,
    at,
    batch_of,
    engine,  # noqa: F401  # each test on each kind of database
    record,
    shuffler_for,
    upload,
)
from deploy.steps import advance, take
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import open_ledger, save_ledger
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.errors import BudgetError
from shuffledp.deploy import messages as m
from shuffledp.deploy.analyzer import batch_facts
from shuffledp.deploy.wire import Fault, ProtocolError


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
        # Five may be dishonest, of which two are seen: the last may be honest, under a lost key.
        assert opened.guarantee.num_users == 3
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


def test_a_batch_waits_for_its_key(tmp_path):
    """Otherwise all its reports would count as unopened, and the shuffler would forget them."""
    data = batch_of(TASK, [record(b"\0") for _ in range(3)])
    with analyzer_for(TASK, tmp_path, opening_keys={8: SEALING["analyzer"]}) as analyzer:
        with pytest.raises(ProtocolError, match="key 9, which is not here, and no others"):
            analyzer.take(data)
        analyzer.replace_keys({9: SEALING["analyzer"]})
        assert analyzer.take(data).reports.num_reports == 3


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


@pytest.mark.parametrize("short_batch", ["hold", "drop"])
def test_a_shuffler_releases_no_batch_beyond_its_own_budget(tmp_path, short_batch):
    ledger, task = tmp_path / "ledger.json", make_task(**SMALL, short_batch=short_batch)
    save_ledger(Ledger(epsilon=3.0, delta=1e-6), ledger)
    with shuffler_for(task, tmp_path, ledger=ledger) as shuffler:
        for epoch, states in enumerate(("sealed", "short", "sealed")):
            bodies = (upload(task, b"\0", number=i, epoch=epoch) for i in range(3))
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
        release = ShuffledRelease(profile=task.asked.randomizer.profile, num_users=6)
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


def test_whoever_opens_the_seals_the_batch_says_the_same(tmp_path):
    task = make_task(**SMALL)
    batch = batch_of(task, [*(record(bytes([i % 2]), task) for i in range(9)), record(b"\7", task)])
    asked = []

    def engine_of_pages(function, pages):
        asked.append(function)
        return map(function, pages)

    found = []
    for name, how in (("one", {}), ("other", {"engine": engine_of_pages})):
        (tmp_path / name).mkdir()
        with analyzer_for(task, tmp_path / name, **how) as analyzer:
            opened = analyzer.take(batch)
        found.append((opened.counts, opened.reports.data.tolist(), opened.guarantee))
    assert found[0] == found[1]
    assert len(asked) == 1
