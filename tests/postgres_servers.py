"""A real PostgreSQL server for a session of tests, and addresses of indexes there.

    python -m tests.postgres_servers COMMAND...

runs a command with the address of such a server in RAS_AGENT_BENCH_POSTGRES, or without one where there is no server.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path

import pytest

from ras_agent.config.address import Address

_numbers = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a private server on loopback, stopped and removed afterwards."""
    with postgres_server() as url:
        yield url


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run a private server for the block, and yield its URL. Skips the test where no server can run."""
    initdb = _initdb()
    if initdb is None:
        pytest.skip("no PostgreSQL server binaries: apt-get install postgresql")
    binaries = initdb.parent
    owner: dict[str, int] = {}
    if os.getuid() == 0:  # initdb refuses root
        names = {user.pw_name: user for user in pwd.getpwall()}
        user = names.get("postgres") or names["nobody"]
        owner = {"user": user.pw_uid, "group": user.pw_gid}
    with (
        tempfile.TemporaryDirectory(prefix="ras-agent-postgres-") as home,
        socket.socket() as free,
    ):
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


def _initdb() -> Path | None:
    """Return the newest server's program that makes a database, if there is one."""
    programs = [
        *sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")),
        Path(shutil.which("initdb") or "none"),
    ]
    return next(
        (path for path in programs[-2::-1] + programs[-1:] if path.is_file()), None
    )


def main(command: Sequence[str]) -> int:
    """Run a command next to a private server, and return its exit code."""
    with postgres_server() if _initdb() else nullcontext("") as url:
        return subprocess.run(
            command, env={**os.environ, "RAS_AGENT_BENCH_POSTGRES": url}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
