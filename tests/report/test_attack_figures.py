"""Figures of simulations: an image, bars that do not go below zero, and what is missing is said."""

import builtins

import pytest

from shuffledp.core.errors import MissingPackageError
from shuffledp.groups.attacks.survey import Measured
from shuffledp.report import attack_figures
from shuffledp.report.attack_figures import write_measured_figure
from shuffledp.report.drawing import require_matplotlib


def measured(*trials, **changes):
    return Measured(
        **{"task": "t", "measure": "m, n", "arrangement": "raw", "trials": trials} | changes
    )


def test_an_image_is_the_same_each_time(tmp_path):
    results = [
        measured(0.1, 0.3),
        measured(0.5, arrangement="uniform"),
        measured(0.5, task="u", lower=0.4, upper=0.7, bound=0.9),
    ]
    paths = [tmp_path / "a.png", tmp_path / "b.png"]
    for path in paths:
        write_measured_figure(results, path)
    images = [path.read_bytes() for path in paths]
    assert images[0] == images[1]
    assert images[0].startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("result", "bar"),
    [
        (measured(0.0, 0.2), [[0.1], [0.02**0.5]]),
        (measured(0.4), [[0.0], [0.0]]),
        (measured(0.5, lower=0.25, upper=1.0), [[0.25], [0.5]]),
    ],
)
def test_error_bars(result, bar):
    down, up = attack_figures._error_bar(result)
    assert [down, up] == [pytest.approx(bar[0]), pytest.approx(bar[1])]


def test_other_missing_modules_are_not_blamed_on_matplotlib(monkeypatch):
    whole = builtins.__import__

    def without_pillow(name, *arguments):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError("No module named 'PIL'", name="PIL")
        return whole(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_pillow)
    with pytest.raises(ModuleNotFoundError, match="PIL") as caught:
        require_matplotlib()
    assert not isinstance(caught.value, MissingPackageError)
