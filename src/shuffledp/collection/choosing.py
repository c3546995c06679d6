"""Choosing: each randomizer at its largest epsilon0, and what the other trust models would cost."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from shuffledp.accounting.amplification.registry import account_delta
from shuffledp.accounting.calibration import largest_epsilon0, largest_local_epsilon
from shuffledp.accounting.release import ShuffledRelease
from shuffledp.collection.guarantees import guarantee_for, guarantee_of
from shuffledp.collection.questions.question import Candidates, Question
from shuffledp.collection.results import Guarantee
from shuffledp.core.errors import InfeasibleTargetError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.randomizers.base import LocalRandomizer

# Advice beyond this number of users is of no use.
_MOST_USERS_ADVISED = 10**9

# Leading digits of an epsilon that is advised.
_TWO_DIGITS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another randomizer that meets the target.

    Parameters
    ----------
    randomizer : LocalRandomizer
        At the largest epsilon0 that meets the target.
    expected_standard_error : float
        Of an estimate, as for the plan.
    """

    randomizer: LocalRandomizer
    expected_standard_error: float

    def to_json_dict(self) -> dict[str, object]:
        """Return name, epsilon0, bytes a report and expected standard error."""
        return {
            "randomizer": self.randomizer.name,
            "epsilon0": self.randomizer.epsilon0,
            "num_report_bytes": self.randomizer.num_report_bytes,
            "expected_standard_error": self.expected_standard_error,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelComparison:
    """What another trust model costs.

    Parameters
    ----------
    epsilon_for_same_error : float
        Epsilon (nats) at which that model has the plan's standard error.
    standard_error_at_same_epsilon : float
        Standard error that it has at the plan's epsilon.
    mechanism : str
        What is compared with.
    """

    epsilon_for_same_error: float
    standard_error_at_same_epsilon: float
    mechanism: str

    def to_json_dict(self) -> dict[str, object]:
        """Return the fields by name."""
        return {
            "mechanism": self.mechanism,
            "epsilon_for_same_error": self.epsilon_for_same_error,
            "standard_error_at_same_epsilon": self.standard_error_at_same_epsilon,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a collection has to meet: (epsilon, delta) with so many users, after so many rounds."""

    num_users: int
    epsilon: float
    delta: float
    rounds: int = 1


def ranked_choices(
    question: Question, makers: Candidates, target: Target
) -> tuple[Alternative, ...]:
    """Return each randomizer at its largest epsilon0, least expected error first."""
    calibrated = _Calibration(target)
    choices = []
    for make in makers.values():
        chosen = make(calibrated.largest_epsilon0(make))
        error = question.expected_error(chosen, target.num_users)
        choices.append(Alternative(randomizer=chosen, expected_standard_error=error))
    return tuple(sorted(choices, key=lambda each: each.expected_standard_error))


class _Calibration:
    """Finds largest epsilon0s; those that follow from epsilon0 alone are all the same one."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._of_any: float | None = None

    def largest_epsilon0(self, make: Callable[[float], LocalRandomizer]) -> float:
        """Return the largest epsilon0 at which this randomizer meets the target."""
        profile = make(1.0).profile
        if profile.family is not RandomizerFamily.OTHER or profile.blanket:
            return meeting(self._target, lambda epsilon0: make(epsilon0).profile)
        if self._of_any is None:
            self._of_any = meeting(
                self._target,
                lambda epsilon0: LocalProfile(epsilon0=epsilon0, family=RandomizerFamily.OTHER),
            )
        return self._of_any


def meeting(target: Target, profile_for: Callable[[float], LocalProfile]) -> float:
    """Return the largest epsilon0 of profiles that meet the target."""
    if target.rounds == 1:
        return largest_epsilon0(
            profile_for, num_users=target.num_users, epsilon=target.epsilon, delta=target.delta
        )
    return largest_local_epsilon(
        num_users=target.num_users,
        rounds=target.rounds,
        epsilon=target.epsilon,
        delta=target.delta,
        profile_for=profile_for,
    )


def guarantee_within(
    randomizer: LocalRandomizer, num_users: int, epsilon: float, delta: float, *, rounds: int = 1
) -> Guarantee:
    """Return the guarantee of all rounds at ``delta``, with an upper end of at most ``epsilon``.

    Calibration proved that delta holds at ``epsilon``; inverting back ends within its tolerance
    *above* the root, which must not read as a miss.
    """
    if rounds > 1:  # calibrated by the very epsilon that is computed here
        release = ShuffledRelease(profile=randomizer.profile, num_users=num_users)
        return guarantee_of(release * rounds, delta=delta)
    guarantee = guarantee_for(randomizer.profile, num_users, delta=delta)
    bound = guarantee.bound
    if bound.upper <= epsilon:
        return guarantee
    proved = account_delta(
        randomizer.profile, num_users=num_users, epsilon=epsilon, with_lower=False
    )
    if proved.upper > delta:
        return guarantee
    lower = None if bound.lower is None else min(bound.lower, epsilon)
    return replace(guarantee, epsilon=replace(bound, lower=lower, upper=epsilon))


def local_model(
    question: Question, makers: Candidates, best: Alternative, target: Target
) -> ModelComparison:
    """Return the comparison with the same reports sent without a shuffler.

    Over several rounds epsilons add up, and each round gets an even share.
    """
    share = target.epsilon / target.rounds
    errors = (question.expected_error(make(share), target.num_users) for make in makers.values())
    return ModelComparison(
        epsilon_for_same_error=best.randomizer.epsilon0 * target.rounds,
        standard_error_at_same_epsilon=min(errors),
        mechanism="the best of the same randomizers, reports sent with their senders' names",
    )


def central_model(question: Question, standard_error: float, target: Target) -> ModelComparison:
    """Return the comparison with Laplace noise on the totals of a trusted curator.

    Replacing one value moves the totals by the sensitivity in all, which is the scale of the noise
    at epsilon = 1; the standard error of Laplace noise is sqrt(2) times its scale. Over several
    rounds epsilons add up, and each round gets an even share.
    """
    sensitivity = question.central_sensitivity
    product = math.sqrt(2.0) * sensitivity * target.rounds / target.num_users
    return ModelComparison(
        epsilon_for_same_error=product / standard_error,
        standard_error_at_same_epsilon=product / target.epsilon,
        mechanism=f"Laplace noise of scale {sensitivity:.6g}/epsilon on each total of a trusted "
        "curator",
    )


def infeasible(question: Question, makers: Candidates, target: Target) -> InfeasibleTargetError:
    """Return the error that says how many users, or which epsilon, would do.

    Judged by what holds for any randomizer: quicker than each one's own analysis, and since that
    allows no less noise, what is advised does.
    """
    num_users, epsilon, delta = target.num_users, target.epsilon, target.delta

    def useful(users: int, asked: float) -> bool:
        epsilon0 = meeting(
            replace(target, num_users=users, epsilon=asked),
            lambda epsilon0: LocalProfile(epsilon0=epsilon0),
        )
        errors = (question.expected_error(make(epsilon0), users) for make in makers.values())
        return min(errors) <= question.useless_error

    again = f" in {target.rounds} rounds" if target.rounds > 1 else ""
    advice = []
    enough = next((users for users in _powers_above(num_users) if useful(users, epsilon)), None)
    if enough is not None:
        too_few = enough // 2
        while enough - too_few > max(1, enough // 50):
            middle = (too_few + enough) // 2
            too_few, enough = (too_few, middle) if useful(middle, epsilon) else (middle, enough)
        advice.append(f"{enough:,} users would do at this target")
    # Two digits, each tried as it is printed.
    steps = (digits * 10.0**power for power in range(-6, 2) for digits in _TWO_DIGITS)
    large = next((e for e in steps if e > epsilon and useful(num_users, e)), None)
    if large is not None:
        advice.append(f"epsilon >= {large:g} with {num_users:,} users")
    return InfeasibleTargetError(
        f"num_users = {num_users} is too few for epsilon = {epsilon:g}, delta = {delta:g} with "
        f"{question.describe()}{again}: the noise needed would drown every estimate; "
        f"{', or '.join(advice)}"
    )


def _powers_above(num_users: int) -> Iterator[int]:
    """Yield numbers of users that double, up to a billion."""
    users = 2 * num_users
    while users <= 2 * _MOST_USERS_ADVISED:
        yield users
        users *= 2
