"""Public weights: each user takes part with a probability in proportion to the weight.

Plain estimates from the participants are then estimates for the users' weight, for any question,
because the draw depends only on public weights.

User i of n takes part with probability pi_i = w_i/w_max, by a coin that depends on nothing else.
Let x_i be the value, F = sum w_i x_i/sum w_i, and F^ the plain mean of the m drawn (Hajek's
estimator of a Poisson sample: all have the same weight over pi_i).

*About these n users.* F^ - F = (1/m) sum I_i (x_i - F) with coins I_i and sum pi_i (x_i - F) = 0.
To first order in 1/m it has the mean 0 and the variance sum pi_i (1 - pi_i)(x_i - F)^2/(sum pi_i)^2
<= s^2/E m, where s^2 = sum pi_i (x_i - F)^2/sum pi_i is the variance of a value drawn by weight.

*About a population.* Where pairs (w_i, x_i) are independent draws of one law, the values of the
users drawn are, given m, independent draws of that law reweighted by w, whose mean is asked for: F^
is unbiased with variance s^2/m. So the population's standard error, in which values drawn by weight
show s^2, is the error of randomization, draw and sampling together. `standard_error` remains the
error of randomization, about the m users drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.source import tables
from shuffledp.core.arrays import Floats
from shuffledp.core.checks import require_positive, set_fields
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, ParameterError
from shuffledp.core.reports import read_only
from shuffledp.estimation.intervals import binomial_law

# Probability that fewer users are drawn than `fewest_drawn`.
_FEWER_WITH = 1e-3

_DRAWN = (
    "Drawn by public weights: {:,} of {:,} users, each with the probability weight / {:.6g}, the "
    "largest. Shares and means are of the users' weight. Weights are not hidden, and must tell "
    "nothing that is to be hidden."
)


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Public weights of users, by which they are drawn.

    Parameters
    ----------
    weights : array-like
        One number a user, positive and finite; weights are not protected. For strata the weight is
        the share of the stratum in the population over its share among the users.
    most_weight : float, optional
        Larger weights count as this, > 0: a little bias, and more users are drawn. By default the
        largest.

    Raises
    ------
    DomainError
        If a weight is missing, zero, negative or infinite.
    DataError
        If these are not numbers, one for each of at least one user.

    Examples
    --------
    >>> weights = Weights([1.0, 1.0, 4.0])
    >>> weights.ratio, weights.design_effect
    (2.0, 1.5)
    >>> Weights([1.0, 1.0, 4.0], most_weight=1).draw().tolist()
    [True, True, True]
    """

    weights: Any = field(repr=False)
    most_weight: Any = None
    #: Largest weight over the mean weight: on average one user of this many is drawn.
    ratio: float = field(init=False)
    #: Kish's n sum w^2 / (sum w)^2 >= 1, the factor by which weights raise the variance of a mean.
    design_effect: float = field(init=False)

    def __post_init__(self) -> None:
        given = _checked(self.weights)
        most = float(given.max()) if self.most_weight is None else self.most_weight
        most = require_positive("most_weight", most)
        shares = np.minimum(given, most) / most
        mean = float(shares.mean())
        if not mean**2 > 0.0:
            raise ParameterError(
                f"most_weight = {most} is so far above all weights, up to {given.max()}, that "
                "nobody is drawn: give at most the largest"
            )
        effect = max(float((shares**2).mean()) / mean**2, 1.0)
        set_fields(self, weights=read_only(given), most_weight=most)
        set_fields(self, ratio=1.0 / mean, design_effect=effect)

    @classmethod
    def read(
        cls, path: str | PathLike[str], column: str, *, most_weight: float | None = None
    ) -> Self:
        """Return the weights in a column of a table, one a row."""
        source = tables.open_source(path, column)
        with tables.reading(source.origin):
            found = source.frame.select(source.numbers()[0].alias(column)).collect()
        return cls(found[column].to_numpy(), most_weight)

    @property
    def num_users(self) -> int:
        """Number of users with a weight."""
        return int(self.weights.size)

    @property
    def fewest_drawn(self) -> int:
        """Number of users to plan for: fewer are drawn with probability at most 0.001.

        The number drawn is a sum of independent coins, whose tail below the mean less one is at
        most the tail of equal coins (Hoeffding 1956, theorem 4).
        """
        first, law = binomial_law(self.num_users, 1.0 / self.ratio)
        fewest = first + int(np.searchsorted(np.cumsum(law), _FEWER_WITH, side="right"))
        return max(1, min(fewest, int(self.num_users / self.ratio)))

    def draw(self, seed: SupportsIndex | None = None) -> NDArray[np.bool_]:
        """Return a mask of the users who take part.

        Parameters
        ----------
        seed : int, optional
            For a reproducible simulation.

        Returns
        -------
        ndarray of bool, shape (n,)
            Each is True with probability weight / ``most_weight``, at most 1, rounded to a double
            and then down to a multiple of 2^-64, by an independent coin. May be public.
        """
        # A stream that no other part of a run draws from.
        entropy = Entropy.choose(seed).spawn().spawn().spawn().spawn().spawn()
        shares = np.minimum(self.weights, self.most_weight) / self.most_weight
        below = np.minimum(shares, np.nextafter(1.0, 0.0)) * 2.0**64
        words = entropy.words(shares.size)
        return np.asarray((words < below.astype(np.uint64)) | (shares == 1.0))

    def to_json_dict(self) -> dict[str, object]:
        """Return number, ratio, design effect and trimming of all weights together."""
        facts = ("num_users", "most_weight", "ratio", "design_effect", "fewest_drawn")
        return {name: getattr(self, name) for name in facts}

    def __str__(self) -> str:
        return (
            f"{self.num_users:,} users with public weights up to {self.ratio:.4g} times their "
            f"mean, design effect {self.design_effect:.4g}"
        )


def drawn(column: Any, weights: Weights, seed: SupportsIndex | None) -> Any:
    """Return a column of the users drawn by their weights, one weight for each user."""
    if weights.num_users != column.num_users:
        raise DataError(
            f"there are {weights.num_users:,} weights for {column.num_users:,} values: give one "
            "for each value, and leave out users without an answer"
        )
    mask, blocks = weights.draw(seed), column.blocks
    number = int(mask.sum())
    if number < 2:
        raise DataError(
            f"the weights draw {number} of {column.num_users:,} users, and a shuffled collection "
            "needs two at least: ask more people, or trim weights with most_weight=..."
        )
    caution = _DRAWN.format(number, column.num_users, weights.most_weight)
    return replace(
        column,
        num_users=number,
        weights=weights,
        cautions=(caution, *column.cautions),
        blocks=lambda: _those(blocks(), mask),
    )


def _those(blocks: Iterator[Any], mask: NDArray[np.bool_]) -> Iterator[Any]:
    """Yield the values of the users in a mask."""
    start = 0
    for block in blocks:
        own, start = mask[start : start + len(block)], start + len(block)
        if own.any():  # empty blocks are left out
            yield block[own] if isinstance(block, np.ndarray) else block.filter(own)


def _checked(weights: Any) -> Floats:
    """Return the weights, at least one; `DomainError` unless all are positive and finite."""
    given = tables.floats_in("weights", weights)
    if given.ndim != 1 or not given.size:
        raise DataError(f"weights has shape {given.shape}: give one number a user")
    is_fit = np.isfinite(given) & (given > 0.0)
    if not is_fit.all():
        first = int(np.argmin(is_fit))
        raise DomainError(
            f"weights[{first}] = {given[first]} is not positive and finite: leave out users "
            "without a weight, with their values"
        )
    return given
