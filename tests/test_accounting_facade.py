import subprocess
import sys

import pytest

from shuffledp import accounting

HEAVY = {"cryptography", "numba", "numpy", "polars", "scipy"}


def test_every_public_name_is_there():
    for name in accounting.__all__:
        assert getattr(accounting, name).__doc__
    assert dir(accounting) == sorted(accounting.__all__)
    with pytest.raises(AttributeError, match="magic"):
        accounting.magic  # noqa: B018


def test_importing_it_loads_nothing_heavy():
    program = "import sys, shuffledp.accounting\nprint(*{n.partition('.')[0] for n in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not set(loaded) & (HEAVY - {"numpy"})


def test_releases_are_made_without_scipy():
    program = (
        "import sys\nfrom shuffledp import accounting\n"
        "accounting.ShuffledRelease(epsilon0=1.0, num_users=10) * 3\n"
        "print(*{n.partition('.')[0] for n in sys.modules})"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not set(loaded) & {"numba", "polars", "scipy"}
