"""The correlation attack: its posterior mean against the textbook, and what it finds."""

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.groups.attacks import adversaries as attack
from shuffledp.groups.attacks.adversaries import gaussian_process_guess


def entropy():
    return Entropy.from_seed(23)


def two_halves(num_people=240):
    """Return positions in the unit square, three values by position, and noisy labels."""
    generator = entropy().generator()
    positions = generator.random((num_people, 2))
    truth = (positions[:, 0] > 0.5).astype(int) * (1 + (positions[:, 1] > 0.5))
    noisy = np.where(
        generator.random(num_people) < 0.7, truth, generator.integers(0, 3, num_people)
    )
    return positions, truth, noisy


def test_with_all_positions_it_is_the_full_posterior_mean():
    positions, _, labels = two_halves(40)
    shares = np.bincount(labels, minlength=3) / 40
    length, noise = 0.4, 0.5
    covariances = np.exp(
        -((positions[:, None] - positions[None]) ** 2).sum(axis=2) / (2 * length**2)
    )
    targets = np.eye(3)[labels] - shares
    full = covariances @ np.linalg.solve(covariances + noise * np.eye(40), targets)
    weights, basis = attack._fitted(
        positions, labels.astype(np.int32), shares, positions, (length, noise)
    )
    sparse = attack._covariances(positions, positions, length) @ basis @ weights
    assert np.abs(sparse - full).max() < 1e-6


def test_one_decomposition_serves_every_noise():
    generator = entropy().generator()
    features, targets = generator.random((20, 4)), generator.random((20, 2))
    for noise, weights in zip(
        (0.1, 7.0), attack._ridge(features, targets, (0.1, 7.0)), strict=True
    ):
        expected = np.linalg.solve(features.T @ features + noise * np.eye(4), features.T @ targets)
        assert np.allclose(weights, expected, rtol=1e-9)


def test_it_finds_what_goes_with_the_position():
    positions, truth, labels = two_halves()
    found = gaussian_process_guess(
        positions, labels, num_values=3, num_inducing=50, entropy=entropy()
    )
    assert (found.guesses == truth).mean() > 0.9 > (labels == truth).mean() + 0.05
    assert found.num_inducing == 50
    assert found.length_scale > 0.0


def test_it_finds_nothing_in_shuffled_labels():
    positions, truth, labels = two_halves()
    shuffled = entropy().generator().permutation(labels)
    found = gaussian_process_guess(
        positions, shuffled, num_values=3, num_inducing=50, entropy=entropy()
    )
    assert (found.guesses == truth).mean() < 0.65  # half of the people have value 0


def test_position_and_unit_do_not_matter():
    positions, _, labels = two_halves()
    plain, moved = (
        gaussian_process_guess(points, labels, num_values=3, num_inducing=50, entropy=entropy())
        for points in (positions, 1024.0 * positions + 4096.0)
    )
    assert (plain.guesses == moved.guesses).mean() > 0.99
    assert moved.length_scale == pytest.approx(1024.0 * plain.length_scale)
    assert plain.num_inducing == 50


def test_blocks_change_nothing(monkeypatch):
    positions, _, labels = two_halves()
    at_once = gaussian_process_guess(
        positions, labels, num_values=3, num_inducing=50, entropy=entropy()
    )
    monkeypatch.setattr(attack, "_BLOCK_ROWS", 7)
    in_blocks = gaussian_process_guess(
        positions, labels, num_values=3, num_inducing=50, entropy=entropy()
    )
    assert (at_once.guesses == in_blocks.guesses).all()


def test_one_place_gives_the_commonest_value():
    found = gaussian_process_guess(
        np.zeros(9), np.array([2] * 5 + [0] * 4), num_values=3, entropy=entropy()
    )
    assert found.guesses.tolist() == [2] * 9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_values": 1}, r"outside \[0, 1\)"),
        ({"num_values": 0}, "num_values = 0"),
        ({"num_inducing": 0}, "num_inducing = 0"),
        ({"positions": np.zeros(3)}, "give 2 rows"),
        ({"positions": np.zeros((2, 0))}, "one column or more"),
        ({"positions": np.array([0.0, np.nan])}, "not finite"),
        ({"positions": np.zeros(1), "released": np.zeros(1, dtype=int)}, "number of people = 1"),
    ],
)
def test_refusals(changes, message):
    arguments = {"positions": np.zeros(2), "released": np.array([0, 1]), "num_values": 2}
    with pytest.raises(ParameterError, match=message):
        gaussian_process_guess(**(arguments | changes), entropy=entropy())
