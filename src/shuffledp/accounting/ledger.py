"""``Ledger``: a privacy budget, and all releases that were published against it.

An analyst who sees one result before choosing the next collection composes *adaptively chosen
parameters*. The composed privacy loss of the collections chosen is then no valid bound
(arXiv:2602.06756v2 proves this of every exact, f-DP, accounting). Two filters are valid, each
proved below. The first spending selects one; no result has been seen before it.

1. *Renyi*, unless sums admit more spendings like the first: the losses that hold with delta = 0
   add up to at most epsilon, or the Renyi divergences of one order, fixed beforehand, add up to at
   most the divergence that converts to (epsilon, delta) (Rogers, Roth, Ullman, Vadhan 2016,
   arXiv:1605.08294; Feldman, Zrnic 2021, arXiv:2008.11193; Canonne, Kamath, Steinke 2020,
   arXiv:2004.00010, Proposition 12). Stated guarantees that fail with probability f reveal all;
   their total is kept below a tenth of delta.
2. *Sums*: each spending is charged an epsilon_i that it has, exactly composed, at a
   delta_i fixed before it is made, and both add up to at most the budget (Rogers et al., basic
   composition). delta_i is half of the remaining delta, or all of it where half does not suffice.
   So a first spending of exactly the budget's size fits.

*Proof of 1, both rules together.* Let A be the transcripts on which the second rule held, total R.
By the tower rule E_Q[(P/Q)^alpha; A] <= e^((alpha - 1) R), so by the conversion A contributes at
most the delta set aside. Outside A the first rule held and P/Q <= e^epsilon. (The smaller of both
filters, 1 and 2, at every step would not be valid.)

*Proof of 2.* With (epsilon, delta) left claim P(S) <= e^epsilon Q(S) + delta for all that can
follow. Let the next spending have (epsilon_1, delta_1) and lead to s with laws P_1, Q_1; by
induction P_s(S) <= min(1, e^(epsilon - epsilon_1) Q_s(S)) + delta - delta_1. As P_1 <= e^epsilon_1
Q_1 + (P_1 - e^epsilon_1 Q_1)_+, the last of mass at most delta_1, P(S) is at most delta - delta_1
plus the integral of min(1, e^(epsilon - epsilon_1) Q_s(S)) over P_1(ds), hence at most delta +
e^epsilon Q(S).

A schedule whose parameters were fixed before the first result was seen needs no such care:
``adaptive=False`` composes it exactly, which is some per cent better.

As JSON a ledger keeps the releases, not their cost: a later version, with a sharper analysis, may
find that they cost less. Floats keep every bit.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from shuffledp.amplification.registry import SHUFFLE_ASSUMPTIONS
from shuffledp.composition import composition as composed
from shuffledp.composition.composition import Composable, Composition, Release
from shuffledp.composition.release import ShuffledRelease, StatedRelease
from shuffledp.composition.renyi import renyi_without_failure
from shuffledp.core.bound import Bound, finite
from shuffledp.core.checks import require_delta, require_finite, require_positive, set_fields
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.errors import BudgetError, OutOfRegimeError, ParameterError
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.core.numerics.inversion import last_within
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

# In version 1 there was no filter by sums.
FORMAT, VERSION = "shuffledp-ledger", 2
_NUMBER = int | float

# Share of delta that is kept for failures of stated guarantees where parameters are adaptive.
_FAILURE_SHARE = 0.1

# Budgets are compared up to rounding, so that ten times 0.1 fits into 1.
_SAME = 1.0 + 1e-12

# Sums are worse for more spendings than this: delta_i has become very small.
_FEW = 20

_ADAPTIVE = (
    "Each release, its parameters included, may be chosen in the light of what earlier ones "
    "showed: this is a Renyi filter of one order, fixed in advance."
)
_FILTER = (
    "Renyi filter: Feldman, Zrnic 2021, arXiv:2008.11193; conversion: Canonne, Kamath, Steinke "
    "2020, arXiv:2004.00010, Proposition 12"
)
_ADAPTIVE_SUMS = (
    "Each release, its parameters included, may be chosen in the light of what earlier ones "
    "showed: epsilons and deltas add up, each at a delta fixed before the release."
)
_SUMS = "basic composition as a filter: Rogers, Roth, Ullman, Vadhan 2016, arXiv:1605.08294"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One spending of a ledger.

    Parameters
    ----------
    releases : Composition
        Releases that were published.
    note : str
        A remark for people.
    key : str
        Unique name; empty if it has none. A spending that is repeated under the same key counts
        once.

    Examples
    --------
    >>> from shuffledp.accounting import Ledger, StatedRelease
    >>> ledger = Ledger(epsilon=1.0, delta=1e-6).spend(StatedRelease(epsilon=0.5), note="in May")
    >>> ledger.entries[0].note
    'in May'
    """

    releases: Composition
    note: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A privacy budget for one group of people, and the spendings charged to it.

    Parameters
    ----------
    epsilon, delta : float
        The budget: epsilon > 0 in nats, kept to twelve digits; delta in [0, 1).
    adaptive : bool
        Whether parameters of a release may be chosen after earlier results were seen. False is for
        a schedule that was fixed before, and admits some per cent more.
    entries : tuple of LedgerEntry
        Spendings so far.
    order : float, optional
        Renyi order of the filter, > 1, by default to suit the budget. None from the first spending
        on if sums of epsilons and deltas admit more spendings like that: then sums are counted.

    Raises
    ------
    ParameterError
        If a number is out of range.

    Examples
    --------
    >>> from shuffledp.composition.release import StatedRelease
    >>> ledger = Ledger(epsilon=1.0, delta=0.0)
    >>> ledger = ledger.spend(StatedRelease(epsilon=0.75), note="spring survey")
    >>> ledger
    Ledger(epsilon=1, delta=0, entries=1)
    >>> round(ledger.remaining, 9), ledger.fits(StatedRelease(epsilon=0.125))
    (0.25, 2)
    """

    epsilon: float
    delta: float
    adaptive: bool = True
    entries: tuple[LedgerEntry, ...] = ()
    order: float | None = None

    def __post_init__(self) -> None:
        set_fields(self, epsilon=require_positive("epsilon", self.epsilon))
        set_fields(self, delta=require_delta(self.delta), entries=tuple(self.entries))
        if self.order is None and not self.entries:
            set_fields(self, order=_best_order(self.epsilon, self.delta))
        elif self.order is not None and not 1.0 < self.order < math.inf:
            raise ParameterError(f"order = {self.order} is not in (1, inf): try 10")
        keys = [entry.key for entry in self.entries if entry.key]
        if len(keys) != len(set(keys)):
            repeated = next(key for key in keys if keys.count(key) > 1)
            raise ParameterError(f"key = {repeated!r} stands twice in the ledger: rename one")

    def __repr__(self) -> str:
        budget = f"epsilon={self.epsilon:.6g}, delta={self.delta:.6g}"
        return f"Ledger({budget}, entries={len(self.entries)})"

    @property
    def total(self) -> Composition:
        """Everything that was published, as one composition."""
        return _total(self.entries)

    @property
    def spent(self) -> Bound:
        """Epsilon that has been spent at the ledger's delta; errs upwards."""
        return self._after(Composition())

    @property
    def remaining(self) -> float:
        """Remaining epsilon, rounded down.

        A release with this epsilon and delta = 0 fits, up to rounding. Far more shuffled releases
        may fit: ask `fits`.
        """
        left = self.epsilon - self.spent.upper
        return max(left - 4.0 * math.ulp(self.epsilon), 0.0)

    def cost(self, releases: Composable) -> Bound:
        """Bound epsilon, at the ledger's delta, of releases under the ledger's rule.

        Parameters
        ----------
        releases : release or composition
            Releases to be counted; earlier spendings are not added.

        Returns
        -------
        Bound
            Errs upwards.

        Raises
        ------
        OutOfRegimeError
            If no epsilon is known at the ledger's delta.
        """
        if self._counts_sums(releases):
            return _summed_cost([releases], self.epsilon, self.delta)
        return self._filtered(releases)

    def spend(self, releases: Composable, *, note: str = "", key: str = "") -> "Ledger":
        """Return a ledger with one more entry, if the budget covers it.

        Parameters
        ----------
        releases : release or composition
            Releases about to be published, about the same people.
        note : str
            A remark for people.
        key : str
            Unique name, such as a date. If the same releases were spent under this key already, the
            ledger is returned unchanged; so a program that was stopped can safely try again.

        Returns
        -------
        Ledger
            The old one is unchanged.

        Raises
        ------
        BudgetError
            If the budget does not cover it. The message states the remaining epsilon, and the
            number of such releases that fit.
        ParameterError
            If other releases were spent under the key.
        """
        wanted = storable(releases)
        for entry in self.entries:
            if key and entry.key == key:
                if entry.releases == wanted:
                    return self
                raise ParameterError(
                    f"key = {key!r} was spent on {entry.releases!r}: give this one another key"
                )
        if self._cost_with(wanted) > self.epsilon * _SAME:
            raise BudgetError(self._refusal(wanted))
        entry = LedgerEntry(releases=wanted, note=str(note), key=str(key))
        order = None if self._counts_sums(wanted) else self.order
        return replace(self, entries=(*self.entries, entry), order=order)

    def fits(self, releases: Composable) -> int:
        """Return the number of further spendings of this release that fit, at most 2^20.

        Parameters
        ----------
        releases : release or composition
            Releases of one spending.

        Returns
        -------
        int
            Errs downwards, by less than one part in ten thousand; exact below 10,000. It is for
            one spending of them all: where sums are counted, fewer fit one by one.

        Notes
        -----
        A few milliseconds under a Renyi filter; otherwise some ten compositions.
        """
        unit = storable(releases)
        most = composed.MOST_ROUNDS - self.total.rounds
        if unit.rounds == 0:
            return most
        allowed = self.epsilon * _SAME
        return last_within(
            lambda number: self._cost_with(unit * number, first=unit),
            allowed,
            most=most // unit.rounds,
        )

    def to_json_dict(self) -> dict[str, Any]:
        """Return the ledger as JSON values; `from_json_dict` reads them back."""
        budget = {name: getattr(self, name) for name in ("epsilon", "delta", "adaptive", "order")}
        entries = [
            {"note": each.note, "key": each.key, "releases": releases_to_json(each.releases)}
            for each in self.entries
        ]
        return {"format": FORMAT, "version": VERSION, **budget, "entries": entries}

    @classmethod
    def from_json_dict(cls, written: object) -> "Ledger":
        """Read a ledger that `to_json_dict` returned.

        Parameters
        ----------
        written : object
            A JSON object.

        Returns
        -------
        Ledger
            Equal to the ledger that was written.

        Raises
        ------
        ParameterError
            If it is no ledger, of another version, or a number is out of range.
        """
        if not isinstance(written, Mapping) or written.get("format") != FORMAT:
            raise ParameterError(f"this is no ledger: its format is not {FORMAT!r}")
        if written.get("version") not in (1, VERSION):
            raise ParameterError(
                f"the ledger's version is {written.get('version')!r}, and this shuffledp reads "
                f"versions 1 and {VERSION}: use the shuffledp that wrote it"
            )
        kept = {name: each for name, each in written.items() if name not in ("format", "version")}
        fields = _fields_of(
            kept, epsilon=_NUMBER, delta=_NUMBER, order=_NUMBER | None, adaptive=bool, entries=list
        )
        entries = [_fields_of(each, note=str, key=str, releases=list) for each in fields["entries"]]
        for entry in entries:
            entry["releases"] = releases_from_json(entry["releases"])
        return cls(**fields | {"entries": tuple(LedgerEntry(**entry) for entry in entries)})

    def _filtered(self, total: Composable) -> Bound:
        """Bound epsilon of all releases that are counted, whatever their order."""
        if not self.adaptive:
            return total.epsilon(self.delta, with_lower=False)
        order = math.inf if self.order is None or self.delta == 0.0 else self.order
        return _adaptive_cost(total, self.delta, order)

    def _counts_sums(self, releases: Composable) -> bool:
        """Return True if sums are counted, also where the first spending would select them."""
        if not self.adaptive or self.delta == 0.0 or self.order is None:
            return self.adaptive and self.delta > 0.0
        if self.entries:
            return False
        return _prefers_sums(self.epsilon, self.delta, self.order, Composition(releases.parts))

    def _after(self, releases: Composition, first: Composition | None = None) -> Bound:
        """Bound epsilon after all spendings and these, under the filter that ``first`` selects.

        ``first`` is all of these by default.
        """
        if not self._counts_sums(releases if first is None else first):
            return self._filtered(self.total + releases)
        spendings = [*(entry.releases for entry in self.entries), releases]
        return _summed_cost(spendings, self.epsilon, self.delta)

    def _cost_with(self, releases: Composition, first: Composition | None = None) -> float:
        """Return the upper end of `_after`; ``inf`` where none is known."""
        return _known(lambda: self._after(releases, first))

    def _refusal(self, releases: Composition) -> str:
        """Return a message, in one line, that a release is not covered."""
        cost = self._cost_with(releases)
        needed = f"takes it to epsilon = {cost:.6g}" if cost < math.inf else "has no finite epsilon"
        parts = releases.parts
        fitting = self.fits(Composition([(parts[0][0], 1)]) if len(parts) == 1 else releases)
        return (
            f"the budget of epsilon = {self.epsilon:.6g} at delta = {self.delta:.6g} does not "
            f"cover this: with all that was spent it {needed}; epsilon = {self.remaining:.6g} is "
            f"left, and {fitting or 'no'} such release{'' if fitting == 1 else 's'} would fit"
        )


@functools.lru_cache(maxsize=256)
def _total(entries: tuple[LedgerEntry, ...]) -> Composition:
    return Composition(part for entry in entries for part in entry.releases.parts)


def _known(bound: Callable[[], Bound]) -> float:
    """Return the upper end of a bound; ``inf`` where none is known."""
    try:
        return bound().upper
    except OutOfRegimeError:
        return math.inf


@functools.lru_cache(maxsize=256)
def _prefers_sums(epsilon: float, delta: float, order: float, first: Composition) -> bool:
    """Return True if sums admit more such spendings than the Renyi filter, which admits few."""
    if first.rounds == 0:
        return False
    number, allowed = 0, epsilon * _SAME
    most = min(_FEW, composed.MOST_ROUNDS // first.rounds)
    for number in range(most):
        times = first * (number + 1)
        if _known(functools.partial(_adaptive_cost, times, delta, order)) > allowed:
            break
    else:
        return False
    sums = functools.partial(_summed_cost, [first] * (number + 1), epsilon, delta)
    return number == 0 or _known(sums) <= allowed


def conversion_cost(order: float, delta: float) -> float:
    """Return the epsilon that a Renyi divergence of 0 converts to, rounded up."""
    found = math.log1p(-1.0 / order) - (math.log(delta) + math.log(order)) / (order - 1.0)
    return found + 16.0 * math.ulp(1.0) * (1.0 - math.log(delta)) * (1.0 + 1.0 / (order - 1.0))


def _best_order(epsilon: float, delta: float) -> float | None:
    """Return the order at which the most Gaussian losses fit; None where none leaves room.

    Their Renyi divergence is proportional to the order.
    """
    if delta == 0.0:
        return None
    kept, room = (1.0 - _FAILURE_SHARE) * delta, {}
    for order in (1.0 + 2.0 ** (0.25 * step) for step in range(-24, 81)):
        room[order] = (epsilon - conversion_cost(order, kept)) / order
    largest = max(room, key=room.__getitem__)
    return largest if room[largest] > 0.0 else None


def _summed_cost(spendings: Sequence[Composable], epsilon: float, delta: float) -> Bound:
    """Return the sum of epsilons that the second filter charges for spendings in this order."""
    charged: list[float] = []
    left = delta
    for releases in spendings:
        share = 0.5 * left
        cost = _known(lambda: releases.epsilon(share, with_lower=False))  # noqa: B023  # at once
        if math.fsum([*charged, cost]) > epsilon * _SAME:
            share, cost = left, releases.epsilon(left, with_lower=False).upper
        left -= share
        charged.append(cost)
    return Bound(
        lower=None,
        upper=round_up(math.fsum(charged), operations=1),
        method="basic composition",
        source=_SUMS,
        assumptions=_assumptions(_ADAPTIVE_SUMS, *spendings),
    )


def _assumptions(rule: str, *spendings: Composable) -> tuple[str, ...]:
    """Return the assumptions of a filter, and the releases that it counts."""
    releases = [release for each in spendings for release, _ in each.parts]
    told = dict.fromkeys(text for release in releases for text in release.assumptions)
    shuffled = any(isinstance(release, ShuffledRelease) for release in releases)
    return (*(SHUFFLE_ASSUMPTIONS if shuffled else ()), composed.SAME_USERS[0], rule, *told)


def _adaptive_cost(releases: Composable, delta: float, order: float) -> Bound:
    """Return the smaller epsilon of the two rules of the first filter."""
    parts = releases.parts
    failure = composed.failure_of(parts)
    if failure > _FAILURE_SHARE * delta:
        raise OutOfRegimeError(
            f"stated guarantees fail with probability {failure:.3g}, above a tenth of delta = "
            f"{delta:.3g}: an adaptive ledger needs smaller stated deltas, or a larger budget"
        )
    upper, method = composed.pure_epsilon_of(parts), "pure composition"
    if order < math.inf and upper > 0.0:
        total = math.fsum(times * renyi_without_failure(part, order) for part, times in parts)
        kept = (1.0 - _FAILURE_SHARE) * delta
        converted = round_up(total, operations=2) + conversion_cost(order, kept)
        if converted < upper:
            upper, method = max(round_up(converted, operations=2), 0.0), "renyi filter"
    if math.isinf(upper):
        raise OutOfRegimeError(
            "a release here has no finite epsilon and no Renyi divergence: state what it "
            "guarantees with StatedRelease(epsilon=..., delta=...)"
        )
    return Bound(
        lower=None,
        upper=upper,
        method=method,
        source=_FILTER,
        assumptions=_assumptions(_ADAPTIVE, releases),
    )


# Channels with more entries would make a ledger unwieldy.
_MOST_ENTRIES = 10_000


@dataclass(frozen=True, slots=True)
class StoredChannel:
    """A channel matrix that was written out: rows inputs, columns outputs, exact fractions."""

    rows: tuple[tuple[Fraction, ...], ...]

    def __call__(self) -> tuple[tuple[Fraction, ...], ...]:
        """Return the rows."""
        return self.rows


def storable(releases: Composable) -> Composition:
    """Return the same releases, in a form that can be written out and compares by value."""
    return Composition((_storable(release), times) for release, times in releases.parts)


def _storable(release: Release) -> Release:
    """Return one release whose channel, if the accountant uses it, is a matrix."""
    if not isinstance(release, ShuffledRelease):
        return release
    channel: Any = release.law.channel
    if isinstance(channel, StoredChannel):
        return release
    kept = None  # a family's channel follows from its name
    if release.law.family is RandomizerFamily.OTHER and channel is not None:
        kept = StoredChannel(tuple(tuple(map(Fraction, row)) for row in channel()))
        if (entries := sum(map(len, kept.rows))) > _MOST_ENTRIES:
            raise ParameterError(
                f"a channel of {entries} entries is above {_MOST_ENTRIES}: state the release's "
                "guarantee instead, StatedRelease(epsilon=..., delta=...)"
            )
    return replace(release, epsilon0=None, profile=replace(release.law, channel=kept))


def releases_to_json(releases: Composable) -> list[dict[str, Any]]:
    """Return releases as a list of JSON objects, one per kind."""
    return [_release_to_json(release, times) for release, times in storable(releases).parts]


def _release_to_json(release: Release, times: int) -> dict[str, Any]:
    if isinstance(release, StatedRelease):
        stated = {"epsilon": release.stated_epsilon, "delta": release.stated_delta}
        return {"kind": "stated", "count": times, **stated}
    if not isinstance(release, ShuffledRelease):
        raise ParameterError(
            f"{release!r} cannot be written: give ShuffledRelease or StatedRelease"
        )
    names = ("num_users", "sampled_from", "participation")
    drawn = {name: getattr(release, name) for name in names}
    if release.dummies is not None:
        drawn["dummies"] = str(release.dummies)
    return {"kind": "shuffled", "count": times, **drawn, "profile": _profile_to_json(release.law)}


def _profile_to_json(profile: LocalProfile) -> dict[str, Any]:
    """Return the fields of a profile; omitted fields have their defaults."""
    any_family, stored = profile.family is RandomizerFamily.ANY, profile.channel
    written = {
        "family": None if any_family else profile.family.value,
        "delta0": profile.delta0,
        "participation": None if profile.participation == 1.0 else profile.participation,
        "domain_size": profile.domain_size,
        "blanket": [[atom.mass, atom.ratio0, atom.ratio1] for atom in profile.blanket],
        "attack": [[atom.mass, atom.ratio0, atom.ratio1] for atom in profile.attack],
        "channel": [[str(entry) for entry in row] for row in stored.rows]
        if isinstance(stored, StoredChannel)
        else None,
    }
    return {"epsilon0": finite(profile.epsilon0)} | {
        name: each for name, each in written.items() if each
    }


def releases_from_json(written: object) -> Composition:
    """Read the list that `releases_to_json` returned."""
    if not isinstance(written, list):
        raise ParameterError(f"releases must be a list, not {type(written).__name__}")
    return Composition(map(_release_from_json, written))


def _release_from_json(written: object) -> tuple[Release, int]:
    kind = written.get("kind") if isinstance(written, Mapping) else None
    if kind == "stated":
        fields = _fields_of(written, kind=str, count=int, epsilon=_NUMBER, delta=_NUMBER)
    elif kind == "shuffled":
        fields = _fields_of(
            written,
            kind=str,
            dummies=str | None,
            count=int,
            num_users=int,
            sampled_from=int | None,
            participation=_NUMBER,
            profile=Mapping,
        )
        fields["profile"] = _profile_from_json(fields["profile"])
        if fields["dummies"] is not None:
            fields["dummies"] = DummyLaw.from_text(fields["dummies"])
    else:
        raise ParameterError(f"{written!r:.40} is no release of a kind 'shuffled' or 'stated'")
    make = StatedRelease if fields.pop("kind") == "stated" else ShuffledRelease
    count = fields.pop("count")
    return make(**fields), count


def _profile_from_json(written: object) -> LocalProfile:
    bare = isinstance(written, Mapping) and written.get("epsilon0", 0.0) is None
    fields = _fields_of(
        written,
        family=str | None,
        epsilon0=_NUMBER | None if bare else _NUMBER,
        delta0=_NUMBER | None,
        participation=_NUMBER | None,
        domain_size=int | None,
        blanket=list | None,
        attack=list | None,
        channel=list | None,
    )
    given = {name: value for name, value in fields.items() if value is not None}
    given.setdefault("epsilon0", math.inf)  # JSON has no infinity
    try:
        for name in {"blanket", "attack"} & given.keys():
            rows = [[require_finite(name, float(entry)) for entry in atom] for atom in given[name]]
            given[name] = tuple(BlanketAtom(mass=m, ratio0=r0, ratio1=r1) for m, r0, r1 in rows)
        if "channel" in given:
            rows_of = (tuple(map(Fraction, row)) for row in given["channel"])
            given["channel"] = StoredChannel(tuple(rows_of))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ParameterError(
            f"a profile's blanket and attack list [mass, ratio0, ratio1], its channel fractions: "
            f"{error}"
        ) from None
    return LocalProfile(**given)


def _fields_of(written: object, **kinds: Any) -> dict[str, Any]:
    """Return the fields of a JSON object, each of its kind; else raise `ParameterError`."""
    if not isinstance(written, Mapping):
        raise ParameterError(f"{written!r:.40} is no object with {', '.join(kinds)}")
    if unknown := sorted(set(written) - set(kinds)):
        raise ParameterError(f"{unknown[0]!r} is not one of {', '.join(kinds)}")
    for name, kind in kinds.items():
        value = written.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            wanted = getattr(kind, "__name__", str(kind))
            raise ParameterError(f"{name} = {value!r:.40} is not of the kind {wanted}")
    return {name: written.get(name) for name in kinds}
