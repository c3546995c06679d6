"""Refinement: whether one channel is at least as secure as another, for all priors and gains.

C is refined by D if no prior and no gain function has a larger posterior vulnerability against D
than against C. That holds exactly if D is C followed by some channel W (the data-processing
inequality and its converse, the Coriaceous theorem). For C (n x k) and D (n x m) let

    distance = min over channels W of sum_xz abs(D - C W)_xz
             = max over G with entries in [-1, 1] of sum_xz D_xz G_xz - sum_y max_z sum_x C_xy G_xz,

the second line by linear programming duality: the best W sends each y to the z with the largest
sum_x C_xy G_xz. The distance is 0 exactly if D is C followed by some W. Otherwise read the best G
as a gain function, G_xz being what the guess z is worth for the secret x. Under the uniform prior

    n (V_G[D] - V_G[C]) >= sum_xz D_xz G_xz - sum_y max_z sum_x C_xy G_xz = distance > 0,

because guessing z on seeing z is one strategy against D: the gain separates the channels. Neither W
nor G is believed before it has been checked here, apart from the solver.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1, Theorem 4; McIver, Morgan, Smith,
Espinoza, Meinicke, "Abstract Channels and Their Robust Information-Leakage Ordering", POST 2014.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_positive
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.leakage.channels.channel import Channel, as_channel
from shuffledp.leakage.measures.gains import GainFunction, matrix_gain
from shuffledp.leakage.measures.vulnerability import posterior_vulnerability

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Coefficients of the program at most: 12 s at 216,000. The interior-point solver, which ends in a
# vertex too, because the simplex takes minutes there.
LARGEST_PROGRAM = 250_000

_FEASIBILITY = 1e-10

# Entries of W that are not 0; number and relative accuracy of the last steps towards it.
_POSITIVE, _STEPS, _STEP = 1e-9, 3, 1e-12

# Reduced matrices whose sorted columns agree to this are the same.
_SAME = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refinement:
    """Whether C is refined by D, within round-off.

    Attributes
    ----------
    holds : bool
        Whether D is at least as secure as C. Also the truth value of this object.
    distance : float
        If it holds: for the W that was found, the largest sum of abs(D - C W) over a row, at most
        the tolerance. Gains in [0, 1] give D at most half of it more than C. Otherwise infinite.
    separating_gain : GainFunction or None
        If it does not hold: a gain in [0, 1] against which D is more vulnerable than C, under the
        uniform prior.
    margin : float
        By how much, up to a round-off of about 1e-13; 0 if the refinement holds.
    """

    holds: bool
    distance: float = float("inf")
    separating_gain: GainFunction | None = None
    margin: float = 0.0

    def __bool__(self) -> bool:
        return self.holds


def refinement(
    first: Channel | ArrayLike, second: Channel | ArrayLike, *, tolerance: float = 1e-9
) -> Refinement:
    """Decide whether ``first`` is refined by ``second``: whether the second leaks no more.

    Parameters
    ----------
    first, second : Channel or array_like
        C and D, with the same number of inputs. Fractions are rounded to doubles.
    tolerance : float
        How far the rows of C W may be from those of D, in the sum of absolute differences, for the
        refinement to hold.

    Returns
    -------
    Refinement
        With the distance, or a gain function that shows the contrary.

    Raises
    ------
    ParameterError
        If the numbers of inputs differ, a matrix is no channel, the tolerance is not positive, or
        the linear program has more than 250,000 coefficients.
    PrecisionError
        If round-off leaves it open: D is further from C W than the tolerance, but the separation is
        within round-off.

    Notes
    -----
    A linear program with k m + 2 n m variables for C of shape n x k and D of shape n x m: 2 s at
    n = k = m = 40. Channels with many outputs are best reduced first.

    Source: Jurado et al. 2023, Theorem 4; the module.

    Examples
    --------
    More noise is safer; less is not.

    >>> little, much = [[0.9, 0.1], [0.1, 0.9]], [[0.7, 0.3], [0.3, 0.7]]
    >>> refinement(little, much).holds
    True
    >>> found = refinement(much, little)
    >>> found.holds, round(found.margin, 6)
    (False, 0.2)
    """
    limit = require_positive("tolerance", tolerance)
    one, other = (channel.to_float() for channel in _with_same_inputs(first, second))
    matrix, target = one.to_dense(), other.to_dense()
    witness, gains = _closest(matrix, target)
    distance = float(np.abs(matrix @ witness - target).sum(axis=1).max())
    if distance <= limit:
        return Refinement(holds=True, distance=distance)
    gain = matrix_gain((gains.T + 1.0) / 2.0)
    worth_one, worth_other = (posterior_vulnerability(None, each, gain) for each in (one, other))
    margin = float(worth_other - worth_one)
    # Both vulnerabilities are at most 1, and sums of at most so many terms.
    round_off = 4.0 * (one.num_inputs + one.num_outputs + other.num_outputs + 50) * 2.0**-53
    if margin > round_off:
        return Refinement(holds=False, separating_gain=gain, margin=margin)
    raise PrecisionError(
        f"refinement is open: the closest post-processing found is {distance:.3g} away, above "
        f"tolerance = {limit:.3g}, and the gain function found separates by {margin:.3g}, within "
        "round-off: give a larger tolerance"
    )


def is_equivalent(
    first: Channel | ArrayLike, second: Channel | ArrayLike, *, tolerance: float = 1e-9
) -> bool:
    """Decide whether two channels leak the same for all priors and gain functions.

    Parameters, errors and cost are those of `refinement`.

    Returns
    -------
    bool
        Exact channels: exactly, because they are equivalent if and only if their reduced matrices
        have the same columns. Floats: whether their reduced matrices agree up to the order of
        columns, or else each is refined by the other, within the tolerance.

    Notes
    -----
    Source: McIver et al. 2014 (refinement is antisymmetric on reduced channels).

    Examples
    --------
    >>> is_equivalent([[0.5, 0.5], [0.5, 0.5]], [[1.0], [1.0]])
    True
    """
    limit = require_positive("tolerance", tolerance)
    one, other = _with_same_inputs(first, second)
    if one.is_exact and other.is_exact:
        return _sorted_columns(one.reduce()) == _sorted_columns(other.reduce())
    one, other = one.to_float(), other.to_float()
    ours, theirs = (_sorted_columns(channel.reduce()) for channel in (one, other))
    if len(ours) == len(theirs) and np.allclose(ours, theirs, rtol=0.0, atol=_SAME):
        return True
    return (
        refinement(one, other, tolerance=limit).holds
        and refinement(other, one, tolerance=limit).holds
    )


def _with_same_inputs(
    first: Channel | ArrayLike, second: Channel | ArrayLike
) -> tuple[Channel, Channel]:
    """Return both as channels, refusing those that are about different secrets."""
    one, other = as_channel(first), as_channel(second)
    if one.num_inputs != other.num_inputs:
        raise ParameterError(
            f"the channels have {one.num_inputs} and {other.num_inputs} inputs: only channels with "
            "the same secrets can be compared"
        )
    return one, other


def _sorted_columns(channel: Channel) -> list[Any]:
    """Return the columns in a canonical order."""
    matrix = channel.matrix if channel.is_exact else channel.to_dense()
    return sorted(matrix.T.tolist())


def _closest(
    first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return W, with rows of sum one, and G of the program, not to be trusted unchecked."""
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
    gains = np.clip(found.eqlin.marginals[:cells], -1.0, 1.0).reshape(num_inputs, num_last)
    return witness / witness.sum(axis=1, keepdims=True), gains


def _polished(
    constraints: "csr_array", targets: NDArray[np.float64], entries: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return W after steps that take the solver's own tolerance out of it.

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
