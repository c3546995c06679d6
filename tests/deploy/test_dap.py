"""DAP tasks: read as draft 18 writes them and in no other way, and accounted as a shuffle."""

import json
from pathlib import Path

import numpy as np
import pytest

import shuffledp as sdp
from golden.schemas import found_in
from shuffledp.cli.main import main
from shuffledp.deploy.dap import DapTask
from shuffledp.deploy.wire import Fault, ProtocolError, Reason, opaque, uint

HISTOGRAM = uint(4, 4) + opaque(uint(12, 4) + uint(4, 4), 2)
COUNT = uint(1, 4) + opaque(b"", 2)
INTERVAL = uint(1, 2) + opaque(uint(277, 8) + uint(28, 8), 2)


def dap_task(
    *,
    info=b"survey",
    leader=b"https://leader.example/",
    helper=b"https://helper.example/",
    precision=3600,
    min_batch=10_000,
    mode=b"\x01\x00\x00",
    vdaf=HISTOGRAM,
    extensions=INTERVAL,
):
    """Return a TaskConfiguration, field by field as in draft-ietf-ppm-dap-18, section 4.2."""
    return b"".join(
        (
            opaque(info, 1), opaque(leader, 2), opaque(helper, 2), uint(precision, 8),
            uint(min_batch, 8), mode, vdaf, opaque(extensions, 2),
        )
    )  # fmt: skip


def test_a_task_written_out_by_hand_is_read():
    written = bytes.fromhex(
        "03 616263"  # task_info
        "0009 68747470733a2f2f61"  # leader
        "0009 68747470733a2f2f62"  # helper
        "0000000000000e10"  # time_precision
        "00000000000003e8"  # min_batch_size
        "02 0000"  # leader_selected
        "00000004 0008 00000100 00000012"  # Prio3Histogram: 256 buckets, chunks of 18
        "0014 0001 0010 0000000000000115 000000000000001c"  # task_interval
    )
    assert DapTask.decode(written) == DapTask(
        info=b"abc",
        leader_url="https://a",
        helper_url="https://b",
        min_batch_size=1000,
        vdaf="Prio3Histogram",
        num_outcomes=256,
    )
    assert DapTask.decode(dap_task(vdaf=COUNT, extensions=b"")).num_outcomes == 2


@pytest.mark.parametrize(
    ("data", "message", "reason"),
    [
        (b"", "at least 1 are needed", Reason.MALFORMED),
        (dap_task()[:-1], "end in the middle", Reason.MALFORMED),
        (dap_task() + b"\0", "1 bytes too many", Reason.MALFORMED),
        (dap_task(info=b""), "task_info is empty", Reason.MALFORMED),
        (dap_task(leader=b""), "a URL is empty", Reason.MALFORMED),
        (dap_task(helper=b""), "a URL is empty", Reason.MALFORMED),
        (dap_task(helper=b"\xff"), "not UTF-8", Reason.MALFORMED),
        (dap_task(precision=0), "time_precision is empty or 0", Reason.MALFORMED),
        (dap_task(min_batch=0), "min_batch_size is empty or 0", Reason.MALFORMED),
        (dap_task(mode=b"\x00\x00\x00"), "batch mode 0", Reason.MISMATCH),
        (dap_task(mode=b"\x03\x00\x00"), "batch mode 3", Reason.MISMATCH),
        (dap_task(mode=b"\x01\x00\x01x"), "has no parameters", Reason.MALFORMED),
        (dap_task(vdaf=uint(0, 4) + opaque(b"", 2)), "VDAF 0x00000000", Reason.MISMATCH),
        (dap_task(vdaf=uint(2, 4) + opaque(uint(1, 8), 2)), "VDAF Prio3Sum ", Reason.MISMATCH),
        (dap_task(vdaf=uint(3, 4) + opaque(bytes(16), 2)), "Prio3SumVec", Reason.MISMATCH),
        (dap_task(vdaf=uint(5, 4) + opaque(bytes(16), 2)), "MultihotCountVec", Reason.MISMATCH),
        (dap_task(vdaf=uint(0xFFFF1003, 4) + opaque(b"", 2)), "0xffff1003", Reason.MISMATCH),
        (dap_task(vdaf=uint(1, 4) + opaque(b"x", 2)), "1 bytes too many", Reason.MALFORMED),
        (dap_task(vdaf=uint(4, 4) + opaque(bytes(4), 2)), "in the middle", Reason.MALFORMED),
        (dap_task(vdaf=uint(4, 4) + opaque(bytes(9), 2)), "1 bytes too many", Reason.MALFORMED),
        (dap_task(vdaf=uint(4, 4) + opaque(uint(1, 4) + uint(1, 4), 2)), "histogram of 1",
         Reason.MALFORMED),
        (dap_task(vdaf=uint(4, 4) + opaque(uint(2, 4) + uint(0, 4), 2)), "in chunks of 0",
         Reason.MALFORMED),
        (dap_task(extensions=INTERVAL * 2), "order of their types", Reason.MALFORMED),
        (dap_task(extensions=uint(0, 2) + opaque(b"", 2)), "extension 0", Reason.MISMATCH),
        (dap_task(extensions=INTERVAL + uint(9, 2) + opaque(b"", 2)), "extension 9",
         Reason.MISMATCH),
        (dap_task(extensions=uint(1, 2) + opaque(bytes(15), 2)), "15 bytes, not 16",
         Reason.MALFORMED),
        (dap_task(extensions=b"\0"), "in the middle", Reason.MALFORMED),
    ],
)  # fmt: skip
def test_what_is_no_task_of_one_hot_reports_is_refused(data, message, reason):
    with pytest.raises(ProtocolError, match=message) as caught:
        DapTask.decode(data)
    assert (caught.value.fault, caught.value.reason) == (Fault.OPERATOR, reason)


# ---------------------------------------------------------------- what it keeps
@pytest.mark.parametrize(("vdaf", "k"), [(HISTOGRAM, 12), (COUNT, 2)])
@pytest.mark.parametrize("share", [None, "0.8"])
def test_the_guarantee_is_that_of_a_shuffle(tmp_path, capsys, vdaf, k, share):
    path = tmp_path / "dap.bin"
    path.write_bytes(dap_task(vdaf=vdaf))
    more = [] if share is None else ["--honest-fraction", share]
    line = ["--epsilon0", "4", "--delta", "1e-8", *more]
    assert main(["task", "check", "--dap", str(path), *line, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["account", "--num-users", "10000", "--randomizer", "k-rr", "--k", str(k), *line,
                 "--json"]) == 0  # fmt: skip
    account = found_in(capsys.readouterr().out)
    assert found["guarantee"]["epsilon"] == account["epsilon"]
    assert found["num_honest"] == (10_000 if share is None else 8_000)
    assert main(["task", "check", "--dap", str(path), *line]) == 0
    out = capsys.readouterr().out
    assert "10,000 reports" in out
    assert "if they collude  epsilon0 = 4" in out


def test_the_sum_of_one_hot_reports_says_what_the_shuffled_reports_say():
    """Both are functions of each other: sorted reports count up to it, and it sorts reports."""
    law = sdp.randomizers.KRandomizedResponse(domain_size=5, epsilon0=1.0)
    values = np.arange(1000) % 5
    reports = law.randomize(values, sdp.Entropy.from_seed(3))
    total = np.eye(5, dtype=np.int64)[reports.data].sum(axis=0)
    restored = np.repeat(np.arange(5, dtype=reports.data.dtype), total)
    assert restored.tolist() == sorted(reports.data.tolist())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dap", "dap.bin"], "needs --epsilon0 and --delta"),
        (["--dap", "dap.bin", "--epsilon0", "1"], "needs --epsilon0 and --delta"),
        (["--dap", "dap.bin", "--epsilon0", "-1", "--delta", "1e-8"], "epsilon0"),
        (["--dap", "dap.bin", "--epsilon0", "1", "--delta", "nan"], "delta"),
        (["--dap", "absent", "--epsilon0", "1", "--delta", "1e-8"], "cannot read absent"),
        (["--dap", "big.bin", "--epsilon0", "1", "--delta", "1e-8"], "above 1e+15"),
        (["dap.bin", "--dap", "dap.bin"], "give a task, or --dap"),
        ([], "give a task, or --dap"),
        (["dap.bin", "--epsilon0", "1"], "--epsilon0 is for --dap"),
    ],
)
def test_what_cannot_be_checked_is_said(tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    Path("dap.bin").write_bytes(dap_task())
    Path("big.bin").write_bytes(dap_task(min_batch=2**64 - 1))
    assert main(["task", "check", *options]) == 2
    assert message in capsys.readouterr().err
