"""What a batch costs the budget of those who answer: at the analyzer, and at the shuffler too."""

from pathlib import Path

from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import spend
from shuffledp.accounting.release import ShuffledRelease, honest_users
from shuffledp.deploy.task import Task


def note_of(task: Task, number: int) -> str:
    """Return what a ledger says of a batch."""
    return f"task {task.task_id.hex()[:16]}, batch {number}"


def spend_for_batch(
    ledger: Path, task: Task, *, number: int, root: bytes, num_reports: int
) -> Ledger:
    """Take a batch off the budget, once: under the hash of its records; return the ledger.

    Raises
    ------
    BudgetError
        If the budget does not cover it; nothing is spent.
    """
    honest = honest_users(num_reports, task.honest_ppm / 1_000_000)
    release = ShuffledRelease(profile=task.asked.randomizer.profile, num_users=honest)
    return spend(ledger, release, note_of(task, number), key=root.hex())
