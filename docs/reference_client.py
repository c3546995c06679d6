"""Reference client: from one answer to the bytes of one randomized report, in plain Python.

For authors of clients in other languages, to read beside docs/explanation/report-encoding.md and to
port. One file, standard library only. Whole numbers are exact, of up to 128 bits; floats are IEEE
doubles and appear for numbers and vectors only. ``tests/vectors/reports.json`` has tasks, laws,
words and the reports that they must give.

A *task* is the JSON object in a task's ``randomizer`` field. A *law* is an object with the integers
of `LAW_FIELDS`; `check_law` refuses those that are not the task's, or that cost more than its
epsilon0. A *source of words* returns a fresh uniform 64-bit word at each call, of the operating
system's cryptographic generator. Draw a report once, store it, and send that one until it arrives:
two reports on one answer cost twice the epsilon0.

The bytes that are made here are sealed as docs/explanation/deployment-format.md says.
"""

import hashlib
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any

Task = dict[str, Any]
Law = dict[str, Any]
NextWord = Callable[[], int]

WORDS = 2**64  # a word takes each of so many values with the same probability

#: The integers of each law, in the order of the fingerprint (``gamma`` of privunit is a double).
LAW_FIELDS = {
    "k-rr": ("threshold",),
    "symmetric-unary": ("threshold",),
    "optimized-unary": ("threshold",),
    "optimized-local-hashing": ("num_buckets", "threshold"),
    "hadamard-response": ("threshold",),
    "subset-selection": ("subset_size", "threshold"),
    "duchi": ("threshold",),
    "piecewise": ("num_steps", "window", "threshold"),
    "privunit": ("gamma", "threshold"),
}


# ---------------------------------------------------------------- one report
def report_of(task: Task, law: Law, answer: Any, next_word: NextWord) -> bytes:
    """Return the bytes of a fresh report; `ValueError` for an answer that the task does not take.

    ``answer`` is the place of a label, a number, a list of numbers, or a set of places.
    """
    name, question = task["randomizer"], task["question"]
    num_labels = len(task["labels"])
    if name == "duchi":
        return duchi(question["low"], question["high"], law, answer, next_word)
    if name == "piecewise":
        return piecewise(question["low"], question["high"], law, answer, next_word)
    if name == "privunit":
        return privunit(question["norm_bound"], law, answer, next_word)
    if ":" not in name:
        return CATEGORY_REPORTS[name](place_of(answer, num_labels), num_labels, law, next_word)
    way, base = name.split(":")
    # The last category, which has no label, stands for no answer.
    slots = filled_slots(answer, num_labels, question["max_answers"])
    if way == "sampled":
        slots = [slots[uniform_below(len(slots), next_word)]]
    reports = [CATEGORY_REPORTS[base](slot, num_labels + 1, law, next_word) for slot in slots]
    return b"".join(reports)


def place_of(answer: int, num_labels: int) -> int:
    """Return the place of a label, if there is one."""
    if not 0 <= answer < num_labels:
        raise ValueError(f"answer {answer} is not in [0, {num_labels})")
    return answer


def filled_slots(answers: set[int], num_labels: int, max_answers: int) -> list[int]:
    """Return the places of answers in falling order, filled up with the number of labels."""
    places = {place_of(each, num_labels) for each in answers}
    if len(places) > max_answers:
        raise ValueError(f"{len(places)} answers, and the task takes {max_answers}")
    return sorted(places, reverse=True) + [num_labels] * (max_answers - len(places))


# ---------------------------------------------------------------- uniform whole numbers
def uniform_below(bound: int, next_word: NextWord) -> int:
    """Return a uniform whole number below ``bound``: the leading bits of a word, if they are one.

    As many bits as the largest number has, so that more than half of the words are taken. For a
    bound of 1 no word is drawn.
    """
    num_bits = (bound - 1).bit_length()
    if num_bits == 0:
        return 0
    while True:
        number = next_word() >> (64 - num_bits)
        if number < bound:
            return number


def scaled_below(bound: int, draw: NextWord) -> int:
    """Return a uniform whole number below ``bound``: the upper half of a product of 32 bits.

    Of the products with one upper half, those are refused whose lower half is below 2^32 mod
    bound. As many are left for each (Lemire 2019, arXiv:1805.10941).
    """
    while True:
        product = draw() * bound
        if product % 2**32 >= 2**32 % bound:
            return product // 2**32


def half_words(next_word: NextWord) -> Iterator[int]:
    """Yield words cut in two, the lower 32 bits first."""
    while True:
        word = next_word()
        yield word % 2**32
        yield word // 2**32


# ---------------------------------------------------------------- one category out of k
def respond(truth: int, k: int, threshold: int, word: int) -> int:
    """Return another category with probability T / 2^64 each, else the truth."""
    step = word // threshold
    return (truth + 1 + step) % k if step < k - 1 else truth


def k_randomized_response(truth: int, k: int, law: Law, next_word: NextWord) -> bytes:
    """Return a category."""
    word, threshold = next_word(), law["threshold"]
    is_blind = threshold == WORDS // k  # epsilon0 = 0
    return little_endian(word % k if is_blind else respond(truth, k, threshold, word), k)


def random_bits(truth: int, k: int, own: int, other: int, next_word: NextWord) -> bytes:
    """Return k bits, that of the truth set with probability own / 2^64, each one with other / 2^64.

    One word a bit. Words that are compared digit by digit save most of them.
    """
    row = bytearray((k + 7) // 8)
    for i in range(k):
        if next_word() < (own if i == truth else other):
            row[i // 8] |= 1 << (i % 8)
    return bytes(row)


def symmetric_unary(truth: int, k: int, law: Law, next_word: NextWord) -> bytes:
    """Return k bits, each wrong with probability T / 2^64."""
    return random_bits(truth, k, WORDS - law["threshold"], law["threshold"], next_word)


def optimized_unary(truth: int, k: int, law: Law, next_word: NextWord) -> bytes:
    """Return k bits, the truth's set with probability 1/2."""
    return random_bits(truth, k, WORDS // 2, law["threshold"], next_word)


def hashed(truth: int, k: int, num_buckets: int, threshold: int, next_word: NextWord) -> bytes:
    """Return a seed and a bucket: the sum of products of digits, then randomized response."""
    num_digits = 1
    while num_buckets**num_digits < k:
        num_digits += 1
    seed = uniform_below(num_buckets**num_digits, next_word)
    bucket, rest, digits = 0, seed, truth
    for _ in range(num_digits):
        bucket += (rest % num_buckets) * (digits % num_buckets)
        rest, digits = rest // num_buckets, digits // num_buckets
    reported = respond(bucket % num_buckets, num_buckets, threshold, next_word())
    return little_endian(seed * num_buckets + reported, num_buckets ** (num_digits + 1))


def local_hashing(truth: int, k: int, law: Law, next_word: NextWord) -> bytes:
    """Return a seed and one of g buckets."""
    return hashed(truth, k, law["num_buckets"], law["threshold"], next_word)


def hadamard_response(truth: int, k: int, law: Law, next_word: NextWord) -> bytes:
    """Return a row of the Walsh-Hadamard matrix and a sign: a hash to two buckets."""
    return hashed(truth, k, 2, law["threshold"], next_word)


def subset_selection(truth: int, k: int, law: Law, next_word: NextWord) -> bytes:
    """Return a subset of w categories as k bits; the truth is in it with probability T / 2^64.

    The others are numbered from 0 to k - 2, the last one in the truth's place. The first member is
    one of the first of them, or the truth; the rest follows Floyd's algorithm.
    """
    size, threshold = law["subset_size"], law["threshold"]
    num_others = k - 1
    if threshold == WORDS * size // k:  # epsilon0 = 0: all k are others
        truth, num_others, threshold = k, k, 0
    has_truth = next_word() < threshold
    halves = half_words(next_word)
    row = bytearray((k + 7) // 8)
    for step in range(size):
        bound = num_others - size + 1 + step
        place = scaled_below(bound, lambda: next(halves))
        member = num_others if place == truth else place
        if step == 0 and has_truth:
            member = truth
        elif row[member // 8] >> (member % 8) & 1:
            member = num_others if bound - 1 == truth else bound - 1
        row[member // 8] |= 1 << (member % 8)
    return bytes(row)


def little_endian(number: int, bound: int) -> bytes:
    """Return a number below ``bound`` as 1, 2, 4 or 8 bytes, the fewest that hold all of them."""
    num_bytes = next(size for size in (1, 2, 4, 8) if bound <= 256**size)
    return number.to_bytes(num_bytes, "little")


CATEGORY_REPORTS: dict[str, Callable[[int, int, Law, NextWord], bytes]] = {
    "k-rr": k_randomized_response,
    "symmetric-unary": symmetric_unary,
    "optimized-unary": optimized_unary,
    "optimized-local-hashing": local_hashing,
    "hadamard-response": hadamard_response,
    "subset-selection": subset_selection,
}


# ---------------------------------------------------------------- a number
def grid_point(low: float, high: float, value: float, num_steps: int, next_word: NextWord) -> int:
    """Return one of the two points of 0 ... m around a value, the value on average.

    This is done to one's own value before it is randomized: its rounding costs no privacy.
    """
    if not low <= value <= high:  # so that NaN is refused, too
        raise ValueError(f"value {value} is not in [{low}, {high}]")
    width, distance = high - low, value - low
    if distance < width * 2.0**-90:
        distance = 0.0
    position = distance / width * num_steps
    below = math.floor(position)
    goes_up = next_word() < math.floor((position - below) * 2.0**64)
    return below + 1 if goes_up else below


def duchi(low: float, high: float, law: Law, value: float, next_word: NextWord) -> bytes:
    """Return one byte: the end of the range that the value was rounded to, or the other one."""
    end = grid_point(low, high, value, 1, next_word)
    is_flipped = next_word() < law["threshold"]
    return bytes([1 - end if is_flipped else end])


def piecewise(low: float, high: float, law: Law, value: float, next_word: NextWord) -> bytes:
    """Return two bytes: an output of the window of the value's grid point, or one of the others."""
    num_steps, window, threshold = law["num_steps"], law["window"], law["threshold"]
    point = grid_point(low, high, value, num_steps, next_word)
    word, border = next_word(), num_steps * threshold
    if word >= border:
        in_window = (WORDS - border) // window  # H: no remainder
        report = point + (word - border) // in_window
    else:
        report = word // threshold
        if report >= point:
            report += window
    return report.to_bytes(2, "little")


# ---------------------------------------------------------------- a vector
def privunit(norm_bound: float, law: Law, vector: list[float], next_word: NextWord) -> bytes:
    """Return a unit vector as float32: in the cap around the value's direction, or in the rest.

    Points of the sphere are drawn until one lies on the right side: 1 / q of them for a cap that
    has the share q of the sphere. How long that takes tells on which side the report is: do not
    let anybody time it.
    """
    scaled = [float(each) / norm_bound for each in vector]
    norm = math.sqrt(sum(each * each for each in scaled))
    if not norm <= 1.0 + 1e-9:
        raise ValueError(f"the vector has the norm {norm * norm_bound}, more than {norm_bound}")
    if norm < 1e-150:
        norm, direction = 0.0, sphere_point(len(vector), next_word)
    else:
        direction = [each / norm for each in scaled]
    if uniform(next_word()) >= (1.0 + norm) / 2.0:
        direction = [-each for each in direction]
    is_outside = next_word() < law["threshold"]
    while True:
        point = sphere_point(len(vector), next_word)
        along = sum(x * y for x, y in zip(point, direction, strict=True))
        if (along < law["gamma"]) == is_outside:
            return struct.pack(f"<{len(point)}f", *point)


def sphere_point(dimension: int, next_word: NextWord) -> list[float]:
    """Return a uniform point of the unit sphere: normal numbers, scaled."""
    normals = []
    for _ in range(dimension):
        radius = math.sqrt(-2.0 * math.log(uniform(next_word())))
        normals.append(radius * math.cos(2.0 * math.pi * uniform(next_word())))
    norm = math.sqrt(sum(each * each for each in normals))
    return [each / norm for each in normals]


def uniform(word: int) -> float:
    """Return the upper 52 bits of a word as a number in (0, 1), never 0 and never 1."""
    return ((word >> 12) + 0.5) * 2.0**-52


# ---------------------------------------------------------------- is it the law of the task?
def check_law(task: Task, law: Law) -> None:
    """Raise `ValueError` unless the integers are the task's, and cost at most its epsilon0."""
    found = fingerprint(task, law)
    if found != task["fingerprint"]:
        raise ValueError(f"the law is {found} and the task names {task['fingerprint']}")
    cost = loss(task, law)
    # Both sides are doubles; the law itself is exact.
    if not cost <= task["epsilon0"] * (1.0 + 1e-12):
        raise ValueError(f"the law costs {cost}, and the task says {task['epsilon0']}")


def fingerprint(task: Task, law: Law) -> str:
    """Return the name of the law: of its parameters, in their order."""
    name, question, k = task["randomizer"], task["question"], len(task["labels"])
    own = {field: law[field] for field in LAW_FIELDS[name.split(":")[-1]]}
    if ":" in name:
        base = fingerprint_of(name.split(":")[1], {"k": k + 1, **own})
        return fingerprint_of(name, {"base": base, "k": k, "max_answers": question["max_answers"]})
    if name in ("duchi", "piecewise"):
        low, high = ((question[end] + 0.0).hex() for end in ("low", "high"))  # -0 is 0
        return fingerprint_of(name, {"span": f"{low}..{high}", **own})
    if name == "privunit":
        norm_bound, gamma = float(question["norm_bound"]).hex(), float(law["gamma"]).hex()
        first = {"dimension": k, "norm_bound": norm_bound, "gamma": gamma}
        return fingerprint_of(name, {**first, "threshold": law["threshold"]})
    return fingerprint_of(name, {"k": k, **own})


def fingerprint_of(name: str, parameters: dict[str, Any]) -> str:
    """Return the first 32 hexadecimal digits of SHA-256 of a name and its parameters."""
    stated = "/".join(f"{key}={value}" for key, value in parameters.items())
    text = f"shuffledp local randomizer/{name}/{stated}/{WORDS}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def loss(task: Task, law: Law) -> float:
    """Return epsilon0 of a law in nats: the logarithm of its largest likelihood ratio."""
    way, _, name = task["randomizer"].rpartition(":")
    num_categories = len(task["labels"]) + (1 if way else 0)
    more, less = odds(name, num_categories, law)
    if not more >= less > 0:
        raise ValueError(f"no law has these integers: {law}")
    found = math.log1p((more - less) / less)
    if name == "symmetric-unary":
        found *= 2.0  # two answers differ in two bits
    if name == "privunit":
        share = cap_share(law["gamma"], num_categories)
        found += math.log((1.0 - share) / share)
    return found * task["question"]["max_answers"] if way == "split" else found


def odds(name: str, k: int, law: Law) -> tuple[int, int]:
    """Return how often a report or bit is made of an answer that favours it, and of another one."""
    threshold = law["threshold"]
    if name in ("k-rr", "optimized-local-hashing"):
        num_symbols = law.get("num_buckets", k)
        is_blind = name == "k-rr" and threshold == WORDS // k
        return (1, 1) if is_blind else (WORDS - (num_symbols - 1) * threshold, threshold)
    if name == "subset-selection":
        size = law["subset_size"]
        is_blind = threshold == WORDS * size // k
        return (1, 1) if is_blind else (threshold * (k - size), (WORDS - threshold) * size)
    if name == "piecewise":
        in_window, left_over = divmod(WORDS - law["num_steps"] * threshold, law["window"])
        return (in_window, threshold) if left_over == 0 else (0, 0)
    return WORDS - threshold, threshold


def cap_share(gamma: float, dimension: int) -> float:
    """Return the share of the unit sphere with a first coordinate above ``gamma``, at most 1/2.

    From two or three dimensions on, two more at a time; the terms are those of an incomplete beta
    function.
    """
    if not 0.0 <= gamma < 1.0:
        raise ValueError(f"gamma = {gamma} is not in [0, 1)")
    square = 1.0 - gamma * gamma
    if dimension % 2:
        share, term, start = (1.0 - gamma) / 2.0, gamma * square / 4.0, 3
    else:
        share, term, start = math.acos(gamma) / math.pi, gamma * math.sqrt(square) / math.pi, 2
    for d in range(start, dimension, 2):
        share -= term
        term *= square * d / (d + 1)
    return share
