import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from oracles import sums
from oracles.family_laws import Blanket, mean_weight, neutral_atoms, pair_of, weights_of
from oracles.multiprecision import blanket_delta, clone_atoms, k_rr_atoms
from oracles.profiles import any_randomizer, k_rr, optimized_unary, symmetric_unary
from shuffledp.amplification import clones_and_families as families
from shuffledp.amplification.atom_law import SMALLEST_DELTA
from shuffledp.amplification.clones_and_families import clone_law
from shuffledp.amplification.registry import account_delta, account_epsilon
from shuffledp.core.errors import PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "accountant_values.json").read_text(encoding="ascii")
)["blanket"]

LAWS = {
    "clones": clone_law,
    "3-rr": lambda epsilon0: families.k_rr_law(epsilon0, 3),
    "16-rr": lambda epsilon0: families.k_rr_law(epsilon0, 16),
    "3-rr attack": lambda epsilon0: families.third_answer_law(epsilon0, 3),
    "16-rr attack": lambda epsilon0: families.third_answer_law(epsilon0, 16),
    "symmetric attack": lambda epsilon0: families.third_value_law(symmetric_unary(epsilon0)),
    "optimized attack": lambda epsilon0: families.third_value_law(optimized_unary(epsilon0)),
    "symmetric third bit": lambda epsilon0: families.third_bit_law(symmetric_unary(epsilon0)),
    "optimized third bit": lambda epsilon0: families.third_bit_law(optimized_unary(epsilon0)),
}


def direct(law, num_users):
    """The oracle for the same law."""
    return sums.DirectSum(weights_of(law), num_users)


@given(st.sampled_from(sorted(LAWS)), st.floats(0.0, 36.0))
def test_laws_have_mass_one_and_mean_weight_one(name, epsilon0):
    law = LAWS[name](epsilon0)
    assert law.masses.min() > 0.0
    assert law.masses.sum() == pytest.approx(1.0, rel=1e-14)
    assert law.masses.size <= 4
    # E[G] = 1 - e: both likelihood ratios have mean one, hence so has the weight.
    assert mean_weight(law) == pytest.approx(1.0, rel=1e-12)


@given(st.integers(2, 10**18), st.floats(0.0, 36.0))
def test_k_rr_laws_have_mean_weight_one_at_any_k(k, epsilon0):
    assert mean_weight(families.k_rr_law(epsilon0, k)) == pytest.approx(1.0)
    if k > 2:
        law = families.third_answer_law(epsilon0, k)
        assert mean_weight(law) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("num_users", [1, 2, 30, 200])
@pytest.mark.parametrize("epsilon0", [0.05, 1.0, 4.0, 9.0])
def test_against_direct_sums(name, num_users, epsilon0):
    law = LAWS[name](epsilon0)
    truth, blanket = direct(law, num_users), Blanket(law, num_users)
    for share in (0.0, 0.02, 0.1, 0.3, 0.6, 0.9, 0.99):
        exact = truth.delta(epsilon0 * share)
        if exact < 1e-250:
            continue
        found = blanket.enclose(epsilon0 * share)
        # close to epsilon0 the oracle loses digits that the kernel keeps
        rounding = 1e-11 if share < 0.95 else 1e-9
        assert found.lower <= exact * (1.0 + rounding), share
        assert found.upper >= exact * (1.0 - rounding), share
        assert found.upper - found.lower <= 4e-6 * found.upper + 1e-15, share


@pytest.mark.parametrize("name", ["clones", "16-rr", "16-rr attack", "symmetric attack"])
def test_against_direct_sums_for_a_thousand_users(name):
    law = LAWS[name](1.0)
    truth, blanket = direct(law, 1000), Blanket(law, 1000)
    for epsilon in (0.0, 0.05, 0.15, 0.3):
        exact, found = truth.delta(epsilon), blanket.enclose(epsilon)
        assert found.lower <= exact * (1.0 + 1e-11)
        assert found.upper >= exact * (1.0 - 1e-11)


@pytest.mark.parametrize("family", ["any", "2-rr", "5-rr"])
@pytest.mark.parametrize("method", ["own", "best"])
def test_against_sixty_digits(family, method):
    # From epsilon0 = 0.1 to 40, from epsilon = 0 to an ulp below epsilon0, n from 1 to 60.
    profile_for = {
        "any": (any_randomizer, "clones"),
        "2-rr": (lambda epsilon0: k_rr(epsilon0, 2), "binary-exact"),
        "5-rr": (lambda epsilon0: k_rr(epsilon0, 5), "k-rr-blanket"),
    }
    make, own = profile_for[family]
    cases = [case for case in GOLDEN if case["family"] == family]
    assert len(cases) > 100
    for case in cases:
        profile, exact = make(case["epsilon0"]), case["delta"]
        try:
            bound = account_delta(
                profile,
                num_users=case["num_users"],
                epsilon=case["epsilon"],
                method=own if method == "own" else "best",
            )
        except PrecisionError:
            # One method may give up; all of them together may not, since `local` never does.
            assert method == "own", case
            continue
        if method == "best":  # may be smaller than the blanket's value, by `local`
            local = -math.expm1(case["epsilon"] - case["epsilon0"])
            exact = min(exact, local / (1.0 + math.exp(-case["epsilon0"])))
        assert bound.upper >= exact * (1.0 - 2e-15), case
        if family == "2-rr":
            assert bound.lower <= case["delta"] * (1.0 + 2e-15), case


def exact_clone_epsilon_zero(epsilon0, num_users):
    """(B) at epsilon = 0: (p - 1) E[D_+] / n, D_+ of b fair steps being m Pr[Bin(b, 1/2) = m]."""
    with mp.workdps(60):
        p = mp.exp(mpf(epsilon0))
        chance, total = 2 / (p + 1), mpf(0)
        for b in range(num_users, max(num_users - 60, 0), -1):
            mass = mp.binomial(num_users, b) * chance**b * (1 - chance) ** (num_users - b)
            heads = b // 2 + 1
            if heads <= b:
                total += mass * heads * mp.binomial(b, heads) / mpf(2) ** b
        return (p - 1) * total / num_users


@pytest.mark.parametrize("num_users", [10, 1000, 10**6, 10**9])
@pytest.mark.parametrize("epsilon0", [1e-12, 2e-8])
def test_when_nearly_every_report_is_a_pair_report(num_users, epsilon0):
    # 1 - pair_mass is tiny: the binomial must not lose the digits of its complement.
    if num_users * epsilon0 > 20.0:
        return
    exact = exact_clone_epsilon_zero(epsilon0, num_users)
    found = Blanket(clone_law(epsilon0), num_users).enclose(0.0)
    assert found.lower <= exact <= found.upper
    assert found.upper - found.lower <= 1e-5 * found.upper


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("num_users", [1, 3, 200])
@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 6.0])
def test_inversion_ends_on_both_sides(name, num_users, epsilon0):
    law = LAWS[name](epsilon0)
    truth = direct(law, num_users)
    blanket = Blanket(law, num_users)
    for delta in (1e-10, 1e-6, 1e-3, 0.2):
        found = blanket.enclose_epsilon(delta, epsilon0)
        assert 0.0 <= found.lower <= found.upper <= epsilon0
        assert truth.delta(found.upper) <= delta * (1.0 + 1e-11)
        if found.lower > 0.0:
            assert truth.delta(found.lower) >= delta * (1.0 - 1e-11)
        assert found.upper - found.lower <= 2e-6 * found.upper + 1e-12


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 1e-300, 1e-200, 1e-30])
@pytest.mark.parametrize("num_users", [2, 100, 10_000])
def test_inversion_at_tiny_delta_does_not_overshoot_or_give_up(num_users, delta):
    found = Blanket(clone_law(1.0), num_users).enclose_epsilon(delta, 1.0)
    assert 0.0 < found.lower <= found.upper <= 1.0
    if num_users == 2 and delta < 1e-20:
        assert found.upper > 1.0 - 1e-15


@pytest.mark.parametrize("num_users", [1, 2])
@pytest.mark.parametrize("delta", [1e-16, 1e-15, 1e-12, 1e-9])
def test_inversion_close_to_epsilon0(num_users, delta):
    # The answer is so close to epsilon0 that p - e cancels.
    atoms = clone_atoms(1.0)
    found = Blanket(clone_law(1.0), num_users).enclose_epsilon(delta, 1.0)
    assert blanket_delta(atoms, found.upper, num_users) <= delta
    assert blanket_delta(atoms, found.lower, num_users) >= delta or found.lower == 0.0


def test_smaller_than_doubles_is_not_zero():
    found = Blanket(clone_law(0.5), 10**6).enclose(0.4)
    assert found == Enclosure(0.0, SMALLEST_DELTA)


def test_narrow_windows_are_widened_until_they_do_not_matter():
    # delta far below e^-32, the first window's tail: what is outside must not become the answer.
    law = clone_law(1.0)
    truth, blanket = direct(law, 1000), Blanket(law, 1000)
    for epsilon in (0.4, 0.6, 0.8):
        exact = truth.delta(epsilon)
        assert exact < 1e-24
        found = blanket.enclose(epsilon)
        assert found.lower <= exact * (1.0 + 1e-9)
        assert exact * (1.0 - 1e-9) <= found.upper <= exact * 1.01


@pytest.mark.parametrize("k", [3, 10**6, 10**12])
@pytest.mark.parametrize("epsilon0", [0.5, 3.0])
def test_many_answers_against_multiprecision(k, epsilon0):
    for share in (0.0, 0.2, 0.7):
        exact = blanket_delta(k_rr_atoms(epsilon0, k), epsilon0 * share, 6)
        law = families.k_rr_law(epsilon0, k)
        found = Blanket(law, 6).enclose(epsilon0 * share)
        assert found.upper >= exact
        assert found.lower <= exact or exact < 1e-300


def test_no_difference_is_no_loss():
    law = clone_law(0.0)
    assert Blanket(law, 100).enclose(0.0) == Enclosure(0.0, 0.0)


@pytest.mark.parametrize("name", ["16-rr", "symmetric attack", "optimized attack"])
@pytest.mark.parametrize("num_users", [10**4, 10**6])
@pytest.mark.parametrize("expected_pairs", [2.0, 30.0])
def test_few_heavy_reports_among_many_users(name, num_users, expected_pairs):
    # epsilon0 so large that few reports hide the victim, but each weighs as much as thousands:
    # blocks must then be single outcomes, however many the users.
    epsilon0 = math.log(num_users / expected_pairs)
    law = LAWS[name](epsilon0)
    if num_users * max(pair_of(law)[0], neutral_atoms(law)[0][0]) > 150.0:
        return
    blanket = Blanket(law, num_users)
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        exact = sums.sparse_delta(weights_of(law), num_users, epsilon)
        if exact < 1e-13:
            continue
        found = blanket.enclose(epsilon)
        assert found.lower <= exact * (1.0 + 1e-9), epsilon
        assert found.upper >= exact * (1.0 - 1e-9), epsilon
        assert found.upper <= exact * 1.001, epsilon


def test_both_directions_agree_where_few_reports_are_heavy():
    profile = optimized_unary(10.478751, 2)
    epsilon = account_epsilon(profile, num_users=10**6, delta=1e-6).upper
    back = account_delta(profile, num_users=10**6, epsilon=epsilon)
    assert back.upper <= 1e-6 * 1.0001


@pytest.mark.slow
def test_a_quadrillion_users():
    found = Blanket(clone_law(4.0), 10**15).enclose_epsilon(1e-9, 4.0)
    with mp.workdps(30):
        # central limit: delta = mu (phi(t) - t Phi(-t)), exact to 1e-6 at this size
        p = mp.exp(4)
        mu = (p - 1) * mp.sqrt(2 / (p + 1) / mpf(10) ** 15)
        t = mp.findroot(lambda t: mu * (mp.npdf(t) - t * mp.ncdf(-t)) - mpf("1e-9"), 1)
    assert found.upper == pytest.approx(float(t * mu), rel=1e-4)
    assert found.lower == pytest.approx(float(t * mu), rel=1e-4)


@pytest.mark.parametrize("pair_mass", [1e-290, 1e-298, 1e-305])
def test_ends_next_to_the_smallest_double_are_above_the_truth(pair_mass):
    """They are taken however wide they are, since they are proved and none is below 1e-300."""
    law = families.symmetric_law(1.0, low=1.0, pair_mass=pair_mass, others=[(1.0, 0.0)])
    for share in (0.0, 0.5, 0.9):
        truth = 0.5 * pair_mass * (math.e - math.exp(share))  # one user, one report
        found = Blanket(law, 1).enclose(share)
        assert found.lower <= truth * (1.0 + 1e-9)
        assert found.upper >= max(truth * (1.0 - 1e-9), 1e-300)
        assert found.upper <= max(truth * (1.0 + 1e-6), 1e-297)
