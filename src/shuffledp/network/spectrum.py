"""``Spectrum``: the second eigenvalue of a walk, certified, and its leading eigenpairs."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy
from shuffledp.core.reports import read_only
from shuffledp.core.threads import one_thread
from shuffledp.network.eigenvalue_certificate import Deflation, certified_norm, deflate
from shuffledp.network.graph import Graph
from shuffledp.network.walk import over_rows

#: Up to so many users all eigenpairs are computed at once.
DENSE_USERS = 400

# By default so many pairs are computed where an application of the walk is cheap, else none: then
# only the second eigenvalue is sought.
_DEFAULT_PAIRS = 8
_CHEAP_ENTRIES = 4_000_000

# Where what is left mixes slower than this, more pairs pay: by default so many instead.
_SLOW, _MORE_PAIRS = 0.9, 64

# The certified norm may be above the eigensolver's by this share of its distance from 1.
_TOLERANCE = 0.01

# Vectors shorter than this, of matrices of norm 1, are round-off.
_NOTHING = 1e-14

# Neighbours that an eigensolver and a certificate may go through; it takes 10 to 30 seconds.
_MOST_VISITS = 8_000_000_000
_LEAST_STEPS = 400
_LEAST_RESTARTS = 20

_Product: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_SEED = 2204_03919  # any number will do, as long as it is the same


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spectrum:
    """What is known of the eigenvalues of a walk on a connected graph.

    ``remainder`` is at least the norm of the walk matrix without the pairs of the deflation and the
    constants, but for the small probability that its certificate states. The second
    eigenvalue is 1 for a bipartite graph without laziness: the walk never forgets on which side it
    began, and no privacy can be claimed from mixing.
    """

    stationary_law: NDArray[np.float64] = field(repr=False)
    laziness: float
    deflation: Deflation = field(repr=False)
    remainder: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "stationary_law", read_only(self.stationary_law))

    @property
    def num_users(self) -> int:
        """Number of users n."""
        return int(self.stationary_law.size)

    @property
    def second_eigenvalue(self) -> float:
        """At least the second-largest modulus lambda of an eigenvalue, in [0, 1].

        By Weyl's inequality no eigenvalue is farther than the deviation from one of the deflated
        matrix, whose second-largest modulus is that of a pair or the norm of the rest.
        """
        modulus = max(self.deflation.largest_modulus, self.remainder) + self.deflation.deviation
        return min(1.0, modulus * (1.0 + 2.0**-50))

    @property
    def spectral_gap(self) -> float:
        """At most 1 - lambda; 0 if the walk does not mix, or that could not be excluded."""
        return max(0.0, math.nextafter(1.0 - self.second_eigenvalue, 0.0))


class _Guess(NamedTuple):
    """What an eigensolver says: functions in columns, and a modulus for what remains."""

    functions: NDArray[np.float64]
    rest: float  # the largest without the functions


def walk_spectrum(
    graph: Graph,
    *,
    laziness: float = 0.0,
    num_pairs: int | None = None,
    entropy: Entropy | None = None,
) -> Spectrum:
    """Return the spectrum of a walk on a connected graph, its second eigenvalue from above.

    Whatever the eigensolver says: where that fails to converge, the gap may come out too small, or
    0. ``num_pairs`` leading eigenpairs are computed; by default all up to 400 users, else 8, or 64
    where what is left mixes slowly, or none above 4 million pairs of neighbours. Start vectors come
    from a fixed seed, unless ``entropy`` is given.

    Implicitly restarted Lanczos for the pairs (ARPACK), or plain Lanczos for the second eigenvalue
    alone; a polynomial of random vectors for the certificate. Up to 400 users a dense eigensolver,
    whose errors are bounded afterwards, and no chance. Cost: for 10^4 users and 10^5 edges about
    half a second, 3 s where the gap is a few thousandths; 25 s of processor time, on two threads,
    for 10^6 users and 10^7 edges that expand. Work is capped: where the gap is too small for that,
    it is given as 0 or too small.
    """
    if graph.num_users <= DENSE_USERS:
        return _dense_spectrum(graph, laziness, num_pairs)
    pairs = num_pairs
    if pairs is None:
        pairs = _DEFAULT_PAIRS if graph.neighbours.size <= _CHEAP_ENTRIES else 0
    source = Entropy.from_seed(_SEED) if entropy is None else entropy
    with one_thread():  # vectors are too short for several, which wait for each other
        guess = _eigensolver(graph, laziness, pairs, source)
        if num_pairs is None and pairs and guess.rest > _SLOW:
            guess = _eigensolver(graph, laziness, _MORE_PAIRS, source)
    deflation = deflate(graph, guess.functions, laziness=laziness)
    remainder = certified_norm(
        graph,
        deflation,
        laziness=laziness,
        guess=guess.rest,
        tolerance=_TOLERANCE,
        most_steps=_steps_within_budget(graph, _LEAST_STEPS),
        entropy=source.spawn(),
    ).bound
    return _spectrum(graph, laziness, deflation, remainder)


def _spectrum(graph: Graph, laziness: float, deflation: Deflation, remainder: float) -> Spectrum:
    """Return the spectrum of these parts."""
    return Spectrum(
        stationary_law=graph.stationary_law(),
        laziness=laziness,
        deflation=deflation,
        remainder=remainder,
    )


def _dense_spectrum(graph: Graph, laziness: float, num_pairs: int | None) -> Spectrum:
    """Return the spectrum from all eigenpairs, whose errors bound the rest without any chance.

    With Deflation's theorem for all pairs, I - Pi = 0 and C = 0. Of the first K of its exactly
    orthonormal functions, the rest is that of sum_k theta_k psi_k psi_k* up to the deviation.
    """
    root = np.sqrt(graph.stationary_law())
    matrix = np.zeros((graph.num_users, graph.num_users))
    rows = np.repeat(np.arange(graph.num_users), graph.degrees)
    matrix[rows, graph.neighbours] = root[rows] / (root[graph.neighbours] * graph.degrees[rows])
    matrix = 0.5 * (1.0 - laziness) * (matrix + matrix.T)
    # The constant function goes to -2, where it is the first and nothing else is.
    matrix -= 3.0 * np.outer(root, root)
    matrix[np.diag_indices_from(matrix)] += laziness
    _, vectors = np.linalg.eigh(matrix)
    everything = deflate(graph, vectors[:, 1:] / root[:, None], laziness=laziness)
    count = everything.num_pairs if num_pairs is None else min(num_pairs, everything.num_pairs)
    if count == everything.num_pairs:
        return _spectrum(graph, laziness, everything, 0.0)
    rest = float(abs(everything.eigenvalues[count])) + everything.deviation
    return _spectrum(graph, laziness, everything.leading(count), min(1.0, rest * (1.0 + 2.0**-50)))


def _eigensolver(graph: Graph, laziness: float, num_pairs: int, entropy: Entropy) -> _Guess:
    """Return what ARPACK finds, in l2(pi): one pair more than wanted tells the size of the rest.

    Without pairs, or where it finds none, plain Lanczos gives the size alone.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    root = np.sqrt(graph.stationary_law())
    multiply = _symmetric_product(graph, laziness, root)
    start = multiply(entropy.generator().standard_normal(root.size))
    budget = _steps_within_budget(graph, _LEAST_STEPS)
    values, vectors = np.empty(0), np.empty((root.size, 0))
    if num_pairs:
        wanted = num_pairs + 1
        num_vectors = max(3 * wanted, 40)
        try:
            values, vectors = eigsh(
                LinearOperator((root.size, root.size), matvec=multiply, dtype=np.float64),
                k=wanted,
                which="LM",
                v0=start,
                ncv=min(num_vectors, root.size),
                maxiter=max(_LEAST_RESTARTS, budget // num_vectors),
            )
        except ArpackNoConvergence as error:
            values, vectors = error.eigenvalues, error.eigenvectors
    if values.size == 0:
        # A guess to three digits: half the bytes go through the memory.
        rough = _symmetric_product(graph, laziness, root, np.float32)
        modulus = _largest_modulus(rough, start, budget)
        return _Guess(vectors, modulus)
    order = np.argsort(-np.abs(values), kind="stable")
    sizes = np.abs(values[order])
    kept = order[: min(num_pairs, values.size - 1)]
    functions = vectors[:, kept] / root[:, None]
    return _Guess(functions, float(sizes[kept.size]))


def _symmetric_product(
    graph: Graph,
    laziness: float,
    root: NDArray[np.float64],
    precision: type[np.floating[Any]] = np.float64,
) -> _Product:
    """Return the product of vectors with the symmetric matrix without its top pair."""
    from shuffledp.network import walk_kernels as kernels

    scratch = np.empty(root.size, precision)

    def multiply(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the product as a new vector."""
        flat = np.asarray(vector, dtype=np.float64).reshape(-1)
        out = np.empty_like(flat)
        np.divide(flat, root, out=scratch, casting="same_kind")
        mean = float(flat @ root)
        fixed = graph.starts, graph.neighbours, laziness, 1.0 - laziness, root, scratch, mean, out
        over_rows(root.size, partial(kernels.symmetric_step, *fixed))
        return out

    return multiply


def _largest_modulus(multiply: _Product, start: NDArray[np.float64], most_steps: int) -> float:
    """Return about the largest modulus of an eigenvalue, from below but for round-off.

    Lanczos without orthogonalisation, which repeats extreme eigenvalues but does not move them.
    It stops when half as many steps again move the distance from 1 by at most a five hundredth.
    """
    from scipy.linalg import eigvalsh_tridiagonal

    norm = float(np.linalg.norm(start))
    vector, before = start / max(norm, _NOTHING), np.zeros_like(start)
    diagonal: list[float] = []
    beside: list[float] = []
    modulus, check = 0.0, 32
    while norm > _NOTHING:
        image = multiply(vector)
        diagonal.append(float(vector @ image))
        image -= diagonal[-1] * vector + (beside[-1] if beside else 0.0) * before
        norm = float(np.linalg.norm(image))
        if len(diagonal) in (check, most_steps) or norm <= _NOTHING:
            last = modulus
            modulus = max(
                abs(float(eigvalsh_tridiagonal(diagonal, beside, "i", (end, end))[0]))
                for end in (0, len(diagonal) - 1)
            )
            if len(diagonal) == most_steps or abs(modulus - last) <= 0.002 * (1.0 - modulus):
                break
            check += check // 2
        beside.append(norm)
        vector, before = image / max(norm, _NOTHING), vector
    return modulus


def _steps_within_budget(graph: Graph, least: int) -> int:
    """Return how many rounds of four functions are affordable, or ``least`` if that is more."""
    return max(least, _MOST_VISITS // (4 * (graph.neighbours.size + graph.num_users)))
