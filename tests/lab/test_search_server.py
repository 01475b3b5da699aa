"""The measure of the search engine of a trainer, small: both servers answer the same queries."""

import json
from pathlib import Path

import pytest

from ras_agent import Passage, PassageIndex

pytestmark = pytest.mark.slow("benchmarks")


def test_both_servers_are_asked_in_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for module in ("fastapi", "faiss", "tokenizers"):
        pytest.importorskip(module)
    from lab import search_server

    index, questions, target = tmp_path / "my.index", tmp_path / "questions.jsonl", tmp_path / "out.jsonl"
    PassageIndex.create(index, "minilm").add([Passage(f"p{n}", f"The mill {n} of Leith.", "Mill") for n in range(5)])
    questions.write_text("".join(json.dumps({"question": f"Which mill is number {n}?"}) + "\n" for n in range(40)))
    search_server.main(
        [str(index), str(questions), "--retrievers", "bm25", "--batches", "1,3", "--pairs", "2", "--requests", "2",
         "--json", str(target)]
    )  # fmt: skip
    pairs = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    assert [(pair["retriever"], pair["batch"]) for pair in pairs] == [("bm25", 1)] * 2 + [("bm25", 3)] * 2
    assert all(pair["ratio"] == pytest.approx(pair["plain"] / pair["ours"]) for pair in pairs)
    assert [line[:12] for line in capsys.readouterr().out.splitlines()[2:]] == ["| bm25 | 1 |", "| bm25 | 3 |"]
