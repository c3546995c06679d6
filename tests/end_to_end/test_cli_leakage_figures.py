"""``shuffledp leakage --figure FOLDER`` without a collection: the paper's six figures, drawn."""

import csv
import functools
import json

import pytest

pytest.importorskip("matplotlib", reason="only the extra `attacks` brings it")

from shuffledp.cli.leakage import leakage
from shuffledp.report import leakage_figures
from shuffledp.reproduction.settings import Settings

FIGURES = ["2", "3", "4", "5", "6", "7"]


@pytest.fixture
def quick(monkeypatch):
    """Draw fewer points, each as in the full figure: all of them take ten seconds."""
    drawn = functools.partial(leakage_figures.draw_paper_figures, settings=Settings(quick=True))
    monkeypatch.setattr(leakage_figures, "draw_paper_figures", drawn)


@pytest.mark.usefixtures("quick")
def test_the_papers_figures_are_drawn(tmp_path, capsys):
    folder = tmp_path / "figures"
    leakage.main(["--figure", str(folder), "--json"], standalone_mode=False)
    written = json.loads(capsys.readouterr().out)["figures"]
    assert [each["figure"] for each in written] == FIGURES
    for name in FIGURES:
        image = (folder / f"figure-{name}.png").read_bytes()
        assert image.startswith(b"\x89PNG")
        assert len(image) > 10_000
        with (folder / f"figure-{name}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) > 3
        values = [float(row["value"]) for row in rows if row["value"]]
        assert values
        assert (folder / f"figure-{name}.txt").read_text().strip()
    assert len(list(folder.iterdir())) == 3 * len(FIGURES)
