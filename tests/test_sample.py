"""The bundled sample: its size, its kinds of question, and supporting passages that hold the answers."""

import json
from collections import Counter
from importlib.resources import files
from typing import Any

from ras_agent import create_ras_agent
from ras_agent.app.sample import sample_passages
from ras_agent.tools.index.store import PassageIndex


def _rows(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in files("ras_agent.data")
        .joinpath(name)
        .read_text("utf-8")
        .splitlines()
    ]


def test_it_has_at_least_80_passages_with_unique_ids_and_titles() -> None:
    passages = _rows("sample_passages.jsonl")
    assert len(passages) >= 80
    assert (
        len({row["id"] for row in passages})
        == len({row["title"] for row in passages})
        == len(passages)
    )


def test_it_has_at_least_40_questions_of_four_kinds() -> None:
    kinds = Counter(row["type"] for row in _rows("sample_questions.jsonl"))
    assert sum(kinds.values()) >= 40
    assert set(kinds) == {"bridge", "comparison", "3-hop", "unanswerable"}
    assert min(kinds.values()) >= 6


def test_every_answer_but_yes_and_no_is_in_a_supporting_passage() -> None:
    texts = {
        row["id"]: f"{row['title']} {row['text']}"
        for row in _rows("sample_passages.jsonl")
    }
    for row in _rows("sample_questions.jsonl"):
        evidence = " ".join(texts[supporting] for supporting in row["supporting_ids"])
        found = [
            answer
            for answer in row["answers"]
            if answer in evidence or answer in {"yes", "no"}
        ]
        assert bool(found) == (row["type"] != "unanswerable"), row["question"]


def test_the_demo_question_is_answered_with_evidence_from_every_hop() -> None:
    question = "Which river flows through the city where the inventor of the telephone was born?"
    index = PassageIndex.in_memory(sample_passages())
    agent = create_ras_agent(
        planner="offline", answerer="offline", retriever="bm25", index=index
    )
    out = agent.invoke({"question": question})
    assert out["answer"] == "Water of Leith"
    assert out["stop_reason"] == "sufficient"
    assert len(out["steps"]) == 3
    assert [citation["title"] for citation in out["citations"]] == [
        "Telephone",
        "Alexander Graham Bell",
        "Water of Leith",
    ]
    assert all(citation["quote"] for citation in out["citations"])
