"""Distributions of numbers: shares in bins that fit a tree, shares below an edge, quantiles.

Histograms of the same values at several levels of a tree are combined by least squares. The top
level has a root above it, whose share is 1. A node of a level has consecutive nodes of the next
level as children, as evenly as possible; the lowest level is the bins. Each level is observed with
its own noise, whose variance is assumed to be equal for all its nodes: then the bins are linear in
the observations, and unbiased for any noise. Errors are computed for the actual noise, see
docs/guides/quantiles.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats, Integers
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

#: Children of a node: among 2 to 32 this has about the least variance of cumulative shares.
CHILDREN = 4

# Largest number of elements of an array of ranges by nodes.
_AT_ONCE = 1 << 21

# Number of edges, evenly spread, at which expected errors are computed.
_MOST_EDGES = 64


def level_sizes(num_bins: int, children: int = CHILDREN) -> tuple[int, ...]:
    """Return the number of nodes of each level, from the top down to the bins.

    A level of two nodes above others would cost more than it contributes.

    Examples
    --------
    >>> level_sizes(64), level_sizes(9), level_sizes(8)
    ((4, 16, 64), (3, 9), (8,))
    """
    sizes = [num_bins]
    while sizes[0] > 2 * children:
        sizes.insert(0, -(-sizes[0] // children))
    return tuple(sizes)


def inner_edges(num_bins: int) -> Integers:
    """Return the edges between bins, or some of many, at which expected errors are computed."""
    edges = np.linspace(1, num_bins - 1, min(_MOST_EDGES, num_bins - 1))
    return edges.round().astype(np.int64)


def level_codes(bins: NDArray[np.integer], sizes: Sequence[int]) -> Integers:
    """Return the node of each level above each bin, shape (n, L), from the top down."""
    codes = np.empty((len(bins), len(sizes)), dtype=np.int64)
    codes[:, -1] = bins
    for level in range(len(sizes) - 2, -1, -1):
        codes[:, level] = codes[:, level + 1] // -(-sizes[level + 1] // sizes[level])
    return codes


class _Family(NamedTuple):
    """Nodes with children: the share of each child in the excess of the parent over their sum."""

    size: int
    shares: Floats  # (size, most children)
    own: Floats  # weight of the node's observation, against its children's sum


@dataclass(frozen=True, slots=True)
class Tree:
    """Levels of a tree, with the assumed variance of each node of a level.

    Examples
    --------
    The first half was observed as 1/2, and as 0.1 + 0.2 with twice the variance: 0.433.

    >>> tree = Tree((2, 4), (1.0, 1.0))
    >>> tree.fit([np.array([0.5, 0.5]), np.array([0.1, 0.2, 0.3, 0.4])]).round(3).tolist()
    [0.167, 0.267, 0.233, 0.333]
    """

    sizes: tuple[int, ...]
    variances: tuple[float, ...]

    def _families(self) -> list[_Family]:
        """Return the nodes above the bins, from the lowest up to the root."""
        below = np.full(self.sizes[-1], self.variances[-1])
        found = []
        for size, own in zip(
            (1, *self.sizes)[-2::-1], (np.inf, *self.variances)[-2::-1], strict=True
        ):
            children = _grouped(below, size)
            total = children.sum(axis=-1)
            found.append(_Family(size, children / total[:, None], total / (total + own)))
            below = total * (1.0 - found[-1].own)
        return found

    def fit(self, levels: Sequence[Floats], total: float = 1.0) -> Floats:
        """Return the bins, of this total, that fit the observations of all levels best."""
        families, below = self._families(), [levels[-1]]
        for family, own in zip(families, [*levels[-2::-1], np.zeros(1)], strict=True):
            sums = _grouped(below[-1], family.size).sum(axis=-1)
            below.append(family.own * own + (1.0 - family.own) * sums)
        found = np.array([total])
        for family, children in zip(reversed(families), below[-2::-1], strict=True):
            grouped = _grouped(children, family.size)
            missing = found - grouped.sum(axis=-1)
            found = (grouped + family.shares * missing[:, None]).reshape(-1)[: children.size]
        return found

    def weights(self, starts: Integers, stops: Integers) -> Iterator[list[Floats]]:
        """Yield the weights of the observations in sums of bins from each start to before its stop.

        In blocks of sums: for each level an array of the weights of its nodes, which add up to 0
        for each sum, so that a constant added to a level changes nothing.

        A node and its descendants add to a sum ``slope`` times the node's fitted value, and for
        each child ``away`` times its estimate from its own observation and its descendants' ones.
        """
        families, places = self._families(), np.arange(self.sizes[-1])
        owns = [np.ones(1), *(family.own for family in families)]
        for first in range(0, len(starts), step := max(1, _AT_ONCE // self.sizes[-1])):
            start, stop = (each[first : first + step, None] for each in (starts, stops))
            slope, aways = ((places >= start) & (places < stop)).astype(np.float64), []
            for family in families:
                slopes = _grouped(slope, family.size)
                slope = (slopes * family.shares).sum(axis=-1)
                aways.append(slopes - slope[..., None])
            of_estimate, found = np.zeros_like(slope), []
            for family, away, own, size in zip(
                families[::-1], aways[::-1], owns[-2::-1], self.sizes, strict=True
            ):
                inherited = (1.0 - family.own) * of_estimate
                children = away + inherited[..., None]
                of_estimate = children.reshape(len(start), -1)[:, :size]
                found.append(own * of_estimate)
            yield found

    def variance(self, starts: Integers, stops: Integers, noise: Sequence[Any]) -> Floats:
        """Return the variance of the fitted sums of the bins from each start to before its stop.

        ``noise`` has the variances of the nodes of each level. Their errors are independent, or
        conditioned on the sum 0 within a level.
        """
        each = [np.broadcast_to(*pair) for pair in zip(noise, self.sizes, strict=True)]
        return np.concatenate(
            [
                np.sum([own**2 @ level for own, level in zip(found, each, strict=True)], axis=0)
                for found in self.weights(starts, stops)
            ]
        )


def _grouped(values: Floats, size: int) -> Floats:
    """Return nodes in groups, one for each parent, (..., size, children), padded with zeros."""
    number = values.shape[-1]
    children = -(-number // size)
    if children * size > number:
        values = np.concatenate(
            [values, np.zeros((*values.shape[:-1], children * size - number))], axis=-1
        )
    return values.reshape(*values.shape[:-1], size, children)


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
