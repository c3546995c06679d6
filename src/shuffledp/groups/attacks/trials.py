"""``Measured``: one number about a release, over repeated simulations, as tables show it."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from shuffledp.collection.output import write_rows

OWN_REPORT = "own report"
"""Name of the guess that everybody's answer is the report in their own place."""

COLUMNS = (
    "task",
    "measure",
    "arrangement",
    "mean",
    "standard_deviation",
    "num_trials",
    "lower",
    "upper",
    "bound",
    "own_report",
    "better",
)
"""Columns of the CSV form, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a simulation found about one arrangement of the reports.

    Parameters
    ----------
    task : str
        The attack or the task: ``"majority-vote"``, ``"learnability"``.
    measure : str
        What the number is: ``"share of vulnerable people"``.
    arrangement : str
        How reports were arranged: ``"raw"``, ``"within groups"``, ``"uniform"``.
    trials : tuple of float
        One number a trial, at least one.
    lower, upper : float, optional
        Exact confidence limits of the probability, where the number estimates one.
    bound : float, optional
        What a theorem says the probability cannot exceed.
    own_report : tuple of float
        The same number, trial by trial, for the guess that everybody's answer is the report in
        their own place; empty where there is no such guess.

    Examples
    --------
    >>> found = Measured(task="t", measure="m", arrangement="raw", trials=(0.2, 0.4))
    >>> round(found.mean, 6), round(found.standard_deviation, 6)
    (0.3, 0.141421)
    """

    task: str
    measure: str
    arrangement: str
    trials: tuple[float, ...]
    lower: float | None = None
    upper: float | None = None
    bound: float | None = None
    own_report: tuple[float, ...] = ()

    @property
    def better(self) -> str:
        """Which of the task and ``"own report"`` has the larger mean."""
        own = bool(self.own_report) and statistics.fmean(self.own_report) > self.mean
        return OWN_REPORT if own else self.task

    def of_better(self) -> "Measured":
        """Return what the better of the two found, as this attack's."""
        if self.better == self.task:
            return self
        return replace(self, task=OWN_REPORT, trials=self.own_report, own_report=())

    @property
    def mean(self) -> float:
        """Mean over the trials."""
        return statistics.fmean(self.trials)

    @property
    def standard_deviation(self) -> float | None:
        """Sample standard deviation over the trials (divisor: trials - 1); None for one trial."""
        return statistics.stdev(self.trials) if len(self.trials) > 1 else None

    def to_json_dict(self) -> dict[str, object]:
        """Return everything as JSON values, the trials included."""
        return {**self.row(), "trials": list(self.trials)}

    def row(self) -> dict[str, object]:
        """Return the row of the CSV form."""
        values = (
            self.task,
            self.measure,
            self.arrangement,
            self.mean,
            self.standard_deviation,
            len(self.trials),
            self.lower,
            self.upper,
            self.bound,
            statistics.fmean(self.own_report) if self.own_report else None,
            self.better if self.own_report else None,
        )
        return dict(zip(COLUMNS, values, strict=True))


def write_measured(results: Iterable[Measured], path: Path) -> None:
    """Write one row a result; what does not apply stays empty.

    Parameters
    ----------
    results : iterable of Measured
        In the order of the rows.
    path : Path
        The CSV file; floats are written in full precision.
    """
    write_rows((result.row() for result in results), path)
