"""What a model still learns from a simulated collection: raw local reports, and shuffled ones.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, section 5. A simulation on true answers, which releases nothing.
"""

from collections.abc import Mapping, Sequence
from typing import SupportsIndex

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.progress import Progress, no_progress
from shuffledp.groups.attacks.attacked_survey import (
    AttackedSurvey,
    ComparedArrangement,
    own_neighbourhoods,
)
from shuffledp.groups.attacks.learnability import (
    debiased_laws,
    learnability,
    local_laws,
    predicted_laws,
)
from shuffledp.groups.attacks.trials import Measured

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

    Parameters
    ----------
    survey : AttackedSurvey
        With ``public`` values to learn from; its neighbourhoods are those of the true laws.
    arrangements : sequence of ComparedArrangement
        What to compare.
    num_trials : int
        Fresh collections, for the error bars, >= 1.
    entropy : Entropy
        Of reports, shuffles and the model.
    on_progress : callable, optional
        Called with the stage, the trials done and the trials in total.

    Returns
    -------
    tuple of Measured
        For each arrangement lambda of the predictions as they are, which is the paper's, and of
        predictions whose noise is inverted; the latter only where epsilon0 > 0.

    Raises
    ------
    ParameterError
        If there are no public values.
    OutOfRegimeError
        If answers are uniform around everybody.
    MissingPackageError
        If scikit-learn is not installed.

    Notes
    -----
    Reports are noisy, so predictions as they are lean towards the uniform law by a factor that
    the randomizer fixes; inverting it shows what an analyst who knows the randomizer learns.
    """
    trials = require_at_least("num_trials", num_trials, 1)
    report = on_progress or no_progress
    public = survey.require_public()
    groups = survey.neighbourhoods
    truth = local_laws(
        survey.codes, groups.starts, groups.members, own_neighbourhoods(groups), num_values=survey.k
    )
    says_truth, says_other = survey.randomizer.support_probabilities
    found: dict[tuple[str, str], list[float]] = {}
    for trial in range(trials):
        for arrangement in arrangements:
            laws = predicted_laws(
                public,
                arrangement.arranged(survey.reports(entropy), entropy),
                num_values=survey.k,
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
