"""A real PostgreSQL server for a session of tests, and addresses of indexes there."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from ras_agent.address import Address

_numbers = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a private server on loopback, stopped and removed afterwards."""
    with postgres_server() as url:
        yield url


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run a private server for the block, and yield its URL. Skips the test where there is none to run."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(shutil.which("initdb") or "none")]
    binaries = found[-1].parent
    if not found[-1].is_file():
        pytest.skip("no PostgreSQL server binaries: apt-get install postgresql")
    owner: dict[str, int] = {}
    if os.getuid() == 0:  # initdb refuses root
        names = {user.pw_name: user for user in pwd.getpwall()}
        user = names.get("postgres") or names["nobody"]
        owner = {"user": user.pw_uid, "group": user.pw_gid}
    with tempfile.TemporaryDirectory(prefix="ras-agent-postgres-") as home, socket.socket() as free:
        if owner:
            os.chown(home, owner["user"], owner["group"])
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()

        def run(tool: str, *arguments: str) -> None:
            subprocess.run(
                [binaries / tool, "-D", f"{home}/data", *arguments],
                **{"check": True, "stdout": subprocess.DEVNULL, "cwd": home, **owner},
            )

        run("initdb", "-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync")
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories='' -c fsync=off"
        run("pg_ctl", "-w", "-l", f"{home}/log", "-o", options, "start")
        try:
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")


@pytest.fixture
def address(postgres: str) -> Address:
    """An address at which there is no index yet."""
    return Address(postgres, f"test_{next(_numbers)}")
