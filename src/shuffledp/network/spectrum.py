"""``Spectrum``: the second eigenvalue of a walk, certified, and its leading eigenpairs."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from shuffledp.core.entropy import Entropy
from shuffledp.core.reports import Floats, read_only
from shuffledp.core.threads import one_thread
from shuffledp.network.eigenvalue_certificate import Deflation, certified_norm, deflate
from shuffledp.network.graph import Graph

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

# Where the rest alone is asked for, its residual may be this, of matrices of norm 1.
_ROUGH = 1e-4

# Neighbours that an eigensolver and a certificate may go through; it takes 10 to 30 seconds.
_MOST_VISITS = 8_000_000_000
_LEAST_STEPS = 400
_LEAST_RESTARTS = 20

_SEED = 2204_03919  # any number will do, as long as it is the same


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spectrum:
    """What is known of the eigenvalues of a walk on a connected graph.

    ``remainder`` is at least the norm of the walk matrix without the pairs of the deflation and the
    constants, but for the small probability that its certificate states. The second
    eigenvalue is 1 for a bipartite graph without laziness: the walk never forgets on which side it
    began, and no privacy can be claimed from mixing.
    """

    stationary_law: Floats = field(repr=False)
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


def walk_spectrum(
    graph: Graph,
    *,
    laziness: float = 0.0,
    num_pairs: int | None = None,
    entropy: Entropy | None = None,
) -> Spectrum:
    """Return the spectrum of a walk on a connected graph, its second eigenvalue from above.

    Whatever the eigensolver says: where that fails to converge, the gap may come out too small, or
    0. All eigenpairs of up to 400 users are computed, else the leading ``num_pairs``, by default 8,
    or 64 where what is left mixes slowly, or none above 4 million pairs of neighbours. Start
    vectors come from a fixed seed, unless ``entropy`` is given.

    Implicitly restarted Lanczos (ARPACK); a polynomial of random vectors for the certificate. Up to
    400 users a dense eigensolver, whose errors are bounded afterwards, and no chance. Work is
    capped: where the gap is too small for that, it is given as 0 or too small.
    """
    from scipy.sparse import dia_array

    root = np.sqrt(graph.stationary_law())
    scale = dia_array((1.0 / np.sqrt(graph.degrees)[None, :], [0]), shape=(root.size, root.size))
    matrix = (1.0 - laziness) * (scale @ graph.matrix() @ scale)
    if root.size <= DENSE_USERS:
        # The constant function goes to -2, where it is the first and nothing else is.
        dense = matrix.toarray() + laziness * np.eye(root.size) - 3.0 * np.outer(root, root)
        _, vectors = np.linalg.eigh(0.5 * (dense + dense.T))
        # With Deflation's theorem for all pairs, I - Pi = 0 and C = 0.
        functions, remainder = vectors[:, 1:] / root[:, None], 0.0
        deflation = deflate(graph, functions, laziness=laziness)
    else:
        source = Entropy.from_seed(_SEED) if entropy is None else entropy
        pairs = num_pairs
        if pairs is None:
            pairs = _DEFAULT_PAIRS if graph.neighbours.size <= _CHEAP_ENTRIES else 0
        steps = max(_LEAST_STEPS, _MOST_VISITS // (4 * (graph.neighbours.size + root.size)))

        def multiply(vector: Floats) -> Floats:
            """Return the product with the symmetric matrix without its top pair."""
            flat = np.asarray(vector, dtype=np.float64).reshape(-1)
            product: Floats = matrix @ flat + laziness * flat - root * (root @ flat)
            return product

        with one_thread():  # vectors are too short for several, which wait for each other
            start = multiply(source.generator().standard_normal(root.size))
            vectors, rest = _eigensolver(multiply, start, pairs, steps)
            if num_pairs is None and pairs and rest > _SLOW:
                start = multiply(source.generator().standard_normal(root.size))
                vectors, rest = _eigensolver(multiply, start, _MORE_PAIRS, steps)
        deflation = deflate(graph, vectors / root[:, None], laziness=laziness)
        remainder = certified_norm(
            graph,
            deflation,
            laziness=laziness,
            guess=rest,
            tolerance=_TOLERANCE,
            most_steps=steps,
            entropy=source.spawn(),
        )
    return Spectrum(
        stationary_law=graph.stationary_law(),
        laziness=laziness,
        deflation=deflation,
        remainder=remainder,
    )


def _eigensolver(
    multiply: Callable[[Floats], Floats], start: Floats, num_pairs: int, most_steps: int
) -> tuple[Floats, float]:
    """Return what ARPACK finds: orthonormal vectors in columns, and the modulus of what remains.

    One pair more than wanted tells the latter; without pairs three digits of it are enough.
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
    # Whatever it is, the certificate holds.
    rest = float(np.abs(values[order[kept.size]])) if values.size else _SLOW
    return vectors[:, kept].reshape(start.size, -1), rest
