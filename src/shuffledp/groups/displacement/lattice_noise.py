"""Noise on a lattice of whole-number points: mass proportional to exp(-theta norm), exactly.

In one dimension that is the discrete Laplace law. The normalising constant is the same around
every point. So for the noisy places of two people, at c and c', the likelihood ratio is
exp(theta d(p, c') - theta d(p, c)) <= exp(theta d(c, c')) at every point p, however far away.

Drawn by rejection. Coordinates are proposed independently, with masses proportional to
exp(-rate abs(k_j)), rate <= theta / sqrt(d): a geometric magnitude, and a sign; -0 is refused. With
l1 for the sum of abs(k_j) and l2 for the Euclidean norm, the point is accepted with probability
exp(rate l1 - theta l2), which is at most 1 because l1 <= sqrt(d) l2. In one dimension rate = theta,
and all but -0 is accepted. Nearly all draws are decided by floats with a bound on their error; the
rest by `exact_draws`, with more bits of the same uniform numbers. So the masses are those of the
real numbers meant, tails included.

Source: ours; inversion of geometric variates and rejection are standard.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.permutations.exact_draws import (
    WORD_BITS,
    LazyUniform,
    draw_geometric,
    draw_norm_acceptance,
)
from shuffledp.groups.permutations.model_checks import LIBRARY_MARGIN

#: Smaller theta means noise that whole numbers of 64 bits do not hold comfortably.
SMALLEST_THETA = 2.0**-40

#: In more dimensions too few proposals are accepted.
MOST_DIMENSIONS = 8

# Of -ln U: rounding U to a float, 2^-53, with room.
_ABSOLUTE_MARGIN = 2.0**-50
_UNIT = 2.0**-64

# Proposals at a time.
_BLOCK = 1 << 17


def draw_lattice_noise(
    num_points: int,
    dimensions: int,
    theta: float,
    entropy: Entropy,
    *,
    margin: float = LIBRARY_MARGIN,
) -> NDArray[np.int64]:
    """Draw independent points with probability proportional to exp(-theta norm).

    Parameters
    ----------
    num_points : int
        How many, at least 0.
    dimensions : int
        Of each, in [1, 8].
    theta : float
        In [2^-40, inf); exp(-theta) is the likelihood ratio of neighbouring points on an axis.
    entropy : Entropy
        Where the words come from.
    margin : float
        Error that floats may have; larger is slower and gives the same points. With ``inf`` every
        draw is settled with decimals.

    Returns
    -------
    ndarray of int64, shape (num_points, dimensions)
        Exactly of this law if the words are uniform.

    Raises
    ------
    ParameterError
        If theta or the number of dimensions is out of range.

    Notes
    -----
    Source: this module. Cost: some 100 to 300 ns a point in one to three dimensions.

    Examples
    --------
    >>> noise = draw_lattice_noise(4, 2, 50.0, Entropy.from_seed(0))
    >>> noise.tolist()  # elsewhere than at 0 with probability 4 e^-50
    [[0, 0], [0, 0], [0, 0], [0, 0]]
    """
    if not SMALLEST_THETA <= theta < math.inf:
        raise ParameterError(
            f"theta = {theta} is not in [2^-40, inf): give 0 for a uniform shuffle, or make the "
            "cells of the lattice larger"
        )
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise ParameterError(
            f"dimensions = {dimensions} is not in [1, {MOST_DIMENSIONS}]: give fewer coordinates"
        )
    sampler = _Sampler(dimensions, theta, _proposal_rate(theta, dimensions), entropy, margin)
    found = [np.empty((0, dimensions), dtype=np.int64)]
    missing = num_points
    while missing > 0:
        block = sampler.accepted(min(missing, _BLOCK))
        found.append(block)
        missing -= len(block)
    return np.concatenate(found)


def _proposal_rate(theta: float, dimensions: int) -> float:
    """Return a float that is at most theta / sqrt(d) in exact arithmetic."""
    if dimensions == 1:
        return theta
    return theta / math.sqrt(dimensions) * (1.0 - 2.0**-50)


class _Sampler(NamedTuple):
    """The law of the noise, that of its proposals, and where the words come from."""

    dimensions: int
    theta: float
    rate: float
    entropy: Entropy
    margin: float

    def accepted(self, count: int) -> NDArray[np.int64]:
        """Return those of some proposals that are accepted."""
        shape = (count, self.dimensions)
        magnitudes = self.magnitudes(self.entropy.words(count * self.dimensions)).reshape(shape)
        bits = np.arange(self.dimensions, dtype=np.uint64)
        is_negative = (self.entropy.words(count)[:, None] >> bits) & np.uint64(1) == 1
        kept = ~(is_negative & (magnitudes == 0)).any(axis=1)
        points: NDArray[np.int64] = np.where(is_negative, -magnitudes, magnitudes)[kept]
        return points if self.dimensions == 1 else points[self.passes(points)]

    def magnitudes(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return floor(-ln U / rate) for the U that begin with these bits."""
        values, errors = self.exponentials(words)
        quotients, spreads = values / self.rate, errors / self.rate
        spreads += quotients * 2.0**-50
        low = np.floor(np.maximum(quotients - spreads, 0.0))
        is_undecided = ~(quotients + spreads < low + 1.0)
        found = np.where(is_undecided, 0.0, low).astype(np.int64)
        for index in np.flatnonzero(is_undecided):
            found[index] = draw_geometric(self.uniform(words[index]), self.rate)
        return found

    def passes(self, points: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which proposals pass: those with -ln U above theta l2 - rate l1."""
        words = self.entropy.words(len(points))
        sizes = np.abs(points).astype(np.float64)
        norms = self.theta * np.sqrt((sizes * sizes).sum(axis=1))
        totals = self.rate * sizes.sum(axis=1)
        values, errors = self.exponentials(words)
        errors += (norms + totals) * 2.0**-46
        gaps = values - (norms - totals)
        passes: NDArray[np.bool_] = gaps > 0.0
        for index in np.flatnonzero(~(np.abs(gaps) > errors)):
            uniform = self.uniform(words[index])
            passes[index] = draw_norm_acceptance(
                uniform, self.theta, self.rate, points[index].tolist()
            )
        return passes

    def exponentials(
        self, words: NDArray[np.uint64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return -ln U for the U that begin with these bits, and bounds on the errors."""
        sizes = np.maximum(words.astype(np.float64), 1.0)
        values = -np.log(sizes * _UNIT)
        errors = values * self.margin + _ABSOLUTE_MARGIN + 2.0 / sizes
        return values, np.where(words == 0, np.inf, errors)

    def uniform(self, word: np.uint64) -> LazyUniform:
        """Return the U that begins with these bits."""
        return LazyUniform(prefix=int(word), num_bits=WORD_BITS, entropy=self.entropy)
