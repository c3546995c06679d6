"""Inference attacks on simulated collections: raw local reports, and shuffled ones.

A simulation on true answers: it shows what a release would give away, and releases nothing.
Attacks are those of Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling",
ICLR 2022, arXiv:2106.06603v3: majority vote and re-identification (sections 4.1 and 5), and
Gaussian-process correlation (Fig. 1).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.progress import Progress, no_progress
from shuffledp.groups.attacks.adversaries import (
    choose_neighbours,
    gaussian_process_guess,
    informed_rows,
    is_vulnerable,
    majority_guesses,
    win_rate,
    wins_game,
)
from shuffledp.groups.attacks.learnability import merged
from shuffledp.groups.attacks.survey import (
    AttackedSurvey,
    ComparedArrangement,
    Measured,
    own_neighbourhoods,
)
from shuffledp.groups.groups import Groups
from shuffledp.groups.privacy.reidentification import reidentification_bound

# Draws by which the informed adversary learns where a subset's values may lie: the law of the
# shuffle is public, and she could draw from it as often as she likes.
_DRAWS_OF_PLACES = 200


def attack_by_majority_vote(
    survey: AttackedSurvey,
    arrangements: Sequence[ComparedArrangement],
    *,
    num_neighbours: SupportsIndex = 25,
    num_resamplings: SupportsIndex = 50,
    num_trials: SupportsIndex = 10,
    success: SupportsFloat = 0.9,
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
    num_inducing: SupportsIndex = 400,
    num_trials: SupportsIndex = 10,
    entropy: Entropy,
    on_progress: Progress | None = None,
) -> tuple[Measured, ...]:
    """Return the accuracy of guesses by Gaussian-process correlation of public positions.

    For each arrangement, then for each of ``label_maps``: coarser classes of the answers, by name,
    into which guesses are merged.
    """
    trials = require_at_least("num_trials", num_trials, 1)
    report = on_progress or no_progress
    positions = survey.require_public()
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
            ).guesses
            for measure, mapping in maps.items():
                truth = merged(survey.codes, mapping, survey.domain_size)
                by_process, by_own = (
                    float((merged(guess, mapping, survey.domain_size) == truth).mean())
                    for guess in (guesses, released)
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


def play_reidentification(
    survey: AttackedSurvey,
    arrangements: Sequence[ComparedArrangement],
    groups: Groups,
    *,
    subset_size: SupportsIndex = 3,
    num_plays: SupportsIndex = 1000,
    confidence: SupportsFloat = 0.95,
    entropy: Entropy,
    on_progress: Progress | None = None,
) -> tuple[Measured, ...]:
    """Return how often two adversaries find the rows that came from a few people.

    People are picked at random from a largest group, and stay the same throughout. Two results an
    arrangement: the natural adversary names the people's own rows; the informed one knows all true
    answers and the law of the shuffle, and names the likeliest rows. ``trials`` is the share of
    games won, ``bound`` that of Theorem 4.2, where its hypotheses hold.
    """
    plays = require_at_least("num_plays", num_plays, 1)
    size = require_at_least("subset_size", subset_size, 1)
    report = on_progress or no_progress
    largest = int(np.argmax(groups.sizes))
    group = groups.group(largest)
    if size > group.size:
        raise ParameterError(
            f"subset_size = {size} is above {group.size}, the size of the largest group: give a "
            "smaller one"
        )
    subset = np.sort(entropy.generator().permutation(group)[:size])
    laws = _report_laws(survey, subset)
    total = plays * len(arrangements)
    results: list[Measured] = []
    for index, arrangement in enumerate(arrangements):
        places = _place_probabilities(survey.num_users, arrangement, subset, entropy)
        wins = {"the people's own rows": 0, "the likeliest rows": 0}
        for play in range(plays):
            origins = arrangement.arranged(np.arange(survey.num_users), entropy)
            released = survey.reports(entropy)[origins]
            likeliest = informed_rows(
                released,
                place_probabilities=places,
                subset_law=laws[0],
                other_law=laws[1],
                num_rows=size,
            )
            for adversary, rows in zip(wins, (subset, likeliest), strict=True):
                wins[adversary] += wins_game(origins, rows, subset)
            report("re-identification", index * plays + play + 1, total)
        bound = _game_bound(survey, arrangement, group.size, size)
        for adversary, won in wins.items():
            rate = win_rate(won, plays, confidence=confidence)
            results.append(
                Measured(
                    task="re-identification",
                    measure=f"probability of winning, naming {adversary}",
                    arrangement=arrangement.name,
                    trials=(rate.rate,),
                    lower=rate.lower,
                    upper=rate.upper,
                    bound=bound,
                )
            )
    return tuple(results)


def _report_laws(
    survey: AttackedSurvey, subset: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the law of a report of the subset, and of everybody else."""
    truth, other = survey.randomizer.support_probabilities
    inside = np.zeros(survey.num_users, dtype=np.bool_)
    inside[subset] = True
    laws = []
    for people in (inside, ~inside):
        counts = np.bincount(survey.codes[people], minlength=survey.domain_size)
        laws.append(other + (truth - other) * counts / max(int(counts.sum()), 1))
    return laws[0], laws[1]


def _place_probabilities(
    num_users: int,
    arrangement: ComparedArrangement,
    subset: NDArray[np.integer[Any]],
    entropy: Entropy,
) -> NDArray[np.float64]:
    """Return how likely each row holds a value of the subset, by draws of the shuffle."""
    marks = np.zeros(num_users, dtype=np.uint8)
    marks[subset] = 1
    if arrangement.shuffler is None:
        return np.asarray(marks, dtype=np.float64)
    counts = np.zeros(num_users, dtype=np.int64)
    for _ in range(_DRAWS_OF_PLACES):
        counts += arrangement.arranged(marks, entropy)
    # Every row that the draws left out keeps a small share: they are a sample.
    spread = subset.size / num_users
    return np.asarray((counts + spread) / (_DRAWS_OF_PLACES + 1.0), dtype=np.float64)


def _game_bound(
    survey: AttackedSurvey, arrangement: ComparedArrangement, group_size: int, subset_size: int
) -> float | None:
    """Return the bound of Theorem 4.2, or None where its hypotheses do not hold."""
    if math.isinf(arrangement.alpha):
        return 1.0
    hidden_among = survey.num_users if arrangement.alpha == 0.0 else group_size
    try:
        return float(
            reidentification_bound(
                group_size=hidden_among,
                subset_size=subset_size,
                epsilon0=survey.randomizer.epsilon0,
                alpha=arrangement.alpha,
            )
        )
    except OutOfRegimeError:
        return None
