"""The ReAct loop: a model that calls tools drives the same retriever, extractor, graph and answerer as the others."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from ras_agent import Limits, Passage, create_react_agent
from ras_agent.app.cli import build_program
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import SettingsError

PASSAGES = [
    Passage(
        "bell",
        "Alexander Graham Bell was born in Edinburgh. He patented the telephone.",
        "Alexander Graham Bell",
    ),
    Passage(
        "leith", "The Water of Leith is the main river of Edinburgh.", "Water of Leith"
    ),
]
QUESTION = {
    "question": "Which river flows through the birthplace of Alexander Graham Bell?"
}
TWO_SEARCHES = (
    {"calls": [["search", {"query": "Where was Alexander Graham Bell born?"}]]},
    {"calls": [["read", {"passage": "Alexander Graham Bell"}]]},
    {"calls": [["search", {"query": "What is the main river of Edinburgh?"}]]},
    {"calls": [["finish", {"reason": "the river is known"}]]},
)


def test_the_model_searches_in_its_own_words_until_it_finishes(
    scripted_llm: Any,
) -> None:
    scripted_llm.script(*TWO_SEARCHES)
    agent = create_react_agent(
        index=PASSAGES,
        planner=scripted_llm.spec,
        extractor="offline",
        answerer="offline",
        limits=Limits(k=1),
        settings=Settings(least_confidence=0.0),
    )
    out = agent.invoke(QUESTION)
    assert [step["subquery"] for step in out["steps"]] == [
        "Where was Alexander Graham Bell born?",
        "What is the main river of Edinburgh?",
    ]
    assert out["answer"] == "Water of Leith"
    assert out["stop_reason"] == "sufficient"
    assert out["plans"][1]["reason"] == "looked at read 'Alexander Graham Bell'"
    assert {citation["passage_id"] for citation in out["citations"]} >= {"leith"}
    assert out["usage"]["calls"][0]["role"] == "planner"
    assert len(out["usage"]["calls"]) == 4


def test_it_cannot_finish_before_anything_was_found(scripted_llm: Any) -> None:
    scripted_llm.script(
        {"calls": [["finish", {"reason": "I know it"}]], "repeat": True}
    )
    agent = create_react_agent(
        index=PASSAGES,
        planner=scripted_llm.spec,
        extractor="offline",
        answerer="offline",
    )
    assert [step["subquery"] for step in agent.invoke(QUESTION)["steps"]] == [
        QUESTION["question"]
    ]


def test_ask_runs_it_by_name(scripted_llm: Any) -> None:
    scripted_llm.script(*TWO_SEARCHES, {"reply": "Answer: Water of Leith [1]"})
    words = [
        "ask",
        QUESTION["question"],
        "--sample",
        "--loop",
        "react",
        "--planner",
        scripted_llm.spec,
    ]
    done = CliRunner().invoke(
        build_program(),
        [*words, "--extractor", "offline", "--answerer", scripted_llm.spec],
    )
    assert done.exit_code == 0, done.output
    assert "answer Water of Leith" in done.output


def test_offline_it_says_what_it_needs() -> None:
    with pytest.raises(SettingsError, match="or choose --loop ras"):
        create_react_agent(index=PASSAGES)
