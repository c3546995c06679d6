"""Arrangements of reports: what they guarantee, what is planned, which rows are released."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest

import shuffledp as sdp
from shuffledp import groups
from shuffledp.accounting.guarantees import guarantee_for
from shuffledp.collection.leakage import leakage_of
from shuffledp.collection.plan import plan as make_plan
from shuffledp.collection.run import run as run_plan
from shuffledp.collection.shuffling import UNIFORM, Concealment
from shuffledp.collection.uniform_shuffler import InMemoryShuffle
from shuffledp.core.bound import Guarantee
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, InfeasibleTargetError, ParameterError, PlanWarning
from shuffledp.groups.displacement import DisplacementShuffler
from shuffledp.groups.facts import DisplacementFacts, amplification_cautions
from shuffledp.groups.grouping import Grouping
from shuffledp.groups.groups import Groups
from shuffledp.groups.mallows import MallowsShuffler
from shuffledp.groups.privacy import displaced_epsilon
from shuffledp.groups.shuffling import DisplacementShuffling, GroupShuffling, rows_writer
from shuffledp.report import page_html

QUESTION = sdp.Categories(domain=["yes", "no"])
PLACES = np.arange(60) // 3
ANSWERS = ["yes" if place < 10 else "no" for place in PLACES]
LAW = sdp.randomizers.KRandomizedResponse(domain_size=2, epsilon0=1.0).profile
GUARANTEE = guarantee_for(LAW, 60, delta=1e-6)


def arrangement(alpha=4.0, distance="kendall"):
    groups = Groups.from_distance(PLACES, 1, metric="absolute")
    return GroupShuffling(shuffler=MallowsShuffler.for_groups(groups, alpha, distance=distance))


def setting(within, randomizer="k-rr", epsilon0=2.0):
    return make_plan(
        QUESTION,
        num_users=60,
        randomizer=randomizer,
        epsilon0=epsilon0,
        delta=1e-6,
        shuffling=within,
    )


def test_alpha_zero_is_a_uniform_shuffle_and_alpha_infinite_none_at_all():
    law = sdp.randomizers.KRandomizedResponse(domain_size=2, epsilon0=1.0).profile
    uniform = UNIFORM.guarantee(law, 60, delta=1e-6)
    assert uniform == guarantee_for(law, 60, delta=1e-6)
    found = arrangement(0.0).guarantee(law, 60, delta=1e-6)
    assert found.epsilon_upper == uniform.epsilon_upper
    nothing = arrangement(float("inf")).guarantee(law, 60, delta=1e-6)
    assert nothing.epsilon_upper == pytest.approx(law.epsilon0, rel=1e-5)
    between = arrangement(1.0).guarantee(law, 60, delta=1e-6)
    assert uniform.epsilon_upper <= between.epsilon_upper <= nothing.epsilon_upper


def test_groups_of_other_people_are_refused():
    law = sdp.randomizers.KRandomizedResponse(domain_size=2, epsilon0=1.0).profile
    with pytest.raises(DataError, match="59 people answered and groups were formed of 60"):
        arrangement().guarantee(law, 59, delta=1e-6)


def test_a_run_within_groups_leaves_rows_near_their_users():
    within = arrangement(float("inf"))
    seen = []
    result = run_plan(
        setting(within, epsilon0=12.0),
        ANSWERS,
        seed=1,
        shuffling=within,
        sink=lambda stream: seen.extend(np.concatenate([each.data for each in stream]).tolist()),
    )
    assert result.shuffler == "mallows"
    wrong = sum(code != (answer == "no") for code, answer in zip(seen, ANSWERS, strict=True))
    assert wrong <= 2  # each is wrong with a chance of 6e-6, and the seed is fixed


def test_a_planned_epsilon_is_met_with_the_largest_epsilon0():
    within = arrangement(1.0)
    planned = make_plan(QUESTION, num_users=60, epsilon=1.5, delta=1e-6, shuffling=within)
    assert planned.guarantee.epsilon_upper <= 1.5 <= planned.randomizer.epsilon0
    louder = setting(within, epsilon0=planned.randomizer.epsilon0 * 1.002)
    assert louder.guarantee.epsilon_upper > 1.5


def test_noise_that_drowns_everything_is_refused():
    with pytest.raises(InfeasibleTargetError, match="lower alpha"):
        make_plan(QUESTION, num_users=60, epsilon=0.01, delta=1e-6, shuffling=arrangement())


def test_repeated_collections_are_uniform():
    asked = {"num_users": 60, "epsilon": 4.0, "delta": 1e-6, "randomizer": "k-rr"}
    plan = sdp.plan(sdp.Categories(["yes", "no"]), rounds=2, **asked)
    with pytest.raises(ParameterError, match="rounds = 2"):
        run_plan(plan, ANSWERS, shuffling=arrangement())


def write_rows(tmp_path, name, randomizer="k-rr", public=("place",)):
    within, table = arrangement(), tmp_path / name
    frame = pl.DataFrame({"place": PLACES, "answer": ANSWERS})
    frame.write_csv(table) if table.suffix == ".csv" else frame.write_parquet(table)
    chosen = setting(within, randomizer)
    sink = rows_writer(table, tmp_path, column="answer", public=public, setting=chosen)
    return table, chosen, within, sink


@pytest.mark.parametrize(
    ("name", "randomizer", "written"),
    [
        ("a.csv", "k-rr", "rows.csv"),
        ("a.parquet", "k-rr", "rows.parquet"),
        ("a.csv", "optimized-unary", "rows.parquet"),  # a report is a list, which CSV cannot hold
    ],
)
def test_rows_come_in_the_format_of_the_table_where_it_can_hold_them(
    tmp_path, name, randomizer, written
):
    _, chosen, within, sink = write_rows(tmp_path, name, randomizer)
    run_plan(chosen, ANSWERS, shuffling=within, sink=sink)
    path = tmp_path / written
    rows = pl.read_csv(path) if written.endswith("csv") else pl.read_parquet(path)
    assert rows.columns == ["place", "answer"]
    # What a CSV file says is text, and is kept as it is.
    assert rows["place"].cast(pl.Int64).to_list() == PLACES.tolist()


def test_nothing_public_leaves_reports_only(tmp_path):
    _, chosen, within, sink = write_rows(tmp_path, "a.csv", public=())
    run_plan(chosen, ANSWERS, shuffling=within, sink=sink)
    assert pl.read_csv(tmp_path / "rows.csv").columns == ["answer"]


def test_a_table_that_changes_meanwhile_is_noticed(tmp_path):
    table, chosen, within, sink = write_rows(tmp_path, "a.csv")
    pl.DataFrame({"place": [1], "answer": ["yes"]}).write_csv(table)
    with pytest.raises(DataError, match="changed while it was being read"):
        run_plan(chosen, ANSWERS, shuffling=within, sink=sink)


def test_private_answers_are_no_public_column(tmp_path):
    with pytest.raises(ParameterError, match="private"):
        write_rows(tmp_path, "a.csv", public=("answer",))


def facts_of(distance, tmp_path, alpha=4.0, profile=LAW):
    table = tmp_path / "survey.csv"
    pl.DataFrame({"place": PLACES}).write_csv(table)
    opened = Grouping(by=("place",), radius=1).open(table)
    shuffler = MallowsShuffler.for_groups(opened.groups, alpha, distance=distance)
    within = GroupShuffling(shuffler=shuffler)
    return within.facts(profile, GUARANTEE, entropy=Entropy.from_seed(1))


@pytest.mark.parametrize("distance", ["kendall", "hamming", "cayley"])
def test_facts_are_those_of_the_groups(distance, tmp_path):
    facts = facts_of(distance, tmp_path)
    assert (facts.smallest_group, facts.median_group, facts.largest_group) == (6, 9, 9)
    assert facts.num_groups == 20
    assert facts.sensitivity == {"kendall": 36, "hamming": 9, "cayley": 8}[distance]
    assert facts.theta * facts.sensitivity <= 4.0
    assert [each.subset_size for each in facts.reidentification] == [1, 2]
    assert 0.0 <= facts.preserved <= 1.0


def test_no_reidentification_bound_where_epsilon0_may_be_exceeded(tmp_path):
    approximate = sdp.LocalProfile(epsilon0=1.0, delta0=1e-9)
    assert facts_of("hamming", tmp_path, profile=approximate).reidentification == ()


def test_too_many_people_to_simulate_get_no_preservation(tmp_path, monkeypatch):
    monkeypatch.setattr("shuffledp.groups.shuffling._MOST_SIMULATED", 59)
    assert facts_of("kendall", tmp_path).preserved == 0.0


def test_nothing_moves_at_an_infinite_alpha(tmp_path):
    facts = facts_of("kendall", tmp_path, alpha=float("inf"))
    assert facts.mean_displacement == 0.0
    assert facts.preserved == 1.0


def test_the_simulated_displacement_is_near_that_of_a_uniform_shuffle(tmp_path):
    """Two places drawn uniformly of n are (n^2 - 1) / (3 n) apart on average."""
    facts = facts_of("kendall", tmp_path, alpha=0.0)
    assert facts.mean_displacement == pytest.approx((60**2 - 1) / (3 * 60), rel=0.1)


def displaced(alpha=4.0, places=PLACES, radius=1):
    groups = Groups.from_distance(places, radius, metric="absolute")
    return DisplacementShuffling(
        shuffler=DisplacementShuffler.for_groups(groups, alpha, coordinates=places)
    )


def test_noise_on_places_has_the_guarantee_of_whom_the_fewest_hide():
    many = np.arange(3_000)
    within = displaced(0.01, many, 2)
    found = within.guarantee(LAW, 3_000, delta=1e-6)
    crowd = float(within.shuffler.crowds_lower().min())
    assert found.epsilon == displaced_epsilon(
        LAW, num_users=3_000, expected_crowd=crowd, delta=1e-6
    )
    uniform = UNIFORM.guarantee(LAW, 3_000, delta=1e-6)
    assert uniform.epsilon_upper < found.epsilon_upper < 0.5
    everybody = displaced(0.0).guarantee(LAW, 60, delta=1e-6)
    assert everybody.epsilon_upper == UNIFORM.guarantee(LAW, 60, delta=1e-6).epsilon_upper
    with pytest.raises(DataError, match="59 people answered and groups were formed of 60"):
        displaced().guarantee(LAW, 59, delta=1e-6)


def test_a_run_with_noise_on_places_leaves_rows_near_their_users():
    within = displaced(float("inf"))
    seen = []
    result = run_plan(
        setting(within, epsilon0=12.0),
        ANSWERS,
        seed=1,
        shuffling=within,
        sink=lambda stream: seen.extend(np.concatenate([each.data for each in stream]).tolist()),
    )
    assert result.shuffler == "displacement"
    wrong = sum(code != (answer == "no") for code, answer in zip(seen, ANSWERS, strict=True))
    assert wrong <= 2  # each is wrong with a chance of 6e-6, and the seed is fixed


def test_guesses_after_noise_on_places_are_bounded_by_who_hides():
    near, far = (
        leakage_of(run_plan(setting(within), ANSWERS, seed=1, shuffling=within)).accounts
        for within in (displaced(40.0), displaced(0.02))
    )
    for close, wide in zip(near, far, strict=True):
        assert 0.5 <= wide.both.upper < close.both.upper <= close.randomizer.upper + 1e-9
    assert far[0].both.method == "crowd"
    uniform = run_plan(setting(displaced(0.0)), ANSWERS, seed=1, shuffling=displaced(0.0))
    assert leakage_of(uniform).accounts[0].both.gap < 1e-9


def facts_in(shuffler):
    within = DisplacementShuffling(shuffler=shuffler)
    return within.facts(LAW, GUARANTEE, entropy=Entropy.from_seed(2))


def test_facts_of_noise_on_places_are_in_the_unit_of_the_places(tmp_path):
    generator = Entropy.from_seed(4).generator()
    table = tmp_path / "towns.csv"
    frame = pl.DataFrame({"lat": 48 + generator.random(80), "lon": 2 + generator.random(80)})
    frame.write_csv(table)
    opened = Grouping(by=("lat", "lon"), metric="haversine", group_size=4).open(table)
    shuffler = opened.shuffler(4.0, name="displacement")
    facts = facts_in(shuffler)
    assert isinstance(facts, DisplacementFacts)
    assert facts.unit == "m"
    assert facts.theta * facts.sensitivity == pytest.approx(4.0, rel=1e-9)
    assert 1 / facts.theta == pytest.approx(shuffler.scale)
    # Noise of mean 3 b in space, of which the surface takes a part.
    assert 0.3 * shuffler.scale < facts.mean_displacement < 4 * shuffler.scale
    crowds = shuffler.crowds_lower()
    assert facts.expected_crowd[0] == crowds.min()
    assert list(facts.expected_crowd) == sorted(facts.expected_crowd)
    assert 0.0 <= facts.preserved <= 1.0


def test_kendall_says_that_it_hardly_amplifies(tmp_path):
    table = tmp_path / "survey.csv"
    pl.DataFrame({"place": range(3_000)}).write_csv(table)
    opened = Grouping(by=("place",), group_size=3).open(table)
    law = sdp.randomizers.KRandomizedResponse(domain_size=2, epsilon0=1.0).profile
    said = {}
    for name, distance in (("mallows", "kendall"), ("mallows", "hamming"), ("displacement", "")):
        shuffler = opened.shuffler(4.0, name=name, distance=distance)
        kind = DisplacementShuffling if name == "displacement" else GroupShuffling
        within = kind(shuffler=shuffler)
        guarantee = within.guarantee(law, 3_000, delta=1e-6)
        facts = within.facts(law, guarantee, entropy=Entropy.from_seed(2))
        said[name, distance] = amplification_cautions(guarantee, law.epsilon0, facts)
    (kendall,) = said["mallows", "kendall"]
    assert "Kendall's distance gives next to no central amplification" in kendall
    assert "The displacement shuffler" in kendall
    assert said["mallows", "hamming"] == ()
    (few,) = said["displacement", ""]
    assert "few others nearby" in few


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversedFacts:
    """What is said of the shuffle below."""

    kind: ClassVar[str] = "reversed"
    num_reversed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversedShuffling:
    """A shuffle of one's own, which hides nothing: the order is turned round."""

    name: ClassVar[str] = "reversed"
    remedy: ClassVar[str] = "choose another shuffle"

    def guarantee(self, profile, num_users, *, delta, with_lower=True):
        del with_lower
        bound = guarantee_for(profile, 1, delta=delta).bound
        return Guarantee(epsilon=bound, delta=delta, num_users=num_users)

    def stage(self, *, entropy, **_):
        return InMemoryShuffle(self, entropy)

    def shuffle(self, reports, entropy):
        del entropy
        return reports[::-1]

    def facts(self, profile, guarantee, *, num_released, **_):
        del profile, guarantee
        return ReversedFacts(num_reversed=num_released)

    def cautions(self, profile, guarantee, facts):
        return (f"All {facts.num_reversed} reports can be told apart.",)

    def leakage(self):
        # The place of a report is known for certain.
        return Concealment(places=lambda: np.eye(1, 60)[0])


def test_a_shuffle_of_ones_own_needs_no_change_elsewhere():
    result = run_plan(setting(ReversedShuffling()), ANSWERS, seed=1)
    assert result.guarantee.epsilon_upper == pytest.approx(2.0, rel=1e-6)
    assert result.to_json_dict()["reversed"] == {"num_reversed": 60}
    assert "All 60 reports can be told apart." in result.warnings
    uninformed = leakage_of(result).accounts[0]
    told = np.exp(2.0) / (1.0 + np.exp(2.0))
    assert uninformed.both.upper == pytest.approx(told, rel=1e-9)
    assert "All 60 reports can be told apart." in page_html(result)


TARGET = {"epsilon": 1.0, "delta": 1e-6}


def planned(**how):
    return sdp.plan(sdp.Categories(["yes", "no"]), num_users=1_000, **{**TARGET, **how})


def test_a_uniform_shuffle_keeps_its_law():
    plan = planned()
    law = sdp.ShuffledRelease(profile=plan.randomizer.profile, num_users=1_000)
    assert plan.release() == law
    twice = (plan.release() * 2).epsilon(delta=1e-6).upper
    stated = sdp.StatedRelease(**TARGET) * 2
    assert 1.0 < twice < stated.epsilon(delta=2e-6).upper


def test_a_result_is_released_for_the_users_that_there_were():
    with pytest.warns(PlanWarning):
        result = sdp.run(planned(), ["yes", "no"] * 50, seed=1)
    assert result.release().num_users == 100


def test_dummies_of_a_shuffler_need_one_user():
    plan = planned(dummies="shuffler", max_epsilon0=2.0)
    assert (plan.release().num_users, plan.release().dummies) == (1, plan.dummies[0])


@pytest.mark.slow
def test_rounds_and_other_shuffles_are_what_they_state():
    houses = [user // 4 for user in range(100)]
    near = groups.Groups.from_distance(houses, radius=1, metric="absolute")
    shuffler = groups.MallowsShuffler.for_groups(near, alpha=4, distance="hamming")
    within = groups.GroupShuffling(shuffler=shuffler)
    for plan in (
        planned(rounds=3),
        sdp.plan(
            sdp.Categories(["yes", "no"]), num_users=100, epsilon0=1.0, delta=1e-3, shuffling=within
        ),
    ):
        made = plan.release()
        assert made == sdp.StatedRelease(
            epsilon=plan.guarantee.epsilon_upper, delta=plan.guarantee.delta_upper
        )


def test_an_error_names_the_series():
    answers = pd.Series(["yes", "maybe"], name="smokes")
    with pytest.raises(sdp.ShuffledpError, match="column 'smokes' of values"):
        sdp.run(planned(), answers, seed=1)
