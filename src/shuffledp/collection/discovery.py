"""Finding texts that nobody listed, round by round: each round's bins follow from those before.

Without dummies every user answers one round, drawn in secret; with a shuffler's everybody answers
all of them. A prefix is left if more reports support it than noise explains.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shuffledp.collection.questions.heavy_hitters import codes, extensions, whole_text
from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.collection.source.columns import Column
from shuffledp.core.entropy import Entropy, draw_below
from shuffledp.core.errors import DataError
from shuffledp.estimation.discovery import Discovery, FoundTexts, left_by
from shuffledp.estimation.intervals import simultaneous_confidence
from shuffledp.estimation.sampling import for_all_users

# Users a round, in the mean: then no round is left without any.
_LEAST_USERS = 100

# Users whose bins are looked up, and reports drawn, together.
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
) -> tuple[Any, FoundTexts, Released]:
    """Return the plan with the texts that were found, their shares, and what was released.

    ``collect`` randomizes, shuffles and counts the values of some users, each once.
    """
    asked, randomizer, dummies = plan.question, plan.randomizer, plan.dummies
    texts: NDArray[np.bytes_] = np.concatenate(list(column.blocks()))
    num_users, last = len(texts), asked.num_rounds - 1
    turns = None if dummies else _turns(num_users, asked.num_rounds, entropy)
    left, depth, rounds, released = [b""], 0, [], Released(0, 0, 0)
    for number, step in enumerate(asked.steps):
        bins = extensions(left, depth, step)
        depth += step
        if is_last := number == last:  # without characters that would need more bytes
            bins = bins[[whole_text(each) is not None for each in bins.tolist()]]
        own = texts if turns is None else texts[turns == number]
        blocks = (
            codes(own[start : start + _BLOCK], bins, depth, asked.num_bins)
            for start in range(0, len(own), _BLOCK)
        )
        # Blocks of a stream have the same words each time: a round has a stream of its own.
        counts = collect(blocks, num_users=len(own), entropy=entropy.spawn())
        more = getattr(counts, "num_dummies", 0)
        before, dummies_before, _ = released
        released = Released(before + len(own), dummies_before + more, len(own))
        law = asked.bin_law(randomizer, len(own), dummies)
        kept, facts = left_by(counts.support[: len(bins)], law, asked.most, is_last=is_last)
        rounds.append((law, facts))
        left = bins[kept].tolist()
        if not left:
            break
    found = tuple(map(whole_text, left))
    each = simultaneous_confidence(options.confidence, len(bins))
    estimates = randomizer.estimate(counts, confidence=each, interval=options.interval)
    estimates = for_all_users(estimates, num_users)
    arrays: Any = {name: each[kept] for name, each in estimates.given().items()}
    shares = FoundTexts(
        **arrays,
        num_users=num_users,
        confidence=options.confidence,
        interval=options.interval,
        is_simultaneous=True,
        num_compared=len(bins),
        discovery=Discovery.of(rounds),
    )
    return replace(plan, question=replace(asked, found=found)), shares, released


def _turns(num_users: int, num_rounds: int, entropy: Entropy) -> NDArray[np.uint64]:
    """Return the round of each user, whose own secret it is."""
    if num_users < _LEAST_USERS * num_rounds:
        raise DataError(
            f"{num_users:,} users are too few for {num_rounds} rounds of {_LEAST_USERS}: ask more "
            "people, or for shorter texts with max_bytes=..."
        )
    return draw_below(entropy.spawn(), num_users, num_rounds)
