"""Pages of an application in headless Chromium: served by a thread, and what each page did."""

import threading
from contextlib import contextmanager
from pathlib import Path

from deploy.web.test_client import missing
from shuffledp.deploy.servers import http_server as http

AXE = Path(__file__).parents[2] / ".cache/node/node_modules/axe-core/axe.min.js"


@contextmanager
def serving(app):
    """Yield the URL of an application, served until the end."""
    listening = http.listen("127.0.0.1", 0)
    server = http.make_server(app)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    yield http.url_of(listening)
    server.should_exit = True
    thread.join()


@contextmanager
def visiting(browser):
    """Yield a function that opens an empty page, which notes its requests and complaints."""
    contexts = []

    def opened(width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        context.set_default_timeout(0.0)
        page = context.new_page()
        page.requests, page.complaints = [], []
        page.on("request", lambda request: page.requests.append((request.method, request.url)))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("dialog", lambda dialog: page.complaints.append(dialog.message))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        return page

    yield opened
    for context in contexts:
        context.close()


def violations(page):
    """Return the rules of axe-core that a page breaks."""
    if not AXE.exists():
        missing("axe-core")
    page.evaluate(AXE.read_text("utf-8"))
    return page.evaluate("axe.run().then((found) => found.violations.map((each) => each.id))")
