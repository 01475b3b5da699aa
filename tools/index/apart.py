"""Converts documents in a process of its own, which is killed where one takes too long or too much.

A small file can be a lot of work: a chapter that is named a thousand times, a page that is repeated, a table of cells
that nobody wrote. Python ends no thread, but a process ends with all that it holds. It has none of this one's keys.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any, Self

from ras_agent.calling import in_thread
from ras_agent.tools.index.conversions import convert
from ras_agent.tools.index.text_files import Converted, FileContent, HeldFile, NotText, OnRead, name_of

UPLOAD_SECONDS = 60.0
"""In which the documents of one upload have to be converted, all of them."""
FILE_SECONDS = 1800.0
"""In which each document of a folder has to be converted: in ten minutes a book of ten thousand pages is."""
MOST_CHARACTERS = 1 << 25
_MEMORY = 2 << 30
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "OMP_NUM_THREADS")


class Apart:
    """Process that converts documents, one after the other, for a block. It is started for the first one."""

    def __init__(self, seconds: float, *, each: bool = False) -> None:
        """seconds: in which all documents have to be converted, with `each`, each of them."""
        self._process: subprocess.Popen[bytes] | None = None
        self._seconds, self._each = seconds, each
        self._until = monotonic() + seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
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
        process = self._process
        until = monotonic() + self._seconds if self._each else self._until
        exchange = in_thread(lambda: _ask(process, name_of(path.name), data))
        try:
            reply = exchange.result(max(until - monotonic(), 0))
        except TimeoutError:
            self.__exit__()
            raise NotText(
                f"takes longer than {self._seconds:,.0f} s to convert; divide it, or save it as text"
            ) from None
        except (OSError, ValueError):
            self.__exit__()
            raise NotText("needs more memory than a conversion may have; divide it, or save it as text") from None
        if "problem" in reply:
            raise NotText(reply["problem"], empty=reply["empty"])
        return Converted(**reply | {"pages": tuple(reply["pages"])})


def _started() -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-P", "-c", "from ras_agent.tools.index.apart import main; main()"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment)


def _ask(process: subprocess.Popen[bytes], name: str, data: bytes) -> Any:
    """Send a file, and return what the process says of it. Raises OSError or ValueError where it has ended."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps({"name": name, "size": len(data)}).encode() + b"\n")
    process.stdin.write(data)
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main() -> None:
    """Convert the files that come on standard input, and say on standard output what they hold."""
    _limit()
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no reply
    while line := requests.readline():
        about = json.loads(line)
        reply = _reply(HeldFile(about["name"], requests.read(about["size"])))
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()


def _reply(file: HeldFile, convert: Callable[[HeldFile], Converted] = convert) -> dict[str, Any]:
    try:
        found = convert(file)
    except NotText as error:
        return {"problem": str(error), "empty": error.empty}
    except ImportError as error:  # MissingExtra says what to install
        return {"problem": str(error), "empty": False}
    if len(found.text) > MOST_CHARACTERS:
        return {"problem": f"holds more than {MOST_CHARACTERS:,} characters; divide it", "empty": False}
    return {"text": found.text, "title": found.title, "metadata": dict(found.metadata), "pages": found.pages}


def _limit() -> None:
    with suppress(ImportError):  # Windows
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
