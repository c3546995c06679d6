"""Small exact draws: whole numbers below a bound, coins, and orders."""

from collections.abc import Sequence
from typing import TypeVar

from shuffledp.core.entropy import Entropy

_Item = TypeVar("_Item")

_WORD_END = 1 << 64

#: Coins fall with a probability that is a multiple of one over this.
COIN_SIDES = 1 << 16


class Draws:
    """Exact draws from a stream of words.

    Parameters
    ----------
    entropy : Entropy
        Where the words come from; it may be shared.

    Examples
    --------
    >>> draws = Draws(Entropy.from_seed(1))
    >>> draws.below(1), sorted(draws.permuted("abc")), draws.coin(0)
    (0, ['a', 'b', 'c'], False)
    """

    __slots__ = ("_entropy",)

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def _word(self) -> int:
        """Return the next word; none is kept here, where a fork would not be noticed."""
        return int(self._entropy.words(1)[0])

    def below(self, bound: int) -> int:
        """Return a whole number, exactly uniform in [0, bound), for 1 <= bound <= 2^64.

        The words above the largest multiple of ``bound`` are thrown away.
        """
        limit = _WORD_END - _WORD_END % bound
        word = self._word()
        while word >= limit:
            word = self._word()
        return word % bound

    def coin(self, sides_of_heads: int) -> bool:
        """Return whether a coin shows heads: probability ``sides_of_heads`` / 65536."""
        return self.below(COIN_SIDES) < sides_of_heads

    def choice(self, items: Sequence[_Item]) -> _Item:
        """Return one of the items, of which there is at least one; each is as likely."""
        return items[self.below(len(items))]

    def permuted(self, items: Sequence[_Item]) -> list[_Item]:
        """Return the items in an order drawn uniformly from all (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order
