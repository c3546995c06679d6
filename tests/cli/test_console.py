"""Messages of the library name arguments of Python; the command line writes them as options."""

import pytest

from shuffledp.cli.console import say


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
