"""What the comparison of printed numbers lets pass, and planted violations that it must not."""

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

from printed_numbers import PromisedDigits, agree

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("3.0", "3.0000000000000004"),
        ("[(0.25, 3.0), (1.0, 3.0)]", "[(0.25, 3.0), (1.0, 2.9999999999999996)]"),
        ("0.14867062345678901", "0.14867062345678912"),
        ("epsilon  0.0432062", "epsilon  0.0432063"),
        ("epsilon  0.0432", "epsilon  0.04321"),  # a trailing zero is not printed by all formats
        ("delta 1.25e-07 at most", "delta 1.26e-07 at most"),
        ("12.5 % of 100", "12.4 % of 100"),
        ("x=-0.125,", "x=-0.12500000000000003,"),
        ("a ... b 0.5", "a 0.7 b 0.6 b 0.49999999999999994"),
        ("a 0.5 ... c", "a 0.50000000000000011 0.7 c"),
        ("0.0432...", "0.0432061634"),
        ("── 0.127 ──\n0.5", "─── 0.1271 ───\n0.5"),
        ("Bound(lower=None, upper=1.0)", "Bound(lower=None, upper=1.0000000000000002)"),
        ("", ""),
    ],
)  # fmt: skip
def test_digits_that_are_not_promised_may_differ(shown, printed):
    assert PromisedDigits().check_output(shown, printed, FLAGS)
    assert "..." in shown or agree(printed, shown)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("3.0", "3.0000000123"),  # beyond a part in 10^9
        ("3.0", "3.1"),  # two digits: no rounding of something near 3.05
        ("3.0", "3"),  # another kind of number
        ("3", "4"),  # whole numbers
        ("1,234 users", "1,235 users"),
        ("Fraction(7, 500)", "Fraction(7, 501)"),
        ("0.0432062", "0.0432064"),  # two units
        ("0.0432062", "0.0432"),
        ("1.25e-07", "1.27e-07"),
        ("1.25e-07", "1.25e-08"),
        ("1e-08", "2e-08"),
        ("0.5", "-0.5"),
        ("0.0", "1e-09"),
        ("0.5", "nan"),
        ("inf", "0.5"),
        ("1.2.3", "1.2.4"),  # versions
        ("2022.03.01", "2022.03.02"),
        ("a2.501", "a2.502"),  # names
        ("epsilon 0.5", "delta 0.5"),
        ("epsilon 0.5", "epsilon 0.5 and more"),
        ("epsilon 0.5", "at most epsilon 0.5"),
        ("0.5 0.5", "0.5"),
        ("a ... b 0.5", "a 0.7 b 0.6 b 0.4"),
        ("a 0.5 ... c", "a 0.6 0.5 c"),
        ("a 0.5 ... c", "a 0.5 c d"),
        ("0.0432...", "0.0433061634"),
        ("True", "False"),
    ],
)
def test_everything_else_is_found(shown, printed):
    assert not PromisedDigits().check_output(shown, printed, FLAGS)


def test_the_doctests_of_a_run_are_compared_so(tmp_path):
    root, tests = Path(__file__).parents[2], Path(__file__).parents[1]
    (tmp_path / "conftest.py").write_text((root / "conftest.py").read_text(encoding="utf-8"))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "good.py").write_text('""">>> 3.0000000000000004\n3.0\n"""')
    (tmp_path / "bad.py").write_text('""">>> 3.0000000123\n3.0\n"""')
    outcome = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider",
         "--doctest-modules", "-o", f"pythonpath={tests}", "good.py", "bad.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 failed, 1 passed" in outcome.stdout, outcome.stdout + outcome.stderr
    assert "FAILED bad.py" in outcome.stdout
