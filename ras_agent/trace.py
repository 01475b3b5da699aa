"""The record of one run: the command line prints and saves it, evaluation stores it, the page is drawn from it.

Its JSON form has one schema everywhere, `trace_schema()`. A passage is stored once, under `passages`; steps, citations
and facts refer to it by its id.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import GenericAlias
from typing import Any, Literal, NotRequired, Self

from pydantic import TypeAdapter, ValidationError

from ras_agent.errors import TraceError
from ras_agent.events import Planned
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import (
    JSON,
    Citation,
    Failure,
    Hit,
    Passage,
    Plan,
    Source,
    Step,
    Triple,
    Usage,
    field_types,
    json_shape,
)
from ras_agent.review import Action as ReviewAction
from ras_agent.review import Decision, Reviewed

_VERSION = 1
_Outcome = Literal["answered", "abstained", "failed"]
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Trace:
    """Records a run from question to answer.

    plans: the planner's decisions, each with the hop it was made for. passages: by id, in the order of retrieval. mode:
    the name of the graph that ran, such as "ras". roles: what played each role, such as {"planner":
    "openai:gpt-4o-mini"}. seconds: time spent inside nodes. failed: why no answer could be made; see `outcome`.
    grounded: whether the answer rests on evidence that was found. reviews: what a person decided on the way.
    asked: the user's own words, where `question` is what a follow-up question of a conversation was made into; else
    empty.
    """

    question: str
    answer: str
    abstained: bool = False
    confidence: float | None = None
    citations: tuple[Citation, ...] = ()
    stop_reason: str = ""
    mode: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    steps: tuple[Step, ...] = ()
    plans: tuple[Planned, ...] = ()
    graph: QuestionGraph = field(default_factory=QuestionGraph)
    usage: Usage = field(default_factory=Usage)
    failures: tuple[Failure, ...] = ()
    passages: Mapping[str, Passage] = field(default_factory=dict)
    failed: str = ""
    grounded: bool = False
    asked: str = ""
    reviews: tuple[Reviewed, ...] = ()

    @property
    def outcome(self) -> _Outcome:
        """Say how the run ended: with an answer, with evidence that holds none, or with an answerer that failed."""
        return "failed" if self.failed else "abstained" if self.abstained else "answered"

    @classmethod
    def from_state(cls, out: Mapping[str, Any], mode: str = "", roles: Mapping[str, str] | None = None) -> Self:
        """Return the trace of an agent's output state."""
        known = {name: out[name] for name in cls.__dataclass_fields__ if out.get(name) is not None}
        return cls.from_dict({**cls("", "").to_dict(), **known, "mode": mode, "roles": dict(roles or {})})

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "trace") -> Self:
        """Return the trace that `to_json` wrote. `where` names the file in errors. Raises TraceError."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise TraceError(f"{where}: not JSON: {error}") from error
        return cls.from_dict(data, where)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "trace") -> Self:
        """Return the trace that `to_dict` wrote. Raises TraceError, which names the key that is missing or wrong."""
        wire = _checked(data, where)
        passages = wire["passages"]
        try:
            graph = QuestionGraph.from_dict(wire["graph"])
        except IndexError as error:
            raise TraceError(f"{where}: graph.facts: a reading names a source that its fact does not have") from error
        return cls(
            question=wire["question"],
            answer=wire["answer"],
            abstained=wire["abstained"],
            confidence=wire["confidence"],
            citations=tuple(wire["citations"]),
            stop_reason=wire["stop_reason"],
            mode=wire["mode"],
            roles=wire["roles"],
            seconds=wire["seconds"],
            steps=tuple(Step.of_dict(step, passages) for step in wire["steps"]),
            plans=tuple(_planned(plan, f"{where}: plans.{n}") for n, plan in enumerate(wire["plans"])),
            graph=graph,
            usage=Usage(tuple(wire["usage"]["calls"])),
            failures=tuple(wire["failures"]),
            passages=passages,
            failed=wire["failed"],
            grounded=wire["grounded"],
            asked=wire.get("asked", ""),
            reviews=tuple(map(Reviewed.from_dict, wire.get("reviews", ()))),
        )

    def to_dict(self) -> JSON:
        """Return plain JSON that follows `trace_schema()`."""
        return {
            "schema": "ras-agent/trace",
            "version": _VERSION,
            "question": self.question,
            **({"asked": self.asked} if self.asked else {}),
            "answer": self.answer,
            "abstained": self.abstained,
            "failed": self.failed,
            "grounded": self.grounded,
            "confidence": self.confidence,
            "citations": [citation.to_dict() for citation in self.citations],
            "stop_reason": self.stop_reason,
            "mode": self.mode,
            "roles": dict(self.roles),
            "seconds": self.seconds,
            "steps": [step.to_dict() for step in self.steps],
            "plans": [
                {"hop": planned.hop, **planned.plan.to_dict()}
                | ({"thought": True} if planned.thought else {})
                | ({"by": planned.by} if planned.by else {})
                for planned in self.plans
            ],
            "graph": self.graph.to_dict(),
            "usage": self.usage.to_dict(),
            "failures": [failure.to_dict() for failure in self.failures],
            "passages": {name: passage.to_dict() for name, passage in self.passages.items()},
            **({"reviews": [review.to_dict() for review in self.reviews]} if self.reviews else {}),
        }

    def to_json(self, indent: int | None = None) -> str:
        """Return one JSON document, made by `json_document`."""
        return json_document(self.to_dict(), indent)


def json_document(data: JSON, indent: int | None = None) -> str:
    """Return one JSON document, whatever the run holds that `data` comes from.

    What JSON cannot hold is replaced: a lone surrogate by U+FFFD, NaN by 0, an infinity by the largest number.
    """
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError:
        text = json.dumps(_finite(data), ensure_ascii=False, indent=indent)
    return _LONE_SURROGATE.sub("\ufffd", text)


def trace_schema() -> JSON:
    """Return the JSON Schema of a trace."""
    return {**_shape().json_schema(), "title": "ras-agent trace"}


@dataclass
class _GraphJSON:
    """JSON of a question graph, whose facts have their ids (QuestionGraph.to_dict)."""

    facts: list[JSON]
    conflicts: list[list[str]]
    shelf: list[tuple[str, str, str, list[tuple[str, int, int, int, str, str]]]]


@cache
def _shape() -> TypeAdapter[Any]:
    """Return what checks a trace's JSON, made of the records that it holds."""
    hit = json_shape(
        "_Hit", Hit, without=("passage", "score", "why"),
        passage_id=str, title=str, score=float, why=NotRequired[list[str]],
    )  # fmt: skip
    source = json_shape("_Source", Source)
    plan = json_shape("_Plan", Plan, hop=int, thought=NotRequired[bool], by=NotRequired[str])
    fact = json_shape(
        "_Fact", Triple, id=str, sources=_list(source),
        readings=NotRequired[list[tuple[str, str, str, list[int]]]],
    )  # fmt: skip
    graph = json_shape("_Graph", _GraphJSON, facts=_list(fact))
    counts: dict[str, Any] = dict.fromkeys(("llm_calls", "input_tokens", "output_tokens", "cached_tokens"), int)
    changed = {**field_types(Plan), **field_types(Triple), "sources": _list(source), "answer": str}
    before = json_shape("_Before", Plan, **{name: _optional(kind) for name, kind in changed.items()})
    before.__doc__ = "Holds the plan, the fact or the answer that a person changed."
    decided = {
        name: _optional(list[int] if name == "citations" else kind)
        for name, kind in field_types(Decision).items()
        if name != "action"
    }
    review = json_shape(
        "_Review", Reviewed, without=("decision", "before"), action=ReviewAction, **decided, before=_optional(before)
    )
    return TypeAdapter(
        json_shape(
            "_Trace",
            Trace,
            schema=Literal["ras-agent/trace"],
            version=Literal[1],
            asked=NotRequired[str],
            steps=_list(json_shape("_Step", Step, hits=_list(hit))),
            plans=_list(plan),
            graph=graph,
            usage=json_shape("_Usage", Usage, **counts),
            reviews=_optional(_list(review)),
        )
    )


def _list(item: Any) -> Any:
    return GenericAlias(list, (item,))


def _optional(kind: Any) -> Any:
    return NotRequired[kind]


def _checked(data: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping) or data.get("schema") != "ras-agent/trace":
        raise TraceError(f'{where}: not a trace of ras-agent: it has no "schema": "ras-agent/trace"')
    if data.get("version") != _VERSION:
        raise TraceError(
            f"{where}: trace version {data.get('version')!r}, and this ras-agent reads version {_VERSION}: "
            "read it with the ras-agent that wrote it, or run the question again"
        )
    try:
        wire: Mapping[str, Any] = _shape().validate_python(data)
    except ValidationError as error:
        first, *others = error.errors()
        place = ".".join(map(str, first["loc"]))
        more = f" (and {len(others)} more)" if others else ""
        raise TraceError(f"{where}: {place}: {first['msg']}, got {first['input']!r:.80}{more}") from error
    named = [(f"citations.{n}", citation.passage_id) for n, citation in enumerate(wire["citations"])]
    named += [(f"steps.{n}.hits", hit["passage_id"]) for n, step in enumerate(wire["steps"]) for hit in step["hits"]]
    for place, passage_id in named:
        if passage_id not in wire["passages"]:
            raise TraceError(f"{where}: {place}: passage {passage_id!r} is not under passages")
    return wire


def _planned(data: Mapping[str, Any], where: str) -> Planned:
    try:
        plan = Plan(data["action"], data["subquery"], data["reason"])
    except ValueError as error:
        raise TraceError(f"{where}: {error}") from error
    return Planned(data["hop"], plan, data.get("thought", False), data.get("by", ""))


def _finite(value: Any) -> Any:
    """Return `value` with every number finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return 0.0 if math.isnan(value) else math.copysign(sys.float_info.max, value)
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
