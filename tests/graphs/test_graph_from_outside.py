"""A graph that another package defines in one file, a ReAct loop, is run by its name in ask, eval and a study."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ras_agent.app.cli import build_program
from ras_agent.config.registry import names
from ras_agent.running.trace import Trace
from tests.messages import says

SOURCE = '''
"""ReAct (Yao et al., 2023): think, act, observe, and think again, until the model wants to answer."""

from langgraph.graph import END, START

from ras_agent.graphs import decide, nodes
from ras_agent.graphs.assembly import AgentGraph
from ras_agent.graphs.node import RoleCall
from ras_agent.graphs.registry import GraphSpec
from ras_agent.graphs.state import Beginning
from ras_agent.prompts import Turn, as_data, passage_block
from ras_agent.contracts.records import Plan
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import as_chat
from ras_agent.tools.plan.grammar import parse_plan

PROMPT = "Think aloud about what is missing. Then write [SUBQ] and what to search for, or [SUFFICIENT]."


class Thinker:
    """The role of this graph's planner: a chat model that sees what each search found, and plans."""

    def __init__(self, model, options):
        self.chat = as_chat(model, options.chat)

    def think(self, question, steps):
        lines = [f"Question: {as_data(question)}"]
        for step in steps:
            lines += [as_data(step.subquery), passage_block([hit.passage for hit in step.hits])]
        turns = Turn("system", PROMPT), Turn("user", "\\n".join([*lines, "Thought:"]))
        return parse_plan(self.chat.complete(Request(turns)).text)


def think(thinker):
    def body(state, limits, records):
        if update := decide.decide_without_planner(state, limits, structured=False):
            return update
        steps = [records.step(step, state["passages"]) for step in state["steps"]]
        plan = yield RoleCall("planner", len(steps) + 1, thinker, "think", (state["question"], steps), Plan)
        return decide.apply_plan(state, limits, plan) if plan else decide.end_loop("planner_failed")

    return body


def assemble(parts, checkpointer=None):
    graph = AgentGraph(parts)
    graph.add_body("begin", nodes.begin())
    graph.add_body("think", think(parts.planner))
    graph.add_body("act", nodes.retrieve(parts.retriever))
    graph.add_body("observe", nodes.merge())
    graph.add_body("answer", nodes.answer(parts.answerer))

    graph.add_edge(START, "begin")
    graph.add_edge("begin", "think")
    graph.add_conditional_edges("think", lambda state: "act" if state["subquery"] else "answer", ["act", "answer"])
    graph.add_edge("act", "observe")
    graph.add_edge("observe", "think")
    graph.add_edge("answer", END)
    return graph.agent(checkpointer)


REACT = GraphSpec(assemble, planner=Thinker, facts="never")
'''

QUESTION = "Which river flows through the city where Bell was born?"
PASSAGES = [
    {"id": "bell", "title": "Bell", "text": "Bell was born in Edinburgh."},
    {
        "id": "leith",
        "title": "Water of Leith",
        "text": "The Water of Leith flows through Edinburgh.",
    },
    {"id": "paris", "title": "Paris", "text": "Paris is the capital of France."},
]
# the first entry that fits the prompt is its reply
REPLIES = [
    ("You answer questions", "Answer: Water of Leith [1]"),
    ("[1] Water of Leith", "The river is found.\n[SUFFICIENT]"),
    ("[1] Bell", "Bell was born in Edinburgh.\n[SUBQ] flows through Edinburgh"),
    ("Think aloud", "I need the city first.\n[SUBQ] where was Bell born"),
]


@pytest.fixture
def options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted_llm: Any
) -> tuple[object, ...]:
    """Install the graph's package as pip would; return the options of a run with it and a scripted model."""
    site = tmp_path / "site"
    info = site / "react_graph-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "react_graph.py").write_text(SOURCE)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: react-graph\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(
        "[ras_agent.loop]\nthink-act = react_graph:REACT\n"
    )
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "react_graph", raising=False)
    (tmp_path / "passages.jsonl").write_text(
        "".join(json.dumps(passage) + "\n" for passage in PASSAGES)
    )
    row = {"id": "river", "question": QUESTION, "answers": ["Water of Leith"]}
    (tmp_path / "questions.jsonl").write_text(json.dumps(row) + "\n")
    scripted_llm.script(
        *({"when": when, "reply": reply, "repeat": True} for when, reply in REPLIES)
    )
    return "--loop", "think-act", "--llm", scripted_llm.spec, "--k", 1


def _run(*arguments: object) -> str:
    done = CliRunner().invoke(
        build_program(), [str(argument) for argument in arguments]
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def _result(path: Path) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(path.read_text())
    return row


def test_ask_runs_the_loop_of_another_package(
    options: tuple[object, ...], tmp_path: Path, scripted_llm: Any
) -> None:
    _run("index", tmp_path / "passages.jsonl", "--out", tmp_path / "i")
    trace = Trace.from_json(
        _run("ask", QUESTION, "--index", tmp_path / "i", *options, "--json")
    )
    assert [
        (step.subquery, [hit.passage.id for hit in step.hits]) for step in trace.steps
    ] == [
        ("where was Bell born", ["bell"]),
        ("flows through Edinburgh", ["leith"]),
    ]
    assert [plan.plan.reason for plan in trace.plans][1:] == [
        "Bell was born in Edinburgh.",
        "The river is found.",
    ]
    assert (trace.answer, trace.stop_reason, trace.mode) == (
        "Water of Leith",
        "sufficient",
        "think-act",
    )
    assert set(trace.roles) == {"planner", "answerer", "retriever"}
    assert len(scripted_llm.requests()) == len(trace.usage.calls) == 4


def test_ask_draws_its_plans_as_those_of_any_loop(
    options: tuple[object, ...], tmp_path: Path
) -> None:
    _run("index", tmp_path / "passages.jsonl", "--out", tmp_path / "i")
    shown = _run("ask", QUESTION, "--index", tmp_path / "i", *options)
    assert "hop 1  [SUBQ] where was Bell born" in shown
    assert "[SUFFICIENT] The river is found." in shown


def test_eval_scores_it(options: tuple[object, ...], tmp_path: Path) -> None:
    files = (
        "--data",
        tmp_path / "questions.jsonl",
        "--corpus",
        tmp_path / "passages.jsonl",
    )
    _run("eval", "jsonl", *files, "--out", tmp_path / "run", *options, "--metric", "em")
    assert _result(tmp_path / "run" / "results.jsonl")["scores"] == {"em": 1.0}
    manifest = _result(tmp_path / "run" / "manifest.json")
    assert (manifest["graph"], manifest["roles"]["planner"]) == (
        "think-act",
        options[3],
    )


def test_a_study_takes_its_parts_away(
    options: tuple[object, ...], tmp_path: Path
) -> None:
    files = (
        "--data",
        tmp_path / "questions.jsonl",
        "--corpus",
        tmp_path / "passages.jsonl",
    )
    shown = _run(
        "study", "ablations", "jsonl", *files, "--out", tmp_path / "study", *options
    )
    results = {
        path.parent.name: _result(path)
        for path in (tmp_path / "study").rglob("results.jsonl")
    }
    hops = {name: result["hops"] for name, result in results.items()}
    # the graph reads no facts: its full loop shows passages already, and no run shows them next to triples
    assert hops == {"full-loop": 2, "no-planning": 1, "no-retrieval": 0}
    # as the full loop reads none
    assert results["no-planning"]["trace"]["graph"]["facts"] == []
    assert "Not run: no text-to-triples: the loop 'think-act' reads no triples" in shown


def test_an_unknown_graph_is_named_with_the_known_ones(
    options: tuple[object, ...],
) -> None:
    done = CliRunner().invoke(
        build_program(), ["ask", QUESTION, "--sample", "--loop", "raect"]
    )
    assert done.exit_code != 0
    assert says(
        "unknown loop 'raect'", "known: ircot, ras, react, single-shot, think-act"
    ).search(done.output)
    assert names("loop") == ("ras", "ircot", "react", "single-shot", "think-act")
