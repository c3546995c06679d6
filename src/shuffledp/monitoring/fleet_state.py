"""The memory of a fleet: what `ClientState` holds for one client, as arrays sorted by level."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import DataError, FingerprintError
from shuffledp.monitoring.design import MonitorDesign

_COUNTERS: Final = ("num_changes", "num_increments", "num_ignored")
_CODES: Final = ("told", "value", "before", "after")


@dataclass(slots=True, kw_only=True, eq=False)
class FleetState:
    """Mutable arrays; a slot is a client's place, and the slots of a level are neighbours.

    Parameters
    ----------
    design : MonitorDesign
        The collection.
    slots : ndarray of int32, shape (n,)
        The slot of each user.
    level_sizes : ndarray of int64, shape (num_levels,)
        How many clients report at each level.
    keys : ndarray of uint64, shape (n,)
        By slot, like all that follow; see `ClientState`.
    num_changes, num_increments, num_ignored : ndarray of int32, shape (n,)
        Counters.
    told, value, before, after : ndarray of int8, int32 or int64, shape (n,)
        Codes of values. With pre-drawn signs, ``after`` is the same array as ``value``.

    Attributes
    ----------
    ends : list of int
        Where the slots of each level end.
    """

    design: MonitorDesign
    slots: NDArray[np.int32]
    level_sizes: NDArray[np.int64]
    keys: NDArray[np.uint64]
    num_changes: NDArray[np.int32]
    num_increments: NDArray[np.int32]
    num_ignored: NDArray[np.int32]
    told: NDArray[Any]
    value: NDArray[Any]
    before: NDArray[Any]
    after: NDArray[Any]
    ends: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.ends = np.cumsum(self.level_sizes).tolist()
        if self.design.law.kind == "predrawn":
            self.after = self.value

    @classmethod
    def fresh(
        cls, design: MonitorDesign, levels: NDArray[np.uint64], keys: NDArray[np.uint64]
    ) -> Self:
        """Return the state of clients that have been told nothing yet.

        Parameters
        ----------
        design : MonitorDesign
            The collection.
        levels : ndarray of uint64, shape (n,)
            The level of each user, from 1.
        keys : ndarray of uint64, shape (n,)
            The key of each user.
        """
        num_users = levels.size
        order = np.argsort(levels, kind="stable")
        codes = np.full(num_users, design.encoding.nothing, dtype=_code_type(design))
        return cls(
            design=design,
            slots=_inverse(order),
            level_sizes=np.bincount(levels.astype(np.int64) - 1, minlength=design.num_levels),
            keys=keys[order],
            **{name: np.zeros(num_users, dtype=np.int32) for name in _COUNTERS},
            **{name: codes.copy() for name in _CODES},
        )

    @property
    def num_users(self) -> int:
        """Number of users."""
        return int(self.slots.size)

    def slots_of_level(self, level: int) -> slice:
        """Return the slots of the clients that report at a level."""
        return slice(self.ends[level - 2] if level > 1 else 0, self.ends[level - 1])

    def levels(self) -> NDArray[np.uint8]:
        """Return the level of each user."""
        sorted_levels = np.arange(1, self.level_sizes.size + 1, dtype=np.uint8)
        by_user: NDArray[np.uint8] = np.repeat(sorted_levels, self.level_sizes)[self.slots]
        return by_user

    def joined_by(self, other: "FleetState") -> "FleetState":
        """Return the state of these users and, after them, those of another of the same design."""
        levels = np.concatenate([self.levels(), other.levels()])
        order = np.argsort(levels, kind="stable")
        by_user = {
            name: np.concatenate([getattr(part, name)[part.slots] for part in (self, other)])
            for name in ("keys", *_COUNTERS, *_CODES)
        }
        return FleetState(
            design=self.design,
            slots=_inverse(order),
            level_sizes=self.level_sizes + other.level_sizes,
            **{name: array[order] for name, array in by_user.items()},
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays, and the name of the design."""
        names = ["slots", "level_sizes", "keys", *_COUNTERS, *_code_names(self.design)]
        arrays = {name: np.copy(getattr(self, name)) for name in names}
        return {"design": _digest(self.design), **arrays}

    @classmethod
    def from_arrays(cls, design: MonitorDesign, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the state that `to_arrays` wrote, from copies of the arrays.

        Raises
        ------
        DataError
            If an array is missing or is not what such a state holds.
        FingerprintError
            If it is the state of another design.
        """
        digest = required(arrays, "design")
        if not np.array_equal(digest, _digest(design)):
            raise FingerprintError(
                "arrays are the state of a fleet of another design: give the periods, "
                "max_changes, epsilon0, protocol and encoding that the fleet began with"
            )
        num_users = required(arrays, "slots").size
        kept: dict[str, NDArray[Any]] = {}
        for name, (dtype, low, high) in _layout(design, num_users).items():
            array = required(arrays, name)
            size = design.num_levels if name == "level_sizes" else num_users
            if array.dtype != dtype or array.shape != (size,):
                raise DataError(
                    f"arrays[{name!r}] has dtype {array.dtype} and shape {array.shape}, not "
                    f"{dtype} and {(size,)}: it is damaged; restore an earlier copy"
                )
            if size and not low <= int(array.min()) <= int(array.max()) <= high:
                raise DataError(
                    f"arrays[{name!r}] is not within [{low}, {high}]: it is damaged; restore an "
                    "earlier copy"
                )
            kept[name] = array.copy()
        _require_places(kept["slots"], kept["level_sizes"])
        kept.setdefault("after", kept["value"])
        return cls(design=design, **kept)


def required(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """Return an array of that name, or raise `DataError`."""
    if name not in arrays:
        raise DataError(
            f"arrays has no {name!r}: give all that state_arrays() returned, or restore an earlier "
            "copy"
        )
    return np.asarray(arrays[name])


def _code_names(design: MonitorDesign) -> tuple[str, ...]:
    """Return which arrays of codes there are: ``after`` only where it is not ``value``."""
    return _CODES[:-1] if design.law.kind == "predrawn" else _CODES


def _code_type(design: MonitorDesign) -> np.dtype[Any]:
    """Return the narrowest signed type that holds -1 and all codes."""
    return np.min_scalar_type(-design.encoding.largest_code - 1)


def _layout(design: MonitorDesign, num_users: int) -> dict[str, tuple[np.dtype[Any], int, int]]:
    """Return type, least and largest value of each array."""
    is_predrawn = design.law.kind == "predrawn"
    k, int32 = design.max_changes, np.dtype(np.int32)
    code = (_code_type(design), design.encoding.nothing, design.encoding.largest_code)
    return {
        "slots": (int32, 0, num_users - 1),
        "level_sizes": (np.dtype(np.int64), 0, num_users),
        "keys": (np.dtype(np.uint64), int(not is_predrawn), 2**k - 1 if is_predrawn else k),
        "num_changes": (int32, 0, k),
        "num_increments": (int32, 0, k),
        "num_ignored": (int32, 0, design.periods),
        **dict.fromkeys(_code_names(design), code),
    }


def _require_places(slots: NDArray[np.int32], level_sizes: NDArray[np.int64]) -> None:
    """Raise unless every slot has one user, and the levels have all slots."""
    once = np.zeros(slots.size, dtype=np.bool_)
    once[slots] = True
    if not once.all() or int(level_sizes.sum()) != slots.size:
        raise DataError(
            "arrays['slots'] and arrays['level_sizes'] do not give each user a place: they are "
            "damaged; restore an earlier copy"
        )


def _inverse(order: NDArray[np.intp]) -> NDArray[np.int32]:
    """Return where each user is in an order."""
    slots = np.empty(order.size, dtype=np.int32)
    slots[order] = np.arange(order.size, dtype=np.int32)
    return slots


def _digest(design: MonitorDesign) -> NDArray[np.uint8]:
    """Return the fingerprint of a design as an array of its 8 bytes."""
    return np.frombuffer(bytes.fromhex(design.fingerprint()), dtype=np.uint8)
