"""Laws of hashed reports with any number of buckets and any threshold."""

from dataclasses import dataclass

from shuffledp.randomizers.local_hashing import HashedReports


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedLaw(HashedReports):
    """k categories, g buckets and T as they are given."""

    name = "given"

    domain_size: int
    num_buckets: int
    threshold: int
    epsilon0: float = 0.0
    fingerprint: str = "given"

    def __post_init__(self):
        pass
