"""Lists of public names: each is loaded once, from where it lives."""

import sys
from types import ModuleType

import pytest

from shuffledp.core import bound
from shuffledp.core.lazy_names import lazy_names


def test_a_name_is_loaded_and_kept(monkeypatch):
    module = ModuleType("listed")
    monkeypatch.setitem(sys.modules, "listed", module)
    find = lazy_names(
        "listed", {"core.bound": ("Bound", "agreed")}, names_at_home={"agreed": "reconciled_lower"}
    )
    assert find("Bound") is bound.Bound is module.Bound
    assert find("agreed") is bound.reconciled_lower is module.agreed
    with pytest.raises(AttributeError, match="module 'listed' has no attribute 'magic'"):
        find("magic")
