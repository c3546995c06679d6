"""Planning: one plan, or a table of plans if numbers are arrays."""

from dataclasses import dataclass
from typing import Any, Generic, Required, TypedDict, TypeVar, Unpack, overload

from shuffledp.collection import plan as one
from shuffledp.collection.plan import Plan
from shuffledp.collection.questions.question import Estimates_co, Question
from shuffledp.collection.shuffling import Shuffling
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.shown import Frames, Numbers, Real, Whole, broadcast, rows_of

# Arguments of `plan` that may be arrays, in their order.
_NUMBERS = (
    "num_users", "delta", "epsilon", "epsilon0", "max_epsilon0", "rounds", "most_dummies",
    "frequency", "dishonest",
)  # fmt: skip

NumberT = TypeVar("NumberT")
WholeT = TypeVar("WholeT")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plans(Frames, Generic[Estimates_co]):
    """Plans for many settings, one a row: the result of ``shuffledp.plan`` for arrays.

    Parameters
    ----------
    settings : dict of list
        The arguments that were arrays, by name, after broadcasting.
    rows : tuple of Plan
        One plan for each element.
    """

    settings: dict[str, list[Any]]
    rows: tuple[Plan[Estimates_co], ...]

    def __len__(self) -> int:
        return len(self.rows)

    def columns(self) -> dict[str, list[Any]]:
        """Return by name the settings, and randomizer, losses and error of each plan."""
        return {
            **self.settings,
            "randomizer": [each.randomizer.name for each in self.rows],
            "epsilon0": [each.randomizer.epsilon0 for each in self.rows],
            "epsilon_upper": [each.guarantee.epsilon_upper for each in self.rows],
            "expected_standard_error": [each.expected_standard_error for each in self.rows],
        }


class _Settings(TypedDict, Generic[NumberT, WholeT], total=False):
    """Keyword arguments of `plan`: numbers, or arrays of them."""

    num_users: Required[WholeT]
    delta: Required[NumberT]
    epsilon: NumberT | None
    epsilon0: NumberT | None
    max_epsilon0: NumberT | None
    randomizer: str | None
    rounds: WholeT
    shuffling: Shuffling
    dummies: str | DummyLaw
    no_local_noise: bool
    most_dummies: WholeT
    frequency: NumberT | None
    dishonest: WholeT | None


@overload
def plan(  # type: ignore[overload-overlap]  # numbers alone fit the first
    question: Question[Estimates_co], **settings: Unpack[_Settings[Real, Whole]]
) -> Plan[Estimates_co]: ...


@overload
def plan(
    question: Question[Estimates_co], **settings: Unpack[_Settings[Numbers, Numbers]]
) -> Plans[Estimates_co]: ...


def plan(
    question: Question[Estimates_co], **settings: Any
) -> Plan[Estimates_co] | Plans[Estimates_co]:
    """Choose the randomizer and its epsilon0 for a central (epsilon, delta) target.

    Parameters
    ----------
    question : Question
        The question.
    num_users : int
        Number of honest users n whose reports are shuffled together, at least 1.
    delta : float
        Central delta, in (0, 1); well below 1/n.
    epsilon : float, optional
        Central target in nats, > 0.
    epsilon0 : float, optional
        Local privacy loss in nats, given instead of ``epsilon``; any central epsilon may result.
    max_epsilon0 : float, optional
        Largest local privacy loss in nats, > 0, beside ``epsilon``: either may be the limit, and
        the plan's ``binding`` states which. By default only the central target is.
    randomizer : str, optional
        Name of the randomizer to use. By default for a uniform shuffle to a target the one with
        the least expected error, or with the smallest reports among those within 2 % of it;
        otherwise the question's first one.
    rounds : int
        Number of collections about the same people, at least 1: the target is for all of them
        together. Only for a uniform shuffle to a target.
    shuffling : Shuffling
        The shuffle of the reports; uniform by default. Others are
        ``shuffledp.groups.GroupShuffling``, ``shuffledp.groups.DisplacementShuffling`` and
        ``shuffledp.network.NetworkShuffling``.
    dummies : {"none", "shuffler", "users", "best"}, or DummyLaw
        Sender of dummies, reports of no user: the shuffler, so that the guarantee holds whatever
        other users do, or each of the honest users. "best" takes the least error, and no dummies
        if they lower it by at most 2 %. The least dummies that meet the target are found, with
        epsilon0 up to ``max_epsilon0``. For uniform shuffles to a target, users' for one round,
        and for k-RR or sums bit by bit. A law is used as given, for a shuffle through a network.
    no_local_noise : bool
        Instead of ``max_epsilon0``, with dummies: reports may be the answers themselves. Then
        nothing protects the users from a shuffler that colludes with the analyst.
    most_dummies : int
        Largest expected number of dummies in all.
    frequency : float, optional
        A share in [0, 1] for which standard errors are stated too; by default, with dummies, the
        largest over all shares.
    dishonest : int, optional
        Number of users who may lie; the plan states their largest change of an estimate. By
        default one of 100; `Plan.largest_shift` computes it for any number.

    Each number may also be an array: all arrays are broadcast together as NumPy's are.

    Returns
    -------
    Plan, or Plans
        Its ``guarantee`` meets the target. Except for a uniform shuffle its epsilon0 is up to
        one part in a thousand below the largest possible. With arrays one plan for each of their
        elements after broadcasting, in C order, as a table that has ``to_dict()``,
        ``to_polars()`` and ``to_pandas()``.

    Raises
    ------
    ParameterError
        If an argument is out of range, or not exactly one of epsilon and epsilon0 is given; if
        arrays are empty, or of shapes that do not go together.
    InfeasibleTargetError
        If the number of users requires noise that would drown every estimate; the message states
        sufficient numbers. With arrays if one element raises.

    Notes
    -----
    Cost: about ten calls of the accountant for each randomizer; seconds in all, for each element.

    Examples
    --------
    >>> from shuffledp import Categories
    >>> asked = Categories(["yes", "no", "refused"])
    >>> plan(asked, num_users=100_000, epsilon=0.5, delta=1e-8).guarantee.epsilon_upper <= 0.5
    True
    >>> table = plan(asked, num_users=[1_000, 2_000], epsilon=0.5, delta=1e-8).to_dict()
    >>> table["num_users"], [f"{each:.1%}" for each in table["expected_standard_error"]]
    ([1000, 2000], ['1.5%', '0.8%'])
    """
    arrays = broadcast({name: settings.get(name) for name in _NUMBERS})
    if not arrays:
        return one.plan(question, **settings)
    found = tuple(one.plan(question, **settings | row) for row in rows_of(arrays))
    return Plans(settings=arrays, rows=found)
