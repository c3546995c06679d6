"""Popular texts that nobody listed: texts of more users than noise explains.

Texts are found by their `prefixes` in UTF-8, some half bytes longer in each round: a histogram over
the extensions of the prefixes that were kept, and "other". The bins of a round depend on the
releases of earlier rounds, and on nobody's text otherwise.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.questions import prefixes, question
from shuffledp.collection.questions.rounds import DrawnRound, OneRound, Search
from shuffledp.collection.source import columns, single, tables
from shuffledp.core import labels as spelt
from shuffledp.core.bound import finite
from shuffledp.core.checks import require_at_least, set_fields
from shuffledp.core.errors import ParameterError
from shuffledp.core.lazy import pl
from shuffledp.estimation.discovery import (
    BinLaw,
    Discovery,
    FoundTexts,
    Round,
    forcing,
    least_count,
    left_by,
    share_despite,
)
from shuffledp.estimation.intervals import simultaneous_confidence
from shuffledp.randomizers import registry
from shuffledp.randomizers.base import error_at

#: Lengths of a step of the search, in bits.
STEPS = (4, 8, 12, 16)

#: Largest number of bins for which longer steps are used: fewer rounds, with more users each.
MOST_BINS = 2**18

# Longer texts would need too many rounds for any number of users.
_LONGEST = 256

# Randomizers whose reports are one number, of one to eight bytes, and the largest epsilon0 at
# which counting is fast: local hashing needs a transform for each of about e^epsilon0 buckets.
_ANSWERED_BY = {"k-rr": math.inf, "hadamard-response": math.inf, "optimized-local-hashing": 4.5}

# No text begins with this byte, or with its first half: it stands for a text outside the ones asked
# for.
_OUTSIDE = b"\x80"


@dataclass(frozen=True, slots=True, init=False)
class HeavyHitters(question.Shares):
    """Each user has one text, any text; the texts of many users are asked for.

    Parameters
    ----------
    max_bytes : int
        Longest text that is searched for, in bytes of UTF-8, 1 to 256: part of the question, never
        read from the data. Longer texts are refused, or count as "other".
    most : int
        Number of prefixes that a round may keep, and hence of texts that can be found.
    bits : {4, 8, 12, 16}, optional
        Bits added to the prefixes in each round. By default the plan chooses the number that finds
        the smallest share; with dummies, which each bin needs, 4.
    found : iterable of str
        Texts that a collection found.
    search : Search, optional
        State of a search among devices: the question is then its next round, and needs ``bits``.

    Raises
    ------
    ParameterError
        If a number is out of range, or rounds would have too many bins.

    Examples
    --------
    >>> HeavyHitters(max_bytes=8, most=100, bits=8).steps
    (3, 2, 2, 2, 2, 2, 2, 1)
    """

    kind: ClassVar[str] = "heavy-hitters"
    stated: ClassVar[tuple[str, ...]] = ("max_bytes", "most", "bits")
    listed: ClassVar[str] = "found"  # none before the collection
    checked_by: ClassVar[tuple[str, ...]] = ("max_bytes",)
    has_rounds: ClassVar[bool] = True
    central_sensitivity: ClassVar[float] = 2.0  # replacing one text changes two counts by one
    no_values: ClassVar[NDArray[np.bytes_]] = np.empty(0, dtype=np.bytes_)
    expected_for: ClassVar[str] = "for a text that few users have"
    expected_spread: ClassVar[float] = 0.0

    max_bytes: int
    most: int
    bits: int | None
    found: tuple[str, ...]
    search: Search | None

    def __init__(
        self,
        *,
        max_bytes: SupportsIndex,
        most: SupportsIndex = 100,
        bits: SupportsIndex | None = None,
        found: Iterable[str] = (),
        search: Search | None = None,
    ) -> None:
        set_fields(
            self,
            max_bytes=require_at_least("max_bytes", max_bytes, 1, _LONGEST),
            most=require_at_least("most", most, 1, MOST_BINS // 16 - 1),
            bits=bits,
            found=tuple(found),
            search=search,
        )
        if bits is not None and bits not in STEPS:
            raise ParameterError(f"bits = {bits} is not one of 4, 8, 12 and 16")
        if bits is not None and self.num_bins > MOST_BINS:
            raise ParameterError(
                f"bits = {bits} with most = {self.most} makes rounds of {self.num_bins:,} bins, "
                f"above {MOST_BINS:,}: give at most bits = {self._fitting[-1]}, or a smaller most"
            )
        if search is not None:
            self._require_search(search)

    def _require_search(self, search: Search) -> None:
        """Raise unless a round is left, with valid prefixes."""
        if self.bits is None:
            raise ParameterError("bits is missing: devices need it; give bits = 4, 8, 12 or 16")
        if len(search.done) >= self.num_rounds:
            raise ParameterError(f"the search has {self.num_rounds} rounds, and all are done")
        left, size = list(map(bytes.fromhex, search.left)), (self._depth + 1) // 2
        if not 1 <= len(left) <= self.most or {size} != set(map(len, left)):
            raise ParameterError(
                f"left has {len(left):,} prefixes, not 1 to most = {self.most:,} of {size} "
                "bytes: take those of the last result"
            )
        # ValueError for bytes that are not UTF-8.
        longer = prefixes.extensions(left, self._depth, 1)
        if not any(prefixes.num_bytes(each) <= self.max_bytes for each in longer.tolist()):
            raise ParameterError(
                f"left has no beginning of a text of up to max_bytes = {self.max_bytes} bytes: "
                "take the prefixes of the last result"
            )

    @classmethod
    def from_json(cls, particulars: Any, labels: Iterable[str]) -> "HeavyHitters":
        """Return the question that `to_json_dict` wrote."""
        numbers = {name: particulars[name] for name in cls.stated}
        search = particulars.get("search")
        return cls(**numbers, found=labels, search=search and Search.from_json(search))

    @property
    def _fitting(self) -> list[int]:
        """Steps for which rounds have few enough bins."""
        return [each for each in STEPS if self.most * prefixes.widest(each // 4) < MOST_BINS]

    def variants(self, *, with_dummies: bool) -> tuple[Self, ...]:
        """Return the questions that a plan compares, one for each step."""
        steps = [4] if with_dummies else self._fitting
        return (self,) if self.bits else tuple(replace(self, bits=each) for each in steps)

    @property
    def num_bins(self) -> int:
        """Number of bins of every round, with "other" as the last; some may stay unused."""
        return self.most * prefixes.widest((self.bits or 4) // 4) + 1

    @property
    def steps(self) -> tuple[int, ...]:
        """Half bytes added to prefixes in each round; the first round extends only one prefix."""
        step, left = (self.bits or 4) // 4, 2 * self.max_bytes
        fitting = (
            each
            for each in range(4, 0, -1)
            if len(prefixes.endings(b"", False, each)) < self.num_bins
        )
        found = [min(next(fitting), left)]
        while (rest := left - sum(found)) > 0:
            found.append(min(step, rest))
        return tuple(found)

    @property
    def num_rounds(self) -> int:
        """Number of rounds, each of which depends on the rounds before."""
        return len(self.steps)

    @property
    def number(self) -> int:
        """Number of the next round of a search, counted from 0."""
        return len(self.search.done) if self.search else 0

    @property
    def _depth(self) -> int:
        """Length in half bytes of the prefixes that a search has kept."""
        return sum(self.steps[: self.number])

    def bins_of(self, left: Iterable[bytes], number: int) -> NDArray[np.bytes_]:
        """Return the bins of a round except "other": extensions of kept prefixes, at last texts.

        Without prefixes that no text of the asked length has: at least one text is left of each.
        """
        bins = prefixes.extensions(left, sum(self.steps[:number]), self.steps[number])
        return bins[[prefixes.num_bytes(each) <= self.max_bytes for each in bins.tolist()]]

    def round_codes(
        self, texts: NDArray[np.bytes_], turns: NDArray[np.integer[Any]] | None = None
    ) -> NDArray[np.int32]:
        """Return values for a round of a search: bins, or "no part" for users with another turn."""
        left: Any = self.search and self.search.left
        bins = self.bins_of(map(bytes.fromhex, left), self.number)
        found = prefixes.codes(texts, bins, sum(self.steps[: self.number + 1]), self.num_bins)
        return found if turns is None else np.where(turns == self.number, found, self.num_bins)

    def users_a_round(self, num_users: int, dummies: question.Laws = ()) -> int:
        """Return the number of users who answer a round: all with dummies, else an even share."""
        return num_users if dummies else max(num_users // self.num_rounds, 1)

    def candidates(self) -> question.Candidates:
        """Return the randomizers, with an answer for each bin of a round."""
        return {name: partial(self._law, name) for name in _ANSWERED_BY}

    def _law(self, name: str, epsilon0: float) -> Any:
        """Return a randomizer of one round, for one machine or, in a search, for devices."""
        most, make = _ANSWERED_BY[name], registry.RANDOMIZERS[name]
        law = make(domain_size=self.num_bins, epsilon0=min(epsilon0, most))
        if self.search is None:
            return OneRound(law)
        return law if self.search.is_for_all else DrawnRound(law)

    def dummy_candidates(self) -> question.Candidates:
        """Return k-ary randomized response: a dummy is a report of one of the bins."""
        makers = {"k-rr": registry.RANDOMIZERS["k-rr"]}
        return question.candidates_of(makers, domain_size=self.num_bins)

    def expected_error(self, randomizer: Any, num_users: int, dummies: question.Laws = ()) -> float:
        """Return the standard error of the share of a rare text in one round."""
        users = self.users_a_round(num_users, dummies)
        return error_at(randomizer, users, 0.0, dummies)

    def frequent_error(
        self,
        randomizer: Any,
        num_users: int,
        frequency: float | None = None,
        dummies: question.Laws = (),
    ) -> float | None:
        """Return the standard error of a share of the given size, the largest over all if None."""
        users = self.users_a_round(num_users, dummies)
        return question.Shares.frequent_error(self, randomizer, users, frequency, dummies)

    def shift_by_one(self, randomizer: Any, num_users: int, counts: Any = None) -> Any:
        """Return the largest change of a share by one user, who may choose the last round."""
        is_split = isinstance(randomizer, OneRound)
        users = self.users_a_round(num_users) if is_split else num_users
        if isinstance(randomizer, DrawnRound) and counts is not None:
            users = randomizer.of_part(counts).num_reports
        elif counts is not None:
            users = getattr(counts, "num_users", num_users)
        share: float = randomizer.influence / users
        return share

    def bin_law(self, randomizer: Any, num_users: int, dummies: question.Laws) -> BinLaw:
        """Return the law of the reports that support one bin of a round."""
        p, q = randomizer.support_probabilities
        return BinLaw(p, q, num_users, next(iter(dummies), None))

    def _done(
        self, randomizer: Any, rounds: Iterable[Round], dummies: question.Laws
    ) -> list[tuple[BinLaw, Round]]:
        """Return rounds that are done, each with its law of a bin."""
        return [(self.bin_law(randomizer, each.num_users, dummies), each) for each in rounds]

    def _planned(
        self, randomizer: Any, num_users: int, dummies: question.Laws
    ) -> list[tuple[BinLaw, Round]]:
        """Return the rounds of a plan, with all bins in use."""
        users, num_bins = self.users_a_round(num_users, dummies), self.num_bins - 1
        law, rounds = self.bin_law(randomizer, users, dummies), []
        for is_last in (False,) * (self.num_rounds - 1) + (True,):
            count = least_count(law, num_bins, self.most, is_last=is_last)
            rounds.append((law, Round(users, num_bins, count)))
        return rounds

    def prospects(self, *of: Any) -> dict[str, Any]:
        """Return expectations with all bins of each round in use, as JSON values."""
        return {"discovery": Discovery.of(self._planned(*of)).to_json_dict()}

    def forcing(self, *of: Any) -> tuple[int, ...]:
        """Return for each round the number of dishonest users who can have a false text found."""
        return forcing(self._planned(*of))

    def dishonest_prospects(
        self, num_dishonest: int, *of: Any, estimates: FoundTexts | None = None
    ) -> dict[str, Any]:
        """Return the number of users who force a false text, and the share found despite liars."""
        rounds = self._planned(*of)
        if estimates is not None:  # their least counts allow for prefixes that did not fit
            done = self._done(of[0], estimates.discovery.rounds, of[2])
            rounds[: len(done)] = done
        enough = forcing(rounds)
        # Devices send in every round, and no one sees that a liar takes part in all of them.
        is_one_round = isinstance(of[0], OneRound) and not isinstance(of[0], DrawnRound)
        forced_by = sum(enough) if is_one_round else max(enough)
        despite = finite(share_despite(rounds, num_dishonest))
        return {"forced_by": forced_by, "found_share": despite}

    def require_post_processing(self, steps: tuple[str, ...]) -> None:
        """Raise `ParameterError` for any step: the other shares are unknown."""
        if steps:
            raise ParameterError(
                f"post_processing = {', '.join(steps)}: shares of found texts are left as estimated"
            )

    def estimate(
        self, randomizer: Any, aggregate: Any, options: question.EstimateOptions
    ) -> FoundTexts:
        """Return the prefixes that a round keeps, or texts; raise without a search."""
        if self.search is None:
            raise ParameterError(
                f"question = {self.kind}: its texts are found round by round, each of which needs "
                "the one before; give the values to shuffledp.run"
            )
        counts, law, laws = aggregate, randomizer, aggregate.dummies
        if isinstance(randomizer, DrawnRound):
            counts, law = randomizer.of_part(aggregate), randomizer.base
        bins = self.bins_of(map(bytes.fromhex, self.search.left), self.number)
        is_last = self.number == self.num_rounds - 1
        here = self.bin_law(law, counts.num_reports, laws)
        kept, facts = left_by(counts.support[: len(bins)], here, self.most, is_last=is_last)
        done = self._done(law, self.search.done, laws)
        return self.found_in(
            law,
            counts,
            bins,
            kept,
            [*done, (here, facts)],
            num_users=aggregate.num_reports,
            options=options,
        )

    def found_in(
        self,
        randomizer: Any,
        counts: Any,
        bins: NDArray[np.bytes_],
        kept: NDArray[np.int64],
        rounds: list[tuple[BinLaw, Round]],
        *,
        num_users: int,
        options: question.EstimateOptions,
    ) -> FoundTexts:
        """Return shares, among all users, of the prefixes or texts kept by the last round."""
        each = simultaneous_confidence(options.confidence, len(bins))
        estimates = randomizer.estimate(counts, confidence=each).for_all_users(num_users)
        arrays: Any = {name: each[kept] for name, each in estimates.given().items()}
        depth, left = sum(self.steps[: len(rounds)]), bins[kept].tolist()
        is_over = len(rounds) == self.num_rounds or not left
        whole = [each.ljust((depth + 1) // 2, b"\0") for each in left]  # arrays strip zeros
        return FoundTexts(
            **arrays,
            texts=tuple(
                str(prefixes.whole_text(each)) if is_over else prefixes.shown(each, depth)
                for each in whole
            ),
            num_users=num_users,
            confidence=options.confidence,
            interval=estimates.interval,
            is_simultaneous=True,
            num_compared=len(bins),
            discovery=Discovery.of(rounds, left=() if is_over else tuple(x.hex() for x in whole)),
        )

    def read(self, source: tables.Source) -> columns.Column:
        """Return a column of texts, checked; bytes of UTF-8, texts outside as one invalid byte."""

        def decode(batch: "pl.DataFrame") -> tuple[Any, ...]:
            texts = batch["text"]
            is_long = texts.str.len_bytes() > self.max_bytes
            holds_zero = texts.str.contains("\0", literal=True)
            masks = [each.fill_null(value=False) for each in (is_long, holds_zero)]
            outside = masks[0] | masks[1]
            kept = texts.fill_null("").cast(pl.Binary).zip_with(~outside, pl.Series([_OUTSIDE]))
            found = np.array(kept.to_list(), dtype=f"S{self.max_bytes}")
            faults = (each.to_numpy() & (not source.reading.other) for each in masks)
            return (found, texts.is_null().to_numpy(), *faults)

        remedy = 'or pass other=True to count such texts as "other"'
        return columns.survey(
            source,
            {"text": spelt.present(source.label(), source.missing_texts())},
            decode,
            columns.Fault(
                f"longer than max_bytes = {self.max_bytes} bytes in UTF-8",
                f"ask for longer texts, {remedy}",
            ),
            columns.Fault("with the character U+0000, which ends texts", f"remove it, {remedy}"),
            question=self,
            unless="texts",
        )

    def value_of_one(self, answer: object) -> NDArray[np.bytes_]:
        """Return one user's text, shape (1,); one that is too long stands for "other"."""
        text = single.label_of_one(answer, ())
        is_none = "\0" in text or len(text.encode()) > self.max_bytes
        return np.array([_OUTSIDE if is_none else text.encode()], dtype=f"S{self.max_bytes}")

    def describe(self) -> str:
        """Return the length of the longest text and the number of rounds."""
        which = f", this is round {self.number + 1}" * bool(self.search and not self.found)
        return (
            f"any text of up to {self.max_bytes} bytes, the {self.most:,} most popular asked for "
            f"in {self.num_rounds} rounds{which}"
        )

    def to_json_dict(self) -> dict[str, object]:
        """Return kind, numbers and search; found texts are stored apart, as ``domain``."""
        search = {} if self.search is None else {"search": self.search.to_json_dict()}
        return question.Shares.to_json_dict(self) | search
