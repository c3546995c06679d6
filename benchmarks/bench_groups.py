"""Speed and peak memory of making groups, beside scikit-learn's ball tree.

The ball tree's lists are not sorted, and it keeps equal groups as often as they occur.

100,000 people, groups of 200: by distance, by number of nearest, by one column, by hops.
``extra_info`` has memberships a second, and the peak memory of a process of its own that does the
same work once, interpreter and compiled code included (Linux only). The result takes 80 MB.
"""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from shuffledp.core.entropy import Entropy
from shuffledp.groups.groups import Groups

NUM_USERS = 100_000
GROUP_SIZE = 200
RADIUS = math.sqrt(GROUP_SIZE / NUM_USERS / math.pi)  # of people spread evenly over a unit square


def square(num_users):
    """Return people spread evenly over a unit square."""
    return Entropy.from_seed(1).generator().random((num_users, 2))


def from_distance(num_users):
    """Group by distance in the plane."""
    return Groups.from_distance(square(num_users), RADIUS).members.size


def from_haversine(num_users):
    """Group by distance on the Earth, in a square of one degree at the equator."""
    return Groups.from_distance(
        square(num_users), RADIUS * 111_195, metric="haversine"
    ).members.size


def from_one_column(num_users):
    """Group by the difference of one number."""
    values = square(num_users)[:, 0]
    radius = GROUP_SIZE / NUM_USERS / 2
    return Groups.from_distance(values, radius, metric="absolute").members.size


def from_nearest(num_users):
    """Group with the nearest."""
    return Groups.from_nearest(square(num_users), GROUP_SIZE).members.size


def from_graph(num_users):
    """Group by two hops in a graph of 14 friends each, on average."""
    edges = Entropy.from_seed(2).generator().integers(0, num_users, size=(7 * num_users, 2))
    return Groups.from_graph(edges, num_users=num_users, hops=2).members.size


def ball_tree_radius(num_users):
    """Find everybody within the radius with scikit-learn's ball tree."""
    from sklearn.neighbors import BallTree

    points = square(num_users)
    return sum(map(len, BallTree(points).query_radius(points, RADIUS)))


def ball_tree_nearest(num_users):
    """Find the nearest with scikit-learn's ball tree."""
    from sklearn.neighbors import BallTree

    points = square(num_users)
    found = BallTree(points).query(points, GROUP_SIZE, return_distance=False)
    return found.size


KINDS = {
    function.__name__: function
    for function in (
        from_distance,
        ball_tree_radius,
        from_haversine,
        from_one_column,
        from_nearest,
        ball_tree_nearest,
        from_graph,
    )
}


@pytest.mark.benchmark(group="groups of 200 among 100,000 people")
@pytest.mark.parametrize("name", KINDS)
def test_groups(benchmark, name):
    if name.startswith("ball_tree"):
        pytest.importorskip("sklearn")
    make = KINDS[name]
    make(1000)  # compiles
    count = benchmark.pedantic(make, args=(NUM_USERS,), rounds=1)
    assert count > 100 * NUM_USERS
    if benchmark.enabled:
        seconds = benchmark.stats.stats.min
        benchmark.extra_info["million_memberships_a_second"] = count / 1e6 / seconds
        benchmark.extra_info["peak_megabytes"] = peak_megabytes(name)


def peak_megabytes(name):
    """Return the peak memory of a fresh process that makes the groups once."""
    outcome = subprocess.run(
        [sys.executable, Path(__file__), name], capture_output=True, text=True, check=True
    )
    return float(outcome.stdout)


if __name__ == "__main__":
    KINDS[sys.argv[1]](NUM_USERS)
    # Not ru_maxrss, which a child inherits from its parent. Linux only; in kB of 1024 bytes.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    print(int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6)
