"""The Python calls of the net: the one place that spells public names.

A call is a function here with its arguments; its name in the data is made of both. What a function
returns is turned into plain data. Where a public name moves, its function here changes, and neither
the function's own name nor its arguments, so that the data stay.
"""

# ruff: noqa: C408 - arguments are written as in the call that they are for

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import shuffledp as sdp
from laws_of_numbers import report_variance
from network.walks import position_distribution
from shuffledp import accounting, leakage, monitoring
from shuffledp.accounting import calibration
from shuffledp.monitoring.privacy import central
from shuffledp.network.walk import simulate_positions

PUBLIC = (
    sdp, accounting, leakage, monitoring, sdp.collection, sdp.deploy, sdp.engines, sdp.estimation,
    sdp.groups, sdp.network, sdp.randomizers,
)  # fmt: skip
ShuffledpError = sdp.ShuffledpError

# Public names that no call needs, and why.
NOT_CALLED = {
    "Processes": "called by every run and estimate",
    "spark": "a module that needs Java; its calls are compared with those of one machine",
    "Answer": "a result of a client's send, which send calls",
    "About": "what a report says of a collection, called by run --title",
    "Bound": "a result: every bound in the data is one",
    "CategoryRandomizer": "a base class of randomizers, each of which is called",
    "Composition": "a result of adding releases, which is called",
    "Columns": "called by run --columns",
    "Distribution": "called by run --quantiles",
    "DisplacementShuffling": "called by run --shuffler displacement",
    "FrequencyEstimates": "a result of estimate_frequencies, which is called",
    "GroupShuffling": "called by run --shuffler mallows",
    "Guarantee": "a result of account, which is called",
    "HeavyHitters": "called by run --discover",
    "Histories": "a result of open_histories, which is called",
    "LeakageAccount": "a result of account_leakage, which is called",
    "LedgerEntry": "a part of a ledger, written by to_json_dict, which is called",
    "LocalRandomizer": "a protocol, whose implementations are called",
    "MeanByGroup": "called by run --mean --by",
    "MeanEstimates": "a result of the estimates of numbers, which are called",
    "MeanRandomizer": "a base class of randomizers, each of which is called",
    "MemoisedReports": "keeps the reports of a randomizer, which is called, in a file",
    "MonitorPlan": "a result of plan_monitoring, which is called",
    "MonitorResult": "a result of simulate_monitoring, which is called",
    "MonitoringProfile": "a part of a design, which central_guarantee is asked with",
    "NetworkShuffling": "called by run --shuffler network",
    "POST_PROCESSING": "a table of steps, called by run --post-process",
    "Plan": "a result of plan, which is called",
    "PriorKnowledge": "a result of read_prior, which is called",
    "ReferenceOrder": "a result of choose_reference_order, which is called",
    "RunLeakage": "a result of leakage_of, which is called",
    "Weights": "called by run --weight",
    "RANDOMIZERS": "a table of randomizers, which are called",
    "Result": "a result of running a plan, which is called",
    "RunningCounts": "a result of a server, which is called",
    "__version__": "volatile",
    "clip": "called by run --post-process",
    "expected_standard_error": "called by plan",
    "make_randomizer": "makes randomizers by name, which are called",
    "norm_sub": "called by run --post-process",
}

CALLS: dict[str, Callable[[], Any]] = {}


def calls(capability: str, *given: dict[str, Any]) -> Callable[[Callable[..., Any]], Any]:
    """Make a function a call of the net for each of the arguments given, or for none."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for arguments in given or ({},):
            inside = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
            CALLS[f"{capability} | {function.__name__}({inside})"] = partial(function, **arguments)
        return function

    return register


def of(value: Any, *names: str) -> dict[str, Any]:
    """Return some attributes of a result by their names."""
    return {name: getattr(value, name) for name in names}


def seeded(seed: int = 1) -> Any:
    """Return an entropy that repeats."""
    return sdp.Entropy.from_seed(seed)


# ---------------------------------------------------------------- accounting
@calls(
    "account",
    dict(epsilon0=1.0, num_users=1, delta=1e-6),
    dict(epsilon0=1.0, num_users=1_000, delta=1e-6),
    dict(epsilon0=0.5, num_users=1_000_000, epsilon=0.01),
    dict(epsilon0=8.0, num_users=100_000, delta=1e-8, randomizer="k-rr", domain_size=100),
    dict(epsilon0=1.0, num_users=2_000, delta=1e-6, randomizer="piecewise"),
    dict(epsilon0=1.0, num_users=5_000, delta=1e-6, rounds=7, participation=0.5),
    dict(epsilon0=1.0, num_users=5_000, delta=1e-6, sampled=500),
    dict(num_users=5_000, delta=1e-6, channel="channel.csv"),
    dict(epsilon0=1.0, num_users=5_000),
    dict(epsilon0="1", num_users=5_000, delta=1e-6),
)
def account(**asked):
    return sdp.account(**asked).to_json_dict()


@calls(
    "account",
    dict(epsilon0=2.0, delta0=1e-9, num_users=10_000, delta=1e-6),
    dict(epsilon0=2.0, delta0=0.0, num_users=10_000, delta=1e-6),
)
def guarantee_of_profile(epsilon0, delta0, num_users, delta):
    profile = sdp.LocalProfile(epsilon0=epsilon0, delta0=delta0)
    return sdp.account(profile, num_users=num_users, delta=delta).to_json_dict()


@calls("calibrate", *(dict(num_users=n, epsilon=0.5, delta=1e-8) for n in (1, 1_000, 1_000_000)))
def largest_epsilon0_of_any(**asked):
    return calibration.largest_epsilon0(lambda x: sdp.LocalProfile(epsilon0=x), **asked)


@calls("calibrate", dict(k=2, num_users=1_000), dict(k=50, num_users=100_000))
def largest_epsilon0_of_k_rr(k, num_users):
    return calibration.largest_epsilon0(
        lambda x: sdp.randomizers.KRandomizedResponse(domain_size=k, epsilon0=x).profile,
        num_users=num_users, epsilon=0.5, delta=1e-8,
    )  # fmt: skip


@calls("calibrate", dict(num_users=1_000, epsilon=0.5), dict(num_users=100_000, epsilon=0.5))
def largest_rounds(num_users, epsilon):
    daily = sdp.ShuffledRelease(epsilon0=0.5, num_users=num_users)
    return calibration.largest_rounds(daily, epsilon=epsilon, delta=1e-6)


@calls("calibrate", dict(rounds=1, epsilon0=1.0), dict(rounds=30, epsilon0=1.0))
def least_users(rounds, epsilon0):
    profile = sdp.LocalProfile(epsilon0=epsilon0)
    return calibration.least_users(rounds=rounds, epsilon=1.0, delta=1e-6, profile=profile)


@calls("calibrate", dict(num_users=10_000, rounds=1), dict(num_users=10_000, rounds=30))
def largest_local_epsilon(num_users, rounds):
    return calibration.largest_local_epsilon(
        num_users=num_users, rounds=rounds, epsilon=1.0, delta=1e-6
    )


RELEASES: dict[str, Callable[[], Any]] = {
    "daily": lambda: accounting.ShuffledRelease(epsilon0=1.0, num_users=10_000),
    "answers": lambda: accounting.ShuffledRelease(
        profile=sdp.randomizers.KRandomizedResponse(domain_size=16, epsilon0=2.0).profile,
        num_users=5_000,
    ),
    "drawn": lambda: accounting.ShuffledRelease(
        epsilon0=1.0, num_users=1_000, sampled_from=100_000
    ),
    "coins": lambda: accounting.ShuffledRelease(
        epsilon0=1.0, num_users=10_000, participation=0.1
    ),
    "stated": lambda: sdp.StatedRelease(epsilon=0.1, delta=1e-9),
}  # fmt: skip


def composed(terms: str) -> Any:
    """Return the sum of releases, such as "30 daily + 1 stated"."""
    parts = [term.split() for term in terms.split(" + ")]
    releases = [RELEASES[name]() * int(times) for times, name in parts]
    return sum(releases[1:], start=releases[0])


@calls(
    "compose",
    dict(terms="1 daily", delta=1e-6),
    dict(terms="30 daily", delta=1e-6),
    dict(terms="3650 daily", delta=1e-6),
    dict(terms="2 answers", delta=1e-6),
    dict(terms="2 daily + 1 stated", delta=1e-6),
    dict(terms="10 stated", delta=1e-6),
    dict(terms="1 daily", delta=0.0),
)
def composed_epsilon(terms, delta):
    return composed(terms).epsilon(delta)


@calls("compose", dict(terms="30 daily", epsilon=0.3), dict(terms="10 stated", epsilon=0.8))
def composed_delta(terms, epsilon):
    return composed(terms).delta(epsilon)


@calls("compose")
def read_schedule():
    return sdp.collection.read_schedule("schedule.csv").epsilon(1e-6)


@calls(
    "subsample", dict(terms="1 drawn"), dict(terms="30 drawn"), dict(terms="1 coins"),
    dict(terms="30 coins"), dict(terms="2 drawn + 2 coins + 1 daily"),
)  # fmt: skip
def subsampled_epsilon(terms):
    return composed(terms).epsilon(1e-6)


@calls("subsample", dict(num_users=100, share=0.29), dict(num_users=100, share=1.5))
def honest_users(num_users, share):
    return accounting.honest_users(num_users, share)


@calls("ledger", dict(adaptive=True), dict(adaptive=False))
def ledger_spent(adaptive):
    ledger = sdp.Ledger(epsilon=0.5, delta=1e-6, adaptive=adaptive)
    ledger = ledger.spend(RELEASES["daily"]() * 3, note="three days", key="first")
    fits = ledger.fits(RELEASES["daily"]())
    return {**of(ledger, "spent", "remaining"), "fits": fits, "json": ledger.to_json_dict()}


@calls("ledger", dict(times=10_000))
def ledger_refuses(times):
    return accounting.Ledger(epsilon=0.5, delta=1e-6).spend(RELEASES["daily"]() * times)


def budget(path):
    """Write the ledger with which every call begins."""
    accounting.save_ledger(accounting.Ledger(epsilon=1.5, delta=1e-6), path)


@calls("ledger")
def ledger_file():
    before = accounting.open_ledger("budget.json")
    spent = accounting.spend("budget.json", RELEASES["daily"](), "monday", key="2026-11-23")
    again = accounting.spend("budget.json", RELEASES["daily"](), "monday", key="2026-11-23")
    same = accounting.open_ledger("budget.json") == spent == again
    return {"same": same, "remaining": [before.remaining, spent.remaining]}


@calls("ledger")
def budget_error():
    try:
        accounting.Ledger(epsilon=0.01, delta=1e-9).spend(RELEASES["stated"]())
    except accounting.BudgetError as error:
        return str(error)


# ---------------------------------------------------------------- randomizers and estimates
CATEGORIES = {
    "k-rr": sdp.randomizers.KRandomizedResponse,
    "symmetric-unary": sdp.randomizers.SymmetricUnaryEncoding,
    "optimized-unary": sdp.randomizers.OptimizedUnaryEncoding,
    "optimized-local-hashing": sdp.randomizers.OptimizedLocalHashing,
    "hadamard-response": sdp.randomizers.HadamardResponse,
    "subset-selection": sdp.randomizers.SubsetSelection,
}
NUMBERS = {"duchi": sdp.randomizers.Duchi, "piecewise": sdp.randomizers.Piecewise}
VECTORS = {"privunit": sdp.randomizers.PrivUnit}
SETS = {"sampled": sdp.randomizers.SampledAnswers, "split": sdp.randomizers.SplitAnswers}
ENDS = ("standard_error", "population_standard_error", "lower", "upper")


def about(randomizer: Any, estimates: Any, main: str) -> dict[str, Any]:
    """Return the law of a randomizer, how private a shuffled batch is, and its estimates."""
    guarantee = sdp.account(randomizer.profile, num_users=1_000, delta=1e-6).to_json_dict()
    return {
        **of(randomizer, "name", "epsilon0", "num_report_bytes"),
        "family": randomizer.profile.family.value,
        "guarantee": {name: guarantee[name] for name in ("epsilon", "method")},
        **of(estimates, main, *ENDS),
    }


@calls("estimate", *(dict(name=name, k=k, epsilon0=2.0) for name in CATEGORIES for k in (2, 12)))
def categories(name, k, epsilon0):
    randomizer = CATEGORIES[name](domain_size=k, epsilon0=epsilon0)
    values = (np.arange(500) ** 2 % (k + 1)) % k
    counts = randomizer.aggregate(randomizer.randomize(values, seeded()))
    chances = randomizer.support_probabilities
    return {
        "support": counts.support,
        "support_probabilities": chances,
        **about(randomizer, randomizer.estimate(counts), "frequency"),
    }


@calls("estimate", *(dict(name=name, epsilon0=x) for name in NUMBERS for x in (0.5, 3.0)))
def numbers(name, epsilon0):
    randomizer = NUMBERS[name](low=-1.0, high=3.0, epsilon0=epsilon0)
    values = np.arange(500) * 37 % 401 / 100.0 - 1.0
    reports = randomizer.randomize(values, seeded())
    return {
        "variances": [report_variance(randomizer, value) for value in (-1.0, 0.5, 3.0)],
        **about(randomizer, randomizer.estimate(reports), "mean"),
    }


@calls("estimate", *(dict(name=name, dimension=d) for name in VECTORS for d in (2, 10)))
def vectors(name, dimension):
    randomizer = VECTORS[name](dimension=dimension, epsilon0=3.0)
    values = np.zeros((500, dimension))
    values[:, 0], values[:, 1] = 0.6, np.arange(500) % 9 / 20
    reports = randomizer.randomize(values, seeded())
    return about(randomizer, randomizer.estimate(reports), "mean")


@calls("estimate", *(dict(name=n, base=b) for n in SETS for b in ("k-rr", "symmetric-unary")))
def answer_sets(name, base):
    randomizer = SETS[name](base_name=base, domain_size=4, max_answers=2, epsilon0=3.0)
    values = np.array(
        [[person % 4, -1 if person % 3 else (person + 1) % 4] for person in range(500)]
    )
    reports = randomizer.randomize(values, seeded())
    return about(randomizer, randomizer.estimate(reports), "frequency")


@calls("estimate", dict(simultaneous=True), dict(simultaneous=False))
def intervals(simultaneous):
    counts = sdp.collection.Counts(support=np.array([60, 40]), num_reports=100, fingerprint="")
    found = sdp.estimation.estimate_frequencies(
        counts, support_probabilities=(0.75, 0.25), simultaneous=simultaneous
    )
    return of(found, "count", "frequency", *ENDS)


@calls("estimate")
def sums_of_numbers():
    law = sdp.randomizers.Duchi(low=0.0, high=1.0, epsilon0=1.0)
    sums = sdp.collection.Sums(
        total=np.array([12.0]), total_of_squares=np.array([100.0]), num_reports=100,
        fingerprint=law.fingerprint,
    )  # fmt: skip
    return of(law.estimate(sums), "mean", *ENDS)


@calls(
    "estimate", dict(name="k-rr", k=1), dict(name="k-rr", k=3), dict(name="subset-selection", k=3)
)
def refused_values(name, k):
    return CATEGORIES[name](domain_size=k, epsilon0=1.0).randomize(np.array([0, 5]), seeded())


@calls("estimate")
def words_of_entropy():
    return seeded(7).words(5).tolist()


# ---------------------------------------------------------------- a device
@calls("deploy", dict(max_epsilon0=3.0), dict(max_epsilon0=1.0))
def device(max_epsilon0):
    task = sdp.deploy.Task(
        info="a survey", shuffler_url="http://127.0.0.1:1", analyzer_url="http://127.0.0.1:2",
        start=1_800_000_000, epoch_seconds=86_400, num_epochs=30, min_batch=10_000,
        honest_ppm=900_000, short_batch="hold", epsilon="0.12", delta="1e-8",
        asked=sdp.deploy.AskedTerms.of(sdp.Categories(["yes", "no"]), "k-rr", 2.0),
        operator_key=bytes(32),
    )  # fmt: skip
    limits = sdp.deploy.Limits(max_epsilon0=max_epsilon0)
    with sdp.deploy.Client(task, "device.db", limits=limits) as client:
        kept = client.report("yes", task.start, entropy=seeded())
    return {"task": task.task_id.hex(), "epoch": kept.epoch, "report": kept.report.hex()}


# ---------------------------------------------------------------- the main job
@calls("plan", dict(num_users=1_000, k=3), dict(num_users=200, k=3))
def plan_categories(num_users, k):
    question = sdp.Categories([f"v{i}" for i in range(k)])
    return sdp.plan(question, num_users=num_users, epsilon=1.0, delta=1e-6).to_json_dict()


@calls("plan", dict(num_users=1_000, low=-1.0, high=1.0), dict(num_users=1_000, low=1.0, high=1.0))
def plan_mean(num_users, low, high):
    return sdp.plan(
        sdp.Mean(low, high), num_users=num_users, epsilon=1.0, delta=1e-6, randomizer="duchi"
    ).to_json_dict()


@calls("plan", dict(num_users=1_000, names=("x", "y", "z")))
def plan_vector_mean(num_users, names):
    return sdp.plan(
        sdp.VectorMean(names),
        num_users=num_users,
        epsilon=1.0,
        delta=1e-6,
        randomizer="privunit",
    ).to_json_dict()


QUESTIONS: dict[str, tuple[Any, str, str | None, dict[str, Any]]] = {
    "frequency": (sdp.Categories(domain=("yes", "no")), "k-rr", "answer", {}),
    "mean": (sdp.Mean(low=0.0, high=0.5), "piecewise", "number", {"clip": True}),
    "vector": (sdp.VectorMean(names=("x", "y"), norm_bound=1.0), "privunit", None, {}),
    "sets": (
        sdp.AnswerSets(domain=("a", "b", "c"), max_answers=2), "sampled:k-rr", "drugs", {},
    ),
}  # fmt: skip


@calls("run", *(dict(question=name) for name in QUESTIONS))
def run_a_file(question):
    asked, randomizer, column, how = QUESTIONS[question]
    plan = sdp.plan(asked, num_users=300, epsilon=2.0, delta=1e-6, randomizer=randomizer)
    opened = sdp.collection.open_column("survey.csv", column, asked, **how)
    return sdp.run(plan, opened, seed=1).to_json_dict()


@calls("run", dict(num_users=1_000), dict(num_users=999))
def run_values(num_users):
    plan = sdp.plan(
        sdp.Categories(["yes", "no"]), num_users=num_users, epsilon=1.0, delta=1e-6,
        randomizer="k-rr",
    )  # fmt: skip
    result = sdp.run(plan, ["yes"] * 300 + ["no"] * 700, seed=1)
    return {**result.to_json_dict(), "leakage": sdp.collection.leakage_of(result).to_json_dict()}


@calls("run")
def report_files():
    law = sdp.randomizers.KRandomizedResponse(domain_size=3, epsilon0=2.0)
    drawn = law.randomize(np.arange(90) % 3, seeded())
    mixed = sdp.collection.UniformShuffler().shuffle(drawn.data, seeded(2))
    mixed = sdp.collection.Reports(data=mixed, fingerprint=law.fingerprint)
    path = Path("reports.parquet")
    sdp.collection.write_reports(path, [mixed], law, labels=("a", "b", "c"))
    blocks = [law.aggregate(block) for block in sdp.collection.open_reports(path).blocks()]
    return {"blocks": len(blocks), "support": sum(block.support for block in blocks)}


@calls("run")
def estimate_reports():
    plan = sdp.plan(
        sdp.Categories(["a", "b", "c"]), num_users=90, epsilon0=2.0, delta=1e-6, randomizer="k-rr"
    )
    drawn = plan.randomizer.randomize(np.arange(90) % 3, seeded())
    return sdp.estimate(drawn, plan).to_json_dict()


@calls(
    "calibrate",
    dict(num_users=10_000, epsilon=0.1),
    dict(epsilon0=1.0, epsilon=0.1),
    dict(num_users=10_000, epsilon=0.1, participation=0.5),
)
def calibrated(**asked):
    return sdp.calibrate(**asked, delta=1e-6, rounds=3).to_json_dict()


@calls("bounds")
def compare_bounds():
    return sdp.compare_bounds(epsilon0=1.0, num_users=10_000, delta=1e-6).to_json_dict()


# ---------------------------------------------------------------- groups
POINTS = np.array([(i * 7 % 40, i * i % 11) for i in range(60)], dtype=float)
FORMED: dict[str, Callable[[], Any]] = {
    "distance": lambda: sdp.groups.Groups.from_distance(POINTS, 6.0),
    "haversine": lambda: sdp.groups.Groups.from_distance(
        POINTS / 100.0, 9_000.0, metric="haversine"
    ),
    "nearest": lambda: sdp.groups.Groups.from_nearest(POINTS, 9),
    "graph": lambda: sdp.groups.Groups.from_graph(
        [(i, (i + step) % 60) for i in range(60) for step in (1, 5)], num_users=60, hops=2
    ),
    "sets": lambda: sdp.groups.Groups.from_sets(
        [range(i, i + 10) for i in range(51)], num_users=60
    ),
}


@calls("groups", *(dict(formed=name) for name in FORMED))
def groups(formed):
    found = FORMED[formed]()
    sizes = of(found, "num_groups", "largest_size", "sizes", "description")
    order = sdp.groups.choose_reference_order(found)
    return {
        **sizes,
        "cautions": found.cautions(),
        "of": found.group(7) if formed == "sets" else found.of(7),
        "order": order.order,
        **of(order, "name", "sensitivity"),
    }


MODELS = ("kendall", "hamming", "cayley")


@calls(
    "groups", *(dict(distance=d, n=n, theta=t) for d in MODELS for n, t in ((8, 0.5), (60, 0.02)))
)
def mallows_model(distance, n, theta):
    model = sdp.groups.MallowsModel(distance=distance, num_items=n, theta=theta)
    return {"drawn": model.sample(seeded())}


@calls("groups", *(dict(distance=d, formed=f) for d in MODELS for f in ("nearest", "sets")))
def mallows_shuffler(distance, formed):
    found = FORMED[formed]()
    shuffler = sdp.groups.MallowsShuffler.for_groups(found, 3.0, distance=distance)
    return {
        **of(shuffler, "name", "theta"),
        "alpha": shuffler.alpha_for(found),
        "moved": shuffler.shuffle(np.arange(60), seeded()),
    }


@calls("groups", dict(formed="distance"), dict(formed="nearest"))
def displacement_shuffler(formed):
    found = FORMED[formed]()
    shuffler = sdp.groups.DisplacementShuffler.for_groups(found, 3.0, coordinates=POINTS)
    return {
        **of(shuffler, "name", "theta", "scale"),
        "alpha": shuffler.alpha_for(found),
        "crowds": shuffler.crowds_lower(),
        "moved": shuffler.shuffle(np.arange(60), seeded()),
    }


@calls("groups", dict(by=("age",), radius=2.0), dict(by=("lat", "lon"), group_size=9))
def grouping(**asked):
    found = sdp.groups.Grouping(**asked)
    opened = found.open("survey.csv")
    return of(opened.groups, "description", "num_groups", "largest_size")


# ---------------------------------------------------------------- networks
def ring(num_users: int = 60) -> Any:
    """Return a graph in which everybody has six neighbours."""
    pairs = [(i, (i + step) % num_users) for i in range(num_users) for step in (1, 6, 17)]
    return sdp.network.Graph.from_edges(np.array(pairs))


ANY = sdp.LocalProfile(epsilon0=1.0)


@calls("network account", dict(file="ring.csv"), dict(file="uneven.csv"))
def graph_file(file):
    graph = sdp.network.read_graph(file)
    facts = of(graph, "num_users", "num_edges", "num_components", "irregularity")
    return {name: each() if callable(each) else each for name, each in facts.items()}


@calls(
    "network account",
    dict(rounds=3),
    dict(rounds=12, protocol="single"),
    dict(rounds=6, laziness=0.3),
    dict(rounds="auto"),
    dict(rounds=6, protocol="both"),
)
def account_network(**asked):
    found = sdp.network.account_network(ring(), ANY, delta=1e-4, **asked)
    return of(found, "epsilon", "rounds", "protocol", "uniform_epsilon", "worst_user", "separation")


@calls("network account", dict(method="exact"), dict(method="spectral"))
def network_mixing(method):
    mixing = sdp.network.NetworkMixing(ring(), positions=method)
    return {
        "epsilon": [mixing.epsilon(ANY, rounds=t, delta=1e-4) for t in (2, 8)],
        "limit": mixing.limit(ANY, delta=1e-4),
        "fewest": mixing.fewest_rounds(ANY, delta=1e-4, within=0.05),
    }


@calls("network account", *(dict(overlap=x, num_users=n) for x in (0.2, 1.0) for n in (10, 1_000)))
def network_walk(overlap, num_users):
    overlaps = [overlap] * (num_users - 1)
    return {"epsilon": sdp.network.network_walk_epsilon(ANY, overlaps=overlaps, delta=1e-6)}


@calls("network run", dict(laziness=0.0), dict(laziness=0.5))
def random_walk(laziness):
    walk = sdp.network.RandomWalk(ring(), laziness=laziness)
    return {
        "law": position_distribution(walk, 3, 4),
        "positions": simulate_positions(walk, 4, seeded()),
    }


@calls("network run", dict(protocol="all"), dict(protocol="single"))
def network_shuffler(protocol):
    walk = sdp.network.RandomWalk(ring())
    law = sdp.randomizers.KRandomizedResponse(domain_size=3, epsilon0=2.0)
    reports = law.randomize(np.arange(60) % 3, seeded())
    exchanged = sdp.network.NetworkShuffler(walk=walk, rounds=4, protocol=protocol)
    found = exchanged.shuffle(reports.data, seeded(2))
    return of(found, "reports", "holders", "num_dummies")


# ---------------------------------------------------------------- monitoring
ASKED = dict(periods=8, max_changes=2, num_users=10_000, delta=1e-6)


@calls("monitor plan", dict(epsilon0=1.0), dict(epsilon=0.2), dict(epsilon0=1.0, domain=["a", "b"]))
def plan_monitoring(**asked):
    return monitoring.plan_monitoring(**ASKED, **asked).to_dict()


PROTOCOLS = ("predrawn-signs", "sampled-change")


def design(protocol: str, periods: int = 8, epsilon0: float = 2.0) -> Any:
    """Return the design of a small collection."""
    return monitoring.MonitorDesign(
        periods=periods, max_changes=2, epsilon0=epsilon0, protocol=protocol
    )


@calls("monitor plan", *(dict(protocol=p, periods=d) for p in PROTOCOLS for d in (4, 256)))
def monitor_design(protocol, periods):
    made = design(protocol, periods)
    profile = made.profile
    asked = dict(num_users=50_000)
    return {
        **of(made, "num_levels", "scale"),
        "local": monitoring.local_guarantee(profile),
        "central": monitoring.central_guarantee(profile, delta=1e-6, **asked),
        "delta": monitoring.central_delta_upper(profile, epsilon=0.05, **asked),
    }


@calls("monitor plan", dict(num_users=1_000), dict(num_users=100_000))
def calibrate_monitoring(num_users):
    return central.calibrate_monitoring(
        lambda x: design("predrawn-signs", epsilon0=x).profile,
        num_users=num_users, epsilon=0.2, delta=1e-6,
    )  # fmt: skip


@calls("monitor simulate", *(dict(protocol=p) for p in PROTOCOLS))
def clients_and_server(protocol):
    made = design(protocol)
    server = monitoring.MonitorServer(made)
    for user in range(40):
        client = monitoring.MonitorClient(made, entropy=seeded(user))
        given = [client.update(t, t > user % 5) for t in range(1, 9)]
        server.ingest([r for r in given if r is not None])
    one = of(server.estimate(8, num_users=40), "counts", "standard_errors", "lower", "upper")
    counts = server.running_counts(num_users=40)
    return {"num_reports": server.num_reports, "last": one, "all": counts.counts}


@calls("monitor simulate", dict(number=3))
def report_of_one_bit(number):
    server = monitoring.MonitorServer(design("predrawn-signs"))
    server.ingest([monitoring.MonitorReport(1, 1, +1)] * number)
    return server.estimate(1, num_users=3).counts


@calls("monitor simulate", dict(smoothed=False), dict(smoothed=True))
def simulate_monitoring(smoothed):
    opened = monitoring.open_histories("histories.csv", user="user", time="time", value="value")
    found = monitoring.simulate_monitoring(
        opened, max_changes=2, epsilon0=3.0, delta=1e-6, smoothed=smoothed, seed=1
    )
    return {
        "num_changes": opened.users.size,
        "truth": opened.true_counts(),
        **found.to_json_dict(),
        "estimates": of(found.running, "counts", "standard_errors", "lower", "upper"),
    }
