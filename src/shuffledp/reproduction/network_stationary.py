"""Guarantees of an exchange through a network after endless rounds: ours, and as published."""

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.network.hiding import ReportingProtocol
from shuffledp.network.privacy.network_published import (
    published_all_epsilon,
    published_single_epsilon,
)
from shuffledp.network.privacy.network_walk import network_walk_epsilon


def law_with_irregularity(num_users: int, irregularity: float) -> NDArray[np.float64]:
    """Return a law of holders of a given irregularity Gamma = n sum_j law_j^2.

    Parameters
    ----------
    num_users : int
        n, >= 1.
    irregularity : float
        Gamma, in [1, n]; reached up to the rounding of n / Gamma to a whole number.

    Returns
    -------
    ndarray of float64, shape (n,)
        n / Gamma users hold all reports, each as often as the others.

    Raises
    ------
    ParameterError
        If Gamma is not in [1, n].

    Examples
    --------
    >>> law_with_irregularity(4, 2.0).tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    if not 1.0 <= irregularity <= num_users:
        raise ParameterError(f"irregularity = {irregularity} is not in [1, n = {num_users}]")
    holders = round(num_users / irregularity)
    law = np.zeros(num_users)
    law[:holders] = 1.0 / holders
    return law


def stationary_epsilon(
    profile: LocalProfile,
    law: NDArray[np.float64],
    *,
    delta: float,
    protocol: ReportingProtocol,
) -> float:
    """Return our epsilon where all reports have the same law of their holder; errs upwards.

    Parameters
    ----------
    profile : LocalProfile
        The randomizer's law.
    law : ndarray of float64, shape (n,)
        Law of each report's holder.
    delta : float
        Central failure probability, in (0, 1).
    protocol : {"all", "single"}
        Which reports holders hand in. For "all" it is that of a uniform shuffle, whatever the law.
    """
    return network_walk_epsilon(
        profile,
        overlaps=np.ones(law.size - 1),
        delta=delta,
        protocol=protocol,
        position_law=np.minimum(np.nextafter(law, 1.0), 1.0) if protocol == "single" else None,
        with_lower=False,
    ).upper


def printed_epsilon(
    profile: LocalProfile,
    num_users: int,
    collision: float,
    *,
    delta: float,
    protocol: ReportingProtocol,
) -> float:
    """Return the formulas of Liew et al. as printed: a bound at stationarity, and else a drawing.

    Parameters
    ----------
    profile : LocalProfile
        Of a pure epsilon0-LDP randomizer.
    num_users : int
        n.
    collision : float
        S = sum_j law_j^2, in (0, 1]. After finitely many rounds the paper puts equation (7) here.
    delta : float
        Central failure probability in all, in (0, 1).
    protocol : {"all", "single"}
        Theorem 5.3, or 5.5, which needs dummies that look like reports.

    Returns
    -------
    float
        May exceed epsilon0.
    """
    if protocol == "all":
        return published_all_epsilon(
            profile.epsilon0,
            num_users=num_users,
            collision=collision,
            delta=delta,
            is_exchangeable=True,
            constant="printed",
        ).upper
    return published_single_epsilon(
        profile.epsilon0,
        collision=collision,
        delta=delta,
        dummies_are_reports=True,
        constant="printed",
    ).upper
