"""Limits the matrix products of small networks to one thread.

OpenBLAS divides even small products among several threads, and a thread that waits for its next piece of work
keeps a processor busy. Compared with one thread, reading ten passages took 2.4 times as long on two idle
processors, and 2.5 times the processor time. It is worse next to other programs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock

from threadpoolctl import ThreadpoolController


class _OneThread:
    """Limits BLAS to one thread as long as any thread of the program is inside a block, then restores the
    earlier number.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._blas: ThreadpoolController | None = None
        self._modules = 0
        self._inside = 0
        self._limit = ExitStack()

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit.enter_context(self._libraries().limit(limits=1))
            self._inside += 1

    def _libraries(self) -> ThreadpoolController:
        """Return the loaded BLAS libraries. They are searched for again if modules were imported since, which
        may have loaded one.
        """
        modules = len(sys.modules)
        if self._blas is None or modules != self._modules:
            self._blas = ThreadpoolController().select(user_api="blas")
            self._modules = modules
        return self._blas

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.close()

    def new_lock(self) -> None:
        """Replace the lock in a forked process, in which no thread could release the copied one."""
        self._lock = Lock()


_ONE_THREAD = _OneThread()

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_ONE_THREAD.new_lock)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside the `with` block.

    BLAS has one number of threads for the whole process, so the limit also holds for products that other
    threads compute meanwhile. When the last open block ends, the earlier number is restored.
    """
    _ONE_THREAD.enter()
    try:
        yield
    finally:
        _ONE_THREAD.leave()
