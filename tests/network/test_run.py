"""Runs through a network: rows and users, rounds chosen, estimates, holders, facts."""

import dataclasses
import json
from dataclasses import asdict

import numpy as np
import polars as pl
import pytest

import shuffledp as sdp
from graph_families import random_regular_graph
from shuffledp.accounting.guarantees import guarantee_for
from shuffledp.collection.plan import plan as make_plan
from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.collection.report_files import open_reports, reports_writer
from shuffledp.collection.run import run as run_plan
from shuffledp.collection.shuffling import UNIFORM
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, InfeasibleTargetError, ParameterError
from shuffledp.core.profile import LocalProfile
from shuffledp.network.mixing import NetworkMixing
from shuffledp.network.run import (
    NetworkPlan,
    NetworkShuffling,
    local_cautions,
    network_cautions,
    read_network,
)
from shuffledp.network.shuffler import NetworkShuffler

# Probability that correct code fails this module: four root mean squares of 1,000 errors each.
FALSE_POSITIVE_RATE = 2e-9

NUM_USERS = 90
GRAPH = random_regular_graph(NUM_USERS, 8, Entropy.from_seed(1))
QUESTION = sdp.Categories(domain=["yes", "no"])
ANSWERS = ["yes"] * 60 + ["no"] * 30
LAW = sdp.randomizers.KRandomizedResponse(domain_size=2, epsilon0=1.0).profile
DELTA = 1e-6


@pytest.fixture(scope="module")
def mixing():
    return NetworkMixing(GRAPH)


def plan_of(mixing, rounds=None, protocol="all"):
    return NetworkPlan(name="friends.csv", mixing=mixing, rounds=rounds, protocol=protocol)


def ran(plan, *, epsilon0=3.0, sink=None, on_progress=None):
    """Run once and return the result."""
    setting = plan.setting(QUESTION, epsilon0=epsilon0, delta=DELTA)
    arrangement = setting.shuffling
    return run_plan(
        setting, ANSWERS, seed=7, shuffling=arrangement, sink=sink, on_progress=on_progress
    )


def test_without_rounds_the_guarantee_is_the_local_one(mixing):
    still = NetworkShuffling(mixing=mixing, rounds=0).guarantee(LAW, NUM_USERS, delta=DELTA)
    assert still.epsilon_upper == pytest.approx(LAW.epsilon0, rel=1e-5)
    assert still.epsilon_upper >= guarantee_for(LAW, NUM_USERS, delta=DELTA).epsilon_upper


def test_where_only_the_local_guarantee_is_left_the_result_warns(mixing):
    far = ran(plan_of(mixing, 30), epsilon0=1.0)
    assert not any("Only the local guarantee" in each for each in far.warnings)
    near = ran(plan_of(mixing, 1))
    assert near.guarantee.epsilon_upper == pytest.approx(3.0, rel=1e-5)
    assert any("Only the local guarantee is left, epsilon <= 3" in each for each in near.warnings)


def test_the_epsilon_of_that_warning_is_rounded_up(mixing):
    profile = LocalProfile(epsilon0=1.234561)
    alone = NetworkShuffling(mixing=mixing, rounds=0).guarantee(profile, NUM_USERS, delta=0.0)
    assert "epsilon <= 1.23457:" in local_cautions(profile, alone)[0]


def test_chosen_rounds_come_near_a_trusted_shuffler(mixing):
    chosen = plan_of(mixing).shuffling(LAW, delta=DELTA)
    uniform = UNIFORM.guarantee(LAW, NUM_USERS, delta=DELTA).epsilon_upper
    found = chosen.guarantee(LAW, NUM_USERS, delta=DELTA).epsilon_upper
    assert uniform <= found <= 1.01 * uniform
    assert chosen.rounds > 1
    assert plan_of(mixing, rounds=3).shuffling(LAW, delta=DELTA).rounds == 3


def test_a_network_of_other_people_is_refused(mixing):
    with pytest.raises(DataError, match="89 people answered and the network has 90 users"):
        NetworkShuffling(mixing=mixing, rounds=1).guarantee(LAW, 89, delta=DELTA)


def test_a_run_counts_every_report(mixing):
    result = ran(plan_of(mixing, rounds=12), epsilon0=14.0)
    assert result.shuffler == "network"
    assert result.num_users == result.facts.num_released == NUM_USERS
    # At epsilon0 = 14 a report is wrong with a chance below 1e-6, and the seed is fixed.
    assert result.estimates.count.tolist() == pytest.approx([60, 30], abs=0.01)


def test_users_dummies_walk_like_reports(tmp_path, mixing):
    exchange, law = plan_of(mixing, 30), DummyLaw.from_text("poisson:0.5")
    plain = exchange.setting(QUESTION, epsilon0=3.0, delta=DELTA)
    asked = {"delta": DELTA, "dummies": law}
    planned = exchange.setting(QUESTION, epsilon0=3.0, **asked)
    assert planned.guarantee.epsilon_upper < plain.guarantee.epsilon_upper
    assert planned.without_dummies.epsilon_upper == plain.guarantee.epsilon_upper
    path = tmp_path / "reports.parquet"
    result = run_plan(planned, ANSWERS, seed=7, sink=reports_writer(path, planned))
    assert result.guarantee.epsilon_upper == planned.guarantee.epsilon_upper
    assert result.without_dummies.epsilon_upper == plain.guarantee.epsilon_upper
    assert pl.read_parquet(path).height == NUM_USERS + result.num_dummies
    assert 40 <= result.num_dummies <= 150  # 90 expected; missed with probability 1e-8
    assert abs(result.estimates.frequency[0] - 2 / 3) < 6.2 * result.estimates.standard_error[0]
    # For a target they leave room for less noise.
    target = {"epsilon": 1.5, "max_epsilon0": 4.0}
    quieter = exchange.setting(QUESTION, **target, delta=DELTA).randomizer.epsilon0
    louder = exchange.setting(QUESTION, **target, **asked)
    assert louder.randomizer.epsilon0 > quieter
    assert louder.guarantee.epsilon_upper <= 1.5


def test_laws_of_dummies_that_no_network_knows(mixing):
    exchange = plan_of(mixing, 30)
    table = {"epsilon0": 3.0, "delta": DELTA, "dummies": DummyLaw.from_text("laplace:2.0:20")}
    with pytest.raises(ParameterError, match="by the shuffler, are not accounted for with"):
        exchange.setting(QUESTION, **table)
    with pytest.raises(ParameterError, match="answers from a list, not for mean"):
        exchange.setting(sdp.Mean(0, 1), **table)
    with pytest.raises(ParameterError, match="another than the uniform shuffle"):
        make_plan(QUESTION, num_users=9, **table)


def test_a_single_report_a_holder_speaks_for_everybody(mixing):
    result = ran(plan_of(mixing, rounds=12, protocol="single"), epsilon0=14.0)
    seen = result.facts.num_released
    assert seen + result.facts.num_dummies == NUM_USERS
    assert 0 < seen < NUM_USERS
    assert result.largest_shift(3)[0] == pytest.approx(3 / seen * result.randomizer.influence)
    assert result.estimates.count.sum() == pytest.approx(NUM_USERS)
    assert result.estimates.num_users == result.num_users == NUM_USERS
    share = 2 / 3
    sampling = np.sqrt(share * (1 - share) * (NUM_USERS - seen) / (seen * (NUM_USERS - 1)))
    assert abs(result.estimates.frequency[0] - share) < 8 * sampling
    assert result.estimates.standard_error[0] == pytest.approx(sampling, rel=0.3)


@pytest.mark.parametrize("protocol", ["all", "single"])
@pytest.mark.parametrize("epsilon0", [1.0, 14.0])
def test_a_plan_expects_the_error_of_the_reports_that_are_handed_in(mixing, protocol, epsilon0):
    plan = plan_of(mixing, rounds=30, protocol=protocol)
    plan = plan.setting(QUESTION, epsilon0=epsilon0, delta=DELTA)
    walk = NetworkShuffler(walk=mixing.walk, rounds=30, protocol=protocol)
    p, q = plan.randomizer.support_probabilities
    codes, entropy, errors = np.arange(NUM_USERS) % 2, Entropy.from_seed(3), []
    for _ in range(1000):
        reports = plan.randomizer.randomize(codes, entropy).data
        errors.append(((walk.shuffle(reports, entropy).reports == 0).mean() - q) / (p - q) - 0.5)
    spread = np.sqrt(np.mean(np.square(errors)))
    # Squares of 1,000 normal errors: seven deviations of their root mean are 0.157.
    assert plan.expected_standard_error == pytest.approx(spread, rel=0.157, abs=1e-3)
    assert plan.frequent_error() == pytest.approx(spread, rel=0.157, abs=1e-3)
    # The same law without a network, for as many users as reports are expected.
    few = sdp.plan(QUESTION, num_users=plan.num_seen, epsilon0=epsilon0, delta=DELTA)
    assert plan.largest_shift(3).tolist() == few.largest_shift(3).tolist()
    assert (plan.num_seen == NUM_USERS) == (protocol == "all")


def test_dummies_among_single_reports_are_refused(mixing):
    law = DummyLaw.from_text("poisson:0.1")
    with pytest.raises(ParameterError, match="displace answers"):
        plan_of(mixing, rounds=3, protocol="single").setting(
            QUESTION, epsilon0=4.0, delta=DELTA, dummies=law
        )


@pytest.mark.slow
def test_a_planned_epsilon_is_met_with_the_largest_epsilon0(mixing):
    setting = plan_of(mixing).setting(QUESTION, epsilon=1.0, delta=DELTA, randomizer="k-rr")
    arrangement = setting.shuffling
    assert setting.guarantee.epsilon_upper <= 1.0 <= setting.randomizer.epsilon0
    assert setting.target_epsilon == 1.0
    louder = sdp.randomizers.KRandomizedResponse(
        domain_size=2, epsilon0=1.003 * setting.randomizer.epsilon0
    )
    assert arrangement.guarantee(louder.profile, NUM_USERS, delta=DELTA).epsilon_upper > 1.0


def test_the_randomizer_is_the_one_that_a_uniform_shuffle_would_use(mixing):
    question = sdp.Categories(
        domain=[str(i) for i in range(40)],
        own=(sdp.randomizers.HadamardResponse, sdp.randomizers.KRandomizedResponse),
    )
    uniform = sdp.plan(question, num_users=NUM_USERS, epsilon=4.0, delta=DELTA)
    assert uniform.randomizer.name != next(iter(question.candidates()))
    setting = plan_of(mixing, rounds=30).setting(question, epsilon=4.0, delta=DELTA)
    assert setting.randomizer.name == uniform.randomizer.name
    assert setting.randomizer.epsilon0 <= 1.002 * uniform.randomizer.epsilon0


def test_noise_that_drowns_everything_is_refused(mixing):
    arrangement = NetworkShuffling(mixing=mixing, rounds=1)
    with pytest.raises(InfeasibleTargetError, match="let reports travel more rounds"):
        make_plan(QUESTION, num_users=NUM_USERS, epsilon=0.05, delta=DELTA, shuffling=arrangement)


def test_facts_are_those_of_the_graph_and_the_walk(mixing):
    plan = plan_of(mixing, rounds=10)
    result = ran(plan)
    facts = result.facts
    assert (facts.num_users, facts.num_edges) == (NUM_USERS, 4 * NUM_USERS)
    assert (facts.fewest_neighbours, facts.most_neighbours) == (8, 8)
    assert facts.irregularity == pytest.approx(1.0)
    assert facts.most_held == pytest.approx(1.0)
    assert (facts.rounds, facts.are_rounds_chosen, facts.protocol) == (10, False, "all")
    assert facts.spectral_gap == mixing.spectrum.spectral_gap
    assert 0.0 < facts.separation < 1.0
    assert int(facts.worst_user) in range(NUM_USERS)
    assert (facts.num_released, facts.num_dummies) == (NUM_USERS, 0)
    assert result.guarantee.epsilon_upper >= facts.uniform_epsilon
    assert json.loads(json.dumps(asdict(facts)))["rounds"] == 10


def test_unequal_chances_are_warned_about(mixing):
    plan = plan_of(mixing, rounds=3, protocol="single")
    facts = ran(plan).facts
    (caution,) = network_cautions(facts)
    assert "After 3 rounds that holds only roughly" in caution
    assert network_cautions(dataclasses.replace(facts, protocol="all")) == ()
    assert network_cautions(dataclasses.replace(facts, separation=0.001)) == ()


def test_reports_can_be_counted_from_a_file(tmp_path, mixing):
    plan = plan_of(mixing, rounds=2)
    setting = plan.setting(QUESTION, epsilon0=3.0, delta=DELTA)
    path = tmp_path / "reports.parquet"
    result = ran(plan, sink=reports_writer(path, setting))
    found = open_reports(path)
    assert found.fingerprint == setting.randomizer.fingerprint
    (block,) = found.blocks()
    again = setting.randomizer.aggregate(block)
    wanted = QUESTION.estimate(setting.randomizer, again, EstimateOptions()).count
    assert result.estimates.count.tolist() == wanted.tolist()


def write_table(folder, labels, answers=None):
    path = folder / "survey.csv"
    pl.DataFrame({"who": labels, "answer": answers or ["yes"] * len(labels)}).write_csv(path)
    return path


def write_edges(folder, *edges):
    path = folder / "edges.csv"
    path.write_text("u,v\n" + "\n".join(f"{u},{v}" for u, v in edges) + "\n")
    return path


def test_users_are_rows_by_number(tmp_path):
    table = write_table(tmp_path, ["a", "b", "c"])
    graph = read_network(write_edges(tmp_path, (0, 1), (1, 2)), table, num_users=3)
    assert graph.degrees.tolist() == [1, 2, 1]


def test_users_are_rows_by_label(tmp_path):
    table = write_table(tmp_path, ["c", "a", "b"])
    edges = write_edges(tmp_path, ("a", "b"), ("b", "c"))
    graph = read_network(edges, table, num_users=3, id_column="who")
    assert graph.degrees.tolist() == [1, 1, 2]
    assert graph.labels == ("c", "a", "b")


def test_rows_and_users_that_differ_are_refused(tmp_path):
    table = write_table(tmp_path, ["a", "b", "c", "d"])
    edges = write_edges(tmp_path, (0, 1), (1, 2))
    with pytest.raises(DataError, match=r"has 3 users and survey\.csv 4 rows.*id_column="):
        read_network(edges, table, num_users=4)


def test_labels_without_a_column_are_refused(tmp_path):
    table = write_table(tmp_path, ["a", "b", "c"])
    edges = write_edges(tmp_path, ("a", "b"), ("b", "c"))
    with pytest.raises(DataError, match=r"labels such as 'a'.*id_column="):
        read_network(edges, table, num_users=3)


def test_an_edge_to_a_stranger_is_refused(tmp_path):
    table = write_table(tmp_path, ["a", "b", "c"])
    edges = write_edges(tmp_path, ("a", "b"), ("b", "z"), ("c", "a"))
    with pytest.raises(DataError, match="'z'"):
        read_network(edges, table, num_users=3, id_column="who")
