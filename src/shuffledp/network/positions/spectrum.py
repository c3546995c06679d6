"""Eigenvalues of a walk, certified, and bounds on the laws of the holders from these alone."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import SupportsIndex

import numpy as np

from shuffledp.core.arrays import Floats
from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.reports import read_only
from shuffledp.core.threads import one_thread
from shuffledp.network.graph import Graph
from shuffledp.network.positions.bounds import PositionBounds, weight_grid
from shuffledp.network.positions.eigenvalue_certificate import (
    Deflation,
    certified_norm,
    deflate,
    loss_of,
)

#: Most users for whom all eigenpairs are computed at once.
DENSE_USERS = 400

# Default pairs where an application of the walk is cheap, else none: then
# only the second eigenvalue is sought.
_DEFAULT_PAIRS = 8
_CHEAP_ENTRIES = 4_000_000

# Where the remainder mixes slower than this, more pairs pay: this number instead.
_SLOW, _MORE_PAIRS = 0.9, 64

# The certified norm may be above the eigensolver's by this share of its distance from 1.
_TOLERANCE = 0.01

# Where the rest alone is asked for, its residual may be this, of matrices of norm 1.
_ROUGH = 1e-4

# Neighbours that an eigensolver and a certificate may go through; it takes 10 to 30 seconds.
_MOST_VISITS = 8_000_000_000
_LEAST_STEPS = 400
_LEAST_RESTARTS = 20

# Above this, numbers of rounds are not exact as floats.
_MOST_ROUNDS = 2**53

# Added to powers, which may underflow; no bound below it would be told from 0.
_SMALLEST = 1e-280

#: The last operations on a number, a power or a sum of squares by pairs change it by less than
# this, relative to itself.
MARGIN = 2.0**-46

# Mask of the binary digits of a float that `coarse` drops: a part in 10^10.
_LAST_DIGITS = (1 << 20) - 1

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
    deflation: Deflation = field(repr=False)
    remainder: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "stationary_law", read_only(self.stationary_law))

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

    def drift(self, rounds: int) -> float:
        """Return at least t epsilon L^(t-1), by which t rounds of P and of P' differ."""
        deviation = self.deflation.deviation
        if rounds == 0 or deviation == 0.0:
            return 0.0
        power = power_above(self.second_eigenvalue, rounds - 1)
        return rounds * deviation * power * (1.0 + MARGIN)

    def chi_squares(self, rounds: int) -> Floats:
        """Return at least V_i of the second theorem of `spectral_position_bounds`."""
        drift = self.drift(2 * rounds) / self.stationary_law
        chi_squares: Floats = self._excesses(2 * rounds) + drift
        return coarse(chi_squares * (1.0 + MARGIN), up=True)

    def largest_deviations(self, rounds: int) -> Floats:
        """Return at least max_j abs(P_i(j) / pi_j - 1) for each start i."""
        excesses, pi = self._excesses(rounds), self.stationary_law
        drift = self.drift(rounds) / (np.sqrt(pi) * math.sqrt(float(pi.min())))
        away: Floats = np.sqrt(excesses) * math.sqrt(float(excesses.max())) + drift
        return coarse(away * (1.0 + MARGIN), up=True)

    def _excesses(self, rounds: int) -> Floats:
        """Return at least D_i of the first theorem."""
        deflation, pi = self.deflation, self.stationary_law
        base = power_above(self.remainder, rounds)
        moduli = np.maximum(np.abs(deflation.eigenvalues), self.remainder).tolist()
        # The difference of two powers loses what the larger one is off by.
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
    """Return the spectrum of a walk on a connected graph, its second eigenvalue from above.

    Whatever the eigensolver says: where that fails to converge, the gap may come out too small, or
    0. All eigenpairs of up to 400 users are computed, else the leading ``num_pairs``, by default 8,
    or 64 where what is left mixes slowly, or none above 4 million pairs of neighbours. Start
    vectors come from a fixed seed.

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
        source, pairs = Entropy.from_seed(_SEED), num_pairs
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


def spectral_position_bounds(spectrum: Spectrum, rounds: SupportsIndex) -> PositionBounds:
    """Return bounds on the law of the holder of each user's report.

    Parameters
    ----------
    spectrum : Spectrum
        Of the walk.
    rounds : int
        How many rounds t, in [0, 2^53].

    Returns
    -------
    PositionBounds
        With the stationary law pi as reference, and method ``"spectral"``. ``low`` errs
        downwards; ``high`` and ``collision`` upwards. Where the walk
        has not mixed, ``low`` is 0.

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
    have norm at most L: the norm lambda' of P' there is at most max(abs(theta_1), mu), that of P
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

    **Theorem.** With V_i = P^(2t)(i, i) / pi_i - 1, pi_max the largest pi_j,
    and W = sum_j pi_j (pi_j - a)^2 for a = sum_j pi_j^2,
    sum_j P_i(j)^2 <= min(a + 2 sqrt(W V_i) + pi_max V_i, pi_max (1 + V_i)).

    *Proof.* With x_j = P_i(j) / pi_j - 1, sum_j pi_j x_j = 0, and
    sum_j pi_j x_j^2 = sum_j P^t(i, j) P^t(j, i) / pi_i - 1 = V_i by reversibility. Then
    sum_j pi_j^2 (1 + x_j)^2 = a + 2 sum_j pi_j (pi_j - a) x_j + sum_j pi_j^2 x_j^2, where the
    middle is at most 2 sqrt(W V_i). The other bound is pi_j^2 <= pi_max pi_j.

    V_i is bounded by the first theorem at 2t with j = i. Without eigenpairs
    V_i <= lambda^(2t) (1/pi_i - 1): what is sharper here is that a slow eigenfunction counts at the
    places where it is large only.

    Powers and sums are widened by 2^-46 of themselves. Cost: O(num_users K).

    References
    ----------
    Levin, Peres, "Markov Chains and Mixing Times", second edition, 2017, Theorem 12.4 and
    Lemma 12.18 (without deflation). The collision bound corrects equation 7 of Liew, Takahashi,
    Takagi, Kato, Cao, Yoshikawa, "Network Shuffling: Privacy Amplification via Random Walks",
    SIGMOD 2022, arXiv:2204.03919, which holds on regular graphs only.

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
        collision=_collisions(pi, chi_square),
        method="spectral",
        reference=pi,
        chi_square=chi_square,
        grid=grid,
        tails=np.empty((0, grid.size - 1), np.float32),
        followed=np.empty(0, np.int64),
    )


def rounds_to_mix(spectrum: Spectrum, separation: float = 0.01) -> int:
    """Return after how many rounds the spectrum shows 1 - min_{i, j} P_i(j) / pi_j below this.

    Errs upwards: the walk may have mixed earlier, and every later round will do too.
    """

    def is_mixed(rounds: int) -> bool:
        return float(spectrum.largest_deviations(rounds).max()) * (1.0 + MARGIN) <= separation

    power = bisect_left(range(54), True, key=lambda each: is_mixed(2**each))
    if spectrum.spectral_gap == 0.0 or 2**power > _MOST_ROUNDS:
        raise OutOfRegimeError(
            f"spectral_gap = {spectrum.spectral_gap}: the walk does not mix in 2^53 rounds (on a "
            "bipartite graph reports stay on one side), or that cannot be shown: give a laziness "
            "above 0, or a better connected graph"
        )
    most = 2**power
    return bisect_left(range(most), True, lo=most // 2 + 1, key=is_mixed)


def coarse(values: Floats, *, up: bool) -> Floats:
    """Move numbers >= 0 in place to 33 binary digits, up or down, and return them.

    Beyond these, eigensolvers differ between machines, and searches may turn on any digit.
    """
    bits = values.view(np.int64)
    bits += _LAST_DIGITS if up else 0
    bits &= ~_LAST_DIGITS
    return values


def power_above(modulus: float, rounds: int) -> float:
    """Return at least modulus^rounds, for a modulus in [0, 1]; 0 only if it is."""
    if modulus == 0.0 and rounds > 0:
        return 0.0
    return float(modulus**rounds) * (1.0 + MARGIN) + _SMALLEST


def _collisions(pi: Floats, chi_squares: Floats) -> Floats:
    """Return at least sum_j P_i(j)^2."""
    largest = float(pi.max())
    mean = float(np.square(pi).sum())
    # The bound holds for any number in place of the mean. Each pi_j is rounded, which moves
    # pi_j - mean by an ulp of pi_j, as if by a function of that norm.
    variance = float((pi * np.square(pi - mean)).sum())
    rounding = MARGIN * math.sqrt(float((pi * np.square(pi)).sum()))
    deviation = math.sqrt(variance) * (1.0 + MARGIN) + rounding
    by_mean = mean + 2.0 * deviation * np.sqrt(chi_squares) + largest * chi_squares
    bounds = np.minimum(by_mean, largest * (1.0 + chi_squares)) * (1.0 + MARGIN)
    return np.minimum(bounds, 1.0)
