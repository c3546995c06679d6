"""The analyzer: opens what was handed in."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shuffledp.core.errors import ParameterError
from shuffledp.deploy.peers.protocol.keys import PrivateKeys, Roster
from shuffledp.deploy.peers.protocol.messages import (
    Confirmation,
    Refusal,
    decode_hand_in,
    open_hand_in,
    open_report,
)
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.deploy.wire import ProtocolError


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What came to the analyzer."""

    # Randomized reports, each once.
    reports: tuple[bytes, ...]
    # Who handed in which.
    holders: tuple[int, ...]
    # Users who handed in.
    num_hand_ins: int
    # What was left out, by reason: hand-ins and single places.
    rejected: Mapping[str, int]
    # What those say of the delivery whose hand-ins opened.
    confirmations: Mapping[int, Confirmation]


def open_all(
    hand_ins: Iterable[bytes], *, terms: Terms, keys: PrivateKeys, roster: Roster
) -> Collected:
    """Open what was handed in: reports, each once, with their holders ascending.

    What is not in order is counted and left out. A report that is handed in twice is a replay: the
    second is left out. A report is not signed by its user, for that would name him: whoever takes
    part can hand in reports of his own making, up to his slots.
    """
    if not keys.are_of(terms):
        raise ParameterError(
            "the private keys are not those of the terms: use the file that was written with them"
        )
    if roster.terms_digest != terms.digest():
        raise ParameterError("the roster is of other terms: use that of this collection")
    rejected: Counter[str] = Counter()
    by_holder = _decode_all(hand_ins, terms, roster, rejected)
    seen: set[bytes] = set()
    reports: list[bytes] = []
    holders: list[int] = []
    confirmations: dict[int, Confirmation] = {}
    for holder in sorted(by_holder):
        opened = open_hand_in(
            by_holder[holder],
            terms=terms,
            roster=roster,
            keys=keys,
            holder=holder,
        )
        if opened is None:
            rejected[str(Refusal.UNOPENED)] += 1
            continue
        confirmations[holder], places = opened
        for place in places:
            content = _open_place(place, seen, terms, keys)
            if isinstance(content, Refusal):
                rejected[str(content)] += 1
            elif content is not None:
                reports.append(content)
                holders.append(holder)
    return Collected(
        reports=tuple(reports),
        holders=tuple(holders),
        num_hand_ins=len(by_holder),
        rejected=dict(rejected),
        confirmations=confirmations,
    )


def _decode_all(
    hand_ins: Iterable[bytes], terms: Terms, roster: Roster, rejected: Counter[str]
) -> dict[int, bytes]:
    """Return the sealed content that each holder handed in first."""
    kept: dict[int, bytes] = {}
    for data in hand_ins:
        try:
            holder, sealed = decode_hand_in(data, terms=terms, roster=roster)
        except ProtocolError as error:
            rejected[f"hand-in {error.reason}"] += 1
            continue
        if kept.setdefault(holder, sealed) != sealed:
            rejected["second hand-in of one holder"] += 1
    return kept


def _open_place(
    place: bytes | Refusal | None, seen: set[bytes], terms: Terms, keys: PrivateKeys
) -> bytes | Refusal | None:
    """Return the report in a place, nothing, or why it is refused."""
    if not isinstance(place, bytes):
        return place
    if place in seen:
        return Refusal.DUPLICATE
    report = open_report(place, terms=terms, keys=keys)
    if report is None:
        return Refusal.UNOPENED
    seen.add(place)
    return report
