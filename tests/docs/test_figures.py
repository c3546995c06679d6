"""The figures of docs/results hold what the accountant says now."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "results").glob("*.md"))


def test_the_picture_of_the_model_is_what_its_script_draws():
    spec = importlib.util.spec_from_file_location("model_picture", DOCS / "model_picture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.FILE.read_text(encoding="utf-8") == module.picture()
    assert module.FILE.stat().st_size < 4_000


@pytest.fixture(scope="module")
def figures():
    spec = importlib.util.spec_from_file_location("docs_figures", DOCS / "figures.py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up; it is forgotten with the fixture.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


def test_every_figure_is_drawn_small_and_shown(figures):
    shown = {
        name
        for page in PAGES
        for name in re.findall(r"!\[[^\]]+\]\(figures/([\w-]+)\.svg\)", page.read_text("utf-8"))
    }
    drawn = {path.stem for path in figures.FOLDER.glob("*.svg")}
    assert shown == drawn == set(figures.FIGURES)
    for path in figures.FOLDER.glob("*.svg"):
        assert path.stat().st_size < 60_000, path


def test_every_method_has_a_page(figures):
    pages = {page.stem: page.read_text("utf-8") for page in PAGES}
    listed = pages["index"]
    for name in figures.METHODS:
        assert f"`{name}`" in listed, name
        assert any(f"`{name}`" in text for page, text in pages.items() if page != "index"), name
    for page in pages:
        assert page == "index" or f"\n{page}\n" in listed, page


def test_best_is_between_the_unavoidable_end_and_every_method(figures):
    for name in figures.FIGURES:
        data = figures.data_in((figures.FOLDER / f"{name}.svg").read_text("utf-8"))
        curves = data["curves"]
        for column in range(len(data["x"])):
            values = {key: curve[column] for key, curve in curves.items() if curve[column]}
            lower = values.pop(figures.LOWER, 0.0)
            assert lower <= values[figures.BEST] * (1.0 + 1e-5), (name, column)
            assert values[figures.BEST] <= min(values.values()) * (1.0 + 1e-5), (name, column)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["clones", "lower-ends", "composition", "honest-fraction"])
def test_the_numbers_are_those_of_today(figures, name):
    data = figures.data_in((figures.FOLDER / f"{name}.svg").read_text("utf-8"))
    now = figures.data_of(figures.FIGURES[name])
    assert now["x"] == data["x"]
    assert now["curves"].keys() == data["curves"].keys()
    for key, curve in now["curves"].items():
        shown = [value or 0.0 for value in data["curves"][key]]
        assert [value or 0.0 for value in curve] == pytest.approx(shown, rel=1e-4), key


@pytest.mark.slow
def test_drawing_again_gives_the_same_bytes(figures, tmp_path):
    pytest.importorskip("matplotlib", reason="only the extra `docs` brings it")
    figure = figures.FIGURES["honest-fraction"]
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    figures.draw(figure, first)
    figures.draw(figure, second)
    assert first.read_bytes() == second.read_bytes()
    assert figures.data_in(first.read_text("utf-8")) == figures.data_of(figure)
