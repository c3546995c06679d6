"""Drawing each user's report once, and the same again where the same was asked before."""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence

from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import ParameterError
from shuffledp.deploy.peers.protocol.limits import DEFAULT_LIMITS, Limits
from shuffledp.deploy.peers.protocol.peer import Peer
from shuffledp.deploy.peers.protocol.terms import Terms
from shuffledp.deploy.peers.service.asked_terms import AskedTerms
from shuffledp.deploy.peers.service.node_values import NodeValues
from shuffledp.deploy.peers.service.peer_store import Answer, PeerStore
from shuffledp.network.graph import Graph


def draw_reports(  # one keyword an option
    store: PeerStore,
    terms: Terms,
    graph: Graph,
    asked: AskedTerms,
    *,
    nodes: Sequence[int],
    values: Callable[[], NodeValues],
    entropy: Entropy,
    limits: Limits = DEFAULT_LIMITS,
    users: Sequence[str] | None = None,
) -> None:
    """Randomize the values of those users who have no report of that law yet, and save them.

    Parameters
    ----------
    store : PeerStore
        Where peers are; who is there has his report already, whatever the table says now. Whose
        report of the same law on the same question is there, from another collection, sends it
        again: a second one, drawn anew, would tell more.
    terms : Terms
        Of the collection.
    graph : Graph
        Of the terms.
    asked : AskedTerms
        The randomizer, from the same terms.
    nodes : sequence of int
        Whom this process stands for.
    values : callable
        Returns their values; called only if a report is to be drawn.
    entropy : Entropy
        Source of randomness.
    limits : Limits, optional
        What each of them agrees to; its epsilon0 is for all reports on one question together.
    users : sequence of str, optional
        Names of the nodes' users, the same in all collections; by default the nodes' numbers.

    Raises
    ------
    ParameterError
        If the terms ask something else.
    ProtocolError
        If a user does not agree to the terms, or to what the report would cost.
    """
    described = json.dumps(asked.to_json_dict(), sort_keys=True, separators=(",", ":"))
    if described != terms.randomizer:
        raise ParameterError("asked is not what the terms ask: take both from the same terms")
    known = store.states()
    names = [str(node) for node in nodes] if users is None else users
    new = {node: name for node, name in zip(nodes, names, strict=True) if node not in known}
    if not new:
        return
    before: dict[str, list[Answer]] = defaultdict(list)
    for answer in store.answers(asked.question_digest):
        before[answer.user].append(answer)
    reports = {}
    for node, name in new.items():
        limits.require_terms(terms, graph, node)
        same = [answer.report for answer in before[name] if answer.law == asked.law]
        if same:
            reports[node] = same[0]
        else:
            spent = sum(answer.epsilon0 for answer in before[name])
            limits.require_epsilon0(asked.epsilon0, spent=spent)
    fresh = [node for node in new if node not in reports]
    if fresh:
        drawn = asked.randomizer.randomize(values().of(fresh), entropy)
        reports |= zip(fresh, asked.codec.encode(drawn), strict=True)
    peers = {
        node: Peer.create(terms, graph, node, reports[node], entropy, limits=limits) for node in new
    }
    store.save(
        [(node, peer.to_bytes()) for node, peer in peers.items()],
        question=asked.question_digest,
        answers=[
            Answer(user=new[node], law=asked.law, epsilon0=asked.epsilon0, report=reports[node])
            for node in fresh
        ],
    )


def spending_facts(store: PeerStore, asked: AskedTerms, user: str) -> list[tuple[str, str]]:
    """Return what a user has answered before by a file, and what answering now costs.

    Parameters
    ----------
    store : PeerStore
        The file.
    asked : AskedTerms
        What is asked now.
    user : str
        Who answers.
    """
    before = [each for each in store.answers(asked.question_digest) if each.user == user]
    spent = sum(each.epsilon0 for each in before)
    if any(each.law == asked.law for each in before):
        told = "this question was answered: the same report is sent again, and tells no more"
    elif before:
        told = (
            f"epsilon0 {spent:.6g} on this question: another report makes "
            f"{spent + asked.epsilon0:.6g}"
        )
    else:
        told = "nothing on this question"
    return [("spent before", f"{told}; {store.spent(user):.6g} on all questions in this file")]
