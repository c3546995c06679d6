"""Numbers that pages state in words: each is computed again, and the words are looked for."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, poisson

import shuffledp as sdp
from oracles import profiles
from shuffledp.accounting.dummies import least_dummies
from shuffledp.amplification.dummies import PairOfBins
from shuffledp.amplification.registry import account_epsilon
from shuffledp.core.profile import LocalProfile
from shuffledp.groups import Groups, MallowsShuffler
from shuffledp.leakage import account_leakage
from shuffledp.monitoring import plan_monitoring
from shuffledp.randomizers import registry
from shuffledp.report.plan import PRECEDENTS

ROOT = Path(__file__).parents[2]


def says(page, words):
    """Whether a page has these words, wherever its lines break."""
    return words in " ".join((ROOT / page).read_text(encoding="utf-8").split())


def test_two_people_together_have_the_stated_delta():
    page, users = "docs/explanation/privacy-statement.md", 1000
    epsilon = sdp.account(
        epsilon0=2.0, num_users=users, delta=1e-6, randomizer="k-rr", domain_size=2
    ).epsilon_upper
    keep, factor, exact = 1.0 / (1.0 + math.exp(-2.0)), math.exp(2.0 * epsilon), 0.0
    # Both zeros become ones, beside others of whom some hold a one.
    before, after = (np.convolve(one, one) for one in ((keep, 1.0 - keep), (1.0 - keep, keep)))
    for ones in range(users - 1):
        high = binom.pmf(np.arange(ones + 1), ones, keep)
        low = binom.pmf(np.arange(users - 1 - ones), users - 2 - ones, 1.0 - keep)
        others = np.convolve(high, low)
        excess = np.convolve(others, before) - factor * np.convolve(others, after)
        exact = max(exact, float(np.maximum(excess, 0.0).sum()))
    limit = 1e-6 * math.expm1(2.0 * epsilon) / math.expm1(epsilon)
    assert 2e-6 < exact <= limit  # twice the delta would be no bound
    assert says(page, r"$(m\varepsilon,\ \delta\,(e^{m\varepsilon}-1)/(e^\varepsilon-1))$")
    assert says(
        page, f"epsilon is {epsilon:.3f} at delta = 1e-6, have delta = {exact * 1e6:.2f}e-6"
    )
    assert says(page, f"the limit is {limit * 1e6:.2f}e-6")


def test_trust_models_have_the_stated_errors():
    page, target = "docs/explanation/privacy-statement.md", {"epsilon": 1.0, "delta": 1e-6}
    question = sdp.Categories([f"party {i}" for i in range(7)])
    shuffled = sdp.plan(question, num_users=944, **target)
    dummies = sdp.plan(question, num_users=944, **target, dummies="shuffler", max_epsilon0=6.0)
    local, curator = (
        f"{100 * each.standard_error_at_same_epsilon:.1f} %"
        for each in (shuffled.local_model, shuffled.central_model)
    )
    crowd, hidden = (f"{100 * plan.expected_standard_error:.1f} %" for plan in (shuffled, dummies))
    assert says(page, f"| {local} | {crowd} | {hidden}, at epsilon0 = 6 | {crowd} | {curator} |")


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "verdict"), [(1, "monitor"), (4, "even"), (16, "repeat")])
def test_a_year_of_days_is_as_stated(changes, verdict):
    plan = plan_monitoring(
        periods=365, max_changes=changes, num_users=1_000_000, epsilon0=1.0, delta=1e-8
    )
    found = plan.comparison
    few, central = found.few_answers.standard_error, found.everybody_central.standard_error
    page = (ROOT / "docs/explanation/monitoring-or-repeating.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| 365 | {changes} |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[3] == f"{found.standard_error:,.0f}"
    assert cells[5].endswith(f" to {few:,.0f}")
    assert cells[7] == f"{central:,.0f}"
    assert found.verdict.endswith(cells[9])
    assert cells[9] == verdict


@pytest.mark.parametrize("truth", [0.6, 0.9])
def test_leakage_beside_epsilon_is_as_stated(truth):
    users, page = 10_000, "docs/explanation/privacy-statement.md"
    epsilon0 = math.log(truth / (1.0 - truth))
    central = sdp.account(
        epsilon0=epsilon0, num_users=users, delta=1e-8, randomizer="k-rr", domain_size=2
    ).epsilon_upper
    weak, strong = (
        account_leakage(num_users=users, domain_size=2, truth=truth, adversary=adversary)
        for adversary in ("uninformed", "strong")
    )
    both = f"{100 * weak.both.upper:.1f} % | {100 * strong.both.upper:.1f} %"
    assert says(page, f"both, {truth:.0%} | {central:.3g} | {both} |".replace("0%", "0 %", 1))
    alone = f"{100 * weak.shuffler.upper:.1f} % | {100 * strong.shuffler.upper:.0f} %"
    assert says(page, f"reveal the last | {alone} |")
    if truth == 0.6:
        assert says(page, f"true in 60 % | {epsilon0:.2f} | 60 % | 60 % |")
        assert weak.randomizer.upper == strong.randomizer.upper == pytest.approx(truth)


def test_the_most_that_a_guess_is_right_is_rounded_up():
    most = {e: math.ceil(1000.0 / (1.0 + math.exp(-e))) / 10.0 for e in (0.5, 1, 2, 3, 4)}
    words = f"at most {most[0.5]} % at epsilon = 0.5, {most[1]} % at 1"
    assert says("docs/faq.md", f"{words}, {most[3]} % at 3")
    assert says("docs/guides/choosing-epsilon.md", f"{words}, {most[2]} % at 2, {most[4]} % at 4.")


def test_the_number_of_randomizers():
    kinds = [registry.RANDOMIZERS, registry.NUMBER_RANDOMIZERS, registry.VECTOR_RANDOMIZERS]
    alone = sum(map(len, kinds))
    assert (alone, alone + 2 * len(registry.RANDOMIZERS)) == (9, 21)
    assert says(
        "docs/explanation/randomizers.md", "nine randomizers (21 names, with those for several"
    )


def test_all_known_deployments_are_on_the_page_about_epsilon():
    page = "docs/guides/choosing-epsilon.md"
    for each in PRECEDENTS:
        delta = f", delta {each.delta:g}".replace("e-0", "e-") if each.delta else ""
        model = "local" if each.is_local else "central"
        assert says(page, f"| {each.title} | {each.epsilon:g}{delta} | {model} | {each.unit} |")


@pytest.mark.parametrize(
    ("profile", "num_users", "percent", "page", "words"),
    [
        (profiles.k_rr(4.0, 3), 10**3, 0.1, "blankets", r"while $\varepsilon_0\le4$"),
        (profiles.k_rr(1.0, 3), 10**3, 0.1, "blankets", "within 0.1 % for a thousand users"),
        (profiles.k_rr(1.0, 3), 10**5, 1e-3, "blankets", "from a hundred thousand on"),
        (profiles.k_rr(5.0, 3), 10**3, 4.7, "blankets", "4.7 % at a thousand users, $k=3$"),
        (profiles.k_rr(8.0, 4), 10**4, 3.95, "blankets", "3.9 % at ten thousand, $k=4$"),
        (profiles.any_randomizer(2.0), 10**5, 6.0, "kernel", "6 % at 2"),
        (profiles.any_randomizer(4.0), 10**5, 1.0, "kernel", "1 % at 4"),
        (profiles.any_randomizer(4.0), 10**3, 3.1, "kernel", "With a thousand it is 3 % at 4"),
    ],
)
def test_how_near_the_ends_are(profile, num_users, percent, page, words):
    gap = account_epsilon(profile, num_users=num_users, delta=1e-6).gap
    assert 0.7 * percent / 100.0 < gap <= percent / 100.0
    assert says(f"docs/results/{page}.md", words)


def published_dummies(epsilon, delta):
    """Variances of published protocols' dummies, by the formulas of docs/results/dummies.md."""
    yield 200.0 * math.log(4.0 / delta) / epsilon**2
    yield 6.6 * math.log(4.0 / delta) / math.tanh(epsilon / 2.0) ** 2
    yield 32.0 * math.log(2.0 / delta) / epsilon**2
    many = np.arange(1000)

    def probability(mean):
        # Pr(1 + X >= e^epsilon Y) for independent X and Y of a Poisson law.
        few = np.ceil(math.exp(epsilon) * many - 1.0)
        return float(np.sum(poisson.pmf(many, mean) * poisson.sf(few - 1.0, mean)))

    yield brentq(lambda mean: probability(mean) - delta, 1.0, 512.0)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_dummies_beside_published_protocols(epsilon):
    bare, delta, column = LocalProfile(epsilon0=math.inf), 1e-6, 3 if epsilon == 0.5 else 4
    asked = {"epsilon": epsilon, "delta": delta, "num_users": 10**6}
    shuffler = least_dummies(bare, sender="shuffler", **asked).variance
    users = 1e6 * least_dummies(bare, sender="users", **asked).mean
    page = (ROOT / "docs/results/dummies.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.splitlines() if line.count("|") == 5][2:]
    found = [*published_dummies(epsilon, delta), users, shuffler]
    assert [row[column].strip() for row in rows] == [f"{math.sqrt(each):.1f}" for each in found]

    def coins_are_enough(number):
        table = [(math.comb(number, ones) << 128) >> number for ones in range(number + 1)]
        law = PairOfBins(table, missing=number / 2**128)
        return law.enclose(epsilon).upper <= delta

    four_times = int(16.0 * shuffler)
    assert coins_are_enough(int(1.2 * four_times))
    assert not coins_are_enough(four_times)


@pytest.mark.parametrize(
    ("name", "epsilon0", "widths"),
    [
        (None, 0.5, (0.09, 0.16)),
        (None, 0.7, (0.09, 0.16)),
        (None, 2.0, (0.055, 0.065)),
        (None, 4.0, (0.009, 0.031)),
        ("optimized-unary", 1.0, (0.155, 0.175)),
        ("symmetric-unary", 1.0, (0.225, 0.25)),
        ("symmetric-unary", 2.0, (0.155, 0.17)),
    ],
)
def test_widths_of_brackets(name, epsilon0, widths):
    for num_users in (10**3, 10**5, 10**8):
        asked = {"randomizer": name, "domain_size": 3} if name else {}
        epsilon = sdp.account(epsilon0=epsilon0, num_users=num_users, delta=1e-6, **asked).epsilon
        assert widths[0] <= 1.0 - epsilon.lower / epsilon.upper <= widths[1]
    page = "docs/researchers.md"
    assert says(page, "9 to 16 % for $\\varepsilon_0$ in $[0.5,1]$, 6 % at 2, 1 % at 4, there 3 %")
    assert says(page, "23 to 25 % at 1, 16 to 17 % at 2")
    assert says(page, "16 to 17 % at $")


def test_one_shuffle_for_all_resamplings_finds_other_shares():
    # The survey of the page: eight people a house, groups of three houses, alpha = 4.
    house, generator = np.repeat(np.arange(300), 8), sdp.Entropy.from_seed(1).generator()
    answers = (np.arange(300) * 7 % 10 < np.where(np.arange(300) < 150, 2, 8)).astype(int)[house]
    groups = Groups.from_distance(house.astype(float), 1, metric="absolute")
    model, keep = MallowsShuffler.for_groups(groups, 4.0), 1.0 / (1.0 + math.exp(-1.5))
    shares = []
    for sigma in (model.draw(sdp.Entropy.from_seed(2)), generator.permutation(house.size)):
        right = np.zeros(house.size)
        for _ in range(50):
            reports = np.where(generator.random(house.size) < keep, answers, 1 - answers)[sigma]
            votes = reports.reshape(300, 8).sum(axis=1)[house] + generator.random(house.size) - 0.5
            right += (votes > 4.0) == answers
        shares.append(float((right >= 45).mean()))
    assert shares == [pytest.approx(0.4, abs=0.05), pytest.approx(0.05, abs=0.03)]
    assert says("docs/commands/attack.md", "here 0.4 within groups, 0.05 uniform")


@pytest.mark.parametrize(("k", "ratio"), [(2, math.sqrt(2.0)), (16, 1.0)])
def test_dummies_beside_a_trusted_curator(k, ratio):
    options = {"num_users": 1000, "epsilon": 1.0, "delta": 1e-6, "dummies": "best"}
    plan = sdp.plan(sdp.Categories(range(k)), no_local_noise=True, **options)
    curator = plan.central_model.standard_error_at_same_epsilon
    assert plan.expected_standard_error / curator == pytest.approx(ratio, rel=0.05)
