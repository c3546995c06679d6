"""No draw that protects somebody comes from the statistical generator of simulations and numerics.

Words of `Entropy` are cryptographic; ``Entropy.generator()`` is PCG64, whose draws are predictable.
"""

import re
from pathlib import Path

import numpy as np
import pytest

import shuffledp as sdp
from golden.net import python_calls
from shuffledp.collection.external_shuffle import ExternalShuffle
from shuffledp.core.entropy import Entropy

SOURCES = Path(sdp.__file__).parent

# Public graphs, numerics and attacks: none of them touches a true value that is to be protected.
STATISTICAL = {
    "collection/liars.py",
    "groups/attacks/adversaries.py",
    "network/positions/spectrum.py",
}
PRIVATE = (
    "categories", "numbers", "vectors", "answer_sets", "device", "report_files",
    "mallows_model", "mallows_shuffler", "displacement_shuffler", "random_walk",
    "network_shuffler",
)  # fmt: skip
CALLS = {name: call for name, call in python_calls.CALLS.items() if call.func.__name__ in PRIVATE}


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Have every default and every call of the net draw unseeded, and refuse PCG64; count words."""
    counted = []
    fill = Entropy._fill_bytes

    def refused(*_):
        raise AssertionError("a private draw from PCG64")

    def counting(entropy, target):
        assert not (entropy.is_simulation and target.size)
        counted.append(target.size)
        fill(entropy, target)

    monkeypatch.setattr(np.random, "PCG64", refused)
    monkeypatch.setattr(Entropy, "_fill_bytes", counting)
    monkeypatch.setattr(python_calls, "seeded", lambda _seed=1: Entropy.from_operating_system())
    monkeypatch.chdir(tmp_path)
    return counted


def test_only_public_graphs_numerics_and_attacks_use_the_generator():
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if re.search(r"\.generator\(|PCG64|np\.random\.(?!Generator:)", path.read_text("utf-8"))
    }
    assert found == STATISTICAL | {"core/entropy.py"}


def test_the_refusal_reaches_the_generator(drawn):
    with pytest.raises(AssertionError, match="PCG64"):
        Entropy.from_operating_system().generator()


@pytest.mark.parametrize("name", CALLS)
def test_randomizers_shuffles_walks_and_clients_draw_words(drawn, name):
    try:
        CALLS[name]()
    except sdp.ShuffledpError:
        assert name.startswith("deploy")  # a device that refuses a task draws nothing
    else:
        assert sum(drawn) > 0


@pytest.mark.parametrize("protocol", python_calls.PROTOCOLS)
def test_clients_that_are_monitored_draw_words(drawn, protocol):
    client = sdp.monitoring.MonitorClient(python_calls.design(protocol))
    for period in range(1, 9):
        client.update(period, period > 3)
    assert sum(drawn) > 0


def test_a_run_draws_words(drawn):
    question = sdp.Categories(["yes", "no"])
    plan = sdp.plan(question, num_users=1000, epsilon0=1.0, delta=1e-6)
    assert not sdp.run(plan, ["yes"] * 300 + ["no"] * 700).is_simulation
    assert sum(drawn) > 8 * 1000


def test_a_shuffle_on_disk_draws_words(drawn, tmp_path):
    rows = np.zeros(1000, dtype=np.uint8).reshape(-1, 1)
    with ExternalShuffle(
        dtype=np.uint8, row_shape=(1,), entropy=Entropy.from_operating_system(),
        directory=tmp_path, memory_limit_bytes=600,
    ) as shuffle:  # fmt: skip
        shuffle.add(rows)
        assert sum(len(block) for block in shuffle) == 1000
    assert sum(drawn) > 0
