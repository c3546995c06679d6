"""Tasks of the Distributed Aggregation Protocol: guarantee of a batch of randomized reports.

A device that runs k-ary randomized response and submits the outcome as a one-hot vector
(Prio3Histogram), or as a bit (Prio3Count), lets two aggregators that do not collude learn the
number of times of each outcome, and nothing else. A shuffler's batch reveals the same: the
histogram is a function of the multiset of reports, and the multiset of the histogram. So all
that is proved of a uniform shuffle of min_batch_size reports is proved of such a batch, if a report
is in one batch only and a batch is collected once, as the protocol requires.

Layout: ``TaskConfiguration`` of draft-ietf-ppm-dap-18, sections 4.1 and 4.2; type codes of the
VDAFs from draft-irtf-cfrg-vdaf. A reader of such a task must check that min_batch_size is enough
for the claimed privacy, which nothing in it states (ietf-wg-ppm/draft-ietf-ppm-dap#271).
"""

from dataclasses import dataclass
from typing import Final, Self

from shuffledp.deploy.wire import Fault, Reader, Reason

_BATCH_MODES: Final = (1, 2)  # time_interval, leader_selected; neither has parameters
_TASK_INTERVAL: Final = 1
_INTERVAL_BYTES: Final = 16  # start and duration

_COUNT: Final = 1
_HISTOGRAM: Final = 4
_OTHER_VDAFS: Final = {2: "Prio3Sum", 3: "Prio3SumVec", 5: "Prio3MultihotCountVec"}


@dataclass(frozen=True, slots=True)
class DapTask:
    """Fields of a task's configuration that matter for privacy."""

    info: bytes
    leader_url: str
    helper_url: str
    #: Smallest number of reports in a batch that is collected.
    min_batch_size: int
    vdaf: str
    #: Outcomes of the randomizer: buckets of the histogram, or the two values of a bit.
    num_outcomes: int

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the task that a TaskConfiguration describes, of one-hot reports in a histogram."""
        reader = Reader(data, "DAP task", Fault.OPERATOR)
        info, leader_url, helper_url = reader.opaque(1), reader.text(2), reader.text(2)
        precision, least = reader.uint(8), reader.uint(8)
        batch_mode, batch_config = reader.uint(1), reader.opaque(2)
        vdaf_type, vdaf_config = reader.uint(4), reader.opaque(2)
        extensions = reader.opaque(2)
        reader.finish()
        needed: dict[str, object] = {"task_info": info, "a URL": leader_url and helper_url}
        needed |= {"time_precision": precision, "min_batch_size": least}
        if missing := [name for name, value in needed.items() if not value]:
            raise reader.error(f"{missing[0]} is empty or 0")
        if batch_mode not in _BATCH_MODES:
            raise reader.error(f"batch mode {batch_mode} is not known", Reason.MISMATCH)
        if batch_config:
            raise reader.error(f"batch mode {batch_mode} has no parameters, and some are there")
        _require_known(extensions, reader)
        vdaf, num_outcomes = _vdaf(vdaf_type, vdaf_config, reader)
        return cls(info, leader_url, helper_url, least, vdaf, num_outcomes)


def _require_known(extensions: bytes, whole: Reader) -> None:
    """Raise unless all extensions are known, in order of their types, each once."""
    reader = Reader(extensions, "DAP task's extensions", Fault.OPERATOR)
    last = -1
    while not reader.is_at_end:
        kind, data = reader.uint(2), reader.opaque(2)
        if kind <= last:
            raise whole.error("its extensions are not in the order of their types, each once")
        if kind != _TASK_INTERVAL:
            what = f"extension {kind} is not known, and could change what a batch is"
            raise whole.error(what, Reason.MISMATCH)
        if len(data) != _INTERVAL_BYTES:
            raise whole.error(f"its interval has {len(data)} bytes, not {_INTERVAL_BYTES}")
        last = kind


def _vdaf(kind: int, config: bytes, whole: Reader) -> tuple[str, int]:
    """Return the name of a VDAF, and the number of outcomes of its one-hot reports."""
    if kind not in (_COUNT, _HISTOGRAM):
        name = _OTHER_VDAFS.get(kind, f"0x{kind:08x}")
        what = f"VDAF {name} does not aggregate one-hot reports: Prio3Histogram and Prio3Count do"
        raise whole.error(what, Reason.MISMATCH)
    reader = Reader(config, "DAP task's VDAF", Fault.OPERATOR)
    length, chunk_length = (2, 1) if kind == _COUNT else (reader.uint(4), reader.uint(4))
    reader.finish()
    if length < 2 or not chunk_length:
        sizes = f"{length} buckets in chunks of {chunk_length}"
        raise whole.error(f"a histogram of {sizes}: at least 2, and chunks of 1, are needed")
    return "Prio3Count" if kind == _COUNT else "Prio3Histogram", length
