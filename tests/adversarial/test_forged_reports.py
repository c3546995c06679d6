"""What a law cannot make is refused: every byte pattern of small reports, one at a time."""

import numpy as np
import pytest

from adversarial import laws
from laws_of_numbers import coarse
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, FingerprintError, ParameterError, ShuffledpError
from shuffledp.core.reports import Reports
from shuffledp.randomizers.answer_sets import ANSWER_SET_RANDOMIZERS
from shuffledp.randomizers.registry import (
    NUMBER_RANDOMIZERS,
    RANDOMIZERS,
    VECTOR_RANDOMIZERS,
)

EVERY_BYTE = np.arange(256, dtype=np.uint8)


def aggregate(randomizer, data):
    """Count or sum reports that claim to be of this law."""
    return randomizer.aggregate(Reports(data=data, fingerprint=randomizer.fingerprint))


def check_each(randomizer, patterns, is_possible):
    """Fail unless exactly the possible ones of all patterns are counted."""
    possible = np.array([is_possible(pattern) for pattern in patterns])
    assert aggregate(randomizer, patterns[possible]).num_reports == possible.sum()
    assert 0 < possible.sum() <= len(patterns)
    good = patterns[possible][:1]
    for forged in patterns[~possible]:
        with pytest.raises(DomainError, match=r"report 1 |codes\[1\] "):
            aggregate(randomizer, np.concatenate([good, forged[None]]))


def possible_reports(name, randomizer):
    """Return the whole numbers that are reports of a law with some chance."""
    channel = laws.category(randomizer)
    reports = range(len(channel[0]))
    if name == "subset-selection":
        reports = [
            y for y in range(2**randomizer.domain_size) if y.bit_count() == randomizer.subset_size
        ]
    return {y for y, column in zip(reports, zip(*channel, strict=True), strict=True) if any(column)}


@pytest.mark.parametrize("epsilon0", [0.0, 1.0, 60.0])
@pytest.mark.parametrize("k", [2, 3, 5, 8])
@pytest.mark.parametrize("name", RANDOMIZERS)
def test_every_byte_as_a_report_of_a_category(name, k, epsilon0):
    randomizer = RANDOMIZERS[name](domain_size=k, epsilon0=epsilon0)
    if randomizer.num_report_bytes != 1:
        # Hashing to many buckets: two bytes, and whatever is not below g^(m + 1) is refused.
        assert name == "optimized-local-hashing"
        patterns = np.arange(2**16, dtype=np.uint16)[:2000]
        check_each(randomizer, patterns, lambda code: code < randomizer.num_buckets**2)
        return
    possible = possible_reports(name, randomizer)
    is_row = name in ("symmetric-unary", "optimized-unary", "subset-selection")
    patterns = EVERY_BYTE[:, None] if is_row else EVERY_BYTE
    check_each(randomizer, patterns, lambda pattern: int(np.ravel(pattern)[0]) in possible)


@pytest.mark.parametrize("name", ["symmetric-unary", "optimized-unary", "subset-selection"])
def test_bits_beyond_the_last_category_of_wide_rows(name):
    randomizer = RANDOMIZERS[name](domain_size=19, epsilon0=1.0)
    row = randomizer.randomize(np.array([0]), Entropy.from_seed(1)).data
    for bit in range(19, 24):
        forged = row.copy()
        forged[0, 2] |= 1 << bit % 8
        if name == "subset-selection":  # of the right size all the same
            first = next(i for i in range(19) if row[0, i // 8] >> i % 8 & 1)
            forged[0, first // 8] &= ~(1 << first % 8) & 0xFF
        with pytest.raises(DomainError):
            aggregate(randomizer, forged)


@pytest.mark.parametrize("name", NUMBER_RANDOMIZERS)
def test_every_report_of_a_number(name):
    make = NUMBER_RANDOMIZERS[name] if name == "duchi" else coarse(2)
    randomizer = make(low=0, high=1, epsilon0=2.0)
    if name == "duchi":
        check_each(randomizer, EVERY_BYTE, lambda code: code <= 1)
        return
    num_outputs = len(laws.number(randomizer, [0])[0])
    patterns = np.arange(2**16, dtype=np.uint16)
    patterns = np.concatenate([patterns[:500], patterns[500::97], patterns[-50:]])
    check_each(randomizer, patterns, lambda code: code < num_outputs)


@pytest.mark.parametrize("name", ANSWER_SET_RANDOMIZERS)
def test_every_byte_as_a_report_of_a_set(name):
    randomizer = ANSWER_SET_RANDOMIZERS[name](domain_size=3, max_answers=2, epsilon0=1.0)
    base_name = randomizer.base_name
    possible = possible_reports(base_name, randomizer.base)
    is_row = base_name in ("symmetric-unary", "optimized-unary", "subset-selection")
    if name.startswith("sampled:"):
        patterns = EVERY_BYTE[:, None] if is_row else EVERY_BYTE
        check_each(randomizer, patterns, lambda pattern: int(np.ravel(pattern)[0]) in possible)
        return
    rows = np.array([(a, b) for a in range(256) for b in (0, 1, 3, 17)], dtype=np.uint8)
    rows = np.concatenate([rows, rows[:, ::-1]])
    possible_rows = np.array([{int(a), int(b)} <= possible for a, b in rows])
    if possible_rows.any():
        aggregate(randomizer, rows[possible_rows])
    for forged in rows[~possible_rows][::3]:
        with pytest.raises(DomainError):
            aggregate(randomizer, forged[None])


NOT_NUMBERS = (
    [np.nan, 0.0, 0.0],
    [np.inf, 0.0, 0.0],
    [0.0, -np.inf, 0.0],
    [np.inf, -np.inf, np.nan],
)


@pytest.mark.parametrize("name", VECTOR_RANDOMIZERS)
def test_vectors_that_are_none(name):
    randomizer = VECTOR_RANDOMIZERS[name](dimension=3, epsilon0=4.0)
    reports = randomizer.randomize(np.eye(3), Entropy.from_seed(1)).data
    for forged in NOT_NUMBERS:
        data = np.concatenate([reports, np.array([forged], dtype=np.float32)])
        for use in (randomizer.aggregate, randomizer.scores):
            with pytest.raises(DomainError, match="report 3 "):
                use(Reports(data=data, fingerprint=randomizer.fingerprint))


def test_vectors_off_the_sphere():
    randomizer = VECTOR_RANDOMIZERS["privunit"](dimension=3, epsilon0=4.0)
    for norm in (0.0, 1e-3, 0.99, 1.01, 2.0, 3e38):
        forged = np.array([[norm, 0.0, 0.0]], dtype=np.float32)
        with pytest.raises(DomainError, match="report 0 "):
            aggregate(randomizer, forged)


def every_randomizer():
    """One of each kind, with values."""
    codes, numbers = np.array([0, 1, 2]), np.array([0.0, 0.4, 1.0])
    sets = np.array([[0, 1], [2, -1], [-1, -1]])
    options = {"epsilon0": 1.0}
    for name, make in RANDOMIZERS.items():
        yield pytest.param(make(domain_size=3, **options), codes, id=name)
    for name, make in NUMBER_RANDOMIZERS.items():
        yield pytest.param(make(low=0, high=1, **options), numbers, id=name)
    for name, make in VECTOR_RANDOMIZERS.items():
        yield pytest.param(make(dimension=3, **options), np.eye(3), id=name)
    for name, make in ANSWER_SET_RANDOMIZERS.items():
        yield pytest.param(make(domain_size=3, max_answers=2, **options), sets, id=name)


@pytest.mark.parametrize(("randomizer", "values"), [*every_randomizer()])
def test_other_laws_types_and_shapes(randomizer, values):
    made = randomizer.randomize(values, Entropy.from_seed(1))
    data = made.data
    with pytest.raises(FingerprintError):
        randomizer.aggregate(Reports(data=data, fingerprint=made.fingerprint[:-1]))
    other_types = [np.int64, np.float64, np.dtype(object), np.dtype("m8[ns]"), np.dtype("V8")]
    if data.dtype.itemsize > 1:
        other_types.append(data.dtype.newbyteorder())
    for dtype in other_types:
        with pytest.raises(ParameterError):
            aggregate(randomizer, np.zeros(data.shape, dtype=dtype))
    signed = {"u": "i", "i": "u", "f": "i"}[data.dtype.kind]
    with pytest.raises(ParameterError):
        aggregate(randomizer, data.view(f"{signed}{data.dtype.itemsize}"))
    wrong_shapes = [data[..., None], data[None], np.concatenate([data, data], axis=-1)[None]]
    if data.ndim == 2:
        wrong_shapes += [data[:, :-1], np.concatenate([data, data], axis=1), data[:, 0]]
    for shaped in wrong_shapes:
        with pytest.raises(ParameterError):
            aggregate(randomizer, shaped)
    # Views in any layout are the same reports.
    for same in (data[::-1], np.asfortranarray(data), np.repeat(data, 2, axis=0)[::2]):
        assert aggregate(randomizer, same).num_reports == 3
    assert aggregate(randomizer, data[:0]).num_reports == 0


@pytest.mark.parametrize(("randomizer", "values"), [*every_randomizer()])
def test_aggregates_of_another_law_are_refused(randomizer, values):
    aggregates = randomizer.aggregate(randomizer.randomize(values, Entropy.from_seed(1)))
    forged = type(aggregates)(
        **{
            name: getattr(aggregates, name)
            for name in aggregates.__dataclass_fields__
            if name != "fingerprint"
        },
        fingerprint="0" * 32,
    )
    with pytest.raises(FingerprintError):
        randomizer.estimate(forged)
    with pytest.raises(FingerprintError):
        aggregates + forged
    assert issubclass(FingerprintError, ShuffledpError)
