"""Roles killed at random moments: what was acknowledged counts once, and nothing twice."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from deploy.databases import ENGINES, store_of
from deploy.killed import Victim, run_analyzer, run_client, run_shuffler
from deploy.make_vectors import ANALYZER_KEY, SEALING, make_task, open_record
from deploy.roles import (
    FEW,
    OVER,
    SMALL,
    analyzer_for,
    at,
    batch_of,
    record,
    shuffler_for,
    upload,
)
from deploy.steps import advance, open_outer
from deploy.test_parts import BOTH_KEYS, NEW_KEY
from shuffledp import Categories
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import open_ledger, save_ledger
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.deploy import messages as m
from shuffledp.deploy.asked_terms import AskedTerms

NUM_REPORTS = 250
TASK = make_task(
    **SMALL
    | {"asked": AskedTerms.of(Categories([str(i) for i in range(NUM_REPORTS)]), "k-rr", 1.0)}
)

# Some 750 dummies a batch, of which each answer has its share.
WITH_DUMMIES = {"dummies": DummyLaw.from_text("laplace:1.0:3"), "epsilon": "2", "delta": "0.2"}
# Half a dummy a device, so that a third of the uploads have one or more.
OWN = {"dummies": DummyLaw.from_text("poisson:0.002"), "epsilon": "2", "delta": "0.2"}
SHORT = make_task(**SMALL)  # whose guarantee is found in milliseconds

# Each of these is killed so often; a start and what is done until the end take some 20 ms.
KILLS = pytest.mark.parametrize(
    "num_kills", [20, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])]
)
ON_EACH = pytest.mark.parametrize("engine", ENGINES)
EITHER = pytest.mark.parametrize(
    "changes", [{}, WITH_DUMMIES, OWN], ids=["plain", "dummies", "devices' dummies"]
)


def shares(task):
    """Return what each device sends: its number, and the dummies that it drew."""
    entropy = Entropy.from_seed(9)
    return [b"".join(task.with_own_dummies(bytes([i]), entropy)) for i in range(NUM_REPORTS)]


@pytest.fixture
def draw(num_kills):
    return Entropy.from_seed(num_kills).generator()


@KILLS
@ON_EACH
@EITHER
def test_what_a_shuffler_acknowledged_is_released_once(tmp_path, engine, num_kills, draw, changes):
    database, task = store_of(engine, tmp_path), replace(TASK, **changes)
    texts, slots = shares(task), task.num_slots
    bodies = [upload(task, text, number=i, epoch=i % 3) for i, text in enumerate(texts)]
    number_of = {}
    for i, body in enumerate(bodies):
        (report,) = m.decode_upload(body, task)
        opened = open_outer(report, task.task_id, SEALING["shuffler"])
        number_of |= dict.fromkeys(m.records_of(opened, task.record_bytes, slots), i)
    acknowledged, kills = set(), 0
    shuffler = Victim(run_shuffler, task, tmp_path, database)
    while kills < num_kills:
        number = int(draw.integers(NUM_REPORTS))
        message = "take", bodies[number], at(2)
        if kills == num_kills - 1 and draw.integers(2):  # the last one may die while it releases
            message = "advance", at(2, OVER)
        answer = shuffler.ask(message)
        if answer is None:
            kills += 1
        elif message[0] == "take" and answer[0].name == "ACCEPTED":
            acknowledged.add(number)
        if not draw.integers(5):
            shuffler.die_after(draw.uniform(0.0, 0.01))
    shuffler.kill()
    released, num_users = [], 0
    with (
        shuffler_for(task, tmp_path, database=database) as shuffler,
        analyzer_for(task, tmp_path, database=database) as analyzer,
    ):
        advance(shuffler, at(2, OVER))
        for batch in shuffler.sealed_after(0):
            data = shuffler.fetch(batch)
            num_users += analyzer.take(data).num_users
            size = task.record_bytes
            starts = range(len(data) - shuffler.batch(batch).size * size, len(data), size)
            records = (data[start : start + size] for start in starts)
            released += [number_of[each] for each in records if each in number_of]
    assert len(set(released)) == num_users
    assert Counter(released) == {i: len(texts[i]) for i in set(released)}  # each whole, and once
    assert acknowledged
    assert acknowledged <= set(released)


@pytest.mark.slow
@KILLS
@ON_EACH
def test_an_analyzer_says_each_batch_once_and_spends_once_for_it(tmp_path, engine, num_kills, draw):
    database = store_of(engine, tmp_path)
    num_batches = max(4, num_kills // 4)
    save_ledger(Ledger(epsilon=1e6, delta=1e-3), tmp_path / "ledger.json")
    batches = {}
    for number in range(1, num_batches + 1):
        records = [record(bytes([i % 2]), SHORT) for i in range(3)]
        batches[number] = batch_of(SHORT, records, number=number)
    analyzer, kills, said = Victim(run_analyzer, SHORT, tmp_path, database), 0, set()
    while kills < num_kills or len(said) < num_batches:
        number = int(draw.integers(1, num_batches + 1))
        if len(said) < num_batches and kills >= num_kills:
            number = next(each for each in batches if each not in said)
        if analyzer.ask((number, batches[number])) is None:
            kills += 1
        else:
            said.add(number)
        if kills < num_kills:
            analyzer.die_after(draw.uniform(0.0, 0.2))
    analyzer.kill()
    for number in batches:
        (privacy,) = (tmp_path / "results" / str(number)).glob("privacy.json")
        assert json.loads(privacy.read_bytes())["num_users"] == 3
    assert len(open_ledger(tmp_path / "ledger.json").entries) == num_batches


def insisted(victim, message, draw, kills):
    """Ask until there is an answer, killed at random moments while there are kills left."""
    while True:
        if kills and not draw.integers(2):
            victim.die_after(draw.uniform(0.0, 0.05))
        if (answer := victim.ask(message)) is not None:
            return answer, kills
        kills -= kills > 0


@pytest.mark.slow
@KILLS
@ON_EACH
@EITHER
def test_what_waits_for_more_of_its_key_is_released_once(
    tmp_path, engine, num_kills, draw, changes
):
    """Two keys, of which one has enough reports in each third epoch."""
    num_epochs, kills = max(6, num_kills // 50), num_kills
    changes = {"num_epochs": num_epochs + 1, "asked": TASK.asked, "min_batch": 5} | changes
    task = make_task(**SMALL | changes)
    database, sent, texts = store_of(engine, tmp_path), 0, shares(task)
    shuffler = Victim(run_shuffler, task, tmp_path, database)
    for epoch in range(num_epochs):
        keys = [ANALYZER_KEY] * 5 + [NEW_KEY] * 2
        bodies = [
            upload(task, texts[number % NUM_REPORTS], number=number, epoch=epoch, analyzer=key)
            for number, key in enumerate(keys, start=sent)
        ]
        for body in bodies:
            (answer,), kills = insisted(shuffler, ("take", body, at(epoch, 3600)), draw, kills)
            assert answer.name == "ACCEPTED"
        _, kills = insisted(shuffler, ("advance", at(epoch, OVER)), draw, kills)
        sent += len(bodies)
        handed_out = set()
        for _ in range(3):  # the same bytes, however often it is killed
            data, kills = insisted(shuffler, ("fetch", epoch + 1), draw, kills)
            handed_out.add(data)
        assert len(handed_out) == 1
    shuffler.kill()
    released = 0
    with (
        shuffler_for(task, tmp_path, database=database) as shuffler,
        analyzer_for(task, tmp_path, opening_keys=BOTH_KEYS, database=database) as analyzer,
    ):
        numbers = shuffler.sealed_after(0)
        assert numbers == list(range(1, num_epochs + 1))
        for number in numbers:
            opened = analyzer.take(shuffler.fetch(number))
            assert opened.counts["num_repeated"] == opened.counts["num_kept"] == 0
            # With devices' dummies the larger of two classes alone, and the other one after it.
            if task.num_slots == 1:
                assert opened.counts["num_held"] == 2 * (number % 3)
            released += opened.num_users
        assert released + shuffler.num_unreleased() == sent


@KILLS
@ON_EACH
def test_what_an_analyzer_keeps_is_counted_once(tmp_path, engine, num_kills, draw):
    """Batches of too few reports, of which each second one is counted with the one before."""
    task, kills = make_task(**FEW), num_kills
    database, num_batches = store_of(engine, tmp_path), max(4, num_kills // 10)
    save_ledger(Ledger(epsilon=1e6, delta=0.4), tmp_path / "ledger.json")
    analyzer = Victim(run_analyzer, task, tmp_path, database)
    for number in range(1, num_batches + 1):
        records = [record(each, task) for each in (b"\0", b"\1", b"\7")]
        message = number, batch_of(task, records, number=number)
        _, kills = insisted(analyzer, message, draw, kills)
    analyzer.kill()
    found = {
        int(path.parent.name): path for path in (tmp_path / "results").glob("[0-9]*/privacy.json")
    }
    assert sorted(found) == list(range(2, num_batches + 1, 2))
    for path in found.values():
        said = json.loads(path.read_bytes())
        assert (said["num_users"], said["parameters"]["num_honest"]) == (4, 2)
    assert len(open_ledger(tmp_path / "ledger.json").entries) == num_batches // 2


@KILLS
@pytest.mark.parametrize("changes", [{}, OWN], ids=["plain", "devices' dummies"])
def test_a_client_makes_one_report_and_sends_it_until_it_arrives(
    tmp_path, num_kills, draw, changes
):
    task = replace(TASK, **changes)
    client, kills, number = Victim(run_client, task, tmp_path, None), 0, 0
    seen, done = {}, set()
    while kills < num_kills or number not in done:
        if number in done:
            number += 1
        if kills < num_kills:
            client.die_after(draw.uniform(0.0, 0.02))
        answer = str(draw.integers(NUM_REPORTS))  # another one each time: the first one counts
        body = client.ask((number, answer, at(0)))
        if body is None:
            kills += 1
            continue
        (report,) = m.decode_upload(body, task)
        opened = open_outer(report, task.task_id, SEALING["shuffler"])
        records = m.records_of(opened, task.record_bytes, task.num_slots)
        texts = [open_record(task.task_id, each, {9: SEALING["analyzer"]}) for each in records]
        seen.setdefault(number, set()).add((report.report_id, b"".join(sorted(texts))))
        if draw.integers(4) and client.ask((number,)):  # else the shuffler's answer is lost
            done.add(number)
    client.kill()
    assert len(done) > 1
    assert all(len(each) == 1 for each in seen.values())
    assert len({report_id for each in seen.values() for report_id, _ in each}) == len(seen)
