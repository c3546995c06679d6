"""Three adversaries: majority vote, Gaussian-process correlation, and the re-identification game.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, sections 4.1 and 5, Fig. 1 and Theorem 4.2.

*Majority vote* guesses a person's answer from the released answers of those most like that person.
The adversary knows everybody's public value, whose place each row of the release is, and perhaps
further, privileged data. Where answers go with these data, the noise that a local randomizer adds
to each report averages out over the neighbours.

*Gaussian processes*: everybody's value from the released values around them (the paper names the
attack but no details; these are ours). A prior of smooth functions of the public position, one for
each value (one-vs-rest), is updated by the released labels; the guess is the value with the largest
posterior mean. The posterior is that of a sparse process, the *subset of regressors*: with inducing
positions u, the prior covariance k(x, x') is replaced by k(x, u) k(u, u)^-1 k(u, x'), so that n
labels cost O(n m^2) rather than O(n^3).

*The game*: for a set I of k people, inside one group, the adversary looks at the release and names
k rows H, and wins if more than k/2 of the values in these rows came from I.
"""

import math
from dataclasses import dataclass
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_open_unit
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.core.reports import read_only
from shuffledp.core.threads import one_thread
from shuffledp.groups.attacks.survey import (
    require_codes_below,
    require_points,
)
from shuffledp.groups.groups import Groups

# The share is given in floating point: 0.9 of 50 resamplings are 45, not 45.000000000000001.
_SLACK = 1e-9


def choose_neighbours(
    neighbourhoods: Groups,
    own: NDArray[np.int64],
    *,
    num_neighbours: SupportsIndex = 25,
    privileged: NDArray[Any] | None = None,
    is_category: NDArray[np.bool_] | None = None,
    include_own: bool = True,
    entropy: Entropy,
) -> NDArray[np.int32]:
    """Return the rows that the adversary reads about each person; -1 fills the end of small ones.

    ``neighbourhoods`` has everybody within the attack's radius, ``own`` which one is whose. The
    most similar by ``privileged`` data are those with the smallest sum, over the columns, of
    absolute differences (scale the columns before), or of one for each unequal category (Gower,
    Biometrics 27, 1971); without such data members are chosen at random. Cost: one look at each
    pair of a person and a neighbour, 13 to 17 ns each; without privileged data half a microsecond a
    person.
    """
    from shuffledp.groups.attacks import adversary_kernels as kernels

    size = require_at_least("num_neighbours", num_neighbours, 1)
    num_people = own.size
    rows = neighbourhoods.starts, neighbourhoods.members, read_only(own)
    words = entropy.words(num_people)
    chosen = np.full((num_people, size), -1, dtype=np.int32)
    if privileged is None:
        kernels.choose_at_random(*rows, include_own, words, chosen)
        return chosen
    traits, categories = _traits(privileged, is_category, num_people)
    kernels.choose_most_similar(*rows, traits, categories, include_own, words, chosen)
    return chosen


def majority_guesses(
    released: NDArray[np.integer[Any]],
    neighbours: NDArray[np.int32],
    *,
    domain_size: SupportsIndex,
    entropy: Entropy,
) -> NDArray[np.int32]:
    """Return the most frequent value in the rows that are read about each person; -1 if none.

    It is also the likeliest answer under k-ary randomized response, whatever its epsilon0 > 0.
    Values that are equally frequent are equally likely. Cost: 2 to 3 ns a row that is read.
    """
    from shuffledp.groups.attacks import adversary_kernels as kernels

    count = require_at_least("domain_size", domain_size, 1)
    codes = require_codes_below("released", released, count)
    table = _neighbour_table(neighbours, codes.size)
    guesses = np.empty(table.shape[0], dtype=np.int32)
    kernels.vote(codes, table, count, entropy.words(1)[0], guesses)
    return guesses


def is_vulnerable(
    num_right: NDArray[np.integer[Any]],
    *,
    num_resamplings: SupportsIndex,
    success: SupportsFloat = 0.9,
) -> NDArray[np.bool_]:
    """Return whose value is guessed in at least the share ``success`` of the resamplings.

    Somebody with the commonest answer can be vulnerable without any leak: compare with the uniform
    shuffle, which tells nothing else.
    """
    trials = require_at_least("num_resamplings", num_resamplings, 1)
    share = 1.0 if success == 1.0 else require_open_unit("success", success)
    needed = math.ceil(share * trials - _SLACK)
    vulnerable: NDArray[np.bool_] = np.asarray(num_right) >= needed
    return vulnerable


def _traits(
    privileged: NDArray[Any], is_category: NDArray[np.bool_] | None, num_people: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return privileged data as a table of finite numbers, and which columns are categories."""
    table = np.array(privileged, dtype=np.float64, ndmin=1, order="C")
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or table.shape[0] != num_people:
        raise ParameterError(
            f"privileged has shape {table.shape}: give one row for each of the {num_people} people"
        )
    if not np.isfinite(table).all():
        row = int(np.argmin(np.isfinite(table).all(axis=1)))
        raise DataError(
            f"privileged data of row {row} are not finite numbers: fill or drop them first"
        )
    num_columns = table.shape[1]
    if is_category is None:
        return table, np.zeros(num_columns, dtype=np.bool_)
    categories = np.array(is_category, dtype=np.bool_)
    if categories.shape != (num_columns,):
        raise ParameterError(
            f"is_category has shape {categories.shape}: give one value for each of the "
            f"{num_columns} columns of privileged"
        )
    return table, categories


def _neighbour_table(neighbours: NDArray[np.int32], num_rows: int) -> NDArray[np.int32]:
    """Return the rows to read, once checked: the loop trusts them."""
    table = np.array(neighbours, dtype=np.int32, order="C")
    if table.ndim != 2:
        raise ParameterError(
            f"neighbours has {table.ndim} axes: give the table that choose_neighbours returns"
        )
    if table.size and (int(table.min()) < -1 or int(table.max()) >= num_rows):
        raise ParameterError(
            f"neighbours names rows outside [0, {num_rows}): the release has {num_rows} rows"
        )
    return table


# Directions of the prior that are this much weaker than the strongest are round-off.
_RELATIVE_FLOOR = 1e-10
# What the adversary tries: length scales as shares of the spread, noise as variances.
_LENGTHS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
_NOISES = (0.3, 3.0, 30.0)
# Rows on which lengths and noises are compared: more do not change the choice.
_MOST_TRIED = 4_000
_BLOCK_ROWS = 8_192


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GaussianProcessGuess:
    """The value with the largest posterior mean for each person, and the prior chosen."""

    guesses: NDArray[np.int32]
    length_scale: float
    noise: float
    num_inducing: int


def gaussian_process_guess(
    positions: NDArray[Any],
    released: NDArray[np.integer[Any]],
    *,
    domain_size: SupportsIndex,
    num_inducing: SupportsIndex = 400,
    entropy: Entropy,
) -> GaussianProcessGuess:
    """Guess everybody's value from public positions and released values.

    Source: Rasmussen, Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006, section
    8.3.1 (subset of regressors), with the covariance exp(-d^2 / (2 l^2)). The adversary knows no
    true values: length scale and noise are those under which one half of the released labels
    predicts the other half best (squared error). Randomized response keeps the order of the values'
    probabilities, so nothing is inverted. Cost: n m^2 multiplications for m inducing positions, and
    a few m^3.
    """
    count = require_at_least("domain_size", domain_size, 1)
    wanted = require_at_least("num_inducing", num_inducing, 1)
    labels = require_codes_below("released", released, count)
    points = require_points("positions", positions, labels.size)
    require_at_least("number of people", labels.size, 2)
    with one_thread():
        return _guess(points, labels, count, wanted, entropy.generator())


def _guess(
    points: NDArray[np.float64],
    labels: NDArray[np.int32],
    count: int,
    wanted: int,
    generator: np.random.Generator,
) -> GaussianProcessGuess:
    """Do what `gaussian_process_guess` says, with checked arguments."""
    # Only distances count, so one unit serves all: the spread of the positions.
    spread = float(np.sqrt(points.var(axis=0).sum())) or 1.0
    scaled = (points - points.mean(axis=0)) / spread
    distinct = np.unique(scaled, axis=0)
    inducing = distinct[generator.permutation(distinct.shape[0])[:wanted]]
    shares = np.bincount(labels, minlength=count) / labels.size
    tried = generator.permutation(labels.size)[:_MOST_TRIED]
    length, noise = _best_prior(scaled[tried], labels[tried], shares, inducing)
    weights, basis = _fitted(scaled, labels, shares, inducing, (length, noise))
    guesses = np.empty(labels.size, dtype=np.int32)
    for rows in _blocks(labels.size):
        means = _covariances(scaled[rows], inducing, length) @ basis @ weights + shares
        guesses[rows] = np.argmax(means, axis=1)
    return GaussianProcessGuess(
        guesses=guesses,
        length_scale=length * spread,
        noise=noise,
        num_inducing=inducing.shape[0],
    )


def _covariances(
    points: NDArray[np.float64], others: NDArray[np.float64], length: float
) -> NDArray[np.float64]:
    """Return exp(-d^2 / (2 length^2)) for each pair of a point and another."""
    squares = (points * points).sum(axis=1)[:, None] + (others * others).sum(axis=1)
    squares -= 2.0 * points @ others.T
    np.maximum(squares, 0.0, out=squares)
    covariances: NDArray[np.float64] = np.exp(squares / (-2.0 * length * length))
    return covariances


def _basis(inducing: NDArray[np.float64], length: float) -> NDArray[np.float64]:
    """Return B with B B^T = k(u, u)^-1 on the directions that are not lost in round-off."""
    values, vectors = np.linalg.eigh(_covariances(inducing, inducing, length))
    kept = values > _RELATIVE_FLOOR * values[-1]
    basis: NDArray[np.float64] = vectors[:, kept] / np.sqrt(values[kept])
    return basis


def _one_vs_rest(labels: NDArray[np.int32], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return one column a value: 1 where it is the label, less the value's overall share."""
    targets = np.tile(-shares, (labels.size, 1))
    targets[np.arange(labels.size), labels] += 1.0
    return targets


def _ridge(
    features: NDArray[np.float64], targets: NDArray[np.float64], noises: tuple[float, ...]
) -> list[NDArray[np.float64]]:
    """Return the posterior mean's weights for each noise, from one decomposition.

    With features F the sparse process is a linear model F w, w standard normal a priori; the
    posterior mean of w is (F^T F + noise I)^-1 F^T y.
    """
    values, vectors = np.linalg.eigh(features.T @ features)
    turned = vectors.T @ (features.T @ targets)
    return [vectors @ (turned / (np.maximum(values, 0.0) + noise)[:, None]) for noise in noises]


def _fitted(
    points: NDArray[np.float64],
    labels: NDArray[np.int32],
    shares: NDArray[np.float64],
    inducing: NDArray[np.float64],
    prior: tuple[float, float],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights of the posterior mean and the basis of its features, block by block."""
    length, noise = prior
    basis = _basis(inducing, length)
    width = basis.shape[1]
    gram: NDArray[np.float64] = np.zeros((width, width))
    moments: NDArray[np.float64] = np.zeros((width, shares.size))
    for rows in _blocks(labels.size):
        features = _covariances(points[rows], inducing, length) @ basis
        gram += features.T @ features
        moments += features.T @ _one_vs_rest(labels[rows], shares)
    weights = np.linalg.solve(gram + noise * np.eye(width), moments)
    return np.asarray(weights, dtype=np.float64), basis


def _best_prior(
    points: NDArray[np.float64],
    labels: NDArray[np.int32],
    shares: NDArray[np.float64],
    inducing: NDArray[np.float64],
) -> tuple[float, float]:
    """Return the length and noise under which one half of the labels predicts the other best."""
    half = labels.size // 2
    targets = _one_vs_rest(labels, shares)
    found: list[tuple[float, tuple[float, float]]] = []
    for length in _LENGTHS:
        features = _covariances(points, inducing, length) @ _basis(inducing, length)
        fits = _ridge(features[:half], targets[:half], _NOISES)
        for noise, weights in zip(_NOISES, fits, strict=True):
            errors = features[half:] @ weights - targets[half:]
            found.append((float((errors * errors).mean()), (length, noise)))
    return min(found)[1]


def _blocks(num_rows: int) -> list[slice]:
    """Return slices that cover the rows, so that no table of n x m stays in memory."""
    return [slice(start, start + _BLOCK_ROWS) for start in range(0, num_rows, _BLOCK_ROWS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WinRate:
    """How often an adversary won, with Clopper-Pearson limits for the probability."""

    num_wins: int
    num_plays: int
    lower: float
    upper: float
    confidence: float

    @property
    def rate(self) -> float:
        """Share of the games that was won."""
        return self.num_wins / self.num_plays


def wins_game(
    origins: NDArray[np.integer[Any]],
    rows: NDArray[np.integer[Any]],
    subset: NDArray[np.integer[Any]],
) -> bool:
    """Tell whether more than half of the values in the named rows came from the subset."""
    people = np.unique(np.asarray(subset))
    named = np.unique(np.asarray(rows))
    size = np.size(subset)
    if not size or people.size != size or named.size != np.size(rows) or named.size != size:
        raise ParameterError(
            f"{np.size(rows)} rows are named for a subset of {size}: give as many distinct rows "
            "as distinct people, at least one"
        )
    return 2 * int(np.isin(np.asarray(origins)[named], people).sum()) > size


def informed_rows(
    released: NDArray[np.integer[Any]],
    *,
    place_probabilities: NDArray[np.float64],
    subset_law: NDArray[np.float64],
    other_law: NDArray[np.float64],
    num_rows: SupportsIndex,
) -> NDArray[np.int64]:
    """Return the rows that most likely came from the subset, by their places and their values.

    By Bayes' rule from the law of the shuffle and those of reports, row by row, as if where one
    value lies said nothing about another: a natural attack, not the best possible one. Theorem 4.2
    bounds all of them.
    """
    first, second = (np.asarray(law, dtype=np.float64) for law in (subset_law, other_law))
    places = np.asarray(place_probabilities, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape or not first.size:
        raise ParameterError(
            f"subset_law and other_law have shapes {first.shape} and {second.shape}: give one "
            "probability a value in each"
        )
    if not all(((law >= 0.0) & (law <= 1.0)).all() for law in (first, second, places)):
        raise ParameterError("probabilities must lie in [0, 1]")
    codes = require_codes_below("released", released, first.size)
    if places.shape != codes.shape:
        raise ParameterError(
            f"place_probabilities has shape {places.shape}: give one for each of the "
            f"{codes.size} rows"
        )
    count = require_at_least("num_rows", num_rows, 1)
    if count > codes.size:
        raise ParameterError(f"num_rows = {count} is above the {codes.size} rows that there are")
    inside = places * first[codes]
    total = inside + (1.0 - places) * second[codes]
    posterior = np.divide(inside, total, out=np.zeros_like(total), where=total > 0.0)
    best = np.argsort(-posterior, kind="stable")[:count]
    return np.sort(best).astype(np.int64)


def win_rate(
    num_wins: SupportsIndex, num_plays: SupportsIndex, *, confidence: SupportsFloat = 0.95
) -> WinRate:
    """Return how often the adversary won, with Clopper-Pearson limits."""
    from scipy.special import betainccinv, betaincinv

    plays = require_at_least("num_plays", num_plays, 1)
    wins = require_at_least("num_wins", num_wins, 0)
    if wins > plays:
        raise ParameterError(f"num_wins = {wins} is above num_plays = {plays}")
    level = require_open_unit("confidence", confidence)
    tail = (1.0 - level) / 2.0
    lost = plays - wins
    return WinRate(
        num_wins=wins,
        num_plays=plays,
        lower=float(betaincinv(wins, lost + 1.0, tail)) if wins else 0.0,
        upper=float(betainccinv(wins + 1.0, lost, tail)) if lost else 1.0,
        confidence=level,
    )
