"""The statistical tests together raise a false alarm less than once in a million runs.

Each module with statistical tests declares, in constants named ``FALSE_POSITIVE_RATE*``, the
probability that a correct program fails one of them: for the whole module, all parameters
counted. Every module in tests/statistical declares one.
"""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
BUDGET = 1e-6


def declared_rates(source: str) -> list[float]:
    """Return the values of the ``FALSE_POSITIVE_RATE*`` constants of a module."""
    return [
        float(ast.literal_eval(node.value))
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.startswith("FALSE_POSITIVE_RATE")
    ]


def test_every_statistical_module_declares_its_rate():
    silent = [
        path.name
        for path in (TESTS / "statistical").glob("test_*.py")
        if not declared_rates(path.read_text(encoding="utf-8"))
    ]
    assert silent == []


def test_the_rates_sum_to_less_than_the_budget():
    rates = [
        rate
        for path in TESTS.rglob("test_*.py")
        for rate in declared_rates(path.read_text(encoding="utf-8"))
    ]
    assert rates
    assert all(0.0 < rate < 1.0 for rate in rates)
    assert sum(rates) < BUDGET


def test_constants_are_read():
    source = "FALSE_POSITIVE_RATE = 1e-9\nOTHER = 1\nFALSE_POSITIVE_RATE_OF_SHUFFLES = 2e-9\n"
    assert declared_rates(source) == pytest.approx([1e-9, 2e-9])
