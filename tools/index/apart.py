"""Converts documents in a process of its own, which is killed where one takes too long or too much.

A small file can be a lot of work: a chapter that is named a thousand times, a page that is repeated, a table of cells
that nobody wrote. Python ends no thread, but a process ends with all that it holds. It has no keys of this one.

It ends with this one, whatever ends that: the system ends it with its parent (Linux), its input ends, and so does the
time of the processor that it may take.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from queue import SimpleQueue
from time import monotonic, process_time
from typing import Any, Self
from weakref import finalize

from ras_agent.calling import in_thread
from ras_agent.tools.index.conversions import check_length, convert
from ras_agent.tools.index.text_files import (
    Converted,
    FileContent,
    HeldFile,
    NotText,
    OnRead,
    SheetRow,
    name_of,
)

UPLOAD_SECONDS = 60.0
"""In which the documents of one upload have to be converted, all of them."""
FILE_SECONDS = 1800.0
"""In which each document of a folder has to be converted: in ten minutes a book of ten thousand pages is."""
_MEMORY = 2 << 30
# seconds of the processor beyond those that this process waits for, so that it is the first to give up
_SPARE = 10
_SIGNAL_OF_PARENTS_DEATH = 1  # of Linux's prctl
_ENVIRONMENT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "SYSTEMROOT",
    "TMPDIR",
    "OMP_NUM_THREADS",
)


class Apart:
    """Process that converts documents, one after the other, for a block. It is started for the first one."""

    def __init__(self, seconds: float, *, each: bool = False) -> None:
        """seconds: in which all documents have to be converted, with `each`, each of them."""
        self._process: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = lambda: None
        self._seconds = seconds
        self._each = each
        self._until = monotonic() + seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._end()
            with suppress(OSError), self._process:  # closes its pipes, and waits
                pass
            self._process = None

    def convert(self, path: FileContent, on_read: OnRead = lambda _: None) -> Converted:
        """Return the text of a file, as `convert` does. Raises NotText, and OSError for a file that cannot be read."""
        data = path.read_bytes()
        on_read(len(data))
        if isinstance(path, HeldFile) and path.converted is not None:
            return path.converted
        if self._process is None:
            self._process = _started()
            # where this program ends within the block, too
            self._end = finalize(self, self._process.kill)
        process = self._process
        until = monotonic() + self._seconds if self._each else self._until
        seconds = max(until - monotonic(), 0)
        exchange = in_thread(lambda: _ask(process, name_of(path.name), data, seconds))
        try:
            reply = exchange.result(seconds)
        except TimeoutError:
            self.__exit__()
            raise NotText(
                f"takes longer than {self._seconds:,.0f} s to convert; divide it, or save it as text"
            ) from None
        except (OSError, ValueError):
            self.__exit__()
            raise NotText(
                "needs more memory than a conversion may have; divide it, or save it as text"
            ) from None
        if "problem" in reply:
            raise NotText(
                reply["problem"], empty=reply["empty"], pages=reply.get("no_text_on", 0)
            )
        reply["pages"] = tuple(reply["pages"])
        reply["attachments"] = tuple(reply["attachments"])
        reply["rows"] = tuple(map(_row, reply["rows"]))
        return Converted(**reply)


def _row(found: dict[str, Any]) -> SheetRow:
    cells = tuple(found.pop("cells"))
    return SheetRow(**found, cells=cells)


def _started() -> subprocess.Popen[bytes]:
    environment = {
        name: os.environ[name] for name in _ENVIRONMENT if name in os.environ
    }
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    program = f"from ras_agent.tools.index.apart import main; main({os.getpid()})"
    command = [sys.executable, "-P", "-c", program]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment
    )


def _ask(
    process: subprocess.Popen[bytes], name: str, data: bytes, seconds: float
) -> Any:
    """Send a file, and return the reply of the process. Raises OSError or ValueError where it has ended."""
    assert process.stdin
    assert process.stdout
    about = {"name": name, "size": len(data), "seconds": seconds}
    process.stdin.write(json.dumps(about).encode() + b"\n")
    process.stdin.write(data)
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main(parent: int) -> None:
    """Convert the files that come on standard input, and write their contents to standard output.

    parent: the process that asks, which this one does not outlive.
    """
    _limit()
    _end_with(parent)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # text that a library prints is no reply
    files: SimpleQueue[tuple[HeldFile, float]] = SimpleQueue()
    threading.Thread(target=_read, args=(files,), daemon=True).start()
    while True:
        file, seconds = files.get()
        _limit_time(seconds)
        reply = _reply(file)
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()


def _read(files: SimpleQueue[tuple[HeldFile, float]]) -> None:
    """Read the files that are to be converted; at the end of the input, end the process in the middle of its work."""
    requests = sys.stdin.buffer
    while line := requests.readline():
        about = json.loads(line)
        data = requests.read(about["size"])
        files.put((HeldFile(about["name"], data), about["seconds"]))
    os._exit(0)


def _reply(
    file: HeldFile, convert: Callable[[HeldFile], Converted] = convert
) -> dict[str, Any]:
    try:
        found = convert(file)
        check_length(len(found.text))
    except NotText as error:
        return {"problem": str(error), "empty": error.empty, "no_text_on": error.pages}
    except ImportError as error:  # MissingExtra names the extra to install
        return {"problem": str(error), "empty": False}
    return {
        "text": found.text,
        "title": found.title,
        "metadata": dict(found.metadata),
        "pages": found.pages,
        "left_out": dict(found.left_out),
        "rows": list(map(asdict, found.rows)),
        "quoted": found.quoted,
        "attachments": found.attachments,
    }


def _limit() -> None:
    with suppress(ImportError):  # Windows
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time(seconds: float) -> None:
    """Let the process work for so many seconds more, and some to spare; then the system ends it."""
    with suppress(ImportError):  # Windows
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        end = int(process_time() + seconds) + _SPARE
        resource.setrlimit(resource.RLIMIT_CPU, (end, most))


def _end_with(parent: int) -> None:
    """Have the system end this process with its parent, where it can: on Linux."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(_SIGNAL_OF_PARENTS_DEATH, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before
        os._exit(0)
