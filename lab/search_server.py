"""Measures searches a second at `POST /retrieve` of `ras-agent serve` beside a plain FAISS server, in pairs.

    python -m lab.search_server INDEX questions.jsonl --retrievers dense,bm25,ppr,gfm --json searches.jsonl

INDEX has vectors of MiniLM, and a knowledge graph for retrievers that walk one. The plain server is what Search-R1's
recipe asks for: the same vectors in an exact FAISS index, the same embedder, all queries of a request embedded at once,
the documents in memory, one FastAPI path in a process of its own. Each pair sends the same queries to both, one request
after the other, and takes turns at who is first; no query comes twice. The ratio is theirs to ours, by the seconds of a
pair; above 1 ours is faster. The processes share this machine's cores.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import httpx
from fastapi import Body, FastAPI

from ras_agent.program import run_program

_K = 3


@dataclass(frozen=True, slots=True)
class Pair:
    """The same queries at both servers. ours, plain: seconds. ratio: of plain to ours."""

    retriever: str
    batch: int
    requests: int
    ours: float
    plain: float

    @property
    def ratio(self) -> float:
        """Return how many times as fast ours is."""
        return self.plain / self.ours


def measure(
    index: Path, questions: Sequence[str], retrievers: Sequence[str], batches: Sequence[int], pairs: int, requests: int
) -> Iterator[Pair]:
    """Measure each retriever with each size of batch, `pairs` times `requests` requests to each server."""
    fresh = iter(dict.fromkeys(questions))
    with _server([sys.executable, "-m", "lab.search_server", str(index), "--plain"]) as plain:
        for retriever in retrievers:
            command = [str(Path(sys.executable).with_name("ras-agent")), "serve", "--index", str(index)]
            with _server([*command, "--retriever", retriever]) as ours:
                for batch in batches:
                    _seconds((ours, plain), [list(islice(fresh, batch))])  # loads what is loaded at the first search
                    for pair in range(pairs):
                        sent = [list(islice(fresh, batch)) for _ in range(requests)]
                        if not sent[-1]:
                            raise ValueError("the questions are used up: ask for fewer pairs, or give more questions")
                        turn = (ours, plain) if pair % 2 else (plain, ours)
                        seconds = dict(zip(turn, _seconds(turn, sent), strict=True))
                        yield Pair(retriever, batch, requests, seconds[ours], seconds[plain])


def _seconds(servers: Sequence[str], requests: Sequence[Sequence[str]]) -> list[float]:
    """Return the seconds that each server takes for all requests, in turns request by request."""
    taken = [0.0] * len(servers)
    with httpx.Client(trust_env=False, timeout=120) as client:
        for queries in requests:
            for place, server in enumerate(servers):
                body = {"queries": queries, "topk": _K, "return_scores": True}
                began = time.perf_counter()
                result = client.post(f"{server}/retrieve", json=body).raise_for_status().json()["result"]
                taken[place] += time.perf_counter() - began
                if len(result) != len(queries):
                    raise ValueError(f"{server} answered {len(result)} of {len(queries)} queries")
    return taken


@contextmanager
def _server(command: Sequence[str]) -> Iterator[str]:
    """Run a server that takes --port, and yield its address once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        while process.poll() is None:
            try:
                httpx.get(f"{address}/health", trust_env=False)
                break
            except httpx.TransportError:
                time.sleep(0.1)
        else:
            raise RuntimeError(f"{' '.join(command)} ended with code {process.returncode}")
        yield address
    finally:
        process.terminate()
        process.wait(20)


def plain_server(index: Path, port: int) -> None:
    """Serve the vectors of an index from FAISS, and nothing else."""
    import faiss
    import uvicorn

    from ras_agent.tools.embed.minilm import MiniLMEmbedder
    from ras_agent.tools.index.store import PassageIndex

    embedder, snapshot = MiniLMEmbedder(), PassageIndex.open(index).snapshot
    passages = list(snapshot.passages)
    vectors: Any = faiss.IndexFlatIP(embedder.dimension)
    vectors.add(snapshot.read_vectors(snapshot.column("vector")))
    embedder.embed(["the network is loaded before the first request"])
    documents = [{"id": one.id, "contents": f'"{one.title}"\n{one.text}'} for one in passages]
    app = FastAPI()

    @app.get("/health")
    def health() -> str:
        return "ok"

    @app.post("/retrieve")
    def retrieve(body: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        scores, rows = vectors.search(embedder.embed(body["queries"]), body["topk"])
        pairs = [zip(row.tolist(), score.tolist(), strict=True) for row, score in zip(rows, scores, strict=True)]
        return {"result": [[{"document": documents[row], "score": score} for row, score in pair] for pair in pairs]}

    uvicorn.run(app, port=port, log_level="critical")


def report(pairs: Sequence[Pair]) -> str:
    """Format a Markdown table: medians over the pairs, and the ratio with its minimum and maximum."""
    lines = [
        "| retriever | queries a request | searches/s, plain FAISS | searches/s, ours | ratio | least to greatest |",
        "|---|---|---|---|---|---|",
    ]
    for key in dict.fromkeys((pair.retriever, pair.batch) for pair in pairs):
        rows = [pair for pair in pairs if (pair.retriever, pair.batch) == key]
        ratios = [row.ratio for row in rows]
        plain, ours = (median(key[1] * row.requests / getattr(row, name) for row in rows) for name in ("plain", "ours"))
        spread = f"{median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f}"
        lines.append(f"| {key[0]} | {key[1]} | {plain:.0f} | {ours:.0f} | {spread} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, and write JSON Lines; see the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m lab.search_server", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("questions", type=Path, nargs="?", help="JSON Lines with `question`")
    parser.add_argument("--retrievers", default="dense,bm25,ppr,gfm")
    parser.add_argument("--batches", default="1,64")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--requests", type=int, default=8, help="of a pair, to each server")
    parser.add_argument("--json", type=Path, help="one JSON object a pair")
    parser.add_argument("--plain", action="store_true", help="be the plain server")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args(arguments)
    os.environ["NO_PROXY"] = "127.0.0.1"
    if options.plain:
        return plain_server(options.index, options.port)
    lines = options.questions.read_text("utf-8").splitlines()
    questions = [json.loads(line)["question"] for line in lines if line.strip()]
    sizes = [int(size) for size in options.batches.split(",")]
    pairs = []
    for pair in measure(
        options.index, questions, options.retrievers.split(","), sizes, options.pairs, options.requests
    ):
        pairs.append(pair)
        if options.json:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"ratio": pair.ratio, **asdict(pair)}) + "\n")
    print(report(pairs))


if __name__ == "__main__":
    run_program(main)
