"""Distributions of numbers: shares in bins that fit a tree, shares below an edge, quantiles."""

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
    normal_quantile,
    simultaneous_confidence,
)
from shuffledp.estimation.trees import Tree


class Estimate(NamedTuple):
    """An estimate, and the ends of its interval."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, eq=False)
class RangeErrors:
    """Joint errors of the shares in consecutive bins.

    Parameters
    ----------
    tree : Tree
        Tree by which the bins were fitted.
    noise : tuple of ndarray
        For each level the variances of its nodes, as for `Tree.variance`.
    tilts : tuple of ndarray, shape (k + 1,)
        For each level observed by a sample of the users: the sum of the bins below each edge,
        fitted to the true shares at this level and zeros at the others, over the root of the size
        of the sample.
    below : ndarray, shape (k + 1,)
        Approximate share of the users below each edge.
    sampling : float
        Variance that sampling of a population adds for each unit of f (1 - f), if not in the noise.
    """

    tree: Tree
    noise: tuple[Floats, ...]
    tilts: tuple[Floats, ...]
    below: Floats
    sampling: float

    def of(self, starts: Any, stops: Any, num_users: int | None = None) -> Floats:
        """Return standard errors of the shares from each start to before its stop.

        Among n users; without a number among a population that they are a random sample of.
        """
        starts, stops = np.broadcast_arrays(*np.atleast_1d(starts, stops))
        variance = self.tree.variance(starts, stops, self.noise)
        variance = variance - sum((tilt[stops] - tilt[starts]) ** 2 for tilt in self.tilts)
        share = self.below[stops] - self.below[starts]
        variance = variance + self.sampling * share * (1.0 - share)
        return self.among(np.sqrt(np.maximum(variance, 0.0)), share, num_users)

    def among(self, errors: Floats, share: Floats, num_users: int | None) -> Floats:
        """Return standard errors among n users, given the standard errors for a population."""
        less = 0.0 if num_users is None else share * (1.0 - share) / num_users
        return np.asarray(np.sqrt(np.maximum(errors**2 - less, 0.0)))


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

    Notes
    -----
    Shares are unbiased, so that cumulative ones may decrease. Intervals are normal ones.
    """

    edges: tuple[float, ...]
    cumulative_population_standard_error: Floats
    errors: RangeErrors = field(repr=False)

    @classmethod
    def of(
        cls,
        bins: Floats,
        errors: RangeErrors,
        *,
        num_users: int,
        confidence: float,
        simultaneous: bool = False,
    ) -> "DistributionEstimates":
        """Return the estimates of fitted bins, whose edges are 0, ..., k."""
        size, places = bins.size, np.arange(bins.size)
        each = simultaneous_confidence(confidence, size) if simultaneous else confidence
        population, cumulative = errors.of(places, places + 1), errors.of(0, places + 1)
        cumulative[-1] = 0.0  # up to round-off
        own = errors.among(population, np.diff(errors.below), num_users)
        margin = normal_quantile(each) * own
        return cls(
            count=num_users * bins,
            frequency=bins,
            standard_error=own,
            population_standard_error=population,
            lower=bins - margin,
            upper=bins + margin,
            num_users=num_users,
            confidence=confidence,
            interval="wald",
            is_simultaneous=simultaneous,
            edges=tuple(map(float, range(size + 1))),
            cumulative_population_standard_error=cumulative,
            errors=errors,
        )

    def _population_interval(self) -> Interval:
        """Return intervals for a population."""
        margin = self.quantile * self.population_standard_error
        return self.frequency - margin, self.frequency + margin

    @property
    def band(self) -> float:
        """Half width, in standard errors, of a band for all shares below inner edges at once."""
        return normal_quantile(simultaneous_confidence(self.confidence, self.frequency.size - 1))

    @property
    def cumulative(self) -> Floats:
        """Share of users below the upper edge of each bin; the last is 1."""
        return np.append(np.cumsum(self.frequency)[:-1], 1.0)

    @property
    def cumulative_standard_error(self) -> Floats:
        """Standard errors of the cumulative shares of these users."""
        errors = self.cumulative_population_standard_error
        return self.errors.among(errors, self.errors.below[1:], self.num_users)

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
        errors = self.cumulative_population_standard_error
        if about == "respondents":
            errors = self.cumulative_standard_error
        margin = (self.band if is_band else normal_quantile(self.confidence)) * errors
        return self.cumulative - margin, self.cumulative + margin

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
        error = float(self.errors.of(start, stop, number)[0])
        share, margin = float(self.frequency[start:stop].sum()), error * self.quantile
        return Estimate(share, share - margin, share + margin)
