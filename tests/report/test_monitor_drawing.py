"""Images of a monitored statistic: files, lines, labels; read back from the axes."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from report.monitor_views import build_view
from shuffledp.core.errors import ParameterError
from shuffledp.report import monitor_drawing
from shuffledp.report.monitor_drawing import (
    ErrorLine,
    draw_expected_errors,
    draw_running_counts,
    require_image_name,
)


@pytest.fixture
def drawn(monkeypatch):
    """Keep what is saved."""
    kept = []
    save = monitor_drawing._save

    def keep(drawing, path):
        kept.append(drawing)
        save(drawing, path)

    monkeypatch.setattr(monitor_drawing, "_save", keep)
    return kept


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
@pytest.mark.parametrize("num_periods", [1, 8, 40])
def test_files_are_the_same_each_time(tmp_path, suffix, start, num_periods):
    path = tmp_path / f"x{suffix}"
    view = build_view(num_periods)
    draw_running_counts(view, path)
    content = path.read_bytes()
    assert content.startswith(start)
    draw_running_counts(view, path)
    assert path.read_bytes() == content


def test_estimates_band_and_truth(tmp_path, drawn):
    view = build_view()
    draw_running_counts(view, tmp_path / "x.png")
    (drawing,) = drawn
    top, bottom = drawing.axes
    estimates, truth = top.get_lines()
    assert estimates.get_ydata().tolist() == view.curves[0].estimates.tolist()
    assert truth.get_ydata().tolist() == view.curves[0].truth.tolist()
    assert truth.get_linestyle() == "--"
    assert len(top.collections) == 1
    assert [axis.get_ylabel() for axis in drawing.axes] == ["users", "estimate less truth"]
    assert bottom.get_xlabel() == "period"
    assert bottom.get_xticklabels()[0].get_text() == "2026-01-01"
    names = [text.get_text() for text in drawing.legends[0].get_texts()]
    assert names[:2] == ["estimate", "95% band for all periods at once"]
    assert "known only in a simulation" in names[2]


def test_without_the_truth_there_is_one_panel(tmp_path, drawn):
    draw_running_counts(build_view(truth=False, num_curves=2), tmp_path / "x.png")
    assert len(drawn[0].axes) == 1
    assert len(drawn[0].axes[0].get_lines()) == 2


def test_labels_are_shown_as_they_are(tmp_path, drawn):
    view = build_view(num_curves=2, labels=["_hidden", "$\\frac$"], what="$x_")
    draw_running_counts(view, tmp_path / "x.png")
    names = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert names[0].endswith("_hidden")
    assert len(names) == 4


def test_expected_errors_of_a_plan(tmp_path, drawn):
    lines = [
        ErrorLine(name="monitoring", values=np.array([0.01, 0.02]), is_main=True),
        ErrorLine(name="repeating", values=np.array([0.5, np.inf]), is_elsewhere=True),
    ]
    path = tmp_path / "plan.svg"
    draw_expected_errors(lines, path, title="t", y_label="half width")
    axis = drawn[0].axes[0]
    assert axis.get_yscale() == "log"
    assert axis.get_lines()[0].get_ydata().tolist() == [1.0, 2.0]
    assert [line.get_linestyle() for line in axis.get_lines()] == ["-", "--"]
    assert np.isnan(axis.get_lines()[1].get_ydata()[1])
    draw_expected_errors(
        [ErrorLine(name="one", values=np.array([0.01]))], tmp_path / "one.png", title="", y_label=""
    )
    assert drawn[1].axes[0].get_lines()[0].get_marker() == "o"


@pytest.mark.parametrize("name", ["figure", "figure.jpg", "figure.html"])
def test_other_kinds_of_files_are_refused(name):
    with pytest.raises(ParameterError, match=r"ends in \.png or \.svg"):
        require_image_name(Path(name))
