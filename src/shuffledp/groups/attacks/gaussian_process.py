"""Gaussian-process correlation attack: everybody's value from the released values around them.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, Fig. 1 (which names the attack but no details; these are ours). A prior of
smooth functions of the public position, one for each value (one-vs-rest), is updated by the
released labels; the guess is the value with the largest posterior mean.

The posterior is that of a sparse process, the *subset of regressors*: with inducing positions u,
the prior covariance k(x, x') is replaced by k(x, u) k(u, u)^-1 k(u, x'), so that n labels cost
O(n m^2) rather than O(n^3).
"""

from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.threads import one_thread
from shuffledp.groups.attacks.rows import require_codes_below, require_points

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
    """What the attack says, and with which prior.

    Parameters
    ----------
    guesses : ndarray of int32, shape (n,)
        The value with the largest posterior mean, for each person.
    length_scale : float
        Distance over which values go together, in the unit of the positions; > 0.
    noise : float
        Variance of a label, as a multiple of the prior's.
    num_inducing : int
        Number of inducing positions.
    """

    guesses: NDArray[np.int32]
    length_scale: float
    noise: float
    num_inducing: int


def gaussian_process_guess(
    positions: NDArray[Any],
    released: NDArray[np.integer[Any]],
    *,
    num_values: SupportsIndex,
    num_inducing: SupportsIndex = 400,
    entropy: Entropy,
) -> GaussianProcessGuess:
    """Guess everybody's value from public positions and released values.

    Parameters
    ----------
    positions : ndarray, shape (n,) or (n, d)
        Public, with Euclidean distances that mean something; n >= 2.
    released : ndarray of integers, shape (n,)
        Row i lies in person i's place; in [0, num_values).
    num_values : int
        Number of possible values, >= 1.
    num_inducing : int
        Inducing positions, >= 1: random ones among those that occur.
    entropy : Entropy
        Chooses them, and the halves by which length scale and noise are compared.

    Returns
    -------
    GaussianProcessGuess
        Guesses are in [0, num_values).

    Raises
    ------
    ParameterError
        If shapes do not fit together, or numbers are out of range or not finite.

    Notes
    -----
    Source: this module's docstring; Rasmussen, Williams, "Gaussian Processes for Machine
    Learning", MIT Press, 2006, section 8.3.1 (subset of regressors). The covariance is
    exp(-d^2 / (2 l^2)). The adversary knows no true values: length scale and noise are those
    under which one half of the released labels predicts the other half best (squared error).
    Randomized response keeps the order of the values' probabilities, so nothing is inverted.

    Cost: n m^2 multiplications for m inducing positions, and a few m^3: for n = 20,000 and
    m = 400 about two seconds.

    Examples
    --------
    >>> positions = np.repeat([0.0, 1.0], 20)
    >>> released = np.where(np.arange(40) % 5 == 0, 1, 0) ^ (np.arange(40) >= 20)
    >>> found = gaussian_process_guess(
    ...     positions, released, num_values=2, entropy=Entropy.from_seed(0)
    ... )
    >>> bool((found.guesses == (np.arange(40) >= 20)).all())
    True
    """
    count = require_at_least("num_values", num_values, 1)
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
