"""Odd replies of servers, read by langchain-openai's client and by ours: replies that that one reads, ours reads too."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from ras_agent.prompts import Turn
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.openai_chat import OpenAIChat
from ras_agent.tools.chat.retry import RetryPolicy

TEXT = "Answer: Water of Leith, the main river of Edinburgh [1]"
WORDS = [f"{word} " for word in TEXT.split()]
WORDS[-1] = WORDS[-1].strip()
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def whole(message: Any = None, finish: Any = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": TEXT} if message is None else message
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **more,
    }


def says(content: Any, **more: Any) -> dict[str, Any]:
    return whole({"role": "assistant", "content": content, **more})


def delta(said: Any, finish: Any = None, **more: Any) -> bytes:
    return sse(
        {
            "id": "c1",
            "model": "m",
            "choices": [{"index": 0, "delta": said, "finish_reason": finish}],
            **more,
        }
    )


def sse(event: Any) -> bytes:
    return f"data: {json.dumps(event)}\n\n".encode()


PIECES = b"".join(delta({"content": word}) for word in WORDS)
END, DONE = delta({}, "stop"), b"data: [DONE]\n\n"
BLOCK = {"type": "text", "text": TEXT}
CHOICE = whole()["choices"][0]

# how a server replies to a request for a whole reply
WHOLE: dict[str, Any] = {
    "plain": whole(usage=USAGE),
    "no usage": whole(),
    "usage null": whole(usage=None),
    "usage numbers as text": whole(
        usage={"prompt_tokens": "10", "completion_tokens": "5", "total_tokens": "15"}
    ),
    "usage words": whole(usage={"prompt_tokens": "many"}),
    "usage list": whole(usage=[]),
    "usage text": whole(usage="none"),
    "usage NaN": whole(usage={**USAGE, "prompt_tokens": float("nan")}),
    "usage infinite": whole(usage={**USAGE, "completion_tokens": float("inf")}),
    "usage negative": whole(usage={**USAGE, "completion_tokens": -1}),
    "usage fractions": whole(usage={**USAGE, "prompt_tokens": 10.5}),
    "usage details list": whole(
        usage={
            **USAGE,
            "prompt_tokens_details": [{"modality": "TEXT", "tokenCount": 10}],
        }
    ),
    "usage details text": whole(usage={**USAGE, "completion_tokens_details": "none"}),
    "usage details null": whole(
        usage={**USAGE, "prompt_tokens_details": {"cached_tokens": None}}
    ),
    "error null": whole(error=None),
    "error empty object": whole(error={}),
    "error empty text": whole(error=""),
    "error empty list": whole(error=[]),
    "error false": whole(error=False),
    "error of nulls": whole(error={"message": None, "code": None}),
    "error of nothing": whole(error={"message": "", "code": 0}),
    "content block": says([BLOCK]),
    "content blocks": says(
        [{"type": "text", "text": TEXT[:9]}, {"type": "text", "text": TEXT[9:]}]
    ),
    "content block without a type": says([{"text": TEXT}]),
    "content block with null": says([{"type": "text", "text": None}, BLOCK]),
    "content list of texts": says([TEXT]),
    "content object": says(BLOCK),
    "content in content": says([{"type": "text", "content": TEXT}]),
    "content text with a value": says(
        [{"type": "text", "text": {"value": TEXT, "annotations": []}}]
    ),
    "content thinking": says(
        [
            {
                "type": "thinking",
                "thinking": [{"type": "text", "text": "[SUFFICIENT]"}],
            },
            BLOCK,
        ]
    ),
    "content reasoning": says([{"type": "reasoning", "text": "Thames?"}, BLOCK]),
    "content and reasoning": says(TEXT, reasoning_content="Thames?"),
    "content and empty tool calls": says(
        TEXT, tool_calls=[], function_call=None, audio=None, refusal=None
    ),
    "content and null tool calls": says(TEXT, tool_calls=None),
    "annotations": says(TEXT, annotations=[{"type": "url_citation"}]),
    "finish null": whole(finish=None),
    "finish missing": {"choices": [{"index": 0, "message": CHOICE["message"]}]},
    "finish eos": whole(finish="eos"),
    "nothing but choices": {"choices": [{"message": {"content": TEXT}}]},
    "no role": whole({"content": TEXT}),
    "role model": whole({"role": "model", "content": TEXT}),
    "index from one": whole() | {"choices": [{**CHOICE, "index": 1}]},
    "two choices": whole()
    | {"choices": [CHOICE, {**CHOICE, "index": 1, "message": {"content": "X"}}]},
    "logprobs infinite": whole()
    | {"choices": [{**CHOICE, "logprobs": {"content": [{"logprob": float("-inf")}]}}]},
    "created as text": whole() | {"created": "now"},
    "delta in place of message": {
        "choices": [{"index": 0, "delta": {"content": TEXT}, "finish_reason": "stop"}]
    },
    "message and null delta": whole() | {"choices": [{**CHOICE, "delta": None}]},
    "text in place of message": {
        "choices": [{"index": 0, "text": TEXT, "finish_reason": "stop"}]
    },
    "model null": whole() | {"model": None},
    "service fields": whole(
        service_tier="default", system_fingerprint=None, prompt_filter_results=[]
    ),
    "content block null": says([None, BLOCK]),
    "tool call null": says(TEXT, tool_calls=[None]),
    "a choice by itself": {"choices": CHOICE},
    "a null choice": whole() | {"choices": [None, CHOICE]},
    "in a list": [whole()],
    "finish object": whole(finish={"type": "stop"}),
    "a stream all the same": PIECES + END + DONE,
}

# how a server replies to a request for a stream
STREAMED: dict[str, bytes] = {
    "plain": PIECES + END + DONE,
    "usage chunk": PIECES + END + sse({"choices": [], "usage": USAGE}) + DONE,
    "usage chunk without choices": PIECES + END + sse({"usage": USAGE}) + DONE,
    "usage chunk with null choices": PIECES
    + END
    + sse({"choices": None, "usage": USAGE})
    + DONE,
    "usage as text": PIECES
    + END
    + sse({"choices": [], "usage": {"prompt_tokens": "10"}})
    + DONE,
    "usage a list": PIECES + END + sse({"choices": [], "usage": [1]}) + DONE,
    "usage NaN": PIECES
    + END
    + sse({"choices": [], "usage": {**USAGE, "prompt_tokens": float("nan")}})
    + DONE,
    "ping": b'event: ping\ndata: {"type": "ping"}\n\n' + PIECES + END + DONE,
    "ping in the middle": PIECES[: len(delta({"content": WORDS[0]}))]
    + sse({"type": "ping"})
    + b"".join(delta({"content": word}) for word in WORDS[1:])
    + END
    + DONE,
    "empty object": sse({}) + PIECES + END + DONE,
    "comment": b": keep-alive\n\n" + PIECES + END + DONE,
    "empty data": b"data:\n\n" + PIECES + b"data: \n\n" + END + DONE,
    "null event": b"data: null\n\n" + PIECES + END + DONE,
    "list event": b"data: []\n\n" + PIECES + END + DONE,
    "no [DONE]": PIECES + END,
    "no finish reason": PIECES + DONE,
    "role first": delta({"role": "assistant", "content": ""}) + PIECES + END + DONE,
    "role null": delta({"role": None, "content": None}) + PIECES + END + DONE,
    "delta null": sse({"choices": [{"index": 0, "delta": None}]})
    + PIECES
    + delta(None, "stop")
    + DONE,
    "error null": b"".join(delta({"content": word}, error=None) for word in WORDS)
    + END
    + DONE,
    "error empty": b"".join(delta({"content": word}, error={}) for word in WORDS)
    + END
    + DONE,
    "error after the end": PIECES
    + END
    + sse({"error": {"message": "usage failed"}})
    + DONE,
    "rubbish after the end": PIECES + END + b"data: {broken\n\n" + DONE,
    "finish in each piece": b"".join(delta({"content": word}, "stop") for word in WORDS)
    + DONE,
    "finish null as text": b"".join(delta({"content": word}, "null") for word in WORDS)
    + END
    + DONE,
    "index missing": delta({"content": WORDS[0]})
    + b"".join(sse({"choices": [{"delta": {"content": word}}]}) for word in WORDS[1:])
    + END
    + DONE,
    "finish twice": PIECES + END + END + DONE,
    "tool_calls, then stop": PIECES + delta({}, "tool_calls") + END + DONE,
    "finish with the last piece": b"".join(
        delta({"content": word}) for word in WORDS[:-1]
    )
    + delta({"content": WORDS[-1]}, "stop")
    + DONE,
    "whole message at the end": PIECES
    + sse({"choices": [{**CHOICE, "delta": {}}]})
    + DONE,
    "whole message in place of a delta": PIECES + sse({"choices": [CHOICE]}) + DONE,
    "whole text in the last delta": PIECES + delta({"content": TEXT}, "stop") + DONE,
    "rest in a whole message": delta({"content": TEXT[:9]})
    + sse({"choices": [CHOICE]})
    + DONE,
    "nothing but a whole message": sse({"choices": [CHOICE]}) + DONE,
    "usage in every chunk": b"".join(
        delta({"content": word}, usage=USAGE) for word in WORDS
    )
    + END
    + DONE,
    "content blocks": b"".join(
        delta({"content": [{"type": "text", "text": word}]}) for word in WORDS
    )
    + END
    + DONE,
    "content texts": b"".join(delta({"content": [word]}) for word in WORDS)
    + END
    + DONE,
    "content object": b"".join(
        delta({"content": {"type": "text", "text": word}}) for word in WORDS
    )
    + END
    + DONE,
    "content thinking": delta({"content": [{"type": "thinking", "thinking": [BLOCK]}]})
    + PIECES
    + END
    + DONE,
    "text in place of delta": b"".join(
        sse({"choices": [{"index": 0, "text": word}]}) for word in WORDS
    )
    + sse({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]})
    + DONE,
    "another choice": b"".join(
        delta({"content": word})
        + sse({"choices": [{"index": 1, "delta": {"content": "X"}}]})
        for word in WORDS
    )
    + END
    + DONE,
    "lines end in CR LF": (PIECES + END + DONE).replace(b"\n", b"\r\n"),
    "lines end in CR": (PIECES + END + DONE).replace(b"\n", b"\r"),
    "an event in several lines": b"".join(
        delta({"content": word}).replace(b', "model"', b'\ndata: , "model"')
        for word in WORDS
    )
    + END
    + DONE,
    "no space behind data": (PIECES + END + DONE).replace(b"data: ", b"data:"),
    "byte order mark": b"\xef\xbb\xbf" + PIECES + END + DONE,
    "no stream all the same": json.dumps(whole()).encode(),
}


class Odd(BaseHTTPRequestHandler):
    """Server of one reply, whatever it is asked."""

    reply: bytes = b""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        is_stream = b"data:" in self.reply[:400]
        self.send_response(200)
        self.send_header(
            "Content-Type", "text/event-stream" if is_stream else "application/json"
        )
        self.send_header("Content-Length", str(len(self.reply)))
        self.end_headers()
        self.wfile.write(self.reply)

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def by_langchain(url: str, streamed: bool) -> str:
    """Return ChatOpenAI's reading of the reply; "" where it raises."""
    model = ChatOpenAI(
        model="m",
        base_url=url,
        api_key=SecretStr("any"),
        max_retries=0,
        timeout=5,
        stream_usage=True,
    )
    try:
        if streamed:
            return "".join(str(chunk.text) for chunk in model.stream("Who?"))
        return str(model.invoke("Who?").text)
    except Exception:
        return ""


def by_ours(url: str, streamed: bool) -> str:
    model = OpenAIChat(model="m", base_url=url, api_key=SecretStr("any"))
    chat = as_chat(model, ChatSettings(timeout=5, retry=RetryPolicy(attempts=1)))
    heard: list[str] = []
    request = Request((Turn("user", "Who?"),), heard.append if streamed else None)
    reply = chat.complete(request)
    again = asyncio.run(chat.acomplete(request))
    assert reply.text == again.text
    assert not reply.shortfall
    assert not streamed or heard[-1] == reply.text
    return reply.text


@pytest.mark.parametrize("form", WHOLE)
def test_a_whole_reply(url: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    reply = WHOLE[form]
    monkeypatch.setattr(
        Odd, "reply", reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    )
    assert by_ours(url, streamed=False) == TEXT
    assert by_langchain(url, streamed=False) in (TEXT, "")


@pytest.mark.parametrize("form", STREAMED)
def test_a_streamed_reply(url: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(Odd, "reply", STREAMED[form])
    assert by_ours(url, streamed=True) == TEXT


def test_usage_that_counts_from_the_beginning_in_every_chunk_is_counted_once(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(Odd, "reply", STREAMED["usage in every chunk"])
    model = OpenAIChat(model="m", base_url=url, api_key=SecretStr("any"))
    reply = as_chat(model).complete(Request((Turn("user", "Who?"),), lambda text: None))
    assert (reply.input_tokens, reply.output_tokens) == (10, 5)
