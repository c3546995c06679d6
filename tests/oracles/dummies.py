"""Shuffled reports with dummies, by listing everything that can be seen.

A view is the number of reports and dummies in each bin. Nothing here shares code or formulas with
the package.
"""

import itertools
import math

import numpy as np


def k_rr(k, epsilon0):
    """The channel of k-RR; the identity at epsilon0 = inf."""
    if math.isinf(epsilon0):
        return np.eye(k)
    p = math.exp(epsilon0)
    return (np.ones((k, k)) + (p - 1.0) * np.eye(k)) / (p + k - 1.0)


def poisson(mean, most):
    """Probabilities of 0, ..., most."""
    return np.array([math.exp(i * math.log(mean) - mean - math.lgamma(i + 1)) for i in range(most)])


def _one_report(view, law):
    """The law of the view with one more report."""
    found = np.zeros([size + 1 for size in view.shape])
    for bin_, chance in enumerate(law):
        place = [slice(0, -1)] * view.ndim
        place[bin_] = slice(1, None)
        found[tuple(place)] += chance * view
    return found


def view(dummies, reports, *, k=2):
    """The law of the numbers in k bins: dummies of one law in each, and reports of these laws."""
    found = np.ones([1] * k)
    for axis in range(found.ndim):
        shape = [1] * found.ndim
        shape[axis] = -1
        found = found * np.reshape(dummies, shape)
    for law in reports:
        found = _one_report(found, law)
    return found


def divergence(p, q, epsilon):
    """H(P, Q; e^epsilon)."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def worst_delta(channel, dummies, num_users, epsilons):
    """The largest divergence over all neighbouring data of honest users, at each epsilon."""
    k, worst = len(channel), np.zeros(len(epsilons))
    for others in itertools.combinations_with_replacement(range(k), num_users - 1):
        crowd = [channel[value] for value in others]
        views = [view(dummies, [*crowd, row], k=len(row)) for row in channel]
        for one, other in itertools.permutations(views, 2):
            found = [divergence(one, other, epsilon) for epsilon in epsilons]
            worst = np.maximum(worst, found)
    return worst
