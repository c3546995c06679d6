"""Exact laws of a report on one of several parts."""

import itertools
from fractions import Fraction

import numpy as np

from shuffledp.estimation.distributions import level_codes
from shuffledp.randomizers.parts import SampledLevels


def channel_of(law):
    """Return the exact probability of each report (column) given each row of codes, or each bin."""
    rows = itertools.product(*map(range, law.sizes))
    if isinstance(law, SampledLevels):
        rows = level_codes(np.arange(law.sizes[-1]), law.sizes).tolist()
    share, parts = Fraction(1, len(law.sizes)), [level.channel() for level in law.levels]
    return tuple(
        tuple(share * each for part, code in zip(parts, row, strict=True) for each in part[code])
        for row in rows
    )
