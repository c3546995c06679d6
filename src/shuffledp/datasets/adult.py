"""The UCI Adult census: age is public, income private, marital status the attacker's extra."""

import os
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import DataError
from shuffledp.core.progress import Progress
from shuffledp.datasets.fetching import (
    PublicFile,
    fetch_public_file,
    find_public_file,
)

ADULT_FILE: Final = PublicFile(
    name="adult.data",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
    num_bytes=3_974_305,
    sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    licence="UCI Machine Learning Repository, Becker and Kohavi 1996, CC BY 4.0",
)

#: Answers to "do you earn more than 50,000 dollars a year?", by code.
INCOMES: Final = ("<=50K", ">50K")

_NUM_COLUMNS = 15
_AGE, _MARITAL_STATUS, _INCOME = 0, 5, 14


@dataclass(frozen=True, slots=True, kw_only=True)
class AdultCensus:
    """People of the census of 1994.

    Parameters
    ----------
    ages : ndarray of int64, shape (n,)
        In years; public.
    incomes : ndarray of uint8, shape (n,)
        Index into `INCOMES`; private.
    marital_statuses : ndarray of uint8, shape (n,)
        Index into ``marital_status_names``; known to a well-informed attacker.
    marital_status_names : tuple of str
        In alphabetical order.
    """

    ages: NDArray[np.int64]
    incomes: NDArray[np.uint8]
    marital_statuses: NDArray[np.uint8]
    marital_status_names: tuple[str, ...]

    def __post_init__(self) -> None:
        for each in (self.ages, self.incomes, self.marital_statuses):
            each.setflags(write=False)

    @property
    def num_users(self) -> int:
        """Number of people."""
        return int(self.ages.size)

    def first(self, count: int) -> "AdultCensus":
        """Return the first ``count`` people; the file is in no particular order."""
        return AdultCensus(
            ages=self.ages[:count],
            incomes=self.incomes[:count],
            marital_statuses=self.marital_statuses[:count],
            marital_status_names=self.marital_status_names,
        )


def load_adult(
    folder: str | os.PathLike[str], *, fetch: bool = False, on_progress: Progress | None = None
) -> AdultCensus:
    """Read the census from a folder.

    Parameters
    ----------
    folder : str or path-like
        Has ``adult.data``.
    fetch : bool
        Download the file if it is not there.
    on_progress : callable, optional
        Called while downloading.

    Returns
    -------
    AdultCensus
        32,561 people, if it is the file of UCI. The SHA-256 is compared after a download only.

    Raises
    ------
    DataError
        If there is no such file, or a line of it is not as it should be.
    """
    if fetch:
        path = fetch_public_file(ADULT_FILE, folder, on_progress=on_progress)
    else:
        path = find_public_file(ADULT_FILE, folder)
    ages, marital_statuses, incomes = [], [], []
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            age, marital_status, income = _person(line, f"{path.name}, line {number:,}")
            ages.append(age)
            marital_statuses.append(marital_status)
            incomes.append(income)
    if not ages:
        raise DataError(f"{path.name} is empty")
    names, codes = np.unique(np.array(marital_statuses), return_inverse=True)
    return AdultCensus(
        ages=np.array(ages, dtype=np.int64),
        incomes=np.array(incomes, dtype=np.uint8),
        marital_statuses=codes.astype(np.uint8),
        marital_status_names=tuple(names.tolist()),
    )


def _person(line: str, where: str) -> tuple[int, str, int]:
    """Return age, marital status and the code of the income of one line."""
    values = [value.strip() for value in line.split(",")]
    if len(values) != _NUM_COLUMNS:
        raise DataError(f"{where} has {len(values)} values instead of {_NUM_COLUMNS}")
    income = values[_INCOME].rstrip(".")  # the test file ends its lines with a full stop
    if income not in INCOMES:
        raise DataError(f"{where}: the income is {income[:20]!r} instead of one of {INCOMES}")
    if not (values[_AGE].isdecimal() and int(values[_AGE]) <= 150):
        raise DataError(f"{where}: the age is {values[_AGE][:20]!r} instead of a number of years")
    return int(values[_AGE]), values[_MARITAL_STATUS], INCOMES.index(income)
