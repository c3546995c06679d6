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
from shuffledp import AnswerSets, Categories, Mean
from shuffledp.accounting.account import account
from shuffledp.core.errors import ParameterError
from shuffledp.deploy import messages as m
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Fault, ProtocolError, Reason, opaque

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


def test_kept_reports_open_to_what_was_randomized():
    reports = m.decode_upload(bytes_of("upload"), REPORT_BYTES)
    records = [open_outer(each, TASK.task_id, SEALING["shuffler"]) for each in reports]
    opened = [open_record(TASK.task_id, each, {9: SEALING["analyzer"]}) for each in records]
    assert [each.hex() for each in opened] == VECTORS["reports"]
    batch = decoders()["batch"](bytes_of("batch"))
    assert batch.records == tuple(sorted(records))
    assert TASK.task_id.hex() == VECTORS["task_id"]


def test_which_key_of_the_analyzer_a_device_uses_follows_from_the_epoch():
    data = bytes.fromhex(VECTORS["analyzer_keys"]["bytes"])
    found = m.SignedKeys.decode(data, TASK.operator_key, "analyzer", TASK.task_id)
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


# ---------------------------------------------------------------- tasks
def test_a_task_comes_back_and_any_change_is_another_task():
    assert Task.decode(TASK.encode()) == TASK
    others = [
        make_task(**change)
        for change in (
            {"info": "another"},
            {"start": 0},
            {"min_batch": 9_999},
            {"honest_ppm": 1},
            {"short_batch": "drop"},
            {"epsilon": "0.120"},
            {"delta": "1e-9"},
            {"operator_key": bytes(32)},
        )
    ]
    assert len({each.task_id for each in (TASK, *others)}) == 1 + len(others)


def test_the_guarantee_counts_honest_reports_and_a_lower_promise_is_refused():
    TASK.check()
    found = TASK.guarantee()
    assert TASK.num_honest == 9_000
    law = TASK.asked.randomizer.profile
    assert found.epsilon == account(law, num_users=9_000, delta=1e-8).epsilon
    assert TASK.guarantee(20_000).epsilon_upper < found.epsilon_upper
    with pytest.raises(ProtocolError, match=r"promises epsilon = 0\.05") as caught:
        make_task(epsilon="0.05").check()
    assert (caught.value.fault, caught.value.reason) == (Fault.OPERATOR, Reason.FORGED)


def test_epochs():
    at = TASK.start
    assert [TASK.epoch_at(at - 1), TASK.epoch_at(at), TASK.epoch_at(at + 86_400)] == [None, 0, 1]
    assert TASK.epoch_at(at + 30 * 86_400) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"info": ""},
        {"info": "x" * 256},
        {"shuffler_url": ""},
        {"start": -1},
        {"epoch_seconds": 0},
        {"num_epochs": True},
        {"min_batch": 0},
        {"honest_ppm": 1_000_001},
        {"short_batch": "keep"},
        {"operator_key": b"short"},
        {"epsilon": "0"},
        {"epsilon": "nan"},
        {"epsilon": " 1"},
        {"delta": "1"},
        {"delta": "1e-9999"},
    ],
    ids=str,
)
def test_a_task_out_of_range_is_refused(changes):
    with pytest.raises(ParameterError):
        make_task(**changes)


@pytest.mark.parametrize(
    ("question", "randomizer", "what"),
    [
        (Categories([f"{number:05}" for number in range(9_000)]), "k-rr", "the question"),
        (
            AnswerSets([str(number) for number in range(4_000)], max_answers=200),
            "split:symmetric-unary",
            "a report",
        ),
    ],
    ids=["answers", "report"],
)
def test_a_question_that_a_task_has_no_room_for_is_refused(question, randomizer, what):
    with pytest.raises(ParameterError, match=f"{what}.* is not a whole number in"):
        make_task(asked=AskedTerms.of(question, randomizer, 200.0))


def test_a_name_that_is_no_text_is_refused_also_where_it_makes_the_task_too_long():
    mean = AskedTerms.of(Mean(0, 1), "duchi", 2.0)
    name = list(range(11_000))
    written = [
        json.dumps(each, sort_keys=True, separators=(",", ":")).encode()
        for each in (mean.to_json_dict(), {**mean.to_json_dict(), "question": {
            **mean.question.to_json_dict(), "name": name}})
    ]  # fmt: skip
    data = make_task(asked=mean).encode().replace(*(opaque(each, 2) for each in written))
    with pytest.raises(ProtocolError):
        Task.decode(data)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"yes"', b'"no"'),  # two equal answers
        (b'"labels"', b'"label"'),
        (b"a survey", b"a \xff\xff\xff\xff\xff\xff"),
        (b"\x00\x00\x1e", b"\x00\x00\x1e"),  # unchanged: the next case is what counts
    ],
)
def test_a_task_with_a_question_that_is_none_is_refused(old, new):
    data = TASK.encode()
    written = json.dumps(TASK.asked.to_json_dict(), sort_keys=True, separators=(",", ":")).encode()
    changed_terms = written.replace(old, new) + (b" " if old == new else b"")
    start = data.index(opaque(written, 2))
    other = data[:start] + opaque(changed_terms, 2) + data[start + 2 + len(written) :]
    if old == b"a survey":
        other = data.replace(old, new)
    with pytest.raises(ProtocolError):
        Task.decode(other)


# ---------------------------------------------------------------- seals
def test_a_report_opens_only_under_its_own_task_epoch_and_id():
    report = m.decode_upload(make_messages()["upload"], REPORT_BYTES)[0]
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
    assert len(m.decode_upload(one * 1000, REPORT_BYTES)) == 1000
    with pytest.raises(ProtocolError, match="1 to 1,000 reports"):
        m.decode_upload(one * 1001, REPORT_BYTES)


# ---------------------------------------------------------------- keys and batches
def test_keys_need_the_operator_and_numbers_of_their_own():
    def encode(*keys, signer="operator", role="shuffler", task=TASK):
        made = m.SignedKeys(serial=1, not_after=2, keys=keys)
        return made.signed(SIGNING[signer], role, task.task_id).encode()

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
        return m.Batch.signed(
            SIGNING["shuffler"], TASK.task_id, order, number=1, epochs=(0, 4),
            record_size=RECORD_SIZE, num_opened=9, num_dishonest=1,
        )  # fmt: skip

    assert batch_of(records) == batch_of(sorted(records))


@pytest.mark.parametrize("what", ["order", "size", "epochs", "record", "opened", "dishonest"])
def test_a_signed_batch_that_is_none_is_refused(what):
    records = (b"b" * RECORD_SIZE, b"a" * RECORD_SIZE)
    records = records if what == "order" else tuple(sorted(records))
    batch = m.Batch(
        task_id=TASK.task_id,
        number=1,
        first_epoch=5 if what == "epochs" else 0,
        last_epoch=4,
        record_size=RECORD_SIZE + (what == "size"),
        num_opened=1 if what == "opened" else 2,
        num_dishonest=3 if what == "dishonest" else 0,
        records=records,
        root=hashlib.sha256(b"".join(records)).digest(),
        signature=b"",
    )
    signature = SIGNING["shuffler"].sign(batch._head())
    data = batch._head() + signature + b"".join(batch.records)
    if what == "record":
        data = data[:-1] + b"x"
    with pytest.raises(ProtocolError):
        m.Batch.decode(data, TASK.task_id, RECORD_SIZE, public(SIGNING["shuffler"]))
