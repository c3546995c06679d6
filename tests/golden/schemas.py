"""The JSON Schema of what each command prints with ``--json``: docs/schemas, made from the net.

``make golden`` writes them anew from all objects that the net's calls print. A key that every
object has is required, one that none has is forbidden, and `VARYING` names the objects whose keys
are data.
"""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"

#: What every object says of itself; the rest is what was found.
ABOUT = ("command", "inputs", "schema_version", "shuffledp_version")

#: Keys of objects whose own keys are data, such as names of options.
VARYING = ("inputs",)

#: Every object that a command of the net has printed in this process.
PRINTED: list[dict[str, Any]] = []

_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def found_in(printed: str) -> dict[str, Any]:
    """Return what was found of an object as printed; what it says of itself is in the call."""
    record = json.loads(printed)
    PRINTED.append(record)
    return {name: each for name, each in record.items() if name not in ABOUT}


def schema_file(command: str) -> Path:
    """Return where the schema of a command lies, given ``"shuffledp network account"``."""
    return SCHEMAS / f"{command.removeprefix('shuffledp ').replace(' ', '-')}.json"


@cache
def _check_of(command: str) -> Any:
    return fastjsonschema.compile(json.loads(schema_file(command).read_text("utf-8")))


def check(record: dict[str, Any]) -> None:
    """Raise unless an object that a command printed is as its schema says."""
    _check_of(record["command"])(record)


def schema_of(command: str, records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the narrowest schema of this kind that all records fit."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"{command} --json",
        **_shape("", list(records)),
    }


def _shape(name: str, values: list[Any]) -> dict[str, Any]:
    """Return the schema of values that stand in one place."""
    types = sorted({_TYPES.get(type(each)) or _of_container(each) for each in values})
    if {"integer", "number"} <= set(types):
        types.remove("integer")
    shape: dict[str, Any] = {"type": types[0] if len(types) == 1 else types}
    objects = [each for each in values if isinstance(each, dict)]
    if objects and name not in VARYING:
        names = sorted({key for each in objects for key in each})
        shape["properties"] = {
            key: _shape(key, [each[key] for each in objects if key in each]) for key in names
        }
        shape["required"] = [key for key in names if all(key in each for each in objects)]
        shape["additionalProperties"] = False
    items = [item for each in values if isinstance(each, list) for item in each]
    if items:
        shape["items"] = _shape(name, items)
    return shape


def _of_container(value: Any) -> str:
    return "object" if isinstance(value, dict) else "array"
