"""No file reaches itself by imports: those for types alone and those in functions count."""

import ast
from pathlib import Path

import networkx as nx
import pytest

SOURCES = Path(__file__).parents[2] / "src"


def module_name(path, sources):
    """Return the name of the module in a file."""
    parts = path.relative_to(sources).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree, name, is_package, modules):
    """Yield the modules that a module imports, at any depth; a package where it hands on a name."""
    package = name.split(".") if is_package else name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            submodules = (f"{base}.{each.name}" for each in node.names)
            yield from (each if each in modules else base for each in submodules)


def import_graph(sources):
    """Return which module imports which."""
    trees = {}
    for path in sources.rglob("*.py"):
        trees[module_name(path, sources)] = path, ast.parse(path.read_text(encoding="utf-8"))
    graph = nx.DiGraph()
    graph.add_nodes_from(trees)
    for name, (path, tree) in trees.items():
        found = imported(tree, name, path.name == "__init__.py", trees)
        graph.add_edges_from((name, each) for each in found if each in trees and each != name)
    return graph


def circles(graph):
    """Return the sets of modules that reach each other."""
    return {frozenset(each) for each in nx.strongly_connected_components(graph) if len(each) > 1}


def test_no_file_reaches_itself():
    assert circles(import_graph(SOURCES)) == set()


@pytest.mark.parametrize(
    "line",
    [
        "from planted.a import x",
        "from planted import a",
        "import planted.a",
        "from .a import x",
        "if TYPE_CHECKING:\n    from planted import a",
        "def later():\n    from planted.a import x",
    ],
)
def test_a_planted_circle_is_found(tmp_path, line):
    package = tmp_path / "planted"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "a.py").write_text("from planted.b import y\n")
    (package / "b.py").write_text(f"{line}\n")
    assert circles(import_graph(tmp_path)) == {frozenset({"planted.a", "planted.b"})}
