"""Freebase's sets and STaRK in the form of their official files, read and run. The sentences are made up."""

import json
from pathlib import Path
from typing import Any

import pytest

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.metrics.registry import Outcome
from ras_agent.eval.question import Question
from ras_agent.eval.run import EvalAgent, begin_run, load_task
from ras_agent.eval.run.agent import search_agent
from tests.messages import says

MILLS = [
    ["Fell Mill", "mill.river", "Ardle"],
    ["Fell Mill", "mill.owner", "Tam Orr"],
    ["Ardle", "flows", "Isla"],
]
WEBQSP = {
    "Version": "1.0",
    "Questions": [
        {
            "QuestionId": "WebQTest-1",
            "RawQuestion": "what river turns fell mill?",
            "Parses": [
                {
                    "TopicEntityName": "Fell Mill",
                    "Answers": [
                        {
                            "AnswerType": "Entity",
                            "AnswerArgument": "m.01",
                            "EntityName": "Ardle",
                        },
                        {
                            "AnswerType": "Value",
                            "AnswerArgument": "1912",
                            "EntityName": None,
                        },
                    ],
                },
                {
                    "TopicEntityName": "Fell Mill",
                    "Answers": [{"AnswerArgument": "m.01", "EntityName": "Ardle"}],
                },
            ],
        }
    ],
}
CWQ = [
    {
        "ID": "WebQTrn-1_a",
        "webqsp_ID": "WebQTrn-1",
        "question": "What river turns the mill that Tam Orr owned?",
        "machine_question": "what river turns the mill owned by Tam Orr",
        "composition_answer": "fell mill",
        "compositionality_type": "composition",
        "sparql": "SELECT ?x",
        "answers": [
            {
                "answer_id": "m.01",
                "answer": "Ardle",
                "aliases": ["the Ardle", "River Ardle"],
            },
            {"answer_id": "m.02", "answer": None, "aliases": []},
        ],
    }
]
GRAILQA = [
    {
        "qid": 2102902009000,
        "question": "which mills turn by the ardle?",
        "answer": [
            {
                "answer_type": "Entity",
                "answer_argument": "m.03",
                "entity_name": "Fell Mill",
            },
            {"answer_type": "Value", "answer_argument": "1912"},
        ],
        "level": "zero-shot",
        "s_expression": "(AND mill.mill (JOIN mill.mill.river m.01))",
        "graph_query": {
            "nodes": [
                {
                    "nid": 0,
                    "node_type": "class",
                    "id": "mill.mill",
                    "friendly_name": "Mill",
                    "question_node": 1,
                },
                {
                    "nid": 1,
                    "node_type": "entity",
                    "id": "m.01",
                    "friendly_name": "Ardle",
                    "question_node": 0,
                },
            ],
            "edges": [
                {
                    "start": 0,
                    "end": 1,
                    "relation": "mill.mill.river",
                    "friendly_name": "River",
                }
            ],
        },
    }
]
WEBQUESTIONS = [
    {
        "url": "http://www.freebase.com/view/en/fell_mill",
        "targetValue": '(list (description "Tam Orr") (description Ardle) (description "the \\"Isla\\""))',
        "utterance": "what river turns fell mill?",
    }
]
OFFICIAL: dict[str, Any] = {
    "webqsp": WEBQSP,
    "cwq": CWQ,
    "grailqa": GRAILQA,
    "webquestions": WEBQUESTIONS,
}
STARK = (
    "id,query,answer_ids,answer_ids_source\n"
    "0,Which mill turns by the Ardle?,[12],[12]\n"
    '1,"Which rivers, of all, are near?","[7, 12]",[7]\n'
)


def _load(name: str, folder: Path) -> list[Question]:
    return benchmark(name).load(_write(name, folder))


def _write(name: str, folder: Path) -> Path:
    path = folder / f"{name}-sample.json"
    path.write_text(json.dumps(OFFICIAL[name]), "utf-8")
    return path


def test_webqsp_has_the_answers_of_all_parses(tmp_path: Path) -> None:
    (question,) = _load("webqsp", tmp_path)
    assert (question.id, question.question) == (
        "WebQTest-1",
        "what river turns fell mill?",
    )
    assert question.answers == ("Ardle", "1912")
    assert question.metadata["question_entities"] == ["Fell Mill"]


def test_cwq_has_names_with_their_aliases_and_the_kind_of_question(
    tmp_path: Path,
) -> None:
    (question,) = _load("cwq", tmp_path)
    assert (question.id, question.answers, question.type) == (
        "WebQTrn-1_a",
        ("Ardle",),
        "composition",
    )
    assert question.metadata["aliases"] == {"Ardle": ["the Ardle", "River Ardle"]}


def test_grailqa_has_its_query_graph_and_its_level(tmp_path: Path) -> None:
    (question,) = _load("grailqa", tmp_path)
    assert (question.id, question.answers, question.type) == (
        "2102902009000",
        ("Fell Mill", "1912"),
        "zero-shot",
    )
    assert question.metadata["question_entities"] == ["Ardle"]
    assert question.metadata["triples"] == [["Mill", "mill.mill.river", "Ardle"]]


def test_webquestions_has_described_answers_and_starts_from_its_page(
    tmp_path: Path,
) -> None:
    (question,) = _load("webquestions", tmp_path)
    assert question.question == "what river turns fell mill?"
    assert question.answers == ("Tam Orr", "Ardle", 'the "Isla"')
    assert question.metadata["question_entities"] == ["fell mill"]


@pytest.mark.parametrize("name", OFFICIAL)
def test_official_questions_are_asked_over_passages(name: str, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(
        json.dumps(
            {
                "id": "p",
                "text": "Fell Mill stands on the river Ardle.",
                "title": "Fell Mill",
            }
        )
    )
    settings = Settings(retriever="bm25")
    task = load_task(name, _write(name, tmp_path), settings, corpus=corpus)
    summary = begin_run(task, EvalAgent("run", settings), tmp_path / "run").finish()
    assert (summary["questions"], summary["errors"]) == (1, 0)
    assert {"hr@1", "substring_f1"} <= summary["scores"].keys()


@pytest.mark.parametrize("name", OFFICIAL)
def test_official_questions_are_asked_over_a_graph_that_was_put_into_them(
    name: str, tmp_path: Path
) -> None:
    records = OFFICIAL[name]["Questions"] if name == "webqsp" else OFFICIAL[name]
    data = tmp_path / "with-graphs.jsonl"
    data.write_text(
        "".join(json.dumps({**record, "graph": MILLS}) + "\n" for record in records),
        "utf-8",
    )
    settings = Settings(retriever="ppr")
    run = begin_run(
        load_task(name, data, settings), EvalAgent("run", settings), tmp_path / "run"
    )
    assert run.finish()["errors"] == 0
    (result,) = run.folder.results()
    assert result.trace is not None
    facts = {
        (fact["subject"], fact["predicate"], fact["object"])
        for fact in result.trace["graph"]["facts"]
    }
    assert facts
    assert facts <= set(map(tuple, MILLS))


@pytest.mark.parametrize(
    ("name", "broken", "message"),
    [
        (
            "webqsp",
            {"Parses": [{"Answers": [{}]}]},
            "Parses 1, Answers 1: no key 'EntityName' or 'AnswerArgument'",
        ),
        ("cwq", {"answers": ["Ardle"]}, "answers 1 should be an object"),
        (
            "grailqa",
            {"answer": [{"answer_type": "Entity"}]},
            "answer 1: no key 'entity_name' or 'answer_argument'",
        ),
        (
            "webquestions",
            {"targetValue": "Ardle"},
            "'targetValue' should be (list (description NAME) ...)",
        ),
    ],
)
def test_a_malformed_official_record_is_named(
    name: str, broken: dict[str, Any], message: str, tmp_path: Path
) -> None:
    records = OFFICIAL[name]["Questions"] if name == "webqsp" else OFFICIAL[name]
    path = tmp_path / "q.json"
    path.write_text(json.dumps([{**records[0], **broken}]), "utf-8")
    with pytest.raises(IngestError, match=says("q.json record 1", message)):
        benchmark(name).load(path)


def test_stark_asks_for_nodes_by_their_numbers_and_types_are_its_splits(
    tmp_path: Path,
) -> None:
    (tmp_path / "stark_qa").mkdir()
    (tmp_path / "split").mkdir()
    (tmp_path / "stark_qa" / "stark_qa.csv").write_text(STARK, "utf-8")
    (tmp_path / "split" / "test.index").write_text("1\n")
    (tmp_path / "split" / "train.index").write_text("0\n")
    stark = benchmark("stark-prime")
    first, second = stark.load(tmp_path)
    assert (first.id, first.question, first.supporting) == (
        "0",
        "Which mill turns by the Ardle?",
        ("12",),
    )
    assert (second.supporting, first.type, second.type) == (
        ("7", "12"),
        "train",
        "test",
    )
    found = Outcome(
        "", passages=tuple(Passage(number, "text") for number in ("3", "12", "7"))
    )
    assert stark.score(second, found) == {
        "hit@1": 0.0,
        "hit@5": 1.0,
        "recall@20": 1.0,
        "mrr": 0.5,
    }


def test_stark_is_searched_over_its_nodes(tmp_path: Path) -> None:
    data, corpus = (
        tmp_path / "stark_qa_human_generated_eval.csv",
        tmp_path / "nodes.jsonl",
    )
    data.write_text(STARK, "utf-8")
    nodes = {
        "12": "Fell Mill turns by the Ardle.",
        "7": "The Isla is a river.",
        "3": "Tam Orr is a miller.",
    }
    corpus.write_text(
        "".join(
            json.dumps({"id": name, "text": text}) + "\n"
            for name, text in nodes.items()
        )
    )
    settings = Settings(retriever="bm25")
    task = load_task("stark-prime", data, settings, corpus=corpus).for_search()
    summary = begin_run(task, search_agent("bm25", settings), tmp_path / "run").finish()
    assert summary["errors"] == 0
    assert summary["scores"]["hit@5"]["mean"] == 1.0


@pytest.mark.parametrize(
    "nodes", ["12", '"[]"', '"[12, True]"', "\"['a']\"", "__import__"]
)
def test_a_list_of_nodes_that_is_none_is_named(nodes: str, tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text(f"id,query,answer_ids\n0,Which mill?,{nodes}\n", "utf-8")
    with pytest.raises(
        IngestError,
        match=says("q.csv line 2", "'answer_ids' should be a list of node numbers"),
    ):
        benchmark("stark-prime").load(path)
