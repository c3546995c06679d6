"""What alpha, alone and with epsilon0, means for an adversary: odds, and a household's reports.

*Odds.* An (alpha, G)-d_sigma-private release moves the odds of two values of a person by at most
e^alpha, for an adversary with any prior who knows every report outside the person's group, who sent
each of those, and the bag of reports of the group (Theorem 4.1). What that bag tells is not bounded
by alpha; that is what epsilon0 is for.

*Re-identification.* The adversary sees z and names k rows; more than k/2 of them hold a report of
the k users of a set I, inside one group of r, with a probability of at most

    1 / (1 + R e^-(2 k epsilon0 + alpha)),   R = 1 / Pr[Hyp(r - k, k, k) > k/2],      (*)

where Hyp(N, K, d) counts the marked among d drawn without replacement from N with K marked, if all
of the group run one randomizer and the shuffle does not depend on the reports. The paper has the
same with floor((r - k)/k) for R, which is never larger.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, Theorems 4.1 and 4.2 (for k < r/2; the proof covers k = r/2). R is ours, and
docs/results/ordinal.md has the proofs.
"""

import math
from fractions import Fraction

from shuffledp.core.checks import require_at_least, require_extended, require_non_negative
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.numerics.enclosure import round_up

_HINT = "give a number >= 0, such as 4"


def odds_factor(alpha: float) -> float:
    """Return e^alpha, the largest factor by which the odds of two values move; rounded up."""
    exponent = require_extended("alpha", alpha, _HINT)
    if exponent > _LARGEST_EXPONENT:
        return math.inf
    return round_up(math.exp(exponent), operations=4) if exponent else 1.0


# Beyond this e^alpha is near the largest float.
_LARGEST_EXPONENT = 709.0
# Above this many users of interest the exact count of sets gets slow; the paper's form is used.
_LARGEST_EXACT_SUBSET = 2000


def reidentification_bound(
    *, group_size: int, subset_size: int, epsilon0: float, alpha: float
) -> float:
    """Return an upper bound on the adversary's probability to find most of a subset's reports.

    (*) above for k users inside a group of r >= 2 k, rounded up; given the adversary's whole
    knowledge of the values, so it holds for every data set. `OutOfRegimeError` if k > r/2: then the
    others cannot stand in for the subset. At least as small as Theorem 4.2, and equal for k = 1.
    Cost: O(k) exact integer operations up to k = 2000, above that Theorem 4.2 itself.
    """
    r = require_at_least("group_size", group_size, 2)
    k = require_at_least("subset_size", subset_size, 1)
    if k > r:
        raise ParameterError(
            f"subset_size = {k} is above group_size = {r}: the subset is a part of the group"
        )
    if 2 * k > r:
        raise OutOfRegimeError(
            f"the re-identification bound needs subset_size <= group_size / 2 (arXiv:2106.06603v3, "
            f"Theorem 4.2), but subset_size = {k}, group_size = {r}; take a larger group"
        )
    if k > _LARGEST_EXACT_SUBSET:
        odds = Fraction((r - k) // k)  # how many disjoint sets of k the others hold
    else:
        most = sum(
            math.comb(k, hits) * math.comb(r - 2 * k, k - hits) for hits in range(k // 2 + 1, k + 1)
        )
        odds = Fraction(math.comb(r - k, k), most)
    # 1 / (1 + odds e^-(2 k epsilon0 + alpha)), in logarithms.
    exponent = require_extended("alpha", alpha, _HINT)
    loss = round_up(2.0 * k * require_non_negative("epsilon0", epsilon0) + exponent)
    # Logarithms of huge integers are fine where their floats would overflow.
    log_odds = math.log(odds.numerator) - math.log(odds.denominator)
    slack = 8.0 * math.ulp(math.log(odds.numerator) + 1.0)
    exponent = loss - log_odds + slack
    smaller = math.exp(-abs(exponent))
    return min(round_up((1.0 if exponent > 0.0 else smaller) / (1.0 + smaller)), 1.0)
