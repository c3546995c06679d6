"""What simulated attacks and models are given: a survey, and arrangements of its reports.

The adversary and the analyst of Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of
Shuffling", ICLR 2022, arXiv:2106.06603v3, see the same releases.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.shuffling import Shuffler
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.groups.formation.groups import Groups
from shuffledp.groups.formation.points import EARTH_RADIUS
from shuffledp.randomizers.categories.k_randomized_response import KRandomizedResponse

RAW, WITHIN_GROUPS, UNIFORM = "raw", "within groups", "uniform"
"""Names of the three arrangements that are usually compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedArrangement:
    """How the local reports are arranged before anybody sees them.

    Parameters
    ----------
    name : str
        As results call it.
    shuffler : Shuffler, optional
        None leaves each report in its owner's place.
    alpha : float
        The d_sigma-privacy of the order for the groups that `play_reidentification` is given,
        in [0, inf]; 0 stands for a uniform shuffle of everybody.
    """

    name: str
    shuffler: Shuffler | None = None
    alpha: float = math.inf

    def arranged(self, reports: NDArray[Any], entropy: Entropy) -> NDArray[Any]:
        """Return the reports as they are released."""
        return reports if self.shuffler is None else self.shuffler.shuffle(reports, entropy)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttackedSurvey:
    """A survey whose collection is simulated, and what the adversary knows about people.

    Parameters
    ----------
    codes : ndarray of integers, shape (n,)
        True answers, in [0, k).
    randomizer : KRandomizedResponse
        What each person runs; k is the number of answers.
    neighbourhoods : Groups
        Everybody within the attack's radius of each person.
    privileged : ndarray, shape (n,) or (n, p), optional
        Further data that the adversary has; see `choose_neighbours`.
    is_category : ndarray of bool, shape (p,), optional
        Which columns of ``privileged`` hold codes of categories.
    public : ndarray, shape (n,) or (n, d), optional
        Public values, for attacks and models that use them directly.

    Raises
    ------
    ParameterError
        If there is not one row a person, or no person at all.
    DataError
        If somebody is in no neighbourhood.
    """

    codes: NDArray[Any]
    randomizer: KRandomizedResponse
    neighbourhoods: Groups
    privileged: NDArray[Any] | None = None
    is_category: NDArray[np.bool_] | None = None
    public: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes)
        if codes.ndim != 1 or codes.dtype.kind not in "iu" or not codes.size:
            raise ParameterError(
                f"codes is an array of {codes.dtype} with shape {codes.shape}: give one whole "
                "number a person, for one person or more"
            )
        for name in ("privileged", "public"):
            table = getattr(self, name)
            if table is not None and len(table) != codes.size:
                raise ParameterError(
                    f"{name} has {len(table)} rows for {codes.size} people: give one a person"
                )
        if self.neighbourhoods.num_users != codes.size:
            raise ParameterError(
                f"neighbourhoods are of {self.neighbourhoods.num_users} people and codes of "
                f"{codes.size}: give both in the order of the same rows"
            )
        if not 0 <= int(codes.min()) <= int(codes.max()) < self.randomizer.k:
            raise ParameterError(
                f"codes go from {codes.min()} to {codes.max()}: with k = {self.randomizer.k} they "
                f"must lie in [0, {self.randomizer.k})"
            )
        object.__setattr__(self, "codes", codes)

    @property
    def num_users(self) -> int:
        """Number of people."""
        return int(self.codes.size)

    @property
    def k(self) -> int:
        """Number of possible answers."""
        return self.randomizer.k

    def reports(self, entropy: Entropy) -> NDArray[Any]:
        """Return fresh local reports, one a person."""
        return self.randomizer.randomize(self.codes, entropy).data

    def require_public(self) -> NDArray[Any]:
        """Return the public values, or raise `ParameterError` if there are none."""
        if self.public is None:
            raise ParameterError(
                "public values are needed, and these groups come without coordinates: name public "
                "columns (--public age,income), or choose another attack"
            )
        return self.public


def own_neighbourhoods(groups: Groups) -> NDArray[np.int64]:
    """Return each person's group: the chosen one, else the largest that holds the person.

    Parameters
    ----------
    groups : Groups
        Groups without choices, such as given sets, may overlap; of equally large ones the last
        counts.

    Returns
    -------
    ndarray of int64, shape (num_users,)
        Indices of groups.

    Raises
    ------
    DataError
        If somebody is in no group.
    """
    if groups.group_of is not None:
        return groups.group_of
    own = np.full(groups.num_users, -1, dtype=np.int64)
    for group in np.argsort(groups.sizes, kind="stable"):
        own[groups.group(group)] = group
    if own.size and int(own.min()) < 0:
        raise DataError(
            f"person {int(np.argmin(own))} is in no group: put everybody into at least one"
        )
    return own


def euclidean_positions(coordinates: NDArray[Any], metric: str) -> NDArray[np.float64]:
    """Return coordinates between which the straight line is the distance, or nearly.

    Parameters
    ----------
    coordinates : ndarray, shape (n, d) or (n,)
        For ``"haversine"`` latitude and longitude in degrees, else as they are.
    metric : {"euclidean", "haversine", "absolute"}
        How the groups measure distance.

    Returns
    -------
    ndarray, shape (n, d) or (n, 3)
        Points on the Earth become points in space, in kilometres: chords differ from ways along
        the surface by less than 0.1 % up to 1,000 km.

    Examples
    --------
    >>> euclidean_positions(np.array([[90.0, 0.0]]), "haversine").round().tolist()
    [[0.0, 0.0, 6371.0]]
    """
    table = np.array(coordinates, dtype=np.float64)
    if metric != "haversine":
        return table
    latitude, longitude = np.radians(table).T
    flat = np.cos(latitude)
    return (
        EARTH_RADIUS
        / 1000.0
        * np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)
    )
