"""The browser's client: test vectors in Node, seals that Python opens, and the built file."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy.make_vectors import TASK, public
from shuffledp.deploy import messages as m
from shuffledp.deploy.messages import report_id_of, write_code
from shuffledp.deploy.wire import SIZES, new_mail_key, open_seal, seal

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
        (report,) = m.decode_upload(sealed[kind], SimpleNamespace(sizes=(2, 1, kind)))
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


def test_the_package_for_npm_has_the_built_files_and_their_types():
    if shutil.which("npm") is None:
        missing("npm")
    command = ["npm", "pack", "--dry-run", "--json", "--offline"]
    done = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, check=True)
    (packed,) = json.loads(done.stdout)
    built = ["licenses.txt", "shuffledp-hybrid.js", "shuffledp.d.ts", "shuffledp.js"]
    assert sorted(each["path"] for each in packed["files"]) == [
        *built[:1],
        "package.json",
        *built[1:],
    ]
    told = json.loads((CLIENT / "package.json").read_bytes())
    assert {told["main"], told["types"], *told["files"]} == set(built)


def test_types_name_what_the_client_exports_and_every_code_of_an_error():
    if shutil.which("node") is None:
        missing("Node")
    show = f"import('{CLIENT}/shuffledp.js').then((each) => console.log(Object.keys(each).join()))"
    done = subprocess.run(["node", "-e", show], capture_output=True, text=True, check=True)
    types = (CLIENT / "shuffledp.d.ts").read_text("utf-8")
    exported = set(done.stdout.strip().split(","))
    inner = {"chosenKeys", "keyFrom", "sealer"}  # for the tests of this folder
    assert set(re.findall(r"export (?:function|class) (\w+)", types)) == exported - inner
    codes = re.search(r"type Code =([^;]+);", types).group(1)
    messages = json.loads((CLIENT / "src/messages.json").read_bytes())
    assert re.findall(r'"([\w-]+)"', codes) == sorted(messages)
    sources = "".join(each.read_text("utf-8") for each in (CLIENT / "src").glob("*.js"))
    assert all(f'"{code}"' in sources for code in messages)


def test_scripts_and_style_sheets_stay_small():
    """At most 600 lines without blank ones and comments, none of more than 120 columns."""
    web = CLIENT.parent
    files = [each for name in ("client/src", "static") for each in sorted((web / name).iterdir())]
    texts = [each.read_text("utf-8") for each in files if each.suffix in (".js", ".css")]
    lines = [line for text in texts for line in text.splitlines()]
    said = [line for line in lines if not re.match(r"\s*(//|/?\*|$)", line)]
    assert 500 < len(said) <= 600
    assert max(map(len, lines)) <= 120
