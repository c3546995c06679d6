"""The largest factor by which a channel raises one given vulnerability, over all priors.

For a gain function g with a table G >= 0, both vulnerabilities scale with the prior, so

    capacity = max of V_g[pi > C] over pi >= 0 with sum_x pi_x G_wx <= 1 for every guess w.      (1)

V_g[pi > C] is the largest, over strategies s that send outputs to guesses, of the linear function
sum_x pi_x sum_y C_xy G_{s(y) x}. So (1) is the largest of as many linear programs as there are
strategies, num_guesses ^ num_outputs. Where these are few, all are solved. Otherwise: the best
strategy for a prior, the best prior for that strategy, and so on, never loses, and ends in a lower
end; the upper end is the "Miracle" theorem, sum_y max_x C_xy.

*Certified.* No end rests on the solver. A lower end is the multiplicative leakage, computed
directly, of the prior that was found. An upper end is a feasible point of the dual program: weights
on the guesses under which each secret earns at least what the strategy does.

Source: Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi, Smith, "Additive and Multiplicative
Notions of Leakage, and Their Capacities", CSF 2014, for the "Miracle" theorem; the rest is ours,
proved above.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.bound import Bound
from shuffledp.core.errors import OutOfRegimeError, ParameterError, PrecisionError
from shuffledp.leakage.channels.channel import Channel, as_channel
from shuffledp.leakage.measures.capacities import multiplicative_bayes_capacity
from shuffledp.leakage.measures.gains import GainFunction
from shuffledp.leakage.measures.vulnerability import multiplicative_leakage

# Strategies that are gone through one by one: some milliseconds each.
MOST_STRATEGIES = 1024

# Below the solver's accuracy, and above 0 so that every secret earns something.
_SMALLEST_WEIGHT = 1e-13

# Pairs of secrets from which the search starts.
_MOST_PAIRS = 50


class _Best(NamedTuple):
    """What is found for one strategy."""

    prior: NDArray[np.float64]
    upper: float


def gain_capacity(channel: Channel | ArrayLike, gain: GainFunction) -> Bound:
    """Enclose the largest multiplicative leakage for one gain function over all priors.

    Parameters
    ----------
    channel : Channel or (num_inputs, num_outputs) array_like
        Law of the output of each secret.
    gain : GainFunction
        With no negative entry, and one try.

    Returns
    -------
    Bound
        A factor, in [1, sum_y max_x C_xy]. Up to 1024 strategies, or where both ends of the search
        meet, the ends agree up to the solver's accuracy; otherwise ``upper`` is the bound over all
        gain functions. ``upper`` errs upwards, ``lower`` downwards, round-off included.

    Raises
    ------
    OutOfRegimeError
        If a gain is negative, or no guess is ever worth anything.
    ParameterError
        If the numbers of inputs differ, or there are several tries.
    PrecisionError
        If a linear program is not solved.

    Notes
    -----
    Memory and time for the full matrices of channel and gain.

    Source: the module.

    Examples
    --------
    >>> from shuffledp.leakage.measures.gains import identity_gain
    >>> gain_capacity([[0.75, 0.25], [0.25, 0.75]], identity_gain(2))
    Bound(upper=1.5, lower=1.5, method='all strategies')
    """
    seen = as_channel(channel).to_float()
    matrix = seen.to_dense()
    table = np.asarray(_written_out(seen, gain), dtype=np.float64)
    relative = 4.0 * (table.size + matrix.size + 50) * 2.0**-53
    ceiling = float(multiplicative_bayes_capacity(seen)) * (1.0 + relative)
    if len(table) ** min(matrix.shape[1], 64) <= MOST_STRATEGIES:
        method = "all strategies"
        strategies = itertools.product(range(len(table)), repeat=matrix.shape[1])
        found = [_best_prior(matrix, table, np.array(strategy)) for strategy in strategies]
        ceiling = min(ceiling, max(best.upper for best in found) * (1.0 + relative))
        best_prior = max(found, key=lambda best: best.upper).prior
    else:
        method = "search and Miracle theorem"
        best_prior = _searched(matrix, table)
    reached = float(multiplicative_leakage(best_prior, seen, gain)) * (1.0 - relative)
    return Bound(
        lower=min(max(reached, 1.0), ceiling),
        upper=max(ceiling, 1.0),
        method=method,
        source="equation (1) of the module, and the Miracle theorem (Alvim et al. 2014)",
        assumptions=("The adversary's prior may be any law.",),
    )


def _written_out(channel: Channel, gain: GainFunction) -> NDArray[np.float64]:
    """Return the table of gains after the checks."""
    if gain.num_inputs != channel.num_inputs:
        raise ParameterError(
            f"gain has {gain.num_inputs} inputs, the channel {channel.num_inputs}: give a gain "
            "function for the channel's inputs"
        )
    table = np.asarray(gain.matrix, dtype=np.float64)
    if np.any(table < 0.0):
        raise OutOfRegimeError(
            "the hypothesis that no gain is negative fails, without which the ratio of "
            "vulnerabilities has no bound over priors: add a constant to all gains"
        )
    if not np.any(table > 0.0):
        raise OutOfRegimeError("no guess is ever worth anything: there is no ratio to bound")
    return table


def _best_prior(
    matrix: NDArray[np.float64], table: NDArray[np.float64], strategy: NDArray[np.int64]
) -> _Best:
    """Return the prior that is best for a strategy, and a certified bound on what it reaches."""
    from scipy.optimize import linprog

    earned = (matrix * table[strategy].T).sum(axis=1)
    worthless = table.max(axis=0) == 0.0  # such a secret earns nothing, and may be left out
    found = linprog(
        -earned,
        A_ub=table,
        b_ub=np.ones(len(table)),
        bounds=[(0.0, 0.0 if none else None) for none in worthless],
        method="highs",
    )
    if not found.success:
        raise PrecisionError(f"the linear program of the capacity was not solved: {found.message}")
    # Where the solver's weights earn too little for some secret, all are scaled up until they do.
    weights = np.maximum(-found.ineqlin.marginals, _SMALLEST_WEIGHT)
    given = weights @ table
    scale = float(np.max(np.divide(earned, given, out=np.zeros_like(earned), where=given > 0.0)))
    prior = np.maximum(found.x, 0.0)
    # All are 0 only where the strategy earns nothing, and then another one is better.
    return _Best(prior / max(float(prior.sum()), _SMALLEST_WEIGHT), scale * math.fsum(weights))


def _searched(matrix: NDArray[np.float64], table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the best prior that the search finds from the uniform law and those on two secrets."""
    size = len(matrix)
    starts = [np.full(size, 1.0 / size)]
    pairs = itertools.islice(itertools.combinations(range(size), 2), _MOST_PAIRS)
    starts.extend(np.bincount(pair, minlength=size) / 2.0 for pair in pairs)
    ends = [_improved(matrix, table, start) for start in starts]
    return max(ends, key=lambda end: end[1])[0]


def _improved(
    matrix: NDArray[np.float64], table: NDArray[np.float64], prior: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Return a prior to which neither a better strategy nor a better prior is found in turn."""
    reached = 0.0
    while True:  # what is reached grows with each step, and strategies are finitely many
        strategy = ((table * prior) @ matrix).argmax(axis=0)
        best = _best_prior(matrix, table, strategy)
        before = float((table @ best.prior).max())
        after = float(((table * best.prior) @ matrix).max(axis=0).sum())
        # Before is 0 only where no secret of the start is worth anything.
        if after <= before * reached * (1.0 + 1e-12) or before == 0.0:
            return prior, reached
        prior, reached = best.prior, after / before
