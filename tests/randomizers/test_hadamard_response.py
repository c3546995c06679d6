import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import hadamard

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.profile import RandomizerFamily
from shuffledp.core.reports import Reports
from shuffledp.randomizers.local_hashing import HadamardResponse


class Scripted:
    """Hands out the words that it was given."""

    def __init__(self, words):
        self.remaining = np.asarray(words, dtype=np.uint64)

    def words(self, count):
        taken, self.remaining = self.remaining[:count], self.remaining[count:]
        return taken


def oracle(randomizer, codes, words, coins):
    """The reports in plain integers: row from the top bits, its parity with the code, the coin."""
    bits = max(1, (randomizer.domain_size - 1).bit_length())
    rows = [word >> (64 - bits) for word in words]
    return [
        2 * row + ((row & code).bit_count() + (coin < randomizer.threshold)) % 2
        for row, code, coin in zip(rows, codes, coins, strict=True)
    ]


@pytest.mark.parametrize("k", [2, 3, 4, 5, 16, 17, 1024, 10**6, 2**31 + 1, 2**32 - 1])
@pytest.mark.parametrize("epsilon0", [0.0, 1.0, 60.0])
def test_reports_are_those_of_plain_integers(k, epsilon0):
    randomizer = HadamardResponse(domain_size=k, epsilon0=epsilon0)
    threshold = randomizer.threshold
    generator = Entropy.from_seed(1).generator()
    words = [0, 2**64 - 1, 2**63, 2**63 - 1]
    words += generator.integers(0, 2**64 - 1, 500, dtype=np.uint64).tolist()
    coins = generator.integers(0, 2**64 - 1, len(words), dtype=np.uint64).tolist()
    coins[:4] = [0, threshold - 1, threshold, 2**64 - 1]
    codes = generator.integers(0, k, len(words)).tolist()
    codes[:3] = [0, k - 1, k // 2]
    found = randomizer.randomize(np.array(codes), Scripted([*words, *coins]))
    assert found.data.tolist() == oracle(randomizer, codes, words, coins)
    assert found.data.dtype == np.min_scalar_type(2 * 2 ** max(1, (k - 1).bit_length()) - 1)


@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_channel_is_a_flipped_sign_of_the_matrix(k):
    randomizer = HadamardResponse(domain_size=k, epsilon0=math.log(3))
    size = 2 ** max(1, (k - 1).bit_length())
    matrix = hadamard(size)
    flip = Fraction(randomizer.threshold, 2**64)
    for x, row in enumerate(randomizer.channel()):
        assert sum(row) == 1
        for column, probability in enumerate(row):
            j, b = divmod(column, 2)
            kept = matrix[j, x] == (-1) ** b
            assert probability == (1 - flip if kept else flip) / size


def test_closed_form_probabilities_and_profile():
    randomizer = HadamardResponse(domain_size=10, epsilon0=math.log(3))
    assert randomizer.support_probabilities == pytest.approx((0.75, 0.5))
    profile = randomizer.profile
    assert profile.family is RandomizerFamily.OTHER
    assert profile.channel is None
    # s = 1/4, A = 16: unequal hashes s / 2 each, equal ones s (1/2 - 1/16) and the rest.
    masses = {(round(atom.ratio0, 9), round(atom.ratio1, 9)): atom.mass for atom in profile.blanket}
    assert masses == pytest.approx(
        {(3, 1): 1 / 8, (1, 3): 1 / 8, (3, 3): 7 / 64, (1, 1): 7 / 64 + 1 / 16}
    )


@pytest.mark.parametrize("epsilon0", [0.0, 5e-324, 1e-9, 1.0, 60.0, 1e300])
def test_a_randomizer_rebuilt_from_its_epsilon0_is_the_same(epsilon0):
    randomizer = HadamardResponse(domain_size=9, epsilon0=epsilon0)
    assert 0.0 <= randomizer.epsilon0 <= epsilon0
    assert HadamardResponse(domain_size=9, epsilon0=randomizer.epsilon0) == randomizer


def test_saturation_and_no_loss():
    assert HadamardResponse(domain_size=9, epsilon0=1e300).epsilon0 == pytest.approx(
        64 * math.log(2)
    )
    silent = HadamardResponse(domain_size=9, epsilon0=0.0)
    assert silent.support_probabilities == (0.5, 0.5)
    assert len(silent.profile.blanket) == 4
    assert {atom.ratio0 for atom in silent.profile.blanket} == {1.0}


@pytest.mark.parametrize("k", [2, 3, 16, 100, 1024])
@pytest.mark.parametrize("num_users", [1, 100, 5000])
def test_counts_are_those_of_supports(k, num_users):
    randomizer = HadamardResponse(domain_size=k, epsilon0=1.0)
    reports = randomizer.randomize(np.arange(num_users) % k, Entropy.from_seed(k))
    counts = randomizer.aggregate(reports)
    assert np.array_equal(counts.support, randomizer.supports(reports).sum(axis=0))
    assert randomizer.num_report_bytes == reports.data.itemsize


def test_impossible_reports_and_large_channels_are_refused():
    randomizer = HadamardResponse(domain_size=9, epsilon0=1.0)
    data = np.array([1, 31, 32], dtype=np.uint8)
    with pytest.raises(DomainError, match=r"report 2 is 32, not in \[0, 32\)"):
        randomizer.aggregate(Reports(data=data, fingerprint=randomizer.fingerprint))
    with pytest.raises(ParameterError, match="small domains"):
        randomizer.channel()
    with pytest.raises(ParameterError, match="epsilon0 = "):
        HadamardResponse(domain_size=9, epsilon0=math.nan)
