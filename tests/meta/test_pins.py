"""The constraints files pin every dependency, exactly, by hashes and without addresses."""

import re
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PIN = re.compile(
    r"(?P<name>[\w.-]+)==[\w.]+( ; [\w\s'=]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+", re.ASCII
)


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(name: str) -> list[str]:
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    return re.split(r"\n(?! )", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).rstrip())


def test_every_dependency_is_pinned_by_hashes():
    found = [PIN.fullmatch(pin) or pin for pin in pins("constraints.txt")]
    for name in ("constraints-dev.txt", "constraints-spark.txt"):
        found += [PIN.fullmatch(pin) or pin for pin in pins(name)]
    assert [pin for pin in found if isinstance(pin, str)] == []
    names = [normalized(pin["name"]) for pin in found]
    assert len(names) == len(set(names))
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    requirements = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(name for extra in project["project"]["optional-dependencies"].values() for name in extra),
    ]
    wanted = {normalized(re.split(r"[^\w.-]", requirement)[0]) for requirement in requirements}
    assert wanted - set(names) == set()


def test_the_cryptography_is_one_with_hpke():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    (asked,) = (each for each in project["project"]["dependencies"] if "cryptography" in each)
    least = re.fullmatch(r"cryptography>=(\d+)(,.*)?", asked)
    assert least is not None
    assert int(least[1]) >= 47
