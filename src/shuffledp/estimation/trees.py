"""Histograms of the same values at several levels of a tree, combined by least squares.

The top level has a root above it, whose share is 1. A node of a level has consecutive nodes of the
next level as children, as evenly as possible; the lowest level is the bins. Each level is observed
with its own noise, whose variance is assumed to be equal for all its nodes: then the bins are
linear in the observations, and unbiased for any noise. Errors are computed for the actual noise,
see docs/guides/quantiles.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats, Integers

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
