"""What the reproduced figures compare: local reports, groups by both mechanisms, uniform."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.uniform import UniformShuffler
from shuffledp.core.entropy import Entropy
from shuffledp.groups.attacks.attacked_survey import AttackedSurvey, ComparedArrangement
from shuffledp.groups.attacks.attacking import attack_by_majority_vote
from shuffledp.groups.attacks.learning import LAMBDA_DEBIASED, learn_local_laws
from shuffledp.groups.attacks.trials import Measured
from shuffledp.groups.formation.groups import Groups
from shuffledp.groups.orders.reference_orders import (
    ReferenceOrder,
    choose_reference_order,
)
from shuffledp.groups.shuffler import MallowsShuffler
from shuffledp.reproduction.figure_data import Curve, Series
from shuffledp.reproduction.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One way to release the reports, and where it stands in a chart.

    Parameters
    ----------
    series : Series
        Which of the four ways.
    arrangement : ComparedArrangement
        The way itself; its name is unique within a chart.
    x : float or None
        Place on the horizontal axis; None for levels.
    note : str
        Settings, for the CSV.
    """

    series: Series
    arrangement: ComparedArrangement
    x: float | None = None
    note: str = ""


#: The two ends between which shuffling within groups lies.
ENDS = (
    Placed(series=Series.RAW, arrangement=ComparedArrangement(name=Series.RAW)),
    Placed(
        series=Series.UNIFORM,
        arrangement=ComparedArrangement(name=Series.UNIFORM, shuffler=UniformShuffler(), alpha=0.0),
    ),
)


def within_groups(
    groups: Groups,
    alpha: float,
    x: float,
    *,
    coordinates: NDArray[np.float64] | None = None,
    reference: ReferenceOrder | None = None,
) -> tuple[Placed, Placed]:
    """Return the shuffle within groups as published, and ours, at the same alpha.

    Parameters
    ----------
    groups : Groups
        Who is hidden among whom.
    alpha : float
        The guarantee, in nats; positive.
    x : float
        Place on the horizontal axis.
    coordinates : ndarray, optional
        Public positions, which give one more candidate for the reference order.
    reference : ReferenceOrder, optional
        Ours, if it is known already.

    Returns
    -------
    tuple of two Placed
        Published: breadth-first order and the sensitivity w(w+1)/2. Ours: the best order of the
        portfolio and its exact sensitivity. Both apply the permutation in the private form.
    """
    if reference is None:
        reference = choose_reference_order(groups, coordinates=coordinates)
    ours = MallowsShuffler(reference=reference, theta=_theta(alpha, reference.sensitivity))
    published = MallowsShuffler.as_published(groups, alpha)
    return (
        _placed(Series.PUBLISHED, published, groups, alpha, x),
        _placed(Series.OURS, ours, groups, alpha, x),
    )


def over_alpha(
    groups: Groups, alphas: Iterable[float], *, coordinates: NDArray[np.float64] | None = None
) -> list[Placed]:
    """Return both ends, and both mechanisms for each alpha; the order is chosen once."""
    reference = choose_reference_order(groups, coordinates=coordinates)
    placed = [*ENDS]
    for alpha in alphas:
        placed += within_groups(groups, alpha, alpha, reference=reference)
    return placed


def curves_of(placed: Sequence[Placed], results: Iterable[Measured]) -> tuple[Curve, ...]:
    """Join the results of each series into a curve, or a level where there is no x.

    Parameters
    ----------
    placed : sequence of Placed
        What was measured.
    results : iterable of Measured
        One for each name of an arrangement.

    Returns
    -------
    tuple of Curve
        In the order of first appearance.
    """
    by_name = {result.arrangement: result for result in results}
    curves = []
    for series in dict.fromkeys(each.series for each in placed):
        members = [each for each in placed if each.series is series]
        measured = [by_name[each.arrangement.name] for each in members]
        curves.append(
            Curve(
                series=series,
                x=tuple(each.x for each in members if each.x is not None),
                mean=tuple(result.mean for result in measured),
                deviation=tuple(result.standard_deviation or 0.0 for result in measured),
                notes=tuple(each.note for each in members),
            )
        )
    return tuple(curves)


def vulnerable_shares(
    survey: AttackedSurvey,
    placed: Sequence[Placed],
    settings: Settings,
    entropy: Entropy,
    stage: str,
) -> tuple[Curve, ...]:
    """Return the shares of people whom a majority vote finds out, as curves."""
    shares = attack_by_majority_vote(
        survey,
        arrangements_of(placed),
        num_neighbours=settings.num_neighbours,
        num_resamplings=settings.resamplings,
        num_trials=settings.trials,
        success=settings.success,
        entropy=entropy,
        on_progress=settings.staged(stage),
    )
    return curves_of(placed, shares)


def learned_errors(
    survey: AttackedSurvey,
    placed: Sequence[Placed],
    settings: Settings,
    entropy: Entropy,
    stage: str,
) -> tuple[Curve, ...]:
    """Return the errors of what a model learns, the noise inverted, as curves."""
    learned = learn_local_laws(
        survey,
        arrangements_of(placed),
        num_trials=settings.model_trials,
        entropy=entropy,
        on_progress=settings.staged(stage),
    )
    return curves_of(placed, [each for each in learned if each.measure == LAMBDA_DEBIASED])


def arrangements_of(placed: Iterable[Placed]) -> list[ComparedArrangement]:
    """Return what attacks and models are given."""
    return [each.arrangement for each in placed]


def _placed(
    series: Series, shuffler: MallowsShuffler, groups: Groups, alpha: float, x: float
) -> Placed:
    """Return a shuffle within groups with a name of its own, and its settings."""
    reference = shuffler.reference
    return Placed(
        series=series,
        arrangement=ComparedArrangement(name=f"{series} {x!r}", shuffler=shuffler, alpha=alpha),
        x=float(x),
        note=(
            f"alpha={alpha:g} theta={shuffler.theta:.4g} order={reference.name} "
            f"exact_sensitivity={reference.sensitivity} largest_group={groups.largest_size}"
        ),
    )


def _theta(alpha: float, sensitivity: int) -> float:
    """Return alpha / sensitivity, rounded down."""
    return math.nextafter(alpha / sensitivity, 0.0) if sensitivity else math.inf
