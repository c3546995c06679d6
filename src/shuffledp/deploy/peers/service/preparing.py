"""Preparing a collection: the public terms, and the analyzer's private key."""

import json
import os
from pathlib import Path
from typing import Literal, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, OutputError, ParameterError, ShuffledpError
from shuffledp.deploy.peers.protocol.delivery import CODE_BYTES
from shuffledp.deploy.peers.protocol.keys import AnalyzerKeys
from shuffledp.deploy.peers.protocol.slots import per_neighbour_for, slots_for
from shuffledp.deploy.peers.protocol.terms import Terms, graph_digest, new_collection_id
from shuffledp.deploy.peers.service.asked_terms import AskedTerms
from shuffledp.network.graph import Graph

TERMS_FILE = "terms.json"
KEY_FILE = "analyzer.key"

# Allowed probability that anybody ever holds more reports than messages; it is taken off delta.
_FAILURE = 1e-9


def prepare_terms(  # noqa: PLR0913  # one keyword an option
    graph: Graph,
    asked: AskedTerms,
    keys: AnalyzerKeys,
    *,
    rounds: SupportsIndex,
    protocol: Literal["all", "single"] = "all",
    laziness: float = 0.0,
    even_traffic: bool = False,
    routing: Literal["hop", "onion"] = "hop",
    least_registered: SupportsIndex | None = None,
    entropy: Entropy | None = None,
) -> Terms:
    """Return the terms of a new collection.

    Parameters
    ----------
    graph : Graph
        Who can pass reports on to whom.
    asked : AskedTerms
        What is asked, and the randomizer.
    keys : AnalyzerKeys
        Of the analyzer; the terms name the public ones.
    rounds : int
        How often every report is passed on, >= 1.
    protocol : {"all", "single"}
        Whether holders hand in all reports they hold, or one.
    laziness : float
        Chance that a report stays for a round, a multiple of 2^-16 in [0, 1).
    even_traffic : bool
        Whether each neighbour is sent equally many messages, so that not even the relay learns from
        their numbers which way a report may have gone. Costs more messages.
    routing : {"hop", "onion"}
        Whether holders draw the next hop, or authors the whole way, a layer of sealing for each
        hop: then no two holders see the same bytes.
    least_registered : int, optional
        Fewest registered users with whom a peer takes part; by default half of all, rounded up.
    entropy : Entropy, optional
        Names the collection; the operating system's by default.

    Returns
    -------
    Terms
        Of a collection with a name of its own, even if all else is as before.
    """
    half = (graph.num_users + 1) // 2
    least = half if least_registered is None else require_at_least("least", least_registered, 1)
    failure = _FAILURE / 2 if even_traffic else _FAILURE
    per_neighbour = (
        per_neighbour_for(graph, rounds=rounds, laziness=laziness, failure=failure)
        if even_traffic
        else 0
    )
    return Terms(
        collection_id=new_collection_id(entropy or Entropy.from_operating_system()),
        graph_digest=graph_digest(graph),
        num_users=graph.num_users,
        rounds=require_at_least("rounds", rounds, 1),
        slots=tuple(slots_for(graph, rounds=rounds, laziness=laziness, failure=failure).tolist()),
        report_bytes=asked.codec.num_report_bytes,
        randomizer=json.dumps(asked.to_json_dict()),
        analyzer_mail_key=keys.mail_key,
        analyzer_identity_key=keys.identity_key,
        protocol=protocol,
        laziness=laziness,
        per_neighbour=per_neighbour,
        routing=routing,
        least_registered=least,
    )


def read_terms(path: Path) -> tuple[Terms, AskedTerms]:
    """Read the public terms of a collection, and what it asks.

    Parameters
    ----------
    path : Path
        A ``terms.json``.

    Raises
    ------
    DataError
        If it cannot be read, or is no such file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise DataError(f"cannot read the terms from {path}: {reason}") from None
    try:
        terms = Terms.from_json(text)
        asked = AskedTerms.from_json_dict(json.loads(terms.randomizer))
    except ShuffledpError as error:
        raise DataError(f"cannot use the terms in {path}: {error}") from None
    if asked.codec.num_report_bytes != terms.report_bytes:
        raise DataError(
            f"cannot use the terms in {path}: reports of {asked.randomizer.name} have "
            f"{asked.codec.num_report_bytes} bytes, and the terms say {terms.report_bytes}"
        )
    return terms, asked


def read_key(path: Path, terms: Terms) -> AnalyzerKeys:
    """Read the analyzer's private key.

    Parameters
    ----------
    path : Path
        An ``analyzer.key``.
    terms : Terms
        Whose public keys it has to fit.

    Raises
    ------
    DataError
        If it cannot be read, or belongs to other terms.
    """
    try:
        keys = AnalyzerKeys.from_bytes(path.read_bytes())
    except OSError as error:
        raise DataError(f"cannot read the key from {path}: {error.strerror or error}") from None
    except ShuffledpError as error:
        raise DataError(f"cannot use the key in {path}: {error}") from None
    if (keys.mail_key, keys.identity_key) != (
        terms.analyzer_mail_key,
        terms.analyzer_identity_key,
    ):
        raise DataError(
            f"the key in {path} is not that of the terms: use the one that was written with them"
        )
    return keys


def write_collection(folder: Path, terms: Terms, keys: AnalyzerKeys) -> tuple[Path, Path]:
    """Write terms and private key into a folder; nothing there is ever replaced.

    Parameters
    ----------
    folder : Path
        Made if it is absent.
    terms : Terms
        Public.
    keys : AnalyzerKeys
        Written for the owner's eyes only: whoever has them reads all reports.

    Returns
    -------
    tuple of Path
        Of the terms and of the key.

    Raises
    ------
    OutputError
        If one of the files exists, or cannot be written.
    """
    terms_path, key_path = folder / TERMS_FILE, folder / KEY_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The key first: terms without their key would collect what nobody can open.
        _write_new(key_path, keys.to_bytes(), mode=0o600)
        _write_new(terms_path, (terms.to_json() + "\n").encode(), mode=0o644)
    except FileExistsError as error:
        raise OutputError(
            f"{error.filename} exists: choose another --out, since without its key nobody can "
            "open what an earlier collection brings"
        ) from None
    except OSError as error:
        raise OutputError(f"cannot write into {folder}: {error.strerror or error}") from error
    return terms_path, key_path


def _write_new(path: Path, data: bytes, *, mode: int) -> None:
    """Write a file that must not exist, on disk when this returns."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def most_envelopes(terms: Terms, graph: Graph) -> NDArray[np.int64]:
    """Return how many envelopes each user sends a round if all neighbours register."""
    if terms.per_neighbour:
        return terms.per_neighbour * graph.degrees
    return np.asarray(terms.slots, dtype=np.int64)


def traffic_facts(terms: Terms, graph: Graph) -> tuple[tuple[str, str], ...]:
    """Return what taking part costs a user, as names and values.

    Parameters
    ----------
    terms : Terms
        Of the collection.
    graph : Graph
        Of the terms.
    """
    envelopes = most_envelopes(terms, graph)
    slots = (int(envelopes.min()), int(envelopes.max()))
    sizes = [terms.envelope_bytes_in(number) for number in range(1, terms.rounds + 1)]
    sent = envelopes * sum(sizes) + graph.degrees * (CODE_BYTES * terms.rounds)
    return (
        ("users", f"{terms.num_users:,}"),
        ("rounds", f"{terms.rounds:,}"),
        ("messages a user and round", _span(*slots)),
        ("bytes a message", _span(min(sizes), max(sizes))),
        (
            "sent by a user in all",
            _span(float(sent.min()) / 1000.0, float(sent.max()) / 1000.0) + " kB",
        ),
    )


def _span(low: float, high: float) -> str:
    """Return a number, or two with a dash between them."""
    first, last = (f"{value:,.0f}" for value in (low, high))
    return first if first == last else f"{first} to {last}"


def require_laziness_grid(laziness: float) -> float:
    """Return the multiple of 2^-16 that is nearest to a chance; the walk's coins are that fine.

    Parameters
    ----------
    laziness : float
        In [0, 1).

    Raises
    ------
    ParameterError
        If it is out of range.

    Examples
    --------
    >>> require_laziness_grid(0.2)
    0.1999969482421875
    """
    if not 0.0 <= laziness < 1.0:
        raise ParameterError(f"lazy = {laziness} is not in [0, 1): give 0 for a walk that moves")
    return min(round(laziness * 65536), 65535) / 65536
