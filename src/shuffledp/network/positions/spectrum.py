"""Certified eigenvalues of a walk, and bounds on the laws of the holders from these alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from shuffledp.core.arrays import Floats
from shuffledp.core.checks import require_at_least
from shuffledp.core.compiled import one_thread
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.core.reports import read_only
from shuffledp.network.graph import Graph
from shuffledp.network.positions.bounds import PositionBounds, weight_grid

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Half the distance from 1 to the next float: the relative loss of an operation.
UNIT = 2.0**-53

# Columns farther from orthonormal than this are refused.
_LARGEST_DEFECT = 0.1


def loss_of(operations: float) -> float:
    """Return an upper bound on the relative loss of this many operations in a row, below 10^13."""
    return 1.01 * operations * UNIT


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deflation:
    """Some eigenpairs of a walk, without the constant, as computed, and bounds on their errors.

    Parameters
    ----------
    eigenvalues : ndarray of float64, shape (K,)
        theta_k, in [-1, 1].
    eigenfunctions : ndarray of float64, shape (num_users, K)
        phi_k, nearly orthonormal in l2(pi), and nearly of mean zero.
    defect : float
        eta: there are exactly orthonormal psi_k of mean zero, with the constants of the same
        span as the phi_k with the constants, such that the norm of the map
        x -> sum_k x_k (psi_k - phi_k) is at most eta.
    residual : float
        rho: upper bound on the norm of the map x -> sum_k x_k (P psi_k - theta_k psi_k).

    Notes
    -----
    **Theorem.** In l2(pi), where <f, g> = sum_j pi_j f_j g_j, the walk matrix P is symmetric and
    has norm 1 (so has the matrix of its absolute values, which is P itself). Let Pi be the
    orthogonal projector on the constants and all phi_k, C = (I - Pi) P (I - Pi), and
    P' = 1 1* + sum_k theta_k psi_k psi_k* + C, where f* is the map g -> <f, g>. Then
    P - P' vanishes on the constants and has norm at most ``deviation`` = sqrt(2) rho.

    *Proof.* E = P - P' is symmetric, and E 1 = P 1 - 1 = 0. On the span of the psi_k it is the
    map of ``residual``, of norm <= rho, and it takes x in the range of I - Pi to Pi P x, where
    Pi P (I - Pi) has the norm of its adjoint (I - Pi) P Pi. That vanishes on constants and
    takes psi_k to (I - Pi)(P psi_k - theta_k psi_k); so its norm is <= rho too. Hence
    norm(E x) <= rho (norm(Pi x) + norm(x - Pi x)) <= sqrt(2) rho norm(x).

    **Theorem.** Let G be the matrix of <phi_k, phi_l>, g the vector of <1, phi_k>, a = norm(G - I),
    b = norm(g), a + b^2 < 1. Then eta = a + b + b^2 is an upper bound on the defect.

    *Proof.* w_k = phi_k - g_k has mean zero, and is at distance b from phi_k (as maps). Its Gram
    matrix M = G - g g^T has norm(M - I) <= a + b^2. So psi = w M^(-1/2) is orthonormal, with the
    same span, and norm(psi - w) = norm(I - M^(1/2)) <= a + b^2, as
    abs(1 - sqrt(1 + x)) <= abs(x) for x >= -1.

    ``rho`` follows from the map of P phi_k - theta_k phi_k, at distance 2 eta at most, whose
    Frobenius norm is computed. All sums are bounded with the classical gamma_n of rounding
    analysis, whatever the outcome, so no eigensolver is trusted.

    References
    ----------
    Higham, "Accuracy and Stability of Numerical Algorithms", second edition, 2002, Section 3.1
    (gamma_n); Parlett, "The Symmetric Eigenvalue Problem", 1998, Section 11.5 (residuals).
    """

    eigenvalues: Floats = field(repr=False)
    eigenfunctions: Floats = field(repr=False)
    defect: float
    residual: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eigenvalues", read_only(self.eigenvalues))
        object.__setattr__(self, "eigenfunctions", read_only(self.eigenfunctions))

    @property
    def num_pairs(self) -> int:
        """Number of eigenpairs K."""
        return int(self.eigenvalues.size)

    @property
    def deviation(self) -> float:
        """Upper bound on the norm of P - P'; see the first theorem."""
        return math.sqrt(2.0) * self.residual * (1.0 + loss_of(4))


def deflate(graph: Graph, eigenfunctions: Floats, *, laziness: float) -> Deflation:
    """Return eigenpairs with proved bounds, from a solver's approximate eigenfunctions in l2(pi).

    Sorted by modulus, largest first; `PrecisionError` if the functions are linearly dependent, or
    NaN. Without functions it is exact. Cost: O(num_edges K + num_users K^2).
    """
    pi = graph.stationary_law()
    root = np.sqrt(pi)[:, None]
    # The same span, orthonormal in l2(pi) and of mean zero, nearly.
    columns, _ = np.linalg.qr(np.hstack([root, root * eigenfunctions]))
    functions = np.ascontiguousarray(columns[:, 1:] / root)
    images = walk_matrix(graph, laziness) @ functions
    eigenvalues = np.clip((pi[:, None] * functions * images).sum(axis=0), -1.0, 1.0)
    defect, trace = _defect(pi, functions)
    images -= eigenvalues * functions
    flat = images.reshape(-1, 1)
    squares, loss = _products(np.repeat(pi, images.shape[1]), flat, flat)
    # A sum over neighbours, in whatever order, laziness, the product with theta and its
    # subtraction.
    rounding = loss_of(int(graph.degrees.max()) + 12) * math.sqrt(trace)
    residual = math.sqrt(float(squares[0, 0])) * (1.0 + loss) + rounding + 2.0 * defect
    order = np.argsort(-np.abs(eigenvalues), kind="stable")
    return Deflation(
        eigenvalues=eigenvalues[order],
        eigenfunctions=np.ascontiguousarray(functions[:, order]),
        defect=defect,
        residual=residual * (1.0 + loss_of(8)),
    )


def walk_matrix(graph: Graph, laziness: float) -> "csr_array":
    """Return the matrix P of the walk, row by row, each entry rounded once."""
    from scipy.sparse import csr_array, eye_array

    chances = np.repeat((1.0 - laziness) / graph.degrees, graph.degrees)
    shape = (graph.num_users, graph.num_users)
    moving = csr_array((chances, graph.neighbours, graph.starts), shape=shape)
    return moving + laziness * eye_array(*shape, format="csr")


def _defect(pi: Floats, functions: Floats) -> tuple[float, float]:
    """Return upper bounds on the defect of functions, and on the sum of their squared norms."""
    gram, loss = _products(pi, functions, functions)
    sums, _ = _products(pi, np.ones((pi.size, 1)), functions)
    # Each product is off by at most loss norm(phi_k) norm(phi_l): in all by loss * trace.
    trace = float(np.trace(gram)) * (1.0 + 2.0 * loss)
    error = loss * trace * (1.0 + loss_of(8))
    away = float(np.linalg.norm(gram - np.eye(gram.shape[0]))) * 1.000001 + error
    mean = float(np.linalg.norm(sums)) * 1.000001 + error
    defect = (away + mean + mean * mean) * (1.0 + loss_of(8))
    if not defect < _LARGEST_DEFECT:  # written so that NaN fails
        raise PrecisionError(
            f"eigenfunctions are {defect} from orthonormal: give functions that are linearly "
            "independent and not constant, or num_pairs = 0"
        )
    return defect, trace


def _products(pi: Floats, first: Floats, second: Floats) -> tuple[Floats, float]:
    """Return <f, g> for all columns, and a bound on their errors, relative to norm(f) norm(g)."""
    rows = math.isqrt(pi.size) + 1  # number at a time: then sums are shortest
    products = np.zeros((first.shape[1], second.shape[1]))
    for begin in range(0, pi.size, rows):
        part = slice(begin, begin + rows)
        products += (pi[part, None] * first[part]).T @ second[part]
    return products, loss_of(rows + -(-pi.size // rows) + 4)


#: Every certificate fails with at most this probability over its start vectors.
FAILURE_PROBABILITY = 1e-12

# Number of start vectors.
_NUM_STARTS = 4

# At least one of the start vectors has a component of this size, except with that probability.
_COMPONENT = 0.999 * math.sqrt(math.pi / 2.0) * FAILURE_PROBABILITY ** (1.0 / _NUM_STARTS)

# Share of the tolerance by which the interval of the polynomial is wider than the guess. With a
# fifth, the degree is within 15 % of the least.
_SHARE_OF_INTERVAL = 0.2

# Between two removals of the known eigenpairs their share grows by no more than this; it starts
# at round-off.
_LARGEST_GROWTH = 1e6
_MOST_STEPS_BETWEEN = 8

# Walks with a smaller gap are treated as walks that never mix: millions of rounds.
_LEAST_GAP = 1e-6

# Norms beyond this end the recurrence, long before they overflow.
_LARGEST_NORM = 1e100


def certified_norm(
    graph: Graph,
    deflation: Deflation,
    *,
    laziness: float,
    guess: float,
    tolerance: float,
    most_steps: int,
    entropy: Entropy,
) -> float:
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
        Approximate norm, at best slightly below it. The bound holds for any guess.
    tolerance : float
        Stop as soon as the bound is at most guess + tolerance (1 - guess), or after twice the
        number of rounds that this should take. In (0, 1).
    most_steps : int
        Or after this number of rounds, >= 1.
    entropy : Entropy
        Of the start vectors; independent of the eigenpairs' computation.

    Returns
    -------
    float
        Upper bound on the norm, in [0, 1], except with `FAILURE_PROBABILITY` over the start
        vectors. 1 if nothing can be shown.

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

    The removals of the known eigenpairs, of whatever accuracy, are the h_k: they need not be done
    every time, and only the rounding of their subtraction counts. As P has norm 1 and no negative
    entry, F_k <= kappa ((2/beta) N_k + N_{k-1}) with kappa the residual of the eigenpairs, plus the
    unit round-off times the additions in a mean over neighbours and a few more operations.

    Not proved: that the numbers of the generator are exactly normal. They are doubles, whose grid
    is finer than c by thirteen digits. A fixed seed is as good as any for every graph that was not
    made with the seed in mind; give an ``entropy`` of the operating system for graphs from a party
    that gains by a wrong bound.

    Cost: about arccosh(sqrt(n) / c) / sqrt(2 tolerance (1 - mu)) rounds of four functions.

    References
    ----------
    Kuczynski, Wozniakowski, "Estimating the largest eigenvalue by the power and Lanczos
    algorithms with a random start", SIAM Journal on Matrix Analysis and Applications 13, 1992;
    Halko, Martinsson, Tropp, "Finding structure with randomness", arXiv:0909.4061v2, Section 4.3
    (norms from Gaussian vectors).

    Examples
    --------
    >>> triangle = Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    >>> bound = certified_norm(
    ...     triangle, deflate(triangle, np.empty((3, 0)), laziness=0.0), laziness=0.0, guess=0.5,
    ...     tolerance=0.01, most_steps=1000, entropy=Entropy.from_seed(0),
    ... )
    >>> 0.5 <= bound <= 0.505
    True
    """
    if not 0.0 <= guess < 1.0 - _LEAST_GAP:  # NaN fails too
        return 1.0
    # About twice the number needed if the guess is right; if it is not, more bring little.
    away = tolerance * (1.0 - guess)
    last = min(
        most_steps, math.ceil(2.0 * math.log(graph.num_users / _COMPONENT) / math.sqrt(away))
    )
    beta = guess + _SHARE_OF_INTERVAL * tolerance * (1.0 - guess)
    growth_a_step = math.acosh(max(1.0 / beta, 1.0 + 1e-12))
    between = min(_MOST_STEPS_BETWEEN, max(1, int(math.log(_LARGEST_GROWTH) / growth_a_step)))
    pi, (num_users, num_pairs) = graph.stationary_law(), deflation.eigenfunctions.shape
    known = np.ascontiguousarray(np.hstack([np.ones((num_users, 1)), deflation.eigenfunctions]))
    loss_of_norms = loss_of(num_users + 16)
    # Error of the subtraction of all known functions: norm(sum_a |f_a| |z_a|) is at most
    # sqrt(K + 1) times the largest norm, below 1.1, times the norm of z, below 1.1 norm(v).
    removal = loss_of(num_pairs + 3) * (1.0 + 1.3 * math.sqrt(num_pairs + 1.0))
    rounding = loss_of(int(graph.degrees.max()) + 12)  # of a mean over neighbours, and its use
    kappa, matrix = (deflation.residual + rounding + removal) * 1.01, walk_matrix(graph, laziness)

    def norms_of(functions: Floats) -> Floats:
        """Return upper bounds on the norms of the columns."""
        norms: Floats = np.sqrt(np.einsum("i,ij,ij->j", pi, functions, functions))
        return norms * (1.0 + loss_of_norms)

    def remove_known(functions: Floats) -> None:
        """Subtract in place the components of columns along the known eigenfunctions."""
        functions -= known @ _products(pi, known, functions)[0]

    current = entropy.generator().standard_normal((num_users, _NUM_STARTS)) / np.sqrt(pi)[:, None]
    previous, (before, lost_a_step) = np.zeros_like(current), np.zeros((2, _NUM_STARTS))
    # Rounding of the start itself (a root, a quotient, pi), and of the removal just below.
    lost = (kappa + 8.0 * UNIT) * norms_of(current)
    remove_known(current)
    norms, best = norms_of(current), np.full(_NUM_STARTS, np.inf)
    for step in range(1, last + 1):
        factor = 2.0 / beta if step > 1 else 1.0 / beta
        lost_a_step += kappa * (factor * norms + before)
        lost += lost_a_step
        current, previous = factor * (matrix @ current) - previous, current
        norms, before = norms_of(current), norms
        is_large = float(norms.max()) > _LARGEST_NORM
        if step % between == 0 or step == last or is_large:
            lost_now = kappa * (norms + before)
            lost_a_step += lost_now
            lost += lost_now
            remove_known(current)
            remove_known(previous)
            norms, before = norms_of(current), norms_of(previous)
            np.minimum(best, _bounds(beta, norms, _COMPONENT - lost, step), out=best)
            if is_large or float(best.max()) <= guess + away:
                break
    return min(1.0, float(best.max()))


def _bounds(beta: float, norms: Floats, rest: Floats, step: int) -> Floats:
    """Return the bound on the norm if each start vector were the good one; inf if none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.maximum(norms / rest * (1.0 + 1e-12), 1.0)
        growth = np.arccosh(ratio) * (1.0 + 1e-12) / step
        bounds = beta * (1.0 + 2.0 * UNIT) * np.cosh(growth) * (1.0 + 1e-14)
    # Beyond that growth the bound is above every norm.
    return np.where((rest > 0.0) & (growth < 100.0), bounds, np.inf)


#: Largest number of users for whom all eigenpairs are computed at once.
DENSE_USERS = 400

# Default number of pairs if an application of the walk is cheap, otherwise none: then only the
# second eigenvalue is sought.
_DEFAULT_PAIRS = 8
_CHEAP_ENTRIES = 4_000_000

# If the remainder mixes slower than this, more pairs pay: this number instead.
_SLOW, _MORE_PAIRS = 0.9, 64

# Largest excess of the certified norm over the eigensolver's, as a share of its distance from 1.
_TOLERANCE = 0.01

# Residual of the eigensolver if only the remainder is asked for, for matrices of norm 1.
_ROUGH = 1e-4

# Neighbours that an eigensolver and a certificate may visit; it takes 10 to 30 seconds.
_MOST_VISITS = 8_000_000_000
_LEAST_STEPS = 400
_LEAST_RESTARTS = 20

# Above this, numbers of rounds are not exact as floats.
_MOST_ROUNDS = 2**53

# Added to powers, which may underflow; smaller bounds are as good as 0.
_SMALLEST = 1e-280

#: Upper bound on the relative change of a number by its last operations, a power or a sum of
#: squares by pairs.
MARGIN = 2.0**-46

# Mask of the binary digits of a float that `coarse` drops: a part in 10^10.
_LAST_DIGITS = (1 << 20) - 1

_SEED = 2204_03919  # any fixed number will do


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spectrum:
    """Certified bounds on the eigenvalues of a walk on a connected graph.

    ``remainder`` is an upper bound on the norm of the walk matrix without the pairs of the
    deflation and the constants, except with the small probability that its certificate states. The
    second eigenvalue is 1 for a bipartite graph without laziness: the walk never forgets its first
    side, and no privacy can be claimed from mixing.
    """

    stationary_law: Floats = field(repr=False)
    deflation: Deflation = field(repr=False)
    remainder: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "stationary_law", read_only(self.stationary_law))

    @property
    def second_eigenvalue(self) -> float:
        """Upper bound on the second-largest modulus lambda of an eigenvalue, in [0, 1].

        By Weyl's inequality no eigenvalue is farther than the deviation from one of the deflated
        matrix, whose second-largest modulus is the modulus of a pair or the norm of the rest.
        """
        largest = float(np.abs(self.deflation.eigenvalues).max(initial=0.0))
        modulus = max(largest, self.remainder) + self.deflation.deviation
        return min(1.0, modulus * (1.0 + 2.0**-50))

    @property
    def spectral_gap(self) -> float:
        """Lower bound on 1 - lambda; 0 if the walk does not mix, or that could not be excluded."""
        return max(0.0, math.nextafter(1.0 - self.second_eigenvalue, 0.0))

    def drift(self, rounds: int) -> float:
        """Return an upper bound t epsilon L^(t-1) on the difference of t rounds of P and of P'."""
        deviation = self.deflation.deviation
        if rounds == 0 or deviation == 0.0:
            return 0.0
        power = power_above(self.second_eigenvalue, rounds - 1)
        return rounds * deviation * power * (1.0 + MARGIN)

    def chi_squares(self, rounds: int) -> Floats:
        """Return upper bounds on V_i of the second theorem of `spectral_position_bounds`."""
        drift = self.drift(2 * rounds) / self.stationary_law
        chi_squares: Floats = self._excesses(2 * rounds) + drift
        return coarse(chi_squares * (1.0 + MARGIN), up=True)

    def largest_deviations(self, rounds: int) -> Floats:
        """Return upper bounds on max_j abs(P_i(j) / pi_j - 1) for each start i."""
        excesses, pi = self._excesses(rounds), self.stationary_law
        drift = self.drift(rounds) / (np.sqrt(pi) * math.sqrt(float(pi.min())))
        away: Floats = np.sqrt(excesses) * math.sqrt(float(excesses.max())) + drift
        return coarse(away * (1.0 + MARGIN), up=True)

    def _excesses(self, rounds: int) -> Floats:
        """Return upper bounds on D_i of the first theorem."""
        deflation, pi = self.deflation, self.stationary_law
        base = power_above(self.remainder, rounds)
        moduli = np.maximum(np.abs(deflation.eigenvalues), self.remainder).tolist()
        # The difference of two powers loses the error of the larger one.
        extra = np.array(
            [power_above(each, rounds) - base * (1.0 - 4.0 * MARGIN) for each in moduli]
        )
        spread = np.sqrt(np.square(deflation.eigenfunctions) @ extra)
        spread += deflation.defect * math.sqrt(extra.max(initial=0.0)) / np.sqrt(pi)
        excesses: Floats = base * (1.0 / pi - 1.0) + np.square(spread)
        # 1/pi - 1 cancels where pi is 1/2 or more: an ulp of 1/pi each.
        excesses += 4.0 * base * np.spacing(1.0 / pi)
        return excesses * (1.0 + MARGIN + loss_of(4 * len(moduli)))


def walk_spectrum(graph: Graph, *, laziness: float = 0.0, num_pairs: int | None = None) -> Spectrum:
    """Return the spectrum of a walk on a connected graph, with upper bounds on the eigenvalues.

    They hold for any output of the eigensolver: if it fails to converge, the gap may come out too
    small, or 0. All eigenpairs of up to 400 users are computed, otherwise the leading
    ``num_pairs``, by default 8, or 64 if the remainder mixes slowly, or none above 4 million pairs
    of neighbours. Start vectors come from a fixed seed.

    Implicitly restarted Lanczos (ARPACK); a polynomial of random vectors for the certificate. Up to
    400 users a dense eigensolver, whose errors are bounded afterwards, and no chance. Work is
    capped: if the gap is too small for that, it is given as 0 or too small.
    """
    root, matrix = np.sqrt(graph.stationary_law()), walk_matrix(graph, laziness)
    if root.size <= DENSE_USERS:
        # The constant function is moved to -2, where it is the first and alone.
        dense = np.outer(root, 1.0 / root) * matrix.toarray() - 3.0 * np.outer(root, root)
        _, vectors = np.linalg.eigh(0.5 * (dense + dense.T))
        # With Deflation's theorem for all pairs, I - Pi = 0 and C = 0.
        functions, remainder = vectors[:, 1:] / root[:, None], 0.0
        deflation = deflate(graph, functions, laziness=laziness)
    else:
        source, pairs = Entropy.from_seed(_SEED), num_pairs
        if pairs is None:
            pairs = _DEFAULT_PAIRS if graph.neighbours.size <= _CHEAP_ENTRIES else 0
        steps = max(_LEAST_STEPS, _MOST_VISITS // (4 * (graph.neighbours.size + root.size)))

        def multiply(vector: Floats) -> Floats:
            """Return the product with the symmetric matrix without its top pair."""
            flat = np.asarray(vector, dtype=np.float64).reshape(-1)
            product: Floats = root * (matrix @ (flat / root) - root @ flat)
            return product

        with one_thread():  # vectors are too short for several, which wait for each other
            start = multiply(source.generator().standard_normal(root.size))
            vectors, rest = _eigensolver(multiply, start, pairs, steps)
            if num_pairs is None and pairs and rest > _SLOW:
                start = multiply(source.generator().standard_normal(root.size))
                vectors, rest = _eigensolver(multiply, start, _MORE_PAIRS, steps)
        deflation = deflate(graph, vectors / root[:, None], laziness=laziness)
        certified = certified_norm(
            graph,
            deflation,
            laziness=laziness,
            guess=rest,
            tolerance=_TOLERANCE,
            most_steps=steps,
            entropy=source.spawn(),
        )
        remainder = min(float(coarse(np.array(certified), up=True)), 1.0)
    return Spectrum(stationary_law=graph.stationary_law(), deflation=deflation, remainder=remainder)


def _eigensolver(
    multiply: Callable[[Floats], Floats], start: Floats, num_pairs: int, most_steps: int
) -> tuple[Floats, float]:
    """Return ARPACK's orthonormal vectors in columns, and the modulus of the remainder.

    One pair more than wanted gives the latter; without pairs three digits of it are enough.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    wanted = num_pairs + 1
    num_vectors = min(max(3 * wanted, 40 if num_pairs else 12), start.size)
    try:
        values, vectors = eigsh(
            LinearOperator((start.size, start.size), matvec=multiply, dtype=np.float64),
            k=wanted,
            which="LM",
            v0=start,
            ncv=num_vectors,
            maxiter=max(_LEAST_RESTARTS, most_steps // num_vectors),
            tol=0.0 if num_pairs else _ROUGH,
        )
    except ArpackNoConvergence as error:
        values, vectors = error.eigenvalues, error.eigenvectors
    order = np.argsort(-np.abs(values), kind="stable")
    kept = order[: min(num_pairs, max(values.size - 1, 0))]
    # The certificate holds for any value of it.
    rest = float(np.abs(values[order[kept.size]])) if values.size else _SLOW
    return vectors[:, kept].reshape(start.size, -1), rest


def spectral_position_bounds(spectrum: Spectrum, rounds: SupportsIndex) -> PositionBounds:
    """Return bounds on the law of the holder of each user's report.

    Parameters
    ----------
    spectrum : Spectrum
        Of the walk.
    rounds : int
        Number of rounds t, in [0, 2^53].

    Returns
    -------
    PositionBounds
        With the stationary law pi as reference, and method ``"spectral"``. ``low`` errs
        downwards, ``high`` upwards. If the walk has not mixed, ``low`` is 0.

    Raises
    ------
    ParameterError
        If ``rounds`` is not a whole number in [0, 2^53].

    Notes
    -----
    In l2(pi), where <f, g> = sum_j pi_j f_j g_j, let e_i be the function 1/pi_i at i and 0
    elsewhere, so that P^t(i, j) / pi_j = <e_i, P^t e_j>; norm(e_i)^2 = 1/pi_i. With P' of
    `Deflation`, eta and epsilon its defect and deviation, mu the remainder, and L the bound on
    the second eigenvalue:

    **Theorem.** abs(P^t(i, j) / pi_j - 1) <= sqrt(D_i D_j) + t epsilon L^(t-1) / sqrt(pi_i pi_j),
    D_i = mu^t (1/pi_i - 1) + (sqrt(sum_k c_k phi_k(i)^2) + eta sqrt(max_k c_k / pi_i))^2,
    c_k = max(abs(theta_k), mu)^t - mu^t.

    *Proof.* P and P' both fix the constants, and on their complement, the functions of mean zero,
    have norm at most L: the norm lambda' of P' there is at most max(abs(theta_1), mu), P's norm
    at most lambda' + epsilon. As P^t - P'^t = sum_s P^s (P - P') P'^(t-1-s), and P - P' vanishes
    on constants, its norm is at most t epsilon L^(t-1); and the norms of e_i and e_j give the
    second term. For the first, e_i = 1 + sum_k psi_k(i) psi_k + r_i with r_i in the range of
    I - Pi, and so <e_i, P'^t e_j> - 1 = sum_k theta_k^t psi_k(i) psi_k(j) + <r_i, C^t r_j>
    (C^0 = I - Pi). By Cauchy and Schwarz it is at most sqrt(A_i A_j), where, as
    norm(r_i)^2 = 1/pi_i - 1 - sum_k psi_k(i)^2,
    A_i = sum_k abs(theta_k)^t psi_k(i)^2 + mu^t norm(r_i)^2
    <= mu^t (1/pi_i - 1) + sum_k c_k psi_k(i)^2.
    The vector of psi_k(i) - phi_k(i) = <psi_k - phi_k, e_i> has norm at most eta / sqrt(pi_i), so
    the triangle inequality gives D_i. (The rows of C^t e_i are rows of a symmetric matrix of
    norm mu^t, whence <r_i, C^t r_j> <= mu^t norm(r_i) norm(r_j).)

    Also P^t(i, j) / pi_j = P^t(j, i) / pi_i <= 1/pi_i.

    The variance of P_i / pi under pi is V_i = sum_j pi_j (P_i(j) / pi_j - 1)^2
    = P^(2t)(i, i) / pi_i - 1, by reversibility.

    V_i is bounded by the first theorem at 2t with j = i. Without eigenpairs
    V_i <= lambda^(2t) (1/pi_i - 1): it is sharper since a slow eigenfunction counts only at the
    places where it is large.

    Powers and sums are widened by 2^-46 of themselves. Cost: O(num_users K).

    References
    ----------
    Levin, Peres, "Markov Chains and Mixing Times", second edition, 2017, Theorem 12.4 and
    Lemma 12.18 (without deflation).

    Examples
    --------
    The triangle has the eigenvalues 1, -1/2, -1/2: after 3 rounds a report is at its start with
    probability 1/4, and at each other place with 3/8.

    >>> spectrum = walk_spectrum(Graph.from_edges([(0, 1), (1, 2), (0, 2)]))
    >>> bounds = spectral_position_bounds(spectrum, 3)
    >>> bounds.low.round(9).tolist(), bounds.high.round(9).tolist()
    ([0.75, 0.75, 0.75], [1.25, 1.25, 1.25])
    """
    number = require_at_least("rounds", rounds, 0)
    if number > _MOST_ROUNDS:
        raise ParameterError(f"rounds = {number} is not in [0, 2^53]: give fewer")
    pi = spectrum.stationary_law
    away = spectrum.largest_deviations(number)
    most = (1.0 / pi) * (1.0 + MARGIN)
    low = np.maximum(0.0, (1.0 - away) * (1.0 - MARGIN))
    high = np.minimum((1.0 + away) * (1.0 + MARGIN), most)
    chi_square = np.minimum(spectrum.chi_squares(number), most - 1.0 + MARGIN)
    grid = weight_grid(1.0)
    return PositionBounds(
        rounds=number,
        low=low,
        high=high,
        method="spectral",
        reference=pi,
        chi_square=chi_square,
        grid=grid,
        tails=np.empty((0, grid.size - 1), np.float32),
        followed=np.empty(0, np.int64),
    )


def coarse(values: Floats, *, up: bool) -> Floats:
    """Move numbers >= 0 in place to 33 binary digits, up or down, and return them.

    Beyond these, eigensolvers differ between machines, and searches may turn on any digit.
    """
    bits = values.view(np.int64)
    bits += _LAST_DIGITS if up else 0
    bits &= ~_LAST_DIGITS
    return values


def power_above(modulus: float, rounds: int) -> float:
    """Return an upper bound on modulus^rounds, for a modulus in [0, 1]; 0 only if it is 0."""
    if modulus == 0.0 and rounds > 0:
        return 0.0
    return float(modulus**rounds) * (1.0 + MARGIN) + _SMALLEST
