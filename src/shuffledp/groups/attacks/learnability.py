"""Learnability: how well a model learns the local law of the answers from what is released.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, section 5: gradient-boosted trees, calibrated by Platt scaling, predict from a
public value the law of the answers there. Beside them stands the law of what is released around
each person, and the better of the two counts: trees may follow households where the law of a town
is asked for. lambda is the total variation between prediction and truth, averaged over people,
divided by the error of the uniform guess: 0 is perfect, 1 no better than knowing nothing.
"""

import math
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats, Integers
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import MissingPackageError, OutOfRegimeError
from shuffledp.core.progress import Progress
from shuffledp.core.threads import one_thread
from shuffledp.groups.attacks import survey as surveys
from shuffledp.groups.groups import Groups

_FOLDS = 3
# Trees a class; boosting stops earlier, when it no longer helps on one person in 15 put aside.
_MOST_ITERATIONS, _PUT_ASIDE = 500, 15
# Learner for smooth laws: leaves of at least the root of the number of people.
_FEW_LEAVES = 4
# A uniform guess with an error below this is right but for rounding.
_TOLERANCE = 1e-9


def local_laws(
    codes: NDArray[np.integer[Any]], neighbourhoods: Groups, own: Integers, *, domain_size: int
) -> Floats:
    """Return the empirical law of answers, or reports, around each person; (n, domain_size)."""
    sizes = neighbourhoods.sizes
    cells = np.repeat(np.arange(sizes.size), sizes) * domain_size + codes[neighbourhoods.members]
    counts = np.bincount(cells, minlength=sizes.size * domain_size)
    laws: Floats = (counts.reshape(sizes.size, domain_size) / sizes[:, None])[own]
    return laws


def predicted_laws(
    public: Floats, released: NDArray[np.integer[Any]], *, domain_size: int, entropy: Entropy
) -> Floats:
    """Return the law of *released* values that a model learns at each public value, shape (n, k).

    They hold the noise of the local randomizer; see `debiased_laws`. Boosting stops early, so that
    the noise of single reports is not learnt, and trees are large, for laws that change often, or
    have few and large leaves: whichever has the smaller log loss in cross-validation. Platt,
    "Probabilistic outputs for support vector machines", 1999. A value that is rarer than three
    cannot be cross-validated: it is predicted nowhere, and if one value alone is left, everywhere.
    Cost: up to a minute for n = 30,000.
    """
    tally = np.bincount(released, minlength=domain_size)
    learnable = np.flatnonzero(tally >= _FOLDS)
    laws = np.zeros((released.size, domain_size))
    if learnable.size <= 1:
        laws[:, learnable[0] if learnable.size else int(np.argmax(tally))] = 1.0
        return laws
    try:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.model_selection import GridSearchCV, StratifiedKFold
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sklearn":
            raise
        raise MissingPackageError(
            "learning needs scikit-learn: run pip install 'shuffledp[attacks]'", name="sklearn"
        ) from None
    kept = np.isin(released, learnable)
    people = int(kept.sum())
    seed = int(entropy.words(1)[0] >> np.uint64(33))
    trees = HistGradientBoostingClassifier(
        max_iter=_MOST_ITERATIONS,
        early_stopping=True,
        # Whole numbers: each value has to be among those put aside.
        validation_fraction=max(people // _PUT_ASIDE, learnable.size),
        random_state=seed,
    )
    smooth = {"max_leaf_nodes": [_FEW_LEAVES], "min_samples_leaf": [max(math.isqrt(people), 20)]}
    split = StratifiedKFold(n_splits=_FOLDS, shuffle=True, random_state=seed)
    model = CalibratedClassifierCV(trees, method="sigmoid", cv=split)
    # People share public values: ask the model once for each.
    distinct, place = np.unique(public, axis=0, return_inverse=True)
    with one_thread():
        examples = public[kept], released[kept].astype(np.int32)
        search = GridSearchCV(trees, [{}, smooth], scoring="neg_log_loss", cv=split, refit=False)
        trees.set_params(**search.fit(*examples).best_params_)
        model.fit(*examples)
        laws[:, model.classes_] = model.predict_proba(distinct)[place.reshape(-1)]
    return laws


def debiased_laws(laws: Floats, support_probabilities: tuple[float, float]) -> Floats:
    """Return laws of true answers from laws of reports of k-ary randomized response.

    (law - q) / (p - q), projected to the nearest law: subtract the one threshold that makes the
    positive parts sum to 1 (Held, Wolfe, Crowder, Mathematical Programming 6, 1974).
    """
    truth, other = support_probabilities
    raw = (laws - other) / (truth - other)
    falling = -np.sort(-raw, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, raw.shape[1] + 1)
    last = (falling > excess).sum(axis=1) - 1
    projected: Floats = np.maximum(raw - excess[np.arange(raw.shape[0]), last][:, None], 0.0)
    return projected


def learnability(predicted: Floats, truth: Floats) -> float:
    """Return lambda: error of the predicted laws, divided by the error of the uniform guess."""
    naive, learnt = (
        float(0.5 * np.abs(laws - truth).sum(axis=1).mean())
        for laws in (np.full(truth.shape, 1.0 / truth.shape[1]), predicted)
    )
    if naive <= _TOLERANCE:
        raise OutOfRegimeError(
            "lambda compares with the error of the uniform guess, which is 0: answers are uniform "
            "around everybody; use a smaller neighbourhood"
        )
    return learnt / naive


LAMBDA = "lambda"
LAMBDA_DEBIASED = "lambda, noise inverted"


def learn_local_laws(
    survey: surveys.AttackedSurvey,
    arrangements: Sequence[surveys.ComparedArrangement],
    *,
    num_trials: SupportsIndex = 10,
    entropy: Entropy,
    on_progress: Progress | None = None,
) -> tuple[surveys.Measured, ...]:
    """Return lambda: how far the learnt local law of the answers is from the true one.

    For each arrangement lambda of the predictions as they are, which is the paper's, and of
    predictions whose noise is inverted, where epsilon0 > 0, each of whichever learner comes nearer
    to the truth: boosted trees, or averages of what is released nearby. Reports are noisy, so
    predictions as they are lean towards the uniform law by a factor that the randomizer fixes;
    inverting it shows what an analyst who knows the randomizer learns.
    """
    public, groups, domain_size = survey.require_public(), survey.neighbourhoods, survey.domain_size
    own = surveys.own_neighbourhoods(groups)
    truth = local_laws(survey.codes, groups, own, domain_size=domain_size)
    p, q = survey.randomizer.support_probabilities

    def look(arrangement: surveys.ComparedArrangement) -> dict[str, tuple[float]]:
        released = arrangement.arranged(survey.reports(entropy), entropy)
        trees = predicted_laws(public, released, domain_size=domain_size, entropy=entropy)
        averages = local_laws(released, groups, own, domain_size=domain_size)
        learnt = {LAMBDA: [trees, averages]}
        if p > q:
            learnt[LAMBDA_DEBIASED] = [debiased_laws(laws, (p, q)) for laws in (trees, averages)]
        return {
            measure: (min(learnability(laws, truth) for laws in found),)
            for measure, found in learnt.items()
        }

    task = "learnability", "learning"
    return surveys.simulate(task, num_trials, arrangements, lambda: look, on_progress)
