"""Questions that bring a graph are asked over it, and over nothing else. The sentences are made up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx
import pytest

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import IngestError, RunError, SettingsError, UnknownName
from ras_agent.eval.formats import load_questions
from ras_agent.eval.question import Question, TextualGraph
from ras_agent.eval.run.agent import EvalAgent
from ras_agent.eval.run.begin import Run, begin_run
from ras_agent.eval.run.own_graphs import OwnGraphs, asking, graph_passages
from ras_agent.eval.run.task import load_task
from ras_agent.eval.run.workers import LOCAL, WorkerPlan
from ras_agent.tools.index.stated_facts import stated_facts
from ras_agent.tools.retrieve.registered import retriever_over
from tests.messages import says

MILLS = [
    ["Fell Mill", "mill.river", "Ardle"],
    ["Fell Mill", "mill.owner", "Tam Orr"],
    ["Ardle", "flows", "Isla"],
]
BELLS = [["Ada Bell", "people.spouse", "Tam Orr"], ["Tam Orr", "people.town", "Blair"]]
ROG = (
    {"id": "w1", "question": "what river turns fell mill", "answer": ["Ardle"], "q_entity": ["Fell Mill"],
     "a_entity": ["Ardle"], "graph": MILLS},
    {"id": "w2", "question": "where does ada bell's husband live", "answer": ["Blair"], "q_entity": ["Ada Bell"],
     "a_entity": ["Blair"], "graph": BELLS},
)  # fmt: skip
ARGUMENTS = (
    "arg1\targ2\tlabel\tgraph\n"
    "Mills should stay.\tOld mills draw visitors.\tsupport\t"
    "(mills; capable of; draw visitors)(draw visitors; causes; stay)\n"
    "Dams are bad.\tDams stop fish.\tsupport\t(dams; causes; stop fish)\n"
)
SCENES = {
    "71": {
        "objects": {
            "1": {"name": "mill", "x": 1, "y": 2, "w": 3, "h": 4, "attributes": ["old"],
                  "relations": [{"object": "2", "name": "near"}]},
            "2": {"name": "tree", "x": 5, "y": 6, "w": 7, "h": 8, "attributes": [], "relations": []},
            "3": {"name": "cloud", "x": 9, "y": 9, "w": 1, "h": 1, "attributes": ["white"], "relations": []},
        },
    },
}  # fmt: skip
SCENE_QUESTIONS = {
    "9001": {
        "imageId": "71",
        "question": "What is near the tree?",
        "answer": "mill",
        "fullAnswer": "The mill is.",
    },
    "9002": {
        "imageId": "71",
        "question": "What is the cloud?",
        "answer": "white",
        "fullAnswer": "It is white.",
    },
}
MILL = "name: mill; attribute: old; (x,y,w,h): (1, 2, 3, 4)"
CLOUD = "name: cloud; attribute: white; (x,y,w,h): (9, 9, 1, 1)"
FREEBASE = ("webqsp", "cwq", "grailqa", "webquestions", "graphqa-webqsp")
OFFLINE = Settings(k=5)


def _lines(path: Path, records: Sequence[Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, records)) + "\n")
    return path


def _file(name: str, folder: Path) -> Path:
    """Write two questions in the official form of the set `name`."""
    if name in FREEBASE:
        return _lines(folder / "sample.jsonl", ROG)
    if name == "explagraphs":
        (folder / "sample.tsv").write_text(ARGUMENTS)
        return folder / "sample.tsv"
    (folder / "sceneGraphs.json").write_text(json.dumps(SCENES))
    (folder / "questions.json").write_text(json.dumps(SCENE_QUESTIONS))
    return folder / "questions.json"


def _begin(
    name: str,
    data: Path,
    out: Path,
    settings: Settings,
    workers: WorkerPlan = LOCAL,
    concurrency: int = 32,
    **options: Any,
) -> Run:
    task = load_task(name, data, settings, **options)
    return begin_run(
        task, EvalAgent("run", settings), out, workers=workers, concurrency=concurrency
    )


def _facts(result: Any) -> set[tuple[str, str, str]]:
    return {
        (one["subject"], one["predicate"], one["object"])
        for one in result.trace["graph"]["facts"]
    }


@pytest.mark.parametrize(
    ("name", "retriever"),
    [
        *((name, "ppr") for name in (*FREEBASE, "explagraphs", "scenegraphs")),
        *(("webqsp", retriever) for retriever in ("bm25", "paths", "pcst")),
        *(("scenegraphs", retriever) for retriever in ("bm25", "paths", "pcst")),
    ],
)
def test_each_set_runs_offline_and_each_question_sees_its_own_graph_alone(
    tmp_path: Path, name: str, retriever: str
) -> None:
    run = _begin(
        name,
        _file(name, tmp_path),
        tmp_path / "run",
        OFFLINE.model_copy(update={"retriever": retriever}),
    )
    summary = run.finish()
    assert (summary["questions"], summary["errors"], summary["failures"]) == (2, 0, {})
    seen = 0
    results = {result.id: result for result in run.folder.results()}
    for question in run.questions:
        objects = {
            (node, "name", node.split(": ")[1].split(";")[0])
            for node in question.graph.nodes
            if ": " in node
        }
        graph = {
            *question.graph.triples(),
            *objects,
            (MILL, "attribute", "old"),
            (CLOUD, "attribute", "white"),
        }
        facts = _facts(results[question.id])
        assert facts <= graph
        seen += len(facts)
        sources = {
            one["sources"][0]["extractor"]
            for one in results[question.id].trace["graph"]["facts"]
        }
        assert all(one.startswith("stated: ") for one in sources), (
            "no extractor read what the graph states"
        )
    assert seen, "nothing of any graph was found"


def test_a_path_through_the_graph_is_the_evidence(tmp_path: Path) -> None:
    settings = OFFLINE.model_copy(update={"retriever": "paths"})
    run = _begin(
        "webqsp", _lines(tmp_path / "q.jsonl", ROG), tmp_path / "run", settings
    )
    run.finish()
    second = {result.id: result for result in run.folder.results()}["w2"]
    assert _facts(second) == set(map(tuple, BELLS))
    assert second.scores["entity_recall"] == 1.0


def test_chat_models_are_shown_the_facts_of_the_question_and_no_others(
    tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script(
        {"when": "fell mill", "reply": "[SUFFICIENT]", "repeat": True},
        {"when": "ada bell", "reply": "[SUFFICIENT]", "repeat": True},
    )
    settings = Settings(
        llm=scripted_llm.spec, retriever="paths", loop="single-shot", max_hops=1
    )
    run = _begin(
        "webqsp",
        _lines(tmp_path / "q.jsonl", ROG),
        tmp_path / "run",
        settings,
        concurrency=2,
    )
    summary = run.finish()
    assert summary["errors"] == 0
    prompts = [json.dumps(one["messages"]) for one in scripted_llm.requests()]
    assert prompts
    assert all(("mill.river" in one) != ("people.spouse" in one) for one in prompts)


def test_answers_that_cite_the_graph_are_held_to_it(
    tmp_path: Path, scripted_llm: Any
) -> None:
    cited = "support\n\nNodes:\n- mills\n- windmills\n\nEdges:\n- (mills; capable of; draw visitors)"
    scripted_llm.script(
        {"when": "Old mills", "reply": f"Answer: {cited}", "repeat": True}
    )
    settings = Settings(llm=scripted_llm.spec, retriever="pcst", loop="single-shot")
    file = _file("explagraphs", tmp_path)
    run = _begin(
        "explagraphs",
        file,
        tmp_path / "run",
        settings,
        instruction="answer_citing",
        limit=1,
    )
    scores = {name: score["mean"] for name, score in run.finish()["scores"].items()}
    assert scores == {
        "accuracy": 1.0,
        "valid_nodes": 0.5,
        "valid_edges": 1.0,
        "fully_valid": 0.0,
    }
    with pytest.raises(RunError, match="instruction"):
        _begin("explagraphs", file, tmp_path / "run", settings, limit=1)
    with pytest.raises(
        UnknownName,
        match=says("webqsp", "unknown instruction", "'answer_citing'", "known: answer"),
    ):
        _begin(
            "webqsp",
            _file("webqsp", tmp_path),
            tmp_path / "x",
            settings,
            instruction="answer_citing",
        )


@pytest.mark.parametrize(("said", "right"), [("old [1]", 1.0), ("white", 0.0)])
def test_an_answer_is_scored_apart_from_what_it_cites(
    tmp_path: Path, scripted_llm: Any, said: str, right: float
) -> None:
    cited = f"Answer: {said}\nNodes:\n- name: mill; attribute: old\nEdges:\n- (mill; near; tree)"
    scripted_llm.script({"when": "What is the mill", "reply": cited, "repeat": True})
    (tmp_path / "sceneGraphs.json").write_text(json.dumps(SCENES))
    file = tmp_path / "questions.json"
    file.write_text(
        json.dumps(
            {"1": {"imageId": "71", "question": "What is the mill?", "answer": "old"}}
        )
    )
    settings = Settings(llm=scripted_llm.spec, retriever="ppr", loop="single-shot")
    run = _begin(
        "scenegraphs", file, tmp_path / "run", settings, instruction="answer_citing"
    )
    scores = {name: score["mean"] for name, score in run.finish()["scores"].items()}
    assert scores == {
        "golden_match": right,
        "em": right,
        "valid_nodes": 1.0,
        "valid_edges": 1.0,
        "fully_valid": 1.0,
    }


def test_the_answerer_alone_is_asked_to_cite_the_graph(
    tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script(
        {"when": "What is near", "reply": "[SUFFICIENT]", "repeat": True}
    )
    settings = Settings(llm=scripted_llm.spec, retriever="ppr", loop="ras", max_hops=1)
    _begin("scenegraphs", _file("scenegraphs", tmp_path), tmp_path / "run", settings, instruction="answer_citing",
           limit=1).finish()  # fmt: skip
    prompts = [
        "\n".join(one["content"] for one in request["messages"])
        for request in scripted_llm.requests()
    ]
    planner, answerer = prompts[0], prompts[-1]
    assert "Reply with a word or a short phrase." in planner
    assert "Nodes:" not in planner
    assert "Reply with a word or a short phrase." in answerer
    assert 'below a line "Nodes:"' in answerer


@pytest.mark.slow("processes")
def test_processes_search_the_same_graphs(tmp_path: Path) -> None:
    settings = OFFLINE.model_copy(update={"retriever": "ppr"})
    file = _lines(tmp_path / "q.jsonl", ROG)
    here = _begin("webqsp", file, tmp_path / "here", settings)
    there = _begin(
        "webqsp", file, tmp_path / "there", settings, workers=WorkerPlan("processes", 1)
    )
    here.finish()
    there.finish()
    found = [
        {one.id: (one.answer, one.retrieved) for one in run.folder.results()}
        for run in (here, there)
    ]
    assert found[0] == found[1]


def test_passages_hold_every_edge_and_every_lonely_node_once() -> None:
    graph = TextualGraph(
        ("a", "b", "c", "lonely", " "),
        ((0, "r", 1), (1, "s", 2), (0, "t", 2), (0, "r", 1), (4, "r", 0)),
    )
    question = Question("q", "?", (), metadata={"graph": graph.to_dict()})
    passages = graph_passages(question)
    stated = [
        (fact.subject, fact.predicate, fact.object)
        for one in passages
        for fact in stated_facts(one) or ()
    ]
    wanted = networkx.MultiDiGraph()
    wanted.add_edges_from([("a", "b", "r"), ("b", "c", "s"), ("a", "c", "t")])
    assert {(head, tail, key) for head, key, tail in stated} == set(
        wanted.edges(keys=True)
    )
    assert [(one.id, one.title, one.text) for one in passages] == [
        ("q#a", "a", "a r b.\na t c."),
        ("q#b", "b", "b s c."),
        ("q#lonely", "lonely", "lonely"),
    ]


def test_the_sets_own_entities_are_where_the_question_starts() -> None:
    graph = TextualGraph.from_triples([*MILLS, *BELLS])
    known = {"graph": graph.to_dict(), "question_entities": ["Ada Bell"]}
    question = Question("q", "Does the Fell Mill belong to her?", (), metadata=known)
    search = retriever_over(OwnGraphs.embedded_by(), "ppr")
    with asking(question):
        assert (
            search.retrieve("Does the Fell Mill belong to her?", 1)[0].passage.title
            == "Ada Bell"
        )
        assert (
            search.retrieve("What turns the Fell Mill?", 1)[0].passage.title
            == "Fell Mill"
        )


def test_a_search_outside_of_a_question_says_so() -> None:
    with pytest.raises(RunError, match="no question is being asked"):
        retriever_over(OwnGraphs.embedded_by(), "bm25").retrieve("Who?", 1)


def test_vectors_are_made_where_an_embedder_is_given(hash_embedder: Any) -> None:
    question = Question(
        "q", "what river turns fell mill", (), metadata={"graph": MILLS}
    )
    with pytest.raises(
        SettingsError, match=says("'dense'", "needs vectors", "--embedder minilm")
    ):
        retriever_over(OwnGraphs.embedded_by(), "dense")
    search = retriever_over(OwnGraphs.embedded_by(hash_embedder), "ppr+dense")
    with asking(question):
        assert {
            hit.passage.title
            for hit in search.retrieve("what river turns fell mill", 5)
        } == {"Fell Mill", "Ardle"}


def test_an_index_that_is_given_is_searched_instead(tmp_path: Path) -> None:
    corpus = _lines(
        tmp_path / "corpus.jsonl",
        [{"id": "p", "text": "Fell Mill stands on the Ardle."}],
    )
    task = load_task(
        "webqsp", _lines(tmp_path / "q.jsonl", ROG), OFFLINE, corpus=corpus
    )
    assert [passage.id for passage in task.index.passages] == ["p"]


def test_plain_questions_may_bring_a_graph(tmp_path: Path) -> None:
    plain = {"id": "q", "question": "?", "answers": []}
    graph = {"nodes": ["a", "b"], "edges": [[0, "r", 1]]}
    file = _lines(
        tmp_path / "q.jsonl",
        [{**plain, "graph": graph}, {**plain, "graph": [["a", "r", "b"]]}],
    )
    assert [one.graph.triples() for one in load_questions(file)] == [
        (("a", "r", "b"),)
    ] * 2
    broken = _lines(
        tmp_path / "broken.jsonl",
        [{**plain, "graph": {"nodes": ["a"], "edges": [[0, "r", 1]]}}],
    )
    with pytest.raises(
        IngestError, match=r"edge 1 of 'graph' should join nodes from 0 to 0"
    ):
        load_questions(broken)
