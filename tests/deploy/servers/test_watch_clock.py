"""Nothing that cannot be undone hangs on one reading of a clock."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from deploy.make_vectors import make_task
from deploy.roles import at, shuffler_for, upload
from deploy.steps import advance, take
from shuffledp.core.errors import ParameterError
from shuffledp.deploy.messages import Answer, decode_upload
from shuffledp.deploy.servers.watch import Clock, clock_of
from shuffledp.deploy.shuffler_server import Intake, ShufflerWatch

DAY = 86_400.0
TASK = make_task(min_batch=3, honest_ppm=1_000_000, epsilon="2")
BEGIN = at(0, 3600)


class Machine:
    """A clock of the day that can be set, and one that cannot."""

    def __init__(self, begin=BEGIN, last=None):
        self.passed, self.offset = 0.0, begin
        self.clock = Clock(DAY, last, day=self.day, steady=lambda: self.passed)

    def day(self):
        return self.passed + self.offset

    def after(self, seconds, *, jump=0.0):
        """Return what is believed after some time, in which the clock was set by ``jump``."""
        self.passed, self.offset = self.passed + seconds, self.offset + jump
        return self.clock()


@pytest.mark.parametrize("days", [400, -400, 1.01, -1.01])
def test_a_jump_beyond_an_epoch_is_not_believed_until_it_is_taken_back(days):
    machine = Machine()
    assert machine.after(1) == at(0, 3601)
    assert machine.after(1, jump=days * DAY) is None
    assert machine.after(3) is None
    assert machine.after(1, jump=-days * DAY) == at(0, 3606)


def test_a_jump_within_an_epoch_moves_the_time_by_as_long_as_it_lasts():
    machine = Machine()
    assert machine.after(4, jump=20 * 3600) == at(0, 3600 + 8)
    assert machine.after(0, jump=-20 * 3600) == at(0, 3604)
    machine = Machine()
    assert machine.after(600, jump=600) == at(0, 3600 + 1200)  # which it is from now on
    assert machine.after(5) == at(0, 3600 + 1205)


def test_what_was_stored_last_is_held_against_the_clock_of_a_server_that_starts():
    assert Machine(at(0, 10), last=at(0)).after(0) == at(0, 10)
    for begin in (at(400), at(0) - 2 * DAY):
        assert Machine(begin, last=at(0)).after(0) is None
        assert Machine(begin).after(0) == begin  # accepted


@pytest.mark.parametrize(("days", "is_believed"), [(0.9, True), (1.1, False), (400, False)])
@pytest.mark.parametrize("sign", [-1, 1])
def test_at_a_first_start_the_clock_is_held_against_the_first_epoch(
    monkeypatch, sign, days, is_believed
):
    now = TASK.start + sign * days * DAY
    monkeypatch.setattr("time.time", lambda: now)
    assert (clock_of(TASK, None)() is not None) == is_believed
    assert clock_of(TASK, None, is_accepted=True)() == clock_of(TASK, now - 60)() == now


@given(st.lists(st.tuples(st.floats(0, 3600), st.floats(-1000 * DAY, 1000 * DAY)), max_size=30))
def test_the_time_is_never_ahead_of_the_clock_nor_goes_faster_than_twice(steps):
    machine = Machine()
    for seconds, jump in steps:
        found = machine.after(seconds, jump=jump)
        if found is not None:
            assert found <= machine.day()
            assert found <= BEGIN + 2.0 * machine.passed + 1e-3  # of rounding at 2e9 seconds


def test_a_clock_that_is_wrong_for_four_seconds_costs_nothing(tmp_path, capsys):
    machine = Machine()
    with shuffler_for(TASK, tmp_path, database=None) as shuffler:
        watch = ShufflerWatch(shuffler)
        intake = Intake(shuffler, machine.clock, watch)

        def sent(number):
            body = upload(TASK, b"\1", number=number)
            report = decode_upload(body, TASK)

            async def ask():
                storing = asyncio.ensure_future(intake.run())
                try:
                    return await intake.take(report)
                finally:
                    storing.cancel()

            return asyncio.run(ask())

        assert sent(1) == [Answer.ACCEPTED]
        machine.after(1, jump=400 * DAY)
        with pytest.raises(HTTPException, match="503"):
            sent(2)
        watch.clock_jumped(machine.clock() is None)
        assert "--accept-clock" in watch.reason()
        machine.after(3, jump=-400 * DAY)
        watch.clock_jumped(machine.clock() is None)
        assert watch.reason() == ""
        assert sent(2) == [Answer.ACCEPTED]
        assert sent(3) == [Answer.ACCEPTED]
        assert advance(shuffler, machine.clock()) == []
        assert shuffler.last_time() == int(machine.clock())
        (state,) = advance(shuffler, at(1, 3600))
        assert (state.state, state.size) == ("sealed", 3)
    events = [
        line.split('"event": "')[1].split('"')[0]
        for line in capsys.readouterr().err.split("\n")[:-1]
    ]
    assert events == ["clock_jumped", "clock_back"]


@pytest.mark.parametrize("seconds", [-50.0, float("nan"), float("inf")])
def test_a_time_of_grace_is_no_negative_number(tmp_path, seconds):
    with pytest.raises(ParameterError, match="grace_seconds"):
        shuffler_for(TASK, tmp_path, database=None, grace_seconds=seconds)


def test_reports_of_a_closed_epoch_stay_late(tmp_path):
    with shuffler_for(TASK, tmp_path, database=None) as shuffler:
        advance(shuffler, at(1, 3600))
        assert take(shuffler, upload(TASK, b"\1", number=1), at(0)) == [Answer.LATE]
