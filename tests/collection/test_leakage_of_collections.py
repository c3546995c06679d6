"""What an adversary can guess, against all datasets and all reports of few users."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from shuffledp.core.bound import Bound
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.account import CHANNELS, account_leakage
from shuffledp.leakage.channel import Channel

ROUND_OFF = 1e-12
SKEWED = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
# Two values, three reports; no symmetry.
OWN = [
    [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)],
    [Fraction(1, 5), Fraction(1, 5), Fraction(3, 5)],
]


def randomized_response(k, truth):
    other = (1 - Fraction(truth)) / (k - 1)
    return [[Fraction(truth) if x == y else other for y in range(k)] for x in range(k)]


def identity(k):
    return [[Fraction(int(x == y)) for y in range(k)] for x in range(k)]


def best_guess(num_users, matrix, prior, known=None):
    """Return the exact chance, over all values of who is not known and all reports.

    Known others have the counted values; all else follow the prior. Guessed from the histogram.
    """
    k, m = len(matrix), len(matrix[0])
    fixed = [value for value, count in enumerate(known or ()) for _ in range(count)]
    joint = Counter()
    for values in product(range(k), repeat=num_users - len(fixed)):
        everybody = [*values, *fixed]
        chance = math.prod(prior[value] for value in values)
        for reports in product(range(m), repeat=num_users):
            seen = math.prod(matrix[x][y] for x, y in zip(everybody, reports, strict=True))
            joint[tuple(sorted(reports)), values[0]] += chance * seen
    best = {}
    for (histogram, _), mass in joint.items():
        best[histogram] = max(best.get(histogram, 0), mass)
    return sum(best.values())


def alone(matrix, prior):
    return sum(
        max(q * row[y] for q, row in zip(prior, matrix, strict=True)) for y in range(len(matrix[0]))
    )


def assert_encloses(bound, exact, tolerance=ROUND_OFF):
    assert isinstance(bound, Bound)
    assert bound.lower - ROUND_OFF <= exact <= bound.upper + ROUND_OFF
    assert bound.upper - bound.lower <= tolerance


@pytest.mark.parametrize("prior", [None, "skewed"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("num_users", [1, 2, 4])
def test_nobody_is_known(num_users, k, prior):
    law = [Fraction(1, k)] * k
    if prior is not None:
        law = [each / sum(SKEWED[:k]) for each in SKEWED[:k]]
    matrix = randomized_response(k, Fraction(3, 4))
    found = account_leakage(
        num_users=num_users,
        domain_size=k,
        truth=0.75,
        prior=None if prior is None else [float(each) for each in law],
    )
    assert found.prior == pytest.approx(float(max(law)))
    assert_encloses(found.randomizer, alone(matrix, law))
    assert_encloses(found.shuffler, best_guess(num_users, identity(k), law), 1e-11)
    assert_encloses(found.both, best_guess(num_users, matrix, law))
    assert found.has_uniform_prior == (prior is None)


@pytest.mark.parametrize("num_users", [1, 3])
@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.75, 0.25]])
def test_a_channel_of_any_shape(num_users, prior):
    exact = [Fraction(each) for each in prior]
    for channel in (np.array(OWN, dtype=float), Channel(OWN)):
        found = account_leakage(num_users=num_users, channel=channel, prior=prior)
        assert_encloses(found.randomizer, alone(OWN, exact))
        assert_encloses(found.both, best_guess(num_users, OWN, exact))
        assert_encloses(found.shuffler, best_guess(num_users, identity(2), exact))
    assert found.truth is None
    assert found.epsilon0 == pytest.approx(math.log(3.6))


@pytest.mark.parametrize("known", [(0, 3), (1, 2), (3, 0)])
@pytest.mark.parametrize("prior", [None, [0.75, 0.25]])
def test_everybody_else_is_known(known, prior):
    law = [Fraction(1, 2)] * 2 if prior is None else [Fraction(each) for each in prior]
    matrix = randomized_response(2, Fraction(3, 4))
    found = account_leakage(
        num_users=4, domain_size=2, truth=0.75, adversary="strong", known=known, prior=prior
    )
    assert_encloses(found.both, best_guess(4, matrix, law, known))
    assert found.shuffler.lower == found.shuffler.upper == 1.0
    assert (found.knowledge, found.num_unknown) == (known, 0)
    assert not found.is_worst_knowledge


def test_some_others_are_known():
    law = [Fraction(1, 3)] * 3
    found = account_leakage(
        num_users=4, domain_size=3, truth=0.75, adversary="partial", known=(1, 0, 1)
    )
    matrix = randomized_response(3, Fraction(3, 4))
    assert_encloses(found.both, best_guess(4, matrix, law, (1, 0, 1)))
    # Who is known drops out of true values: two are left.
    assert_encloses(found.shuffler, best_guess(2, identity(3), law))
    assert found.num_unknown == 1


@pytest.mark.parametrize("k", [2, 3])
def test_the_worst_knowledge(k):
    law, matrix = [Fraction(1, k)] * k, randomized_response(k, Fraction(3, 4))
    chances = [
        best_guess(4, matrix, law, known)
        for known in product(range(4), repeat=k)
        if sum(known) == 3
    ]
    found = account_leakage(num_users=4, domain_size=k, truth=0.75, adversary="strong")
    assert_encloses(found.both, max(chances))
    assert found.is_worst_knowledge
    assert best_guess(4, matrix, law, found.knowledge) == max(chances)


@pytest.mark.parametrize(
    ("law", "matrix"),
    [
        ({"domain_size": 2, "truth": 0.75}, randomized_response(2, Fraction(3, 4))),
        ({"channel": [[float(each) for each in row] for row in OWN]}, OWN),
    ],
)
def test_the_worst_knowledge_is_enclosed_for_other_priors_and_channels(law, matrix):
    prior = [Fraction(5, 8), Fraction(3, 8)]
    found = account_leakage(
        num_users=4, adversary="strong", prior=[float(each) for each in prior], **law
    )
    chances = [best_guess(4, matrix, prior, (c, 3 - c)) for c in range(4)]
    bound, extreme = found.both, max(chances)
    assert bound.lower - ROUND_OFF <= extreme <= bound.upper + ROUND_OFF
    assert bound.gap < 1e-9
    assert float(best_guess(4, matrix, prior, found.knowledge)) == pytest.approx(float(extreme))
    assert found.is_worst_knowledge


def test_knowledge_of_fewer_users_bounds_that_of_many():
    """Before, [.500000000053, .538] for 100 users, and .534 for 4 was [.513, .600]."""
    law = {"truth": 0.6, "prior": [0.5, 0.3, 0.2], "adversary": "strong"}
    few = account_leakage(num_users=4, **law)
    assert few.both.lower == pytest.approx(0.53344, abs=1e-9)
    assert few.both.upper == pytest.approx(0.53344, abs=1e-9)
    many = account_leakage(num_users=100, **law)
    assert 0.5 <= many.both.lower <= many.both.upper < 0.5001
    assert many.knowledge is None


def test_values_of_the_paper():
    for truth, expected in ((1.0, 0.5282), (0.9, 0.5225), (0.6, 0.5056)):
        found = account_leakage(num_users=200, domain_size=2, truth=truth)
        assert found.both.upper == pytest.approx(expected, abs=5e-5)
    strong = account_leakage(num_users=201, domain_size=2, truth=0.8, adversary="strong")
    assert strong.both.upper == pytest.approx(0.52116, abs=5e-6)
    assert strong.knowledge == (100, 100)


def test_the_largest_sizes_have_an_answer():
    found = account_leakage(num_users=10**9, domain_size=10**4, truth=0.9)
    assert found.prior < found.both.lower
    assert found.both.upper < found.shuffler.upper < found.randomizer.upper
    assert found.both.gap < 1e-6
    prior = np.full(10**4, 0.5 / 9_999)
    prior[0] = 0.5
    skewed = account_leakage(num_users=10**6, domain_size=10**4, truth=0.9, prior=prior)
    assert skewed.both.lower >= 0.5
    assert skewed.both.upper <= skewed.shuffler.upper < 0.503
    assert skewed.randomizer.upper == pytest.approx(0.9)


def test_protection_never_leaks_more():
    for adversary in ("uninformed", "strong"):
        found = account_leakage(num_users=50, domain_size=4, truth=0.7, adversary=adversary)
        assert found.prior <= found.both.upper <= found.shuffler.upper
        assert found.both.upper <= found.randomizer.upper


@pytest.mark.parametrize("k", [2, 3, 7])
def test_a_report_that_says_nothing_leaks_nothing(k):
    for law in ({"truth": 1 / k}, {"epsilon0": 0.0}):
        found = account_leakage(num_users=20, domain_size=k, **law)
        for name in ("randomizer", "both"):
            assert found.bound(name).upper == pytest.approx(1 / k, abs=ROUND_OFF)
        assert "no more often" in found.sentence


def test_epsilon0_is_the_same_as_its_truth():
    by_loss = account_leakage(num_users=90, domain_size=3, epsilon0=1.5)
    truth = math.exp(1.5) / (math.exp(1.5) + 2)
    by_truth = account_leakage(num_users=90, domain_size=3, truth=truth)
    for name in CHANNELS:
        assert by_loss.bound(name).upper == pytest.approx(by_truth.bound(name).upper, rel=1e-12)
        assert by_loss.bound(name).upper >= by_truth.bound(name).lower
    assert by_loss.epsilon0 == 1.5
    assert by_truth.epsilon0 == pytest.approx(1.5)
    assert account_leakage(num_users=9, domain_size=3, truth=1.0).epsilon0 == math.inf
    assert account_leakage(num_users=9, domain_size=3, epsilon0=800.0).truth == 1.0


def test_a_prior_says_how_many_values_there_are():
    found = account_leakage(num_users=5, truth=0.9, prior=[0.5, 0.25, 0.25])
    assert found.domain_size == 3
    assert account_leakage(num_users=5, truth=0.9, prior=[0.5, 0.5]).has_uniform_prior


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"num_users": 0}, ParameterError, "num_users = 0 is below 1"),
        ({"num_users": 10**9 + 1}, ParameterError, "above 1,000,000,000"),
        ({"domain_size": 1}, ParameterError, r"domain_size \(k\) = 1 is below 2"),
        ({"domain_size": None}, ParameterError, r"domain_size \(k\) is needed"),
        ({"domain_size": 10_001}, ParameterError, "above 10,000"),
        ({"truth": None}, ParameterError, "none of truth"),
        ({"epsilon0": 1.0}, ParameterError, "truth and epsilon0 of truth"),
        ({"truth": 0.4}, OutOfRegimeError, r"0\.4 is below 1/k = 0\.5.*p = 0\.6 is the same"),
        ({"truth": 0.2, "domain_size": 3}, OutOfRegimeError, "use the channel matrix"),
        ({"truth": -0.1}, ParameterError, "is not in"),
        ({"truth": 1.1}, ParameterError, r"1\.1 is not in \[1/k, 1\]"),
        ({"truth": math.nan}, ParameterError, "nan is not finite"),
        ({"truth": None, "epsilon0": -1.0}, ParameterError, "epsilon0 = -1"),
        ({"truth": None, "epsilon0": math.inf}, ParameterError, "epsilon0 = inf"),
        ({"adversary": "clever"}, ParameterError, "adversary = 'clever' is not one of"),
        ({"adversary": "partial"}, ParameterError, "known is needed"),
        ({"known": (4, 5)}, ParameterError, "knows something"),
        ({"adversary": "strong", "known": (4, 6)}, ParameterError, "exactly num_users - 1 = 9"),
        ({"adversary": "strong", "known": (4, 4)}, ParameterError, "exactly num_users - 1 = 9"),
        ({"adversary": "partial", "known": (4, 6)}, ParameterError, "at most num_users - 1 = 9"),
        ({"adversary": "strong", "known": (4, 5, 0)}, ParameterError, "3 counts and there are 2"),
        ({"adversary": "strong", "known": (-1, 10)}, ParameterError, r"known\[0\] = -1"),
        ({"prior": [0.5, 0.25, 0.25]}, ParameterError, "prior has 3 entries, not 2"),
        ({"prior": [0.5, 0.4]}, ParameterError, "sums to 0.9, not 1, off by -0.1"),
        ({"prior": [1.5, -0.5]}, ParameterError, "-0.5 is not in"),
        ({"truth": None, "channel": [[0.5, 0.6], [1, 0]]}, ParameterError, "row"),
        ({"truth": None, "channel": np.eye(3)}, ParameterError, "the channel has 3 rows"),
        ({"truth": None, "channel": np.full((2, 10**6), 1e-6)}, ParameterError, "above 1,000,000"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(changes, error, message):
    asked = {"num_users": 10, "domain_size": 2, "truth": 0.9, **changes}
    with pytest.raises(error, match=message) as caught:
        account_leakage(**asked)
    assert "\n" not in str(caught.value)


def test_any_prior_on_very_many_values():
    """The truth is .00826; before, [.0047, .0125] for both and for the shuffler alone."""
    prior = np.arange(501.0, 758.0)
    prior /= prior.sum()
    found = account_leakage(num_users=1000, truth=0.6, prior=prior)
    assert 0.007 < found.both.lower < 0.00826 < found.both.upper < 0.0087
    assert found.shuffler.gap < 1e-7
    assert found.shuffler.upper == pytest.approx(0.0107799791, abs=1e-9)
