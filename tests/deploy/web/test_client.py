"""The browser's client: test vectors in Node, seals that Python opens, and the built file."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.make_vectors import SEALING, TASK, public
from shuffledp.deploy import messages as m
from shuffledp.deploy.admission import report_id_of, write_code
from shuffledp.deploy.sealing import open_seal

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CLIENT = ROOT / "src/shuffledp/deploy/web/client"
CODE = bytes(range(100, 116))


def missing(what):
    """Skip on a user's machine, and fail where everything is to be tested."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is not installed: run make node")
    pytest.skip(f"{what} is not installed: run make node")


def test_the_vectors_hold_in_node_and_python_opens_what_it_seals():
    if shutil.which("node") is None:
        missing("Node")
    keys = [public(SEALING[name]).hex() for name in ("shuffler", "analyzer")]
    said = {
        "SHUFFLEDP_CODE": write_code(CODE).lower(),
        "SHUFFLEDP_ID": report_id_of(CODE, TASK.task_id, 3).hex(),
        "SHUFFLEDP_SEALS": ":".join(["x25519", *keys]),
    }
    command = ["node", "--test", "--test-reporter=tap", HERE / "client.test.mjs"]
    done = subprocess.run(
        command, env=os.environ | said, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]
    (line,) = (line for line in done.stdout.splitlines() if "sealed x25519" in line)
    made = bytes.fromhex(line.split()[-1])
    (report,) = m.decode_upload(made, 2)
    assert (report.report_id, report.epoch, report.key) == (bytes([7] * 16), 3, 0)
    info = m.outer_info(TASK.task_id, 3, report.report_id)
    record = open_seal(report.sealed, SEALING["shuffler"], info)
    assert record[0] == 1
    inner = m.inner_info(TASK.task_id)
    assert open_seal(record[1:], SEALING["analyzer"], inner) == bytes.fromhex("2a01")


def test_the_built_file_is_that_of_its_sources(tmp_path):
    modules = ROOT / ".cache/node/node_modules"
    if not (modules / ".bin/esbuild").exists():
        missing("esbuild")
    subprocess.run(["make", "client", f"CLIENT_OUT={tmp_path}"], cwd=ROOT, check=True)
    for built in sorted(tmp_path.iterdir()):
        assert built.read_bytes() == (CLIENT / built.name).read_bytes(), "run make client"
