"""Seals of both kinds: what opens, what does not, and what private keys show."""

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from deploy.roles import OVER, sent
from deploy.steps import advance, take
from shuffledp.cli.main import main
from shuffledp.deploy.analyzer_server import open_analyzer
from shuffledp.deploy.servers.settings import AnalyzerSettings, ShufflerSettings, read_task
from shuffledp.deploy.shuffler_server import open_shuffler
from shuffledp.deploy.wire import (
    SIZES,
    HybridKey,
    is_mail_key,
    mail_key,
    new_mail_key,
    open_seal,
    seal,
)

KINDS = sorted(SIZES)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seal_opens_with_its_key_and_info_only(kind):
    key, other = new_mail_key(kind), new_mail_key(kind)
    public = key.public_key().public_bytes_raw()
    assert len(public) == SIZES[kind].public_key
    sealed = seal(b"text", public, b"info")
    assert len(sealed) == len(b"text") + SIZES[kind].added
    assert sealed != seal(b"text", public, b"info")
    assert open_seal(sealed, key, b"info") == b"text"
    assert open_seal(sealed, key, b"other") is None
    assert open_seal(sealed, other, b"info") is None
    for place in (0, SIZES[kind].added - 17, len(sealed) - 1):
        changed = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        assert open_seal(changed, key, b"info") is None
    assert open_seal(sealed[:40], key, b"info") is None
    again = mail_key(kind, key.private_bytes_raw())
    assert open_seal(sealed, again, b"info") == b"text"


def test_a_seal_of_one_kind_opens_with_no_key_of_the_other():
    seed = bytes(range(32))
    one, other = HybridKey(seed), X25519PrivateKey.from_private_bytes(seed)
    for key, wrong in ((one, other), (other, one)):
        assert (
            open_seal(seal(b"text", key.public_key().public_bytes_raw(), b""), wrong, b"") is None
        )


def test_both_parts_of_a_hybrid_key_are_checked_and_none_is_shown():
    key = HybridKey(bytes(range(32)))
    public = key.public_bytes_raw()
    assert is_mail_key(public)
    assert not is_mail_key(public[:1184] + bytes(32))  # of small order
    assert not is_mail_key(b"\xff" * 1184 + public[1184:])  # not below the modulus
    assert not is_mail_key(public[:-1])
    assert key.private_bytes_raw().hex() not in repr(key)


def test_reports_sealed_by_the_hybrid_go_through_both_servers(tmp_path, capsys):
    create = [
        "task", "create", "--domain", "yes,no", "--epsilon0", "2", "--epsilon", "2", "--delta",
        "1e-8", "--min-batch", "3", "--num-epochs", "3", "--seal", "hybrid",
    ]  # fmt: skip
    assert main([*create, "--out", str(tmp_path / "task")]) == 0
    assert "hybrid: X25519 and ML-KEM-768, 2,295 bytes a report" in capsys.readouterr().out
    task = read_task(tmp_path / "task" / "task.bin")
    settings = ShufflerSettings.read(tmp_path / "task" / "shuffler.toml")
    analyzer_settings = AnalyzerSettings.read(tmp_path / "task" / "analyzer.toml")
    begin = task.start
    with open_shuffler(settings) as shuffler, open_analyzer(analyzer_settings) as analyzer:
        body = sent(task, settings, epoch=0, numbers=range(3))
        take(shuffler, body, begin + 1)
        advance(shuffler, begin + OVER)
        assert analyzer.take(shuffler.fetch(1)).reports.num_reports == 3
