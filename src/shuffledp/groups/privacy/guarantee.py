"""(alpha, G)-d_sigma-privacy: a bound on what a release tells about who in a group sent what.

A mechanism A on sequences y of n reports is (alpha, G)-d_sigma-private if, for every y, every pair
of permutations s, s' that agree outside one group of G, and every event O,

    Pr[A(s(y)) in O] <= e^alpha Pr[A(s'(y)) in O].

It protects the *order* within groups and nothing else: the bag of reports of a group is not
protected by alpha, but by the local randomizer.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, Definition 4.3; Lemma 2 and Theorems A.1 and A.2 for the three operations.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from shuffledp.core.errors import ParameterError
from shuffledp.groups.privacy.odds import odds_factor, require_alpha

# What the definition rests on; a guarantee repeats it because it is part of the claim.
ORDINAL_ASSUMPTIONS = (
    "The groups and the reference order are public and do not depend on the reports.",
    "The shuffler is honest, keeps its permutation secret, and draws it independently of the "
    "reports.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinalGuarantee:
    """The statement that a release is (alpha, G)-d_sigma-private.

    Parameters
    ----------
    alpha : float
        In nats, in [0, inf]. 0: nothing is told about the order within any group; inf: nothing is
        claimed. Errs upwards.
    groups : str
        Which groups: a description that is equal for equal groups, and only for those. Guarantees
        are combined only where it is the same.
    assumptions : tuple of str
        Everything that must hold for the statement to be true, one sentence each.

    Raises
    ------
    ParameterError
        If alpha is negative or no number.

    Examples
    --------
    >>> once = OrdinalGuarantee(alpha=2.0, groups="2 km")
    >>> once.post_processed() == once
    True
    >>> OrdinalGuarantee.mixed([once, OrdinalGuarantee(alpha=1.0, groups="2 km")]).alpha
    2.0
    """

    alpha: float
    groups: str = "the stated groups"
    assumptions: tuple[str, ...] = ORDINAL_ASSUMPTIONS

    def __post_init__(self) -> None:
        set_field = partial(object.__setattr__, self)
        set_field("alpha", require_alpha(self.alpha))
        set_field("assumptions", tuple(self.assumptions))

    @property
    def odds_factor(self) -> float:
        """e^alpha, by which the odds of two values may move (Theorem 4.1); rounded up."""
        return odds_factor(self.alpha)

    @classmethod
    def composed(cls, guarantees: Sequence["OrdinalGuarantee"]) -> "OrdinalGuarantee":
        """Return the guarantee of releasing several outputs about the same reports together.

        Parameters
        ----------
        guarantees : sequence of OrdinalGuarantee
            One each output, all for the same groups; at least one.

        Returns
        -------
        OrdinalGuarantee
            The sum of the alphas, rounded up.

        Raises
        ------
        ParameterError
            If there is none, or their groups differ.

        Notes
        -----
        Given the reports the outputs are independent, so their likelihood ratios multiply.
        Source: arXiv:2106.06603v3, Theorem A.2.

        Examples
        --------
        >>> twice = OrdinalGuarantee.composed([OrdinalGuarantee(alpha=2.0, groups="2 km")] * 2)
        >>> round(twice.alpha, 12)
        4.0
        """
        first = _same_groups(guarantees)
        total = math.fsum(each.alpha for each in guarantees)
        if len(guarantees) > 1 and 0.0 < total < math.inf:
            total = math.nextafter(total, math.inf)  # fsum itself rounds to nearest
        independence = "The shuffles draw their permutations independently of one another."
        extra = (independence,) if len(guarantees) > 1 else ()
        return replace(first, alpha=total, assumptions=_united(guarantees) + extra)

    @classmethod
    def mixed(cls, guarantees: Sequence["OrdinalGuarantee"]) -> "OrdinalGuarantee":
        """Return the guarantee of a coin that decides which one of several outputs is released.

        Parameters
        ----------
        guarantees : sequence of OrdinalGuarantee
            One each possible output, all for the same groups; at least one.

        Returns
        -------
        OrdinalGuarantee
            The largest alpha. It holds whether the coin stays secret or is published, as long as
            the coin does not depend on the reports.

        Raises
        ------
        ParameterError
            If there is none, or their groups differ.

        Notes
        -----
        Source: arXiv:2106.06603v3, Lemma 2 (convexity).
        """
        first = _same_groups(guarantees)
        largest = max(each.alpha for each in guarantees)
        coin = "The coin that chooses the mechanism does not depend on the reports."
        extra = (coin,) if len(guarantees) > 1 else ()
        return replace(first, alpha=largest, assumptions=_united(guarantees) + extra)

    def post_processed(self) -> "OrdinalGuarantee":
        """Return the guarantee of anything computed from the release alone: the same.

        Notes
        -----
        Source: arXiv:2106.06603v3, Theorem A.1.
        """
        return self


def _same_groups(guarantees: Sequence[OrdinalGuarantee]) -> OrdinalGuarantee:
    """Return the first of several guarantees, after checking that they are about one thing."""
    if not guarantees:
        raise ParameterError("guarantees is empty: give at least one OrdinalGuarantee")
    for each in guarantees[1:]:
        if each.groups != guarantees[0].groups:
            raise ParameterError(
                f"guarantees are for different groups, {guarantees[0].groups!r} and "
                f"{each.groups!r}: state each for the same groups first (Theorem 4.4 says what a "
                "Mallows shuffle guarantees for other groups)"
            )
    return guarantees[0]


def _united(guarantees: Sequence[OrdinalGuarantee]) -> tuple[str, ...]:
    """Return all assumptions, each once, in the order of their first mention."""
    return tuple(dict.fromkeys(text for each in guarantees for text in each.assumptions))
