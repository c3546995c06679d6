"""The logger hears what long work does, is silent by default, and never hears what people said."""

import logging
import subprocess
import sys

import numpy as np

import shuffledp as sdp

LABELS = ["seropositive", "seronegative"]
WORK = f"""
import shuffledp as sdp
asked = sdp.plan(sdp.Categories({LABELS}), num_users=1000, epsilon0=1.0, delta=1e-6)
sdp.run(asked, {LABELS} * 500)
"""


def test_it_is_silent_unless_logging_is_set_up():
    shown = "import logging, sys; print('now', file=sys.stderr); logging.basicConfig(level='INFO')"
    twice = f"{WORK}{shown}{WORK}"
    outcome = subprocess.run([sys.executable, "-c", twice], capture_output=True, check=True)
    silent, _, told = outcome.stderr.partition(b"now")
    assert outcome.stdout == silent == b""
    assert b"INFO:shuffledp:run: 1000 users" in told


def test_collections_and_computations_are_told(caplog):
    with caplog.at_level("DEBUG", "shuffledp"):
        asked = sdp.plan(sdp.Categories(LABELS), num_users=1000, epsilon=1.0, delta=1e-6)
        result = sdp.run(asked, LABELS * 500, seed=8675309)
        drawn = asked.randomizer.randomize(np.array([0, 1] * 500), sdp.Entropy.from_seed(1))
        sdp.estimate(drawn, asked)
        sdp.account(epsilon0=1.0, num_users=1000, delta=1e-6, rounds=3)
    said = {level: [] for level in ("INFO", "DEBUG")}
    for each in caplog.records:
        said[each.levelname].append(each.getMessage())
    law = f"{asked.randomizer.name} with epsilon0 = {asked.randomizer.epsilon0:.6g}"
    for what, line in zip(("plan", "simulation", "estimate"), said["INFO"], strict=True):
        assert line.startswith(f"{what}: 1000 users, {law}, uniform shuffler: epsilon about ")
    assert "randomizing: 1000 of 1000" in said["DEBUG"]
    assert any(line.startswith(f"{asked.randomizer.name}: epsilon0 = ") for line in said["DEBUG"])
    assert any(line.startswith("3 rounds, delta = 1e-06: epsilon about ") for line in said["DEBUG"])
    told = caplog.text
    secrets = [*LABELS, "8675309", *(f"{each:.5f}" for each in result.estimates.count)]
    assert not [secret for secret in secrets if secret in told]


def test_a_listener_takes_the_place_of_the_log(caplog):
    asked = sdp.plan(sdp.Categories(LABELS), num_users=10, epsilon0=1.0, delta=1e-6)
    heard = []
    with caplog.at_level("DEBUG", "shuffledp"):
        sdp.run(asked, LABELS * 5, on_progress=lambda *each: heard.append(each))
    assert ("randomizing", 10, 10) in heard
    assert not [line for line in caplog.messages if line.startswith("randomizing")]


def test_the_logger_has_a_handler_that_says_nothing():
    (handler,) = logging.getLogger("shuffledp").handlers
    assert isinstance(handler, logging.NullHandler)
