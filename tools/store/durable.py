"""Writes files that are complete or missing, even if the machine stops halfway."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ras_agent.contracts.errors import IngestError, StoreError


def replace_file(path: Path, content: bytes) -> None:
    """Replace the content of `path` in one step: readers see the old file or the new one."""
    fresh = path.with_name(f"{path.name}.new")
    with writing(path):
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        sync_folder(path.parent)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Return a context manager that turns the errors of a full or read-only disk into a StoreError that names the file
    `path`.
    """
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        # numpy reports only how many numbers were written, not why the rest were not
        full = error.errno in (errno.ENOSPC, errno.EDQUOT) or "requested and" in str(
            error
        )
        remedy = "make room" if full else "make it a file that can be written"
        raise StoreError(
            f"{path} could not be written, {'the disk is full' if full else error.strerror or error}: {remedy} and run "
            "the same command again"
        ) from error


def sync_file(path: Path) -> None:
    """Wait until all bytes of `path` are on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names of new files in `folder` are on the disk."""
    if sys.platform == "win32":  # folders cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def writer_lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Return a context manager that locks the file `path` for this process, and waits for others. A crash also
    releases it.

    Raises IngestError if the file cannot be written.

    Args:
        wait: whether to wait until others release it; if not, BlockingIOError is raised while another process has
            it.
    """
    while True:
        try:
            file = path.open("a+b")
        except OSError as error:
            raise IngestError(
                f"{path} cannot be written ({error.strerror}): delete it, or make it writable"
            ) from error
        with file:
            _lock(file, wait)
            try:
                # if its last holder deleted the file, other processes would lock a new one
                if not _is_at(file, path):
                    continue
                yield
                return
            finally:
                _unlock(file)


def _is_at(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes], wait: bool) -> None:
        while True:
            file.seek(0)
            try:
                msvcrt.locking(
                    file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1
                )
                return
            except OSError as error:  # LK_LOCK gives up after ten seconds
                if not wait:
                    raise BlockingIOError(*error.args) from error

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: IO[bytes], wait: bool) -> None:
        how = fcntl.LOCK_EX
        if not wait:
            how |= fcntl.LOCK_NB
        fcntl.flock(file, how)

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
