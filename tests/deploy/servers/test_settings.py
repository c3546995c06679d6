"""Keys of servers: destroyed when they have served, and rotated."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from deploy.roles import GRACE_SECONDS, OVER, at, sent
from deploy.steps import advance, take
from shuffledp.cli.main import main
from shuffledp.core.errors import DataError, OutputError
from shuffledp.deploy.analyzer_server import open_analyzer
from shuffledp.deploy.messages import Answer
from shuffledp.deploy.servers.settings import (
    ShufflerSettings,
    destroy_key,
    keys_of,
    read_list,
    read_task,
    rotate,
    sealing_keys,
    write_task,
)
from shuffledp.deploy.shuffler_server import destroy_finished, open_shuffler
from shuffledp.deploy.wire import ProtocolError


# ---------------------------------------------------------------- destroyed
def test_a_key_goes_when_all_of_its_epoch_is_opened(make):
    task, settings, _ = make()
    folder = settings.sealing_keys
    with open_shuffler(settings) as shuffler:
        for epoch, numbers in ((0, (1, 2)), (1, (3,))):  # the first batch is short, and waits
            take(shuffler, sent(task, settings, epoch=epoch, numbers=numbers), at(epoch))
        assert list(destroy_finished(shuffler, folder)) == []
        advance(shuffler, at(0, OVER))
        assert (shuffler.unreleased(), shuffler.num_unreleased()) == ([1], 3)
        assert shuffler.num_short_epochs() == 1
        assert list(destroy_finished(shuffler, folder)) == [0]  # what waits is opened
        advance(shuffler, at(1, OVER))
        assert shuffler.sealed_after(0) == [2]
        assert list(destroy_finished(shuffler, folder)) == [1]
        assert list(destroy_finished(shuffler, folder)) == []
        late = sent(task, settings, epoch=0, numbers=(1,))
        assert take(shuffler, late, at(1, OVER)) == [Answer.LATE]
        assert shuffler.epochs_with_keys == list(range(2, 30))
    assert list(sealing_keys(folder)) == list(range(2, 30))


def test_a_key_that_cannot_be_destroyed_is_destroyed_later(make, monkeypatch):
    _, settings, _ = make()
    with open_shuffler(settings) as shuffler:
        advance(shuffler, at(0, OVER))

        def fail(_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", fail)
            with pytest.raises(OutputError, match="cannot destroy"):
                list(destroy_finished(shuffler, settings.sealing_keys))
        assert list(destroy_finished(shuffler, settings.sealing_keys)) == [0]


def test_a_key_is_destroyed_by_hand_only_when_nothing_needs_it(make, capsys, tmp_path):
    task, settings, _ = make()
    config = str(tmp_path / "task" / "shuffler.toml")

    def destroy(*arguments):
        status = main(["keys", "destroy", "--config", config, *arguments])
        said = capsys.readouterr()
        return status, said.out + said.err

    with open_shuffler(settings) as shuffler:
        take(shuffler, sent(task, settings, epoch=0, numbers=(1, 2)), at(0))
        shuffler.closed(at(0, OVER))  # and then it was stopped
        assert "in use by another program" in destroy("--epoch", "0")[1]
    status, said = destroy("--epoch", "0")
    assert status == 2
    assert "has reports that are not released" in said
    assert "still takes reports in" in destroy("--epoch", "1")[1]
    assert "--epoch" in destroy("--number", "1")[1]
    with open_shuffler(settings) as shuffler:
        take(shuffler, sent(task, settings, epoch=1, numbers=(3,)), at(1))
        advance(shuffler, at(1, OVER))
    assert destroy("--epoch", "0") == (0, "the key of epoch 0 is destroyed\n")
    assert destroy("--epoch", "0") == (0, "the key of epoch 0 is gone already\n")
    assert destroy("--epoch", "77") == (0, "the key of epoch 77 is gone already\n")


# ---------------------------------------------------------------- rotated
@pytest.mark.slow
def test_rotation_adds_keys_of_epochs_to_come_and_never_replaces_one(make, tmp_path):
    task, settings, _ = make(num_epochs=600)
    before = read_list(settings.public_keys, task, "shuffler")
    assert (before.serial, len(before.keys)) == (256, 256)
    with pytest.raises(ProtocolError, match="no key for epoch 256"):
        before.key_of_epoch(256)
    keys = {number: keys_of(settings, task)[number] for number in range(256)}
    made, _ = rotate(tmp_path / "task", at(10, GRACE_SECONDS))
    assert made == range(256, 266)
    after = read_list(settings.public_keys, task, "shuffler")
    assert (after.serial, len(after.keys)) == (266, 256)
    assert after.key_of_epoch(10) == before.key_of_epoch(10)
    assert after.key_of_epoch(265).number == 9
    now = keys_of(settings, task)
    assert all(_same(now[epoch], key) for epoch, key in keys.items())
    with pytest.raises(ProtocolError, match="no key for epoch 9"):
        after.key_of_epoch(9)
    assert rotate(tmp_path / "task", at(10, GRACE_SECONDS))[0] == range(266, 266)
    assert rotate(tmp_path / "task", at(590))[0] == range(589, 600)  # after a long pause
    with pytest.raises(DataError, match="begins with epoch 589, and by this clock it is epoch 10:"):
        rotate(tmp_path / "task", at(10))  # not that each epoch to come has a key
    assert rotate(tmp_path / "task", at(588))[0] == range(600, 600)  # set back by a little
    with open_shuffler(settings) as shuffler:
        answers = take(shuffler, sent(task, settings, epoch=590, numbers=(1,)), at(590))
        assert answers == [Answer.ACCEPTED]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "most"), [("x25519", 256), ("hybrid", 48)])
def test_lists_have_as_many_keys_as_devices_read(make, tmp_path, kind, most):
    task, settings, analyzer_settings = make(seal=kind, num_epochs=400)
    folder, now = tmp_path / "task", task.start
    listed = read_list(settings.public_keys, task, "shuffler")
    assert [len(listed.keys), listed.serial] == [most] * 2
    for epoch in range(1, 52):  # the analyzer gets a new key in each
        rotate(folder, now + (epoch - 2) * task.epoch_seconds)
    opening = read_list(analyzer_settings.public_keys, task, "analyzer")
    assert len(opening.keys) == min(most, 52)
    assert opening.key_from(51).first_epoch == 51
    rotate(folder, now + 100 * task.epoch_seconds)
    listed = read_list(settings.public_keys, task, "shuffler")
    assert (len(listed.keys), listed.serial) == (most, min(99 + most, 400))
    assert len(settings.public_keys.read_bytes()) < 1 << 16
    assert set(keys_of(settings, task)) >= set(range(99, listed.serial))


def _same(one, other):
    return one.private_bytes_raw() == other.private_bytes_raw()


def test_reports_sealed_before_and_after_rotation_are_opened_until_the_old_key_goes(
    make, tmp_path, capsys, monkeypatch
):
    """The new key is used from an epoch to come on, so that each batch has one."""
    task, settings, analyzer_settings = make()
    config, clock = str(tmp_path / "task" / "analyzer.toml"), [at(0)]
    monkeypatch.setattr("time.time", lambda: clock[0])
    assert main(["keys", "rotate", str(tmp_path / "task")]) == 0
    assert "number 1, from epoch 2 on" in capsys.readouterr().out
    assert main(["keys", "rotate", str(tmp_path / "task")]) == 0
    assert "one is to come already" in capsys.readouterr().out
    with open_shuffler(settings) as shuffler, open_analyzer(analyzer_settings) as analyzer:
        for epoch, key in enumerate((0, 0, 1)):
            body = sent(task, settings, epoch=epoch, numbers=range(3))
            take(shuffler, body, at(epoch, GRACE_SECONDS))
            advance(shuffler, at(epoch, OVER))
            data = shuffler.fetch(epoch + 1)
            size = task.record_bytes
            assert {data[at] for at in range(len(data) - 3 * size, len(data), size)} == {key}
            assert analyzer.take(data).reports.num_reports == 3
    clock[0] = at(2)  # which no server has seen: the task begins at 0
    assert main(["keys", "destroy", "--number", "0", "--config", config]) == 2
    assert "start the analyzer with --accept-clock" in capsys.readouterr().err
    with open_analyzer(analyzer_settings) as analyzer:
        analyzer.note_time(at(1, 60))
    for now, number in ((at(1), "0"), (at(1), "1"), (at(2), "1")):
        clock[0] = now
        assert main(["keys", "destroy", "--number", number, "--config", config]) == 2
        assert "devices seal to now or later" in capsys.readouterr().err
    clock[0] = at(400)
    assert main(["keys", "destroy", "--number", "0", "--config", config]) == 2
    assert "more than an epoch from when the analyzer ran last" in capsys.readouterr().err
    clock[0] = at(2)
    for said in ("destroyed", "gone already"):
        assert main(["keys", "destroy", "--number", "0", "--config", config]) == 0
        assert said in capsys.readouterr().out
    assert main(["keys", "destroy", "--epoch", "0", "--config", config]) == 2
    assert list(sealing_keys(analyzer_settings.opening_keys)) == [1]
    assert main(["keys", "rotate", str(tmp_path / "task")]) == 0
    assert "number 2, from epoch 4 on" in capsys.readouterr().out


def test_a_stopped_rotation_is_run_again(make, tmp_path, monkeypatch):
    task, settings, analyzer_settings = make(num_epochs=300)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rotate(tmp_path / "task", at(10))
    keys_of(settings, task)  # the list names the old ones still
    assert rotate(tmp_path / "task", at(10))[0] == range(256, 265)
    assert 264 in keys_of(settings, task)
    assert keys_of(analyzer_settings, task).keys() == {0, 1}


def test_keys_that_are_not_those_of_the_list_are_refused(make):
    task, settings, analyzer_settings = make()
    for folder, each in (
        (settings.sealing_keys, settings),
        (analyzer_settings.opening_keys, analyzer_settings),
    ):
        other = X25519PrivateKey.generate().private_bytes_raw().hex()
        (folder / "0.key").write_text(other)
        with pytest.raises(DataError, match="another key than the list"):
            keys_of(each, task)
        assert destroy_key(folder, 0)
        assert 0 not in keys_of(each, task)
    (folder / "0.key").write_text("no key")
    with pytest.raises(DataError, match=r"0\.key holds no key of 32 bytes"):
        keys_of(each, task)
    (folder / "0.key").unlink()
    (folder / "0.key").symlink_to("nowhere")
    with pytest.raises(DataError, match=r"cannot read .*0\.key: No such file"):
        keys_of(each, task)


def test_a_file_that_is_damaged_is_named(make, tmp_path):
    make()
    for name, what in (("task.bin", "task"), ("analyzer/keys.bin", "list of keys")):
        path = tmp_path / "task" / name
        whole = path.read_bytes()
        path.write_bytes(whole[:9])
        with pytest.raises(DataError, match=f"cannot use .*{name}: {what}"):
            rotate(tmp_path / "task", at(10))
        path.write_bytes(whole)


def test_a_task_is_written_whole_or_not_at_all(make, tmp_path, monkeypatch):
    task, _, _ = make()
    calls = []

    def fail_later(_):
        calls.append((tmp_path / "other").exists())  # nor does a kill leave half of it
        if len(calls) == 9:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail_later)
    how = {"listen": ("127.0.0.1:1", "127.0.0.1:3"), "grace_seconds": 1.0}
    with pytest.raises(OutputError, match=r"cannot write .*other: No space"):
        write_task(tmp_path / "other", task, Ed25519PrivateKey.generate(), **how)
    assert calls == [False] * 9
    assert list(tmp_path.glob("*other*")) == []


def test_the_folder_of_a_task_is_read_too(make):
    task, settings, _ = make()
    assert read_task(settings.task.parent) == task


def test_a_missing_file_of_settings_is_named_once(tmp_path):
    with pytest.raises(DataError) as caught:
        ShufflerSettings.read(tmp_path / "a.toml")
    assert str(caught.value).count("a.toml") == 1
