"""``SampledLevels``, ``AllLevels``: a histogram at each level of a tree above ordered bins.

They are the randomizers of `shuffledp.randomizers.parts` for values that are bins. The reports of
all levels are fitted by least squares, so that the share below any edge is about as accurate.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import Counts
from shuffledp.estimation.distributions import (
    DistributionEstimates,
    NodeLaw,
    RangeErrors,
    Tree,
    inner_edges,
    level_codes,
)
from shuffledp.randomizers import checks
from shuffledp.randomizers.parts import AllParts, Parts, SampledParts

# Below any variance of a share that noise could cause.
_NO_VARIANCE = 1e-300


class Levels(Parts):
    """Levels of a tree of bins; ``sizes`` are all of `level_sizes`, or the lowest of them."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Name with the number of levels, ``sampled-levels-3``."""
        return f"{self.prefix}-{len(self.sizes)}"

    def _settle(self, each: float, epsilon0: float) -> None:
        """Set the fields, if the levels make a tree with three nodes or more on top."""
        for above, below in zip(self.sizes, self.sizes[1:], strict=False):
            if above < 3 or -(-below // -(-below // above)) != above:
                raise ParameterError(
                    f"sizes = {self.sizes} are no levels of a tree with at least 3 nodes on top: "
                    "give those of level_sizes, or the lowest of them"
                )
        super()._settle(each, epsilon0)

    def _checked(self, values: Any) -> NDArray[Any]:
        """Return the node of each level above each bin, of bins of shape (n,)."""
        return level_codes(checks.require_codes(values, self.sizes[-1]), self.sizes)

    def node_law(self, part: int, num_reports: float, dummies: Iterable[DummyLaw] = ()) -> NodeLaw:
        """Return the noise of the shares of a level's nodes, from the reports about it."""
        p, q = self.levels[part].support_probabilities
        gain = p - q
        known = 0.0 if self.is_sampled else gain  # each user's answer is fixed
        added = sum(law.variance for law in dummies) / num_reports**2
        return NodeLaw(
            base=max(q / num_reports + added, _NO_VARIANCE) / gain**2,
            slope=(1.0 - known) / (num_reports * gain),
            sampling=1.0 / num_reports if self.is_sampled else 0.0,
            step=1.0 / (num_reports * gain),
        )

    def node_variances(
        self, part: int, num_reports: float, share: Any, dummies: Iterable[DummyLaw] = ()
    ) -> Any:
        """Return the variances of nodes of a level with some shares, from the reports about it.

        Their errors sum to 0 within a level, and given that are independent. For reports of a
        sample the variances are about a population, up to the sampling of `NodeLaw`.
        """
        law = self.node_law(part, num_reports, dummies)
        return law.base + law.slope * share

    @property
    def tree(self) -> Tree:
        """The tree with the variances of local noise for values that are evenly spread.

        They depend on the law alone, and so does the largest change by a user.
        """
        each = (float(self.node_variances(i, 1.0, 1.0 / k)) for i, k in enumerate(self.sizes))
        return Tree(self.sizes, tuple(each))

    def expected_variance(
        self, edges: Integers, num_users: int, dummies: Sequence[DummyLaw] = ()
    ) -> Floats:
        """Return the variances to expect of the shares below edges, for values evenly spread.

        For reports of samples they are about a population.
        """
        number, each = len(self.sizes), self.reports_on_parts(num_users)
        noise = [
            self.node_variances(part, each[part], 1.0 / size, dummies[part::number])
            for part, size in enumerate(self.sizes)
        ]
        return self.tree.variance(np.zeros_like(edges), edges, noise)

    def shift_by_one(self, num_users: int, counts: Counts | None = None) -> Floats:
        """Return the largest change by one of n users of each bin's share, or of the share below.

        A share is a sum over the levels of the mean weight of the reports on each, over p - q.
        Another report on the same level changes one mean by at most the span of the weights over
        n_l, and a report on another level two means, each by at most that: the limit is the sum of
        the largest two. Messages on all levels change all means.
        """
        size = self.sizes[-1]
        if not min(level.epsilon0 for level in self.levels) > 0.0:
            return np.full(size, np.inf)
        places = np.arange(size)
        starts = np.concatenate([places, np.zeros_like(places)])
        spans = np.concatenate(
            [
                [np.ptp(own, axis=1) for own in found]
                for found in self.tree.weights(starts, np.tile(places + 1, 2))
            ],
            axis=1,
        )
        with np.errstate(divide="ignore"):
            changes = spans / (self.reports_on_parts(num_users, counts) * self.gains)[:, None]
        most = np.sort(changes, axis=0)[-2 if self.is_sampled else 0 :].sum(axis=0)
        largest: Floats = np.maximum(most[:size], most[size:])
        return largest

    def report_for(self, place: int) -> NDArray[Any]:
        """Return all messages of one user that raise the estimate of a bin most."""
        found = next(self.tree.weights(np.array([place]), np.array([place + 1])))
        best = [int(own.argmax()) for own in found]
        codes = [where.start + node for where, node in zip(self.part_slices, best, strict=True)]
        if self.is_sampled:
            rise = np.array([own.max() for own in found]) / self.gains
            codes = [codes[int(rise.argmax())]]
        return self.report_columns().data[codes]

    def _estimated(
        self, counts: Sequence[Counts], num_users: int, confidence: float, *, simultaneous: bool
    ) -> DistributionEstimates:
        """Return estimates over the bins, fitted to the counts of each level."""
        found = self._frequencies(counts)  # refuses reports that say nothing
        bins = self.tree.fit(found)
        # One more user, spread evenly, so that a range without users has a distribution.
        shares = np.maximum(bins, 0.0) + 1.0 / (num_users * bins.size)
        errors = RangeErrors(
            tree=self.tree,
            nodes=tuple(
                self.node_law(part, each.num_reports, each.dummies)
                for part, each in enumerate(counts)
            ),
            cumulative=_edges_of(bins),
            below=_edges_of(shares / shares.sum()),
            sampling=0.0 if self.is_sampled else 1.0 / num_users,
        )
        all_of: Any = {"num_users": num_users, "confidence": confidence}
        return DistributionEstimates.of(errors, simultaneous=simultaneous, **all_of)


def _edges_of(shares: Floats) -> Floats:
    """Return the sum of the shares below each edge, of 1 in all."""
    return np.concatenate([[0.0], np.cumsum(shares)[:-1], [1.0]])


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledLevels(Levels, SampledParts):
    """k-RR of the node above the user's bin at one level, which each user draws in private.

    Parameters
    ----------
    sizes : tuple of int
        Number of nodes of each level, from the top down to the bins.
    epsilon0 : float
        As of `SampledParts`.

    Examples
    --------
    >>> from shuffledp import Entropy
    >>> law = SampledLevels(sizes=(3, 9), epsilon0=4.0)
    >>> reports = law.randomize(np.repeat([4, 8], 5000), Entropy.from_seed(1))
    >>> found = law.estimate(reports)
    >>> bool(abs(found.cumulative[4] - 0.5) < 5 * found.cumulative_standard_error[4])
    True
    """

    prefix: ClassVar[str] = "sampled-levels"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllLevels(Levels, AllParts):
    """k-RR of the node above the user's bin at each level, as messages of their own.

    Parameters
    ----------
    sizes : tuple of int
        Number of nodes of each level, from the top down to the bins.
    epsilon0 : float
        As of `AllParts`.
    """

    prefix: ClassVar[str] = "all-levels"

    @property
    def dummy_factor(self) -> float:
        """Error of a count below an edge under the least normal noise of dummies, times its mu.

        Another value moves two counts of each level by one, so that their noise has the variance
        2 L / mu^2; root mean square over the edges.
        """
        edges, number = inner_edges(self.sizes[-1]), len(self.sizes)
        variance = self.tree.variance(np.zeros_like(edges), edges, (2.0 * number,) * number)
        return math.sqrt(float(variance.mean()))
