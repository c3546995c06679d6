"""When a relay moves on; and messages joined in one body."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.deploy.peers.relay_server import RoundClock
from shuffledp.deploy.wire import join_messages, split_messages


def clock(**options):
    made = RoundClock(**{"round_seconds": 5.0, **options})
    made.begin(100.0)
    return made


@pytest.mark.parametrize(
    ("mode", "phase", "options", "early", "late"),
    [
        ("interval", "registration", {}, True, False),
        ("interval", "registration", {"register_seconds": 9.0}, True, True),
        ("interval", "round", {}, False, True),
        ("interval", "hand-in", {}, True, True),
        ("all", "round", {}, True, True),
        ("manual", "round", {}, False, False),
        ("manual", "hand-in", {"hand_in_seconds": 1.0}, True, False),
    ],
)
def test_who_ends_a_phase(mode, phase, options, early, late):
    """``early``: at once, with everybody done. ``late``: after 50 seconds, with somebody not."""
    made = clock(mode=mode, **options)
    assert made.is_over(phase, now=100.0, is_complete=True) is early
    assert made.is_over(phase, now=150.0, is_complete=False) is late
    assert not made.is_over(phase, now=100.0, is_complete=False)
    made.tell()
    assert made.is_over(phase, now=100.0, is_complete=False)
    made.begin(200.0)
    assert not made.is_over(phase, now=200.0, is_complete=False)


def test_seconds_left():
    assert clock().seconds_left("round", now=102.0) == 3.0
    assert clock().seconds_left("round", now=200.0) == 0.0
    assert clock().seconds_left("registration", now=200.0) is None
    assert clock(hand_in_seconds=7.0).seconds_left("hand-in", now=100.0) == 7.0
    assert clock().seconds_left("hand-in", now=100.0) == 50.0


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "sometimes"},
        {"round_seconds": 0.0},
        {"register_seconds": -1.0},
        {"hand_in_seconds": float("nan")},
    ],
)
def test_what_no_clock_can_be_made_of(options):
    with pytest.raises(ParameterError):
        RoundClock(**options)


@given(st.lists(st.binary(max_size=5)), st.data())
def test_messages_come_back_and_cut_bodies_are_noticed(messages, data):
    body = join_messages(messages)
    assert split_messages(body) == messages
    ends = {len(join_messages(messages[:count])) for count in range(len(messages) + 1)}
    cut = data.draw(st.integers(0, len(body)))
    if cut not in ends:
        with pytest.raises(DataError, match="cut short"):
            split_messages(body[:cut])
