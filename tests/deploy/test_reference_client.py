"""The reference client, the vectors and the package agree: on bytes, laws, counts and estimates."""

import ast
import itertools
import json
import math
import struct
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.special import betainc
from scipy.stats import chi2

from adversarial import laws
from adversarial.exact import exponential
from adversarial.tapes import (
    LARGEST,
    WORDS,
    Tape,
    assert_is_row,
    cells,
    drawn_law,
    leading_cells,
    uniform_cells,
)
from deploy.make_report_vectors import CLIENT, SIZES, TARGET, client, labels, law_of
from laws_of_numbers import coarse
from shuffledp import AnswerSets, Categories, Mean, VectorMean
from shuffledp.core.entropy import Entropy
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS,
    RANDOMIZERS,
    VECTOR_RANDOMIZERS,
)

# Probability that a correct client fails here: of the one chi-square test, the rest is exact.
FALSE_POSITIVE_RATE = 1e-9

ENTRIES = json.loads(TARGET.read_text())
for each in ENTRIES:
    each["law"]["threshold"] = int(each["law"]["threshold"], 16)


def id_of(entry):
    task = entry["task"]
    return f"{task['randomizer']} {len(task['labels'])} {task['epsilon0']:g}"


def words_in(draw):
    return [int(word, 16) for word in draw["words"].split()]


def report_from(task, law, answer, words):
    """Return a report of exactly these words: neither more nor fewer."""
    source = iter(words)
    report = client.report_of(task, law, answer, source.__next__)
    assert list(source) == []
    return report


every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=id_of)


# ---------------------------------------------------------------- vectors
def test_every_randomizer_has_vectors():
    families = (RANDOMIZERS, NUMBER_RANDOMIZERS, VECTOR_RANDOMIZERS)
    names = {each["task"]["randomizer"] for each in ENTRIES}
    assert {name for family in families for name in family} <= names == set(SIZES)
    assert {name.split(":")[0] for name in names if ":" in name} == {"sampled", "split"}


@every_entry
def test_words_give_the_kept_reports(entry):
    for draw in entry["draws"]:
        report = report_from(entry["task"], entry["law"], draw["answer"], words_in(draw))
        kept = bytes.fromhex(draw["report"])
        if entry["task"]["randomizer"] == "privunit":  # of floats, the last place may differ
            layout = f"<{len(kept) // 4}f"
            assert struct.unpack(layout, report) == pytest.approx(
                struct.unpack(layout, kept), abs=1e-6
            )
        else:
            assert report == kept
        assert len(report) == entry["report_bytes"]


@every_entry
def test_the_task_is_read_with_the_kept_law(entry):
    asked = AskedTerms.from_json_dict(entry["task"])
    assert law_of(asked.randomizer) == entry["law"]
    assert asked.codec.num_report_bytes == entry["report_bytes"]
    client.check_law(entry["task"], entry["law"])
    found = client.loss(entry["task"], entry["law"])
    # The package adds a margin of a billionth for the special function of privunit.
    assert found == pytest.approx(asked.randomizer.epsilon0, rel=2e-9, abs=1e-25)


# The package takes the words of a vector or several slots in another order.
IN_THE_SAME_ORDER = {"sampled:k-rr", "split:k-rr", *RANDOMIZERS, *NUMBER_RANDOMIZERS}


@pytest.mark.parametrize(
    "entry",
    [each for each in ENTRIES if each["task"]["randomizer"] in IN_THE_SAME_ORDER],
    ids=id_of,
)
def test_the_package_draws_the_same_from_the_same_words(entry):
    asked = AskedTerms.from_json_dict(entry["task"])
    name = asked.randomizer.name
    for draw in entry["draws"]:
        answer, words = draw["answer"], words_in(draw)
        if name.endswith("unary"):
            words = digit_by_digit(
                words, answer, entry["law"]["threshold"], is_fair=name == "optimized-unary"
            )
        values = np.array([answer], dtype=None if answer != [] else np.int64)
        reports = asked.randomizer.randomize(values, Tape(words))
        assert asked.codec.encode(reports)[0].hex() == draw["report"]


@given(
    st.sampled_from([each for each in ENTRIES if each["task"]["randomizer"] in NUMBER_RANDOMIZERS]),
    st.floats(0.0, 1.0),
    st.lists(st.integers(0, LARGEST), min_size=2, max_size=2),
)
def test_numbers_are_rounded_by_the_same_operations_on_floats(entry, share, words):
    low, high = (entry["task"]["question"][end] for end in ("low", "high"))
    value = min(low + share * (high - low), high)
    asked = AskedTerms.from_json_dict(entry["task"])
    reports = asked.randomizer.randomize(np.array([value]), Tape(words))
    assert asked.codec.encode(reports) == [report_from(entry["task"], entry["law"], value, words)]


def digit_by_digit(words, truth, threshold, *, is_fair):
    """Return words whose bit p of the j-th is digit j of word p, as the package reads them.

    It flips the true bit after that, where the client compares its word with 2^64 - T; a fair one
    is the lowest bit of the word that follows. Digits are read until all 64 numbers have parted
    from the threshold's, or that has no other 1.
    """
    numbers = [*words, *[0] * (64 - len(words))]
    numbers[truth] = LARGEST - words[truth]
    digits = [sum((word >> (63 - j) & 1) << p for p, word in enumerate(numbers)) for j in range(64)]
    if not is_fair:
        return digits
    parted = max(65 - (number ^ threshold).bit_length() for number in numbers)
    num_read = min(parted, 65 - (threshold & -threshold).bit_length())
    return [*digits[:num_read], int(words[truth] < 2**63)]


@every_entry
def test_the_integers_are_those_of_the_documented_formulas(entry):
    """At the loss that is stated for the law; at the one asked for they may be one off."""
    asked, law = AskedTerms.from_json_dict(entry["task"]), entry["law"]
    base = getattr(asked.randomizer, "base", asked.randomizer)
    k = getattr(base, "domain_size", 0)
    with mp.workdps(100):
        e0 = mp.exp(mpf(base.epsilon0))
        if base.name == "privunit":  # q has its own margin
            share = laws.cap_share(base)
            expected = WORDS * (1 - share) / (share * e0 + 1 - share)
            assert law["threshold"] == pytest.approx(float(expected), rel=1e-8)
        else:
            assert law == documented_law(base.name, k, e0)


def documented_law(name, k, e0):
    """Return the integers for e^epsilon0, a number of many digits."""
    flip = int(mp.ceil(WORDS / (e0 + 1)))
    match name:
        case "k-rr":
            return {"threshold": min(int(mp.ceil(WORDS / (e0 + k - 1))), WORDS // k)}
        case "optimized-local-hashing":
            odds = Fraction(WORDS - flip, flip)
            limit = odds * ((k - 1) * odds + 1) / (odds + k - 1)
            primes = [g for g in range(2, 2 * k) if all(g % d for d in range(2, g))]
            largest = next(g for g in primes if g >= k)
            g = max(
                (b for a, b in itertools.pairwise(primes) if (a - 1) * (b - 1) < limit), default=2
            )
            g = min(g, largest)
            threshold = int(mp.ceil(WORDS / (e0 + g - 1)))
            return {"num_buckets": g, "threshold": min(threshold, WORDS // g)}
        case "subset-selection":
            size = next(s for s in range(1, k) if e0**2 * s * (s + 1) >= (k - s) * (k - s - 1))
            threshold = int(mp.floor(WORDS * e0 * size / (e0 * size + k - size)))
            return {"subset_size": size, "threshold": threshold}
        case "piecewise":
            window, steps = 256, round(256 * float(mp.sqrt(e0)))
            threshold = window * int(mp.ceil(WORDS / (window * (steps + window * e0))))
            return {"num_steps": steps, "window": window, "threshold": threshold}
        case "symmetric-unary":
            return {"threshold": int(mp.ceil(WORDS / (mp.sqrt(e0) + 1)))}
    return {"threshold": flip}


@every_entry
def test_malformed_reports_are_refused_and_the_others_counted(entry):
    codec = AskedTerms.from_json_dict(entry["task"]).codec
    good = bytes.fromhex(entry["draws"][0]["report"])
    assert len(entry["refused"]) >= 3
    for refused in entry["refused"]:
        taken, num_refused = codec.decode_valid([good, bytes.fromhex(refused["report"]), good])
        assert (taken.num_reports, num_refused) == (2, 1), refused["why"]


# ---------------------------------------------------------------- counts and estimates
@pytest.mark.parametrize("entry", [each for each in ENTRIES if "counted" in each], ids=id_of)
def test_the_package_counts_and_estimates_as_kept(entry):
    asked = AskedTerms.from_json_dict(entry["task"])
    kept = entry["counted"]
    reports = asked.codec.decode([bytes.fromhex(each) for each in kept["reports"]])
    aggregate = asked.randomizer.aggregate(reports)
    if asked.question.kind in ("mean", "vector-mean"):
        assert aggregate.total == pytest.approx(kept["counts"]["sum"], rel=1e-12)
        squares = kept["counts"]["sum_of_squares"]
        assert aggregate.total_of_squares == pytest.approx(squares, rel=1e-12)
        found = asked.randomizer.estimate(aggregate).mean
    else:
        assert aggregate.support.tolist() == kept["counts"]
        found = asked.randomizer.estimate(aggregate).frequency
    assert found == pytest.approx(kept["estimates"], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("entry", [each for each in ENTRIES if "counted" in each], ids=id_of)
def test_kept_counts_and_estimates_are_the_documented_ones(entry):
    task, law, kept = entry["task"], entry["law"], entry["counted"]
    reports = [bytes.fromhex(each) for each in kept["reports"]]
    if task["question"]["kind"] in ("mean", "vector-mean"):
        scores = np.array([scores_of(task, law, each) for each in reports])
        assert scores.sum(axis=0) == pytest.approx(kept["counts"]["sum"])
        assert (scores**2).sum(axis=0) == pytest.approx(kept["counts"]["sum_of_squares"])
        offset, factor = score_scale(task, law)
        estimates = offset + factor * scores.mean(axis=0)
    else:
        counts = [
            sum(support_of(task, law, each, place) for each in reports)
            for place in range(len(task["labels"]))
        ]
        assert counts == kept["counts"]
        estimates = frequencies(task, law, counts, len(reports))
    assert estimates == pytest.approx(kept["estimates"], rel=1e-9, abs=1e-9)


def support_of(task, law, report, place):
    """Return how often a report supports a label, from the definition."""
    way, _, name = task["randomizer"].rpartition(":")
    if way == "split":
        size = len(report) // task["question"]["max_answers"]
        one = {**task, "randomizer": f"sampled:{name}"}
        return sum(
            support_of(one, law, report[at : at + size], place)
            for at in range(0, len(report), size)
        )
    number = int.from_bytes(report, "little")
    if name == "k-rr":
        return number == place
    if name not in ("optimized-local-hashing", "hadamard-response"):
        return number >> place & 1
    g = law.get("num_buckets", 2)
    seed, bucket = divmod(number, g)
    while seed:
        bucket -= (seed % g) * (place % g)
        seed, place = seed // g, place // g
    return bucket % g == 0


def frequencies(task, law, counts, num_reports):
    """Return the documented estimates, with p and q as fractions."""
    way, _, name = task["randomizer"].rpartition(":")
    k = len(task["labels"]) + bool(way)
    share = Fraction(law["threshold"], WORDS)
    g = law.get("num_buckets", 2)
    p, q = {
        "k-rr": (1 - (k - 1) * share, share),
        "symmetric-unary": (1 - share, share),
        "optimized-unary": (Fraction(1, 2), share),
        "optimized-local-hashing": (1 - (g - 1) * share, Fraction(1, g)),
        "hadamard-response": (1 - share, Fraction(1, 2)),
        "subset-selection": (share, (law.get("subset_size", 0) - share) / (k - 1)),
    }[name]
    slots = task["question"].get("max_answers", 1)
    if way == "sampled":
        p, slots = q + (p - q) / slots, 1
    return [float((Fraction(each, num_reports) - slots * q) / (p - q)) for each in counts]


def scores_of(task, law, report):
    """Return what is summed of a report."""
    if task["randomizer"] == "privunit":
        return struct.unpack(f"<{len(report) // 4}f", report)
    number = int.from_bytes(report, "little")
    return [2 * number - (law.get("num_steps", 0) + law.get("window", 2) - 1)]


def score_scale(task, law):
    """Return the documented offset and factor of the mean score."""
    question, share = task["question"], law["threshold"] / WORDS
    if task["randomizer"] == "privunit":
        d = len(task["labels"])
        inside = client.cap_share(law["gamma"], d)
        beta = math.exp(math.lgamma(0.5) + math.lgamma((d - 1) / 2) - math.lgamma(d / 2))
        moment = (1 - law["gamma"] ** 2) ** ((d - 1) / 2) / ((d - 1) * beta)
        return 0.0, question["norm_bound"] / (
            ((1 - share) / inside - share / (1 - inside)) * moment
        )
    middle = (question["low"] + question["high"]) / 2
    half = (question["high"] - question["low"]) / 2
    if task["randomizer"] == "duchi":
        return middle, half / (1 - 2 * share)
    m, window = law["num_steps"], law["window"]
    inside = (1 - m * share) / window
    return middle, half / (m * window * (inside - share))


# ---------------------------------------------------------------- laws, counted
EPSILON0S = (1e-3, 0.7, 2.0, 20.0)


def law_from(task, law, answer, *choices, pack=list):
    """Return the law of the reports on one answer, counted in words."""

    def draw(tapes):
        return [
            client.report_of(task, law, answer, iter(pack(tape)).__next__)
            for tape in tapes.tolist()
        ]

    return drawn_law(draw, *choices)


def check_ratio(rows, epsilon0):
    """Fail unless one answer makes some report e^epsilon0 times as likely as another, or just less.

    Never more, by not even one word in 2^64.
    """
    totals = [sum(row.values()) for row in rows]
    shares = [
        {report: Fraction(count, total) for report, count in row.items()}
        for row, total in zip(rows, totals, strict=True)
    ]
    largest = max(
        one[report] / other[report]
        for one, other in itertools.permutations(shares, 2)
        for report in one
    )
    assert exponential(epsilon0 * (1 - 1e-6), upwards=False) <= largest
    assert largest <= exponential(epsilon0, upwards=False)


def half_words(tape):
    """Return a coin, and half words two by two in words, the first one the lower half."""
    coin, *halves = tape
    padded = [*halves, 0]
    pairs = zip(padded[::2], padded[1::2], strict=False)
    return [coin, *(low | high << 32 for low, high in pairs)]


def choices_of(randomizer, k, x):
    """Return cells of words that lead to one report each, and how they are packed."""
    name, threshold = randomizer.name, randomizer.threshold
    if name == "k-rr":
        return [cells(*(j * threshold for j in range(1, k)))], list
    if name.endswith("unary"):
        own = WORDS - threshold if name == "symmetric-unary" else WORDS // 2
        return [cells(own if i == x else threshold) for i in range(k)], list
    if name == "subset-selection":
        size = randomizer.subset_size
        members = [
            [(*ends, 1) for ends in uniform_cells(k - size + step, 2**32)] for step in range(size)
        ]
        return [cells(threshold), *members], half_words
    g = randomizer.num_buckets
    seeds = [(*ends, 1) for ends in leading_cells(randomizer.num_seeds)]
    return [seeds, cells(*(j * threshold for j in range(1, g)))], list


@pytest.mark.parametrize("epsilon0", EPSILON0S)
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("name", RANDOMIZERS)
def test_categories_have_exactly_the_law_that_is_accounted(name, k, epsilon0):
    asked = AskedTerms.of(Categories(labels(k)), name, epsilon0)
    task, law = asked.to_json_dict(), law_of(asked.randomizer)
    columns = asked.codec.encode(asked.randomizer.report_columns())
    channel = laws.category(asked.randomizer)
    rows = []
    for x in range(k):
        choices, pack = choices_of(asked.randomizer, k, x)
        rows.append(law_from(task, law, x, *choices, pack=pack))
        assert_is_row(rows[-1], channel[x], columns)
    check_ratio(rows, epsilon0)


@pytest.mark.parametrize("name", ["k-rr", "subset-selection"])
def test_without_any_epsilon0_answers_are_not_looked_at(name):
    asked = AskedTerms.of(Categories(labels(5)), name, 1e-20)
    assert asked.randomizer.epsilon0 == 0.0
    law = law_of(asked.randomizer)
    for seed in range(20):
        words = Entropy.from_seed(seed).words(10).tolist()
        made = {
            client.report_of(asked.to_json_dict(), law, x, iter(words).__next__) for x in range(5)
        }
        assert len(made) == 1


@pytest.mark.parametrize("epsilon0", EPSILON0S)
def test_numbers_have_exactly_the_law_that_is_accounted(epsilon0):
    asked = AskedTerms.of(Mean(0, 4), "duchi", epsilon0)
    coins = cells(asked.randomizer.law.threshold)
    rows = []
    for value in range(5):
        task, law = asked.to_json_dict(), law_of(asked.randomizer)
        rows.append(law_from(task, law, value, cells(value * WORDS // 4), coins))
        row = laws.number(asked.randomizer, [Fraction(value, 4)])[0]
        assert_is_row(rows[-1], row, [b"\0", b"\1"])
    check_ratio(rows, epsilon0)


@pytest.mark.parametrize("epsilon0", [0.3, 0.7, 1.4, 2.8])  # 1, 1, 2 and 4 steps: floats are exact
def test_windows_have_exactly_the_law_that_is_accounted(epsilon0):
    randomizer = coarse(1)(low=0, high=1, epsilon0=epsilon0)
    law = law_of(randomizer)
    m, window, threshold = randomizer.law
    high = (WORDS - m * threshold) // window
    outputs = cells(
        *(j * threshold for j in range(m)), *(m * threshold + j * high for j in range(window))
    )
    columns = [y.to_bytes(2, "little") for y in range(m + window)]
    rows = []
    for value in range(4 * m + 1):
        position = Fraction(value, 4)
        task = {"randomizer": "piecewise", "question": {"low": 0, "high": 4 * m}, "labels": ["x"]}
        rounding = cells(int((position - math.floor(position)) * WORDS))
        rows.append(law_from(task, law, value, rounding, outputs))
        row = laws.number(randomizer, [position / m])[0]
        assert_is_row(rows[-1], row, columns)
    check_ratio(rows, epsilon0)


@pytest.mark.parametrize("epsilon0", [0.7, 3.0])
@pytest.mark.parametrize("way", ["sampled", "split"])
def test_sets_have_exactly_the_law_that_is_accounted(way, epsilon0):
    asked = AskedTerms.of(AnswerSets(labels(2), max_answers=2), f"{way}:k-rr", epsilon0)
    task, law, base = asked.to_json_dict(), law_of(asked.randomizer), asked.randomizer.base
    coins = cells(*(j * base.threshold for j in range(1, 3)))
    slots = [(*ends, 1) for ends in leading_cells(2)]
    choices = [slots, coins] if way == "sampled" else [coins, coins]
    columns = [bytes(each) for each in itertools.product(range(3), repeat=1 + (way == "split"))]
    sets = laws.answer_sets(2, 2)
    rows = []
    for answers, row in zip(sets, laws.set_channel(asked.randomizer, sets), strict=True):
        rows.append(law_from(task, law, set(answers), *choices))
        assert_is_row(rows[-1], row, columns)
    check_ratio(rows, epsilon0)


def test_vectors_follow_the_law_that_is_accounted():
    """In three dimensions the height of a uniform point of the sphere is uniform."""
    asked = AskedTerms.of(VectorMean(labels(3), norm_bound=1.0), "privunit", 2.0)
    task, law = asked.to_json_dict(), law_of(asked.randomizer)
    gamma, outside = law["gamma"], law["threshold"] / WORDS
    words = iter(Entropy.from_seed(3).words(3_000_000).tolist())
    num_reports = 80_000
    reports = np.array(
        [
            struct.unpack("<3f", client.report_of(task, law, [0.0, 0.0, 1.0], words.__next__))
            for _ in range(num_reports)
        ]
    )
    heights = np.concatenate([np.linspace(-1, gamma, 4), np.linspace(gamma, 1, 7)[1:]])
    corners = np.array([-2.0, 0.0, 2.0])
    observed, _ = np.histogramdd(reports, bins=[corners, corners, heights])

    def p_value(outside):
        chances = np.repeat([outside / 3, (1 - outside) / 6], [3, 6]) / 4
        expected = np.broadcast_to(num_reports * chances, observed.shape)
        assert expected.min() >= 1_000
        return chi2.sf(((observed - expected) ** 2 / expected).sum(), observed.size - 1)

    assert p_value(outside) > FALSE_POSITIVE_RATE
    assert p_value(outside * 1.1) < FALSE_POSITIVE_RATE


# ---------------------------------------------------------------- what is refused
def test_a_law_of_another_task_is_refused():
    for entry in ENTRIES:
        for change in (-1, 1):
            law = {**entry["law"], "threshold": entry["law"]["threshold"] + change}
            with pytest.raises(ValueError, match="the task names"):
                client.check_law(entry["task"], law)


def test_a_task_that_understates_the_loss_is_refused():
    for entry in ENTRIES:
        if "counted" in entry:
            task = {**entry["task"], "epsilon0": entry["task"]["epsilon0"] * 0.99}
            with pytest.raises(ValueError, match="costs"):
                client.check_law(task, entry["law"])


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("k-rr", {"threshold": 0}),
        ("k-rr", {"threshold": WORDS // 2}),
        ("optimized-unary", {"threshold": 3 * WORDS // 4}),
        ("subset-selection", {"subset_size": 0}),
        ("subset-selection", {"subset_size": 19}),
        ("subset-selection", {"threshold": 1}),
        ("duchi", {"threshold": WORDS}),
        ("piecewise", {"window": 255}),
        ("piecewise", {"num_steps": 2**20}),
        ("privunit", {"gamma": -0.5}),
        ("privunit", {"gamma": 1.0}),
    ],
)
def test_integers_of_no_law_are_refused_whatever_the_task_says(name, changes):
    entry = [each for each in ENTRIES if each["task"]["randomizer"] == name][-1]
    law = {**entry["law"], **changes}
    task = {**entry["task"], "epsilon0": 100.0}
    task["fingerprint"] = client.fingerprint(task, law)
    with pytest.raises(ValueError, match=r"no law|not in \[0, 1\)"):
        client.check_law(task, law)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("k-rr", -1),
        ("k-rr", 300),
        ("duchi", math.nan),
        ("piecewise", 98.51),
        ("privunit", [2.6] + [0.0] * 7),
        ("privunit", [math.nan] * 8),
        ("sampled:k-rr", {0, 1, 2, 3}),
        ("split:k-rr", {5}),
    ],
)
def test_what_is_no_answer_is_refused(name, answer):
    entry = [each for each in ENTRIES if each["task"]["randomizer"] == name][-1]
    with pytest.raises(ValueError, match=r"is not in|more than|and the task takes"):
        client.report_of(entry["task"], entry["law"], answer, lambda: 0)


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize("dimension", [2, 3, 4, 5, 50, 101])
def test_shares_of_caps(dimension):
    for gamma in (0.0, 0.01, 0.2, 0.5):
        exact = betainc((dimension - 1) / 2, 0.5, 1 - gamma**2) / 2
        assert client.cap_share(gamma, dimension) == pytest.approx(exact, rel=1e-9, abs=1e-15)


def test_it_needs_the_standard_library_only():
    tree = ast.parse(CLIENT.read_text(encoding="utf-8"))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= set(sys.stdlib_module_names)
