import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.core.errors import DataError
from shuffledp.monitoring import history_tables as history_users
from shuffledp.monitoring.history_tables import user_coder


def coder_of(batches, dtype=pl.String):
    def all_batches():
        return iter([pl.Series("user", batch, dtype=dtype) for batch in batches])

    numbers = [each for batch in batches for each in batch]
    limits = (min(numbers), max(numbers)) if dtype == pl.Int64 and numbers else None
    return user_coder(all_batches, limits)


def series(users, dtype=pl.String):
    return pl.Series("anything", users, dtype=dtype)


@given(st.lists(st.lists(st.text(max_size=3), max_size=40), max_size=5))
def test_texts_are_numbered_by_their_order(batches):
    coder = coder_of(batches)
    distinct = sorted({each.encode() for batch in batches for each in batch})
    assert [each.encode() for each in coder.ids] == distinct
    for batch in batches:
        expected = [distinct.index(each.encode()) for each in batch]
        assert coder.codes(series(batch)).tolist() == expected


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9)), max_size=5))
def test_numbers_are_numbered_by_their_order(batches):
    coder = coder_of(batches, pl.Int64)
    distinct = sorted({each for batch in batches for each in batch})
    assert coder.ids.to_list() == distinct
    for batch in batches:
        expected = [distinct.index(each) for each in batch]
        assert coder.codes(series(batch, pl.Int64)).tolist() == expected


@pytest.mark.parametrize("scale", [1, 10**9])
def test_a_number_that_was_not_there_has_no_code(scale):
    coder = coder_of([[scale, 3 * scale]], pl.Int64)
    for other in (0, 2 * scale, 4 * scale):
        assert coder.codes(series([scale, other], pl.Int64)) is None
    assert coder.codes(series([3 * scale], pl.Int64)).tolist() == [1]
    assert coder.codes(series([], pl.Int64)).tolist() == []


def test_a_text_that_was_not_there_has_no_code():
    coder = coder_of([["a", "b"]])
    assert coder.codes(series(["c"])) is None
    assert coder.codes(series(["c"])) is None
    assert coder.codes(series(["b"])).tolist() == [1]


def test_many_users_in_many_batches():
    ids = [f"{i * 7919 % 5000}" for i in range(20_000)]
    coder = coder_of([ids[start : start + 999] for start in range(0, 20_000, 999)])
    codes = coder.codes(series(ids))
    assert coder.ids.gather(codes).to_list() == ids


def _colliding(bad_seeds):
    def hashes(users, seed):
        found = users.hash(seed).to_numpy()
        return found % np.uint64(3) if seed in bad_seeds else found

    return hashes


def test_hashes_that_collide_are_noticed_and_another_seed_is_taken(monkeypatch):
    monkeypatch.setattr(history_users, "_hashes", _colliding({0, 1}))
    ids = [str(i) for i in range(50)]
    coder = coder_of([ids])
    assert coder.ids.gather(coder.codes(series(ids))).to_list() == ids
    monkeypatch.setattr(history_users, "_hashes", _colliding(range(10)))
    with pytest.raises(DataError, match="cannot be told apart"):
        coder_of([ids])


def test_a_hash_that_collides_later_names_nobody_else(monkeypatch):
    coder = coder_of([["a"]])
    hash_of_a = history_users._hashes(series(["a"]), 0)
    monkeypatch.setattr(history_users, "_hashes", lambda users, seed: hash_of_a.copy())
    assert coder.codes(series(["b"])) is None


def test_too_many_users_are_refused(monkeypatch):
    monkeypatch.setattr(history_users, "_MOST_USERS", 3)
    with pytest.raises(DataError, match="more than 2 users"):
        coder_of([["a", "b"], ["c", "d"]])
