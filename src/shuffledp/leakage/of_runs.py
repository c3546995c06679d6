"""What an adversary can guess from the release of one run, as its arrangement says.

After a Mallows permutation those whose place is the least spread are the worst off: all alike under
"hamming" and "cayley", those at the ends of the reference order under "kendall" (proof in
docs/results/leakage-general.md). What bounds their V bounds it for everybody. After walks through a
network, or noise on places, coins say who hides the report. After anything the guarantee of the
release bounds what is guessed.
"""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.amplification.random_crowd import CrowdLaw
from shuffledp.collection.account import guarantee_for
from shuffledp.collection.arrangements import UNIFORM, Order
from shuffledp.collection.questions import Categories
from shuffledp.collection.results import Guarantee, Result
from shuffledp.collection.source.prior_files import PriorKnowledge
from shuffledp.core.bound import Bound
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError, ShuffledpError
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.groups.arrangement import DisplacementArrangement, GroupArrangement
from shuffledp.groups.privacy.displaced import crowd_with_mean
from shuffledp.leakage.account import Adversary, LeakageAccount
from shuffledp.leakage.any_shuffler import (
    crowd_vulnerability_upper,
    positions_vulnerability,
    target_place_law,
    telling_losses,
    vulnerability_from_guarantee,
)
from shuffledp.leakage.of_collections import (
    MOST_USERS,
    MOST_VALUES,
    Scene,
    checked_belief,
    written_matrix,
)
from shuffledp.network.hiding import Hiding
from shuffledp.network.run import NetworkArrangement

if TYPE_CHECKING:
    from shuffledp.collection.question import Question
    from shuffledp.collection.results import Guarantee
    from shuffledp.randomizers.base import LocalRandomizer


#: Where results that are not from the literature are derived.
SOURCE = "derived in the shuffledp documentation, results/leakage-general"

# A larger delta comes with a smaller epsilon, which for guesses may be worth more.
_DELTAS = (1e-4, 1e-3, 1e-2)

# Draws of single reports in all, and samples: limits of fewer would be too far apart to be of use.
_MOST_DRAWS, _FEWEST_SAMPLES, _MOST_SAMPLES = 6_000_000, 4_000, 100_000

# Places that hold the person's report this seldom in all are not drawn.
_RARE = 1e-6

# Guesses change little with crowds that are rarer than about this.
_RAREST_CROWD = 1e-6

# Matrices up to this size are worth samples; the others closed bounds, if values times places are
# not too many.
_MOST_SAMPLED, _MOST_CLOSED = 2_000, 20_000_000

# What `target_place_law` may be off by in total variation: for each place, and besides.
_OFF_A_PLACE, _OFF_BESIDES = 1e-15, 1e-12

_ONE_TRY = "The adversary has one try, and wins if it names one chosen person's value."
_INDEPENDENT = (
    "Answers that the adversary does not know are independent, and as likely as it believes."
)
_GUARANTEED = "The guarantee of this run holds, with all its assumptions."
_UNSEEN = "The permutation is drawn without looking at reports, and nobody sees it."
_WORST_PLACED = (
    "This is about who stands where least is hidden (under Kendall's distance, at an end of the "
    "reference order): nobody's answer is guessed more often."
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReportLaw:
    """The law of reports: k-ary randomized response, or a matrix."""

    # Chance that k-ary randomized response tells the truth; None for another randomizer.
    truth: float | None = None
    matrix: NDArray[np.float64] | None = None  # shape (k, m); Of that one


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExchangedOrder:
    """The order of an exchange that took place, whose account is of this exchange only."""

    name: ClassVar[str] = "network"

    # Takes a profile and a delta and returns the guarantee of the exchange.
    account: Callable[[LocalProfile, float], "Guarantee"]
    # Who hides the worst-off user's report; None where nobody does as far as is known.
    hiding: Hiding | None
    overload: float  # At least the chance that reports did not travel as ``hiding`` says

    def guarantee(
        self, profile: LocalProfile, num_users: int, *, delta: float, with_lower: bool = True
    ) -> "Guarantee":
        """Return the guarantee of the exchange, whose users cannot be chosen."""
        del num_users, with_lower
        return self.account(profile, delta)


def is_uniform(order: Order) -> bool:
    """Tell whether all orders of the reports are equally likely."""
    if isinstance(order, GroupArrangement | DisplacementArrangement):
        return order.shuffler.theta == 0.0
    return order.name == UNIFORM.name


def arranged(
    account: LeakageAccount,
    release: "Released",
    law: ReportLaw | None,
    prior: NDArray[np.float64],
) -> LeakageAccount:
    """Return the account of a release in another order than a uniformly random one.

    Upper ends hold for everybody. Lower ends are those of a uniform shuffle where all reports are
    in the release, for who sees it can shuffle it; and what is exact for the worst off.
    """
    order = release.arrangement
    shuffler = _unbounded(account.shuffler, account, order)
    both = _unbounded(account.both, account, order)
    if account.adversary == "uninformed":
        if isinstance(order, GroupArrangement):
            shuffler = _by_place(shuffler, ReportLaw(truth=1.0), release, prior)
            both = _by_place(both, law, release, prior)
        shuffler = at_most(shuffler, *_crowded(account, order, 1.0))
    both = at_most(
        both,
        ("local guarantee", account.randomizer.upper),
        *guaranteed(release, prior),
        *_crowded(account, order, account.truth),
    )
    if shuffler.upper < both.upper:
        # Reports are as good as made from the shuffled answers: no processing of these tells more.
        both = replace(shuffler, lower=min(both.lower or 0.0, shuffler.upper))
    return replace(
        account,
        shuffler=shuffler,
        both=both,
        knowledge=None if account.is_worst_knowledge else account.knowledge,
        least=None,
        least_knowledge=None,
    )


def _unbounded(bound: Bound, account: LeakageAccount, order: Order) -> Bound:
    """Return what is known from a uniform shuffle: a lower end, if all reports are released."""
    return Bound(
        lower=bound.lower if _is_complete(order) else account.prior,
        upper=1.0,
        method=order.name,
        source=SOURCE,
        assumptions=(_ONE_TRY,) if account.adversary == "strong" else (_ONE_TRY, _INDEPENDENT),
    )


def _is_complete(order: Order) -> bool:
    """Tell whether all reports are in a release for sure."""
    if isinstance(order, ExchangedOrder):
        return False  # some may have been lost, or rejected
    return getattr(order, "protocol", "all") == "all"


def guaranteed(release: "Released", prior: NDArray[np.float64]) -> Iterator[tuple[str, float]]:
    """Yield what the guarantee of the release says, at some pairs of epsilon and delta."""
    guarantee, order = release.guarantee, release.arrangement
    profile, num_users = release.randomizer.profile, guarantee.num_users
    points = [(guarantee.epsilon_upper, guarantee.delta_upper)]
    for delta in _DELTAS:
        more = order.guarantee(profile, num_users, delta=delta, with_lower=False)
        points.append((more.epsilon_upper, more.delta_upper))
    if order.name == UNIFORM.name:
        for epsilon in telling_losses(prior)[:1]:
            more = guarantee_for(profile, num_users, epsilon=epsilon, with_lower=False)
            points.append((more.epsilon_upper, more.delta_upper))
    yield "guarantee", min(vulnerability_from_guarantee(prior, *point) for point in points)


def at_most(bound: Bound, *others: tuple[str, float]) -> Bound:
    """Return a bound with the least of several upper ends, named after where that comes from."""
    method, upper = min(others, key=lambda pair: pair[1], default=("", bound.upper))
    if upper >= bound.upper:
        return bound
    return replace(
        bound,
        # Ends that meet may cross by their rounding.
        lower=None if bound.lower is None else min(bound.lower, upper),
        upper=upper,
        method=method,
        source=SOURCE,
        assumptions=(*bound.assumptions, _GUARANTEED),
    )


def _crowded(
    account: LeakageAccount, order: Order, truth: float | None
) -> Iterator[tuple[str, float]]:
    """Yield what the crowd says in which a report hides that is true so often."""
    if truth is None or not account.has_uniform_prior:
        return
    for crowd, share, overload in _crowds(order):
        found = crowd_vulnerability_upper(
            account.domain_size,
            truth,
            crowd,
            adversary="uninformed" if account.adversary == "uninformed" else "strong",
            missed=share,
        )
        # What the adversary sees is made from that of the walk, but for the chance of an overload.
        yield "crowd", min(round_up(found + overload), 1.0) if overload else found


def _crowds(order: Order) -> Iterator[tuple[CrowdLaw | NDArray[np.float64], float, float]]:
    """Yield crowds that hide the worst-off report, how often none does, and how often all fails."""
    if isinstance(order, DisplacementArrangement):
        law = crowd_with_mean(float(order.crowds.min()), delta=_RAREST_CROWD)
        if law is not None:
            yield law, 0.0, 0.0
        return
    hiding, overload = _hiding(order)
    if hiding is not None:
        overlaps, missed = hiding.decompositions(1.0)
        for row, share in zip(overlaps, missed.tolist(), strict=True):
            yield row, share, overload


def _hiding(order: Order) -> tuple[Hiding | None, float]:
    """Return who hides a report in a network, and how often the walk is not as that says."""
    if isinstance(order, NetworkArrangement):
        return order.mixing.hiding(order.rounds), 0.0
    if isinstance(order, ExchangedOrder):
        return order.hiding, order.overload
    return None, 0.0


def _by_place(
    bound: Bound, law: ReportLaw | None, release: "Released", prior: NDArray[np.float64]
) -> Bound:
    """Return what is guessed of the worst-placed person's answer after a Mallows permutation."""
    if law is None or not isinstance(release.arrangement, GroupArrangement):
        return bound
    places = target_place_law(release.arrangement.shuffler.model, 0)
    found = _by_matrix(places, written_matrix(prior.size, law.truth, law.matrix), release, prior)
    if found is None:
        found = _by_collisions(places, law.truth, prior)
    if found is None:
        return bound
    # The law of the place may be off, and V by as much at most.
    off = places.size * _OFF_A_PLACE + _OFF_BESIDES
    upper = min(found.upper + off, 1.0)
    return replace(
        bound,
        lower=min(max((found.lower or 0.0) - off, bound.lower or 0.0), upper),
        upper=upper,
        method=found.method,
        assumptions=(*dict.fromkeys((*bound.assumptions, *found.assumptions, _WORST_PLACED)),),
    )


def _by_matrix(
    places: NDArray[np.float64],
    matrix: NDArray[np.float64] | None,
    release: "Released",
    prior: NDArray[np.float64],
) -> Bound | None:
    """Return the bound for a law of places and one of reports; None if that takes long."""
    if matrix is None or len(matrix) * np.count_nonzero(places) > _MOST_CLOSED:
        return None
    num_samples = 0
    if matrix.size <= _MOST_SAMPLED:
        # Places of the same chance are drawn together, and all that are hardly likely left out.
        chances = np.sort(places[places > 0.0])[::-1]
        likely = int(np.searchsorted(np.cumsum(chances), 1.0 - _RARE)) + 1
        different = 1 + np.count_nonzero(np.diff(chances[:likely]))
        num_samples = min(_MOST_DRAWS // (different + 2 * matrix.shape[1]), _MOST_SAMPLES)
    return positions_vulnerability(
        places,
        matrix,
        prior=prior,
        entropy=release.entropy,
        num_samples=num_samples if num_samples >= _FEWEST_SAMPLES else 0,
    )


def _by_collisions(
    places: NDArray[np.float64], truth: float | None, prior: NDArray[np.float64]
) -> Bound | None:
    """Return the closed bound of k-ary randomized response and a uniform prior, for any k."""
    k = prior.size
    if truth is None or float(prior.max()) > float(prior.min()):
        return None
    other = (1.0 - truth) / (k - 1)
    hit = 1.0 / k + (1.0 - 1.0 / k) * math.sqrt(float(places @ places))
    upper = round_up(other + (truth - other) * hit, operations=places.size + 16)
    return Bound(
        lower=1.0 / k,
        upper=min(upper, 1.0),
        method="positions-bounded",
        source=SOURCE,
        assumptions=(_UNSEEN,),
    )


# Channel matrices up to this size are taken as they are; others by their guarantees.
_MOST_CELLS = 2_000

# Histograms that are simulated where only that is quick have so many counts together.
_COUNTS, _FEWEST_HISTOGRAMS = 1 << 20, 1 << 10

# Bounds with a relative gap below this are exact for all that a reader sees.
_TIGHT = 1e-6


# Computed once for each result that is still in use.
_FOUND: "WeakKeyDictionary[Result, RunLeakage | None]" = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLeakage:
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

    num_users: int  # n and k
    domain_size: int  # n and k
    randomizer: "LocalRandomizer"  # What each user ran
    guarantee: Guarantee  # Of the release
    arrangement: Order  # How reports were shuffled: an `Arrangement`, or an `ExchangedOrder`
    entropy: Entropy  # For simulations; none of what is drawn is released


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
            # A stream that neither the randomizer nor the shuffler of a simulation draws from.
            entropy=Entropy.choose(result.seed).spawn().spawn().spawn().spawn(),
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
    # Once for all adversaries, and where what it raises becomes a note.
    law = functools.cache(lambda: _law(release.randomizer))
    accounts, notes = [], []
    for who, adversary, belief in asked:
        try:
            accounts.append(_account(release, law(), adversary, belief))
        except (ShuffledpError, ArithmeticError, MemoryError) as error:
            notes.append(f"What an adversary can guess {who} could not be computed: {error}.")
    return RunLeakage(accounts=tuple(accounts), notes=tuple(notes))


def _account(
    release: Released,
    law: ReportLaw | None,
    adversary: Adversary,
    belief: PriorKnowledge | None,
) -> LeakageAccount:
    """Return the account of one adversary: exact where that is quick, else by the guarantee."""
    known = None if belief is None else belief.known
    # A uniform shuffle of the same reports, or of the true answers where their law is not at hand.
    scene = _scene(release, law, belief)
    account, prior = scene.account(adversary, known), scene.law()
    if law is None:
        account = _without_law(account, release, prior)
    if not is_uniform(release.arrangement):
        return arranged(account, release, law, prior)
    if account.both.gap is None or account.both.gap > _TIGHT:
        return replace(account, both=at_most(account.both, *guaranteed(release, prior)))
    return account


def _law(randomizer: "LocalRandomizer") -> ReportLaw | None:
    """Return the law of reports; None where it is not at hand."""
    profile = randomizer.profile
    if profile.family is RandomizerFamily.K_RANDOMIZED_RESPONSE:
        truth, other = getattr(randomizer, "support_probabilities", (None, None))
        if truth is not None:
            # It is rounded to nearest; more truth never leaks less.
            return ReportLaw(
                truth=truth if truth == other else min(math.nextafter(truth, 2.0), 1.0)
            )
    if profile.channel is None:
        return None
    rows: Any = profile.channel()
    if len(rows) * len(rows[0]) > _MOST_CELLS:
        return None
    return ReportLaw(matrix=np.array([[float(entry) for entry in row] for row in rows]))


def _scene(release: Released, law: ReportLaw | None, belief: PriorKnowledge | None) -> Scene:
    """Return the scene of a uniform shuffle."""
    users, values = release.num_users, release.domain_size
    if users > MOST_USERS or values > MOST_VALUES:
        raise ParameterError(
            f"{users:,} users and {values:,} answers, and leakage is computed for at most "
            f"{MOST_USERS:,} and {MOST_VALUES:,}"
        )
    matrix = None if law is None else law.matrix
    num_reports = values if matrix is None else matrix.shape[1]
    return Scene(
        num_users=users,
        domain_size=values,
        truth=1.0 if law is None else law.truth,
        matrix=matrix,
        prior=None if belief is None else checked_belief(belief.prior, values),
        epsilon0=release.randomizer.profile.epsilon0,
        entropy=release.entropy,
        num_samples=max(_COUNTS // num_reports, _FEWEST_HISTOGRAMS),
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
        least=None,
        least_knowledge=None,
    )
