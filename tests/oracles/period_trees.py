"""Nodes of a dyadic tree over periods, from the definition."""

from types import SimpleNamespace


def index(tree, level, position):
    """The flat index of a node: the levels one after the other, leaves first."""
    return sum(tree.periods >> below for below in range(level - 1)) + position - 1


def cover(t):
    """The nodes (level, position) that partition the periods 1 ... t, the largest first."""
    heights = (h for h in range(t.bit_length() - 1, -1, -1) if t >> h & 1)
    return tuple((height + 1, t >> height) for height in heights)


def made_design(periods, scale, pair_correlation=0.0, *, variance_factor=1.0, domain_size=1):
    """What errors of running counts need of a design, with numbers that no design has."""
    return SimpleNamespace(
        tree=SimpleNamespace(periods=periods),
        periods=periods,
        num_levels=periods.bit_length(),
        scale=scale,
        law=SimpleNamespace(pair_correlation=pair_correlation),
        encoding=SimpleNamespace(variance_factor=variance_factor, domain_size=domain_size),
    )
