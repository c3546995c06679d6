"""Messages of the library name arguments of Python; the command line writes them as options."""

import pytest

from shuffledp.cli.console import _Stages, say


@pytest.mark.parametrize(
    ("message", "printed"),
    [
        ("pass missing='drop' to leave them out", "pass --missing drop to leave them out"),
        ("add it to domain=[...], or pass other=True", "add it to --domain, or pass --other"),
        ("max_answers = 3: pass truncate=True", "max_answers = 3: pass --truncate"),
        ("epsilon = 1 and delta = 2", "epsilon = 1 and delta = 2"),
    ],
)
def test_arguments_are_printed_as_options(capsys, message, printed):
    say("error", message)
    assert capsys.readouterr().err == f"error: {printed}\n"


class Bar:
    """A progress display that only keeps the names of its lines."""

    def __init__(self):
        self.lines = []

    def add_task(self, line, total):
        self.lines.append(line)
        return len(self.lines) - 1

    def update(self, task, completed, total):
        assert task < len(self.lines)


def test_stages_say_once_what_would_be_quicker():
    stages = _Stages(bar := Bar(), {"learning": "quicker: fewer --trials"})
    for stage in ("position laws (quicker: positions='spectral')", "learning", "checking"):
        stages(stage, 0, 2)
        stages(stage, 2, 2)
    assert bar.lines == [
        "position laws (quicker: --positions spectral)",
        "learning (quicker: fewer --trials)",
        "checking",
    ]
