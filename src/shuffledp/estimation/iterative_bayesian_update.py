"""Maximum likelihood frequencies by expectation maximization, from the reports themselves.

Unbiased estimates use one count a category. Where a report supports several categories at once,
the reports say more together than those counts do, and the frequencies that make them most likely
use it all; they are possible frequencies too, so no further step is needed. The price is bias.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_positive
from shuffledp.core.errors import PrecisionError
from shuffledp.core.reports import Reports
from shuffledp.estimation.frequencies import FrequencyEstimates
from shuffledp.estimation.post_processing import with_frequency

# Cells of the matrix of distinct reports and categories that are looked at together, 32 MiB as
# floats; a matrix of up to twice as many is kept from one iteration to the next.
_CELLS_AT_A_TIME = 2**22
_CELLS_KEPT = 2**23

# No frequency is ever smaller, for an iteration could not raise it from 0 again.
_SMALLEST_FREQUENCY = 1e-100
# A leap may shrink a frequency to no less than this share of what an iteration makes of it.
_LARGEST_DROP = 0.1
# How long a leap may be, in iterations, at first; and the factor by which that bound moves.
_LEAP_FACTOR = 4.0

_Block = tuple[NDArray[np.float64], NDArray[np.float64]]


class SupportReports(Protocol):
    """A randomizer each of whose reports supports some of k categories, and says no more.

    It is e^epsilon0 times as likely for a category it supports as for one it does not.
    """

    @property
    def domain_size(self) -> int:
        """Number of categories."""

    @property
    def epsilon0(self) -> float:
        """Local privacy loss in nats."""

    def supports(self, reports: Reports) -> NDArray[np.bool_]:
        """Return which categories each report supports: booleans, shape (n, k)."""

    def estimate(
        self, data: Reports, *, confidence: float, interval: str, simultaneous: bool
    ) -> FrequencyEstimates:
        """Return the unbiased frequency of each category."""


def iterative_bayesian_update(
    randomizer: SupportReports,
    reports: Reports,
    *,
    tolerance: float = 1e-9,
    max_iterations: int = 10_000,
    confidence: float = 0.95,
    interval: str = "wilson",
    simultaneous: bool = False,
) -> FrequencyEstimates:
    """Return the frequencies under which the reports are most likely.

    Parameters
    ----------
    randomizer : SupportReports
        The one that made the reports.
    reports : Reports
        At least one, in any order.
    tolerance : float
        How far the mean log-likelihood of a report may be below the greatest one, in nats, in
        (0, inf).
    max_iterations : int
        Iterations after which to give up, at least 1.
    confidence, interval, simultaneous
        For the intervals of the unbiased estimates; see `SupportReports.estimate`.

    Returns
    -------
    FrequencyEstimates
        Frequencies that are positive and sum to 1, with a log-likelihood proved to be within
        ``tolerance`` nats a report of the greatest, up to round-off. Where the greatest is at
        frequency 0 they come as close to 0 as the tolerance asks. Standard errors and intervals
        are those of the unbiased estimates, for the reasons given in
        `shuffledp.estimation.post_processing`. ``post_processing`` is
        ``("iterative-bayesian-update",)``.

    Raises
    ------
    ParameterError
        If reports say nothing (epsilon0 = 0), or an argument is out of range.
    FingerprintError
        If the reports were made by another law.
    DataError
        If there are no reports.
    PrecisionError
        If ``max_iterations`` do not reach ``tolerance``; the message says how far they came.

    Notes
    -----
    Source: Agrawal, Aggarwal, "On the design and quantification of privacy preserving data mining
    algorithms", PODS 2001; iterative Bayesian update of ElSalamouny, Palamidessi 2020,
    arXiv:1909.02961.

    A report that supports the categories S is r = e^epsilon0 times as likely for a user whose
    category is in S as for one whose is not, and that is all it says. With F(S) the sum of the
    frequencies in S, n reports, and g_x the mean over the reports of
    (1 + (r - 1) [x in S]) / (1 + (r - 1) F(S)), an iteration moves each frequency f_x to f_x g_x.
    The log-likelihood never falls. It is concave, its gradient is n g, and the f_x g_x sum to 1; so
    no frequencies f' are better by more than n sum (f'_x - f_x) g_x <= n (max g - 1). That bound
    costs nothing further, and max g - 1 <= ``tolerance`` ends the iterations.

    Iterations alone are slow, so that after every second one the line through the last three points
    is followed further (SQUAREM: Varadhan, Roland, Scandinavian Journal of Statistics 35, 2008),
    where the likelihood grows by it. What is found is the same: any point with the bound above
    will do, and the log-likelihood is greatest at one vector of frequencies only, or reports say
    nothing to choose between those.

    In units of standard errors, a log-likelihood short by t = n ``tolerance`` nats is an offset of
    about sqrt(2 t) at most; far less for frequencies well inside (0, 1), where max g - 1 is of
    first order in the offset.

    Cost: sorting the reports once; then O(m k) an iteration for m distinct reports, about 2 ns a
    cell up to 8 million of them and 4 to 20 ns beyond, where supports are read anew each time. k-RR
    has at most k distinct reports, packed bits have up to min(n, 2^k). Tens of iterations at
    k = 16; hundreds to thousands at k = 1024, most where users are few. Memory: 64 MiB beside the
    distinct reports.

    Examples
    --------
    >>> from shuffledp.randomizers import make_randomizer
    >>> randomizer = make_randomizer("k-rr", domain_size=2, epsilon0=1.0986122886681100)
    >>> data = np.array([0] * 60 + [1] * 40, dtype=np.uint8)
    >>> reports = Reports(data=data, fingerprint=randomizer.fingerprint)
    >>> estimates = iterative_bayesian_update(randomizer, reports)
    >>> estimates.count.round(3).tolist()
    [70.0, 30.0]
    >>> estimates.post_processing
    ('iterative-bayesian-update',)
    """
    most = require_at_least("max_iterations", max_iterations, 1)
    enough = require_positive("tolerance", tolerance)
    unbiased = randomizer.estimate(
        reports, confidence=confidence, interval=interval, simultaneous=simultaneous
    )
    for point in itertools.islice(climb(randomizer, reports), most):
        if point.shortfall <= enough:
            break
    else:
        raise PrecisionError(
            f"after {most} iterations the log-likelihood may still be {point.shortfall:.1e} nats a "
            f"report below the greatest, not tolerance = {enough:.1e}: raise max_iterations or "
            "tolerance"
        )
    return with_frequency(unbiased, point.frequency, "iterative-bayesian-update")


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Positive frequencies that sum to 1, and what the reports say about them.

    ``gain`` is g of `iterative_bayesian_update`, the gradient of the mean log-likelihood; the
    latter is in nats a report, up to a constant of the law.
    """

    frequency: NDArray[np.float64]
    gain: NDArray[np.float64]
    log_likelihood: float

    @property
    def shortfall(self) -> float:
        """How far the mean log-likelihood may be below the greatest one, at most."""
        return float(self.gain.max()) - 1.0


def climb(randomizer: SupportReports, reports: Reports) -> Iterator[Point]:
    """Yield points of ever greater likelihood for ever; first that of equal frequencies."""
    read = _distinct_blocks(randomizer, reports)
    excess = math.exp(randomizer.epsilon0) - 1.0

    def evaluate(weights: NDArray[np.float64]) -> Point:
        """Return the point of frequencies in proportion to ``weights``, which are not negative."""
        frequency = np.maximum(weights / weights.sum(), _SMALLEST_FREQUENCY)
        base = log_likelihood = 0.0
        extra = np.zeros_like(frequency)
        for supported, multiplicity in read():
            likelihood = 1.0 + excess * (supported @ frequency)
            weight = multiplicity / likelihood
            base += float(weight.sum())
            extra += weight @ supported
            log_likelihood += float(multiplicity @ np.log(likelihood))
        gain = (base + excess * extra) / reports.num_reports
        return Point(frequency, gain, log_likelihood / reports.num_reports)

    longest = _LEAP_FACTOR
    point = evaluate(np.ones(randomizer.domain_size))
    while True:
        yield point
        first = evaluate(point.frequency * point.gain)
        yield first
        second = first.frequency * first.gain
        step = first.frequency - point.frequency
        change = second - first.frequency - step
        # How many iterations the leap stands for: the length of the first step over that of its
        # change, each square weighted with 1 / f, the metric in which iterations contract evenly.
        step_size, change_size = (float((x**2 / point.frequency).sum()) for x in (step, change))
        length = max(math.sqrt(step_size / change_size), 1.0) if change_size > 0.0 else math.inf
        length = min(length, longest)
        # The parabola of the three points at that length; at 1 it is the third.
        there = point.frequency + 2.0 * length * step + length**2 * change
        leap = evaluate(np.maximum(there, _LARGEST_DROP * second))
        if leap.log_likelihood >= first.log_likelihood:
            point = leap
            longest *= _LEAP_FACTOR if length == longest else 1.0
        else:
            point = evaluate(second)
            longest = max(longest / _LEAP_FACTOR, 1.0)


def _distinct_blocks(
    randomizer: SupportReports, reports: Reports
) -> Callable[[], Iterable[_Block]]:
    """Return what reads supports as zeros and ones, a row a distinct report, and how often it came.

    In blocks, which are kept where they are small.
    """
    data, multiplicity = _distinct_rows(reports.data)
    times = multiplicity.astype(np.float64)

    def read() -> Iterator[_Block]:
        step = max(1, _CELLS_AT_A_TIME // randomizer.domain_size)
        for start in range(0, times.size, step):
            part = Reports(data=data[start : start + step], fingerprint=reports.fingerprint)
            yield randomizer.supports(part).astype(np.float64), times[start : start + step]

    if times.size * randomizer.domain_size > _CELLS_KEPT:
        return read
    kept = list(read())
    return lambda: kept


def _distinct_rows(data: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return each different row once, and how often it came."""
    width = data.dtype.itemsize * math.prod(data.shape[1:])
    if data.ndim == 1 or width > 8:
        distinct, multiplicity = np.unique(data, axis=0, return_counts=True)
        return distinct, multiplicity
    # Short rows as single words: sorted thirty times faster than rows.
    padded = np.zeros((len(data), 8), dtype=np.uint8)
    padded[:, :width] = np.ascontiguousarray(data).reshape(len(data), -1).view(np.uint8)
    words = padded.view(np.uint64)[:, 0]
    _, first, multiplicity = np.unique(words, return_index=True, return_counts=True)
    return data[first], multiplicity
