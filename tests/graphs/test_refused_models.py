"""A server that is not there, refuses the key or does not know the model ends a run at the first call, reported once."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ras_agent import create_ircot_agent, create_ras_agent, create_single_shot_agent
from ras_agent.app.cli import build_program
from ras_agent.contracts.records import Passage
from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.index.store import PassageIndex

PASSAGES = [
    Passage(f"p{n}", f"Bell was born in Edinburgh in {1840 + n}.") for n in range(5)
]
ASKED = {"question": "Where was Bell born?"}
NOBODY = "vllm:http://127.0.0.1:9/v1#m"
PARTS = [
    (create_ras_agent, ("planner", "answerer"), "planner"),
    (create_ras_agent, ("extractor",), "extractor"),
    (create_ras_agent, ("answerer",), "answerer"),
    (create_ircot_agent, ("planner", "answerer"), "reasoner"),
    (create_single_shot_agent, ("answerer",), "extractor"),
]


@pytest.mark.parametrize(("create", "roles", "named"), PARTS)
@pytest.mark.parametrize(
    ("status", "remedy"), [(401, "check the API key"), (404, "check the model's name")]
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_it_is_told_once(
    create: Any,
    roles: tuple[str, ...],
    named: str,
    status: int,
    remedy: str,
    asynchronous: bool,
    scripted_llm: Any,
) -> None:
    scripted_llm.script({"status": status, "repeat": True})
    agent = create(index=PASSAGES, **dict.fromkeys(roles, scripted_llm.spec))
    out = asyncio.run(agent.ainvoke(ASKED)) if asynchronous else agent.invoke(ASKED)
    assert (out["stop_reason"], out["failed"]) == (
        "model_refused",
        "a model cannot be asked",
    )
    (failure,) = out["failures"]
    assert failure["role"] == named
    assert remedy in failure["message"]


@pytest.mark.parametrize(("create", "roles", "named"), PARTS)
def test_a_server_that_is_not_there_is_told_once(
    create: Any, roles: tuple[str, ...], named: str
) -> None:
    out = create(index=PASSAGES, **dict.fromkeys(roles, NOBODY)).invoke(ASKED)
    assert (out["stop_reason"], out["failed"]) == (
        "model_refused",
        "a model cannot be asked",
    )
    (failure,) = out["failures"]
    assert (failure["role"], failure["message"].partition(" (passage")[0]) == (
        named,
        f"{NOBODY} failed after 2 tries: nothing listens at http://127.0.0.1:9; start the server, or correct its "
        "address",
    )


def test_an_embedder_s_server_that_is_not_there_is_told_once(
    scripted_llm: Any, tmp_path: Path
) -> None:
    scripted_llm.script({"vectors": 8, "repeat": True})
    PassageIndex.create(tmp_path / "index", f"vllm:{scripted_llm.base_url}#bge").add(
        PASSAGES
    )
    index = PassageIndex.open(tmp_path / "index", f"vllm:{scripted_llm.base_url}#bge")
    moved = replace(index.snapshot.manifest, embedder=EmbedderIdentity(NOBODY, 8))
    with index.database.writing() as connection:
        connection.execute("UPDATE index_state SET manifest = ?", (moved.to_json(),))
    out = create_ras_agent(index=tmp_path / "index", retriever="dense").invoke(ASKED)
    assert (out["stop_reason"], out["failed"]) == (
        "model_refused",
        "a model cannot be asked",
    )
    (failure,) = out["failures"]
    assert (
        failure["role"],
        "nothing listens at http://127.0.0.1:9" in failure["message"],
    ) == ("retriever", True)


def test_a_refusal_after_a_reply_is_a_failure_of_that_call_alone(
    scripted_llm: Any,
) -> None:
    scripted_llm.script(
        {"when": "You steer", "reply": "[SUBQ] Where was Bell born?"},
        {"when": "You steer", "status": 403},
        {"when": "You answer questions", "reply": "Answer: Edinburgh [1]"},
    )
    agent = create_ras_agent(
        index=PASSAGES,
        planner=scripted_llm.spec,
        extractor="offline",
        answerer=scripted_llm.spec,
    )
    out = agent.invoke(ASKED)
    assert (out["answer"], out["stop_reason"]) == ("Edinburgh", "planner_failed")


@pytest.mark.parametrize("command", ["eval", "structure", "kg build", "ask"])
@pytest.mark.parametrize(
    "told", ["check the API key", "nothing listens at http://127.0.0.1:9"]
)
def test_a_command_stops_at_the_first_call(
    command: str, told: str, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"status": 401, "repeat": True})
    ended = _run(command, scripted_llm.spec if "key" in told else NOBODY, tmp_path)
    assert ended.exit_code == (4 if command == "ask" else 1)
    shown = " ".join(
        (ended.output + ended.stderr if command == "ask" else ended.stderr).split()
    )
    assert shown.count(told) == 1


def test_a_quiet_question_says_on_stderr_why_there_is_no_answer(tmp_path: Path) -> None:
    ended = _run("ask", NOBODY, tmp_path, "--quiet")
    assert ended.stdout == "No answer: a model cannot be asked.\n"
    assert "nothing listens at http://127.0.0.1:9" in ended.stderr


def _run(command: str, spec: str, folder: Path, *more: str) -> Any:
    """Run a command whose model is `spec` over the passages."""
    corpus, questions = folder / "corpus.jsonl", folder / "questions.jsonl"
    corpus.write_text(
        "".join(json.dumps(passage.to_dict()) + "\n" for passage in PASSAGES)
    )
    asked = [
        {"id": text, "question": text, "answers": ["B"]} for text in ("One?", "Two?")
    ]
    questions.write_text("".join(json.dumps(one) + "\n" for one in asked))
    if not (folder / "index").exists():
        PassageIndex.create(folder / "index").add(PASSAGES)
    given: dict[str, list[object]] = {
        "ask": ["ask", "Who?", "--index", folder / "index", "--llm"],
        "eval": [
            "eval",
            "jsonl",
            "--data",
            questions,
            "--corpus",
            corpus,
            "--out",
            folder / "run",
            "--llm",
        ],
        "structure": [
            "structure",
            "--corpus",
            corpus,
            "-o",
            folder / "facts.sqlite",
            "--extractor",
        ],
        "kg build": ["kg", "build", folder / "index", "--extractor"],
    }
    return CliRunner().invoke(build_program(), [*map(str, given[command]), spec, *more])
