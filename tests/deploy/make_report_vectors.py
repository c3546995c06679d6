"""Write tests/vectors/reports.json, from which other languages test how they randomize and count.

Run from the tests folder: ``python -m deploy.make_report_vectors``. Each entry has a task's
question and randomizer, the integers of the law, draws (answer, words, report), reports with their
counts and estimates, and reports that must be refused. Draws are those of docs/reference_client.py,
counts and estimates those of the package. Words, thresholds and reports are hexadecimal.
"""

import hashlib
import importlib.util
import itertools
import json
import struct
from pathlib import Path

from shuffledp import AnswerSets, Categories, Mean, VectorMean
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS,
    RANDOMIZERS,
    VECTOR_RANDOMIZERS,
)

TARGET = Path(__file__).parents[1] / "vectors" / "reports.json"
CLIENT = Path(__file__).parents[2] / "docs" / "reference_client.py"
LARGEST = 2**64 - 1
NUM_COUNTED = 24


def load_client():
    """Return the reference client as a module."""
    spec = importlib.util.spec_from_file_location("reference_client", CLIENT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


client = load_client()


def law_of(randomizer):
    """Return the integers of a randomizer's law, by the names that its fingerprint has."""
    base = getattr(randomizer, "base", randomizer)
    law = getattr(base, "law", base)  # piecewise keeps its integers together
    return {field: getattr(law, field) for field in client.LAW_FIELDS[base.name]}


def words_of(label):
    """Yield words that look random and are the same on every machine."""
    for i in itertools.count():
        digest = hashlib.sha256(f"{label} {i}".encode()).digest()
        yield int.from_bytes(digest[:8], "big")


def drawn(asked, answer, label, first=()):
    """Return the report of the words ``first`` and others after them, and all words it took."""
    source, used = itertools.chain(first, words_of(label)), []

    def next_word():
        used.append(next(source))
        return used[-1]

    report = client.report_of(asked.to_json_dict(), law_of(asked.randomizer), answer, next_word)
    return report, used


def answers_of(question):
    """Return answers to a question, its extremes first."""
    labels = question.labels
    match question:
        case Categories():
            return [0, len(labels) - 1, len(labels) // 2]
        case Mean(low=low, high=high):
            return [low, high, low + (high - low) * 0.3, (low + high) / 2]
        case VectorMean(norm_bound=bound):
            d = len(labels)
            return [[0.0] * (d - 1) + [bound], [0.3 * bound / d] * d, [0.0] * d]
        case AnswerSets(max_answers=most):
            return [[], [0, len(labels) - 1][:most], list(range(most))]
    raise AssertionError(question)


def edge_words(asked):
    """Return, by what is special about them, first words at the borders of a law."""
    name, law = asked.randomizer.name, law_of(asked.randomizer)
    threshold, k = law["threshold"], len(asked.question.labels)
    way, _, base = name.rpartition(":")
    first = {"sampled": [LARGEST - 1], "split": [], "": []}[way]
    k += bool(way)
    near = {"a word of T - 1": threshold - 1, "a word of T": threshold}
    found = {}
    match base:
        case "k-rr":
            border = (k - 1) * threshold
            more = {
                "the last word of another category": border - 1,
                "the first of the truth": border,
            }
            found = {
                what: [word] for what, word in {**near, **more, "0": 0, "2^64 - 1": LARGEST}.items()
            }
        case "optimized-local-hashing" | "hadamard-response":
            # A seed of 2^64 - 1 is accepted: of a product, the lower half is the largest.
            found = {what: [LARGEST, word] for what, word in near.items()}
            found["a seed word of 0, refused unless g = 2"] = [0, LARGEST - 12345, LARGEST]
        case "subset-selection":
            found = {what: [word] for what, word in near.items()}
            found["lower half words of 0, refused unless the bound is a power of two"] = [
                0,
                1 << 63,
                1 << 62,
                1 << 32,
            ]
        case "symmetric-unary" | "optimized-unary":
            borders = [threshold - 1, threshold, LARGEST - threshold, LARGEST - threshold + 1]
            found["words at T, 2^64 - T and 2^63"] = [*borders, 2**63 - 1, 2**63]
        case "duchi":
            rounding = {"rounded up unless at an end": 0, "rounded down": LARGEST}
            found = {
                f"{where}, then {what}": [word, coin]
                for where, word in rounding.items()
                for what, coin in near.items()
            }
        case "piecewise":
            border = law["num_steps"] * threshold
            more = {"the last word outside the window": border - 1, "the first inside": border}
            found = {
                what: [LARGEST, word]
                for what, word in {**near, **more, "2^64 - 1": LARGEST}.items()
            }
    found = {what: [*first, *words] for what, words in found.items()}
    return found | ({"a slot word of 2^64 - 1, refused": [LARGEST]} if way == "sampled" else {})


def refused_of(asked, report):
    """Return bytes that no report of this law is, by what is wrong; ``report`` is one."""
    size, k = len(report), len(asked.question.labels)
    randomizer, law = asked.randomizer, law_of(asked.randomizer)
    way, _, base = randomizer.name.rpartition(":")
    k += bool(way)
    slot = size // randomizer.max_answers if way == "split" else size
    rest = report[slot:]
    found = {"empty": b"", "a byte too few": report[:-1], "a byte too many": report + b"\0"}
    numbers = {"k-rr": k, "duchi": 2}
    if base in ("optimized-local-hashing", "hadamard-response"):
        numbers[base] = (randomizer.base if way else randomizer).num_possible_reports
    if base == "piecewise":
        numbers[base] = law["num_steps"] + law["window"]
    if base in numbers and numbers[base] < 256**slot:
        found["the first number that is none"] = numbers[base].to_bytes(slot, "little") + rest
    if base.endswith("unary") and k % 8:
        found["a bit beyond the last"] = (
            report[: slot - 1] + bytes([report[slot - 1] | 1 << k % 8]) + rest
        )
    if base == "subset-selection":
        found["no member"] = bytes(slot) + rest
        found["all members"] = ((1 << k) - 1).to_bytes(slot, "little") + rest
    if base == "privunit":
        values = struct.unpack(f"<{k}f", report)
        for what, factor in (("not a number", float("nan")), ("0.2 % too long", 1.002)):
            found[what] = struct.pack(f"<{k}f", *(each * factor for each in values))
    return [{"why": why, "report": data.hex()} for why, data in found.items()]


def counted(asked, label):
    """Return reports, and what the package counts and estimates from them."""
    answers = itertools.cycle(answers_of(asked.question))
    reports = [drawn(asked, next(answers), f"{label} {i}")[0] for i in range(NUM_COUNTED)]
    taken, num_refused = asked.codec.decode_valid(reports)
    assert num_refused == 0
    aggregate = asked.randomizer.aggregate(taken)
    if isinstance(asked.question, Mean | VectorMean):
        estimates = asked.randomizer.estimate(aggregate).mean
        counts = {"sum": aggregate.total, "sum_of_squares": aggregate.total_of_squares}
        counts = {what: values.tolist() for what, values in counts.items()}
    else:
        estimates = asked.randomizer.estimate(aggregate).frequency
        counts = aggregate.support.tolist()
    return {
        "reports": [each.hex() for each in reports],
        "counts": counts,
        "estimates": estimates.tolist(),
    }


def labels(k):
    """Return k answers."""
    return [f"answer {i}" for i in range(k)]


#: Answers, or other size of a question, and epsilon0, by name; 1e-20 is none at all.
SIZES = {
    "k-rr": ((2, 1.0), (3, 1e-20), (5, 2.0), (300, 6.0)),
    "symmetric-unary": ((3, 0.5), (19, 4.0)),
    "optimized-unary": ((3, 0.5), (19, 4.0)),
    "optimized-local-hashing": ((5, 1.0), (9, 2.0), (300, 4.5)),
    "hadamard-response": ((3, 1.0), (300, 3.0)),
    "subset-selection": ((4, 3.0), (5, 1e-20), (7, 0.5), (19, 1.0)),
    "duchi": ((3.5, 1.0), (100.0, 4.0)),
    "piecewise": ((3.5, 1.0), (100.0, 4.0)),
    "privunit": ((2, 1.0), (3, 2.0), (8, 3.0)),
} | {
    f"{way}:{base}": ((5, 3.0),)
    for base in ("k-rr", "optimized-unary", "optimized-local-hashing", "subset-selection")
    for way in ("sampled", "split")
}


def question_for(name, size):
    """Return a question that a randomizer answers."""
    if name in NUMBER_RANDOMIZERS:
        return Mean(-1.5, size - 1.5)
    if name in VECTOR_RANDOMIZERS:
        return VectorMean(labels(size), norm_bound=2.5)
    if name in RANDOMIZERS:
        return Categories(labels(size))
    return AnswerSets(labels(size), max_answers=3)


def make_entry(name, size, epsilon0):
    """Return all vectors of one law."""
    question = question_for(name, size)
    asked = AskedTerms.of(question, name, epsilon0)
    law, label = law_of(asked.randomizer), f"{name} {len(question.labels)} {epsilon0}"
    answers = answers_of(question)
    draws = [
        {"case": "words that look random", "answer": answer, "first": ()}
        for answer in answers[:2] + answers
    ]
    edges = edge_words(asked).items()
    draws += [{"case": what, "answer": answers[-1], "first": first} for what, first in edges]
    for i, each in enumerate(draws):
        report, used = drawn(asked, each["answer"], f"{label} {i}", each.pop("first"))
        each |= {"words": " ".join(f"{word:016x}" for word in used), "report": report.hex()}
    entry = {
        "task": asked.to_json_dict(),
        "law": law | {"threshold": f"{law['threshold']:016x}"},
        "report_bytes": asked.codec.num_report_bytes,
        "draws": draws,
        "refused": refused_of(asked, bytes.fromhex(draws[0]["report"])),
    }
    if asked.randomizer.epsilon0 > 0.0:
        entry["counted"] = counted(asked, label)
    return entry


def make_vectors():
    """Return everything that stands in the file."""
    return [make_entry(name, *each) for name, sizes in SIZES.items() for each in sizes]


def main():
    """Write the file: one entry a line, so that a change shows where it is."""
    entries = make_vectors()
    text = ",\n".join(json.dumps(each) for each in entries)
    TARGET.write_text(f"[\n{text}\n]\n", encoding="utf-8")
    print(f"{len(entries)} laws, {sum(len(each['draws']) for each in entries)} draws")


if __name__ == "__main__":
    main()
