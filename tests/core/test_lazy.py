"""Names of a package are those of its stub, loaded when they are first used."""

import sys

import pytest

from shuffledp.core.lazy import lazy_names


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "somewhere"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "inner.py").write_text("")
    (folder / "__init__.pyi").write_text(
        '"""A stub."""\nfrom somewhere import inner as inner\n'
        "from shuffledp.core.bound import Bound as Bound\nfrom math import tau as tau, pi as pi\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = __import__("somewhere")
    yield module
    for name in [name for name in sys.modules if name.partition(".")[0] == "somewhere"]:
        del sys.modules[name]


def test_a_name_is_loaded_from_its_home_and_kept(package):
    find, _, _ = lazy_names("somewhere")
    assert "Bound" not in vars(package)
    found = find("Bound")
    assert found.__module__ == "shuffledp.core.bound"
    assert vars(package)["Bound"] is found


def test_folders_are_found_and_listed_but_no_names(package):
    find, listed, names = lazy_names("somewhere")
    assert find("inner").__name__ == f"{package.__name__}.inner"
    assert listed() == ["Bound", "inner", "pi", "tau"]
    assert names == ["Bound", "pi", "tau"]


def test_other_names_are_refused_as_a_module_would(package):
    find, _, _ = lazy_names(package.__name__)
    with pytest.raises(AttributeError, match="module 'somewhere' has no attribute 'magic'"):
        find("magic")
