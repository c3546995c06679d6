"""Guarantee of a report without the shuffler, and warnings about weak guarantees."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from shuffledp.collection.questions.question import Question
from shuffledp.core.bound import finite
from shuffledp.randomizers.base import LocalRandomizer


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutShuffler:
    """Guarantee of a user against an adversary who sees the sender of each report.

    ``odds`` is e^epsilon0, the largest factor by which reports change the odds of two answers;
    ``right_guess`` is an upper bound on the probability of guessing which of ``num_values``
    equally likely values a user has. Both are for all rounds together.
    """

    epsilon0: float
    odds: float
    right_guess: float
    num_values: int

    def to_json_dict(self) -> dict[str, float | None]:
        """Return the fields by name, None for infinite values."""
        return dict(finite(asdict(self)))


# Above these a guess is nearly certain, or the factor of the odds is too large to mean anything.
_LARGE_EPSILON0, _LARGE_EPSILON = 8.0, 5.0

# Largest number of answers for which the exact law of reports is written out.
_MOST_WRITTEN_OUT = 8


def without_shuffler(
    question: Question, randomizer: LocalRandomizer, *, rounds: int = 1
) -> WithoutShuffler:
    """Return the local guarantee, which holds if the shuffler fails.

    With the law P of one report and k equally likely values the best guess is right with
    probability sum_y max_x P(y | x) / k: exactly computed for k-RR, subset selection and few
    answers. Otherwise the bound of any (epsilon0, delta0)-LDP randomizer: where A_x are the reports
    on which x is guessed, P_x(A_x) <= e^epsilon0 P_z(A_x) + delta0 for each z != x; summed over all
    such pairs, the share c of right guesses has c (e^epsilon0 + k - 1) <= e^epsilon0 +
    (k - 1) delta0.
    """
    loss, profile = rounds * randomizer.epsilon0, randomizer.profile
    k = len(question.labels) if question.has_one_label else 2
    others = (k - 1) * math.exp(-loss)
    guess = (1.0 + rounds * profile.delta0 * others) / (1.0 + others)
    if rounds == 1 and question.has_one_label:
        guess = min(guess, _right_guess(randomizer, k))
    return WithoutShuffler(
        epsilon0=loss,
        odds=math.exp(loss) if loss < 709.0 else math.inf,
        right_guess=min(1.0, guess * (1.0 + 1e-12)),
        num_values=k,
    )


def _right_guess(randomizer: Any, k: int) -> float:
    """Return the exact probability of the best guess among k answers, 1 if it is unknown."""
    if randomizer.name in {"k-rr", "subset-selection"}:
        # Each report supports the same number of answers; the best guess is any of them.
        own, other = randomizer.support_probabilities
        return float(own / (own + (k - 1) * other))
    if randomizer.profile.channel is None or k > _MOST_WRITTEN_OUT:
        return 1.0
    columns = zip(*randomizer.profile.channel(), strict=True)
    return float(sum(max(column) for column in columns) / k)


def plan_cautions(
    epsilon: float, delta: float, num_users: int, local: WithoutShuffler
) -> tuple[str, ...]:
    """Return warnings about a guarantee that promises little; the plan is still made."""
    found = []
    if epsilon > _LARGE_EPSILON:
        found.append(
            f"epsilon = {epsilon:.4g} is above {_LARGE_EPSILON:g}: the odds between two answers of "
            f"a user may change by a factor of {math.exp(min(epsilon, 709.0)):.3g}, which promises "
            "little; ask for a smaller one."
        )
    if math.isinf(local.epsilon0):
        found.append(
            "Without local noise only the shuffler and its dummies protect: it and the analyst "
            "together would see every answer; a finite max_epsilon0 limits that."
        )
    elif local.epsilon0 > _LARGE_EPSILON0:
        found.append(
            f"epsilon0 = {local.epsilon0:.4g} is above {_LARGE_EPSILON0:g}: only the shuffler "
            "protects. Whoever sees a report with its sender's name guesses the answer right with "
            f"a chance of up to {100.0 * local.right_guess:.6g} %, among {local.num_values} "
            "equally likely ones; max_epsilon0 limits that."
        )
    return (*found, *delta_cautions(delta, num_users))


def delta_cautions(delta: float, num_users: int) -> tuple[str, ...]:
    """Return a warning unless ``delta < 1 / num_users``: others permit publishing an answer."""
    if delta * num_users < 1.0:
        return ()
    return (
        f"delta = {delta:g} is not below 1/num_users = {1 / num_users:g}: publishing one user's "
        f"answer in the clear would meet it; ask for a far smaller one, such as "
        f"{0.001 / num_users:.0e}.",
    )
