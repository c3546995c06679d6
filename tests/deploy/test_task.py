"""Tasks: one spelling, a promise that is kept, and a question that there is room for."""

import json
import math

import pytest

from deploy.make_vectors import (
    TASK,
    make_task,
)
from shuffledp import AnswerSets, Categories, Mean
from shuffledp.accounting.account import account
from shuffledp.accounting.guarantees import guarantee_for
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.messages import report_size
from shuffledp.deploy.task import Task
from shuffledp.deploy.wire import Fault, ProtocolError, Reason, opaque, uint


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
    assert [TASK.most_dishonest(number) for number in (0, 1, 10, 11)] == [0, 1, 1, 2]
    hidden = [TASK.most_hidden(10, num_junk=junk, num_opened=100) for junk in (0, 10, 11)]
    assert hidden == [10, 0, 9]  # at last a tenth of the 89 others, rounded up
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
        {"honest_ppm": 0},
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


def test_a_name_that_cannot_be_written_is_refused():
    with pytest.raises(DataError, match="info or a URL of the task holds bytes that are no text"):
        make_task(info="\udce4")


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


def test_a_file_that_is_no_task_is_not_called_a_task_of_another_version():
    with pytest.raises(ProtocolError, match=r"no task, or of another version: give task\.bin"):
        Task.decode(b"answer\nyes\n")


def test_a_hybrid_seal_is_an_extension_that_makes_another_task():
    task = make_task(seal="hybrid")
    extension = uint(2, 2) + opaque(b"hybrid", 2)
    assert task.encode() == make_task().encode()[:-2] + opaque(extension, 2)
    assert Task.decode(task.encode()) == task
    assert report_size(*task.sizes) == report_size(*make_task().sizes) + 2 * 1088
    for text in (b"x25519", b"hybrid2", b""):
        with pytest.raises(ProtocolError):
            Task.decode(task.encode()[:-12] + opaque(uint(2, 2) + opaque(text, 2), 2))
    with pytest.raises(ParameterError, match="seal = 'rsa' is not one of"):
        make_task(seal="rsa")


class TestDummies:
    LAW = DummyLaw.from_text("laplace:2.025:27")
    TASK = make_task(dummies=LAW, min_batch=1, epsilon="0.8", delta="8e-7")

    def test_they_are_an_extension_which_other_tasks_do_not_have(self):
        data, text = self.TASK.encode(), b"laplace:2.025:27"
        assert data.endswith(opaque(uint(1, 2) + opaque(text, 2), 2))
        assert Task.decode(data) == self.TASK
        plain = make_task(min_batch=1, honest_ppm=1_000_000, epsilon="2")
        assert plain.encode().endswith(opaque(b"", 2))
        other = make_task(dummies=DummyLaw.from_text("laplace:2.025:28"), min_batch=1)
        assert len({each.task_id for each in (self.TASK, plain, other)}) == 3

    @pytest.mark.parametrize(
        "extensions",
        [
            uint(1, 2) + opaque(b"laplace:2.0250:27", 2),  # another spelling
            uint(1, 2) + opaque(b"laplace:2.025:27", 2) * 2,
            uint(1, 2) + opaque(b"laplace:\xff", 2),
            uint(1, 2) + opaque(b"poisson:3", 2),
            uint(1, 2) + opaque(b"laplace:2.025:20001", 2),
            uint(2, 2) + opaque(b"laplace:2.025:27", 2),
            b"\0",
        ],
    )
    def test_what_spells_no_dummies_in_the_one_way_is_refused(self, extensions):
        plain = self.TASK.encode()[: -len(opaque(uint(1, 2) + opaque(b"laplace:2.025:27", 2), 2))]
        with pytest.raises(ProtocolError) as caught:
            Task.decode(plain + opaque(extensions, 2))
        assert caught.value.fault is Fault.OPERATOR

    def test_the_promise_holds_for_one_report_whoever_else_lies(self):
        self.TASK.check()
        assert make_task(dummies=self.LAW, min_batch=7, honest_ppm=1).num_honest == 1
        found = self.TASK.guarantee()
        law = self.TASK.asked.randomizer.profile
        assert found == guarantee_for(law, 1, delta=8e-7, dummies=self.LAW)
        assert found == self.TASK.guarantee(10**6)
        assert self.TASK.keeps(1)
        assert self.TASK.keeps(10**6)
        alone = self.TASK.without_dummies()
        assert alone.epsilon_upper == pytest.approx(law.epsilon0)
        assert self.TASK.without_dummies(10**4).epsilon_upper < 0.5
        with pytest.raises(ProtocolError, match="give dummies of a larger scale"):
            make_task(dummies=self.LAW, min_batch=1, epsilon="0.5", delta="8e-7").check()
        least = make_task(dummies=self.LAW, min_batch=10**6, epsilon="0.5", delta="8e-7")
        assert not least.keeps(10**6)  # a crowd would hide a report, but it may lie
        assert self.TASK.release(10**6).num_users == 1

    def test_answers_without_noise_need_them(self):
        bare = AskedTerms.of(Categories(["yes", "no"]), "k-rr", math.inf, no_local_noise=True)
        assert AskedTerms.from_json_dict(json.loads(bare.to_json())) == bare
        assert bare.to_json_dict()["epsilon0"] is None
        assert "without noise" in dict(bare.facts())["your report"]
        task = make_task(asked=bare, dummies=self.LAW, min_batch=1, epsilon="1", delta="8e-7")
        task.check()
        assert Task.decode(task.encode()) == task
        assert task.without_dummies().epsilon_upper == math.inf
        with pytest.raises(ProtocolError, match="what is proved is 0"):
            make_task(asked=bare, dummies=self.LAW, epsilon="0.98", delta="8e-7").check()
        with pytest.raises(ParameterError, match="only dummies hide an answer"):
            make_task(asked=bare)
        with pytest.raises(ParameterError):
            AskedTerms.of(Categories(["yes", "no"]), "k-rr", math.inf)

    @pytest.mark.parametrize(
        ("law", "asked", "what"),
        [
            (
                "poisson:3",
                AskedTerms.of(Categories(["yes", "no"]), "symmetric-unary", 2.0),
                "do not go with symmetric-unary: take the randomizer k-rr",
            ),
            (
                "laplace:2.025:27",
                AskedTerms.of(Categories(["yes", "no"]), "symmetric-unary", 2.0),
                "the randomizer k-rr",
            ),
            (
                "laplace:20:600",
                AskedTerms.of(Categories(map(str, range(2000))), "k-rr", 2.0),
                "1,200,000 a batch for 2,000 answers, above 1,000,000: ask for fewer answers",
            ),
        ],
    )
    def test_dummies_that_cannot_be_are_refused(self, law, asked, what):
        with pytest.raises(ParameterError, match=what):
            make_task(dummies=DummyLaw.from_text(law), asked=asked)
