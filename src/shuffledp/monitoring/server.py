"""``MonitorServer``: reports of a longitudinal collection in, running counts out."""

from collections.abc import Iterable
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.monitoring.client import MonitorReport, require_reports
from shuffledp.monitoring.design import MonitorDesign
from shuffledp.monitoring.running_counts import (
    RunningCounts,
    band_quantile,
    expected_standard_errors,
    level_weighted_sums,
    online_running_counts,
    smoothed_running_counts,
)

_MOST_COUNTERS = 1 << 25
_BLOCK = 1 << 17  # reports handled at once, so that their arrays stay in the cache


class MonitorServer:
    """Adds up the reports at each node of the tree and estimates the running counts.

    Parameters
    ----------
    design : MonitorDesign
        The design that clients and server share.

    Attributes
    ----------
    design : MonitorDesign
        As given.
    num_reports : int
        Number of reports that have arrived.
    last_period : int
        Last period of which a report has arrived; 0 before the first.

    Raises
    ------
    ParameterError
        If the design has more than 2^25 nodes times columns, which would need above half a
        gigabyte.

    Notes
    -----
    Reports may come in any order and any batches, late ones too; estimates change as they arrive.
    A report names no user, so that the server cannot distinguish a repeated one from another
    user's: make sure that the transport delivers once. `pickle` keeps a server, with all its data.

    With c = L / gap the sum of the signs at a node times c is unbiased for the sum of the users'
    increments over it, for users who take part from the start to the node's end. A user whose
    increments are all reported contributes from whenever they joined; missing reports count as
    if nothing had changed then.

    Estimates are the best linear unbiased ones from the nodes that have ended, of hardly more than
    half the variance of the cover of Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta,
    "Amplification by Shuffling", SODA 2019, arXiv:1811.12469v2, Algorithm 2 (with the factor of L
    levels in place of log2 d). Smoothed they use the later nodes, too. Standard errors refer to
    ``num_users`` users, and are upper bounds if it is an upper bound on the users.

    Examples
    --------
    >>> design = MonitorDesign(periods=2, max_changes=1, epsilon0=1.0986122886681098)
    >>> server = MonitorServer(design)  # gap 1/2, L = 2
    >>> server.ingest([MonitorReport(1, 1, +1), MonitorReport(1, 1, +1), MonitorReport(2, 2, -1)])
    >>> float(server.estimate(1, num_users=3).counts)  # 4 times the sum of the signs
    8.0
    """

    __slots__ = ("_sums", "design", "last_period", "num_reports")

    def __init__(self, design: MonitorDesign) -> None:
        shape = design.tree.num_nodes, design.encoding.num_columns
        if shape[0] * shape[1] > _MOST_COUNTERS:
            raise ParameterError(
                f"periods = {design.periods} with {shape[1]} columns need {shape[0] * shape[1]} "
                f"counters, more than {_MOST_COUNTERS}: take longer periods, or fewer values"
            )
        self.design = design
        self._sums = np.zeros(shape, dtype=np.int64)
        self.num_reports = 0
        self.last_period = 0

    def ingest(self, reports: MonitorReport | Iterable[MonitorReport]) -> None:
        """Add reports, of any periods and in any order.

        Parameters
        ----------
        reports : MonitorReport or iterable of MonitorReport
            May be empty. For many reports best one MonitorReport of arrays, an entry a report.

        Raises
        ------
        DataError
            Naming the first report that no client of this design can have made; then none of them
            is added.

        Notes
        -----
        Cost: 20 to 50 ns a report as arrays, and about 50 microseconds a call.
        """
        levels, periods, signs, columns = require_reports(self.design, reports)
        offsets = np.array(self.design.tree.offsets, dtype=np.int64)
        for start in range(0, signs.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            heights = levels[block].astype(np.int64) - 1
            nodes = offsets[heights] + (periods[block] >> heights) - 1
            places = nodes * self._sums.shape[1] + columns[block]
            np.add.at(self._sums.reshape(-1), places, signs[block].astype(np.int64))
        self.num_reports += signs.size
        self.last_period = max(self.last_period, int(periods.max(initial=0)))

    def add_sums(self, period: int, sums: NDArray[np.int64], num_reports: int) -> None:
        """Add reports of a period, added up for each level that ends then (rows) and column."""
        for level, row in enumerate(sums, start=1):
            self._sums[self.design.tree.offset(level) + (period >> (level - 1)) - 1] += row
        self.num_reports += num_reports
        self.last_period = max(self.last_period, period)

    def estimate(
        self,
        t: SupportsIndex,
        *,
        num_users: int,
        confidence: float = 0.95,
        simultaneous: bool = True,
    ) -> RunningCounts:
        """Estimate the number of users with each value at period t, from the reports up to t.

        Parameters
        ----------
        t : int
            In [1, periods].
        num_users : int
            n, or an upper bound on it, at least 1: number of users who take part.
        confidence : float
            Nominal coverage of the band, in (0, 1).
        simultaneous : bool
            Whether the bands of all periods of the design, and of all values, hold at once with
            that confidence, so that all of them may be examined; otherwise each alone.

        Returns
        -------
        RunningCounts
            Of the period alone. Unbiased, not clipped; equal to `running_counts` at t.

        Raises
        ------
        ParameterError
            If an argument is out of range. There is no period 0: before the first all counts are 0.

        Notes
        -----
        Cost: O(num_columns d).
        """
        period = self.design.tree.require_through(t, "t")
        found = self.running_counts(
            period, num_users=num_users, confidence=confidence, simultaneous=simultaneous
        )
        return found.at(period)

    def running_counts(
        self,
        through: SupportsIndex | None = None,
        *,
        num_users: int,
        smoothed: bool = False,
        confidence: float = 0.95,
        simultaneous: bool = True,
    ) -> RunningCounts:
        """Estimate the number of users with each value at each of the periods 1 ... T.

        Parameters
        ----------
        through : int, optional
            T, in [1, periods]; by default the last period of which a report has arrived.
        num_users : int
            n, or an upper bound on it, at least 1: number of users who take part.
        smoothed : bool
            Whether to use the reports of all T periods for every period. Otherwise the counts are
            equal to `estimate` at each period.
        confidence : float
            Nominal coverage of the bands, in (0, 1).
        simultaneous : bool
            Whether all bands hold at once with that confidence, for all periods and values
            of the design, or, smoothed, the periods 1 ... T and all values; otherwise each alone.

        Returns
        -------
        RunningCounts
            Unbiased, not clipped.

        Raises
        ------
        ParameterError
            If an argument is out of range.
        DataError
            If no report has arrived and ``through`` is not given.

        Notes
        -----
        Cost: O(num_columns d), smoothed O(num_columns d + d log d).
        """
        design, tree = self.design, self.design.tree
        if through is None and not self.last_period:
            raise DataError("no report has arrived: there is nothing to estimate; ingest some")
        last = tree.require_through(self.last_period if through is None else through)
        users = require_at_least("num_users", num_users, 1)
        size = design.encoding.domain_size
        reach = band_quantile(
            confidence,
            num_periods=last if smoothed else design.periods,
            domain_size=size,
            simultaneous=simultaneous,
        )
        errors = expected_standard_errors(design, num_users=users, through=last, smoothed=smoothed)
        estimated = smoothed_running_counts if smoothed else online_running_counts
        sums = estimated(tree, level_weighted_sums(tree, self._sums), last)
        counts = design.encoding.decode(design.scale * sums)
        if size == 1:
            counts = counts[:, 0]
        else:
            errors = np.broadcast_to(errors[:, None], counts.shape)
        return RunningCounts(
            periods=np.arange(1, last + 1),
            counts=counts,
            standard_errors=errors,
            lower=counts - reach * errors,
            upper=counts + reach * errors,
            is_smoothed=smoothed,
            confidence=confidence,
            is_simultaneous=simultaneous,
            labels=design.encoding.labels,
        )
