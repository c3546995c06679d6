"""What a shuffler does in one step, as its server does it in several."""

from itertools import starmap

from shuffledp.deploy.messages import decode_upload, outer_info
from shuffledp.deploy.servers.batches import open_texts
from shuffledp.deploy.wire import open_seal


def take(shuffler, body, now):
    """Take in an upload; return what became of each report."""
    task = shuffler.task
    shuffler.prepare(now)
    return shuffler.take(decode_upload(body, task), now)


def advance(shuffler, now):
    """Close epochs that are over, seal what is closed; return what changed."""
    found = []
    for state in shuffler.closed(now):
        held, _, pages = shuffler.to_open(state)
        opened = list(starmap(open_texts, pages))
        dummies = shuffler.keep_dummies(state, shuffler.seal_dummies(held, opened))
        written = shuffler.write(state, held, opened, dummies)
        found.append(shuffler.settle(state, written))
    delete_fetched(shuffler)
    return found


def forget(shuffler, number):
    """Forget a batch, and delete its file."""
    shuffler.forget(number)
    delete_fetched(shuffler)


def delete_fetched(shuffler):
    """Delete the files of fetched batches."""
    for each in shuffler.to_delete():
        shuffler.delete(each)
        shuffler.deleted(each)


def open_outer(report, task_id, private_key):
    """Return what a report has for the analyzer; None if it does not open."""
    info = outer_info(task_id, report.epoch, report.report_id)
    return open_seal(report.sealed, private_key, info)
