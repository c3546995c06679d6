"""Ordered numbers in public bins: shares below edges, quantiles, and a histogram."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.questions import question
from shuffledp.collection.source import columns, single, tables
from shuffledp.core.checks import require_at_least, require_finite, require_open_unit, set_fields
from shuffledp.core.errors import ParameterError
from shuffledp.core.labels import require_list, require_text
from shuffledp.core.reports import Counts
from shuffledp.estimation.distributions import DistributionEstimates, Tree, inner_edges, level_sizes
from shuffledp.randomizers.parts import AllLevels, Levels, SampledLevels

_EDGE = partial(require_finite, "edges")

#: Largest number of bins; the time for errors of their shares grows with its square.
MOST_BINS = 4096

#: Quantiles that are stated by default.
QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True, init=False)
class Distribution(question.Shares):
    """Each user has a number; the shares below the edges of bins are asked for, and quantiles.

    Parameters
    ----------
    edges : iterable of float, optional
        Edges of the bins, ascending: at least three, at most 4,097; a bin holds its lower edge, and
        the last one both. Known without looking at the data.
    bins : int, optional
        In place of edges: number of bins of the same width, in [2, 4096], between ``limits``.
    limits : (float, float), optional
        Ends of these bins, finite.
    quantiles : iterable of float
        Shares p of users, in (0, 1), for which reports state the p-quantile.
    name : str
        Name of the measured number, for example the name of the column.

    Raises
    ------
    ParameterError
        If edges are not increasing and finite, or if neither edges nor bins within limits are
        given; if a quantile is out of range.

    Examples
    --------
    >>> Distribution(bins=4, limits=(0, 120)).labels
    ('[0, 30)', '[30, 60)', '[60, 90)', '[90, 120]')
    """

    kind: ClassVar[str] = "distribution"
    stated: ClassVar[tuple[str, ...]] = ("name", "edges", "quantiles")
    checked_by: ClassVar[tuple[str, ...]] = ("edges",)
    reads: ClassVar[tuple[str, ...]] = ("missing", "clip")
    no_values: ClassVar[NDArray[np.int64]] = np.empty(0, dtype=np.int64)
    central_noise: ClassVar[str] = (
        "noise of a trusted curator on a tree of totals, with the error of {} on each total below "
        "an edge"
    )
    expected_for: ClassVar[str] = (
        "root mean square over the shares below the edges, for values spread evenly over the bins"
    )

    edges: tuple[float, ...]
    quantiles: tuple[float, ...]
    name: str

    def __init__(
        self,
        edges: Iterable[float] | None = None,
        *,
        bins: int | None = None,
        limits: tuple[float, float] | None = None,
        quantiles: Iterable[float] = QUARTILES,
        name: str = "distribution",
    ) -> None:
        require_list("quantiles", quantiles)
        if (edges is None) == (bins is None) or (bins is None) != (limits is None):
            raise ParameterError(
                f"edges = {edges}, bins = {bins}, limits = {limits}: give edges alone, or bins and "
                "limits, as in bins=24, limits=(0, 120)"
            )
        found = _even(bins, limits) if edges is None else tuple(map(_EDGE, edges))
        require_at_least("number of bins", len(found) - 1, 2, MOST_BINS, "merge bins, or split one")
        for low, high in pairwise(found):
            if not -math.inf < low < high < math.inf:
                raise ParameterError(f"edges have {low}, {high} in a row: give finite, rising ones")
        asked = tuple(require_open_unit("quantiles", each) for each in quantiles)
        require_text("name", name)
        set_fields(self, edges=found, quantiles=asked, name=name)

    @property
    def labels(self) -> tuple[str, ...]:
        """The bins."""
        texts = [f"[{_text(low)}, {_text(high)})" for low, high in pairwise(self.edges)]
        return (*texts[:-1], f"{texts[-1][:-1]}]")

    @property
    def num_bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @property
    def limits(self) -> columns.Range:
        """Limits of the number."""
        return columns.Range(self.edges[0], self.edges[-1])

    @property
    def central_sensitivity(self) -> float:
        """Noise scale for which a curator's cumulative totals err as they do with the best tree.

        Replacing one value changes two counts of each level by one.
        """
        return min(2.0 * math.sqrt(len(sizes) * self._noise(sizes)) for sizes in self._trees())

    def _trees(self) -> list[tuple[int, ...]]:
        """Return the level sizes of the full tree above the bins, then without its top levels."""
        sizes = level_sizes(self.num_bins)
        return [sizes[first:] for first in range(len(sizes))]

    def _noise(self, sizes: tuple[int, ...]) -> float:
        """Return the mean variance of shares below edges, with noise on all nodes of a tree.

        The budget is split over the levels: the variance of the noise is their number.
        """
        ones, edges = (1.0,) * len(sizes), inner_edges(self.num_bins)
        variance = Tree(sizes, ones).variance(np.zeros_like(edges), edges, ones)
        return len(sizes) * float(variance.mean())

    def candidates(self) -> question.Candidates:
        """Return randomizers of one level of a tree, drawn at random, for each number of levels."""
        makers = {
            f"sampled-levels-{len(sizes)}": partial(SampledLevels, sizes=sizes)
            for sizes in self._trees()
        }
        return question.candidates_of(makers)

    def dummy_candidates(self) -> question.Candidates:
        """Return randomizers of all levels of a tree, for each number of levels, from 1 up."""
        makers = {
            f"all-levels-{len(sizes)}": partial(AllLevels, sizes=sizes)
            for sizes in reversed(self._trees())
        }
        return question.candidates_of(makers)

    @property
    def expected_spread(self) -> float:
        """Mean variance of the indicator of being below an inner edge, for evenly spread values."""
        return (self.num_bins + 1.0) / (6.0 * self.num_bins)

    def expected_error(
        self, randomizer: Levels, num_users: int, dummies: question.Laws = ()
    ) -> float:
        """Return the standard error of a share below an edge, root mean square over the edges."""
        if not min(level.epsilon0 for level in randomizer.levels) > 0.0:
            return math.inf
        found = float(
            randomizer.expected_variance(inner_edges(self.num_bins), num_users, dummies).mean()
        )
        known = self.expected_spread / num_users if randomizer.is_sampled else 0.0
        return math.sqrt(max(found - known, 0.0))

    def shift_by_one(
        self, randomizer: Levels, num_users: int, counts: Counts | None = None
    ) -> NDArray[np.float64]:
        """Return the largest change of each bin's share, or of the share below its upper edge."""
        return randomizer.shift_by_one(num_users, counts)

    def frequent_error(self, *_: Any) -> None:
        """Return None: errors are about shares below edges."""
        return

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` for steps after which the shares of all bins may not sum to 1."""
        question.Shares.require_post_processing(self, steps)
        if "clip" in steps:
            raise ParameterError(
                "post-processing clip leaves shares that do not sum to 1: give norm-sub"
            )

    def read(self, source: tables.Source) -> columns.Column:
        """Return a column of numbers, checked; their bins, int64."""
        found = columns.numbers(source, self)
        blocks = found.blocks
        return replace(found, blocks=lambda: map(self._bins, blocks()))

    def _bins(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the bins of numbers within the limits."""
        places = np.searchsorted(self.edges, numbers, side="right") - 1
        return np.minimum(places, self.num_bins - 1)

    def value_of_one(self, answer: Any) -> NDArray[np.int64]:
        """Return the bin of one user's number, shape (1,)."""
        return self._bins(single.number_of(answer, self.limits))

    def estimate(
        self, randomizer: Any, aggregate: Counts, options: question.EstimateOptions
    ) -> DistributionEstimates:
        """Return the shares of users in all bins, with the shares below their edges."""
        found: Any = question.Shares.estimate(self, randomizer, aggregate, options)
        estimates: DistributionEstimates = replace(found, edges=self.edges)
        return estimates

    def describe(self) -> str:
        """Return the number of bins and the range."""
        return f"numbers in {self.num_bins} bins of {self.limits}"


def _even(bins: Any, limits: Any) -> tuple[float, ...]:
    """Return the edges of equally wide bins, rounded to fifteen digits."""
    number = require_at_least("bins", bins, 2, MOST_BINS, "merge bins")
    if np.shape(limits) != (2,):
        raise ParameterError(f"limits = {limits} are not two numbers: give them as in (0, 120)")
    span = columns.Range(*limits)
    return tuple(float(f"{each:.15g}") for each in np.linspace(span.low, span.high, number + 1))


def _text(edge: float) -> str:
    """Return an edge as labels show it, without loss of precision."""
    return f"{edge:.15g}" if float(f"{edge:.15g}") == edge else repr(edge)
