"""Attacks on a run that waits for a person: killed while it takes the decision, and then given it again."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from ras_agent import (
    Answer,
    Hit,
    Limits,
    Passage,
    Plan,
    QuestionGraph,
    Triple,
    create_ras_agent,
    open_checkpointer,
)
from ras_agent.contracts.records import Extraction, Source, Step
from tests.faults.attack import Attack
from tests.faults.interruptions import run

THREAD: Any = {"configurable": {"thread_id": "1"}}
EDIT = {"action": "edit", "subquery": "other", "by": "Ada", "at": "plan", "hop": 1}


class Roles:
    """Plays every role; each plan is noted in a file, which a killed process leaves."""

    def __init__(self, calls: Path) -> None:
        self._calls = calls

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        with self._calls.open("a") as file:
            file.write("plan\n")
        return Plan("subq", "one")

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        return [Hit(Passage(query, f"{query} is a thing.", query), 1.0)]

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        found = (
            Triple(one.id, "is", "a thing", (Source(one.id, 0, len(one.text)),))
            for one in passages
        )
        return Extraction(tuple(found))

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        return Answer(f"{len(graph)} facts of {len(passages)} passages")


def _agent(folder: Path, checkpointer: Any) -> Any:
    roles = Roles(folder / "calls")
    parts: dict[str, Any] = {
        "planner": roles,
        "retriever": roles,
        "extractor": roles,
        "answerer": roles,
    }
    return create_ras_agent(
        **parts,
        review=("plan", "answer"),
        checkpointer=checkpointer,
        limits=Limits(max_hops=1),
    )


def _decide(folder: Path) -> None:
    with open_checkpointer(f"sqlite:{folder / 'threads.sqlite'}") as checkpointer:
        _agent(folder, checkpointer).invoke(Command(resume=EDIT), THREAD)


def _end(folder: Path) -> dict[str, Any]:
    """Go on as a caller does who does not know the end of his decision, and return the run's end."""
    with open_checkpointer(f"sqlite:{folder / 'threads.sqlite'}") as checkpointer:
        agent = _agent(folder, checkpointer)
        while True:
            state = agent.get_state(THREAD)
            waiting = [
                interrupt.value for task in state.tasks for interrupt in task.interrupts
            ]
            if not state.tasks:  # `next` is empty too where a node has ended and its checkpoint was not written
                return dict(state.values)
            decision = (
                EDIT
                if waiting and waiting[0]["at"] == "plan"
                else {"action": "approve", "at": "answer"}
            )
            agent.invoke(Command(resume=decision) if waiting else None, THREAD)


def test_a_decision_is_taken_once(attack: Attack, tmp_path: Path) -> None:
    """kill -9 at each file operation of a resumed run: the decision is taken once, no plan is asked for again."""
    pytest.importorskip("langgraph.checkpoint.sqlite")
    before = tmp_path / "before"
    before.mkdir()
    with open_checkpointer(f"sqlite:{before / 'threads.sqlite'}") as checkpointer:
        _agent(before, checkpointer).invoke({"question": "Who?"}, THREAD)
    shutil.copytree(before, tmp_path / "whole")
    whole = run(lambda: _decide(tmp_path / "whole"))
    assert not whole.error, whole.error
    for number in sorted(
        attack.random.sample(
            range(whole.operations), len(attack.times(whole.operations))
        )
    ):
        folder = tmp_path / f"out-{number}"
        shutil.copytree(before, folder)
        run(lambda folder=folder: _decide(folder), kill_at=number)  # type: ignore[misc]
        out = _end(folder)
        made = [review["action"] for review in out["reviews"]]
        searched = [step["subquery"] for step in out["steps"]]
        plans = (folder / "calls").read_text().count("plan")
        right = (made, searched, plans, out["answer"]) == (
            ["edit", "approve"],
            ["other"],
            1,
            "1 facts of 1 passages",
        )
        attack.expect(
            right,
            f"operation {number}: {made}, {searched}, {plans} plans, {out['answer']!r}",
        )
