"""Several processes of a shuffler at one PostgreSQL database, which may go away."""

import threading
from contextlib import suppress
from itertools import starmap

import psycopg
import pytest

from deploy.databases import server, url_for
from deploy.make_vectors import make_task
from deploy.roles import (
    FEW,
    OVER,
    TASK,
    analyzer_for,
    at,
    batch_of,
    record,
    shuffler_for,
    upload,
)
from deploy.steps import advance, delete_fetched, forget, take
from shuffledp.core.errors import OutputError, ParameterError
from shuffledp.deploy.messages import Answer
from shuffledp.deploy.servers.batches import HandedOut, open_texts
from shuffledp.deploy.shuffler_server import ShufflerWatch


@pytest.fixture
def url(tmp_path):
    return url_for(tmp_path)


@pytest.fixture
def cut(url):
    """A function that ends all connections to the database."""

    def end_all():
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        with psycopg.connect(f"{server()} dbname=postgres", autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
                (name,),
            )

    return end_all


def test_processes_take_in_side_by_side_and_each_report_is_released_once(tmp_path, url):
    bodies = [upload(TASK, bytes([i % 2]), number=i, epoch=i % 2) for i in range(300)]
    answers = [[] for _ in range(3)]

    def send(shuffler, into, first):
        for start in range(first, first + 300, 30):  # each is sent all reports, in another order
            at_once = b"".join(bodies[place % 300] for place in range(start, start + 30))
            into.append(take(shuffler, at_once, at(1, 60)))

    shufflers = [shuffler_for(TASK, tmp_path, database=url) for _ in range(3)]
    threads = [
        threading.Thread(target=send, args=each)
        for each in zip(shufflers, answers, (0, 100, 200), strict=True)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(set(some) == {Answer.ACCEPTED} for each in answers for some in each)
    closed = [[state.number for state in each.closed(at(1, OVER))] for each in shufflers]
    assert closed == [[2], [], []]  # one of them leads
    shufflers[0].close()  # and where it ends, which takes the server a moment
    while not (leading := [each for each in shufflers[1:] if each.closed(at(1, OVER))]):
        pass
    assert len(leading) == 1  # another one does
    (state,) = advance(leading[0], at(1, OVER))
    assert (state.size, state.first_epoch, state.last_epoch) == (300, 0, 1)
    assert take(shufflers[2], bodies[0], at(1, 60)) == [Answer.LATE]  # it knows
    with analyzer_for(TASK, tmp_path, database=url) as analyzer:
        assert analyzer.take(shufflers[2].fetch(2)).reports.num_reports == 300
    with psycopg.connect(url) as connection:  # nothing is left of them
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE tablename ~ 'reports'")
        assert tables.fetchall() == []
    for each in shufflers:
        each.close()


def test_a_database_that_was_away_costs_no_report_that_was_acknowledged(tmp_path, url, cut):
    bodies = [upload(TASK, b"\0", number=i) for i in range(4)]
    with shuffler_for(TASK, tmp_path, database=url) as shuffler:
        for body in bodies:
            cut()
            with pytest.raises(OutputError, match="the database does not answer"):
                take(shuffler, body, at(0))
            assert take(shuffler, body, at(0)) == [Answer.ACCEPTED]
        assert [each.number for each in shuffler.closed(at(0, OVER))] == [1]
        cut()
        with pytest.raises(OutputError):
            advance(shuffler, at(0, OVER))
        assert advance(shuffler, at(0, OVER))[0].size == 4


def test_one_that_lost_the_lead_while_it_released_does_no_harm(tmp_path, url, cut):
    bodies = [upload(TASK, b"\0", number=i) for i in range(4)]
    with (
        shuffler_for(TASK, tmp_path, database=url) as slow,
        shuffler_for(TASK, tmp_path, database=url) as other,
    ):
        take(slow, b"".join(bodies), at(0))
        (state,) = slow.closed(at(0, OVER))
        held, _, pages = slow.to_open(state)
        opened = list(starmap(open_texts, pages))
        written = slow.write(state, held, opened)
        cut()
        with pytest.raises(OutputError):
            other.closed(at(0, OVER))
        with pytest.raises(OutputError):
            slow.batch(1)
        (done,) = advance(other, at(0, OVER))
        assert slow.settle(state, written) == done
        assert other.counts() == {"accepted": 4}
        forget(other, 1)
        assert slow.write(state, held, opened) == written
        assert slow.settle(state, written).state == "fetched"
        delete_fetched(other)
        assert list(tmp_path.glob("*.sdp")) == []  # what was forgotten stays so


def test_one_process_publishes_the_counts_of_all_also_after_it_lost_the_lead(tmp_path, url, cut):
    with (
        shuffler_for(TASK, tmp_path, database=url) as one,
        shuffler_for(TASK, tmp_path, database=url) as other,
    ):
        leader, follower = ShufflerWatch(one), ShufflerWatch(other)

        def tick():
            for each in (leader, follower):
                with suppress(OutputError):
                    each.tick(at(0))

        assert one.leads()
        take(one, upload(TASK, b"\0", number=1), at(0))
        assert take(other, upload(TASK, b"\0", number=2, epoch=1), at(0)) == [Answer.EARLY]
        tick()  # the follower stores what it refused
        tick()
        early = 'shuffledp_shuffler_reports_total{outcome="early"} 1\n'
        assert early in leader.numbers()
        assert "reports_total" not in follower.numbers()
        cut()
        tick()
        while not other.leads():  # the server needs a moment
            pass
        tick()
        assert early in follower.numbers()
        assert "reports_total" not in leader.numbers()


def test_a_machine_that_is_gone_is_noticed_soon_on_either_side(tmp_path, url):
    with shuffler_for(TASK, tmp_path, database=url + " keepalives_idle=7") as shuffler:
        known = shuffler._store._live.info.get_parameters()
        assert (known["tcp_user_timeout"], known["keepalives_idle"]) == ("20000", "7")
        # Their values are 0 for a socket that is a file.
        names = shuffler._store.rows("SELECT name FROM pg_settings WHERE source = 'session'")
        expected = {"tcp_user_timeout", "tcp_keepalives_idle", "tcp_keepalives_count"}
        assert expected <= {name for (name,) in names}


def test_what_a_database_is_set_to_does_not_change_what_a_transaction_reads(tmp_path, url):
    """Otherwise it would not see that an epoch was closed while it waited, and accept reports."""
    url += " options='-c default_transaction_isolation=serializable'"
    with shuffler_for(TASK, tmp_path, database=url) as shuffler, shuffler._store.transaction():
        assert shuffler._store.value("SHOW transaction_isolation") == "read committed"


def test_two_analyzers_that_take_a_batch_at_once_find_the_same(tmp_path, url):
    """One that asked before the other had counted would add the batch to itself."""
    task = make_task(**FEW)  # of which two reports are too few
    data = batch_of(task, [record(b"\0", task) for _ in range(2)])
    with analyzer_for(task, tmp_path, database=url) as one:
        with analyzer_for(task, tmp_path, database=url) as other:
            begin = other._store.transaction

            def late():
                assert one.take(data) is None
                return begin()

            other._store.transaction = late
            assert other.take(data) is None
        assert (one.kept(), one.taken()) == ([1], {})


@pytest.mark.parametrize(
    "given", ["postgresql://u:secret@127.0.0.1:1/x", "host=/nowhere password=secret", "nonsense"]
)
def test_a_database_that_is_not_there_is_named_without_its_password(tmp_path, given):
    with pytest.raises((OutputError, ParameterError)) as caught:
        shuffler_for(TASK, tmp_path, database=given)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_each_machine_notes_what_another_has_handed_out(tmp_path, url):
    """Otherwise it would release a backup's reports again, if it leads after a restore."""
    notes = [tmp_path / name for name in ("front", "leading")]
    for path in notes:
        path.touch()
    front, leading = (shuffler_for(TASK, tmp_path, database=url, handed_out=each) for each in notes)
    with front, leading:
        take(leading, b"".join(upload(TASK, b"\0", number=i) for i in range(3)), at(0))
        assert advance(leading, at(0, OVER))[0].state == "sealed"
        front.fetch(1)
        assert leading.closed(at(0, OVER)) == front.closed(at(0, OVER)) == []
        assert [HandedOut(path).newest() for path in notes] == [1, 1]
