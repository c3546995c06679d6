"""A task in files, as its operator makes it."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from deploy.make_vectors import make_task, public
from deploy.roles import GRACE_SECONDS, SMALL
from shuffledp.deploy.servers.settings import AnalyzerSettings, ShufflerSettings, write_task


@pytest.fixture
def make(tmp_path):
    """Return what writes a task with keys, and returns it with both settings."""

    def written(**changes):
        operator = Ed25519PrivateKey.generate()
        task = make_task(**SMALL | {"operator_key": public(operator), **changes})
        folder = tmp_path / "task"
        listens = ("127.0.0.1:0", "127.0.0.1:0")
        write_task(folder, task, operator, listen=listens, grace_seconds=GRACE_SECONDS)
        shuffler = ShufflerSettings.read(folder / "shuffler.toml")
        return task, shuffler, AnalyzerSettings.read(folder / "analyzer.toml")

    return written
