"""``account_leakage``: success probability of guessing one person's value, before and after.

A `Scene` selects the result that bounds the best guess of an adversary, by the adversary's
knowledge.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Literal, SupportsFloat, SupportsIndex, get_args

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.core.arrays import Floats
from shuffledp.core.bound import Bound, reconciled_lower
from shuffledp.core.checks import require_at_least, require_finite, require_non_negative
from shuffledp.core.errors import ParameterError
from shuffledp.core.numerics.enclosure import Enclosure, round_down, round_up
from shuffledp.core.shown import Shown
from shuffledp.leakage import uninformed
from shuffledp.leakage.channel import checked_prior, checked_truth, float_channel, uniform_prior
from shuffledp.leakage.counts.blanket import blanket_vulnerability_upper, channel_blanket_upper
from shuffledp.leakage.counts.coarse_lattice import MOST_WORK
from shuffledp.leakage.counts.others import Response, unshuffled
from shuffledp.leakage.strong import strong_vulnerability, worst_knowledge
from shuffledp.leakage.uninformed import PAPER

#: Adversaries, who know none, some, or all of the other users' values.
Adversary = Literal["uninformed", "partial", "strong"]

#: The three mechanisms compared: everyone randomizes, a shuffler alone, and both together.
CHANNELS = ("randomizer", "shuffler", "both")

# Leakage below this may be round-off.
_NEGLIGIBLE = 1e-12

_MOST_DECIMALS = 12

# Ends that differ by less than this share of the last digit shown differ by round-off.
_TIE = 0.01


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
        Success probability after seeing each user's randomized report with its name, all true
        values shuffled, and all randomized reports shuffled. At most 1.
    truth : float or None
        Probability p that k-ary randomized response tells the truth, where that is the randomizer.
    epsilon0 : float or None
        Local privacy loss of the randomizer in nats, where it is known; may be ``inf``.
    has_uniform_prior : bool
        Whether all values were equally likely.
    knowledge : tuple of int or None
        Number of the others whom the adversary knows to have each value. Without given knowledge, a
        strong adversary has the one from which it guesses best, where that is known.
    num_unknown : int
        Number of the others of whom it knows nothing.
    is_worst_knowledge : bool
        Whether ``both`` holds for all values of the others.

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
        """Return an upper bound on the additive leakage, a difference of probabilities."""
        return max(self.bound(channel).upper - self.prior, 0.0)

    def multiplicative(self, channel: str) -> float:
        """Return an upper bound on the multiplicative leakage, at least 1."""
        return max(self.bound(channel).upper / self.prior, 1.0)

    @property
    def sentence(self) -> str:
        """Success probability before and after the collection, as a sentence.

        Numbers that are known are rounded to nearest, upper ends up; there are always enough
        digits to tell the two chances apart.
        """
        others = self.num_users - 1
        some = f"the answers of {others - self.num_unknown:,} of the {others:,} others"
        known = {"partial": some, "strong": "everybody else's answer"}.get(self.adversary)
        often = comparison(self.prior, self.both)
        who = f"An adversary who knows {known}" if known else "An adversary"
        return f"{who} guesses one person's answer right {often}."

    def to_json_dict(self) -> dict[str, Any]:
        """Return the JSON object of ``shuffledp leakage --json``.

        Returns
        -------
        dict
            ``prior``; ``posterior`` of the three mechanisms, each its upper end, which is the
            value where the ends of ``enclosures`` agree; ``additive`` and ``multiplicative``
            leakage of both together; and all parameters and assumptions. An ``epsilon0`` of None is
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
    """Return "52.25 % of the time instead of 50 %", or that nothing leaks."""
    after, before, is_known = percentages(prior, bound)
    if bound.upper - prior <= _NEGLIGIBLE:
        return f"{before} % of the time, no more often than without the reports"
    return f"{'' if is_known else 'at most '}{after} % of the time instead of {before} %"


def percentages(prior: float, bound: Bound) -> tuple[str, str, bool]:
    """Return the chances after and before in percent, in enough digits to tell them apart.

    The last entry is True if both ends show the same, up to round-off beside a tie; if not, the
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
        or bound.upper - bound.lower <= _TIE * 10.0 ** (-2 - decimals)
    ):
        return nearest, before, True
    return _percent(bound.upper, decimals, ROUND_CEILING), before, False


def _percent(probability: float, decimals: int, rounding: str) -> str:
    """Return a probability in percent; without trailing zeros where nothing was rounded off."""
    context = Context(prec=40, rounding=rounding)  # whatever the program has set
    exact = Decimal(repr(float(probability))).scaleb(2, context)
    shown = context.quantize(exact, Decimal(f"1e-{decimals}"))
    text = f"{shown:f}"
    return text.rstrip("0").rstrip(".") if shown == exact else text


def describe_counts(counts: Sequence[int]) -> str:
    """Return the number of others with each value, values of equal counts grouped."""
    if len(counts) <= 8:
        return ", ".join(f"{count:,}" for count in counts)
    parts = sorted(Counter(counts).items(), reverse=True)
    shown = parts if len(parts) <= 4 else parts[:3]
    words = [
        f"{count:,} with {'one value' if times == 1 else f'each of {times:,}'}"
        for count, times in shown
    ]
    return ", ".join(words) + (", and more" if len(parts) > 4 else "")


_DERIVED = "derived in the shuffledp documentation, results"
_ASSUMPTION = "The adversary has one try, and wins if it names one chosen person's value."

# k-ary randomized response is written out as a matrix up to this k.
_MOST_WRITTEN = 256

# Most blocks of histograms times guesses of a brief account: a tenth of the full number.
_BRIEF_WORK = 2e6

# Ends that different results prove may cross by their rounding.
_ROUND_OFF = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scene:
    """One collection, with the prior on everybody's value."""

    num_users: int  # n >= 1
    domain_size: int  # k >= 2
    truth: float | None  # Chance that k-ary randomized response tells the truth
    matrix: Floats | None  # shape (k, m); Law of the reports of another randomizer
    prior: Floats | None  # shape (k,); None for the uniform law
    epsilon0: float  # Local privacy loss
    is_brief: bool = False  # Skip results that may take seconds and matter less

    def account(self, adversary: Adversary, known: tuple[int, ...] | None) -> LeakageAccount:
        """Return the account of one adversary."""
        randomizer, is_worst = self.randomizer(), adversary == "strong" and known is None
        num_unknown = self.num_users - 1 - sum(known or ())
        certain = _bound(1.0, 1.0, "difference", "all values but one are known")
        if is_worst:
            num_unknown, shuffler = 0, certain
            both, known = self._worst_known()
        elif adversary == "uninformed" or known is None:
            shuffler, both = self.shuffler(self.num_users), self.uninformed()
        else:
            # Users whose values are known drop out of a histogram of true values.
            shuffler = self.shuffler(num_unknown + 1) if num_unknown else certain
            both = strong_vulnerability(
                self.response, known, prior=self.prior, num_unknown=num_unknown
            )
        return LeakageAccount(
            num_users=self.num_users,
            domain_size=self.domain_size,
            adversary=adversary,
            prior=float(self.law().max()),
            randomizer=randomizer,
            shuffler=self._sharpened(shuffler),
            both=self._sharpened(both, randomizer, shuffler),
            truth=self.truth,
            epsilon0=self.epsilon0,
            has_uniform_prior=self.prior is None,
            num_unknown=num_unknown,
            knowledge=known,
            is_worst_knowledge=is_worst,
        )

    @property
    def response(self) -> Any:
        """The randomizer, as `strong_vulnerability` takes it."""
        return self.truth if self.matrix is None else self.matrix

    def law(self) -> Floats:
        """Return the prior, written out."""
        return uniform_prior(self.domain_size) if self.prior is None else self.prior

    def randomizer(self) -> Bound:
        """Return the success probability given each report with its user's name."""
        if self.truth is not None and self.prior is None:
            return _bound(self.truth, self.truth, "report", f"{PAPER}, Proposition 15")
        if self.matrix is None:
            value = Response.of(self.truth or 1.0, self.domain_size).unshuffled(self.law())
        else:
            value = unshuffled(self.matrix, self.law()) / math.fsum(self.law())
        source = "definition: sum over reports of the likeliest value's share"
        found = _bound(round_down(value), min(round_up(value), 1.0), "report", source)
        return self._sharpened(found)

    def shuffler(self, num_users: int) -> Bound:
        """Return the success probability given the shuffled true values of this number of users."""
        return replace(self, num_users=num_users, truth=1.0, matrix=None).uninformed()

    def uninformed(self) -> Bound:
        """Return the success probability given all reports, shuffled, and nobody's value."""
        if self.truth is not None and self.prior is None:
            return uninformed.shuffled_vulnerability(self.num_users, self.domain_size, self.truth)
        matrix = written_matrix(self.domain_size, self.truth, self.matrix)
        if matrix is not None:
            work = _BRIEF_WORK if self.is_brief else MOST_WORK
            return uninformed.exchangeable_vulnerability(
                self.num_users, matrix, prior=self.law(), work=work
            )
        found = uninformed.many_values_ends(self.num_users, self.truth or 1.0, self.law())
        upper = min(found.upper, self._hidden_by_noise())
        return _bound(found.lower, upper, "load", f"{_DERIVED}/leakage")

    def _worst_known(self) -> tuple[Bound, tuple[int, ...] | None]:
        """Return the largest success probability given all other values, and these values."""
        is_binary = self.truth is not None and self.prior is None and self.domain_size == 2
        worst = None
        if is_binary or not self.is_brief:
            worst, knowledge = worst_knowledge(self.num_users, self.response, self.law())
            if worst.lower is not None:
                return worst, knowledge
        # An adversary who knows others' values guesses no worse than one who knows none.
        none = replace(self, is_brief=True).uninformed()
        ends = replace(
            none,
            upper=min(self._hidden_by_noise(), 1.0 if worst is None else worst.upper),
            method=f"between {none.method} and the blanket",
            source=f"{_DERIVED}/leakage",
        )
        return ends, None

    def _hidden_by_noise(self) -> float:
        """Return an upper bound given all other values, whatever they are."""
        users, values = self.num_users, self.domain_size
        if self.matrix is None:
            return blanket_vulnerability_upper(users, values, self.truth or 1.0, prior=self.prior)
        if self.is_brief and self.matrix.shape[1] > values:
            return 1.0
        return channel_blanket_upper(users, self.matrix, prior=self.prior)

    def _sharpened(self, bound: Bound, *above: Bound) -> Bound:
        """Return a bound cut to [prior, 1], and to the bounds of the mechanisms within it."""
        least = float(self.law().max())
        upper = max(min([bound.upper, 1.0, *(each.upper for each in above)]), least)
        claim = f"the {bound.method} bound"
        lower = reconciled_lower(bound.lower, upper, tolerance=_ROUND_OFF, claim=claim)
        return replace(bound, upper=upper, lower=max(lower or 0.0, least))


def written_matrix(domain_size: int, truth: float | None, matrix: Floats | None) -> Floats | None:
    """Return a randomizer's matrix: k-ary randomized response written out, or the given matrix."""
    if truth is None or domain_size > _MOST_WRITTEN:
        return matrix
    return Response.of(truth, domain_size).matrix()


def _bound(lower: float, upper: float, method: str, source: str) -> Bound:
    """Return a bound that assumes the model only."""
    return Enclosure(lower, upper).bound(method, source, (_ASSUMPTION,))


#: Largest numbers of users and of values that are accounted for.
MOST_USERS, MOST_VALUES = 10**9, 10**4

# Largest channel matrices that are taken.
_MOST_CELLS = 10**6

# Priors whose entries differ by less are uniform: their own round-off.
_UNIFORM = 1e-15


def account_leakage(
    *,
    num_users: SupportsIndex,
    domain_size: SupportsIndex | None = None,
    truth: SupportsFloat | None = None,
    epsilon0: SupportsFloat | None = None,
    channel: Any = None,
    adversary: Adversary = "uninformed",
    prior: ArrayLike | None = None,
    known: Sequence[SupportsIndex] | None = None,
) -> LeakageAccount:
    """Bound the success probability of guessing one person's value, before and after a collection.

    Compares users who randomize without a shuffler, a shuffler of true values, and both together.

    Parameters
    ----------
    num_users : int
        Number of users, the person among them, in [1, 1e9].
    domain_size : int, optional
        Number k of possible values, in [2, 1e4]. Needed for k-ary randomized response, unless a
        prior states it.
    truth : float, optional
        Probability p, in [1/k, 1], that k-ary randomized response tells the truth.
    epsilon0 : float, optional
        Its local privacy loss in nats, in [0, inf), instead: p = e^epsilon0 / (e^epsilon0 + k - 1),
        rounded up.
    channel : array_like, shape (k, m), or Channel, optional
        Law of the report of each value, for any other randomizer; at most 1e6 entries.
    adversary : {"uninformed", "partial", "strong"}
        Knows nobody's value, the values that ``known`` counts, or all others' values.
    prior : array_like of float, shape (k,), optional
        Its prior on the person's value, and independently on the value of everybody it does not
        know; sums to 1. Uniform by default.
    known : sequence of int, optional
        Number of the others with each value: for ``"partial"`` at most ``num_users - 1`` in all,
        and for ``"strong"`` exactly that; by default the values from which a strong adversary
        guesses best.

    Returns
    -------
    LeakageAccount
        Its bounds enclose the exact probabilities: by round-off where there is a quick formula,
        else by proved bounds.

    Raises
    ------
    ParameterError
        If not exactly one of truth, epsilon0 and channel is given, or an argument is out of range.
    OutOfRegimeError
        If truth < 1/k.

    Notes
    -----
    Source: Jurado, Gonze, Alvim, Palamidessi, "Analyzing the Shuffle Model through the Lens of
    Quantitative Information Flow", CSF 2023, hal-04349295v1, Sections IV and V, and their
    extensions in docs/results.

    Examples
    --------
    >>> account = account_leakage(num_users=200, domain_size=2, truth=0.9)
    >>> account.sentence
    "An adversary guesses one person's answer right 52.25 % of the time instead of 50 %."
    """
    if adversary not in get_args(Adversary):
        raise ParameterError(
            f"adversary = {adversary!r} is not one of {', '.join(get_args(Adversary))}"
        )
    users = require_at_least("num_users", num_users, 1, MOST_USERS)
    matrix = None if channel is None else float_channel(channel)
    if matrix is not None and matrix.size > _MOST_CELLS:
        raise ParameterError(
            f"channel has {matrix.size:,} entries, above {_MOST_CELLS:,}: merge equivalent outputs"
        )
    values = _values(domain_size, matrix, prior)
    loss, chance = _loss_and_truth(values, truth=truth, epsilon0=epsilon0, channel=matrix)
    scene = Scene(
        num_users=users,
        domain_size=values,
        truth=chance,
        epsilon0=loss,
        matrix=matrix,
        prior=checked_belief(prior, values),
    )
    return scene.account(adversary, _counts(known, adversary, users - 1, values))


def _values(
    domain_size: SupportsIndex | None, matrix: Floats | None, prior: ArrayLike | None
) -> int:
    """Return the number of values."""
    rows = None if matrix is None else len(matrix)
    if domain_size is None:
        domain_size = np.size(prior) if rows is None and prior is not None else rows
    if domain_size is None:
        raise ParameterError("domain_size (k) is needed: give the number k of possible answers")
    found = require_at_least("domain_size (k)", domain_size, 2, MOST_VALUES)
    if rows not in (None, found):
        raise ParameterError(
            f"domain_size (k) = {found} and the channel has {rows} rows: leave domain_size out"
        )
    return found


def _loss_and_truth(domain_size: int, **said: Any) -> tuple[float, float | None]:
    """Return the local loss, and the chance of the truth for k-ary randomized response."""
    given = [name for name, value in said.items() if value is not None]
    if len(given) != 1:
        raise ParameterError(
            f"{' and '.join(given) or 'none'} of truth (p), epsilon0 and channel given: give one"
        )
    others = domain_size - 1
    if given == ["epsilon0"]:
        loss = require_non_negative("epsilon0", said["epsilon0"])
        # Rounded up: more truth never leaks less.
        chance = min(round_up(1.0 / (1.0 + others * math.exp(-loss))), 1.0)
        return loss, chance if loss > 0.0 else 1.0 / domain_size
    if given == ["channel"]:
        from shuffledp.amplification.channel_rows import worst_ratio

        return math.log(max(worst_ratio(said["channel"]).ratio, 1.0)), None
    chance = require_finite("truth (p)", said["truth"])
    checked_truth(chance, domain_size)
    ratio = math.inf if chance == 1.0 else chance * others / (1.0 - chance)
    return math.log(max(ratio, 1.0)), chance


def checked_belief(prior: ArrayLike | None, domain_size: int) -> Floats | None:
    """Return a prior as checked doubles; None where it is uniform."""
    if prior is None:
        return None
    law: Floats = checked_prior(prior, domain_size)
    return None if float(law.max() - law.min()) <= _UNIFORM else law


def _counts(
    known: Sequence[SupportsIndex] | None, adversary: str, num_others: int, domain_size: int
) -> tuple[int, ...] | None:
    """Return the adversary's knowledge of the others, if any."""
    if known is None:
        if adversary == "partial":
            raise ParameterError(
                'known is needed for a "partial" adversary: how many of the others have each value'
            )
        return None
    if adversary == "uninformed":
        raise ParameterError(
            'known is for an adversary who knows something: choose "strong" or "partial"'
        )
    counts = tuple(require_at_least(f"known[{at}]", each, 0) for at, each in enumerate(known))
    if len(counts) != domain_size:
        raise ParameterError(
            f"known has {len(counts)} counts and there are {domain_size} values: give one a value"
        )
    total = sum(counts)
    if total > num_others or (adversary == "strong" and total < num_others):
        wanted = "exactly" if adversary == "strong" else "at most"
        raise ParameterError(
            f"known counts {total:,} users, and there are {num_others:,} besides the one guessed "
            f"at: the counts must add up to {wanted} num_users - 1 = {num_others}"
        )
    return counts
