"""Scores of instances, by hand, and the command that prints them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ras_agent.errors import IngestError
from ras_agent.eval.bench.paths import evaluate, main, numbers_in, table
from ras_agent.eval.benchmarks.pathquestion import of_part, part_of
from ras_agent.eval.question import Question
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


def command(folder: Path) -> list[str]:
    facts = [(f"e{n}", "spouse", f"f{n}") for n in range(30)]
    (folder / "kb.jsonl").write_text("\n".join(json.dumps(fact) for fact in facts))
    lines = [
        {"question": f"spouse of e{n}", "q_entity": [f"e{n}"], "a_entity": [f"f{n}"], "gold_path": [facts[n]]}
        for n in range(30)
    ]
    (folder / "q.jsonl").write_text("\n".join(map(json.dumps, lines)))
    files = ["--kb", str(folder / "kb.jsonl"), "--questions", str(folder / "q.jsonl"), "--sample", "3"]
    return [*files, "--out", str(folder / "scores.jsonl")]


def test_the_command_prints_a_table_and_writes_a_line_an_instance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*command(tmp_path), "--instances", "0,15"])
    assert "| 15 | `ppr>shortest>bm25` | 100.0 |" in capsys.readouterr().out
    first, second = map(json.loads, (tmp_path / "scores.jsonl").read_text().split("\n\n"))
    assert (first["instance"], first["score"]["questions"]) == ("0", 3)
    assert (second["score"]["refinement"]["hr"], second["score"]["hr_at_1"]) == (1.0, 1.0)


def test_an_empty_knowledge_base_is_refused(tmp_path: Path) -> None:
    given = command(tmp_path)
    (tmp_path / "kb.jsonl").write_text("")
    with pytest.raises(IngestError, match=r"kb\.jsonl holds no triples"):
        main(given)


def test_an_instance_with_a_line_is_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "scores.jsonl"
    main([*command(tmp_path), "--instances", "0,15"])
    rows = capsys.readouterr().out.splitlines()[-2:]
    out.write_text(out.read_text()[:-20])  # the second line was cut off
    main([*command(tmp_path), "--instances", "0,15"])
    again = capsys.readouterr().out.splitlines()
    assert rows[0] in again
    assert [line.partition(":")[0] for line in again if line.endswith(" s")] == ["ppr>shortest>bm25"]
    main([*command(tmp_path), "--instances", "0", "--longest", "2"])
    assert "ppr>shortest>random: " in capsys.readouterr().out  # with other options it is another score
