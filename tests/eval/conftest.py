"""Runs that tests of the report read: a few questions, and their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ras_agent.eval.report.figures import Run, load_runs
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.result import Result, token_use

ATTACK = "</script><img src=x onerror='window.hacked=1'><script>window.hacked=1</script>\u2028'\"`${hacked=1}<!--$x$"
CALLS = (
    {
        "role": "planner",
        "model": "openai:small",
        "input_tokens": 800,
        "output_tokens": 100,
        "cached_tokens": 400,
    },
    {
        "role": "answerer",
        "model": "big",
        "input_tokens": 200,
        "output_tokens": 50,
        "replayed": True,
    },
)


def _trace(question: str, answer: str) -> dict[str, Any]:
    from ras_agent.contracts.events import Planned
    from ras_agent.contracts.records import (
        Citation,
        Failure,
        Hit,
        Passage,
        Plan,
        Source,
        Step,
        Triple,
    )
    from ras_agent.question_graph import QuestionGraph
    from ras_agent.running.trace import Trace

    passages = {
        "bell": Passage(
            "bell", f"Bell was born in Edinburgh. {ATTACK}", f"Bell {ATTACK}"
        ),
        "leith": Passage(
            "leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"
        ),
    }
    facts = (
        Triple(
            "Bell",
            "was born in",
            "Edinburgh",
            (Source("bell", 0, 27, 1, "Where?", "offline"),),
        ),
        Triple(
            f"Leith {ATTACK}",
            f"flows {ATTACK}",
            "Edinburgh",
            (Source("leith", 0, 43, 2, ATTACK, "offline"),),
        ),
    )
    steps = (
        Step(
            1,
            f"Where was Bell born? {ATTACK}",
            (Hit(passages["bell"], 2.5),),
            (facts[0].id,),
            (facts[0].id,),
        ),
        Step(
            2,
            "Which river?",
            (Hit(passages["leith"], 2.25),),
            (facts[1].id,),
            (facts[1].id,),
        ),
    )
    return Trace(
        question=question,
        answer=answer,
        citations=(
            Citation(
                1, "bell", "Bell", 0, 27, "Bell was born in Edinburgh.", (facts[0].id,)
            ),
        ),
        stop_reason="sufficient",
        mode="ras",
        steps=steps,
        plans=(Planned(3, Plan("sufficient", reason=ATTACK)),),
        graph=QuestionGraph(facts),
        failures=(Failure("extractor", f"could not read {ATTACK}", 2, ATTACK),),
        passages=passages,
    ).to_dict()


def _result(id: str, answer: str, em: float, f1: float, **more: Any) -> Result:
    asked: dict[str, Any] = {
        "q1": (
            "Which river flows through Bell's city?",
            ("Water of Leith",),
            ("bell", "leith"),
            "bridge",
            2,
        ),
        "q2": (
            f"Is this inert? {ATTACK}",
            (f"yes {ATTACK}",),
            ("bell",),
            f"kind {ATTACK}",
            2,
        ),
        "q3": ("Who was older?", ("Bell",), ("bell", "leith"), "comparison", 3),
        "q10": ("What was the dog's name?", (), (), "bridge", None),
        "q11": ("Which lamp?", ("Arc lamp",), ("lamp",), "bridge", 2),
    }
    question, answers, supporting, kind, hops = asked[id]
    scores = {} if not answers else {"em": em, "f1": f1, "recall@2": 0.5}
    values = {
        "retrieved": ("bell", "x", "leith"),
        "stop_reason": "sufficient",
        "hops": 2,
        "seconds": 1.0,
        **more,
    }
    return Result(
        id,
        question,
        answers,
        supporting,
        kind,
        hops,
        answer,
        scores=scores,
        **{"usage": token_use(CALLS), **values},
    )


def _results(better: bool) -> list[Result]:
    """Of the run "one"; of the better run "two": one more right."""
    error = {"type": "ConnectionError", "message": f"the line is dead {ATTACK}"}
    return [
        _result(
            "q1",
            "Water of Leith",
            1,
            1,
            trace=_trace("Which river?", "Water of Leith"),
            seconds=2.0,
        ),
        _result(
            "q2",
            f"no {ATTACK}",
            0,
            0.5,
            trace=_trace(f"Is this inert? {ATTACK}", "no"),
            seconds=4.0,
        ),
        _result(
            "q3",
            "Bell" if better else "",
            float(better),
            float(better),
            abstained=not better,
            hops=3,
        ),
        _result("q10", "", 0, 0, abstained=True, stop_reason="no_new_facts"),
        _result(
            "q11",
            "",
            0,
            0,
            error=error,
            stop_reason="error",
            hops=0,
            retrieved=(),
            usage=token_use(()),
        ),
    ]


@pytest.fixture(scope="session")
def run_folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of two runs of five questions: one right, one wrong (and hostile), one abstained and in the other
    run right, one rightly abstained, one error."""
    place, folders = tmp_path_factory.mktemp("runs"), []
    for name in ("one", "two"):
        manifest = {
            "schema": "ras-agent/run", "version": 1, "name": f"run {name}", "benchmark": f"bench {ATTACK}",
            "questions": 5, "metrics": ["em", "f1", "recall@2"], "started": "2026-01-02T03:04:05+00:00",
            "prompts": {f"prompt-{number}": "0" * 64 for number in range(9)},
        }  # fmt: skip
        folder = RunFolder.begin(place / name, manifest)
        for result in _results(name == "two"):
            folder.append(result)
        folders.append(folder.path)
    return folders


@pytest.fixture(scope="session")
def runs(run_folders: list[Path]) -> list[Run]:
    """Those two runs, read."""
    return load_runs(run_folders)


@pytest.fixture
def attack() -> str:
    """The text that stands wherever a run's text can stand."""
    return ATTACK
