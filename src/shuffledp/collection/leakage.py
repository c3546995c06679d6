"""Success probabilities of adversaries who see the release of one run, for any `Shuffling`.

For every shuffle the guarantee of the release bounds the success probability. After a Mallows
permutation the users whose places are spread least are worst off: all alike under "hamming" and
"cayley", the users at the ends of the reference order under "kendall". A bound on their V holds
for everybody. After walks through a network, or noise on places, independent coins decide which
reports hide the target's.

*Proof.* V is convex and symmetric in the law M of the target's place, hence Schur-convex. Fix the
order of all others, and put the target between them: from each place to the next the inversions
with it change by one, so sorted they rise by 0 or 1, and the law of the place, in proportion to
q^inversions, q = e^-theta, falls by at most a factor q from one sorted entry to the next. At the
ends it is q^0, ..., q^(n-1) up to a factor, so its sums of the m largest entries are at least as
large; averaging keeps that.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from shuffledp.accounting.guarantees import guarantee_for
from shuffledp.collection.result import Result
from shuffledp.collection.shuffling import Concealment
from shuffledp.core.arrays import Floats
from shuffledp.core.bound import Bound
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ShuffledpError
from shuffledp.core.numerics.enclosure import Enclosure, round_up
from shuffledp.core.profile import RandomizerFamily
from shuffledp.core.shown import Shown
from shuffledp.leakage import account as accounts_of
from shuffledp.leakage import any_shuffler
from shuffledp.leakage.account import Adversary, LeakageAccount, Scene
from shuffledp.leakage.any_shuffler import SOURCE, at_most
from shuffledp.leakage.counts.others import Response

# With a larger delta epsilon is smaller, which can give a smaller bound on guesses.
_DELTAS = (1e-4, 1e-3, 1e-2)

# Number of cells up to which a channel matrix is used; otherwise the local guarantee is.
_MOST_CELLS = 2_000

# Bounds with a smaller relative gap count as exact.
_TIGHT = 1e-6

# Largest number of values times places for which the closed bounds are evaluated for a matrix.
_MOST_CLOSED = 20_000_000

# Largest error of `target_place_law` in total variation: for each place, and in addition.
_OFF_A_PLACE, _OFF_BESIDES = 1e-15, 1e-12

_ONE_TRY = "The adversary has one try, and wins if it names one chosen person's value."
_INDEPENDENT = (
    "Answers that the adversary does not know are independent, and as likely as it believes."
)
_UNSEEN = "The permutation is drawn without looking at reports, and nobody sees it."
_LOCAL = "Each report is (epsilon0, delta0)-indistinguishable, as its profile says."
_WORST_PLACED = (
    "This is about who stands where least is hidden (under Kendall's distance, at an end of the "
    "reference order): nobody's answer is guessed more often."
)

_DUMMIES = (
    "Chances after this release are upper bounds: the least of what its guarantee permits and of "
    "what the same reports give away without dummies, which never tell more, for they are added "
    "without looking at the answers."
)

# Computed once for each result that is in use.
_FOUND: "WeakKeyDictionary[Result, RunLeakage | None]" = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLeakage(Shown):
    """Success probabilities of two adversaries who see one release.

    Parameters
    ----------
    accounts : tuple of LeakageAccount
        For the adversary who knows nobody's answer, and for the one who knows everybody else's.
    notes : tuple of str
        Quantities that could not be computed, one sentence each.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> plan = sdp.plan(sdp.Categories(["yes", "no"]), num_users=100, epsilon0=2.0, delta=1e-6)
    >>> found = sdp.collection.leakage_of(sdp.run(plan, ["yes", "no"] * 50, seed=1))
    >>> [account.adversary for account in found.accounts]
    ['uninformed', 'strong']
    """

    accounts: tuple[LeakageAccount, ...]
    notes: tuple[str, ...] = ()

    def to_json_dict(self) -> dict[str, object]:
        """Return the accounts (see `LeakageAccount.to_json_dict`) and the notes."""
        return {
            "accounts": [account.to_json_dict() for account in self.accounts],
            "notes": list(self.notes),
        }


def leakage_of(result: Result) -> RunLeakage | None:
    """Return bounds on what adversaries learn about one person from the release of a run.

    Returns
    -------
    RunLeakage or None
        Upper ends hold whenever the guarantee of the run does. None for questions without a finite
        list of answers. Quantities that cannot be computed are named in the notes; nothing is
        raised.

    Notes
    -----
    Cost: about a second at the first call, none afterwards.

    Examples
    --------
    >>> import shuffledp as sdp
    >>> question = sdp.Categories(["yes", "no"])
    >>> plan = sdp.plan(question, num_users=100, epsilon=1.0, delta=1e-6)
    >>> result = sdp.run(plan, ["yes"] * 100, seed=1)
    >>> [account.adversary for account in leakage_of(result).accounts]
    ['uninformed', 'strong']
    """
    if result not in _FOUND:
        _FOUND[result] = computed_leakage(result)
    return _FOUND[result]


def json_of_run(result: Result) -> dict[str, object]:
    """Return `leakage_of` as a part of a JSON object, empty if it is None."""
    found = leakage_of(result)
    return {} if found is None else {"leakage": found.to_json_dict()}


def computed_leakage(result: Result) -> RunLeakage | None:
    """Return `leakage_of` a result, computed anew."""
    if not result.question.has_one_label:
        return None
    release = _Release(result)
    asked: dict[Adversary, str] = {"uninformed": "nobody's", "strong": "everybody else's"}
    accounts, notes = [], []
    for adversary, whose in asked.items():
        try:
            accounts.append(release.account(adversary))
        except (ShuffledpError, ArithmeticError, MemoryError) as error:
            whom = f"an adversary who knows {whose} answer"
            notes.append(f"The success probability of {whom} could not be computed: {error}.")
    if result.dummies:
        notes.append(_DUMMIES)
    return RunLeakage(accounts=tuple(accounts), notes=tuple(notes))


@dataclass(frozen=True, eq=False)
class _Release:
    """A release; values that all adversaries share are computed once, in the first account."""

    result: Result

    @cached_property
    def law(self) -> tuple[float | None, Floats | None]:
        """Truth probability of k-ary randomized response, or a matrix; neither if unavailable."""
        randomizer, profile = self.result.randomizer, self.result.randomizer.profile
        if profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE:
            truth, other = getattr(randomizer, "support_probabilities", (None, None))
            if truth is not None:
                # It is rounded to nearest; a larger truth probability never leaks less.
                return (truth if truth == other else min(math.nextafter(truth, 2.0), 1.0)), None
        rows: Any = None if profile.channel is None else profile.channel()
        if rows is None or len(rows) * len(rows[0]) > _MOST_CELLS:
            return None, None
        return None, np.array(rows, dtype=np.float64)

    @cached_property
    def concealment(self) -> Concealment | None:
        """Ways in which the shuffle hides a report; None for a uniform shuffle."""
        return self.result.shuffling.leakage()

    @cached_property
    def how(self) -> dict[str, Any]:
        """Return the dummies' law for the accountant, if there is one."""
        return {"dummies": self.result.dummies[0]} if self.result.dummies else {}

    @cached_property
    def points(self) -> list[tuple[float, float]]:
        """Pairs of epsilon and delta that the release guarantees."""
        profile, found = self.result.randomizer.profile, [self.result.guarantee]
        for delta in _DELTAS:
            users, how = self.result.guarantee.num_users, {"delta": delta, **self.how}
            found.append(self.result.shuffling.guarantee(profile, users, with_lower=False, **how))
        return [(each.epsilon_upper, each.delta_upper) for each in found]

    def by_guarantee(self, prior: Floats) -> float:
        """Return the success probability that the guarantee of the release permits."""
        points, users = self.points, self.result.guarantee.num_users
        if self.concealment is None:
            profile = self.result.randomizer.profile
            for epsilon in any_shuffler.telling_losses(prior)[:1]:
                more = guarantee_for(profile, users, epsilon=epsilon, with_lower=False, **self.how)
                points = [*points, (more.epsilon_upper, more.delta_upper)]
        return min(any_shuffler.vulnerability_from_guarantee(prior, *point) for point in points)

    def account(self, adversary: Adversary) -> LeakageAccount:
        """Return the account of one adversary: exact if that is quick, else by the guarantee."""
        users, values = self.result.guarantee.num_users, len(self.result.domain)
        if (crowd := self.result.without_dummies) is not None:
            users = crowd.num_users  # a shuffler's dummies count on one honest user
        require_at_least("number of users", users, 1, accounts_of.MOST_USERS)
        require_at_least("number of answers", values, 1, accounts_of.MOST_VALUES)
        profile, (truth, matrix) = self.result.randomizer.profile, self.law
        has_law = truth is not None or matrix is not None
        # A uniform shuffle of the same reports, or of the true answers if the law is unavailable.
        scene = Scene(
            num_users=users,
            domain_size=values,
            truth=truth if has_law else 1.0,
            matrix=matrix,
            prior=None,
            epsilon0=profile.epsilon0,
            is_brief=True,
        )
        prior = scene.law()
        account = scene.account(adversary, None)
        if not has_law:
            # Only the local guarantee of the randomizer is known.
            losses = profile.epsilon0, profile.delta0
            upper = any_shuffler.vulnerability_from_guarantee(prior, *losses)
            ends = Enclosure(account.prior, max(upper, account.prior))
            unknown = ends.bound("local guarantee", SOURCE, (_LOCAL,))
            account = _unplaced(account, randomizer=unknown, both=unknown, truth=None)
        if self.result.dummies:
            account = replace(account, both=replace(account.both, lower=account.prior))
        if self.concealment is not None:
            return self._concealed(account, self.concealment, matrix, prior)
        if account.both.gap is None or account.both.gap > _TIGHT:
            upper = self.by_guarantee(prior)
            return replace(account, both=at_most(account.both, ("guarantee", upper)))
        return account

    def _concealed(
        self, account: LeakageAccount, by: Concealment, matrix: Floats | None, prior: Floats
    ) -> LeakageAccount:
        """Return the account of a non-uniform shuffle, given the account of a uniform shuffle.

        The law of reports is ``matrix``, else k-ary randomized response with the account's truth,
        else unknown. Upper ends hold for everybody. Lower ends: the value of a uniform shuffle if
        all reports are released, since the adversary can shuffle them; and the value proved for the
        worst-off user.
        """
        is_uninformed = account.adversary == "uninformed"
        assumptions = (_ONE_TRY, _INDEPENDENT) if account.adversary != "strong" else (_ONE_TRY,)
        shuffler, both = (
            Enclosure(each.lower or 0.0 if by.is_complete else account.prior, 1.0).bound(
                self.result.shuffler, SOURCE, assumptions
            )
            for each in (account.shuffler, account.both)
        )
        if is_uninformed and by.places is not None:
            places = by.places()
            shuffler = _by_place(shuffler, places, 1.0, None, prior)
            both = _by_place(both, places, account.truth, matrix, prior)
        if is_uninformed:
            shuffler = at_most(shuffler, *_crowded(account, by, 1.0))
        both = at_most(
            both,
            ("local guarantee", account.randomizer.upper),
            ("guarantee", self.by_guarantee(prior)),
            *_crowded(account, by, account.truth),
        )
        if shuffler.upper < both.upper:
            # Reports could be made from the shuffled answers, and processing adds no information.
            both = replace(shuffler, lower=min(both.lower or 0.0, shuffler.upper))
        return _unplaced(account, shuffler=shuffler, both=both)


def _unplaced(account: LeakageAccount, **changes: Any) -> LeakageAccount:
    """Return a changed account, without the knowledge that is worst for a uniform shuffle."""
    known = None if account.is_worst_knowledge else account.knowledge
    return replace(account, knowledge=known, **changes)


def _crowded(
    account: LeakageAccount, by: Concealment, truth: float | None
) -> Iterator[tuple[str, float]]:
    """Yield the bound by the crowd that hides a report, given the probability of truth."""
    if truth is None or by.crowd is None:
        return
    if (crowd := by.crowd()) is None:
        return
    response, is_strong = Response.of(truth, account.domain_size), account.adversary != "uninformed"
    found = any_shuffler.crowd_vulnerability_upper(response, crowd, is_strong=is_strong)
    # The adversary's view equals the view of the crowd except with the probability of failure.
    yield "crowd", min(round_up(found + by.failure), 1.0) if by.failure else found


def _by_place(
    bound: Bound, places: Floats, truth: float | None, matrix: Floats | None, prior: Floats
) -> Bound:
    """Bound the success probability on the worst-placed user after a Mallows permutation."""
    rows = accounts_of.written_matrix(prior.size, truth, matrix)
    if rows is not None and len(rows) * np.count_nonzero(places) <= _MOST_CLOSED:
        found = any_shuffler.positions_vulnerability(places, rows, prior=prior)
    elif truth is not None:
        found = _by_collisions(places, truth, prior.size)
    else:
        return bound
    # The law of the place may be off by this much, and then V by at most as much.
    off = places.size * _OFF_A_PLACE + _OFF_BESIDES
    upper = min(found.upper + off, 1.0)
    return replace(
        bound,
        lower=min(max((found.lower or 0.0) - off, bound.lower or 0.0), upper),
        upper=upper,
        method=found.method,
        assumptions=(*dict.fromkeys((*bound.assumptions, *found.assumptions, _WORST_PLACED)),),
    )


def _by_collisions(places: Floats, truth: float, domain_size: int) -> Bound:
    """Return the closed bound of k-ary randomized response and a uniform prior, for any k."""
    other = (1.0 - truth) / (domain_size - 1)
    even = 1.0 / domain_size
    hit = even + (1.0 - even) * math.sqrt(float(places @ places))
    upper = min(round_up(other + (truth - other) * hit, operations=places.size + 16), 1.0)
    return Enclosure(even, upper).bound("positions-bounded", SOURCE, (_UNSEEN,))
