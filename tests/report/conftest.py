"""Results of every shape, without running a collection."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from shuffledp import Categories
from shuffledp.collection.result import Result
from shuffledp.collection.shuffling import FinishedShuffling
from shuffledp.core.bound import Bound, Guarantee
from shuffledp.core.reports import Counts
from shuffledp.estimation.frequencies import estimate_frequencies
from shuffledp.randomizers.registry import make_randomizer

ASSUMPTIONS = (
    "Neighbouring datasets replace the answer of one user.",
    "Every user randomizes once, with epsilon0 = 2.5 and fresh cryptographic randomness.",
    "The shuffler applies a uniformly random permutation and leaks nothing else.",
    "All 6366 users counted are honest: their reports are in the batch and stay secret.",
)
FAIR = {"never": 4313, "once or twice": 1160, "a few times": 640, "often": 217, "very often": 36}


def expected_counts(shares: Sequence[float], *, randomizer: Any, num_users: int) -> Counts:
    """Return the support that users of these shares produce on average."""
    p, q = randomizer.support_probabilities
    support = [round(num_users * (q + (p - q) * share)) for share in shares]
    return Counts(
        support=np.array(support), num_reports=num_users, fingerprint=randomizer.fingerprint
    )


def build_result(
    domain: Sequence[str] = tuple(FAIR),
    *,
    shares: Sequence[float] | None = None,
    num_users: int = 6366,
    randomizer: str = "k-rr",
    epsilon0: float = 2.5,
    lower: float | None = 0.49931,
    upper: float = 0.499967,
    randomizer_object: Any = None,
    shuffler: str | None = None,
    **changes: Any,
) -> Result:
    """Return a result whose numbers look like a real survey's; ``changes`` replace its fields."""
    k = len(domain)
    if shares is None:
        counts = list(FAIR.values()) if k == len(FAIR) else [1.0 / (i + 1) for i in range(k)]
        shares = [count / sum(counts) for count in counts]
    law = make_randomizer(randomizer, domain_size=k, epsilon0=epsilon0)
    counts = expected_counts(shares, randomizer=law, num_users=num_users)
    bound = Bound(
        lower=lower,
        upper=upper,
        method="k-rr blanket",
        source="Balle, Bell, Gascon, Nissim 2019, arXiv:1903.02837v2, Lemma 5.3",
        assumptions=ASSUMPTIONS,
    )
    fields: dict[str, Any] = {
        "num_users": num_users,
        "question": Categories(domain=tuple(domain)),
        "randomizer": randomizer_object or law,
        "guarantee": Guarantee(epsilon=bound, delta=1e-8, num_users=num_users),
        "estimates": estimate_frequencies(counts, support_probabilities=law.support_probabilities),
        "collected_by": "devices",
        "target_epsilon": 0.5,
        "target_delta": 1e-8,
    }
    if shuffler is not None:
        fields["shuffling"] = FinishedShuffling(
            name=shuffler, account=lambda *_: fields["guarantee"]
        )
    return Result(**{**fields, **changes})


@pytest.fixture
def make_result() -> Callable[..., Result]:
    """Build a result; see `build_result`."""
    return build_result
