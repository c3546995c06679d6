"""Bounds hold and digits stand where elementary functions are off by an ulp; see perturbed.py."""

import subprocess
import sys

import pytest

from perturbed import build, environment, run_tests

pytestmark = pytest.mark.slow

TESTS = ("tests/accounting/test_sandwich_by_enumeration.py", "tests/core/numerics")
VALUES = """
import math
import numpy as np
from numba import njit

@njit
def compiled(x):
    return math.exp(x), math.log(x), math.lgamma(x), math.log1p(x), math.expm1(x), x**0.7

x = 1.3
for values in (
    [math.exp(x), math.log(x), math.log1p(x), math.expm1(x), x**0.7],
    [np.exp(x), np.log(x), np.log1p(x), np.expm1(x), np.float64(x) ** 0.7],
    np.exp(np.full(9, x)), np.log(np.full(9, x)), np.full(9, x) ** 0.7, compiled(x),
):
    print(*(float(value).hex() for value in values))
assert math.exp(0.0) == 1.0 and math.log(1.0) == 0.0 and math.log2(8.0) == 3.0 and 3.0**2.0 == 9.0
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    library = build(tmp_path_factory.mktemp("perturbed"))
    if library is None:
        pytest.skip("needs a C compiler and LD_PRELOAD")
    return library


def test_every_function_is_perturbed(library):
    """Else the test below could not fail."""
    up, down = (
        subprocess.run(
            [sys.executable, "-c", VALUES], env=environment(library, mode),
            capture_output=True, text=True, check=True,
        ).stdout.split() for mode in ("up", "down")
    )  # fmt: skip
    assert len(up) == 10 + 27 + 6
    for high, low in zip(up, down, strict=True):
        assert float.fromhex(low) < float.fromhex(high), (high, low)
        assert float.fromhex(high) - float.fromhex(low) < 1e-15


def test_bounds_hold(library):
    """With `make perturbed` more tests run, and in each mode."""
    assert run_tests(library, "mixed", *TESTS) == 0
