"""What a plan decides of a task, plans that devices cannot answer, and folders that exist."""

import pytest

import shuffledp as sdp
from collection.dummy_plans import bits_plan
from shuffledp.core.errors import DataError, ParameterError
from shuffledp.deploy.creating import create_task, first_round, promise_of, sealed_sizes
from shuffledp.deploy.messages import report_size

CHOICE = sdp.Categories(["yes", "no"])
SAID = {"epsilon": "1", "delta": "1e-6"}
HOW = {
    "listen": ("127.0.0.1:1", "127.0.0.1:3"),
    "grace_seconds": 60.0,
    "epoch_seconds": 60,
    "num_epochs": 3,
    "short_batch": "hold",
    "info": "test",
}


@pytest.fixture(scope="module")
def plan():
    return sdp.plan(CHOICE, num_users=500, epsilon=1.0, delta=1e-6)


def test_a_task_has_the_plans_law_and_promise(plan, tmp_path):
    made = create_task(tmp_path / "new", min_batch=500, **HOW, **promise_of(plan, **SAID))
    assert made.asked.randomizer.fingerprint == plan.randomizer.fingerprint
    assert (made.epsilon, made.delta, made.dummies) == ("1", "1e-6", None)
    assert (made.shuffler_url, made.analyzer_url) == ("http://127.0.0.1:1", "http://127.0.0.1:3")
    with pytest.raises(ParameterError, match="new exists: choose another folder"):
        create_task(tmp_path / "new", min_batch=500, **HOW, **promise_of(plan, **SAID))


def test_a_promise_that_fewer_reports_do_not_keep_is_refused(plan, tmp_path):
    with pytest.raises(DataError, match="and then this"):
        create_task(
            tmp_path / "new",
            min_batch=50,
            remedy="; and then this",
            **HOW,
            **promise_of(plan, **SAID),
        )
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("share", "millionths"), [(0.9, 900_000), (0.29, 290_000), (0.9999996, 999_999)]
)
def test_the_honest_share_is_rounded_down(plan, tmp_path, share, millionths):
    how = HOW | promise_of(plan, **SAID)
    made = create_task(tmp_path / "new", min_batch=5000, honest_fraction=share, **how)
    assert made.honest_ppm == millionths


@pytest.mark.parametrize("dummies", ["none", "users"])
@pytest.mark.parametrize("seal", ["x25519", "hybrid"])
def test_a_plan_knows_the_bytes_of_an_upload_of_its_task(dummies, seal):
    how = {"max_epsilon0": 6.0, "dummies": dummies} if dummies == "users" else {}
    plan = sdp.plan(CHOICE, num_users=5000, epsilon=0.5, delta=1e-6, **how)
    assert bool(plan.dummies) == (dummies == "users")
    asked = promise_of(plan, epsilon="0.5", delta="1e-6")
    keys = {"start": 0, "honest_ppm": 1_000_000, "operator_key": bytes(32), "seal": seal}
    urls = {"shuffler_url": "http://a", "analyzer_url": "http://b"}
    own = {name: each for name, each in HOW.items() if name not in {"listen", "grace_seconds"}}
    task = sdp.deploy.Task(min_batch=5000, **own, **keys, **urls, **asked)
    report = task.asked.codec.encode(task.asked.randomizer.randomize([0], sdp.Entropy.from_seed(1)))
    assert len(report) == 1
    assert sealed_sizes(plan)[seal] == report_size(*task.sizes)


def test_of_a_search_each_device_sends_in_every_round():
    asked = sdp.HeavyHitters(max_bytes=2, most=4, bits=4)
    plan = sdp.plan(asked, num_users=5000, epsilon=1.0, delta=1e-6)
    terms = promise_of(plan, **SAID)["asked"]
    assert terms.codec.num_report_bytes == 2 * plan.randomizer.num_report_bytes
    assert sealed_sizes(plan)["x25519"] == report_size(terms.codec.num_report_bytes)


@pytest.mark.slow
def test_plans_that_devices_cannot_answer_are_refused():
    again = sdp.plan(CHOICE, num_users=500, epsilon=1.0, delta=1e-6, rounds=4)
    with pytest.raises(DataError, match="4 rounds about the same people"):
        promise_of(again, **SAID)
    with pytest.raises(DataError, match="several messages"):
        promise_of(bits_plan(), **SAID)
    assert sealed_sizes(again) == sealed_sizes(bits_plan()) == {}


def test_a_search_begins_with_a_key_of_its_own():
    asked = sdp.HeavyHitters(max_bytes=2, most=4, bits=4)
    keys = {first_round(asked, is_for_all=False).search.key for _ in range(3)}
    assert len(keys) == 3
    assert first_round(CHOICE, is_for_all=False) is CHOICE
