import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from shuffledp.core.dummies import DummyLaw
from shuffledp.estimation.discovery import (
    BinLaw,
    Discovery,
    Round,
    forcing,
    least_count,
    left_by,
    share_despite,
)

P, Q = 0.4, 0.05
DUMMIES = DummyLaw.from_text("gaussian:3:9")


def with_dummies(law):
    """Return the law of a support with the dummies of a bin added, as an array."""
    table = np.array(DUMMIES.table, dtype=np.float64) / 2.0**64
    return np.convolve(law, table)


def exact_law(holders, users, drawn):
    """Return the law of the support of a bin that some of all users have, of whom n are drawn."""
    law = np.zeros(drawn + 1)
    for own in range(max(0, holders + drawn - users), min(holders, drawn) + 1):
        chance = hypergeom.pmf(own, users, holders, drawn)
        of_holders = binom.pmf(np.arange(own + 1), own, P)
        law += chance * np.convolve(
            of_holders, binom.pmf(np.arange(drawn - own + 1), drawn - own, Q)
        )
    return law


def test_a_bin_that_nobody_has():
    law = BinLaw(P, Q, 200)
    for count in (0, 5, 10, 25, 60):
        assert law.at_least(count) == pytest.approx(binom.sf(count - 1, 200, Q), rel=1e-9)


def test_a_bin_that_nobody_has_among_dummies():
    alone = with_dummies(binom.pmf(np.arange(51), 50, Q))
    law = BinLaw(P, Q, 50, DUMMIES)
    for count in (0, 9, 12, 20):
        assert law.at_least(count) == pytest.approx(alone[count:].sum(), rel=1e-9)


@pytest.mark.parametrize("law", [BinLaw(P, Q, 200), BinLaw(1.0, 0.0, 200, DUMMIES)])
def test_the_least_count_is_the_least(law):
    for tail in (0.3, 1e-2, 1e-6):
        count = law.least_count(tail)
        assert law.at_least(count) <= tail < law.at_least(count - 1)


@pytest.mark.parametrize(("users", "drawn"), [(60, 20), (60, 59), (40, 10)])
def test_equal_coins_are_a_lower_bound_for_users_drawn_without_replacement(users, drawn):
    num_tried = 0
    for holders in range(1, users + 1):
        exact = exact_law(holders, users, drawn)
        for count in range(drawn + 1):
            bound = BinLaw(P, Q, drawn).at_least(count, holders / users)
            # The theorem: up to the mean less one, where the chance is well above a half.
            if count - 1 <= drawn * (Q + (P - Q) * holders / users) - 1:
                num_tried += 1
                assert bound <= exact[count:].sum() + 1e-12
    assert num_tried > users


def test_with_dummies_the_holders_are_known():
    law = BinLaw(P, Q, 50, DUMMIES)
    exact = with_dummies(exact_law(10, 50, 50))
    assert law.at_least(15, 0.2) == pytest.approx(exact[15:].sum(), rel=1e-9)


def test_the_share_that_is_found_is_the_least_one():
    law = BinLaw(P, Q, 1000)
    rounds = [(law, Round(1000, 50, count)) for count in (80, 90, 90)]
    share = Discovery.of(rounds).found_share

    def failure(at):
        return sum(1.0 - law.at_least(each.least_count, at) for _, each in rounds)

    assert failure(share) <= 0.05 < failure(share * 0.999)


def test_no_share_is_found_where_even_everybody_is_too_few():
    law = BinLaw(P, Q, 10)
    assert Discovery.of([(law, Round(10, 50, 9))]).found_share == math.inf


def test_a_round_leaves_the_largest():
    law = BinLaw(1.0, 0.0, 100, DUMMIES)
    count = least_count(law, 5, 2, is_last=True)
    kept, facts = left_by(
        np.array([count, 3, count + 7, count - 1, count + 2]), law, 2, is_last=True
    )
    assert kept.tolist() == [2, 4]
    # A third one reached the count, so that a prefix is only left with more than it.
    assert facts == Round(100, 5, count + 1, 2, 1)


def test_noise_is_told_apart_more_strictly_in_the_last_round():
    law = BinLaw(P, Q, 500)
    first, last = (least_count(law, 400, 20, is_last=each) for each in (False, True))
    assert law.at_least(first) * 400 <= 20 / 8 < law.at_least(first - 1) * 400
    assert law.at_least(last) * 400 <= 0.05
    assert last > first


@pytest.mark.parametrize("law", [BinLaw(0.6, 0.4, 40), BinLaw(P, Q, 30, DUMMIES)])
@pytest.mark.parametrize("count", [18, 14, 24])
def test_liars_who_raise_a_bin_to_a_count_are_the_fewest(law, count):
    chances = []
    for number in range(law.num_users + 1):
        others = binom.pmf(np.arange(law.num_users - number + 1), law.num_users - number, law.q)
        others = with_dummies(others) if law.dummies else others
        chances.append(others[max(count - number, 0) :].sum())
    expected = int(np.argmax(np.array(chances) >= 0.95))
    assert law.least_liars(count, 0.95) == expected > 0
    assert law.least_liars(10_000, 0.95) == law.num_users + 1


def test_no_choice_of_rounds_hides_a_text_that_is_found_despite_liars():
    # Six users of two rounds, of whom two lie: all splits of them, before and after.
    for before, after in itertools.product(range(3), repeat=2):
        for users in range(before, before + 5):
            here = users - before + after
            for honest in range(users - before + 1):
                first = least_count(BinLaw(P, Q, users), 3, 1, is_last=True) if users else 0
                then = least_count(BinLaw(P, Q, here), 3, 1, is_last=True) if here else 0
                # All liars here reported the text before, and none does now.
                assert not (honest + before >= first + 2 and honest < then)


def test_rounds_are_forced_together_and_a_share_despite_liars_is_larger():
    rounds = [(BinLaw(P, Q, 200), Round(200, 9, 20)), (BinLaw(P, Q, 200), Round(200, 9, 26))]
    enough = forcing(rounds)
    chances = [
        binom.sf(each.least_count - number - 1, 200 - number, Q)
        for number, (_, each) in zip(enough, rounds, strict=True)
    ]
    assert math.prod(chances) >= 0.95 > math.prod(chances) - 0.1
    shares = [share_despite(rounds, number) for number in (0, 10, 60, 150)]
    assert shares[0] == Discovery.of(rounds).found_share
    assert shares == sorted(shares)
    assert shares[1] > 1.2 * shares[0]
    law, alone = rounds[0]
    despite = share_despite(rounds[:1], 10)
    harder = [law.at_least(alone.least_count + 10, share * despite) for share in (1.0, 0.999)]
    assert harder[0] >= 0.95 > harder[1]
    assert math.isinf(shares[3])
