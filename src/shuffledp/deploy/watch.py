"""What an operator is told of a server: events, numbers, and whether it is ready."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from shuffledp.accounting.ledger_files import open_ledger
from shuffledp.core.errors import BudgetError, ShuffledpError
from shuffledp.deploy.events import EventLog
from shuffledp.deploy.key_files import destroy_finished
from shuffledp.deploy.metrics import Metrics
from shuffledp.deploy.shuffler import BatchState, Shuffler

# Counting what is stored reads all of it: it may take so large a part of the time.
_COUNTING_SHARE = 0.05

_STATES = ("closed", "short", "sealed", "fetched", "dropped")


@dataclass(slots=True)
class Watch:
    """Of one server: its log, its numbers, and why it is not ready, by subject."""

    log: EventLog
    metrics: Metrics
    problems: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, role: str) -> "Watch":
        """Return one of a role."""
        return cls(EventLog(role), Metrics(role))

    def store_failed(self, error: Exception) -> None:
        """Note that something could not be written; said once until it works again."""
        if self.problems.get("store") != str(error):
            self.problems["store"] = str(error)
            self.log.say("store_failed", reason=str(error))

    def store_works(self) -> None:
        """Note that something was written."""
        if self.problems.pop("store", None) is not None:
            self.log.say("store_works")

    def background_failed(self, error: BaseException) -> None:
        """Note that work in the background ended, and that the server will."""
        self.problems["background"] = f"work in the background ended: {type(error).__name__}"
        self.log.say("server_failed", reason=self.problems["background"])

    def reason(self) -> str:
        """Return in one line why the server is not ready; empty if it is."""
        return " ".join("; ".join(dict(self.problems).values()).split())


class ShufflerWatch:
    """Follows a shuffler; called between its steps, on its thread."""

    def __init__(self, watch: Watch, shuffler: Shuffler, keys: Path | None = None) -> None:
        """``keys`` is the folder of keys of epochs, which are destroyed when they have served."""
        self.watch, self._shuffler, self._keys = watch, shuffler, keys
        self._next_count, self._last_closed = 0.0, 0
        watch.metrics.set("least_batch_reports", shuffler.task.min_batch)

    def stored(self, seconds: float, num_left: int) -> None:
        """Note that reports are on disk, how long it took, and how many wait."""
        self.watch.metrics.observe("commit_seconds", seconds)
        self.watch.metrics.set("queue_reports", num_left)
        self.watch.store_works()

    def closed(self, number: int) -> None:
        """Note that a batch has its members; said once, however often it is tried."""
        if number != self._last_closed:
            self.watch.log.say("batch_closed", batch=number)
        self._last_closed = number

    def released(self, state: BatchState) -> None:
        """Note what became of a batch."""
        self._next_count = 0.0
        if state.state == "sealed":
            self.watch.log.say("batch_sealed", batch=state.number, reports=state.size or 0)
        elif state.state in ("short", "dropped"):
            self.watch.log.say(f"batch_{state.state}", batch=state.number)

    def tick(self, now: float) -> None:
        """Destroy keys that have served, and bring the numbers up to date."""
        if self._keys is not None:
            for epoch in destroy_finished(self._shuffler, self._keys):
                self.watch.log.say("key_destroyed", epoch=epoch)
        if "store" in self.watch.problems:  # who waits until it is ready sends nothing meanwhile
            self._shuffler.try_store()
            self.watch.store_works()
        self._set_numbers(now)

    def _set_numbers(self, now: float) -> None:
        """Bring the numbers up to date."""
        shuffler, task, metrics = self._shuffler, self._shuffler.task, self.watch.metrics
        for outcome, number in shuffler.counts().items():
            metrics.set("reports_total", number, outcome)
        if time.monotonic() >= self._next_count:
            begun = time.monotonic()
            metrics.set("waiting_reports", shuffler.num_unreleased())
            took = time.monotonic() - begun
            self._next_count = time.monotonic() + took / _COUNTING_SHARE
        found = shuffler.overview()
        for state in _STATES:
            metrics.set("batches", found.states.get(state, 0), state)
        metrics.set("short_epochs", found.num_short_epochs)
        due = found.first_sealed_epoch
        age = 0.0 if due is None else now - shuffler.end_of(due)
        metrics.set("sealed_age_seconds", max(0.0, age))
        epochs = shuffler.epochs_with_keys
        begins = [task.start + epoch * task.epoch_seconds for epoch in epochs]
        metrics.set("oldest_key_age_seconds", max(0.0, now - begins[0]) if begins else 0.0)
        end = task.start + task.num_epochs * task.epoch_seconds
        metrics.set("task_left_seconds", max(0.0, end - now))
        keys_end = begins[-1] + task.epoch_seconds if begins else now
        metrics.set("keys_left_seconds", max(0.0, keys_end - now))
        present = task.epoch_at(now)
        has_key = present is None or present in epochs
        metrics.set("key_present", int(has_key))
        self.watch.problems.pop("keys", None)
        if not has_key:
            self.watch.problems["keys"] = f"there is no key for epoch {present}: rotate keys"


class AnalyzerWatch:
    """Follows an analyzer."""

    def __init__(
        self, watch: Watch, ledger: Path | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self.watch, self._ledger, self._now = watch, ledger, now
        watch.problems["shuffler"] = "the shuffler has not been asked yet"
        self._is_away = False

    def shuffler_answered(self) -> None:
        """Note that the shuffler is there."""
        metrics = self.watch.metrics
        metrics.set("shuffler_answers", 1)
        metrics.set("shuffler_answered_timestamp_seconds", self._now())
        self.watch.problems.pop("shuffler", None)
        if self._is_away:
            self.watch.log.say("shuffler_back")
        self._is_away = False

    def shuffler_away(self, reason: str) -> None:
        """Note that the shuffler does not answer; said once until it does."""
        self.watch.metrics.set("shuffler_answers", 0)
        self.watch.problems["shuffler"] = reason
        if not self._is_away:
            self.watch.log.say("shuffler_away", reason=reason)
        self._is_away = True

    def published(self, number: int, num_reports: int) -> None:
        """Note that a batch has its result."""
        self.watch.metrics.set("newest_batch_reports", num_reports)
        self.watch.log.say("published", batch=number, reports=num_reports)
        self.watch.store_works()

    def refused(self, number: int, error: ShuffledpError) -> None:
        """Note that nothing is said of a batch."""
        event = "budget_refused" if isinstance(error, BudgetError) else "batch_refused"
        self.watch.log.say(event, batch=number, reason=str(error))

    def tick(self, num_published: int, num_refused: int) -> None:
        """Bring the numbers up to date."""
        metrics = self.watch.metrics
        metrics.set("batches", num_published, "published")
        metrics.set("batches", num_refused, "refused")
        if self._ledger is not None:
            try:
                ledger = open_ledger(self._ledger)
            except ShuffledpError as error:
                self.watch.problems["ledger"] = str(error)
                return
            self.watch.problems.pop("ledger", None)
            metrics.set("budget_epsilon", ledger.epsilon)
            metrics.set("budget_left_epsilon", ledger.remaining)
