"""From the mean of a report along its input to the scale and the variance of an estimate."""

import math

from shuffledp.core.checks import require_non_negative
from shuffledp.core.errors import ParameterError


def decoding_scale(mean_along: float, norm_bound: float) -> tuple[float, float]:
    """Return the offset 0 and the factor that makes a report unbiased.

    Parameters
    ----------
    mean_along : float
        m: mean of the report along the unit vector that stands for the value.
    norm_bound : float
        Radius of the ball.

    Raises
    ------
    ParameterError
        If m = 0: the reports say nothing.

    Examples
    --------
    >>> decoding_scale(0.25, 2.0)
    (0.0, 8.0)
    """
    if mean_along == 0.0:
        raise ParameterError(
            "epsilon0 = 0: reports do not depend on the values, so there is nothing to estimate; "
            "give epsilon0 >= 1e-9"
        )
    return 0.0, norm_bound / mean_along


def decoded_variance(
    norm: float, *, mean_along: float, mean_square: float, norm_bound: float, dimension: int
) -> float:
    """Return the variance of a decoded report, as the mean over its coordinates.

    Parameters
    ----------
    norm : float
        Euclidean norm of the user's value, in [0, norm_bound].
    mean_along : float
        m; see `decoding_scale`.
    mean_square : float
        E[norm(V)^2] of a report V.
    norm_bound : float
        Radius of the ball.
    dimension : int
        d.

    Returns
    -------
    float
        (norm_bound^2 E[norm(V)^2] / m^2 - norm^2) / d, rounded to nearest; infinite for m = 0.

    Raises
    ------
    ParameterError
        If ``norm`` is out of range.

    Notes
    -----
    The value's point on the sphere is random too, and that is counted: E[norm(V)^2] is the same for
    each point, so the mean squared length of the decoded report is norm_bound^2 E[norm(V)^2] / m^2
    whatever the value, and the squared length of its mean is norm^2.

    Examples
    --------
    >>> decoded_variance(1.0, mean_along=0.5, mean_square=1.0, norm_bound=1.0, dimension=3)
    1.0
    """
    length = require_non_negative("value", norm)
    if length > norm_bound * (1.0 + 1e-9):
        raise ParameterError(
            f"value = {norm} is not in [0, norm_bound = {norm_bound}]: it is the norm of a vector"
        )
    if mean_along == 0.0:
        return math.inf
    # At full length the difference cancels: norms and means are both close to 1 at large epsilon0.
    ratio = min(length / norm_bound, 1.0)
    excess = (mean_square - 1.0) + (1.0 - ratio * mean_along) * (1.0 + ratio * mean_along)
    scale = norm_bound / mean_along
    return scale * scale * excess / dimension
