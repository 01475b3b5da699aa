"""Scores of instances, by hand, and the command that prints them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ras_agent.eval.entity_split import of_part, part_of
from ras_agent.eval.paths import evaluate, main, numbers_in, table
from ras_agent.eval.questions import Question
from ras_agent.tools.subgraph.composition import CompositionError
from ras_agent.tools.subgraph.graph import Graph
from ras_agent.tools.subgraph.pipeline import PathFinder, PathSettings

KB = [("ann", "spouse", "bob"), ("bob", "nationality", "france"), ("ann", "gender", "female"), ("eve", "knows", "adam")]


def asked(answer: str, entity: str = "ann", text: str = "nationality of ann 's spouse bob") -> Question:
    return Question(answer, text, (answer,), metadata={"question_entities": [entity]})


def test_each_module_is_scored_by_its_entities() -> None:
    finder = PathFinder(Graph.from_triples(KB), "ppr>shortest>bm25", settings=PathSettings(top_k=1))
    score = evaluate(finder, [asked("france"), asked("adam"), asked("france", "unknown")])
    assert score.composition == "ppr>shortest>bm25"
    # ann, bob, france, female are found for the first two questions, nothing for the third
    assert score.subgraph.precision == pytest.approx((1 / 4 + 0 + 0) / 3)
    assert score.subgraph.recall == pytest.approx(1 / 3)
    assert score.subgraph.f1 == pytest.approx(2 * (1 / 12) * (1 / 3) / (1 / 12 + 1 / 3))
    assert (score.filtering.entities, score.paths) == (8 / 3, 2 / 3)
    # the best path is ann, bob, france
    assert score.refinement.precision == pytest.approx((1 / 3) / 3)
    assert (score.refinement.hr, score.hr_at_1) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


def test_no_questions_are_no_score() -> None:
    with pytest.raises(ValueError, match="no questions"):
        evaluate(PathFinder(Graph.from_triples(KB)), [])


def test_a_list_of_instances_has_numbers_ranges_and_compositions() -> None:
    assert numbers_in("0-2, 8,ppr>beam:st>st") == ["0", "1", "2", "8", "ppr>beam:st>st"]
    with pytest.raises(CompositionError, match="no range"):
        numbers_in("18-21")
    with pytest.raises(CompositionError, match="unknown path filtering"):
        numbers_in("ppr>far>random")


def test_the_table_has_a_row_an_instance() -> None:
    score = evaluate(PathFinder(Graph.from_triples(KB), "ppr>shortest>bm25"), [asked("france")])
    head, rule, row = table([("15", score)]).splitlines()
    assert head.count("|") == rule.count("|") == row.count("|")
    assert row.startswith("| 15 | `ppr>shortest>bm25` | 100.0 | 40.00 |")


def test_an_entity_falls_into_one_part_and_parts_are_about_60_20_20() -> None:
    questions = [asked("x", f"entity {n}") for n in range(2000)]
    sizes = [len(of_part(questions, part)) for part in ("train", "dev", "test")]
    assert sum(sizes) == 2000
    assert [round(size / 2000, 1) for size in sizes] == [0.6, 0.2, 0.2]
    assert part_of(asked("x", "Ann Lee")) == part_of(asked("y", "ann  lee", "other words"))
    with pytest.raises(ValueError, match="unknown part"):
        of_part(questions, "all")
    with pytest.raises(ValueError, match="no question_entities"):
        part_of(Question("1", "?", ("x",)))


def test_the_command_prints_a_table_and_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kb, questions, out = tmp_path / "kb.jsonl", tmp_path / "q.jsonl", tmp_path / "scores.json"
    facts = [(f"e{n}", "spouse", f"f{n}") for n in range(30)]
    kb.write_text("\n".join(json.dumps(fact) for fact in facts))
    lines = [
        {"question": f"spouse of e{n}", "q_entity": [f"e{n}"], "a_entity": [f"f{n}"], "gold_path": [facts[n]]}
        for n in range(30)
    ]
    questions.write_text("\n".join(map(json.dumps, lines)))
    main(["--kb", str(kb), "--questions", str(questions), "--instances", "0,15", "--sample", "3", "--out", str(out)])
    assert "| 15 | `ppr>shortest>bm25` | 100.0 |" in capsys.readouterr().out
    first, second = json.loads(out.read_text())
    assert (first["questions"], second["refinement"]["hr"], second["hr_at_1"]) == (3, 1.0, 1.0)
