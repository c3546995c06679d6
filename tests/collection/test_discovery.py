"""Texts that nobody listed: found and false ones, and the guarantee of all rounds together."""

import codecs
import contextlib
import dataclasses
import importlib
import io
import itertools
import json
import math
import re
from collections import defaultdict
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import binom

import shuffledp as sdp
from shuffledp.amplification.registry import account_delta
from shuffledp.collection import discovery
from shuffledp.collection.discovery import discover
from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.collection.questions.rounds import OneRound
from shuffledp.collection.run import collect
from shuffledp.collection.source.tables import Reading, source_of_values
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import DataError, ParameterError, PlanWarning
from shuffledp.core.profile import LocalProfile
from shuffledp.randomizers import make_randomizer
from shuffledp.report.explain import FORMS, read_record
from shuffledp.report.formatting import odds_factor

#: Of all tests of this module together: four of 1e-10 each.
FALSE_POSITIVE_RATE = 4e-10
_EACH = 1e-10

NUM_USERS = 4_000
ASKED = sdp.HeavyHitters(max_bytes=3, most=12, bits=8)


@pytest.fixture(scope="module")
def plan():
    return sdp.plan(ASKED, num_users=NUM_USERS, epsilon=2.0, delta=1e-6)


@pytest.fixture(scope="module")
def among_dummies():
    how = {"epsilon": 2.0, "delta": 1e-6, "dummies": "shuffler", "no_local_noise": True}
    return sdp.plan(sdp.HeavyHitters(max_bytes=3, most=6, bits=4), num_users=NUM_USERS, **how)


def read(plan, texts):
    """Return texts in memory as a column, too long ones as no text."""
    source = source_of_values("text", texts)
    return plan.question.read(dataclasses.replace(source, reading=Reading(other=True)))


def found_in(plan, texts, seed):
    """Return the texts that one collection finds, and their estimates."""
    column = read(plan, texts)
    entropy = sdp.Entropy.from_seed(seed)
    gather = partial(collect, plan.randomizer, dummies=plan.dummies, entropy=entropy)
    done, estimates, _ = discover(plan, column, entropy, gather, EstimateOptions())
    return done.question.found, estimates


def crowd(plan, share):
    """Return texts of which "日" has the share, and all others are different, or too long.

    So many prefixes, of a few users each, would be more than the most that dummies allow here.
    """
    holders = math.ceil(share * NUM_USERS)
    if plan.dummies:
        return ["日"] * holders + ["too long"] * (NUM_USERS - holders)
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    rest = itertools.islice(map("".join, itertools.product(digits, repeat=3)), NUM_USERS - holders)
    return ["日"] * holders + list(rest)


def test_rounds_of_a_simulation_draw_words_of_their_own(plan):
    column = read(plan, crowd(plan, 0.3))
    whole, begun = sdp.Entropy.from_seed(1), []

    def gather(blocks, *, num_users, entropy=whole):
        begun.append(entropy.for_block(0).root)
        return collect(plan.randomizer, blocks, num_users=num_users, entropy=entropy)

    discover(plan, column, whole, gather, EstimateOptions())
    assert len(begun) > 1
    assert len(set(begun)) == len(begun)


def test_users_and_dummies_of_all_rounds_are_released(among_dummies, monkeypatch):
    monkeypatch.setattr(discovery, "_BLOCK", NUM_USERS - 1)  # the last user is a block alone
    column = among_dummies.question.read(source_of_values("text", ["ab"] * NUM_USERS))
    entropy, done = sdp.Entropy.from_seed(1), []

    def gather(*values, **how):
        done.append(
            collect(among_dummies.randomizer, *values, dummies=among_dummies.dummies, **how)
        )
        return done[-1]

    *_, released = discover(among_dummies, column, entropy, gather, EstimateOptions())
    rounds = among_dummies.question.num_rounds
    assert [each.num_reports for each in done] == [NUM_USERS] * rounds
    dummies = sum(each.num_dummies for each in done)
    assert released == (NUM_USERS * rounds, dummies, NUM_USERS)


# ---------------------------------------------------------------- found, and not found
@pytest.mark.slow
@pytest.mark.parametrize("which", ["plan", "among_dummies"])
def test_what_is_found_and_what_is_not(which, request):
    plan = request.getfixturevalue(which)
    how = plan.randomizer, NUM_USERS, plan.dummies
    share = plan.question.prospects(*how)["discovery"]["found_share"]
    texts = crowd(plan, share)
    truth = share_of(texts)
    num_runs, num_found, num_false, num_off = 200, 0, 0, 0
    for seed in range(num_runs):
        found, estimates = found_in(plan, texts, seed)
        num_found += "日" in found
        num_false += any(text not in truth for text in found)
        shares = np.array([truth.get(text, 0.0) for text in found])
        num_off += bool(((shares < estimates.lower) | (shares > estimates.upper)).any())
    assert binom.cdf(num_found, num_runs, 0.95) > _EACH
    assert binom.sf(num_false - 1, num_runs, 0.05) > _EACH
    # Wilson's intervals hold about as often as they say; the negative control is below.
    assert binom.sf(num_off - 1, num_runs, 0.1) > _EACH


def share_of(texts):
    """Return the share of users with each text."""
    return {text: texts.count(text) / len(texts) for text in set(texts)}


def test_a_text_of_a_quarter_of_the_share_is_not_found_as_often(plan):
    share = ASKED.prospects(plan.randomizer, NUM_USERS, ())["discovery"]["found_share"]
    found = sum("日" in found_in(plan, crowd(plan, share / 4.0), seed)[0] for seed in range(40))
    # The negative control of the test above: 0.95 would be rejected.
    assert binom.cdf(found, 40, 0.95) < _EACH


def test_popular_texts_are_found_with_their_shares(plan):
    texts = ["one", "日", "é"] * 1000 + ["a", "ab"] * 500
    found, estimates = found_in(plan, texts, 3)
    assert set(found) == {"one", "日", "é", "a", "ab"}
    truth = np.array([texts.count(text) / NUM_USERS for text in found])
    assert np.all(np.abs(estimates.frequency - truth) < 7.0 * estimates.standard_error)
    assert np.all((estimates.lower < truth) & (truth < estimates.upper))
    assert np.all(np.diff(estimates.frequency) <= 0.0)


def test_words_of_a_public_domain_text():
    """Of the Zen of Python (PEP 20, in the public domain), which Python ships as `this`."""
    with contextlib.redirect_stdout(io.StringIO()):
        zen = importlib.import_module("this")
    words = re.findall(r"[a-z]+", codecs.decode(zen.s, "rot13").lower())
    texts = words * 300
    asked = sdp.HeavyHitters(max_bytes=6, most=12, bits=12)
    plan = sdp.plan(asked, num_users=len(texts), epsilon=2.0, delta=1e-7)
    found, estimates = found_in(plan, texts, seed=5)
    assert {"is", "better", "than"} <= set(found) <= set(words)
    shares = np.array([words.count(word) / len(words) for word in found])
    assert (np.abs(estimates.frequency - shares) < 7 * estimates.standard_error).all()


def test_standard_errors_are_those_of_all_users(plan):
    texts = ["one"] * 2000 + ["two"] * 2000
    runs = [dict(zip(*with_errors(plan, texts, seed), strict=True)) for seed in range(60)]
    estimates, errors = np.array([run["one"] for run in runs]).T
    # A deviation of 60 is off by a third with a probability below 1e-3; seeds are fixed.
    assert 0.7 < estimates.std() / errors.mean() < 1.3
    assert abs(estimates.mean() - 0.5) < 5.0 * errors.mean() / math.sqrt(60)
    # Of the last round's users, drawn from all, and of their randomizers.
    users = found_in(plan, texts, 0)[1].discovery.rounds[-1].num_users
    drawn = 0.25 / users * (NUM_USERS - users) / (NUM_USERS - 1)
    p, q = plan.randomizer.support_probabilities
    noise = 0.5 * (p * (1.0 - p) + q * (1.0 - q)) / (users * (p - q) ** 2)
    assert errors.mean() == pytest.approx(math.sqrt(drawn + noise), rel=0.05)


def with_errors(plan, texts, seed):
    """Return the texts found, and pairs of their shares and errors."""
    found, estimates = found_in(plan, texts, seed)
    return found, zip(estimates.frequency, estimates.standard_error, strict=True)


def test_too_many_popular_texts_are_told(plan):
    texts = [f"{letter}x" for letter in "abcdefghijklmnopqrst"] * 200
    found, estimates = found_in(plan, texts, 4)
    assert len(found) == ASKED.most
    assert "a larger most keeps them" in estimates.cautions[0]
    dropped = sum(each.num_dropped for each in estimates.discovery.rounds)
    assert dropped >= 8


def test_simultaneous_over_all_bins_of_the_last_round(plan):
    _, estimates = found_in(plan, ["one"] * NUM_USERS, 5)
    last = estimates.discovery.rounds[-1]
    assert estimates.num_compared == last.num_bins > len(estimates.frequency)
    expected = NormalDist().inv_cdf(1.0 - 0.025 / last.num_bins)
    assert estimates.quantile == pytest.approx(expected)
    widths = (estimates.upper - estimates.lower) / estimates.standard_error
    assert widths == pytest.approx(2.0 * expected, rel=0.05)


# ---------------------------------------------------------------- a whole run
def test_a_run_finds_reports_and_says_so(plan, tmp_path):
    result = sdp.run(plan, ["one"] * 3000 + ["two"] * 1000, seed=1)
    assert result.domain == ("one", "two")
    assert any("secret coin" in each for each in plan.guarantee.bound.assumptions)
    assert any(
        "secret coin" in each for each in sdp.run(plan, ["one"] * 4000).guarantee.bound.assumptions
    )
    record = json.loads(json.dumps(result.to_json_dict()))
    assert record["discovery"]["false_probability"] == 0.05
    assert len(record["discovery"]["rounds"]) == ASKED.num_rounds
    page = result.report(tmp_path / "report.html").read_text(encoding="utf-8")
    for said in ("false texts", "found", "with probability 0.95 at least"):
        assert said in page.lower()
        assert said in str(result).lower()


def test_nothing_found_is_a_result(plan, tmp_path):
    texts = [f"{i:03d}" for i in range(500)] * 8
    asked = sdp.plan(ASKED, num_users=NUM_USERS, epsilon=0.2, delta=1e-6)
    result = sdp.run(asked, texts, seed=2)
    assert result.domain == ()
    assert "Nothing was found" in str(result)
    assert "Nothing was found" in result.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert result.to_json_dict()["estimates"] == []
    # Users with a later turn sent no report.
    sent = sum(each.num_users for each in result.estimates.discovery.rounds)
    assert result.num_shuffled == sent < NUM_USERS


@pytest.mark.slow
def test_every_round_loses_epsilon0_where_everybody_answers_all(among_dummies, tmp_path):
    how = {"epsilon": 2.0, "delta": 1e-6, "dummies": "shuffler", "max_epsilon0": 6.0}
    noisy = sdp.plan(sdp.HeavyHitters(max_bytes=2, most=2, bits=8), num_users=NUM_USERS, **how)
    rounds = noisy.question.num_rounds
    assert rounds > 1
    assert noisy.rounds == noisy.guarantee.rounds == rounds
    assert noisy.without_shuffler.epsilon0 == pytest.approx(rounds * noisy.randomizer.epsilon0)
    result = sdp.run(noisy, ["ab"] * NUM_USERS, seed=1)
    assert result.without_shuffler.epsilon0 == noisy.without_shuffler.epsilon0
    assert result.num_shuffled == rounds * NUM_USERS + result.num_dummies
    assert f"epsilon of {rounds} rounds" in str(result)
    page = result.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count(f"of {rounds} rounds") >= 3
    told = dataclasses.replace(result, collected_by="table").to_json_dict() | {"domain": ["ab"]}
    (tmp_path / "privacy.json").write_text(json.dumps(told), encoding="utf-8")
    notice = FORMS["notice"](read_record(tmp_path))
    assert odds_factor(rounds * noisy.randomizer.epsilon0) in notice
    assert among_dummies.rounds == among_dummies.question.num_rounds


def test_no_lower_end_is_stated_for_rounds_that_may_not_take_place():
    how = {"num_users": 6, "epsilon": 2.0, "delta": 0.1, "dummies": "shuffler", "max_epsilon0": 5.0}
    made = sdp.plan(sdp.HeavyHitters(max_bytes=1, most=1), **how)
    of = made.randomizer, made.num_users, made.dummies
    assert made.question.prospects(*of)["discovery"]["rounds"][0]["least_count"] > made.num_users
    found = sdp.run(made, ["a"] * 6, seed=1)
    for each in (made, found):
        assert each.guarantee.lower is each.without_dummies.lower is None
        assert each.guarantee.upper <= 2.0 < each.without_dummies.upper
    assert found.without_dummies == made.without_dummies  # of all rounds


def test_without_dummies_a_user_answers_one_round(plan):
    assert plan.rounds == plan.guarantee.rounds == 1
    assert plan.guarantee.num_users == NUM_USERS


@pytest.mark.slow
def test_a_plan_is_saved_and_loaded(plan, among_dummies, tmp_path):
    for each in (plan, among_dummies):
        loaded = sdp.Plan.load(each.save(tmp_path / "plan.json"))
        assert (loaded.question, loaded.rounds, loaded.dummies) == (
            each.question,
            each.rounds,
            each.dummies,
        )
        assert loaded.randomizer == each.randomizer
        assert loaded.guarantee.epsilon_upper == pytest.approx(each.guarantee.epsilon_upper)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"sink": list}, "sink for saved reports: heavy-hitters"),
        ({"shuffling": sdp.groups.GroupShuffling}, r"shuffling = .*: .*; leave that out"),
        ({"post_processing": ["clip"]}, "post_processing"),
    ],
)
def test_a_run_refuses_what_rounds_do_not_have(plan, more, message):
    if "shuffling" in more:
        more = {"shuffling": replaced_shuffling()}
    with pytest.raises((ParameterError, DataError), match=message):
        sdp.run(plan, ["ab"] * NUM_USERS, **more)


def replaced_shuffling():
    """Return another than the uniform shuffle."""
    from shuffledp.collection.shuffling import FinishedShuffling

    law = sdp.Guarantee(
        epsilon=1.0,
        delta=sdp.Bound(lower=None, upper=1e-6, method="", source="", assumptions=()),
        num_users=9,
    )
    return FinishedShuffling(name="other", account=lambda *_: law)


def test_dishonest_users_of_the_last_round(plan, among_dummies):
    influence = plan.randomizer.influence
    users = NUM_USERS // ASKED.num_rounds
    assert plan.largest_shift(7).tolist() == [pytest.approx(7 * influence / users)]
    alone = among_dummies.largest_shift(7).tolist()
    assert alone == [pytest.approx(7 * among_dummies.randomizer.influence / NUM_USERS)]
    result = sdp.run(plan, ["one"] * 3000 + ["two"] * 1000, seed=1)
    last = result.estimates.discovery.rounds[-1].num_users
    assert result.largest_shift(7).tolist() == [pytest.approx(7 * influence / last)] * 2


@pytest.mark.slow
@pytest.mark.parametrize("which", ["plan", "among_dummies"])
def test_as_many_liars_as_stated_have_a_false_text_found(which, request):
    plan = request.getfixturevalue(which)
    enough = plan.dishonest_prospects["forced_by"]
    assert enough == (max if plan.dummies else sum)(
        plan.question.forcing(plan.randomizer, NUM_USERS, plan.dummies)
    )
    texts, runs = ["one"] * 3000 + ["two"] * 1000, 20
    found = [sdp.run(plan, texts, seed=seed, dishonest=enough).attack for seed in range(runs)]
    assert binom.cdf(sum(each.shift > 0.0 for each in found), runs, 0.95) > _EACH
    assert {each.label for each in found} == {"!"}
    few = [sdp.run(plan, texts, seed=seed, dishonest=enough // 2).attack for seed in range(runs)]
    # The negative control: half as many would be rejected.
    assert binom.cdf(sum(each.shift > 0.0 for each in few), runs, 0.95) < _EACH


@pytest.mark.parametrize("which", ["plan", "among_dummies"])
def test_liars_who_are_many_move_a_share_by_nearly_the_largest_shift(which, request, tmp_path):
    plan = request.getfixturevalue(which)
    result = sdp.run(plan, ["one"] * 3000 + ["two"] * 1000, seed=2, dishonest=300)
    bound, users = result.largest_shift(300)[0], result.estimates.discovery.rounds[-1].num_users
    noise = 6.0 * plan.question.frequent_error(plan.randomizer, users, None, plan.dummies)
    assert 0.5 * bound < result.attack.shift < bound + noise
    page = " ".join(result.report(tmp_path / "r.html").read_text(encoding="utf-8").split())
    for said in ("here they moved !", "can have a text of theirs found", "despite 300 a text"):
        assert said in page
        assert said in " ".join(str(result).split())
    shown = result.to_json_dict()["dishonest"]
    # Rounds in which fewer bins were in use have lower counts to reach.
    assert 0.5 < shown["forced_by"] / plan.to_json_dict()["dishonest"]["forced_by"] <= 1.1
    assert shown["attack"]["shift"] == result.attack.shift


def test_a_text_of_the_stated_share_is_found_whatever_some_send(plan):
    share = plan.question.dishonest_prospects(30, plan.randomizer, NUM_USERS, ())["found_share"]
    base = ASKED.prospects(plan.randomizer, NUM_USERS, ())["discovery"]["found_share"]
    users = NUM_USERS // ASKED.num_rounds
    # The noise of a larger share is larger by little: 30 reports of a round are what is added.
    assert share - base == pytest.approx(30 * plan.randomizer.influence / users, rel=0.3)
    hidden = plan.question.dishonest_prospects(NUM_USERS, plan.randomizer, NUM_USERS, ())
    assert hidden["found_share"] is None
    words = str(sdp.plan(ASKED, num_users=NUM_USERS, epsilon=2.0, delta=1e-6, dishonest=NUM_USERS))
    assert "can keep any text from being found" in words


def test_a_result_counts_what_crowded_a_text_out():
    asked = sdp.HeavyHitters(max_bytes=1, most=2, bits=8)
    how = {"num_users": NUM_USERS, "epsilon": 2.0, "delta": 1e-6, "dummies": "shuffler"}
    plan = sdp.plan(asked, no_local_noise=True, dishonest=20, **how)
    assert plan.dishonest_prospects["found_share"] < 0.3
    assert "0.95 at least, unless too many prefixes have more" in " ".join(str(plan).split())
    few = sdp.run(plan, ["a"] * 2_000 + ["b"] * 2_000, seed=1, dishonest=20)
    assert few.dishonest_prospects["found_share"] < 0.3
    # Somebody must be crowded out, whose share is below the one that the result states.
    many = sdp.run(plan, ["a"] * 1_400 + ["b"] * 1_320 + ["c"] * 1_280, seed=1, dishonest=20)
    assert "c" not in many.domain
    assert 0.32 < many.dishonest_prospects["found_share"] < 0.37
    assert "unless too many" not in " ".join(str(many).split())


def test_a_plan_takes_the_step_with_which_it_finds_the_smallest_share():
    how = {"num_users": 50_000, "epsilon": 1.0, "delta": 1e-7, "max_epsilon0": 8.0}
    plan = sdp.plan(sdp.HeavyHitters(max_bytes=2, most=50), **how)
    shares = {}
    for bits in (4, 8, 12):
        each = sdp.plan(sdp.HeavyHitters(max_bytes=2, most=50, bits=bits), **how)
        facts = each.to_json_dict()["discovery"]
        shares[bits] = facts["found_share"]
    assert plan.question.bits == min(shares, key=shares.get)
    assert len(set(shares.values())) > 1


@pytest.mark.slow
def test_the_best_of_dummies_and_none_is_no_worse_than_none():
    how = {"num_users": 20_000, "epsilon": 1.0, "delta": 1e-8, "max_epsilon0": 1.5}
    none, best = (
        sdp.plan(sdp.HeavyHitters(max_bytes=2, most=4), dummies=each, **how)
        for each in ("none", "best")
    )
    assert (best.question, best.dummies, best.randomizer) == (none.question, (), none.randomizer)


def test_too_few_users_for_the_rounds(plan):
    with (
        pytest.warns(PlanWarning, match="299 answered"),
        pytest.raises(DataError, match="too few for 3 rounds of 100"),
    ):
        sdp.run(plan, ["ab"] * 299)


def test_rounds_are_its_own():
    with pytest.raises(ParameterError, match="rounds of its own"):
        sdp.plan(ASKED, num_users=NUM_USERS, epsilon=1.0, delta=1e-6, rounds=2)


def test_users_dummies_are_not_accounted_for_rounds():
    how = {"epsilon": 1.0, "delta": 1e-6, "dummies": "users", "no_local_noise": True}
    with pytest.raises(sdp.ShuffledpError, match="let the shuffler add them"):
        sdp.plan(ASKED, num_users=NUM_USERS, **how)


# ---------------------------------------------------------------- the guarantee, by enumeration
def hockey_stick(first, second, epsilon):
    """Return the divergence of two laws, mappings of outcomes to probabilities."""
    outcomes = first.keys() | second.keys()
    factor = math.exp(epsilon)
    return sum(max(first.get(y, 0.0) - factor * second.get(y, 0.0), 0.0) for y in outcomes)


def released(values, channel, bins, *, turns, misses=()):
    """Return the law of the multisets of two rounds; the second one's bins follow from the first.

    ``bins`` maps a text to its bin: in the first round, and for each of its outcomes. Who
    ``misses`` the second round sends nothing in it.
    """
    first, later = bins
    law = {}
    for answered in turns:
        early = [x for x, turn in zip(values, answered, strict=True) if turn == 0]
        late = [x for i, x in enumerate(values) if answered[i] == 1 and i not in misses]
        for seen, chance in multisets([channel[first[x]] for x in early]).items():
            for more, other in multisets([channel[later[seen][x]] for x in late]).items():
                key = seen, more
                law[key] = law.get(key, 0.0) + chance * other / len(turns)
    return law


def multisets(rows):
    """Return the law of the multiset of independent reports of these laws."""
    law = {(): 1.0}
    for row in rows:
        grown = {}
        for seen, chance in law.items():
            for report, each in enumerate(row):
                key = tuple(sorted((*seen, report)))
                grown[key] = grown.get(key, 0.0) + chance * each
        law = grown
    return law


def random_bins(generator, num_reports):
    """Return bins of three texts: in one round, and in another for each outcome of the first."""
    outcomes = (itertools.product(range(num_reports), repeat=m) for m in range(4))
    seen = {tuple(sorted(each)) for every in outcomes for each in every}
    maps = [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 0, 2), (0, 2, 2), (2, 2, 2)]
    later = {each: maps[generator.integers(len(maps))] for each in seen}
    return maps[generator.integers(len(maps))], later


@pytest.mark.parametrize(
    ("name", "epsilon0", "num_codings"),
    [
        ("k-rr", 1.0, 60),
        ("k-rr", 3.0, 60),
        ("hadamard-response", 2.0, 4),
        ("optimized-local-hashing", 1.0, 4),
    ],
)
def test_two_rounds_that_depend_on_each_other(name, epsilon0, num_codings):
    base = make_randomizer(name, domain_size=3, epsilon0=epsilon0)
    profile = OneRound(base).profile
    channel = [[float(each) for each in row] for row in base.channel()]
    secret = list(itertools.product((0, 1), repeat=3))
    generator = sdp.Entropy.from_seed(1).generator()
    bounds = {e: account_delta(profile, num_users=3, epsilon=e).upper for e in (0.2, 0.5, 0.9)}
    num_tried, largest = 0, 0.0
    for _ in range(num_codings):
        bins = random_bins(generator, len(channel[0]))
        others = tuple(generator.integers(3, size=2).tolist())
        laws = [released((own, *others), channel, bins, turns=secret) for own in range(3)]
        for (one, other), (epsilon, bound) in itertools.product(
            itertools.permutations(laws, 2), bounds.items()
        ):
            found = hockey_stick(one, other, epsilon)
            num_tried, largest = num_tried + 1, max(largest, found / bound)
            assert found <= bound * (1.0 + 1e-9)
    assert num_tried == num_codings * 6 * 3
    assert largest > 0.7  # the bound is not far from what is there


@pytest.mark.parametrize("epsilon0", [1.0, 3.0])
def test_rounds_that_are_known_break_the_bound(epsilon0):
    # The negative control: one user alone in the first round, which everybody knows.
    base = make_randomizer("k-rr", domain_size=3, epsilon0=epsilon0)
    bound = account_delta(OneRound(base).profile, num_users=3, epsilon=0.5).upper
    channel = [[float(each) for each in row] for row in base.channel()]
    first, later = random_bins(sdp.Entropy.from_seed(1).generator(), 3)
    bins = (0, 1, 2), dict.fromkeys(later, first)
    known = [released((own, 2, 2), channel, bins, turns=[(0, 1, 1)]) for own in range(2)]
    assert hockey_stick(*known, 0.5) > bound


def test_a_device_that_misses_a_round_breaks_the_bound():
    # The other negative control: on devices all n hide each other if each sends in every round.
    base = make_randomizer("k-rr", domain_size=3, epsilon0=1.0)
    bound = account_delta(OneRound(base).profile, num_users=6, epsilon=0.5).upper
    channel = [[float(each) for each in row] for row in base.channel()]
    bins = (0, 1, 2), defaultdict(lambda: (0, 1, 2))
    secret = list(itertools.product((0, 1), repeat=6))
    for misses, is_kept in (((), True), ((0,), False)):
        laws = [
            released((own, *(2,) * 5), channel, bins, turns=secret, misses=misses)
            for own in range(2)
        ]
        assert (hockey_stick(*laws, 0.5) <= bound) is is_kept


def test_two_rounds_among_dummies():
    law = DummyLaw.from_text("laplace:1.2:3")
    release = sdp.ShuffledRelease(profile=LocalProfile(epsilon0=math.inf), num_users=1, dummies=law)
    table = np.array(law.table, dtype=np.float64) / 2.0**64
    alone = np.append(table, 0.0)
    joint = np.einsum("a,b,c->abc", alone, alone, alone)

    def seen(text):
        """Return the law of the counts of three bins where one user has a text."""
        return np.roll(joint, 1, axis=text)

    generator = sdp.Entropy.from_seed(2).generator()
    maps = [(0, 1), (1, 2), (2, 2)]  # of the victim's two texts, for each outcome of the first
    choice = generator.choice(3, size=joint.shape)
    for epsilon in (0.5, 1.0, 2.0):
        bound = (release * 2).delta(epsilon).upper
        total = 0.0
        for place in np.ndindex(joint.shape):
            one, other = (seen(text)[place] for text in (0, 1))
            first, second = maps[choice[place]]
            late = one * seen(first) - math.exp(epsilon) * other * seen(second)
            total += np.maximum(late, 0.0).sum()
        assert 0.0 < total <= bound * (1.0 + 1e-9)
