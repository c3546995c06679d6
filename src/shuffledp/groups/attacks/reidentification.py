"""The re-identification game: to find the rows of the release that came from a given few people.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, section 4.1 and Theorem 4.2. For a set I of k people, inside one group, the
adversary looks at the release and names k rows H. The adversary wins if more than k/2 of the
values in these rows came from I.
"""

from dataclasses import dataclass
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least, require_open_unit
from shuffledp.core.errors import ParameterError
from shuffledp.groups.attacks.rows import require_codes_below


@dataclass(frozen=True, slots=True, kw_only=True)
class WinRate:
    """How often an adversary won, with exact limits for the probability.

    Parameters
    ----------
    num_wins, num_plays : int
        Games won, and games played.
    lower, upper : float
        Clopper-Pearson limits, in [0, 1].
    confidence : float
        With at least this probability both limits hold.
    """

    num_wins: int
    num_plays: int
    lower: float
    upper: float
    confidence: float

    @property
    def rate(self) -> float:
        """Share of the games that was won."""
        return self.num_wins / self.num_plays


def wins_game(
    origins: NDArray[np.integer[Any]],
    rows: NDArray[np.integer[Any]],
    subset: NDArray[np.integer[Any]],
) -> bool:
    """Tell whether more than half of the values in the named rows came from the subset.

    Parameters
    ----------
    origins : ndarray of integers, shape (n,)
        The person whose value lies in each row: sigma* with z[i] = y[sigma*[i]].
    rows : ndarray of integers, shape (k,)
        H, the rows that the adversary names; distinct.
    subset : ndarray of integers, shape (k,)
        I, the people that are looked for; distinct.

    Returns
    -------
    bool
        Whether the adversary wins.

    Raises
    ------
    ParameterError
        If ``rows`` and ``subset`` are not as many, or name somebody twice.

    Examples
    --------
    >>> wins_game(np.array([1, 0, 2]), np.array([0, 2]), np.array([1, 2]))
    True
    """
    people = np.unique(np.asarray(subset))
    named = np.unique(np.asarray(rows))
    size = np.size(subset)
    if not size or people.size != size or named.size != np.size(rows) or named.size != size:
        raise ParameterError(
            f"{np.size(rows)} rows are named for a subset of {size}: give as many distinct rows "
            "as distinct people, at least one"
        )
    return 2 * int(np.isin(np.asarray(origins)[named], people).sum()) > size


def informed_rows(
    released: NDArray[np.integer[Any]],
    *,
    place_probabilities: NDArray[np.float64],
    subset_law: NDArray[np.float64],
    other_law: NDArray[np.float64],
    num_rows: SupportsIndex,
) -> NDArray[np.int64]:
    """Return the rows that most likely came from the subset, by their places and their values.

    Parameters
    ----------
    released : ndarray of integers, shape (n,)
        Values in the rows, in [0, c).
    place_probabilities : ndarray, shape (n,)
        Probability that the value in each row came from the subset, by the law of the shuffle
        alone, in [0, 1].
    subset_law, other_law : ndarray, shape (c,)
        Probability of each value in a report of a member of the subset, and of anybody else; the
        adversary knows the true answers, say.
    num_rows : int
        How many rows to name, in [1, n].

    Returns
    -------
    ndarray of int64, shape (num_rows,)
        The rows with the largest posterior odds, ascending; of equal ones the first.

    Raises
    ------
    ParameterError
        If shapes or numbers do not fit together.

    Notes
    -----
    Rows are judged one by one, by Bayes' rule, as if where one value lies said nothing about
    another: a natural attack, not the best possible one. Theorem 4.2 bounds all of them.

    Examples
    --------
    >>> informed_rows(
    ...     np.array([0, 1, 1]), place_probabilities=np.array([0.5, 0.5, 0.0]),
    ...     subset_law=np.array([0.1, 0.9]), other_law=np.array([0.9, 0.1]), num_rows=1,
    ... )
    array([1])
    """
    first, second = (np.asarray(law, dtype=np.float64) for law in (subset_law, other_law))
    places = np.asarray(place_probabilities, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape or not first.size:
        raise ParameterError(
            f"subset_law and other_law have shapes {first.shape} and {second.shape}: give one "
            "probability a value in each"
        )
    if not all(((law >= 0.0) & (law <= 1.0)).all() for law in (first, second, places)):
        raise ParameterError("probabilities must lie in [0, 1]")
    codes = require_codes_below("released", released, first.size)
    if places.shape != codes.shape:
        raise ParameterError(
            f"place_probabilities has shape {places.shape}: give one for each of the "
            f"{codes.size} rows"
        )
    count = require_at_least("num_rows", num_rows, 1)
    if count > codes.size:
        raise ParameterError(f"num_rows = {count} is above the {codes.size} rows that there are")
    inside = places * first[codes]
    total = inside + (1.0 - places) * second[codes]
    posterior = np.divide(inside, total, out=np.zeros_like(total), where=total > 0.0)
    best = np.argsort(-posterior, kind="stable")[:count]
    return np.sort(best).astype(np.int64)


def win_rate(
    num_wins: SupportsIndex, num_plays: SupportsIndex, *, confidence: SupportsFloat = 0.95
) -> WinRate:
    """Return how often the adversary won, with Clopper-Pearson limits.

    Parameters
    ----------
    num_wins : int
        Games won, in [0, num_plays].
    num_plays : int
        Independent games played, >= 1.
    confidence : float
        In (0, 1).

    Returns
    -------
    WinRate
        Limits within which the probability lies with at least that confidence.

    Raises
    ------
    ParameterError
        If a number is out of range.

    Notes
    -----
    Source: Clopper, Pearson, "The use of confidence or fiducial limits illustrated in the case of
    the binomial", Biometrika 26, 1934. Each limit errs outwards, but for the rounding of the
    inverse beta function.

    Examples
    --------
    >>> found = win_rate(0, 10)
    >>> found.lower, round(found.upper, 6) == round(1 - 0.025 ** 0.1, 6)
    (0.0, True)
    """
    from scipy.special import betainccinv, betaincinv

    plays = require_at_least("num_plays", num_plays, 1)
    wins = require_at_least("num_wins", num_wins, 0)
    if wins > plays:
        raise ParameterError(f"num_wins = {wins} is above num_plays = {plays}")
    level = require_open_unit("confidence", confidence)
    tail = (1.0 - level) / 2.0
    lost = plays - wins
    return WinRate(
        num_wins=wins,
        num_plays=plays,
        lower=float(betaincinv(wins, lost + 1.0, tail)) if wins else 0.0,
        upper=float(betainccinv(wins + 1.0, lost, tail)) if lost else 1.0,
        confidence=level,
    )
