import numpy as np
import pytest

from shuffledp.core.errors import ParameterError
from shuffledp.randomizers.checks import (
    LARGEST_K,
    code_type,
    fingerprint_of,
    require_codes,
    require_domain_size,
)


@pytest.mark.parametrize(
    ("k", "dtype"),
    [(2, "u1"), (256, "u1"), (257, "u2"), (2**16, "u2"), (2**16 + 1, "u4"), (LARGEST_K, "u4")],
)
def test_codes_take_the_narrowest_type(k, dtype):
    assert code_type(k) == np.dtype(dtype)
    assert np.iinfo(code_type(k)).max >= k - 1


def test_largest_number_of_categories():
    assert require_domain_size(np.int64(LARGEST_K)) == LARGEST_K
    with pytest.raises(ParameterError, match="fewer categories"):
        require_domain_size(LARGEST_K + 1)


def test_codes_of_a_narrow_type_may_meet_a_large_domain():
    codes = np.array([255], dtype=np.uint8)
    assert require_codes(codes, 1000).tolist() == [255]


def test_fingerprints_are_stable():
    # Reports on disk outlive a version of this program: a change here orphans them.
    assert fingerprint_of("k-rr", k=3, threshold=5) == "cc5e042dd6bf119d2599df75c1ed0414"
