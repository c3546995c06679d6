"""What an operator is told: events and numbers."""

import asyncio
import json
import logging
from types import SimpleNamespace

import pytest
from starlette.exceptions import HTTPException

from deploy.watching import asked, number_of, readiness
from shuffledp.deploy.servers import http_server as http
from shuffledp.deploy.servers import watch as watching
from shuffledp.deploy.servers.watch import FIELDS, EventHandler, Watch


def test_events_and_their_fields_are_closed_lists(capsys):
    log = Watch("shuffler")
    log.say("batch_sealed", batch=3, reports=500)
    log.say("store_failed", reason="no\nspace " + "x" * 1000)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {key: lines[0][key] for key in ("level", "role", "event", "batch", "reports")} == {
        "level": "info", "role": "shuffler", "event": "batch_sealed", "batch": 3, "reports": 500,
    }  # fmt: skip
    assert lines[1]["reason"].startswith("no space x")
    assert len(lines[1]["reason"]) == 300
    assert set().union(*lines) <= set(FIELDS)
    for event, fields in (("uploaded", {}), ("started", {"address": "192.0.2.1"})):
        with pytest.raises(ValueError, match="not listed"):
            log.say(event, **fields)
    assert "address" not in FIELDS
    assert "report_id" not in FIELDS


def test_what_the_http_library_logs_is_told_without_values(capsys):
    logger = logging.getLogger("a library")
    logger.handlers[:] = [EventHandler(Watch("shuffler"))]
    logger.propagate = False
    logger.info("from 192.0.2.1")
    logger.warning("no request of %s", "192.0.2.1")
    try:
        int("192.0.2.1")
    except ValueError:
        logger.exception("of %s", "192.0.2.1")
    said = capsys.readouterr().err
    assert "192.0.2.1" not in said
    warning, error = (json.loads(line) for line in said.splitlines())
    assert warning["reason"] == "no request of %s"
    assert error["event"] == "server_failed"
    assert error["reason"].startswith("ValueError at test_watch.py:")


def test_numbers_are_written_as_prometheus_reads_them():
    metrics = Watch("shuffler")
    metrics.set("reports_total", 7, "accepted")
    metrics.observe("commit_seconds", 0.5)
    metrics.observe("commit_seconds", 0.25)
    assert metrics.numbers() == (
        "# HELP shuffledp_shuffler_reports_total Reports by what became of them.\n"
        "# TYPE shuffledp_shuffler_reports_total counter\n"
        'shuffledp_shuffler_reports_total{outcome="accepted"} 7\n'
        "# HELP shuffledp_shuffler_commit_seconds Time to store what came together.\n"
        "# TYPE shuffledp_shuffler_commit_seconds summary\n"
        "shuffledp_shuffler_commit_seconds_count 2\n"
        "shuffledp_shuffler_commit_seconds_sum 0.75\n"
    )
    with pytest.raises(KeyError):
        metrics.set("reports_of_client", 1)
    with pytest.raises(KeyError):
        metrics.observe("seconds", 1)


def test_a_server_that_serves_nobody_any_more_is_not_ready(monkeypatch):
    """As when its database hangs, and takes the thread that serves requests with it."""
    now, watch = [100.0], Watch("shuffler")
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: now[0]))

    async def live():
        app = http.application({}, [watch.live])
        async with app.router.lifespan_context(app):
            await asyncio.sleep(0)

    asyncio.run(live())
    assert watch.reason() == ""
    now[0] += 20.0
    assert readiness(watch)[0] == 503
    assert "served nobody for 20 seconds" in watch.reason()
    asyncio.run(live())
    assert watch.reason() == ""


def test_requests_are_told_by_endpoint_status_and_time():
    watch = Watch("analyzer")

    async def fails(_):
        raise HTTPException(404, "there is none")

    endpoints = {
        ("GET", "/keys"): http.listed({"keys": b"k"}, "keys"),
        ("GET", "/results/{number:number}"): fails,
    }
    app = http.application(endpoints, watch=watch)
    for path in ("/keys", "/keys", "/results/1", "/elsewhere"):
        asyncio.run(asked(app, path))
    name = "analyzer_requests_total"
    assert number_of(watch, name + '{endpoint="GET /keys",status="200"}') == 2
    assert number_of(watch, name + '{endpoint="GET /results/{number:number}",status="404"}') == 1
    assert number_of(watch, 'analyzer_request_seconds_count{endpoint="GET /keys"}') == 2
    assert number_of(watch, 'analyzer_request_seconds_sum{endpoint="GET /keys"}') > 0
