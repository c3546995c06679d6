"""Reports that walk along a graph, before they have mixed: the weighted blanket.

What the adversary sees is a shuffle of pairs (place, report). Fix the victim v, a law Q on places
with P_v = (1 - a) P'_v + a (anything), Q > 0 where P'_v > 0, and P_i >= kappa_i Q for the others.
Let rho = P'_v / Q, N a sum of independent coins with the chances kappa_i, V_j i.i.d. of law Q, and
G_j i.i.d. of the randomizer's blanket law. Then for both protocols

    delta(eps) <= (1 - a) E_N[W(N + 1)] + a D(1),   W(m) = (1/m) E(sum_{j <= m} rho(V_j) G_j)_+. (W)

*Proof.* Draw the place of report i from Q with probability kappa_i, by a coin of its own. Reveal
place and report of all whose coins fail. The other N send pairs of law Q x R_x, the victim one of
law P'_v x R_x. With a blanket omega <= R_x for all x, the sub-probability Q x omega lies below all
laws of the N; relative to it the victim's two laws have the ratios rho r0 and rho r1. The kernel
(B) of docs/results/kernel.md for m = N + 1 reports is W(m). "Single" can be made from "all". ∎

W(m) does not increase with m, by Jensen as for (B), so `random_crowd` bounds the mean over N. It is
convex in the law of rho: a law that is larger in convex order gives a larger bound. For a blanket
law that dominates others in convex order (clones), rho G dominates too, given rho.

Source: ours; docs/results/network.md.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.amplification import stated_blanket
from shuffledp.accounting.amplification.atom_law import (
    AtomLaw,
    atom_delta_above,
    atom_epsilon_above,
    blanket_atoms,
)
from shuffledp.accounting.amplification.random_crowd import crowd_delta, crowd_epsilon, crowd_of
from shuffledp.accounting.amplification.registry import account_delta, account_epsilon
from shuffledp.core.checks import require_at_least
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.core.profile import LocalProfile, RandomizerFamily

# Relative width of an enclosure, and how far above the least an epsilon is: finer than the grid on
# which weights are where the crowd is large; small crowds take a hundred times as long for that.
_LARGE_CROWD = 2_000
_WIDTHS = {True: (1e-6, 1e-5), False: (1e-4, 1e-4)}

# From here on reports reveal the value so well that no crowd hides it.
_NO_AMPLIFICATION = 200.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """A law of rho = P_v / Q under Q that dominates, in convex order, those of some victims.

    Parameters
    ----------
    values, masses : array_like of float, shape (k,)
        Values >= 0 and their probabilities; what is missing from 1 is at 0.
    accuracy : float
        Relative error that the values may have, >= 0.
    missed : float
        The a of (W), rounded up, in [0, 1].

    Raises
    ------
    ParameterError
        If they are no such law.
    """

    values: NDArray[np.float64]
    masses: NDArray[np.float64]
    accuracy: float = 0.0
    missed: float = 0.0

    def __post_init__(self) -> None:
        values, masses = (np.array(each, np.float64) for each in (self.values, self.masses))
        if not (values.ndim == 1 and values.shape == masses.shape):
            raise ParameterError("weights: values and masses must be arrays of one length")
        sizes = (self.missed <= 1.0, self.missed >= 0.0, 0.0 <= self.accuracy < 1.0)
        if not all(sizes):  # NaN fails
            raise ParameterError(
                f"weights: missed = {self.missed} and accuracy = {self.accuracy} must be in [0, 1]"
            )
        for name, each in (("values", values), ("masses", masses)):
            each.flags.writeable = False
            object.__setattr__(self, name, each)


class WeightedWalk:
    """(W) for one randomizer and one crowd, whoever the victim is.

    Parameters
    ----------
    profile : LocalProfile
        The randomizer's law; ``LocalProfile(epsilon0=...)`` for any epsilon0-LDP randomizer.
    overlaps : array_like of float, shape (n - 1,)
        kappa_i in [0, 1] of the other users, rounded down.
    delta : float
        About what the central delta will be, in (0, 1]; any value is safe.
    num_dishonest : int
        So many of the others hide nobody: the largest overlaps are left out.

    Notes
    -----
    Some ten sizes of the crowd, each a contour integral over the atoms of rho times G: some
    milliseconds to tenths of a second for each epsilon, whatever n.

    Examples
    --------
    A victim that is everywhere as likely as everybody else: a uniform shuffle.

    >>> walk = WeightedWalk(LocalProfile(epsilon0=1.0), [1.0] * 9999, delta=1e-6)
    >>> round(walk.epsilon(Weights(values=[1.0], masses=[1.0]), 1e-6), 5)
    0.04321
    """

    def __init__(
        self,
        profile: LocalProfile,
        overlaps: ArrayLike,
        *,
        delta: float,
        num_dishonest: int = 0,
    ) -> None:
        chances = np.sort(np.asarray(overlaps, dtype=np.float64))
        honest = chances.size - require_at_least("num_dishonest", num_dishonest, 0)
        self._profile = profile
        self._laws = _blanket_laws(profile)
        self._crowd = crowd_of(chances[: max(honest, 0)], delta=delta)
        self._width, self._tolerance = _WIDTHS[self._crowd.sizes[0] >= _LARGE_CROWD]

    @property
    def is_known(self) -> bool:
        """Whether a blanket of the randomizer is known, without which (W) says nothing."""
        return bool(self._laws)

    def delta(self, weights: Weights, epsilon: float) -> float:
        """Return an upper bound of delta at one epsilon >= 0, for these victims."""
        worst = account_delta(self._profile, num_users=1, epsilon=epsilon, with_lower=False).upper
        if not self._laws or worst == 0.0:
            return worst
        laws = [_weighted(law, weights) for law in self._laws]

        def conditional(size: int) -> float:
            return max(atom_delta_above(law, size, epsilon, width=self._width) for law in laws)

        hidden = crowd_delta(self._crowd, conditional, worst)
        if weights.missed == 0.0:
            return hidden
        total = math.nextafter(1.0 - weights.missed, 2.0) * hidden + weights.missed * worst
        return min(round_up(total), worst)

    def epsilon(self, weights: Weights, delta: float) -> float:
        """Return an epsilon whose bound is at most delta, hardly above the least."""
        single = account_epsilon(self._profile, num_users=1, delta=delta, with_lower=False).upper
        if not self._laws or not delta > 0.0 or single == 0.0:
            return single
        guess = max(
            atom_epsilon_above(
                _weighted(law, weights), self._crowd.sizes[-1], delta, single, width=1e-3
            )
            for law in self._laws
        )
        return crowd_epsilon(
            lambda epsilon: self.delta(weights, epsilon),
            delta,
            highest=single,
            guess=guess,
            tolerance=self._tolerance,
        )


def _blanket_laws(profile: LocalProfile) -> list[AtomLaw]:
    """Return laws the larger of which dominates, for both orders of the pair; [] if unknown."""
    if not 0.0 < profile.epsilon0 <= _NO_AMPLIFICATION:
        return []
    if profile.blanket and stated_blanket.violated_hypothesis(profile, 1, None) is None:
        return stated_blanket.dominating_laws(profile)
    if profile.delta0 > 0.0:
        return []
    if profile.family is RandomizerFamily.OTHER:
        profile = LocalProfile(epsilon0=profile.epsilon0)
    return [AtomLaw.from_atoms(blanket_atoms(profile))]


def _weighted(law: AtomLaw, weights: Weights) -> AtomLaw:
    """Return the law of the two ratios of a pair (place, report)."""
    return AtomLaw(
        np.outer(weights.masses, law.masses).ravel(),
        np.outer(weights.values, law.ratios0).ravel(),
        np.outer(weights.values, law.ratios1).ravel(),
        accuracy=law.accuracy + weights.accuracy,
    )
