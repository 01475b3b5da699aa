"""Serves OpenAI's chat protocol without a model, to measure and test evaluations.

    python -m ras_agent.eval.bench.loopback_model --latency 0.1

It serves on the loopback interface, prints its port, and ends when its standard input is closed. The requested
model's name chooses the role: "planner" asks one to three sub-queries, "explorer" asks for ever more,
"extractor" writes four facts for each passage and "scribe" ten, "reasoner" writes a sentence, "answerer" names
something from the facts. A reply depends only on the request, so that two runs with equal requests get equal
replies. Replies are meaningless, and so are the scores of such a run.

With --window 4096 it has a context window: if prompt and requested reply are longer, it refuses the request
with the error of a vLLM server. A token is then at most four letters of a word, a digit or a punctuation mark,
which gives more tokens than real models count.

    GET /counts         {"received", "answered", "repeated", "refused", "longest"}; repeated: requests that had been
                        answered before; refused: prompts longer than the window; longest: tokens of the longest prompt
                        that was answered
    PUT /gate  {"answer": 100}   answer a hundred more requests, then leave all without a reply; null opens the gate
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from subprocess import PIPE, Popen
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from aiohttp import web

from ras_agent.contracts.marks import (
    ANSWER,
    NONE,
    OBJECT,
    PASSAGE_FENCE,
    QUESTION,
    SUBJECT,
    SUBQ,
    SUFFICIENT,
    UNKNOWN,
    fact_text,
    number_text,
)

_FACTS_A_PASSAGE = 4
_LONGEST = 2**30  # of a request, in bytes
_SUBJECT = re.compile(rf"\({SUBJECT} ([^|]+) \|")
_OBJECT = re.compile(rf"\| {OBJECT} ([^)]+)\)")
_PASSAGE = re.compile(
    rf"<{PASSAGE_FENCE}>\n\[\d+\] ?(.*)\n(.*?)\n</{PASSAGE_FENCE}>", re.DOTALL
)
_TOKEN = re.compile(r"[^\W\d]{1,4}|\d|[^\w\s]|\n")


def plan(prompt: str) -> str:
    """Return the next of one to three sub-queries, then the planner's stop."""
    question = prompt.rpartition(f"{QUESTION} ")[2]
    searches = prompt.count(f"{SUBQ} ")
    if searches > _number(question) % 3:
        return str(SUFFICIENT)
    subjects = _SUBJECT.findall(prompt)
    if not subjects:
        return f"{SUBQ} {question}"
    return f"{SUBQ} What is known about {subjects[_number(prompt) % len(subjects)]}, search {searches + 1}?"


def explore(prompt: str) -> str:
    """Return another sub-query about something in the facts that were found."""
    question = prompt.rpartition(f"{QUESTION} ")[2]
    searches = prompt.count(f"{SUBQ} ")
    objects = _OBJECT.findall(prompt)
    if objects:
        about = objects[_number(prompt) % len(objects)]
    else:
        about = question
    return f"{SUBQ} What is known about {about}, search {searches + 1}?"


def reason(prompt: str) -> str:
    """Return words of the passages as the next sentence."""
    passages = _PASSAGE.findall(prompt)
    title, text = (
        passages[_number(prompt) % len(passages)]
        if passages
        else ("Nothing", "was found")
    )
    return f"{title}: {' '.join(re.findall(r'[A-Za-z]+', text)[:8])} {_number(prompt) % 1000}."


def extract(prompt: str, count: int = _FACTS_A_PASSAGE) -> str:
    """Return `count` facts for each passage, made of its words."""
    facts = []
    for title, text in _PASSAGE.findall(prompt):
        words = re.findall(r"\w+", text)
        for start in range(0, count * 6, 6):
            if phrase := " ".join(words[start : start + 5]):
                facts.append(fact_text(title, "has in its text", phrase))
    return "\n".join(facts) or str(NONE)


def answer(prompt: str) -> str:
    """Return an answer made of words of the facts."""
    objects = _OBJECT.findall(prompt)
    if objects:
        return f"{ANSWER} {objects[_number(prompt) % len(objects)]} {number_text(1)}"
    return f"{ANSWER} {UNKNOWN}"


_ROLES: dict[str, Callable[[str], str]] = {
    "planner": plan,
    "explorer": explore,
    "extractor": extract,
    "scribe": partial(extract, count=10),
    "reasoner": reason,
    "answerer": answer,
}


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


@dataclass
class _Server:
    """Answers the requests of all clients, and counts them."""

    latency: float
    window: int | None = None
    vague: bool = False
    received: int = 0
    answered: int = 0
    repeated: int = 0
    refused: int = 0
    longest: int = 0
    answers_left: int | None = None
    prompts: set[bytes] = field(default_factory=set)

    def application(self) -> web.Application:
        """Return the application with the paths that the module's docstring lists."""
        application = web.Application(client_max_size=_LONGEST)
        routes = application.router
        routes.add_get("/counts", self.counts)
        routes.add_put("/gate", self.gate)
        if self.window and not self.vague:
            routes.add_get("/v1/models", self.models)
        routes.add_post("/{path:.*}", self.complete)
        return application

    async def counts(self, request: web.Request) -> web.Response:
        counted = {}
        for name in ("received", "answered", "repeated", "refused", "longest"):
            counted[name] = getattr(self, name)
        return web.json_response(counted)

    async def gate(self, request: web.Request) -> web.Response:
        content = await request.json()
        self.answers_left = content["answer"]
        return await self.counts(request)

    async def models(self, request: web.Request) -> web.Response:
        model = {"id": "loopback", "max_model_len": self.window}
        return web.json_response({"object": "list", "data": [model]})

    async def complete(self, request: web.Request) -> web.Response:
        body = await request.read()
        key = hashlib.sha256(body).digest()
        self.received += 1
        self.repeated += key in self.prompts
        if self.answers_left is not None:
            if self.answers_left == 0:
                await asyncio.Event().wait()  # the request never gets a reply
            self.answers_left -= 1
        await asyncio.sleep(self.latency)
        asked = json.loads(body)
        prompt = sum(tokens(str(turn["content"])) for turn in asked["messages"])
        reply = asked.get("max_tokens") or asked.get("max_completion_tokens") or 0
        refusal = self._refusal(prompt, reply)
        if refusal:
            self.refused += 1
            error = {"message": refusal, "type": "BadRequestError", "code": 400}
            return web.json_response({"error": error}, status=400)
        self.longest = max(self.longest, prompt)
        self.prompts.add(key)
        self.answered += 1
        return web.json_response(completion(asked))

    def _refusal(self, prompt: int, reply: int) -> str:
        """Return a vLLM server's error for a prompt that does not fit into the window; "" if it fits."""
        if self.window is None or prompt + max(reply, 1) <= self.window:
            return ""
        if self.vague:
            return "Input is too long for requested model."
        return (
            f"This model's maximum context length is {self.window} tokens. However, you requested {reply} output tokens "
            f"and your prompt contains {prompt} input tokens. Please reduce the length of the input prompt."
        )


def tokens(text: str) -> int:
    """Return the number of tokens of a text by this server's rule."""
    return len(_TOKEN.findall(text))


def completion(request: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to a chat request. Its usage counts words as tokens."""
    prompt = str(request["messages"][-1]["content"])
    reply = _ROLES.get(request["model"], answer)(prompt)
    input_tokens = sum(
        len(str(turn["content"]).split()) for turn in request["messages"]
    )
    output_tokens = len(reply.split())
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": reply},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        },
    }


class Loopback:
    """Controls a server that runs in another process."""

    def __init__(self, port: int) -> None:
        self.root = f"http://127.0.0.1:{port}"

    def spec(self, role: str) -> str:
        """Return the model spec with which an agent calls the server in a role, such as "planner" or
        "extractor".
        """
        return f"vllm:{self.root}/v1#{role}"

    def counts(self) -> dict[str, int]:
        """Return how many requests the server has received, answered and so on (see the module's docstring)."""
        return self._ask("GET", "/counts")

    def gate(self, answer: int | None) -> None:
        """Let the server answer `answer` more requests and then no more; None removes the limit."""
        self._ask("PUT", "/gate", json.dumps({"answer": answer}).encode())

    def _ask(self, method: str, path: str, body: bytes | None = None) -> dict[str, int]:
        direct = build_opener(ProxyHandler({}))
        with direct.open(
            Request(f"{self.root}{path}", data=body, method=method)
        ) as response:
            counts: dict[str, int] = json.load(response)
            return counts


@contextmanager
def serving(
    latency: float = 0.0,
    window: int | None = None,
    *,
    vague: bool = False,
    core: int | None = None,
) -> Iterator[Loopback]:
    """Start a server in a new process, and stop it at the end of the block.

    Args:
        latency: The seconds after which it replies.
        window: The tokens of its context window; None for no limit.
        vague: Whether its errors leave out how long the prompt was.
        core: The processor core that it runs on; None for all.
    """
    command = [
        sys.executable,
        "-P",
        "-m",
        "ras_agent.eval.bench.loopback_model",
        "--latency",
        str(latency),
    ]
    command += ["--window", str(window)] if window else []
    command += ["--vague"] if vague else []
    command += [] if core is None else ["--core", str(core)]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Loopback(int(process.stdout.readline()))
        process.stdin.close()


async def _serve(server: _Server) -> None:
    # a client that leaves ends its handler, so that its request is not counted as answered
    runner = web.AppRunner(
        server.application(), access_log=None, handler_cancellation=True
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the server with the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m ras_agent.eval.bench.loopback_model",
        description=(__doc__ or "").partition("\n")[0],
    )
    parser.add_argument(
        "--latency", type=float, default=0.0, help="seconds from request to reply"
    )
    parser.add_argument(
        "--window",
        type=int,
        help="tokens of a prompt and its reply together; no limit by default",
    )
    parser.add_argument(
        "--vague",
        action="store_true",
        help="a refusal names no numbers, as Bedrock's, and there is no list of models",
    )
    parser.add_argument(
        "--core", type=int, help="the number of the only core to run on"
    )
    options = parser.parse_args(arguments)
    if options.core is not None:
        os.sched_setaffinity(0, (options.core,))
    asyncio.run(_serve(_Server(options.latency, options.window, options.vague)))


if __name__ == "__main__":
    main()
