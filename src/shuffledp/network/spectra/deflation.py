"""``Deflation``: approximate eigenpairs of a walk, with proved bounds of their errors."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import PrecisionError
from shuffledp.core.reports import read_only
from shuffledp.network.graphs.graph import Graph

#: Half the distance from 1 to the next float: what an operation loses, relative to its result.
UNIT = 2.0**-53

# Columns that are farther from orthonormal are no approximation of anything.
_LARGEST_DEFECT = 0.1


def loss_of(operations: float) -> float:
    """Return at least the relative loss of this many operations in a row, below 10^13 of them."""
    return 1.01 * operations * UNIT


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deflation:
    """Some eigenpairs of a walk, apart from the constant, as computed, and how far they are off.

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
        rho: at least the norm of the map x -> sum_k x_k (P psi_k - theta_k psi_k).

    Notes
    -----
    **Theorem.** In l2(pi), where <f, g> = sum_j pi_j f_j g_j, the walk matrix P is symmetric and
    has norm 1 (so has the matrix of its absolute values, which is P itself). Let Pi be the
    orthogonal projector on the constants and all phi_k, C = (I - Pi) P (I - Pi), and
    P' = 1 1* + sum_k theta_k psi_k psi_k* + C, where f* is the map g -> <f, g>. Then
    P - P' vanishes on the constants and has norm at most ``deviation`` = sqrt(2) rho.

    *Proof.* E = P - P' is symmetric, and E 1 = P 1 - 1 = 0. On the span of the psi_k it is the
    map of ``residual``, of norm <= rho, and it takes x in the range of I - Pi to Pi P x, where
    the norm of Pi P (I - Pi) is that of its adjoint (I - Pi) P Pi. That vanishes on constants and
    takes psi_k to (I - Pi)(P psi_k - theta_k psi_k); so its norm is <= rho too. Hence
    norm(E x) <= rho (norm(Pi x) + norm(x - Pi x)) <= sqrt(2) rho norm(x).

    **Theorem.** Let G be the matrix of <phi_k, phi_l>, g the vector of <1, phi_k>,
    a = norm(G - I), b = norm(g), a + b^2 < 1. Then eta = a + b + b^2 will do for the defect.

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

    eigenvalues: NDArray[np.float64] = field(repr=False)
    eigenfunctions: NDArray[np.float64] = field(repr=False)
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
        """At least the norm of P - P'; see the first theorem."""
        return math.sqrt(2.0) * self.residual * (1.0 + loss_of(4))

    @property
    def largest_modulus(self) -> float:
        """Largest absolute value of an eigenvalue that was computed, 0 if there is none."""
        return float(np.abs(self.eigenvalues).max(initial=0.0))

    def leading(self, num_pairs: int) -> "Deflation":
        """Return the first pairs alone, with the same bounds, which stay true of them."""
        return Deflation(
            eigenvalues=self.eigenvalues[:num_pairs],
            eigenfunctions=np.ascontiguousarray(self.eigenfunctions[:, :num_pairs]),
            defect=self.defect,
            residual=self.residual,
        )


def no_deflation(num_users: int) -> Deflation:
    """Return the deflation by the constants alone, which is exact.

    Examples
    --------
    >>> no_deflation(3).deviation
    0.0
    """
    return Deflation(
        eigenvalues=np.empty(0),
        eigenfunctions=np.empty((num_users, 0)),
        defect=0.0,
        residual=0.0,
    )


def deflate(graph: Graph, eigenfunctions: NDArray[np.float64], *, laziness: float) -> Deflation:
    """Return eigenpairs with proved bounds, from approximate eigenfunctions.

    Parameters
    ----------
    graph : Graph
        Connected, with at least one edge.
    eigenfunctions : ndarray of float64, shape (num_users, K)
        From whatever solver, in l2(pi); made orthonormal here. K < num_users.
    laziness : float
        Probability that a report stays, in [0, 1).

    Returns
    -------
    Deflation
        Sorted by absolute value of the eigenvalues, largest first. Its bounds err upwards.

    Raises
    ------
    PrecisionError
        If they are linearly dependent, or NaN.

    Notes
    -----
    Cost: O(num_edges K + num_users K^2).

    Examples
    --------
    >>> pair = Graph.from_edges([(0, 1)])
    >>> deflation = deflate(pair, np.array([[1.0], [-1.0]]), laziness=0.0)
    >>> deflation.eigenvalues.round(12).tolist(), deflation.deviation < 1e-13
    ([-1.0], True)
    """
    from shuffledp.network.spectra import spectrum_kernels as kernels

    pi = graph.stationary_law()
    functions = _orthonormalised(pi, eigenfunctions)
    if functions.shape[1] == 0:
        return no_deflation(graph.num_users)
    images = np.empty_like(functions)
    move = 1.0 - laziness
    kernels.step_functions(graph.starts, graph.neighbours, laziness, move, functions, images)
    eigenvalues = np.clip((pi[:, None] * functions * images).sum(axis=0), -1.0, 1.0)
    defect, trace = _defect(pi, functions)
    images -= eigenvalues * functions
    squares, loss = _frobenius_squared(pi, images)
    most = int(graph.degrees.max())
    # A mean over neighbours, laziness, the product with theta and its subtraction.
    rounding = loss_of(kernels.additions_of_means(most) + 12) * math.sqrt(trace)
    residual = math.sqrt(squares) * (1.0 + loss) + rounding + 2.0 * defect
    order = np.argsort(-np.abs(eigenvalues), kind="stable")
    return Deflation(
        eigenvalues=eigenvalues[order],
        eigenfunctions=np.ascontiguousarray(functions[:, order]),
        defect=defect,
        residual=residual * (1.0 + loss_of(8)),
    )


def _orthonormalised(
    pi: NDArray[np.float64], functions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return functions of the same span, orthonormal in l2(pi) and of mean zero, nearly."""
    root = np.sqrt(pi)
    columns, _ = np.linalg.qr(np.column_stack([root, root[:, None] * functions]))
    return np.ascontiguousarray(columns[:, 1:] / root[:, None])


def _defect(pi: NDArray[np.float64], functions: NDArray[np.float64]) -> tuple[float, float]:
    """Return at least the defect of functions, and at least the sum of their squared norms."""
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


def _products(
    pi: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Return <f, g> for all columns, and what each is off by, relative to norm(f) norm(g)."""
    from shuffledp.network.spectra import spectrum_kernels as kernels

    rows = math.isqrt(pi.size) + 1  # at a time: then sums are shortest
    products = kernels.weighted_products(pi, first, second, rows)
    return products, loss_of(rows + -(-pi.size // rows) + 4)


def _frobenius_squared(
    pi: NDArray[np.float64], functions: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the sum of the squared norms of functions, and its relative loss."""
    flat = functions.reshape(-1, 1)
    products, loss = _products(np.repeat(pi, functions.shape[1]), flat, flat)
    return float(products[0, 0]), loss
