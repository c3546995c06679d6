"""Fig. 7: thetas of both rules, and what the extremes of theta preserve."""

import math

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.reproduction.figure_data import Series
from shuffledp.reproduction.preservation_figure import (
    largest_eta,
    preservation_figure,
    preserved_shares,
    theta_for,
)
from shuffledp.reproduction.settings import Settings


def test_thetas():
    assert theta_for(Series.PUBLISHED, 30, 3.0) == pytest.approx(3 / 465)
    # Seven members, every fifth place: 21 + 2 * 4 * (1 + 2 + 3 + 3 + 2 + 1) = 117.
    assert theta_for(Series.OURS, 30, 3.0) == pytest.approx(3 / 117)


def test_the_extremes():
    entropy = Entropy.from_seed(1)
    assert (preserved_shares(50, math.inf, (0.1, 0.5), trials=3, entropy=entropy) == 1.0).all()
    everything = preserved_shares(50, 0.0, (1.0,), trials=3, entropy=entropy)
    assert (everything == 1.0).all()
    uniform = preserved_shares(1_000, 0.0, (0.5,), trials=20, entropy=entropy)
    assert uniform.mean() == pytest.approx(0.5, abs=0.05)  # 14 standard errors


def test_largest_eta():
    assert largest_eta(np.array([0.3]), 0.01) == 0.3
    assert largest_eta(np.linspace(1.0, 0.0, 101), 0.01) == pytest.approx(0.01)


def test_quick_figure():
    stages = []
    settings = Settings(quick=True, on_progress=lambda *stage: stages.append(stage))
    figure = preservation_figure(settings, Entropy.from_seed(2))
    assert [panel.name for panel in figure.panels] == ["a", "b", "c"]
    assert "n = 400" in figure.caption
    assert stages[-1][0] == "figure 7: permutations"
    rows = list(figure.rows())
    assert {row["figure"] for row in rows} == {"7a", "7b", "7c"}
    assert all(0.0 <= row["mean"] <= 1.0 and row["standard_deviation"] == "" for row in rows)
    # At the same alpha the exact sensitivity preserves more (on average over the points).
    means = {
        series: np.mean([row["mean"] for row in rows if row["series"] == series])
        for series in (Series.OURS, Series.PUBLISHED)
    }
    assert means[Series.OURS] > means[Series.PUBLISHED] + 0.03
