"""What is loaded before victims are forked off: the first guarantee and page take long."""

import tempfile
from pathlib import Path

from deploy import killed
from deploy.make_vectors import make_task
from deploy.roles import SMALL
from shuffledp.collection.output import write_results
from shuffledp.deploy.analyzer import Opened, result_of

assert killed  # which has the rest
_TASK = make_task(**SMALL)
_ANY = Opened(
    number=1,
    root=b"",
    reports=_TASK.asked.codec.decode([b"\0"] * 3),
    guarantee=_TASK.guarantee(3),
    num_honest=3,
    counts=dict.fromkeys(("num_held", "num_kept", "num_earlier"), 0),
)
with tempfile.TemporaryDirectory() as _folder:
    write_results(result_of(_TASK, _ANY), Path(_folder))
