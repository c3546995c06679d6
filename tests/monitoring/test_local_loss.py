"""Local privacy and unbiasedness by enumeration: all histories, levels, keys and reports.

The client is written out here once more, from its description, with whole numbers: nothing of the
package but the laws themselves is used.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod

import pytest

from shuffledp.monitoring.signs import ExchangeableSigns, PredrawnSigns, SampledChange, _weights

WORDS = 2**64
LN_3 = 1.0986122886681098
CASES = [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 2), (5, 2), (6, 3), (7, 3), (8, 3)]

Density = Callable[[tuple[int, ...], int], dict[tuple[int, ...], Fraction]]


def histories(periods, max_changes):
    """Return the changes x[1] ... x[d] of every history of a bit with at most k changes."""
    out = []
    for states in product([0, 1], repeat=periods):
        changes = tuple(b - a for a, b in zip((0, *states), states, strict=False))
        if sum(map(abs, changes)) <= max_changes:
            out.append(changes)
    return out


def nodes(changes, level):
    """Return the changes within each complete node of a level."""
    length = 2 ** (level - 1)
    return [changes[end - length : end] for end in range(length, len(changes) + 1, length)]


def predrawn_density(signs: ExchangeableSigns) -> Density:
    """Return the density of reports relative to uniform ones, by summing over all keys."""
    k, total = signs.num_signs, signs.total
    keys = [
        (key, Fraction(signs.weights[key.count(-1)], total)) for key in product([1, -1], repeat=k)
    ]

    @cache
    def density(increments):
        used = sum(map(abs, increments))
        out = {}
        for reports in product([1, -1], repeat=len(increments)):
            pairs = [(u, v) for u, v in zip(reports, increments, strict=True) if v]
            agrees = [
                mass
                for key, mass in keys
                if all(u == v * sign for (u, v), sign in zip(pairs, key, strict=False))
            ]
            out[reports] = sum(agrees) * 2**used
        return out

    return lambda changes, level: density(tuple(sum(node) for node in nodes(changes, level)))


def sampled_density(law: SampledChange) -> Density:
    """Return the density of reports relative to uniform ones, by summing over kappa."""
    turned = Fraction(law.flip_threshold, WORDS)

    def density(changes, level):
        inside = nodes(changes, level)
        counted = [place for place, change in enumerate(changes) if change]
        out = {}
        for reports in product([1, -1], repeat=len(inside)):
            shares = []
            for kappa in range(law.max_changes):
                share = Fraction(1)
                if kappa < len(counted):
                    node = counted[kappa] // 2 ** (level - 1)
                    if node < len(inside):
                        kept = reports[node] == changes[counted[kappa]]
                        share = 2 * (1 - turned if kept else turned)
                shares.append(share)
            out[reports] = sum(shares) / law.max_changes
        return out

    return density


def worst_ratio(density, inputs, levels):
    """Return the largest ratio of probabilities of one set of reports; all are possible."""
    worst = Fraction(1)
    for level in levels:
        laws = [density(each, level) for each in inputs]
        for reports in laws[0]:
            values = [law[reports] for law in laws]
            worst = max(worst, max(values) / min(values))
    return worst


def laws_of(max_changes, epsilon0):
    """Return for each law: density, claimed ratio, gap, least density."""
    predrawn = PredrawnSigns(max_changes=max_changes, epsilon0=epsilon0)
    sampled = SampledChange(max_changes=max_changes, epsilon0=epsilon0)
    turned = Fraction(sampled.flip_threshold, WORDS)
    return {
        "predrawn-signs": (
            predrawn_density(predrawn.signs),
            predrawn.signs.loss_ratio,
            predrawn.exact_gap,
            predrawn.profile(num_levels=1, alternating=True).uniform_share,
        ),
        "sampled-change": (
            sampled_density(sampled),
            (1 - turned) / turned,
            sampled.exact_gap,
            sampled.profile(num_levels=1, alternating=True).uniform_share,
        ),
    }


@pytest.mark.parametrize("name", ["predrawn-signs", "sampled-change"])
@pytest.mark.parametrize(("periods", "max_changes"), CASES)
def test_the_local_loss_is_the_claimed_one(periods, max_changes, name):
    density, claimed, _, _ = laws_of(max_changes, LN_3)[name]
    worst = worst_ratio(
        density, histories(periods, max_changes), range(1, periods.bit_length() + 1)
    )
    assert 1 < worst <= claimed
    if periods >= 2 * max_changes:
        # Two histories with changes at different periods agree and disagree with all reports.
        assert worst == claimed


@pytest.mark.parametrize("epsilon0", [0.1, LN_3, 5.0])
@pytest.mark.parametrize("max_changes", [1, 2, 3])
def test_the_loss_is_reached_for_increments_of_any_signs(max_changes, epsilon0):
    # What richer values can bring about: nonzero increments need not alternate.
    density, claimed, _, _ = laws_of(max_changes, epsilon0)["predrawn-signs"]
    inputs = [x for x in product([-1, 0, 1], repeat=4) if sum(map(abs, x)) <= max_changes]
    assert worst_ratio(density, inputs, [1]) == claimed


@pytest.mark.parametrize("coin", [1, 2**40, 2**63, 2**64 - 1])
@pytest.mark.parametrize(
    ("max_changes", "radius"), [(k, radius) for k in (1, 2, 3) for radius in range(k)]
)
def test_the_loss_of_every_radius_and_coin(max_changes, radius, coin):
    signs = ExchangeableSigns(weights=_weights(max_changes, radius, coin))
    inputs = histories(6, max_changes)
    assert worst_ratio(predrawn_density(signs), inputs, [1, 2, 3]) == signs.loss_ratio


@pytest.mark.parametrize("name", ["predrawn-signs", "sampled-change"])
@pytest.mark.parametrize(("periods", "max_changes"), CASES)
def test_reports_are_unbiased_and_never_below_the_uniform_share(periods, max_changes, name):
    density, _, gap, share = laws_of(max_changes, LN_3)[name]
    for changes in histories(periods, max_changes):
        for level in range(1, periods.bit_length() + 1):
            law = density(changes, level)
            assert sum(law.values()) == len(law)  # relative to uniform ones
            assert min(law.values()) >= share
            for place, node in enumerate(nodes(changes, level)):
                mean = sum(u[place] * value for u, value in law.items()) / len(law)
                assert mean == gap * sum(node)


def test_the_least_density_is_the_uniform_share():
    for density, _, _, share in laws_of(3, LN_3).values():
        reached = min(min(density(changes, 1).values()) for changes in histories(4, 3))
        assert reached == share


@pytest.mark.parametrize("max_changes", [2, 3])
def test_moments_of_reports_are_the_correlations_on_record(max_changes):
    # Products of reports at different nodes: the product of the increments times r_i.
    for name, (density, _, _, _) in laws_of(max_changes, LN_3).items():
        law = PredrawnSigns if name == "predrawn-signs" else SampledChange
        profile = law(max_changes=max_changes, epsilon0=LN_3).profile(
            num_levels=3, alternating=True
        )
        for changes in histories(4, max_changes):
            reports = density(changes, 1)
            places = [place for place, change in enumerate(changes) if change]
            for order in range(len(places) + 1):
                chosen = places[:order]
                mean = sum(
                    prod(u[place] for place in chosen) * value for u, value in reports.items()
                ) / len(reports)
                signs = prod(changes[place] for place in chosen)
                assert mean == signs * profile.correlation(order)


def test_a_planted_law_is_not_taken_for_private():
    # Independent signs, each with the loss that all of them may have: k times too much.
    kept, turned = 3, 1
    independent = ExchangeableSigns(weights=tuple(kept ** (3 - i) * turned**i for i in range(4)))
    worst = worst_ratio(predrawn_density(independent), histories(6, 3), [1])
    assert worst == 27 > laws_of(3, LN_3)["predrawn-signs"][1]
