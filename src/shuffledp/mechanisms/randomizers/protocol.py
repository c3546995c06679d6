"""What every local randomizer offers, and the two things that it makes: reports and counts."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import FingerprintError, ParameterError
from shuffledp.core.profile import LocalProfile

# Probabilities of outputs (columns) given inputs (rows); each row sums to exactly 1.
Channel = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reports:
    """Randomized reports, one user a row.

    Parameters
    ----------
    data : ndarray
        Axis 0 is the users. k-RR: codes, shape (n,). Unary encodings: ``uint8`` rows of
        ceil(k / 8) bytes, bit i of a row (little-endian within a byte) standing for category i.
        Kept as a read-only view.
    fingerprint : str
        Names the exact law that the reports were drawn from; see `LocalRandomizer`.
    """

    data: NDArray[Any]
    fingerprint: str

    def __post_init__(self) -> None:
        if self.data.ndim == 0:
            raise ParameterError("data is a single number: give an array with one user a row")
        object.__setattr__(self, "data", read_only(self.data))

    @property
    def num_reports(self) -> int:
        """Number of reports."""
        return int(self.data.shape[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """How many reports support each category; all that an estimator needs.

    Parameters
    ----------
    support : ndarray of int64, shape (k,)
        Number of reports that support each category, in [0, num_reports]. Read-only.
    num_reports : int
        Number of reports counted.
    fingerprint : str
        Law that the reports were drawn from. Counts of different laws do not add.

    Raises
    ------
    ParameterError
        If a count is negative or above ``num_reports``.

    Examples
    --------
    >>> part = Counts(support=np.array([1, 2]), num_reports=3, fingerprint="a")
    >>> (part + part).support.tolist()
    [2, 4]
    """

    support: NDArray[np.int64]
    num_reports: int
    fingerprint: str

    def __post_init__(self) -> None:
        require_at_least("num_reports", self.num_reports, 0)
        support = np.asarray(self.support)
        if support.ndim != 1 or not np.issubdtype(support.dtype, np.integer):
            raise ParameterError(
                f"support has shape {support.shape} and dtype {support.dtype}: give one integer "
                "for each category"
            )
        if support.size and not 0 <= int(support.min()) <= int(support.max()) <= self.num_reports:
            raise ParameterError(
                f"support lies in [{support.min()}, {support.max()}], not in [0, num_reports = "
                f"{self.num_reports}]: no category has more support than there are reports"
            )
        object.__setattr__(self, "support", read_only(support.astype(np.int64, copy=False)))

    def __add__(self, other: "Counts") -> "Counts":
        if not isinstance(other, Counts):
            return NotImplemented
        if self.fingerprint != other.fingerprint or self.support.shape != other.support.shape:
            raise FingerprintError(
                f"counts of the law {self.fingerprint!r} cannot be added to counts of "
                f"{other.fingerprint!r}: estimate them apart, or randomize with one randomizer"
            )
        return Counts(
            support=self.support + other.support,
            num_reports=self.num_reports + other.num_reports,
            fingerprint=self.fingerprint,
        )


class LocalRandomizer(Protocol):
    """A law that each user applies once to their own value, before anything leaves their hands.

    Every probability is a multiple of 2^-64, drawn by comparing integers, and ``epsilon0`` and
    ``profile`` account for exactly that law.
    """

    @property
    def name(self) -> str:
        """Registered name, for example ``"k-rr"``."""
        ...

    @property
    def k(self) -> int:
        """Number of categories."""
        ...

    @property
    def epsilon0(self) -> float:
        """Local privacy loss in nats of the law drawn, rounded up; at most what was asked for."""
        ...

    @property
    def profile(self) -> LocalProfile:
        """All that the accountant needs to know."""
        ...

    @property
    def fingerprint(self) -> str:
        """Name of the exact law: changes with the family, k or the integer threshold."""
        ...

    @property
    def num_report_bytes(self) -> int:
        """Bytes that one report takes in ``Reports.data``."""
        ...

    @property
    def support_probabilities(self) -> tuple[float, float]:
        """Chance that a report supports a category, given it is the user's, and given it is not."""
        ...

    def randomize(self, codes: NDArray[np.integer[Any]], entropy: Entropy) -> Reports:
        """Return one fresh report for each code, shape (n,), in [0, k)."""
        ...

    def count(self, reports: Reports) -> Counts:
        """Return how many reports support each category."""
        ...

    def channel(self) -> Channel:
        """Return the exact probability of each output given each input, for small k."""
        ...


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of ``array`` that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view
