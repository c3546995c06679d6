"""Preparing a collection: the public terms, and the analyzer's private key."""

from dataclasses import replace
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, OutputError, ShuffledpError, telling
from shuffledp.core.files import write_new
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.database import bytes_of
from shuffledp.network.graph import Graph
from shuffledp.peers.keys import PrivateKeys
from shuffledp.peers.slots import messages_for
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
