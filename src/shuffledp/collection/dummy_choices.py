"""The choice among dummies: the least of each randomizer and sender that meet a target.

In a file of its own, so that plans without dummies do not load the accountant of dummies.
"""

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

from shuffledp.accounting.calibration import LARGEST_CALIBRATED
from shuffledp.accounting.dummies import (
    gaussian_parameter,
    least_dummies,
    least_level_dummies,
    level_guarantee,
)
from shuffledp.amplification.registry import account_delta
from shuffledp.collection.choices import (
    CLOSE_ENOUGH,
    SAME_ERROR,
    Alternative,
    Target,
    at_target,
    best_first,
    infeasible,
    near_the_least,
    of_all_rounds,
    profiles_of,
)
from shuffledp.collection.dummies import bins_of, expected_number
from shuffledp.collection.questions.question import Candidates, Laws, Question, chosen_candidates
from shuffledp.core.dummies import LARGEST_HALF_WIDTH
from shuffledp.core.errors import InfeasibleTargetError, ParameterError
from shuffledp.core.progress import logger
from shuffledp.randomizers.base import LocalRandomizer

# Number of rounds from which discrete Gaussian laws have the least variance.
_ROUNDS_OF_GAUSSIAN = 4

# Values of epsilon0 at which dummies are tried, from the largest allowed down to epsilon.
_EPSILON0S_TRIED = 8


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
            hidden += with_dummies(question, makers, all_rounds, sender)
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
    laws: Any = {name: make(target.max_epsilon0) for name, make in makers.items()}
    if len(laws) == 1 or not all(hasattr(law, "profiles") for law in laws.values()):
        return makers
    noise = 1.0 / (gaussian_parameter(target.epsilon, target.delta) * target.num_users)
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


def with_dummies(
    question: Question, makers: Candidates, target: Target, sender: str
) -> list[Alternative]:
    """Return each randomizer with a sender's least dummies, at the epsilon0 of least error.

    Without dummies if the largest epsilon0 needs none. More local noise needs fewer dummies; this
    pays only for few users, and where the largest epsilon0 needs too many dummies.
    """
    chosen = []
    largest, smallest = target.max_epsilon0, target.epsilon
    steps = (min(largest, LARGEST_CALIBRATED) / smallest) ** (1.0 / _EPSILON0S_TRIED)
    for make in makers.values():
        tried: list[Alternative] = []
        failed = None
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
        chosen.append(best)
    return chosen


def _least_laws(randomizer: LocalRandomizer, target: Target, sender: str) -> Laws:
    """Return the least dummies with which a randomizer meets the target; empty if it needs none."""
    if hasattr(randomizer, "profiles") or target.rounds > 1:
        return _least_level_laws(randomizer, target, sender)
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
    how: Any = {"sender": sender, "delta": target.delta, "most_half_width": widest}
    try:
        law = least_dummies(profile, **goal, **how)
    except InfeasibleTargetError as error:
        raise InfeasibleTargetError(f"{error}; {advice}") from None
    return _affordable((law,), randomizer, target, advice)


def _least_level_laws(randomizer: Any, target: Target, sender: str) -> Laws:
    """Return the least dummies of several messages (one law a level) or several rounds."""
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
    goal: Any = {"epsilon": target.epsilon, "delta": target.delta, "rounds": rounds}
    dummies = least_level_dummies(profiles, shares, **goal)
    if is_single and rounds < _ROUNDS_OF_GAUSSIAN:  # an even share of the target each
        share: Any = {"epsilon": target.epsilon / rounds, "delta": target.delta / rounds}
        even = (least_dummies(profiles[0], shapes=("laplace",), **share),)
        found = level_guarantee(profiles, even, delta=target.delta, rounds=rounds)
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


def _error_of(choice: Alternative) -> float:
    """Return the expected standard error of a choice."""
    return choice.expected_standard_error


def error_at_target(question: Question, makers: Candidates, choice: Any, target: Target) -> float:
    """Return the expected error of a choice or plan at another target; infinite if infeasible."""
    name = choice.randomizer.name
    only = {name: makers[name]}
    if not choice.dummies:
        return at_target(question, only, target)[0].expected_standard_error
    target = replace(of_all_rounds(question, target), max_epsilon0=choice.asked_epsilon0)
    with suppress(InfeasibleTargetError):
        found = with_dummies(question, only, target, choice.dummies[0].sender)
        return found[0].expected_standard_error
    return math.inf
