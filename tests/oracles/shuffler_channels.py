"""The channel of a Mallows shuffler in full, from all permutations."""

import itertools
import math

import numpy as np

from oracles.mallows import DISTANCES
from shuffledp.leakage.builders import permutation_channel


def all_permutations(model):
    """All permutations of a model with their probabilities: row m has the item at each place."""
    table = np.array(list(itertools.permutations(range(model.num_items))))
    distances = [DISTANCES[model.distance](row) for row in table]
    law = np.array([math.exp(-model.theta * d) if d else 1.0 for d in distances])
    return table, law / law.sum()


def mallows_channel(model, domain_size, order=None):
    """What lies in each person's place, by any reference order."""
    table, law = all_permutations(model)
    order = np.arange(model.num_items) if order is None else order
    destinations = np.empty_like(table)
    np.put_along_axis(destinations, order[table], np.broadcast_to(order, table.shape), axis=1)
    return permutation_channel(destinations, law, domain_size)
