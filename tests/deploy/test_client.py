"""Devices: one report, whatever a server says, and none that its user would not send."""

import numpy as np
import pytest

from deploy.make_vectors import (
    ANALYZER_KEY,
    make_task,
)
from deploy.roles import (
    BARE,
    HIDDEN,
    SHUFFLER_KEY,
    SMALL,
    TASK,
    at,
    engine,  # noqa: F401  # each test on each kind of database
)
from shuffledp.core.errors import DataError, DomainError
from shuffledp.deploy import messages as m
from shuffledp.deploy.client import Client, Limits
from shuffledp.deploy.wire import ProtocolError, Reason


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


def test_a_report_that_may_have_arrived_under_one_code_keeps_its_id_under_the_next(tmp_path):
    wrong, right, other = (bytes([number] * 16) for number in range(3))
    with Client(TASK, tmp_path / "c.db") as client:
        refused = client.report("yes", at(0), code=wrong)
        client.done(m.Answer.NOT_ADMITTED)
        sent = client.report("yes", at(0), code=right)
        assert sent.report_id != refused.report_id
        assert client.report("yes", at(0), code=other) == sent  # no answer came
        client.done(m.Answer.NOT_ADMITTED)
        assert client.report("yes", at(0), code=other).report_id != sent.report_id


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


def test_dummies_make_single_reports_safe_and_answers_without_noise_need_a_word(tmp_path):
    hidden, bare = make_task(**HIDDEN), make_task(**BARE)
    Client(hidden, tmp_path / "a.db").close()
    with pytest.raises(ProtocolError, match="at least 1 reports"):
        Client(hidden, tmp_path / "b.db", limits=Limits(least_batch=3))
    for limits in (None, Limits(least_batch=1), Limits(max_epsilon0=50.0)):
        with pytest.raises(ProtocolError, match="shuffler and analyst together") as caught:
            Client(bare, tmp_path / "b.db", limits=limits)
        assert caught.value.reason is Reason.LIMIT
    with pytest.raises(ProtocolError, match="epsilon0 = inf"):
        Client(bare, tmp_path / "b.db", limits=Limits(max_epsilon0=50.0, no_local_noise=True))
    with Client(bare, tmp_path / "c.db", limits=Limits(no_local_noise=True)) as client:
        assert client.report("no", at(0)).report == b"\1"
