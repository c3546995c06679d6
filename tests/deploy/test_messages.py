"""Tasks and messages of a deployment as bytes: one spelling, and nothing else is read."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.make_vectors import (
    ANALYZER_KEY,
    HYBRID,
    HYBRID_TASK,
    OWN_TASK,
    RECORD_SIZE,
    REPORT_BYTES,
    SEALING,
    SHUFFLER_KEY,
    SIGNING,
    TASK,
    changed,
    decoders,
    make_messages,
    make_task,
    open_record,
    public,
)
from deploy.steps import open_outer
from shuffledp.core.dummies import DummyLaw
from shuffledp.deploy import messages as m
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import ProtocolError, Reason, uint

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "deployment.json").read_text())
KINDS = tuple(VECTORS["messages"])


def bytes_of(kind):
    return bytes.fromhex(VECTORS["messages"][kind])


# ---------------------------------------------------------------- vectors
@pytest.mark.parametrize("kind", KINDS)
def test_kept_messages_are_read_and_written_alike(kind):
    found = decoders()[kind](bytes_of(kind))
    if kind == "upload":
        assert b"".join(each.encode() for each in found) == bytes_of(kind)
    elif kind == "batch":
        assert b"".join(found.encode()) == bytes_of(kind)
    else:
        assert found.encode() == bytes_of(kind)


def test_kept_messages_of_the_hybrid_seal_are_read_and_the_report_opens():
    kept = {name: bytes.fromhex(each) for name, each in VECTORS["hybrid"].items()}
    task = Task.decode(kept["task"])
    assert task == HYBRID_TASK
    keys = m.SignedKeys.decode(kept["keys"], "shuffler", task)
    assert keys.encode() == kept["keys"]
    assert [each.public_key for each in keys.keys] == [public(HYBRID["shuffler"])]
    other = keys.signed(SIGNING["operator"], "shuffler", TASK)
    with pytest.raises(ProtocolError) as caught:  # a list of the other seal
        m.SignedKeys.decode(other.encode(), "shuffler", TASK)
    assert caught.value.reason is Reason.MISMATCH
    (report,) = m.decode_upload(kept["upload"], task)
    record = open_outer(report, task.task_id, HYBRID["shuffler"])
    assert open_record(task.task_id, record, {9: HYBRID["analyzer"]}) == kept["report"]


def test_kept_reports_open_to_what_was_randomized():
    reports = m.decode_upload(bytes_of("upload"), TASK)
    records = [open_outer(each, TASK.task_id, SEALING["shuffler"]) for each in reports]
    opened = [open_record(TASK.task_id, each, {9: SEALING["analyzer"]}) for each in records]
    assert [each.hex() for each in opened] == VECTORS["reports"]
    batch = decoders()["batch"](bytes_of("batch"))
    assert batch.records == tuple(sorted(records))
    assert TASK.task_id.hex() == VECTORS["task_id"]


def test_which_key_of_the_analyzer_a_device_uses_follows_from_the_epoch():
    data = bytes.fromhex(VECTORS["analyzer_keys"]["bytes"])
    found = m.SignedKeys.decode(data, "analyzer", TASK)
    for epoch, number in VECTORS["analyzer_keys"]["number_by_epoch"]:
        assert found.key_from(epoch).number == number
    with pytest.raises(ProtocolError, match="no key for epoch 1"):
        replace(found, keys=found.keys[:1]).key_from(1)


def test_how_many_reports_of_a_part_are_honest():
    for each in VECTORS["honest"]:
        task = make_task(honest_ppm=each["honest_ppm"])
        most, num_opened = task.most_dishonest(each["num_opened"]), each["num_opened"]
        hidden = task.most_hidden(most, num_junk=each["num_junk"], num_opened=num_opened)
        found = [max(0, valid - hidden) for valid in each["num_valid"]]
        assert (most, found) == (each["num_dishonest"], each["num_honest"])


def test_what_other_languages_must_refuse():
    assert len(VECTORS["refused"]) >= 40
    assert {each["kind"] for each in VECTORS["refused"]} == set(KINDS)
    for each in VECTORS["refused"]:
        with pytest.raises(ProtocolError) as caught:
            decoders()[each["kind"]](bytes.fromhex(each["bytes"]))
        assert caught.value.reason.value == each["reason"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_message_is_refused_or_still_no_other_report(kind):
    """Only sealed bytes of an upload may change unseen: they no longer open."""
    for _, other in changed(make_messages()[kind]):
        try:
            found = decoders()[kind](other)
        except ProtocolError:
            continue
        assert kind == "upload"
        opened = [open_outer(each, TASK.task_id, SEALING["shuffler"]) for each in found]
        assert None in opened or len(found) in {1, 4}  # one of the two, or both twice


@given(st.sampled_from(KINDS), st.binary(max_size=400))
def test_random_bytes_are_refused(kind, data):
    with pytest.raises(ProtocolError):
        decoders()[kind](data)


# ---------------------------------------------------------------- seals
def test_a_report_opens_only_under_its_own_task_epoch_and_id():
    report = m.decode_upload(make_messages()["upload"], TASK)[0]
    key = SEALING["shuffler"]
    assert open_outer(report, TASK.task_id, key) is not None
    assert open_outer(report, make_task(info="other").task_id, key) is None
    for change in ({"epoch": 3}, {"report_id": b"x" * 16}):
        fields = {"report_id": report.report_id, "epoch": report.epoch, **change}
        other = m.Report(key=7, sealed=report.sealed, **fields)
        assert open_outer(other, TASK.task_id, key) is None
    record = open_outer(report, TASK.task_id, key)
    assert open_record(make_task(info="other").task_id, record, {9: SEALING["analyzer"]}) is None
    assert open_record(TASK.task_id, record, {8: SEALING["analyzer"]}) is None


def test_all_reports_of_a_task_have_one_size():
    upload = make_messages()["upload"]
    assert len(upload) == 2 * m.report_size(REPORT_BYTES) == 2 * (REPORT_BYTES + 118)
    assert RECORD_SIZE == REPORT_BYTES + 49


def test_an_upload_has_one_to_a_thousand_reports():
    one = make_messages()["upload"][: m.report_size(REPORT_BYTES)]
    assert len(m.decode_upload(one * 1000, TASK)) == 1000
    with pytest.raises(ProtocolError, match="1 to 1,000 reports"):
        m.decode_upload(one * 1001, TASK)


# ---------------------------------------------------------------- keys and batches
def test_keys_need_the_operator_and_numbers_of_their_own():
    def encode(*keys, signer="operator", role="shuffler", task=TASK):
        made = m.SignedKeys(serial=1, not_after=2, keys=keys)
        return made.signed(SIGNING[signer], role, task).encode()

    decode = decoders()["keys"]
    assert decode(encode(SHUFFLER_KEY)).keys == (SHUFFLER_KEY,)
    low_order = m.SealKey(number=1, public_key=bytes(32))
    for data in (
        encode(SHUFFLER_KEY, signer="shuffler"),
        encode(SHUFFLER_KEY, role="analyzer"),  # the other server's
        encode(SHUFFLER_KEY, task=make_task(info="another of this operator's")),
        encode(),
        encode(SHUFFLER_KEY, replace(ANALYZER_KEY, number=SHUFFLER_KEY.number)),
        encode(SHUFFLER_KEY, replace(ANALYZER_KEY, first_epoch=SHUFFLER_KEY.first_epoch)),
        encode(low_order),
        encode(m.SealKey(number=1, public_key=b"short")),
    ):
        with pytest.raises(ProtocolError):
            decode(data)


@given(st.permutations([bytes([value]) * RECORD_SIZE for value in (3, 1, 2, 2, 9)]))
def test_a_batch_is_a_function_of_the_multiset_alone(records):
    def batch_of(order):
        return m.Batch(TASK, 1, 0, 4, num_opened=9, num_dishonest=1, records=tuple(order))

    assert batch_of(records) == batch_of(sorted(records))


@pytest.mark.parametrize("what", ["order", "size", "epochs", "record", "opened", "dishonest"])
def test_a_signed_batch_that_is_none_is_refused(what):
    records = (b"b" * RECORD_SIZE, b"a" * RECORD_SIZE)
    records = records if what == "order" else tuple(sorted(records))
    batch = m.Batch(
        TASK,
        number=1,
        first_epoch=5 if what == "epochs" else 0,
        last_epoch=4,
        num_opened=1 if what == "opened" else 2,
        num_dishonest=3 if what == "dishonest" else 0,
        records=records,
    )
    body = b"".join(records)
    head = batch._head()[:-32] + hashlib.sha256(body).digest()
    if what == "size":
        head = head[:50] + uint(RECORD_SIZE + 1) + head[54:]
    data = head + SIGNING["shuffler"].sign(head) + body
    if what == "record":
        data = data[:-1] + b"x"
    with pytest.raises(ProtocolError):
        m.Batch.decode(data, TASK, public(SIGNING["shuffler"]))


# ---------------------------------------------------------------- dummies
class TestKeptDummiesOfDevices:
    KEPT = VECTORS["own_dummies"]

    def test_the_upload_of_a_device_opens_to_its_report_and_dummies(self):
        task = Task.decode(bytes.fromhex(self.KEPT["task"]))
        body, slots = bytes.fromhex(self.KEPT["upload"]), task.num_slots
        (report,) = m.decode_upload(body, task)
        assert report.encode() == body
        text = open_outer(report, task.task_id, SEALING["shuffler"])
        assert text.hex() == self.KEPT["outer_text"]
        records = m.records_of(text, RECORD_SIZE, slots)
        opened = [open_record(task.task_id, each, {9: SEALING["analyzer"]}) for each in records]
        assert sorted(each.hex() for each in opened) == self.KEPT["reports"]

    @pytest.mark.parametrize("what", VECTORS["own_dummies"]["refused"])
    def test_what_no_device_sends_is_refused(self, what):
        task, text = Task.decode(bytes.fromhex(self.KEPT["task"])), self.KEPT["refused"][what]
        assert m.records_of(bytes.fromhex(text), RECORD_SIZE, task.num_slots) == []

    def test_slots_are_as_they_were(self):
        for row in self.KEPT["slots"]:
            law = DummyLaw.from_text(f"poisson:{row['mean']}")
            assert law.rare_number(row["answers"]) == row["slots"]


@pytest.mark.parametrize("num_true", [0, 1, 2])
def test_a_batch_with_dummies_says_how_many_records_are_reports(num_true):
    records = (b"a" * RECORD_SIZE, b"b" * RECORD_SIZE)
    batch = m.Batch(
        OWN_TASK, 1, 0, 4, num_opened=1, num_dishonest=0, records=records, num_true=num_true
    ).signed(SIGNING["shuffler"])
    data, key = b"".join(batch.encode()), public(SIGNING["shuffler"])
    with pytest.raises(ProtocolError) as caught:
        m.Batch.decode(data, TASK, key)
    assert caught.value.reason is Reason.MISMATCH
    with pytest.raises(ProtocolError):
        m.Batch.decode(make_messages()["batch"], OWN_TASK, key)
    if num_true == 2:  # more than were opened
        with pytest.raises(ProtocolError):
            m.Batch.decode(data, OWN_TASK, key)
        return
    assert m.Batch.decode(data, OWN_TASK, key) == batch
    assert (batch.num_dummies, batch.num_held) == (2 - num_true, 1 - num_true)
