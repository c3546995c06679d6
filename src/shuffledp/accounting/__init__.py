"""Accounting for collections that repeat: releases that compose, budgets, and what still fits.

>>> from shuffledp import accounting
>>> daily = accounting.ShuffledRelease(epsilon0=1.0, num_users=100_000)
>>> year = daily * 365 + accounting.StatedRelease(epsilon=0.1)
>>> year
Composition(365 x ShuffledRelease(epsilon0=1, num_users=100000) + 1 x StatedRelease(epsilon=0.1, ...
>>> round(year.epsilon(delta=1e-6).upper, 2)
0.39

A guarantee is for each user, and the same users are taken to be in every release. Docs:
guides/composing and guides/ledger.

Names are loaded when they are first used, so that importing this module stays quick.
"""

from typing import TYPE_CHECKING, Any

from shuffledp.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from shuffledp.accounting.calibration import (
        largest_local_epsilon,
        largest_rounds,
        least_users,
        smallest_delta,
    )
    from shuffledp.accounting.composed import Composition, DisjointReleases
    from shuffledp.accounting.ledger import Ledger, LedgerEntry
    from shuffledp.accounting.ledger_files import open_ledger, save_ledger, spend
    from shuffledp.accounting.release import ShuffledRelease, StatedRelease, honest_users
    from shuffledp.core.errors import BudgetError

# Module to the public names that it holds.
_HOMES = {
    "accounting.ledger_files": ("open_ledger", "save_ledger", "spend"),
    "core.errors": ("BudgetError",),
    "accounting.composed": ("Composition", "DisjointReleases"),
    "accounting.calibration": (
        "largest_local_epsilon",
        "largest_rounds",
        "least_users",
        "smallest_delta",
    ),
    "accounting.ledger": ("Ledger", "LedgerEntry"),
    "accounting.release": ("ShuffledRelease", "StatedRelease", "honest_users"),
}

__all__ = [
    "BudgetError",
    "Composition",
    "DisjointReleases",
    "Ledger",
    "LedgerEntry",
    "ShuffledRelease",
    "StatedRelease",
    "honest_users",
    "largest_local_epsilon",
    "largest_rounds",
    "least_users",
    "open_ledger",
    "save_ledger",
    "smallest_delta",
    "spend",
]

_find = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    return _find(name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
