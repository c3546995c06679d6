"""Shuffles within groups at equal alpha: what each hides, and what it leaves to be learned.

Prints the table of docs/explanation/group-shuffling.md. Run it with the folder of the UCI Adult
file: ``python benchmarks/compare_group_shufflers.py data``. A minute or two on one core.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shuffledp.collection.uniform_shuffler import UniformShuffler
from shuffledp.core.entropy import Entropy
from shuffledp.groups.attacks.adversaries import (
    LAMBDA_DEBIASED,
    attack_by_majority_vote,
    learn_local_laws,
)
from shuffledp.groups.attacks.survey import (
    AttackedSurvey,
    ComparedArrangement,
    euclidean_positions,
)
from shuffledp.groups.displacement import DisplacementShuffler
from shuffledp.groups.groups import Groups
from shuffledp.groups.mallows import MallowsShuffler
from shuffledp.groups.shuffling import DisplacementShuffling, GroupShuffling, preserved_share
from shuffledp.randomizers.k_randomized_response import (
    KRandomizedResponse,
)

ALPHA, EPSILON0, DELTA = 4.0, 1.0, 1e-6
ATTACK_EPSILON0 = 2.5
NUM_DRAWS, TRIALS, RESAMPLINGS = 59, 3, 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """People, their groups, and a region whose statistics are of interest."""

    name: str
    points: NDArray[Any]
    metric: str
    groups: Groups
    near: Groups
    codes: NDArray[np.int64]
    region: NDArray[np.int64]


def adult(folder: str) -> Scene:
    """The census by age: groups of 50 of about the same age."""
    path = Path(folder) / "adult.data"
    census = pl.read_csv(path, has_header=False, infer_schema=False).drop_nulls()
    ages = census[:, 0].str.strip_chars().cast(pl.Int64).to_numpy()
    codes = (census[:, 14].str.strip_chars() == ">50K").to_numpy().astype(np.int64)
    return Scene(
        name="Adult, by age (n = 32,561, groups of 50)",
        points=ages,
        metric="absolute",
        groups=Groups.from_nearest(ages, 50, metric="absolute"),
        near=Groups.from_distance(ages, 1, metric="absolute"),
        codes=codes,
        region=np.flatnonzero(ages < 30),
    )


def plane() -> Scene:
    """Points of the unit square, whose answers follow a chessboard of four by four fields."""
    generator = Entropy.from_seed(11).generator()
    points = generator.random((20_000, 2))
    fields = (points * 4).astype(np.int64).sum(axis=1) % 2
    codes = (generator.random(20_000) < np.where(fields == 1, 0.8, 0.2)).astype(np.int64)
    return Scene(
        name="Plane (n = 20,000, groups of 10)",
        points=points,
        metric="euclidean",
        groups=Groups.from_nearest(points, 10),
        near=Groups.from_nearest(points, 40),
        codes=codes,
        region=np.flatnonzero((points < 0.5).all(axis=1)),
    )


def globe() -> Scene:
    """400 towns around the Earth, their sizes by Zipf's law; towns answer as their longitude."""
    generator = Entropy.from_seed(12).generator()
    towns = np.stack(
        [
            np.degrees(np.arcsin(generator.uniform(-0.8, 0.9, 400))),
            generator.uniform(-180, 180, 400),
        ]
    ).T
    sizes = np.maximum(3_000 // np.arange(1, 401), 20)
    home = np.repeat(np.arange(400), sizes)
    scatter = generator.normal(0.0, 0.03, (home.size, 2))
    points = (
        towns[home] + scatter / np.stack([np.ones(home.size), np.cos(np.radians(towns[home, 0]))]).T
    )
    points[:, 1] = (points[:, 1] + 180.0) % 360.0 - 180.0
    share = np.where(towns[:, 1] > 0.0, 0.8, 0.2)
    codes = (generator.random(home.size) < share[home]).astype(np.int64)
    return Scene(
        name=f"Towns on the globe (n = {home.size:,}, groups of 10)",
        points=points,
        metric="haversine",
        groups=Groups.from_nearest(points, 10, metric="haversine"),
        near=Groups.from_nearest(points, 40, metric="haversine"),
        codes=codes,
        region=np.flatnonzero(home == 0),
    )


def shufflers(scene: Scene) -> dict[str, Any]:
    """Return the four shuffles within groups, and a uniform one."""
    found: dict[str, Any] = {
        distance: MallowsShuffler.for_groups(
            scene.groups,
            ALPHA,
            distance=distance,
            coordinates=scene.points,
            metric=scene.metric,
        )
        for distance in ("kendall", "hamming", "cayley")
    }
    found["displacement"] = DisplacementShuffler.for_groups(
        scene.groups, ALPHA, coordinates=scene.points, metric=scene.metric
    )
    return found


def guarantee_text(scene: Scene, shuffler: Any) -> str:
    """Return the central epsilon, for a displacement also that of the median user."""
    profile = KRandomizedResponse(domain_size=2, epsilon0=EPSILON0).profile
    users = scene.codes.size
    if isinstance(shuffler, UniformShuffler):
        shuffler = MallowsShuffler.for_groups(scene.groups, 0.0, distance="hamming")
    if isinstance(shuffler, MallowsShuffler):
        found = GroupShuffling(shuffler=shuffler).guarantee(profile, users, delta=DELTA)
        return f"{found.epsilon_upper:.3g}"
    arrangement = DisplacementShuffling(shuffler=shuffler)
    worst = arrangement.guarantee(profile, users, delta=DELTA).epsilon_upper
    from shuffledp.groups.privacy import displaced_epsilon

    half = displaced_epsilon(
        profile,
        num_users=users,
        expected_crowd=float(np.quantile(arrangement.crowds, 0.5, method="lower")),
        delta=DELTA,
    ).upper
    return f"{worst:.3g} (half of the users {half:.3g})"


def rows(scene: Scene) -> None:
    """Print the table of one scene."""
    made = shufflers(scene)
    positions = euclidean_positions(scene.points.reshape(scene.codes.size, -1), scene.metric)
    survey = AttackedSurvey(
        codes=scene.codes,
        randomizer=KRandomizedResponse(domain_size=2, epsilon0=ATTACK_EPSILON0),
        neighbourhoods=scene.near,
        public=positions,
    )
    arrangements = [
        ComparedArrangement(name="raw"),
        *(ComparedArrangement(name=name, shuffler=each) for name, each in made.items()),
        ComparedArrangement(name="uniform", shuffler=UniformShuffler()),
    ]
    voted = attack_by_majority_vote(
        survey, arrangements, num_resamplings=RESAMPLINGS, num_trials=TRIALS,
        entropy=Entropy.from_seed(1),
    )  # fmt: skip
    learned = learn_local_laws(
        survey, arrangements, num_trials=TRIALS, entropy=Entropy.from_seed(2)
    )
    print(f"\n{scene.name}\n| shuffle | moves | central epsilon | stays | vulnerable | lambda |")
    for arrangement in arrangements:
        shuffler, name = arrangement.shuffler, arrangement.name
        vulnerable = next(each.mean for each in voted if each.arrangement == name)
        error = next(
            each.mean
            for each in learned
            if each.arrangement == name and each.measure == LAMBDA_DEBIASED
        )
        moved, kept, epsilon = "0", "100 %", f"{EPSILON0}"
        if shuffler is not None:
            entropy = Entropy.from_seed(3)
            draw = getattr(shuffler, "draw", None) or (
                lambda entropy: UniformShuffler().shuffle(np.arange(scene.codes.size), entropy)
            )
            sigma = [draw(entropy) for _ in range(NUM_DRAWS)]
            away = np.linalg.norm(positions - positions[sigma[0]], axis=1).mean()
            stays = preserved_share(sigma, scene.region)
            moved, kept = f"{away:.3g}", f"{stays:.1%}"
            epsilon = guarantee_text(scene, shuffler)
        print(f"| {name} | {moved} | {epsilon} | {kept} | {vulnerable:.1%} | {error:.3f} |")


if __name__ == "__main__":
    wanted = sys.argv[2:] or ["adult", "plane", "globe"]
    for name in wanted:
        rows({"adult": lambda: adult(sys.argv[1]), "plane": plane, "globe": globe}[name]())
