"""Converts documents in a separate process, which is killed if a document takes too much time or memory.

A small file can cause a lot of work: a chapter that is listed a thousand times, a page that is repeated, a table of
cells that nobody wrote. Python cannot end a thread, but a process ends with everything that it holds. It does not
receive the API keys of this process.

It ends whenever this process ends: the system ends it with its parent (Linux), and it ends when its input ends or when
its processor time is used up.
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

from ras_agent.running.calling import in_thread
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
"""The time in which all documents of one upload must be converted."""
FILE_SECONDS = 1800.0
"""The time in which each document of a folder must be converted; a book of ten thousand pages takes ten minutes."""
_MEMORY = 2 << 30
# seconds of processor time beyond those that this process waits for, so that this process gives up first
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
    """Converts documents in another process, one after another, within a `with` block. It is started for the first
    document.
    """

    def __init__(self, seconds: float, *, each: bool = False) -> None:
        """Set the time limit.

        Args:
            seconds: the time in which all documents must be converted or, with `each`, each of them.
        """
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
            # also if this program ends within the block
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
    """Send a file, and return the reply of the process. Raises OSError or ValueError if the process has ended."""
    assert process.stdin
    assert process.stdout
    about = {"name": name, "size": len(data), "seconds": seconds}
    process.stdin.write(json.dumps(about).encode() + b"\n")
    process.stdin.write(data)
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main(parent: int) -> None:
    """Convert the files that arrive on standard input, and write their contents to standard output.

    Args:
        parent: the id of the process that sends them; this process ends with it.
    """
    _limit()
    _end_with(parent)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints goes to standard error, not among the replies
    files: SimpleQueue[tuple[HeldFile, float]] = SimpleQueue()
    threading.Thread(target=_read, args=(files,), daemon=True).start()
    while True:
        file, seconds = files.get()
        _limit_time(seconds)
        reply = _reply(file)
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()


def _read(files: SimpleQueue[tuple[HeldFile, float]]) -> None:
    """Queue the files that arrive on standard input; when it ends, end the process, even in the middle of its work."""
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
    except ImportError as error:
        # for example MissingExtra, which names the extra to install
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
    """Have the system end this process after `seconds` more of processor time, plus a reserve."""
    with suppress(ImportError):  # Windows
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        end = int(process_time() + seconds) + _SPARE
        resource.setrlimit(resource.RLIMIT_CPU, (end, most))


def _end_with(parent: int) -> None:
    """Have the system end this process with its parent, which is possible on Linux."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(_SIGNAL_OF_PARENTS_DEATH, signal.SIGKILL)
    if os.getppid() != parent:  # the parent has ended already
        os._exit(0)
