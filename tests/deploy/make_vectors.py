"""Write tests/vectors/deployment.json, from which other languages test their clients.

Run from the tests folder: ``python -m deploy.make_vectors``. Seals differ each time they are made,
so those in the file were sealed once and are kept; numbers and texts are hexadecimal bytes. What is
refused says at which place a byte was changed, or what was cut, and with which reason.
"""

import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from deploy.steps import open_outer
from shuffledp import Categories
from shuffledp.core.dummies import DummyLaw
from shuffledp.deploy import messages as m
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import HybridKey, ProtocolError, open_seal, uint

TARGET = Path(__file__).parents[1] / "vectors" / "deployment.json"
SEEDS = {name: bytes([at]) * 32 for at, name in enumerate(("operator", "shuffler", "analyzer"), 1)}
SIGNING = {name: Ed25519PrivateKey.from_private_bytes(SEEDS[name]) for name in SEEDS}
SEALING = {name: X25519PrivateKey.from_private_bytes(SEEDS[name]) for name in SEEDS}


def public(key):
    """Return the bytes of a public key."""
    return key.public_key().public_bytes_raw()


def make_task(**changes):
    """Return a task, some of whose fields are changed."""
    fields = {
        "info": "a survey",
        "shuffler_url": "https://shuffler.example",
        "analyzer_url": "https://analyzer.example",
        "start": 1_800_000_000,
        "epoch_seconds": 86_400,
        "num_epochs": 30,
        "min_batch": 10_000,
        "honest_ppm": 900_000,
        "short_batch": "hold",
        "asked": AskedTerms.of(Categories(["yes", "no"]), "k-rr", 2.0, "Well?"),
        "epsilon": "0.12",
        "delta": "1e-8",
        "operator_key": public(SIGNING["operator"]),
    }
    return Task(**{**fields, **changes})


TASK = make_task()
SHUFFLER_KEY = m.SealKey(number=2, public_key=public(SEALING["shuffler"]), first_epoch=2)
ANALYZER_KEY = m.SealKey(number=9, public_key=public(SEALING["analyzer"]))
REPORT_BYTES = TASK.asked.codec.num_report_bytes
RECORD_SIZE = TASK.record_bytes


def open_record(task_id, record, keys):
    """Return the randomized report in a record of a batch; None if it is sealed to no key."""
    key = keys.get(record[0])
    return None if key is None else open_seal(record[1:], key, m.inner_info(task_id))


def decoders():
    """Return, by kind of message, what takes its bytes apart, or refuses them."""
    return {
        "task": Task.decode,
        "keys": lambda data: m.SignedKeys.decode(data, "shuffler", TASK),
        "upload": lambda data: m.decode_upload(data, TASK),
        "batch": lambda data: m.Batch.decode(data, TASK, public(SIGNING["shuffler"])),
    }


def make_messages():
    """Return one message of each kind."""
    keys = m.SignedKeys(
        serial=3, not_after=1_900_000_000, keys=(SHUFFLER_KEY, ANALYZER_KEY)
    ).signed(SIGNING["operator"], "shuffler", TASK)
    reports = [
        m.Report.sealed_for(
            TASK,
            uint(value, 1),
            report_id=bytes([value]) * 16,
            epoch=2,
            shuffler=SHUFFLER_KEY,
            analyzer=ANALYZER_KEY,
        )
        for value in (0, 1)
    ]
    records = [open_outer(each, TASK.task_id, SEALING["shuffler"]) for each in reports]
    batch = m.Batch(
        TASK,
        number=1,
        first_epoch=2,
        last_epoch=2,
        num_opened=3,
        num_dishonest=1,
        records=tuple(records),
    ).signed(SIGNING["shuffler"])
    return {
        "task": TASK.encode(),
        "keys": keys.encode(),
        "upload": b"".join(each.encode() for each in reports),
        "batch": b"".join(batch.encode()),
    }


def analyzer_keys():
    """Return a list of the analyzer's in which a second key is used from epoch 5 on."""
    later = m.SealKey(number=10, public_key=public(SEALING["shuffler"]), first_epoch=5)
    made = m.SignedKeys(serial=2, not_after=1_900_000_000, keys=(later, ANALYZER_KEY))
    return made.signed(SIGNING["operator"], "analyzer", TASK).encode()


# Where each device sends a dummy of each answer at four in five devices, on average.
OWN_TASK = make_task(dummies=DummyLaw.from_text("poisson:0.4"), epsilon="0.1194")


def own_dummies():
    """Return a task whose devices send dummies, an upload of one, texts that none sends, slots."""
    size, slots = RECORD_SIZE, OWN_TASK.num_slots
    texts = [b"\0", b"\0", b"\1"]  # in one of which two are dummies
    report = m.Report.sealed_for(
        OWN_TASK,
        *texts,
        report_id=bytes(16),
        epoch=2,
        shuffler=SHUFFLER_KEY,
        analyzer=ANALYZER_KEY,
    )
    whole = open_outer(report, OWN_TASK.task_id, SEALING["shuffler"])
    one, two, three = m.records_of(whole, size, slots)

    def packed(*records, number=None):
        """Return records as a device seals them, in the order given."""
        count = uint(len(records) if number is None else number, 2)
        return (count + b"".join(records)).ljust(2 + slots * size, b"\0")

    refused = {
        "not in order": packed(two, one, three),
        "one twice": packed(one, one, two),
        "under two keys": packed(one, bytes([one[0] + 1]) + two[1:]),
        "none": packed(),
        "more than it says": packed(one, two, number=1),
        "fewer than it says": packed(one, two, number=3),
        "more than there may be": packed(one, two, three, number=slots + 1),
        "no padding": uint(3, 2) + one + two + three,
        "a byte more": whole + b"\0",
    }
    rows = (("0.4", 2), ("0.0007", 16), ("0.05", 2), ("0.5", 2), ("3.25", 100), ("1.0", 1000))
    return {
        "task": OWN_TASK.encode().hex(),
        "upload": report.encode().hex(),
        "outer_text": whole.hex(),
        "reports": sorted(each.hex() for each in texts),
        "refused": {what: text.hex() for what, text in refused.items()},
        "slots": [
            {
                "mean": mean,
                "answers": k,
                "slots": DummyLaw.from_text(f"poisson:{mean}").rare_number(k),
            }
            for mean, k in rows
        ],
    }


HYBRID_TASK = make_task(seal="hybrid")
HYBRID = {name: HybridKey(SEEDS[name]) for name in SEEDS}


def hybrid():
    """Return a task with the other seal, a list of keys and a report; seeds are `SEEDS`."""
    outer, inner = (
        m.SealKey(number=number, public_key=public(HYBRID[name]), first_epoch=epoch)
        for name, number, epoch in (("shuffler", 2, 2), ("analyzer", 9, 0))
    )
    keys = m.SignedKeys(serial=3, not_after=1_900_000_000, keys=(outer,))
    report = m.Report.sealed_for(
        HYBRID_TASK, b"\1", report_id=bytes(16), epoch=2, shuffler=outer, analyzer=inner
    )
    return {
        "task": HYBRID_TASK.encode().hex(),
        "keys": keys.signed(SIGNING["operator"], "shuffler", HYBRID_TASK).encode().hex(),
        "upload": report.encode().hex(),
        "report": "01",
    }


def honest():
    """Return, of batches, how many reports of each part are honest for certain."""
    rows = (
        # millionths honest, opened, junk, valid ones of each part, and how many are honest
        (1_000_000, 300, 0, [300], [300]),
        (1_000_000, 300, 1, [299], [299]),
        (900_000, 300, 1, [299], [270]),
        (900_000, 300, 31, [269], [242]),
        (900_000, 11_000, 0, [1_000, 10_000], [0, 8_900]),
        (900_000, 1_205, 0, [1_200], [1_079]),
    )
    names = "honest_ppm", "num_opened", "num_junk", "num_valid", "num_honest"
    found = [dict(zip(names, row, strict=True)) for row in rows]
    for each in found:
        opened, share = each["num_opened"], each["honest_ppm"]
        each["num_dishonest"] = opened - opened * share // 1_000_000
    return found


def changed(data):
    """Yield what was done to a message, and the message after it."""
    yield "empty", b""
    yield "one byte cut", data[:-1]
    yield "one byte more", data + b"\0"
    yield "first half", data[: len(data) // 2]
    yield "twice", data + data
    for place in sorted({0, 1, 2, 3, 8, len(data) // 3, len(data) // 2, len(data) - 1}):
        flipped = data[:place] + bytes([data[place] ^ 0x80]) + data[place + 1 :]
        yield f"byte {place} with its first bit changed", flipped


def main():
    """Write the file."""
    written = make_messages()
    refused = []
    for kind, data in written.items():
        for what, other in changed(data):
            try:
                decoders()[kind](other)
            except ProtocolError as error:
                refused.append(
                    {"kind": kind, "what": what, "bytes": other.hex(), "reason": error.reason.value}
                )
    other = make_task(info="another of this operator's")
    keys = m.SignedKeys(serial=3, not_after=1_900_000_000, keys=(SHUFFLER_KEY,))
    foreign = keys.signed(SIGNING["operator"], "shuffler", other).encode()
    what = {"kind": "keys", "what": "of another task of this operator's"}
    refused.append({**what, "bytes": foreign.hex(), "reason": "forged"})
    vectors = {
        "private_keys": {name: seed.hex() for name, seed in SEEDS.items()},
        "task_id": TASK.task_id.hex(),
        "task": TASK.asked.to_json_dict() | {"min_batch": TASK.min_batch, "epsilon": TASK.epsilon},
        "messages": {kind: data.hex() for kind, data in written.items()},
        "reports": ["00", "01"],
        "analyzer_keys": {
            "bytes": analyzer_keys().hex(),
            "number_by_epoch": [[0, 9], [4, 9], [5, 10], [29, 10]],
        },
        "honest": honest(),
        "own_dummies": own_dummies(),
        "hybrid": hybrid(),
        "refused": refused,
    }
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(vectors, indent=1) + "\n", encoding="utf-8")
    print(f"{len(refused)} refused")


if __name__ == "__main__":
    main()
