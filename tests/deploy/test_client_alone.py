"""A device needs NumPy and cryptography, and finds there what is found elsewhere."""

import json
import math
import subprocess
import sys
from dataclasses import replace

import pytest

from deploy.make_vectors import ANALYZER_KEY, SHUFFLER_KEY, make_task
from printed_numbers import PROMISED
from shuffledp import AnswerSets, Categories, Columns, HeavyHitters, Mean
from shuffledp.collection.questions.rounds import Search
from shuffledp.core.dummies import DummyLaw
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.messages import split
from shuffledp.deploy.wire import ProtocolError

FIFTY = [str(each) for each in range(50)]
COLUMNS = Columns({"age": ["young", "old"], "vote": ["yes", "no"]}, pairs="all")
SEARCH = HeavyHitters(max_bytes=3, most=12, bits=8, search=Search("0" * 32))
SEARCH_OF_ALL = replace(SEARCH, search=Search("0" * 32, is_for_all=True))
# What is asked, what is answered, the least batch, and an epsilon little above what is proved.
TASKS = {
    "the guide's": (Categories(["yes", "no"]), "k-rr", 2.0, "yes", 10_000, "0.1194"),
    "a million": (Categories(["yes", "no"]), "k-rr", 2.0, "no", 1_000_000, "0.01027"),
    "of fifty": (Categories(FIFTY), "optimized-local-hashing", 2.0, "7", 10_000, "0.12"),
    "hardly hidden": (Categories(FIFTY), "k-rr", 8.0, 7, 1_000_000, "0.4"),
    "a number": (Mean(0, 120), "piecewise", 2.0, 43.5, 10_000, "0.15"),
    "beside dummies": (Categories(["yes", "no"]), "k-rr", 4.0, "yes", 2_000, "0.7"),
    "a set": (AnswerSets(FIFTY, max_answers=3), "sampled:k-rr", 2.0, ["1", "9"], 10_000, "0.15"),
    "columns": (COLUMNS, "sampled-parts", 2.0, {"age": "old", "vote": "no"}, 10_000, "0.14"),
    "a drawn round": (SEARCH, "k-rr", 7.0, "one", 10_000, "1.21"),
    "every round": (SEARCH_OF_ALL, "k-rr", 7.0, "one", 10_000, "7.4"),
}

# Which of them have dummies, by which law.
DUMMIES = {
    "beside dummies": DummyLaw.from_text("poisson:0.05"),
    "every round": DummyLaw.from_text("laplace:2.025:27"),
}

# Reads a task, an answer, two keys and a place from standard input; says what it found and sends.
DEVICE = """
import sys

# The third comes with cryptography.
NEEDED = ("numpy", "cryptography", "_cffi_backend", *sys.argv[1:])

class Refuse:
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first not in {"shuffledp", *sys.stdlib_module_names, *NEEDED}:
            raise ModuleNotFoundError(f"{name} is not on a device", name=name)

sys.meta_path.insert(0, Refuse())

import json
from pathlib import Path
from shuffledp.deploy.client import Client
from shuffledp.deploy.messages import SealKey
from shuffledp.deploy.task import Task

given = json.load(sys.stdin)
task = Task.decode(bytes.fromhex(given["task"]))
keys = [SealKey(number=number, public_key=bytes.fromhex(key)) for number, key in given["keys"]]
with Client(task, Path(given["store"])) as client:
    kept = client.report(given["answer"], task.start)
    sealed = client.sealed(shuffler=keys[0], analyzer=keys[1])
found = task.guarantee().epsilon_upper if given["says_epsilon"] else None
print(json.dumps({"report": kept.report.hex(), "sealed": len(sealed), "epsilon": found}))
if given.get("sends"):
    from shuffledp.deploy import Client
    with Client(task, given["store"]) as client:
        try:
            client.send(patience_seconds=0.0)
        except Exception as error:
            print(type(error).__name__, error)
"""
HTTPX = ("httpx", "httpcore", "h11", "anyio", "sniffio", "certifi", "idna")


@pytest.mark.parametrize("name", TASKS)
def test_a_device_needs_numpy_and_cryptography_alone(name, tmp_path):
    question, randomizer, epsilon0, answer, min_batch, epsilon = TASKS[name]
    asked = AskedTerms.of(question, randomizer, epsilon0)
    law = DUMMIES.get(name)
    epochs = 1 if asked.search else 30
    how = {"min_batch": min_batch, "dummies": law, "num_epochs": epochs}
    task = make_task(asked=asked, epsilon=epsilon, **how)
    given = {
        "task": task.encode().hex(),
        "answer": answer,
        "keys": [(key.number, key.public_key.hex()) for key in (SHUFFLER_KEY, ANALYZER_KEY)],
        "store": str(tmp_path / "device.db"),
        # Where a report is hardly hidden the search for the least epsilon takes a device half a
        # minute; its check of a promise, which is what it runs, takes a second.
        "says_epsilon": name != "hardly hidden",
    }
    outcome = subprocess.run(
        [sys.executable, "-W", "error", "-c", DEVICE],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    found = json.loads(outcome.stdout)
    if given["says_epsilon"]:
        assert math.isclose(found["epsilon"], task.guarantee().epsilon_upper, rel_tol=PROMISED)
    texts = split(bytes.fromhex(found["report"]), asked.codec.num_report_bytes)
    _, num_invalid = asked.codec.decode_valid(texts)
    assert num_invalid == 0
    assert found["sealed"] > len(found["report"]) // 2


@pytest.mark.parametrize(
    ("packages", "said"),
    [(HTTPX, "NoAnswerError no answer from the shuffler"),
     ((), "MissingPackageError sending needs httpx: run pip install 'httpx'")],
    ids=["httpx", "without"],
)  # fmt: skip
def test_sending_needs_httpx_besides(packages, said, tmp_path):
    task = make_task(shuffler_url="http://127.0.0.1:1", analyzer_url="http://127.0.0.1:1")
    given = {
        "task": task.encode().hex(),
        "answer": "yes",
        "keys": [(key.number, key.public_key.hex()) for key in (SHUFFLER_KEY, ANALYZER_KEY)],
        "store": str(tmp_path / "device.db"),
        "says_epsilon": False,
        "sends": True,
    }
    outcome = subprocess.run(
        [sys.executable, "-W", "error", "-c", DEVICE, *packages],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    )
    assert said in outcome.stdout


@pytest.mark.parametrize("name", TASKS)
def test_the_promise_is_refused_where_the_least_epsilon_is_above_it(name):
    question, randomizer, epsilon0, _, min_batch, _ = TASKS[name]
    asked = AskedTerms.of(question, randomizer, epsilon0)
    how = {"asked": asked, "min_batch": min_batch, "dummies": DUMMIES.get(name)}
    how["num_epochs"] = 1 if asked.search else 30
    least = make_task(**how).guarantee().epsilon_upper
    # One delta at the promise settles what the least epsilon would, just above it and just below.
    make_task(**how, epsilon=f"{least * (1 + 1e-6):.12f}").check()
    with pytest.raises(ProtocolError, match="promises"):
        make_task(**how, epsilon=f"{least * (1 - 1e-5):.12f}").check()
