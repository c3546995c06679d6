"""Collections whose parts run in processes of their own: a relay with peers, and two servers."""

import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from golden.schemas import found_in

# What each command is given; the estimates are of reports drawn from the system's randomness.
_PREPARE = (
    "network prepare --graph peers.csv --domain yes,no --epsilon0 2 --rounds 6 --delta 1e-3"
    " --question Well? --out terms --json"
)
_RELAY = (
    "network relay terms/terms.json --graph peers.csv --store relay.db --clock all"
    " --round-seconds 3600 --until-collected"
)
_PEERS = (
    "network peer terms/terms.json --graph peers.csv --table peer-answers.csv --column answer"
    " --state peers.db --relay"
)
_COLLECT = (
    "network collect terms/terms.json --key terms/analyzer.key --graph peers.csv --delta 1e-3"
    " --out collected --json --relay"
)
LINES = f"{_PREPARE} && {_RELAY} && {_PEERS} && {_COLLECT}"
_PEERS_LINES = 9  # what peers print before anything that depends on keys

# A batch that is too small waits, so that all users are in one.
_CREATE = (
    "task create --domain yes,no --epsilon0 2 --epsilon 1.5 --delta 1e-6 --min-batch 300"
    " --epoch 2s --grace 1s --num-epochs 1000 --out task --json"
)
_SERVE = (
    "serve shuffler --config task/shuffler.toml",
    "serve analyzer --config task/analyzer.toml",
)
_USE = (
    "task check task/task.bin --json",
    "send task/task.bin survey.csv --column answer --json",
    "collect task --out results --json",
)
# Once the servers have ended.
_OPERATE = (
    "restore --verify --config task/analyzer.toml",
    "keys destroy --number 7 --config task/analyzer.toml",
    "keys rotate task",
)
SERVED_LINES = " && ".join((_CREATE, *_SERVE, *_USE, *_OPERATE))


@contextmanager
def _processes() -> Iterator[Callable[[str], Any]]:
    """Give a function that starts the program on a line; end all that it has started."""
    program = str(Path(sys.executable).with_name("shuffledp"))
    started = []

    def start(line: str) -> Any:
        arguments = [program, *shlex.split(line)]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.wait()
            process.stdout.close()


def run_exchange(run_program: Callable[[list[str]], tuple[int, str, str]]) -> dict[str, Any]:
    """Run all four commands in the working folder; return what does not depend on chance."""
    with _processes() as start:
        _, prepared, _ = run_program(shlex.split(_PREPARE))
        relay = start(_RELAY)
        url = relay.stdout.readline().strip()
        peers = start(f"{_PEERS} {url}")
        status, collected, said = run_program([*shlex.split(_COLLECT), url])
        printed, _ = peers.communicate()
        relay.communicate()
        return {
            "prepared": found_in(prepared),
            "peers": printed.splitlines()[:_PEERS_LINES],
            "exit codes": [peers.returncode, relay.returncode, status],
            "said": said,
            "collected": _without_chance(found_in(collected)),
        }


def run_servers(run_program: Callable[[list[str]], tuple[int, str, str]]) -> dict[str, Any]:
    """Run a task with both servers in the working folder; return what does not depend on chance."""
    with _processes() as start:
        listen = f"--shuffler {free_address()} --analyzer {free_address()}"
        found = [run_program(shlex.split(f"{_CREATE} {listen}"))]
        servers = [start(line) for line in _SERVE]
        urls = [server.stdout.readline().partition("//")[0] for server in servers]
        found += [run_program(shlex.split(line)) for line in _USE]
    operated = [run_program(shlex.split(line)) for line in _OPERATE]
    for _, printed, said in found:
        assert printed, said
    created, checked, sent, collected = (found_in(printed) for _, printed, _ in found)
    return {
        "exit codes": [status for status, _, _ in (*found, *operated)],
        "operated": [printed for _, printed, _ in operated[:2]],  # then what time decides
        "created": created,
        "checked as created": checked == created,
        "urls": urls,
        "sent": sent,
        "collected": _without_chance(collected),
    }


def free_address(number: int = 2) -> str:
    """Return an address whose port and the next ones are free, for now: so many in all."""
    while True:
        with ExitStack() as stack:
            port = 0
            try:
                for place in range(number):
                    each = stack.enter_context(socket.socket())
                    each.bind(("127.0.0.1", port + place))
                    port = port or each.getsockname()[1]
            except (OSError, OverflowError):
                continue
            return f"127.0.0.1:{port}"


def _without_chance(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without the numbers that come from the reports."""
    rows = [{"value": row["value"], "has": sorted(row)} for row in result["estimates"]]
    return {**result, "estimates": rows}
