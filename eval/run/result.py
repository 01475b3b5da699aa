"""One question's result: a line of results.jsonl, and how an agent's output becomes one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from statistics import fmean
from typing import Annotated, Any, NotRequired, Self

from pydantic import AfterValidator, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ras_agent.eval.question import Question
from ras_agent.records import JSON, Passage

_OF_SERVERS = frozenset(
    {
        "ModelCallError",
        "ConnectionError",
        "ConnectionRefusedError",
        "ConnectionResetError",
        "TimeoutError",
    }
)
"""How the message of a failure begins that a server is to blame for, and neither a role nor its model"""


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
    """A problem in a run that did not end it."""

    role: str
    message: str
    hop: NotRequired[Any]


_COUNTS = TypeAdapter(dict[str, int | dict[str, dict[str, int]]])
_FAILURE = TypeAdapter(_Failure)


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one question.

    supporting, retrieved: passage ids, or titles where the gold passages are named by title (`by_title`, which runs of
        older versions do not say); `retrieved` is ranked by hop, then by rank within the hop.
    confidence: of the answer, 0..1, also of one that was left unsaid; None if the answerer states no confidence.
    scores: metric -> 0..1.
    seconds: by the clock, from asked to answered, less those in which the question waited in a queue.
    queued: the seconds in a queue.
    at_once: how many questions were under way at most, 0 where that is unknown; several share the processor, too.
    usage: see `token_use`.
    failures: problems in the run that did not end it.
    error: {"type", "message"} of the exception raised instead of an answer, within the agent ("Unanswered",
        "ServerFailed") or out of it.
    trace: `Trace.to_dict()`.
    relevance: the grade of each judged passage, where the question set grades them (BEIR); else each of `supporting`
        counts as 1.
    """

    id: str
    question: str
    answers: tuple[str, ...] = ()
    supporting: tuple[str, ...] = ()
    type: str = ""
    gold_hops: int | None = None
    answer: str = ""
    abstained: bool = False
    confidence: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    retrieved: tuple[str, ...] = ()
    stop_reason: str = ""
    hops: int = 0
    seconds: float = 0.0
    queued: float = 0.0
    at_once: int = 0
    usage: Annotated[JSON, AfterValidator(_COUNTS.validate_python)] = field(
        default_factory=dict
    )
    models: tuple[str, ...] = ()
    failures: tuple[Annotated[JSON, AfterValidator(_FAILURE.validate_python)], ...] = ()
    error: JSON | None = None
    trace: JSON | None = None
    by_title: bool = False
    relevance: Mapping[str, float] = field(default_factory=dict)
    suggestion: str = ""
    """of an answer that abstained: the answer that its citations suggest without being sure"""

    @property
    def tokens(self) -> int:
        """Return how many tokens all model calls took."""
        read: int = self.usage.get("input_tokens", 0)
        written: int = self.usage.get("output_tokens", 0)
        return read + written

    @property
    def response(self) -> str:
        """The answer for others to score: where it abstained, that it did."""
        if self.abstained:
            return "I don't know."
        return self.answer

    def to_dict(self) -> JSON:
        """Return a line of results.jsonl."""
        line = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, tuple):
                value = list(value)
            line[item.name] = value
        return line

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the result that `to_dict` described. Unknown keys and scores that are null are ignored.

        Raises ValueError, which names the field, for a value of another type.
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
    """Return the check of a line; it is made when the first line is read."""
    return TypeAdapter(Result)


def _first_problem(error: ValidationError) -> str:
    """Return a sentence about the first value that has another type than its field."""
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
    """Return the result, not yet scored, of an agent that returned `out` (see ras_agent.graphs.state.Outputs)."""
    passages = map(Passage.from_dict, out.get("passages", {}).values())
    calls = (out.get("usage") or {}).get("calls", ())
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
        failures=tuple(_failure_json(failure) for failure in out.get("failures") or ()),
        models=tuple(dict.fromkeys(call["model"] for call in calls)),
        error=_answerer_failure(out) or _server_failure(out),
        trace=trace,
    )


def failed_result(
    question: Question, error: BaseException, *, seconds: float
) -> Result:
    """Return the result of a question that ended in an exception."""
    return Result(
        **_question_json(question),
        stop_reason="error",
        seconds=seconds,
        usage=token_use(()),
        error=error_dict(error),
    )


def score_columns(results: Iterable[Result]) -> dict[str, list[float]]:
    """Return the scores of each metric, in the order of the results, without those to which it does not apply."""
    columns: dict[str, list[float]] = {}
    for result in results:
        for metric, score in result.scores.items():
            columns.setdefault(metric, []).append(score)
    return columns


def mean_scores(results: Iterable[Result]) -> dict[str, float]:
    """Return the mean of each metric, over the results to which it applies."""
    columns = score_columns(results)
    return {name: fmean(column) for name, column in columns.items()}


def table_rows(results: Sequence[Result]) -> list[JSON]:
    """Return results as rows of a table, all with the same columns: one for each score, lists as JSON, no traces."""
    names = list(score_columns(results))
    rows = []
    for result in results:
        row: JSON = {name: getattr(result, name) for name in _PLAIN_COLUMNS}
        for name in _LIST_COLUMNS:
            row[name] = json.dumps(list(getattr(result, name)), ensure_ascii=False)
        error = result.error or {}
        row["error"] = str(error.get("message", ""))
        for name in ("calls", "input_tokens", "output_tokens"):
            row[name] = int(result.usage.get(name, 0))
        for name in names:
            row[name] = result.scores.get(name)
        rows.append(row)
    return rows


def error_dict(error: BaseException) -> JSON:
    """Return an exception as a result stores it."""
    return {"type": type(error).__name__, "message": str(error)[:2000]}


def token_use(calls: Iterable[Mapping[str, Any]]) -> JSON:
    """Sum up model calls, given as `Call.to_dict()`: in all, by role and by model.

    `replayed` is how many calls were answered from cached replies; their tokens count as if they had been asked.
    """
    calls = list(calls)
    return {
        **_sums(calls),
        "by_role": _sums_by(calls, "role"),
        "by_model": _sums_by(calls, "model"),
    }


def _answerer_failure(out: Mapping[str, Any]) -> JSON | None:
    """Return the answerer's failure in an agent's output. It makes the result an error, not an abstention."""
    if not out.get("failed"):
        return None
    messages = []
    for failure in out.get("failures", ()):
        if failure["role"] == "answerer":
            messages.append(failure["message"])
    return {
        "type": "Unanswered",
        "message": "; ".join([out["failed"], *messages])[:2000],
    }


def _server_failure(out: Mapping[str, Any]) -> JSON | None:
    """Return the first server failure in an agent's output, after which its role has decided or read nothing.

    The answer says nothing of the system then: it makes the result an error, which is asked again.
    """
    for failure in out.get("failures") or ():
        if str(failure["message"]).partition(":")[0] in _OF_SERVERS:
            message = f"the {failure['role']} failed at hop {failure['hop']}: {failure['message']}"
            return {"type": "ServerFailed", "message": message[:2000]}
    return None


def _failure_json(failure: Mapping[str, Any]) -> JSON:
    return {name: failure.get(name, "") for name in ("role", "hop", "message")}


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
