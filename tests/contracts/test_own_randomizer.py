"""A randomizer of one's own passes the contract, and each broken promise is caught by name."""

import inspect
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from shuffledp.amplification.lower_bounds import attack_atoms
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily
from shuffledp.core.reports import Counts
from shuffledp.randomizers import CategoryRandomizer, KRandomizedResponse, Reports
from shuffledp.randomizers.checks import (
    code_type,
    fingerprint_of,
    require_codes,
    require_reports,
)
from shuffledp.testing import (
    CATEGORY_CHECKS,
    ContractError,
    check_randomizer,
    check_samples_follow_channel,
)

# Probability that correct code fails this module: some thirty calls of checks that err with
# probability 1e-12 each.
FALSE_POSITIVE_RATE = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentRandomizedResponse(CategoryRandomizer):
    """k-RR, but a fair coin of each user's own decides whether they say anything."""

    name: ClassVar[str] = "silent-rr"
    domain_size: int
    epsilon0: float
    answer: KRandomizedResponse = field(init=False, repr=False)
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self):
        answer = KRandomizedResponse(domain_size=self.domain_size, epsilon0=self.epsilon0)
        object.__setattr__(self, "answer", answer)
        object.__setattr__(self, "epsilon0", answer.epsilon0)  # silence says nothing
        object.__setattr__(self, "fingerprint", fingerprint_of(self.name, of=answer.fingerprint))

    @property
    def profile(self):
        answer = self.answer.profile
        atoms = [replace(atom, mass=atom.mass / 2) for atom in answer.blanket]
        return LocalProfile(
            epsilon0=self.epsilon0,
            family=RandomizerFamily.OTHER,
            domain_size=self.domain_size,
            blanket=(*atoms, BlanketAtom(mass=0.5, ratio0=1.0, ratio1=1.0)),
            channel=self.channel if answer.channel else None,
        )

    @property
    def support_probabilities(self):
        p, q = self.answer.support_probabilities
        return p / 2, q / 2

    def randomize(self, values, entropy):
        data = self.answer.randomize(values, entropy).data.astype(code_type(self.domain_size + 1))
        data[entropy.words(data.size) < 2**63] = self.domain_size
        return Reports(data=data, fingerprint=self.fingerprint)

    def supports(self, reports):
        dtype = code_type(self.domain_size + 1)
        codes = require_reports(reports, fingerprint=self.fingerprint, dtype=dtype, row_shape=())
        return require_codes(codes, self.domain_size + 1)[:, None] == np.arange(self.domain_size)

    def channel(self):
        return tuple((*(p / 2 for p in row), Fraction(1, 2)) for row in self.answer.channel())

    def report_columns(self):
        data = np.arange(self.domain_size + 1, dtype=code_type(self.domain_size + 1))
        return Reports(data=data, fingerprint=self.fingerprint)


class LoudOrQuiet(SilentRandomizedResponse):
    """k-RR that costs epsilon0, or half of it, and says which: likelihoods of several ratios."""

    name = "loud-or-quiet"

    @property
    def both(self):
        quiet = KRandomizedResponse(domain_size=self.domain_size, epsilon0=self.epsilon0 / 2)
        return self.answer, quiet if quiet.epsilon0 > 0.0 else self.answer

    @property
    def profile(self):
        channel = self.channel if self.domain_size <= 64 else None
        return LocalProfile(epsilon0=self.epsilon0, domain_size=self.domain_size, channel=channel)

    @property
    def support_probabilities(self):
        (p, q), (p_quiet, q_quiet) = (each.support_probabilities for each in self.both)
        return (p + p_quiet) / 2, (q + q_quiet) / 2

    def randomize(self, values, entropy):
        loud, quiet = (each.randomize(values, entropy).data for each in self.both)
        is_quiet = entropy.words(loud.size) < 2**63
        data = np.where(is_quiet, self.domain_size + quiet.astype("u8"), loud).astype(
            code_type(2 * self.domain_size)
        )
        return Reports(data=data, fingerprint=self.fingerprint)

    def supports(self, reports):
        dtype = code_type(2 * self.domain_size)
        codes = require_reports(reports, fingerprint=self.fingerprint, dtype=dtype, row_shape=())
        return require_codes(codes, 2 * self.domain_size)[:, None] % self.domain_size == np.arange(
            self.domain_size
        )

    def channel(self):
        loud, quiet = (each.channel() for each in self.both)
        rows = (first + second for first, second in zip(loud, quiet, strict=True))
        return tuple(tuple(p / 2 for p in row) for row in rows)

    def report_columns(self):
        data = np.arange(2 * self.domain_size, dtype=code_type(2 * self.domain_size))
        return Reports(data=data, fingerprint=self.fingerprint)


def maker(randomizer_class):
    return lambda k, epsilon0: randomizer_class(domain_size=k, epsilon0=epsilon0)


def test_it_is_written_in_forty_lines():
    lines = [line.strip() for line in inspect.getsource(SilentRandomizedResponse).splitlines()]
    code = [line for line in lines if line and not line.startswith(('"""', "#"))]
    assert len(code) <= 40


def halved_attack(self):
    atoms = attack_atoms(self.answer.profile)
    silence = [BlanketAtom(mass=0.5, ratio0=1.0, ratio1=1.0)]
    return (*(replace(atom, mass=atom.mass / 2) for atom in atoms), *silence) if atoms else ()


def merged_attack(self):
    """State the attack that no longer tells the two rarest kinds of reports apart."""
    first, second, *rest = halved_attack(self) or (None, None)
    if first is None:
        return ()
    mass = first.mass + second.mass
    means = [
        (first.mass * getattr(first, name) + second.mass * getattr(second, name)) / mass
        for name in ("ratio0", "ratio1")
    ]
    return BlanketAtom(mass=mass, ratio0=means[0], ratio1=means[1]), *rest


@pytest.mark.parametrize("attack", [halved_attack, merged_attack])
@pytest.mark.parametrize("check", CATEGORY_CHECKS)
def test_it_passes_each_check(check, attack):
    CATEGORY_CHECKS[check](maker(profiled(attack=attack)))


def test_it_passes_all_checks():
    assert check_randomizer(maker(profiled(attack=halved_attack))) == tuple(CATEGORY_CHECKS)
    passed = check_randomizer(maker(SilentRandomizedResponse))
    assert set(CATEGORY_CHECKS) - set(passed) == {"attack-is-possible"}


def test_a_randomizer_without_blanket_or_ratio_passes_what_applies():
    passed = check_randomizer(maker(LoudOrQuiet))
    left_out = {"attack-is-possible", "blanket-is-the-infimum", "blanket-means-are-one"}
    assert set(passed) == set(CATEGORY_CHECKS) - left_out


def test_a_randomizer_without_channel_passes_what_applies():
    class Opaque(SilentRandomizedResponse):
        channel = CategoryRandomizer.channel
        report_columns = CategoryRandomizer.report_columns

        @property
        def profile(self):
            return LocalProfile(epsilon0=self.epsilon0, domain_size=self.domain_size)

    passed = check_randomizer(maker(Opaque))
    assert "epsilon0-is-the-exact-loss" not in passed
    assert "samples-follow-the-channel" not in passed
    assert "reports-of-another-law-are-refused" in passed
    with pytest.raises(ParameterError, match="no list of its reports"):
        check_samples_follow_channel(Opaque(domain_size=3, epsilon0=1.0), seed=1)
    with pytest.raises(ParameterError, match="no channel matrix"):
        Opaque(domain_size=3, epsilon0=1.0).channel()


# ---------------------------------------------------------------- broken promises
def planted(base=SilentRandomizedResponse, **members):
    """Return a class that breaks a promise; `set_up` in place of `__post_init__`."""
    return type("Planted", (base,), members)


def costing(asked_factor=1.0, stated_factor=1.0):
    """Return a class that asks k-RR for another loss than it was asked, or states another one."""

    def set_up(self):
        object.__setattr__(self, "epsilon0", self.epsilon0 * asked_factor)
        SilentRandomizedResponse.__post_init__(self)
        object.__setattr__(self, "epsilon0", self.epsilon0 * stated_factor)

    return planted(__post_init__=set_up)


def profiled(**changes):
    """Return a class with a wrong profile; changes are functions of the randomizer."""

    def profile(self):
        right = SilentRandomizedResponse.profile.fget(self)
        return replace(right, **{name: change(self) for name, change in changes.items()})

    return planted(profile=property(profile))


def drawing(change):
    """Return a class whose reports are changed by a function of (self, values, data, entropy)."""

    def randomize(self, values, entropy):
        data = SilentRandomizedResponse.randomize(self, values, entropy).data.copy()
        data = change(self, values, data, entropy)
        return Reports(data=data, fingerprint=self.fingerprint)

    return planted(randomize=randomize)


def given(change):
    """Return a class that changes the codes it is given, before they are checked."""

    def randomize(self, values, entropy):
        return SilentRandomizedResponse.randomize(self, change(self, values), entropy)

    return planted(randomize=randomize)


def entropy_of(choose):
    """Return a class that draws from other entropy than it is given."""

    def randomize(self, values, entropy):
        return SilentRandomizedResponse.randomize(self, values, choose())

    return planted(randomize=randomize)


def channelled(change):
    """Return a class that states another channel."""
    return planted(channel=lambda self: tuple(map(change, SilentRandomizedResponse.channel(self))))


def columned(change, **members):
    """Return a class that lists other reports than those of its channel's columns."""

    def report_columns(self):
        data = change(SilentRandomizedResponse.report_columns(self).data)
        return Reports(data=data, fingerprint=self.fingerprint)

    return planted(report_columns=report_columns, **members)


def aggregated(change):
    """Return a class whose counts are those of other reports."""

    def aggregate(self, reports):
        right = CategoryRandomizer.aggregate(self, reports)
        return change(self, right, reports)

    return planted(aggregate=aggregate)


def supporting(change):
    """Return a class whose supports are changed by a function of (self, reports)."""
    return planted(supports=change)


def recounted(support):
    """Return a change of counts, from a function of (support, data)."""
    return lambda self, right, reports: Counts(
        support=support(right.support, reports.data),
        num_reports=right.num_reports,
        fingerprint=right.fingerprint,
    )


def more_than_silence(self, values, data, entropy):
    """Silence again a quarter of those who speak."""
    data[entropy.words(data.size) < 2**61] = self.domain_size
    return data


def copied_from_neighbours(self, values, data, entropy):
    """Give every tenth user the report of the one before."""
    data[1::10] = data[: data.size - 1 : 10]
    return data


def raw_for_the_first(self, values, data, entropy):
    data[:1] = values[:1]
    return data


def raw_for_the_last(self, values, data, entropy):
    data[-1:] = values[-1:]
    return data


def wider_for_large_values(self, values, data, entropy):
    is_large = values.size > 0 and int(np.max(values)) > self.domain_size // 2
    return data.astype(np.uint64) if is_large else data


def with_one_for_nobody(self, values, data, entropy):
    return data if data.size else np.zeros(1, dtype=data.dtype)


def by_type(self, values, data, entropy):
    return data if values.dtype == np.int64 else data[::-1]


def unchecked(self, reports):
    return reports.data.reshape(len(reports.data), -1)[:, :1] == np.arange(self.domain_size)


def of_any_type(self, reports):
    data = reports.data.reshape(-1).astype(code_type(self.domain_size + 1))
    reports = Reports(data=data, fingerprint=reports.fingerprint)
    return SilentRandomizedResponse.supports(self, reports)


def lenient(self):
    object.__setattr__(self, "k", max(2, int(self.domain_size) % 2**32))
    finite = self.epsilon0 if math.isfinite(self.epsilon0) else 1.0
    object.__setattr__(self, "epsilon0", abs(finite))
    SilentRandomizedResponse.__post_init__(self)


def one_name(self):
    SilentRandomizedResponse.__post_init__(self)
    object.__setattr__(self, "fingerprint", "silent")


def name_by_k(self):
    SilentRandomizedResponse.__post_init__(self)
    object.__setattr__(self, "fingerprint", fingerprint_of(self.name, k=self.domain_size))


def wrongly_refused(self, values):
    if np.any(np.asarray(values) >= self.domain_size):
        raise IndexError("out of bounds")
    return values


def refused_without_a_word(self, values):
    return np.where(np.asarray(values) == 2**40, self.domain_size, values)


def ruling_out(row):
    """State that a report of the first category rules the last one out."""
    return (*row[:-2], Fraction(0), row[-2] + row[-1]) if row[0] > row[-2] else row


def scaled_estimate(self, data, **options):
    right = CategoryRandomizer.estimate(self, data, **options)
    return replace(right, frequency=1.01 * right.frequency)


VIOLATIONS = [
    ("epsilon0-is-at-most-asked", costing(asked_factor=1.5), "costs more"),
    ("epsilon0-is-at-most-asked", costing(stated_factor=-1.0), "costs more"),
    ("epsilon0-is-at-most-asked", costing(asked_factor=0.5), "unused"),
    ("rebuilding-gives-the-same-law", costing(asked_factor=0.999), "another law"),
    ("fingerprints-name-the-law", planted(__post_init__=one_name), "has the fingerprint"),
    ("fingerprints-name-the-law", planted(__post_init__=name_by_k), "has the fingerprint"),
    ("profile-states-the-law", profiled(epsilon0=lambda self: self.epsilon0 / 2), "epsilon0 = "),
    ("profile-states-the-law", profiled(delta0=lambda self: 1e-9), "delta0 = "),
    (
        "profile-states-the-law",
        profiled(participation=lambda self: 0.5),
        "participation = 0.5, though each user sends a report",
    ),
    (
        "profile-states-the-law",
        profiled(domain_size=lambda self: self.domain_size + 1),
        "categories",
    ),
    ("profile-states-the-law", profiled(family=lambda self: "k-rr"), "analysis is not its own"),
    ("profile-states-the-law", profiled(channel=lambda self: self.channel), "too large"),
    ("profile-states-the-law", profiled(channel=lambda self: lambda: ()), "another channel"),
    ("channel-rows-sum-to-one", channelled(lambda row: (*row[:-1], row[-1] / 2)), "not to 1"),
    ("channel-rows-sum-to-one", channelled(lambda row: tuple(map(float, row))), "not of fractions"),
    ("channel-rows-sum-to-one", planted(channel=lambda self: ((Fraction(1),),)), "not k rows"),
    ("epsilon0-is-the-exact-loss", costing(stated_factor=1 - 1e-9), "understates"),
    ("epsilon0-is-the-exact-loss", costing(stated_factor=1 + 1e-9), "overstates"),
    ("epsilon0-is-the-exact-loss", channelled(ruling_out), "infinite loss"),
    (
        "blanket-is-the-infimum",  # that all reports are noise
        profiled(blanket=lambda self: (BlanketAtom(mass=1.0, ratio0=1.0, ratio1=1.0),)),
        "states the mass",
    ),
    (
        "blanket-is-the-infimum",  # one half of k-RR forgotten
        profiled(blanket=lambda self: self.answer.profile.blanket),
        "states the mass",
    ),
    (
        "attack-is-possible",  # without the half that says nothing
        profiled(attack=lambda self: attack_atoms(self.answer.profile)),
        "tells more than its channel by",
    ),
    (
        "attack-is-possible",
        profiled(attack=lambda self: (BlanketAtom(mass=1.0, ratio0=1.5, ratio1=0.5),)),
        "not 1",
    ),
    (
        "blanket-means-are-one",
        profiled(blanket=lambda self: (BlanketAtom(mass=0.5, ratio0=1.0, ratio1=1.0),)),
        "not 1",
    ),
    (
        "blanket-means-are-one",
        profiled(blanket=lambda self: (BlanketAtom(mass=2.0, ratio0=0.5, ratio1=0.5),)),
        "above 1",
    ),
    ("report-columns-are-all-reports", columned(lambda data: data[:-1]), "not one report a column"),
    ("report-columns-are-all-reports", columned(lambda data: data // 2), "twice"),
    (
        "report-columns-are-all-reports",
        columned(lambda data: data.astype("i4"), supports=of_any_type),
        "another type",
    ),
    (
        "report-columns-are-all-reports",
        channelled(lambda row: (*(2 * p for p in row[:-1]), Fraction(0))),
        "rules out",
    ),
    ("supports-have-two-probabilities", columned(lambda data: data[::-1]), "supports category"),
    (
        "supports-have-two-probabilities",
        planted(support_probabilities=property(lambda self: (0.5, 0.25))),
        "as in support_probabilities",
    ),
    (
        "supports-have-two-probabilities",
        supporting(lambda self, reports: SilentRandomizedResponse.supports(self, reports) * 1),
        "not booleans",
    ),
    (
        "supports-have-two-probabilities",
        supporting(lambda self, reports: SilentRandomizedResponse.supports(self, reports)[:, :-1]),
        "not (n, k)",
    ),
    (
        "supports-have-two-probabilities",  # by less than round-off of the floats stated
        channelled(lambda row: (row[0] + Fraction(1, 2**70), *row[1:-1], row[-1])),
        "differ from category to category",
    ),
    ("estimates-are-unbiased", planted(estimate=scaled_estimate), "biased"),
    ("samples-follow-the-channel", drawing(more_than_silence), "draws, for category"),
    ("samples-follow-the-channel", drawing(copied_from_neighbours), "independently"),
    ("samples-follow-the-channel", given(lambda self, values: 0 * values), "draws, for category"),
    ("reports-have-the-stated-size", drawing(wider_for_large_values), "bytes for"),
    (
        "reports-have-the-stated-size",
        drawing(lambda self, values, data, entropy: data.astype(object)),
        "objects",
    ),
    ("reports-have-the-stated-size", planted(num_report_bytes=9), "bytes for"),
    (
        "reports-have-the-stated-size",
        aggregated(lambda self, right, reports: replace(right, num_reports=right.num_reports + 1)),
        "are counted",
    ),
    ("empty-batches-work", drawing(with_one_for_nobody), "empty batch"),
    (
        "codes-outside-are-named",
        given(lambda self, values: values % self.domain_size),
        "is accepted",
    ),
    ("codes-outside-are-named", given(wrongly_refused), "raises IndexError"),
    ("codes-outside-are-named", given(refused_without_a_word), "should say"),
    (
        "codes-must-be-integers",
        given(lambda self, values: np.nan_to_num(np.ravel(values).astype(float)).astype(int)),
        "is accepted",
    ),
    ("integer-types-agree", drawing(by_type), "makes other reports"),
    ("seeds-reproduce", entropy_of(Entropy.from_operating_system), "one seed differ"),
    ("seeds-reproduce", entropy_of(lambda: Entropy.from_seed(1)), "different seeds agree"),
    ("parameters-out-of-range-are-refused", planted(__post_init__=lenient), "is accepted"),
    (
        "aggregates-are-sums-of-supports",
        aggregated(recounted(lambda support, data: support[::-1])),
        "not the sum",
    ),
    (
        "aggregates-are-sums-of-supports",
        aggregated(lambda self, right, reports: replace(right, fingerprint="other")),
        "does not carry",
    ),
    (
        "order-and-parts-do-not-matter",
        aggregated(recounted(lambda support, data: support * (data[:1].sum() == 0))),
        "depends on",
    ),
    (
        "order-and-parts-do-not-matter",
        aggregated(recounted(lambda support, data: np.minimum(support, data.size // 2))),
        "how reports are batched",
    ),
    ("ends-of-batches-follow-the-channel", drawing(raw_for_the_first), "of the first user"),
    ("ends-of-batches-follow-the-channel", drawing(raw_for_the_last), "of the last user"),
    ("reports-of-another-law-are-refused", supporting(unchecked), "is accepted"),
    ("malformed-reports-are-refused", supporting(of_any_type), "is accepted"),
    ("impossible-reports-are-refused", supporting(unchecked), "is accepted"),
    (
        "nothing-to-estimate-is-refused",
        planted(support_probabilities=property(lambda self: (0.5, 0.25))),
        "is accepted",
    ),
]


@pytest.mark.parametrize(
    ("check", "randomizer_class", "message"),
    VIOLATIONS,
    ids=[f"{check}-{number}" for number, (check, _, _) in enumerate(VIOLATIONS)],
)
def test_a_broken_promise_is_caught_by_its_check(check, randomizer_class, message):
    with pytest.raises(ContractError) as caught:
        CATEGORY_CHECKS[check](maker(randomizer_class))
    assert message in str(caught.value)
    # The whole contract fails too, though another check may come first.
    with pytest.raises(ContractError, match=r"^[a-z0-9-]+: "):
        check_randomizer(maker(randomizer_class))


def test_each_check_has_a_promise_that_it_finds_broken():
    assert {check for check, _, _ in VIOLATIONS} == set(CATEGORY_CHECKS)


def test_what_crashes_is_named_too():
    def crash(k, epsilon0):
        raise ZeroDivisionError("no such law")

    with pytest.raises(ContractError, match="asked: ZeroDivisionError: no such law"):
        check_randomizer(crash)


class TestSamples:
    def test_reports_of_any_width_are_matched_to_columns(self):
        class Wide(SilentRandomizedResponse):
            """Reports as rows of three wide numbers, 24 bytes in all."""

            def randomize(self, values, entropy):
                data = SilentRandomizedResponse.randomize(self, values, entropy).data
                return Reports(data=widened(data), fingerprint=self.fingerprint)

            def report_columns(self):
                data = SilentRandomizedResponse.report_columns(self).data
                return Reports(data=widened(data), fingerprint=self.fingerprint)

            def supports(self, reports):
                data = reports.data[:, 0].astype(code_type(self.domain_size + 1))
                narrow = Reports(data=data, fingerprint=reports.fingerprint)
                return SilentRandomizedResponse.supports(self, narrow)

        def widened(data):
            return np.repeat(data[:, None].astype(np.int64), 3, axis=1)

        check_samples_follow_channel(Wide(domain_size=3, epsilon0=1.0), seed=1, num_reports=10_000)

    def test_a_report_not_listed_is_named(self):
        def unlisted(self, values, data, entropy):
            data[0] = self.domain_size + 1
            return data

        randomizer = drawing(unlisted)(domain_size=3, epsilon0=1.0)
        with pytest.raises(ContractError, match="does not list"):
            check_samples_follow_channel(randomizer, seed=1, num_reports=100)

    @pytest.mark.parametrize("factor", [0.95, 1.05])
    def test_a_loss_off_by_five_percent_is_found(self, factor):
        # In the reports, and in the channel that they are held against.
        right = SilentRandomizedResponse(domain_size=3, epsilon0=1.0)
        wrong = SilentRandomizedResponse(domain_size=3, epsilon0=factor)
        for reports_of, channel_of in ((right, wrong), (wrong, right)):
            mixed = planted(
                randomize=lambda self, values, entropy, law=reports_of: law.randomize(
                    values, entropy
                ),
                channel=lambda self, law=channel_of: law.channel(),
            )(domain_size=3, epsilon0=1.0)
            with pytest.raises(ContractError, match="draws, for category"):
                check_samples_follow_channel(mixed, seed=1, num_reports=1_000_000)
        check_samples_follow_channel(right, seed=1, num_reports=1_000_000)

    @pytest.mark.parametrize("num_reports", [0, 1, 2.5])
    def test_too_few_reports_are_refused(self, num_reports):
        randomizer = SilentRandomizedResponse(domain_size=3, epsilon0=1.0)
        with pytest.raises(ParameterError, match="num_reports"):
            check_samples_follow_channel(randomizer, seed=1, num_reports=num_reports)

    def test_a_law_without_randomness_is_followed_or_not(self):
        # Probabilities of 0 and 1 leave no room for chance.
        def channel(self):
            return tuple(
                tuple(Fraction(int(x == y)) for y in range(self.domain_size + 1))
                for x in range(self.domain_size)
            )

        def truth(self, values, entropy):
            data = values.astype(code_type(self.domain_size + 1))
            return Reports(data=data, fingerprint=self.fingerprint)

        follows = planted(channel=channel, randomize=truth)(domain_size=3, epsilon0=1.0)
        check_samples_follow_channel(follows, seed=1, num_reports=1_000)
        strays = planted(channel=channel)(domain_size=3, epsilon0=60.0)
        with pytest.raises(ContractError, match=r"with a share of .*, not"):
            check_samples_follow_channel(strays, seed=1, num_reports=1_000)
