"""Dishonest users: largest change of an estimate that they can cause, and an attack that does.

Reports are random, so that a lie cannot be detected. The contribution of a report to an estimate
is limited, though: the question's ``shift_by_one`` is the exact limit. A user who lies about the
value only, and randomizes it as agreed, changes an estimate by less.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.cautions import WithoutShuffler, without_shuffler
from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.core.arrays import Floats
from shuffledp.core.bound import finite
from shuffledp.core.checks import require_at_least
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.core.reports import Reports

# One user of this many is dishonest if no number is given.
_ONE_OF = 100

#: Text that simulated liars try to have found; no user needs to have it.
FALSE_TEXT = "!"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """Simulated attack: dishonest users send the reports that raise the estimate of ``label`` most.

    ``shift`` is the difference of that estimate from a run with the same random words in which all
    users are honest. In a search for texts the label is `FALSE_TEXT`, with estimate 0 unless it is
    found.
    """

    label: str
    shift: float


class Influenced:
    """Labels, local guarantee and effects of dishonest users, of a plan or a result."""

    __slots__ = ()

    question: Any
    randomizer: Any
    dummies: Any
    shuffling: Any
    num_users: int
    dishonest: int | None

    @property
    def domain(self) -> tuple[str, ...]:
        """Labels of the estimates: the possible answers, or the names of the columns."""
        labels: tuple[str, ...] = self.question.labels
        return labels

    @property
    def without_shuffler(self: Any) -> WithoutShuffler:
        """Guarantee against an adversary who sees the sender of each report."""
        return without_shuffler(self.question, self.randomizer, rounds=self.rounds)

    @property
    def num_dishonest(self) -> int:
        """Number of dishonest users in these statements; by default one of 100, at least 1."""
        return self.num_users // _ONE_OF or 1 if self.dishonest is None else self.dishonest

    def _shift_by_one(self: Any) -> Any:
        """Return the largest change of each estimate by one user, or of all estimates."""
        return self.question.shift_by_one(self.randomizer, self.num_seen)

    def largest_shift(self, num_dishonest: SupportsIndex) -> Floats:
        """Return the largest change of each estimate that dishonest users can make.

        Parameters
        ----------
        num_dishonest : int
            Number m of users who send any reports instead of their own, m >= 0.

        Returns
        -------
        ndarray of float64
            For each label, one if there is none yet, in the unit of an estimate before any
            post-processing. Exact: some honest reports of theirs, and some others instead, attain
            it; an upper bound for columns in several pairs, and for bins of a tree of which users
            draw a level. If users send dummies, all records that a task accepts from a device
            count; in an exchange between peers all that a peer can send, and the reports of others
            that it drops. Infinite if it is unknown.

        Examples
        --------
        >>> import shuffledp as sdp
        >>> asked = sdp.Categories(["yes", "no"])
        >>> plan = sdp.plan(asked, num_users=100, epsilon0=1.0986122886681098, delta=1e-6)
        >>> plan.largest_shift(10).round(6).tolist()  # 10 / 100 / (3/4 - 1/4)
        [0.2, 0.2]
        """
        number = require_number(num_dishonest, self.num_users)
        labels = len(self.question.labels) or 1  # no texts are found yet
        if not number:
            return np.zeros(labels)
        if self.dummies and self.dummies[0].sender == "users":
            # In a task: the number of records that an upload holds; an exchange has its own limit.
            most = getattr(self.shuffling, "most_records", None)
            number *= self.dummies[0].rare_number(labels) if most is None else most
        shift = self._shift_by_one()
        if callable(shift):
            return np.asarray(shift(number), dtype=np.float64)
        each = np.asarray(shift, dtype=np.float64)
        return np.broadcast_to(number * each, labels).copy()

    @property
    def most_shifted(self) -> float:
        """The largest change of any estimate that ``num_dishonest`` users can make."""
        return float(self.largest_shift(self.num_dishonest).max())

    @property
    def dishonest_prospects(self) -> dict[str, Any]:
        """Further effects of ``num_dishonest`` users on a search for texts; else empty."""
        of = self.num_dishonest, self.randomizer, self.num_users, self.dummies
        seen = getattr(self, "estimates", None)
        found: dict[str, Any] = self.question.dishonest_prospects(*of, estimates=seen)
        return found

    def _dishonest_json(self) -> dict[str, object]:
        """Return the entry of ``to_json_dict`` about dishonest users."""
        attack: Attack | None = getattr(self, "attack", None)
        return {
            "dishonest": {
                "num_dishonest": self.num_dishonest,
                "largest_shift": finite(self.most_shifted),
                "attack": attack and asdict(attack),
                **self.dishonest_prospects,
            }
        }


class DishonestUsers:
    """A randomizer for which some users, drawn at random, send one report whatever their values."""

    def __init__(
        self, question: Any, randomizer: Any, num_dishonest: int, *, num_users: int, seed: Any
    ) -> None:
        self._law, self._seen = randomizer, 0
        self._report: NDArray[Any] = question.worst_report(randomizer, 0)
        # A stream that no other part of a run draws from.
        drawn = Entropy.from_seed(seed).spawn().spawn().spawn().spawn().generator()
        self.users = self._chosen = np.sort(drawn.choice(num_users, num_dishonest, replace=False))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._law, name)

    def randomize(self, values: Any, entropy: Entropy) -> Reports:
        """Return the reports of honest users, with the liars' reports in place of their own."""
        data = self._law.randomize(values, entropy).data.copy()
        of_user = data.reshape(len(values), -1, *data.shape[1:])
        first, self._seen = self._seen, self._seen + len(values)
        ends = np.searchsorted(self._chosen, [first, self._seen])
        of_user[self._chosen[slice(*ends)] - first] = self._report
        return Reports(data=data, fingerprint=self._law.fingerprint)

    def aim(self, place: int, members: NDArray[np.integer[Any]]) -> None:
        """Begin a round of these users, sorted, in which liars support the bin at this place."""
        self._report, self._seen = self._law.report_for(place), 0
        self._chosen = np.flatnonzero(np.isin(members, self.users))

    def turns(self, enough: Sequence[int]) -> NDArray[np.integer[Any]]:
        """Return the round of each liar: these numbers of them, and the rest in the last round."""
        last = len(enough) - 1
        early = np.arange(last).repeat(enough[:-1])[: len(self.users)]
        return np.pad(early, (0, len(self.users) - len(early)), constant_values=last)


def attack_of(attacked: tuple[Any, Any, Any], honest: tuple[Any, Any, Any]) -> Attack:
    """Return the attack, from plan, estimates and aggregate of both runs."""
    question = honest[0].question
    label = FALSE_TEXT if question.has_rounds else question.labels[0]

    def estimate(plan: Any, estimates: Any, aggregate: Any) -> float:
        asked = plan.question
        if not asked.has_rounds:  # before any post-processing
            estimates = asked.estimate(plan.randomizer, aggregate, EstimateOptions())
        found = estimates.columns()
        values = found["frequency" if "frequency" in found else "mean"]
        return float(dict(zip(asked.labels, values, strict=False)).get(label, 0.0))

    return Attack(label=label, shift=estimate(*attacked) - estimate(*honest))


def require_number(number: SupportsIndex, num_users: int) -> int:
    """Return a number of dishonest users, in [0, num_users]."""
    return require_at_least("dishonest", number, 0, num_users, "there are no more users")


def require_dishonest(number: SupportsIndex | None, num_users: int, seed: Any) -> int:
    """Return the number of dishonest users of a simulation, 0 if there are none."""
    if number is None:
        return 0
    found = require_number(number, num_users)
    if seed is None:
        raise ParameterError(
            f"dishonest = {found} simulates users who lie, in place of true reports: give seed=... "
            f"for a simulation, or ask the result for largest_shift({found})"
        )
    return found
