"""Whatever arrives is read or refused, by ProtocolError or another of our errors, and never else.

Valid messages are changed at random, those that are signed are signed again: the liar may be who
signs. The short run is in ``make test``, a million messages in ``make test-all``.
"""

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploy.make_vectors import (
    RECORD_SIZE,
    SEALING,
    SIGNING,
    TASK,
    make_messages,
    make_task,
    open_record,
    public,
)
from deploy.steps import open_outer
from deploy.test_dap import COUNT, dap_task
from shuffledp import AnswerSets, Categories, Mean, VectorMean
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ShuffledpError
from shuffledp.deploy import messages as m
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.dap import DapTask
from shuffledp.deploy.messages import new_codes, read_codes, write_code
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import opaque

MESSAGES = make_messages()
HEAD = len(MESSAGES["batch"]) - 2 * RECORD_SIZE - 64
ASKED = [
    AskedTerms.of(question, randomizer, 2.0, "Well?")
    for question, randomizer in (
        (Categories(["yes", "no"]), "k-rr"),
        (Categories([str(i) for i in range(40)]), "subset-selection"),
        (Mean(0, 120), "piecewise"),
        (VectorMean(["x", "y"], norm_bound=1.0), "privunit"),
        (AnswerSets(["a", "b", "c"], max_answers=2), "sampled:k-rr"),
    )
]


def read_keys(data):
    """Take the list of keys apart, signed by an operator who lies."""
    signature = SIGNING["operator"].sign(b"sdp1 keys shuffler " + TASK.task_id + data)
    return m.SignedKeys.decode(data + signature, "shuffler", TASK)


def read_batch(data):
    """Take a batch apart, whose shuffler signs whatever its head says."""
    signature = SIGNING["shuffler"].sign(data[:HEAD])
    batch = m.Batch.decode(
        data[:HEAD] + signature + data[HEAD:], TASK,
        public(SIGNING["shuffler"]),
    )  # fmt: skip
    for record in batch.records:
        open_record(TASK.task_id, record, {9: SEALING["analyzer"]})
    return batch


def read_upload(data):
    """Take an upload apart; open what is in it, as the shuffler does."""
    for report in m.decode_upload(data, TASK):
        open_outer(report, TASK.task_id, SEALING["shuffler"])


def read_text(data):
    """Take a file of codes apart."""
    return read_codes(data.decode("latin-1"))


# What is changed, and what takes it apart, in the order of how often it is done.
DECODERS = {
    "upload": (MESSAGES["upload"], read_upload),
    "batch": (MESSAGES["batch"][:HEAD] + MESSAGES["batch"][HEAD + 64 :], read_batch),
    "keys": (MESSAGES["keys"][:-64], read_keys),
    "DAP histogram": (dap_task(), DapTask.decode),
    "DAP count": (dap_task(vdaf=COUNT), DapTask.decode),
    "codes": ("\n".join(map(write_code, new_codes(3))).encode(), read_text),
    "answers": (bytes(range(6)), lambda data: m.decode_answers(data, 6)),
    **{
        f"task about {asked.question.kind}, {asked.randomizer.name}": (
            make_task(asked=asked).encode(),
            Task.decode,
        )
        for asked in ASKED
    },
}

# Bytes at which lengths, counts and texts break.
EDGES = np.frombuffer(b'\x00\x01\x7f\x80\xfe\xff"{}[],:\\-.0129eE', dtype=np.uint8)


def changed(data, draw):
    """Return a message with one to four bytes changed, perhaps cut, or with a piece of it again."""
    found = np.frombuffer(data, dtype=np.uint8).copy()
    for place in draw.integers(len(found), size=draw.integers(1, 5)):
        how = draw.integers(3)
        if how == 0:
            found[place] = draw.integers(256)
        elif how == 1:
            found[place] ^= np.uint8(1 << draw.integers(8))
        else:
            found[place] = EDGES[draw.integers(EDGES.size)]
    kind = draw.integers(8)
    first, last = sorted(draw.integers(len(found) + 1, size=2))
    if kind == 0:
        found = found[:last]
    elif kind == 1:
        found = np.concatenate([found[:last], found[first:last], found[last:]])
    elif kind == 2:
        found = np.delete(found, slice(first, min(last, first + 4)))
    return found.tobytes()


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize(
    "number", [2_000, pytest.param(84_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_changed_messages_are_read_or_refused(kind, number):
    data, decode = DECODERS[kind]
    decode(data)
    draw = Entropy.from_seed(number).generator()
    num_refused = 0
    for _ in range(number):
        other = changed(data, draw)
        try:
            decode(other)
        except ShuffledpError as error:
            assert str(error)  # noqa: PT017  # any of our errors will do
            num_refused += 1
    assert num_refused > number // 20


def test_the_slow_run_is_of_a_million_messages():
    assert 84_000 * len(DECODERS) >= 1_000_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ASKED), st.data())
def test_terms_with_any_json_in_them_are_read_or_refused(asked, data):
    """What the task's frame cannot tell: values of other kinds, sizes and depths."""
    written = json.loads(json.dumps(asked.to_json_dict()))
    target = written
    if data.draw(st.booleans()):
        target = written["question"]
    name = data.draw(st.sampled_from(sorted(target)))
    if data.draw(st.integers(0, 5)) == 0:
        del target[name]
    else:
        target[name] = data.draw(JSON)
    other = json.dumps(written, sort_keys=True, separators=(",", ":")).encode()
    mine = json.dumps(asked.to_json_dict(), sort_keys=True, separators=(",", ":")).encode()
    task = make_task(asked=asked).encode().replace(opaque(mine, 2), opaque(other, 2))
    with suppress(ShuffledpError):
        Task.decode(task)
