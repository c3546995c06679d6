"""From what an adversary knows to the bounds of its best guess: which result answers which case."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.bound import Bound, reconciled_lower
from shuffledp.core.entropy import Entropy
from shuffledp.core.numerics.rounding import round_up
from shuffledp.leakage.account import Adversary, LeakageAccount
from shuffledp.leakage.priors import uniform_prior

_ASSUMPTION = "The adversary has one try, and wins if it names one chosen person's value."

# k-ary randomized response is written out as a matrix up to this k.
_MOST_WRITTEN = 256

# Ends that different results prove may cross by their rounding.
_ROUND_OFF = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scene:
    """One collection, and what is believed about everybody's value.

    Parameters
    ----------
    num_users, num_values : int
        n >= 1 and k >= 2.
    truth : float or None
        Chance that k-ary randomized response tells the truth; None for another randomizer.
    matrix : (k, m) array or None
        Law of the reports of that one.
    prior : (k,) array or None
        None for the uniform law.
    epsilon0 : float
        Local privacy loss.
    entropy : Entropy
        For simulations.
    num_samples : int or None
        Histograms that are simulated where only that is quick; None for about a second's.
    is_brief : bool
        Leave out what may take seconds and is of less interest.
    """

    num_users: int
    num_values: int
    truth: float | None
    matrix: NDArray[np.float64] | None
    prior: NDArray[np.float64] | None
    epsilon0: float
    entropy: Entropy
    num_samples: int | None = None
    is_brief: bool = False

    @property
    def prior_vulnerability(self) -> float:
        """Chance of the best guess before anything is seen."""
        return 1.0 / self.num_values if self.prior is None else float(self.prior.max())

    def account(self, adversary: Adversary, known: tuple[int, ...] | None) -> LeakageAccount:
        """Return what an adversary can guess.

        Parameters
        ----------
        adversary : {"uninformed", "partial", "strong"}
            Who guesses.
        known : tuple of int or None
            What is known of the others; None for nothing, or for a strong adversary's worst case.
        """
        randomizer = self.randomizer()
        facts: dict[str, Any] = {"knowledge": known}
        num_unknown = self.num_users - 1 - sum(known or ())
        if adversary == "strong" and known is None:
            shuffler, facts = self._certainty(), self._extremes()
            num_unknown = 0
        elif adversary == "uninformed" or known is None:
            shuffler, facts["both"] = self.shuffler(self.num_users), self.uninformed()
        else:
            # Whose values are known drop out of a histogram of true values.
            shuffler = self.shuffler(num_unknown + 1) if num_unknown else self._certainty()
            facts["both"] = self.informed(known, num_unknown)
        facts["both"] = self._sharpened(facts["both"], randomizer, shuffler)
        if facts.get("least") is not None:
            facts["least"] = self._sharpened(facts["least"], randomizer, shuffler)
        return LeakageAccount(
            num_users=self.num_users,
            num_values=self.num_values,
            adversary=adversary,
            prior=self.prior_vulnerability,
            randomizer=randomizer,
            shuffler=self._sharpened(shuffler),
            truth=self.truth,
            epsilon0=self.epsilon0,
            has_uniform_prior=self.prior is None,
            num_unknown=num_unknown,
            **facts,
        )

    def randomizer(self) -> Bound:
        """Return the chance of who sees each report beside the name of its user."""
        if self.matrix is not None:
            from shuffledp.leakage.uninformed.closed_forms import randomizer_vulnerability

            return self._sharpened(randomizer_vulnerability(self.matrix, self.law()))
        truth = self.truth or 1.0
        if self.prior is None:
            from shuffledp.leakage.uninformed.closed_forms import PAPER

            return _bound(truth, truth, "report", f"{PAPER}, Proposition 15")
        other = (1.0 - truth) / (self.num_values - 1)
        value = math.fsum(np.maximum(truth * self.prior, other * self.prior.max()).tolist())
        return self._sharpened(
            _bound(
                value * (1.0 - 8.0 * math.ulp(1.0)),
                min(round_up(value), 1.0),
                "report",
                "definition: sum over reports of the likeliest value's share",
            )
        )

    def shuffler(self, num_users: int) -> Bound:
        """Return the chance of who sees the true values of so many users, shuffled.

        Parameters
        ----------
        num_users : int
            The person and those whose values are not known.
        """
        if self.prior is None:
            from shuffledp.leakage.uninformed.closed_forms import shuffler_vulnerability

            return shuffler_vulnerability(num_users, self.num_values)
        if self.num_values <= _MOST_WRITTEN:
            return self._exchangeable(num_users, np.eye(self.num_values))
        return self._of_many_values(num_users, 1.0)

    def uninformed(self) -> Bound:
        """Return the chance of who sees all reports, shuffled, and knows nobody's value."""
        if self.truth is not None and self.prior is None:
            from shuffledp.leakage.uninformed.closed_forms import shuffled_vulnerability

            return shuffled_vulnerability(self.num_users, self.num_values, self.truth)
        return self._exchangeable(
            self.num_users, written_matrix(self.num_values, self.truth, self.matrix)
        )

    def informed(self, known: tuple[int, ...], num_unknown: int) -> Bound:
        """Return the chance of who sees all reports, shuffled, and knows some others' values."""
        from shuffledp.leakage.informed.strong import strong_vulnerability

        law: Any = self.truth if self.matrix is None else self.matrix
        return strong_vulnerability(
            law,
            known,
            prior=self.prior,
            num_unknown=num_unknown,
            entropy=self.entropy,
            num_samples=self.num_samples,
        )

    def _extremes(self) -> dict[str, Any]:
        """Return the chances of who knows all others, at its best and at its least."""
        found: dict[str, Any] = {"is_worst_knowledge": True, "knowledge": None}
        is_known = self.truth is not None and self.prior is None
        if self.is_brief and (not is_known or self.num_values > 2):
            return {**found, "both": self._whatever_is_known()}
        if not is_known:
            return found | self._compared_extremes()
        from shuffledp.leakage.informed.knowledge import extreme_knowledge

        worst, best = extreme_knowledge(self.num_users, self.num_values, self.truth or 1.0)
        # Counts that are not proved to be the extreme ones are left out.
        found |= {"both": worst.vulnerability}
        found |= {"knowledge": worst.counts if worst.is_extreme else None}
        if not self.is_brief:
            found |= {"least": best.vulnerability}
            found |= {"least_knowledge": best.counts if best.is_extreme else None}
        return found

    def _compared_extremes(self) -> dict[str, Any]:
        """Return the same for any prior and randomizer, from all knowledge of these or fewer."""
        from shuffledp.leakage.informed.knowledge import compared_knowledge

        law: Any = self.truth if self.matrix is None else self.matrix
        compared, (worst, best) = compared_knowledge(self.num_users, law, self.law())
        if compared == self.num_users:
            return {
                "both": worst.vulnerability,
                "knowledge": worst.counts,
                "least": best.vulnerability,
                "least_knowledge": best.counts,
            }
        ends = self._whatever_is_known()
        return {"both": replace(ends, upper=min(ends.upper, worst.vulnerability.upper))}

    def _whatever_is_known(self) -> Bound:
        """Return the chance of who knows all others, for the values from which it guesses best.

        Those do no worse than average knowledge, which does no worse than none.
        """
        none = replace(self, num_samples=0).uninformed()
        upper = self._hidden_by_noise()
        return Bound(
            lower=none.lower,
            upper=upper,
            method=f"between {none.method} and the blanket",
            source="derived in the shuffledp documentation, results/leakage-strong",
            assumptions=none.assumptions,
        )

    def _exchangeable(self, num_users: int, matrix: NDArray[np.float64] | None) -> Bound:
        """Return the chance of who sees shuffled reports of users who are all alike to it."""
        from shuffledp.leakage.uninformed.exchangeable import exchangeable_vulnerability

        if matrix is None:
            found = self._of_many_values(num_users, self.truth or 1.0)
            return replace(found, upper=min(found.upper, self._hidden_by_noise()))
        return exchangeable_vulnerability(
            num_users,
            matrix,
            prior=self.law(),
            entropy=self.entropy,
            num_samples=self.num_samples,
        )

    def _of_many_values(self, num_users: int, truth: float) -> Bound:
        """Return the same for k-ary randomized response whose matrix would be too large."""
        from shuffledp.leakage.uninformed.largest_share import response_ends

        found = response_ends(num_users, truth, self.law())
        return _bound(
            found.lower,
            found.upper,
            "weighted load",
            "derived in the shuffledp documentation, results/leakage-uninformed",
        )

    def _hidden_by_noise(self) -> float:
        """Return an upper end for who knows all others, whatever their values are."""
        from shuffledp.leakage.informed.blanket_vulnerability import (
            blanket_vulnerability_upper,
            channel_blanket_upper,
        )

        if self.matrix is not None:
            if self.is_brief and self.matrix.shape[1] > self.num_values:
                return 1.0
            return channel_blanket_upper(self.num_users, self.matrix, prior=self.prior)
        return blanket_vulnerability_upper(
            self.num_users, self.num_values, self.truth or 1.0, prior=self.prior
        )

    def law(self) -> NDArray[np.float64]:
        """Return the prior, written out."""
        return uniform_prior(self.num_values) if self.prior is None else self.prior

    def _certainty(self) -> Bound:
        """Return the chance of who takes all known values out of a histogram: one."""
        return _bound(1.0, 1.0, "difference", "all values but one are known")

    def _sharpened(self, bound: Bound, *above: Bound) -> Bound:
        """Return a bound within what is true of every release, and of what it is made from.

        Nobody guesses worse than without a release; and no processing of a release, shuffling or
        randomizing, lets anybody guess better (data processing).
        """
        upper = min([bound.upper, 1.0, *(each.upper for each in above)])
        upper = max(upper, self.prior_vulnerability)
        lower = reconciled_lower(
            bound.lower, upper, tolerance=_ROUND_OFF, claim=f"the {bound.method} bound"
        )
        return replace(bound, upper=upper, lower=max(lower or 0.0, self.prior_vulnerability))


def written_matrix(
    num_values: int, truth: float | None, matrix: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Return a randomizer's matrix: k-ary randomized response written out, or what is given.

    Parameters
    ----------
    num_values : int
        k.
    truth : float or None
        Chance that k-ary randomized response tells the truth; None for another randomizer.
    matrix : (k, m) array or None
        Law of the reports of that one.

    Returns
    -------
    (k, m) array or None
        None where it is too large to be written out.
    """
    if truth is None or num_values > _MOST_WRITTEN:
        return matrix
    from shuffledp.leakage.channels.responses import response_channel

    return response_channel(num_values, truth).to_dense()


def _bound(lower: float, upper: float, method: str, source: str) -> Bound:
    """Return a bound that rests on nothing but the model."""
    return Bound(lower=lower, upper=upper, method=method, source=source, assumptions=(_ASSUMPTION,))
