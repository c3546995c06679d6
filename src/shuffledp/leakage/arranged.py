"""What an adversary can guess from a release in another order than a uniformly random one.

After a Mallows permutation those whose place is the least spread are the worst off: all alike under
"hamming" and "cayley", those at the ends of the reference order under "kendall" (proof in
docs/results/leakage-general.md). What bounds their V bounds it for everybody. After walks through a
network, or noise on places, coins say who hides the report.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.amplification.random_crowd import CrowdLaw
from shuffledp.collection.arrangements import Order
from shuffledp.core.bound import Bound
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.core.profile import LocalProfile
from shuffledp.groups.arrangement import DisplacementArrangement, GroupArrangement
from shuffledp.groups.privacy.displaced import crowd_with_mean
from shuffledp.leakage.account import LeakageAccount
from shuffledp.leakage.any_shuffler import (
    crowd_vulnerability_upper,
    positions_vulnerability,
    target_place_law,
)
from shuffledp.leakage.guarantees import SOURCE, at_most
from shuffledp.leakage.of_collections import written_matrix
from shuffledp.network.hiding import Hiding
from shuffledp.network.run import NetworkArrangement

if TYPE_CHECKING:
    from shuffledp.collection.results import Guarantee

# Guesses change little with crowds that are rarer than about this.
_RAREST_CROWD = 1e-6

# Values times places up to which the closed bounds are evaluated for a matrix.
_MOST_CLOSED = 20_000_000

# What `target_place_law` may be off by in total variation: for each place, and besides.
_OFF_A_PLACE, _OFF_BESIDES = 1e-15, 1e-12

_ONE_TRY = "The adversary has one try, and wins if it names one chosen person's value."
_INDEPENDENT = (
    "Answers that the adversary does not know are independent, and as likely as it believes."
)
_UNSEEN = "The permutation is drawn without looking at reports, and nobody sees it."
_WORST_PLACED = (
    "This is about who stands where least is hidden (under Kendall's distance, at an end of the "
    "reference order): nobody's answer is guessed more often."
)


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


def arranged(
    account: LeakageAccount,
    order: Order,
    matrix: NDArray[np.float64] | None,
    prior: NDArray[np.float64],
    by_guarantee: float,
) -> LeakageAccount:
    """Return the account of a release in another order, from that of a uniform shuffle.

    The law of reports is ``matrix``, else k-ary randomized response of the account's truth, else
    unknown. Upper ends hold for everybody. Lower ends are those of a uniform shuffle where all
    reports are in the release, for who sees it can shuffle it; and what is proved for the worst
    off.
    """
    shuffler = _unbounded(account.shuffler, account, order)
    both = _unbounded(account.both, account, order)
    if account.adversary == "uninformed":
        if isinstance(order, GroupArrangement):
            places = target_place_law(order.shuffler.model, 0)
            shuffler = _by_place(shuffler, places, 1.0, None, prior)
            both = _by_place(both, places, account.truth, matrix, prior)
        shuffler = at_most(shuffler, *_crowded(account, order, 1.0))
    both = at_most(
        both,
        ("local guarantee", account.randomizer.upper),
        ("guarantee", by_guarantee),
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
    bound: Bound,
    places: NDArray[np.float64],
    truth: float | None,
    matrix: NDArray[np.float64] | None,
    prior: NDArray[np.float64],
) -> Bound:
    """Return what is guessed of the worst-placed person's answer after a Mallows permutation."""
    rows = written_matrix(prior.size, truth, matrix)
    if rows is not None and len(rows) * np.count_nonzero(places) <= _MOST_CLOSED:
        found = positions_vulnerability(places, rows, prior=prior)
    elif truth is not None and float(prior.max()) == float(prior.min()):
        found = _by_collisions(places, truth, prior.size)
    else:
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


def _by_collisions(places: NDArray[np.float64], truth: float, domain_size: int) -> Bound:
    """Return the closed bound of k-ary randomized response and a uniform prior, for any k."""
    k = domain_size
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
