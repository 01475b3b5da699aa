"""Engines that serve the model of tests/engines/model: how each is started, its features, and its processes."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

NAME = "learnt"
"""The name under which an engine serves the model, where it takes one."""

_UP_WITHIN = 900.0  # seconds; vLLM takes 40 of a processor
_ANSWERS = build_opener(ProxyHandler({}))
# nobody sets it: waiting for it is how to look again a little later
_PATIENCE = threading.Event()


@dataclass(frozen=True)
class Engine:
    """Program that serves a model behind OpenAI's protocol.

    command: the command line for a model's folder and a port. features: those of "tools", "forms" (that a
    reply must have), "grammar" (the same, asked of a model that has not learnt them), "windows", "embeddings" and
    "vectors" (prompts as vectors); "small", the weights of a small model, that the environment has.
    named: whether it serves a model by NAME; else it does by its folder. window: the arguments that set the tokens of a
    prompt and its reply. embeds: those by which it gives vectors of texts. running: a pattern of the lines of its
    metrics that count requests under way, "" where it has no such metric.
    """

    name: str
    command: Callable[[Path, int], list[str]]
    features: frozenset[str] = frozenset()
    named: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    window: Callable[[int], tuple[str, ...]] = lambda tokens: ()
    embeds: tuple[str, ...] = ()
    running: str = ""


@dataclass
class Server:
    """Process of an engine. url: up to the port."""

    engine: Engine
    folder: Path
    arguments: tuple[str, ...]
    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(
        cls, engine: Engine, folder: Path, *arguments: str, port: int = 0
    ) -> Self:
        """Start a server, which is not waited for."""
        port = port or _free_port()
        # Python would import modules from the folder where it starts
        place = Path(tempfile.mkdtemp(prefix=f"{engine.name}-"))
        log = place / "log"
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            **engine.environment,
        }
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*engine.command(folder, port), *arguments],
                env=environment,
                cwd=place,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # an engine's workers end with it
            )
        return cls(engine, folder, arguments, port, process, log)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def model(self) -> str:
        return NAME if self.engine.named else str(self.folder)

    @property
    def spec(self) -> str:
        """Return the server as a role's spec."""
        return f"vllm:{self.url}/v1#{self.model}"

    def wait(self) -> Self:
        """Wait until the server has loaded its model. Raises AssertionError with the end of its log."""
        for _ in range(int(_UP_WITHIN / 0.2)):
            assert self.process.poll() is None, self.log.read_text(errors="replace")[
                -4000:
            ]
            try:
                with _ANSWERS.open(f"{self.url}/health", timeout=5) as reply:
                    if reply.status == 200:
                        return self
            except (URLError, OSError):
                _PATIENCE.wait(0.2)
        raise AssertionError(self.log.read_text(errors="replace")[-4000:])

    def text(self, path: str) -> str:
        """Return the server's content at a path."""
        with _ANSWERS.open(f"{self.url}{path}", timeout=30) as reply:
            return str(reply.read().decode())

    def kill(self) -> None:
        """End the server and its workers, at once."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        """Start the same server again, on the same port; it is not waited for."""
        shutil.rmtree(self.log.parent)
        new = type(self).start(
            self.engine, self.folder, *self.arguments, port=self.port
        )
        self.process, self.log = new.process, new.log


@contextmanager
def serving(engine: Engine, folder: Path, *arguments: str) -> Iterator[Server]:
    """Serve a model during the block."""
    server = Server.start(engine, folder, *arguments)
    try:
        yield server.wait()
    finally:
        server.kill()
        shutil.rmtree(server.log.parent)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def _program(name: str) -> str:
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name) or name


def _transformers(folder: Path, port: int) -> list[str]:
    return [
        _program("transformers"),
        "serve",
        str(folder),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--device=cpu",
    ]


def _llama(folder: Path, port: int) -> list[str]:
    return [
        sys.executable,
        str(Path(__file__).parent / "llama.py"),
        str(folder),
        "--port",
        str(port),
        "--name",
        NAME,
    ]


def _vllm(folder: Path, port: int) -> list[str]:
    options = ["--enforce-eager", "--dtype", "float32", "--served-model-name", NAME]
    return [
        _program("vllm"),
        "serve",
        str(folder),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        *options,
    ]


VLLM_ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine("transformers", _transformers, named=False),
        Engine(
            "llama.cpp",
            _llama,
            frozenset({"windows", "embeddings", "tools", "grammar"}),
            window=lambda tokens: ("--window", str(tokens)),
            embeds=("--embeddings",),
            running=r"llamacpp:requests_(?:processing|deferred) (\d+)",
        ),
        Engine(
            "vllm",
            _vllm,
            frozenset({"tools", "forms", "windows", "embeddings", "vectors"}),
            environment=VLLM_ENVIRONMENT,
            window=lambda tokens: ("--max-model-len", str(tokens)),
            embeds=("--runner", "pooling", "--convert", "embed"),
            running=r"vllm:num_requests_running\{[^}]*\} ([\d.]+)",
        ),
    )
}
