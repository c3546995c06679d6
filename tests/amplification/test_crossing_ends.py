"""A lower end that fails or crosses is dropped with a warning; ends that meet by rounding are not.

The upper end never pays for it.
"""

from functools import partial

import pytest

from oracles import profiles
from shuffledp.amplification import lower_bounds, registry
from shuffledp.amplification.binary_randomized_response import BinaryRandomizedResponse
from shuffledp.amplification.local import LOCAL
from shuffledp.amplification.registry import _smallest, account_delta, account_epsilon
from shuffledp.core.bound import reconciled_lower
from shuffledp.core.errors import LowerEndWarning, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure

QUESTIONS = [
    partial(account_epsilon, profiles.k_rr(2.0, 4), num_users=1000, delta=1e-6),
    partial(account_delta, profiles.k_rr(2.0, 4), num_users=1000, epsilon=0.2),
]


def test_a_crossing_lower_end_is_left_out_with_a_warning():
    with pytest.warns(LowerEndWarning, match=r"at most 0\.1, but .* 0\.1001.*report this as a bug"):
        bound = _smallest([(LOCAL, Enclosure(0.0, 0.1))], 0.1001, with_lower=True)
    assert (bound.lower, bound.upper) == (None, 0.1)


def test_ends_that_meet_up_to_rounding_are_one_number():
    bound = _smallest([(LOCAL, Enclosure(0.0, 0.1))], 0.1 * (1.0 + 1e-12), with_lower=True)
    assert bound.lower == bound.upper == 0.1


def test_no_lower_end_stays_none():
    assert reconciled_lower(None, 0.1, tolerance=0.0, claim="it") is None


@pytest.mark.parametrize("ask", QUESTIONS)
def test_a_wrong_lower_end_never_costs_the_upper_end(ask, monkeypatch):
    expected = ask()
    monkeypatch.setattr(registry, "unavoidable_epsilon", lambda *_: 1.99)
    monkeypatch.setattr(registry, "unavoidable_delta", lambda *_: 0.99)
    with pytest.warns(LowerEndWarning, match="left out"):
        bound = ask()
    assert (bound.lower, bound.upper, bound.method) == (None, expected.upper, expected.method)


@pytest.mark.parametrize("error", [PrecisionError("too wide"), OverflowError("too large")])
@pytest.mark.parametrize("ask", QUESTIONS)
def test_a_failed_lower_end_never_costs_the_upper_end(ask, error, monkeypatch):
    expected = ask()

    def failing(*_arguments, **_options):
        raise error

    monkeypatch.setattr(lower_bounds.atom_law, "atom_epsilon_below", failing)
    monkeypatch.setattr(lower_bounds.atom_law, "atom_delta", failing)
    with pytest.warns(LowerEndWarning, match=f"no lower end could be computed \\({error}\\)"):
        bound = ask()
    assert (bound.lower, bound.upper) == (None, expected.upper)


def test_one_pair_loses_nothing_from_epsilon0_on():
    binary = BinaryRandomizedResponse(1.0, 10)
    assert binary._upper(1.0, 3.0) == 0.0
    assert binary._lower(1.0, 3.0) == binary._worst_sampled(1.0) == 0.0
    assert binary._upper(0.999, 3.0) > 0.0


def test_where_round_off_dominates_fewer_users_are_accounted_for():
    asked = []

    def enclose(_method, num_users):
        asked.append(num_users)
        if num_users > 10:
            raise PrecisionError("round-off dominates")
        return Enclosure(0.2, 0.3)

    # The lower end for fewer users is none for more.
    assert registry._for_fewer(LOCAL, 100, enclose) == Enclosure(0.0, 0.3)
    assert asked == [100, 50, 25, 12, 6]
    assert registry._for_fewer(LOCAL, 10, enclose) == Enclosure(0.2, 0.3)


def test_an_evaluation_lost_for_one_user_is_lost():
    def enclose(_method, _num_users):
        raise PrecisionError("round-off dominates")

    with pytest.raises(PrecisionError, match="round-off"):
        registry._for_fewer(LOCAL, 3, enclose)
