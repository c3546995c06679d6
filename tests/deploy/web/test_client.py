"""The browser's client: test vectors in Node, seals that Python opens, and the built file."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.make_vectors import TASK, public
from shuffledp.deploy import messages as m
from shuffledp.deploy.admission import report_id_of, write_code
from shuffledp.deploy.sealing import SIZES, new_mail_key, open_seal, seal

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CLIENT = ROOT / "src/shuffledp/deploy/web/client"
MODULES = ROOT / ".cache/node/node_modules"
CODE = bytes(range(100, 116))


def missing(what):
    """Skip on a user's machine, and fail where everything is to be tested."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is not installed: run make node")
    pytest.skip(f"{what} is not installed: run make node")


def test_the_vectors_hold_in_node_and_python_opens_what_it_seals():
    if shutil.which("node") is None:
        missing("Node")
    keys = {kind: [new_mail_key(kind) for _ in range(2)] for kind in SIZES}
    raw = {kind: [public(key) for key in pair] for kind, pair in keys.items()}
    texts = {kind: seal(f"text of {kind}".encode(), raw[kind][0], b"info") for kind in SIZES}
    said = {
        "SHUFFLEDP_CODE": write_code(CODE).lower(),
        "SHUFFLEDP_ID": report_id_of(CODE, TASK.task_id, 3).hex(),
        "SHUFFLEDP_SEALS": " ".join(
            ":".join([kind, *(each.hex() for each in pair)]) for kind, pair in raw.items()
        ),
        "SHUFFLEDP_SEALED": " ".join(
            f"{kind}:{keys[kind][0].private_bytes_raw().hex()}:{text.hex()}"
            for kind, text in texts.items()
        ),
    }
    command = ["node", "--test", "--test-reporter=tap", HERE / "client.test.mjs"]
    done = subprocess.run(
        command, env=os.environ | said, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    sealed = {line[-2]: bytes.fromhex(line[-1]) for line in lines if "sealed" in line[:2]}
    assert sealed.keys() == SIZES.keys()
    for kind, (shuffler, analyzer) in keys.items():
        (report,) = m.decode_upload(sealed[kind], 2, kind=kind)
        assert (report.report_id, report.epoch, report.key) == (bytes([7] * 16), 3, 0)
        info = m.outer_info(TASK.task_id, 3, report.report_id)
        record = open_seal(report.sealed, shuffler, info)
        assert record[0] == 1
        inner = m.inner_info(TASK.task_id)
        assert open_seal(record[1:], analyzer, inner) == bytes.fromhex("2a01")
    if MODULES.exists():
        assert {line[-1] for line in lines if "opened" in line[:2]} == SIZES.keys()


def test_the_built_file_is_that_of_its_sources(tmp_path):
    if not (MODULES / ".bin/esbuild").exists():
        missing("esbuild")
    subprocess.run(["make", "client", f"CLIENT_OUT={tmp_path}"], cwd=ROOT, check=True)
    for built in sorted(tmp_path.iterdir()):
        assert built.read_bytes() == (CLIENT / built.name).read_bytes(), "run make client"
