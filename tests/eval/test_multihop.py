"""Scoring a question set, with an agent whose replies are scripted."""

import json
from pathlib import Path
from typing import Any

import pytest

from ras_agent.eval import multihop
from ras_agent.eval.questions import Question


def _reply(answer: str, ranked: list[str], hops: int = 2) -> dict[str, Any]:
    return {
        "answer": answer,
        "passages": {name: {"id": name, "title": f"Title {name}", "text": ""} for name in ranked},
        "steps": [{}] * hops,
        "stop_reason": "sufficient",
        "failures": [],
    }


def test_an_outcome_scores_the_answer_and_the_ranked_union_of_passages() -> None:
    question = Question("q1", "Which river?", ("Water of Leith",), ("a", "b"))
    (outcome,) = multihop.run(lambda _: _reply("the Leith", ["a", "x", "y", "z", "w", "b"]), [question])
    assert (outcome.em, outcome.f1) == (0.0, 0.5)  # 1 shared of 1 predicted and 3 gold tokens
    assert (outcome.recall_2, outcome.recall_5, outcome.all_5) == (0.5, 0.5, 0.0)
    assert (outcome.union_recall, outcome.union_all, outcome.union_size, outcome.hops) == (1.0, 1.0, 6, 2)


def test_gold_passages_named_by_title_are_matched_by_title() -> None:
    question = Question("q1", "?", ("x",), ("Title b",), by_title=True)
    (outcome,) = multihop.run(lambda _: _reply("x", ["a", "b"]), [question])
    assert outcome.recall_2 == 1.0


def test_the_summary_parts_yes_no_questions_from_spans() -> None:
    questions = [Question("1", "?", ("yes",), ("a",)), Question("2", "?", ("Paris",), ("a",))]
    summary = multihop.summary(multihop.run(lambda _: _reply("yes", ["a"]), questions))
    assert (summary["yes/no n"], summary["yes/no EM"], summary["span n"], summary["span F1"]) == (1, 100.0, 1, 0.0)
    assert summary["F1"] == 50.0


def test_the_command_answers_a_real_corpus_and_compares_two_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus, questions = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl"
    corpus.write_text(
        '{"id": "p1", "title": "Elm Mill", "text": "Elm Mill was built by Ann Rowe in 1802."}\n'
        '{"id": "p2", "title": "Ann Rowe", "text": "Ann Rowe was an engineer. She was born in Hull."}\n'
    )
    questions.write_text(
        '{"id": "q1", "question": "Where was the builder of Elm Mill born?", "answers": ["Hull"], '
        '"supporting_ids": ["p1", "p2"]}\n'
    )
    common = ["--corpus", str(corpus), "--questions", str(questions), "--baselines"]
    multihop.main([*common, "--graph", "single-shot", "--out", str(tmp_path / "one.jsonl")])
    multihop.main([*common, "--graph", "ras", "--against", str(tmp_path / "one.jsonl")])
    shown = capsys.readouterr().out
    assert "| ras bm25 offline | 1 |" in shown
    assert '| always "yes" |' in shown
    assert "F1 difference to one.jsonl" in shown
    row = json.loads((tmp_path / "one.jsonl").read_text())
    assert (row["id"], row["stop_reason"], row["union_recall"]) == ("q1", "single_shot", 1.0)
