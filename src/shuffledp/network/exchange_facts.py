"""What a report says about an exchange that took place, beyond what it says of a simulated one."""

from dataclasses import dataclass

from shuffledp.collection.results import NetworkFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeFacts(NetworkFacts):
    """Graph, walk and mixing of an exchange as it went; its users are those who registered.

    The curve of epsilon is that of the same exchange, ended earlier.

    Parameters
    ----------
    num_invited : int
        Users of the graph of the terms.
    num_handed_in : int
        Users who handed in.
    num_absences : int
        In how many rounds a registered user sent nothing, over all of them.
    is_traffic_even : bool
        Whether each neighbour was sent equally many envelopes, so that analyzer and relay together
        learn no more than the analyzer.
    overload : float
        At least the chance, taken off delta, that somebody ever held more reports than messages.
    """

    num_invited: int
    num_handed_in: int
    num_absences: int
    is_traffic_even: bool
    overload: float
