"""A server on the loopback interface that takes prompt embeddings as vLLM does, and generates with a tiny model.

It plays `vllm serve MODEL --enable-prompt-embeds [--lora-modules NAME=ADAPTER]` for tests: requests are held against
the types of vLLM's own classes (tests/tools/graph_tokens/vllm_requests.json), tensors are decoded as its server does,
the language model is loaded from its folder, and replies and errors have vLLM's form.

    with serving(folder, adapters={"tuned": adapter}) as server:
        ServedGraphLLM.at(..., server.url, "tuned")
        server.requests   # the bodies received, in order
"""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch

from tests.vllm_protocol import misfits

NO_FLAG = "You must set `--enable-prompt-embeds` to input `prompt_embeds`. (parameter=prompt_embeds)"


class Refused(Exception):
    """Raised for requests that vLLM answers with an error."""

    def __init__(
        self,
        status: int,
        message: str,
        parameter: str | None = None,
        kind: str = "BadRequestError",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = {
            "error": {
                "message": message,
                "type": kind,
                "param": parameter,
                "code": status,
            }
        }


@dataclass
class Server:
    """Holds a tiny language model and its requests.

    flag: whether it was started with --enable-prompt-embeds. key: that of --api-key. window: --max-model-len.
    """

    name: str
    model: Any
    tokenizer: Any
    adapters: tuple[str, ...] = ()
    flag: bool = True
    key: str = ""
    window: int = 4096
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def models(self) -> dict[str, Any]:
        base = {
            "id": self.name,
            "object": "model",
            "root": self.name,
            "parent": None,
            "max_model_len": self.window,
        }
        tuned = [
            {**base, "id": name, "parent": self.name, "max_model_len": None}
            for name in self.adapters
        ]
        return {"object": "list", "data": [base, *tuned]}

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a request. Raises Refused for requests that vLLM refuses."""
        self.requests.append(body)
        if wrong := misfits("CompletionRequest", body):
            raise Refused(400, "; ".join(wrong))
        if body.get("model") not in (None, self.name, *self.adapters):
            message = f"The model `{body['model']}` does not exist. Valid aliases: {self.name}."
            raise Refused(404, message, "model", "NotFoundError")
        given = body.get("prompt_embeds") or []
        if not given and not body.get("prompt"):
            raise Refused(
                400,
                "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)",
                "prompt",
            )
        if body.get("prompt") is not None:
            raise Refused(400, "this stand-in completes embeddings alone")
        prompts = [
            self.decoded(text)
            for text in (given if isinstance(given, list) else [given])
        ]
        with self._lock:
            written = [self.generated(vectors, body) for vectors in prompts]
        choices = [
            {"index": place, "text": text, "finish_reason": ending, "stop_reason": None}
            for place, (text, _, ending) in enumerate(written)
        ]
        read, wrote = sum(map(len, prompts)), sum(count for _, count, _ in written)
        usage = {
            "prompt_tokens": read,
            "completion_tokens": wrote,
            "total_tokens": read + wrote,
        }
        return {
            **{
                "id": "cmpl-1",
                "object": "text_completion",
                "created": 0,
                "model": body.get("model") or self.name,
            },
            **{"choices": choices, "usage": usage},
        }

    def decoded(self, text: str) -> torch.Tensor:
        """Return the tensor in a request, as vLLM's safe_load_prompt_embeds decodes it."""
        if not self.flag:
            raise Refused(400, NO_FLAG, "prompt_embeds")
        raw = base64.b64decode(text, validate=True)
        tensor = torch.load(
            io.BytesIO(raw), weights_only=True, map_location="cpu"
        ).to_dense()
        tensor = tensor.squeeze(0) if tensor.dim() > 2 else tensor
        wanted, embeddings = self.window, self.model.get_input_embeddings()
        if tensor.dim() != 2 or not tensor.is_floating_point():
            raise Refused(
                400,
                f"no vectors: {tuple(tensor.shape)} (parameter=prompt_embeds)",
                "prompt_embeds",
            )
        if tensor.shape[1] != embeddings.embedding_dim:
            message = (
                f"`prompt_embeds` hidden_size {tensor.shape[1]} does not match the model's hidden_size "
                f"{embeddings.embedding_dim}. (parameter=prompt_embeds)"
            )
            raise Refused(400, message, "prompt_embeds")
        if len(tensor) > wanted:
            message = (
                f"This model's maximum context length is {wanted} tokens. However, your prompt contains {len(tensor)} "
                "input tokens, which exceeds this limit even without any output tokens. Please reduce the length of "
                f"the input prompt. (parameter=input_tokens, value={len(tensor)})"
            )
            raise Refused(400, message, "input_tokens")
        return tensor.to(embeddings.weight.dtype)

    def generated(
        self, vectors: torch.Tensor, body: dict[str, Any]
    ) -> tuple[str, int, str]:
        """Return a reply's text, its tokens, and why it ended."""
        most, greedy = body.get("max_tokens", 16), body.get("temperature") == 0
        sampling = (
            {"do_sample": False}
            if greedy
            else {"do_sample": True, "temperature": body.get("temperature") or 1.0}
        )
        if self.adapters:
            self.model.set_adapter(body["model"]) if body.get(
                "model"
            ) in self.adapters else None
        off = (
            self.model.disable_adapter
            if self.adapters and body.get("model") not in self.adapters
            else None
        )
        with torch.no_grad(), off() if off else _nothing():
            made = self.model.generate(
                inputs_embeds=vectors.unsqueeze(0),
                attention_mask=torch.ones(1, len(vectors), dtype=torch.long),
                max_new_tokens=most,
                pad_token_id=self.tokenizer.eos_token_id,
                **sampling,
            )[0].tolist()
        ended = bool(made) and made[-1] == self.tokenizer.eos_token_id
        text = self.tokenizer.decode(
            made[:-1] if ended else made, skip_special_tokens=True
        )
        stops = body.get("stop") or []
        cut = min(
            (
                text.find(stop)
                for stop in ([stops] if isinstance(stops, str) else stops)
                if stop in text
            ),
            default=None,
        )
        if cut is not None:
            return text[:cut], len(made), "stop"
        return text, len(made), "stop" if ended else "length"


@contextmanager
def _nothing() -> Iterator[None]:
    yield


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, server: Server, *connection: Any) -> None:
        self.vllm = server
        super().__init__(*connection)

    def do_GET(self) -> None:
        self.answer(
            lambda: self.vllm.models() if self.path == "/v1/models" else self.missing()
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = self.path == "/v1/completions"
        self.answer(
            lambda: self.vllm.complete(body) if asked else self.missing(),
            bool(body.get("stream")),
        )

    def missing(self) -> dict[str, Any]:
        raise Refused(404, "Not Found")

    def answer(self, reply: Any, stream: bool = False) -> None:
        status, body = 200, {}
        if (
            self.vllm.key
            and self.headers.get("Authorization") != f"Bearer {self.vllm.key}"
        ):
            status, body = 401, {"error": "Unauthorized"}
        else:
            try:
                body = reply()
            except Refused as refusal:
                status, body = refusal.status, refusal.body
        stream = stream and status == 200
        data = "".join(pieces(body)).encode() if stream else json.dumps(body).encode()
        self.send_response(status)
        self.send_header(
            "Content-Type", "text/event-stream" if stream else "application/json"
        )
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def pieces(body: dict[str, Any]) -> Iterator[str]:
    """Yield a reply as the events of a stream: three characters each, then how it ended, then its usage."""
    (choice,) = body["choices"]
    text, ending = choice["text"], choice["finish_reason"]
    ended = [(text[start : start + 3], None) for start in range(0, len(text), 3)]
    for part, reason in [*ended, ("", ending)]:
        given = {"index": 0, "text": part, "finish_reason": reason}
        yield f"data: {json.dumps({**body, 'choices': [given], 'usage': None})}\n\n"
    yield f"data: {json.dumps({**body, 'choices': []})}\n\ndata: [DONE]\n\n"


@contextmanager
def serving(
    folder: Path, adapters: Mapping[str, Path] | None = None, **options: Any
) -> Iterator[Server]:
    """Serve the language model in a folder, and adapters of it by name."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    for name, path in (adapters or {}).items():
        wrapped = isinstance(model, PeftModel)
        model = (
            (model.load_adapter(path, name) and model)
            if wrapped
            else PeftModel.from_pretrained(model, path, name)
        )
    server = Server(
        str(folder),
        model.eval(),
        AutoTokenizer.from_pretrained(folder),
        tuple(adapters or ()),
        **options,
    )
    listener = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, server))
    listener.daemon_threads = True
    server.url = f"http://127.0.0.1:{listener.server_address[1]}/v1"
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()
