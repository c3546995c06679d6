"""The two mechanisms that only leakage tells apart, in exact fractions."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channels.builders import shuffle_channel
from shuffledp.leakage.channels.channel import Channel
from shuffledp.leakage.of_bits import (
    last_bit_channel,
    masked_bit_channel,
    view_target,
)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("truth", [Fraction(3, 4), Fraction(1, 2), Fraction(19, 20)])
def test_the_papers_two_mechanisms(n, truth):
    plain, masked = last_bit_channel(n, truth), masked_bit_channel(n, truth)
    for target in range(n):
        is_last = target == n - 1
        seen = view_target(plain, target, num_users=n)
        hidden = view_target(masked, target, num_users=n)
        assert seen.odds == (truth / (1 - truth) if is_last else 1)
        assert seen.uninformed == seen.strong == (truth if is_last else Fraction(1, 2))
        assert hidden.odds == truth / (1 - truth)
        assert (hidden.uninformed, hidden.strong) == (Fraction(1, 2), truth)
        assert hidden.epsilon == pytest.approx(math.log(truth / (1 - truth)))


def test_the_masked_bit_behaves_as_the_paper_says():
    n, truth = 4, Fraction(4, 5)
    channel = masked_bit_channel(n, truth)
    for bits, row in zip(channel.inputs, channel.matrix, strict=True):
        is_even = sum(bits[:-1]) % 2 == 0
        assert row[bits[-1]] == (truth if is_even else 1 - truth)
    assert channel.is_exact


def test_one_person_alone():
    assert np.array_equal(last_bit_channel(1, 0.75).matrix, masked_bit_channel(1, 0.75).matrix)


def test_targets_against_a_list_of_all_data_sets():
    n = 3
    weights = np.arange(1.0, 41.0).reshape(8, 5) % 7.0 + 0.5
    channel = Channel.from_matrix(weights / weights.sum(axis=1, keepdims=True))
    rows = dict(zip(product((0, 1), repeat=n), channel.matrix, strict=True))
    for target in range(n):
        pairs = []
        for others in product((0, 1), repeat=n - 1):
            pair = [rows[(*others[:target], bit, *others[target:])] for bit in (0, 1)]
            pairs.append(np.array(pair))
        found = view_target(channel, target, num_users=n)
        strong = max(pair.max(axis=0).sum() / 2 for pair in pairs)
        assert found.strong == pytest.approx(strong)
        assert found.uninformed == pytest.approx(np.mean(pairs, axis=0).max(axis=0).sum() / 2)
        odds = max((pair.max(axis=0) / pair.min(axis=0)).max() for pair in pairs)
        assert found.odds == pytest.approx(odds)


def test_channels_that_do_not_fit():
    with pytest.raises(ParameterError, match="16"):
        last_bit_channel(17, 0.75)
    with pytest.raises(ParameterError, match="num_users"):
        masked_bit_channel(0, 0.75)
    with pytest.raises(ParameterError, match="target"):
        view_target(last_bit_channel(2, 0.75), 2, num_users=2)
    with pytest.raises(ParameterError, match="4 rows"):
        view_target(last_bit_channel(2, 0.75), 0, num_users=3)
    with pytest.raises(ParameterError, match="4 rows"):
        view_target(last_bit_channel(2, 0.75), 0, num_users=100)


def test_a_shuffler_alone_has_no_finite_loss():
    found = view_target(shuffle_channel(3, 2), 1, num_users=3)
    assert found.odds == found.epsilon == math.inf
    assert found.strong == 1.0
    assert found.uninformed == pytest.approx(0.75)
