"""Whether what was put back from a backup is all there, and what goes on from it."""

from collections.abc import Iterator
from pathlib import Path

from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import open_ledger
from shuffledp.collection.output import PRIVACY_FILE
from shuffledp.core.errors import ShuffledpError
from shuffledp.deploy.analyzer import Analyzer, open_analyzer
from shuffledp.deploy.http_client import json_of
from shuffledp.deploy.messages import Batch, sealed_size
from shuffledp.deploy.remote import FILES
from shuffledp.deploy.servers.batches import note_of
from shuffledp.deploy.servers.settings import AnalyzerSettings, ShufflerSettings, signing_key
from shuffledp.deploy.shuffler.serving import open_shuffler
from shuffledp.deploy.shuffler.shuffler import Shuffler


def verify(settings: ShufflerSettings | AnalyzerSettings) -> tuple[str, list[str]]:
    """Return what was found in a store in one line, and what is wrong, a line each.

    A store that does not open, or is of another task, raises; nothing is changed.
    """
    if isinstance(settings, ShufflerSettings):
        with open_shuffler(settings) as shuffler:
            return _verify_shuffler(shuffler, settings)
    with open_analyzer(settings) as analyzer:
        return _verify_analyzer(analyzer, settings)


def _verify_shuffler(shuffler: Shuffler, settings: ShufflerSettings) -> tuple[str, list[str]]:
    """Check that sealed batches are there, and that what waits can be opened."""
    public = signing_key(settings.signing_key).public_key().public_bytes_raw()
    wrong: list[str] = []
    sealed = shuffler.sealed_after(0)
    for number in sealed:
        try:
            wrong += _batch_faults(shuffler, number, public)
        except (ShuffledpError, OSError) as error:
            wrong.append(f"batch {number}: {error}")
    unreleased = shuffler.unreleased()
    for epoch in unreleased:
        if epoch not in shuffler.epochs_with_keys:
            wrong.append(
                f"epoch {epoch}: its reports are not released and its key is gone, so nobody can "
                "open them; the backup is older than the key's end, or the keys are not put back"
            )
    said = (
        f"batches: {sum(shuffler.states().values())}, to be fetched: {len(sealed)}, "
        f"reports that wait: {shuffler.num_unreleased():,}, of epochs: {len(unreleased)}"
    )
    return said, wrong


def _batch_faults(shuffler: Shuffler, number: int, public: bytes) -> Iterator[str]:
    """Yield what is wrong with a sealed batch's file."""
    size = sealed_size(shuffler.task.asked.codec.num_report_bytes)
    batch = Batch.decode(shuffler.fetch(number), shuffler.task.task_id, size, public)
    if batch.root != shuffler.batch(number).root:
        yield f"batch {number}: its file has other records than the store says"


def _verify_analyzer(analyzer: Analyzer, settings: AnalyzerSettings) -> tuple[str, list[str]]:
    """Check that each batch that was taken has its result and was spent, and the other way."""
    taken = analyzer.taken()
    wrong = [
        f"batch {number}: {fault}; if the shuffler still has it, it is taken again for nothing"
        for number, root in taken.items()
        for fault in _result_faults(settings.store / "results" / str(number), root)
    ]
    if settings.ledger is not None:
        try:
            wrong += _ledger_faults(analyzer, taken, open_ledger(settings.ledger))
        except ShuffledpError as error:
            wrong.append(str(error))
    return f"batches that were taken: {len(taken)}", wrong


def _result_faults(folder: Path, root: bytes) -> Iterator[str]:
    """Yield what is wrong with a result."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        yield f"its result lacks {', '.join(missing)}"
        return
    said = json_of((folder / PRIVACY_FILE).read_bytes())
    parameters = said.get("parameters") if isinstance(said, dict) else None
    if not isinstance(parameters, dict) or parameters.get("batch_sha256") != root.hex():
        yield "its result is of other records than the store says"


def _ledger_faults(analyzer: Analyzer, taken: dict[int, bytes], ledger: Ledger) -> Iterator[str]:
    """Yield what the ledger and the store do not agree on."""
    spent = {entry.key for entry in ledger.entries}
    for number, root in taken.items():
        if root.hex() not in spent:
            yield f"batch {number}: the ledger has no entry for it; put back a newer ledger"
    known = {root.hex() for root in taken.values()}
    for entry in ledger.entries:
        if entry.note.startswith(note_of(analyzer.task, 0)[:-1]) and entry.key not in known:
            yield (
                f"{entry.note}: the ledger has spent it and the store does not know it; if the "
                "shuffler has it no more, the store is too old, and its reports could be counted "
                "again"
            )
