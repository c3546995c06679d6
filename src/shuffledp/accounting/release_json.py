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
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

# Channels with more entries would make a ledger unwieldy.
_MOST_ENTRIES = 10_000


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
    channel: Any = release.law.channel
    if isinstance(channel, StoredChannel):
        return release
    kept = None  # a family's channel follows from its name
    if release.law.family is RandomizerFamily.OTHER and channel is not None:
        kept = StoredChannel(tuple(tuple(map(Fraction, row)) for row in channel()))
        if (entries := sum(map(len, kept.rows))) > _MOST_ENTRIES:
            raise ParameterError(
                f"a channel of {entries} entries is above {_MOST_ENTRIES}: state the release's "
                "guarantee instead, StatedRelease(epsilon=..., delta=...)"
            )
    return replace(release, epsilon0=None, profile=replace(release.law, channel=kept))


def releases_to_json(releases: Composable) -> list[dict[str, Any]]:
    """Return releases as a list of JSON objects, one a kind."""
    return [_release_to_json(release, times) for release, times in storable(releases).parts]


def _release_to_json(release: Release, times: int) -> dict[str, Any]:
    if isinstance(release, StatedRelease):
        stated = {"epsilon": release.stated_epsilon, "delta": release.stated_delta}
        return {"kind": "stated", "count": times, **stated}
    if not isinstance(release, ShuffledRelease):
        raise ParameterError(
            f"{release!r} cannot be written: give ShuffledRelease or StatedRelease"
        )
    drawn = {
        each: getattr(release, each) for each in ("num_users", "sampled_from", "participation")
    }
    return {"kind": "shuffled", "count": times, **drawn, "profile": _profile_to_json(release.law)}


def _profile_to_json(profile: LocalProfile) -> dict[str, Any]:
    """Return a profile; what is left out has its default."""
    written: dict[str, Any] = {"epsilon0": profile.epsilon0}
    if profile.family is not RandomizerFamily.ANY:
        written["family"] = profile.family.value
    for name in ("delta0", "domain_size"):
        if value := getattr(profile, name):
            written[name] = value
    for name in ("blanket", "attack"):
        if atoms := getattr(profile, name):
            written[name] = [[atom.mass, atom.ratio0, atom.ratio1] for atom in atoms]
    if isinstance(profile.channel, StoredChannel):
        written["channel"] = [[str(entry) for entry in row] for row in profile.channel.rows]
    return written


def releases_from_json(written: object) -> Composition:
    """Read what `releases_to_json` returned."""
    if not isinstance(written, list):
        raise ParameterError(f"releases must be a list, not {type(written).__name__}")
    return Composition(map(_release_from_json, written))


def _release_from_json(written: object) -> tuple[Release, int]:
    if isinstance(written, Mapping) and written.get("kind") == "stated":
        fields = fields_of(written, kind=str, count=int, epsilon=NUMBER, delta=NUMBER)
        return StatedRelease(epsilon=fields["epsilon"], delta=fields["delta"]), fields["count"]
    fields = fields_of(
        written, kind=str, count=int, num_users=int, sampled_from=int | None,
        participation=NUMBER, profile=Mapping,
    )  # fmt: skip
    if (kind := fields.pop("kind")) != "shuffled":
        raise ParameterError(f"kind = {kind!r} is not one of 'shuffled', 'stated'")
    count, fields["profile"] = fields.pop("count"), _profile_from_json(fields["profile"])
    return ShuffledRelease(**fields), count


def _profile_from_json(written: object) -> LocalProfile:
    fields = fields_of(
        written, epsilon0=NUMBER, delta0=NUMBER | None, family=str | None,
        domain_size=int | None, blanket=list | None, attack=list | None, channel=list | None,
    )  # fmt: skip
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        for name in {"blanket", "attack"} & given.keys():
            rows = [[float(entry) for entry in atom] for atom in given[name]]
            if not all(math.isfinite(entry) for row in rows for entry in row):
                raise ParameterError(f"{name} has a number that is not finite")
            given[name] = tuple(BlanketAtom(mass=m, ratio0=r0, ratio1=r1) for m, r0, r1 in rows)
        if "channel" in given:
            rows_of = (tuple(map(Fraction, row)) for row in given["channel"])
            given["channel"] = StoredChannel(tuple(rows_of))
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise ParameterError(
            f"a profile's blanket and attack list [mass, ratio0, ratio1], its channel fractions: "
            f"{error}"
        ) from None
    return LocalProfile(**given)


NUMBER = int | float


def fields_of(written: object, **kinds: Any) -> dict[str, Any]:
    """Return the fields of a JSON object, each of its kind; else raise `ParameterError`."""
    if not isinstance(written, Mapping):
        raise ParameterError(f"{written!r:.40} is no object with {', '.join(kinds)}")
    if unknown := sorted(set(written) - set(kinds)):
        raise ParameterError(f"{unknown[0]!r} is not one of {', '.join(kinds)}")
    for name, kind in kinds.items():
        value = written.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            wanted = getattr(kind, "__name__", str(kind))
            raise ParameterError(f"{name} = {value!r:.40} is not of the kind {wanted}")
    return {name: written.get(name) for name in kinds}
