"""Coordinates: distinct places, chords, and the first fault."""

import math

import numpy as np
import pytest

from shuffledp.groups.groups import EARTH_RADIUS, chord_of, distinct_places, first_fault


def test_chords():
    assert chord_of(0.0) == 0.0
    assert chord_of(EARTH_RADIUS * math.pi / 3) == pytest.approx(1.0, rel=1e-15)
    assert chord_of(1e300) == 2.0


def test_the_first_fault_by_rows():
    points = np.array([[0.0, 0.0], [math.nan, 0.0], [0.0, 500.0]])
    assert first_fault(points, "haversine")[:2] == (1, 0)
    assert first_fault(points[:1], "haversine") is None


def test_places_are_distinct_and_ascending():
    points, place_of = distinct_places(
        [[2.0, 1.0], [1.0, 9.0], [2.0, 1.0], [1.0, 3.0]], "euclidean"
    )
    assert points.tolist() == [[1.0, 3.0], [1.0, 9.0], [2.0, 1.0]]
    assert place_of.tolist() == [2, 1, 2, 0]
