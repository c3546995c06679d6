"""Random crowds, against the channels of walks on small graphs in full."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.accounting.amplification.random_crowd import CrowdLaw
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.leakage.any_shuffler import crowd_vulnerability_upper
from shuffledp.leakage.builders import randomizer_channel, walk_channel
from shuffledp.leakage.uninformed import shuffled_vulnerability

GRAPHS = {
    "path": [[0, 1], [1, 2], [2, 3]],
    "star": [[0, 1], [0, 2], [0, 3]],
    "cycle": [[0, 1], [1, 2], [2, 3], [3, 0]],
    "triangle with a pendant": [[0, 1], [1, 2], [2, 0], [2, 3]],
}


def laws_after(edges, rounds):
    """Laws of the holders of all reports on a lazy walk, one a row."""
    step = np.zeros((4, 4))
    for a, b in edges:
        step[a, b] = step[b, a] = 1.0
    step = 0.5 * np.eye(4) + 0.5 * step / step.sum(axis=1, keepdims=True)
    return np.linalg.matrix_power(step, rounds)


def views_of_target(laws, truth, target):
    """The release for each dataset of bits: shape (2, 2, 2, 2, outputs), the target's bit first."""
    channel = randomizer_channel(4, 2, truth) @ walk_channel(laws, 2)
    table = channel.to_dense().reshape(2, 2, 2, 2, -1)
    return np.moveaxis(table, target, 0)


def overlaps_of(laws, target):
    others = np.delete(laws, target, axis=0)
    seen = laws[target] > 0.0
    return np.minimum((others[:, seen] / laws[target][seen]).min(axis=1), 1.0)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("truth", [1.0, 0.8])
def test_above_walks_on_small_graphs(name, truth):
    for rounds in (0, 1, 2, 5):
        laws = laws_after(GRAPHS[name], rounds)
        for target in range(4):
            table = views_of_target(laws, truth, target)
            overlaps = overlaps_of(laws, target) * (1.0 - 1e-14)
            uninformed = 0.5 * table.mean(axis=(1, 2, 3)).max(axis=0).sum()
            bound = crowd_vulnerability_upper(2, truth, overlaps)
            assert uninformed <= bound * (1.0 + 1e-12)
            # The strongest knowledge, and the average over all of it.
            strong = 0.5 * table.max(axis=0).sum(axis=-1)
            bound = crowd_vulnerability_upper(2, truth, overlaps, adversary="strong")
            assert uninformed <= strong.mean() + 1e-12
            assert strong.max() <= bound * (1.0 + 1e-12)
            if rounds == 0:
                assert bound == pytest.approx(truth) == pytest.approx(strong.max())


def test_equal_once_mixed():
    """On a regular graph, mixed, the holders tell nothing more than a uniform shuffle would."""
    laws = laws_after(GRAPHS["cycle"], 200)
    table = views_of_target(laws, 0.8, 0)
    uninformed = 0.5 * table.mean(axis=(1, 2, 3)).max(axis=0).sum()
    overlaps = np.minimum(overlaps_of(laws, 0), 1.0)
    assert overlaps.min() > 1.0 - 1e-12
    bound = crowd_vulnerability_upper(2, 0.8, overlaps)
    assert bound == pytest.approx(uninformed, rel=1e-10)
    assert bound == pytest.approx(shuffled_vulnerability(4, 2, 0.8).upper, rel=1e-10)


@given(
    st.lists(st.floats(0.0, 1.0), max_size=10),
    st.sampled_from([2, 3, 7]),
    st.sampled_from([Fraction(1), Fraction(9, 10), Fraction(1, 2)]),
    st.booleans(),
)
def test_above_the_average_over_the_crowd(overlaps, k, truth, strong):
    noise = float(k * (1 - truth) / (k - 1)) if strong else 1.0
    law = np.ones(1)
    for chance in overlaps:
        law = np.convolve(law, [1.0 - chance * noise, chance * noise])
    sizes = [shuffled_vulnerability(1 + m, k, truth) for m in range(law.size)]
    exact = math.fsum(mass * each.lower for mass, each in zip(law, sizes, strict=True))
    found = crowd_vulnerability_upper(
        k, truth, overlaps, adversary="strong" if strong else "uninformed"
    )
    assert exact * (1.0 - 1e-12) <= found <= float(truth) * (1.0 + 1e-15)
    assert found <= exact * 1.02  # few users: all sizes are levels


def test_laws_of_crowds():
    certain = CrowdLaw(sizes=(50,), misses=(0.0,))
    doubtful = CrowdLaw(sizes=(50, 10), misses=(0.25, 0.0))
    inner, outer = (shuffled_vulnerability(m, 4, 0.7).upper for m in (50, 10))
    assert crowd_vulnerability_upper(4, 0.7, certain) == pytest.approx(inner, rel=1e-12)
    mixed = crowd_vulnerability_upper(4, 0.7, doubtful)
    assert mixed == pytest.approx(0.75 * inner + 0.25 * outer, rel=1e-12)
    strong = crowd_vulnerability_upper(4, 0.7, certain, adversary="strong")
    by_coins = crowd_vulnerability_upper(4, 0.7, np.ones(49), adversary="strong")
    assert inner < strong == pytest.approx(by_coins, rel=0.02)


def test_missed_targets_are_as_without_a_shuffler():
    crowd = CrowdLaw(sizes=(100,), misses=(0.0,))
    least = crowd_vulnerability_upper(3, 0.9, crowd)
    assert crowd_vulnerability_upper(3, 0.9, crowd, missed=1.0) == pytest.approx(0.9)
    half = crowd_vulnerability_upper(3, 0.9, crowd, missed=0.5)
    assert half == pytest.approx(0.5 * least + 0.45, rel=1e-12)


def test_no_others_and_no_truth():
    assert crowd_vulnerability_upper(2, 0.75, []) == pytest.approx(0.75)
    assert crowd_vulnerability_upper(4, Fraction(1, 4), [0.5] * 9) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"num_values": 1}, "num_values"),
        ({"truth": math.nan}, "truth"),
        ({"truth": 1.5}, "truth"),
        ({"crowd": [0.5, 1.5]}, "crowd"),
        ({"crowd": [math.nan]}, "crowd"),
        ({"missed": -0.1}, "missed"),
        ({"missed": math.nan}, "missed"),
        ({"adversary": "omniscient"}, "adversary"),
    ],
)
def test_bad_input(change, name):
    arguments = {"num_values": 2, "truth": 0.8, "crowd": [0.5], **change}
    with pytest.raises(ParameterError, match=name):
        crowd_vulnerability_upper(**arguments)


def test_scaled_down_chances_are_checked_first():
    with pytest.raises(ParameterError, match="crowd"):
        crowd_vulnerability_upper(2, 0.9, [1.5], adversary="strong")


def test_below_the_hypothesis():
    with pytest.raises(OutOfRegimeError, match="truth"):
        crowd_vulnerability_upper(4, 0.2, [0.5])
