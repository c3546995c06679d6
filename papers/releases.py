"""The ways to release reports that Meehan et al. compare, and what attacks and models find."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from charts import Line
from paper import Settings
from shuffledp import Entropy
from shuffledp.collection import UniformShuffler
from shuffledp.groups import Groups, MallowsShuffler, choose_reference_order
from shuffledp.groups.attacks.adversaries import (
    LAMBDA_DEBIASED,
    attack_by_majority_vote,
    learn_local_laws,
)
from shuffledp.groups.attacks.survey import AttackedSurvey, ComparedArrangement, Measured
from shuffledp.groups.reference_orders import (
    ReferenceOrder,
    breadth_first_order,
    group_widths,
    sensitivity,
)

RAW, UNIFORM = "local reports, not shuffled", "uniform shuffle"
PUBLISHED, OURS = "within groups, as published", "within groups, exact sensitivity"
STROKES: dict[str, dict[str, Any]] = {
    RAW: {"color": "#D55E00", "linestyle": ":", "marker": "^"},
    PUBLISHED: {"color": "#0072B2", "linestyle": "-", "marker": "s"},
    OURS: {"color": "#009E73", "linestyle": "--", "marker": "o"},
    UNIFORM: {"color": "#555555", "linestyle": "-.", "marker": "v"},
}

# As in the paper, section 5.
ALPHA, EPSILON0, NUM_NEIGHBOURS, SUCCESS = 4.0, 2.5, 25, 0.9
_RHO = "share of vulnerable people, rho"
_LAMBDA = "lambda (0 perfect, 1 uniform guess)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One way to release the reports, and where it stands in a chart."""

    kind: str
    arrangement: ComparedArrangement  # its name is unique within a chart
    x: float | None = None  # None for levels
    note: str = ""


#: The two ends between which shuffling within groups lies.
ENDS = (
    Placed(kind=RAW, arrangement=ComparedArrangement(name=RAW)),
    Placed(
        kind=UNIFORM,
        arrangement=ComparedArrangement(name=UNIFORM, shuffler=UniformShuffler()),
    ),
)


def paper_sensitivity(groups: Groups, places: NDArray[np.int64]) -> int:
    """Return the paper's bound of Kendall's sensitivity: w (w + 1) / 2 for the largest width w.

    Section 4.3 and Property 4, where it is printed as an equality; so it is if a group fills its
    width.

    >>> paper_sensitivity(Groups.from_sets([[0, 4], [1, 2, 3]], num_users=5), np.arange(5))
    10
    """
    width = int(group_widths(groups, places).max(initial=0))
    return width * (width + 1) // 2


def as_published(groups: Groups, alpha: float) -> MallowsShuffler:
    """Return the paper's shuffler: breadth first, Kendall, Delta from the largest width w."""
    order = breadth_first_order(groups)
    places = np.argsort(order)
    exact = sensitivity("kendall", groups, places)
    reference = ReferenceOrder(
        order=order,
        name="breadth first",
        distance="kendall",
        sensitivity=exact,
    )
    stated = paper_sensitivity(groups, places)
    theta = math.nextafter(alpha / stated, 0.0) if stated else math.inf
    return MallowsShuffler(reference=reference, theta=theta)


def within_groups(
    groups: Groups,
    points: Iterable[tuple[float, float]],
    coordinates: NDArray[np.float64] | None = None,
) -> list[Placed]:
    """Return the shuffle within groups as published, and ours, for each alpha and place x.

    Published: breadth-first order and the sensitivity w(w+1)/2. Ours: the best order of the
    portfolio and its exact sensitivity. Both apply the permutation in the private form.
    """
    reference = choose_reference_order(groups, coordinates=coordinates)
    placed = []
    for alpha, x in points:
        exact = reference.sensitivity
        theta = math.nextafter(alpha / exact, 0.0) if exact else math.inf
        for kind, shuffler in (
            (PUBLISHED, as_published(groups, alpha)),
            (OURS, MallowsShuffler(reference=reference, theta=theta)),
        ):
            order = shuffler.reference
            note = (
                f"alpha={alpha:g} theta={shuffler.theta:.4g} order={order.name} "
                f"exact_sensitivity={order.sensitivity} largest_group={groups.largest_size}"
            )
            arrangement = ComparedArrangement(name=f"{kind} {float(x)!r}", shuffler=shuffler)
            placed.append(Placed(kind=kind, arrangement=arrangement, x=float(x), note=note))
    return placed


def over_alpha(
    groups: Groups, alphas: Iterable[float], coordinates: NDArray[np.float64] | None = None
) -> list[Placed]:
    """Return both ends, and both mechanisms for each alpha; the order is chosen once."""
    return [*ENDS, *within_groups(groups, [(each, each) for each in alphas], coordinates)]


def lines_of(placed: Sequence[Placed], results: Iterable[Measured]) -> tuple[Line, ...]:
    """Join the results of each kind into a line, or a level where there is no x."""
    by_name = {result.arrangement: result for result in results}
    lines = []
    for kind in dict.fromkeys(each.kind for each in placed):
        members = [each for each in placed if each.kind == kind]
        measured = [by_name[each.arrangement.name] for each in members]
        lines.append(
            Line(
                kind=kind,
                x=tuple(each.x for each in members if each.x is not None),
                y=tuple(each.mean for each in measured),
                deviation=tuple(each.standard_deviation or 0.0 for each in measured),
                notes=tuple(each.note for each in members),
            )
        )
    return tuple(lines)


def resamplings(settings: Settings) -> int:
    """Return how often local reports are drawn anew in each trial of an attack."""
    return 5 if settings.quick else 50


def model_trials(settings: Settings) -> int:
    """Return the trials of what trains models; fewer, since a model takes seconds."""
    return 1 if settings.quick else 3


def vulnerable_shares(
    survey: AttackedSurvey, placed: Sequence[Placed], settings: Settings, entropy: Entropy
) -> dict[str, Any]:
    """Return the shares of people whom a majority vote finds out, for a chart."""
    shares = attack_by_majority_vote(
        survey,
        [each.arrangement for each in placed],
        num_neighbours=NUM_NEIGHBOURS,
        num_resamplings=resamplings(settings),
        num_trials=settings.trials,
        success=SUCCESS,
        entropy=entropy,
    )
    return {"lines": lines_of(placed, shares), "y_label": _RHO, "trials": settings.trials}


def learned_errors(
    survey: AttackedSurvey, placed: Sequence[Placed], settings: Settings, entropy: Entropy
) -> dict[str, Any]:
    """Return the errors of what a model learns, the noise inverted, for a chart."""
    trials = model_trials(settings)
    learned = learn_local_laws(
        survey, [each.arrangement for each in placed], num_trials=trials, entropy=entropy
    )
    errors = [each for each in learned if each.measure == LAMBDA_DEBIASED]
    return {"lines": lines_of(placed, errors), "y_label": _LAMBDA, "trials": trials}


def class_accuracies(
    survey: AttackedSurvey,
    placed: Sequence[Placed],
    settings: Settings,
    entropy: Entropy,
    *,
    others: tuple[NDArray[np.float64], NDArray[np.uint8]],
    label_maps: Mapping[str, NDArray[np.integer]],
) -> dict[str, tuple[Line, ...]]:
    """Return the accuracy on other people of trees that are trained on the release."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    points, labels = others
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(model_trials(settings)):
        for arrangement in (each.arrangement for each in placed):
            released = arrangement.arranged(survey.reports(entropy), entropy)
            for name, mapping in label_maps.items():
                seed = int(entropy.words(1)[0] >> np.uint64(33))
                model = HistGradientBoostingClassifier(max_iter=100, random_state=seed)
                with threadpool_limits(limits=1):
                    model.fit(survey.require_public(), mapping[released])
                    right = model.predict(points) == mapping[labels]
                shares = found.setdefault(name, {}).setdefault(arrangement.name, [])
                shares.append(float(right.mean()))
    return {
        name: lines_of(
            placed,
            [
                Measured(task="classes", measure=name, arrangement=each, trials=tuple(shares))
                for each, shares in by_arrangement.items()
            ],
        )
        for name, by_arrangement in found.items()
    }
