"""Draws docs/_static/survey.png and console.png, the pages of a pilot, and report.png, in Chromium.

Run with the developers' tools: `.venv/bin/python docs/page_pictures.py`. The answers are made up.
With a folder: all pages, in three widths, light and dark, to look at.
"""

import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, sync_playwright

import shuffledp as sdp
from shuffledp.deploy.servers import http_server as http
from shuffledp.deploy.web.console import CONSOLE, TaskState, Watched, console_app
from shuffledp.deploy.web.planner import planner_app
from shuffledp.deploy.web.survey import Survey, survey_app, together

FOLDER = Path(__file__).parent / "_static"
CHOICES = ("on foot", "by bike", "by bus or train", "by car")
SHARES = (0.18, 0.22, 0.35, 0.25)
NUM_USERS = 2_000
DAY = 86_400


def task_of(question: Any, text: str) -> sdp.deploy.Task:
    """Return a task that began four days ago."""
    return sdp.deploy.Task(
        info="Ways to work", shuffler_url="https://shuffler.example",
        analyzer_url="https://analyzer.example", start=int(time.time()) - 4 * DAY,
        epoch_seconds=DAY, num_epochs=30, min_batch=NUM_USERS, honest_ppm=900_000,
        short_batch="hold", epsilon="0.4", delta="1e-8", operator_key=bytes(32),
        asked=sdp.deploy.AskedTerms.of(question, "k-rr", 2.0, text),
    )  # fmt: skip


def record_of(task: sdp.deploy.Task, seed: int) -> dict[str, Any]:
    """Return the privacy record of a simulated batch."""
    asked, entropy = task.asked, sdp.Entropy.from_seed(seed)
    codes = np.repeat(np.arange(len(CHOICES)), [round(NUM_USERS * share) for share in SHARES])
    how: Any = {"num_users": NUM_USERS, "epsilon0": 2.0, "delta": 1e-8, "randomizer": "k-rr"}
    plan = sdp.plan(asked.question, **how)
    found = sdp.estimate(asked.randomizer.randomize(codes, entropy), plan)
    known = {"num_honest": round(0.9 * NUM_USERS), "budget": None}
    return found.to_json_dict() | {"parameters": known}


def tutorial_report(folder: Path) -> Path:
    """Write the report of docs/tutorial.md; return its path."""
    counts = {"never": 5_200, "once": 1_600, "often": 1_000, "refused": 200}
    plan = sdp.plan(sdp.Categories(list(counts)), num_users=8_000, epsilon=1.0, delta=1e-7)
    result = sdp.run(plan, [each for each, count in counts.items() for _ in range(count)])
    path = folder / "report.html"
    result.report(path, about=sdp.collection.About(title="Driving after drinking"))
    return path


def draw_all(browser: Browser, urls: dict[str, str], folder: Path) -> None:
    """Draw pages in every size and scheme."""
    for name, url in urls.items():
        for width in (320, 768, 1280):
            for scheme in ("light", "dark"):
                how: Any = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
                page = browser.new_page(**how)
                page.goto(url)
                page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
                page.close()


def main() -> None:
    """Draw the pictures of the documentation, or all pages into a folder."""
    ways = task_of(sdp.Categories(CHOICES), "How do you come to work?")
    ill = task_of(sdp.Categories(["yes", "no"]), "Have you worked while ill this year?")
    watched = Watched(ways, FOLDER, {})
    numbers = {
        "shuffler_waiting_reports": 1_460.0,
        'shuffler_reports_total{outcome="accepted"}': 7_460.0,
        'shuffler_reports_total{outcome="late"}': 3.0,
        "shuffler_keys_left_seconds": 26.0 * DAY,
        "shuffler_task_left_seconds": 26.0 * DAY,
    }
    records = {number: record_of(ways, number) for number in (1, 2, 3)}
    state = TaskState(task=ways, numbers=numbers, problems=(), records=records, refused={})
    watched._state, watched._until = state, float("inf")  # as if just asked
    listening, other = (http.listen("127.0.0.1", 0) for _ in range(2))
    survey = survey_app(Survey(tasks=(ill, ways), owner="Institute of Work, Springfield"))
    places = [(CONSOLE, console_app([watched])), ("/", survey)]
    ports = {listening.getsockname()[1]: places, other.getsockname()[1]: [("/", planner_app())]}
    server = http.make_server(together(ports))
    threading.Thread(target=server.run, args=([listening, other],), daemon=True).start()
    url = http.url_of(listening)
    of_task = f"{url}{CONSOLE}/{ways.task_id.hex()}"
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        if sys.argv[1:]:
            urls = {f"survey-{each}": f"{url}/?lang={each}" for each in ("en", "ar")}
            urls |= {"tasks": url + CONSOLE, "task": of_task, "planner": http.url_of(other)}
            draw_all(browser, urls, Path(sys.argv[1]))
            return
        page = browser.new_page(viewport={"width": 720, "height": 1020})
        page.goto(f"{url}/?lang=en")
        page.get_by_label("by bike").check()
        page.screenshot(path=FOLDER / "survey.png")
        page.goto(of_task)
        page.screenshot(path=FOLDER / "console.png")
        with tempfile.TemporaryDirectory() as folder:
            page.goto(tutorial_report(Path(folder)).as_uri())
            top: Any = {"x": 0, "y": 0, "width": 720, "height": 615}
            page.screenshot(path=FOLDER / "report.png", clip=top)
        browser.close()
    server.should_exit = True


if __name__ == "__main__":
    main()
