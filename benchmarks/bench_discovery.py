"""Popular texts among a million that nobody listed, by a Zipf law, beside counting them openly.

Each measurement is a fresh process, start-up and planning included. ``extra_info`` has the share
that the plan finds with probability 0.95, the number of texts found, the rank of the first text
that is not, the texts found that nobody has, and the peak memory of that process (Linux only).
"""

import json
import subprocess
import sys

import pytest

NUM_TEXTS = 10**6
MAX_BYTES = 8

TEXTS = f"""
import json, sys, time
import numpy as np, polars as pl
import shuffledp as sdp
num_users, how = int(float(sys.argv[1])), json.loads(sys.argv[2])
generator = sdp.Entropy.from_seed(1).generator()
shares = 1.0 / np.arange(1.0, {NUM_TEXTS} + 1)
shares /= shares.sum()
# Eight digits in base 36 of numbers that have nothing to do with the ranks.
numbers = np.arange({NUM_TEXTS}, dtype=np.uint64) * np.uint64(2654435761)
digits = np.array(list("0123456789abcdefghijklmnopqrstuvwxyz"), dtype="S1")
places = np.uint64(36) ** np.arange({MAX_BYTES}, dtype=np.uint64)
letters = digits[(numbers[:, None] * np.uint64(1099511628211) // places) % np.uint64(36)]
texts = pl.Series("text", np.ascontiguousarray(letters).view("S{MAX_BYTES}")[:, 0].astype(str))
ranks = np.searchsorted(np.cumsum(shares), generator.random(num_users))
values = texts.gather(np.minimum(ranks, {NUM_TEXTS} - 1))
start = time.perf_counter()
"""

DISCOVER = (
    TEXTS
    + f"""
asked = sdp.HeavyHitters(max_bytes={MAX_BYTES}, most=how.pop("most"), bits=how.pop("bits", None))
plan = sdp.plan(asked, num_users=num_users, epsilon=1.0, delta=1e-8, **how)
planned = time.perf_counter()
result = sdp.run(plan, values, seed=1)
done = time.perf_counter()
rank = dict(zip(texts.to_list(), range({NUM_TEXTS})))
found = {{rank.get(text, -1) for text in result.domain}}
facts = plan.to_json_dict()["discovery"]
print(json.dumps({{
    "share": facts["found_share"], "found": len(result.domain), "false": -1 in found,
    "first_missing": min(set(range(len(found) + 1)) - found), "plan_seconds": planned - start,
    "run_seconds": done - planned, "rounds": plan.question.num_rounds,
    "randomizer": plan.randomizer.name,
    "found_share": result.estimates.discovery.found_share, "num_dummies": result.num_dummies,
}}))
"""
)

COUNT = (
    TEXTS
    + """
counted = values.value_counts(sort=True)
print(json.dumps({"found": len(counted), "run_seconds": time.perf_counter() - start}))
"""
)

PEAK = """
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print(int(line.split()[1]) / 1024)
"""

HOW = {
    "one_round_each": {"most": 500},
    "one_round_each_epsilon0_8": {"most": 500, "max_epsilon0": 8.0},
    "dummies": {"most": 500, "bits": 4, "dummies": "shuffler", "no_local_noise": True},
    "open": None,
}


@pytest.mark.parametrize("num_users", [10**6, 10**7])
@pytest.mark.parametrize("how", HOW)
def test_discovery(benchmark, how, num_users):
    program = (COUNT if HOW[how] is None else DISCOVER) + PEAK

    def run():
        words = [sys.executable, "-c", program, str(num_users), json.dumps(HOW[how] or {})]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        found, peak = done.stdout.strip().splitlines()[-2:]
        benchmark.extra_info.update(json.loads(found) | {"peak_megabytes": float(peak)})

    benchmark.pedantic(run, rounds=1)
