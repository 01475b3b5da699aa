"""A model's server that goes away: the evaluation ends early and in words, and goes on when the server is back."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.faults.attack import COMMAND, Attack

QUESTIONS = 100
REPLIES = (0, 3, 60)
AT_MOST = 60.0  # 100 questions, each tried to its end, would take minutes


class Handler(BaseHTTPRequestHandler):
    """Answers every call, until the server has had its number of them."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        reply = {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": WORDS},
                }
            ]
        }
        body = json.dumps(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": "m",
                **reply,
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.server.replied()  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


WORDS = "[SUFFICIENT]\nAnswer: Edinburgh [1]"


class Server(ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int, most: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self._left, self._lock = most, threading.Lock()

    def replied(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                threading.Thread(target=self.end).start()

    def end(self) -> None:
        """Refuse connections from now on."""
        self.shutdown()
        self.server_close()


@contextmanager
def serving(port: int, most: int) -> Iterator[int]:
    server = Server(port, most)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    ).start()
    if not most:
        server.end()
    try:
        yield server.server_address[1]
    finally:
        server.end()


def test_a_server_that_goes_away(attack: Attack, tmp_path: Path) -> None:
    """A server that goes away in an evaluation."""
    corpus, questions = tmp_path / "c.jsonl", tmp_path / "q.jsonl"
    corpus.write_text(
        '{"id": "bell", "title": "Bell", "text": "Bell was born in Edinburgh."}\n'
    )
    asked = (
        {"id": f"q{n}", "question": f"Where was Bell born, {n}?"}
        for n in range(QUESTIONS)
    )
    questions.write_text(
        "".join(json.dumps(one | {"answers": ["Edinburgh"]}) + "\n" for one in asked)
    )
    for replies in [REPLIES[number] for number in attack.times(len(REPLIES))]:
        out = tmp_path / f"run{replies}"
        with serving(0, replies) as port:
            ended, seconds = evaluate(port, corpus, questions, out)
        told = f"{replies} replies: exit code {ended.returncode}, {seconds:.0f} s, {ended.stderr[-400:]}"
        attack.expect(ended.returncode == 1 and seconds < AT_MOST, told)
        attack.expect(
            ended.stderr.count(f"nothing listens at http://127.0.0.1:{port}") == 1, told
        )
        kept = results(out)
        attack.expect(
            len(kept) < QUESTIONS
            and f"{len(kept)} of {QUESTIONS} questions are done" in ended.stderr,
            told,
        )
        attack.expect(
            sum(bool(one["error"]) for one in kept) <= 2,
            f"{replies} replies: {len(kept)} results, {kept}",
        )
        with serving(port, -1):
            ended, seconds = evaluate(port, corpus, questions, out, "--retry-errors")
        done = results(out)
        attack.expect(
            ended.returncode == 0 and len(done) == QUESTIONS,
            f"{replies} replies: {ended.stderr[-400:]}",
        )
        attack.expect(
            all(one["answer"] == "Edinburgh" for one in done),
            f"{replies} replies: not all are answered",
        )


def evaluate(
    port: int, corpus: Path, questions: Path, out: Path, *more: str
) -> tuple[subprocess.CompletedProcess[str], float]:
    model = f"vllm:http://127.0.0.1:{port}/v1#m"
    command = [
        "eval",
        "jsonl",
        "--data",
        questions,
        "--corpus",
        corpus,
        "--out",
        out,
        "--llm",
        model,
        *more,
    ]
    options = [
        "--extractor",
        "offline",
        "--concurrency",
        "4",
        "--retries",
        "2",
        "--patience",
        "2",
        "--quiet",
    ]
    began = time.monotonic()
    environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
    arguments = [*COMMAND, *map(str, command), *options]
    ended = subprocess.run(
        arguments, capture_output=True, text=True, env=environment, timeout=300
    )
    return ended, time.monotonic() - began


def results(out: Path) -> list[dict[str, object]]:
    path = out / "results.jsonl"
    return (
        [json.loads(line) for line in path.read_text().splitlines()]
        if path.exists()
        else []
    )
