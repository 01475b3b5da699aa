"""The locks and folders of Windows, simulated: the module is loaded as on Windows, over a stand-in for `msvcrt`."""

from __future__ import annotations

import errno
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ras_agent.tools.store import durable


class Msvcrt(ModuleType):
    """Locks the first byte of files as Windows does: not waiting fails at once, waiting gives up after a while."""

    LK_LOCK, LK_NBLCK, LK_UNLCK = 1, 2, 0

    def __init__(self) -> None:
        super().__init__("msvcrt")
        self.held: set[tuple[int, int]] = set()
        self.given_up = 0

    def locking(self, handle: int, mode: int, size: int) -> None:
        about = os.fstat(handle)
        assert size == 1
        assert os.lseek(handle, 0, os.SEEK_CUR) == 0, (
            "a lock begins where the file is read"
        )
        place = (about.st_dev, about.st_ino)
        if mode == self.LK_UNLCK:
            self.held.discard(place)
        elif place not in self.held:
            self.held.add(place)
        elif mode == self.LK_NBLCK:
            raise PermissionError(errno.EACCES, "Permission denied")
        else:
            self.given_up += 1
            if self.given_up == 2:
                self.held.discard(place)
            raise OSError(errno.EDEADLK, "Resource deadlock avoided")


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Msvcrt]:
    """The module as Windows loads it, and its locks."""
    locks = Msvcrt()
    monkeypatch.setitem(sys.modules, "msvcrt", locks)
    monkeypatch.setattr(sys, "platform", "win32")
    spec = spec_from_file_location("durable_on_windows", durable.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "durable_on_windows", module)
    spec.loader.exec_module(module)
    return module, locks


def test_a_second_writer_is_refused_and_the_next_one_let_in(
    windows: tuple[Any, Msvcrt], tmp_path: Path
) -> None:
    module, locks = windows
    with module.writer_lock(tmp_path / "lock", wait=False):
        with (
            pytest.raises(BlockingIOError),
            module.writer_lock(tmp_path / "lock", wait=False),
        ):
            pass
        assert len(locks.held) == 1
    assert locks.held == set()
    with module.writer_lock(tmp_path / "lock", wait=False):
        pass


def test_one_that_waits_goes_on_waiting_when_windows_gives_up(
    windows: tuple[Any, Msvcrt], tmp_path: Path
) -> None:
    module, locks = windows
    (tmp_path / "lock").touch()
    about = (tmp_path / "lock").stat()
    locks.held.add((about.st_dev, about.st_ino))
    with module.writer_lock(tmp_path / "lock"):
        assert locks.given_up == 2


def test_a_file_is_replaced_without_opening_its_folder(
    windows: tuple[Any, Msvcrt], tmp_path: Path
) -> None:
    module, _ = windows
    module.replace_file(tmp_path / "manifest.json", b"one")
    module.replace_file(tmp_path / "manifest.json", b"two")
    assert (tmp_path / "manifest.json").read_bytes() == b"two"
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
