"""What known deployments used: published privacy parameters, to compare a plan with.

That somebody used a number does not make it safe. Units differ, so the unit stands beside each.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Precedent:
    """Published parameters of one deployment; ``is_local`` if no curator or shuffler is trusted."""

    name: str
    year: int
    is_local: bool
    epsilon: float
    delta: float
    unit: str
    source: str

    @property
    def parameters(self) -> str:
        """Local or central epsilon, and delta, with their unit."""
        kind = "local" if self.is_local else "central"
        delta = f", delta {self.delta:g}".replace("e-0", "e-") if self.delta else ""
        return f"{kind} epsilon {self.epsilon:g}{delta} for each {self.unit}"

    @property
    def title(self) -> str:
        """Whose, what and when."""
        return f"{self.name} ({self.year})"


_APPLE = "Apple, Learning with Privacy at Scale, 2017"

PRECEDENTS = (
    Precedent(
        name="Microsoft, Windows telemetry",
        year=2017,
        is_local=True,
        epsilon=1.672,
        delta=0.0,
        unit="user and six hours",
        source="Ding, Kulkarni, Yekhanin, arXiv:1712.01524, section 5",
    ),
    Precedent(
        name="Apple, health data types",
        year=2017,
        is_local=True,
        epsilon=2.0,
        delta=0.0,
        unit="report",
        source=_APPLE,
    ),
    Precedent(
        name="Apple, popular emojis",
        year=2017,
        is_local=True,
        epsilon=4.0,
        delta=0.0,
        unit="report",
        source=_APPLE,
    ),
    Precedent(
        name="Apple, playback preferences of web sites",
        year=2017,
        is_local=True,
        epsilon=8.0,
        delta=0.0,
        unit="report",
        source=_APPLE,
    ),
    Precedent(
        name="Exposure notifications (Apple, Google)",
        year=2021,
        is_local=True,
        epsilon=8.0,
        delta=0.0,
        unit="report, then aggregated without names",
        source="Exposure Notification Privacy-preserving Analytics, white paper, 2021",
    ),
    Precedent(
        name="Apple, iconic scenes",
        year=2023,
        is_local=False,
        epsilon=1.0,
        delta=1.5e-7,
        unit="user, after secure aggregation",
        source="Apple, Learning Iconic Scenes with Differential Privacy, 2023",
    ),
    Precedent(
        name="Google, community mobility",
        year=2020,
        is_local=False,
        epsilon=2.64,
        delta=0.0,
        unit="user and day",
        source="Aktay et al., arXiv:2004.04145",
    ),
    Precedent(
        name="US Census, redistricting, persons",
        year=2021,
        is_local=False,
        epsilon=17.14,
        delta=1e-10,
        unit="person",
        source="Abowd et al., arXiv:2204.08986",
    ),
    Precedent(
        name="LinkedIn, audience engagement",
        year=2020,
        is_local=False,
        epsilon=34.9,
        delta=7e-9,
        unit="user and month",
        source="Rogers et al., arXiv:2002.05839",
    ),
)


def nearest(epsilon: float, *, is_local: bool, most: int = 2) -> tuple[Precedent, ...]:
    """Return the deployments of one kind whose epsilon is nearest by ratio, smaller first."""
    # Both are > 0, and the nearest by ratio is the one with the least larger-over-smaller.
    same: Iterable[Precedent] = (each for each in PRECEDENTS if each.is_local is is_local)
    near = sorted(same, key=lambda each: max(each.epsilon, epsilon) / min(each.epsilon, epsilon))
    return tuple(sorted(near[:most], key=lambda each: each.epsilon))
