"""Liew, Takahashi, Takagi, Kato, Cao, Yoshikawa, "Network Shuffling: Privacy Amplification via
Random Walks", SIGMOD 2022, arXiv:2204.03919: random walks on real and on regular graphs.

web-Google, the paper's fifth graph, is left out: it is at SNAP only. Figures 4, 6, 7 and 9 need
edge lists. Run it with ``python papers/liew_2022.py --data FOLDER --out FOLDER``.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from charts import Chart, Figure, Line, spread
from network_theorems import all_epsilon, largest_collision, single_epsilon, thinned_epsilon
from paper import Settings, main
from public_data import load_graph
from shuffledp import Entropy, LocalProfile, account
from shuffledp.collection import Reports
from shuffledp.network import Graph, NetworkMixing, network_walk_epsilon
from shuffledp.randomizers import PrivUnit

OURS, UNIFORM, LOCAL = "ours", "trusted uniform shuffler", "local reports, epsilon0"
CORRECTED, PRINTED = "published theorem, corrected", "published theorem, as printed"
STROKES: dict[str, dict[str, Any]] = {
    OURS: {"linestyle": "-", "linewidth": 1.9, "zorder": 4},
    CORRECTED: {"linestyle": "--", "linewidth": 1.4, "zorder": 3},
    PRINTED: {"linestyle": ":", "linewidth": 1.5, "zorder": 2},
    UNIFORM: {"linestyle": (0, (7, 2, 1, 2, 1, 2)), "linewidth": 1.0, "zorder": 1},
    LOCAL: {"linestyle": "-", "linewidth": 0.9, "zorder": 0, "alpha": 0.7},
}
TITLES = {"facebook": "Facebook", "twitch": "Twitch", "deezer": "Deezer", "enron": "Enron"}

DELTA = 1e-6
_EPSILON = "central epsilon (nats)"

# Fig. 4 and 5. The published theorem amplifies at small epsilon0 only, so it is compared there.
_PROFILE = LocalProfile(epsilon0=0.5)


def figure_4(settings: Settings, _entropy: Entropy) -> Figure:
    """Epsilon over the rounds on the three real graphs of around as many users."""
    rounds = [1, 30, 1_000] if settings.quick else spread(100, 10_000, 28)
    curves, printed = [], []
    for key in ("facebook", "deezer", "enron"):
        graph = load_graph(key, settings)
        curves.append(_over_rounds(TITLES[key], graph, rounds, positions="spectral"))
        printed.append(_printed_line(curves[-1]))
    graphs = "; ".join(f"{each.name}, {each.num_users:,} users" for each in curves)
    caption = f"""\
Fig. 4. Central epsilon against rounds, protocol "all", epsilon0 = {_PROFILE.epsilon0:g}, delta =
{DELTA:g} in all: {graphs}. Ours (solid): for every user, by eigenvalues, and never above epsilon0.
Published theorem as printed (dotted): Theorem 5.3 with Eq. (7), which is not proved on these
graphs before the walk has mixed, since Eq. (7) holds on regular graphs only. Corrected (dashed):
the same theorem with what is proved after any number of rounds on any graph. Levels: a trusted
uniform shuffler of as many users, which ours reaches. epsilon0 and delta are ours: the text that we
have of the paper has lost its formulas. The graphs are the largest components."""
    return _figure("4", caption, _rounds_chart(curves, "real graphs", printed))


def figure_5(settings: Settings, entropy: Entropy) -> Figure:
    """Epsilon over the rounds on random k-regular graphs, by exact laws."""
    num_users, degrees = (300, (3, 10)) if settings.quick else (10_000, (3, 5, 10, 20, 50))
    curves = [
        _over_rounds(
            f"k = {degree}",
            _random_regular_graph(num_users, degree, entropy),
            [1, 2, 3, 10] if settings.quick else rounds_of(degree),
            positions="exact",
        )
        for degree in degrees
    ]
    caption = f"""\
Fig. 5. Central epsilon against rounds on random k-regular graphs of {num_users:,} users, protocol
"all", epsilon0 = {_PROFILE.epsilon0:g}, delta = {DELTA:g} in all. Ours (solid): exact laws of the
positions from each start, the worst user. Corrected (dashed): the published theorem with the
collision probability of the exact laws. Theorem 5.4, which the paper draws here, is not drawn: its
proof does not hold. After few rounds a walk is back near its start at even rounds more often than
at odd ones, and users that it cannot reach hide nobody. Degrees, n, epsilon0 and delta are ours:
the text that we have of the paper has lost them."""
    return _figure("5", caption, _rounds_chart(curves, f"k-regular graphs, n = {num_users:,}"))


def _random_regular_graph(num_users: int, degree: int, entropy: Entropy) -> Graph:
    """Return a random graph in which everybody has as many neighbours."""
    seed = int(entropy.words(1)[0]) % (1 << 32)
    return Graph.from_edges([*nx.random_regular_graph(degree, num_users, seed=seed).edges])


def figure_6(settings: Settings, _entropy: Entropy) -> Figure:
    """Epsilon over epsilon0 on the real graphs, once the walk has mixed."""
    lines, words = [], []
    for key, title in TITLES.items():
        mixing, rounds = _mixed(key, settings)
        words.append(f"{title} ({mixing.graph.num_users:,} users), {rounds:,} rounds")
        lines += _lines_on(mixing, rounds, "all", title, settings)
    caption = f"""\
Fig. 6. Central epsilon against epsilon0 on real graphs, protocol "all", delta = {DELTA:g} in all,
after as many rounds as are proved to bring each report's law within 1% of the stationary one:
{"; ".join(words)}. Ours (solid) is within about one percent of a uniform shuffler of as many users,
so it depends on the number of users alone. Published (dashed): Theorem 5.3, corrected for the
remaining distance; it amplifies at small epsilon0 only. web-Google, the fifth graph of the paper,
is not to be had here. The thin line is epsilon0 itself."""
    return _figure("6", caption, _epsilon0_chart("", 'real graphs, protocol "all"', lines))


def figure_7(settings: Settings, _entropy: Entropy) -> Figure:
    """Protocols "all" and "single" over epsilon0 on Twitch."""
    mixing, rounds = _mixed("twitch", settings)
    lines = [
        line
        for protocol in ("all", "single")
        for line in _lines_on(mixing, rounds, protocol, protocol, settings)
    ]
    law = mixing.graph.stationary_law()
    held = law.size - expected_empty_users(law)
    caption = f"""\
Fig. 7. Protocols "all" and "single" on the Twitch graph ({law.size:,} users) after {rounds} rounds,
delta = {DELTA:g} in all, against epsilon0. Ours (solid), published theorems, corrected (dashed):
5.3 for "all", 5.5 for "single", which needs dummies that look like reports; ours does not. By ours
"single" hides somewhat better at every epsilon0: only about {held:,.0f} reports are handed in, each
user's with probability {held / law.size:.2f} or so on average, which weighs more than the smaller
crowd. The analyst pays for it (Fig. 9). The paper's other graph, web-Google, is not to be had
here."""
    return _figure("7", caption, _epsilon0_chart("", f"Twitch, {rounds} rounds", lines))


def figure_8(settings: Settings, _entropy: Entropy) -> Figure:
    """Number of users, irregularity and protocol at stationarity."""
    n = 1_000 if settings.quick else 10**5
    counts = (100, 1_000) if settings.quick else (10**4, 10**5, 10**6)
    gammas = (1.0, 10.0, 50.0)
    panels = {
        'users, protocol "all"': [(f"n = {each:,}", each, 1.0, "all") for each in counts],
        f'irregularity, n = {n:,}, "all"': [(f"Gamma = {g:g}", n, g, "all") for g in gammas],
        f"protocol, n = {n:,}": [(each, n, gammas[1], each) for each in ("all", "single")],
    }
    charts = [
        _epsilon0_chart(letter, title, [line for c in cases for line in _stationary(c, settings)])
        for letter, (title, cases) in zip("abc", panels.items(), strict=True)
    ]
    caption = f"""\
Fig. 8. Central epsilon at stationarity against epsilon0, delta = {DELTA:g} in all; no graph. (a)
number of users n, regular graph, protocol "all"; (b) irregularity Gamma = n sum pi^2, n = {n:,},
protocol "all": ours does not depend on it; (c) protocol, n = {n:,}, Gamma = {gammas[1]:g}. Ours
(solid), published theorems as printed (dotted), which at stationarity are bounds. Where only Gamma
is given we take the law in which one of Gamma users holds all reports evenly; ours for "single"
depends on the whole law. n and Gamma are ours: the text that we have of the paper has lost
them."""
    return _figure("8", caption, *charts)


# Fig. 9: as in the paper; for other graphs the expected number itself.
_TWITCH_USERS, _PAPER_DUMMIES = 9_498, 7_080
# Where the published theorem gives more, nobody would use it, and the axis would be stretched.
_MOST_EPSILON = 10.0
_COUNTED, _RECOGNISED = "single, dummies counted", "single, empty answers recognised"


def figure_9(settings: Settings, entropy: Entropy) -> Figure:
    """Squared error of the mean of vectors over the central epsilon on Twitch."""
    law = load_graph("twitch", settings).stationary_law()
    epsilon0s: tuple[float, ...] = (0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
    dimension = 200
    if settings.quick:
        epsilon0s, dimension = (0.5, 2.0), 10
    empty = expected_empty_users(law)
    dummies = _PAPER_DUMMIES if law.size == _TWITCH_USERS else round(empty)
    vectors = heterogeneous_vectors(law.size, dimension, entropy.spawn())
    randomizers = [PrivUnit(dimension=dimension, epsilon0=each) for each in epsilon0s]
    errors = [
        squared_errors(
            each, vectors, law, num_dummies=dummies, trials=settings.trials, entropy=entropy.spawn()
        )
        for each in randomizers
    ]
    lines = _error_lines(law, [each.profile for each in randomizers], errors)
    chart = Chart(
        title=f"PrivUnit, d = {dimension}, Twitch",
        x_label=_EPSILON,
        y_label="squared error of the mean",
        lines=tuple(line for line in lines if line.x),
        x_scale="log",
        y_scale="log",
        trials=settings.trials,
    )
    norm = float(np.sum(vectors.mean(axis=0) ** 2))
    caption = f"""\
Fig. 9. Squared error of the mean of {dimension}-dimensional unit vectors against the central
epsilon, on the Twitch graph ({law.size:,} users) at stationarity, delta = {DELTA:g} in all;
PrivUnit with the best parameters, epsilon0 from {epsilon0s[0]:g} to {epsilon0s[-1]:g}. Dotted:
accounted by the published theorems as printed, up to epsilon = {_MOST_EPSILON:g}. Solid: by ours,
with PrivUnit's own law. "single, dummies counted" is the published estimate: {dummies:,} dummies,
reports of the zero vector, are taken for answers, so that the mean is drawn to zero however large
epsilon is. "single, empty answers recognised" leaves them out: {law.size - empty:,.0f} reports or
so remain. Error bars: one standard deviation over {settings.trials} trials. The paper finds "all"
better throughout its region. Here that is so where epsilon is large; where it is small, counted
dummies help, but an error above {norm:.2f} is worse than answering zero. Recognised empty answers
come close to "all" by our account. The paper's 7,080 is its expected number of users without a
report; from its graph we find {empty:,.0f}. Data in the manner of Chen, Kairouz and Ozgur,
arXiv:2007.11707, which the paper follows: coordinates normal around 1 for half of the users and
around 10 for the others, variance 1, then each vector has norm 1; centres, dummies and delta are
ours, since the text that we have of the paper has lost them."""
    return _figure("9", caption, chart)


def _figure(name: str, caption: str, *charts: Chart) -> Figure:
    """Return a figure in the strokes of this paper."""
    return Figure(name=name, caption=caption, charts=charts, strokes=STROKES)


# ---------------------------------------------------------------- guarantees


def stationary_epsilon(profile: LocalProfile, law: NDArray[np.float64], protocol: str) -> float:
    """Return our epsilon where all reports have the same law of their holder; errs upwards."""
    is_single = protocol == "single"
    return network_walk_epsilon(
        profile,
        overlaps=np.ones(law.size - 1),
        delta=DELTA,
        protocol="single" if is_single else "all",
        position_law=np.minimum(np.nextafter(law, 1.0), 1.0) if is_single else None,
        with_lower=False,
    ).upper


def printed_epsilon(epsilon0: float, num_users: int, collision: float, protocol: str) -> float:
    """Return Theorem 5.3 or 5.5 as printed: a bound at stationarity, and else only a drawing.

    ``collision`` is sum_j law_j^2; after finitely many rounds the paper puts Eq. (7) here.
    """
    if protocol == "all":
        return all_epsilon(epsilon0, num_users=num_users, collision=collision, delta=DELTA)
    return single_epsilon(epsilon0, collision=collision, delta=DELTA)


def corrected_epsilon(epsilon0: float, mixing: NetworkMixing, rounds: int, protocol: str) -> float:
    """Return the theorem of a protocol as it is proved after any number of rounds on any graph."""
    hiding = mixing.hiding(rounds)
    collision = largest_collision(hiding.bounds.reference, hiding.bounds.chi_square)
    if protocol == "single":
        return single_epsilon(epsilon0, collision=collision, delta=DELTA)
    return thinned_epsilon(epsilon0, overlaps=hiding.overlaps, collision=collision, delta=DELTA)


def law_with_irregularity(num_users: int, irregularity: float) -> NDArray[np.float64]:
    """Return the law in which n / Gamma of n users hold all reports evenly.

    >>> law_with_irregularity(4, 2.0).tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    holders = round(num_users / irregularity)
    return np.where(np.arange(num_users) < holders, 1.0 / holders, 0.0)


# ---------------------------------------------------------------- charts over rounds


def rounds_of(degree: int) -> list[int]:
    """Return rounds until the walk has mixed; each is drawn while it still oscillates."""
    last = {3: 100, 5: 60, 10: 30}.get(degree, 20)
    return sorted({*range(1, 17), *spread(16, last, 12)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """An exchange on one graph, to be accounted for after several numbers of rounds."""

    name: str
    mixing: NetworkMixing
    rounds: Sequence[int]

    @property
    def num_users(self) -> int:
        """Return the number of users."""
        return self.mixing.graph.num_users

    @property
    def x(self) -> tuple[float, ...]:
        """Return the points of the horizontal axis."""
        return tuple(map(float, self.rounds))


def _over_rounds(
    name: str, graph: Graph, rounds: Sequence[int], *, positions: Literal["exact", "spectral"]
) -> Curve:
    """Return an exchange whose positions after these rounds are known, under a name."""
    mixing = NetworkMixing(graph, positions=positions)
    mixing.position_bounds_at(rounds)  # one pass for all
    return Curve(name=name, mixing=mixing, rounds=rounds)


def _rounds_chart(curves: Sequence[Curve], title: str, further: Iterable[Line] = ()) -> Chart:
    """Return a chart of curves, the levels of uniform shufflers, epsilon0, and further lines."""
    lines, levels = [], {}
    for curve in curves:
        name, mixing = curve.name, curve.mixing
        notes = tuple(f"{mixing.hiding(each).bounds.method} bounds" for each in curve.rounds)
        ours = tuple(
            mixing.epsilon(_PROFILE, rounds=each, delta=DELTA, with_lower=False).upper
            for each in curve.rounds
        )
        corrected = tuple(
            corrected_epsilon(_PROFILE.epsilon0, mixing, each, "all") for each in curve.rounds
        )
        lines += [
            Line(kind=OURS, variant=name, x=curve.x, y=ours, notes=notes),
            Line(kind=CORRECTED, variant=name, x=curve.x, y=corrected),
        ]
        uniform = account(_PROFILE, num_users=curve.num_users, delta=DELTA)
        levels[curve.num_users] = name, uniform.epsilon_upper
    lines += [
        Line(kind=UNIFORM, variant=name * (len(levels) > 1), y=(level,))
        for name, level in levels.values()
    ]
    return Chart(
        title=title,
        x_label="rounds",
        y_label=_EPSILON,
        lines=(*lines, *further, Line(kind=LOCAL, y=(_PROFILE.epsilon0,))),
        x_scale="log",
        y_scale="log",
        y_limits=(None, 4.0 * _PROFILE.epsilon0),  # a published bound may be far above
    )


def _printed_line(curve: Curve) -> Line:
    """Return Theorem 5.3 with equation (7), as printed, at the same rounds."""
    users, limit = curve.num_users, curve.mixing.graph.irregularity / curve.num_users
    rate = 1.0 - curve.mixing.spectrum.spectral_gap
    collisions = [min(limit + rate ** (2 * each), 1.0) for each in curve.rounds]
    return Line(
        kind=PRINTED,
        variant=curve.name,
        x=curve.x,
        y=tuple(printed_epsilon(_PROFILE.epsilon0, users, each, "all") for each in collisions),
    )


# ---------------------------------------------------------------- charts over epsilon0


def _epsilon0s(settings: Settings) -> tuple[float, ...]:
    """Return the points of the horizontal axis."""
    return (0.2, 1.0) if settings.quick else (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)


def _epsilon0_chart(name: str, title: str, lines: Sequence[Line]) -> Chart:
    """Return a chart over epsilon0, with epsilon0 itself as a line."""
    itself = Line(kind=LOCAL, x=lines[0].x, y=lines[0].x)
    return Chart(
        name=name,
        title=title,
        x_label="local epsilon0 (nats)",
        y_label=_EPSILON,
        lines=(*lines, itself),
        x_scale="log",
        y_scale="log",
        y_limits=(None, 8.0),
    )


def _mixed(key: str, settings: Settings) -> tuple[NetworkMixing, int]:
    """Return a graph, prepared, and rounds after which its gap shows that it mixed within 1 %.

    As every ratio P_i(j) / pi_j is within lambda^t / sqrt(pi_i pi_j) of 1.
    """
    mixing = NetworkMixing(load_graph(key, settings), positions="spectral")
    ratio = 100.0 / float(mixing.graph.stationary_law().min())
    return mixing, math.ceil(math.log(ratio) / mixing.spectrum.spectral_gap)


def _lines_on(
    mixing: NetworkMixing, rounds: int, protocol: str, name: str, settings: Settings
) -> list[Line]:
    """Return ours and the published theorem on one graph."""
    x = _epsilon0s(settings)
    hiding = mixing.hiding(rounds)
    terms: Any = {"delta": DELTA, "protocol": protocol}
    points = [
        (
            hiding.epsilon(profile, with_lower=False, **terms).upper,
            corrected_epsilon(profile.epsilon0, mixing, rounds, protocol),
        )
        for profile in (LocalProfile(epsilon0=each) for each in x)
    ]
    notes = (f"{rounds} rounds",) * len(x)
    return [
        Line(kind=kind, variant=name, x=x, y=y, notes=notes)
        for kind, y in zip((OURS, CORRECTED), zip(*points, strict=True), strict=True)
    ]


def _stationary(case: tuple[str, int, float, str], settings: Settings) -> list[Line]:
    """Return ours and the published theorem for a number of users, Gamma and protocol."""
    name, num_users, gamma, protocol = case
    law = law_with_irregularity(num_users, gamma)
    collision = float(law @ law)
    x = _epsilon0s(settings)
    notes = (f"n = {num_users}, Gamma = {num_users * collision:g}, {protocol}",) * len(x)
    ours = tuple(stationary_epsilon(LocalProfile(epsilon0=each), law, protocol) for each in x)
    published = tuple(printed_epsilon(each, num_users, collision, protocol) for each in x)
    return [
        Line(kind=OURS, variant=name, x=x, y=ours, notes=notes),
        Line(kind=PRINTED, variant=name, x=x, y=published, notes=notes),
    ]


# ---------------------------------------------------------------- means of vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class SquaredErrors:
    """Squared Euclidean errors of estimates of the same mean, one for each trial."""

    all_reports: NDArray[np.float64]  # protocol "all": as of a uniform shuffler
    with_dummies: NDArray[np.float64]  # "single" as published: dummies are taken for reports
    without_dummies: NDArray[np.float64]  # "single" whose empty answers are left out
    num_released: NDArray[np.int64]  # reports behind them


def heterogeneous_vectors(num_users: int, dimension: int, entropy: Entropy) -> NDArray[np.float64]:
    """Return unit vectors, whose coordinates are normal around 1, for the second half around 10."""
    vectors = entropy.generator().standard_normal((num_users, dimension))
    vectors[: num_users // 2] += 1.0
    vectors[num_users // 2 :] += 10.0
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def expected_empty_users(law: NDArray[np.float64]) -> float:
    """Return the expected number of users without a report, when each of n is placed by a law.

    >>> expected_empty_users(np.array([0.5, 0.5]))
    0.5
    """
    return float(np.exp(law.size * np.log1p(-np.minimum(law, 1.0 - 1e-16))).sum())


def squared_errors(
    randomizer: PrivUnit,
    vectors: NDArray[np.float64],
    law: NDArray[np.float64],
    *,
    num_dummies: int,
    trials: int,
    entropy: Entropy,
) -> SquaredErrors:
    """Randomize, release and estimate again and again, once the walk has mixed.

    At stationarity the released reports of protocol "single" are a uniformly random set of users:
    all labels have the same law, so the choice favours nobody. Their number is that of distinct
    places among n draws from ``law``. A dummy is PrivUnit's report of the zero vector.
    """
    num_users = vectors.shape[0]
    truth = vectors.mean(axis=0)
    generator = entropy.generator()
    errors = np.empty((3, trials))
    released = np.empty(trials, dtype=np.int64)
    nothing = np.zeros((num_dummies, vectors.shape[1]))
    for trial in range(trials):
        decoded = _decoded(randomizer, randomizer.randomize(vectors, entropy))
        dummies = _decoded(randomizer, randomizer.randomize(nothing, entropy))
        order = generator.permutation(num_users)
        released[trial] = np.unique(generator.choice(num_users, size=num_users, p=law)).size
        kept = decoded[order[: num_users - num_dummies]].sum(axis=0) + dummies.sum(axis=0)
        estimates = (
            decoded.mean(axis=0),
            kept / num_users,
            decoded[order[: released[trial]]].mean(axis=0),
        )
        errors[:, trial] = [np.sum((each - truth) ** 2) for each in estimates]
    return SquaredErrors(
        all_reports=errors[0],
        with_dummies=errors[1],
        without_dummies=errors[2],
        num_released=released,
    )


def _decoded(randomizer: PrivUnit, reports: Reports) -> NDArray[np.float64]:
    """Return the vector that each report stands for, shape (n, d)."""
    offset, factor = randomizer.score_scale
    return offset + factor * np.asarray(randomizer.scores(reports), dtype=np.float64)


def _error_lines(
    law: NDArray[np.float64], profiles: Sequence[LocalProfile], errors: Sequence[SquaredErrors]
) -> Iterator[Line]:
    """Yield each way to estimate, by both accounts, as far as the axis goes."""
    ways = {
        ("all", "all"): [each.all_reports for each in errors],
        (_COUNTED, "single"): [each.with_dummies for each in errors],
        (_RECOGNISED, "single"): [each.without_dummies for each in errors],
    }
    for (name, protocol), samples in ways.items():
        accounts = {OURS: [stationary_epsilon(each, law, protocol) for each in profiles]}
        if name != _RECOGNISED:  # the theorem is about dummies that look like reports
            accounts[PRINTED] = [
                printed_epsilon(each.epsilon0, law.size, float(law @ law), protocol)
                for each in profiles
            ]
        for kind, epsilons in accounts.items():
            kept = [i for i, epsilon in enumerate(epsilons) if epsilon <= _MOST_EPSILON]
            yield Line(
                kind=kind,
                variant=name,
                x=tuple(epsilons[i] for i in kept),
                y=tuple(float(samples[i].mean()) for i in kept),
                deviation=tuple(float(samples[i].std(ddof=1)) for i in kept),
                notes=tuple(f"{protocol}, epsilon0 = {profiles[i].epsilon0:.6g}" for i in kept),
            )


FIGURES = {
    "4": figure_4,
    "5": figure_5,
    "6": figure_6,
    "7": figure_7,
    "8": figure_8,
    "9": figure_9,
}

if __name__ == "__main__":
    main(FIGURES)
