import signal
import threading

import pytest

from shuffledp.monitoring.simulation import waiting_interrupts


@pytest.fixture(autouse=True)
def usual_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_the_first_interrupt_waits_and_is_raised_at_the_end():
    steps = []
    with pytest.raises(KeyboardInterrupt), waiting_interrupts() as is_waiting:
        assert not is_waiting()
        signal.raise_signal(signal.SIGINT)
        assert is_waiting()
        steps.append("finished")
    assert steps == ["finished"]


def test_a_second_interrupt_does_not_wait():
    with pytest.raises(KeyboardInterrupt), waiting_interrupts():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("the second should not wait")


def test_without_an_interrupt_nothing_happens():
    with waiting_interrupts() as is_waiting:
        assert not is_waiting()


def test_another_error_comes_first():
    with pytest.raises(ZeroDivisionError), waiting_interrupts():
        signal.raise_signal(signal.SIGINT)
        raise ZeroDivisionError


def test_it_can_be_switched_off():
    with pytest.raises(KeyboardInterrupt), waiting_interrupts(enabled=False) as is_waiting:
        assert not is_waiting()
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it should not wait")


def test_other_threads_and_other_handlers_are_left_alone():
    found = []

    def run():
        with waiting_interrupts() as is_waiting:
            found.append(is_waiting())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with waiting_interrupts():
        found.append(signal.getsignal(signal.SIGINT))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert found == [False, signal.SIG_IGN]
