"""No amplification: the shuffled release is post-processing of (epsilon0, delta0)-LDP reports.

The floor under every other result: the guarantee of one report. At delta0 = 0 that is epsilon0 with
delta = 0, and at a smaller epsilon delta = (e^epsilon0 - e^epsilon)/(e^epsilon0 + 1), which binary
randomized response attains. With delta0, everything is revealed with that probability at worst:
delta = delta0 + (1 - delta0) (e^epsilon0 - e^epsilon)_+ / (e^epsilon0 + 1) (Kairouz, Oh, Viswanath
2015, arXiv:1311.0776v4, the proof of Theorem 3.3). The only result that holds at delta = delta0.

A report that is sent with probability q only, by a coin that ignores the value, has laws
(1 - q) O + q P and (1 - q) O + q P'. Since e^epsilon >= 1 the divergence is at most q times that of
P and P': total variation is at most q. In terms of the delta0 of all this, which is q times that of
a report sent, delta = delta0 + (q - delta0) (e^epsilon0 - e^epsilon)_+ / (e^epsilon0 + 1).

*Any (epsilon0, delta0)-LDP randomizer* of which nothing else is known: bound and proof are ours.
Feldman, McMillan, Talwar 2021 (arXiv:2012.12803, Theorem 3.8) has one of the same kind, with (1 +
1/(2p)) delta0 for each user where this has at most (2/p) tanh(epsilon0/2) delta0.

With eta = 2 delta0/p, p = e^epsilon0 and e = e^epsilon,

    delta(epsilon) <= pure(epsilon) + (1 + e) (t tanh(epsilon0/2) + delta0/(p + 1)),

t = 1 - (1 - eta)^(n-1), where pure is "clones"; or "feldman-2021-numerical" with eta = delta0/p; or
the bound without any shuffling. The smallest counts. No bound is below delta0: the randomizer
may reveal the value with that probability.

*Proof.* Let P, Q be the report laws of the two inputs and O the law of the other reports.

1. Where P > p Q move (P - p Q)/(p + 1) from P to Q, and mirrored where Q > p P: the ratio becomes p
   there and stays in [1/p, p] elsewhere. At most delta0/(p + 1) moves either way. If the masses are
   now 1 - d and 1 + d, move d back from the second law to the first where the second is larger,
   never past equality. The results P~, Q~ are epsilon0-close laws with P~ + Q~ = P + Q. So (P - e
   Q) - (P~ - e Q~) = (1 + e)(P - P~), whose positive part is at most (1 + e) delta0/(p + 1) in all.
   Both moves go towards equality, so max(P~, Q~) <= max(P, Q).
2. For another user's law R, sum (P/p - R)_+ <= delta0/p, and so for Q. Hence omega = (P~ + Q~)/(2
   p) exceeds R by at most eta = delta0/p in all, and omega = max(P~, Q~)/p by at most eta = 2
   delta0/p. Fill R up to omega and take the same mass away above it, never past omega. For all
   others together that changes O to O~ at a total variation of at most t.
3. For an event A let D(o) = (K_P(o) - e K_Q(o))(A), K(o) the law of the shuffled reports given the
   others'. Going from O to O~ changes E D by at most t (sup D - inf D). By post-processing sup D <=
   H(P~, Q~; e) <= (p - e)/(p + 1) and -inf D <= e - 1 + H(P~, Q~; e); together (1 + e)
   tanh(epsilon0/2).
4. For P~, Q~ and others above omega the pure bounds apply: the proof of "clones" needs only an
   epsilon0-close pair and omega = max(P~, Q~)/p below the others' laws.
"""

import math

from shuffledp.amplification.atom_law import atom_delta_above, atom_epsilon_above
from shuffledp.amplification.clones_and_families import clone_law, weak_clone_law
from shuffledp.amplification.method import Method
from shuffledp.core.numerics.enclosure import Enclosure, round_up
from shuffledp.core.profile import LARGEST_EPSILON0, LocalProfile


def single_report_delta(epsilon0: float, epsilon: float) -> float:
    """Return (e^epsilon0 - e^epsilon)_+ / (e^epsilon0 + 1), rounded up."""
    if epsilon >= epsilon0:
        return 0.0
    # Divided by e^epsilon0, so that no epsilon0 overflows.
    shrink = math.exp(-epsilon0)
    delta = round_up(-math.expm1(epsilon - epsilon0) / (1.0 + shrink), operations=16)
    return min(max(delta, 5e-324), 1.0)  # rounding up must not end at zero


def single_report_epsilon(epsilon0: float, delta: float) -> float:
    """Return ln(e^epsilon0 - delta (e^epsilon0 + 1))_+, rounded up: the inverse of the above."""
    if delta == 0.0:
        return epsilon0
    shrunk = delta * math.exp(-epsilon0)
    left = (1.0 - delta) - shrunk
    if left <= 0.0:
        return 0.0
    # Where the result is above 0, left is above e^-epsilon0, so that four roundings of either sum
    # move its logarithm by less than the slack; 1 - delta is exact from 1/2 on.
    logarithm = math.log1p(-(delta + shrunk)) if delta < 0.5 else math.log(left)
    return min(max(epsilon0 + logarithm + 16.0 * math.ulp(epsilon0), 0.0), epsilon0)


def _epsilon(profile: LocalProfile, _num_users: int, delta: float) -> Enclosure:
    if delta < profile.delta0:
        return Enclosure(0.0, math.inf)
    room, spent = profile.participation - profile.delta0, delta - profile.delta0
    left = spent / room if spent < room else 1.0
    if profile.delta0 > 0.0 or profile.participation < 1.0:
        left *= 1.0 - 8.0 * math.ulp(1.0)
        if delta >= profile.participation:
            return Enclosure(0.0, 0.0)
    return Enclosure(0.0, single_report_epsilon(profile.epsilon0, left))


def _delta(profile: LocalProfile, _num_users: int, epsilon: float, _: float = 0.0) -> Enclosure:
    single = single_report_delta(profile.epsilon0, epsilon)
    if profile.delta0 == 0.0 and profile.participation == 1.0:
        return Enclosure(0.0, single)
    sent = (profile.participation - profile.delta0) * single
    return Enclosure(0.0, min(round_up(profile.delta0 + sent, operations=8), profile.participation))


LOCAL = Method(
    name="local",
    source="post-processing; Kairouz, Oh, Viswanath 2015, arXiv:1311.0776v4, proof of Theorem 3.3, "
    "for epsilon below epsilon0",
    statement="delta(eps) <= delta0 + (q - delta0) (e^eps0 - e^eps)_+ / (e^eps0 + 1), q the "
    "probability of a report",
    proved_here=True,
    violated_hypothesis=lambda *_: None,
    epsilon=_epsilon,
    delta=_delta,
)


# The two pure laws of step 4, each with the deficits of its blanket.
_PURE_LAWS = ((clone_law, 2.0), (weak_clone_law, 1.0))

# The additive term moves epsilon by far less at each turn; this many never were needed.
_MOST_TURNS = 40


def replacement_cost(
    profile: LocalProfile, num_users: int, deficits: float, epsilon: float
) -> float:
    """Return (1 + e)(t tanh(epsilon0/2) + delta0/(p+1)) of steps 1 to 3, rounded up.

    The cost of replacing the laws of all users by laws with a pure blanket; ``deficits`` is eta
    in units of delta0/p.
    """
    others = deficits * profile.delta0 * math.exp(-profile.epsilon0)
    replaced = 1.0
    if others < 1.0:
        replaced = -math.expm1((num_users - 1.0) * math.log1p(-others))
    victim = profile.delta0 / (math.exp(profile.epsilon0) + 1.0)
    cost = (1.0 + math.exp(epsilon)) * (replaced * math.tanh(0.5 * profile.epsilon0) + victim)
    return round_up(cost, operations=40)


def approximate_delta(profile: LocalProfile, num_users: int, epsilon: float) -> float:
    """Return the bound of step 4 at one epsilon, rounded up."""
    if epsilon >= profile.epsilon0:
        return profile.delta0
    best = LOCAL.delta(profile, num_users, epsilon).upper
    for make, deficits in _PURE_LAWS if profile.epsilon0 <= LARGEST_EPSILON0 else ():
        added = replacement_cost(profile, num_users, deficits, epsilon)
        if added < best:
            pure = atom_delta_above(make(profile.epsilon0), num_users, epsilon)
            best = min(best, round_up(pure + added))
    return best


def approximate_epsilon(profile: LocalProfile, num_users: int, delta: float) -> float:
    """Return the least epsilon that step 4 gives at ``delta``, rounded up; inf for delta < delta0.

    There the pure part and the additive term add up to at most ``delta``, for 0 < delta < 1.
    """
    best = LOCAL.epsilon(profile, num_users, delta).upper
    if best in (0.0, math.inf) or profile.epsilon0 > LARGEST_EPSILON0:
        return best
    for make, deficits in _PURE_LAWS:
        law, allowed = make(profile.epsilon0), 0.0
        for _ in range(_MOST_TURNS):
            added = replacement_cost(profile, num_users, deficits, allowed)
            room = delta * (1.0 - math.ulp(1.0)) - added
            if not room > 1e-12 * delta:
                break
            found = atom_epsilon_above(law, num_users, room, profile.epsilon0)
            if found <= allowed:
                best = min(best, found)
                break
            # A little beyond, so that the next turn may already be the last.
            allowed = min(found * (1.0 + 1e-7) + 1e-300, max(profile.epsilon0, found))
    return best


APPROXIMATE_LOCAL = Method(
    name="approximate-local",
    source="shuffledp documentation, after Feldman, McMillan, Talwar 2021, arXiv:2012.12803, "
    "Theorem 3.8: a pure pair and a pure blanket within delta0, then the clone pairs of 2021 and "
    "2023",
    statement="delta(eps) <= pure(eps) + (1 + e)(t tanh(eps0/2) + delta0/(p+1)), "
    "t = 1 - (1 - 2 delta0/p)^(n-1)",
    proved_here=True,
    violated_hypothesis=lambda profile, *_: None if profile.delta0 > 0.0 else "delta0 > 0",
    epsilon=lambda profile, n, delta: Enclosure(0.0, approximate_epsilon(profile, n, delta)),
    delta=lambda profile, n, epsilon, _=0.0: Enclosure(0.0, approximate_delta(profile, n, epsilon)),
)
