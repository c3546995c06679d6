"""Codes: one report each and epoch, whatever is sent how often; a typo is told."""

import hashlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.make_vectors import ANALYZER_KEY, SEALING, SIGNING, make_task
from deploy.roles import OVER, SMALL, analyzer_for, at, handed_out_in, key_of
from deploy.steps import advance, take
from shuffledp.core.errors import DataError
from shuffledp.deploy.client import Client
from shuffledp.deploy.messages import (
    Answer,
    Codes,
    Report,
    new_codes,
    read_code,
    read_codes,
    report_id_of,
    write_code,
)
from shuffledp.deploy.shuffler import Shuffler

TASK = make_task(**SMALL)
CODES = [bytes([number]) * 16 for number in range(4)]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def admitting(folder, codes=CODES):
    return Shuffler(
        TASK,
        folder,
        signing_key=SIGNING["shuffler"],
        sealing_keys=dict.fromkeys(range(TASK.num_epochs), SEALING["shuffler"]),
        admission=Codes(codes, TASK.task_id),
        handed_out=handed_out_in(folder),
    )


def sent(code, *, epoch=0, report=b"\0", report_id=None):
    return Report.sealed_for(
        TASK,
        report,
        report_id=report_id or report_id_of(code, TASK.task_id, epoch),
        epoch=epoch,
        shuffler=key_of(epoch),
        analyzer=ANALYZER_KEY,
    ).encode()


def test_an_id_is_what_the_specification_says():
    expected = hashlib.sha256(b"sdp1c" + CODES[3] + TASK.task_id + b"\0\0\0\x02").digest()[:16]
    assert report_id_of(CODES[3], TASK.task_id, 2) == expected


def test_one_owner_of_codes_has_no_more_reports_in_a_batch_than_codes(tmp_path):
    """What a Sybil sends beyond its codes is refused and counted, and its copies are."""
    mine = CODES[:2]
    with admitting(tmp_path) as shuffler, analyzer_for(TASK, tmp_path) as analyzer:
        for code in CODES:
            assert take(shuffler, sent(code), at(0)) == [Answer.ACCEPTED]
        for number in range(50):
            wrong = sent(mine[0], report_id=number.to_bytes(16, "big"))
            assert take(shuffler, wrong, at(0)) == [Answer.NOT_ADMITTED]
            again = sent(mine[number % 2], report=b"\1")
            assert take(shuffler, again, at(0)) == [Answer.REPLAYED]
        other_task = make_task(info="another").task_id
        for elsewhere in (
            report_id_of(mine[0], TASK.task_id, 1),  # of another epoch
            report_id_of(mine[0], other_task, 0),
            report_id_of(new_codes(1)[0], TASK.task_id, 0),
        ):
            assert take(shuffler, sent(b"", report_id=elsewhere), at(0)) == [Answer.NOT_ADMITTED]
        (state,) = advance(shuffler, at(0, OVER))
        assert state.size == len(CODES)
        assert analyzer.take(shuffler.fetch(1)).reports.data.tolist() == [0] * len(CODES)
        assert shuffler.counts() == {"accepted": 4, "not_admitted": 53, "replayed": 50}


def test_a_code_is_good_in_each_epoch_that_is_prepared():
    codes, many = new_codes(300), Codes([*CODES, *new_codes(300)], TASK.task_id)
    for first in (0, 1, 4):
        many.prepare(range(first, first + 3))
        for epoch in range(8):
            is_open = first <= epoch < first + 3
            for code in CODES:
                found = many.admits(epoch, report_id_of(code, TASK.task_id, epoch))
                assert found is (True if is_open else None)
                other = many.admits(epoch, report_id_of(code, TASK.task_id, epoch + 1))
                assert other is (False if is_open else None)
            for report_id in (bytes(16), b"\xff" * 16, *(codes if is_open else ())):
                assert not many.admits(epoch, report_id)


def test_more_codes_than_ids_can_be_kept_are_refused_before_serving(make, monkeypatch):
    task, settings, _ = make()
    path = settings.task.with_name("codes.txt")
    path.write_text("\n".join(map(write_code, CODES)))
    some = replace(settings, codes=path, grace_seconds=2.0 * task.epoch_seconds)
    assert some.admission(task) is not None
    monkeypatch.setattr("shuffledp.deploy.messages._MOST_IDS", 19)
    with pytest.raises(DataError, match="4 codes with 5 epochs open at once"):
        some.admission(task)


def test_a_client_with_a_code_is_admitted_and_sends_the_same_again(tmp_path):
    with admitting(tmp_path) as shuffler:
        for index, code in enumerate(CODES):
            with Client(TASK, tmp_path / f"{index}.db") as client:
                kept = client.report("yes", at(1), code=code)
                assert kept.report_id == report_id_of(code, TASK.task_id, 1)
            with Client(TASK, tmp_path / f"{index}.db") as client:
                assert client.report("no", at(2), code=CODES[0]) == kept
                body = client.sealed(shuffler=key_of(1), analyzer=ANALYZER_KEY)
                assert take(shuffler, body, at(1)) == [Answer.ACCEPTED]
                assert take(shuffler, body, at(1)) == [Answer.ACCEPTED]
        assert advance(shuffler, at(1, OVER))[-1].size == len(CODES)


# ---------------------------------------------------------------- codes on paper
def test_codes_are_random_and_read_however_they_are_copied():
    codes = new_codes(1000)
    assert len({*codes}) == 1000
    lines = [write_code(code) for code in codes]
    assert read_codes("\n".join(lines) + "\n\n") == codes
    first = lines[0]
    assert len(first) == 39
    for copied in (first.lower(), first.replace("-", " "), f"  {first.replace('-', '')} "):
        assert read_code(copied) == codes[0]
    with_o = next(line for line in lines if "O" in line)
    assert read_code(with_o.replace("O", "0")) == read_code(with_o)


@given(st.binary(min_size=16, max_size=16), st.integers(0, 31), st.sampled_from(LETTERS))
def test_a_wrong_letter_is_told(code, place, letter):
    letters = write_code(code).replace("-", "")
    typo = letters[:place] + letter + letters[place + 1 :]
    if typo == letters:
        assert read_code(typo) == code
    else:
        with pytest.raises(DataError, match="a letter is wrong"):
            read_code(typo)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no code in it"),
        ("\n \n", "no code in it"),
        ("AAAA", "line 1: it is no code"),
        ("é" * 32, "line 1: it is no code"),
        (f"{write_code(CODES[0])}\n{write_code(CODES[0])[:-1]}", "line 2: it is no code"),
        (f"{write_code(CODES[0])}\n\n{write_code(CODES[0]).lower()}", "lines 1 and 3 are the same"),
    ],
)
def test_a_file_of_codes_is_read_strictly(text, message):
    with pytest.raises(DataError, match=message):
        read_codes(text)
