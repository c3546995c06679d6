"""SIGHUP: keys, lists, codes and quota are read again by a server that goes on running."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from deploy.roles import sent
from shuffledp.cli.main import TERMINATED, main
from shuffledp.deploy.messages import Answer, SignedKeys, new_codes, report_id_of, write_code
from shuffledp.deploy.servers.http_server import on_hangup
from shuffledp.deploy.servers.settings import read_task
from shuffledp.deploy.servers.watch import Watch

SHUFFLEDP = Path(sys.executable).with_name("shuffledp")


@contextmanager
def serving(role, folder):
    """Run a server; yield its URL and what makes it read its settings again."""
    command = [SHUFFLEDP, "serve", role, "--config", folder / f"{role}.toml"]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        task_id = read_task(folder / "task.bin").task_id
        url = f"{process.stdout.readline().strip()}/tasks/{task_id.hex()}"

        def reload():
            process.send_signal(signal.SIGHUP)
            for line in process.stderr:
                said = json.loads(line)
                if said["event"].startswith("reload"):
                    return said["event"], said.get("reason", "")
            raise AssertionError

        try:
            yield url, reload
        finally:
            process.terminate()
            process.stderr.read()
    assert process.returncode == TERMINATED


def test_each_server_of_a_process_reads_its_settings_again(capsys):
    used = []

    async def hang_up():
        both = [
            asyncio.ensure_future(on_hangup(lambda n=n: lambda: used.append(n), Watch("shuffler")))
            for n in range(2)
        ]
        await asyncio.sleep(0)
        signal.raise_signal(signal.SIGHUP)
        while len(used) < 2:
            await asyncio.sleep(0.01)
        for each in both:
            each.cancel()

    asyncio.run(hang_up())
    assert sorted(used) == [0, 1]
    assert capsys.readouterr().err.count('"reloaded"') == 2


@pytest.mark.slow
@pytest.mark.parametrize("role", ["shuffler", "analyzer"])
def test_lists_of_keys_are_read_again_and_what_is_wrong_changes_nothing(make, role):
    task, settings, _ = make(start=int(time.time()) - 60)
    folder = settings.task.parent

    def serial(url, name="keys"):
        owner = role if name == "keys" else "analyzer"
        answer = httpx.get(f"{url}/{name}", trust_env=False).content
        return SignedKeys.decode(answer, owner, task).serial

    with serving(role, folder) as (url, reload):
        before = serial(url)
        assert main(["keys", "rotate", str(folder)]) == 0
        assert serial(url) == before
        assert reload() == ("reloaded", "")
        if role == "analyzer":
            assert serial(url) == before + 1
        else:
            assert serial(url, "analyzer_keys") == 2
        after = httpx.get(f"{url}/keys", trust_env=False).content
        file = folder / role / "keys.bin"
        right = file.read_bytes()
        file.write_bytes(right[:-1] + bytes([right[-1] ^ 1]))
        event, reason = reload()
        assert event == "reload_failed"
        assert "signed" in reason
        assert httpx.get(f"{url}/keys", trust_env=False).content == after
        file.write_bytes(right)
        config = folder / f"{role}.toml"
        text = config.read_text()
        config.write_text(text.replace('store = "', 'store = "x'))
        assert reload() == (
            "reload_failed", "store changed: start the server again for that",
        )  # fmt: skip
        config.write_text(text)
        assert reload() == ("reloaded", "")


def test_codes_and_quota_are_read_again(make):
    task, settings, _ = make(start=int(time.time()) - 60)
    folder, codes = settings.task.parent, new_codes(3)
    config = folder / "shuffler.toml"
    config.write_text(config.read_text() + 'codes = "codes.txt"\nmax_epoch_reports = 1\n')
    (folder / "codes.txt").write_text(write_code(codes[0]))

    def post(url, code):
        report_id = int.from_bytes(report_id_of(code, task.task_id, 0))
        body = sent(task, settings, epoch=0, numbers=[report_id])
        answer = httpx.post(f"{url}/reports", content=body, trust_env=False)
        return answer.status_code, answer.content[:1]

    with serving("shuffler", folder) as (url, reload):
        assert post(url, codes[1]) == (200, bytes([Answer.NOT_ADMITTED]))
        assert post(url, codes[0]) == (200, bytes([Answer.ACCEPTED]))
        (folder / "codes.txt").write_text("\n".join(map(write_code, codes)))
        assert reload() == ("reloaded", "")
        assert post(url, codes[1])[0] == httpx.codes.TOO_MANY_REQUESTS
        config.write_text(config.read_text().replace("max_epoch_reports = 1", ""))
        assert reload() == ("reloaded", "")
        assert post(url, codes[1]) == (200, bytes([Answer.ACCEPTED]))
        (folder / "codes.txt").write_text("nonsense")
        assert reload()[0] == "reload_failed"
        assert post(url, codes[2]) == (200, bytes([Answer.ACCEPTED]))
