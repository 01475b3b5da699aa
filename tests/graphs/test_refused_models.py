"""A key that a server refuses, or a model that it does not know, ends a run at the first call, with one failure."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ras_agent import create_ircot_agent, create_ras_agent, create_single_shot_agent
from ras_agent.app.cli import build_program
from ras_agent.records import Passage
from ras_agent.tools.index.store import PassageIndex

PASSAGES = [Passage(f"p{n}", f"Bell was born in Edinburgh in {1840 + n}.") for n in range(5)]
ASKED = {"question": "Where was Bell born?"}
PARTS = [
    (create_ras_agent, ("planner", "answerer"), "planner"),
    (create_ras_agent, ("extractor",), "extractor"),
    (create_ras_agent, ("answerer",), "answerer"),
    (create_ircot_agent, ("planner", "answerer"), "reasoner"),
    (create_single_shot_agent, ("answerer",), "extractor"),
]


@pytest.mark.parametrize(("create", "roles", "named"), PARTS)
@pytest.mark.parametrize(("status", "remedy"), [(401, "check the API key"), (404, "check the model's name")])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_it_is_told_once(
    create: Any, roles: tuple[str, ...], named: str, status: int, remedy: str, asynchronous: bool, scripted_llm: Any
) -> None:
    scripted_llm.script({"status": status, "repeat": True})
    agent = create(index=PASSAGES, **dict.fromkeys(roles, scripted_llm.spec))
    out = asyncio.run(agent.ainvoke(ASKED)) if asynchronous else agent.invoke(ASKED)
    assert (out["stop_reason"], out["failed"]) == ("model_refused", "a model cannot be asked")
    (failure,) = out["failures"]
    assert failure["role"] == named
    assert remedy in failure["message"]


def test_a_refusal_after_a_reply_is_a_failure_of_that_call_alone(scripted_llm: Any) -> None:
    scripted_llm.script(
        {"when": "You steer", "reply": "[SUBQ] Where was Bell born?"},
        {"when": "You steer", "status": 403},
        {"when": "You answer questions", "reply": "Answer: Edinburgh [1]"},
    )
    agent = create_ras_agent(index=PASSAGES, planner=scripted_llm.spec, extractor="offline", answerer=scripted_llm.spec)
    out = agent.invoke(ASKED)
    assert (out["answer"], out["stop_reason"]) == ("Edinburgh", "planner_failed")


@pytest.mark.parametrize("command", ["eval", "structure", "kg build", "ask"])
def test_a_command_stops_at_the_first_call(command: str, tmp_path: Path, scripted_llm: Any) -> None:
    scripted_llm.script({"status": 401, "repeat": True})
    corpus, questions = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl"
    corpus.write_text("".join(json.dumps(passage.to_dict()) + "\n" for passage in PASSAGES))
    questions.write_text(
        "".join(json.dumps({"id": f"q{n}", "question": "Who?", "answers": ["B"]}) + "\n" for n in (1, 2))
    )
    PassageIndex.create(tmp_path / "index").add(PASSAGES)
    given: dict[str, list[object]] = {
        "ask": ["ask", "Who?", "--index", tmp_path / "index", "--llm"],
        "eval": ["eval", "jsonl", "--data", questions, "--corpus", corpus, "--out", tmp_path / "run", "--llm"],
        "structure": ["structure", "--corpus", corpus, "-o", tmp_path / "facts.sqlite", "--extractor"],
        "kg build": ["kg", "build", tmp_path / "index", "--extractor"],
    }
    ended = CliRunner().invoke(build_program(), [*map(str, given[command]), scripted_llm.spec])
    assert ended.exit_code == (4 if command == "ask" else 1)
    told = ended.output + ended.stderr if command == "ask" else ended.stderr
    assert told.count("check the API key") == 1
