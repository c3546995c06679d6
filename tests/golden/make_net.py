"""Write ``net.json``, what some 400 calls of the program and of Python return, and docs/schemas.

Run ``make golden``, or from the tests folder ``python -m golden.make_net``. Takes a minute. With
``--diff`` nothing is written, and what differs from the file is printed. Calls that take more than
a second of processor time are named: cut them.
"""

import json
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

from golden.net.plain import changes, results_in, text_of
from golden.net.running import all_results
from golden.schemas import PRINTED, schema_file, schema_of

TARGET = Path(__file__).with_name("net.json")
LONG_SECONDS = 1.0


def written_results():
    """Return the results in the file."""
    return results_in(TARGET.read_text(encoding="ascii"))


def num_calls(names):
    """Return how many calls each capability has, as a table."""
    counts = Counter(name.partition(" | ")[0] for name in names)
    return "\n".join(f"{name:16} {counts[name]:3}" for name in sorted(counts))


def main() -> None:
    """Run the net, and write the file or show what differs from it."""
    begun: list[tuple[str, float]] = []
    results = all_results(lambda name: begun.append((name, time.process_time())))
    begun.append(("", time.process_time()))
    for (name, start), (_, end) in pairwise(begun):
        if end - start > LONG_SECONDS:
            print(f"{end - start:.1f} s: {name}")
    if sys.argv[1:] == ["--diff"]:
        print("\n".join(changes(written_results(), results)))
        return
    TARGET.write_text(text_of(results), encoding="ascii")
    for command in sorted({record["command"] for record in PRINTED}):
        schema = schema_of(command, [each for each in PRINTED if each["command"] == command])
        text = json.dumps(schema, indent=1, ensure_ascii=False)
        schema_file(command).write_text(text + "\n", encoding="utf-8")
    print(f"{num_calls(results)}\n{len(results)} calls, {begun[-1][1]:.0f} s of processor time")


if __name__ == "__main__":
    main()
