"""Files for containers: what is mounted is made, what is proxied listens, extras suffice."""

import re
import shutil
import ssl
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest

from shuffledp.cli.main import main
from shuffledp.deploy.servers.settings import AnalyzerSettings, ShufflerSettings, read_task

REPOSITORY = Path(__file__).parents[3]
OPERATIONS = REPOSITORY / "docs" / "operations"
COMPOSE, NGINX, CONTAINER = (
    (OPERATIONS / name).read_text() for name in ("compose.yml", "nginx.conf", "Containerfile")
)


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """A folder as the runbook's commands leave it."""
    if shutil.which("openssl") is None:
        pytest.skip("prepare.sh needs openssl")
    monkeypatch.chdir(tmp_path)
    guide = (REPOSITORY / "docs" / "guides" / "runbook.md").read_text()
    block = re.search(r"```text\n(shuffledp task create.*?)```", guide, re.DOTALL)[1]
    create, prepare = block.replace("\\\n", "").splitlines()[:2]
    assert main(create.split()[1:]) == 0
    shell, script, task = prepare.split()
    subprocess.run([shell, OPERATIONS / script, task], check=True, capture_output=True)
    return tmp_path


def test_what_is_mounted_is_there_and_private(prepared):
    mounts = re.findall(r'"\./([a-z./]+):(/[a-z./]+)', COMPOSE)
    assert [each for each, _ in mounts] == [
        "shuffler", "analyzer", "tls/ca.crt", "nginx.conf", "tls",
    ]  # fmt: skip
    for path, _ in mounts:
        assert (prepared / path).exists() or (OPERATIONS / path).exists()
    assert (prepared / re.search(r"file: \./([a-z]+)", COMPOSE)[1]).exists()
    readable = {
        path.relative_to(prepared).as_posix()
        for path in prepared.rglob("*")
        if path.is_file() and "task" not in path.parts and path.stat().st_mode & stat.S_IROTH
    }
    assert readable == {"tls/ca.crt"}
    assert not list((prepared / "analyzer").rglob("signing.key"))  # who runs one has no other keys
    assert not list((prepared / "shuffler").rglob("identity.key"))
    context = ssl.create_default_context(cafile=prepared / "tls" / "ca.crt")
    assert context.get_ca_certs()


def test_servers_listen_where_the_proxy_asks_and_their_settings_are_sound(prepared):
    names = dict(re.findall(r"server (shuffler|analyzer):(\d+)", NGINX))
    for role, kind in (("shuffler", ShufflerSettings), ("analyzer", AnalyzerSettings)):
        settings = kind.read(prepared / role / f"{role}.toml")
        assert settings.listen == f"0.0.0.0:{names[role]}"  # not the loopback address
        task = read_task(settings.task)
        assert f"https://{role}.example" == getattr(task, f"{role}_url")
        assert f"server_name {role}.example;" in NGINX
        assert settings.lists()
        assert f"serve {role} --config /data/{role}.toml" in COMPOSE
    assert (
        "passfile=/data/pass" in ShufflerSettings.read(prepared / "shuffler/shuffler.toml").database
    )


def test_the_image_has_the_extras_that_the_settings_need():
    extras = set(re.search(r"\[([a-z0-9,]+)\]", CONTAINER)[1].split(","))
    known = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert extras == {"service", "postgresql", "s3"} <= set(known["optional-dependencies"])
    for path in re.findall(r"COPY (.+) /", CONTAINER):
        for each in path.split():
            assert (REPOSITORY / each).exists()


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")
def test_nginx_reads_its_file(prepared):
    text = NGINX.replace("/etc/nginx/tls", str(prepared / "tls"))
    text = re.sub(r"server (shuffler|analyzer):", "server 127.0.0.1:", text)
    (prepared / "nginx.conf").write_text(text)
    subprocess.run(["nginx", "-t", "-c", prepared / "nginx.conf", "-p", prepared], check=True)
