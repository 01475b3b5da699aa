"""Files that are whole or not there: the files on the disk, and their order."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ras_agent.contracts.errors import IngestError, StoreError
from ras_agent.tools.store.durable import (
    replace_file,
    sync_file,
    sync_folder,
    writer_lock,
    writing,
)
from tests.messages import says


def test_a_file_is_on_the_disk_before_it_takes_its_name_and_its_name_before_the_call_ends(
    tmp_path: Path, disk_order: list[str]
) -> None:
    replace_file(tmp_path / "a.json", b"new")
    assert disk_order == ["a.json.new", "a.json replaced", "."]


def test_all_of_the_content_is_there_when_it_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bytes] = []
    monkeypatch.setattr(
        os,
        "fsync",
        lambda handle: found.extend(
            path.read_bytes() for path in tmp_path.glob("*.new")
        ),
    )
    replace_file(tmp_path / "a.json", b"new")
    assert found == [b"new"]
    assert (tmp_path / "a.json").read_bytes() == b"new"


def test_a_file_and_a_folder_are_synced_by_name(
    tmp_path: Path, disk_order: list[str]
) -> None:
    (tmp_path / "a.npy").write_bytes(b"1")
    sync_file(tmp_path / "a.npy")
    sync_folder(tmp_path)
    assert disk_order == ["a.npy", "."]


@pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="open files are not listed there"
)
def test_a_synced_folder_is_not_left_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        sync_folder(tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


# another process: locks of one process do not part its own threads everywhere
ENTER = """
import fcntl, sys
with open(sys.argv[1], "a+b") as file:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("locked")
    else:
        print("free")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="asks by flock")
def test_one_process_at_a_time_is_inside_a_writers_block(tmp_path: Path) -> None:
    def other() -> str:
        command = [sys.executable, "-c", ENTER, str(tmp_path / "writer.lock")]
        return subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout.strip()

    with writer_lock(tmp_path / "writer.lock"):
        assert other() == "locked"
    assert other() == "free"


@pytest.mark.skipif(sys.platform == "win32", reason="asks by flock")
def test_a_writer_that_does_not_wait_is_told_that_another_writes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "writer.lock"
    with (
        writer_lock(path),
        pytest.raises(BlockingIOError),
        writer_lock(path, wait=False),
    ):
        pass
    with writer_lock(path, wait=False):
        pass


def test_a_writer_waits_for_the_other_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    ways: list[int] = []
    monkeypatch.setattr(fcntl, "flock", lambda file, way: ways.append(way))
    with writer_lock(tmp_path / "writer.lock"):
        pass
    assert ways == [fcntl.LOCK_EX, fcntl.LOCK_UN]


@pytest.mark.parametrize("made_anew", [True, False])
def test_a_writer_whose_lock_file_was_deleted_while_it_waited_locks_the_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_anew: bool
) -> None:
    fcntl = pytest.importorskip("fcntl")
    path, flock = tmp_path / "writer.lock", fcntl.flock
    locked: list[int] = []
    unlocked: list[int] = []

    def first_deleted(file: object, way: int) -> None:
        number = os.fstat(file.fileno()).st_ino  # type: ignore[attr-defined]
        (unlocked if way == fcntl.LOCK_UN else locked).append(number)
        if len(locked) == 1 and path.exists() and way != fcntl.LOCK_UN:
            # keeps its number, which a new file may otherwise get
            path.rename(tmp_path / "deleted")
            if made_anew:
                path.touch()
        flock(file, way)

    monkeypatch.setattr(fcntl, "flock", first_deleted)
    with writer_lock(path):
        assert len(locked) == 2
        assert locked[1] == path.stat().st_ino != locked[0]
        assert unlocked == locked[:1]
    assert unlocked == locked


def test_a_lock_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "writer.lock").mkdir()
    told = r"writer\.lock cannot be written \(Is a directory\): delete it"
    with pytest.raises(IngestError, match=told), writer_lock(tmp_path / "writer.lock"):
        pass


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError("68157 requested and 57216 written"),
    ],
)
def test_a_full_disk_is_named_with_the_file(tmp_path: Path, error: OSError) -> None:
    told = r"rows-1\.npy could not be written, the disk is full: make room and run the same command again"
    with pytest.raises(StoreError, match=told), writing(tmp_path / "rows-1.npy"):
        raise error


def test_a_file_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "index.json").mkdir()
    with pytest.raises(
        StoreError,
        match=says(
            "index.json", "could not be written", "Is a directory", "make it a file"
        ),
    ):
        replace_file(tmp_path / "index.json", b"{}")
