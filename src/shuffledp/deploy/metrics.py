"""Numbers for the operator, in Prometheus' text format: of the server, never of a report."""

from collections.abc import Mapping
from typing import Final

#: By name: kind, the name of its label if it has one, and what it is.
METRICS: Final[Mapping[str, tuple[str, str, str]]] = {
    "shuffledp_shuffler_reports_total": ("counter", "outcome", "Reports by what became of them."),
    "shuffledp_shuffler_queue_reports": ("gauge", "", "Reports that wait to be stored."),
    "shuffledp_shuffler_commit_seconds": ("summary", "", "Time to store what came together."),
    "shuffledp_shuffler_waiting_reports": ("gauge", "", "Reports stored and not released."),
    "shuffledp_shuffler_least_batch_reports": ("gauge", "", "Fewest reports in a batch."),
    "shuffledp_shuffler_short_epochs": ("gauge", "", "Closed epochs whose reports wait for more."),
    "shuffledp_shuffler_batches": ("gauge", "state", "Batches by state."),
    "shuffledp_shuffler_sealed_age_seconds": (
        "gauge", "", "Time since the oldest batch that nobody has fetched was due."
    ),
    "shuffledp_shuffler_oldest_key_age_seconds": (
        "gauge", "", "Time since the first epoch began whose key is kept."
    ),
    "shuffledp_shuffler_keys_left_seconds": (
        "gauge", "", "Time until the last epoch ends that has a key."
    ),
    "shuffledp_shuffler_task_left_seconds": ("gauge", "", "Time until the task's last epoch ends."),
    "shuffledp_shuffler_key_present": ("gauge", "", "Whether the present epoch has a key."),
    "shuffledp_analyzer_batches": ("gauge", "state", "Batches published, and refused."),
    "shuffledp_analyzer_shuffler_answers": ("gauge", "", "Whether the shuffler answered last."),
    "shuffledp_analyzer_shuffler_answered_timestamp_seconds": (
        "gauge", "", "When the shuffler answered last, in seconds since 1970."
    ),
    "shuffledp_analyzer_newest_batch_reports": ("gauge", "", "Reports in the newest batch."),
    "shuffledp_analyzer_budget_epsilon": ("gauge", "", "Budget of the ledger."),
    "shuffledp_analyzer_budget_left_epsilon": ("gauge", "", "What is left of it."),
}  # fmt: skip


class Metrics:
    """The numbers of one role at a moment; written by one thread, read by another."""

    def __init__(self, role: str) -> None:
        self._prefix = f"shuffledp_{role}_"
        self._values: dict[tuple[str, str], float] = {}

    def set(self, name: str, value: float, label: str = "") -> None:
        """Set a number; raise `KeyError` for a name that is not listed."""
        METRICS[self._prefix + name]
        self._values[name, label] = value

    def observe(self, name: str, value: float) -> None:
        """Add one to the count of a summary, and a value to its sum."""
        METRICS[self._prefix + name]
        for part, amount in ((f"{name}_sum", value), (f"{name}_count", 1)):
            self._values[part, ""] = self._values.get((part, ""), 0) + amount

    def text(self) -> str:
        """Return all numbers with their explanations."""
        values, lines = sorted(self._values.items()), []
        for full, (kind, label_name, explanation) in METRICS.items():
            name = full.removeprefix(self._prefix)
            parts = {f"{name}_sum", f"{name}_count"} if kind == "summary" else {name}
            found = [
                (part, f'{{{label_name}="{label}"}}' if label_name else "", value)
                for (part, label), value in values
                if part in parts
            ]
            if found:
                lines += [f"# HELP {full} {explanation}", f"# TYPE {full} {kind}"]
                lines += [f"{self._prefix}{part}{label} {value}" for part, label, value in found]
        return "".join(line + "\n" for line in lines)
