"""The shuffler: what it takes in, what waits, and that nothing but the multiset leaves it."""

import pytest

from deploy.make_vectors import (
    SEALING,
    make_task,
)
from deploy.roles import (
    GRACE_SECONDS,
    OVER,
    SHUFFLER_KEY,
    SMALL,
    TASK,
    at,
    engine,  # noqa: F401  # each test on each kind of database
    shuffler_for,
    upload,
)
from deploy.steps import advance, forget, open_outer, take
from shuffledp.core.errors import OutputError
from shuffledp.deploy import messages as m
from shuffledp.deploy.messages import Answer
from shuffledp.deploy.wire import Fault, ProtocolError


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


def test_a_fetched_batch_whose_file_could_not_be_deleted_is_deleted_later(tmp_path, monkeypatch):
    with shuffler_for(TASK, tmp_path) as shuffler:
        for index in range(3):
            take(shuffler, upload(TASK, b"\0", number=index), at(0))
        advance(shuffler, at(0, OVER))
        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.unlink", fails)
            with pytest.raises(OutputError, match=r"cannot delete .* no permission"):
                forget(shuffler, 1)
        assert list(tmp_path.glob("batch-*"))
        advance(shuffler, at(1))
        assert not list(tmp_path.glob("batch-*"))
        forget(shuffler, 1)  # once more is once


def fails(*_, **__):
    raise OSError("no permission")


def test_nothing_but_the_multiset_is_released(tmp_path):
    """The same reports in another order, at other times and under other ids: the same bytes."""
    inner = [m.decode_upload(upload(TASK, bytes([i % 2]), number=0), TASK)[0] for i in range(4)]
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
        forget(shuffler, 1)
    everything = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(body[21:53] in everything for body in bodies)


def test_what_a_full_disk_leaves_in_the_log_is_wiped_when_there_is_room(tmp_path, monkeypatch):
    with shuffler_for(TASK, tmp_path, database=None) as shuffler:
        body = b"".join(upload(TASK, b"\1", number=number) for number in range(3))
        take(shuffler, body, at(0))
        shuffler.closed(at(0))

        def fail():
            raise OutputError("cannot write shuffler.db: database or disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(shuffler._store, "wipe_log", fail)
            assert [each.state for each in advance(shuffler, at(0, OVER))] == ["sealed"]
            with pytest.raises(OutputError, match="full"):
                shuffler.closed(at(0, OVER))
        log = tmp_path / "shuffler.db-wal"
        assert log.stat().st_size > 0
        shuffler.closed(at(0, OVER))
        assert log.stat().st_size == 0
