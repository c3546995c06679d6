"""Small collections for the tests of the protocol."""

from peers.link import Link, new_folder, no_limits, quick_relay, simple_terms
from shuffledp.core.entropy import Entropy
from shuffledp.network.graph import Graph
from shuffledp.peers.keys import PrivateKeys, Roster
from shuffledp.peers.mail import Batch, Confirmation, Letter, Mail, encode_mail
from shuffledp.peers.peer import Peer

REPORT_BYTES = 4
KEYS = PrivateKeys.generate()
CONFIRMATION = Confirmation(transcript=bytes(range(32)), short_since=0)


def batch_with(letters, *, round_number=1, sender=0, codes=()):
    return Batch(
        round_number=round_number, sender=sender, letters=tuple(letters), codes=tuple(codes)
    )


def mail_with(letters, *, roster, round_number=1, recipient=1, absent=(), codes=None):
    mail = Mail(absent=tuple(absent), letters=tuple(letters), codes=codes or {})
    return encode_mail(mail, roster, round_number=round_number, recipient=recipient)


def ring(num_users):
    """A ring in which everybody also knows the next but one."""
    pairs = [(i, (i + step) % num_users) for i in range(num_users) for step in (1, 2)]
    return Graph.from_edges(pairs, num_users=num_users)


GRAPH = ring(8)


def terms_on(graph=GRAPH, *, rounds=2, **options):
    return simple_terms(
        graph, KEYS, rounds=rounds, report_bytes=REPORT_BYTES, **{"failure": 1e-3, **options}
    )


def reports_of(num_users):
    return [node.to_bytes(REPORT_BYTES, "big") for node in range(num_users)]


def run_link(terms, graph=GRAPH, *, seed=1, **options):
    reports = reports_of(graph.num_users)
    return Link(terms, graph, KEYS, reports, entropy=Entropy.from_seed(seed), **options).run()


class Scene:
    """A relay with registered peers who have the roster, before round 1."""

    def __init__(self, terms=None, graph=GRAPH, *, seed=1, missing=()):
        self.terms = terms or terms_on(graph)
        self.graph = graph
        self.entropy = Entropy.from_seed(seed)
        self.folder = new_folder()
        self.relay = quick_relay(self.terms, graph, self.folder)
        self.peers = {
            node: Peer.create(
                self.terms, graph, node, report, self.entropy, limits=no_limits(self.terms)
            )
            for node, report in enumerate(reports_of(graph.num_users))
            if node not in missing
        }
        for peer in self.peers.values():
            self.relay.register(peer.state.registration)
        self.relay.go_on()
        self.roster = Roster.from_bytes(self.relay.roster.to_bytes(), self.terms)
        self.registered = {node: peer.state.to_bytes() for node, peer in self.peers.items()}
        for peer in self.peers.values():
            peer.begin(self.roster)

    def send(self, round_number, nodes=None):
        for node in self.peers if nodes is None else nodes:
            self.relay.accept_batch(self.peers[node].outgoing(round_number))

    def packet(self, node, round_number):
        return self.relay.mail(node, round_number, self.peers[node].mail_token(round_number))

    def receive(self, round_number, nodes=None):
        for node in self.peers if nodes is None else nodes:
            self.peers[node].receive(round_number, self.packet(node, round_number))

    def round(self, round_number):
        self.send(round_number)
        self.relay.go_on()
        self.receive(round_number)

    def restore(self, node, data):
        peer = Peer.from_bytes(
            data, self.terms, self.graph, self.entropy, limits=no_limits(self.terms)
        )
        peer.begin(self.roster)
        return peer

    def keys_of(self, node):
        return self.peers[node].state.keys

    def pairs_of(self, node):
        return self.peers[node]._pairs

    def letter_to(self, recipient, sender, sealed, *, index=0, round_number=1):
        return Letter(round_number, sender, index, recipient, sealed)
