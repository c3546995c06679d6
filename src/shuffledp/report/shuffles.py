"""What is said of a shuffle within groups or through a network: statements, names and values.

What is said of groups are theorems of Meehan, Roy Chowdhury, Chaudhuri and Jha (arXiv:2106.06603),
in the corrected form, without their symbols. They follow from alpha alone, so they hold for noise
on places.
"""

import math

from shuffledp.collection.results import GroupFacts, NetworkFacts
from shuffledp.network.run import ExchangeFacts
from shuffledp.report.formatting import counted, fixed, percent, rounded, shorten

_KINDS = {"kendall": "Kendall's", "hamming": "Hamming", "cayley": "Cayley"}


def group_paragraphs(facts: GroupFacts) -> tuple[tuple[str, str], ...]:
    """Return the ordinal guarantee in plain words, as title and text."""
    chances = "; ".join(
        f"{each.subset_size} {'person' if each.subset_size == 1 else 'people'} in a group of "
        f"{each.group_size:,}: {percent(each.most_probable, 1)}"
        for each in facts.reidentification
    )
    reidentified = (
        "An adversary names as many rows as there are people in a household, and wins if more than "
        f"half of these rows hold the household's reports. Its chance is at most: {chances}."
    )
    if not facts.reidentification:
        reidentified = (
            "The theorem on re-identification says nothing here: the smallest group is too small "
            "for it, which needs twice as many people as an adversary looks for, or the "
            "randomizer may exceed epsilon0 with a chance of delta0."
        )
    return (
        (  # Theorem 4.1
            "What the order reveals.",
            "Take an adversary who knows every report outside a person's group, and all reports "
            "inside it, but not whose is which. The released order changes its odds between any "
            "two answers of that person by a factor of at most "
            f"{rounded(facts.odds_factor, up=True)}, which is e^alpha for alpha = "
            f"{rounded(facts.alpha, up=True)}.",
        ),
        ("Whose answer is whose.", reidentified),  # Theorem 4.2
        (
            "What stays visible.",
            "Statistics of a whole group are meant to be learned, and so is anything about a "
            "person that follows from them. Hidden is which members of a group gave which of its "
            "answers.",
        ),
    )


def group_rows(facts: GroupFacts) -> list[tuple[str, str]]:
    """Return names and values that describe the groups."""
    sizes = f"{facts.smallest_group:,} to {facts.largest_group:,}, median {facts.median_group:,}"
    rows = [
        ("Who shares one", facts.description),
        ("Different groups", f"{facts.num_groups:,}"),
        ("Sizes", sizes),
    ]
    if facts.largest_width is not None:
        rows.append(("Widest", f"{facts.largest_width:,} places apart in the reference order"))
    return rows


def shuffle_rows(facts: GroupFacts) -> list[tuple[str, str]]:
    """Return names and values that describe the shuffle: a Mallows model, or noise on places."""
    loss = ("Ordinal loss", f"alpha = {rounded(facts.alpha, up=True)}")
    moved = f"{rounded(facts.mean_displacement, up=True)} {facts.unit} on average, by simulation"
    if facts.rank_distance is None:
        scale = "none" if math.isinf(facts.theta) else "without end: a uniform shuffle"
        if 0.0 < facts.theta < math.inf:
            scale = f"discrete Laplace, b = {rounded(1.0 / facts.theta, up=False)} {facts.unit}"
        least, most_people, half = (rounded(each, up=False) for each in facts.expected_crowd)
        hidden = (
            f"{least} for the person whom the fewest hide, {most_people} for all but 1%, {half} "
            "for half of the people"
        )
        return [
            loss,
            ("Noise on places", scale),
            ("Places", facts.reference_order),
            ("Sensitivity", f"{rounded(facts.sensitivity, up=True)} {facts.unit}"),
            ("A report moves", moved),
            ("Others who hide it", hidden),
        ]
    sensitivity, published = f"{facts.sensitivity:,}", facts.published_sensitivity
    if published is not None and facts.sensitivity:
        times = published / facts.sensitivity
        sensitivity += f" (the paper's formula: {published:,}, {times:.3g} times as much)"
    return [
        loss,
        ("Mallows model", f"{_KINDS[facts.rank_distance]} distance, theta = {facts.theta:.4g}"),
        ("Reference order", facts.reference_order),
        ("Sensitivity", sensitivity),
        ("A report moves", moved),
    ]


def order_rows(facts: GroupFacts) -> list[tuple[str, str]]:
    """Return the reference orders that were tried, each with its sensitivity."""
    return [(name, f"{number:,}") for name, number in facts.orders_tried]


def preservation_rows(facts: GroupFacts) -> list[tuple[str, ...]]:
    """Return rows of what stays within the largest group."""
    return [
        (
            each.name,
            f"{each.size:,}",
            f"at least {percent(each.eta, 1)}",
            f"{each.delta:.3g}",
            f"{percent(each.confidence, 0)} confidence",
        )
        for each in facts.preservation
    ]


def network_rows(facts: NetworkFacts) -> list[tuple[str, str]]:
    """Return names and values that describe the graph."""
    dropped = facts.num_self_loops + facts.num_duplicates
    left_out = f" ({dropped:,} rows left out: edges to oneself or given twice)" if dropped else ""
    return [
        ("Graph", shorten(facts.graph, 60)),
        ("Edges", f"{facts.num_edges:,}{left_out}"),
        ("Neighbours", f"{facts.fewest_neighbours:,} to {facts.most_neighbours:,}"),
        ("Irregularity", f"Gamma = {facts.irregularity:.4f} (1 where all have equally many)"),
    ]


def walk_rows(facts: NetworkFacts) -> list[tuple[str, str]]:
    """Return names and values that describe the exchange."""
    chosen = ", chosen to come close to endless rounds" if facts.are_rounds_chosen else ""
    lazy = f", resting with a chance of {percent(facts.laziness, 1)}" if facts.laziness else ""
    passed, gap = facts.rounds * (1.0 - facts.laziness), rounded(facts.spectral_gap, up=False)
    if isinstance(facts, ExchangeFacts) and facts.num_absences:
        passed *= 1.0 - facts.num_absences / (facts.num_users * facts.rounds)
        gap += " if nobody is away"
    protocol = "all: everybody hands in all reports they hold"
    if facts.protocol != "all":
        protocol = (
            "single: everybody hands in one of the reports they hold; "
            f"{facts.num_released:,} reports, and {facts.num_dummies:,} empty answers of those who "
            "held none"
        )
    published = "says no more than epsilon0"
    if facts.published_epsilon is not None:
        epsilon = rounded(facts.published_epsilon, up=True)
        published = f"epsilon <= {epsilon} (Liew et al., corrected)"
    messages = (
        f"{fixed(passed, 0)} reports passed on by a user on average; at a time the best connected "
        f"holds about {fixed(facts.most_held, 1)}"
    )
    return [
        ("Rounds", f"{facts.rounds:,}{chosen}{lazy}"),
        *(_attendance_rows(facts) if isinstance(facts, ExchangeFacts) else []),
        ("Protocol", protocol),
        ("Spectral gap", gap),
        ("Separation left", rounded(facts.separation, up=True, digits=2)),
        ("Uniform shuffle", f"epsilon <= {rounded(facts.uniform_epsilon, up=True)}"),
        ("Published theorem", published),
        ("Hidden least", f"the report of user {shorten(facts.worst_user, 40)}"),
        ("Laws of holders", facts.method),
        ("Messages", messages),
    ]


def _attendance_rows(facts: ExchangeFacts) -> list[tuple[str, str]]:
    """Return names and values about those who took part, and what got lost."""
    came = f"{facts.num_users:,} of {facts.num_invited:,} users registered"
    handed_in = f"{came}, and {facts.num_handed_in:,} handed in"
    if facts.num_dishonest:
        handed_in += f"; dishonest, who hide nobody: {facts.num_dishonest:,}"
    away = "nobody, in any round"
    if facts.num_absences:
        away = (
            f"users sent nothing {facts.num_absences:,} times; the reports they held stayed, which "
            "the guarantee accounts for"
        )
    traffic = "every user sent the same number of envelopes in each round"
    if facts.is_traffic_even:
        traffic += ", as many to each neighbour"
    overload = f"a chance of at most {rounded(facts.overload, up=True, digits=2)}, taken off delta"
    return [
        ("Took part", handed_in),
        ("Away", away),
        ("Traffic", traffic),
        ("Overflow", f"{overload}, that somebody held more reports than envelopes"),
    ]


def network_paragraph(facts: NetworkFacts, *, collected_by: str) -> tuple[str, str]:
    """Return what nobody has to be trusted with, and with what they have, as title and text."""
    relay, trusted = "", "No shuffler."
    if collected_by != "devices":
        trusted = (
            "Whoever holds all true answers, and simulated this. Between devices: no shuffler."
        )
    if isinstance(facts, ExchangeFacts):
        relay = (
            "The relay may show the adversary all its records, since every user sent each "
            "neighbour equally many envelopes. "
            if facts.is_traffic_even
            else "The relay is trusted to keep from the adversary who sent envelopes to whom. "
        )
    return (
        "Who has to be trusted.",
        f"{trusted} Reports were passed from neighbour to neighbour for "
        f"{counted(facts.rounds, 'round')}; the adversary is counted on to see the graph, every "
        f"report and who handed it in, but not which way it went. {relay}A trusted shuffler would "
        f"give epsilon <= {rounded(facts.uniform_epsilon, up=True)}.",
    )
