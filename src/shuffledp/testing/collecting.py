"""Checks of client and server on codes and reports, well-formed or not."""

import itertools
import math
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, DomainError, FingerprintError, ParameterError
from shuffledp.core.reports import Reports
from shuffledp.testing.law import (
    LARGE_K,
    Make,
    NothingToCheck,
    aggregate_of,
    demand,
    demand_refusal,
    describe,
    draw,
    exact_laws,
)


def check_reports_have_the_stated_size(make: Make) -> None:
    """Check that reports take num_report_bytes each, whatever the truth, and are read-only."""
    for k, num_users in itertools.product((2, 7, 8, 16, 100, LARGE_K), (1, 63, 65, 1001)):
        randomizer = make(k, 1.0)
        what, size = f"reports of {describe(randomizer)}", randomizer.num_report_bytes
        for code in (None, 0, k - 1):  # all categories, and then one alone
            codes = None if code is None else np.full(num_users, code)
            reports = draw(randomizer, num_users, codes=codes)
            data = reports.data
            demand(not data.dtype.hasobject, f"{what} are objects, whose size tells the truth")
            fits = data.nbytes == len(data) * size and len(data) == num_users
            told = f"{what} take {data.nbytes} bytes for {num_users} users, not num_report_bytes ="
            demand(fits, f"{told} {size} each")
            demand(not data.flags.writeable, f"{what} are not read-only")
            marked = reports.fingerprint == randomizer.fingerprint
            demand(marked, f"{what} do not carry its fingerprint")
            counted = randomizer.aggregate(reports).num_reports
            demand(counted == num_users, f"{counted} {what} are counted of {num_users}")


def check_empty_batches_work(make: Make) -> None:
    """Check that no codes give no reports and counts of zero, from which nothing is estimated."""
    randomizer = make(10, 1.0)
    for codes in (np.array([]), np.array([], dtype=np.uint8)):
        reports = draw(randomizer, 0, codes=codes)
        counts = randomizer.aggregate(reports)
        nothing = reports.num_reports, counts.num_reports, counts.support.tolist()
        what = f"an empty batch of {describe(randomizer)} gives (reports, counted, support) ="
        demand(nothing == (0, 0, [0] * 10), f"{what} {nothing}")
        what = f"an estimate of {describe(randomizer)} from no reports"
        demand_refusal(DataError, partial(randomizer.estimate, counts), what)


def check_codes_outside_are_named(make: Make) -> None:
    """Check that a code outside the domain is an error that names it and its position."""
    randomizer = make(10, 1.0)
    for wrong in (10, -1, 2**40):
        codes = np.array([3, 9, wrong, 77])
        what = f"the code {wrong} given to {describe(randomizer)}"
        action = partial(draw, randomizer, 4, codes=codes)
        demand_refusal(DomainError, action, what, f"[2] = {wrong}", "[0, 10)")


def check_codes_must_be_integers(make: Make) -> None:
    """Check that codes are refused unless they are integers on one axis."""
    randomizer = make(10, 1.0)
    for wrong in ([1.0], [math.nan], ["1"], [True], [[0, 1]]):
        codes = np.array(wrong)
        what = f"codes {wrong} of type {codes.dtype} given to {describe(randomizer)}"
        demand_refusal(ParameterError, partial(draw, randomizer, 1, codes=codes), what)


def check_integer_types_agree(make: Make) -> None:
    """Check that reports depend on the codes alone, not on their type or layout."""
    randomizer = make(100, 1.0)
    codes = np.arange(100)
    expected = draw(randomizer, 100).data
    for dtype in ("i1", "u1", "i2", "u4", "i8", "u8", ">i8"):
        # Every other element of a longer array, so that the codes are not contiguous either.
        given = np.repeat(codes, 2).astype(dtype)[::2]
        what = f"{describe(randomizer)}, given codes of type {dtype},"
        found = draw(randomizer, 100, codes=given).data
        demand(np.array_equal(found, expected), f"{what} makes other reports")
        demand(np.array_equal(given, codes), f"{what} overwrites them")


def check_seeds_reproduce(make: Make) -> None:
    """Check that all randomness comes from the entropy given."""
    randomizer = make(16, 1.0)
    first, again, other = (draw(randomizer, 10_000, seed).data for seed in (7, 7, 8))
    what = f"two runs of {describe(randomizer)} with"
    demand(np.array_equal(first, again), f"{what} one seed differ: draw from the entropy given")
    demand(not np.array_equal(first, other), f"{what} different seeds agree")
    codes, entropy = np.zeros(10_000, dtype=np.int64), Entropy.from_operating_system()
    one, two = (randomizer.randomize(codes, entropy).data for _ in range(2))
    demand(not np.array_equal(one, two), f"{what} the operating system's randomness agree")


def check_parameters_out_of_range_are_refused(make: Make) -> None:
    """Check that a k or an epsilon0 out of range is an error that names it."""
    wrong: Any
    for wrong in (0, 1, 2**32, 2.5):
        what = f"domain_size = {wrong}"
        demand_refusal(ParameterError, partial(make, wrong, 1.0), what, "domain_size = ")
    for wrong in (-1e-9, math.nan):
        what = f"epsilon0 = {wrong}"
        demand_refusal(ParameterError, partial(make, 3, wrong), what, "epsilon0 = ")
    with suppress(ParameterError):  # where there is a law without noise it has to say so
        is_stated = make(3, math.inf).epsilon0 == math.inf
        demand(is_stated, "epsilon0 = inf is accepted, and a finite loss stated")


def check_aggregates_are_sums_of_supports(make: Make) -> None:
    """Check that counts are the column sums of the reports' supports."""
    for k, num_users in itertools.product((2, 5, 64, 300), (1, 100, 3_000)):
        randomizer = make(k, 1.0)
        reports = draw(randomizer, num_users)
        found, supported = randomizer.aggregate(reports), randomizer.supports(reports)
        what = f"aggregate of {describe(randomizer)}"
        demand(supported.shape == (num_users, k), f"supports of {what} are not (n, k)")
        same = np.array_equal(found.support, supported.sum(axis=0))
        demand(same, f"{what} is not the sum of what the reports support")
        marked = found.fingerprint == randomizer.fingerprint
        demand(marked, f"{what} does not carry its fingerprint")


def check_order_and_parts_do_not_matter(make: Make) -> None:
    """Check that counts of parts add, in any order."""
    for k, num_users in itertools.product((2, 9, 130), (3, 1_000)):
        randomizer = make(k, 1.0)
        data = draw(randomizer, num_users).data
        count = partial(aggregate_of, randomizer)
        whole, what = count(data), f"aggregate of {describe(randomizer)} depends on"
        backwards = count(data[::-1])
        demand(np.array_equal(backwards.support, whole.support), f"{what} the order of reports")
        for cut in (0, 1, num_users // 3):
            merged = count(data[:cut]) + count(data[cut:])
            agree = np.array_equal(merged.support, whole.support)
            demand(agree and merged.num_reports == num_users, f"{what} how reports are batched")


def check_reports_of_another_law_are_refused(make: Make) -> None:
    """Check that reports and counts of another law are refused."""
    randomizer, other = make(4, 1.0), make(4, 1.5)
    reports = draw(other, 100)
    counts = other.aggregate(reports)
    for name, given in (("aggregate", reports), ("supports", reports), ("estimate", counts)):
        what = f"{name} of {describe(randomizer)}, given reports of {describe(other)},"
        demand_refusal(FingerprintError, partial(getattr(randomizer, name), given), what)


def check_malformed_reports_are_refused(make: Make) -> None:
    """Check that reports of another type or shape are refused."""
    randomizer = make(20, 1.0)
    data = draw(randomizer, 20).data
    other_type = np.float32 if data.dtype == np.float64 else np.float64
    for wrong in (data.astype(other_type), data[:, None]):
        reports = Reports(data=wrong, fingerprint=randomizer.fingerprint)
        what = f"reports of type {wrong.dtype} and shape {wrong.shape}, not {data.shape},"
        demand_refusal(ParameterError, partial(randomizer.aggregate, reports), what)


def check_impossible_reports_are_refused(make: Make) -> None:
    """Check that a report that the law never makes is an error that names its position."""
    is_possible = True
    for law in exact_laws(make):
        possible = {law.columns.data[number].tobytes() for number, _ in law.possible_columns()}
        data = draw(law.randomizer, 9).data
        for byte in (0x00, 0xFF):
            planted = data.copy()
            planted[3:4].view(np.uint8)[...] = byte
            if planted[3].tobytes() in possible:
                continue
            is_possible = False
            reports = Reports(data=planted, fingerprint=law.randomizer.fingerprint)
            what = f"report 3, of bytes {byte:#04x}, which {law} never makes,"
            for method in (law.randomizer.aggregate, law.randomizer.supports):
                demand_refusal(DomainError, partial(method, reports), what, "3")
    if is_possible:
        raise NothingToCheck


def check_nothing_to_estimate_is_refused(make: Make) -> None:
    """Check that nothing is estimated from reports that say nothing."""
    randomizer = make(3, 0.0)
    reports = draw(randomizer, 30)
    what = f"an estimate of {describe(randomizer)}, whose reports say nothing,"
    demand_refusal(ParameterError, partial(randomizer.estimate, reports), what)
