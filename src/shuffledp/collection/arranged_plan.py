"""What each user runs when reports are not shuffled uniformly: planned for a central target."""

from dataclasses import replace

from shuffledp.accounting.calibration import LARGEST_EPSILON0
from shuffledp.collection.arrangements import Arrangement
from shuffledp.collection.questions.question import Question, chosen_candidates
from shuffledp.collection.run import FixedSetting, fixed_setting
from shuffledp.core.checks import require_open_unit, require_positive
from shuffledp.core.errors import InfeasibleTargetError
from shuffledp.core.numerics.inversion import last_above_first_below

# Of epsilon0: each step asks the accountant for several batches, and nobody sees the difference.
_TOLERANCE = 1e-3


def arranged_setting(
    question: Question,
    *,
    num_users: int,
    epsilon: float,
    delta: float,
    arrangement: Arrangement,
    randomizer: str | None = None,
) -> FixedSetting:
    """Return a randomizer with the largest epsilon0 that meets a central target in an arrangement.

    Parameters
    ----------
    question : Question
        What is asked.
    num_users : int
        Number of people in the arrangement.
    epsilon, delta : float
        Central target, epsilon > 0 in nats and delta in (0, 1).
    arrangement : Arrangement
        The shuffle.
    randomizer : str, optional
        Name of one of the question's ``candidates``; the first one by default, which for answers
        is k-RR, whose reports are answers again.

    Returns
    -------
    FixedSetting
        Its guarantee meets the target; its epsilon0 is within one part in a thousand of the
        largest that does, below it.

    Raises
    ------
    InfeasibleTargetError
        If that allows so much noise only that it would drown every estimate.
    ParameterError
        If a parameter is out of range.
    """
    target = require_positive("epsilon", epsilon)
    allowed = require_open_unit("delta", delta)
    name = randomizer or next(iter(question.candidates()))
    make = chosen_candidates(question, name)[name]

    def epsilon_at(inverse: float) -> float:
        law = make(1.0 / inverse).profile
        found = arrangement.guarantee(law, num_users, delta=allowed, with_lower=False)
        return found.epsilon_upper

    # Without any amplification the target is met at epsilon0 = epsilon.
    _, inverse = last_above_first_below(
        epsilon_at,
        target,
        1.0 / LARGEST_EPSILON0,
        1.0 / min(target, LARGEST_EPSILON0),
        relative_tolerance=_TOLERANCE,
    )
    epsilon0 = max(1.0 / inverse, min(target, LARGEST_EPSILON0))
    if not question.expected_error(make(epsilon0), num_users) <= question.useless_error:
        raise InfeasibleTargetError(
            f"num_users = {num_users} is too few for epsilon = {epsilon:g}, delta = {delta:g} "
            f"with the {arrangement.name} shuffler: the noise needed would drown every estimate; "
            f"{', '.join(filter(None, ('raise epsilon', arrangement.remedy)))}, or ask more people"
        )
    setting = fixed_setting(
        question,
        num_users=num_users,
        randomizer=name,
        epsilon0=epsilon0,
        delta=allowed,
        arrangement=arrangement,
    )
    return replace(setting, target_epsilon=target)
