"""Programs whose clock a test moves, so that nothing is late because a machine is slow."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

PROGRAM = """\
#!/bin/sh
exec {python} -c '
import sys, time
from pathlib import Path
day, steady, by, moved = time.time, time.clock_gettime, [0.0], Path(sys.argv.pop(1))
def read():
    by[0], wrong = map(float, moved.read_text().split())
    return day() + by[0] + wrong
time.time, time.clock_gettime = read, lambda clock: steady(clock) + by[0]
from shuffledp.cli import start
sys.exit(start())
' {moved} "$@"
"""
# An epoch that no machine is too slow for, and what ends it, with some grace, from half of it on.
EPOCH, HALF, OVER = "1h", 1800, 1820


class Clock:
    """The clocks of `shuffledp` and of nothing else: the machine's, and what they were moved by.

    Of day and of what nobody sets: servers hold one against the other, see `servers.clock`.
    ``shuffledp`` is a program in a folder of its own, which goes first in the search path.
    """

    def __init__(self, folder: Path, monkeypatch, *, behind: int) -> None:
        """``behind`` is the sum of all moves to come: then the test's own clock agrees."""
        (folder / "clocked").mkdir(parents=True)
        self._moved, self.shuffledp = folder / "clocked" / "moved", folder / "clocked" / "shuffledp"
        self._by, self._wrong = -behind, 0
        self.move(0)
        python, moved = shlex.quote(sys.executable), shlex.quote(str(self._moved))
        self.shuffledp.write_text(PROGRAM.format(python=python, moved=moved))
        self.shuffledp.chmod(0o755)
        monkeypatch.setenv("PATH", f"{self.shuffledp.parent}{os.pathsep}{os.environ['PATH']}")

    def move(self, seconds: int, *, wrong: int = 0) -> None:
        """Move them forward, for programs that run too; that of day alone by what is wrong."""
        self._by, self._wrong = self._by + seconds, self._wrong + wrong
        new = self._moved.with_suffix(".new")
        new.write_text(f"{self._by} {self._wrong}")
        new.replace(self._moved)

    def run(self, *arguments: str) -> None:
        """Run `shuffledp`; the analyzers of tasks that it makes ask for batches all the time."""
        subprocess.run([self.shuffledp, *arguments], check=True)
        for path in Path().glob("*/analyzer.toml") if arguments[0] == "task" else ():
            path.write_text(
                re.sub(r"(?m)^poll_seconds = .*", "poll_seconds = 0.1", path.read_text())
            )
