"""Inference attacks on simulated collections: raw local reports, and shuffled ones.

A simulation on true answers: it shows what a release would give away, and releases nothing.
Attacks are those of Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling",
ICLR 2022, arXiv:2106.06603v3: majority vote (section 5), and Gaussian-process correlation (Fig. 1).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.progress import Progress, no_progress
from shuffledp.groups.attacks.adversaries import (
    choose_neighbours,
    gaussian_process_guess,
    is_vulnerable,
    majority_guesses,
)
from shuffledp.groups.attacks.survey import (
    AttackedSurvey,
    ComparedArrangement,
    Measured,
    euclidean_positions,
    own_neighbourhoods,
)


def attack_by_majority_vote(
    survey: AttackedSurvey,
    arrangements: Sequence[ComparedArrangement],
    *,
    num_neighbours: int = 25,
    num_resamplings: int = 50,
    num_trials: int = 10,
    success: float = 0.9,
    entropy: Entropy,
    on_progress: Progress | None = None,
) -> tuple[Measured, ...]:
    """Return the share of people whose answer a majority vote of their neighbours gives away.

    One result an arrangement; each trial is the share rho of people who are guessed right in at
    least the share ``success`` of so many resamplings, each with fresh local reports and a fresh
    shuffle. Neighbours are chosen once a trial, the same for all arrangements. Cost for n = 30,000
    and the defaults: about a third of a second a trial and arrangement, besides reports and
    shuffles.
    """
    trials = require_at_least("num_trials", num_trials, 1)
    resamplings = require_at_least("num_resamplings", num_resamplings, 1)
    report = on_progress or no_progress
    groups = survey.neighbourhoods
    own = own_neighbourhoods(groups)
    shares: list[list[float]] = [[] for _ in arrangements]
    of_own: list[list[float]] = [[] for _ in arrangements]
    for trial in range(trials):
        neighbours = choose_neighbours(
            groups,
            own,
            num_neighbours=num_neighbours,
            privileged=survey.privileged,
            is_category=survey.is_category,
            entropy=entropy,
        )
        for arrangement, found, of_one in zip(arrangements, shares, of_own, strict=True):
            num_right = np.zeros(survey.num_users, dtype=np.int64)
            num_own = np.zeros(survey.num_users, dtype=np.int64)
            for _ in range(resamplings):
                released = arrangement.arranged(survey.reports(entropy), entropy)
                num_right += survey.codes == majority_guesses(
                    released, neighbours, domain_size=survey.domain_size, entropy=entropy
                )
                num_own += survey.codes == released
            for counts, into in ((num_right, found), (num_own, of_one)):
                vulnerable = is_vulnerable(counts, num_resamplings=resamplings, success=success)
                into.append(float(vulnerable.mean()))
        report("majority vote", trial + 1, trials)
    return tuple(
        Measured(
            task="majority-vote",
            measure="share of vulnerable people",
            arrangement=arrangement.name,
            trials=tuple(found),
            own_report=tuple(of_one),
        )
        for arrangement, found, of_one in zip(arrangements, shares, of_own, strict=True)
    )


def attack_by_gaussian_process(
    survey: AttackedSurvey,
    arrangements: Sequence[ComparedArrangement],
    *,
    label_maps: Mapping[str, NDArray[np.integer[Any]]] | None = None,
    num_inducing: int = 400,
    num_trials: int = 10,
    entropy: Entropy,
    on_progress: Progress | None = None,
) -> tuple[Measured, ...]:
    """Return the accuracy of guesses by Gaussian-process correlation of public positions.

    For each arrangement, then for each of ``label_maps``: coarser classes of the answers, by name,
    into which guesses are merged.
    """
    trials = require_at_least("num_trials", num_trials, 1)
    report = on_progress or no_progress
    positions = euclidean_positions(survey.require_public(), survey.metric)
    maps = {"accuracy": np.arange(survey.domain_size)} | {
        f"accuracy, {name}": mapping for name, mapping in (label_maps or {}).items()
    }
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for trial in range(trials):
        for arrangement in arrangements:
            released = arrangement.arranged(survey.reports(entropy), entropy)
            guesses = gaussian_process_guess(
                positions,
                released,
                domain_size=survey.domain_size,
                num_inducing=num_inducing,
                entropy=entropy,
            )
            for measure, mapping in maps.items():
                truth = mapping[survey.codes]
                by_process, by_own = (
                    float((mapping[guess] == truth).mean()) for guess in (guesses, released)
                )
                found.setdefault((arrangement.name, measure), []).append((by_process, by_own))
        report("Gaussian process", trial + 1, trials)
    return tuple(
        Measured(
            task="gaussian-process",
            measure=measure,
            arrangement=name,
            trials=tuple(by_process for by_process, _ in accuracies),
            own_report=tuple(by_own for _, by_own in accuracies),
        )
        for (name, measure), accuracies in found.items()
    )
