"""Attacks on simulated collections: majority vote, Gaussian processes, and learnability.

A simulation on true answers: it measures the leakage of a release, and releases nothing.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, sections 4.1 and 5, Fig. 1. Arguments come from a checked `AttackedSurvey`.

*Majority vote* guesses a person's answer from the released answers of the most similar people. The
adversary knows everybody's public value, the place of each row of the release, and perhaps further,
privileged data. If answers go with these data, the noise that a local randomizer adds to each
report averages out over the neighbours.

*Gaussian processes* guess everybody's value from the released values around them (the paper names
the attack without details; these are ours). A prior of smooth functions of the position, one for
each value (one-vs-rest), is updated by the released labels; the guess is the value with the largest
posterior mean. The posterior comes from a sparse process, the *subset of regressors*: with inducing
positions u, the prior covariance k(x, x') is replaced by k(x, u) k(u, u)^-1 k(u, x'), so that n
labels cost O(n m^2) rather than O(n^3).

*Learnability*: accuracy with which a model learns the local law of the answers from the release:
gradient-boosted trees, calibrated by Platt scaling, predict from a public value the law of the
answers there. They are compared with the law of the reports released around each person, and the
better of the two counts: trees may follow households where a town's law is asked for. lambda is the
total variation between prediction and truth, averaged over people, divided by the error of the
uniform guess: 0 is perfect, 1 no better than knowing nothing.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Required, SupportsIndex, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.counting import Engine
from shuffledp.core.arrays import Booleans, Floats, Integers
from shuffledp.core.checks import require_at_least, require_open_unit
from shuffledp.core.compiled import one_thread
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, needing
from shuffledp.core.progress import Progress
from shuffledp.core.reports import read_only
from shuffledp.estimation.post_processing import nearest_with_sum
from shuffledp.groups.attacks import survey as surveys
from shuffledp.groups.groups import Groups

# The share is given in floating point: 0.9 of 50 resamplings are 45, not 45.000000000000001.
_SLACK = 1e-9


def choose_neighbours(
    neighbourhoods: Groups,
    own: Integers,
    *,
    num_neighbours: int,
    privileged: surveys.Traits | None = None,
    entropy: Entropy,
) -> NDArray[np.int32]:
    """Return the rows that the adversary reads about each person, padded with -1.

    ``neighbourhoods`` has everybody within the attack's radius, ``own`` the neighbourhood of each
    person. The person's own row comes first. The most similar by ``privileged`` data have the
    smallest sum, over the columns, of absolute differences (scale the columns before), or of one
    for each unequal category (Gower, Biometrics 27, 1971); without such data members are chosen at
    random. Cost: one look at each pair of a person and a neighbour, 13 to 17 ns each.
    """
    from shuffledp.groups import group_kernels as kernels

    size = require_at_least("num_neighbours", num_neighbours, 1)
    if privileged is None:  # all are equally similar
        privileged = surveys.Traits(np.zeros((own.size, 0)), np.zeros(0, dtype=np.bool_))
    traits = np.array(privileged.values, dtype=np.float64, order="C"), privileged.is_category
    rows, words = (neighbourhoods.starts, neighbourhoods.members), entropy.words(own.size)
    return kernels.choose_most_similar(rows, read_only(own), traits, words, size)


def is_vulnerable(
    num_right: NDArray[np.integer[Any]], *, num_resamplings: int, success: float = 0.9
) -> Booleans:
    """Return a mask of people whose value is guessed in at least this share of resamplings.

    A person with the commonest answer can be vulnerable without any leak: compare with the uniform
    shuffle, which reveals nothing else.
    """
    share = 1.0 if success == 1.0 else require_open_unit("success", success)
    return num_right >= math.ceil(share * num_resamplings - _SLACK)


# Directions of the prior weaker than this share of the strongest are round-off.
_RELATIVE_FLOOR = 1e-10
# Values that the adversary tries: length scales as shares of the spread, noise as variances.
_LENGTHS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
_NOISES = (0.3, 3.0, 30.0)
# Number of rows on which lengths and noises are compared: more do not change the choice.
_MOST_TRIED = 4_000
_BLOCK_ROWS = 8_192


def gaussian_process_guess(
    positions: Floats,
    released: NDArray[np.integer[Any]],
    *,
    domain_size: int,
    num_inducing: int = 400,
    entropy: Entropy,
) -> NDArray[np.int32]:
    """Guess everybody's value from public positions, shape (n, d), and released values.

    Source: Rasmussen, Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006, section
    8.3.1 (subset of regressors), with the covariance exp(-d^2 / (2 l^2)). The adversary knows no
    true values: length scale and noise are those under which one half of the released labels
    predicts the other half best (squared error). Randomized response keeps the order of the values'
    probabilities, so nothing is inverted. Cost: n m^2 multiplications for m inducing positions, and
    a few m^3.
    """
    wanted = require_at_least("num_inducing", num_inducing, 1)
    labels = np.array(released, dtype=np.int32)
    require_at_least("number of people", labels.size, 2)
    generator = entropy.generator()
    # Only distances count, so the unit is the spread of the positions.
    spread = float(np.sqrt(positions.var(axis=0).sum())) or 1.0
    scaled = (positions - positions.mean(axis=0)) / spread
    distinct = np.unique(scaled, axis=0)
    inducing = distinct[generator.permutation(distinct.shape[0])[:wanted]]
    shares = np.bincount(labels, minlength=domain_size) / labels.size
    tried = generator.permutation(labels.size)[:_MOST_TRIED]
    guesses = np.empty(labels.size, dtype=np.int32)
    with one_thread():
        sample = np.eye(domain_size)[labels[tried]] - shares
        length, noise = _best_prior(scaled[tried], sample, inducing)
        features = _features(inducing, length)
        blocks = [slice(i, i + _BLOCK_ROWS) for i in range(0, labels.size, _BLOCK_ROWS)]
        gram: Floats = np.zeros(())
        moments: Floats = np.zeros(())
        for rows in blocks:  # no n x m table in memory
            known = features(scaled[rows])
            gram = gram + known.T @ known
            moments = moments + known.T @ (np.eye(domain_size)[labels[rows]] - shares)
        weights = _ridge(gram, moments, noise)
        for rows in blocks:
            guesses[rows] = np.argmax(features(scaled[rows]) @ weights + shares, axis=1)
    return guesses


def _features(inducing: Floats, length: float) -> Callable[[Floats], Floats]:
    """Return the map to features F with F F^T = k(x, u) k(u, u)^-1 k(u, x'), up to round-off."""

    def kernel(points: Floats) -> Floats:
        squares = (points * points).sum(axis=1)[:, None] + (inducing * inducing).sum(axis=1)
        squares -= 2.0 * points @ inducing.T
        np.maximum(squares, 0.0, out=squares)
        covariances: Floats = np.exp(squares / (-2.0 * length * length))
        return covariances

    values, vectors = np.linalg.eigh(kernel(inducing))
    kept = values > _RELATIVE_FLOOR * values[-1]
    basis = vectors[:, kept] / np.sqrt(values[kept])
    return lambda points: kernel(points) @ basis


def _ridge(gram: Floats, moments: Floats, noise: float) -> Floats:
    """Return the posterior mean's weights.

    With features F the sparse process is a linear model F w, w standard normal a priori; the
    posterior mean of w is (F^T F + noise I)^-1 F^T y, from ``gram`` F^T F and ``moments`` F^T y.
    """
    return np.asarray(np.linalg.solve(gram + noise * np.eye(len(gram)), moments))


def _best_prior(points: Floats, targets: Floats, inducing: Floats) -> tuple[float, float]:
    """Return the length and noise under which one half of the labels predicts the other best."""
    half = len(points) // 2
    errors = {}
    for length in _LENGTHS:
        features = _features(inducing, length)(points)
        known = features[:half]
        for noise in _NOISES:
            weights = _ridge(known.T @ known, known.T @ targets[:half], noise)
            errors[length, noise] = np.square(features[half:] @ weights - targets[half:]).mean()
    return min(errors, key=lambda prior: errors[prior])


class _Trials(TypedDict, total=False):
    """Keyword arguments of `simulate`: number of trials, random words, and engine."""

    num_trials: SupportsIndex
    entropy: Required[Entropy]
    engine: Engine
    on_progress: Progress | None


def attack_by_majority_vote(
    survey: surveys.AttackedSurvey,
    arrangements: Sequence[surveys.ComparedArrangement],
    *,
    num_neighbours: int = 25,
    num_resamplings: int = 50,
    success: float = 0.9,
    **trials: Unpack[_Trials],
) -> tuple[surveys.Measured, ...]:
    """Return the share of people whose answer a majority vote of their neighbours reveals.

    One result an arrangement; each trial is the share rho of people who are guessed right in at
    least the share ``success`` of the resamplings, each with fresh local reports and a fresh
    shuffle (the paper keeps one permutation for all resamplings of a trial, which gives other
    shares). Neighbours are chosen once a trial, the same for all arrangements. Cost for n = 30,000
    and the defaults: about a third of a second a trial and arrangement, besides reports and
    shuffles.
    """
    how: dict[str, Any] = {"num_neighbours": num_neighbours, "success": success}
    how["resamplings"] = require_at_least("num_resamplings", num_resamplings, 1)
    trial = partial(_vote, survey, **how)
    return surveys.simulate(("majority-vote", "majority vote"), trial, arrangements, **trials)


def _vote(
    survey: surveys.AttackedSurvey,
    arrangements: Sequence[surveys.ComparedArrangement],
    entropy: Entropy,
    *,
    num_neighbours: int,
    resamplings: int,
    success: float,
) -> Iterator[surveys.Found]:
    """Yield the findings of a trial of the majority vote, by arrangement."""
    from shuffledp.groups.group_kernels import vote

    neighbours = choose_neighbours(
        survey.neighbourhoods,
        surveys.own_neighbourhoods(survey.neighbourhoods),
        num_neighbours=num_neighbours,
        privileged=survey.privileged,
        entropy=entropy,
    )
    for arrangement in arrangements:
        num_right = np.zeros((2, survey.num_users), dtype=np.int64)
        for _ in range(resamplings):
            released = arrangement.arranged(survey.reports(entropy), entropy)
            codes, word = np.array(released, dtype=np.int32), entropy.words(1)[0]
            guesses = vote(codes, neighbours, survey.domain_size, word)
            num_right += survey.codes == np.stack([guesses, released])
        vulnerable = is_vulnerable(num_right, num_resamplings=resamplings, success=success)
        yield {"share of vulnerable people": tuple(vulnerable.mean(axis=1).tolist())}


def attack_by_gaussian_process(
    survey: surveys.AttackedSurvey,
    arrangements: Sequence[surveys.ComparedArrangement],
    *,
    label_maps: Mapping[str, NDArray[np.integer[Any]]] | None = None,
    num_inducing: int = 400,
    **trials: Unpack[_Trials],
) -> tuple[surveys.Measured, ...]:
    """Return the accuracy of guesses by Gaussian-process correlation of public positions.

    For each arrangement, then for each of ``label_maps``: coarser classes of the answers, by name,
    into which guesses are merged.
    """
    positions = surveys.euclidean_positions(survey.require_public(), survey.metric)
    maps = {"accuracy": np.arange(survey.domain_size)} | {
        f"accuracy, {name}": mapping for name, mapping in (label_maps or {}).items()
    }
    trial = partial(_correlate, survey, positions=positions, maps=maps, num_inducing=num_inducing)
    return surveys.simulate(("gaussian-process", "Gaussian process"), trial, arrangements, **trials)


def _correlate(
    survey: surveys.AttackedSurvey,
    arrangements: Sequence[surveys.ComparedArrangement],
    entropy: Entropy,
    *,
    positions: Floats,
    maps: Mapping[str, NDArray[np.integer[Any]]],
    num_inducing: int,
) -> Iterator[surveys.Found]:
    """Yield the findings of a trial of Gaussian processes, by arrangement."""
    for arrangement in arrangements:
        released = arrangement.arranged(survey.reports(entropy), entropy)
        guesses = gaussian_process_guess(
            positions,
            released,
            domain_size=survey.domain_size,
            num_inducing=num_inducing,
            entropy=entropy,
        )
        yield {
            measure: tuple(
                float((mapping[guess] == mapping[survey.codes]).mean())
                for guess in (guesses, released)
            )
            for measure, mapping in maps.items()
        }


_FOLDS = 3
# Trees a class; boosting stops when it no longer helps on one person in 15 put aside.
_MOST_ITERATIONS, _PUT_ASIDE = 500, 15
# Learner for smooth laws: leaves of at least the root of the number of people.
_FEW_LEAVES = 4
# A uniform guess with an error below this is exact up to rounding.
_TOLERANCE = 1e-9


def local_laws(
    codes: NDArray[np.integer[Any]], neighbourhoods: Groups, own: Integers, *, domain_size: int
) -> Floats:
    """Return the empirical law of answers, or reports, around each person; (n, domain_size)."""
    sizes = neighbourhoods.sizes
    cells = np.repeat(np.arange(sizes.size), sizes) * domain_size + codes[neighbourhoods.members]
    counts = np.bincount(cells, minlength=sizes.size * domain_size)
    return (counts.reshape(sizes.size, domain_size) / sizes[:, None])[own]


def predicted_laws(
    public: Floats, released: NDArray[np.integer[Any]], *, domain_size: int, entropy: Entropy
) -> Floats:
    """Return the law of *released* values that a model learns at each public value, shape (n, k).

    The laws include the noise of the local randomizer; see `debiased_laws`. Boosting stops early,
    so that the noise of single reports is not learnt. Trees are large, for laws that change often,
    or have few and large leaves: the choice has the smaller log loss in cross-validation. Platt,
    "Probabilistic outputs for support vector machines", 1999. A value with fewer than three reports
    cannot be cross-validated: it is predicted nowhere, and a single remaining value everywhere.
    Cost: up to a minute for n = 30,000.
    """
    tally = np.bincount(released, minlength=domain_size)
    learnable = np.flatnonzero(tally >= _FOLDS)
    laws = np.zeros((released.size, domain_size))
    if learnable.size <= 1:
        laws[:, learnable[0] if learnable.size else int(np.argmax(tally))] = 1.0
        return laws
    with needing("sklearn", "learning", "shuffledp[attacks]"):
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.model_selection import GridSearchCV, StratifiedKFold
    kept = np.isin(released, learnable)
    people = int(kept.sum())
    seed = int(entropy.words(1)[0] >> np.uint64(33))
    trees = HistGradientBoostingClassifier(
        max_iter=_MOST_ITERATIONS,
        early_stopping=True,
        # Whole numbers: each value must be among the people put aside.
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

    The nearest laws to (law - q) / (p - q).
    """
    p, q = support_probabilities
    return nearest_with_sum((laws - q) / (p - q), 1.0)


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
    **trials: Unpack[_Trials],
) -> tuple[surveys.Measured, ...]:
    """Return lambda, the distance of the learnt local law of the answers from the true law.

    For each arrangement lambda of the predictions as they are, as in the paper, and of predictions
    with inverted noise, if epsilon0 > 0; each for the learner that comes nearer to the truth:
    boosted trees, or averages of nearby reports. Reports are noisy, so predictions as they are lean
    towards the uniform law by a factor that the randomizer fixes; inverting it shows what an
    analyst who knows the randomizer learns.
    """
    survey.require_public()
    return surveys.simulate(
        ("learnability", "learning"), partial(_learn, survey), arrangements, **trials
    )


def _learn(
    survey: surveys.AttackedSurvey,
    arrangements: Sequence[surveys.ComparedArrangement],
    entropy: Entropy,
) -> Iterator[surveys.Found]:
    """Yield the findings of a trial of learning, by arrangement."""
    public, groups, domain_size = survey.require_public(), survey.neighbourhoods, survey.domain_size
    own = surveys.own_neighbourhoods(groups)
    truth = local_laws(survey.codes, groups, own, domain_size=domain_size)
    p, q = survey.randomizer.support_probabilities
    for arrangement in arrangements:
        released = arrangement.arranged(survey.reports(entropy), entropy)
        trees = predicted_laws(public, released, domain_size=domain_size, entropy=entropy)
        averages = local_laws(released, groups, own, domain_size=domain_size)
        learnt = {LAMBDA: [trees, averages]}
        if p > q:
            learnt[LAMBDA_DEBIASED] = [debiased_laws(laws, (p, q)) for laws in (trees, averages)]
        yield {
            measure: (min(learnability(laws, truth) for laws in found),)
            for measure, found in learnt.items()
        }
