"""Measures when a run ends whose roles hang, what max_tokens let it use, and how long 50 users wait for one model.

    python -m lab.limits

Nothing of it depends on the machine but by fractions of a second: the time is that of servers that do not answer, and
of a loopback model that answers after two seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from statistics import quantiles
from typing import Any

from ras_agent.budget import Limits
from ras_agent.eval.bench.loopback_model import serving
from ras_agent.graphs.ras import create_ras_agent
from ras_agent.program import run_program
from ras_agent.records import Hit, Passage
from ras_agent.settings import Settings

_QUESTION = "Which river flows through the city where the inventor of the telephone was born?"
_SECONDS = 3.0
_DRIP = 0.05


class _Slow(BaseHTTPRequestHandler):
    """Leaves requests under /hang/ without a reply, and sends others a byte at a time."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.startswith("/hang/"):
            self.server.over.wait(600)  # type: ignore[attr-defined]
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        try:
            while not self.server.over.wait(_DRIP):  # type: ignore[attr-defined]
                self.wfile.write(b" ")
                self.wfile.flush()
        except OSError:  # the client has gone
            return

    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def _slow_server() -> Iterator[str]:
    """Give the address of a server that never ends a reply."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Slow)
    server.over = threading.Event()  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.over.set()  # type: ignore[attr-defined]
        server.shutdown()


class _Hangs:
    """Retrieves for a minute."""

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        time.sleep(60)
        return []


def seconds_table() -> str:
    """Measure how long runs take under max_seconds whose parts do not answer. Return a Markdown table."""
    lines = [f"| under max_seconds = {_SECONDS:g} | seconds | answer |", "|---|---|---|"]
    with _slow_server() as root:
        hang, drip = f"vllm:{root}/hang/v1#m", f"vllm:{root}/drip/v1#m"
        runs: dict[str, dict[str, Any]] = {
            "the planner hangs": {"planner": hang, "extractor": "offline"},
            "the extractor hangs": {"extractor": hang},
            "the retriever hangs": {"retriever": _Hangs()},
            "the answerer hangs": {"answerer": hang},
            "the planner's server drips": {"planner": drip, "extractor": "offline"},
            "the answerer's server drips": {"answerer": drip},
        }
        for name, parts in runs.items():
            for how, ask in (("", _ask), (", async", _aask)):
                agent = create_ras_agent(index=_passages(), limits=Limits(max_seconds=_SECONDS), **parts)
                seconds, out = _timed(ask, agent)
                lines.append(f"| {name}{how} | {seconds:.1f} | {out['answer']} |")
    return "\n".join(lines)


def own_client_table() -> str:
    """Measure a run whose planner is a model object of a second's patience, without any limit. Return a table."""
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    lines = ["| a planner that hangs, without a limit | seconds | stop reason |", "|---|---|---|"]
    with _slow_server() as root:
        model = ChatOpenAI(model="m", base_url=f"{root}/hang/v1", api_key=SecretStr("none"), timeout=1, max_retries=0)
        for name, settings in (("as its owner made it", Settings()), ("`Settings(retries=2)`", Settings(retries=2))):
            agent = create_ras_agent(index=_passages(), planner=model, extractor="offline", settings=settings)
            seconds, out = _timed(_ask, agent)
            lines.append(f"| `ChatOpenAI(timeout=1, max_retries=0)`, {name} | {seconds:.1f} | {out['stop_reason']} |")
    return "\n".join(lines)


def tokens_table() -> str:
    """Measure what runs use under max_tokens. Return a Markdown table."""
    lines = ["| max_tokens | used | calls | stop reason | answer |", "|---|---|---|---|---|"]
    with serving(0.0) as model:
        for most in (100, 1000, 3000, 10_000, None):
            roles = _roles(model.root)
            agent = create_ras_agent(index=_passages(), limits=Limits(max_tokens=most), **roles)
            out, usage = (found := _ask(agent)), found["usage"]
            used = usage["input_tokens"] + usage["output_tokens"]
            shown = f"{used:,} | {usage['llm_calls']} | {out['stop_reason']} | {out['answer'][:60]}"
            lines.append(f"| {f'{most:,}' if most else 'no limit'} | {shown} |")
    return "\n".join(lines)


def users_table(users: int, latency: float, ways: Sequence[int]) -> str:
    """Measure how long `users` at once wait by `in_flight`, where each call takes `latency` s. Return a table."""
    lines = [f"| {users} questions at once, {latency:g} s a call | p50 s | p95 s |", "|---|---|---|"]
    with serving(latency) as model:
        roles = _roles(model.root)
        for in_flight in ways:
            settings = Settings(in_flight=in_flight, max_hops=3)
            agent = create_ras_agent(index=_passages(), settings=settings, **roles)
            waits = asyncio.run(_waits(agent, users))
            found = quantiles(waits, n=20)
            lines.append(f"| in_flight = {in_flight} | {found[9]:.1f} | {found[18]:.1f} |")
    return "\n".join(lines)


async def _waits(agent: Any, users: int) -> list[float]:
    async def one(number: int) -> float:
        began = time.perf_counter()
        await agent.ainvoke({"question": f"{_QUESTION} ({number})"})
        return time.perf_counter() - began

    return list(await asyncio.gather(*map(one, range(users))))


@cache
def _passages() -> list[Passage]:
    """Read the bundled sample."""
    lines = files("ras_agent").joinpath("data/sample_passages.jsonl").read_text("utf-8").splitlines()
    return [Passage.from_dict(json.loads(line)) for line in lines]


def _roles(root: str) -> dict[str, Any]:
    return {role: f"vllm:{root}/v1#{role}" for role in ("planner", "extractor", "answerer")}


def _ask(agent: Any) -> Any:
    return agent.invoke({"question": _QUESTION})


def _aask(agent: Any) -> Any:
    return asyncio.run(agent.ainvoke({"question": _QUESTION}))


def _timed(ask: Callable[[Any], Any], agent: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    out = ask(agent)
    return time.perf_counter() - began, out


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the tables; see the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m lab.limits", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--latency", type=float, default=2.0, help="seconds from request to reply")
    parser.add_argument("--in-flight", default="16,64,256", help="numbers of calls at the same time")
    options = parser.parse_args(arguments)
    os.environ["NO_PROXY"] = "127.0.0.1"
    ways = [int(one) for one in options.in_flight.split(",")]
    for table in (
        seconds_table,
        own_client_table,
        tokens_table,
        lambda: users_table(options.users, options.latency, ways),
    ):
        print(table(), end="\n\n", flush=True)


if __name__ == "__main__":
    run_program(main)
