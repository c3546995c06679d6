"""The analyzer's side: prepare a collection; fetch its hand-ins, estimate, state the guarantee."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.cautions import delta_cautions
from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.collection.result import Result
from shuffledp.collection.shuffling import Concealment, FinishedShuffling
from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, OutputError, ShuffledpError, telling
from shuffledp.core.files import write_new
from shuffledp.core.progress import Progress, no_progress
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.database import Database, Layout, bytes_of
from shuffledp.deploy.remote import NoAnswerError, RefusedError
from shuffledp.network.graph import Graph
from shuffledp.peers import exchange_account
from shuffledp.peers.exchange_account import Arrived, Exchange, ExchangeRecord, messages_for
from shuffledp.peers.keys import PrivateKeys, Roster, hand_ins_token_text
from shuffledp.peers.mail import Collected, final_transcript, open_all
from shuffledp.peers.relay_client import LONGEST_WAIT, SHORTEST_WAIT, RelayClient
from shuffledp.peers.terms import CODE_BYTES, Terms, graph_digest, new_collection_id

TERMS_FILE = "terms.json"
KEY_FILE = "analyzer.key"

# Allowed probability that a user ever holds more reports than messages; delta pays for it.
_FAILURE = 1e-9


def prepare_terms(
    graph: Graph,
    asked: AskedTerms,
    keys: PrivateKeys,
    *,
    rounds: SupportsIndex,
    even_traffic: bool = False,
    least_registered: SupportsIndex | None = None,
    entropy: Entropy | None = None,
    **chosen: Any,
) -> Terms:
    """Return the terms of a new collection, with a fresh id even if all else is as before.

    By default at least half of all users, rounded up, must register. ``chosen`` are further fields
    of the terms: protocol, laziness and dummies.
    """
    half = (graph.num_users + 1) // 2
    least = half if least_registered is None else require_at_least("least", least_registered, 1)
    terms = Terms(  # refuses what cannot be, before the work
        collection_id=new_collection_id(entropy or Entropy.from_operating_system()),
        graph_digest=graph_digest(graph),
        num_users=graph.num_users,
        rounds=require_at_least("rounds", rounds, 1),
        slots=(1,) * graph.num_users,
        asked=asked,
        analyzer_mail_key=keys.mail_key,
        analyzer_identity_key=keys.identity_key,
        least_registered=least,
        **chosen,
    )
    slots, per_neighbour = messages_for(
        graph,
        rounds=rounds,
        laziness=terms.laziness,
        even_traffic=even_traffic,
        failure=_FAILURE,
        reports_each=1.0 + terms.dummies_each,
    )
    return replace(terms, slots=tuple(slots.tolist()), per_neighbour=per_neighbour)


def read_terms(path: Path) -> Terms:
    """Read the public terms of a collection."""
    try:
        return Terms.from_json(bytes_of(path).decode())
    except (ShuffledpError, UnicodeDecodeError) as error:
        raise DataError(f"cannot use the terms in {path}: {error}") from None


def read_key(path: Path, terms: Terms) -> PrivateKeys:
    """Read the analyzer's private key."""
    try:
        keys = PrivateKeys.from_bytes(bytes_of(path))
    except ShuffledpError as error:
        raise DataError(f"cannot use the key in {path}: {error}") from None
    if not keys.are_of(terms):
        raise DataError(f"the key in {path} does not fit the terms: use the one made with them")
    return keys


def write_collection(folder: Path, terms: Terms, keys: PrivateKeys) -> tuple[Path, Path]:
    """Write terms and private key into a folder; nothing there is ever replaced."""
    terms_path, key_path = folder / TERMS_FILE, folder / KEY_FILE
    with telling(f"write into {folder}"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # The key first: terms without their key would collect reports that nobody can open.
            write_new(key_path, keys.to_bytes(), mode=0o600)
            write_new(terms_path, (terms.to_json() + "\n").encode(), mode=0o644)
        except FileExistsError as error:
            why = "without its key nobody can open what an earlier collection brings"
            raise OutputError(f"{error.filename} exists: choose another --out; {why}") from None
    return terms_path, key_path


def traffic_facts(terms: Terms, graph: Graph) -> tuple[tuple[str, str], ...]:
    """Cost of taking part for a user, as names and values."""
    # For users whose neighbours all register.
    slots = np.array(terms.slots)
    envelopes = terms.per_neighbour * graph.degrees if terms.per_neighbour else slots
    sent = terms.rounds * (envelopes * terms.envelope_bytes + graph.degrees * CODE_BYTES)
    return (
        ("users", f"{terms.num_users:,}"),
        ("rounds", f"{terms.rounds:,}"),
        ("messages a user and round", _span(envelopes)),
        ("bytes a message", f"{terms.envelope_bytes:,}"),
        ("sent by a user in all", f"{_span(sent / 1000.0)} kB"),
        *([("dummies", _dummies_text(terms, graph))] if terms.dummies else []),
    )


def _dummies_text(terms: Terms, graph: Graph) -> str:
    """Return the law, the mean number of a user's dummies, and the maximum of a dishonest user."""
    most = f"{terms.most_records(graph.degrees.tolist()):,} of a dishonest one"
    return f"{terms.dummies}, {terms.dummies_each:.4g} reports of nobody a user on average, {most}"


def _span(values: NDArray[Any]) -> str:
    """Return the common value, or the smallest and the largest with a dash between them."""
    first, last = (f"{value:,.0f}" for value in (float(values.min()), float(values.max())))
    return first if first == last else f"{first} to {last}"


# --------------------------------------------------------------------- collecting
_HAND_INS = ("CREATE TABLE hand_ins (position INTEGER PRIMARY KEY, message BLOB NOT NULL)",)
_FETCHED = Layout(kind="file of hand-ins", mark=b"sdpa", version=1, tables=_HAND_INS)


class Everything(NamedTuple):
    """All data that a relay gives to the analyzer, unchecked."""

    roster: bytes
    hand_ins: tuple[bytes, ...]
    absences: object


class FetchedStore(Database):
    """Fetched hand-ins, sealed to the analyzer as they came; durable before `save` returns."""

    def __init__(self, path: Path, terms: Terms) -> None:
        super().__init__(path, _FETCHED, collection=terms.digest())

    def note_forgotten(self) -> None:
        """Note that the relay deleted the hand-ins."""
        with self.transaction():
            self.set_fact("forgotten", 1)

    def save(self, fetched: Everything) -> None:
        """Store the fetched data: all or nothing."""
        with self.transaction():
            rows = list(enumerate(fetched.hand_ins))
            self.change_many("INSERT INTO hand_ins VALUES (?, ?)", rows)
            self.set_fact("absences", json.dumps(fetched.absences).encode())
            self.set_fact("roster", fetched.roster)

    def everything(self) -> Everything | None:
        """All stored data; None if there is none."""
        roster = self.fact("roster")
        if roster is None:
            return None
        hand_ins = tuple(self.column("SELECT message FROM hand_ins ORDER BY position"))
        try:
            absences = json.loads(self.fact("absences"))
        except (TypeError, ValueError):
            raise DataError("the file of hand-ins is damaged: restore it from a backup") from None
        return Everything(roster, hand_ins, absences)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Data that a relay gives to the analyzer when a collection is over."""

    # The opened reports, and counts of rejected ones.
    collected: Collected
    # Users who took part, and their absences.
    record: ExchangeRecord
    # Digest of that record, which all holders must confirm.
    transcript: bytes
    # Digest of the roster.
    roster_digest: bytes
    # The reason why the relay may still have the hand-ins; empty if it confirmed the deletion, or
    # was not asked for it.
    not_forgotten: str = ""

    def arrived(self, num_reports: int) -> Arrived:
        """Return the outcome of the exchange, given the number of valid reports."""
        said = self.collected.confirmations
        whole = [each.transcript for each in said.values() if not each.short_since]
        return Arrived(
            num_reports=num_reports,
            handed_in=np.array(sorted(said), dtype=np.int64),
            short_since=tuple(each.short_since for each in said.values() if each.short_since),
            num_contradicting=len(whole) - whole.count(self.transcript),
        )


def fetch(
    terms: Terms,
    keys: PrivateKeys,
    client: RelayClient,
    *,
    store: FetchedStore | None = None,
    wait_seconds: float | None = None,
    on_progress: Progress | None = None,
) -> Fetched:
    """Wait for the end of a collection, fetch the hand-ins, and open them.

    Data in the store is not fetched again, and no relay needed; once all is stored there, the
    relay must delete its own. Without a store the hand-ins stay at the relay.
    """
    token = keys.sign(hand_ins_token_text(terms))
    everything = kept = None if store is None else store.everything()
    if everything is None:
        _await_end(terms, client, wait_seconds, on_progress or no_progress)
        hand_ins = tuple(client.hand_ins(token))
        everything = Everything(client.roster(), hand_ins, client.absences(token))
    roster = Roster.from_bytes(everything.roster, terms)
    record = ExchangeRecord.of(terms, roster, everything.absences)
    fetched = Fetched(
        collected=open_all(everything.hand_ins, roster, keys),
        record=record,
        transcript=final_transcript(roster, record.absences),
        roster_digest=roster.digest(),
    )
    if store is not None and kept is None:
        store.save(everything)
    if store is not None and not store.fact("forgotten"):  # the relay has not confirmed it yet
        try:
            client.forget_hand_ins(token)
        except (NoAnswerError, RefusedError) as error:
            return replace(fetched, not_forgotten=str(error))
        store.note_forgotten()
    return fetched


def _await_end(terms: Terms, client: RelayClient, seconds: float | None, report: Progress) -> None:
    """Wait for the end of a collection; raise if it is late."""
    give_up = None if seconds is None else time.monotonic() + seconds
    wait = SHORTEST_WAIT
    while True:
        status = client.status()
        status.require_terms(terms)
        if status.phase == "over":
            return
        report("rounds", status.round, status.rounds)
        if give_up is not None and time.monotonic() + wait > give_up:
            where = f"in its {status.phase} phase, round {status.round} of {status.rounds}"
            raise DataError(f"the collection is not over: it is {where}; come back later")
        time.sleep(wait)
        wait = min(1.5 * wait, LONGEST_WAIT)


def collection_result(
    terms: Terms,
    graph: Graph,
    fetched: Fetched,
    *,
    delta: float,
    options: EstimateOptions,
    num_dishonest: SupportsIndex = 0,
    graph_name: str = "graph of the terms",
    on_progress: Progress | None = None,
) -> Result:
    """Return estimates and guarantee of a finished collection, about the users who registered.

    Missing reports are assumed to be a random sample, with a warning. The guarantee covers the
    reports that came: only epsilon0 if reports may be missing because of their owners.
    ``num_dishonest`` users are assumed to reveal their own reports, and hide nobody.
    """
    terms.require_graph(graph)
    asked = terms.asked
    reports, num_invalid = asked.codec.decode_valid(fetched.collected.reports)
    if not reports.num_reports:
        raise DataError(f"none of {terms.num_users:,} users' reports came: see the relay's log")
    num_registered = int(fetched.record.nodes.size)
    profile, collected = asked.randomizer.profile, fetched.collected
    counts: Any = asked.randomizer.aggregate(reports)
    arrived = fetched.arrived(reports.num_reports)
    exchange = Exchange(
        terms, graph, fetched.record, arrived, num_dishonest=num_dishonest, on_progress=on_progress
    )
    laws, num_own, variance = (terms.dummies,) if terms.dummies else (), reports.num_reports, 0.0
    if laws:
        num_own, variance = _own_reports(exchange, arrived)
        counts = counts.less_dummies(*laws, num_users=num_own)
    estimates = asked.question.estimate(asked.randomizer, counts, options)
    if variance:
        estimates = _widened(estimates, variance / num_own**2)
    crowd = None
    if exchange.can_hide:
        crowd = exchange.hiding.overlaps
        crowd = crowd[: max(crowd.size - exchange.num_dishonest, 0)]
    guarantee = exchange.guarantee(profile, delta=delta)
    num_users = max(num_registered, num_own)
    warnings = exchange.cautions(profile, guarantee)
    warnings += _warnings(exchange, collected, num_own, num_invalid)
    return Result(
        num_users=num_users,
        question=asked.question,
        randomizer=asked.randomizer,
        guarantee=guarantee,
        estimates=estimates.for_all_users(num_users),
        dishonest=int(num_dishonest) or None,
        shift_by_one=asked.question.shift_by_one(asked.randomizer, counts.num_reports, counts),
        collected_by="devices",
        target_epsilon=guarantee.epsilon_upper,
        target_delta=delta,
        warnings=(*warnings, *delta_cautions(delta, num_registered)),
        dummies=laws,
        num_dummies=reports.num_reports - num_own,
        without_dummies=exchange.guarantee(profile, delta=delta, with_dummies=False)
        if laws
        else None,
        facts=exchange_account.exchange_facts(
            exchange, profile, guarantee, graph_name=graph_name, collected=collected
        ),
        shuffling=FinishedShuffling(
            name="network",
            account=lambda profile, delta: exchange.guarantee(profile, delta=delta),
            concealment=Concealment(
                crowd=None if crowd is None else lambda: crowd,
                failure=min(exchange.overload, 1.0),
                is_complete=False,  # some may have been lost, or rejected
            ),
            most_records=terms.most_records(graph.degrees.tolist()),
        ),
    )


def _own_reports(exchange: Exchange, arrived: Arrived) -> tuple[int, float]:
    """Return about how many reports that came are no dummies, and the variance of that number.

    It is known if all registered users handed in and confirm. Otherwise it is the usual share of
    what came; if only holders who handed in nothing keep reports, weighed with the registered users
    less the mean number kept. The variance of the number kept is at most that mean.
    """
    each, number = exchange.terms.dummies_each, arrived.num_reports
    registered, share = int(exchange.record.nodes.size), number / (1.0 + each)
    variance, kept = share * each / (1.0 + each), exchange.mean_kept / (1.0 + each)
    if arrived.num_confirmed == arrived.handed_in.size:
        share = (share * kept + (registered - kept) * variance) / (kept + variance)
        variance *= kept / (kept + variance)
    return max(1, min(registered, number, round(share))), variance


def _widened(estimates: Any, variance: float) -> Any:
    """Return frequencies with the error of the number of users' reports among dummies.

    Of that relative variance: an excess over 1/k, of k answers alike, is off by as much.
    """
    added = variance * (estimates.frequency - 1.0 / estimates.frequency.size) ** 2
    middle, half = 0.5 * (estimates.lower + estimates.upper), estimates.upper - estimates.lower
    half = np.sqrt(0.25 * half**2 + estimates.quantile**2 * added)
    errors = {
        name: np.sqrt(getattr(estimates, name) ** 2 + added)
        for name in ("standard_error", "population_standard_error")
    }
    return replace(estimates, lower=middle - half, upper=middle + half, **errors)


def fetched_facts(terms: Terms, fetched: Fetched) -> Mapping[str, object]:
    """Course of the collection, as JSON values for ``privacy.json``."""
    collected, record, number = fetched.collected, fetched.record, len(fetched.collected.reports)
    return {
        "collection_id": terms.collection_id.hex(),
        "terms_digest": terms.digest().hex(),
        "roster_digest": fetched.roster_digest.hex(),
        **{name: getattr(terms, name) for name in ("protocol", "rounds", "laziness", "num_users")},
        "num_registered": int(record.nodes.size),
        "num_handed_in": collected.num_hand_ins,
        "num_reports": number,
        "num_confirmed": fetched.arrived(number).num_confirmed,
        "num_absences": record.num_absences,
        "transcript": fetched.transcript.hex(),
        "rejected": dict(collected.rejected),
    }


def _warnings(
    exchange: Exchange, collected: Collected, num_reports: int, invalid: int
) -> tuple[str, ...]:
    """Warnings to read before publishing."""
    terms, absences = exchange.terms, exchange.record.num_absences
    registered = int(exchange.record.nodes.size)
    rejected = invalid + sum(collected.rejected.values())
    found = {
        f"{terms.num_users - registered:,} of {terms.num_users:,} users never registered: "
        "estimates are about the others.": registered < terms.num_users,
        f"{registered - num_reports:,} of {registered:,} reports are missing. Estimates take the "
        "rest for a random sample.": terms.protocol == "all" and num_reports < registered,
        f"{registered - collected.num_hand_ins:,} users handed in nothing.": (
            collected.num_hand_ins < registered
        ),
        f"Users were absent {absences:,} times in {terms.rounds:,} rounds; the guarantee "
        "accounts for the reports that stayed with them.": absences,
        f"{num_reports:,} reports came from {registered:,} users: somebody handed in "
        "reports of their own making, so no estimate can be trusted.": num_reports > registered,
        f"Among dummies nobody sees which reports are too many: a dishonest user can have up to "
        f"{terms.most_records(exchange.graph.degrees.tolist()):,} counted, in every message of "
        "every round and of the hand-in.": bool(terms.dummies),
        f"{rejected:,} things handed in were no report, and were left out.": rejected,
    }
    return tuple(text for text, applies in found.items() if applies)
