"""What an adversary can guess about one person, before and after: accounts."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from typing import Any, Literal

from shuffledp.core.bound import Bound
from shuffledp.core.shown import Shown

#: What the adversary knows of the other users' values: nothing, some, or all of them.
Adversary = Literal["uninformed", "partial", "strong"]

#: The three mechanisms compared: everyone randomizes, a shuffler alone, and both together.
CHANNELS = ("randomizer", "shuffler", "both")

# A difference of guesses below this is round-off as likely as leakage.
_NEGLIGIBLE = 1e-12

_MOST_DECIMALS = 12

# Ends that differ by less than this share of the last digit shown differ by round-off.
_ROUND_OFF = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakageAccount(Shown):
    """The success probabilities of the best guess at one person's value, in one try.

    Parameters
    ----------
    num_users : int
        Number n of users, the person among them.
    domain_size : int
        Number k of possible values.
    adversary : {"uninformed", "partial", "strong"}
        Whether the adversary knows none, some, or all of the other users' values.
    prior : float
        Success probability of the best guess before anything is seen, in (0, 1].
    randomizer, shuffler, both : Bound
        The same after seeing each user's randomized report beside the name, all true values
        shuffled, and all randomized reports shuffled. At most 1.
    truth : float or None
        Probability p that k-ary randomized response tells the truth, where that is the randomizer.
    epsilon0 : float or None
        Local privacy loss of the randomizer in nats, where it is known; may be ``inf``.
    has_uniform_prior : bool
        Whether all values were equally likely.
    knowledge : tuple of int or None
        How many of the others the adversary knows to have each value. Without given knowledge, a
        strong adversary has that which lets it guess best, where that is known.
    num_unknown : int
        How many of the others it knows nothing of.
    is_worst_knowledge : bool
        Whether ``both`` holds for whatever the others' values are.

    Notes
    -----
    Model: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
    Quantitative Information Flow", CSF 2023, hal-04349295v1, Section III.

    Examples
    --------
    >>> half = Bound(lower=0.5, upper=0.5, method="x", source="y", assumptions=())
    >>> account = LeakageAccount(num_users=1, domain_size=2, adversary="uninformed", prior=0.5,
    ...                          randomizer=half, shuffler=half, both=half)
    >>> account.additive("both"), account.multiplicative("both")
    (0.0, 1.0)
    """

    num_users: int
    domain_size: int
    adversary: Adversary
    prior: float
    randomizer: Bound
    shuffler: Bound
    both: Bound
    truth: float | None = None
    epsilon0: float | None = None
    has_uniform_prior: bool = True
    knowledge: tuple[int, ...] | None = None
    num_unknown: int = 0
    is_worst_knowledge: bool = False

    def bound(self, channel: str) -> Bound:
        """Return the success probability of ``channel``, one of `CHANNELS`."""
        found: Bound = getattr(self, channel)
        return found

    def additive(self, channel: str) -> float:
        """Return how much more often the guess is right, at most: the additive leakage."""
        return max(self.bound(channel).upper - self.prior, 0.0)

    def multiplicative(self, channel: str) -> float:
        """Return how many times as often the guess is right, at most; at least 1."""
        return max(self.bound(channel).upper / self.prior, 1.0)

    @property
    def sentence(self) -> str:
        """What the collection gives away, in plain words.

        Numbers that are known are rounded to nearest, upper ends up; there are always enough
        digits to tell the two chances apart.
        """
        others = self.num_users - 1
        known = {
            "uninformed": "",
            "partial": f" who knows the answers of {others - self.num_unknown:,} of the {others:,} "
            "others",
            "strong": " who knows everybody else's answer",
        }[self.adversary]
        often = comparison(self.prior, self.both)
        return f"An adversary{known} guesses one person's answer right {often}."

    def to_json_dict(self) -> dict[str, Any]:
        """Return what ``shuffledp leakage --json`` prints.

        Returns
        -------
        dict
            ``prior``; ``posterior`` of the three mechanisms, each its upper end, which is the
            value where the ends of ``enclosures`` agree; ``additive`` and ``multiplicative``
            leakage of both together; and all that this rests on. An ``epsilon0`` of None is
            unknown or infinite.
        """
        bounds = {name: self.bound(name) for name in CHANNELS}
        return {
            "prior": self.prior,
            "posterior": {name: bound.upper for name, bound in bounds.items()},
            "additive": self.additive("both"),
            "multiplicative": self.multiplicative("both"),
            "sentence": self.sentence,
            "num_users": self.num_users,
            "k": self.domain_size,
            "p": self.truth,
            "epsilon0": None if self.epsilon0 == math.inf else self.epsilon0,
            "adversary": self.adversary,
            "has_uniform_prior": self.has_uniform_prior,
            "knowledge": None if self.knowledge is None else list(self.knowledge),
            "num_unknown": self.num_unknown,
            "is_worst_knowledge": self.is_worst_knowledge,
            "enclosures": {name: [bound.lower, bound.upper] for name, bound in bounds.items()},
            "method": self.both.method,
            "source": self.both.source,
            "assumptions": list(self.both.assumptions),
        }


def comparison(prior: float, bound: Bound) -> str:
    """Return "52.25 % of the time instead of 50 %", or what is true where that would mislead."""
    after, before, is_known = percentages(prior, bound)
    if bound.upper - prior <= _NEGLIGIBLE:
        return f"{before} % of the time, no more often than without the reports"
    return f"{'' if is_known else 'at most '}{after} % of the time instead of {before} %"


def percentages(prior: float, bound: Bound) -> tuple[str, str, bool]:
    """Return the chances after and before in percent, in enough digits to tell them apart.

    The last entry says whether both ends show the same, but for round-off beside a tie; if not, the
    upper end is shown, rounded up.
    """
    leakage = bound.upper - prior
    decimals = 2
    if leakage > _NEGLIGIBLE:
        # Two digits of the difference, in percent.
        decimals = min(max(2, -1 - math.floor(math.log10(leakage))), _MOST_DECIMALS)
    before = _percent(prior, decimals, ROUND_HALF_EVEN)
    nearest = _percent(bound.upper, decimals, ROUND_HALF_EVEN)
    if bound.lower is not None and (
        _percent(bound.lower, decimals, ROUND_HALF_EVEN) == nearest
        or bound.upper - bound.lower <= _ROUND_OFF * 10.0 ** (-2 - decimals)
    ):
        return nearest, before, True
    return _percent(bound.upper, decimals, ROUND_CEILING), before, False


def _percent(probability: float, decimals: int, rounding: str) -> str:
    """Return a probability in percent; without trailing zeros where nothing was rounded off."""
    exact = Decimal(repr(float(probability))).scaleb(2)
    shown = exact.quantize(Decimal(1).scaleb(-decimals), rounding=rounding)
    text = f"{shown:f}"
    return text.rstrip("0").rstrip(".") if shown == exact else text


def describe_counts(counts: Sequence[int]) -> str:
    """Return how many others have each value, values of equal counts taken together."""
    if len(counts) <= 8:
        return ", ".join(f"{count:,}" for count in counts)
    parts = sorted(Counter(counts).items(), reverse=True)
    shown = parts if len(parts) <= 4 else parts[:3]
    words = [
        f"{count:,} with {'one value' if times == 1 else f'each of {times:,}'}"
        for count, times in shown
    ]
    return ", ".join(words) + (", and more" if len(parts) > 4 else "")
