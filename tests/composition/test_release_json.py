import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shuffledp as sdp
from oracles import profiles
from shuffledp.accounting.ledger import (
    StoredChannel,
    releases_from_json,
    releases_to_json,
    storable,
)
from shuffledp.amplification.method import HockeyStickCurve
from shuffledp.composition.composition import Composable, Composition
from shuffledp.composition.release import ShuffledRelease, StatedRelease
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily

SHARE = Fraction(2**64 // 3, 2**64)  # as drawn from words, finer than a float
ROWS = [[1 - SHARE, SHARE], [SHARE, 1 - SHARE]]


def with_channel(rows):
    return ShuffledRelease(
        profile=LocalProfile(epsilon0=1.0, family=RandomizerFamily.OTHER, channel=lambda: rows),
        num_users=10,
    )


RELEASES = [
    ShuffledRelease(epsilon0=0.1 + 0.2, num_users=10**15),
    ShuffledRelease(epsilon0=0.0, num_users=1),
    ShuffledRelease(epsilon0=math.inf, num_users=1, dummies=DummyLaw.from_text("laplace:2.0:27")),
    ShuffledRelease(epsilon0=2.0, num_users=9, dummies=DummyLaw.from_text("poisson:0.25")),
    ShuffledRelease(profile=profiles.k_rr(2.0, 4), num_users=5, sampled_from=50),
    ShuffledRelease(profile=profiles.symmetric_unary(2.0), num_users=5, participation=0.1),
    ShuffledRelease(profile=LocalProfile(epsilon0=1.0, delta0=1e-9), num_users=5),
    ShuffledRelease(
        profile=sdp.randomizers.SubsetSelection(domain_size=16, epsilon0=2.0).profile, num_users=5
    ),
    ShuffledRelease(
        profile=sdp.randomizers.KRandomizedResponse(domain_size=3, epsilon0=2.0).profile,
        num_users=5,
    ),
    StatedRelease(epsilon=1e-300, delta=5e-324),
    with_channel(ROWS),
]


@pytest.mark.parametrize("release", RELEASES, ids=repr)
def test_what_is_written_is_read_back_through_text(release):
    written = json.dumps(releases_to_json(release * 3), allow_nan=False)
    assert releases_from_json(json.loads(written)) == storable(release) * 3


@given(epsilon=st.floats(0.0, 1e300), delta=st.floats(0.0, 0.999), count=st.integers(1, 10**6))
def test_every_bit_of_a_number_is_kept(epsilon, delta, count):
    year = StatedRelease(epsilon=epsilon, delta=delta) * count
    assert releases_from_json(json.loads(json.dumps(releases_to_json(year)))) == year


def test_a_channel_is_kept_as_exact_fractions_and_compares_by_value():
    kept = storable(with_channel(ROWS) + with_channel([list(row) for row in ROWS]))
    assert len(kept.parts) == 1
    (release, times), *_ = kept.parts
    assert times == 2
    assert release.law.channel() == tuple(tuple(row) for row in ROWS)
    assert storable(kept) == kept
    assert storable(with_channel([[1.0, 0.0], [0.5, 0.5]])) != kept


def test_the_channel_of_a_family_follows_from_its_name():
    profile = sdp.randomizers.KRandomizedResponse(domain_size=3, epsilon0=2.0).profile
    assert profile.channel is not None
    ((kept, _),) = storable(ShuffledRelease(profile=profile, num_users=5)).parts
    assert kept.law.channel is None
    assert kept == ShuffledRelease(profile=profile, num_users=5)


def test_too_large_a_channel_is_refused():
    with pytest.raises(ParameterError, match="20000 entries"):
        storable(with_channel([[Fraction(1, 10_000)] * 10_000] * 2))


def test_releases_of_other_kinds_cannot_be_written():
    class Own(Composable):
        highest, failure, assumptions = 1.0, 0.0, ()

        def epsilon_alone(self, delta, *, with_lower=True):
            raise NotImplementedError

        def delta_alone(self, epsilon, *, with_lower=True):
            raise NotImplementedError

        def curve(self, delta) -> HockeyStickCurve:
            raise NotImplementedError

        def attacks(self):
            return ()

        def exact_loss(self, *, upper):
            return None

    with pytest.raises(ParameterError, match="cannot be written"):
        releases_to_json(Own())


GOOD = {"kind": "stated", "count": 1, "epsilon": 1.0, "delta": 0.0}
SHUFFLED = {
    "kind": "shuffled",
    "count": 1,
    "num_users": 5,
    "sampled_from": None,
    "participation": 1.0,
    "profile": {"epsilon0": 1.0},
}


@pytest.mark.parametrize(
    "written",
    [
        None,
        {},
        "stated",
        [None],
        [[GOOD]],
        [GOOD | {"kind": "magic"}],
        [GOOD | {"more": 1}],
        [GOOD | {"count": -1}],
        [GOOD | {"count": 1.0}],
        [GOOD | {"count": True}],
        [GOOD | {"epsilon": "1"}],
        [GOOD | {"epsilon": True}],
        [GOOD | {"epsilon": math.nan}],
        [GOOD | {"epsilon": 10**400}],
        [GOOD | {"delta": 1.5}],
        [SHUFFLED | {"num_users": 0}],
        [SHUFFLED | {"num_users": None}],
        [SHUFFLED | {"sampled_from": 4}],
        [SHUFFLED | {"participation": 0}],
        [SHUFFLED | {"profile": None}],
        [SHUFFLED | {"profile": {}}],
        [SHUFFLED | {"profile": {"epsilon0": 1.0, "family": "magic"}}],
        [SHUFFLED | {"profile": {"epsilon0": 1.0, "domain_size": 2.5}}],
        [SHUFFLED | {"profile": {"epsilon0": 1.0, "blanket": 3}}],
        [SHUFFLED | {"profile": {"epsilon0": 1.0, "blanket": [[1.0, 2.0]]}}],
        [SHUFFLED | {"profile": {"epsilon0": 1.0, "attack": [["a", 1.0, 1.0]]}}],
        [SHUFFLED | {"profile": {"epsilon0": 1.0, "attack": [[math.inf, 1.0, 1.0]]}}],
        [SHUFFLED | {"profile": {"epsilon0": 1.0, "channel": 3}}],
        [SHUFFLED | {"profile": {"epsilon0": 1.0, "channel": [["1/0"]]}}],
        [SHUFFLED | {"profile": {"epsilon0": 1.0, "channel": [["half"]]}}],
    ],
)
def test_anything_else_is_refused_in_one_line(written):
    with pytest.raises(ParameterError) as caught:
        releases_from_json(written)
    assert "\n" not in str(caught.value)


def test_the_smallest_pieces():
    assert releases_from_json([]) == Composition()
    assert releases_from_json([SHUFFLED]) == ShuffledRelease(epsilon0=1.0, num_users=5) * 1
    assert StoredChannel(((Fraction(1),),))() == ((Fraction(1),),)


def test_a_chance_of_a_report_is_kept():
    profile = LocalProfile(epsilon0=1.0, family="other", participation=0.25)
    release = ShuffledRelease(profile=profile, num_users=5) * 1
    assert releases_from_json(json.loads(json.dumps(releases_to_json(release)))) == release
