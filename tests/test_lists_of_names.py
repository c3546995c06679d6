import subprocess
import sys
from pathlib import Path

import pytest

from shuffledp import accounting, leakage, monitoring

HEAVY = {"cryptography", "numba", "numpy", "polars", "scipy"}


@pytest.mark.parametrize("facade", [accounting, leakage, monitoring])
def test_every_public_name_is_there(facade):
    for name in facade.__all__:
        assert getattr(facade, name).__doc__
    assert dir(facade) == sorted(facade.__all__)
    with pytest.raises(AttributeError, match="magic"):
        facade.magic  # noqa: B018


@pytest.mark.parametrize("facade", [accounting, leakage, monitoring])
def test_no_public_name_is_a_file_or_folder_too(facade):
    """Importing anything from it would hide the name."""
    children = {path.stem for path in Path(facade.__file__).parent.iterdir()}
    assert not children & set(facade.__all__)


@pytest.mark.parametrize("facade", [accounting, leakage, monitoring])
def test_importing_it_loads_nothing_heavy(facade):
    program = f"import sys, {facade.__name__}\nprint(*{{n.partition('.')[0] for n in sys.modules}})"
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
