"""A certified upper bound on the norm of what is left of a walk when some eigenpairs are removed.

Eigensolvers find lower bounds on the second eigenvalue only, and may miss it altogether. A bound
on privacy needs an upper one.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_open_unit
from shuffledp.core.entropy import Entropy
from shuffledp.network.blocks import over_rows
from shuffledp.network.graphs.graph import Graph
from shuffledp.network.spectra.deflation import UNIT, Deflation, loss_of

#: Every certificate fails with at most this probability over its start vectors.
FAILURE_PROBABILITY = 1e-12

# Start vectors; as many as the compiled recurrence goes through together.
_NUM_STARTS = 4

# At least one of the start vectors has a component of this size, but for that probability.
_COMPONENT = 0.999 * math.sqrt(math.pi / 2.0) * FAILURE_PROBABILITY ** (1.0 / _NUM_STARTS)

# Share of the tolerance by which the interval of the polynomial is wider than the guess. With a
# fifth, the degree is within 15 % of the least.
_SHARE_OF_INTERVAL = 0.2

# Between two removals of the known eigenpairs their share grows by no more than this; it starts
# at round-off.
_LARGEST_GROWTH = 1e6
_MOST_STEPS_BETWEEN = 8

# Norms beyond this end the recurrence, long before they overflow.
_LARGEST_NORM = 1e100


class Certificate(NamedTuple):
    """An upper bound on the norm of the rest, of how good it was meant to be, and its price."""

    #: At least the norm, in [0, 1].
    bound: float
    #: Probability over the start vectors that it is not.
    failure_probability: float
    #: Degree of the polynomial, that is rounds of the walk.
    num_steps: int


def certified_norm(
    graph: Graph,
    deflation: Deflation,
    *,
    laziness: float,
    guess: float,
    tolerance: float,
    most_steps: int,
    entropy: Entropy,
) -> Certificate:
    """Return an upper bound on the norm of the walk matrix without its known eigenpairs.

    Parameters
    ----------
    graph : Graph
        Connected, with at least one edge.
    deflation : Deflation
        The known eigenpairs. Without any, the norm is the second eigenvalue's modulus.
    laziness : float
        Probability that a report stays, in [0, 1).
    guess : float
        About the norm, at best slightly below. However wrong it is, the bound holds.
    tolerance : float
        Stop as soon as the bound is at most guess + tolerance (1 - guess), or twice as many rounds
        bring less than twice this share of its distance from 1. In (0, 1).
    most_steps : int
        Or after so many rounds, >= 1.
    entropy : Entropy
        Of the start vectors; independent of how the eigenpairs were found.

    Returns
    -------
    Certificate
        Errs upwards. 1 where nothing can be said.

    Notes
    -----
    In l2(pi), let C = (I - Pi) P (I - Pi) be the symmetric matrix of which the norm mu is wanted
    (`Deflation`), u a unit function with C u = mu u or C u = -mu u, T_k the Chebyshev polynomials,
    g_1, ..., g_s start vectors with independent standard normal coordinates in an orthonormal
    basis, and beta > 0 any number, which may depend on them.

    **Theorem** (exact arithmetic). With c > 0, but for probability (c sqrt(2/pi))^s,
    mu <= max(beta, max_l min_k beta cosh(arccosh(N_{k,l} / c) / k)), N_{k,l} the norm of
    T_k(C / beta) g_l, the minimum over any set of k >= 1 with N_{k,l} >= c.

    *Proof.* u does not depend on the g_l, so that the <u, g_l> are independent standard normal
    numbers, each within (-c, c) with probability at most 2c / sqrt(2 pi). But for the probability
    stated, abs(<u, g_l>) >= c for some l. If x = mu / beta > 1, then
    N_{k,l} >= abs(<u, T_k(C / beta) g_l>) = T_k(x) abs(<u, g_l>) >= T_k(x) c for every k, as T_k
    is even or odd; and T_k(x) = cosh(k arccosh(x)).

    **Theorem** (as computed). Let v_{k+1} = (2/beta) P v_k - v_{k-1} + f_k + h_k be what is
    computed, with h_k anything in the range of Pi, and abs(<u, f_k + leak_k>) <= F_k, where
    leak_k = (2/beta) (I - Pi) P Pi v_k. Then the theorem holds with c - R_k for c,
    R_k = sum_{i<k} (k - i) F_i + the error of v_0, as long as it is positive.

    *Proof.* u is orthogonal to the range of Pi, so that <u, P v> = <C u, v> + <u, P Pi v>. Hence
    y_k = <u, v_k> obeys y_{k+1} = 2x y_k - y_{k-1} + e_k with abs(e_k) <= F_k (up to the sign of
    mu), so y_k = T_k(x) y_0 + sum_i U_{k-1-i}(x) e_i. For x > 1, U_{m-1}(x) is a sum of m
    polynomials T_j(x), j <= m - 1, so that U_{k-1-i}(x) <= (k - i) T_k(x). Therefore
    N_{k,l} >= abs(y_k) >= T_k(x) (c - R_k).

    The removals of the known eigenpairs, whatever their accuracy, are the h_k: they need not be
    done every time, and only the rounding of their subtraction counts. As P has norm 1 and no
    negative entry, F_k <= kappa ((2/beta) N_k + N_{k-1}) with kappa the residual of the
    eigenpairs, plus the unit round-off times the additions in a mean over neighbours and a few
    more operations.

    What is not proved: that the numbers of the generator are exactly normal. They are doubles,
    whose grid is finer than c by thirteen digits. A fixed seed is as good as any for every graph
    that was not made with the seed in mind; give an ``entropy`` of the operating system for
    graphs from somebody who would like to be believed.

    Cost: about arccosh(sqrt(n) / c) / sqrt(2 tolerance (1 - mu)) rounds of four functions.

    References
    ----------
    Kuczynski, Wozniakowski, "Estimating the largest eigenvalue by the power and Lanczos
    algorithms with a random start", SIAM Journal on Matrix Analysis and Applications 13, 1992;
    Halko, Martinsson, Tropp, "Finding structure with randomness", arXiv:0909.4061v2, Section 4.3
    (norms from Gaussian vectors).

    Examples
    --------
    >>> from shuffledp.network.spectra.deflation import no_deflation
    >>> triangle = Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    >>> certificate = certified_norm(
    ...     triangle, no_deflation(3), laziness=0.0, guess=0.5, tolerance=0.01, most_steps=1000,
    ...     entropy=Entropy.from_seed(0),
    ... )
    >>> 0.5 <= certificate.bound <= 0.505
    True
    """
    last = require_at_least("most_steps", most_steps, 1)
    require_open_unit("tolerance", tolerance)
    if not 0.0 <= guess < 1.0:  # NaN fails too; nothing below 1 would be near enough
        return Certificate(1.0, 0.0, 0)
    beta = guess + _SHARE_OF_INTERVAL * tolerance * (1.0 - guess)
    recurrence = _Recurrence(graph, deflation, laziness, 2.0 / beta, entropy)
    target = guess + tolerance * (1.0 - guess)
    between = min(_MOST_STEPS_BETWEEN, max(1, _steps_to_grow(beta)))
    best = np.full(_NUM_STARTS, np.inf)
    progress = _Progress(2.0 * tolerance)
    for step in range(1, last + 1):
        recurrence.advance()
        largest = float(recurrence.norms.max())
        if step % between == 0 or step == last or largest > _LARGEST_NORM:
            recurrence.remove_known()
            np.minimum(best, recurrence.bounds(), out=best)
            found = float(best.max())
            if found <= target or largest > _LARGEST_NORM or progress.has_stopped(step, found):
                break
    bound = min(1.0, float(best.max()))
    return Certificate(bound, FAILURE_PROBABILITY, step)


def _steps_to_grow(beta: float) -> int:
    """Return after how many steps the constants may have grown by the largest factor."""
    return int(math.log(_LARGEST_GROWTH) / math.acosh(max(1.0 / beta, 1.0 + 1e-12)))


class _Progress:
    """Whether twice as many steps still bring something; with a wrong guess they may not."""

    def __init__(self, share: float) -> None:
        """Expect the distance of the bound from 1 to grow by a share of itself."""
        self.share, self.next_step, self.distance = share, 64, 0.0

    def has_stopped(self, step: int, bound: float) -> bool:
        """Return whether the bound is hardly better than after half as many steps."""
        if step < self.next_step:
            return False
        before, self.distance = self.distance, max(0.0, 1.0 - bound)
        self.next_step = 2 * step
        return 0.0 < self.distance <= (1.0 + self.share) * before


class _Recurrence:
    """The three-term recurrence of the Chebyshev polynomials, and what it has lost so far."""

    def __init__(
        self, graph: Graph, deflation: Deflation, laziness: float, factor: float, entropy: Entropy
    ) -> None:
        """Draw the start vectors; ``factor`` is 2 / beta, and defines beta."""
        from shuffledp.network.spectra import spectrum_kernels as kernels

        self.graph, self.laziness, self.factor = graph, laziness, factor
        self.pi = graph.stationary_law()
        num_users, num_pairs = deflation.eigenfunctions.shape
        ones = np.ones((num_users, 1))
        self.known = np.ascontiguousarray(np.hstack([ones, deflation.eigenfunctions]))
        self.loss_of_norms = loss_of(num_users + 16)
        additions = kernels.additions_of_means(int(graph.degrees.max()))
        # Of the subtraction of all known functions: norm(sum_a |f_a| |z_a|) is at most
        # sqrt(K + 1) times the largest norm, below 1.1, times the norm of z, below 1.1 norm(v).
        removal = loss_of(num_pairs + 3) * (1.0 + 1.3 * math.sqrt(num_pairs + 1.0))
        self.kappa = (deflation.residual + loss_of(additions + 12) + removal) * 1.01
        normal = entropy.generator().standard_normal((num_users, _NUM_STARTS))
        self.current = normal / np.sqrt(self.pi)[:, None]
        self.previous = np.zeros_like(self.current)
        self.num_steps = 0
        self.norms = self._norms_of(self.current)
        self.norms_before = np.zeros(_NUM_STARTS)
        # Rounding of the start itself (a root, a quotient, pi), and of the removal just below.
        self.lost = (self.kappa + 8.0 * UNIT) * self.norms
        self.lost_a_step = np.zeros(_NUM_STARTS)
        self._remove(self.current)
        self.norms = self._norms_of(self.current)

    def advance(self) -> None:
        """Go on to the polynomial of the next degree."""
        from shuffledp.network.spectra import spectrum_kernels as kernels

        factor = self.factor if self.num_steps else 0.5 * self.factor

        def step(first: int, last: int) -> NDArray[np.float64]:
            squares = np.empty(_NUM_STARTS)
            kernels.chebyshev_step(
                self.graph.starts,
                self.graph.neighbours,
                self.laziness,
                1.0 - self.laziness,
                factor,
                self.current,
                self.previous,
                squares,
                first,
                last,
            )
            return squares

        squares = over_rows(self.pi.size, step)
        self.lost_a_step += self.kappa * (factor * self.norms + self.norms_before)
        self.lost += self.lost_a_step
        self.current, self.previous = self.previous, self.current
        self.norms_before = self.norms
        size = float(self.graph.neighbours.size)
        total = np.sum(squares, axis=0)
        self.norms = np.sqrt(total / size) * (1.0 + self.loss_of_norms)
        self.num_steps += 1

    def remove_known(self) -> None:
        """Subtract what the last two functions have of the known eigenfunctions."""
        lost = self.kappa * (self.norms + self.norms_before)
        self.lost_a_step += lost
        self.lost += lost
        for functions in (self.current, self.previous):
            self._remove(functions)
        self.norms = self._norms_of(self.current)
        self.norms_before = self._norms_of(self.previous)

    def bounds(self) -> NDArray[np.float64]:
        """Return the bound on the norm if each start vector were the good one; inf if none."""
        beta = 2.0 / self.factor * (1.0 + 2.0 * UNIT)
        rest = _COMPONENT - self.lost
        bounds = np.full(rest.size, np.inf)
        for index in np.flatnonzero(rest > 0.0):
            ratio = max(1.0, float(self.norms[index] / rest[index]) * (1.0 + 1e-12))
            growth = math.acosh(ratio) * (1.0 + 1e-12) / self.num_steps
            # Beyond it the bound is above every norm, and would overflow.
            bounds[index] = beta * math.cosh(growth) * (1.0 + 1e-14) if growth < 100.0 else np.inf
        return bounds

    def _norms_of(self, functions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return at least the norms of the columns."""
        squares = np.einsum("i,ij,ij->j", self.pi, functions, functions)
        norms: NDArray[np.float64] = np.sqrt(squares) * (1.0 + self.loss_of_norms)
        return norms

    def _remove(self, functions: NDArray[np.float64]) -> None:
        """Subtract in place what columns have of the known eigenfunctions."""
        from shuffledp.network.spectra import spectrum_kernels as kernels

        rows = math.isqrt(self.pi.size) + 1
        shares = kernels.weighted_products(self.pi, self.known, functions, rows)
        kernels.subtract_combinations(self.known, shares, functions)
