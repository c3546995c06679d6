"""Games: who sees all that arrived, when and in which order, and the batch, links no report.

Two users send two reports; the shuffler releases a batch of these among others. The attacker, who
knows which record belongs to either user, but not which of them sent first, or under which id,
guesses that from the batch. With nothing but the multiset in it each guess is right with
probability 1/2.
"""

from collections import Counter

import pytest

from deploy.make_vectors import ANALYZER_KEY, RECORD_SIZE, SEALING, SHUFFLER_KEY, SIGNING, make_task
from deploy.make_vectors import TASK as ANY_TASK
from deploy.roles import SMALL
from deploy.steps import advance, take
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.deploy import messages as m
from shuffledp.deploy.messages import Batch
from shuffledp.deploy.shuffler import Shuffler

# A binomial count further than 6.2 standard deviations from its mean; forty of them.
FALSE_POSITIVE_RATE = 1e-7
DEVIATIONS = 6.2


def excess(right, games):
    """Return how many standard deviations an attacker is from guessing."""
    return abs(right - games / 2) / (0.5 * games**0.5)


# ---------------------------------------------------------------- the batch alone
def released(records):
    """Return a batch, unsigned: the signature is of the root alone."""
    batch = Batch(
        ANY_TASK,
        number=1,
        first_epoch=0,
        last_epoch=0,
        records=tuple(records),
        num_opened=4,
        num_dishonest=0,
    )
    return batch.records


def in_order_of_arrival(records):
    """A planted leak."""
    return tuple(records)


def with_the_first_marked(records):
    """A planted leak: the key's number tells when a report came."""
    return tuple(sorted(records[:1]) + sorted(bytes([1]) + each[1:] for each in records[1:]))


def wins(release, games):
    """Return how often the attacker is right."""
    draw, right = Entropy.from_seed(1).generator(), 0
    one, two = (bytes([0, mark]) + bytes(RECORD_SIZE - 2) for mark in (1, 2))
    others = [bytes([0]) + draw.bytes(RECORD_SIZE - 1) for _ in range(2)]
    for _ in range(games):
        is_one_first = draw.random() < 0.5
        arrived = [one, two, *others] if is_one_first else [two, one, *others]
        batch = release(arrived)
        places = [next(i for i, r in enumerate(batch) if r[1:] == each[1:]) for each in (one, two)]
        # The best use of order and marks; a coin where they say nothing.
        seen = (places[0] < places[1], batch[places[0]][0] < batch[places[1]][0])
        guess = seen[1] if batch[places[0]][0] != batch[places[1]][0] else seen[0]
        right += guess == is_one_first
    return right


@pytest.mark.parametrize("games", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_the_batch_says_nothing_of_who_came_first(games):
    assert excess(wins(released, games), games) <= DEVIATIONS


@pytest.mark.parametrize("leak", [in_order_of_arrival, with_the_first_marked])
def test_planted_leaks_are_caught(leak):
    assert excess(wins(leak, 1_000), 1_000) > 2 * DEVIATIONS


# ---------------------------------------------------------------- the whole shuffler
# Games of one shuffler, whose table of batches grows by one a game.
AT_ONCE = 2_000
GUESSES = ("who came first", "whose id is lower", "who came in the first upload")


@pytest.fixture(autouse=True)
def no_waiting_for_disks(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: None)


# Numbers of the analyzer's keys: of which the last is used once a game, as by a straggler.
TWO_KEYS = (9, 9, 9, 10, 10, 10, 11)


def upload_text(task, record, draw):
    """Return what a device seals to the shuffler: its record, and dummies if it sends some."""
    if task.num_slots == 1:
        return record
    info = m.inner_info(task.task_id)
    more = [
        record[:1] + m.seal(b"\1", ANALYZER_KEY.public_key, info) for _ in range(draw.poisson(1.0))
    ]
    text = b"".join(sorted([record, *more]))
    padding = bytes((task.num_slots - 1 - len(more)) * len(record))
    return (1 + len(more)).to_bytes(2, "big") + text + padding


def play(folder, games, leak=None, *, seed=2, keys=(9, 9, 9), dummies=None):
    """Return how often each guess was right, with a batch a game from one running shuffler.

    ``leak`` puts the records in another order, given them and their ids as they arrived. No key is
    in a batch with fewer records than the least batch has.
    """
    task = make_task(**SMALL | {"delta": "0.6"}, epoch_seconds=1, num_epochs=games, dummies=dummies)
    handed_out = folder / "handed_out"
    handed_out.touch()
    draw, right = Entropy.from_seed(seed).generator(), Counter()
    with Shuffler(
        task,
        folder,
        signing_key=SIGNING["shuffler"],
        sealing_keys=dict.fromkeys(range(games), SEALING["shuffler"]),
        grace_seconds=0.0,
        handed_out=handed_out,
    ) as shuffler:
        shuffler.inner_keys = dict.fromkeys(keys, ANALYZER_KEY.public_key)
        shuffler._store.rows("PRAGMA synchronous = OFF")  # no power is cut here
        for epoch in range(games):
            # Sealed anew: where a record lies among the sorted ones is drawn with its seal.
            inner = [
                bytes([key]) + m.seal(b"\0", ANALYZER_KEY.public_key, m.inner_info(task.task_id))
                for key in keys
            ]
            order = draw.permutation(len(keys))
            ids = [draw.bytes(16) for _ in inner]
            uploads = [b"", b""]
            for place, index in enumerate(order):
                info = m.outer_info(task.task_id, epoch, ids[index])
                sealed = m.seal(
                    upload_text(task, inner[index], draw), SHUFFLER_KEY.public_key, info
                )
                report = m.Report(report_id=ids[index], epoch=epoch, key=epoch % 256, sealed=sealed)
                uploads[place > 0] += report.encode()
            for late, body in enumerate(uploads):
                take(shuffler, body, task.start + epoch + 0.4 * late)
            (state,) = advance(shuffler, task.start + epoch + 1)
            batch = shuffler.fetch(state.number)[-state.size * RECORD_SIZE :]
            shuffler.forget(state.number)
            sizes = Counter(batch[at] for at in range(0, len(batch), RECORD_SIZE))
            assert min(sizes.values()) >= task.min_batch
            if leak is not None:
                batch = b"".join(leak([(inner[index], ids[index]) for index in order]))
            zero_is_first = batch.index(inner[0]) < batch.index(inner[1])
            places = [list(order).index(index) for index in (0, 1)]
            right[GUESSES[0]] += zero_is_first == (places[0] < places[1])
            right[GUESSES[1]] += zero_is_first == (ids[0] < ids[1])
            told = places[0] == 0 if 0 in places else draw.random() < 0.5
            right[GUESSES[2]] += zero_is_first == told
    return right


# A few a game: the attacker's records are among them, where he finds them as before.
FEW_DUMMIES = DummyLaw.from_text("laplace:1.0:1")
OWN_DUMMIES = DummyLaw.from_text("poisson:0.5")


@pytest.mark.parametrize(
    ("keys", "dummies"),
    [
        ((9, 9, 9), None),
        (TWO_KEYS, None),
        ((9, 9, 9), FEW_DUMMIES),
        (TWO_KEYS, FEW_DUMMIES),
        ((9, 9, 9), OWN_DUMMIES),
    ],
    ids=["one key", "two keys", "one key and dummies", "two keys and dummies", "devices' dummies"],
)
@pytest.mark.parametrize(
    "games", [150, pytest.param(34_000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])]
)
def test_the_shuffler_tells_neither_order_nor_id_nor_upload(tmp_path, games, keys, dummies):
    right = Counter()
    for seed in range(-(-games // AT_ONCE)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        right += play(folder, min(games, AT_ONCE), seed=seed, keys=keys, dummies=dummies)
    for guess in GUESSES:
        assert excess(right[guess], games) <= DEVIATIONS, guess


@pytest.mark.parametrize(
    ("leak", "guess", "games"),
    [
        (lambda all_: [each for each, _ in all_], GUESSES[0], 150),
        (lambda all_: [each for each, _ in sorted(all_, key=lambda of: of[1])], GUESSES[1], 150),
        # Every third guess is a coin: at most 203 of 300 are right with probability 2e-11.
        (lambda all_: [all_[0][0], *sorted(each for each, _ in all_[1:])], GUESSES[2], 300),
    ],
    ids=GUESSES,
)
def test_each_guess_is_right_where_there_is_something_to_guess(tmp_path, leak, guess, games):
    assert excess(play(tmp_path, games, leak)[guess], games) > DEVIATIONS
