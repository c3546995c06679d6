"""Facts about an exchange that took place, for its report."""

from shuffledp.collection.account import guarantee_for
from shuffledp.collection.results import Guarantee
from shuffledp.core.profile import LocalProfile
from shuffledp.deploy.peers.protocol.analyzer import Collected
from shuffledp.deploy.peers.service.exchange_account import Exchange
from shuffledp.network.account import published_epsilon
from shuffledp.network.exchange_facts import ExchangeFacts
from shuffledp.network.hiding import Hiding
from shuffledp.network.run import user_name

# The curve of the report, as shares of the rounds.
_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def curve_rounds(rounds: int) -> list[int]:
    """Return the numbers of rounds at which a report shows epsilon: some, and the last.

    Examples
    --------
    >>> curve_rounds(20), curve_rounds(1)
    ([2, 4, 6, 8, 10, 12, 14, 16, 18, 20], [1])
    """
    return sorted({max(1, round(share * rounds)) for share in _SHARES} | {rounds})


def exchange_facts(
    exchange: Exchange,
    profile: LocalProfile,
    guarantee: Guarantee,
    *,
    graph_name: str,
    collected: Collected,
) -> ExchangeFacts | None:
    """Return what a report says about an exchange.

    Parameters
    ----------
    exchange : Exchange
        As it went.
    profile : LocalProfile
        The randomizer's law.
    guarantee : Guarantee
        Its guarantee.
    graph_name : str
        What to call its graph.
    collected : Collected
        What was handed in.

    Returns
    -------
    ExchangeFacts or None
        None where fewer than two users registered, so that nothing was exchanged. Epsilons are
        safe to publish, the gap is rounded down (0 where reports never mix) and the separation up.

    Notes
    -----
    Cost: up to ten bounds of epsilon for other numbers of rounds.
    """
    if not exchange.can_hide:
        return None
    terms, graph, users = exchange.terms, exchange.graph, exchange.users
    delta = guarantee.delta_upper
    numbers = curve_rounds(terms.rounds)
    bounds = exchange.position_bounds(numbers)[-1]
    hiding = Hiding.of(bounds)
    published, _ = published_epsilon(
        profile, hiding, max(exchange.delta_left(delta), 0.0), terms.protocol
    )
    uniform = guarantee_for(profile, users.num_users, delta=delta, with_lower=False)
    earlier = (
        (number, exchange.epsilon(profile, delta=delta, rounds=number).upper)
        for number in numbers[:-1]
    )
    load = users.num_users * users.stationary_law() if bounds.load is None else bounds.load
    return ExchangeFacts(
        graph=graph_name,
        num_users=users.num_users,
        num_edges=users.num_edges,
        fewest_neighbours=int(users.degrees.min()),
        most_neighbours=int(users.degrees.max()),
        num_self_loops=graph.num_self_loops,
        num_duplicates=graph.num_duplicates,
        irregularity=users.irregularity,
        rounds=terms.rounds,
        are_rounds_chosen=False,
        protocol=terms.protocol,
        laziness=terms.laziness,
        spectral_gap=0.0 if exchange.mixing is None else exchange.mixing.spectrum.spectral_gap,
        separation=hiding.separation,
        worst_user=user_name(graph, int(exchange.record.nodes[hiding.worst_user])),
        method=bounds.method,
        uniform_epsilon=uniform.epsilon_upper,
        published_epsilon=(
            published if published is not None and published < profile.epsilon0 else None
        ),
        epsilon_by_rounds=(*earlier, (terms.rounds, guarantee.epsilon_upper)),
        most_held=float(load.max()),
        num_released=len(collected.reports),
        num_dummies=(
            max(collected.num_hand_ins - len(collected.reports), 0)
            if terms.protocol == "single"
            else 0
        ),
        num_invited=terms.num_users,
        num_handed_in=collected.num_hand_ins,
        num_absences=exchange.record.num_absences,
        is_traffic_even=terms.per_neighbour > 0,
        overload=exchange.overload,
    )
