"""What the analyzer makes of collections that did not go as they should, and the server's parts."""

import io
from dataclasses import replace
from types import SimpleNamespace

import pytest

from shuffledp.collection.questions.question import EstimateOptions
from shuffledp.collection.service import collecting, relay_server
from shuffledp.collection.service.collecting import collection_result, fetch, fetched_facts
from shuffledp.collection.service.relay_client import RelayClient
from shuffledp.core.errors import DataError

EVERYBODY = [0, 1, 2, 3, 4, 5]


@pytest.fixture
def over(collection):
    """A collection that is over, and what was fetched of it."""
    _, http = collection.relay()
    collection.runner(http, EVERYBODY).run()
    client = RelayClient("http://127.0.0.1", patience_seconds=0.0, client=http)
    return collection, fetch(collection.terms, collection.keys, client)


def result_of(collection, fetched, **changes):
    collected = replace(fetched.collected, **changes)
    return collection_result(
        collection.terms, collection.asked, collection.graph,
        replace(fetched, collected=collected), delta=1e-2, options=EstimateOptions(),
    )  # fmt: skip


def test_estimates_guarantee_and_facts(over):
    collection, fetched = over
    result = result_of(collection, fetched)
    assert (result.num_users, result.shuffler, result.is_simulation) == (6, "network", False)
    assert result.guarantee.num_users == 6
    facts = fetched_facts(collection.terms, fetched)
    assert facts["num_reports"] == facts["num_registered"] == facts["num_handed_in"] == 6
    assert facts["collection_id"] == collection.terms.collection_id.hex()


def test_what_is_no_report_is_left_out(over):
    collection, fetched = over
    reports = (*fetched.collected.reports[:5], b"\xff")
    result = result_of(collection, fetched, reports=reports, rejected={"malformed": 2})
    assert any("3 things handed in were no report" in text for text in result.warnings)
    assert any("1 of 6 reports are missing" in text for text in result.warnings)


def test_more_reports_than_users_are_not_to_be_trusted(over):
    collection, fetched = over
    result = result_of(collection, fetched, reports=fetched.collected.reports * 2)
    assert result.num_users == 12
    assert result.guarantee.num_users == 6
    assert any("no estimate can be trusted" in text for text in result.warnings)


def test_no_report_is_no_result(over):
    collection, fetched = over
    with pytest.raises(DataError, match="none of 6 users' reports came"):
        result_of(collection, fetched, reports=())


def test_the_end_is_waited_for(collection, monkeypatch):
    _, http = collection.relay()
    runner = collection.runner(http, EVERYBODY)
    waits, seen = [], []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 9:
            runner.run()

    monkeypatch.setattr(collecting, "time", SimpleNamespace(sleep=sleep))
    client = RelayClient("http://127.0.0.1", patience_seconds=0.0, client=http)

    def on_progress(stage, done, total):
        seen.append((stage, done, total))

    found = fetch(collection.terms, collection.keys, client, on_progress=on_progress)
    assert len(found.collected.reports) == 6
    assert waits == sorted(waits)
    assert seen[0] == ("rounds", 0, 3)


def test_every_line_of_the_operator_ends_a_phase(collection, monkeypatch):
    service, _ = collection.relay(mode="manual")
    told = []
    monkeypatch.setattr(service, "tell", lambda: told.append(True))
    monkeypatch.setattr("sys.stdin", io.StringIO("\n\n"))
    relay_server._tell_on_lines(service).join(10.0)
    assert len(told) == 2


def test_a_relay_is_found_at_either_kind_of_address():
    with relay_server._listen("::1", 0) as listening:
        assert relay_server._url(listening).startswith("http://[::1]:")
