"""The simulation behind Fig. 9 of Liew et al.: the mean of vectors, from what a network releases.

Each user draws one PrivUnit report. Protocol "all" releases all of them. Protocol "single" releases
one report of each user who holds some, and a dummy or a recognisable empty answer for the others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import Reports
from shuffledp.randomizers.vectors.privunit import PrivUnit

# Centres of the two halves. Ours: the paper follows a set-up of Chen, Kairouz and Ozgur,
# arXiv:2007.11707, and its own numbers are lost in the text that we have of it.
_CENTRES = (1.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SquaredErrors:
    """Squared Euclidean errors of estimates of the same mean, one for each trial.

    Parameters
    ----------
    all_reports : ndarray of float64, shape (trials,)
        Protocol "all": the mean of all n reports, which is also that of a uniform shuffler.
    with_dummies : ndarray of float64, shape (trials,)
        Protocol "single" as published: dummies are taken for reports, and the mean is over n.
    without_dummies : ndarray of float64, shape (trials,)
        Protocol "single" whose empty answers are recognised and left out.
    num_released : ndarray of int64, shape (trials,)
        Reports behind ``without_dummies``.
    """

    all_reports: NDArray[np.float64]
    with_dummies: NDArray[np.float64]
    without_dummies: NDArray[np.float64]
    num_released: NDArray[np.int64]


def heterogeneous_vectors(num_users: int, dimension: int, entropy: Entropy) -> NDArray[np.float64]:
    """Return unit vectors, drawn independently from two laws.

    Parameters
    ----------
    num_users : int
        Number n of vectors, >= 1.
    dimension : int
        Number of coordinates d, >= 1.
    entropy : Entropy
        Source of randomness.

    Returns
    -------
    ndarray of float64, shape (n, d)
        In the first half each coordinate is normal around 1, in the second around 10, with
        variance 1; then each vector is divided by its Euclidean norm.

    Examples
    --------
    >>> vectors = heterogeneous_vectors(4, 3, Entropy.from_seed(1))
    >>> np.linalg.norm(vectors, axis=1).round(12).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    vectors = entropy.generator().standard_normal((num_users, dimension))
    half = num_users // 2
    vectors[:half] += _CENTRES[0]
    vectors[half:] += _CENTRES[1]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def expected_empty_users(law: NDArray[np.float64], num_reports: int) -> float:
    """Return the expected number of users who hold no report, when each is placed by ``law``.

    Parameters
    ----------
    law : ndarray of float64, shape (n,)
        Law of the holder of each report.
    num_reports : int
        Number of reports, placed independently.

    Returns
    -------
    float
        sum_j (1 - law_j)^num_reports, rounded to nearest.

    Examples
    --------
    >>> expected_empty_users(np.array([0.5, 0.5]), 2)
    0.5
    """
    return float(np.exp(num_reports * np.log1p(-np.minimum(law, 1.0 - 1e-16))).sum())


def squared_errors(
    randomizer: PrivUnit,
    vectors: NDArray[np.float64],
    law: NDArray[np.float64],
    *,
    num_dummies: int,
    trials: int,
    entropy: Entropy,
) -> SquaredErrors:
    """Randomize, release and estimate again and again, once the walk has mixed.

    Parameters
    ----------
    randomizer : PrivUnit
        What each user runs.
    vectors : ndarray of float64, shape (n, d)
        The users' values, at most of the randomizer's norm bound.
    law : ndarray of float64, shape (n,)
        Stationary law of a report's holder.
    num_dummies : int
        Dummies in the published protocol "single", the same in each trial, in [0, n]. The paper
        sets them to a number rather than simulating who holds nothing.
    trials : int
        How often, >= 1.
    entropy : Entropy
        Source of randomness.

    Returns
    -------
    SquaredErrors
        Against the mean of ``vectors``.

    Raises
    ------
    ParameterError
        If there are more dummies than users, or fewer than two vectors.

    Notes
    -----
    At stationarity the released reports of protocol "single" are a uniformly random set of users:
    all labels have the same law, so the choice favours nobody. Their number is that of distinct
    places among n draws from ``law``. A dummy is PrivUnit's report of the zero vector, a uniformly
    random direction. Cost: n d random normals a trial.
    """
    num_users = vectors.shape[0]
    if not 0 <= num_dummies <= num_users or num_users < 2:
        raise ParameterError(
            f"num_dummies = {num_dummies} is not in [0, n = {num_users}], or n is below 2"
        )
    truth = vectors.mean(axis=0)
    generator = entropy.generator()
    errors = np.empty((3, trials))
    released = np.empty(trials, dtype=np.int64)
    nothing = np.zeros((num_dummies, vectors.shape[1]))
    for trial in range(trials):
        decoded = _decoded(randomizer, randomizer.randomize(vectors, entropy))
        dummies = _decoded(randomizer, randomizer.randomize(nothing, entropy))
        order = generator.permutation(num_users)
        holders = generator.choice(num_users, size=num_users, p=law)
        released[trial] = np.unique(holders).size
        kept = decoded[order[: num_users - num_dummies]].sum(axis=0) + dummies.sum(axis=0)
        estimates = (
            decoded.mean(axis=0),
            kept / num_users,
            decoded[order[: released[trial]]].mean(axis=0),
        )
        errors[:, trial] = [np.sum((each - truth) ** 2) for each in estimates]
    return SquaredErrors(
        all_reports=errors[0],
        with_dummies=errors[1],
        without_dummies=errors[2],
        num_released=released,
    )


def _decoded(randomizer: PrivUnit, reports: Reports) -> NDArray[np.float64]:
    """Return the vector that each report stands for, shape (n, d)."""
    offset, factor = randomizer.score_scale
    return offset + factor * np.asarray(randomizer.scores(reports), dtype=np.float64)
