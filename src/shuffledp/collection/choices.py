"""The choice among randomizers and dummies: what meets a target, and what of that errs least.

Without dummies each randomizer has a largest epsilon0 that meets the target; with dummies there are
least ones at each epsilon0. The accountant of dummies is loaded only if they are asked for.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from typing import Any

from shuffledp.accounting.calibration import (
    LARGEST_CALIBRATED,
    largest_epsilon0,
    largest_local_epsilon,
)
from shuffledp.accounting.guarantees import guarantee_for, guarantee_of
from shuffledp.amplification.registry import account_delta
from shuffledp.collection.dummies import accounted, bins_of, expected_number
from shuffledp.collection.questions.question import (
    Candidates,
    Laws,
    Means,
    Question,
    chosen_candidates,
)
from shuffledp.composition.release import ShuffledRelease
from shuffledp.core.bound import Guarantee, finite
from shuffledp.core.checks import require_finite
from shuffledp.core.dummies import LARGEST_HALF_WIDTH
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.progress import logger
from shuffledp.randomizers.base import LocalRandomizer

# Numbers of two digits that are advised; advice beyond them would be of no use.
_USERS_ADVISED = [digits * 10**power for power in range(8) for digits in range(10, 100)]
_DIGITS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_EPSILONS_ADVISED = [digits * 10.0**power for power in range(-6, 2) for digits in _DIGITS]

#: Largest expected number of dummies, which take a processor a quarter of an hour to seal.
MOST_DUMMIES = 10**7

#: Among randomizers whose errors are this close, the one with the smallest reports is chosen.
CLOSE_ENOUGH = 1.02

# Ratio below which errors differ only by the accountant's tolerance: both have the same law.
SAME_ERROR = 1.0 + 1e-4

# Number of rounds from which discrete Gaussian laws have the least variance.
_ROUNDS_OF_GAUSSIAN = 4

# Values of epsilon0 at which dummies are tried, from the largest allowed down to epsilon.
_EPSILON0S_TRIED = 8

_error_of: Callable[[Any], float] = attrgetter("expected_standard_error")


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another randomizer at the largest epsilon0 that meets the target, and its error.

    With dummies, at the epsilon0 with the least error.
    """

    randomizer: LocalRandomizer
    expected_standard_error: float
    asked_epsilon0: float
    dummies: Laws = ()

    def to_json_dict(self) -> dict[str, object]:
        """Return name, epsilon0, bytes a report, expected standard error, and dummies, if any."""
        dummies = {"dummies": [str(law) for law in self.dummies]} if self.dummies else {}
        return {
            "randomizer": self.randomizer.name,
            "epsilon0": finite(self.randomizer.epsilon0),
            "num_report_bytes": self.randomizer.num_report_bytes,
            "expected_standard_error": self.expected_standard_error,
            **dummies,
        }


@dataclass(frozen=True, slots=True)
class Target:
    """Target of a collection: epsilon, delta, number of users and rounds.

    Each report has epsilon0 at most ``max_epsilon0``, infinite without local noise.
    """

    num_users: int
    epsilon: float
    delta: float
    rounds: int = 1
    max_epsilon0: float = LARGEST_CALIBRATED
    dummies: str = "none"
    most_dummies: int = MOST_DUMMIES


def require_frequency(question: Question, frequency: float) -> float:
    """Return the frequency if it is a share of users, and the question about shares, or raise."""
    frequency = require_finite("frequency", frequency)
    if not 0.0 <= frequency <= 1.0:
        raise ParameterError(f"frequency = {frequency} is not in [0, 1]: it is a share of users")
    if isinstance(question, Means):
        raise ParameterError(
            f"frequency = {frequency} is for questions about shares of users, not for "
            f"{question.kind}: leave it out"
        )
    return frequency


def at_target(question: Question, makers: Candidates, target: Target) -> list[Alternative]:
    """Return each randomizer at its largest epsilon0 that meets the target."""

    def largest(make: Callable[[float], LocalRandomizer]) -> float:
        return meeting(target, lambda epsilon0: make(epsilon0).profile)

    @cache
    def of_any() -> float:
        """Return the largest epsilon0 for any randomizer, which depends on epsilon0 alone."""
        other = RandomizerFamily.OTHER
        return meeting(target, lambda epsilon0: LocalProfile(epsilon0=epsilon0, family=other))

    found = []
    for name, make in makers.items():
        profile = make(1.0).profile
        has_analysis = profile.family is not RandomizerFamily.OTHER or profile.blanket
        epsilon0 = largest(make) if has_analysis else of_any()
        chosen = make(epsilon0)
        error = question.expected_error(chosen, target.num_users)
        logger.debug("%s: epsilon0 = %.6g, standard error %.4g", name, epsilon0, error)
        found.append(Alternative(chosen, error, epsilon0))
    return found


def best_first(question: Question, makers: Candidates, target: Target) -> list[Alternative]:
    """Return the choices, least error first; raise `infeasible` if none is useful."""
    found = at_target(question, makers, target)
    if not min(map(_error_of, found)) <= question.useless_error:
        raise infeasible(question, makers, target)
    best = best_of(found)
    return sorted(found, key=lambda each: (each is not best, _error_of(each)))


def found_share(plan: Any) -> float:
    """Return the smallest share of users at which a plan finds a text; dummies must save 2 %."""
    found = plan.question.prospects(plan.randomizer, plan.num_users, plan.dummies)
    return float(found["discovery"]["found_share"]) * (CLOSE_ENOUGH if plan.dummies else 1.0)


def of_all_rounds(question: Question, target: Target) -> Target:
    """Return the target of all rounds together, where everybody answers each round."""
    return replace(target, rounds=target.rounds * question.num_rounds)


def profiles_of(randomizer: Any) -> tuple[LocalProfile, ...]:
    """Return the profiles of the messages that a user sends in one round."""
    return getattr(randomizer, "profiles", None) or (randomizer.profile,)


def meeting(target: Target, profile_for: Callable[[float], LocalProfile]) -> float:
    """Return the largest epsilon0 of profiles that meet the target."""
    goal: Any = {"num_users": target.num_users, "epsilon": target.epsilon, "delta": target.delta}
    if target.rounds == 1:
        found = largest_epsilon0(profile_for, **goal)
    else:
        found = largest_local_epsilon(rounds=target.rounds, profile_for=profile_for, **goal)
    return min(found, target.max_epsilon0)


def planned_guarantee(randomizer: LocalRandomizer, target: Target, dummies: Laws) -> Guarantee:
    """Return `guarantee_within` a target, with the assumptions of the randomizer."""
    assumptions = getattr(randomizer, "assumptions", ())
    return guarantee_within(randomizer, target, dummies).assuming(*assumptions)


def guarantee_within(randomizer: LocalRandomizer, target: Target, dummies: Laws = ()) -> Guarantee:
    """Return the guarantee of all rounds at a target's delta, with at most its epsilon.

    Calibration proved that delta holds at ``epsilon``; inverting it ends *above* the root, within
    the tolerance, which must not count as a miss. A shuffler's dummies need no honest users.
    """
    law, num_users, epsilon = randomizer.profile, target.num_users, target.epsilon
    if dummies and (target.rounds > 1 or hasattr(randomizer, "profiles")):
        from shuffledp.accounting import dummies as accountant

        return accountant.level_guarantee(
            profiles_of(randomizer), dummies, delta=target.delta, rounds=target.rounds
        )
    if target.rounds > 1:  # calibration computed the same epsilon
        release = ShuffledRelease(profile=law, num_users=num_users)
        return guarantee_of(release * target.rounds, delta=target.delta)
    num_users, hidden = accounted(dummies, num_users)
    guarantee = guarantee_for(law, num_users, delta=target.delta, **hidden)
    if guarantee.epsilon_upper <= epsilon:
        return guarantee
    found = account_delta(law, num_users=num_users, epsilon=epsilon, with_lower=False, **hidden)
    if found.upper > target.delta:
        return guarantee
    return replace(guarantee, epsilon=guarantee.bound.at_most(epsilon))


def infeasible(question: Question, makers: Candidates, target: Target) -> InfeasibleTargetError:
    """Return the error that states a sufficient number of users, or a sufficient epsilon.

    Judged by the bound for any randomizer: it is quicker than each randomizer's own analysis, and
    never needs less noise, so that the advised numbers suffice.
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
    # Numbers of two digits, each tried exactly as it is printed.
    more = [users for users in _USERS_ADVISED if users > num_users]
    place = bisect_left(more, True, key=lambda users: useful(users, epsilon))
    if place < len(more):
        advice.append(f"{more[place]:,} users would do at this target")
    larger = [step for step in _EPSILONS_ADVISED if step > epsilon]
    place = bisect_left(larger, True, key=lambda step: useful(num_users, step))
    if place < len(larger):
        advice.append(f"epsilon >= {larger[place]:g} with {num_users:,} users")
    if target.max_epsilon0 < LARGEST_CALIBRATED:
        advice.append("max_epsilon0 may have to be larger")
    return InfeasibleTargetError(
        f"num_users = {num_users} is too few for epsilon = {epsilon:g}, delta = {delta:g} with "
        f"{question.describe()}{again}: the noise needed would drown every estimate; "
        f"{', or '.join(advice)}"
    )


def best_of(choices: Sequence[Alternative]) -> Alternative:
    """Return the smallest reports among the choices with nearly the least error.

    Among equal errors the first candidate, which has the closest analysis.
    """
    close = near_the_least(choices, CLOSE_ENOUGH)
    fewest = min(each.randomizer.num_report_bytes for each in close)
    small = [each for each in close if each.randomizer.num_report_bytes == fewest]
    return near_the_least(small, SAME_ERROR)[0]


def near_the_least(choices: Sequence[Alternative], factor: float) -> list[Alternative]:
    """Return the choices whose error is at most a multiple of the least error."""
    least = min(map(_error_of, choices))
    return [each for each in choices if _error_of(each) <= factor * least]


# ---------------------------------------------------------------- with dummies
def best_with_dummies(
    question: Question, randomizer: str | None, target: Target
) -> list[Alternative]:
    """Return the best choice with the requested dummies, then the others, least error first.

    The others are the choices without dummies, if the crowd alone meets the target. With "best"
    no dummies are chosen if they lower the least error by less than 2 %.
    """
    makers = chosen_candidates(question, randomizer, with_dummies=True)
    makers = _fewest_messages(question, makers, target)
    all_rounds = of_all_rounds(question, target)
    senders = ("shuffler", "users") if target.dummies == "best" else (target.dummies,)
    hidden, failed = [], None
    for sender in senders:
        try:
            hidden += [with_dummies(question, make, all_rounds, sender) for make in makers.values()]
        except InfeasibleTargetError as error:
            failed = error
    if target.dummies != "best" and any(not each.dummies for each in hidden):
        raise ParameterError(
            f"dummies = {target.dummies!r}: epsilon0 = {target.max_epsilon0:g} meets the target "
            "without them; leave them out, or allow a larger max_epsilon0"
        )
    hidden = [each for each in hidden if each.dummies]
    crowd: list[Alternative] = []
    if randomizer is None or randomizer in question.candidates():
        with suppress(InfeasibleTargetError):
            crowd = best_first(question, chosen_candidates(question, randomizer), target)
    best = min(hidden, key=_error_of, default=None)
    if target.dummies == "best" and crowd:
        best = best if best and _error_of(crowd[0]) > CLOSE_ENOUGH * _error_of(best) else crowd[0]
    if best is None:
        raise failed or infeasible(question, makers, target)
    if not best.expected_standard_error <= question.useless_error:
        raise InfeasibleTargetError(
            f"num_users = {target.num_users} is too few for epsilon = {target.epsilon:g}, delta = "
            f"{target.delta:g}: dummies would drown every estimate; ask more people, or raise "
            "epsilon or max_epsilon0"
        )
    return sorted([*hidden, *crowd], key=lambda each: (each is not best, _error_of(each)))


def _fewest_messages(question: Question, makers: Candidates, target: Target) -> Candidates:
    """Return the candidates, or only the best one if they send several messages a user.

    Best is the fewest messages with an error close to the least, where the least dummies are
    priced like normal noise: for a sum their cost does not depend on the number of messages.
    """
    from shuffledp.accounting import dummies as accountant

    laws: Any = {name: make(target.max_epsilon0) for name, make in makers.items()}
    if len(laws) == 1 or not all(hasattr(law, "profiles") for law in laws.values()):
        return makers
    noise = 1.0 / (accountant.gaussian_parameter(target.epsilon, target.delta) * target.num_users)
    errors = {
        name: math.hypot(
            question.expected_error(law, target.num_users),
            getattr(law, "dummy_factor", question.central_sensitivity) * noise,
        )
        for name, law in laws.items()
    }
    least = CLOSE_ENOUGH * min(errors.values())
    name = next(name for name, error in errors.items() if error <= least)
    return {name: makers[name]}


def with_dummies(question: Question, make: Any, target: Target, sender: str) -> Alternative:
    """Return a randomizer with a sender's least dummies, at the epsilon0 of least error.

    Without dummies if the largest epsilon0 needs none. More local noise needs fewer dummies; this
    pays only for few users, and where the largest epsilon0 needs too many dummies.
    """
    tried: list[Alternative] = []
    failed = None
    largest, smallest = target.max_epsilon0, target.epsilon
    steps = (min(largest, LARGEST_CALIBRATED) / smallest) ** (1.0 / _EPSILON0S_TRIED)
    for epsilon0 in (largest, *(smallest * steps**i for i in range(_EPSILON0S_TRIED, 0, -1))):
        law, least = make(epsilon0), min(map(_error_of, tried), default=math.inf)
        if tried and hasattr(law, "profiles"):
            break  # no other report hides these: local noise adds to the dummies it saves
        if question.expected_error(law, target.num_users) >= least:  # even without dummies
            continue
        try:
            dummies = _least_laws(law, target, sender)
        except InfeasibleTargetError as error:
            failed = failed or error
            continue
        if dummies or not (tried or failed):
            error_then = question.expected_error(law, target.num_users, dummies)
            tried.append(Alternative(law, error_then, epsilon0, dummies))
        if not dummies:
            break
    if failed and not tried:
        raise failed
    best = near_the_least(tried, SAME_ERROR)[0]
    logger.debug("%s: epsilon0 = %.6g, %s", best.randomizer.name, best.asked_epsilon0, sender)
    return best


def _least_laws(randomizer: LocalRandomizer, target: Target, sender: str) -> Laws:
    """Return the least dummies with which a randomizer meets the target; empty if it needs none."""
    if hasattr(randomizer, "profiles") or target.rounds > 1:
        return _least_level_laws(randomizer, target, sender)
    from shuffledp.accounting import dummies as accountant

    users = 1 if sender == "shuffler" else target.num_users
    goal: Any = {"num_users": users, "epsilon": target.epsilon}
    profile, most = randomizer.profile, target.most_dummies
    if account_delta(profile, with_lower=False, **goal).upper <= target.delta:
        return ()
    advice = f"or ask for coarser answers, or allow more than {most:,} with most_dummies=..."
    (num_bins,) = bins_of(randomizer)
    widest = min(most // num_bins, LARGEST_HALF_WIDTH)
    if widest < 1:
        raise InfeasibleTargetError(
            f"{num_bins:,} answers are too many for dummies, of which each needs some: leave them "
            f"out, {advice}"
        )
    try:
        law = accountant.least_dummies(
            profile, **goal, sender=sender, delta=target.delta, most_half_width=widest
        )
    except InfeasibleTargetError as error:
        raise InfeasibleTargetError(f"{error}; {advice}") from None
    return _affordable((law,), randomizer, target, advice)


def _least_level_laws(randomizer: Any, target: Target, sender: str) -> Laws:
    """Return the least dummies of several messages (one law a level) or several rounds."""
    from shuffledp.accounting import dummies as accountant

    is_single, rounds = not hasattr(randomizer, "profiles"), target.rounds
    if sender == "users":
        what = "several rounds" if is_single else randomizer.name
        raise InfeasibleTargetError(
            f"dummies = 'users' are not accounted for {what}: let the shuffler add them"
        )
    if rounds * randomizer.epsilon0 <= target.epsilon:
        return ()
    profiles = profiles_of(randomizer)
    shares = [1.0] if is_single else randomizer.dummy_shares
    dummies = accountant.least_level_dummies(
        profiles, shares, epsilon=target.epsilon, delta=target.delta, rounds=rounds
    )
    if is_single and rounds < _ROUNDS_OF_GAUSSIAN:  # an even share of the target each
        even = (
            accountant.least_dummies(
                profiles[0],
                shapes=("laplace",),
                epsilon=target.epsilon / rounds,
                delta=target.delta / rounds,
            ),
        )
        found = accountant.level_guarantee(profiles, even, delta=target.delta, rounds=rounds)
        if found.epsilon_upper <= target.epsilon and even[0].variance < dummies[0].variance:
            dummies = even
    advice = f"or allow more than {target.most_dummies:,} with most_dummies=..."
    return _affordable(dummies, randomizer, target, advice)


def _affordable(dummies: Laws, randomizer: Any, target: Target, advice: str) -> Laws:
    """Return dummies unless they are too many."""
    number = expected_number(dummies, randomizer, target.num_users)
    if number > target.most_dummies:
        raise InfeasibleTargetError(
            f"epsilon = {target.epsilon:g} at delta = {target.delta:g} needs {number:,.0f} dummies "
            f"in all: raise epsilon or delta, {advice}"
        )
    return dummies


def error_at_target(question: Question, makers: Candidates, choice: Any, target: Target) -> float:
    """Return the expected error of a choice or plan at another target; infinite if infeasible."""
    name = choice.randomizer.name
    if not choice.dummies:
        return _error_of(at_target(question, {name: makers[name]}, target)[0])
    target = replace(of_all_rounds(question, target), max_epsilon0=choice.asked_epsilon0)
    with suppress(InfeasibleTargetError):
        sender = choice.dummies[0].sender
        return _error_of(with_dummies(question, makers[name], target, sender))
    return math.inf
