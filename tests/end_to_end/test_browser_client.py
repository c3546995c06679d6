"""The JavaScript client in Chromium: the laws of its reports, and its way to the servers."""

import asyncio
import json
import mimetypes
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from deploy.make_vectors import HYBRID, SEALING, SIGNING, make_task, public
from deploy.roles import SMALL, shuffler_for
from shuffledp.core.entropy import Entropy
from shuffledp.deploy import messages as m
from shuffledp.deploy.asked_terms import AskedTerms
from shuffledp.deploy.messages import write_code
from shuffledp.deploy.shuffler_server import ShufflerWatch, shuffler_app
from shuffledp.deploy.wire import open_seal

pytestmark = pytest.mark.browser

# Probability that a correct client fails a test of its law; there is one for each randomizer.
FALSE_POSITIVE_RATE = 1e-9
NUM_REPORTS = 100_000
LEAST_EXPECTED = 20

CLIENT = Path(__file__).parents[2] / "src/shuffledp/deploy/web/client"
VECTORS = Path(__file__).parents[1] / "vectors/reports.json"
ENTRIES = {}
for each in json.loads(VECTORS.read_text()):
    if each["report_bytes"] <= 3 and each["task"]["epsilon0"] >= 0.5:
        ENTRIES.setdefault(each["task"]["randomizer"], each)
PAGE = "https://survey.example"


@pytest.fixture
def page(browser):
    """Return a page of another origin than the servers', whose files are the client's."""
    with browser.new_context() as context:
        context.route(f"{PAGE}/**", answer_with_file)
        page = context.new_page()
        page.goto(f"{PAGE}/")
        yield page


def answer_with_file(route):
    """Give a file of the client, or an empty page."""
    path = CLIENT / route.request.url.removeprefix(f"{PAGE}/")
    if not path.is_file():
        return route.fulfill(body="<!doctype html><title>survey</title>", content_type="text/html")
    kind = mimetypes.guess_type(path.name)[0] or "text/javascript"
    return route.fulfill(body=path.read_bytes(), content_type=kind)


# ---------------------------------------------------------------- laws
DRAW = """async ([asked, written, answer, number]) => {
  const { checkedLaw, randomize } = await import("/src/randomize.js");
  const { toHex } = await import("/src/wire.js");
  const law = await checkedLaw(asked, written);
  const counts = {};
  for (let at = 0; at < number; at += 1) {
    const report = toHex(randomize(asked, law, answer));
    counts[report] = (counts[report] ?? 0) + 1;
  }
  return counts;
}"""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_reports_drawn_in_the_browser_have_the_law_of_the_package(page, name):
    entry = ENTRIES[name]
    asked, answer = AskedTerms.from_json_dict(entry["task"]), entry["draws"][-1]["answer"]
    drawn = page.evaluate(DRAW, [entry["task"], json.loads(asked.integers), answer, NUM_REPORTS])
    assert sum(drawn.values()) == NUM_REPORTS
    values = np.array([answer] * NUM_REPORTS)
    reports = asked.randomizer.randomize(values, Entropy.from_seed(35))
    expected = Counter(report.hex() for report in asked.codec.encode(reports))
    assert p_value(drawn, expected) > FALSE_POSITIVE_RATE


@pytest.mark.slow
def test_another_answer_has_another_law(page):
    """Negative control: the test above finds reports on another answer."""
    entry = ENTRIES["k-rr"]
    asked = AskedTerms.from_json_dict(entry["task"])
    written = json.loads(asked.integers)
    one, other = (page.evaluate(DRAW, [entry["task"], written, at, 2_000]) for at in (0, 1))
    assert p_value(one, other) < FALSE_POSITIVE_RATE


@pytest.mark.slow
def test_reports_on_a_number_have_the_exact_law_of_the_piecewise_mechanism(page):
    """Its 678 outputs in 40 bins, cut where the law jumps; the law of another value is refused."""
    entry = ENTRIES["piecewise"]
    asked = AskedTerms.from_json_dict(entry["task"])
    answer, other = -0.45, 0.25
    drawn = page.evaluate(DRAW, [entry["task"], json.loads(asked.integers), answer, NUM_REPORTS])
    counts = np.zeros(entry["law"]["num_steps"] + entry["law"]["window"])
    for report, number in drawn.items():
        counts[int.from_bytes(bytes.fromhex(report), "little")] += number
    assert counts.sum() == NUM_REPORTS
    right, wrong = (piecewise_law(entry, value) for value in (answer, other))
    jumps = np.flatnonzero(np.diff(right)) + 1
    cuts = np.unique(np.concatenate([np.linspace(0, len(counts), 41, dtype=int)[:-1], jumps]))
    observed, expected, impossible = (
        np.add.reduceat(each, cuts) for each in (counts, NUM_REPORTS * right, NUM_REPORTS * wrong)
    )
    assert expected.min() > LEAST_EXPECTED / 2
    assert chisquare(observed, expected).pvalue > FALSE_POSITIVE_RATE
    assert chisquare(observed, impossible).pvalue < FALSE_POSITIVE_RATE


def piecewise_law(entry, value):
    """Return the probability of each output, by the specification's two lines."""
    question, law = entry["task"]["question"], entry["law"]
    num_steps, window, threshold = law["num_steps"], law["window"], int(law["threshold"], 16)
    inside = (2**64 - num_steps * threshold) // window
    position = (value - question["low"]) / (question["high"] - question["low"]) * num_steps
    below = int(position)
    found = np.zeros(num_steps + window)
    for point, share in ((below, 1 - (position - below)), (below + 1, position - below)):
        if share:
            weights = np.full(len(found), threshold, float)
            weights[point : point + window] = inside
            found += share * weights / 2**64
    return found


def p_value(one, other):
    """Return the p-value of two samples' homogeneity, rare reports taken together."""
    table = np.array([[counts.get(each, 0) for each in {*one, *other}] for counts in (one, other)])
    is_rare = table.sum(axis=0) < LEAST_EXPECTED
    table = np.column_stack([table[:, ~is_rare], table[:, is_rare].sum(axis=1)])
    return chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


# ---------------------------------------------------------------- from an answer to the shuffler
class Servers:
    """A shuffler, the lists of keys of both servers, and what was asked of them."""

    def __init__(self, folder, **changes):
        now = int(time.time())
        self.task = make_task(**SMALL, start=now - 100, **changes)
        self.keys = KEYS[self.task.seal]
        outer, self.inner = (
            m.SealKey(number=number, public_key=public(self.keys[role]))
            for number, role in enumerate(("shuffler", "analyzer"))
        )
        self.lists = {
            "shuffler": self.signed("shuffler", outer),
            "analyzer": self.signed("analyzer", self.inner),
        }
        self.asked, self.bodies, self.failures = [], [], []
        self.copies = None  # what the shuffler says of the analyzer's keys, if it is not the same
        # In a thread of its own: this one runs Chromium's event loop.
        self.thread, self.runner = ThreadPoolExecutor(1), asyncio.Runner()
        self.thread.submit(self.start, folder).result()

    def start(self, folder):
        """Start the shuffler."""
        self.shuffler = shuffler_for(self.task, folder)
        app = shuffler_app(
            self.shuffler,
            lists={"keys": self.lists["shuffler"], "analyzer_keys": self.lists["analyzer"]},
            analyzer_key=public(SIGNING["analyzer"]),
            watch=ShufflerWatch(self.shuffler),
        )
        self.lifespan = app.router.lifespan_context(app)
        self.runner.run(self.lifespan.__aenter__())
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url=self.task.shuffler_url
        )

    def stop(self):
        """End the shuffler."""
        self.runner.run(self.lifespan.__aexit__(None, None, None))
        self.shuffler.close()
        self.runner.close()

    def signed(self, role, *keys, serial=1, seconds=1_000):
        """Return a list of keys of one of the servers."""
        listed = m.SignedKeys(serial=serial, not_after=int(time.time()) + seconds, keys=keys)
        return listed.signed(SIGNING["operator"], role, self.task).encode()

    @property
    def url(self):
        """Return the address of the task."""
        return f"{self.task.shuffler_url}/tasks/{self.task.task_id.hex()}"

    def answer(self, route):
        """Answer a request of the page as the servers do, or fail as the test wants."""
        request = route.request
        self.asked.append(f"{request.method} {request.url.rpartition('/')[2]}")
        if self.failures and request.method == "POST":
            self.bodies.append(request.post_data_buffer)
            failure = self.failures.pop(0)
            if failure == "silence":
                return None
            return route.abort() if failure is None else route.fulfill(**failure)
        if request.url.endswith("/analyzer_keys") and self.copies is not None:
            return route.fulfill(body=self.copies, headers=ANY_PAGE)
        if request.url.startswith(self.task.analyzer_url):
            return route.fulfill(body=self.lists["analyzer"], headers=ANY_PAGE)
        if request.method == "POST":
            self.bodies.append(request.post_data_buffer)
        asking = self.http.request(request.method, request.url, content=request.post_data_buffer)
        said = self.thread.submit(self.runner.run, asking).result()
        return route.fulfill(status=said.status_code, body=said.content, headers=dict(said.headers))


KEYS = {"x25519": SEALING, "hybrid": HYBRID}
ANY_PAGE = {"access-control-allow-origin": "*"}
REPORT = """async ([url, value, options]) => {
  const client = await import("/shuffledp.js");
  const states = [];
  const onState = (state, detail) => states.push([state, detail.problem ?? ""]);
  try {
    return { ...(await client.report(url, value, { onState, ...options })), states };
  } catch (error) {
    return { code: error.code, message: error.message, states };
  }
}"""


@pytest.fixture
def servers(request, tmp_path, page):
    servers = Servers(tmp_path, seal=getattr(request, "param", "x25519"))
    page.context.route("https://*er.example/**", servers.answer)
    yield servers
    servers.thread.submit(servers.stop).result()
    servers.thread.shutdown()


def opened(servers, body):
    """Return the randomized report in an upload."""
    (report,) = m.decode_upload(body, servers.task)
    task_id = servers.task.task_id
    info = m.outer_info(task_id, report.epoch, report.report_id)
    record = open_seal(report.sealed, servers.keys["shuffler"], info)
    return report.report_id.hex(), open_seal(
        record[1:], servers.keys["analyzer"], m.inner_info(task_id)
    ).hex()


@pytest.mark.parametrize("servers", sorted(KEYS), indirect=True)
def test_a_report_arrives_once_and_the_page_asks_for_task_keys_and_law_only(page, servers):
    found = page.evaluate(REPORT, [servers.url, "yes", {}])
    assert found["answer"] == "accepted", found
    assert [state for state, _ in found["states"]] == ["checked", "kept", "sending"]
    asked = [f"GET {servers.task.task_id.hex()}", "GET law"]
    assert servers.asked[:2] == asked
    assert sorted(servers.asked[2:]) == [
        "GET analyzer_keys",
        "GET keys",
        "GET keys",
        "POST reports",
    ]
    assert opened(servers, servers.bodies[0]) == (found["id"], found["randomized"])
    again = page.evaluate(REPORT, [servers.url, "no", {}])
    assert (again["id"], again["randomized"]) == (found["id"], found["randomized"])
    assert len(servers.bodies) == 1
    kept = page.evaluate('async (url) => (await import("/shuffledp.js")).kept(url)', servers.url)
    assert kept == {name: found[name] for name in ("id", "randomized", "epoch", "answer")}


def test_what_is_lost_on_the_way_is_sent_again_sealed_anew(page, servers):
    servers.failures = [None, {"status": 503, "headers": ANY_PAGE}]
    found = page.evaluate(REPORT, [servers.url, "yes", {}])
    assert found["answer"] == "accepted", found
    reports = {opened(servers, body) for body in servers.bodies}
    assert reports == {(found["id"], found["randomized"])}
    assert len(set(servers.bodies)) == len(servers.bodies) == 3


def test_a_page_closed_between_keeping_and_sending_sends_the_same_later(page, servers):
    servers.failures = [None] * 9
    lost = page.evaluate(REPORT, [servers.url, "yes", {"patienceSeconds": 0}])
    assert lost["code"] == "offline"
    assert "it sends the same report" in lost["message"]
    servers.failures = []
    page.reload()
    found = page.evaluate(REPORT, [servers.url, None, {}])
    assert found["answer"] == "accepted", found
    assert len({opened(servers, body) for body in servers.bodies}) == 1


def test_a_server_that_never_answers_is_left_in_time(page, servers):
    page.evaluate("""() => {
      const { timeout } = AbortSignal;
      AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms / 100);
    }""")
    servers.failures = ["silence"]
    found = page.evaluate(REPORT, [servers.url, "yes", {"patienceSeconds": 0}])
    assert found["code"] == "offline"


def test_a_report_that_may_have_arrived_under_one_code_keeps_its_id_under_the_next(page, servers):
    refused = {"status": 200, "body": bytes([m.Answer.NOT_ADMITTED]), "headers": ANY_PAGE}
    servers.failures = [refused, None]
    outcomes = []
    for number in range(3):
        options = {"code": write_code(bytes([number] * 16)), "patienceSeconds": 0}
        found = page.evaluate(REPORT, [servers.url, "yes", options])
        outcomes.append(found.get("code") or found["answer"])
    assert outcomes == ["not-admitted", "offline", "accepted"]
    first, *others = (opened(servers, body) for body in servers.bodies)
    assert others[0] == others[1]
    assert first[0] != others[0][0]
    assert first[1] == others[0][1]


def test_two_tabs_send_one_report(page, servers):
    other = page.context.new_page()
    other.goto(f"{PAGE}/")
    for each, value in ((page, "yes"), (other, "no")):
        each.evaluate(
            f"(given) => {{ window.found = ({REPORT})(given) }}", [servers.url, value, {}]
        )
    one, two = (each.evaluate("() => window.found") for each in (page, other))
    assert one["answer"] == two["answer"] == "accepted", (one, two)
    assert one["id"] == two["id"]
    assert len(servers.bodies) == 1


@pytest.mark.parametrize(
    ("value", "options", "code"),
    [
        ("perhaps", {}, "value"),
        ("", {}, "value"),
        ("yes", {"maxEpsilon0": 1}, "limits"),
        ("yes", {"leastBatch": 10**9}, "limits"),
    ],
)
def test_nothing_is_sent_of_what_is_wrong(page, servers, value, options, code):
    found = page.evaluate(REPORT, [servers.url, value, options])
    assert found["code"] == code
    assert servers.bodies == []


def test_another_task_than_the_address_names_is_refused(page, servers):
    other = servers.url[:-1] + ("0" if servers.url[-1] != "0" else "1")
    task = servers.task.encode()
    page.context.route(other, lambda route: route.fulfill(body=task, headers=ANY_PAGE))
    assert page.evaluate(REPORT, [other, "yes", {}])["code"] == "changed"


def test_a_law_that_cannot_be_read_is_refused(page, servers):
    page.context.route("**/law", lambda route: route.fulfill(body="no law", headers=ANY_PAGE))
    assert page.evaluate(REPORT, [servers.url, "yes", {}])["code"] == "forged"
    assert servers.bodies == []


def test_keys_that_are_over_old_or_different_are_refused(page, servers):
    def answered(at_shuffler, at_analyzer, failures=()):
        """Return code and message with these lists of the analyzer's keys at the servers."""
        servers.copies, servers.lists["analyzer"] = at_shuffler, at_analyzer
        servers.failures = list(failures)
        found = page.evaluate(REPORT, [servers.url, "yes", {"patienceSeconds": 0}])
        return found.get("code") or found["answer"], found.get("message", "")

    first, second, over = (
        servers.signed("analyzer", servers.inner, serial=serial, seconds=seconds)
        for serial, seconds in ((1, 1000), (2, 1000), (3, -10))
    )
    forged = second[:-1] + bytes([second[-1] ^ 1])
    assert answered(first, second)[0] == "keys"
    assert answered(forged, forged)[0] == "forged"
    assert "expired by this device's clock" in answered(over, over)[1]
    assert servers.bodies == []
    assert answered(second, second, [None])[0] == "offline"
    assert "an old list of the analyzer's" in answered(first, first)[1]
    assert len(servers.bodies) == 1
    assert answered(second, second)[0] == "accepted"


@pytest.mark.parametrize(
    ("hours", "code"), [(-24, "early"), (-1, "early"), (1, "keys"), (24 * 31, "over")]
)
def test_a_wrong_clock_is_said(page, servers, hours, code):
    page.evaluate(f"() => {{ const now = Date.now; Date.now = () => now() + {hours} * 3600e3 }}")
    found = page.evaluate(REPORT, [servers.url, "yes", {}])
    assert found["code"] == code
    assert code == "over" or "heck this device's clock" in found["message"]
    assert servers.bodies == []


# As in a browser that signs, but knows no X25519.
NO_X25519 = """
for (const name of ["importKey", "generateKey"]) {
  const known = subtle[name].bind(subtle);
  subtle[name] = async (...given) => {
    const isNew = given.some((each) => (each?.name ?? each) === "X25519");
    return isNew ? no("NotSupportedError") : known(...given);
  };
}
"""


@pytest.mark.parametrize(
    ("broken", "code", "said"),
    [
        (
            "indexedDB.open = () => no('SecurityError')",
            "storage",
            "Open the page in an ordinary window",
        ),
        ("subtle.importKey = async () => no('NotSupportedError')", "browser", "it has no Ed25519"),
        (NO_X25519, "browser", "This browser cannot encrypt the report"),
        (
            "indexedDB.open = () => no('UnknownError')",
            "storage",
            "Open the page in an ordinary window",
        ),
    ],
)
def test_a_browser_without_what_is_needed_is_told_in_a_sentence(page, servers, broken, code, said):
    page.evaluate(
        """(broken) => {
          const no = (name) => { throw new DOMException("no", name); };
          const { subtle } = crypto;
          eval(broken);
        }""",
        broken,
    )
    found = page.evaluate(REPORT, [servers.url, "yes", {}])
    assert found["code"] == code, found
    assert said in found["message"]
    assert servers.bodies == []
