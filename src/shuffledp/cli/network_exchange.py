"""``shuffledp network prepare``, ``relay``, ``peer``, ``collect``: a collection along a graph.

Terms, relay, peers (one user or many in a process), and analyzer.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import shuffledp as sdp
from shuffledp.cli import console
from shuffledp.cli import options as shared
from shuffledp.cli.asked import QUESTION_OF_ONE_ROUND, Asked
from shuffledp.cli.options import network, options, require_service
from shuffledp.cli.run import print_estimates
from shuffledp.cli.serve import say_url
from shuffledp.collection.output import write_results
from shuffledp.core.checks import require_non_negative, require_open_unit
from shuffledp.core.errors import DataError
from shuffledp.report.wording import guarantee_facts, words_of_result

if TYPE_CHECKING:
    from shuffledp.core.bound import Guarantee
    from shuffledp.peers.peer_runner import NodeValues, PeersOutcome
    from shuffledp.peers.relay_client import RelayClient
    from shuffledp.peers.terms import Terms

_TERMS = click.argument("terms", type=shared.PATH)
_GRAPH = "--graph PATH  File of edges, along which users pass reports on.  [required]"
_RELAY = "url=--relay URL  URL that the relay printed.  [required]"


@network.command(
    epilog="Example: shuffledp network prepare --graph edges.csv --domain yes,no --epsilon0 1 "
    "--rounds 20 --out collection/"
)
@options(
    f"""
    Question:
    {QUESTION_OF_ONE_ROUND}
    text=--question TEXT  Wording of the question, which peers show before they ask.  [=]
    Reports:
    {shared.RANDOMIZER}
    --epsilon0 FLOAT  Local epsilon of every report.  [required]
    --dummies LAW  Dummies that each user sends for each answer, such as poisson:0.05 for 0.05 on
        average, at most 1,000 in all; only with k-rr and protocol all.
    Exchange:
    {_GRAPH}
    --rounds T  Number of rounds in which each report is passed on; `shuffledp network account`
        computes how many are needed.  [required]
    {shared.PROTOCOL}
    {shared.LAZY}
    --least-registered N  Fewest registered users with whom peers take part, half of all by default:
        a relay cannot start with a smaller crowd.
    --even-traffic  Send each neighbour equally many messages in each round: more traffic, and a
        guarantee against relay and analyzer together.
    Output:
    --delta FLOAT  Also print the central epsilon at this delta, if all users register and none is
        ever away.
    {shared.DISHONEST}
    {shared.OUT.format("terms and key")}
    {shared.JSON}
    """,
)
def prepare(
    *, graph: Path, delta: float | None, num_dishonest: int, out: Path, **given: Any
) -> None:
    """Write the public terms of a collection between peers, and the analyzer's private key.

    Give terms.json and the file of edges to everybody; keep analyzer.key to yourself.
    """
    from shuffledp.peers import collecting
    from shuffledp.peers.keys import PrivateKeys
    from shuffledp.peers.terms import nearest_laziness

    if delta is not None:
        require_open_unit("delta", delta)
    elif num_dishonest:
        raise click.UsageError("--dishonest is for the central epsilon: give --delta, too")
    asked = Asked(given).terms(**shared.taken(given, "randomizer", "epsilon0", "text"))
    users = sdp.network.read_graph(graph)
    laziness = nearest_laziness(given.pop("laziness"))
    sdp.network.NetworkMixing(users, laziness=laziness)  # refuses graphs on which reports never mix
    keys = PrivateKeys.generate()
    terms = collecting.prepare_terms(users, asked, keys, laziness=laziness, **given)
    expected, cautions = None, tuple[str, ...]()
    if delta is not None:
        expected, cautions = _expected(terms, users, delta, num_dishonest)
    terms_path, key_path = collecting.write_collection(out, terms, keys)
    record = {
        "terms": str(terms_path),
        "key": str(key_path),
        "terms_digest": terms.digest().hex(),
        "num_users": terms.num_users,
        "rounds": terms.rounds,
        "slots": max(terms.slots),
        "envelope_bytes": terms.envelope_bytes,
    }
    facts = [
        ("terms", f"{terms_path} (public: everybody needs it)"),
        ("private key", f"{key_path} (keep it: without it nobody can open the reports)"),
        ("randomizer", f"{asked.randomizer.name}, epsilon0 = {asked.randomizer.epsilon0:.6g}"),
        *collecting.traffic_facts(terms, users),
    ]
    if expected is not None:
        record["guarantee"] = expected.to_json_dict()
        facts += guarantee_facts(expected)[:3]
        facts.append(("assuming", "all register, none is ever away, all arrives"))
    console.print_warnings(cautions)
    if not console.print_json(record):
        console.print_facts(facts)


def _expected(
    terms: "Terms", graph: "sdp.network.Graph", delta: float, num_dishonest: int
) -> "tuple[Guarantee, tuple[str, ...]]":
    """Return the guarantee if everybody takes part in every round, and warnings about it."""
    import numpy as np

    from shuffledp.peers.exchange_account import Arrived, Exchange, ExchangeRecord

    everybody = np.arange(terms.num_users)
    record = ExchangeRecord.of(terms, everybody, [[]] * terms.rounds)
    number = round(terms.num_users * (1.0 + terms.dummies_each))
    arrived = Arrived(num_reports=number, handed_in=everybody)
    profile = terms.asked.randomizer.profile
    with console.progress_bar() as on_progress:
        exchange = Exchange(
            terms, graph, record, arrived, num_dishonest=num_dishonest, on_progress=on_progress
        )
        found = exchange.guarantee(profile, delta=delta)
    return found, exchange.cautions(profile, found)


@network.command(
    epilog="Example: shuffledp network relay collection/terms.json --graph edges.csv "
    "--store relay.db --listen 127.0.0.1:8000 --round-seconds 60"
)
@_TERMS
@options(
    f"""
    Relay:
    {_GRAPH}
    --store PATH  SQLite file for the relay's state, created if absent. Started again with it, the
        relay goes on.  [required]
    --listen ADDRESS:PORT  Address to listen at, by HTTP; port 0 takes any free one. For other
        machines put a reverse proxy with TLS before it.  [default: 127.0.0.1:0]
    Time:
    --round-seconds FLOAT  Length of a round; users who send nothing in it are absent.
        [default: 60.0]
    --register-seconds FLOAT  Begin after this time if enough users have registered; by default wait
        for all.
    --clock [interval|all]  End a round after its time, so that the pace shows nobody's speed, or as
        soon as all have sent.  [default: interval]
    --until-collected  Stop once the analyzer has stored everything and the relay has deleted the
        reports.
    """
)
def relay(*, terms: Path, graph: Path, store: Path, listen: str, clock: str, **given: Any) -> None:
    """Pass sealed messages between the peers of TERMS, round by round.

    Prints its URL and serves until it is stopped. Started again with the same --store it loses
    nothing.
    """
    require_service()
    from shuffledp.deploy.servers.settings import address_of
    from shuffledp.peers.collecting import read_terms
    from shuffledp.peers.relay import serve_relay

    read = read_terms(terms)
    given |= {"address": address_of(listen), "is_eager": clock == "all"}
    serve_relay(read, sdp.network.read_graph(graph), store, on_ready=say_url, **given)


@network.command(
    epilog="Example: shuffledp network peer collection/terms.json --graph edges.csv --relay "
    "http://127.0.0.1:8000 --user 7 --answer yes --state me.db"
)
@_TERMS
@options(
    f"""
    Collection:
    {_GRAPH}
    {_RELAY}
    --state PATH  SQLite file for keys, reports and answered questions, readable by its owner only,
        created if absent. Use one file for all collections.  [required]
    One user:
    --user NODE  Number of the user in the graph, from 0.
    --answer TEXT  Answer of --user; asked for if left out, since others may see a command line.
    Many users:
    --table PATH  Table with the answers of many users, one a row.
    --column TEXT  Column of --table with the answers.
    id_column=--id COLUMN
        Column of --table with the users' names in the graph; by default row numbers are nodes.
    {shared.READING}
    {shared.DECIMAL}
    Limits:
    most_epsilon0=--max-epsilon0 X  Largest epsilon0 of all reports of a user on one question
        together, in nats; by default 4.
    --least-users N  Fewest registered users to take part with; by default 10.
    most_megabytes=--max-megabytes X  Largest traffic of the collection, sent and received; by
        default 100.
    --terms-digest HEX  Take part under these terms only; the command prints their digest.
    --most-absences N
        Hand in nothing after more missed rounds than this; by default a quarter of all.
    --roster-digest HEX  Take part with this roster of users only; its digest is printed when
        registration ends.
    """,
)
def peer(*, terms: Path, graph: Path, url: str, state: Path, **given: Any) -> None:
    """Take part in the collection of TERMS, as one user or several.

    First prints the question, the privacy of a report and the costs; refuses terms beyond the
    limits. Each answer is randomized once, before anything is sent. Started again with the
    same --state, it goes on where it was.
    """
    user, answer = given.pop("user"), given.pop("answer")
    table, ways = shared.taken(given, "table", "column", "id_column"), shared.take_reading(given)
    is_many = table["table"] is not None
    if is_many == (user is not None) or (is_many and answer is not None):
        raise click.UsageError("give --user and --answer, or --table")
    if not is_many and (ways or (table["column"], table["id_column"]) != (None, None)):
        raise click.UsageError("--column, --id and ways of reading are for --table")
    require_service()
    from shuffledp.core.progress import no_progress
    from shuffledp.peers import peer_runner as peers
    from shuffledp.peers.collecting import read_terms, traffic_facts
    from shuffledp.peers.terms import Limits

    limits = Limits(**{name: value for name, value in given.items() if value is not None})
    read = read_terms(terms)
    asked, edges = read.asked, _graph_of(read, graph)
    limits.require_terms(read, edges, user or 0)
    how: dict[str, Any] = {"entropy": sdp.Entropy.from_operating_system(), "limits": limits}
    with peers.PeerStore(state, read) as store, _relay_of(read, edges, url) as client:
        facts = [*asked.facts(), *traffic_facts(read, edges)]
        facts.append(("least crowd", f"{max(read.least_registered, limits.least_users):,} users"))
        facts += [] if is_many else peers.spending_facts(store, asked, "")
        console.print_facts([*facts, ("terms", read.digest().hex())])
        names, question = {user or 0: ""}, asked.question
        if is_many:
            many = peers.read_node_values(question, **table, graph=edges, **ways)
            names = {node: edges.name_of(node) for node in sorted(many)}
        elif store.states().keys() - names:
            raise DataError(f"{state} is of another user: name a file of this user's own")

        def values() -> "NodeValues":
            if is_many:
                return many
            said = str(click.prompt("Answer")) if answer is None else answer
            return peers.value_of_one(question, user, said)

        how |= {"terms": read, "graph": edges, "store": store, "names": names, "client": client}
        runner = peers.PeerRunner(**how, on_roster=lambda it: console.print_facts([("roster", it)]))
        runner.draw(values)
        with console.progress_bar() as on_progress:
            runner.on_progress = on_progress or no_progress
            outcome = runner.run()
    _print_outcome(outcome)


def _graph_of(terms: "Terms", path: Path) -> "sdp.network.Graph":
    """Return the graph of a file, checked against the terms."""
    graph = sdp.network.read_graph(path)
    terms.require_graph(graph)
    return graph


def _relay_of(terms: "Terms", graph: "sdp.network.Graph", url: str) -> "RelayClient":
    """Return a connection to the relay, and warn if others can read the traffic."""
    from shuffledp.deploy.remote import cautions_about
    from shuffledp.peers.relay_client import RelayClient, answer_sizes

    console.print_warnings(cautions_about(url, "relay"))
    return RelayClient(url, answer_sizes(terms, graph))


_ENDED_BADLY = {
    "late": "came after registration had ended and took no part",
    "lost": "came after handing in had ended: the reports they held are lost",
    "withheld": "missed more rounds than --most-absences and handed in nothing: a relay that "
    "refuses all that one user sends would get a report whose author it knows",
    "short": "missed mail that was sent to them, or heard of others who did: the analyzer is told, "
    "and claims no more than epsilon0",
}


def _print_outcome(outcome: "PeersOutcome") -> None:
    """Print the outcome, with a warning for each failure."""
    from shuffledp.peers.mail import Refusal

    found = [
        f"{len(nodes):,} users, node {nodes[0]} among them, {what}"
        for name, what in _ENDED_BADLY.items()
        if (nodes := outcome.nodes.get(name))
    ]
    counts = outcome.counts
    if counts["dropped"]:
        found.append(f"{counts['dropped']:,} reports were dropped, for want of messages")
    if refused := [f"{counts[each.name]:,} {each}" for each in Refusal if counts[each.name]]:
        found.append(f"messages were refused: {'; '.join(refused)}")
    console.print_warnings(found)
    console.print_facts(
        [
            ("handed in", f"{len(outcome.nodes['handed in']):,} of {outcome.num_users:,} users"),
            ("rounds missed", f"{counts['absent']:,}"),
            ("transcript", ", ".join(each[:16] for each in outcome.transcripts) or "none"),
        ]
    )


@network.command(
    epilog="Example: shuffledp network collect collection/terms.json --key "
    "collection/analyzer.key --graph edges.csv --relay http://127.0.0.1:8000 --delta 1e-6 "
    "--out results/"
)
@_TERMS
@options(
    f"""
    Collection:
    {_GRAPH}
    {_RELAY}
    --key PATH      The analyzer's private key, written by `network prepare`.  [required]
    --wait SECONDS  Longest wait for the end of the collection; 0 looks once; by default unlimited.
    Privacy:
    --delta FLOAT  Central delta, far below 1/users.  [required]
    {shared.DISHONEST}
    Estimates:
    {shared.CONFIDENCE}
    {shared.RESULTS}
    """,
)
def collect(
    *, terms: Path, graph: Path, url: str, key: Path, out: Path, overwrite: bool, **given: Any
) -> None:
    """Fetch the reports handed in to the collection of TERMS, and estimate.

    Waits for the end of the collection. Stores the sealed reports in a file beside --key, from
    which the command can run again, and has the relay delete them. Writes estimates.csv,
    privacy.json and report.html into --out, or nothing if anything fails.
    """
    require_service()
    for name in ("delta", "confidence"):
        require_open_unit(name, given[name])
    wait = given["wait"]
    if wait is not None:
        require_non_negative("wait", wait)
    from shuffledp.collection.leakage import json_of_run
    from shuffledp.collection.questions.question import EstimateOptions
    from shuffledp.peers import collecting

    read = collecting.read_terms(terms)
    keys = collecting.read_key(key, read)
    edges = _graph_of(read, graph)
    with (
        console.new_folder(out, overwrite=overwrite) as folder,
        _relay_of(read, edges, url) as client,
        # Fetched reports are kept beside the key that opens them.
        collecting.FetchedStore(key.with_name(f"{key.name}.fetched"), read) as store,
        console.progress_bar() as on_progress,
    ):
        fetched = collecting.fetch(
            read, keys, client, store=store, wait_seconds=wait, on_progress=on_progress
        )
        how: dict[str, Any] = {"options": EstimateOptions(confidence=given["confidence"])}
        how |= shared.taken(given, "delta", "num_dishonest")
        how |= {"graph_name": graph.name, "on_progress": on_progress}
        result = collecting.collection_result(read, edges, fetched, **how)
        facts, findings = collecting.fetched_facts(read, fetched), json_of_run(result)
        write_results(result, folder, parameters={"graph": str(graph), **facts}, findings=findings)
    console.print_warnings(result.warnings)
    if fetched.not_forgotten:
        kept = "the relay may still have what was handed in; while it serves, run this command"
        console.print_warnings([f"{kept} again with --overwrite ({fetched.not_forgotten})"])
    if console.print_json({**result.to_json_dict(), **findings, "collection": facts}):
        return
    print_estimates(result, words_of_result(result).rows, out)
    console.print_list("assumptions", result.guarantee.bound.assumptions)
