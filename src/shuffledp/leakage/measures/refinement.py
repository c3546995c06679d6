"""Refinement: whether one channel is at least as secure as another, for all priors and gains.

C is refined by D if no prior and no gain function has a larger posterior vulnerability against D
than against C. That holds exactly if D is C followed by some channel W (the data-processing
inequality and its converse, the Coriaceous theorem). One linear program gives either W or a gain
function that separates them under the uniform prior; see `refinement_program`. Neither is believed
before it has been checked here, apart from the solver.

Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
Quantitative Information Flow", CSF 2023, hal-04349295v1, Theorem 4; McIver, Morgan, Smith,
Espinoza, Meinicke, "Abstract Channels and Their Robust Information-Leakage Ordering", POST 2014.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.core.checks import require_positive
from shuffledp.core.errors import ParameterError, PrecisionError
from shuffledp.leakage.channels.channel import Channel, as_channel
from shuffledp.leakage.channels.rationals import to_fractions
from shuffledp.leakage.measures.exact_witness import exact_witness
from shuffledp.leakage.measures.gains import GainFunction, matrix_gain
from shuffledp.leakage.measures.refinement_program import (
    Factorization,
    closest_factorization,
)
from shuffledp.leakage.measures.vulnerability import posterior_vulnerability
from shuffledp.leakage.priors import uniform_prior

# Gains of an exact separation, which lie in [0, 1], are rounded to multiples of this: a change that
# small cannot close a margin that is worth reporting, and keeps the fractions short.
_GAIN_UNIT = 2**40

# Reduced matrices whose sorted columns agree to this are the same.
_SAME = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refinement:
    """Whether C is refined by D, with the evidence.

    Attributes
    ----------
    holds : bool
        Whether D is at least as secure as C. Also the truth value of this object.
    is_exact : bool
        Whether that is proved in fractions. Otherwise a refinement holds within ``distance``, and a
        separation by ``margin`` is certain up to a round-off of about 1e-13.
    witness : Channel or None
        If it holds: W with C W = D.
    distance : float or Fraction
        If it holds: the largest sum of abs(D - C W) over a row, at most the tolerance; 0 if exact.
        Gains in [0, 1] give D at most half of it more than C. Otherwise infinite.
    separating_gain : GainFunction or None
        If it does not hold: a gain in [0, 1] against which D is more vulnerable than C.
    prior : array or None
        The prior for which it is: the uniform law.
    margin : float or Fraction
        By how much; 0 if the refinement holds.
    """

    holds: bool
    is_exact: bool
    witness: Channel | None = None
    distance: float | Fraction = float("inf")
    separating_gain: GainFunction | None = None
    prior: NDArray[Any] | None = None
    margin: float | Fraction = 0.0

    def __bool__(self) -> bool:
        return self.holds


def refinement(
    first: Channel | ArrayLike, second: Channel | ArrayLike, *, tolerance: float = 1e-9
) -> Refinement:
    """Decide whether ``first`` is refined by ``second``: whether the second leaks no more.

    Parameters
    ----------
    first, second : Channel or array_like
        C and D, with the same number of inputs.
    tolerance : float
        How far the rows of C W may be from those of D, in the sum of absolute differences, for the
        refinement to hold.

    Returns
    -------
    Refinement
        With W, or a prior and a gain function that show the contrary. Where both channels are exact
        the answer is proved in fractions if the system is small enough (see ``is_exact``).

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
    >>> found = refinement(little, much)
    >>> found.holds, found.witness.matrix.round(6).tolist()
    (True, [[0.75, 0.25], [0.25, 0.75]])
    >>> found = refinement(much, little)
    >>> found.holds, round(found.margin, 6)
    (False, 0.2)
    """
    limit = require_positive("tolerance", tolerance)
    one, other = _with_same_inputs(first, second)
    found = closest_factorization(one.to_dense(), other.to_dense())
    if one.is_exact and other.is_exact:
        proved = _proved(one, other, found)
        if proved is not None:
            return proved
    return _within_tolerance(one.to_float(), other.to_float(), found, limit)


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


def _proved(one: Channel, other: Channel, found: Factorization) -> Refinement | None:
    """Return the answer with evidence in fractions, or None where the system is too large."""
    witness = exact_witness(one.matrix, other.matrix, found.witness)
    if witness is not None:
        return Refinement(
            holds=True,
            is_exact=True,
            witness=Channel.from_matrix(witness, inputs=one.outputs, outputs=other.outputs),
            distance=Fraction(0),
        )
    rounded = np.rint((found.gain.T + 1.0) / 2.0 * _GAIN_UNIT) / _GAIN_UNIT
    separated = _separated(one, other, matrix_gain(to_fractions(rounded)))
    return separated if separated.margin > 0 else None


def _separated(one: Channel, other: Channel, gain: GainFunction) -> Refinement:
    """Return what a gain function says under the uniform prior."""
    prior = uniform_prior(one.num_inputs, exact=one.is_exact)
    worth_one = posterior_vulnerability(prior, one, gain)
    worth_other = posterior_vulnerability(prior, other, gain)
    return Refinement(
        holds=False,
        is_exact=one.is_exact,
        separating_gain=gain,
        prior=prior,
        margin=worth_other - worth_one,
    )


def _within_tolerance(
    one: Channel, other: Channel, found: Factorization, tolerance: float
) -> Refinement:
    """Return the answer in floating point, after checking its evidence."""
    witness = Channel.from_matrix(found.witness, inputs=one.outputs, outputs=other.outputs)
    reached = (one.to_dense() @ found.witness) - other.to_dense()
    distance = float(np.abs(reached).sum(axis=1).max())
    if distance <= tolerance:
        return Refinement(holds=True, is_exact=False, witness=witness, distance=distance)
    separated = _separated(one, other, matrix_gain((found.gain.T + 1.0) / 2.0))
    # Both vulnerabilities are at most 1, and sums of at most so many terms.
    round_off = 4.0 * (one.num_inputs + one.num_outputs + other.num_outputs + 50) * 2.0**-53
    if separated.margin > round_off:
        return separated
    raise PrecisionError(
        f"refinement is open: the closest post-processing found is {distance:.3g} away, above "
        f"tolerance = {tolerance:.3g}, and the gain function found separates by "
        f"{float(separated.margin):.3g}, within round-off: give exact fractions, or a larger "
        "tolerance"
    )
