"""Terms: everything counts in the digest, JSON gives the same again, and nonsense is refused."""

import dataclasses
import json

import pytest

from peers.exercises import GRAPH, KEYS, ring, terms_on
from peers.link import asked_of
from shuffledp import Categories
from shuffledp.core.dummies import DummyLaw
from shuffledp.core.entropy import Entropy
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.wire import Fault, ProtocolError, Reason
from shuffledp.network.graph import Graph
from shuffledp.peers.keys import PrivateKeys
from shuffledp.peers.terms import Terms, graph_digest, new_collection_id

TERMS = terms_on(laziness=0.25)

OTHERS = {
    "collection_id": bytes(16),
    "graph_digest": bytes(32),
    "num_users": None,  # together with slots
    "rounds": 7,
    "slots": (1, *TERMS.slots[1:]),
    "asked": asked_of(9),
    "analyzer_mail_key": PrivateKeys.generate().mail_key,
    "analyzer_identity_key": bytes(32),
    "protocol": "single",
    "laziness": 0.5,
    "per_neighbour": 3,
    "least_registered": 2,
    "dummies": DummyLaw.from_text("poisson:2.0"),  # together with the answers
}


def test_every_field_is_in_the_digest():
    assert set(OTHERS) == {item.name for item in dataclasses.fields(Terms) if item.init}
    digests = {TERMS.digest()}
    for name, value in OTHERS.items():
        change = {name: value}
        if name == "num_users":
            change = {"num_users": 9, "slots": (*TERMS.slots, 1)}
        if name == "dummies":
            change["asked"] = AskedTerms.of(Categories(["a", "b"]), "k-rr", 2.0)
        digests.add(dataclasses.replace(TERMS, **change).digest())
    assert len(digests) == 1 + len(OTHERS)


def test_json_gives_the_same_terms():
    again = Terms.from_json(TERMS.to_json())
    assert again == TERMS
    assert again.digest() == TERMS.digest()


def test_layout_of_json_does_not_matter():
    fields = json.loads(TERMS.to_json())
    one = Terms.from_json(json.dumps(fields, indent=2))
    fields["randomizer"] = dict(reversed(fields["randomizer"].items()))
    other = Terms.from_json(json.dumps(dict(reversed(fields.items()))))
    assert one.digest() == other.digest() == TERMS.digest()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 1}, "version 1, this program 5"),
        ({"version": None, "more": 1}, "do not have the fields"),
        ({"collection_id": 5}, "not hexadecimal"),
        ({"collection_id": "xyz"}, "not hexadecimal"),
        ({"collection_id": "00"}, "collection_id is not 16 bytes"),
        ({"analyzer_mail_key": "00" * 32}, "nothing can be sealed to analyzer_mail_key"),
        ({"slots": 3}, "slots is no list"),
        ({"slots": [1]}, "slots has 1 items, not num_users = 8"),
        ({"slots": [0] * 8}, r"slots\[0\] = 0 is not"),
        ({"slots": [1.5] * 8}, r"slots\[0\] = 1.5 is not"),
        ({"num_users": 0}, "num_users = 0 is not"),
        ({"num_users": "8"}, "num_users = '8' is not"),
        ({"rounds": 0}, "rounds = 0 is not"),
        ({"rounds": True}, "rounds = True is not"),
        ({"report_bytes": 5}, "or another size of reports"),
        ({"randomizer": TERMS.randomizer | {"epsilon0": 2}}, "in another way"),
        ({"randomizer": TERMS.randomizer | {"more": 1}}, "in another way"),
        ({"least_registered": 9}, r"least_registered = 9 is not a whole number in \[1, 9\)"),
        ({"per_neighbour": -1}, r"per_neighbour = -1 is not a whole number in \[0, "),
        ({"laziness": 1.0}, r"laziness = 1.0 is not in \[0, 1\)"),
        ({"laziness": 0.1}, "the nearest is 0.100006103515625"),
        ({"laziness": "0.1"}, "laziness = '0.1' is not a number"),
        ({"laziness": float("nan")}, "laziness = nan is not finite"),
        ({"protocol": "some"}, "neither 'all' nor 'single'"),
    ],
)
def test_nonsense_is_refused(change, message):
    fields = {**json.loads(TERMS.to_json()), **change}
    with pytest.raises(ParameterError, match=message):
        Terms.from_json(json.dumps(fields))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null"])
def test_what_is_no_terms(text):
    with pytest.raises(ParameterError, match="the terms"):
        Terms.from_json(text)


@pytest.mark.parametrize("described", ["{", None, [], {}, {"question": {"kind": "whim"}}])
def test_a_description_that_asks_nothing(described):
    fields = {**json.loads(TERMS.to_json()), "randomizer": described}
    with pytest.raises(DataError, match="ask no question"):
        Terms.from_json(json.dumps(fields))


def test_the_graph_is_that_of_the_terms():
    TERMS.require_graph(GRAPH)
    with pytest.raises(ProtocolError, match="not the one of the terms") as caught:
        TERMS.require_graph(ring(9))
    assert (caught.value.fault, caught.value.reason) == (Fault.CALLER, Reason.MISMATCH)


def test_a_graph_is_digested_by_its_edges():
    one = Graph.from_edges([(0, 1), (1, 2)])
    assert graph_digest(one) == graph_digest(Graph.from_edges([(2, 1), (1, 0), (0, 1)]))
    others = [
        Graph.from_edges([(0, 1), (0, 2)]),
        Graph.from_edges([(0, 1), (1, 2)], num_users=4),
    ]
    assert len({graph_digest(one), *map(graph_digest, others)}) == 3


def test_collections_have_different_names():
    entropy = Entropy.from_operating_system()
    assert len({new_collection_id(entropy) for _ in range(5)}) == 5
    assert len(new_collection_id(entropy)) == 16


def test_keys_are_the_analyzers():
    assert (TERMS.analyzer_mail_key, TERMS.analyzer_identity_key) == (
        KEYS.mail_key,
        KEYS.identity_key,
    )
