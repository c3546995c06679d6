"""A shuffler in a process of its own, to be killed: one line in, one line out, or none."""

import sys
from pathlib import Path

from deploy.test_system import shuffler_for
from shuffledp.deploy.task import Task


def main():
    """Take "take SECONDS HEX" and "advance SECONDS"; answer once it is on disk."""
    folder = Path(sys.argv[1])
    task = Task.decode((folder / "task.bin").read_bytes())
    with shuffler_for(task, folder) as shuffler:
        for line in sys.stdin:
            what, now, *rest = line.split()
            if what == "take":
                answers = shuffler.take(bytes.fromhex(rest[0]), float(now))
                print(*(each.name for each in answers), flush=True)
            else:
                shuffler.advance(float(now))
                print("done", flush=True)


if __name__ == "__main__":
    main()
