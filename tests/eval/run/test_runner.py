"""Asking many questions at once: bounded, one failure at a time, never twice."""

import asyncio
import contextlib
import gc
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ras_agent import create_ras_agent
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import ModelRefused, RunError
from ras_agent.contracts.records import Hit, Passage
from ras_agent.eval.metrics.answers import exact_match
from ras_agent.eval.question import Question
from ras_agent.eval.run.agent import (
    NO_ANSWER,
    graph_answerer,
    retriever_answerer,
    warm_up,
    warm_up_roles,
)
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.runner import evaluate, question_work
from ras_agent.graphs.resolve import resolve_parts
from ras_agent.running.calling import noted
from ras_agent.tools.workers.pool import Here
from tests.messages import says

QUESTIONS = [
    Question(f"q{number}", f"Question {number}?", (f"answer {number}",), ("p1",))
    for number in range(6)
]
CALL = {
    "role": "planner",
    "hop": 1,
    "model": "m",
    "input_tokens": 7,
    "output_tokens": 3,
    "cached_tokens": 2,
}


class Asked:
    """Answers question n with "answer n", or raises for those in `failing`; remembers its requests."""

    def __init__(self, failing: tuple[str, ...] = ()) -> None:
        self.ids: list[str] = []
        self.failing = failing
        self.under_way = self.most = 0

    async def __call__(self, question: Question) -> Mapping[str, Any]:
        self.ids.append(question.id)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if question.id in self.failing:
            raise ConnectionError("the line is dead")
        passage = {"id": "p1", "title": "One", "text": "..."}
        return {
            **NO_ANSWER, "answer": f"answer {question.id[1:]}", "passages": {"p1": passage}, "steps": [{}, {}],
            "stop_reason": "sufficient", "usage": {"calls": [CALL, {**CALL, "role": "answerer", "replayed": True}]},
        }  # fmt: skip


def _score(question: Question, out: Mapping[str, Any]) -> dict[str, float]:
    return {"em": exact_match(out["answer"], question.answers)}


def _folder(tmp_path: Path) -> RunFolder:
    return RunFolder.begin(tmp_path / "run", {"name": "test"})


def test_results_are_in_the_order_of_the_questions_and_scored(tmp_path: Path) -> None:
    results = evaluate(
        Here(question_work(Asked(), _score)),
        QUESTIONS,
        _folder(tmp_path),
        concurrency=3,
    )
    assert [result.id for result in results] == ["q0", "q1", "q2", "q3", "q4", "q5"]
    first = results[0]
    assert (first.answer, first.scores, first.retrieved, first.hops) == (
        "answer 0",
        {"em": 1.0},
        ("p1",),
        2,
    )
    assert first.models == ("m",)
    counts = {
        "calls": 1,
        "replayed": 0,
        "input_tokens": 7,
        "output_tokens": 3,
        "cached_tokens": 2,
    }
    assert first.usage["by_role"] == {
        "planner": counts,
        "answerer": {**counts, "replayed": 1},
    }
    assert (
        first.usage["calls"],
        first.usage["replayed"],
        first.usage["input_tokens"],
    ) == (2, 1, 14)


def test_seconds_in_a_queue_are_apart_from_a_questions_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(100))
    clock = lambda: next(now)
    monkeypatch.setattr(
        "ras_agent.eval.run.runner.time", SimpleNamespace(perf_counter=clock)
    )
    monkeypatch.setattr("ras_agent.running.calling.perf_counter", clock)

    async def answer(question: Question) -> Mapping[str, Any]:
        with noted(waiting=1):
            await asyncio.sleep(0)
        return NO_ANSWER

    (result,) = evaluate(
        Here(question_work(answer, _score)),
        QUESTIONS[:1],
        _folder(tmp_path),
        concurrency=1,
    )
    # asked at 0, its queue begins at 1, it waits from 2 to 3, and has its answer at 4
    assert (result.seconds, result.queued) == (3, 1)


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (4, 4), (32, 6)])
def test_no_more_questions_are_under_way_than_allowed(
    tmp_path: Path, concurrency: int, most: int
) -> None:
    ask = Asked()
    evaluate(
        Here(question_work(ask, _score)),
        QUESTIONS,
        _folder(tmp_path),
        concurrency=concurrency,
    )
    assert ask.most == most


def test_32_questions_are_under_way_where_nobody_says_how_many(tmp_path: Path) -> None:
    ask, questions = Asked(), [Question(f"q{number}", "?", ()) for number in range(40)]
    evaluate(Here(question_work(ask, _score)), questions, _folder(tmp_path))
    assert ask.most == 32


def test_a_failing_question_is_recorded_and_the_others_are_answered(
    tmp_path: Path,
) -> None:
    results = evaluate(
        Here(question_work(Asked(failing=("q1",)), _score)),
        QUESTIONS,
        _folder(tmp_path),
        concurrency=2,
    )
    failed = results[1]
    assert failed.error == {"type": "ConnectionError", "message": "the line is dead"}
    assert (failed.scores, failed.stop_reason, failed.answer) == (
        {"em": 0.0},
        "error",
        "",
    )
    assert (NO_ANSWER["abstained"], failed.abstained) == (False, False)
    assert [result.scores["em"] for result in results] == [1.0, 0.0, 1.0, 1.0, 1.0, 1.0]


def test_an_answerer_that_failed_inside_the_agent_is_an_error_and_no_abstention(
    tmp_path: Path,
) -> None:
    async def ask(question: Question) -> Mapping[str, Any]:
        failures = [
            {"role": "retriever", "message": "late"},
            {"role": "answerer", "message": "OSError: gone"},
        ]
        failed = {
            "abstained": True,
            "failed": "the answerer failed",
            "failures": failures,
        }
        return {
            **NO_ANSWER,
            **(
                failed
                if question.id == "q1"
                else {"abstained": True, "failed": "", "failures": []}
            ),
        }

    results = evaluate(
        Here(question_work(ask, _score)), QUESTIONS[:2], _folder(tmp_path)
    )
    assert [result.error for result in results] == [
        None,
        {"type": "Unanswered", "message": "the answerer failed; OSError: gone"},
    ]


def test_a_metric_that_raises_costs_its_own_score_alone(tmp_path: Path) -> None:
    def score(question: Question, out: Mapping[str, Any]) -> dict[str, float]:
        return {"third": 1 / (len(question.id) - 2)}

    (result,) = evaluate(
        Here(question_work(Asked(), score)), QUESTIONS[:1], _folder(tmp_path)
    )
    assert (result.answer, result.scores) == ("answer 0", {})
    assert result.error == {"type": "ZeroDivisionError", "message": "division by zero"}


def test_a_resumed_run_asks_only_what_has_no_result(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    evaluate(Here(question_work(Asked(), _score)), QUESTIONS[:2], folder)
    ask, told = Asked(), []
    pool = Here(question_work(ask, _score))
    results = evaluate(
        pool, QUESTIONS, folder, on_end=lambda result: told.append(result.id)
    )
    assert sorted(ask.ids) == sorted(told) == ["q2", "q3", "q4", "q5"]
    assert [result.scores["em"] for result in results] == [1.0] * 6


def test_an_interrupted_run_keeps_what_had_ended(tmp_path: Path) -> None:
    folder = _folder(tmp_path)

    def interrupt(result: Any) -> None:
        if result.id == "q2":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(
            Here(question_work(Asked(), _score)),
            QUESTIONS,
            folder,
            concurrency=1,
            on_end=interrupt,
        )
    gc.collect()  # asyncio's task says as it goes that nobody took its exception: here, and not within a later test
    assert [result.id for result in folder.results()] == ["q0", "q1", "q2"]
    ask = Asked()
    evaluate(Here(question_work(ask, _score)), QUESTIONS, folder, concurrency=1)
    assert ask.ids == ["q3", "q4", "q5"]


async def test_a_cancelled_question_is_no_result_even_if_a_library_goes_on(
    tmp_path: Path,
) -> None:
    began = asyncio.Event()

    async def ask(question: Question) -> Mapping[str, Any]:
        with contextlib.suppress(asyncio.CancelledError):
            began.set()
            await asyncio.Event().wait()
        return NO_ANSWER

    asked = asyncio.create_task(question_work(ask, _score)(QUESTIONS[0]))
    await began.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked


def test_two_questions_of_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="2 questions have the id 'q0'"):
        evaluate(
            Here(question_work(Asked(), _score)),
            [QUESTIONS[0], QUESTIONS[0]],
            _folder(tmp_path),
        )


def test_a_bare_search_retrieves_and_answers_nothing(tmp_path: Path) -> None:
    class Shelf:
        def retrieve(self, query: str, k: int = 5) -> list[Hit]:
            return [
                Hit(Passage("p2", query, "Two"), 2.0),
                Hit(Passage("p1", "...", "One"), 1.0),
            ][:k]

    def score(question: Question, out: Mapping[str, Any]) -> dict[str, float]:
        return {"found": float("p1" in out["passages"])}

    (result,) = evaluate(
        Here(question_work(retriever_answerer(Shelf(), 2), score)),
        QUESTIONS[:1],
        _folder(tmp_path),
    )
    assert (result.retrieved, result.scores, result.answer) == (
        ("p2", "p1"),
        {"found": 1.0},
        "",
    )
    assert (result.stop_reason, result.error) == ("retrieval_only", None)
    assert result.trace is not None
    assert list(result.trace["passages"]) == ["p2", "p1"]


class Answering:
    """An agent that repeats its question; it ends with `stop_reason` and these failures."""

    def __init__(self, stop_reason: str = "sufficient", *failures: str) -> None:
        self.asked: list[Mapping[str, Any]] = []
        self._ends = {
            "stop_reason": stop_reason,
            "failures": [{"message": message} for message in failures],
        }

    async def ainvoke(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append(given)
        return {**NO_ANSWER, **self._ends, "answer": given["question"]}


async def test_an_agent_is_asked_the_question_alone_or_what_a_benchmark_gives_it() -> (
    None
):
    agent: Any = Answering()
    assert (await graph_answerer(agent)(QUESTIONS[0]))["answer"] == "Question 0?"
    await graph_answerer(
        agent, lambda question: {"question": "given", "seed_passages": ["..."]}
    )(QUESTIONS[0])
    assert agent.asked == [
        {"question": "Question 0?"},
        {"question": "given", "seed_passages": ["..."]},
    ]


async def test_a_model_that_refuses_ends_the_evaluation_with_its_last_message() -> None:
    agent: Any = Answering("model_refused", "late", "slow", "the key is refused")
    with pytest.raises(ModelRefused, match="the key is refused"):
        await question_work(graph_answerer(agent), _score)(QUESTIONS[0])


def test_where_a_model_cannot_be_asked_the_run_ends_with_what_is_done_and_goes_on_from_there(
    tmp_path: Path,
) -> None:
    async def gone(question: Question) -> Mapping[str, Any]:
        if question.id == "q2":
            raise ModelRefused("nothing listens at http://127.0.0.1:9")
        return await Asked()(question)

    folder = _folder(tmp_path)
    told = says(
        "nothing listens",
        "http://127.0.0.1:9",
        "2 of 6 questions",
        "stored",
        "same command continues the run",
    )
    with pytest.raises(ModelRefused, match=told):
        evaluate(Here(question_work(gone, _score)), QUESTIONS, folder, concurrency=1)
    ask = Asked()
    evaluate(Here(question_work(ask, _score)), QUESTIONS, folder, concurrency=1)
    assert ask.ids == ["q2", "q3", "q4", "q5"]


async def test_seconds_are_those_that_a_question_took_also_where_it_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([100.0, 103.0, 200.0, 207.0])
    monkeypatch.setattr(
        "ras_agent.eval.run.runner.time",
        SimpleNamespace(perf_counter=lambda: next(clock)),
    )
    assert (await question_work(Asked(), _score)(QUESTIONS[0])).seconds == 3.0
    assert (await question_work(Asked(("q0",)), _score)(QUESTIONS[0])).seconds == 7.0


async def test_a_loops_trace_is_in_its_result_unless_nobody_wants_it() -> None:
    agent = create_ras_agent(
        index=[Passage("p1", "Bell was born in Edinburgh.", "Bell")]
    )
    traces = [
        (
            await question_work(graph_answerer(agent), _score, **wanted)(QUESTIONS[0])
        ).trace
        for wanted in ({}, {"traces": False})
    ]
    assert traces[0] is not None
    assert (traces[0]["question"], traces[1]) == ("Question 0?", None)


def test_errors_are_asked_again_when_told_to(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    evaluate(Here(question_work(Asked(("q1", "q4")), _score)), QUESTIONS, folder)
    asked = Asked()
    evaluate(Here(question_work(asked, _score)), QUESTIONS, folder)
    assert asked.ids == []
    results = evaluate(
        Here(question_work(asked, _score)), QUESTIONS, folder, retry_errors=True
    )
    assert (asked.ids, [result.error for result in results]) == (
        ["q1", "q4"],
        [None] * 6,
    )
    assert len(list(folder.results())) == 6


def test_while_another_process_writes_no_error_is_taken_out_to_be_asked_again(
    tmp_path: Path,
) -> None:
    folder = _folder(tmp_path)
    evaluate(Here(question_work(Asked(("q1",)), _score)), QUESTIONS[:3], folder)
    before = folder.results_path.read_bytes()
    with folder.writing(), pytest.raises(RunError, match="another process is writing"):
        evaluate(
            Here(question_work(Asked(), _score)),
            QUESTIONS,
            RunFolder(folder.path),
            retry_errors=True,
        )
    assert folder.results_path.read_bytes() == before


@pytest.mark.parametrize(
    ("role", "message", "kind"),
    [
        ("planner", "ModelCallError: vllm:m failed after 3 tries: 500", "ServerFailed"),
        (
            "extractor",
            "ModelCallError: vllm:m failed after 3 tries: 500 (passage p1)",
            "ServerFailed",
        ),
        ("retriever", "ConnectionRefusedError: nobody listens", "ServerFailed"),
        ("planner", "ParseError: no plan in the reply", None),
        (
            "extractor",
            "facts could not be read, also after a repair (passage p1)",
            None,
        ),
    ],
)
def test_a_server_that_failed_is_an_error_and_a_reply_that_cannot_be_read_is_none(
    tmp_path: Path, role: str, message: str, kind: str | None
) -> None:
    async def answer(question: Question) -> Mapping[str, Any]:
        failure = {"role": role, "hop": 2, "message": message}
        return {
            **NO_ANSWER,
            "answer": "answer 0",
            "abstained": False,
            "stop_reason": "planner_failed",
            "failures": [failure],
        }

    def said(question: Question, output: Mapping[str, Any]) -> Mapping[str, float]:
        return {"said": bool(output["answer"]), "abstained": output["abstained"]}

    (result,) = evaluate(
        Here(question_work(answer, said)), QUESTIONS[:1], _folder(tmp_path)
    )
    assert (result.error["type"] if result.error else None) == kind
    # a fallback's answer is kept, and counts as no answer
    assert (result.answer, result.scores["said"]) == ("answer 0", float(kind is None))
    # nor as an abstention, which is right where nothing answers a question
    assert not result.scores["abstained"]
    assert result.at_once == 32


def test_a_retriever_is_loaded_before_the_first_question_is_timed() -> None:
    asked: list[str] = []

    class Loading:
        def retrieve(self, query: str, k: int = 5) -> list[Hit]:
            asked.append(query)
            raise OSError("not now")

    warm_up(Loading(), SimpleNamespace(questions=QUESTIONS))  # type: ignore[arg-type]
    assert asked == ["Question 0?"]


def test_roles_that_load_are_warmed_up_and_no_model_is_asked(scripted_llm: Any) -> None:
    asked: list[str] = []

    class Loading:
        def extract(self, passages: Any, subquery: str = "") -> Any:
            asked.append(f"{passages[0].id}: {subquery}")
            raise OSError("not now")

    settings = Settings(
        planner=scripted_llm.spec, answerer=scripted_llm.spec, extractor="offline"
    )
    parts = replace(
        resolve_parts("ras", settings=settings, index=[Passage("p1", "One.")]),
        extractor=Loading(),
    )
    warm_up_roles(parts, SimpleNamespace(questions=QUESTIONS), (Passage("p1", "One."),))  # type: ignore[arg-type]
    assert asked == ["p1: Question 0?"]
    assert scripted_llm.requests() == []
