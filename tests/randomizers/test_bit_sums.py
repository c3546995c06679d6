import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, FingerprintError, ParameterError
from shuffledp.core.reports import Counts, Reports
from shuffledp.estimation.intervals import normal_quantile
from shuffledp.randomizers.bit_sums import BitSums

# Two statistical tests, each of normal tails beyond seven deviations with a slack for their skew.
FALSE_POSITIVE_RATE = 1e-10


def bit_sums(epsilon0=math.inf, num_bits=3, low=0.0, high=7.0):
    return BitSums(low=low, high=high, epsilon0=epsilon0, num_bits=num_bits)


def with_dummies(law, reports, dummies, entropy, num_users, *, bins=(1, 1)):
    """Return counts of messages with fresh dummies in both bins of each level, or in some."""
    added = np.concatenate([each.draw(2, entropy) * bins for each in dummies])
    counts = law.aggregate(reports)
    assert counts.num_reports == num_users * law.num_bits
    support = counts.support + added
    return replace(counts, support=support, num_dummies=int(added.sum()), dummies=tuple(dummies))


def test_bare_messages_are_the_bits_of_the_grid_point():
    law = bit_sums()
    found = law.randomize(np.arange(8.0), Entropy.from_seed(1)).data.reshape(8, 3)
    assert [[m % 2 for m in row] for row in found.tolist()] == [
        list(bits) for bits in itertools.product((0, 1), repeat=3)
    ]
    assert (found // 2 == np.arange(3)).all()


def test_rounding_has_exact_chances():
    # The word of a value decides: up if its upper 63 bits are below the share left over.
    law, num_users = bit_sums(num_bits=20, high=2.0**20 - 1), 4000
    values = np.full(num_users, 5.25)
    found = law.randomize(values, Entropy.from_seed(3)).data.reshape(num_users, 20) % 2
    points = found @ 2 ** np.arange(20)[::-1]
    words = Entropy.from_seed(3).words(num_users)
    assert points.tolist() == [5 + (w >> 1 < 2**61) for w in words.tolist()]


@pytest.mark.parametrize("epsilon0", [0.5, 3.0, 12.0, 60.0, 1e4])
@pytest.mark.parametrize("num_bits", [1, 2, 5])
def test_losses_of_the_levels_stay_within_the_loss_asked_for(epsilon0, num_bits):
    law = bit_sums(epsilon0, num_bits)
    losses = [Fraction(level.epsilon0) for level in law.levels]
    assert sum(losses) <= Fraction(epsilon0)
    if epsilon0 < 40.0:
        assert sum(losses) > Fraction(epsilon0) * Fraction(99, 100)
    assert losses == sorted(losses, reverse=True)
    assert law.profile.epsilon0 == epsilon0
    assert [each.epsilon0 for each in law.profiles] == losses
    assert BitSums(low=0, high=7, epsilon0=law.epsilon0, num_bits=num_bits) == law


@pytest.mark.parametrize("epsilon0", [1.0, 4.0, 9.0])
def test_no_other_allocation_has_a_smaller_error(epsilon0):
    law = bit_sums(epsilon0, 3)
    best = math.inf
    for first, second in itertools.product(range(1, 99), repeat=2):
        shares = first / 100, second / 100, 1 - (first + second) / 100
        if shares[2] > 1e-9:
            sines = [math.sinh(epsilon0 * share / 2) for share in shares]
            found = sum(w**2 / s**2 / 4 for w, s in zip(law.weights, sines, strict=True))
            best = min(best, found)
    assert law.local_variance == pytest.approx(best, rel=4e-3)


def test_the_local_loss_is_that_of_the_channel():
    # The worst pair of grid points differs in all bits: the product of the levels' ratios.
    law = bit_sums(2.0, 3)
    channels = [level.channel() for level in law.levels]
    worst = Fraction(0)
    for one, other in itertools.product(itertools.product((0, 1), repeat=3), repeat=2):
        for sent in itertools.product((0, 1), repeat=3):
            parts = zip(channels, one, other, sent, strict=True)
            ratio = math.prod(channel[a][y] / channel[b][y] for channel, a, b, y in parts)
            worst = max(worst, ratio)
    assert math.log(worst) <= 2.0
    assert math.log(worst) > 1.99


def test_estimates_are_the_formula_of_the_weighted_sum():
    law = bit_sums(num_bits=2, low=-1.0, high=5.0)
    dummies = (DummyLaw.from_text("gaussian:2:9"), DummyLaw.from_text("gaussian:3:15"))
    support, name = np.array([12, 17, 22, 16]), law.fingerprint
    found = Counts(
        support=support, num_reports=20, num_dummies=47, dummies=dummies, fingerprint=name
    )
    dummy_pairs = (12 + 17 - 10, 22 + 16 - 10)
    total = Fraction(2, 3) * (17 - Fraction(dummy_pairs[0], 2))
    total += Fraction(1, 3) * (16 - Fraction(dummy_pairs[1], 2))
    estimate = law.estimate(found)
    assert float(estimate.mean[0]) == pytest.approx(-1 + 6 * float(total) / 10)
    variance = 4 / 9 * dummies[0].variance / 2 + 1 / 9 * dummies[1].variance / 2 + 10 / (4 * 9)
    assert float(estimate.standard_error[0]) == pytest.approx(6 * math.sqrt(variance) / 10)
    assert law.dummy_variance(dummies) == pytest.approx(variance - 10 / 36)


def test_with_local_noise_sums_are_rid_of_it():
    law = bit_sums(4.0, 2)
    gains = [1 - 2 * level.threshold / 2**64 for level in law.levels]
    assert law.gains.tolist() == pytest.approx(gains)
    counts = Counts(support=np.array([3, 7, 6, 4]), num_reports=20, fingerprint=law.fingerprint)
    position = 0.5 + (2 / 3 * 4 / gains[0] - 1 / 3 * 2 / gains[1]) / 20
    assert float(law.estimate(counts).mean[0]) == pytest.approx(7 * position)
    flips = [level.threshold / 2**64 for level in law.levels]
    noise = [f * (1 - f) / (1 - 2 * f) ** 2 for f in flips]
    assert law.local_variance == pytest.approx(4 / 9 * noise[0] + 1 / 9 * noise[1])


@pytest.mark.parametrize("epsilon0", [math.inf, 6.0])
def test_means_are_unbiased_and_intervals_cover(epsilon0):
    # Means of 600 runs: within seven of their standard errors, and so is the number of intervals
    # that miss, of which each has the chance 0.1 at most.
    law, runs, num_users = bit_sums(epsilon0, 4, low=-2.0, high=3.0), 600, 60
    dummies = [DummyLaw.from_text(f"gaussian:{s}:{7 * s}") for s in (1, 2, 3, 4)]
    entropy = Entropy.from_seed(5)
    values = -2.0 + 5.0 * entropy.generator().random(num_users)
    found = []
    for _ in range(runs):
        reports = law.randomize(values, entropy)
        counts = with_dummies(law, reports, dummies, entropy, num_users)
        found.append(law.estimate(counts, confidence=0.9))
    error = float(found[0].standard_error[0])
    means = np.array([float(each.mean[0]) for each in found])
    assert abs(means.mean() - values.mean()) < 7.0 * error / math.sqrt(runs)
    assert means.std() < error * (1.0 + 7.0 / math.sqrt(2 * runs))
    assert means.std() > 0.6 * error
    misses = sum(not each.lower[0] <= values.mean() <= each.upper[0] for each in found)
    assert misses < 0.1 * runs + 7.0 * math.sqrt(0.09 * runs)
    # A negative control: dummies that are ones only are told.
    one = with_dummies(law, reports, dummies, entropy, num_users, bins=(0, 1))
    assert abs(law.estimate(one).mean[0] - values.mean()) > 7.0 * error / math.sqrt(runs)
    assert normal_quantile(0.9) * error == pytest.approx(float(found[0].upper[0] - means[0]))


def test_errors_of_a_population_hold_the_largest_spread():
    law = bit_sums()
    counts = Counts(support=np.array([50, 50] * 3), num_reports=300, fingerprint=law.fingerprint)
    found = law.estimate(counts)
    assert float(found.mean[0]) == 3.5
    whole = found.population_standard_error[0] ** 2 - found.standard_error[0] ** 2
    assert float(whole) == pytest.approx(49 / 4 / 100)
    ends = Counts(support=np.array([0, 100] * 3), num_reports=300, fingerprint=law.fingerprint)
    found = law.estimate(ends)
    assert float(found.mean[0]) == 7.0
    whole = found.population_standard_error[0] ** 2 - found.standard_error[0] ** 2
    assert 0.0 < float(whole) < 49 / 4 / 100 / 2  # of a mean within its own error of the end


def test_counts_of_parts_add_and_messages_must_fit():
    law = bit_sums()
    one, two = (law.randomize(np.full(n, 2.5), Entropy.from_seed(n)) for n in (3, 4))
    both = law.aggregate(one) + law.aggregate(two)
    assert both.num_reports == 21
    assert float(law.estimate(both).mean[0]) == pytest.approx(
        (3 * law.estimate(one).mean[0] + 4 * law.estimate(two).mean[0]) / 7
    )
    for kept in ([0, 1, 2, 3, 5, 6, 7, 8], [0, 1, 2, 3, 5, 5]):
        with pytest.raises(DataError, match=r"(3, 2, 3|2, 1, 3) messages of the parts"):
            law.estimate(Reports(data=one.data[kept], fingerprint=law.fingerprint))
    with pytest.raises(DataError, match="those of 0 users"):
        law.estimate(law.randomize(np.empty(0), Entropy.from_seed(1)))
    with pytest.raises(DomainError, match=r"is 6, not in \[0, 6\)"):
        law.aggregate(Reports(data=np.array([6], np.uint8), fingerprint=law.fingerprint))
    with pytest.raises(FingerprintError):
        bit_sums(num_bits=4).estimate(law.aggregate(one))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_bits": 0}, "num_bits = 0 is below 1"),
        ({"num_bits": 21}, "num_bits = 21 is above 20"),
        ({"epsilon0": math.nan}, r"epsilon0 = nan is not in \[0, inf\]"),
        ({"epsilon0": -1.0}, r"not in \[0, inf\]"),
        ({"epsilon0": 0.0}, "is too small for 3 bits"),
        ({"epsilon0": 1e-300}, "is too small for 3 bits"),
        ({"epsilon0": 2e-17}, "is too small for 3 bits"),  # no double shows the noise to invert
        ({"low": 9.0}, "low = 9 is not below high"),
    ],
)
def test_bad_parameters(wrong, message):
    with pytest.raises(ParameterError, match=message):
        BitSums(**{"low": 0.0, "high": 7.0, "epsilon0": 1.0, "num_bits": 3} | wrong)


def test_the_largest_loss_still_has_noise():
    assert [level.threshold for level in bit_sums(epsilon0=1e308).levels] == [1] * 3


def test_laws_must_be_one_a_level():
    law = bit_sums()
    dummies = (DummyLaw.from_text("gaussian:2:9"),) * 2
    counts = law.aggregate(law.randomize(np.full(3, 2.5), Entropy.from_seed(1)))
    with pytest.raises(ParameterError, match="of 2 laws, not one for each of 3 levels"):
        law.estimate(replace(counts, dummies=dummies))


def test_dummies_are_possible_messages():
    law = bit_sums()
    assert law.aggregate(law.report_columns()).support.tolist() == [1] * 6


def test_a_number_of_users_that_cannot_be_is_told():
    law, dummies = bit_sums(num_bits=2), (DummyLaw.from_text("gaussian:1:4"),) * 2
    reports = law.randomize(np.full(60, 2.5), Entropy.from_seed(1))
    counts = law.aggregate(reports)
    more = replace(counts, support=counts.support + 4, num_reports=136)
    assert law.estimate(more.less_dummies(*dummies, num_users=60)).num_users == 60
    with pytest.raises(DataError, match=r"68, 68 messages .* 50 users with at most 16, 16"):
        law.estimate(more.less_dummies(*dummies, num_users=50))
