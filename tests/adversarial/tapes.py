"""A source of randomness whose words are written down beforehand."""

import numpy as np

from shuffledp.core.entropy import Entropy

LARGEST = 2**64 - 1


class Tape:
    """Hands out the words that it was given, in order, and then those of a seeded stream.

    It stands in for `Entropy`. The stream behind the tape ends rejection loops that would otherwise
    go on for ever on a tape that is rejected throughout.
    """

    def __init__(self, words, seed=1):
        self._words = np.array(words, dtype=np.uint64).reshape(-1)
        self._rest = Entropy.from_seed(seed)
        self.used = 0

    def words(self, count):
        """Return the next words."""
        out = np.empty(count, dtype=np.uint64)
        self.fill(out)
        return out

    def fill(self, out):
        """Overwrite an array with the next words."""
        flat = out.reshape(-1)
        held = self._words[self.used : self.used + flat.size]
        flat[: held.size] = held
        if held.size < flat.size:
            flat[held.size :] = self._rest.words(flat.size - held.size)
        self.used += flat.size

    def spawn(self):
        """Return a stream of its own."""
        return self._rest.spawn()

    @property
    def num_left(self):
        """Words of the tape that nobody asked for."""
        return max(self._words.size - self.used, 0)


def edges(*borders):
    """Return the words at, just below and just above each border, and both ends of all words."""
    near = {border + offset for border in borders for offset in (-1, 0, 1)}
    return sorted(word for word in near | {0, LARGEST} if 0 <= word <= LARGEST)
