import itertools
import json
import math
from bisect import bisect_left
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oracles import profiles
from shuffledp.accounting.calibration import largest_epsilon0
from shuffledp.accounting.ledger import Ledger, LedgerEntry, conversion_cost
from shuffledp.amplification.registry import SHUFFLE_ASSUMPTIONS
from shuffledp.composition.composition import Composition
from shuffledp.composition.release import ShuffledRelease, StatedRelease
from shuffledp.composition.renyi import renyi_without_failure
from shuffledp.core.errors import BudgetError, OutOfRegimeError, ParameterError

DAILY = ShuffledRelease(epsilon0=1.0, num_users=100_000)
ONCE = StatedRelease(epsilon=0.25)


def test_spending_adds_up_and_leaves_the_old_ledger_alone():
    empty = Ledger(epsilon=1.0, delta=0.0)
    spent = empty.spend(ONCE, note="spring").spend(ONCE * 2, note="summer")
    assert empty.entries == ()
    assert [entry.note for entry in spent.entries] == ["spring", "summer"]
    assert spent.total == ONCE * 3
    assert spent.spent.upper == pytest.approx(0.75)
    assert spent.remaining == pytest.approx(0.25)
    assert spent.remaining <= 0.25
    assert (empty.spent.upper, empty.remaining) == (0.0, pytest.approx(1.0))
    assert repr(spent) == "Ledger(epsilon=1, delta=0, entries=2)"


def test_what_is_not_covered_is_refused_and_says_what_would_be():
    ledger = Ledger(epsilon=1.0, delta=0.0).spend(StatedRelease(epsilon=0.3))
    with pytest.raises(BudgetError) as caught:
        ledger.spend(ONCE * 5)
    message = str(caught.value)
    assert "\n" not in message
    assert "takes it to epsilon = 1.55" in message
    assert "epsilon = 0.7 is left, and 2 such releases would fit" in message
    with pytest.raises(BudgetError, match="no such releases would fit"):
        ledger.spend(StatedRelease(epsilon=3.0))
    with pytest.raises(BudgetError, match="1 such release would fit"):
        ledger.spend(StatedRelease(epsilon=0.6) * 2)
    with pytest.raises(BudgetError, match="has no finite epsilon"):
        ledger.spend(StatedRelease(epsilon=0.1, delta=1e-3))
    with pytest.raises(BudgetError, match="2 such"):
        ledger.spend(ONCE * 3 + StatedRelease(epsilon=0.01) * 0)
    with pytest.raises(BudgetError, match="no such releases"):  # of several kinds at once
        ledger.spend(ONCE * 2 + StatedRelease(epsilon=0.5))


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 10), (0.25, 4), (1.0 / 3.0, 3)])
def test_tenths_fit_ten_times(adaptive, epsilon, count):
    ledger = Ledger(epsilon=1.0, delta=0.0, adaptive=adaptive)
    assert ledger.fits(StatedRelease(epsilon=epsilon)) == count
    for _ in range(count):
        ledger = ledger.spend(StatedRelease(epsilon=epsilon))
    assert ledger.remaining < 1e-12
    assert ledger.fits(StatedRelease(epsilon=1e-9)) == 0


@pytest.mark.parametrize("adaptive", [True, False])
def test_as_many_fit_as_can_be_spent(adaptive):
    ledger = Ledger(epsilon=0.5, delta=1e-6, adaptive=adaptive).spend(DAILY * 100)
    count = ledger.fits(DAILY)
    full = ledger.spend(DAILY * count)
    assert full.spent.upper <= 0.5
    with pytest.raises(BudgetError):
        ledger.spend(DAILY * (count + 1))
    assert full.fits(DAILY) == 0
    assert ledger.fits(Composition()) == 2**20 - 100
    assert ledger.fits(StatedRelease(epsilon=0.0)) == 2**20 - 100


def test_adaptive_ledgers_let_a_little_less_through():
    adaptive = Ledger(epsilon=1.0, delta=1e-6).fits(DAILY)
    planned = Ledger(epsilon=1.0, delta=1e-6, adaptive=False).fits(DAILY)
    assert 0.8 * planned < adaptive < planned
    spent = Ledger(epsilon=1.0, delta=1e-6).spend(DAILY * 1000).spent
    assert spent.method == "renyi filter"
    assert any("chosen in the light" in sentence for sentence in spent.assumptions)
    stated = StatedRelease(epsilon=0.01, delta=1e-9)
    for ledger in (Ledger(epsilon=1.0, delta=1e-6), Ledger(epsilon=0.1, delta=1e-8)):
        assert set(SHUFFLE_ASSUMPTIONS) < set(ledger.cost(DAILY).assumptions)
        assert not set(SHUFFLE_ASSUMPTIONS) & set(ledger.cost(stated).assumptions)


def test_a_first_small_release_costs_no_more_than_its_local_loss():
    ledger = Ledger(epsilon=1.0, delta=1e-6).spend(StatedRelease(epsilon=0.01))
    assert ledger.spent.upper == pytest.approx(0.01)
    assert ledger.spent.method == "pure composition"


def adaptive_divergence(budget, factor, order):
    """Largest divergence of an adversary who chooses each round's epsilon after seeing the last.

    Rounds are randomized responses with losses of 1, 2 or 3 hundredths of an epsilon, and the
    ledger's Renyi rule decides what is still allowed. By dynamic programming over the state
    (divergence spent, loss so far), the adversary maximises E_Q (P/Q - factor)_+.
    """
    choices = []
    for epsilon in (0.2, 0.5):
        keep = 1.0 / (1.0 + math.exp(-epsilon))
        cost = math.log(
            keep**order * (1 - keep) ** (1 - order) + (1 - keep) ** order * keep ** (1 - order)
        ) / (order - 1.0)
        choices.append((epsilon, keep, cost))

    def best(left, loss, depth):
        value = max(1.0 - factor * math.exp(-loss), 0.0)  # under P
        if depth == 0:
            return value
        for epsilon, keep, cost in choices:
            if cost <= left:
                found = keep * best(left - cost, loss + epsilon, depth - 1)
                found += (1 - keep) * best(left - cost, loss - epsilon, depth - 1)
                value = max(value, found)
        return value

    return best(budget, 0.0, 9)


@pytest.mark.parametrize("target", [0.4, 0.8])
def test_the_filter_holds_against_an_adaptive_adversary(target):
    delta, order = 0.05, 4.0
    budget = target - conversion_cost(order, delta)
    assert budget > 0.0
    assert adaptive_divergence(budget, math.exp(target), order) <= delta


def test_conversion_is_the_closed_form_rounded_up():
    for order, delta in itertools.product((1.1, 2.0, 30.0, 1e6), (1e-300, 1e-6, 0.5)):
        exact = np.log1p(-1.0 / order) - np.log(order * delta) / (order - 1.0)
        assert exact <= conversion_cost(order, delta) <= exact + 1e-9 * (1.0 + abs(exact))


def test_failures_have_a_tenth_of_delta_of_their_own():
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    small, large = StatedRelease(epsilon=0.1, delta=1e-8), StatedRelease(epsilon=0.1, delta=2e-7)
    assert ledger.fits(small) in {9, 10}
    begun = ledger.spend(small)
    assert begun.fits(large) == 0
    with pytest.raises(OutOfRegimeError, match="a tenth of delta"):
        begun.cost(large)
    planned = Ledger(epsilon=1.0, delta=1e-6, adaptive=False)
    assert planned.fits(large) in {4, 5}
    # The rest is for all else, even where nothing can fail.
    charged = 1000 * renyi_without_failure(DAILY, ledger.order)
    charged += conversion_cost(ledger.order, 0.9e-6)
    assert ledger.cost(DAILY * 1000).upper == pytest.approx(charged, rel=1e-12)


def test_reports_that_hide_nothing_have_no_renyi_divergence_worth_adding():
    loud = ShuffledRelease(epsilon0=300.0, num_users=10)
    assert Ledger(epsilon=400.0, delta=1e-6).cost(loud).upper == pytest.approx(300.0)


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 4)
@given(
    epsilon=st.floats(0.05, 5.0),
    delta=st.floats(-30.0, -2.0).map(lambda exponent: 10.0**exponent),
    num_users=st.floats(0.0, 9.0).map(lambda exponent: round(10.0**exponent)),
)
@example(1.0, 1e-6, 1_200)
@example(1.0, 1e-6, 100_000)
def test_a_plan_fits_its_own_budget(epsilon, delta, num_users):
    # The Renyi filter takes the first example to 2.67 and the second to 7.26.
    epsilon0 = largest_epsilon0(
        epsilon=epsilon,
        delta=delta,
        num_users=num_users,
        profile_for=lambda loss: profiles.k_rr(loss, 2),
    )
    release = ShuffledRelease(profile=profiles.k_rr(epsilon0, 2), num_users=num_users)
    ledger = Ledger(epsilon=epsilon, delta=delta)
    assert ledger.fits(release) >= 1
    spent = ledger.spend(release)
    assert spent.spent.upper <= epsilon * (1.0 + 1e-12)
    assert spent.cost(release) == ledger.cost(release)
    assert Ledger.from_json_dict(json.loads(json.dumps(spent.to_json_dict()))) == spent


def test_sums_are_counted_in_order_and_at_deltas_fixed_before():
    release = ShuffledRelease(profile=profiles.k_rr(7.9, 2), num_users=100_000)
    ledger = Ledger(epsilon=3.0, delta=1e-6)
    first = ledger.spend(release)
    assert (ledger.order is None, first.order) == (False, None)
    assert first.spent.method == "basic composition"
    second = first.spend(release)
    each = [release.epsilon(delta, with_lower=False).upper for delta in (5e-7, 2.5e-7)]
    assert second.spent.upper == pytest.approx(sum(each), rel=1e-12)
    with pytest.raises(BudgetError):  # three together have three times 1e-6 at 0.96 each
        second.spend(release)
    # What is left of epsilon is for losses that hold with delta = 0, too.
    full = second.spend(StatedRelease(epsilon=second.remaining))
    assert full.remaining < 1e-6  # at a delta above 0 it costs a little less


def test_a_stated_guarantee_of_exactly_the_budget_fits():
    ledger = Ledger(epsilon=1.0, delta=1e-6).spend(StatedRelease(epsilon=1.0, delta=1e-6))
    assert ledger.spent.upper == pytest.approx(1.0, rel=1e-15)
    assert ledger.fits(StatedRelease(epsilon=1e-9)) == 0


def counts(epsilon0, num_users, ones):
    """Laws of the number of ones, the victim holding a zero and a one, with some ones beside."""
    keep, law = 1.0 / (1.0 + math.exp(-epsilon0)), np.ones(1)
    for chance in [keep] * ones + [1.0 - keep] * (num_users - 1 - ones):
        law = np.convolve(law, [1.0 - chance, chance])
    return [np.convolve(law, pair) for pair in ([keep, 1.0 - keep], [1.0 - keep, keep])]


@pytest.mark.parametrize("num_users", [3, 6])
@pytest.mark.parametrize(("epsilon", "delta", "part"), [(1.0, 0.05, 0.5), (2.0, 0.1, 0.7)])
def test_sums_hold_against_every_adaptive_adversary(num_users, epsilon, delta, part):
    def release(epsilon0):
        return ShuffledRelease(profile=profiles.k_rr(epsilon0, 2), num_users=num_users)

    first = largest_epsilon0(
        epsilon=epsilon * part,
        delta=delta / 2,
        num_users=num_users,
        profile_for=lambda loss: profiles.k_rr(loss, 2),
    )
    ledger = replace(Ledger(epsilon=epsilon, delta=delta).spend(release(first)), order=None)
    losses = np.linspace(0.05, 4.0, 80)  # whatever is below a loss that fits does, too
    too_large = bisect_left(losses, True, key=lambda loss: not ledger.fits(release(float(loss))))
    losses = losses[:too_large]
    assert losses.size
    factor = math.exp(epsilon)
    for ones, later in itertools.product(range(num_users), repeat=2):
        for turned in (1, -1):
            p, q = counts(first, num_users, ones)[::turned]
            best = np.maximum(p - factor * q, 0.0)  # whoever stops there
            for loss in losses:
                after_p, after_q = counts(float(loss), num_users, later)[::turned]
                gains = np.multiply.outer(p, after_p) - factor * np.multiply.outer(q, after_q)
                best = np.maximum(best, np.maximum(gains, 0.0).sum(axis=1))
            assert best.sum() <= delta


def test_a_key_is_spent_once():
    ledger = Ledger(epsilon=1.0, delta=0.0).spend(ONCE, key="monday")
    assert ledger.spend(ONCE, key="monday") is ledger
    assert ledger.spend(ONCE, key="tuesday").total == ONCE * 2
    assert ledger.spend(ONCE).spend(ONCE).total == ONCE * 3
    with pytest.raises(ParameterError, match="another key"):
        ledger.spend(ONCE * 2, key="monday")
    entry = LedgerEntry(releases=ONCE * 1, key="a")
    with pytest.raises(ParameterError, match="stands twice"):
        Ledger(epsilon=1.0, delta=0.0, entries=(entry, entry))


def test_rounds_beyond_the_most_are_refused():
    free = StatedRelease(epsilon=0.0)
    ledger = Ledger(epsilon=1.0, delta=0.0).spend(free * (2**20 - 1))
    assert ledger.fits(free) == 1
    with pytest.raises(ParameterError, match="above 1,048,576"):
        ledger.spend(free * 2)


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0.0, "delta": 0.0},
        {"epsilon": math.nan, "delta": 0.0},
        {"epsilon": 1.0, "delta": 1.0},
        {"epsilon": 1.0, "delta": 0.1, "order": 1.0},
        {"epsilon": 1.0, "delta": 0.1, "order": math.nan},
    ],
)
def test_impossible_budgets_are_refused(arguments):
    with pytest.raises(ParameterError):
        Ledger(**arguments)


def test_orders_suit_the_budget_and_stay():
    assert Ledger(epsilon=1.0, delta=0.0).order is None
    assert Ledger(epsilon=1e-9, delta=1e-300).order is None
    assert Ledger(epsilon=1.0, delta=1e-6).order == pytest.approx(24.0, rel=0.2)
    assert Ledger(epsilon=1.0, delta=1e-6, order=7.0).order == 7.0
    assert Ledger(epsilon=1.0, delta=1e-6).spend(ONCE).order == pytest.approx(24.0, rel=0.2)
    assert Ledger(epsilon=1.0, delta=0.0, order=7.0).spend(ONCE).spent.upper == 0.25


@pytest.mark.slow
@given(
    epsilon=st.floats(1e-6, 100.0),
    delta=st.floats(0.0, 0.5),
    adaptive=st.booleans(),
    notes=st.lists(st.text(max_size=5), max_size=3),
)
def test_ledgers_are_read_back_as_they_were(epsilon, delta, adaptive, notes):
    ledger = Ledger(epsilon=epsilon, delta=delta, adaptive=adaptive)
    for index, note in enumerate(notes):
        release = ShuffledRelease(profile=profiles.k_rr(0.0, 2 + index), num_users=10)
        ledger = ledger.spend(release, note=note, key=f"{index}")
    assert Ledger.from_json_dict(json.loads(json.dumps(ledger.to_json_dict()))) == ledger


GOOD = Ledger(epsilon=1.0, delta=1e-6).spend(ONCE, note="a", key="b").to_json_dict()


@pytest.mark.parametrize(
    "written",
    [
        None,
        [],
        {},
        GOOD | {"format": "other"},
        GOOD | {"version": 3},
        GOOD | {"version": "1"},
        GOOD | {"more": 1},
        GOOD | {"adaptive": 1},
        GOOD | {"entries": {}},
        GOOD | {"entries": [1]},
        GOOD | {"entries": [{"note": 1, "key": "", "releases": []}]},
        GOOD | {"entries": [{"note": "", "releases": []}]},
        GOOD | {"entries": [{"note": "", "key": "", "releases": None}]},
        GOOD | {"epsilon": None},
        GOOD | {"epsilon": -1.0},
        GOOD | {"order": 0.5},
        GOOD | {"order": "a"},
    ],
)
def test_anything_else_is_refused_in_one_line(written):
    with pytest.raises(ParameterError) as caught:
        Ledger.from_json_dict(written)
    assert "\n" not in str(caught.value)
