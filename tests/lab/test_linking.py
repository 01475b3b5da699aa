"""Linking is judged by the gold passages it leads to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.linking import main
from ras_agent.records import Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.structure.build_graph import build_graph


def test_shares_of_questions_and_of_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages = [
        Passage("bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"),
        Passage("leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"),
        Passage("paris", "Paris is the capital of France.", "Paris"),
    ]
    PassageIndex.create(tmp_path / "i").add(passages)
    build_graph(tmp_path / "i")
    asked = [
        ("a", "Does the Water of Leith flow through France?", ["leith"]),
        ("b", "Where was Alexander Graham Bell born?", ["bell", "leith"]),
        ("c", "Who was Ada Lovelace?", ["paris"]),
        ("d", "Which passage is not there?", ["nowhere"]),
    ]
    (tmp_path / "q.jsonl").write_text(
        "".join(
            json.dumps({"id": name, "question": question, "answers": ["x"], "supporting_ids": gold}) + "\n"
            for name, question, gold in asked
        )
    )
    main([str(tmp_path / "q.jsonl"), "--index", str(tmp_path / "i"), "--letters", "--missed"])
    told, *missed = map(json.loads, capsys.readouterr().out.splitlines())
    assert told == {"questions": 3, "any": 0.6667, "all": 0.3333, "linked": 1.0, "precision": 0.6667}
    assert [question["id"] for question in missed] == ["c"]
