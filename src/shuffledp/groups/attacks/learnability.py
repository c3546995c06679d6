"""Learnability: how well a model learns the local law of the answers from what is released.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, section 5: gradient-boosted trees, calibrated by Platt scaling, predict from a
public value the law of the answers there. lambda is the total variation between prediction and
truth, averaged over people, divided by that of the uniform guess: 0 is perfect, 1 no better than
knowing nothing.
"""

from types import SimpleNamespace
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import MissingPackageError, OutOfRegimeError, ParameterError
from shuffledp.core.threads import one_thread
from shuffledp.groups.attacks.rows import (
    require_codes_below,
    require_neighbourhoods,
    require_points,
)

# Trees a class; beyond 10,000 people boosting stops earlier, when it no longer helps.
_MOST_ITERATIONS = 100

# A uniform guess with an error below this is right but for rounding.
_TOLERANCE = 1e-9


def local_laws(
    codes: NDArray[np.integer[Any]],
    starts: NDArray[np.integer[Any]],
    members: NDArray[np.integer[Any]],
    group_of: NDArray[np.integer[Any]],
    *,
    num_values: SupportsIndex,
) -> NDArray[np.float64]:
    """Return the empirical law of the true answers around each person.

    Parameters
    ----------
    codes : ndarray of integers, shape (n,)
        True answers, in [0, num_values).
    starts, members, group_of : ndarrays of integers
        Neighbourhoods; see `choose_neighbours`. None may be empty.
    num_values : int
        Number of possible answers, >= 1.

    Returns
    -------
    ndarray, shape (n, num_values)
        Rows sum to 1.

    Raises
    ------
    ParameterError
        If shapes do not fit together, or a neighbourhood has no members.

    Examples
    --------
    >>> local_laws(
    ...     np.array([0, 1]), np.array([0, 2]), np.arange(2), np.zeros(2, int), num_values=2
    ... ).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    count = require_at_least("num_values", num_values, 1)
    rows = require_neighbourhoods(starts, members, group_of)
    values = require_codes_below("codes", codes, count)
    sizes = rows.sizes
    if values.size != rows.group_of.size:
        raise ParameterError(
            f"codes has {values.size} rows and group_of {rows.group_of.size}: give one a person"
        )
    if (sizes == 0).any():
        raise ParameterError(f"neighbourhood {int(np.argmin(sizes))} has no members")
    groups = np.repeat(np.arange(sizes.size), sizes)
    cells = np.bincount(groups * count + values[rows.members], minlength=sizes.size * count)
    laws: NDArray[np.float64] = (cells.reshape(sizes.size, count) / sizes[:, None])[rows.group_of]
    return laws


def predicted_laws(
    public: NDArray[Any],
    released: NDArray[np.integer[Any]],
    *,
    num_values: SupportsIndex,
    at: NDArray[Any] | None = None,
    num_folds: SupportsIndex = 3,
    entropy: Entropy,
) -> NDArray[np.float64]:
    """Return the law of released values that a model learns at each public value.

    Parameters
    ----------
    public : ndarray, shape (n,) or (n, d)
        Public values, finite.
    released : ndarray of integers, shape (n,)
        Row i lies in person i's place; in [0, num_values).
    num_values : int
        Number of possible values, >= 1.
    at : ndarray, shape (m,) or (m, d), optional
        Where to predict; by default at ``public``.
    num_folds : int
        Folds of the cross-validation by which Platt scaling is fitted, >= 2.
    entropy : Entropy
        Splits and subsamples.

    Returns
    -------
    ndarray, shape (m, num_values)
        Rows sum to 1. These are laws of *released* values: they hold the noise of the local
        randomizer; see `debiased_laws`.

    Raises
    ------
    ParameterError
        If shapes do not fit together, or numbers are out of range or not finite.
    MissingPackageError
        If scikit-learn is not installed.

    Notes
    -----
    Source: this module's docstring; Platt, "Probabilistic outputs for support vector machines",
    1999. A value that is rarer than ``num_folds`` cannot be cross-validated: it is predicted
    nowhere, and if one value alone is left, everywhere. Cost: seconds for n = 30,000.

    Examples
    --------
    >>> predicted_laws(
    ...     np.arange(4), np.ones(4, int), num_values=2, entropy=Entropy.from_seed(0)
    ... )[0].tolist()
    [0.0, 1.0]
    """
    count = require_at_least("num_values", num_values, 1)
    folds = require_at_least("num_folds", num_folds, 2)
    values = require_codes_below("released", released, count)
    points = require_points("public", public, values.size)
    targets = points if at is None else require_points("at", at, None)
    if not values.size or targets.shape[1] != points.shape[1]:
        raise ParameterError(
            f"public has shape {points.shape} and at {targets.shape}: give people, and as many "
            "columns in both"
        )
    tally = np.bincount(values, minlength=count)
    learnable = np.flatnonzero(tally >= folds)
    laws = np.zeros((targets.shape[0], count))
    if learnable.size <= 1:
        laws[:, learnable[0] if learnable.size else int(np.argmax(tally))] = 1.0
        return laws
    kept = np.isin(values, learnable)
    tools = _scikit_learn()
    seed = int(entropy.words(1)[0] >> np.uint64(33))
    trees = tools.trees(max_iter=_MOST_ITERATIONS, random_state=seed)
    split = tools.folds(n_splits=folds, shuffle=True, random_state=seed)
    model = tools.calibrated(trees, method="sigmoid", cv=split)
    # People share public values: ask the model once for each.
    distinct, place = np.unique(targets, axis=0, return_inverse=True)
    with one_thread():
        model.fit(points[kept], values[kept])
        laws[:, model.classes_] = model.predict_proba(distinct)[place.reshape(-1)]
    return laws


def debiased_laws(
    laws: NDArray[np.float64], *, truth_probability: SupportsFloat, other_probability: SupportsFloat
) -> NDArray[np.float64]:
    """Return laws of true answers from laws of reports of k-ary randomized response.

    Parameters
    ----------
    laws : ndarray, shape (m, k)
        Predicted laws of reports.
    truth_probability, other_probability : float
        Probability that a report names the true answer, and that it names a given other one.

    Returns
    -------
    ndarray, shape (m, k)
        (law - other) / (truth - other), projected to the nearest law (Euclidean distance).

    Raises
    ------
    OutOfRegimeError
        If reports do not depend on the truth, so that nothing can be inverted.
    ParameterError
        If a probability is not in [0, 1].

    Notes
    -----
    Source of the projection: Held, Wolfe, Crowder, "Validation of subgradient optimization",
    Mathematical Programming 6, 1974: subtract the one threshold that makes the positive parts sum
    to 1. Cost: m k log k.

    Examples
    --------
    >>> debiased_laws(np.array([[0.7, 0.3]]), truth_probability=0.75, other_probability=0.25)
    array([[0.9, 0.1]])
    """
    truth, other = float(truth_probability), float(other_probability)
    if not 0.0 <= other <= 1.0 or not 0.0 <= truth <= 1.0:
        raise ParameterError(
            f"truth_probability = {truth}, other_probability = {other}: both must be in [0, 1]"
        )
    if truth <= other:
        raise OutOfRegimeError(
            "inverting needs reports that depend on the truth: truth_probability > "
            f"other_probability, and these are {truth} and {other} (epsilon0 = 0?)"
        )
    raw = (np.asarray(laws, dtype=np.float64) - other) / (truth - other)
    falling = -np.sort(-raw, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, raw.shape[1] + 1)
    last = (falling > excess).sum(axis=1) - 1
    projected: NDArray[np.float64] = np.maximum(
        raw - excess[np.arange(raw.shape[0]), last][:, None], 0.0
    )
    return projected


def mean_total_variation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the total variation between two laws, averaged over rows.

    Parameters
    ----------
    first, second : ndarray, shape (m, k)
        Rows sum to 1; m >= 1.

    Returns
    -------
    float
        In [0, 1], up to rounding.

    Raises
    ------
    ParameterError
        If shapes differ or there are no rows.

    Examples
    --------
    >>> mean_total_variation(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]]))
    0.5
    """
    if first.shape != second.shape or first.ndim != 2 or not first.size:
        raise ParameterError(f"laws have shapes {first.shape} and {second.shape}: give one shape")
    return float(0.5 * np.abs(first - second).sum(axis=1).mean())


def learnability(predicted: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Return lambda: the error of the predicted laws over that of the uniform guess.

    Parameters
    ----------
    predicted, truth : ndarray, shape (n, k)
        Law of the answers around each person, as learnt and in truth.

    Returns
    -------
    float
        0 is perfect, 1 as good as knowing nothing, above 1 misleading.

    Raises
    ------
    OutOfRegimeError
        If the answers are uniform around everybody: then the uniform guess has no error to
        compare with.
    ParameterError
        If shapes differ or there are no rows.

    Notes
    -----
    Source: this module's docstring.

    Examples
    --------
    >>> learnability(np.array([[0.75, 0.25]]), np.array([[1.0, 0.0]]))
    0.5
    """
    error = mean_total_variation(predicted, truth)
    uniform = np.full(truth.shape, 1.0 / truth.shape[1])
    naive = mean_total_variation(uniform, truth)
    if naive <= _TOLERANCE:
        raise OutOfRegimeError(
            "lambda compares with the error of the uniform guess, which is 0: answers are uniform "
            "around everybody; use a smaller neighbourhood"
        )
    return error / naive


def merged(
    codes: NDArray[np.integer[Any]], label_map: NDArray[np.integer[Any]], num_values: int
) -> NDArray[np.int32]:
    """Return the coarser class of each code.

    Parameters
    ----------
    codes : ndarray of integers
        In [0, num_values).
    label_map : ndarray of integers, shape (num_values,)
        Class of each value, >= 0.
    num_values : int
        Number of values.

    Returns
    -------
    ndarray of int32
        As many classes.

    Raises
    ------
    ParameterError
        If the map has not one class for each value.

    Examples
    --------
    >>> merged(np.array([0, 3, 1]), np.array([0, 0, 1, 1]), 4).tolist()
    [0, 1, 0]
    """
    classes = np.asarray(label_map)
    if classes.shape != (num_values,) or classes.dtype.kind not in "iu" or int(classes.min()) < 0:
        raise ParameterError(
            f"label_map must name a class >= 0 for each of the {num_values} values"
        )
    mapped: NDArray[np.int32] = classes.astype(np.int32)[codes]
    return mapped


def _scikit_learn() -> SimpleNamespace:
    """Import what needs scikit-learn."""
    try:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.model_selection import StratifiedKFold
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sklearn":
            raise
        raise MissingPackageError(
            "learning needs scikit-learn: run pip install 'shuffledp[attacks]'", name="sklearn"
        ) from None
    return SimpleNamespace(
        trees=HistGradientBoostingClassifier,
        calibrated=CalibratedClassifierCV,
        folds=StratifiedKFold,
    )
