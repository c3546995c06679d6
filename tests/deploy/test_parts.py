"""What is promised of a whole holds in each part: classes of a batch under one key, and what waits.

`docs/results/honest-users.md` has the rule and its proof; the cases of the specification are in
`tests/vectors/deployment.json`.
"""

import itertools
from collections import Counter
from fractions import Fraction
from types import SimpleNamespace

import pytest

from deploy.make_vectors import RECORD_SIZE, SEALING, SIGNING, make_task, public
from deploy.roles import (
    NEW_KEY,
    NEXT,
    OVER,
    SMALL,
    analyzer_for,
    at,
    batch_of,
    record,
    shuffler_for,
    upload,
)
from deploy.steps import advance, take
from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.ledger_files import open_ledger, save_ledger
from shuffledp.composition.release import ShuffledRelease
from shuffledp.deploy import messages as m
from shuffledp.deploy.analyzer import result_of
from shuffledp.deploy.servers.batches import Held

OLD, NEW = 9, 10
BOTH_KEYS = {OLD: SEALING["analyzer"], NEW: NEXT}


def under_new(report, task):
    """Return a record under the new key."""
    return bytes([NEW]) + m.seal(report, NEW_KEY.public_key, m.inner_info(task.task_id))


def noise(number):
    """Return a record that does not open, under the old key."""
    return bytes([OLD]) + number.to_bytes(RECORD_SIZE - 1, "big")


def sent(task, *, epoch=0, old=0, new=0, junk=0):
    """Return uploads of an epoch: valid reports under two keys, and one that is none."""
    ids = itertools.count(1000 * epoch)
    one = {"number": 0, "epoch": epoch}
    bodies = [upload(task, b"\0", **one | {"number": next(ids)}) for _ in range(old)]
    bodies += [
        upload(task, b"\1", **one | {"number": next(ids)}, analyzer=NEW_KEY) for _ in range(new)
    ]
    bodies += [upload(task, b"\7", **one | {"number": next(ids)}) for _ in range(junk)]
    return [b"".join(bodies[at : at + 1000]) for at in range(0, len(bodies), 1000)]


def released(shuffler, task, epoch, **numbers):
    """Send an epoch's reports, close it, and return what became of its batch."""
    for body in sent(task, epoch=epoch, **numbers):
        take(shuffler, body, at(epoch, 3600))
    (state,) = advance(shuffler, at(epoch, OVER))
    return state


# ---------------------------------------------------------------- the rule
def partitions(most):
    """Yield how many of a class are honest, dishonest but valid, and junk; of two classes."""
    for counts in itertools.product(range(most + 1), repeat=6):
        if 0 < sum(counts) <= most:
            yield counts[:3], counts[3:]


@pytest.mark.parametrize("ppm", [1_000_000, 900_000, 500_000, 333_333, 1])
def test_no_part_is_said_to_have_more_honest_reports_than_it_has(ppm):
    """Whoever is dishonest, in whichever class, junk or valid, and however many are held back."""
    task, naive = make_task(**SMALL | {"honest_ppm": ppm, "min_batch": 10**6}), 0
    for classes in partitions(6):
        num_released = sum(map(sum, classes))
        for held_honest, held_dishonest in itertools.product(range(3), repeat=2):
            num_opened = num_released + held_honest + held_dishonest
            num_dishonest = held_dishonest + sum(valid + junk for _, valid, junk in classes)
            if num_dishonest > Fraction(10**6 - ppm, 10**6) * num_opened:
                continue  # the promise is broken
            num_junk = sum(junk for *_, junk in classes)
            most = task.most_dishonest(num_opened)
            hidden = task.most_hidden(most, num_junk=num_junk, num_opened=num_opened)
            for honest, valid, _ in classes:
                assert max(0, honest + valid - hidden) <= honest
                naive += Fraction(ppm, 10**6) * (honest + valid) // 1 > honest
    assert (naive > 0) == (ppm in (500_000, 333_333))  # a share of a part is no bound


@pytest.mark.parametrize("ppm", [1_000_000, 700_000, 500_000])
def test_what_was_held_may_be_all_that_is_dishonest_of_its_epochs(tmp_path, ppm):
    """Whoever is dishonest may choose to be held: what waits may be worse than its epoch."""
    task = make_task(**SMALL | {"min_batch": 4, "honest_ppm": ppm, "epsilon": "2"})
    state = SimpleNamespace(number=1, first_epoch=0, last_epoch=0)

    def records(key, epoch, number):
        return [bytes([key, epoch, i]) + bytes(RECORD_SIZE - 3) for i in range(number)]

    with shuffler_for(task, tmp_path, database=None) as shuffler:
        shuffler._batches = SimpleNamespace(write=lambda *_: None)
        for sizes in itertools.product(range(8), range(8), range(6), range(6)):
            first, second = sizes[:2], sizes[2:]
            opened = [records(key, 0, size) for key, size in enumerate(first)]
            one = shuffler.write(state, Held(), opened)
            opened = [records(key, 1, size) for key, size in enumerate(second)]
            two = shuffler.write(state, one.held, opened)
            waited = Counter(record[0] for record in one.held.records)
            whole = Counter({key: waited[key] + size for key, size in enumerate(second)})
            for key in whole:
                # The most dishonest in this class: of the first epoch's those that wait, and more
                # than their share of an epoch nobody is.
                worst = min(waited[key], task.most_dishonest(sum(first)))
                worst += min(second[key], task.most_dishonest(sum(second)))
                is_released = two.root is not None and key not in {r[0] for r in two.held.records}
                if is_released and whole[key]:
                    assert whole[key] - worst >= task.num_honest
                    assert whole[key] >= task.min_batch


# ---------------------------------------------------------------- the shuffler, which strips
@pytest.mark.parametrize("short", ["hold", "drop"])
def test_the_shuffler_releases_no_class_below_the_least_batch(tmp_path, short):
    """600 and 600, then one straggler and 1,200, with a least batch of 1,000."""
    task = make_task(**SMALL | {"min_batch": 1000, "epsilon": "0.5"}, short_batch=short)
    with (
        shuffler_for(task, tmp_path, database=None) as shuffler,
        analyzer_for(task, tmp_path, opening_keys=BOTH_KEYS, database=None) as analyzer,
    ):
        held = short == "hold"
        assert released(shuffler, task, 0, old=600, new=600).state == (
            "short" if held else "dropped"
        )
        assert shuffler.num_unreleased() == 1200 * held
        state = released(shuffler, task, 1, old=1, new=1200)
        assert (state.state, state.size) == ("sealed", 1200 + 600 * held)
        assert shuffler.num_unreleased() == 601 * held
        opened = analyzer.take(shuffler.fetch(2))
        assert opened.counts["num_held"] == (601 if held else 1)
        assert opened.guarantee == task.guarantee(state.size)
        (said,) = [each for each in result_of(task, opened).warnings if "shuffler opened" in each]
        assert f"{opened.counts['num_held']} more reports" in said
        # Those that wait join, and are counted, once: the same step again changes nothing.
        if held:
            assert released(shuffler, task, 2, old=399, new=5).size == 1000
            assert shuffler.num_unreleased() == 5
            assert analyzer.take(shuffler.fetch(3)).reports.num_reports == 1000
        assert shuffler.counts().get("dropped", 0) == (0 if held else 1201)


def test_the_shufflers_own_budget_counts_the_honest_of_the_least_class(tmp_path):
    ledger = tmp_path / "ledger.json"
    save_ledger(Ledger(epsilon=30.0, delta=1e-6), ledger)
    task = make_task(**SMALL | {"min_batch": 4, "honest_ppm": 750_000})
    with shuffler_for(task, tmp_path, database=None, ledger=ledger) as shuffler:
        state = released(shuffler, task, 0, old=9, new=15)
    assert state.size == 24
    (entry,) = open_ledger(ledger).entries
    release = ShuffledRelease(profile=task.asked.randomizer.profile, num_users=9 - 6)
    assert entry.releases == release * 1


def test_all_that_is_released_has_one_size_and_a_key_of_the_analyzers(tmp_path):
    """Whoever sends made-up numbers of keys, or a longer text, sends no report."""
    task = make_task(**SMALL)
    state = SimpleNamespace(number=1, first_epoch=0, last_epoch=0)
    with shuffler_for(task, tmp_path, database=None) as shuffler:
        shuffler.inner_keys = {OLD: b""}
        good = [record(b"\0", task) for _ in range(3)]
        odd = [under_new(b"\0", task), good[0] + b"\0", good[0][:-1], b""]
        written = shuffler.write(state, Held(), [[*good, *odd, None]])
        data = shuffler._batches.read(1)
    assert (written.size, written.counted["unopened"]) == (3, 5)
    batch = m.Batch.decode(data, task, public(SIGNING["shuffler"]))
    assert set(batch.records) == set(good)


def test_what_is_held_has_lost_its_id_and_its_epochs_key(tmp_path):
    task = make_task(**SMALL)
    bodies = [upload(task, b"\0", number=2**127 + number) for number in range(2)]
    with shuffler_for(task, tmp_path, database=None) as shuffler:
        for body in bodies:
            take(shuffler, body, at(0))
        advance(shuffler, at(0, OVER))
        assert (shuffler.unreleased(), shuffler.finished()) == ([], [0])
        shuffler.forget_key(0)
    everything = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(body[:16] in everything or body[21:53] in everything for body in bodies)
    with shuffler_for(task, tmp_path, database=None) as shuffler:
        shuffler.forget_key(0)
        state = released(shuffler, task, 1, old=1)
        assert (state.first_epoch, state.size) == (0, 3)


# ---------------------------------------------------------------- the analyzer
def test_one_honest_report_among_false_ones_of_its_key_is_not_counted_as_nine_hundred(tmp_path):
    """A share of the batch may all be in the class of one key."""
    task = make_task(min_batch=1000, honest_ppm=900_000, epsilon="0.5")
    old = [record(b"\0", task) for _ in range(1000)]
    new = [under_new(b"\1", task) for _ in range(10_000)]
    with analyzer_for(task, tmp_path, opening_keys=BOTH_KEYS, database=None) as analyzer:
        opened = analyzer.take(batch_of(task, old + new))
    assert opened.reports.num_reports == 10_000
    assert opened.guarantee == task.guarantee(10_000 - 1_100)
    assert opened.counts["num_kept"] == 1000


@pytest.mark.parametrize(
    ("ppm", "num_junk", "num_honest"),
    # Junk uses up what may be dishonest; if it is more, the promise is taken to hold of the rest.
    [(900_000, 1, 270), (900_000, 30, 270), (900_000, 31, None), (1_000_000, 0, 300)],
)
def test_junk_uses_up_the_dishonest_share(tmp_path, ppm, num_junk, num_honest):
    task = make_task(min_batch=300, honest_ppm=ppm, epsilon="1")
    junk = [noise(i) for i in range(num_junk)]
    good = [record(b"\0", task) for _ in range(300 - num_junk)]
    with analyzer_for(task, tmp_path, database=None) as analyzer:
        opened = analyzer.take(batch_of(task, good + junk))
    assert (opened and opened.guarantee.num_users) == num_honest


def test_records_under_a_lost_key_may_be_honest_and_use_up_nothing(tmp_path):
    task = make_task(**SMALL | {"min_batch": 60, "honest_ppm": 600_000, "epsilon": "2.4"})
    data = batch_of(
        task,
        [record(b"\0", task) for _ in range(190)]
        + [under_new(b"\1", task) for _ in range(190)]
        + [noise(number) for number in range(10)],
    )
    for place, keys in (("both", BOTH_KEYS), ("one", {OLD: BOTH_KEYS[OLD]})):
        (tmp_path / place).mkdir()
        with analyzer_for(task, tmp_path / place, opening_keys=keys, database=None) as analyzer:
            opened = analyzer.take(data)
        # 390 less 60 % may be dishonest, ten of them junk, and all others may be under the old key.
        assert opened.num_honest == 190 - (390 - 234 - 10)


def test_one_strangers_junk_loses_nobodys_report(tmp_path):
    """299 and one that is none, in three epochs, then a batch that is enough by itself."""
    task = make_task(**SMALL | {"min_batch": 300, "epsilon": "0.92"})
    found = []
    with (
        shuffler_for(task, tmp_path, database=None) as shuffler,
        analyzer_for(task, tmp_path, database=None) as analyzer,
    ):
        for epoch, (good, junk) in enumerate([(299, 1), (299, 1), (299, 1), (300, 0)]):
            assert released(shuffler, task, epoch, old=good, junk=junk).size == 300
            found.append(analyzer.take(shuffler.fetch(epoch + 1)))
            shuffler.forget(epoch + 1)
        assert len(analyzer.taken()) == 2
        assert sorted(analyzer.kept()) == [1, 3]
    first, second, third, fourth = found
    assert first is third is None
    assert (second.reports.num_reports, second.counts["num_earlier"]) == (598, 299)
    assert (fourth.reports.num_reports, fourth.counts["num_earlier"]) == (599, 299)
    # The analyzer saw each batch by itself: nobody is hidden among the sum.
    assert second.guarantee == fourth.guarantee == task.guarantee(299)
    said = " ".join(result_of(task, second).warnings)
    assert "299 of these reports are of earlier batches" in said
    assert "the guarantee counts the 299 honest reports of the least" in said


def test_a_part_that_is_too_small_weakens_no_batch_that_is_enough(tmp_path):
    """A stranger's junk around one report: others do not pay for it, and it waits for its like."""
    fields = SMALL | {"min_batch": 4, "delta": "0.05"}
    promised = make_task(**fields).guarantee(4).epsilon_upper
    task = make_task(**fields | {"epsilon": f"{promised + 1e-6:.6f}"})
    assert not task.keeps(3)
    ledger = tmp_path / "ledger.json"
    save_ledger(Ledger(epsilon=30.0, delta=0.2), ledger)

    def batch(number, good):
        junk = [noise(10 * number + i) for i in range(max(0, 4 - good))]
        return batch_of(task, [record(b"\0", task) for _ in range(good)] + junk, number=number)

    batches = [batch(number, good) for number, good in enumerate([1, 9, 2, 1, 8], start=1)]
    for _ in range(2):  # again, after a restart: the same, and nothing more is spent
        with analyzer_for(task, tmp_path, database=None, ledger=ledger) as analyzer:
            found = [analyzer.take(data) for data in batches]
            assert list(analyzer.taken()) == [2, 4, 5]
    assert [each and each.reports.num_reports for each in found] == [None, 9, None, 4, 8]
    assert [each and each.guarantee.num_users for each in found] == [None, 9, None, 1, 8]
    assert len(open_ledger(ledger).entries) == 3
    said = " ".join(result_of(task, found[3]).warnings)
    assert f"only epsilon = {found[3].guarantee.epsilon_upper:.3f}"[:-1] in said
    assert not any("promised" in each for each in result_of(task, found[1]).warnings)
