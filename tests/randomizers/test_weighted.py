"""Values that count by public weights: coins, and the guarantee by enumeration."""

import copy
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.amplification.registry import account_delta
from shuffledp.core.errors import DomainError, FingerprintError, ParameterError
from shuffledp.core.reports import Reports
from shuffledp.randomizers.k_randomized_response import KRandomizedResponse
from shuffledp.randomizers.number_randomizer import Duchi
from shuffledp.randomizers.weighted import Weighted

BARE = KRandomizedResponse(domain_size=3, epsilon0=math.inf)


class Words:
    """A stream of given words."""

    def __init__(self, *words):
        self._words = np.array(words, dtype=np.uint64)

    def words(self, count):
        assert count == self._words.size
        return self._words


def weighted(base=BARE, most_weight=4.0, low=None):
    return Weighted(base=base, most_weight=most_weight, low=low)


def test_a_coin_keeps_an_answer_with_the_ratio_of_its_weight():
    half = 2**63
    pairs = np.array([[1, 4], [1, 4], [0, 2], [0, 2], [1, 1], [1, 1], [0, 9]], dtype=float)
    words = Words(0, 2**64 - 1, half - 1, half, half // 2 - 1, half // 2, 2**64 - 1)
    kept = weighted().randomize(pairs, words).data.tolist()
    assert kept == [1, 1, 0, 2, 1, 2, 0]  # 2 is "not drawn"; above most_weight all is kept


def test_a_number_is_scaled_by_its_weight_without_a_coin():
    base = Duchi(low=0, high=10, epsilon0=40.0)
    law = weighted(base, low=5.0)
    scaled = law.randomize(np.array([[15.0, 4.0], [5.0, 4.0]]), sdp.Entropy.from_seed(1))
    assert scaled.data.tolist() == [1, 0]
    rows = np.tile([[15.0, 1.0]], (20_000, 1))
    share = law.randomize(rows, sdp.Entropy.from_seed(1)).data.mean()
    assert abs(share - 0.25) < 7 * math.sqrt(0.25 * 0.75 / 20_000)  # below 1e-11


@pytest.mark.parametrize("epsilon0", [0.7, 2.0])
@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (4.0, 1.0, 0.5), (0.1, 4.0, 4.0)])
def test_the_guarantee_holds_whatever_the_weights(epsilon0, weights):
    # Enumeration of all neighbouring answers of three users, and of all multisets of reports.
    base = KRandomizedResponse(domain_size=3, epsilon0=epsilon0)
    law = weighted(base)
    channel = np.array(base.channel(), dtype=float)
    ratios = law.ratios(np.array(weights))
    rows = {
        (user, answer): ratio * channel[answer] + (1 - ratio) * channel[2]
        for user, ratio in enumerate(ratios)
        for answer in (0, 1)
    }

    def shuffled(answers):
        chances = {}
        for reports in itertools.product(range(3), repeat=3):
            own = math.prod(
                rows[i, x][y] for i, (x, y) in enumerate(zip(answers, reports, strict=True))
            )
            key = tuple(sorted(reports))
            chances[key] = chances.get(key, 0.0) + own
        return chances

    for epsilon in (0.0, 0.2, 0.5, 0.9 * epsilon0):
        bound = account_delta(law.profile, num_users=3, epsilon=epsilon).upper
        worst = 0.0
        for answers in itertools.product((0, 1), repeat=3):
            for victim in range(3):
                other = (*answers[:victim], 1 - answers[victim], *answers[victim + 1 :])
                first, second = shuffled(answers), shuffled(other)
                found = sum(max(first[y] - math.exp(epsilon) * second[y], 0.0) for y in first)
                worst = max(worst, found)
        assert worst <= bound + 1e-12
        unweighted = account_delta(base.profile, num_users=3, epsilon=epsilon).upper
        assert bound >= unweighted - 1e-12


def test_no_lower_end_is_claimed_and_all_else_is_the_bases():
    base = KRandomizedResponse(domain_size=3, epsilon0=1.0)
    law = weighted(base)
    assert account_delta(law.profile, num_users=50, epsilon=0.1).lower in (None, 0.0)
    assert law.epsilon0 == base.epsilon0
    assert law.name == "weighted:k-rr"
    assert law.num_report_bytes == 1
    assert law.support_probabilities == base.support_probabilities
    assert copy.deepcopy(law) == law
    with pytest.raises(AttributeError):
        _ = law.profiles  # as of the base: one message a user


def test_another_largest_weight_is_another_law():
    one, other = weighted(most_weight=4.0), weighted(most_weight=5.0)
    assert one.fingerprint != other.fingerprint
    reports = Reports(data=np.array([0, 1], np.uint8), fingerprint=other.fingerprint)
    with pytest.raises(FingerprintError):
        one.estimate(reports)
    assert one.report_columns().fingerprint == one.fingerprint


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_weight_that_is_none_is_refused(bad):
    with pytest.raises(DomainError, match="positive and finite"):
        weighted().randomize(np.array([[0.0, bad]]), sdp.Entropy.from_seed(1))
    with pytest.raises(ParameterError, match="most_weight"):
        weighted(most_weight=bad)


def test_values_without_weights_are_refused():
    with pytest.raises(ParameterError, match=r"shape \(3,\)"):
        weighted().randomize(np.zeros(3), sdp.Entropy.from_seed(1))


def test_expected_supports_are_exact():
    # In fractions: what a report supports on average gives the share of the weight.
    base = KRandomizedResponse(domain_size=3, epsilon0=1.0)
    channel, (high, low) = base.channel(), (Fraction(5, 8), Fraction(1, 4))
    keep, other = channel[0][0], channel[0][1]
    mixed = [high * channel[0][y] + (1 - high) * channel[2][y] for y in range(3)]
    assert (mixed[0] - other) / (keep - other) == high
    mixed = [low * channel[1][y] + (1 - low) * channel[2][y] for y in range(3)]
    assert (mixed[0] - other) / (keep - other) == 0
