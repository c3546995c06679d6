"""``MonitorServer``: reports of a longitudinal collection in, running counts out."""

from collections.abc import Iterable, Mapping
from typing import Any, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.monitoring.client import MonitorReport, MonitorReports, require_reports
from shuffledp.monitoring.design import Encoding, MonitorDesign
from shuffledp.monitoring.running_counts import (
    RunningCounts,
    RunningEstimate,
    level_weighted_sums,
    online_running_counts,
    require_through,
    running_sums,
    smoothed_running_counts,
    update_level_weighted_sums,
)
from shuffledp.monitoring.running_errors import (
    ReceivedReports,
    band_quantile,
    expected_standard_errors,
    proven_errors,
    require_method,
    with_pairs,
)

_MOST_COUNTERS = 1 << 25
_BLOCK = 1 << 17  # reports handled at once, so that what is made of them stays in the cache


class MonitorServer:
    """Adds up the reports at each node of the tree and estimates the running counts.

    Parameters
    ----------
    design : MonitorDesign or int
        What clients and server agreed on; or the number of periods, with what follows.
    max_changes : int, optional
        As for `MonitorDesign`; needed if the number of periods is given.
    epsilon0 : float, optional
        As for `MonitorDesign`; needed if the number of periods is given.
    protocol : str
        As for `MonitorDesign`.
    encoding : Encoding, optional
        As for `MonitorDesign`.

    Raises
    ------
    ParameterError
        If the design is out of range, or given twice or by half; or if it has more than 2^25 nodes
        times columns, which would need above half a gigabyte.

    Notes
    -----
    Reports may come in any order and any batches, late ones too; estimates change as they arrive.
    A report names no user, so that the server cannot tell a repeated one from another user's: see
    that the transport delivers once.

    With c = L / gap the sum of the signs at a node times c is unbiased for the sum of the users'
    increments over it, for users who take part from the start to the node's end. A user whose
    increments are all reported adds his part whenever he joined; reports that are missing count as
    if nothing had changed then.

    ``"cover"`` adds up the nodes of the dyadic cover of 1 ... t (Algorithm 2 of Erlingsson,
    Feldman, Mironov, Raghunathan, Talwar, Thakurta, "Amplification by Shuffling", SODA 2019,
    arXiv:1811.12469v2, with the factor of L levels in place of log2 d). ``"least-squares"`` is the
    best linear unbiased estimate from the nodes ended by t, of hardly more than half the variance.
    Smoothed it uses the later nodes, too.

    Standard errors. Where ``num_users`` is not given, from the numbers of reports that arrived, so
    that every node of the cover must have one; an upper bound of the variance in expectation. Where
    it is, for n / L reports at every node.

    Examples
    --------
    >>> server = MonitorServer(2, max_changes=1, epsilon0=1.0986122886681098)  # gap 1/2, L = 2
    >>> server.ingest([MonitorReport(1, 1, +1), MonitorReport(1, 1, +1), MonitorReport(2, 2, -1)])
    >>> float(server.estimate(1).counts)  # 4 times the sum of the signs
    8.0
    """

    __slots__ = ("_design", "_is_current", "_received", "_sums", "_touched", "_weighted")

    def __init__(
        self,
        design: MonitorDesign | SupportsIndex,
        max_changes: int | None = None,
        epsilon0: float | None = None,
        *,
        protocol: str = "predrawn-signs",
        encoding: Encoding | None = None,
    ) -> None:
        if not isinstance(design, MonitorDesign):
            if max_changes is None or epsilon0 is None:
                raise ParameterError(
                    "max_changes or epsilon0 is missing: give both with the number of periods, or "
                    "a MonitorDesign alone"
                )
            design = MonitorDesign(
                periods=require_at_least("periods", design, 1),
                max_changes=max_changes,
                epsilon0=epsilon0,
                protocol=protocol,
                encoding=encoding,  # type: ignore[arg-type]  # None: booleans
            )
        elif max_changes is not None or epsilon0 is not None or encoding is not None:
            raise ParameterError(
                "max_changes, epsilon0 or encoding is given beside a design, which has them: give "
                "the design alone"
            )
        self._design = design
        self._sums = np.zeros(_shape(design), dtype=np.int64)
        self._weighted = np.zeros_like(self._sums)
        self._received = ReceivedReports.of(
            design.tree, np.zeros(design.tree.num_nodes, dtype=np.int64)
        )
        # Nodes that have changed since their ancestors were brought up to date.
        self._touched = np.zeros(design.tree.num_nodes, dtype=np.bool_)
        self._is_current = True  # there is none

    @property
    def design(self) -> MonitorDesign:
        """What clients and server agreed on."""
        return self._design

    @property
    def num_reports(self) -> int:
        """How many reports have arrived."""
        return int(self._received.numbers.sum())

    @property
    def last_period(self) -> int:
        """Last period of which a report has arrived; 0 before the first."""
        return self._received.last_period()

    def ingest(self, reports: MonitorReports | MonitorReport | Iterable[MonitorReport]) -> None:
        """Add reports, of any periods and in any order.

        Parameters
        ----------
        reports : MonitorReports, MonitorReport or iterable of MonitorReport
            May be empty.

        Raises
        ------
        DataError
            Naming the first report that no client of this design can have made; then none of them
            is added.

        Notes
        -----
        Cost: 20 to 50 ns a report as arrays, and about 50 microseconds a call.
        """
        if isinstance(reports, MonitorReport):
            reports = [reports]
        if not isinstance(reports, MonitorReports):
            reports = MonitorReports.from_reports(reports)
        require_reports(self._design, reports)
        tree = self._design.tree
        offsets = np.array(tree.offsets, dtype=np.int64)
        self._is_current = False
        for start in range(0, len(reports), _BLOCK):
            block = slice(start, start + _BLOCK)
            heights = reports.levels[block].astype(np.int64) - 1
            nodes = offsets[heights] + (reports.periods[block] >> heights) - 1
            self._touched[nodes] = True
            np.add.at(self._received.numbers, nodes, 1)
            places = nodes * self._sums.shape[1] + reports.columns[block]
            np.add.at(self._sums.reshape(-1), places, reports.signs[block].astype(np.int64))

    def ingest_sums(
        self,
        level: SupportsIndex,
        period: SupportsIndex,
        sums_by_column: ArrayLike,
        counts_by_column: ArrayLike,
    ) -> None:
        """Add reports of one node that were added up before.

        Parameters
        ----------
        level : int
            Level of the node, in [1, L].
        period : int
            Its last period.
        sums_by_column : array-like of int, shape (num_columns,)
            Sum of the signs of each column; a plain number for one column.
        counts_by_column : array-like of int, shape (num_columns,)
            Number of the reports of each column.

        Raises
        ------
        ParameterError
            If there is no such node.
        DataError
            If these are no sums of so many signs; then nothing is added.
        """
        tree = self._design.tree
        node = tree.index(level, tree.position_ending_at(level, period))
        columns = (self._sums.shape[1],)
        sums = _whole_numbers("sums_by_column", np.atleast_1d(sums_by_column), columns)
        counts = _whole_numbers("counts_by_column", np.atleast_1d(counts_by_column), columns)
        _require_sums_of_signs(sums, counts)
        self._sums[node] += sums
        self._received.numbers[node] += counts.sum()
        self._touched[node] = True
        self._is_current = False

    def estimate(
        self,
        t: SupportsIndex,
        *,
        method: str = "least-squares",
        confidence: float = 0.95,
        simultaneous: bool = True,
        num_users: int | None = None,
    ) -> RunningEstimate:
        """Return how many users have each value at period t, from the reports up to t.

        Parameters
        ----------
        t : int
            In [1, periods].
        method : {"least-squares", "cover"}
            Estimator.
        confidence : float
            Nominal coverage of the band, in (0, 1).
        simultaneous : bool
            Whether the bands of all periods of the design, and of all values, hold at once with
            that confidence, so that one may look at every one of them; else each alone.
        num_users : int, optional
            For the standard errors, if known: n, at least 1. See the notes of the class.

        Returns
        -------
        RunningEstimate
            Unbiased, not clipped; what `running_counts` has at t, up to rounding.

        Raises
        ------
        ParameterError
            If an argument is out of range. There is no period 0: before the first all counts are 0.
        DataError
            If no report has arrived for a node of the cover and ``num_users`` is not given.

        Notes
        -----
        Cost: O(num_columns log d). The first estimate after reports have arrived also brings the
        nodes that they touched, and their ancestors, up to date: O(num_columns (log d)^2) and a
        look at one byte a node for the reports of a period. The first simultaneous
        band of a design takes up to a second more (see `band_quantile`).
        """
        tree = self._design.tree
        period = require_at_least("t", t, 1)
        cover = tree.cover(period)
        is_cover = require_method(method) == "cover"
        self._refresh()
        nodes = np.array([tree.index(*node) for node in cover])
        lengths = np.array([2.0 ** (level - 1) for level, _ in cover])
        shares = np.ones(nodes.size) if is_cover else 2.0 * lengths - 1.0
        sums = ((self._sums if is_cover else self._weighted)[nodes] / shares[:, None]).sum(axis=0)
        if num_users is None:
            empty = np.flatnonzero(self._received.numbers[nodes] == 0)
            self._refuse_gap(cover[empty[0]] if empty.size else None)
            numbers = self._received.numbers if is_cover else self._received.weighted
            squares = (numbers[nodes] / shares**2).sum()
        else:
            factor = (1.0 if is_cover else lengths) / shares
            squares = require_at_least("num_users", num_users, 1) / tree.num_levels * factor.sum()
        errors = self._standard_errors(np.array([squares]), np.zeros(1), method)
        reach = self._reach(tree.periods, confidence, simultaneous, method)
        counts, errors = self._decoded(sums[None, :], errors)
        return RunningEstimate(
            period=period,
            counts=counts[0],
            standard_errors=errors[0],
            lower=(counts - reach * errors)[0],
            upper=(counts + reach * errors)[0],
            method=method,
            confidence=confidence,
            is_simultaneous=simultaneous,
            labels=self._design.encoding.labels,
        )

    def running_counts(
        self,
        through: SupportsIndex | None = None,
        *,
        method: str = "least-squares",
        smoothed: bool = False,
        confidence: float = 0.95,
        simultaneous: bool = True,
        num_users: int | None = None,
    ) -> RunningCounts:
        """Return how many users have each value at each of the periods 1 ... T.

        Parameters
        ----------
        through : int, optional
            T, in [1, periods]; the last period of which a report has arrived unless given.
        method : {"least-squares", "cover"}
            Estimator.
        smoothed : bool
            Whether to use the reports of all T periods for every period (least squares only).
            Otherwise the counts are what `estimate` said, or would have said, at each period.
        confidence : float
            Nominal coverage of the bands, in (0, 1).
        simultaneous : bool
            Whether all bands hold at once with that confidence: those of all periods of the design
            and all values, or, smoothed, of the periods 1 ... T and all values; else each alone.
        num_users : int, optional
            For the standard errors, if known: n, at least 1. See the notes of the class.

        Returns
        -------
        RunningCounts
            Unbiased, not clipped.

        Raises
        ------
        ParameterError
            If an argument is out of range.
        DataError
            If no report has arrived for a node of a cover and ``num_users`` is not given.

        Notes
        -----
        Cost: O(num_columns d), smoothed O(num_columns d + d log d), and the bands, once.
        """
        tree = self._design.tree
        require_method(method, smoothed=smoothed)
        last = require_through(tree, self._last(through, num_users))
        self._refresh()
        if method == "cover":
            sums = running_sums(tree, self._sums, last)
        elif smoothed:
            sums = smoothed_running_counts(tree, self._weighted, last)
        else:
            sums = online_running_counts(tree, self._weighted, last)
        errors = self._running_errors(last, method, smoothed, num_users)
        bands_through = last if smoothed else tree.periods
        reach = self._reach(bands_through, confidence, simultaneous, method, smoothed)
        counts, errors = self._decoded(sums, errors)
        return RunningCounts(
            periods=np.arange(1, last + 1),
            counts=counts,
            standard_errors=errors,
            lower=counts - reach * errors,
            upper=counts + reach * errors,
            method=method,
            is_smoothed=smoothed,
            confidence=confidence,
            is_simultaneous=simultaneous,
            labels=self._design.encoding.labels,
        )

    def proven_errors(
        self, num_users: int, *, confidence: float = 0.95, method: str = "cover"
    ) -> NDArray[np.float64]:
        """Return errors that no estimate of any period or value exceeds, proved for every n.

        Parameters
        ----------
        num_users : int
            n, or an upper bound of it, at least 1.
        confidence : float
            In (0, 1).
        method : {"cover", "least-squares"}
            Online estimator.

        Returns
        -------
        ndarray of float64, shape (periods,)
            In users; see `shuffledp.monitoring.running_errors`.

        Raises
        ------
        ParameterError
            If an argument is out of range.
        """
        design = self._design
        return proven_errors(
            design.tree,
            num_users=num_users,
            scale=design.scale,
            confidence=confidence,
            method=method,
            pair_correlation=design.law.pair_correlation,
            variance_factor=design.encoding.variance_factor,
            domain_size=design.encoding.domain_size,
        )

    def to_arrays(self) -> dict[str, NDArray[np.int64]]:
        """Return all that the server knows, as plain arrays.

        Returns
        -------
        dict of str to ndarray of int64
            ``"sums"``, shape (num_nodes, num_columns), of the signs; ``"numbers"``, shape
            (num_nodes,), of reports. Copies.
        """
        return {"sums": self._sums.copy(), "numbers": self._received.numbers.copy()}

    @classmethod
    def from_arrays(cls, design: MonitorDesign, arrays: Mapping[str, ArrayLike]) -> Self:
        """Return a server that goes on where another stopped.

        Parameters
        ----------
        design : MonitorDesign
            The other's; compare fingerprints, for arrays of another design may fit.
        arrays : mapping of str to array-like
            What its `to_arrays` returned. Copied.

        Returns
        -------
        MonitorServer
            With the same estimates, bit by bit.

        Raises
        ------
        DataError
            If an array is missing, does not fit the design or cannot have come of any reports.
        """
        server = cls(design)
        for name in ("sums", "numbers"):
            if name not in arrays:
                raise DataError(f"arrays has no {name!r}: give what to_arrays returned")
        sums = _whole_numbers("arrays['sums']", arrays["sums"], server._sums.shape)
        numbers = _whole_numbers("arrays['numbers']", arrays["numbers"], (design.tree.num_nodes,))
        _require_sums_of_signs(np.abs(sums).sum(axis=1), numbers)
        server._sums = sums
        server._weighted = level_weighted_sums(design.tree, sums)
        server._received = ReceivedReports.of(design.tree, numbers)
        return server

    def _refresh(self) -> None:
        """Bring the sums over subtrees up to date, once for all reports since the last time."""
        if self._is_current:
            return
        touched = np.flatnonzero(self._touched)
        update_level_weighted_sums(self._design.tree, self._sums, self._weighted, touched)
        self._received.refresh(touched)
        self._touched[touched] = False
        self._is_current = True

    def _last(self, through: SupportsIndex | None, num_users: int | None) -> int:
        """Return the last period asked for, if there are reports enough for its estimates."""
        last = self.last_period if through is None else require_at_least("through", through, 1)
        if not last:
            raise DataError("no report has arrived: there is nothing to estimate; ingest some")
        if num_users is None:
            self._refuse_gap(self._received.first_gap(require_through(self._design.tree, last)))
        return last

    def _refuse_gap(self, node: tuple[int, int] | None) -> None:
        """Raise for a node of a cover without any report: nothing tells the error then."""
        if node is not None:
            level, position = node
            length = self._design.tree.length(level)
            raise DataError(
                f"no report has arrived for periods {(position - 1) * length + 1} to "
                f"{position * length} at level {level}, so the error is unknown: ingest some, or "
                "give num_users if there are so few that no client drew the level"
            )

    def _running_errors(
        self, last: int, method: str, smoothed: bool, num_users: int | None
    ) -> NDArray[np.float64]:
        """Return the standard errors of a value's counts, shape (last,)."""
        design = self._design
        if num_users is not None:
            return expected_standard_errors(
                design.tree,
                num_users=num_users,
                scale=design.scale,
                method=method,
                smoothed=smoothed,
                through=last,
                pair_correlation=design.law.pair_correlation,
                variance_factor=design.encoding.variance_factor,
            )
        squares = self._received.running_squares(last, method=method, smoothed=smoothed)
        pairs = self._received.running_pairs(last) if smoothed else np.zeros(last)
        return self._standard_errors(squares, pairs, method)

    def _standard_errors(
        self, squares: NDArray[np.float64], pairs: NDArray[np.float64], method: str
    ) -> NDArray[np.float64]:
        """Return standard errors from sums of squared weights times numbers of reports."""
        design = self._design
        # One node a level: no two reports of one user.
        correlation = 0.0 if method == "cover" else design.law.pair_correlation
        variances = with_pairs(design.encoding.variance_factor * squares, pairs, correlation)
        errors: NDArray[np.float64] = design.scale * np.sqrt(variances)
        return errors

    def _reach(
        self,
        through: int,
        confidence: float,
        simultaneous: bool,
        method: str,
        smoothed: bool = False,
    ) -> float:
        """Return how many standard errors the bands reach to either side."""
        return band_quantile(
            self._design.tree,
            through,
            confidence,
            method=method,
            smoothed=smoothed,
            simultaneous=simultaneous,
            domain_size=self._design.encoding.domain_size,
        )

    def _decoded(
        self, sums: NDArray[Any], errors: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return counts and standard errors of shape (T,) for booleans, else (T, domain_size)."""
        encoding = self._design.encoding
        counts: NDArray[np.float64] = encoding.decode(self._design.scale * sums)
        if encoding.name == "boolean":
            return counts[:, 0], errors
        return counts, np.broadcast_to(errors[:, None], counts.shape)


def _shape(design: MonitorDesign) -> tuple[int, int]:
    """Return the shape of the counters, if memory is likely to hold them, else raise."""
    num_nodes, num_columns = design.tree.num_nodes, design.encoding.num_columns
    if num_nodes * num_columns > _MOST_COUNTERS:
        raise ParameterError(
            f"periods = {design.periods} with {num_columns} columns need {num_nodes * num_columns} "
            f"counters, more than {_MOST_COUNTERS}: take longer periods, or fewer values"
        )
    return num_nodes, num_columns


def _whole_numbers(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Return a copy of an array of integers of that shape, else raise `DataError`."""
    array = np.asarray(values)
    if array.shape != shape or array.dtype.kind not in "iu":
        raise DataError(
            f"{name} has shape {array.shape} and dtype {array.dtype}: integers of shape {shape} "
            "belong to this design"
        )
    return array.astype(np.int64)


def _require_sums_of_signs(sums: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
    """Raise unless each sum can be that of so many signs: not above the number, and as odd."""
    wrong = np.flatnonzero((np.abs(sums) > numbers) | ((sums ^ numbers) & 1 != 0))
    if wrong.size:
        place = int(wrong[0])
        raise DataError(
            f"entry {place} has {numbers[place]} reports and signs that add up to {sums[place]}, "
            "which is impossible: add up signs of -1 and +1, and count them"
        )
