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
    sensitivity : float
        Sensitivity of the same order or places to these groups; see `GroupFacts`.
    alpha : float
        Rounded up.
    """

    description: str
    largest_group: int
    sensitivity: float
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
    largest_width : int or None
        Places between the first and the last member of a group in the reference order, at most;
        for a Mallows model.
    rank_distance : str or None
        Distance of the Mallows model; None for a displacement.
    reference_order : str
        How the reference order, or the public places, were found.
    sensitivity : float
        Exact, of that order to these groups; for a displacement how far the members of a group can
        move in all, in ``unit``, rounded up.
    published_sensitivity : int or None
        By the formula of Meehan et al. for the same order, for Kendall's distance.
    orders_tried : tuple of (str, int)
        Other reference orders and their exact sensitivities.
    alpha : float
        Ordinal privacy loss within groups, in nats.
    theta : float
        Of the Mallows model; 1/b for noise of the scale b, in ``unit``.
    mean_displacement : float
        By how much a report moves on average, in ``unit``.
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
    shuffler : {"mallows", "displacement"}
        What moved the reports.
    unit : str
        Of displacements: ``"places"`` of an order, ``"m"``, or ``"units"`` of the columns.
    expected_crowd : tuple of float
        For a displacement: the expected number of others who hide a report, for the person whom
        the fewest hide, for all but 1 % and for half of the people; rounded down.
    """

    description: str
    num_groups: int
    smallest_group: int
    median_group: int
    largest_group: int
    largest_width: int | None
    rank_distance: str | None
    reference_order: str
    sensitivity: float
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
    shuffler: str = "mallows"
    unit: str = "places"
    expected_crowd: tuple[float, ...] = ()

    def to_json_dict(self) -> dict[str, object]:
        """Return the fields by name."""
        return asdict(self)
