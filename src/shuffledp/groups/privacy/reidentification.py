"""What alpha and epsilon0 together mean for an adversary who wants to find a household's reports.

The game: the adversary sees z and names k rows. The k users of a set I, inside one group of r, are
hit by a row if it holds a report that one of them sent. The adversary wins if more than k/2 rows
hit. All users of the group run one epsilon0-LDP randomizer; the shuffle is (alpha, G)-d_sigma-
private and draws its permutation independently of the reports. Then

    Pr[win] <= 1 / (1 + R e^-(2 k epsilon0 + alpha)),   R = 1 / Pr[Hyp(r - k, k, k) > k/2],      (*)

where Hyp(N, K, d) counts the marked among d drawn without replacement from N with K marked. The
paper has the same with floor((r - k)/k) for R, which is never larger.

*Proof.* Let s be the permutation, and fix z. It determines the rows H named, size k at most. Write
s^-1(i) for the row that shows user i's report; the rows of I are s^-1(I), and s wins if it has more
than k/2 rows in H. For a set J of k users of the group outside I, let s_J be s with the rows of I
and of J exchanged, member by member in ascending order.

- If s wins every s_J loses: the rows of J and those of I are disjoint, so J had fewer than k/2 in
  H, and I has them now. There are C(r - k, k) sets J.
- Exchanging is its own inverse. So an s' that loses is s_J for as many winning s as there are J
  with more than k/2 rows of s' in H. With h <= k rows of H held by the r - k others, that is
  C(r - k, k) Pr[Hyp(r - k, h, k) > k/2], which grows with h: at most C(r - k, k) / R.
- Pr[s | z] <= e^(2 k epsilon0 + alpha) Pr[s_J | z]. The inverses agree outside the group, so the
  shuffle draws them with probabilities within e^alpha. The reports behind z differ by an exchange
  of k pairs, u sent from x and v from x' against v from x and u from x'; as R(u | x) <= e^epsilon0
  R(u | x') for one *common* R, each pair costs e^(2 epsilon0).

Summing Pr[s | z] <= e^(2 k epsilon0 + alpha) Pr[s_J | z] over the winning s and all J,
C(r - k, k) Pr[win | z] <= e^(2 k epsilon0 + alpha) (C(r - k, k) / R) Pr[lose | z]. That is (*)
given z, hence on average; and an adversary who tosses coins is a mixture of such. ∎

*R >= floor((r - k)/k) = m.* Cut the r - k others at random into m disjoint sets of k (and a rest).
At most one of the m can hold more than half of k marks, and each is a uniform set: m/R <= 1.

Source: Meehan, Roy Chowdhury, Chaudhuri, Jha, "Privacy Implications of Shuffling", ICLR 2022,
arXiv:2106.06603v3, Theorem 4.2 (stated there for k < r/2; the proof covers k = r/2). R is ours.
"""

import math
from fractions import Fraction

from shuffledp.core.checks import require_at_least, require_non_negative
from shuffledp.core.errors import OutOfRegimeError, ParameterError
from shuffledp.core.numerics.enclosure import round_up
from shuffledp.groups.privacy.odds import require_alpha

# Above this many users of interest the exact count of sets gets slow; the paper's form is used.
_LARGEST_EXACT_SUBSET = 2000


def reidentification_bound(
    *, group_size: int, subset_size: int, epsilon0: float, alpha: float
) -> float:
    """Return an upper bound on the adversary's probability to find most of a subset's reports.

    Parameters
    ----------
    group_size : int
        Members r of the group, at least 2.
    subset_size : int
        Users k of interest inside it, 1 to r/2.
    epsilon0 : float
        Local privacy loss of the one randomizer that all of the group run, in [0, inf).
    alpha : float
        d_sigma-privacy of the shuffle for this group, in [0, inf].

    Returns
    -------
    float
        In (0, 1], rounded up. Given the adversary's whole knowledge of the values: it holds for
        every data set.

    Raises
    ------
    ParameterError
        If an argument is out of range.
    OutOfRegimeError
        If k > r/2: then the others cannot stand in for the subset.

    Notes
    -----
    Source: (*) above; at least as small as arXiv:2106.06603v3, Theorem 4.2, and equal for k = 1.
    Cost: O(k) exact integer operations up to k = 2000, above that Theorem 4.2 itself.

    Examples
    --------
    Without any information one of three others is as likely as the person: 1 / (1 + 3).

    >>> round(reidentification_bound(group_size=4, subset_size=1, epsilon0=0.0, alpha=0.0), 12)
    0.25
    """
    r, k = _checked_sizes(group_size, subset_size)
    if k > _LARGEST_EXACT_SUBSET:
        odds = Fraction(_disjoint_sets(r, k))
    else:
        most = sum(
            math.comb(k, hits) * math.comb(r - 2 * k, k - hits) for hits in range(k // 2 + 1, k + 1)
        )
        odds = Fraction(math.comb(r - k, k), most)
    return _win_bound(odds, k, epsilon0, alpha)


def reidentification_bound_published(
    *, group_size: int, subset_size: int, epsilon0: float, alpha: float
) -> float:
    """Return the paper's bound on the same probability, for comparison.

    Parameters
    ----------
    group_size, subset_size, epsilon0, alpha
        As for `reidentification_bound`.

    Returns
    -------
    float
        1 / (1 + floor((r - k)/k) e^-(2 k epsilon0 + alpha)), rounded up.

    Raises
    ------
    ParameterError, OutOfRegimeError
        As for `reidentification_bound`.

    Notes
    -----
    Source: arXiv:2106.06603v3, Theorem 4.2.

    Examples
    --------
    >>> sizes = {"group_size": 50, "subset_size": 5}
    >>> paper = reidentification_bound_published(**sizes, epsilon0=0.0, alpha=0.0)
    >>> round(paper, 12), paper > reidentification_bound(**sizes, epsilon0=0.0, alpha=0.0)
    (0.1, True)
    """
    r, k = _checked_sizes(group_size, subset_size)
    return _win_bound(Fraction(_disjoint_sets(r, k)), k, epsilon0, alpha)


def _checked_sizes(group_size: int, subset_size: int) -> tuple[int, int]:
    """Return both sizes if the theorem applies to them."""
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
    return r, k


def _disjoint_sets(r: int, k: int) -> int:
    """Return floor((r - k)/k), how many disjoint sets of k the others hold."""
    return (r - k) // k


def _win_bound(odds: Fraction, k: int, epsilon0: float, alpha: float) -> float:
    """Return 1 / (1 + odds e^-(2 k epsilon0 + alpha)), rounded up, in logarithms."""
    loss = round_up(2.0 * k * require_non_negative("epsilon0", epsilon0) + require_alpha(alpha))
    # Logarithms of huge integers are fine where their floats would overflow.
    log_odds = math.log(odds.numerator) - math.log(odds.denominator)
    slack = 8.0 * math.ulp(math.log(odds.numerator) + 1.0)
    exponent = loss - log_odds + slack
    if exponent <= 0.0:
        shrink = math.exp(exponent)
        return min(round_up(shrink / (1.0 + shrink)), 1.0)
    return min(round_up(1.0 / (1.0 + math.exp(-exponent))), 1.0)
