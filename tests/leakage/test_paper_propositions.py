"""Propositions 9, 11, 12, 25, 26 and 28 of the paper, for random sizes and random randomizers.

Two exact channels are equivalent if and only if their reduced matrices have the same columns, in
whatever order; that is how equivalence is tested here.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1.
"""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.random_channels import channels
from shuffledp.core.errors import ParameterError
from shuffledp.leakage.channel import (
    Channel,
    datasets,
    is_refined_by,
    posterior_vulnerability,
    product_channel,
    randomizer_channel,
    reduced_product_channel,
    reduced_randomizer_channel,
    reduced_shuffle_channel,
    shuffle_channel,
    single_target_gain,
)

SIZES = st.sampled_from([(1, 2), (2, 2), (3, 2), (4, 2), (1, 3), (2, 3), (3, 3), (2, 4)])


def columns(channel):
    """Return the columns of the reduced channel, proportional ones added, without their order."""
    found = {}
    for column in channel.matrix.T:
        if total := column.sum():
            direction = tuple(column / total)
            found[direction] = found.get(direction, 0) + column
    return Counter(map(tuple, found.values()))


@st.composite
def truths(draw, domain_size):
    """Draw an exact truth probability in [1/k, 1]."""
    extra = draw(st.fractions(0, 1, max_denominator=12))
    return Fraction(1, domain_size) + extra * Fraction(domain_size - 1, domain_size)


@st.composite
def systems(draw):
    """Draw n, k, the truth probability, N, S, S^r and N^r."""
    n, k = draw(SIZES)
    truth = draw(truths(k))
    noise = randomizer_channel(n, k, truth)
    shuffle = shuffle_channel(n, k)
    reduced = reduced_shuffle_channel(n, k)
    return noise, shuffle, reduced, reduced_randomizer_channel(n, k, truth)


@pytest.mark.parametrize(("n", "k"), [(1, 2), (2, 2), (4, 2), (6, 2), (3, 3), (4, 3), (2, 5)])
def test_proposition_9(n, k):
    full, reduced = shuffle_channel(n, k), reduced_shuffle_channel(n, k)
    assert columns(full) == columns(reduced)
    assert columns(full).total() == reduced.num_outputs


@settings(max_examples=30)
@given(systems())
def test_propositions_11_12_26_and_28(system):
    noise, shuffle, reduced, reduced_noise = system
    both = noise @ shuffle
    assert shuffle @ noise == both  # Prop. 11: equal, not only equivalent
    counted = noise @ reduced
    assert columns(both) == columns(counted)  # Prop. 12
    assert reduced @ reduced_noise == counted  # Prop. 26
    assert columns(shuffle @ noise) == columns(reduced @ reduced_noise)  # Prop. 28


@settings(max_examples=30)
@given(SIZES, st.data())
def test_any_randomizer_commutes_with_the_shuffler(sizes, data):
    """What the paper believes (Sec. VII), for square matrices; and Prop. 26 for all shapes."""
    n, k = sizes
    square = data.draw(channels(num_inputs=k, num_outputs=k))
    noise = product_channel(n, Channel(square.matrix))
    shuffle = shuffle_channel(n, k)
    assert noise @ shuffle == shuffle @ noise
    num_reports = data.draw(st.integers(2, 3))
    wide = data.draw(channels(num_inputs=k, num_outputs=num_reports))
    counted = product_channel(n, wide)
    histogram_of_values = reduced_shuffle_channel(n, k)
    cascade = histogram_of_values @ reduced_product_channel(n, wide)
    assert counted @ reduced_shuffle_channel(n, num_reports) == cascade


def test_different_randomizers_do_not_commute_with_the_shuffler():
    """One user who tells the truth and one who says nothing: the order matters."""
    truth, noise = np.eye(2), np.full((2, 2), 0.5)
    unequal = Channel(np.kron(truth, noise))
    shuffle = Channel(shuffle_channel(2, 2).matrix)
    apart = (unequal @ shuffle).to_dense() - (shuffle @ unequal).to_dense()
    assert np.abs(apart).max() > 0.1


@given(st.sampled_from([(2, 2), (3, 2), (2, 3)]), st.data())
def test_proposition_25(sizes, data):
    """N and N^r have different secrets, so they cannot be compared at all."""
    n, k = sizes
    truth = data.draw(truths(k))
    full, reduced = randomizer_channel(n, k, truth), reduced_randomizer_channel(n, k, truth)
    for compare in (is_refined_by,):
        with pytest.raises(ParameterError, match="different secrets"):
            compare(full, reduced)
    with pytest.raises(ParameterError, match="cannot be followed"):
        reduced_shuffle_channel(n, k) @ full


def test_histograms_are_not_datasets_even_where_their_numbers_agree():
    """One user: as many histograms as datasets, in another order, and the labels tell."""
    with pytest.raises(ParameterError, match=r"label 0 is \(0, 1\) there, \(0,\) here"):
        reduced_shuffle_channel(1, 2) @ randomizer_channel(1, 2, 0.75)


@settings(max_examples=30)
@given(systems())
def test_shuffling_and_noise_never_add_information(system):
    """Bayes vulnerability under a uniform prior: the sum of the largest entries of columns."""
    noise, shuffle, reduced, reduced_noise = system
    largest = [
        sum(channel.matrix.max(axis=0))
        for channel in (noise, shuffle, noise @ shuffle, reduced @ reduced_noise)
    ]
    assert largest[2] == largest[3] <= min(largest[0], largest[1])


@pytest.mark.parametrize(
    ("released", "uninformed"),
    [(lambda bits: bits[0], Fraction(3, 4)), (lambda bits: sum(bits) % 2, Fraction(1, 2))],
    ids=["M", "M'"],
)
def test_equal_epsilon_tells_the_uninformed_much_or_nothing(released, uninformed):
    """The introduction: M releases one bit of four, M' their parity, both true in three of four."""
    inputs = [tuple(map(int, bits)) for bits in datasets(4, 2)]
    lie, truth = Fraction(1, 4), Fraction(3, 4)
    laws = [(lie, truth) if released(bits) else (truth, lie) for bits in inputs]
    channel, gain = Channel(laws, inputs=inputs), single_target_gain(inputs)
    assert posterior_vulnerability(None, channel, gain) == uninformed
    for others in {bits[1:] for bits in inputs}:  # known to the strong adversary
        prior = [Fraction(bits[1:] == others, 2) for bits in inputs]
        assert posterior_vulnerability(prior, channel, gain) == truth
        pair = [laws[inputs.index((bit, *others))] for bit in (0, 1)]
        assert max(a / b for a, b in zip(*pair, strict=True)) == 3  # e^epsilon
