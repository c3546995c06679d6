"""Where roles keep what they have, in tests: a SQLite file, or a PostgreSQL server of our own."""

import atexit
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

ENGINES = ("sqlite", "postgresql")


@cache
def programs():
    """Return the folder of PostgreSQL's programs: without them, tests skip, but fail in CI."""
    for folder in [*Path("/usr/lib/postgresql").glob("*/bin"), shutil.which("initdb")]:
        if folder is not None:
            return folder if Path(folder).is_dir() else Path(folder).resolve().parent
    if os.environ.get("CI"):
        pytest.fail("no PostgreSQL on this machine, and continuous integration must have one")
    return pytest.skip("no PostgreSQL on this machine; `make postgresql` says what to do")


@cache
def server():
    """Start a server that lives as long as this process; return how it is reached."""
    folder = Path(tempfile.mkdtemp(prefix="sdp-pg-", dir="/tmp"))  # paths of sockets are short
    is_root = os.geteuid() == 0
    if is_root:  # it refuses to run as root
        shutil.chown(folder, "postgres")

    def run(program, *arguments):
        subprocess.run(
            [programs() / program, "-D", folder / "data", *arguments],
            check=True,
            cwd=folder,
            user="postgres" if is_root else None,
            stdout=subprocess.DEVNULL,
        )

    run("initdb", "-NAtrust", "--no-locale", "-Upostgres")
    # Its processes survive ours being killed, not the machine: it need not wait for the disk.
    options = f"-c fsync=off -c listen_addresses= -k {folder}"
    run("pg_ctl", "-w", "-l", folder / "log", "-o", options, "start")

    def stop():
        run("pg_ctl", "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder)

    atexit.register(stop)
    return f"host={folder} user=postgres"


@cache
def url_for(folder):
    """Return the URL of a database that is for what a folder is for."""
    import psycopg

    name = "t" + hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    with psycopg.connect(f"{server()} dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server()} dbname={name}"


def store_of(engine, folder):
    """Return the argument that has a role keep things there."""
    return url_for(folder) if engine == "postgresql" else None
