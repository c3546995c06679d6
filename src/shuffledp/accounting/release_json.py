"""Releases as JSON values and back, so that a ledger can be kept in a file.

What was released is kept, not what it cost: a later version, with a sharper analysis, may find that
it cost less. Floats keep every bit.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from shuffledp.accounting.composed import Composable, Composition, Release
from shuffledp.accounting.release import ShuffledRelease, StatedRelease
from shuffledp.core.checks import require_finite
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

# Channels with more entries would make a ledger unwieldy.
_MOST_ENTRIES = 10_000

_PROFILE_KEYS = ("epsilon0", "delta0", "family", "domain_size", "blanket", "attack", "channel")
_SHUFFLED_KEYS = ("kind", "count", "num_users", "sampled_from", "participation", "profile")
_STATED_KEYS = ("kind", "count", "epsilon", "delta")


@dataclass(frozen=True, slots=True)
class StoredChannel:
    """A channel matrix that was written out: rows inputs, columns outputs, exact fractions."""

    rows: tuple[tuple[Fraction, ...], ...]

    def __call__(self) -> tuple[tuple[Fraction, ...], ...]:
        """Return the rows."""
        return self.rows


def storable(releases: Composable) -> Composition:
    """Return the same releases, in a form that can be written out and compares by value."""
    return Composition((_storable(release), times) for release, times in releases.parts)


def _storable(release: Release) -> Release:
    """Return one release whose channel, if the accountant looks at it, is a matrix."""
    if not isinstance(release, ShuffledRelease):
        return release
    channel = release.law.channel
    if release.law.family is not RandomizerFamily.OTHER or channel is None:
        return replace(
            release, epsilon0=None, profile=replace(release.law, channel=None)
        )  # a family's channel follows from its name
    if isinstance(channel, StoredChannel):
        return release
    matrix: Any = channel()
    rows = tuple(tuple(Fraction(entry) for entry in row) for row in matrix)
    if (entries := sum(len(row) for row in rows)) > _MOST_ENTRIES:
        raise ParameterError(
            f"a channel of {entries} entries is above {_MOST_ENTRIES}: state the release's "
            "guarantee instead, StatedRelease(epsilon=..., delta=...)"
        )
    return replace(
        release, epsilon0=None, profile=replace(release.law, channel=StoredChannel(rows))
    )


def releases_to_json(releases: Composable) -> list[dict[str, Any]]:
    """Return releases as a list of JSON objects, one a kind."""
    written = []
    for release, times in storable(releases).parts:
        if isinstance(release, StatedRelease):
            written.append(
                {
                    "kind": "stated",
                    "count": times,
                    "epsilon": release.stated_epsilon,
                    "delta": release.stated_delta,
                }
            )
        elif isinstance(release, ShuffledRelease):
            written.append(_shuffled_to_json(release, times))
        else:
            raise ParameterError(
                f"{release!r} cannot be written: give ShuffledRelease or StatedRelease"
            )
    return written


def _shuffled_to_json(release: ShuffledRelease, times: int) -> dict[str, Any]:
    return {
        "kind": "shuffled",
        "count": times,
        "num_users": release.num_users,
        "sampled_from": release.sampled_from,
        "participation": release.participation,
        "profile": _profile_to_json(release.law),
    }


def _profile_to_json(profile: LocalProfile) -> dict[str, Any]:
    """Return a profile; what is left out has its default."""
    written: dict[str, Any] = {"epsilon0": profile.epsilon0}
    if profile.delta0 > 0.0:
        written["delta0"] = profile.delta0
    if profile.family is not RandomizerFamily.ANY:
        written["family"] = profile.family.value
    if profile.domain_size is not None:
        written["domain_size"] = profile.domain_size
    for name in ("blanket", "attack"):
        atoms = getattr(profile, name)
        if atoms:
            written[name] = [[atom.mass, atom.ratio0, atom.ratio1] for atom in atoms]
    if isinstance(profile.channel, StoredChannel):
        written["channel"] = [[str(entry) for entry in row] for row in profile.channel.rows]
    return written


def releases_from_json(written: object) -> Composition:
    """Read what `releases_to_json` returned."""
    if not isinstance(written, list):
        raise ParameterError(f"releases must be a list, not {type(written).__name__}")
    return Composition(_release_from_json(each) for each in written)


def _release_from_json(written: object) -> tuple[Release, int]:
    kind = written.get("kind") if isinstance(written, Mapping) else None
    if kind == "stated":
        fields = fields_of(written, _STATED_KEYS)
        release: Release = StatedRelease(
            epsilon=number(fields, "epsilon"), delta=number(fields, "delta")
        )
    elif kind == "shuffled":
        fields = fields_of(written, _SHUFFLED_KEYS)
        sampled_from = fields.get("sampled_from")
        release = ShuffledRelease(
            num_users=whole(fields, "num_users"),
            profile=_profile_from_json(fields.get("profile")),
            sampled_from=None if sampled_from is None else whole(fields, "sampled_from"),
            participation=number(fields, "participation"),
        )
    else:
        raise ParameterError(f"kind = {kind!r} is not one of 'shuffled', 'stated'")
    return release, whole(fields, "count")


def _profile_from_json(written: object) -> LocalProfile:
    fields = fields_of(written, _PROFILE_KEYS)
    size = fields.get("domain_size")
    channel = fields.get("channel")
    return LocalProfile(
        epsilon0=number(fields, "epsilon0"),
        delta0=number(fields, "delta0") if "delta0" in fields else 0.0,
        family=fields.get("family", RandomizerFamily.ANY),
        domain_size=None if size is None else whole(fields, "domain_size"),
        blanket=_atoms(fields.get("blanket", ()), "blanket"),
        attack=_atoms(fields.get("attack", ()), "attack"),
        channel=None if channel is None else _channel(channel),
    )


def _atoms(written: object, name: str) -> tuple[BlanketAtom, ...]:
    try:
        listed = [[float(entry) for entry in atom] for atom in written]  # type: ignore[attr-defined]
        atoms = tuple(BlanketAtom(mass=m, ratio0=r0, ratio1=r1) for m, r0, r1 in listed)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is no list of [mass, ratio0, ratio1]") from None
    if not all(math.isfinite(entry) for atom in listed for entry in atom):
        raise ParameterError(f"{name} has a number that is not finite")
    return atoms


def _channel(written: object) -> StoredChannel:
    try:
        rows = tuple(tuple(Fraction(entry) for entry in row) for row in written)  # type: ignore[attr-defined]
    except (TypeError, ValueError, ZeroDivisionError):
        raise ParameterError("channel is no list of rows of fractions") from None
    return StoredChannel(rows)


def fields_of(written: object, allowed: tuple[str, ...]) -> Mapping[str, Any]:
    """Return a JSON object whose keys are all known; else raise `ParameterError`."""
    if not isinstance(written, Mapping):
        raise ParameterError(f"{written!r:.40} is no object with {', '.join(allowed)}")
    unknown = sorted(set(written) - set(allowed))
    if unknown:
        raise ParameterError(f"{unknown[0]!r} is not one of {', '.join(allowed)}")
    return written


def number(fields: Mapping[str, Any], name: str) -> float:
    """Return a finite number of a JSON object; else raise `ParameterError`."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterError(f"{name} = {value!r} is not a number")
    return require_finite(name, value)


def whole(fields: Mapping[str, Any], name: str) -> int:
    """Return a whole number of a JSON object; else raise `ParameterError`."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ParameterError(f"{name} = {value!r} is not a whole number")
    return value
