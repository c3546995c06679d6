"""The channels of shufflers in full: from all permutations, and from walks to holders."""

import itertools
import math
from collections import defaultdict

import numpy as np

from oracles.mallows import DISTANCES
from shuffledp.leakage.channel import Channel


def permutation_channel(permutations, probabilities, domain_size):
    """Datasets to datasets: output z has z[s(i)] = x[i] for a row s drawn with its probability."""
    table = np.asarray(permutations)
    n, k = table.shape[1], domain_size
    data = np.array(list(itertools.product(range(k), repeat=n)))
    # The index of a dataset is the number whose digits are its values.
    places = k ** (n - 1 - table.astype(np.int64))
    matrix = np.zeros((len(data), len(data)))
    for row, weight in zip(places, probabilities, strict=True):
        matrix[np.arange(len(data)), data @ row] += weight  # each row once
    labels = tuple(map(tuple, data.tolist()))
    return Channel(matrix, inputs=labels, outputs=labels)


def walk_channel(position_laws, domain_size):
    """Datasets to what each holder holds, where report i ends at holder h by the law of row i."""
    laws = np.asarray(position_laws)
    k, (n, m) = domain_size, laws.shape
    data = np.array(list(itertools.product(range(k), repeat=n)))
    states = [{(0,) * (m * k): 1.0}]
    for row in laws.tolist():
        states = [_handed(state, row, value, k) for state in states for value in range(k)]
    holdings = sorted({held for state in states for held in state})
    columns = {held: column for column, held in enumerate(holdings)}
    matrix = np.zeros((len(data), len(holdings)))
    for x, state in enumerate(states):
        for held, weight in state.items():
            matrix[x, columns[held]] = weight
    return Channel(matrix, inputs=tuple(map(tuple, data.tolist())))


def _handed(state, row, value, domain_size):
    """The law of what all holders hold once a report of this value has found a holder."""
    grown = defaultdict(float)
    for held, weight in state.items():
        for holder, chance in enumerate(row):
            if chance:
                place = holder * domain_size + value
                grown[(*held[:place], held[place] + 1, *held[place + 1 :])] += weight * chance
    return grown


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
