"""Results as plain data, how they are written, and what differs between two of them.

A floating-point number is written with nine significant digits, and one that is computed anew may
differ by the promised part in 10^9 (`printed_numbers.PROMISED`) beside that rounding. All else is
compared exactly: counts, names, texts but for the decimal numbers in them, which keys there are.
"""

import hashlib
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np

from printed_numbers import NUMBER, PROMISED, close

# Rounding to nine digits moves a number by at most a half of 1e-8 of it.
ROUNDING = 0.5e-8
# What is left of a difference that is 0: the round-off of probabilities.
NOISE = 1e-15
# Longer texts are written once, in a table of their own.
LONG_TEXT = 100
LONGEST_LIST = 24

# Calls whose numbers come from searches of scikit-learn that stop short of the last digits.
ROUGH = ("learnability | ", "gaussian-process")
ROUGH_DIGITS = 1e-3

# Keys that another run of the same call may show with another value, and why.
VOLATILE = {
    "batch": "numbered by the epochs since the task began",
    "batch_sha256": "of reports drawn anew",
    "collection_id": "drawn anew",
    "date": "that of the run",
    "fingerprint": "a digest of probabilities, whose last digits depend on the processor",
    "roster_digest": "of keys that are drawn anew",
    "task_id": "a digest of keys that are drawn anew",
    "terms_digest": "of keys that are drawn anew",
    "transcript": "of keys that are drawn anew",
    "worst_user": "among users who are hidden equally little round-off decides",
}


def plain(value: Any) -> Any:
    """Turn a result into what JSON can hold; numbers that are not finite become texts."""
    is_scalar = isinstance(value, np.generic | np.ndarray) and value.ndim == 0
    found = value.item() if is_scalar else value
    match found:
        case None | bool() | int() | str():
            pass
        case float():
            found = float(f"{found:.9g}") if math.isfinite(found) else str(found)
        case Fraction():
            found = f"{value.numerator}/{value.denominator}"
        case bytes():
            found = value.hex()
        case dict():
            found = {str(k): plain(each) for k, each in value.items() if k not in VOLATILE}
        case list() | tuple() | np.ndarray():
            found = _plain_array(value)
        case _:
            found = _plain_bound(value)
    return found


def _plain_array(values: Any) -> Any:
    """Write values out; of a long list of numbers its shape, ends and sums."""
    is_array = isinstance(values, np.ndarray)
    size = values.size if is_array else len(values)
    are_numbers = values.dtype != object if is_array else all(
        isinstance(each, int | float | np.number) for each in values
    )  # fmt: skip
    if size <= LONGEST_LIST or not are_numbers:
        return [plain(each) for each in (values.tolist() if is_array else values)]
    array = np.asarray(values)
    numbers = array.ravel().tolist()
    add = math.fsum if array.dtype.kind == "f" else sum
    return {
        "shape": list(array.shape),
        "first": plain(numbers[:3]),
        "last": plain(numbers[-3:]),
        "sum": plain(add(numbers)),
        "sum times place": plain(add(i * each for i, each in enumerate(numbers))),
    }


def _plain_bound(value: Any) -> dict[str, Any]:
    """Write what has two ends; a method, source and assumptions if it states any."""
    names = ["lower", "upper"]
    names += [name for name in ("method", "source", "assumptions") if hasattr(value, name)]
    return {name: plain(getattr(value, name)) for name in names}


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """List where the results of calls differ, given by the calls' names."""
    found = []
    for name in sorted({*old, *new}):
        is_rough = any(each in name for each in ROUGH)
        pair = ({name: results[name]} if name in results else {} for results in (old, new))
        found += differences(*pair, promised=ROUGH_DIGITS if is_rough else PROMISED)
    return found


def differences(old: Any, new: Any, where: str = "", *, promised: float = PROMISED) -> list[str]:
    """List where two plain results differ, with both values; empty where they agree."""
    found = []
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            place = f"{where}.{name}" if where else name
            if name in old and name in new:
                found += differences(old[name], new[name], place, promised=promised)
            else:
                found.append(f"{place}: {'gone' if name in old else 'new'}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, pair in enumerate(zip(old, new, strict=True)):
            found += differences(*pair, f"{where}[{place}]", promised=promised)
    elif not _agree(old, new, promised):
        found.append(f"{where}: {old!r} -> {new!r}")
    return found


def _agree(old: Any, new: Any, promised: float) -> bool:
    if type(old) is not type(new):
        return False
    if isinstance(old, float):
        noise = NOISE if 0.0 in (old, new) else 0.0
        return math.isclose(old, new, rel_tol=ROUNDING + 1.5 * promised, abs_tol=noise)
    if isinstance(old, str) and old != new:
        numbers = NUMBER.findall(old), NUMBER.findall(new)
        same_words = NUMBER.split(old) == NUMBER.split(new)
        return same_words and all(close(*pair) for pair in zip(*numbers, strict=True))
    return bool(old == new)


def text_of(results: dict[str, Any]) -> str:
    """Write results as JSON: sorted, a line a leaf or a list of leaves, long texts once."""
    texts: dict[str, str] = {}

    def shortened(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: shortened(each) for name, each in value.items()}
        if isinstance(value, list):
            return [shortened(each) for each in value]
        if isinstance(value, str) and len(value) > LONG_TEXT:
            name = f"text {hashlib.sha256(value.encode()).hexdigest()[:8]}"
            texts[name] = value
            return name
        return value

    calls = shortened(results)
    return _lines({"calls": calls, "texts": texts}, "") + "\n"


def _lines(value: Any, indent: str) -> str:
    deeper = indent + " "
    if isinstance(value, dict) and value:
        rows = [f"{deeper}{json.dumps(k)}: {_lines(value[k], deeper)}" for k in sorted(value)]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        rows = [deeper + _lines(each, deeper) for each in value]
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    return json.dumps(value)


def results_in(text: str) -> dict[str, Any]:
    """Read results that `text_of` wrote."""
    written = json.loads(text)
    texts = written["texts"]

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: whole(each) for name, each in value.items()}
        if isinstance(value, list):
            return [whole(each) for each in value]
        return texts.get(value, value) if isinstance(value, str) else value

    return {name: whole(each) for name, each in written["calls"].items()}
