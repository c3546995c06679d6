"""Draw the figures of docs/results: `make docs-figures`.

Each figure shows what one result gives beside all others. Its numbers are kept inside the SVG file,
as JSON in the description, so that a test can compute them anew and compare; the drawing itself has
no dates and no random names, so that running this again gives the same bytes.
"""

import json
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shuffledp.accounting import ShuffledRelease, honest_users
from shuffledp.accounting.profiles import named_profile
from shuffledp.amplification.registry import METHODS, account_epsilon
from shuffledp.core.errors import PrecisionError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.groups.privacy import displaced_epsilon, grouped_epsilon

FOLDER = Path(__file__).parent / "results" / "figures"

# A release as in the examples of the documentation.
DELTA = 1e-6
EPSILON0 = 1.0
NUM_USERS = 100_000

USERS = tuple(m * 10**d for d in range(2, 9) for m in (1, 2, 5))
LOSSES = (0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0)
ROUNDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

ALPHAS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)

BEST, LOWER = "best", "unavoidable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What a figure shows.

    Parameters
    ----------
    title : str
        Above the axes.
    axis : str
        What the horizontal axis is.
    points : tuple of float
        Where on it.
    at : callable
        A point to the values there, by the names of the curves; None where a curve has none.
    highlighted : tuple of str
        Curves in colour; the others are grey.
    logarithmic : bool
        Whether the horizontal axis is.
    """

    title: str
    axis: str
    points: tuple[float, ...]
    at: Callable[[float], Mapping[str, float | None]]
    highlighted: tuple[str, ...]
    logarithmic: bool = field(default=True)


@cache
def all_methods(profile: LocalProfile, num_users: int) -> Mapping[str, float | None]:
    """Return what every method, the best of them, and explicit data give for one shuffle."""
    found: dict[str, float | None] = {}
    for name, method in METHODS.items():
        if method.violated_hypothesis(profile, num_users, DELTA) is None:
            with suppress(PrecisionError):
                value = method.epsilon(profile, num_users, DELTA).upper
                # No better than no shuffler at all: left out, but for the line of `local` itself.
                found[name] = value if value < profile.epsilon0 or name == "local" else None
    bound = account_epsilon(profile, num_users=num_users, delta=DELTA)
    found[BEST], found[LOWER] = bound.upper, bound.lower
    return MappingProxyType(found)


def over_users(title: str, profile: Callable[[], LocalProfile], *highlighted: str) -> Figure:
    """Return a figure of epsilon against the number of users."""
    law = cache(profile)
    return Figure(
        title=title,
        axis="number of users n",
        points=USERS,
        at=lambda users: all_methods(law(), int(users)),
        highlighted=highlighted,
    )


def over_losses(title: str, profile: Callable[[float], LocalProfile]) -> Figure:
    """Return a figure of epsilon against epsilon0."""
    return Figure(
        title=title,
        axis="local epsilon0",
        points=LOSSES,
        at=lambda loss: all_methods(profile(loss), NUM_USERS),
        highlighted=(),
    )


def any_randomizer(epsilon0: float = EPSILON0) -> LocalProfile:
    """Return the profile of any epsilon0-LDP randomizer."""
    return LocalProfile(epsilon0=epsilon0)


def of_family(family: RandomizerFamily, k: int) -> LocalProfile:
    """Return the profile of a family with k answers at epsilon0 = 1."""
    return LocalProfile(epsilon0=EPSILON0, family=family, domain_size=k)


def composed(rounds: float) -> Mapping[str, float | None]:
    """Return the epsilon of some rounds about the same people, in several ways."""
    count = int(rounds)
    release = ShuffledRelease(epsilon0=EPSILON0, num_users=NUM_USERS)
    bound = (release * count).epsilon(DELTA)
    each = account_epsilon(
        any_randomizer(), num_users=NUM_USERS, delta=DELTA / (2 * count), with_lower=False
    ).upper
    # Dwork, Rothblum, Vadhan 2010, as arXiv:1811.12469v2, Theorem 2.
    spread = each * math.sqrt(2 * count * -math.log(DELTA / 2))
    return {
        "basic composition": count * each,
        "advanced composition": spread + count * each * math.expm1(each),
        BEST: bound.upper,
        LOWER: bound.lower,
    }


def with_honest(share: float) -> Mapping[str, float | None]:
    """Return the epsilon where only a share of the users is honest."""
    bound = account_epsilon(any_randomizer(), num_users=honest_users(NUM_USERS, share), delta=DELTA)
    return {BEST: bound.upper, LOWER: bound.lower}


def within_groups(alpha: float) -> Mapping[str, float | None]:
    """Return the epsilon of shuffles within groups of 44 in a row, at one alpha."""
    users, size = 1_000_000, 44
    sensitivities = {"kendall": size * (size - 1) // 2, "hamming": size, "cayley": size - 1}
    uniform = account_epsilon(any_randomizer(), num_users=users, delta=DELTA)
    found: dict[str, float | None] = {BEST: uniform.upper, LOWER: uniform.lower}
    for distance, sensitivity in sensitivities.items():
        bound = grouped_epsilon(
            any_randomizer(),
            num_users=users,
            theta=alpha / sensitivity,
            distance=distance,
            delta=DELTA,
            with_lower=False,
        )
        found[distance] = bound.upper
    ratio = math.exp(-alpha / (size * size / 2))  # of neighbouring places, at an end of the line
    crowd = ratio * (1.0 - ratio ** (users - 1)) / (1.0 - ratio)
    found["displacement"] = displaced_epsilon(
        any_randomizer(), num_users=users, expected_crowd=crowd, delta=DELTA, with_lower=False
    ).upper
    return found


_ANY = "any randomizer, epsilon0 = 1, delta = 1e-6"
_ANY_LOSS = "any randomizer, n = 100 000, delta = 1e-6"
_K_RR = RandomizerFamily.K_RANDOMIZED_RESPONSE

FIGURES: Mapping[str, Figure] = MappingProxyType(
    {
        "clones": over_users(_ANY, any_randomizer, "clones"),
        "lower-ends": over_losses(_ANY_LOSS, any_randomizer),
        "binary-exact": over_users(
            "binary randomized response, epsilon0 = 1, delta = 1e-6",
            lambda: of_family(_K_RR, 2),
            "binary-exact",
        ),
        "k-rr-blanket": over_users(
            "16-ary randomized response, epsilon0 = 1, delta = 1e-6",
            lambda: of_family(_K_RR, 16),
            "k-rr-blanket",
        ),
        "stated-blanket": over_users(
            "subset selection, 16 answers, epsilon0 = 1, delta = 1e-6",
            lambda: named_profile("subset-selection", epsilon0=EPSILON0, domain_size=16),
            "stated-blanket",
        ),
        "composition": Figure(
            title="any randomizer, epsilon0 = 1, n = 100 000 in each round, delta = 1e-6",
            axis="rounds",
            points=ROUNDS,
            at=composed,
            highlighted=(),
        ),
        "grouped": Figure(
            title="any randomizer, epsilon0 = 1, n = 1 000 000, groups of 44 in a row",
            axis="alpha",
            points=ALPHAS,
            at=within_groups,
            highlighted=("kendall", "displacement"),
        ),
        "honest-fraction": Figure(
            title="any randomizer, epsilon0 = 1, n = 100 000, delta = 1e-6",
            axis="share of honest users",
            points=SHARES,
            at=with_honest,
            highlighted=(),
            logarithmic=False,
        ),
    }
)


def data_of(figure: Figure) -> dict[str, Any]:
    """Return the numbers that a figure shows, to six digits; null where a curve has none."""
    found = [figure.at(point) for point in figure.points]
    names = list(dict.fromkeys(name for values in found for name in values))
    curves = {
        name: [float(f"{value:.6g}") if (value := each.get(name)) else None for each in found]
        for name in names
    }
    kept = {name: values for name, values in curves.items() if any(values)}
    return {"x": list(figure.points), "curves": kept}


def data_in(text: str) -> dict[str, Any]:
    """Return the numbers that an SVG file holds."""
    start, end = text.index('{"x"'), text.index("</dc:description>")
    found: dict[str, Any] = json.loads(text[start:end].replace("&quot;", '"'))
    return found


def apart(
    ends: Mapping[str, tuple[float, float]], distance: float
) -> dict[str, tuple[float, float]]:
    """Return places for the names of curves that end at the same x, none too near another.

    >>> apart({"a": (1.0, 1.0), "b": (1.0, 1.0), "c": (2.0, 1.0)}, math.log(2.0))
    {'a': (1.0, 1.0), 'b': (1.0, 2.0), 'c': (2.0, 1.0)}
    """
    places: dict[str, tuple[float, float]] = {}
    last: dict[float, float] = {}
    for name, (x, y) in sorted(ends.items(), key=lambda item: item[1][1]):
        last[x] = max(y, last[x] * math.exp(distance)) if x in last else y
        places[name] = (x, last[x])
    return places


def draw(figure: Figure, path: Path) -> None:
    """Write a figure and its numbers to an SVG file."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    data = data_of(figure)
    mpl.use("svg")
    settings = {"svg.hashsalt": "shuffledp", "svg.fonttype": "none", "font.size": 9}
    with plt.rc_context(settings):
        canvas, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
        colours = iter(("#0b61a4", "#d97706", "#7c3aed"))
        ends: dict[str, tuple[float, float]] = {}
        for name, values in data["curves"].items():
            heights = [float("nan") if value is None else value for value in values]
            if name == BEST:
                axes.plot(data["x"], heights, color="#0f766e", lw=3.5, alpha=0.45, label=name)
            elif name == LOWER:
                axes.plot(data["x"], heights, color="#b91c1c", ls="--", lw=1.3, label=name)
            elif name in figure.highlighted:
                axes.plot(data["x"], heights, color=next(colours), lw=1.6, label=name, zorder=4)
            else:
                axes.plot(data["x"], heights, color="#9ca3af", lw=0.8, zorder=1)
                ends[name] = next(
                    (x, y) for x, y in zip(data["x"][::-1], values[::-1], strict=True) if y
                )
        axes.set(
            title=figure.title,
            xlabel=figure.axis,
            ylabel="central epsilon",
            yscale="log",
            xscale="log" if figure.logarithmic else "linear",
        )
        low, high = (math.log(end) for end in axes.get_ylim())
        for name, (x, y) in apart(ends, 0.035 * (high - low)).items():
            axes.annotate(
                f" {name}",
                ends[name],
                xytext=(x, y),
                color="#6b7280",
                fontsize=6,
                va="center",
                annotation_clip=False,
            )
        axes.grid(visible=True, color="#e5e7eb", lw=0.5)
        axes.legend(fontsize=7, frameon=False)
        metadata = {"Date": None, "Creator": None, "Description": json.dumps(data)}
        canvas.savefig(path, format="svg", metadata=metadata)
        plt.close(canvas)


def main(names: list[str]) -> None:
    """Draw the named figures, or all."""
    FOLDER.mkdir(exist_ok=True)
    for name in names or FIGURES:
        draw(FIGURES[name], FOLDER / f"{name}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
