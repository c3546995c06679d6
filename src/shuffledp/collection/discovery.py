"""Finding unlisted texts round by round: the bins of a round depend on the rounds before.

Without dummies every user answers one round, drawn in secret; with a shuffler's dummies every
user answers all rounds. A prefix is kept if more reports support it than noise explains.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.liars import FALSE_TEXT, DishonestUsers
from shuffledp.collection.questions.prefixes import codes
from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.collection.questions.rounds import LEAST_USERS
from shuffledp.collection.source.columns import Column
from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.core.errors import DataError
from shuffledp.estimation.discovery import FoundTexts, left_by

# Number of users whose bins are looked up, and whose reports are drawn, together.
_BLOCK = 2**20


class Released(NamedTuple):
    """The numbers of reports and dummies of all rounds together, and of users in the last one."""

    num_reports: int
    num_dummies: int
    num_users: int


def discover(
    plan: Any,
    column: Column,
    entropy: Entropy,
    collect: Callable[..., Any],
    options: EstimateOptions,
    *,
    liars: DishonestUsers | None = None,
) -> tuple[Any, FoundTexts, Released]:
    """Return the plan with the texts that were found, their shares, and the numbers released.

    ``collect`` randomizes, shuffles and counts the values of some users, each once; simulated liars
    among them choose their round.
    """
    asked, randomizer, dummies = plan.question, plan.randomizer, plan.dummies
    texts: NDArray[np.bytes_] = np.concatenate(list(column.blocks()))
    num_users, last = len(texts), asked.num_rounds - 1
    turns = None if dummies else _turns(num_users, asked.num_rounds, entropy)
    if liars is not None and turns is not None:
        turns[liars.users] = liars.turns(asked.forcing(randomizer, num_users, dummies))
    left, depth, rounds, released = [b""], 0, [], Released(0, 0, 0)
    for number, step in enumerate(asked.steps):
        bins = asked.bins_of(left, number)
        depth += step
        own = texts if turns is None else texts[turns == number]
        if liars is not None:
            members = np.arange(num_users) if turns is None else np.flatnonzero(turns == number)
            false = codes(np.array([FALSE_TEXT.encode()]), bins, depth, asked.num_bins)
            liars.aim(int(false[0]), members)
        blocks = (
            codes(own[start : start + _BLOCK], bins, depth, asked.num_bins)
            for start in range(0, len(own), _BLOCK)
        )
        # Block i of a stream has the same random words each time: each round has its own stream.
        counts = collect(blocks, num_users=len(own), entropy=entropy.spawn())
        more = getattr(counts, "num_dummies", 0)
        before, dummies_before, _ = released
        released = Released(before + len(own), dummies_before + more, len(own))
        law = asked.bin_law(randomizer, len(own), dummies)
        support = counts.support[: len(bins)]
        kept, facts = left_by(support, law, asked.most, is_last=number == last)
        rounds.append((law, facts))
        left = bins[kept].tolist()
        if not left:
            break
    shares = asked.found_in(
        randomizer, counts, bins, kept, rounds, num_users=num_users, options=options
    )
    return replace(plan, question=replace(asked, found=shares.texts)), shares, released


def _turns(num_users: int, num_rounds: int, entropy: Entropy) -> NDArray[np.uint64]:
    """Return the secret random round of each user."""
    if num_users < LEAST_USERS * num_rounds:
        raise DataError(
            f"{num_users:,} users are too few for {num_rounds} rounds of {LEAST_USERS}: ask more "
            "people, or for shorter texts with max_bytes=..."
        )
    return draw_below(entropy.spawn(), num_users, num_rounds)
