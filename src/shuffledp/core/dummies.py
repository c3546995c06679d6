"""``DummyLaw``: probability law of the number of dummy reports in each bin.

The law that is drawn is exactly the law that is accounted: a table of integer multiples of 2^-64,
computed from three numbers in decimal arithmetic, so that all machines agree; or a Poisson law,
drawn exactly.
"""

import math
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, repeat
from operator import mul
from typing import Any

import numpy as np

from shuffledp.core.arrays import Integers
from shuffledp.core.checks import require_at_least, require_positive, set_fields
from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.core.errors import ParameterError

_WORD_VALUES = 2**64
_DECIMAL = Context(prec=80, Emin=-999_999, Emax=999_999)

#: Shapes of the tables that a shuffler draws from; users draw from Poisson laws.
TABLES = ("laplace", "gaussian")
POISSON = "poisson"

# Largest half width of a table: its row of integers still fits into a task.
LARGEST_HALF_WIDTH = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DummyLaw:
    """Probability law of the number of dummies in each bin of a public domain, independent by bin.

    Parameters
    ----------
    shape : {"laplace", "gaussian", "poisson"}
        The first two are tables on 0, 1, ..., 2 ``half_width`` that the shuffler draws from, with
        weights exp(-abs(i - t) / s) or exp(-(i - t)^2 / (2 s^2)) for t = ``half_width`` and
        s = ``scale``. With "poisson" each user sends a share of the dummies.
    scale : float
        s in dummies; with "poisson" the mean number of dummies per bin that *one user* sends.
    half_width : int
        t, 1 to 20,000; 0 with "poisson".

    Raises
    ------
    ParameterError
        If a number is out of range, or a shape unknown.

    Notes
    -----
    Probabilities of tables are multiples of 2^-64, rounded down, with the rest at t; outcomes of
    probability below 2^-64 never happen, which the accountant sees.

    Examples
    --------
    >>> law = DummyLaw.from_text("laplace:2.025:27")
    >>> law.mean, round(law.variance, 4), str(law)
    (27.0, 8.0355, 'laplace:2.025:27')
    """

    shape: str
    scale: float
    half_width: int = 0
    #: Numerators of the probabilities of 0, 1, ..., 2t, over 2^64; empty with "poisson".
    table: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.shape not in (*TABLES, POISSON):
            raise ParameterError(
                f"shape = {self.shape!r} is not one of {', '.join((*TABLES, POISSON))}"
            )
        least, most = (0, 0) if self.shape == POISSON else (1, LARGEST_HALF_WIDTH)
        width = require_at_least("half_width", self.half_width, least, most)
        set_fields(self, scale=require_positive("scale", self.scale), half_width=width)
        set_fields(self, table=_table(self.shape, self.scale, width))

    @classmethod
    def from_text(cls, text: str) -> "DummyLaw":
        """Return the law that a text names, such as ``laplace:2.025:27``; the inverse of ``str``.

        Raises
        ------
        ParameterError
            If the text names no law.
        """
        shape, *numbers = str(text).split(":")
        try:
            if len(numbers) != (1 if shape == POISSON else 2):
                raise ValueError  # noqa: TRY301  # reported below, with the others
            scale, width = float(numbers[0]), int((*numbers, "0")[1])
        except ValueError:
            raise ParameterError(
                f"dummies = {text!r} is no law: write laplace:SCALE:HALF_WIDTH or "
                "gaussian:SCALE:HALF_WIDTH for a shuffler's, poisson:MEAN for users'"
            ) from None
        return cls(shape=shape, scale=scale, half_width=width)

    def __str__(self) -> str:
        width = "" if self.shape == POISSON else f":{self.half_width}"
        return f"{self.shape}:{self.scale!r}{width}"

    @property
    def sender(self) -> str:
        """Party that adds the dummies: "shuffler" or "users"."""
        return "users" if self.shape == POISSON else "shuffler"

    @property
    def mean(self) -> float:
        """Mean number of dummies per bin; of one user's dummies with "poisson"."""
        return self.scale if self.shape == POISSON else float(self.half_width)

    @property
    def variance(self) -> float:
        """Variance of the number of dummies per bin; of one user's dummies with "poisson"."""
        if self.shape == POISSON:
            return self.scale
        squares = ((i - self.half_width) ** 2 * mass for i, mass in enumerate(self.table))
        return float(Fraction(sum(squares), _WORD_VALUES))

    def error_variance(self, num_bins: int, *, num_senders: int = 1) -> float:
        """Variance of the dummies of one of k bins about their known mean, M / k: v (1 - 1 / k).

        M is the number of dummies in all bins; with "poisson" of ``num_senders`` users.
        """
        senders = num_senders if self.sender == "users" else 1
        return senders * self.variance * (1.0 - 1.0 / num_bins)

    def rare_number(self, num_bins: int) -> int:
        """Return a number that the "poisson" dummies of one user hardly ever reach, in all bins.

        The probability is below 2^-128: at m >= 2 mu the tail is below 2 mu^m / m!.
        """
        mean, number = Fraction(repr(self.scale)) * num_bins, 1
        tail, limit = 2 * _WORD_VALUES**2 * mean.numerator, mean.denominator
        while number < 2 * mean or tail > limit:
            number += 1
            tail, limit = tail * mean.numerator, limit * mean.denominator * number
        return number

    def to_json_dict(self) -> dict[str, Any]:
        """Return shape, scale and half width."""
        return {"shape": self.shape, "scale": self.scale, "half_width": self.half_width}

    def draw(self, num_bins: int, entropy: Entropy, *, num_senders: int = 1) -> Integers:
        """Return the number of dummies of each bin, shape (num_bins,), int64.

        With "poisson", the dummies of ``num_senders`` users in total. Costs 8 random bytes per bin;
        with "poisson" about 45 per dummy.
        """
        if self.shape != POISSON:
            # Outcomes of mass 0 are left out: the others' ends rise, and only the last is 2^64.
            possible = np.flatnonzero(self.table).astype(np.int64)
            ends = np.array(list(accumulate(self.table[i] for i in possible[:-1])), dtype=np.uint64)
            return possible[np.searchsorted(ends, entropy.words(num_bins), side="right")]
        total = _poisson(Fraction(repr(self.scale)) * num_bins * num_senders, entropy)
        bins = draw_below(entropy, total, num_bins).astype(np.int64)
        return np.bincount(bins, minlength=num_bins).astype(np.int64)


@lru_cache(maxsize=64)
def _table(shape: str, scale: float, half_width: int) -> tuple[int, ...]:
    """Return the numerators of the probabilities over 2^64, the same on every machine."""
    if shape == POISSON:
        return ()
    power = 1 if shape == "laplace" else 2
    with localcontext(_DECIMAL):  # whatever the program has set
        step = (-1 / (power * Decimal(repr(scale)) ** power)).exp()
        # From one weight to the next: step, or step^(2 d + 1) from d to d + 1.
        growth = step * step if shape == "gaussian" else Decimal(1)
        factors = accumulate(repeat(growth, half_width - 1), mul, initial=step)
        weights = [Decimal(1), *accumulate(factors, mul)]
        total = weights[0] + 2 * sum(weights[1:], Decimal(0))
        outer = [int(each * _WORD_VALUES / total) for each in weights[1:]]
    centre = _WORD_VALUES - 2 * sum(outer)
    return (*reversed(outer), centre, *outer)


def _poisson(mean: Fraction, entropy: Entropy) -> int:
    """Return an exact Poisson draw: a sum of draws of mean 1, the last one thinned."""
    whole = math.floor(mean)
    draws = _poisson_of_one(whole + 1, entropy)
    kept = sum(_coin(mean - whole, entropy) for _ in range(int(draws[-1])))
    return int(draws[:-1].sum()) + kept


def _coin(chance: Fraction, entropy: Entropy) -> bool:
    """Return True with exactly this probability: its binary digits are compared with fair ones."""
    while True:
        digits, chance = divmod(chance * _WORD_VALUES, 1)
        drawn = int(entropy.words(1)[0])
        if drawn != digits:
            return drawn < digits


def _poisson_of_one(size: int, entropy: Entropy) -> Integers:
    """Return independent exact Poisson draws of mean 1.

    Source: Duchon and Duvignau, "Preserving the number of cycles of length k in a growing uniform
    permutation", Electronic Journal of Combinatorics 23(4), 2016: the number of fixed points of a
    growing uniform permutation, which is stopped where it no longer changes.
    """
    found = np.ones(size, dtype=np.int64)
    last = np.zeros(size, dtype=np.int64)
    active = np.arange(size)
    step = 1
    while active.size:
        place = draw_below(entropy, active.size, step + 1).astype(np.int64) + 1
        grows = place == step + 1
        shrinks = ~grows & (place > last[active])
        found[active[grows]] += 1
        found[active[shrinks]] -= 1
        last[active[shrinks]] = step + 1
        active = active[grows | shrinks]
        step += 1
    return found
