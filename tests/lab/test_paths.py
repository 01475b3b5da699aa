"""Scores of instances, by hand, and the command that prints them."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import networkx
import pytest

from lab.path_answers import Generated, PathReader, generation_score, read_answers
from lab.path_scores import evaluate
from lab.paths import Row, answer_table, main, numbers_in, table
from ras_agent.errors import IngestError, SettingsError
from ras_agent.eval.benchmarks.pathquestion import of_part, part_of
from ras_agent.eval.question import Question
from ras_agent.tools.subgraph.composition import CompositionError
from ras_agent.tools.subgraph.graph import Graph
from ras_agent.tools.subgraph.pipeline import PathFinder, PathSettings

pytestmark = pytest.mark.slow("benchmarks")

KB = [
    ("ann", "spouse", "bob"),
    ("bob", "nationality", "france"),
    ("ann", "gender", "female"),
    ("eve", "knows", "adam"),
]


def asked(
    answer: str, entity: str = "ann", text: str = "nationality of ann 's spouse bob"
) -> Question:
    return Question(answer, text, (answer,), metadata={"question_entities": [entity]})


def test_each_module_is_scored_by_its_entities() -> None:
    finder = PathFinder(
        Graph.from_triples(KB), "ppr>shortest>bm25", settings=PathSettings(top_k=1)
    )
    score = evaluate(
        lambda _: finder, [asked("france"), asked("adam"), asked("france", "unknown")]
    )
    assert score.composition == "ppr>shortest>bm25"
    # ann, bob, france, female are found for the first two questions, nothing for the third
    assert score.subgraph.precision == pytest.approx((1 / 4 + 0 + 0) / 3)
    assert score.subgraph.recall == pytest.approx(1 / 3)
    assert score.subgraph.f1 == pytest.approx(2 * (1 / 12) * (1 / 3) / (1 / 12 + 1 / 3))
    assert (score.filtering.entities, score.paths) == (8 / 3, 2 / 3)
    # the best path is ann, bob, france
    assert score.refinement.precision == pytest.approx((1 / 3) / 3)
    assert (score.refinement.hr, score.hr_at_1) == (
        pytest.approx(1 / 3),
        pytest.approx(1 / 3),
    )


def test_each_module_has_its_own_time() -> None:
    # a clock that goes on by a second at each look
    finder = PathFinder(
        Graph.from_triples(KB), "ppr>shortest>bm25", clock=count().__next__
    )
    score = evaluate(lambda _: finder, [asked("france")])
    seconds = [
        module.milliseconds / 1000
        for module in (score.subgraph, score.filtering, score.refinement)
    ]
    assert seconds == [1.0, 1.0, 1.0]


def test_no_questions_are_no_score() -> None:
    with pytest.raises(ValueError, match="no questions"):
        evaluate(lambda _: PathFinder(Graph.from_triples(KB)), [])


def test_a_list_of_instances_has_numbers_ranges_and_compositions() -> None:
    assert numbers_in("0-2, 8,ppr>beam:st>st") == ["0", "1", "2", "8", "ppr>beam:st>st"]
    with pytest.raises(CompositionError, match="no range"):
        numbers_in("18-21")
    with pytest.raises(CompositionError, match="unknown path filtering"):
        numbers_in("ppr>far>random")


def test_the_table_has_a_row_an_instance() -> None:
    finder = PathFinder(Graph.from_triples(KB), "ppr>shortest>bm25")
    score = evaluate(lambda _: finder, [asked("france")])
    head, rule, row = table([Row("15", 64, score)]).splitlines()
    assert head.count("|") == rule.count("|") == row.count("|")
    assert row.startswith("| 15 | `ppr>shortest>bm25` | 64 | 100.0 | 40.00 |")


def test_an_entity_falls_into_one_part_and_parts_are_about_60_20_20() -> None:
    questions = [asked("x", f"entity {n}") for n in range(2000)]
    sizes = [len(of_part(questions, part)) for part in ("train", "dev", "test")]
    assert sum(sizes) == 2000
    assert [round(size / 2000, 1) for size in sizes] == [0.6, 0.2, 0.2]
    assert part_of(asked("x", "Ann Lee")) == part_of(
        asked("y", "ann  lee", "other words")
    )
    with pytest.raises(ValueError, match="unknown part"):
        of_part(questions, "all")
    with pytest.raises(ValueError, match="no question_entities"):
        part_of(Question("1", "?", ("x",)))


def command(folder: Path) -> list[str]:
    facts = [(f"e{n}", "spouse", f"f{n}") for n in range(30)]
    (folder / "kb.jsonl").write_text("\n".join(json.dumps(fact) for fact in facts))
    lines = [
        {
            "question": f"spouse of e{n}",
            "q_entity": [f"e{n}"],
            "a_entity": [f"f{n}"],
            "gold_path": [facts[n]],
        }
        for n in range(30)
    ]
    (folder / "q.jsonl").write_text("\n".join(map(json.dumps, lines)))
    files = [
        "--kb",
        str(folder / "kb.jsonl"),
        "--questions",
        str(folder / "q.jsonl"),
        "--sample",
        "3",
    ]
    return [*files, "--out", str(folder / "scores.jsonl")]


def test_the_command_prints_a_table_and_writes_a_line_an_instance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*command(tmp_path), "--instances", "0,15"])
    assert "| 15 | `ppr>shortest>bm25` | 64 | 100.0 |" in capsys.readouterr().out
    first, second = map(
        json.loads, (tmp_path / "scores.jsonl").read_text().split("\n\n")
    )
    assert (first["instance"], first["score"]["questions"]) == ("0", 3)
    assert (second["score"]["refinement"]["hr"], second["score"]["hr_at_1"]) == (
        1.0,
        1.0,
    )


def test_an_empty_knowledge_base_is_refused(tmp_path: Path) -> None:
    given = command(tmp_path)
    (tmp_path / "kb.jsonl").write_text("")
    with pytest.raises(IngestError, match=r"kb\.jsonl holds no triples"):
        main(given)


def test_an_instance_with_a_line_is_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "scores.jsonl"
    main([*command(tmp_path), "--instances", "0,15"])
    rows = capsys.readouterr().out.splitlines()[-2:]
    out.write_text(out.read_text()[:-20])  # the second line was cut off
    main([*command(tmp_path), "--instances", "0,15"])
    again = capsys.readouterr().out.splitlines()
    assert rows[0] in again
    assert [line.partition(":")[0] for line in again if line.endswith(" s")] == [
        "ppr>shortest>bm25"
    ]
    main([*command(tmp_path), "--instances", "0", "--longest", "2"])
    # with other options it is another score
    assert "ppr>shortest>random: " in capsys.readouterr().out


OWN = (
    {"id": "1", "question": "nationality of ann 's spouse", "q_entity": ["Ann"], "answer": ["France"],
     "graph": [["Ann", "spouse", "Bob"], ["Bob", "nationality", "France"], ["Ann", "nationality", "Spain"]]},
    {"id": "2", "question": "who does eve know", "q_entity": ["Eve"], "answer": ["Adam", "Abel"],
     "graph": [["Eve", "knows", "Adam"], ["Cain", "knows", "Eve"], ["Cain", "knows", "Seth"]]},
)  # fmt: skip


def own(folder: Path) -> list[str]:
    (folder / "own.jsonl").write_text("\n".join(map(json.dumps, OWN)))
    return [
        "--set",
        "webqsp",
        "--questions",
        str(folder / "own.jsonl"),
        "--out",
        str(folder / "scores.jsonl"),
    ]


def scores_in(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (folder / "scores.jsonl").read_text().splitlines()
        if line
    ]


def test_each_question_is_asked_over_its_own_graph(tmp_path: Path) -> None:
    main([*own(tmp_path), "--instances", "0"])
    (row,) = scores_in(tmp_path)
    # by networkx: what shortest paths from the question's entity reach
    found = []
    for question in OWN:
        graph = networkx.Graph([(head, tail) for head, _, tail in question["graph"]])  # type: ignore[misc]
        reached = set(
            networkx.single_source_shortest_path(graph, question["q_entity"][0])
        )
        right = reached & set(question["answer"])
        found.append((len(right) / len(reached), len(right) / len(question["answer"])))
    precision, recall = (sum(column) / 2 for column in zip(*found, strict=True))
    scored = row["score"]["filtering"]
    assert (scored["precision"], scored["recall"]) == (
        pytest.approx(precision),
        pytest.approx(recall),
    )
    assert recall == 0.75


def test_the_number_of_paths_makes_a_row_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*own(tmp_path), "--instances", "15", "--top-k", "1,2"])
    assert [(row["top_k"], row["score"]["paths"]) for row in scores_in(tmp_path)] == [
        (1, 1.0),
        (2, 2.0),
    ]
    printed = capsys.readouterr().out
    assert "| 15 | `ppr>shortest>bm25` | 1 |" in printed
    assert "| 15 | `ppr>shortest>bm25` | 2 |" in printed
    assert "each over its own graph" in printed


@pytest.mark.parametrize(
    ("option", "value", "instance"), [("--window", "1", "2"), ("--width", "1", "9")]
)
def test_a_smaller_window_or_beam_finds_less(
    tmp_path: Path, option: str, value: str, instance: str
) -> None:
    (tmp_path / "wide").mkdir()
    main([*own(tmp_path / "wide"), "--instances", instance])
    main([*own(tmp_path), "--instances", instance, option, value])
    wide, narrow = (
        scores_in(folder)[0]["score"]["filtering"]["entities"]
        for folder in (tmp_path / "wide", tmp_path)
    )
    assert narrow < wide


def test_a_model_answers_from_the_paths_that_are_kept(
    tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script(
        {"when": "ann 's spouse", "reply": "France", "repeat": True},
        {"when": "does eve know", "reply": "Answers:\n- Cain\n- Adam", "repeat": True},
    )
    main(
        [
            *own(tmp_path),
            "--instances",
            "15",
            "--answerer",
            scripted_llm.spec,
            "--shots",
            "0,2",
            "--top-k",
            "2",
        ]
    )
    (row,) = scores_in(tmp_path)
    for shots in ("0", "2"):
        score = row["score"]["generation"][shots]
        assert (score["hr_at_1"], score["hr"], score["failures"]) == (0.5, 1.0, 0)
        # precision 1 and 1/2, recall 1 and 1/2
        assert (score["precision"], score["recall"], score["f1"]) == (0.75, 0.75, 0.75)
    first = next(
        one
        for one in scripted_llm.requests()
        if "ann 's spouse" in one["messages"][-1]["content"]
    )
    assert "Ann → spouse → Bob" in first["messages"][-1]["content"]
    assert sorted({len(one["messages"]) for one in scripted_llm.requests()}) == [2, 6]
    assert {one["max_tokens"] for one in scripted_llm.requests()} == {256}


def test_the_offline_answerer_reads_paths_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*own(tmp_path), "--instances", "15", "--answerer", "offline"])
    assert (
        "| no. | composition | kept | shots | answers: HR@1 |"
        in capsys.readouterr().out
    )
    assert scores_in(tmp_path)[0]["score"]["generation"]["0"]["failures"] == 0
    with pytest.raises(SettingsError, match="has no prompt: give --shots 0"):
        main([*own(tmp_path), "--answerer", "offline", "--shots", "1"])


def test_a_call_that_fails_costs_its_own_question(
    scripted_llm: Any, settings: Any
) -> None:
    scripted_llm.script(
        {"when": "france", "status": 400, "repeat": True},
        {"reply": "adam", "repeat": True},
    )
    finder = PathFinder(Graph.from_triples(KB), "ppr>shortest>bm25")
    questions = [
        asked("france", text="who is from france ?"),
        asked("adam", "eve", "whom does eve know ?"),
    ]
    score = evaluate(
        lambda _: finder, questions, [PathReader(scripted_llm.spec, settings=settings)]
    )
    assert (score.generation["0"].hr_at_1, score.generation["0"].failures) == (0.5, 1)


def test_answers_are_compared_without_case_and_underscores() -> None:
    questions = [
        Question("1", "?", ("united_kingdom",)),
        Question("2", "?", ("Bob", "Ann")),
    ]
    score = generation_score(
        questions, [Generated(("United Kingdom",)), Generated(("eve", "bob", "BOB"))]
    )
    assert (score.hr_at_1, score.hr, score.precision, score.recall) == (
        0.5,
        1.0,
        0.75,
        0.75,
    )


def test_answers_are_also_scored_by_the_gold_answers_inside_them() -> None:
    questions = [Question("1", "?", ("France",)), Question("2", "?", ("Bob", "Ann"))]
    score = generation_score(
        questions, [Generated(("It is France.",)), Generated(("Eve", "Bob Ray"))]
    )
    assert (score.hr_at_1, score.f1) == (0.0, 0.0)
    assert (score.substring_hr_at_1, score.substring_f1) == (0.5, 0.75)


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        ("France", ("France",)),
        ("<think>Spain?</think>\nAnswer: France\nBob", ("France", "Bob")),
        ("**Answers:**\n1. France\n2. Spain", ("France", "Spain")),
        ("", ()),
    ],
)
def test_answers_are_read_a_line_each(reply: str, answers: tuple[str, ...]) -> None:
    assert read_answers(reply) == answers


def test_more_shots_than_there_are_examples_are_refused() -> None:
    with pytest.raises(
        SettingsError, match="there are 3 worked examples, got --shots 4"
    ):
        PathReader("openai:x", 4)


def test_questions_without_graphs_need_a_knowledge_base(tmp_path: Path) -> None:
    given = command(tmp_path)
    with pytest.raises(
        IngestError, match="bring no graphs; give the knowledge base with --kb"
    ):
        main(given[2:])


def test_nothing_answered_has_no_table() -> None:
    finder = PathFinder(Graph.from_triples(KB), "ppr>shortest>bm25")
    assert (
        answer_table([Row("15", 64, evaluate(lambda _: finder, [asked("france")]))])
        == ""
    )
