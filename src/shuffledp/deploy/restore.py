"""Checks that a server restored from a backup is complete, and consistent with it."""

from collections.abc import Iterator
from pathlib import Path

from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import open_ledger
from shuffledp.collection.output import PRIVACY_FILE
from shuffledp.core.errors import DataError, ShuffledpError
from shuffledp.deploy.analyzer import Analyzer
from shuffledp.deploy.analyzer_server import batches_in, open_analyzer
from shuffledp.deploy.messages import Batch
from shuffledp.deploy.remote import FILES, json_of, value_at
from shuffledp.deploy.servers.batches import note_of
from shuffledp.deploy.servers.settings import AnalyzerSettings, ShufflerSettings, signing_key
from shuffledp.deploy.shuffler import Shuffler
from shuffledp.deploy.shuffler_server import open_shuffler


def verify(settings: ShufflerSettings | AnalyzerSettings) -> tuple[str, list[str]]:
    """Return the content of a store in one line, and its faults, a line each.

    A store that does not open, or is of another task, raises; only an older version is changed.
    """
    role = "shuffler" if isinstance(settings, ShufflerSettings) else "analyzer"
    if settings.database is None and not (settings.store / f"{role}.db").is_file():
        raise DataError(f"{settings.store} holds no store of the {role}: put its backup back there")
    if isinstance(settings, ShufflerSettings):
        with open_shuffler(settings) as shuffler:
            return _verify_shuffler(shuffler, settings)
    with open_analyzer(settings) as analyzer:
        return _verify_analyzer(analyzer, settings)


def _verify_shuffler(shuffler: Shuffler, settings: ShufflerSettings) -> tuple[str, list[str]]:
    """Check that sealed batches are there, and that waiting reports can be opened."""
    task, public = shuffler.task, signing_key(settings.signing_key).public_key().public_bytes_raw()
    wrong = []
    sealed, unreleased = shuffler.sealed_after(0), shuffler.unreleased()
    for number in sealed:
        try:
            Batch.decode(shuffler.read(shuffler.batch(number)), task, public)
        except (ShuffledpError, OSError) as error:
            wrong.append(f"batch {number}: {error}")
    wrong += [
        f"epoch {epoch}: its reports are not released and its key is gone, so nobody can open "
        "them; the backup is older than the key's end, or the keys are not put back"
        for epoch in unreleased
        if epoch not in shuffler.epochs_with_keys
    ]
    if (lost := shuffler.lost_batch()) is not None:
        wrong.append(
            f"batch {lost}: it was handed out, and the store is older. A second release would tell "
            "the reports in both from all others, so once started, the shuffler drops all reports "
            f"of epochs before {lost}; put back a newer backup if there is one"
        )
    said = (
        f"batches: {sum(shuffler.states().values())}, to be fetched: {len(sealed)}, "
        f"reports that wait: {shuffler.num_unreleased():,}, of epochs: {len(unreleased)}"
    )
    return said, wrong


def _verify_analyzer(analyzer: Analyzer, settings: AnalyzerSettings) -> tuple[str, list[str]]:
    """Check that each taken batch has its result and its entry in the ledger, and vice versa."""
    taken, wrong, results = analyzer.taken(), [], settings.store / "results"
    for number, root in taken.items():
        if fault := _result_fault(results / str(number), root):
            again = "if the shuffler still has it, it is taken again for nothing"
            wrong.append(f"batch {number}: {fault}; {again}")
    wrong += [
        f"batch {number}: it has a result and the store does not know it: the store is older, and "
        "repeated reports of that batch would be counted again"
        for number in batches_in(results)
        if number not in taken
    ]
    if settings.ledger is not None:
        try:
            wrong += _ledger_faults(analyzer, taken, open_ledger(settings.ledger))
        except ShuffledpError as error:
            wrong.append(str(error))
    return f"batches that were taken: {len(taken)}", wrong


def _result_fault(folder: Path, root: bytes) -> str:
    """Return the faults of a result; none if it is complete."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        return f"its result lacks {', '.join(missing)}"
    record = json_of((folder / PRIVACY_FILE).read_bytes())
    if value_at(record, "parameters", "batch_sha256") != root.hex():
        return "its result is of other records than the store says"
    return ""


def _ledger_faults(analyzer: Analyzer, taken: dict[int, bytes], ledger: Ledger) -> Iterator[str]:
    """Yield the differences between ledger and store."""
    spent, known = {entry.key for entry in ledger.entries}, {root.hex() for root in taken.values()}
    for number, root in taken.items():
        if root.hex() not in spent:
            yield f"batch {number}: the ledger has no entry for it; put back a newer ledger"
    for entry in ledger.entries:
        if entry.note.startswith(note_of(analyzer.task, 0)[:-1]) and entry.key not in known:
            yield (
                f"{entry.note}: the ledger has spent it and the store does not know it; if the "
                "shuffler has it no more, the store is too old, and its reports could be counted "
                "again"
            )
