"""What an adversary can guess from one run, as its arrangement says: who stands where hides less.

**After a Mallows permutation.** `positions_vulnerability` takes the law M of the place at which one
person's report is released. It is V(M) = C + E[max_x sum_j M_j A_{x z_j}] with independent z_j of
one law, so it is convex in M and the same for every order of its entries. Hence it is Schur-convex:
where all sums of the m largest entries of M are at least those of M', V(M) >= V(M'). So those whose
place is the least spread in this sense are the worst off, and what bounds their V bounds it for
everybody.

Under "hamming" and "cayley" all items are alike, and all places give the same V. Under "kendall"
those at the ends of the reference order are the worst off:

*Proof.* Fix the order of all other items and put item t between them at place j = 0, ..., n - 1.
The inversions with t change by one from each place to the next, so sorted they start at their least
and rise by 0 or 1. The law of t's place, in proportion to q^inversions, q = e^-theta, then falls
from one of its sorted entries to the next by q at most, while q^0, ..., q^(n - 1) falls by q each
time: its sums of the m largest entries are at least as large. It is the law at the ends, where the
inversions are j or n - 1 - j whatever the order of the others is. Averages over that order have
sums of the m largest that are at most the averages of these sums. ∎

**After walks through a network, or noise on places,** coins say who hides the report;
`crowd_vulnerability_upper`.

**After anything** the guarantee of the release bounds what is guessed; `vulnerability_from_curve`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.amplification.random_crowd import CrowdLaw
from shuffledp.collection.account import guarantee_for
from shuffledp.collection.arrangements import UNIFORM, Order
from shuffledp.core.bound import Bound
from shuffledp.core.numerics.rounding import round_up
from shuffledp.core.profile import LocalProfile
from shuffledp.groups.arrangement import DisplacementArrangement, GroupArrangement
from shuffledp.groups.privacy.displaced import crowd_with_mean
from shuffledp.leakage.account import LeakageAccount
from shuffledp.leakage.general.central import (
    crowd_vulnerability_upper,
    telling_losses,
    vulnerability_from_curve,
)
from shuffledp.leakage.general.weighted_positions import positions_vulnerability
from shuffledp.leakage.of_collections import written_matrix
from shuffledp.leakage.shuffler_channels import target_place_law
from shuffledp.network.arrangement import NetworkArrangement
from shuffledp.network.hiding import Hiding

if TYPE_CHECKING:
    from shuffledp.collection.results import Guarantee
    from shuffledp.leakage.of_results import Released

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
    """The law of reports: k-ary randomized response, or a matrix.

    Parameters
    ----------
    truth : float or None
        Chance that k-ary randomized response tells the truth; None for another randomizer.
    matrix : ndarray of float64, shape (k, m), or None
        Of that one.
    """

    truth: float | None = None
    matrix: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExchangedOrder:
    """The order of an exchange that took place, whose account is of this exchange only.

    Parameters
    ----------
    account : callable
        Takes a profile and a delta and returns the guarantee of the exchange.
    hiding : Hiding or None
        Who hides the worst-off user's report; None where nobody does as far as is known.
    overload : float
        At least the chance that reports did not travel as ``hiding`` says.
    """

    name: ClassVar[str] = "network"

    account: Callable[[LocalProfile, float], "Guarantee"]
    hiding: Hiding | None
    overload: float

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

    Parameters
    ----------
    account : LeakageAccount
        Of a uniform shuffle of the same reports.
    release : Released
        What was released.
    law : ReportLaw or None
        Of its reports; None where it is not at hand.
    prior : ndarray of float64, shape (k,)
        Of the adversary.

    Returns
    -------
    LeakageAccount
        Upper ends hold for everybody. Lower ends are those of a uniform shuffle where all reports
        are in the release, for who sees it can shuffle it; and what is exact for the worst off.

    Notes
    -----
    Source: this module. Cost: about a second.
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
    """Yield what the guarantee of the release says, at some pairs of epsilon and delta.

    Parameters
    ----------
    release : Released
        What was released.
    prior : ndarray of float64, shape (k,)
        Of the adversary, who may know all other answers.
    """
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
    yield "guarantee", vulnerability_from_curve(prior, points)


def at_most(bound: Bound, *others: tuple[str, float]) -> Bound:
    """Return a bound with the least of several upper ends, named after where that comes from.

    Parameters
    ----------
    bound : Bound
        Returned as it is where no other upper end is lower.
    *others : tuple of str and float
        Method and upper end, which rest on the guarantee of the run.
    """
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
            account.num_values,
            truth,
            crowd,
            adversary="uninformed" if account.adversary == "uninformed" else "strong",
            missed=share,
        )
        # What the adversary sees is made from that of the walk, but for the chance of an overload.
        yield "crowd", min(round_up(found + overload), 1.0) if overload else found


def _crowds(order: Order) -> Iterator[tuple[CrowdLaw | NDArray[np.float64], float, float]]:
    """Yield crowds that hide the worst-off report, how rarely none does, and how often all fails.

    Noise on places hides a report by coins that do not depend on values, just as walks do.
    """
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
