"""Clients, shuffler and analyzer together on a clock of our own, with faults in between."""

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

from deploy.make_vectors import (
    ANALYZER_KEY,
    make_task,
)
from deploy.roles import (
    DAY,
    OVER,
    SHUFFLER_KEY,
    SMALL,
    TASK,
    analyzer_for,
    at,
    engine,  # noqa: F401  # each test on each kind of database
    shuffler_for,
    upload,
)
from deploy.steps import advance, forget, take
from shuffledp.accounting.account import account
from shuffledp.deploy.client import Client
from shuffledp.deploy.messages import Answer
from shuffledp.deploy.wire import ProtocolError


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
        forget(shuffler, 1)
        forget(shuffler, 1)
        assert shuffler.sealed_after(0) == []
        assert list(tmp_path.glob("*.sdp")) == []
        with pytest.raises(ProtocolError, match="fetched"):
            shuffler.fetch(1)


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


@pytest.mark.slow
def test_any_order_of_events():
    """On the clock of the machine, on each kind of database."""
    found = settings(
        max_examples=15,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Deployment, settings=found)
