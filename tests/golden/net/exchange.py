"""A collection between peers, with a relay and twelve peers in processes of their own."""

import shlex
import subprocess
import sys
from collections.abc import Callable
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


def run_exchange(run_program: Callable[[list[str]], tuple[int, str, str]]) -> dict[str, Any]:
    """Run all four commands in the working folder; return what does not depend on chance."""
    program = str(Path(sys.executable).with_name("shuffledp"))
    started = []

    def start(line: str) -> Any:
        arguments = [program, *shlex.split(line)]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    try:
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
    finally:
        for process in started:
            process.kill()
            process.wait()
            process.stdout.close()


def _without_chance(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without the numbers that come from the reports."""
    rows = [{"value": row["value"], "has": sorted(row)} for row in result["estimates"]]
    return {**result, "estimates": rows}
