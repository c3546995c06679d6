"""Runs tests where exp, log, lgamma, pow and their kin are off by one unit in the last place.

`perturbed_libm.c` takes the place of the C library's, for Python, NumPy, SciPy and compiled loops
alike, so what passes here does not hang on the digits of one machine. As a program (`make
perturbed`) it runs pytest with its arguments three times: all results up, all down, and mixed.
Needs a C compiler and a dynamic linker that knows LD_PRELOAD.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

MODES = ("up", "down", "mixed")
REPOSITORY = Path(__file__).parents[1]


def build(folder: Path) -> Path | None:
    """Return the compiled library; None where there is no compiler or no LD_PRELOAD."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    library = folder / "perturbed_libm.so"
    source = Path(__file__).with_name("perturbed_libm.c")
    options = ["-O2", "-fno-builtin", "-shared", "-fPIC", "-lm", "-ldl"]
    subprocess.run([compiler, source, "-o", library, *options], check=True)
    return library


def environment(library: Path, mode: str) -> dict[str, str]:
    """Return the environment of a program whose elementary functions are perturbed.

    NumPy's own vectorized loops are switched off, so that it uses the library's; constants that
    compilers fold are kept apart from those of other runs (beside them, where `make` says).
    """
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return os.environ | {
        "LD_PRELOAD": str(library),
        "PERTURBED_LIBM": mode,
        "NPY_DISABLE_CPU_FEATURES": " ".join(found),
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(REPOSITORY / ".cache" / "numba"))
        + "-perturbed",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def run_tests(library: Path, mode: str, *arguments: str) -> int:
    """Run pytest in one process; return its exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *arguments]
    return subprocess.run(
        command, cwd=REPOSITORY, env=environment(library, mode), check=False
    ).returncode


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        if (built := build(Path(scratch))) is None:
            sys.exit("needs a C compiler and LD_PRELOAD")
        sys.exit(max(run_tests(built, each, *sys.argv[1:]) for each in MODES))
