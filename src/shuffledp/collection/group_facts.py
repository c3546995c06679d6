"""What a report says about a shuffle within groups; data only, computed by ``grouped_run``."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetPreservation:
    """How many of a subset's reports stay within it.

    Parameters
    ----------
    name : str
        Which people.
    size : int
        How many.
    eta : float
        At least this share of their reports stays among them, in [0, 1]; a lower end.
    delta : float
        Except with at most this probability.
    confidence : float or None
        Confidence in this statement, where it comes from simulated shuffles; None where exact.
    """

    name: str
    size: int
    eta: float
    delta: float
    confidence: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reidentification:
    """Theorem 4.2 for the smallest group that protects somebody.

    Parameters
    ----------
    subset_size : int
        Number k of people, such as a household, whose reports an adversary looks for.
    group_size : int
        Size r of the group that they hide in.
    most_probable : float
        Upper bound on the chance that more than half of the rows it names are theirs.
    """

    subset_size: int
    group_size: int
    most_probable: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherGrouping:
    """Theorem 4.4: the same release, looked at through other groups.

    Parameters
    ----------
    description : str
        Who shares a group.
    largest_group : int
        Size of the largest.
    sensitivity : int
        Exact sensitivity of the reference order to these groups.
    alpha : float
        Rounded up.
    """

    description: str
    largest_group: int
    sensitivity: int
    alpha: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """Groups, reference order and guarantees of one shuffle within groups.

    Parameters
    ----------
    description : str
        Who shares a group.
    num_groups, smallest_group, median_group, largest_group : int
        Number of different groups, and their sizes.
    largest_width : int
        Places between the first and the last member of a group in the reference order, at most.
    rank_distance, reference_order : str
        Distance of the Mallows model, and how the reference order was found.
    sensitivity : int
        Exact, of that order to these groups.
    published_sensitivity : int or None
        By the formula of Meehan et al. for the same order, for Kendall's distance.
    orders_tried : tuple of (str, int)
        Other reference orders and their exact sensitivities.
    alpha : float
        Ordinal privacy loss within groups, in nats.
    theta : float
        Dispersion of the Mallows model.
    mean_displacement : float
        Places by which a report moves in the reference order, on average.
    is_displacement_exact : bool
        Whether that follows from a formula rather than from simulated shuffles.
    odds_factor : float
        e^alpha, rounded up (Theorem 4.1).
    reidentification : tuple of Reidentification
        Theorem 4.2, for several sizes of subsets.
    preservation : tuple of SubsetPreservation
        What stays learnable.
    other_groupings : tuple of OtherGrouping
        Theorem 4.4.
    """

    description: str
    num_groups: int
    smallest_group: int
    median_group: int
    largest_group: int
    largest_width: int
    rank_distance: str
    reference_order: str
    sensitivity: int
    published_sensitivity: int | None
    orders_tried: tuple[tuple[str, int], ...]
    alpha: float
    theta: float
    mean_displacement: float
    is_displacement_exact: bool
    odds_factor: float
    reidentification: tuple[Reidentification, ...]
    preservation: tuple[SubsetPreservation, ...]
    other_groupings: tuple[OtherGrouping, ...]

    def to_json_dict(self) -> dict[str, object]:
        """Return the fields by name."""
        return asdict(self)
