"""A game: who sees all that arrived, when and in which order, and the batch, links no report.

Two users send two reports; the shuffler releases a batch of these among others. The attacker, who
knows which report belongs to either user, but not which of them sent first, guesses that from the
batch. With nothing but the multiset in the batch each guess is right with probability 1/2.
"""

import pytest

from deploy.make_vectors import RECORD_SIZE, SIGNING, TASK
from shuffledp.core.entropy import Entropy
from shuffledp.deploy.messages import Batch

# A binomial count further than 5.5 standard deviations from its mean.
FALSE_POSITIVE_RATE = 4e-8
DEVIATIONS = 5.5


def released(records):
    """Return a batch, unsigned: the signature is of the root alone."""
    batch = Batch.signed(
        SIGNING["shuffler"], TASK.task_id, records, number=1, epochs=(0, 0), record_size=RECORD_SIZE
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


def excess(release, games):
    """Return how many standard deviations the attacker is from guessing."""
    return abs(wins(release, games) - games / 2) / (0.5 * games**0.5)


@pytest.mark.parametrize("games", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_the_batch_says_nothing_of_who_came_first(games):
    assert excess(released, games) <= DEVIATIONS


@pytest.mark.parametrize("leak", [in_order_of_arrival, with_the_first_marked])
def test_planted_leaks_are_caught(leak):
    assert excess(leak, 1_000) > 2 * DEVIATIONS
