"""Guesses after Mallows permutations and walks, against whole channels of a handful of people."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from graph_families import complete_graph, random_regular_graph
from oracles.kendall_places import place_law
from oracles.shuffler_channels import mallows_channel
from shuffledp import Categories
from shuffledp.collection import leakage as module
from shuffledp.collection.leakage import computed_leakage
from shuffledp.collection.questions.question import chosen_candidates
from shuffledp.collection.shuffling import UNIFORM, Concealment, FinishedShuffling
from shuffledp.core.bound import Bound
from shuffledp.core.entropy import Entropy
from shuffledp.groups.mallows import MallowsModel, MallowsShuffler, target_place_law
from shuffledp.groups.reference_orders import ReferenceOrder
from shuffledp.groups.shuffling import GroupShuffling
from shuffledp.leakage.any_shuffler import positions_vulnerability
from shuffledp.leakage.channel import Channel, product_channel
from shuffledp.network.mixing import NetworkMixing
from shuffledp.network.run import NetworkShuffling

DISTANCES = ("kendall", "hamming", "cayley")


def mallows(distance, num_users, theta, order=None):
    """Return an arrangement of that model, whatever the groups are."""
    found = np.arange(num_users) if order is None else np.asarray(order)
    reference = ReferenceOrder(order=found, name="given", distance=distance, sensitivity=1)
    return GroupShuffling(shuffler=MallowsShuffler(reference=reference, theta=theta))


def accounts(arrangement, num_users, domain_size, *, epsilon0=1.5, randomizer="k-rr", delta=1e-6):
    """Return what is said of a release, by adversary."""
    question = Categories(domain=tuple(map(str, range(domain_size))))
    law = chosen_candidates(question, randomizer)[randomizer](epsilon0)
    result = SimpleNamespace(
        question=question,
        domain=question.domain,
        randomizer=law,
        guarantee=arrangement.guarantee(law.profile, num_users, delta=delta),
        dummies=(),
        without_dummies=None,
        shuffling=arrangement,
        shuffler=arrangement.name,
    )
    found = computed_leakage(result)
    assert found.notes == ()
    return law, {account.adversary: account for account in found.accounts}


def by_enumeration(arrangement, matrix, prior):
    """Return how often each person's answer is guessed right, from the whole channel."""
    shuffler, k = arrangement.shuffler, len(prior)
    n = shuffler.reference.num_users
    permuted = mallows_channel(shuffler.model, k, shuffler.reference.order)
    seen = (product_channel(n, Channel(matrix)) @ permuted).to_dense()
    sets = np.array(list(itertools.product(range(k), repeat=n)))
    joint = np.prod(np.asarray(prior)[sets], axis=1)[:, None] * seen
    return [
        float(np.max([joint[sets[:, user] == x].sum(axis=0) for x in range(k)], axis=0).sum())
        for user in range(n)
    ]


def response(k, truth):
    matrix = np.full((k, k), (1.0 - truth) / (k - 1))
    np.fill_diagonal(matrix, truth)
    return matrix


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize(("n", "k", "theta"), [(5, 2, 0.7), (5, 2, 0.2), (4, 3, 1.1), (3, 2, 3.0)])
def test_nobody_is_above_the_bound_of_the_worst_placed(distance, n, k, theta):
    order = Entropy.from_seed(n).generator().permutation(n)
    arrangement = mallows(distance, n, theta, order)
    law, found = accounts(arrangement, n, k, delta=0.1)
    account = found["uninformed"]
    truth = law.support_probabilities[0]
    for bound, matrix in ((account.both, response(k, truth)), (account.shuffler, np.eye(k))):
        exact = by_enumeration(arrangement, matrix, [1.0 / k] * k)
        assert bound.lower - 1e-9 <= max(exact) <= bound.upper + 1e-12
        # The ends of the reference order are the worst off.
        assert exact[order[0]] == pytest.approx(max(exact), abs=1e-12)
        assert exact[order[-1]] == pytest.approx(max(exact), abs=1e-12)
    assert any("nobody's answer is guessed more often" in text for text in account.both.assumptions)


def test_in_the_middle_less_is_guessed():
    """The negative control: an account of somebody in the middle would be too small."""
    exact = by_enumeration(mallows("kendall", 5, 0.7), response(2, 0.8), (0.5, 0.5))
    assert exact[2] < exact[1] < exact[0] - 1e-3


@pytest.mark.parametrize("n", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("theta", [0.0, 0.01, 0.5, 4.0, math.inf])
def test_the_ends_are_the_least_spread(n, theta):
    model = MallowsModel(distance="kendall", num_items=n, theta=theta)
    first, *others = (
        np.cumsum(np.sort(law)[::-1])
        for law in (target_place_law(model), *(place_law(n, theta, place) for place in range(n)))
    )
    for each in others:
        assert np.all(each <= first + 1e-12)


@pytest.mark.parametrize("values", [2, 3])
def test_a_less_spread_place_is_guessed_better(values):
    """V is Schur-convex in the law of the place: moving mass to the likelier never lowers it."""
    generator = Entropy.from_seed(values).generator()
    for _ in range(10):
        law = np.sort(generator.dirichlet(np.ones(4)))[::-1]
        moved = law.copy()
        moved[1] += 0.7 * moved[3]
        moved[3] *= 0.3
        moved.sort()
        less, more = (
            positions_vulnerability(each, response(values, 0.7), prior=None)
            for each in (law, moved)
        )
        assert less.lower <= more.upper


@pytest.mark.parametrize("distance", DISTANCES)
def test_at_the_ends_of_theta(distance):
    law, found = accounts(mallows(distance, 30, math.inf), 30, 2)
    assert found["uninformed"].both.upper == pytest.approx(law.support_probabilities[0], abs=1e-9)
    assert found["uninformed"].shuffler.upper == pytest.approx(1.0, abs=1e-9)
    _, mixed = accounts(mallows(distance, 30, 0.0), 30, 2)
    _, uniform = accounts(UNIFORM, 30, 2)
    for adversary, account in uniform.items():
        assert mixed[adversary].both.lower == account.both.lower
        assert mixed[adversary].shuffler == account.shuffler
    # Nearly so: a hair above the uniform shuffle.
    _, nearly = accounts(mallows(distance, 30, 1e-9), 30, 2)
    assert nearly["uninformed"].both.upper == pytest.approx(
        uniform["uninformed"].both.upper, abs=2e-2
    )
    assert nearly["uninformed"].both.upper >= uniform["uninformed"].both.lower


@pytest.mark.parametrize("randomizer", ["k-rr", "symmetric-unary", "optimized-local-hashing"])
def test_closed_bounds_are_below_the_guarantee(randomizer):
    _, found = accounts(mallows("kendall", 200, 0.05), 200, 3, randomizer=randomizer)
    account = found["uninformed"]
    assert account.prior < account.both.lower <= account.both.upper < account.randomizer.upper
    assert account.both.upper < account.shuffler.upper < 1.0
    assert account.both.method == "positions-bounded"
    assert account.both.upper < found["strong"].both.upper
    assert found["strong"].shuffler.lower == 1.0


def test_many_places_have_closed_bounds():
    _, few = accounts(mallows("kendall", 20_000, 1e-3), 20_000, 3)
    _, many = accounts(mallows("kendall", 20_000, 1e-3), 20_000, 60)
    _, most = accounts(mallows("kendall", 20_000, 1e-3), 20_000, 300)
    for found in (few, many, most):
        account = found["uninformed"]
        assert account.shuffler.method == account.both.method == "positions-bounded"
        assert account.prior < account.both.upper < found["strong"].both.upper
        assert not any("guarantee of this run" in text for text in account.both.assumptions)


def test_any_number_of_values_has_a_closed_bound():
    places = target_place_law(MallowsModel(distance="kendall", num_items=6, theta=0.4))
    closed = module._by_collisions(places, 0.7, 3)
    written = positions_vulnerability(places, response(3, 0.7))
    assert written.upper <= closed.upper * (1.0 + 1e-12)
    assert closed.upper < 0.7
    assert closed.lower <= written.lower


def test_what_is_not_known_of_a_randomizer_is_left_to_the_guarantee():
    """With many answers unary encoding has no small matrix; true answers have."""
    _, found = accounts(
        mallows("kendall", 400, 0.02), 400, 30, randomizer="symmetric-unary", epsilon0=6.0
    )
    account = found["uninformed"]
    assert account.both.upper <= account.shuffler.upper < account.randomizer.upper
    assert account.both.method == account.shuffler.method == "positions-bounded"
    assert account.both.lower == account.prior


def exchanged(arrangement, num_users, *, overload=0.0, hiding=None):
    """Return an exchange that went like a walk."""
    return FinishedShuffling(
        name="network",
        account=lambda profile, delta: arrangement.guarantee(
            profile, num_users, delta=delta, with_lower=False
        ),
        concealment=Concealment(
            crowd=None if hiding is None else lambda: hiding.overlaps,
            failure=overload,
            is_complete=False,
        ),
    )


def test_an_exchange_is_accounted_for_like_its_walk():
    graph = random_regular_graph(60, 8, Entropy.from_seed(2))
    walk = NetworkShuffling(mixing=NetworkMixing(graph), rounds=20)
    hiding = walk.mixing.hiding(20)
    _, planned = accounts(walk, 60, 3)
    for overload in (0.0, 1e-3):
        _, found = accounts(exchanged(walk, 60, hiding=hiding, overload=overload), 60, 3)
        for name in ("both", "shuffler"):
            bound, same = found["uninformed"].bound(name), planned["uninformed"].bound(name)
            assert bound.upper == pytest.approx(same.upper + overload, abs=1e-12)
            assert bound.upper >= same.upper
            assert bound.method == "crowd"
            # Some reports may have been lost on the way.
            assert bound.lower == found["uninformed"].prior < same.lower
        assert found["strong"].both.upper <= planned["strong"].both.upper + overload + 1e-12
    _, alone = accounts(exchanged(walk, 60, hiding=hiding, overload=1.0), 60, 3)
    assert alone["uninformed"].shuffler.upper == 1.0


def test_an_exchange_that_hides_nobody():
    walk = NetworkShuffling(mixing=NetworkMixing(complete_graph(5)), rounds=0)
    law, found = accounts(exchanged(walk, 5), 5, 2, delta=0.0)
    for account in found.values():
        assert account.both.upper == pytest.approx(law.support_probabilities[0])
        assert account.shuffler.upper == 1.0


def test_the_least_upper_end_is_taken():
    bound = Bound(lower=0.5, upper=0.6, method="a", source="b", assumptions=("c",))
    assert module.at_most(bound) is bound
    assert module.at_most(bound, ("d", 0.7)) is bound
    less = module.at_most(bound, ("d", 0.55), ("e", 0.4))
    assert (less.lower, less.upper, less.method) == (0.4, 0.4, "e")
    assert (
        module.at_most(
            Bound(lower=None, upper=0.6, method="a", source="b", assumptions=()), ("d", 0.5)
        ).lower
        is None
    )
