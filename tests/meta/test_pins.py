"""constraints.txt pins every dependency, exactly and without addresses."""

import re
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_is_pinned():
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.]+", pin)] == []
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    requirements = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(name for extra in project["project"]["optional-dependencies"].values() for name in extra),
    ]
    wanted = {normalized(re.split(r"[^\w.-]", requirement)[0]) for requirement in requirements}
    assert wanted - {normalized(pin.partition("==")[0]) for pin in pins} == set()
