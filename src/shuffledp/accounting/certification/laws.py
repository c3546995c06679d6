"""Ball arithmetic for certificates: exact doubles in, outward rounded doubles out, tails as balls.

A ball of Arb (through python-flint) is a midpoint and a radius that provably hold the exact number,
whatever is computed from it. Only certificates import this module: only they need the package.

Source: Johansson 2017, "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic",
arXiv:1611.02831.

The laws that certificates evaluate, derived anew in ball arithmetic from the profile.

A profile's epsilon0 is a double, already rounded up, and is taken as the exact number it is; so are
the atoms that a randomizer states. Nothing here reads a number that the accountant computed.

A law is that of one report in (B) of docs/results/kernel.md: atoms of mass m and
likelihood ratios (r0, r1); the mass missing from one has ratios (0, 0). A *symmetric* law has one
pair, (h, l) and (l, h) equally likely, and at most two kinds of other reports, of weights (w, w).

The closed forms among the methods in ball arithmetic, solved for delta at a given epsilon.

Each returns a ball that holds the form's delta, 1 where the form has none; hypotheses are decided
in ball arithmetic too. Statements and sources: `local` and `erlingsson`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from flint import arb, fmpq

from shuffledp.core.errors import OutOfRegimeError, PrecisionError
from shuffledp.core.numerics.enclosure import Enclosure
from shuffledp.core.profile import BlanketAtom, LocalProfile, RandomizerFamily

ZERO = arb(0)

# Bits beyond those that a result should have: n = 1e15 times a logarithm of n takes 56 of them.
GUARD_BITS = 64


def outward(ball: arb) -> Enclosure:
    """Return the doubles around a ball that holds a number >= 0; exact zero stays zero."""
    if ball.is_zero():
        return Enclosure(0.0, 0.0)
    if not ball.is_finite():
        raise PrecisionError("a ball is not finite: more bits are needed")
    lower = math.nextafter(float(ball.lower()), -math.inf)
    return Enclosure(max(lower, 0.0), math.nextafter(float(ball.upper()), math.inf))


def up_to(ball: arb) -> arb:
    """Return a ball that holds everything from 0 to the upper end of ``ball``, if that is > 0."""
    return ZERO.union(ball.upper()) if ball.upper() > 0 else ZERO


def floor_of_lower(ball: arb) -> int:
    """Return the largest whole number that is at most every number in ``ball``."""
    if not ball.is_finite():
        raise PrecisionError("a ball is not finite: more bits are needed")
    return int(ball.lower().floor().fmpz())


def window(num_trials: int, probability: float, tail_exponent: float) -> tuple[int, int]:
    """Return first and last outcome outside which a binomial has about e^-tail_exponent of mass.

    By Bernstein's inequality in doubles: a choice, not a claim. What is left out is to be bounded
    by `outer_mass`.
    """
    mean = num_trials * probability
    variance = mean * max(1.0 - probability, 0.0)
    third = tail_exponent / 3.0
    reach = third + math.sqrt(third * third + 2.0 * tail_exponent * variance)
    return max(0, math.floor(mean - reach)), min(num_trials, math.ceil(mean + reach))


def outer_mass(num_trials: int, probability: arb, complement: arb, *, first: int, last: int) -> arb:
    """Return an upper bound, by Chernoff, of the mass of a binomial outside [first, last].

    ``complement`` is 1 - p, which may be known better than by subtraction.
    """
    total = ZERO
    if first > 0:
        total += _chernoff(num_trials, probability, complement, first - 1, below=True)
    if last < num_trials:
        total += _chernoff(num_trials, probability, complement, last + 1, below=False)
    return total


def _chernoff(
    num_trials: int, probability: arb, complement: arb, outcome: int, *, below: bool
) -> arb:
    """Return exp(-n KL(k/n || p)) >= the mass from k = ``outcome`` outwards; 1 around the mean."""
    mean = num_trials * probability
    if not (outcome < mean if below else outcome > mean):
        return arb(1)
    exponent = ZERO
    if outcome > 0:
        exponent += outcome * (mean / outcome).log()
    if outcome < num_trials:
        rest = num_trials - outcome
        exponent += rest * (num_trials * complement / rest).log()
    return exponent.exp()


def binomial_point(num_trials: int, outcome: int, probability: arb, complement: arb) -> arb:
    """Return Pr[Bin(n, p) = k], 0 <= k <= n, for 0 < p < 1; ``complement`` is 1 - p."""
    logarithm = (
        arb(num_trials + 1).lgamma()
        - arb(outcome + 1).lgamma()
        - arb(num_trials - outcome + 1).lgamma()
    )
    logarithm += outcome * probability.log() + (num_trials - outcome) * complement.log()
    return logarithm.exp()


Atom = tuple[arb, arb, arb]  # mass, ratio0, ratio1


@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetricBalls:
    """A symmetric law with h / l = e^epsilon0.

    Masses sum to one; base_weight <= rest_weight and <= (h + l)/2. All are given to full relative
    accuracy, since any may be tiny.
    """

    epsilon0: arb
    low: arb
    pair_mass: arb
    base_mass: arb
    base_weight: arb = ZERO
    rest_mass: arb = ZERO
    rest_weight: arb = ZERO

    @property
    def high(self) -> arb:
        """The larger ratio h."""
        return self.low * self.epsilon0.exp()

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The same law as a list of atoms."""
        half = self.pair_mass / 2
        return (
            (half, self.high, self.low),
            (half, self.low, self.high),
            (self.rest_mass, self.rest_weight, self.rest_weight),
            (self.base_mass, self.base_weight, self.base_weight),
        )


Law = SymmetricBalls | tuple[Atom, ...]

# Balls have the precision of the moment, so laws are recipes. Where the two orders of the pair
# have different laws, there are two, and the larger delta counts.
Recipe = Callable[[LocalProfile], tuple[Law, ...]]


def clones(profile: LocalProfile) -> SymmetricBalls:
    """Return the clone law: pair reports of mass 2/(p + 1), nothing else."""
    epsilon0 = arb(profile.epsilon0)
    total = epsilon0.exp() + 1
    return SymmetricBalls(
        epsilon0=epsilon0, low=arb(1), pair_mass=2 / total, base_mass=epsilon0.expm1() / total
    )


def k_rr_blanket(profile: LocalProfile) -> SymmetricBalls:
    """Return k-RR's blanket: each answer 1/(p + k - 1), those outside the pair of weight 1."""
    epsilon0, size = arb(profile.epsilon0), profile.domain_size or 2
    symbol = 1 / (epsilon0.exp() + (size - 1))
    return SymmetricBalls(
        epsilon0=epsilon0,
        low=arb(1),
        pair_mass=2 * symbol,
        rest_mass=(size - 2) * symbol,
        rest_weight=arb(1),
        base_mass=epsilon0.expm1() * symbol,
    )


@dataclass(frozen=True, slots=True)
class _Noise:
    """Probability q that noise sets a bit, the ratio l of an unset bit, and 1 - l."""

    epsilon0: arb
    set_bit: arb
    low: arb
    one_minus_low: arb

    @property
    def pair_mass(self) -> arb:
        """Mass of the pair's bits (1,0) and (0,1) in l * noise."""
        return 2 * self.low * self.set_bit * (1 - self.set_bit)

    @property
    def both_set(self) -> arb:
        """Mass of bits (1,1)."""
        return self.low * self.set_bit * self.set_bit

    @property
    def none_set(self) -> arb:
        """Mass of bits (0,0)."""
        return self.low * (1 - self.set_bit) * (1 - self.set_bit)


def _noise(profile: LocalProfile) -> _Noise:
    epsilon0 = arb(profile.epsilon0)
    if profile.family is RandomizerFamily.SYMMETRIC_UNARY:
        half = epsilon0 / 2
        return _Noise(epsilon0, 1 / (1 + half.exp()), (-half).exp(), -(-half).expm1())
    return _Noise(
        epsilon0,
        1 / (1 + epsilon0.exp()),
        (1 + (-epsilon0).exp()) / 2,
        -(-epsilon0).expm1() / 2,
    )


def unary_blanket(profile: LocalProfile) -> tuple[Atom, ...]:
    """Return the blanket l * noise with its three weights: p for bits (1,1) and 1 for (0,0)."""
    noise = _noise(profile)
    one, ratio, half = arb(1), noise.epsilon0.exp(), noise.pair_mass / 2
    return (
        (half, ratio, one),
        (half, one, ratio),
        (noise.both_set, ratio, ratio),
        (noise.none_set, one, one),
    )


def unary_lightened(profile: LocalProfile) -> SymmetricBalls:
    """Return the same with the weight of bits (1,1) lowered to 1: an upper bound of it."""
    noise = _noise(profile)
    return SymmetricBalls(
        epsilon0=noise.epsilon0,
        low=arb(1),
        pair_mass=noise.pair_mass,
        rest_mass=noise.both_set + noise.none_set,
        rest_weight=arb(1),
        base_mass=noise.one_minus_low,
    )


def unary_spread(profile: LocalProfile) -> SymmetricBalls:
    """Return the same with the weight 1 of bits (0,0) spread onto p and 0: an upper bound of it."""
    noise = _noise(profile)
    shrink = (-noise.epsilon0).exp()
    return SymmetricBalls(
        epsilon0=noise.epsilon0,
        low=arb(1),
        pair_mass=noise.pair_mass,
        rest_mass=noise.both_set + noise.none_set * shrink,
        rest_weight=noise.epsilon0.exp(),
        base_mass=noise.one_minus_low - noise.none_set * (-noise.epsilon0).expm1(),
    )


def stated(atoms: Sequence[BlanketAtom]) -> tuple[Law, ...]:
    """Return stated atoms as the exact numbers they are, in both orders of the pair if they differ.

    Those of equal ratios become one. Masses that add up to s > 1 by rounding are divided by s and
    ratios multiplied by s, which keeps every R_x and can only raise (B).
    """
    masses: dict[tuple[float, float], fmpq] = {}
    for atom in atoms:
        ratios = (atom.ratio0, atom.ratio1)
        masses[ratios] = masses.get(ratios, fmpq(0)) + _rational(atom.mass)
    mirrored = {(ratio1, ratio0): mass for (ratio0, ratio1), mass in masses.items()}
    scale = max(sum(masses.values(), fmpq(0)), fmpq(1))
    return tuple(
        tuple(
            (arb(mass / scale), arb(ratio0) * arb(scale), arb(ratio1) * arb(scale))
            for (ratio0, ratio1), mass in order.items()
        )
        for order in ([masses] if masses == mirrored else [masses, mirrored])
    )


def _rational(number: float) -> fmpq:
    return fmpq(*number.as_integer_ratio())


def _third_answer(profile: LocalProfile, size: int) -> SymmetricBalls:
    """Return k-RR's law where all others hold one third answer: exact for those data."""
    epsilon0 = arb(profile.epsilon0)
    ratio = epsilon0.exp()
    symbol = 1 / (ratio + (size - 1))
    return SymmetricBalls(
        epsilon0=epsilon0,
        low=arb(1),
        pair_mass=2 * symbol,
        rest_mass=(size - 3) * symbol,
        rest_weight=arb(1),
        base_mass=ratio * symbol,
        base_weight=1 / ratio,
    )


def _third_value(profile: LocalProfile) -> SymmetricBalls:
    """Return a unary encoding's law for such data, seen through the pair's two bits."""
    noise = _noise(profile)
    return SymmetricBalls(
        epsilon0=noise.epsilon0,
        low=noise.low,
        pair_mass=noise.pair_mass / noise.low,
        rest_mass=noise.both_set / noise.low,
        rest_weight=noise.low * noise.epsilon0.exp(),
        base_mass=noise.none_set / noise.low,
        base_weight=noise.low,
    )


def _third_bit(profile: LocalProfile) -> SymmetricBalls:
    """Return the same seen through the third bit too: where it is unset, (p, 1) and (1, p)."""
    noise = _noise(profile)
    symmetric = profile.family is RandomizerFamily.SYMMETRIC_UNARY
    third_unset = noise.set_bit if symmetric else arb(0.5)
    pair_mass = noise.pair_mass / noise.low * third_unset
    weight_left = 1 - pair_mass * (1 + noise.epsilon0.exp()) / 2
    return SymmetricBalls(
        epsilon0=noise.epsilon0,
        low=arb(1),
        pair_mass=pair_mass,
        base_mass=1 - pair_mass,
        base_weight=weight_left / (1 - pair_mass),
    )


def binary_ends(profile: LocalProfile) -> tuple[Law, ...]:
    """Return binary randomized response where all others hold what the victim may hold."""
    ratio = arb(profile.epsilon0).exp()
    keep, lie, one = ratio / (ratio + 1), 1 / (ratio + 1), arb(1)
    return (
        ((keep, one, 1 / ratio), (lie, one, ratio)),
        ((keep, 1 / ratio, one), (lie, ratio, one)),
    )


def explicit_data(profile: LocalProfile) -> list[Recipe]:
    """Return the laws of data whose others all hold one third value; each proves a lower end."""
    size, family = profile.domain_size, profile.family
    recipes: list[Recipe] = []
    if profile.attack:
        recipes.append(lambda profile: stated(profile.attack))
    if family is RandomizerFamily.ANY and size != 2:
        recipes.append(lambda profile: (_third_answer(profile, 3),))
    if size is None or size < 3:
        return recipes
    if family is RandomizerFamily.K_RANDOMIZED_RESPONSE:
        recipes.append(lambda profile: (_third_answer(profile, size),))
    if family in (RandomizerFamily.SYMMETRIC_UNARY, RandomizerFamily.OPTIMIZED_UNARY):
        recipes += [
            lambda profile: (_third_bit(profile),),
            lambda profile: (_third_value(profile),),
        ]
    return recipes


# For each method, laws that bound it from above. The last is the law of the method's theorem; those
# before dominate it, and serve because they are easier to sum.
UPPER_LAWS: Mapping[str, tuple[Recipe, ...]] = MappingProxyType(
    {
        "clones": (lambda profile: (clones(profile),),),
        "k-rr-blanket": (lambda profile: (k_rr_blanket(profile),),),
        "unary-blanket": (
            lambda profile: (unary_lightened(profile),),
            lambda profile: (unary_spread(profile),),
            lambda profile: (unary_blanket(profile),),
        ),
        "stated-blanket": (lambda profile: stated(profile.blanket),),
    }
)


ONE = arb(1)


def _local(profile: LocalProfile, _num_users: int, epsilon: arb) -> arb:
    """Return delta0 + (1 - delta0) (p - e)_+/(p + 1)."""
    epsilon0, delta0 = arb(profile.epsilon0), arb(profile.delta0)
    if epsilon >= epsilon0:
        return delta0
    return delta0 - (1 - delta0) * (epsilon - epsilon0).expm1() / (1 + (-epsilon0).exp())


def _growth(epsilon0: arb) -> arb:
    """Return e^(2 epsilon0) (e^epsilon0 - 1)."""
    return (2 * epsilon0).exp() * epsilon0.expm1()


def _erlingsson(profile: LocalProfile, num_users: int, epsilon: arb) -> arb:
    epsilon0 = arb(profile.epsilon0)
    _require(num_users > 1, "num_users > 1")
    step = 2 * _growth(epsilon0) / num_users
    spread = (epsilon - num_users * step * step.expm1()) / step
    return (-spread * spread / (2 * num_users)).exp() if spread > 0 else ONE


def _erlingsson_moderate(profile: LocalProfile, num_users: int, epsilon: arb) -> arb:
    epsilon0 = arb(profile.epsilon0)
    _require(4 * (3 * epsilon0).exp() <= num_users, "epsilon0 <= ln(num_users / 4) / 3")
    growth = _growth(epsilon0)
    spread = (epsilon - 6 * growth * growth / num_users) / growth
    return (-spread * spread * num_users / 8).exp() if spread > 0 else ONE


def _erlingsson_small(profile: LocalProfile, num_users: int, epsilon: arb) -> arb:
    epsilon0 = arb(profile.epsilon0)
    _require(num_users >= 1000 and epsilon0 < arb(0.5), "num_users >= 1000 and epsilon0 < 1/2")
    delta = (-((epsilon / (12 * epsilon0)) ** 2) * num_users).exp()
    return delta if 100 * delta < 1 else ONE


def _require(holds: bool, hypothesis: str) -> None:
    if not holds:
        raise OutOfRegimeError(
            f"the theorem needs {hypothesis}, which does not hold in ball arithmetic; "
            "use method='best'"
        )


# Profile, num_users and epsilon to delta.
CLOSED_FORMS: Mapping[str, Callable[[LocalProfile, int, arb], arb]] = MappingProxyType(
    {
        "local": _local,
        "erlingsson": _erlingsson,
        "erlingsson-moderate": _erlingsson_moderate,
        "erlingsson-small": _erlingsson_small,
    }
)
