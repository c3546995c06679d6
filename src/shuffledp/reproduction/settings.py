"""How large a reproduction is: as in the paper, or small enough to be tried in seconds."""

from dataclasses import dataclass
from pathlib import Path

from shuffledp.core.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What all figures share.

    Parameters
    ----------
    data : Path or None
        Folder with the data sets.
    fetch : bool
        Download data sets that are not there.
    quick : bool
        Few people, trials and points: shows that everything works, not what the paper shows.
    on_progress : callable, optional
        Called with the stage, the steps done and the steps in total.
    """

    data: Path | None = None
    fetch: bool = False
    quick: bool = False
    on_progress: Progress | None = None

    #: As in the paper, section 5.
    alpha: float = 4.0
    epsilon0: float = 2.5
    num_neighbours: int = 25
    success: float = 0.9

    @property
    def trials(self) -> int:
        """Trials behind each mean and standard deviation."""
        return 2 if self.quick else 10

    @property
    def model_trials(self) -> int:
        """Trials of what trains models; fewer, since a model takes seconds."""
        return 1 if self.quick else 3

    @property
    def resamplings(self) -> int:
        """Resamplings of the local reports in each trial of an attack."""
        return 5 if self.quick else 50

    def staged(self, prefix: str) -> Progress:
        """Return a callback that puts the figure before the stage's name."""

        def report(stage: str, done: int, total: int | None) -> None:
            self.progress(f"{prefix}: {stage}", done, total)

        return report

    def progress(self, stage: str, done: int, total: int | None) -> None:
        """Say how far a stage is."""
        if self.on_progress is not None:
            self.on_progress(stage, done, total)
