import itertools
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, FingerprintError, OutputError, ParameterError
from shuffledp.monitoring import client
from shuffledp.monitoring.client import MemoisedReports
from shuffledp.randomizers import make_randomizer

LAW = make_randomizer("k-rr", domain_size=5, epsilon0=0.5)


def codes(state):
    return [int(state.report(code).data[0]) for code in range(5)]


def test_the_same_value_has_the_same_report_for_ever(tmp_path):
    path = tmp_path / "state"
    first = MemoisedReports(path, LAW)
    assert codes(first) == codes(first) == codes(MemoisedReports(path, LAW))
    assert first.report(np.int64(3)).fingerprint == LAW.fingerprint
    drawn = LAW.randomize(np.arange(5), Entropy.from_seed(1)).data.tolist()
    assert codes(MemoisedReports(tmp_path / "other", LAW, entropy=Entropy.from_seed(1))) == drawn
    # Another source changes nothing any more.
    assert codes(MemoisedReports(tmp_path / "other", LAW, entropy=Entropy.from_seed(2))) == drawn


def test_only_the_owner_can_read_it_and_nothing_else_is_left(tmp_path):
    MemoisedReports(tmp_path / "state", LAW)
    assert [each.name for each in tmp_path.iterdir()] == ["state"]
    if sys.platform != "win32":
        assert (tmp_path / "state").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["symmetric-unary", "subset-selection", "hadamard-response"])
def test_reports_of_any_shape(tmp_path, name):
    law = make_randomizer(name, domain_size=9, epsilon0=1.0)
    first = MemoisedReports(tmp_path / "state", law, entropy=Entropy.from_seed(4))
    again = MemoisedReports(tmp_path / "state", law)
    drawn = law.randomize(np.arange(9), Entropy.from_seed(4)).data
    for code in range(9):
        assert again.report(code).data.dtype == drawn.dtype
        assert (first.report(code).data == drawn[code]).all()
        assert (again.report(code).data == drawn[code]).all()


# Ends the process at the n-th call that touches the disk.
KILLED = """
import os, sys
from pathlib import Path
from shuffledp.monitoring import client
from shuffledp.randomizers import make_randomizer

left = int(sys.argv[2])
def dying(call):
    def wrapped(*given, **named):
        global left
        left -= 1
        if left == 0:
            os._exit(9)
        return call(*given, **named)
    return wrapped

os.open, os.fsync, os.link = dying(os.open), dying(os.fsync), dying(os.link)
client.sync_folder, Path.unlink = dying(client.sync_folder), dying(Path.unlink)
state = client.MemoisedReports(sys.argv[1], make_randomizer("k-rr", domain_size=5, epsilon0=0.5))
print(*(int(state.report(code).data[0]) for code in range(5)))
"""


@pytest.mark.slow
def test_killed_anywhere_it_has_sent_nothing_or_goes_on_with_the_same(tmp_path):
    ended = []
    for step in range(1, 9):
        path = tmp_path / str(step) / "state"
        path.parent.mkdir()
        how = [sys.executable, "-c", KILLED, str(path), str(step)]
        done = subprocess.run(how, capture_output=True, text=True, timeout=120, check=False)
        ended.append(done.returncode)
        later = codes(MemoisedReports(path, LAW))
        assert done.returncode == 9 or done.stdout.split() == [str(each) for each in later]
        assert done.returncode == 0 or not done.stdout
    assert ended[:5] == [9] * 5  # open, fsync, link, unlink, folder
    assert ended[-1] == 0


def test_two_that_start_at_once_share_one_draw(tmp_path, monkeypatch):
    path, link, found = tmp_path / "state", os.link, []

    def overtaken(partial, target):
        if not found:
            found.append(None)
            found[0] = codes(MemoisedReports(path, LAW, entropy=Entropy.from_seed(8)))
        link(partial, target)

    monkeypatch.setattr(client.os, "link", overtaken)
    assert codes(MemoisedReports(path, LAW, entropy=Entropy.from_seed(9))) == found[0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: "",
        lambda state: "[]",
        lambda state: json.dumps({"reports": state["reports"]}),
        lambda state: json.dumps(state | {"reports": state["reports"][:4]}),
        lambda state: json.dumps(state | {"reports": [0, 1, 2, 3, 5]}),
        lambda state: json.dumps(state | {"reports": [0, 1, 2, 3, -1]}),
        lambda state: json.dumps(state | {"reports": "abc"}),
        lambda state: json.dumps(state | {"reports": [4 - each for each in state["reports"]]}),
        lambda state: json.dumps(state | {"reports": [each + 0.5 for each in state["reports"]]}),
        lambda state: json.dumps({key: state[key] for key in ("fingerprint", "reports")}),
        lambda state: "[" * 100_000,
        lambda state: json.dumps(state)[:-9],
    ],
)
def test_what_is_damaged_is_never_drawn_anew(tmp_path, damage):
    path = tmp_path / "state"
    MemoisedReports(path, LAW)
    text = damage(json.loads(path.read_text()))
    path.write_text(text)
    with pytest.raises(DataError, match="state is no state of memoised reports, or damaged"):
        MemoisedReports(path, LAW)
    assert path.read_text() == text


def test_another_law_or_value_is_refused(tmp_path):
    state = MemoisedReports(tmp_path / "state", LAW)
    other = make_randomizer("k-rr", domain_size=5, epsilon0=2.0)
    with pytest.raises(FingerprintError, match="these reports carry the fingerprint"):
        MemoisedReports(tmp_path / "state", other)
    with pytest.raises(ParameterError, match="code = 5 is above 4"):
        state.report(5)
    with pytest.raises(ParameterError, match="code = -1 is below 0"):
        state.report(-1)


def test_a_state_that_cannot_be_written(tmp_path):
    with pytest.raises(OutputError, match="cannot write"):
        MemoisedReports(tmp_path / "none" / "state", LAW)


def law_of_linked_reports(history, p, q):
    """The law of one user's three reports, by all draws for three values."""
    law = {}
    for draws in itertools.product(range(3), repeat=3):
        mass = math.prod(p if draw == value else q for value, draw in enumerate(draws))
        reports = tuple(draws[value] for value in history)
        law[reports] = law.get(reports, 0.0) + mass
    return law


def test_linked_reports_hide_values_but_not_which_periods_share_one():
    p, q = 0.5, 0.25
    histories = list(itertools.product(range(3), repeat=3))
    laws = [law_of_linked_reports(each, p, q) for each in histories]
    for (i, first), (j, second) in itertools.combinations(enumerate(histories), 2):
        shared = [[each.index(value) for value in each] for each in (first, second)]
        if shared[0] == shared[1]:
            worst = max(laws[i][each] / laws[j][each] for each in laws[i])
            assert worst <= (p / q) ** len(set(first)) * (1 + 1e-12)
        else:  # such as 0, 1, 0 and 0, 1, 2, which change in the same periods
            assert laws[i].keys() != laws[j].keys()
