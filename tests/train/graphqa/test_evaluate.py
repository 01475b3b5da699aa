"""A run over questions with graphs stores the answers, batch by batch."""

from __future__ import annotations

import gc
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from ras_agent.eval.question import Question
from ras_agent.tools.graph_tokens.graph_llm import GRAPH_WEIGHTS
from ras_agent.tools.graph_tokens.graph_reader import GraphInput
from ras_agent.tools.subgraph.graph import Graph, Subgraph
from ras_agent.train.graphqa.evaluate import evaluate, graph_sizes


class Reader:
    """Reader that always gives one reply, and is interrupted in its batch of number `interrupted`."""

    def __init__(self, interrupted: int = -1, reply: str = "support") -> None:
        self.batches: list[int] = []
        self.reply = reply
        self.prompts = self
        self._interrupted = interrupted

    def input(self, question: str, graph: Graph) -> GraphInput:
        return GraphInput((), *Subgraph.full(graph).texts())

    def replies_to(self, inputs: Sequence[GraphInput], batch: int) -> list[Any]:
        if len(self.batches) == self._interrupted:
            raise KeyboardInterrupt
        self.batches.append(len(inputs))
        return [SimpleNamespace(text=self.reply) for _ in inputs]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [
        f"cats {number}\tPets calm people.\tsupport\t(cats; causes; calm)"
        for number in range(5)
    ]
    file = tmp_path / "val.tsv"
    file.write_text("\n".join(["arg1\targ2\tlabel\tgraph", *rows]) + "\n")
    (tmp_path / GRAPH_WEIGHTS).write_bytes(b"weights")
    return file


def results(out: Path) -> list[str]:
    return [
        json.loads(line)["id"]
        for line in (out / "results.jsonl").read_text().splitlines()
    ]


def test_questions_are_asked_in_batches_and_scored(data: Path, tmp_path: Path) -> None:
    reader: Any = Reader()
    summary = evaluate(reader, tmp_path, "explagraphs", data, tmp_path / "run", batch=2)
    scores = summary["scores"]
    assert reader.batches == [2, 2, 1]
    assert scores["accuracy"]["mean"] == 1.0


def test_a_number_that_a_reply_cites_is_the_node_in_that_row_of_what_was_shown(
    data: Path, tmp_path: Path
) -> None:
    reader: Any = Reader(reply="support\nNodes: 0, 9\nEdges: 0,causes,1")
    summary = evaluate(
        reader, tmp_path, "explagraphs", data, tmp_path / "run", cite=True
    )
    means = {name: score["mean"] for name, score in summary["scores"].items()}
    # cats and calm are the rows 0 and 1, and there is no row 9
    assert (means["valid_nodes"], means["valid_edges"]) == (0.5, 1.0)
    assert means["accuracy"] == 1.0


def test_an_interrupted_run_keeps_its_batches_and_is_resumed(
    data: Path, tmp_path: Path
) -> None:
    interrupted: Any = Reader(interrupted=1)
    with pytest.raises(KeyboardInterrupt):
        evaluate(interrupted, tmp_path, "explagraphs", data, tmp_path / "run", batch=2)
    gc.collect()  # asyncio's task complains as it goes: here, and not within a later test
    assert len(results(tmp_path / "run")) == 2
    resumed: Any = Reader()
    evaluate(resumed, tmp_path, "explagraphs", data, tmp_path / "run", batch=2)
    assert resumed.batches == [2, 1]
    assert len(set(results(tmp_path / "run"))) == 5


def test_sizes_are_means_of_the_shown_nodes_and_of_the_tokens_of_whole_texts() -> None:
    questions = []
    for number, nodes in enumerate((["cats", "calm"], ["a", "b", "c", "d"])):
        graph = {"nodes": nodes, "edges": [[0, "causes", 1]]}
        asked = Question(str(number), "?", ("yes",), metadata={"graph": graph})
        questions.append(asked)
    prompts: Any = SimpleNamespace(
        subgraph=lambda question, graph: Subgraph.full(graph),
        count=lambda text: len(text.split()),
    )
    # two headers and an edge a text, with two and four rows of nodes
    assert graph_sizes(prompts, questions) == {"nodes": 3.0, "tokens": 6.0}
