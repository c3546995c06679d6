"""Reference orders on five groupings: the gain in theta over the paper's mechanism, and the time.

At equal alpha, theta is alpha / Delta. The paper takes the breadth-first order and Delta from its
width; ``extra_info`` has how many times larger theta becomes with the exact Delta of that same
order, and with that of the order that is chosen. The baseline in time is the breadth-first order
alone. Two groupings are of real data, read where they lie, and are skipped without them.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.groups.groups import Groups
from shuffledp.groups.reference_orders import (
    Memberships,
    breadth_first_order,
    choose_reference_order,
    group_widths,
    inverse,
    sensitivities_in_order,
    sensitivity,
)

DATA = Path(__file__).parents[2] / "shared" / "data"


def points_in_a_square():
    """100,000 points, groups of about 200: 2e7 memberships."""
    points = Entropy.from_seed(1).generator().random((100_000, 2))
    radius = np.sqrt(200 / np.pi / 100_000)
    return Groups.from_distance(points, radius), {"coordinates": points}


def towns_on_the_globe():
    """20,000 people in 60 towns of uneven sizes within 600 km, groups within 2 km."""
    generator = Entropy.from_seed(2).generator()
    towns = (48.0, 8.0) + generator.random((60, 2)) * (5.0, 8.0)
    chosen = generator.choice(60, size=20_000, p=generator.dirichlet(np.full(60, 0.7)))
    degrees = towns[chosen] + generator.normal(size=(20_000, 2)) * (0.03, 0.045)
    options = {"coordinates": degrees, "metric": "haversine"}
    return Groups.from_distance(degrees, 2_000, metric="haversine"), options


def friends_on_twitch():
    """The 9,498 people of Twitch Germany, each with their friends."""
    edges = np.loadtxt(DATA / "twitch_de_lcc_edges.csv", delimiter=",", skiprows=1, dtype=np.int64)
    return Groups.from_graph(edges, num_users=9_498), {}


def ages_of_adults():
    """The 32,561 people of UCI Adult, within 3 years of age."""
    lines = (DATA / "adult.data").read_text(encoding="ascii").splitlines()
    ages = [float(line.partition(",")[0]) for line in lines if line.strip()]
    options = {"coordinates": ages, "metric": "absolute"}
    return Groups.from_distance(ages, 3, metric="absolute"), options


def nearest_neighbours():
    """20,000 points of uneven density, each with the 49 nearest."""
    points = Entropy.from_seed(3).generator().normal(size=(20_000, 2))
    return Groups.from_nearest(points, 50), {"coordinates": points}


GROUPINGS = {
    make.__name__: make
    for make in (
        points_in_a_square,
        towns_on_the_globe,
        friends_on_twitch,
        ages_of_adults,
        nearest_neighbours,
    )
}


@cache
def grouping(name):
    """Make the groups once for all benchmarks."""
    if name in ("friends_on_twitch", "ages_of_adults") and not DATA.exists():
        pytest.skip("the real data are not here")
    return GROUPINGS[name]()


def gains(groups, options):
    """Return what theta gains over the paper's mechanism at equal alpha, and how."""
    breadth_first = inverse(breadth_first_order(groups))
    width = int(group_widths(groups, breadth_first).max())
    published = width * (width + 1) // 2
    chosen = choose_reference_order(groups, **options)
    exact = sensitivity("kendall", groups, breadth_first)
    return {
        "num_users": groups.num_users,
        "memberships": groups.members.size,
        "largest_group": groups.largest_size,
        "paper_sensitivity": published,
        "breadth_first_sensitivity": exact,
        "chosen_sensitivity": chosen.sensitivity,
        "chosen": chosen.name,
        "gain_of_exact_sensitivity": published / exact,
        "gain_of_chosen_order": published / chosen.sensitivity,
    }


@pytest.mark.parametrize("name", GROUPINGS)
def test_breadth_first_alone(benchmark, name):
    benchmark.group = f"order of {name}"
    groups, _ = grouping(name)
    breadth_first_order(groups)  # compiles
    benchmark.pedantic(breadth_first_order, args=(groups,), rounds=3)


@pytest.mark.parametrize("name", GROUPINGS)
def test_chosen_order(benchmark, name):
    benchmark.group = f"order of {name}"
    groups, options = grouping(name)
    found = gains(groups, options)
    assert found["gain_of_chosen_order"] >= found["gain_of_exact_sensitivity"] >= 1.0
    benchmark.pedantic(choose_reference_order, args=(groups,), kwargs=options, rounds=1)
    benchmark.extra_info.update(found)


def by_sorting(groups, places):
    """Compute Kendall's sensitivities group by group in NumPy, sorting the places of each."""
    found = np.zeros(groups.num_groups, dtype=np.int64)
    for a in range(groups.num_groups):
        w = np.sort(places[groups.members[groups.starts[a] : groups.starts[a + 1]]])
        i = np.arange(1, w.size)
        found[a] = w.size * (w.size - 1) // 2
        found[a] += 2 * ((np.diff(w) - 1) * np.minimum(i, w.size - i)).sum()
    return found


@pytest.mark.benchmark(group="Kendall sensitivities of 2e7 memberships")
@pytest.mark.parametrize("way", ["one pass", "one pass, rows turned round", "NumPy, sorting"])
def test_sensitivities(benchmark, way):
    groups, _ = grouping("points_in_a_square")
    order = breadth_first_order(groups)
    places = inverse(order)
    memberships = Memberships.of(groups)
    expected = sensitivities_in_order("kendall", memberships, order)
    function, arguments = {
        "one pass": (sensitivity, ("kendall", groups, places)),
        "one pass, rows turned round": (
            sensitivities_in_order,
            ("kendall", memberships, order),
        ),
        "NumPy, sorting": (by_sorting, (groups, places)),
    }[way]
    result = benchmark.pedantic(function, args=arguments, rounds=1 if way[0] == "N" else 3)
    assert np.max(result) == expected.max()
