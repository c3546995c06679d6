"""Lists of keys as devices get them: none older than what was seen, and the same for all.

And batches as the analyzer gets them: the one that was asked for.
"""

from types import SimpleNamespace

import pytest

from deploy.make_vectors import SIGNING, make_task
from deploy.roles import SMALL, TASK, at, batch_of, record
from shuffledp.core.errors import DataError
from shuffledp.deploy import messages as m
from shuffledp.deploy.client import Client
from shuffledp.deploy.remote import Server, fetch_keys, send_values
from shuffledp.deploy.wire import ProtocolError, Reason


def lists(*serials, until=2**40):
    """Return lists of one key of each serial."""
    key = m.SealKey(number=0, public_key=SIGNING["shuffler"].public_key().public_bytes_raw())
    return [
        m.SignedKeys(serial=serial, not_after=until, keys=(key,)).signed(
            SIGNING["operator"], "shuffler", make_task(**SMALL)
        )
        for serial in serials
    ]


def test_a_device_takes_no_older_list_than_it_has_seen_and_none_that_is_over(tmp_path):
    task = make_task(**SMALL)
    one, two = lists(1, 2)
    (over,) = lists(3, until=int(at(0)))
    for _ in range(2):  # also after a restart
        with Client(task, tmp_path / "device.db") as client:
            if client.kept() is None:
                with pytest.raises(DataError, match="answer first"):
                    client.choose_keys(shuffler=one, analyzer=one, now=at(0))
                client.report("yes", at(0))
                assert client.choose_keys(shuffler=one, analyzer=one, now=at(0)) == (
                    one.keys[0], one.keys[0],
                )  # fmt: skip
                client.choose_keys(shuffler=one, analyzer=two, now=at(0))
            client.choose_keys(shuffler=two, analyzer=two, now=at(0))
            for shuffler, analyzer, now, reason in (
                (one, two, at(0), Reason.CONFLICT),
                (two, one, at(0), Reason.CONFLICT),
                (over, two, at(0, 1), Reason.LATE),
                (two, over, at(0, 1), Reason.LATE),
            ):
                with pytest.raises(ProtocolError) as caught:
                    client.choose_keys(shuffler=shuffler, analyzer=analyzer, now=now)
                assert caught.value.reason is reason


def agreed(of_shuffler, of_analyzer):
    """Return the analyzer's list as a device gets it from both servers."""
    shuffler = SimpleNamespace(keys=lambda *_: of_shuffler)
    return fetch_keys(shuffler, SimpleNamespace(keys=lambda: of_analyzer))[1]


def test_a_list_for_one_device_alone_is_seen_by_asking_both_servers():
    one, two = lists(1, 2)
    assert agreed(one, lists(1)[0]) == one
    with pytest.raises(ProtocolError, match="serials 1 and 2"):
        agreed(one, two)


def test_a_fleet_after_the_last_epoch_is_told_so_before_the_keys_are_asked_for():
    task = make_task(**SMALL)
    with pytest.raises(DataError, match="the task is over"):
        send_values(task, [], num_values=0, now=lambda: at(10_000))


def test_another_batch_than_the_one_asked_for_is_not_taken(monkeypatch):
    """A batch that came before would be published again, and the one asked for be deleted."""
    data = batch_of(TASK, [record(b"\0")], number=1)
    monkeypatch.setattr(Server, "request", lambda *_, **__: data)
    with Server(TASK, "shuffler") as server:
        assert server.batch(1) == data
        with pytest.raises(ProtocolError, match="asked for batch 2, the shuffler answers with b"):
            server.batch(2)
