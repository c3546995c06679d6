"""A whole collection in one process: people answer in Chromium, and the estimates are collected."""

import json
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import polars as pl
import pytest
from playwright.sync_api import expect

from end_to_end.clocked import EPOCH, HALF, OVER, Clock
from golden.net.exchange import free_address
from shuffledp.cli.main import TERMINATED, main

pytestmark = pytest.mark.browser

# The browser's clock agrees with that of the servers, which the test moves.
_BEHIND = f"const now = Date.now; Date.now = () => now() - {1000 * OVER};"
_DONE = "Thank you. Your reports have arrived."


@pytest.fixture
def clock(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Clock(tmp_path, monkeypatch, behind=HALF + OVER)


@pytest.fixture
def pilot(clock):
    """Return what makes tasks of these questions, serves them, and returns the page's address."""
    started = []

    def serve(*questions, min_batch):
        shuffler, analyzer = free_address(), free_address()
        for place, words in enumerate(questions):
            clock.run(
                "task", "create", "--question", f"Question {place}", *words, "--epsilon0", "3",
                "--epsilon", "3", "--delta", "1e-6", "--min-batch", str(min_batch),
                "--epoch", EPOCH, "--grace", "1s", "--shuffler", shuffler, "--analyzer", analyzer,
                "--out", f"task-{place}",
            )  # fmt: skip
        clock.move(HALF)
        folders = [f"task-{place}" for place in range(len(questions))]
        command = [clock.shuffledp, "serve", "pilot", *folders, "--listen", free_address()]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        said = [started[0].stdout.readline().split() for _ in range(2)]
        assert [word for word, _ in said] == ["survey:", "console:"]
        return [address for _, address in said]

    yield serve
    for process in started:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=600)
        assert process.returncode == TERMINATED


def respond(browser, url, *answers):
    """Answer as a new person, by labels or numbers; return the requests with their bodies."""
    context = browser.new_context()
    context.set_default_timeout(0.0)
    context.add_init_script(_BEHIND)
    page, sent = context.new_page(), []
    page.on("request", lambda each: sent.append((each.method, each.url, each.post_data_buffer)))
    page.goto(url)
    expect(page.locator("button")).to_be_enabled()
    for question, answer in zip(page.locator("fieldset").all(), answers, strict=True):
        if isinstance(answer, str):
            question.get_by_label(answer, exact=True).check()
        else:
            question.locator("input").fill(str(answer))
    page.locator("#consent").check()
    page.locator("button").click()
    expect(page.locator("#status")).to_have_text(_DONE)
    assert page.locator(".receipt").count() == len(answers)
    assert context.cookies() == []
    context.close()
    return sent


def test_people_answer_and_the_operator_collects(browser, pilot, clock):
    url, console = pilot(
        ["--domain", "yes,no"], ["--mean", "--range", "0,80", "--randomizer", "duchi"], min_batch=12
    )
    sent = respond(browser, url, "yes", 38.5)
    paths = [f"{method} {urlsplit(each).path.rpartition('/')[2]}" for method, each, _ in sent]
    own, others = paths[:5], paths[5:]
    assert own[0] == "GET "
    assert sorted(own[1:]) == [
        "GET pages.css",
        "GET report.css",
        "GET shuffledp.js",
        "GET survey.js",
    ]
    for place in range(2):
        task_id = json.loads(check(place))["task_id"]
        assert others.count(f"GET {task_id}") == 1
    assert sorted(each for each in others if len(each) < 60) == sorted(
        2 * ["GET law", "GET keys", "GET keys", "GET analyzer_keys", "POST reports"]
    )
    bodies = [body for method, _, body in sent if method == "POST"]
    assert all(b"yes" not in body and b"38" not in body for body in bodies)
    respond(browser, url, "no", 0)
    pl.DataFrame({"x": ["yes"] * 10, "y": [40.0] * 10}).write_csv("others.csv")
    for place, column in enumerate("xy"):
        clock.run("send", f"task-{place}/task.bin", "others.csv", "--column", column)
    context = browser.new_context()
    context.set_default_timeout(0.0)
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(console)
    expect(page.locator("#tasks tbody")).to_contain_text("12 of 12")  # renewed until it is
    page.get_by_text("Question 0").click()
    expect(page.locator(".key-figures")).to_contain_text("12")
    assert page.locator(".banner.alert").inner_text().startswith("This is a trial.")
    clock.move(OVER)
    for place in range(2):
        assert main(["collect", f"task-{place}", "--out", f"results-{place}"]) == 0
        record = json.loads(Path(f"results-{place}/privacy.json").read_bytes())
        assert record["num_users"] == 12
        assert record["collected_by"] == "devices"
    expect(page.locator("#results")).to_contain_text("Batch 1")
    found = Path("results-0/privacy.json").read_bytes()
    share = next(each for each in json.loads(found)["estimates"] if each["value"] == "yes")
    assert f"{100.0 * share['frequency']:.1f}%" in page.locator("#results").inner_text()
    assert complaints == []
    context.close()


@pytest.mark.slow
def test_two_hundred_people_answer_and_estimates_are_near_the_truth(browser, pilot, clock):
    url, console = pilot(["--domain", "yes,no"], min_batch=200)
    for place in range(200):
        sent = respond(browser, url, "yes" if place < 60 else "no")
        assert sum(method == "POST" for method, _, _ in sent) == 1
    clock.move(OVER)
    assert main(["collect", "task-0", "--out", "results"]) == 0
    record = json.loads(Path("results/privacy.json").read_bytes())
    assert record["num_users"] == 200
    yes = next(each for each in record["estimates"] if each["value"] == "yes")
    # Eight standard errors: a false alarm in 10^14 runs.
    assert abs(yes["frequency"] - 0.3) < 8 * yes["standard_error"]
    context = browser.new_context()
    context.set_default_timeout(0.0)
    page = context.new_page()
    page.goto(console)
    page.get_by_text("Question 0").click()
    expect(page.locator("#results")).to_contain_text("Batch 1")
    expect(page.locator("#results")).to_contain_text(f"{100.0 * yes['frequency']:.1f}%")
    context.close()


@pytest.mark.slow
def test_fifty_viewers_look_on_while_reports_come_in(pilot, clock):
    _, console = pilot(["--domain", "yes,no"], min_batch=100)
    pl.DataFrame({"x": ["yes"] * 100}).write_csv("people.csv")

    def look_on():
        """Return the numbers of reports that were seen, up to all of them."""
        seen = []
        with httpx.Client(timeout=600.0) as client:
            while len(seen) < 600 and seen[-1:] != [100]:
                answer = client.get(console)
                assert answer.status_code == 200
                seen.append(int(re.search(r"(\d+) of 100\b", answer.text).group(1)))
                time.sleep(1.0)
        return seen

    with ThreadPoolExecutor(50) as viewers:
        looks = [viewers.submit(look_on) for _ in range(50)]
        clock.run("send", "task-0/task.bin", "people.csv", "--column", "x")
    for look in looks:
        seen = look.result()
        assert seen == sorted(seen)  # never fewer than before
        assert seen[-1] == 100


def check(place):
    """Return a task as JSON."""
    command = ["shuffledp", "task", "check", f"task-{place}/task.bin", "--json"]
    return subprocess.run(command, check=True, capture_output=True).stdout
