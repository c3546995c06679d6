"""Roles of a small task, with the keys of the vectors, on each kind of database."""

import math

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from deploy.databases import ENGINES, store_of
from deploy.make_vectors import (
    ANALYZER_KEY,
    SEALING,
    SIGNING,
    make_task,
    public,
)
from shuffledp import Categories
from shuffledp.core.dummies import DummyLaw
from shuffledp.deploy import messages as m
from shuffledp.deploy.analyzer import Analyzer
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.servers.settings import read_list
from shuffledp.deploy.shuffler import GRACE_SECONDS, Shuffler

SMALL = {"min_batch": 3, "honest_ppm": 1_000_000, "epsilon": "2"}
TASK = make_task(**SMALL)
LAW = TASK.asked.randomizer.profile
# Whose batches are safe whatever else is in them, one of answers themselves and one with noise.
LAPLACE = DummyLaw.from_text("laplace:2.025:27")
HIDDEN = SMALL | {"min_batch": 1, "dummies": LAPLACE, "epsilon": "1", "delta": "8e-7"}
BARE = HIDDEN | {
    "asked": AskedTerms.of(Categories(["yes", "no"]), "k-rr", math.inf, no_local_noise=True)
}
# Where each device sends half a dummy of each answer, and twenty hide each other's answers.
OWN = SMALL | {"min_batch": 20, "dummies": DummyLaw.from_text("poisson:0.5"), "delta": "1e-3"}
OWN_BARE = OWN | {"asked": BARE["asked"]}
# Of which three reports keep what two do not.
FEW = SMALL | {"delta": "0.05", "epsilon": "1.93"}
DAY = TASK.epoch_seconds


NEXT = X25519PrivateKey.from_private_bytes(bytes([7]) * 32)
NEW_KEY = m.SealKey(number=10, public_key=public(NEXT), first_epoch=1)


ENGINE = {"now": "sqlite"}


@pytest.fixture(autouse=True, params=ENGINES)
def engine(request):
    """Each test of this file runs on each kind of database."""
    ENGINE["now"] = request.param
    yield request.param
    ENGINE["now"] = "sqlite"


def handed_out_in(folder):
    """Return the file of the batches handed out, of none at first."""
    path = folder / "handed_out"
    path.touch()
    return path


def shuffler_for(task, folder, **more):
    if "handed_out" not in more:
        more["handed_out"] = handed_out_in(folder)
    shuffler = Shuffler(
        task,
        folder,
        signing_key=SIGNING["shuffler"],
        sealing_keys=dict.fromkeys(range(task.num_epochs), SEALING["shuffler"]),
        **{"database": store_of(ENGINE["now"], folder), **more},
    )
    shuffler.inner_keys |= {key.number: key.public_key for key in (ANALYZER_KEY, NEW_KEY)}
    return shuffler


def analyzer_for(task, folder, **more):
    return Analyzer(
        task,
        folder,
        shuffler_key=public(SIGNING["shuffler"]),
        **{
            "opening_keys": {9: SEALING["analyzer"]},
            "database": store_of(ENGINE["now"], folder),
            **more,
        },
    )


def key_of(epoch):
    """Return the key of an epoch; each epoch's is the same here."""
    return m.SealKey(number=epoch % 256, public_key=public(SEALING["shuffler"]))


SHUFFLER_KEY = key_of(0)


def upload(task, report, *, number, epoch=0, key=None, analyzer=ANALYZER_KEY):
    """Return one sealed report, or several bytes of dummies and a report."""
    return m.Report.sealed_for(
        task,
        *m.split(report, task.asked.codec.num_report_bytes),
        report_id=number.to_bytes(16, "big"),
        epoch=epoch,
        shuffler=key or key_of(epoch),
        analyzer=analyzer,
    ).encode()


def at(epoch, seconds=0):
    return TASK.start + epoch * DAY + seconds


OVER = DAY + GRACE_SECONDS  # when an epoch's batch is due, after its beginning


def batch_of(task, records, *, number=1, signer="shuffler", num_held=0, num_true=None):
    num_opened = (len(records) if num_true is None else num_true) + num_held
    batch = m.Batch(
        task,
        number=number,
        first_epoch=0,
        last_epoch=0,
        records=tuple(records),
        num_opened=num_opened,
        num_dishonest=task.most_dishonest(num_opened),
        num_true=num_true,
    ).signed(SIGNING[signer])
    return b"".join(batch.encode())


def record(report, task=TASK, key=9):
    inner = m.seal(report, ANALYZER_KEY.public_key, m.inner_info(task.task_id))
    return bytes([key]) + inner


def sent(task, settings, *, epoch, numbers):
    """Return an upload of reports sealed to the keys that the servers list."""
    sealing = read_list(settings.public_keys, task, "shuffler").key_of_epoch(epoch)
    opening = read_list(settings.analyzer_keys, task, "analyzer").key_from(epoch)
    return b"".join(
        upload(task, b"\0", number=number, epoch=epoch, key=sealing, analyzer=opening)
        for number in numbers
    )
