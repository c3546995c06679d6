"""Pages of seals: opened in order, whatever opens them, and not at all without their key."""

import asyncio

from deploy.make_vectors import SEALING, public
from shuffledp.deploy.servers.batches import open_texts, opened_in, workers
from shuffledp.deploy.wire import seal

KEY = SEALING["analyzer"]


def page(*texts, key=KEY):
    """Return a page of sealed texts."""
    sealed = [(b"info", seal(each, public(KEY), b"info")) for each in texts]
    return "x25519", None if key is None else key.private_bytes_raw(), sealed


def test_a_page_opens_with_its_key_and_info_alone():
    kind, private, sealed = page(b"one", b"two")
    assert open_texts(kind, private, sealed) == [b"one", b"two"]
    assert open_texts(*page(b"one", b"two", key=None)) == [None, None]
    assert open_texts(*page(b"one", key=SEALING["shuffler"])) == [None]
    (_, first), *rest = sealed
    assert open_texts(kind, private, [(b"other", first), *rest]) == [None, b"two"]


def test_pages_come_back_in_their_order():
    texts = [[bytes([i, j]) for j in range(3)] for i in range(7)]
    with workers(1) as executor:
        found = asyncio.run(opened_in(executor, (page(*each) for each in texts)))
    assert found == texts
