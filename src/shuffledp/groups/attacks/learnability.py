"""Learnability: how well a model learns the local law of the answers from what is released.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, section 5: gradient-boosted trees, calibrated by Platt scaling, predict from a
public value the law of the answers there. lambda is the total variation between prediction and
truth, averaged over people, divided by that of the uniform guess: 0 is perfect, 1 no better than
knowing nothing.
"""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import MissingPackageError, OutOfRegimeError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.core.threads import one_thread
from shuffledp.groups.attacks.survey import (
    AttackedSurvey,
    ComparedArrangement,
    Measured,
    own_neighbourhoods,
    require_codes_below,
    require_points,
)
from shuffledp.groups.groups import Groups

# Trees a class; beyond 10,000 people boosting stops earlier, when it no longer helps.
_MOST_ITERATIONS = 100
# A uniform guess with an error below this is right but for rounding.
_TOLERANCE = 1e-9


def local_laws(
    codes: NDArray[np.integer[Any]],
    neighbourhoods: Groups,
    own: NDArray[np.int64],
    *,
    domain_size: SupportsIndex,
) -> NDArray[np.float64]:
    """Return the empirical law of the true answers around each person, shape (n, domain_size)."""
    count = require_at_least("domain_size", domain_size, 1)
    values = require_codes_below("codes", codes, count)
    if values.size != own.size:
        raise ParameterError(
            f"codes has {values.size} rows for {own.size} people: give one a person"
        )
    sizes = neighbourhoods.sizes
    rows = np.repeat(np.arange(sizes.size), sizes)
    cells = np.bincount(rows * count + values[neighbourhoods.members], minlength=sizes.size * count)
    laws: NDArray[np.float64] = (cells.reshape(sizes.size, count) / sizes[:, None])[own]
    return laws


def predicted_laws(
    public: NDArray[Any],
    released: NDArray[np.integer[Any]],
    *,
    domain_size: SupportsIndex,
    at: NDArray[Any] | None = None,
    num_folds: SupportsIndex = 3,
    entropy: Entropy,
) -> NDArray[np.float64]:
    """Return the law of *released* values that a model learns at each public value, or at ``at``.

    They hold the noise of the local randomizer; see `debiased_laws`. Platt, "Probabilistic outputs
    for support vector machines", 1999. A value that is rarer than ``num_folds`` cannot be
    cross-validated: it is predicted nowhere, and if one value alone is left, everywhere. Cost:
    seconds for n = 30,000.
    """
    count = require_at_least("domain_size", domain_size, 1)
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

    (law - other) / (truth - other), projected to the nearest law: subtract the one threshold that
    makes the positive parts sum to 1 (Held, Wolfe, Crowder, Mathematical Programming 6, 1974).
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
    """Return the total variation between two laws, averaged over rows."""
    if first.shape != second.shape or first.ndim != 2 or not first.size:
        raise ParameterError(f"laws have shapes {first.shape} and {second.shape}: give one shape")
    return float(0.5 * np.abs(first - second).sum(axis=1).mean())


def learnability(predicted: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Return lambda: the error of the predicted laws over that of the uniform guess."""
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
    codes: NDArray[np.integer[Any]], label_map: NDArray[np.integer[Any]], domain_size: int
) -> NDArray[np.int32]:
    """Return the coarser class of each code."""
    classes = np.asarray(label_map)
    if classes.shape != (domain_size,) or classes.dtype.kind not in "iu" or int(classes.min()) < 0:
        raise ParameterError(
            f"label_map must name a class >= 0 for each of the {domain_size} values"
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


LAMBDA = "lambda"
LAMBDA_DEBIASED = "lambda, noise inverted"


def learn_local_laws(
    survey: AttackedSurvey,
    arrangements: Sequence[ComparedArrangement],
    *,
    num_trials: SupportsIndex = 10,
    entropy: Entropy,
    on_progress: Progress | None = None,
) -> tuple[Measured, ...]:
    """Return lambda: how far the learnt local law of the answers is from the true one.

    For each arrangement that of the predictions as they are, which is the paper's, and of
    predictions whose noise is inverted, where epsilon0 > 0. Reports are noisy, so predictions as
    they are lean towards the uniform law by a factor that the randomizer fixes; inverting it shows
    what an analyst who knows the randomizer learns.
    """
    trials = require_at_least("num_trials", num_trials, 1)
    report = on_progress or no_progress
    public = survey.require_public()
    groups = survey.neighbourhoods
    truth = local_laws(
        survey.codes, groups, own_neighbourhoods(groups), domain_size=survey.domain_size
    )
    says_truth, says_other = survey.randomizer.support_probabilities
    found: dict[tuple[str, str], list[float]] = {}
    for trial in range(trials):
        for arrangement in arrangements:
            laws = predicted_laws(
                public,
                arrangement.arranged(survey.reports(entropy), entropy),
                domain_size=survey.domain_size,
                entropy=entropy,
            )
            found.setdefault((arrangement.name, LAMBDA), []).append(learnability(laws, truth))
            if says_truth > says_other:
                inverted = debiased_laws(
                    laws, truth_probability=says_truth, other_probability=says_other
                )
                found.setdefault((arrangement.name, LAMBDA_DEBIASED), []).append(
                    learnability(inverted, truth)
                )
        report("learning", trial + 1, trials)
    return _measured(found)


def _measured(found: Mapping[tuple[str, str], list[float]]) -> tuple[Measured, ...]:
    """Return one result for each arrangement and measure."""
    return tuple(
        Measured(task="learnability", measure=measure, arrangement=name, trials=tuple(numbers))
        for (name, measure), numbers in found.items()
    )
