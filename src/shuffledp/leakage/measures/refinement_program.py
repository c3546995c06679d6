"""The linear program of refinement: how close post-processing of one channel comes to another.

For channels C (n x k) and D (n x m) on the same secrets let

    distance = min over channels W of sum_xz abs(D - C W)_xz
             = max over G with entries in [-1, 1] of sum_xz D_xz G_xz - sum_y max_z sum_x C_xy G_xz,

the second line by linear programming duality: the best W sends each y to the z with the largest
sum_x C_xy G_xz. The distance is 0 exactly if D is C followed by some W. Otherwise read the best G
as a gain function, G_xz being what the guess z is worth for the secret x. Under the uniform prior

    n (V_G[D] - V_G[C]) >= sum_xz D_xz G_xz - sum_y max_z sum_x C_xy G_xz = distance > 0,

because guessing z on seeing z is one strategy against D: the gain separates the channels.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import ParameterError, PrecisionError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Coefficients of the program at most: 12 s at 216,000. The interior-point solver, which ends in a
# vertex too, because the simplex takes minutes there.
LARGEST_PROGRAM = 250_000

_FEASIBILITY = 1e-10

# Entries of the witness that are not 0; number and relative accuracy of the last steps towards it.
_POSITIVE, _STEPS, _STEP = 1e-9, 3, 1e-12


class Factorization(NamedTuple):
    """What the solver found, in floating point and not to be trusted unchecked."""

    witness: NDArray[np.float64]
    """W, (num_outputs of C, num_outputs of D), rows of sum one to rounding."""

    gain: NDArray[np.float64]
    """G, (num_inputs, num_outputs of D), in [-1, 1]."""


def closest_factorization(first: NDArray[np.float64], second: NDArray[np.float64]) -> Factorization:
    """Solve the program for C = ``first`` and D = ``second``.

    Raises
    ------
    ParameterError
        If it is too large; the message has its size.
    PrecisionError
        If the solver gives up.
    """
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, hstack, kron, vstack

    num_inputs, num_middle = first.shape
    num_last = second.shape[1]
    coefficients = num_last * np.count_nonzero(first)
    if coefficients > LARGEST_PROGRAM:
        raise ParameterError(
            f"refinement of a {num_inputs} x {num_middle} channel by one with {num_last} outputs "
            f"needs a linear program with {coefficients} coefficients, above {LARGEST_PROGRAM}: "
            "reduce() both channels, or compare their vulnerabilities for the gains that matter"
        )
    # Variables: W by rows, then D - C W above and below 0, both by rows.
    cells = num_inputs * num_last
    rows_of_one = kron(eye_array(num_middle), np.ones((1, num_last)))
    constraints = vstack(
        [
            hstack([kron(first, eye_array(num_last)), eye_array(cells), -eye_array(cells)]),
            hstack([rows_of_one, np.zeros((num_middle, 2 * cells))]),
        ],
        format="csr",
    )
    targets = np.append(second.ravel(), np.ones(num_middle))
    found = linprog(
        np.append(np.zeros(num_middle * num_last), np.ones(2 * cells)),
        A_eq=constraints,
        b_eq=targets,
        method="highs-ipm",
        options={
            "primal_feasibility_tolerance": _FEASIBILITY,
            "dual_feasibility_tolerance": _FEASIBILITY,
        },
    )
    if not found.success:
        raise PrecisionError(f"the linear program of refinement was not solved: {found.message}")
    size = num_middle * num_last
    entries = _polished(constraints[:, :size], targets, found.x[:size])
    witness = entries.reshape(num_middle, num_last)
    gain = np.clip(found.eqlin.marginals[:cells], -1.0, 1.0).reshape(num_inputs, num_last)
    return Factorization(witness / witness.sum(axis=1, keepdims=True), gain)


def _polished(
    constraints: "csr_array", targets: NDArray[np.float64], entries: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the witness after steps that take the solver's own tolerance out of it.

    The places of its positive entries are right; their values are solved for by least squares.
    """
    from scipy.sparse.linalg import lsqr

    places = np.flatnonzero(entries > _POSITIVE)
    polished = np.zeros_like(entries)
    polished[places] = entries[places]
    active = constraints.tocsc()[:, places]
    for _ in range(_STEPS):
        missing = targets - active @ polished[places]
        polished[places] += lsqr(active, missing, atol=_STEP, btol=_STEP)[0]
    better = np.linalg.norm(targets - active @ polished[places])
    worse = np.linalg.norm(targets - constraints @ entries)
    return np.maximum(polished if better < worse else entries, 0.0)
