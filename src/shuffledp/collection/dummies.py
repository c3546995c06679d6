"""Dummies of one collection: drawn, added to the users' reports, subtracted, accounted.

A simulated shuffler draws them; with Poisson laws it draws the sum of the dummies of all users.
From then on they are reports like any other, and only their total number is published.
"""

import operator
from typing import Any, SupportsIndex

import numpy as np

from shuffledp.accounting.guarantees import guarantee_of_crowd
from shuffledp.collection.questions.question import Laws
from shuffledp.collection.shuffling import UNIFORM
from shuffledp.core.bound import Guarantee
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.randomizers.checks import code_type

#: Senders of dummies in a planned collection; "best" takes the least error, with or without.
DUMMIES = ("none", "shuffler", "users", "best")


def protect_alone(laws: Laws) -> bool:
    """Return True if a shuffler adds the dummies: the guarantee holds whatever others send."""
    return bool(laws) and laws[0].sender == "shuffler"


def bins_of(randomizer: Any) -> tuple[int, ...]:
    """Return the numbers of possible reports, of each level if each has a law of its own."""
    return getattr(randomizer, "sizes", ()) or (randomizer.domain_size,)


def expected_number(laws: Laws, randomizer: Any, num_users: int) -> float:
    """Return the expected number of dummies in all."""
    if not laws:
        return 0
    senders = num_users if laws[0].sender == "users" else 1
    pairs = zip(laws, bins_of(randomizer), strict=True)
    return senders * sum(law.mean * size for law, size in pairs)


def draw_dummies(randomizer: Any, laws: Laws, entropy: Entropy, *, num_users: int) -> Any:
    """Return dummy reports, their numbers drawn for each possible report.

    With several laws each is for the possible reports of one level, in order.
    """
    sizes, how = bins_of(randomizer), {"num_senders": num_users}
    drawn = [law.draw(size, entropy, **how) for law, size in zip(laws, sizes, strict=True)]
    codes = np.arange(sum(sizes), dtype=code_type(sum(sizes)))
    return np.repeat(codes, np.concatenate(drawn))


def less_dummies(aggregate: Any, laws: Laws, *, num_users: int | None) -> Any:
    """Return the aggregate without the dummies, given the number of users."""
    return aggregate.less_dummies(*laws, num_users=num_users) if laws else aggregate


def told_users(laws: Laws, told: int | None, num_users: SupportsIndex | None) -> int | None:
    """Return the number of users of reports with dummies: as given, or as the file states.

    Raises
    ------
    ParameterError
        If it is unknown, or given although there are no dummies.
    DataError
        If the file states another number.
    """
    if not laws:
        if num_users is not None:
            raise ParameterError(
                f"num_users = {num_users} is for a plan with dummies: leave it out, as every "
                "report is a user's"
            )
        return None
    if num_users is None and told is None:
        raise ParameterError(
            "num_users is missing: dummies are among the reports, and whoever shuffled them tells "
            "how many are users'; give num_users=..."
        )
    if None not in (num_users, told) and num_users != told:
        raise DataError(f"num_users = {num_users} is not the {told} that the file of reports tells")
    return told if num_users is None else operator.index(num_users)


def require_possible(laws: Laws, shuffling: Any) -> None:
    """Raise if there are dummies that the guarantee of the shuffle does not account for."""
    if laws and laws[0].sender not in getattr(shuffling, "dummy_senders", ()):
        raise ParameterError(
            f"dummies = {laws[0]}, by the {laws[0].sender}, are not accounted for with the "
            f"{shuffling.name} shuffler: plan without them, or for the uniform shuffler"
        )


def require_plannable(
    dummies: str, max_epsilon0: float | None, *, is_bare: bool, is_target: bool
) -> None:
    """Raise unless dummies can be planned as asked."""
    if dummies not in DUMMIES:
        raise ParameterError(f"dummies = {dummies!r} is not one of {', '.join(DUMMIES)}")
    if dummies == "none":
        raise ParameterError(
            "no_local_noise = True sends answers as they are, which only dummies can hide: give "
            "dummies='shuffler' with it"
        )
    if (max_epsilon0 is None) != is_bare:
        raise ParameterError(
            f"dummies = {dummies!r} needs exactly one of max_epsilon0=..., the local "
            "loss that still protects users from a shuffler that colludes with the analyst, and "
            "no_local_noise=True, with which nothing does"
        )
    if not is_target:
        raise ParameterError(
            f"dummies = {dummies!r} are planned for uniform shuffles to a target epsilon, and "
            "users' for one round: leave out dummies, or epsilon0, shuffling and rounds"
        )


def require_given(law: DummyLaw, question: Any, shuffling: Any, *, is_bare: bool) -> None:
    """Raise unless a shuffle that is not uniform accounts for such dummies."""
    if not (question.has_one_label or question.has_rounds):
        raise ParameterError(
            f"dummies = {law} is for answers from a list, not for {question.kind}: leave it out"
        )
    if shuffling == UNIFORM or is_bare:
        raise ParameterError(
            f"dummies = {law} is for another than the uniform shuffle, with local noise: say who "
            "adds them, 'shuffler' or 'users', and the least ones are found"
        )
    require_possible((law,), shuffling)


def accounted(laws: Laws, num_users: int) -> tuple[int, dict[str, Any]]:
    """Return the number of honest users for the accountant, and its arguments about dummies."""
    if len(laws) > 1:
        raise ParameterError(
            f"dummies are of {len(laws)} laws, which are accounted as they were planned: for as "
            "many users, who collect once"
        )
    return 1 if protect_alone(laws) else num_users, {"dummies": laws[0]} if laws else {}


def without_dummies(plan: Any, num_users: int, shuffling: Any, *, rounds: int) -> Guarantee | None:
    """Return the guarantee of the same reports shuffled without dummies; epsilon may be inf."""
    if not plan.dummies:
        return None
    law, delta = plan.randomizer.profile, plan.target_delta
    if shuffling.leakage() is None:
        crowd = guarantee_of_crowd(law, num_users, delta=delta, rounds=rounds)
        return crowd.without_lower() if plan.question.has_rounds else crowd
    found: Guarantee = shuffling.guarantee(law, num_users, delta=delta)
    return found
