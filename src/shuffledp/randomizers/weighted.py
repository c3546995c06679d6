"""``Weighted``: users whose answers count by public weights, through a randomizer of one answer.

A report cannot carry its weight through a shuffle, which would give away whose it is. So an answer
is kept with the probability weight / largest weight, by a coin of its user's own, and is "not
drawn" otherwise: one more category. A number is multiplied by that ratio instead, which is exact.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.arrays import Floats
from shuffledp.core.checks import require_positive
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DomainError, ParameterError
from shuffledp.core.profile import LocalProfile, RandomizerFamily
from shuffledp.core.reports import Aggregate, Reports
from shuffledp.estimation.frequencies import FrequencyEstimates
from shuffledp.estimation.intervals import Interval
from shuffledp.randomizers import checks

# So many words draw a number in [0, 2^63).
_COIN = 2.0**63


_ERRORS = ("standard_error", "population_standard_error")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightedFrequencies(FrequencyEstimates):
    """Shares of the users' weight, whose errors and intervals all count coins and sampling."""

    def _population_interval(self) -> Interval:
        return self.lower, self.upper


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """A `LocalRandomizer` of pairs of a value and a weight.

    Parameters
    ----------
    base : LocalRandomizer
        Of the categories 0, ..., k, k for an answer that is not drawn; or of numbers in
        [0, high - low].
    most_weight : float
        The largest weight, > 0; larger ones count as that.
    low : float, optional
        The least number; None where values are categories, which are drawn.

    Notes
    -----
    Privacy is the base's, whatever the public weights: what a user reports on is a random function
    of the value, and (epsilon, delta) of each outcome of all users' coins is that of the mixture,
    for hockey-stick divergences are jointly convex. Lower ends are not claimed.

    A kept answer has the probability weight / most_weight, rounded to a double and then to a
    multiple of 2^-63.
    """

    base: Any
    most_weight: float
    low: float | None = None
    fingerprint: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        most = require_positive("most_weight", self.most_weight)
        low = "" if self.low is None else float(self.low).hex()
        law = {"base": self.base.fingerprint, "most_weight": most.hex(), "low": low}
        fingerprint = checks.fingerprint_of(self.name, **law)
        checks.set_fields(self, most_weight=most, fingerprint=fingerprint)

    def __getattr__(self, name: str) -> Any:
        # All else is the base's, such as the laws of several messages. Copies have no base yet.
        if name.startswith("__") or name == "base":
            raise AttributeError(name)
        return getattr(self.base, name)

    @property
    def name(self) -> str:
        """Name of the base after a colon."""
        return f"weighted:{self.base.name}"

    @property
    def epsilon0(self) -> float:
        """The base's."""
        return float(self.base.epsilon0)

    @property
    def num_report_bytes(self) -> int:
        """The base's."""
        return int(self.base.num_report_bytes)

    @property
    def profile(self) -> LocalProfile:
        """What the accountant needs: the base's loss and blanket.

        The explicit data of an attack on the base may not be there: others' values are mixtures.
        """
        own: LocalProfile = self.base.profile
        return replace(own, family=RandomizerFamily.OTHER, attack=(), channel=None)

    def randomize(self, values: NDArray[Any], entropy: Entropy) -> Reports:
        """Return the base's report of each value and weight, rows of an array of shape (n, 2)."""
        pairs = np.asarray(values, dtype=np.float64)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ParameterError(
                f"values has shape {pairs.shape}: give a value and a weight a user"
            )
        answers, ratios = pairs[:, 0], self.ratios(pairs[:, 1])
        if self.low is None:
            is_kept = entropy.words(len(pairs)) >> np.uint64(1) < (ratios * _COIN).astype(np.uint64)
            drawn: Any = np.where(is_kept, answers, self.base.domain_size - 1).astype(np.int64)
        else:
            drawn = (answers - self.low) * ratios
        return Reports(data=self.base.randomize(drawn, entropy).data, fingerprint=self.fingerprint)

    def ratios(self, weights: Floats) -> Floats:
        """Return weights in units of the largest, in (0, 1]."""
        if not (np.isfinite(weights) & (weights > 0.0)).all():
            raise DomainError(
                "weights are not all positive and finite: leave out who has no weight"
            )
        return np.minimum(weights / self.most_weight, 1.0)

    def report_columns(self) -> Reports:
        """Return the reports that dummies can be."""
        return Reports(data=self.base.report_columns().data, fingerprint=self.fingerprint)

    def aggregate(self, reports: Reports) -> Aggregate:
        """Return the base's aggregate."""
        checks.require_same_law(reports.fingerprint, self.fingerprint)
        own = Reports(data=reports.data, fingerprint=self.base.fingerprint)
        found: Aggregate = replace(self.base.aggregate(own), fingerprint=self.fingerprint)
        return found

    def estimate(self, data: Any, *, scale: float = 1.0, **how: Any) -> Any:
        """Return shares of the weight, or the weighted mean; ``scale`` is most over mean weight.

        A report is for category j, before noise, with the probability 1[x = j] w / most_weight,
        whose mean over the users is the share of j in the weight, over the scale. Which answers
        were drawn is not known, so that errors of shares are those of a sample: p (1 - p) of each
        user's coin is at most f (1 - f) of their mean f, on average.
        """
        counts = self.aggregate(data) if isinstance(data, Reports) else data
        checks.require_same_law(counts.fingerprint, self.fingerprint)
        found = self.base.estimate(replace(counts, fingerprint=self.base.fingerprint), **how)
        facts = {each.name: getattr(found, each.name) for each in fields(found) if each.init}
        if self.low is not None:
            scaled = {name: scale * each for name, each in facts.items() if name in _ERRORS}
            places = {name: self.low + scale * facts[name] for name in ("mean", "lower", "upper")}
            return replace(found, **scaled, **places)
        facts |= {name: scale * each[:-1] for name, each in found.columns().items()}
        facts["standard_error"] = facts["population_standard_error"]
        facts["lower"], facts["upper"] = (
            facts.pop(f"population_{end}") for end in ("lower", "upper")
        )
        return WeightedFrequencies(**facts)
