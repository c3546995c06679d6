import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.randomizers.vectors.normals import layers, standard_normals, uniforms


def test_layers_have_equal_areas():
    widths, heights = layers()
    assert widths[-1] == 0.0
    assert heights[-1] == 1.0
    assert np.all(np.diff(widths) < 0.0)
    areas = widths[1:-1] * np.diff(heights[1:])
    assert areas == pytest.approx(np.full(255, areas[0]), rel=1e-10)
    # Layer 0 is as large as its rectangle and the majorant of the tail.
    assert areas[0] == pytest.approx(heights[1] * (widths[1] + 1 / widths[1]), rel=1e-14)


def test_layers_cannot_be_written():
    assert not any(table.flags.writeable for table in layers())


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100, 32_768, 100_000])
def test_every_number_asked_for_is_there(count):
    normals = standard_normals(count, Entropy.from_seed(1))
    assert normals.shape == (count,)
    assert np.isfinite(normals).all()
    assert np.unique(normals).size == count


def test_seeds_reproduce():
    first, again, other = (standard_normals(50, Entropy.from_seed(s)) for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.any(first == other)


def test_uniforms_are_never_at_the_ends():
    ends = uniforms(np.array([0, 2**64 - 1], dtype=np.uint64))
    assert ends.tolist() == [2.0**-53, 1.0 - 2.0**-53]
