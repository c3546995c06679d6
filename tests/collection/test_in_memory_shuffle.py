"""Reports are taken in order, shuffled once, and given back in blocks."""

import numpy as np
import pytest

from shuffledp.collection import shuffling as in_memory_shuffle
from shuffledp.collection.shuffling import InMemoryShuffle
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError


class Reversal:
    def shuffle(self, reports, entropy):
        return reports[::-1]


def filled(*pieces):
    shuffle = InMemoryShuffle(Reversal(), Entropy.from_seed(0))
    for piece in pieces:
        shuffle.add(np.array(piece))
    return shuffle


def test_pieces_are_put_together_before_they_are_shuffled(monkeypatch):
    monkeypatch.setattr(in_memory_shuffle, "_BLOCK_ROWS", 2)
    with filled([1, 2], [3]) as shuffle:
        assert [block.tolist() for block in shuffle] == [[3, 2], [1]]


def test_pieces_are_copied():
    piece = np.array([1, 2])
    shuffle = InMemoryShuffle(Reversal(), Entropy.from_seed(0))
    shuffle.add(piece)
    piece[:] = 9
    assert [block.tolist() for block in shuffle] == [[2, 1]]


def test_reading_twice_is_refused():
    shuffle = filled([1])
    assert len(list(shuffle)) == 1
    with pytest.raises(ParameterError, match="read them once"):
        list(shuffle)


def test_reports_are_forgotten_when_the_block_ends():
    with filled([1, 2]) as shuffle:
        pass
    with pytest.raises(ParameterError, match="no reports"):
        list(shuffle)
