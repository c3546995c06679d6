"""Accounting for repeated collections: composition of releases, and privacy budgets.

>>> from shuffledp import accounting
>>> daily = accounting.ShuffledRelease(epsilon0=1.0, num_users=100_000)
>>> year = daily * 365 + accounting.StatedRelease(epsilon=0.1)
>>> year
Composition(365 x ShuffledRelease(epsilon0=1, num_users=100000) + 1 x StatedRelease(epsilon=0.1, ...
>>> round(year.epsilon(delta=1e-6).upper, 2)
0.39

A guarantee is for each user, and the same users are assumed to be in every release. Docs:
guides/accounting.

Names are loaded when they are first used, so that importing this module stays quick.
"""

from shuffledp.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
