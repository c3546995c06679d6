"""Distributions of numbers: shares in bins that fit a tree, shares below an edge, quantiles."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from shuffledp.core.arrays import Floats
from shuffledp.core.checks import require_open_unit
from shuffledp.core.errors import ParameterError
from shuffledp.estimation.frequencies import FrequencyEstimates
from shuffledp.estimation.intervals import (
    Arrays,
    Interval,
    ShareLaw,
    normal_quantile,
    simultaneous_confidence,
)
from shuffledp.estimation.trees import Tree, level_codes

# Below any share outside of a range, but the round-off of all.
_NOTHING = 1e-12


class Estimate(NamedTuple):
    """An estimate, and the ends of its interval."""

    value: float
    lower: float
    upper: float


class NodeLaw(NamedTuple):
    """Noise of a node's share: its variance is base + slope times the share of its users.

    Parameters
    ----------
    base, slope : float
        Given that the errors of all nodes of its level sum to 0.
    sampling : float
        1 / m if the m reports on the level are of a random sample of the users, else 0.
    step : float
        Change of the share by one report.
    """

    base: float
    slope: float
    sampling: float
    step: float


@dataclass(frozen=True, slots=True, eq=False)
class RangeErrors:
    """Joint errors of the shares in consecutive bins.

    Parameters
    ----------
    tree : Tree
        Tree by which the bins were fitted.
    nodes : tuple of NodeLaw
        Noise of the nodes of each level.
    cumulative : ndarray, shape (k + 1,)
        Estimated share of the users below each edge.
    below : ndarray, shape (k + 1,)
        Approximate share of the users below each edge, rising.
    sampling : float
        Variance that sampling of a population adds for each unit of f (1 - f), if not in the noise.
    """

    tree: Tree
    nodes: tuple[NodeLaw, ...]
    cumulative: Floats
    below: Floats
    sampling: float

    def of(self, starts: Any, stops: Any) -> ShareLaw:
        """Return the law of the shares from each start to before its stop, about a population.

        A share that is not the estimated one keeps its distribution within the range, and so does
        the rest outside.
        """
        starts, stops = np.broadcast_arrays(*np.atleast_1d(starts, stops))
        low, high = self.below[starts, None], self.below[stops, None]
        found, first = [], 0
        for weights in self.tree.weights(starts, stops):
            where = slice(first, first + len(weights[0]))
            found.append(self._moments(weights, low[where], high[where]))
            first = where.stop
        unknown = (high - low < 1.0)[:, 0]  # the share of all bins is known, but for round-off
        constant, linear, square, step = np.concatenate(found, axis=1) * unknown
        added = self.sampling * (step > 0.0)
        linear, square = linear + added, square - added
        value = self.cumulative[stops] - self.cumulative[starts]
        return ShareLaw(value, constant, linear, square, step)

    def _moments(self, weights: Sequence[Floats], low: Floats, high: Floats) -> Floats:
        """Return constant, linear and square part of variances, and largest steps, (4, ranges)."""
        found = np.zeros((4, len(low)))
        codes = level_codes(np.arange(self.below.size - 1), self.tree.sizes)
        for level, own, law in zip(codes.T, weights, self.nodes, strict=True):
            edges = self.below[np.searchsorted(level, np.arange(own.shape[1] + 1))]
            inside = np.diff(np.clip(edges, low, high))
            rest = 1.0 - (high - low)
            outside = (np.diff(edges) - inside) / np.maximum(rest, _NOTHING)
            more = inside / (high - low) - outside  # for each unit of share that is moved inside
            mean, change = ((own * each).sum(axis=1) for each in (outside, more))
            second, added = ((own**2 * each).sum(axis=1) for each in (outside, more))
            found[0] += law.base * (own**2).sum(axis=1) + law.slope * second
            found[0] -= law.sampling * mean**2
            found[1] += law.slope * added - 2.0 * law.sampling * mean * change
            found[2] -= law.sampling * change**2
            found[3] = np.maximum(found[3], law.step * np.ptp(own, axis=1))
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistributionEstimates(FrequencyEstimates):
    """Shares of users in k bins, and below the upper edge of each; see `FrequencyEstimates`.

    Parameters
    ----------
    edges : tuple of float
        The k + 1 edges of the bins, ascending.
    cumulative_population_standard_error : ndarray of float64
        Standard error of the share below the upper edge of each bin, in a population.
    errors : RangeErrors
        Joint errors of the shares in consecutive bins.
    laws : tuple of ShareLaw
        Errors of the shares in the bins, and below the upper edge of each.

    Notes
    -----
    Shares are unbiased, so that cumulative ones may decrease. Intervals are those of `ShareLaw`.
    """

    edges: tuple[float, ...]
    cumulative_population_standard_error: Floats
    errors: RangeErrors = field(repr=False)
    laws: tuple[ShareLaw, ShareLaw] = field(repr=False)

    @classmethod
    def of(
        cls,
        errors: RangeErrors,
        *,
        num_users: int,
        confidence: float,
        simultaneous: bool = False,
    ) -> "DistributionEstimates":
        """Return the estimates of fitted bins, whose edges are 0, ..., k."""
        places = np.arange(errors.below.size - 1)
        size = places.size
        each = simultaneous_confidence(confidence, size) if simultaneous else confidence
        laws = bins, below = errors.of(places, places + 1), errors.of(0, places + 1)
        own = bins.among(num_users)
        lower, upper = own.interval(normal_quantile(each))
        return cls(
            count=num_users * bins.value,
            frequency=bins.value,
            standard_error=own.standard_error,
            population_standard_error=bins.standard_error,
            lower=lower,
            upper=upper,
            num_users=num_users,
            confidence=confidence,
            interval="score",
            is_simultaneous=simultaneous,
            edges=tuple(map(float, range(size + 1))),
            cumulative_population_standard_error=below.standard_error,
            errors=errors,
            laws=laws,
        )

    def _population_interval(self) -> Interval:
        """Return intervals for a population."""
        return self.laws[0].interval(self.quantile)

    @property
    def band(self) -> float:
        """Quantile z of a band for all shares below inner edges at once."""
        return normal_quantile(simultaneous_confidence(self.confidence, self.frequency.size - 1))

    @property
    def cumulative(self) -> Floats:
        """Share of users below the upper edge of each bin; the last is 1."""
        return np.append(np.cumsum(self.frequency)[:-1], 1.0)

    @property
    def cumulative_standard_error(self) -> Floats:
        """Standard errors of the cumulative shares of these users."""
        return self.laws[1].among(self.num_users).standard_error

    @property
    def root_mean_square_error(self) -> float:
        """Root mean square of the standard errors of the shares below the inner edges."""
        return float((self.cumulative_standard_error[:-1] ** 2).mean() ** 0.5)

    def cumulative_interval(
        self, *, about: str = "respondents", simultaneous: bool | None = None
    ) -> Interval:
        """Return both ends for each cumulative share: of these users, or of the population.

        If ``simultaneous``, a band for all of them; by default as the estimates are.
        """
        is_band = self.is_simultaneous if simultaneous is None else simultaneous
        number = self.num_users if about == "respondents" else None
        quantile = self.band if is_band else normal_quantile(self.confidence)
        return self.laws[1].among(number).interval(quantile)

    def columns(self) -> dict[str, Floats]:
        """Return the arrays by name, in the order of a table, with the cumulative shares."""
        lower, upper = self.cumulative_interval()
        return Arrays.columns(self) | {
            "cumulative": self.cumulative,
            "cumulative_standard_error": self.cumulative_standard_error,
            "cumulative_lower": lower,
            "cumulative_upper": upper,
        }

    def quantiles(self, *probabilities: float, about: str = "respondents") -> tuple[Estimate, ...]:
        """Return the numbers with these shares of the users below them.

        Parameters
        ----------
        *probabilities : float
            The shares, in (0, 1); 0.5 asks for the median.
        about : {"respondents", "population"}
            Target of the intervals: quantiles of the users, or of their population.

        Returns
        -------
        tuple of Estimate
            From cumulative shares in ascending order, linear within a bin. An interval begins at
            the last edge up to which even the upper ends of all cumulative shares are too small,
            and ends at the first edge from which on even their lower ends are large enough. It
            misses the quantile only if the interval of the share at the next edge misses: the
            confidence is one share's, and for simultaneous estimates for all quantiles at once.

        Raises
        ------
        ParameterError
            If a probability is out of range.
        """
        asked = [require_open_unit("probability", each) for each in probabilities]
        lower, upper = (each[:-1] for each in self.cumulative_interval(about=about))
        if self.is_simultaneous:
            lower = np.maximum.accumulate(lower)
            upper = np.minimum.accumulate(upper[::-1])[::-1]
        shares = np.clip(np.sort(self.cumulative[:-1]), 0.0, 1.0)
        values = np.interp(asked, [0.0, *shares, 1.0], self.edges)
        found = []
        for value, each in zip(values.tolist(), asked, strict=True):
            is_low, is_high = upper < each, lower >= each
            first = int(np.logical_and.accumulate(is_low).sum())
            last = len(lower) + 1 - int(np.logical_and.accumulate(is_high[::-1]).sum())
            found.append(Estimate(value, self.edges[first], self.edges[last]))
        return tuple(found)

    def between(self, low: float, high: float, *, about: str = "respondents") -> Estimate:
        """Return the share of users from one edge of a bin to before another.

        Raises
        ------
        ParameterError
            If these are no edges in this order.
        """
        for name, edge in (("low", low), ("high", high)):
            if edge not in self.edges:
                nearest = sorted(self.edges, key=lambda each: abs(each - edge))[:2]
                raise ParameterError(
                    f"{name} = {edge} is no edge of a bin: the nearest are "
                    f"{' and '.join(f'{each:g}' for each in sorted(nearest))}"
                )
        start, stop = self.edges.index(low), self.edges.index(high)
        if start >= stop:
            raise ParameterError(f"low = {low} is not below high = {high}: exchange them")
        number = self.num_users if about == "respondents" else None
        lower, upper = self.errors.of(start, stop).among(number).interval(self.quantile)
        share = float(self.frequency[start:stop].sum())
        return Estimate(share, float(lower[0]), float(upper[0]))
