"""Reports, from users to the shuffler, and aggregates, from the shuffler to an estimator."""

from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import FingerprintError, ParameterError


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of ``array`` that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reports:
    """Randomized reports, one user a row.

    Parameters
    ----------
    data : ndarray
        Axis 0 is the users. The randomizer defines the content of a row: a small integer, packed
        bits, or a vector. Kept as a read-only view.
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
    """Number of reports that support each category; all that an estimator needs.

    Parameters
    ----------
    support : ndarray of int64, shape (k,)
        Number of supports of each category, in [0, num_reports * supports_per_report +
        num_dummies]. Read-only.
    num_reports : int
        Number of users' reports counted.
    fingerprint : str
        Law that the reports were drawn from. Counts of different laws do not add.
    supports_per_report : int
        Largest number of times that a report supports a category: 1, unless it has several slots.
    num_dummies : int
        Number of supports counted that are dummies, in all categories together; see
        `less_dummies`.
    dummies : tuple of DummyLaw
        Laws that each category's dummies were drawn from, independently, and added up.

    Raises
    ------
    ParameterError
        If a count is negative or more than the reports and dummies can support, or if the laws
        cannot give ``num_dummies``.

    Examples
    --------
    >>> part = Counts(support=np.array([1, 2]), num_reports=3, fingerprint="a")
    >>> (part + part).support.tolist()
    [2, 4]
    """

    support: NDArray[np.int64]
    num_reports: int
    fingerprint: str
    supports_per_report: int = 1
    num_dummies: int = 0
    dummies: tuple[DummyLaw, ...] = ()

    def __post_init__(self) -> None:
        require_at_least("num_reports", self.num_reports, 0)
        slots = require_at_least("supports_per_report", self.supports_per_report, 1)
        support = np.asarray(self.support)
        most = self.num_reports * slots + self._require_dummies(support.size)
        if support.ndim != 1 or not np.issubdtype(support.dtype, np.integer):
            raise ParameterError(
                f"support has shape {support.shape} and dtype {support.dtype}: give integers, (k,)"
            )
        if support.size and not 0 <= int(support.min()) <= int(support.max()) <= most:
            raise ParameterError(
                f"support lies in [{support.min()}, {support.max()}], not in [0, num_reports * "
                f"supports_per_report + num_dummies = {most}]"
            )
        object.__setattr__(self, "support", read_only(support.astype(np.int64, copy=False)))

    def _require_dummies(self, num_bins: int) -> int:
        """Return the number of dummies if the laws can give it."""
        number = require_at_least("num_dummies", self.num_dummies, 0)
        if len({law.sender for law in self.dummies}) > 1:
            raise ParameterError("dummies are a shuffler's and users': count each apart")
        most = sum(2 * law.half_width * num_bins for law in self.dummies)
        if number > most and not any(law.sender == "users" for law in self.dummies):
            raise ParameterError(
                f"num_dummies = {number} is not in [0, {most}], the dummies that the laws "
                f"({', '.join(map(str, self.dummies)) or 'none'}) give {num_bins} categories: "
                "check num_users, the number of reports without the dummies"
            )
        return number

    def less_dummies(self, *laws: DummyLaw, num_users: int) -> "Counts":
        """Return the same counts, with all reports beyond the users' declared to be dummies.

        The law is a shuffler's, drawn once for each category, or each user's. With several laws
        each is for an equal share of the categories, in order, and each user sends a report for
        each share. The counts do not show which reports are dummies.

        Raises
        ------
        ParameterError
            If there are fewer reports than users, or more than the law can add.

        Examples
        --------
        >>> law = DummyLaw.from_text("laplace:2.025:27")
        >>> found = Counts(support=np.array([32, 29]), num_reports=61, fingerprint="a")
        >>> found.less_dummies(law, num_users=10).num_dummies
        51
        """
        users = require_at_least("num_users", num_users, 0, self.num_reports // len(laws))
        sent = (
            law if law.sender == "shuffler" else replace(law, scale=law.scale * max(users, 1))
            for law in laws
        )
        own = users * len(laws)
        return replace(
            self, num_reports=own, num_dummies=self.num_reports - own, dummies=tuple(sent)
        )

    def __add__(self, other: "Counts") -> "Counts":
        if not isinstance(other, Counts):
            return NotImplemented
        both = replace(self, dummies=self.dummies + other.dummies)
        return _added(both, other, "support", "num_reports", "num_dummies")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """Sums of reports that stand for numbers or vectors; all that an estimator of means needs.

    Parameters
    ----------
    total, total_of_squares : ndarray of float64, shape (d,)
        Sums over the reports of each coordinate and of its square. Sums of whole numbers are
        exact up to 2^53. Read-only.
    num_reports : int
        Number of reports summed.
    fingerprint : str
        Law that the reports were drawn from. Sums of different laws do not add.

    Raises
    ------
    ParameterError
        If the two sums have different shapes, or hold NaN or infinity.

    Examples
    --------
    >>> part = Sums(
    ...     total=np.array([3.0]), total_of_squares=np.array([5.0]), num_reports=2, fingerprint="a"
    ... )
    >>> (part + part).total.tolist()
    [6.0]
    """

    total: NDArray[np.float64]
    total_of_squares: NDArray[np.float64]
    num_reports: int
    fingerprint: str

    def __post_init__(self) -> None:
        require_at_least("num_reports", self.num_reports, 0)
        for name in ("total", "total_of_squares"):
            sums = np.asarray(getattr(self, name), dtype=np.float64)
            if sums.ndim != 1 or sums.shape != np.shape(self.total):
                raise ParameterError(
                    f"{name} has shape {sums.shape}: give one sum for each coordinate"
                )
            if not np.isfinite(sums).all():
                raise ParameterError(f"{name} holds NaN or infinity: check the reports")
            object.__setattr__(self, name, read_only(sums))

    def __add__(self, other: "Sums") -> "Sums":
        if not isinstance(other, Sums):
            return NotImplemented
        return _added(self, other, "total", "total_of_squares", "num_reports")


Aggregate: TypeAlias = Counts | Sums
"""Reports in reduced form: small, and added as more reports come in."""


_Either = TypeVar("_Either", Counts, Sums)


def _added(first: _Either, second: _Either, *names: str) -> _Either:
    """Return the sum of two aggregates in the named fields, or refuse."""
    pairs = {name: (getattr(first, name), getattr(second, name)) for name in names}
    same_shape = all(np.shape(one) == np.shape(other) for one, other in pairs.values())
    if first.fingerprint != second.fingerprint or not same_shape:
        shapes = [np.shape(each) for each in pairs[names[0]]]
        raise FingerprintError(
            f"counts of the law {first.fingerprint!r}, shape {shapes[0]}, cannot be added to "
            f"counts of {second.fingerprint!r}, shape {shapes[1]}: estimate them apart, or "
            "randomize with one randomizer"
        )
    return replace(first, **{name: one + other for name, (one, other) in pairs.items()})
