"""Defines the trace of a run. The command line prints and saves it, evaluations store it, and the page is drawn
from it.

Its JSON form has the same schema everywhere, `trace_schema()`. A passage is stored once, under `passages`;
steps, citations and facts refer to it by its id.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from types import GenericAlias
from typing import Annotated, Any, ClassVar, Literal, NotRequired, Self

from pydantic import AfterValidator, TypeAdapter, ValidationError

from ras_agent.contracts.errors import TraceError
from ras_agent.contracts.events import Planned
from ras_agent.contracts.records import (
    JSON,
    Citation,
    Dispute,
    Failure,
    Hit,
    Passage,
    Plan,
    Source,
    Step,
    Triple,
    Usage,
)
from ras_agent.contracts.shape import Record, field_types, json_shape, read_record
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.graph import GraphJSON, ReadingJSON
from ras_agent.running.review import Reviewed

_Outcome = Literal["answered", "abstained", "failed"]
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Trace(Record):
    """Records a run from question to answer."""

    json_keys = (
        "schema",
        "version",
        "question",
        "asked?",
        "answer",
        "abstained",
        "failed",
        "suggestion?",
        "disputes?",
        "grounded",
        "confidence",
        "agreement?",
        "citations",
        "stop_reason",
        "mode",
        "roles",
        "seconds",
        "steps",
        "plans",
        "graph",
        "usage",
        "failures",
        "passages",
        "reviews?",
    )
    schema: ClassVar[Literal["ras-agent/trace"]] = "ras-agent/trace"
    version: ClassVar[Literal[1]] = 1

    question: str
    answer: str
    abstained: bool = False
    confidence: float | None = None
    citations: tuple[Citation, ...] = ()
    stop_reason: str = ""
    mode: str = ""
    """the name of the loop that ran, such as "ras\""""
    roles: Mapping[str, str] = field(default_factory=dict)
    """the component in each role, such as {"planner": "openai:gpt-4o-mini"}"""
    seconds: float = 0.0
    """time spent inside nodes"""
    steps: tuple[Step, ...] = ()
    plans: tuple[Planned, ...] = ()
    """the planner's decisions, each with the hop that it was made for"""
    graph: QuestionGraph = field(default_factory=QuestionGraph)
    usage: Usage = field(default_factory=Usage)
    failures: tuple[Failure, ...] = ()
    passages: Mapping[str, Passage] = field(default_factory=dict)
    """the passages by id, in the order of retrieval"""
    failed: str = ""
    """why no answer could be made; see `outcome`"""
    grounded: bool = False
    """whether a cited sentence supports the answer, or may support it (ras_agent.question_graph.support)"""
    asked: str = ""
    """the user's own words, if `question` is a rewritten follow-up question of a conversation; else "\""""
    suggestion: str = ""
    """if the answer abstained, the answer that the citations suggest; else "\""""
    disputes: tuple[Dispute, ...] = ()
    """the points on which other documents contradict the answer"""
    agreement: float | None = None
    """the share of the samples that say the same as the answer; None if it was asked for once"""
    reviews: tuple[Reviewed, ...] = ()
    """a person's decisions during the run"""

    @property
    def outcome(self) -> _Outcome:
        """Return how the run ended: "answered", "abstained" for lack of evidence, or "failed" if no answer
        could be made.
        """
        if self.failed:
            return "failed"
        if self.abstained:
            return "abstained"
        return "answered"

    @classmethod
    def from_state(
        cls,
        out: Mapping[str, Any],
        mode: str = "",
        roles: Mapping[str, str] | None = None,
    ) -> Self:
        """Return the trace of a run.

        Args:
            out: The agent's output state.
            mode: The name of the loop.
            roles: The component in each role.
        """
        data = cls("", "").to_dict()
        for name in cls.__dataclass_fields__:
            if out.get(name) is not None:
                data[name] = out[name]
        data["mode"] = mode
        data["roles"] = dict(roles or {})
        return cls.from_dict(data)

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "trace") -> Self:
        """Return the trace that `to_json` wrote. `where` names the text in errors, for example a file's name.

        Raises:
            TraceError: if the text is not a trace.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise TraceError(
                f"{where}: not JSON ({error}): save the trace again"
            ) from error
        return cls.from_dict(data, where)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "trace") -> Self:
        """Return the trace that `to_dict` wrote. `where` names the data in errors.

        Raises:
            TraceError: if a key is missing or wrong; the message names it.
        """
        wire = _checked(data, where)
        steps = [Step.of_dict(step, wire["passages"]) for step in wire["steps"]]
        return read_record(cls, {**wire, "steps": steps})

    def _repr_html_(self) -> str:
        """Return the HTML in which a notebook shows the run."""
        about = (
            f"{len(self.steps)} searches, {len(self.graph)} facts, {self.seconds:.1f} s"
        )
        if self.failed:
            about = f"{self.failed} ({about})"
        from ras_agent.page.notebook import answer_cell  # the page draws traces

        return answer_cell(
            self.asked or self.question, self.answer, self.citations, about
        )

    def to_json(self, indent: int | None = None) -> str:
        """Return the trace as one JSON document (see `json_document`)."""
        return json_document(self.to_dict(), indent)


def json_document(data: JSON, indent: int | None = None) -> str:
    """Return `data` as one JSON document, whatever values the run produced.

    Values that JSON cannot hold are replaced: a lone surrogate by U+FFFD, NaN by 0, an infinity by the largest number.
    In metadata, NaN and infinity become null.
    """
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError:
        text = json.dumps(_finite(data), ensure_ascii=False, indent=indent)
    try:
        text.encode()  # ten times as fast as searching for lone surrogates
    except UnicodeEncodeError:
        text = _LONE_SURROGATE.sub("\ufffd", text)
    return text


def trace_schema() -> JSON:
    """Return the JSON Schema of a trace."""
    return {**_shape().json_schema(), "title": "ras-agent trace"}


@cache
def _shape() -> TypeAdapter[Any]:
    """Return the validator of a trace's JSON, which turns the parts of the JSON into records."""
    source = json_shape("_Source", Source)
    readings = NotRequired[list[ReadingJSON]]
    fact = json_shape("_Fact", Triple, id=str, sources=_list(source), readings=readings)
    graph = json_shape("_Graph", GraphJSON, facts=_list(fact))
    changed = {
        **field_types(Plan),
        **field_types(Triple),
        "sources": _list(source),
        "answer": str,
    }
    before = json_shape(
        "_Before", Plan, **{name: _optional(kind) for name, kind in changed.items()}
    )
    before.__doc__ = "Holds the plan, the fact or the answer that a person changed."
    plan = _made(json_shape("_Plan", Planned), partial(read_record, Planned))
    return TypeAdapter(
        json_shape(
            "_Trace",
            Trace,
            steps=_list(json_shape("_Step", Step, hits=_list(json_shape("_Hit", Hit)))),
            plans=_list(plan),
            graph=_made(graph, QuestionGraph.from_dict),
            usage=json_shape("_Usage", Usage),
            reviews=_list(json_shape("_Review", Reviewed, before=before)),
        )
    )


def _list(item: Any) -> Any:
    return GenericAlias(list, (item,))


def _optional(kind: Any) -> Any:
    return NotRequired[kind]


def _made(shape: Any, read: Callable[[Any], Any]) -> Any:
    """Return a type whose validated values are turned into records by `read`. Its ValueErrors are reported with
    their place.
    """
    return Annotated[shape, AfterValidator(read)]


def _checked(data: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping) or data.get("schema") != Trace.schema:
        raise TraceError(
            f'{where}: not a trace of ras-agent: it has no "schema": "ras-agent/trace"; '
            "ras-agent ask QUESTION --save FILE writes one"
        )
    if data.get("version") != Trace.version:
        raise TraceError(
            f"{where}: trace version {data.get('version')!r}, but this ras-agent reads version {Trace.version}: "
            "read it with the ras-agent that wrote it, or run the question again"
        )
    try:
        wire: Mapping[str, Any] = _shape().validate_python(data)
    except ValidationError as error:
        first, *others = error.errors()
        place = ".".join(map(str, first["loc"]))
        context = first.get("ctx", {})
        wrong = context.get("error") or f"{first['msg']}, got {first['input']!r:.80}"
        more = f" (and {len(others)} more)" if others else ""
        raise TraceError(f"{where}: {place}: {wrong}{more}") from error
    for place, passage_id in _passages_named(wire):
        if passage_id not in wire["passages"]:
            raise TraceError(
                f"{where}: {place}: passage {passage_id!r} is not under passages"
            )
    return wire


def _passages_named(wire: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the passage id of each citation and each hit, with its place in the trace's JSON."""
    for number, citation in enumerate(wire["citations"]):
        yield f"citations.{number}", citation.passage_id
    for number, step in enumerate(wire["steps"]):
        for hit in step["hits"]:
            yield f"steps.{number}.hits", hit["passage_id"]


def _finite(value: Any, in_metadata: bool = False) -> Any:
    """Return `value` with every number finite; in metadata, a number that is not finite becomes None."""
    if isinstance(value, float) and not math.isfinite(value):
        if in_metadata:
            return None
        if math.isnan(value):
            return 0.0
        return math.copysign(sys.float_info.max, value)
    if isinstance(value, Mapping):
        return {
            key: _finite(item, in_metadata or key == "metadata")
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_finite(item, in_metadata) for item in value]
    return value
