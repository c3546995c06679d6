"""``ClientFleet``: what clients remember and draw, as arrays; a `MonitorClient` is a fleet of one.

A report is a sign about an increment of the value that is followed. Algorithm 1 of Erlingsson et
al., arXiv:1811.12469v2, for the sampled change, with the probability of keeping a sign accounted
exactly; pre-drawn signs are ours.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.entropy import Entropy, derived_key, draw_below
from shuffledp.monitoring.design import NOTHING, MonitorDesign
from shuffledp.monitoring.signs import SampledChange

_WORD_BITS = 64


@dataclass(slots=True, kw_only=True, eq=False)
class ClientFleet:
    """Clients of one design; a slot is a client's place, and the slots of a level are neighbours.

    What is drawn in a period depends on the key and the period only, so that clients who are told
    the same again repeat their reports, bit for bit. Nearly every report is a coin, drawn 64 at a
    time; only clients whose node holds a change are looked at. 27 bytes a user for booleans.
    """

    design: MonitorDesign
    key: bytes  # 32 bytes: whoever has it can undo what hides the reports
    slots: NDArray[np.int32]  # shape (n,): the slot of each user; all that follow are by slot
    ends: list[int]  # for each level: the slot after its last
    # Sampled change: kappa*, the number of the change that counts. Pre-drawn signs: bit j - 1 is
    # set if the j-th increment that is not 0 is reported with the opposite sign.
    keys: NDArray[np.uint64]
    num_changes: NDArray[np.int32]  # kappa, the changes followed so far, at most ``max_changes``
    num_increments: NDArray[np.int32]  # how many increments that are not 0 have been reported
    num_ignored: NDArray[np.int32]  # changes told beyond ``max_changes``, which were not followed
    told: NDArray[Any]  # codes told last
    value: NDArray[Any]  # codes followed: ``told`` unless changes have been ignored
    # What the node in progress is about: its report is on B(column, after) - B(column, before).
    # Pre-drawn signs: the values before the node's start and now, the same array as ``value``.
    # Sampled change: those before and after change number kappa* if it happened in this node, else
    # two equal ones (c = 0).
    before: NDArray[Any]
    after: NDArray[Any]

    @classmethod
    def made(
        cls, design: MonitorDesign, key: bytes, levels: NDArray[Any], keys: NDArray[np.uint64], *,
        counters: NDArray[np.int32], codes: NDArray[Any],
    ) -> Self:  # fmt: skip
        """Return clients who report at these levels; rows of counters and codes in their order."""
        order = np.argsort(levels, kind="stable")
        slots = np.empty(order.size, dtype=np.int32)
        slots[order] = np.arange(order.size, dtype=np.int32)
        sizes = np.bincount(levels.astype(np.int64), minlength=design.num_levels + 1)[1:]
        return cls(
            design=design, key=key, slots=slots, ends=np.cumsum(sizes).tolist(), keys=keys[order],
            num_changes=counters[0], num_increments=counters[1], num_ignored=counters[2],
            told=codes[0], value=codes[1], before=codes[2],
            after=codes[3] if isinstance(design.law, SampledChange) else codes[1],
        )  # fmt: skip

    @classmethod
    def drawn(cls, design: MonitorDesign, num_users: int, key: bytes) -> Self:
        """Return new clients, who have been told nothing: h* and keys are drawn once each."""
        stream = Entropy.from_key(derived_key(key, b"group", 0))
        levels = draw_below(stream, num_users, design.num_levels) + np.uint64(1)
        keys = design.law.draw_keys(stream, num_users)
        counters = np.zeros((3, num_users), dtype=np.int32)
        codes = np.full((4, num_users), NOTHING, dtype=code_type(design))
        return cls.made(design, key, levels, keys, counters=counters, codes=codes)

    @property
    def ignored_changes(self) -> NDArray[np.int32]:
        """For each user, how many changes were told that were not followed."""
        ignored: NDArray[np.int32] = self.num_ignored[self.slots]
        return ignored

    def follow(self, users: NDArray[np.integer[Any]], codes: NDArray[np.integer[Any]]) -> None:
        """Tell different users their new values, before `draw_level` of that period."""
        slots = self.slots[users]
        is_new = codes != self.told[slots]
        slots, codes = slots[is_new], codes[is_new]
        self.told[slots] = codes
        is_back = codes == self.value[slots]  # to the value that is followed still
        slots, codes = slots[~is_back], codes[~is_back]
        is_followed = self.num_changes[slots] < self.design.max_changes
        self.num_ignored[slots[~is_followed]] += 1
        slots, codes = slots[is_followed], codes[is_followed]
        self.num_changes[slots] += 1  # kappa
        if isinstance(self.design.law, SampledChange):
            is_sampled = self.num_changes[slots] == self.keys[slots]  # kappa = kappa*
            sampled = slots[is_sampled]
            self.before[sampled] = self.value[sampled]
            self.after[sampled] = codes[is_sampled]
        self.value[slots] = codes

    def period_sums(self, period: int) -> NDArray[np.int64]:
        """Return sums of the signs reported in a period, for each level that ends, and column."""
        stream, sums = self.stream(period), list[Any]()
        for level in self.design.tree.levels_ending_at(period):
            signs, columns = self.draw_level(level, stream)
            if columns is None:
                sums.append([signs.sum(dtype=np.int64)])
            else:
                size = 2 * self.design.encoding.num_columns
                cells = np.bincount(2 * columns + (signs > 0), minlength=size)
                sums.append(cells[1::2] - cells[::2])
        return np.array(sums, dtype=np.int64)

    def stream(self, period: int) -> Entropy:
        """Return the coins of a period."""
        return Entropy.from_key(derived_key(self.key, b"period", period))

    def draw_level(
        self, level: int, stream: Entropy
    ) -> tuple[NDArray[np.int8], NDArray[np.int64] | None]:
        """Return signs and columns (None: one) of the reports at a level's nodes that end now."""
        here = slice(self.ends[level - 2] if level > 1 else 0, self.ends[level - 1])
        encoding = self.design.encoding
        before, after = self.before[here], self.after[here]
        signs = coin_signs(stream, before.size)
        columns = None
        if encoding.num_columns > 1:
            columns = draw_below(stream, before.size, encoding.num_columns).view(np.int64)
        changed = np.flatnonzero(before != after)
        asked = np.zeros(1, dtype=np.int64) if columns is None else columns[changed]
        increments = encoding.bits(asked, after[changed]) - encoding.bits(asked, before[changed])
        told, increments = changed[increments != 0], increments[increments != 0]
        law = self.design.law
        if isinstance(law, SampledChange):
            is_opposite = stream.words(told.size) < np.uint64(law.flip_threshold)
        else:
            used = self.num_increments[here][told].astype(np.uint64)
            is_opposite = (self.keys[here][told] >> used & np.uint64(1)) == 1
        signs[told] = np.where(is_opposite, -increments, increments)
        self.num_increments[here][told] += 1
        self.before[here] = self.after[here] = self.value[here]  # c <- 0
        return signs, columns


def code_type(design: MonitorDesign) -> np.dtype[Any]:
    """Return the narrowest signed type that holds -1 and all codes."""
    return np.min_scalar_type(-design.encoding.domain_size)


def coin_signs(stream: Entropy, size: int) -> NDArray[np.int8]:
    """Return independent uniform signs: bit i mod 64 of word i div 64, 1 for +1."""
    words = stream.words(-(-size // _WORD_BITS)).astype("<u8", copy=False)
    bits = np.unpackbits(words.view(np.uint8), count=size, bitorder="little")
    signs = bits.view(np.int8)
    signs *= 2
    signs -= 1
    return signs
