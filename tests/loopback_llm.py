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
    calls       tools that the reply calls, [name, arguments] each
    cached      how many of the prompt's tokens the usage reports as cached; a token is a word here
    finish      the finish reason, "stop" by default
    status      an error status instead of a reply, with an OpenAI error body
    headers     further response headers
    body        this body instead of a well-formed one
    cut         how many bytes of the body, or of the stream's pieces, go out before the connection breaks
    hang        true: no response at all until the client gives up
    drip        seconds before each byte of the body, or of a stream
    held        true: no reply before the script gets an entry {"release": true}
    whole       true: no stream, though the request asks for one
    unfinished  true: the stream ends, cleanly, after the reply's words
    done        true: the stream says that it is done, though it gives no finish reason
    gzip        true: the body is compressed, though nobody asked for that
    bytes       a body of so many bytes in place of a reply, "0" all of them
    fields      further fields of the reply's JSON object, which replace its own

Of embeddings (`/<name>/v1/embeddings`) the log has the request's "authorization" too; further entries:

    vectors     the width of the vectors to make, each a sum of directions of the text's words
    shape       whose reply it is: "openai" (base64 unless numbers are asked for), "vllm", "tei" or "ollama"
    most        the largest batch that is taken; a larger one is refused as TEI does, with 422

Of rerankings (`/<name>/rerank`) the log has "authorization" too; an entry {"rerank": FORM} scores each text by the
words that it shares with the query, and takes and gives the form of "jina", "vllm", "voyage" or "tei" only.

An entry with `lists` holds the entry of its model in the server's list (`/<name>/v1/models`); without one it has no list.

Without a matching entry the server answers 400, which no client retries.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

LOCK = threading.Condition()
RELEASED: set[str] = set()
SCRIPTS: dict[str, list[dict[str, Any]]] = {}
LOGS: dict[str, list[dict[str, Any]]] = {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        name = self.name()
        with LOCK:
            log, script = list(LOGS.get(name, [])), list(SCRIPTS.get(name, []))
        if not self.path.endswith("/models"):
            self.send(200, json.dumps(log))
        elif models := [
            {"id": "scripted", **entry["lists"]} for entry in script if "lists" in entry
        ]:
            self.send(200, json.dumps({"object": "list", "data": models}))
        else:
            self.send(404, "{}")

    def do_PUT(self) -> None:
        name = self.name()
        with LOCK:
            for entry in self.received():
                if entry.get("release"):
                    RELEASED.add(name)
                    LOCK.notify_all()
                else:
                    SCRIPTS.setdefault(name, []).append(entry)
        self.send(200, "{}")

    def do_POST(self) -> None:
        name, body = self.name(), self.received()
        if self.path.endswith(("/embeddings", "/rerank")):
            body["authorization"] = self.headers.get("Authorization", "")
        entry = take(name, body)
        if entry.get("held"):
            with LOCK:
                LOCK.wait_for(lambda: name in RELEASED)
        if "rerank" in entry:
            self.send(*reranking(body, entry["rerank"]))
        elif "vectors" in entry:
            self.send(*embeddings(body, entry), entry.get("headers"))
        elif entry.get("hang"):
            self.rfile.read(1)  # until the client closes the connection
            self.close_connection = True
        elif any(
            name in entry for name in ("status", "body", "bytes", "whole")
        ) or not body.get("stream"):
            status = entry.get("status", 200)
            error = {
                "error": {
                    "message": entry.get("reply", f"scripted {status}"),
                    "type": "scripted",
                    "code": None,
                }
            }
            told = error if status != 200 else completion(body, entry)
            text = (
                "0" * entry["bytes"]
                if "bytes" in entry
                else entry.get("body", json.dumps(told))
            )
            self.send(
                status,
                text,
                entry.get("headers"),
                entry.get("cut"),
                entry.get("gzip"),
                entry.get("drip"),
            )
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
        for key, value in {
            "Content-Type": "application/json",
            **(headers or {}),
        }.items():
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
    texts = (
        body["input"]
        if "input" in body
        else [message.get("content") for message in body.get("messages", ())]
    )
    prompt = "\n".join(map(str, texts))
    with LOCK:
        LOGS.setdefault(name, []).append(body)
        script = SCRIPTS.get(name, [])
        for place, entry in enumerate(script):
            if entry.get("when", "") in prompt and "lists" not in entry:
                return entry if entry.get("repeat") else script.pop(place)
    return {"status": 400, "reply": "the script has no entry for this request"}


def usage(body: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    prompt = sum(
        len(str(message.get("content")).split()) for message in body.get("messages", ())
    )
    reply = len(entry["reply"].split())
    return {
        "prompt_tokens": prompt,
        "completion_tokens": reply,
        "total_tokens": prompt + reply,
        "prompt_tokens_details": {"cached_tokens": entry.get("cached", 0)},
    }


def completion(body: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": entry.get("reply", "")}
    if calls := entry.get("calls"):
        message["tool_calls"] = [
            {
                "id": f"id{n}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for n, (name, arguments) in enumerate(calls)
        ]
    return {
        **{
            "id": "c1",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
        },
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": entry.get("finish", "stop"),
            }
        ],
        "usage": usage(body, {"reply": "", **entry}),
        **entry.get("fields", {}),
    }


def embeddings(body: dict[str, Any], entry: dict[str, Any]) -> tuple[int, str]:
    """The status and the reply to a request for vectors, as servers of one kind give it."""
    shape, texts = entry.get("shape", "openai"), body["input"]
    if not all(isinstance(text, str) for text in texts):
        return 400, json.dumps(
            {"error": {"message": "token ids are not taken", "type": "BadRequestError"}}
        )
    if len(texts) > entry.get("most", 2048):
        most = entry["most"]
        error = f"batch size {len(texts)} > maximum allowed batch size {most}"
        return 422, json.dumps({"error": error, "error_type": "Validation"})
    vectors: list[Any] = [vector_of(text, entry["vectors"]) for text in texts]
    if shape == "openai" and body.get("encoding_format") != "float":
        vectors = [
            base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
            for vector in vectors
        ]
    data = [
        {"object": "embedding", "embedding": vector, "index": place}
        for place, vector in enumerate(vectors)
    ]
    usage = {
        "prompt_tokens": sum(len(text.split()) for text in texts),
        "total_tokens": 0,
    }
    reply: dict[str, Any] = {
        "object": "list",
        "data": data,
        "model": body["model"],
        "usage": usage,
    }
    if shape == "vllm":
        reply |= {
            "id": "embd-1",
            "created": 0,
            "usage": {**usage, "completion_tokens": 0, "prompt_tokens_details": None},
        }
        data.reverse()  # the protocol has an index because the order is not promised
    if shape == "tei":
        reply = {key: reply[key] for key in ("object", "data", "model", "usage")}
    return 200, json.dumps({**reply, **entry.get("fields", {})})


def reranking(body: dict[str, Any], form: str) -> tuple[int, str]:
    """The status and the reply to a request for scores, as servers of one form give it."""
    texts = body.get("texts" if form == "tei" else "documents")
    if texts is None:
        return 422, json.dumps({"error": "missing field", "error_type": "Validation"})
    asked = set(body["query"].lower().strip("?").split())
    results: list[dict[str, Any]] = []
    for place, text in enumerate(texts):
        shared = asked & set(text.lower().replace(".", " ").split())
        name = "score" if form == "tei" else "relevance_score"
        results.append({"index": place, name: len(shared) / len(asked)})
        if form == "jina":
            results[-1]["document"] = {"text": text}
    results.sort(
        key=lambda result: -(result.get("score") or result.get("relevance_score") or 0)
    )
    if form == "tei":
        return 200, json.dumps(results)
    if form == "voyage":
        return 200, json.dumps({"object": "list", "data": results})
    return 200, json.dumps({"model": body["model"], "results": results, "usage": {}})


def vector_of(text: str, width: int) -> list[float]:
    vector = [0.0] * width
    for word in text.lower().replace(".", " ").replace("?", " ").split():
        digest = hashlib.blake2b(word.encode(), digest_size=width).digest()
        vector = [
            number + byte - 127.5 for number, byte in zip(vector, digest, strict=True)
        ]
    return vector


def pieces(body: dict[str, Any], entry: dict[str, Any]) -> list[str]:
    """The events of a streamed reply."""
    head = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": body["model"],
    }
    words = entry["reply"].split(" ")
    texts = [word if place == 0 else f" {word}" for place, word in enumerate(words)]
    deltas: list[tuple[dict[str, str], str | None]] = [
        ({"role": "assistant", "content": text}, None) for text in texts
    ]
    last = (
        None
        if entry.get("unfinished") or entry.get("done")
        else entry.get("finish", "stop")
    )
    events = [
        {
            **head,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            **entry.get("fields", {}),
        }
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
