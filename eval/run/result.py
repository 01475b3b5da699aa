"""Defines the result of one question, which is a line of results.jsonl, and makes it from an agent's output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from statistics import fmean
from typing import Annotated, Any, NotRequired, Self

from pydantic import AfterValidator, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ras_agent.contracts.records import JSON, Passage
from ras_agent.eval.question import Question
from ras_agent.eval.significance import Estimate, mean_interval

_OF_SERVERS = frozenset(
    {
        "ModelCallError",
        "ConnectionError",
        "ConnectionRefusedError",
        "ConnectionResetError",
        "TimeoutError",
    }
)
"""The beginnings of a failure's message if a server caused the failure, not a role or its model."""


_PLAIN_COLUMNS = (
    *(
        "id",
        "question",
        "type",
        "gold_hops",
        "answer",
        "abstained",
        "suggestion",
        "confidence",
    ),
    *("stop_reason", "hops", "seconds", "queued", "at_once"),
)
_LIST_COLUMNS = ("answers", "supporting", "retrieved")


class _Failure(TypedDict):
    """Describes a problem that did not end the run of a question."""

    role: str
    message: str
    hop: NotRequired[Any]


_COUNTS = TypeAdapter(dict[str, int | dict[str, dict[str, int]]])
_FAILURE = TypeAdapter(_Failure)


@dataclass(frozen=True, slots=True)
class Result:
    """Holds the result of one question."""

    id: str
    question: str
    answers: tuple[str, ...] = ()
    supporting: tuple[str, ...] = ()
    """The gold passages: their ids, or their titles if `by_title`."""
    type: str = ""
    """The kind of the question, as the benchmark names it."""
    gold_hops: int | None = None
    answer: str = ""
    abstained: bool = False
    confidence: float | None = None
    """The answer's confidence, 0..1, also if the answer was withheld; None if it has no confidence."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Metric to score in 0..1."""
    retrieved: tuple[str, ...] = ()
    """The retrieved passages, named as in `supporting` and ranked by hop, then by rank within the hop."""
    stop_reason: str = ""
    hops: int = 0
    seconds: float = 0.0
    """The time from question to answer, without the seconds in a queue."""
    queued: float = 0.0
    """The seconds in which the question waited in a queue."""
    at_once: int = 0
    """The maximum number of questions that were asked at the same time; 0 if unknown. They share the processor."""
    usage: Annotated[JSON, AfterValidator(_COUNTS.validate_python)] = field(
        default_factory=dict
    )
    """The tokens of the model calls, as `token_use` sums them up."""
    models: tuple[str, ...] = ()
    failures: tuple[Annotated[JSON, AfterValidator(_FAILURE.validate_python)], ...] = ()
    """Problems that did not end the run of the question."""
    error: JSON | None = None
    """{"type", "message"} of the exception raised instead of an answer, in the agent ("Unanswered", "ServerFailed") or
    outside."""
    trace: JSON | None = None
    """The trace of the run, as `Trace.to_dict()` writes it."""
    by_title: bool = False
    """Whether gold passages are named by title. Runs of older versions do not record it."""
    relevance: Mapping[str, float] = field(default_factory=dict)
    """The grade of each judged passage if the question set has grades (BEIR); otherwise each passage of `supporting`
    counts as 1."""
    suggestion: str = ""
    """For an abstention: the answer that the citations suggest, but not with enough certainty."""

    @property
    def tokens(self) -> int:
        """Return the number of tokens of all model calls."""
        read: int = self.usage.get("input_tokens", 0)
        written: int = self.usage.get("output_tokens", 0)
        return read + written

    @property
    def response(self) -> str:
        """Return the answer as a text to score; for an abstention, a sentence that says that the answer is not known."""
        if self.abstained:
            return "I don't know."
        return self.answer

    def to_dict(self) -> JSON:
        """Return the result as a line of results.jsonl."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the result of a line of results.jsonl. Unknown keys and null scores are ignored.

        Raises:
            ValueError: if a value has the wrong type; the message names the field.
        """
        known = dict(data)
        scores = data.get("scores")
        if isinstance(scores, Mapping):
            known["scores"] = {}
            for name, score in scores.items():
                if score is not None:
                    known["scores"][name] = score
        try:
            result: Self = _line().validate_python(known)
        except ValidationError as error:
            raise ValueError(_first_problem(error)) from error
        return result


@cache
def _line() -> TypeAdapter[Any]:
    """Return the type adapter that checks a line. It is built when first needed."""
    return TypeAdapter(Result)


def _first_problem(error: ValidationError) -> str:
    """Return a sentence about the first value of the wrong type."""
    problem = error.errors(include_url=False)[0]
    place = ".".join(map(str, problem["loc"]))
    if problem["input"] is None:
        return f"{place!r} is null"
    return f"{place!r}: {problem['msg']}, found {problem['input']!r:.80}"


def result_of(
    question: Question,
    out: Mapping[str, Any],
    *,
    seconds: float,
    trace: JSON | None = None,
) -> Result:
    """Return the result, still without scores, of an agent that returned `out` (see ras_agent.graphs.state.Outputs)."""
    passages = map(Passage.from_dict, out.get("passages", {}).values())
    usage = out.get("usage") or {}
    calls = usage.get("calls", ())
    models = [call["model"] for call in calls]
    failures = map(_failure_json, out.get("failures") or ())
    return Result(
        **_question_json(question),
        answer=out.get("answer", ""),
        abstained=bool(out.get("abstained")),
        suggestion=out.get("suggestion") or "",
        confidence=out.get("confidence"),
        retrieved=question.names(passages),
        stop_reason=out.get("stop_reason", ""),
        hops=len(out.get("steps", ())),
        seconds=seconds,
        usage=token_use(calls),
        failures=tuple(failures),
        models=tuple(dict.fromkeys(models)),
        error=_answerer_failure(out) or _server_failure(out),
        trace=trace,
    )


def failed_result(
    question: Question, error: BaseException, *, seconds: float
) -> Result:
    """Return the result of a question whose run raised `error`."""
    return Result(
        **_question_json(question),
        stop_reason="error",
        seconds=seconds,
        usage=token_use(()),
        error=error_dict(error),
    )


def score_columns(results: Iterable[Result]) -> dict[str, list[float]]:
    """Return the scores by metric, in the order of the results.

    Results to which a metric does not apply are left out.
    """
    columns: dict[str, list[float]] = {}
    for result in results:
        for metric, score in result.scores.items():
            columns.setdefault(metric, []).append(score)
    return columns


def mean_scores(results: Iterable[Result]) -> dict[str, float]:
    """Return the mean of each metric over the results to which it applies."""
    columns = score_columns(results)
    return {name: fmean(column) for name, column in columns.items()}


def estimates(
    results: Iterable[Result], metrics: Iterable[str] | None = None
) -> dict[str, Estimate]:
    """Return the mean of each metric with its interval, in the order of `metrics`, by default of all that have scores.

    Metrics without scores are left out.
    """
    columns = score_columns(results)
    means = {}
    for name in columns if metrics is None else metrics:
        if name in columns:
            means[name] = mean_interval(columns[name])
    return means


def table_rows(results: Sequence[Result]) -> list[JSON]:
    """Return the results as rows of a table without traces. All rows have the same columns, one for each score;
    lists are JSON.
    """
    names = list(score_columns(results))
    rows = []
    for result in results:
        row: JSON = {name: getattr(result, name) for name in _PLAIN_COLUMNS}
        for name in _LIST_COLUMNS:
            row[name] = json.dumps(getattr(result, name), ensure_ascii=False)
        error = result.error or {}
        row["error"] = str(error.get("message", ""))
        for name in ("calls", "input_tokens", "output_tokens"):
            row[name] = int(result.usage.get(name, 0))
        for name in names:
            row[name] = result.scores.get(name)
        rows.append(row)
    return rows


def error_dict(error: BaseException) -> JSON:
    """Return the type and the message of an exception, as a result stores them."""
    return _error(type(error).__name__, str(error))


def _error(kind: str, message: str) -> JSON:
    return {"type": kind, "message": message[:2000]}


def token_use(calls: Iterable[Mapping[str, Any]]) -> JSON:
    """Return the summed tokens of model calls (`Call.to_dict()`): in total, by role and by model.

    `replayed` is how many calls were answered from cached replies; their tokens are counted too.
    """
    calls = list(calls)
    return {
        **_sums(calls),
        "by_role": _sums_by(calls, "role"),
        "by_model": _sums_by(calls, "model"),
    }


def _answerer_failure(out: Mapping[str, Any]) -> JSON | None:
    """Return the answerer's failure in an agent's output, which makes the result an error, not an abstention;
    None without one.
    """
    if not out.get("failed"):
        return None
    messages = [out["failed"]]
    for failure in out.get("failures", ()):
        if failure["role"] == "answerer":
            messages.append(failure["message"])
    return _error("Unanswered", "; ".join(messages))


def _server_failure(out: Mapping[str, Any]) -> JSON | None:
    """Return the first failure in an agent's output that a server caused; None without one.

    Such a result is an error, because its answer does not show what the system can do, and the question can be
    asked again.
    """
    for failure in out.get("failures") or ():
        cause, _, _ = str(failure["message"]).partition(":")
        if cause in _OF_SERVERS:
            message = f"the {failure['role']} failed at hop {failure['hop']}: {failure['message']}"
            return _error("ServerFailed", message)
    return None


def _failure_json(failure: Mapping[str, Any]) -> JSON:
    return {
        "role": failure.get("role", ""),
        "hop": failure.get("hop", ""),
        "message": failure.get("message", ""),
    }


def _question_json(question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "question": question.question,
        "answers": tuple(question.answers),
        "supporting": tuple(question.supporting),
        "type": question.type,
        "gold_hops": question.hops,
        "by_title": question.by_title,
        "relevance": dict(question.relevance),
    }


def _sums(calls: list[Mapping[str, Any]]) -> dict[str, int]:
    sums = {"calls": len(calls)}
    for name in ("replayed", "input_tokens", "output_tokens", "cached_tokens"):
        sums[name] = sum(int(call.get(name, 0)) for call in calls)
    return sums


def _sums_by(calls: list[Mapping[str, Any]], key: str) -> dict[str, dict[str, int]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for call in calls:
        groups.setdefault(call[key], []).append(call)
    return {name: _sums(group) for name, group in groups.items()}
