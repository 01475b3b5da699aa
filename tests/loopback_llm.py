"""An OpenAI-compatible chat server on the loopback interface, with scripted behaviour.

A process of its own (`python tests/loopback_llm.py` prints its port and ends when its standard input closes), so that
tests drive real HTTP through langchain-openai. Tests reach it by the `scripted_llm` fixture of tests/conftest.py:

    def test_x(scripted_llm):
        scripted_llm.script({"status": 429, "headers": {"Retry-After": "3"}}, {"reply": "[SUFFICIENT]"})
        planner = resolve_planner(scripted_llm.spec)          # "vllm:http://127.0.0.1:port/<name>/v1#scripted"
        ...
        assert len(scripted_llm.requests()) == 2              # the JSON bodies received, in order

Each test has a script and a log of its own under `/<name>/`. A request is answered by the script's first entry whose
`when` stands in its messages (no `when` matches all); it is then used up, unless it says `"repeat": true`. Entries:

    reply       the text of the reply (streamed word by word, with usage at the end, if the request asks for a stream)
    cached      how many of the prompt's tokens the usage reports as cached; a token is a word here
    finish      the finish reason, "stop" by default
    status      an error status instead of a reply, with an OpenAI error body
    headers     further response headers
    body        this body instead of a well-formed one
    cut         how many bytes of the body, or of the stream's pieces, go out before the connection breaks
    hang        true: no response at all until the client gives up
    drip        seconds before each byte of the body, or of a stream
    whole       true: no stream, though the request asks for one
    unfinished  true: the stream ends, cleanly, after the reply's words
    done        true: the stream says that it is done, though it gives no finish reason
    gzip        true: the body is compressed, though nobody asked for that
    bytes       a body of so many bytes in place of a reply, "0" all of them
    fields      further fields of the reply's JSON object, which replace its own

Without a matching entry the server answers 400, which no client retries.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

LOCK = threading.Lock()
SCRIPTS: dict[str, list[dict[str, Any]]] = {}
LOGS: dict[str, list[dict[str, Any]]] = {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        name = self.name()
        with LOCK:
            log = list(LOGS.get(name, []))
        self.send(200, json.dumps(log))

    def do_PUT(self) -> None:
        name = self.name()
        with LOCK:
            SCRIPTS.setdefault(name, []).extend(self.received())
        self.send(200, "{}")

    def do_POST(self) -> None:
        name, body = self.name(), self.received()
        entry = take(name, body)
        if entry.get("hang"):
            self.rfile.read(1)  # until the client closes the connection
            self.close_connection = True
        elif any(name in entry for name in ("status", "body", "bytes", "whole")) or not body.get("stream"):
            status = entry.get("status", 200)
            error = {"error": {"message": entry.get("reply", f"scripted {status}"), "type": "scripted", "code": None}}
            told = error if status != 200 else completion(body, entry)
            text = "0" * entry["bytes"] if "bytes" in entry else entry.get("body", json.dumps(told))
            self.send(status, text, entry.get("headers"), entry.get("cut"), entry.get("gzip"), entry.get("drip"))
        else:
            self.stream(pieces(body, entry), entry.get("cut"), entry.get("drip"))

    def name(self) -> str:
        """The first part of the path; a client that takes this server for a proxy sends a whole URL."""
        return urlsplit(self.path).path.split("/")[1]

    def received(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def send(
        self,
        status: int,
        body: str,
        headers: dict[str, str] | None = None,
        cut: int | None = None,
        packed: bool | None = False,
        drip: float | None = None,
    ) -> None:
        data = gzip.compress(body.encode()) if packed else body.encode()
        headers = {"Content-Encoding": "gzip", **(headers or {})} if packed else headers
        self.send_response(status)
        for key, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.write(data[:cut], drip)
        self.close_connection = cut is not None

    def write(self, data: bytes, drip: float | None) -> None:
        if drip is None:
            self.wfile.write(data)
            return
        for byte in data:
            time.sleep(drip)
            self.wfile.write(bytes([byte]))

    def stream(self, events: list[str], cut: int | None, drip: float | None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events[:cut]:
            data = f"data: {event}\n\n".encode()
            self.write(f"{len(data):x}\r\n".encode() + data + b"\r\n", drip)
        if cut is None:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = cut is not None

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the log is asked for over HTTP."""


def take(name: str, body: dict[str, Any]) -> dict[str, Any]:
    """Log a request, and the script's entry for it."""
    prompt = "\n".join(str(message["content"]) for message in body["messages"])
    with LOCK:
        LOGS.setdefault(name, []).append(body)
        script = SCRIPTS.get(name, [])
        for place, entry in enumerate(script):
            if entry.get("when", "") in prompt:
                return entry if entry.get("repeat") else script.pop(place)
    return {"status": 400, "reply": "the script has no entry for this request"}


def usage(body: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    prompt = sum(len(str(message["content"]).split()) for message in body["messages"])
    reply = len(entry["reply"].split())
    return {
        "prompt_tokens": prompt,
        "completion_tokens": reply,
        "total_tokens": prompt + reply,
        "prompt_tokens_details": {"cached_tokens": entry.get("cached", 0)},
    }


def completion(body: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": entry.get("reply", "")}
    return {
        **{"id": "c1", "object": "chat.completion", "created": 0, "model": body["model"]},
        "choices": [{"index": 0, "message": message, "finish_reason": entry.get("finish", "stop")}],
        "usage": usage(body, {"reply": "", **entry}),
        **entry.get("fields", {}),
    }


def pieces(body: dict[str, Any], entry: dict[str, Any]) -> list[str]:
    """The events of a streamed reply."""
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": body["model"]}
    words = entry["reply"].split(" ")
    texts = [word if place == 0 else f" {word}" for place, word in enumerate(words)]
    deltas: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": text}, None) for text in texts]
    last = None if entry.get("unfinished") or entry.get("done") else entry.get("finish", "stop")
    events = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **entry.get("fields", {})}
        for delta, finish in [*deltas, ({}, last)]
    ]
    if body.get("stream_options", {}).get("include_usage"):
        events.append({**head, "choices": [], "usage": usage(body, entry)})
    return [*map(json.dumps, events), *([] if entry.get("unfinished") else ["[DONE]"])]


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    os._exit(0)  # handlers may still hang


if __name__ == "__main__":
    main()
