"""What an adversary can guess from the release of one run, as its arrangement says.

After anything the guarantee of the release bounds what is guessed; for another order than a
uniformly random one see `arranged`.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.account import guarantee_for
from shuffledp.collection.arrangements import UNIFORM, Order
from shuffledp.collection.questions import Categories
from shuffledp.collection.results import Guarantee, Result
from shuffledp.collection.source.prior_files import PriorKnowledge
from shuffledp.core.bound import Bound
from shuffledp.core.errors import ParameterError, ShuffledpError
from shuffledp.core.profile import RandomizerFamily
from shuffledp.core.shown import Shown
from shuffledp.leakage.account import Adversary, LeakageAccount
from shuffledp.leakage.guarantees import (
    SOURCE,
    at_most,
    telling_losses,
    vulnerability_from_guarantee,
)
from shuffledp.leakage.of_collections import MOST_USERS, MOST_VALUES, Scene, checked_belief

if TYPE_CHECKING:
    from shuffledp.collection.question import Question
    from shuffledp.randomizers.base import LocalRandomizer

# A larger delta comes with a smaller epsilon, which for guesses may be worth more.
_DELTAS = (1e-4, 1e-3, 1e-2)

# Channel matrices up to this size are taken as they are; others by their guarantees.
_MOST_CELLS = 2_000

# Bounds with a relative gap below this are exact for all that a reader sees.
_TIGHT = 1e-6

# Computed once for each result that is still in use.
_FOUND: "WeakKeyDictionary[Result, RunLeakage | None]" = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLeakage(Shown):
    """What each of some adversaries can guess from one release.

    Parameters
    ----------
    accounts : tuple of LeakageAccount
        Of who knows nobody's answer, of who knows everybody else's, and of a chosen prior.
    notes : tuple of str
        What could not be computed, one sentence each.
    """

    accounts: tuple[LeakageAccount, ...]
    notes: tuple[str, ...] = ()

    def to_json_dict(self) -> dict[str, object]:
        """Return the accounts as `LeakageAccount.to_json_dict` does, and the notes."""
        return {
            "accounts": [account.to_json_dict() for account in self.accounts],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Released:
    """What a run released, as far as guesses go."""

    num_users: int  # n
    domain_size: int  # k
    randomizer: "LocalRandomizer"  # What each user ran
    guarantee: Guarantee  # Of the release
    arrangement: Order  # How reports were shuffled: an `Arrangement`, or an `ExchangedOrder`


def of_run(result: Result) -> RunLeakage | None:
    """Return what an adversary can guess about one person from what a run released.

    Parameters
    ----------
    result : Result
        Its ``prior``, if it has one, is that of one more adversary.

    Returns
    -------
    RunLeakage or None
        Upper ends hold whenever the guarantee of the run does. None for questions without a finite
        list of answers, and where the result does not say how reports were shuffled. What cannot be
        computed is said in its notes; nothing is raised.

    Notes
    -----
    See `leakage_of_run`. Cost: about a second when it is first asked for, and nothing again.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> question = sdp.Categories(["yes", "no"])
    >>> plan = sdp.plan(question, num_users=100, epsilon=1.0, delta=1e-6)
    >>> result = sdp.run(plan, ["yes"] * 100, seed=1)
    >>> [account.adversary for account in of_run(result).accounts]
    ['uninformed', 'strong']
    """
    if result.arrangement is None:
        return None
    if result not in _FOUND:
        release = Released(
            num_users=result.guarantee.num_users,
            domain_size=len(result.domain),
            randomizer=result.randomizer,
            guarantee=result.guarantee,
            arrangement=result.arrangement,
        )
        _FOUND[result] = leakage_of_run(result.question, release, prior=result.prior)
    return _FOUND[result]


def json_of_run(result: Result) -> dict[str, object]:
    """Return `of_run` as a part of a JSON object, which is empty where nothing can be guessed."""
    found = of_run(result)
    return {} if found is None else {"leakage": found.to_json_dict()}


def leakage_of_run(
    question: "Question", release: Released, *, prior: PriorKnowledge | None = None
) -> RunLeakage | None:
    """Return what an adversary can guess; None for questions without a finite list of answers.

    Upper ends hold whenever the guarantee of the run does. What cannot be computed is said in its
    notes; nothing is raised.
    """
    if question.kind != Categories.kind:  # others have no finite list of values
        return None
    asked: list[tuple[str, Adversary, PriorKnowledge | None]] = [
        ("who knows nobody's answer", "uninformed", None),
        ("who knows everybody else's answer", "strong", None),
    ]
    if prior is not None:
        known: Adversary = "uninformed" if prior.known is None else "partial"
        asked.append(("with the chosen prior", known, prior))
    # Once for all adversaries, and where what they raise becomes a note.
    law = functools.cache(lambda: _law(release.randomizer))
    points = functools.cache(lambda: _guaranteed_points(release))
    accounts, notes = [], []
    for who, adversary, belief in asked:
        try:
            accounts.append(_account(release, law(), points, adversary, belief))
        except (ShuffledpError, ArithmeticError, MemoryError) as error:
            notes.append(f"What an adversary can guess {who} could not be computed: {error}.")
    return RunLeakage(accounts=tuple(accounts), notes=tuple(notes))


_Law = tuple[float | None, NDArray[np.float64] | None]


def _account(
    release: Released,
    law: _Law,
    points: Callable[[], list[tuple[float, float]]],
    adversary: Adversary,
    belief: PriorKnowledge | None,
) -> LeakageAccount:
    """Return the account of one adversary: exact where that is quick, else by the guarantee."""
    known = None if belief is None else belief.known
    # A uniform shuffle of the same reports, or of the true answers where their law is not at hand.
    scene = _scene(release, law, belief)
    account, prior = scene.account(adversary, known), scene.law()
    if law[0] is None and law[1] is None:
        account = _without_law(account, release, prior)
    if not _is_uniform(release.arrangement):
        from shuffledp.leakage.arranged import arranged

        by_guarantee = _by_guarantee(release, points(), prior)
        return arranged(account, release.arrangement, law[1], prior, by_guarantee)
    if account.both.gap is None or account.both.gap > _TIGHT:
        upper = _by_guarantee(release, points(), prior)
        return replace(account, both=at_most(account.both, ("guarantee", upper)))
    return account


def _is_uniform(order: Order) -> bool:
    """Tell whether all orders of the reports are equally likely."""
    shuffler = getattr(order, "shuffler", None)
    return order.name == UNIFORM.name or getattr(shuffler, "theta", None) == 0.0


def _guaranteed_points(release: Released) -> list[tuple[float, float]]:
    """Return some pairs of epsilon and delta that the release guarantees."""
    profile, num_users = release.randomizer.profile, release.guarantee.num_users
    found = [release.guarantee] + [
        release.arrangement.guarantee(profile, num_users, delta=delta, with_lower=False)
        for delta in _DELTAS
    ]
    return [(each.epsilon_upper, each.delta_upper) for each in found]


def _by_guarantee(
    release: Released, points: list[tuple[float, float]], prior: NDArray[np.float64]
) -> float:
    """Return what the guarantee of the release says."""
    if release.arrangement.name == UNIFORM.name:
        profile, num_users = release.randomizer.profile, release.guarantee.num_users
        for epsilon in telling_losses(prior)[:1]:
            more = guarantee_for(profile, num_users, epsilon=epsilon, with_lower=False)
            points = [*points, (more.epsilon_upper, more.delta_upper)]
    return min(vulnerability_from_guarantee(prior, *point) for point in points)


def _law(randomizer: "LocalRandomizer") -> _Law:
    """Return the truth of k-ary randomized response, or a matrix; neither if not at hand."""
    profile = randomizer.profile
    if profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE:
        truth, other = getattr(randomizer, "support_probabilities", (None, None))
        if truth is not None:
            # It is rounded to nearest; more truth never leaks less.
            return (truth if truth == other else min(math.nextafter(truth, 2.0), 1.0)), None
    if profile.channel is None:
        return None, None
    rows: Any = profile.channel()
    if len(rows) * len(rows[0]) > _MOST_CELLS:
        return None, None
    return None, np.array([[float(entry) for entry in row] for row in rows])


def _scene(release: Released, law: _Law, belief: PriorKnowledge | None) -> Scene:
    """Return the scene of a uniform shuffle."""
    users, values = release.num_users, release.domain_size
    if users > MOST_USERS or values > MOST_VALUES:
        raise ParameterError(
            f"{users:,} users and {values:,} answers, and leakage is computed for at most "
            f"{MOST_USERS:,} and {MOST_VALUES:,}"
        )
    truth, matrix = law
    return Scene(
        num_users=users,
        domain_size=values,
        truth=1.0 if truth is None and matrix is None else truth,
        matrix=matrix,
        prior=None if belief is None else checked_belief(belief.prior, values),
        epsilon0=release.randomizer.profile.epsilon0,
        is_brief=True,
    )


def _without_law(
    account: LeakageAccount, release: Released, prior: NDArray[np.float64]
) -> LeakageAccount:
    """Return the account where all that is known of the randomizer is its local guarantee."""
    profile = release.randomizer.profile
    upper = vulnerability_from_guarantee(prior, profile.epsilon0, profile.delta0)
    unknown = Bound(
        lower=account.prior,
        upper=max(upper, account.prior),
        method="local guarantee",
        source=SOURCE,
        assumptions=("Each report is (epsilon0, delta0)-indistinguishable, as its profile says.",),
    )
    return replace(
        account,
        randomizer=unknown,
        both=unknown,
        truth=None,
        epsilon0=profile.epsilon0,
        knowledge=None if account.is_worst_knowledge else account.knowledge,
    )
