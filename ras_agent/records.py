"""The nouns of the agent: small frozen records with a plain-JSON form.

A record's JSON has its fields, so that each is defined once: `to_dict` and `from_dict` read them off, and `json_shape`
makes of them what a schema checks (ras_agent.trace). Where a record's JSON differs, it says so itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import Any, ClassVar, Literal, NamedTuple, Self, Union, cast, get_args, get_origin, get_type_hints

from typing_extensions import TypedDict  # typing's own will do for pydantic from Python 3.12

from ras_agent.marks import SUBQ, fact_text
from ras_agent.text.canonical import canonical_key
from ras_agent.text.short_cache import cached_if_short
from ras_agent.text.titles import file_title

JSON = dict[str, Any]

Action = Literal["subq", "sufficient", "no_retrieval"]
StopReason = Literal[
    "sufficient",
    "no_retrieval",
    "max_hops",
    "max_llm_calls",
    "max_tokens",
    "max_seconds",
    "repeated_subquery",
    "no_new_facts",
    "static",
    "single_shot",
    "planner_failed",
    "model_refused",
    "recursion_limit",
]


AnswerStyle = Literal["short", "choice", "boolean", "long", "reader"]
"""The form of an answer; "reader" is IRCoT's: reasons first, then the answer"""

EvidenceLayout = Literal["evidence", "chain", "chain-of-text", "searches"]
"""What planner and answerer are shown as text: all passages and facts; each sub-query with its facts; each sub-query
with its passages; each sub-query alone, for a model that reads the facts through graph tokens"""


# ---- records as JSON


class Record:
    """Base of records whose JSON has their fields, in their order."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def to_dict(self) -> JSON:
        """Return JSON values only, which is what graph state and traces hold."""
        form = _json_form(cast(Any, type(self)))
        data = dict(zip(form.names, form.values(self), strict=True))
        for name, write in form.writers:
            data[name] = write(data[name])
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the record that `to_dict` wrote; a missing field has its default. Raises TypeError for other keys."""
        read = dict(data)
        for name, load in _json_form(cast(Any, cls)).loaders:
            if name in read:
                read[name] = load(read[name])
        return cls(**read)


def to_json_value(value: Any) -> Any:
    """Return a field's value as JSON has it: records and mappings as objects, tuples as lists."""
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: to_json_value(item) for name, item in value.items()}
    return [to_json_value(item) for item in value] if isinstance(value, tuple | list) else value


def json_shape(name: str, record: type, *, without: Collection[str] = (), **more: Any) -> Any:
    """Return a TypedDict of a record's fields, for a schema. more: fields that its JSON has besides, or instead."""
    kept = {field: kind for field, kind in field_types(record).items() if field not in without}
    return TypedDict(name, {**kept, **more})  # type: ignore[operator]


def field_types(record: Any) -> dict[str, Any]:
    """Return the types of a dataclass's fields, by name."""
    kinds = get_type_hints(record)
    return {field.name: kinds[field.name] for field in fields(record)}


class _JSONForm(NamedTuple):
    """How a record becomes JSON: its fields, what gets their values, and what to do with those that are no JSON."""

    names: tuple[str, ...]
    values: Callable[[Any], tuple[Any, ...]]
    writers: tuple[tuple[str, Callable[[Any], Any]], ...]
    loaders: tuple[tuple[str, Callable[[Any], Any]], ...]


@cache
def _json_form(record: Any) -> _JSONForm:
    kinds = field_types(record)
    getters = tuple(map(attrgetter, kinds))
    values = attrgetter(*kinds) if len(kinds) > 1 else lambda one: tuple(get(one) for get in getters)
    loaders = {name: load for name, kind in kinds.items() if (load := _loader(kind))}
    writers = {name: _writer(kind) for name, kind in kinds.items() if not _is_scalar(kind)}
    return _JSONForm(tuple(kinds), values, tuple(writers.items()), tuple(loaders.items()))


def _is_scalar(kind: Any) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return all(map(_is_scalar, get_args(kind)))
    return get_origin(kind) is Literal or kind in (str, int, float, bool, type(None))


def _writer(kind: Any) -> Callable[[Any], Any]:
    """Return what makes JSON of a field's value."""
    item = get_args(kind)[0] if get_origin(kind) is tuple else None
    if isinstance(item, type) and issubclass(item, Record):
        return lambda records: [record.to_dict() for record in records]
    return list if item is str else to_json_value


def _loader(kind: Any) -> Callable[[Any], Any] | None:
    """Return what makes a field's value of its JSON; None where it is the value."""
    if get_origin(kind) is not tuple:
        return None
    item = get_args(kind)[0]
    if isinstance(item, type) and issubclass(item, Record):
        return lambda values: tuple(map(item.from_dict, values))
    return tuple


# ---- what is searched and found


@dataclass(frozen=True, slots=True)
class Passage(Record):
    """Holds a piece of a document that a retriever returns whole. `id` is unique in its index."""

    id: str
    text: str
    title: str = ""
    document_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """Return the file it was read from, as its index calls it ("docs/a.pdf"); "" if that is not known."""
        named = self.metadata.get("file", "")
        return named if isinstance(named, str) else ""

    @property
    def page(self) -> int | None:
        """Return the page or slide of its file, from 1; None for a file without pages."""
        number = self.metadata.get("page")
        return number if isinstance(number, int) and not isinstance(number, bool) else None

    @property
    def own_title(self) -> str:
        """Return the title; "" where it is but the name of the file, which need not name what the text is about."""
        return "" if self.file and self.title == file_title(self.file) else self.title

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the passage of `data`; a missing title, document_id or metadata is empty."""
        return cls(
            str(data["id"]),
            data["text"],
            data.get("title", ""),
            data.get("document_id", ""),
            dict(data.get("metadata", {})),
        )


@dataclass(frozen=True, slots=True)
class Hit(Record):
    """Pairs a retrieved passage with its score: higher is better, and only scores of one query compare.

    `why` holds explanations from retrievers that can give them, one per line: for example, the chain of facts that
    leads from the query to the passage.
    """

    passage: Passage
    score: float
    why: tuple[str, ...] = ()

    def to_dict(self) -> JSON:
        """Return the JSON form, which names the passage by its id instead of repeating it."""
        data: JSON = {"passage_id": self.passage.id, "title": self.passage.title, "score": self.score}
        return {**data, "why": list(self.why)} if self.why else data


@dataclass(frozen=True, slots=True)
class Span:
    """Locates a possible answer: characters `start` to `end` of a text.

    `score` is the logit of the span, `no_answer` the logit of "this text holds no answer". Both compare across the
    texts of one question only.
    """

    start: int
    end: int
    score: float
    no_answer: float = 0.0

    @property
    def margin(self) -> float:
        """Return how much likelier the span is than no answer, in logits. Above 0, the text is taken to answer."""
        return self.score - self.no_answer


# ---- facts, and where they were read


@dataclass(frozen=True, slots=True, order=True)
class Source(Record):
    """Says where a triple was read: characters `start` to `end` of a passage, at which hop, by which extractor."""

    passage_id: str
    start: int = 0
    end: int = 0
    hop: int = 0
    subquery: str = ""
    extractor: str = ""


# a graph asks for the same keys and ids at every hop
@cached_if_short(65536)
def _fact_key(subject: str, predicate: str, object_: str) -> tuple[str, str, str]:
    return canonical_key(subject), canonical_key(predicate), canonical_key(object_)


@cached_if_short(65536)
def _fact_id(subject: str, predicate: str, object_: str) -> str:
    return fact_id(_fact_key(subject, predicate, object_))


def fact_id(key: tuple[str, str, str]) -> str:
    """Return the id of the fact with this key; it is the same in every run."""
    return "t" + hashlib.blake2b("\x1f".join(key).encode(errors="surrogatepass"), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class Triple(Record):
    """States a fact in the words of its text. Triples with the same `key` state the same fact."""

    subject: str
    predicate: str
    object: str
    sources: tuple[Source, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the canonical keys of subject, predicate and object."""
        return _fact_key(self.subject, self.predicate, self.object)

    @property
    def id(self) -> str:
        """Return a hash of the key; it is the same in every run."""
        return _fact_id(self.subject, self.predicate, self.object)

    def __str__(self) -> str:
        return fact_text(self.subject, self.predicate, self.object)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the fact of `data`, which may have other keys: a graph's facts have their ids and readings."""
        sources = tuple(map(Source.from_dict, data.get("sources", ())))
        return cls(data["subject"], data["predicate"], data["object"], sources)


@dataclass(frozen=True, slots=True)
class Failure(Record):
    """Reports something that went wrong without ending the run. `detail` is an excerpt of what could not be used."""

    role: str
    message: str
    hop: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Extraction:
    """Holds the triples an extractor read in passages, and a failure for each passage or reply it could not use."""

    triples: tuple[Triple, ...] = ()
    failures: tuple[Failure, ...] = ()


# ---- the course of a run


@dataclass(frozen=True, slots=True)
class Plan(Record):
    """Decides what happens next: ask `subquery`, stop because the graph suffices, or answer without retrieval.

    Raises ValueError for an unknown action, and for "subq" with a blank sub-query.
    """

    action: Action
    subquery: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        if self.action not in get_args(Action):
            raise ValueError(f"unknown plan action {self.action!r}; known: {', '.join(get_args(Action))}")
        if self.action == "subq" and not self.subquery.strip():
            raise ValueError(f"a {SUBQ} plan needs a sub-query")


@dataclass(frozen=True, slots=True)
class Step(Record):
    """Records one hop: its sub-query, its hits and its facts.

    `triple_ids` are all facts read at this hop, `new_triple_ids` those that the graph did not hold before. `thought` is
    IRCoT's sentence. `seconds` is the time spent inside the hop's nodes.
    """

    hop: int
    subquery: str
    hits: tuple[Hit, ...] = ()
    triple_ids: tuple[str, ...] = ()
    new_triple_ids: tuple[str, ...] = ()
    thought: str = ""
    seconds: float = 0.0

    @classmethod
    def of_dict(cls, data: Mapping[str, Any], passages: Mapping[str, Passage]) -> Self:
        """Return the step of `data`. `passages` maps ids to passages; a KeyError names one that is missing.

        Its hits name them by id: a trace holds each passage once, under `passages`.
        """
        return cls(
            data["hop"],
            data["subquery"],
            tuple(Hit(passages[hit["passage_id"]], hit["score"], tuple(hit.get("why", ()))) for hit in data["hits"]),
            tuple(data["triple_ids"]),
            tuple(data["new_triple_ids"]),
            data.get("thought", ""),
            data.get("seconds", 0.0),
        )


@dataclass(frozen=True, slots=True)
class Citation(Record):
    """Points an answer to its evidence: characters `start` to `end` of a passage, and the facts read there.

    file, page: those of the passage, if it has any; the run fills them in.
    """

    number: int
    passage_id: str
    title: str = ""
    start: int = 0
    end: int = 0
    quote: str = ""
    triple_ids: tuple[str, ...] = ()
    file: str = ""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Gives an answer with its evidence.

    abstained: the evidence does not hold an answer, so `text` is none. failed: why no answer could be made at all (the
    answerer crashed, a limit refused its call, its reply was unreadable); such an answer has abstained too.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    abstained: bool = False
    confidence: float | None = None
    failures: tuple[Failure, ...] = ()
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Exchange(Record):
    """Holds an earlier turn of a conversation: a question in words that need no other turn, and its answer, if any."""

    question: str
    answer: str = ""


# ---- model calls


@dataclass(frozen=True, slots=True)
class Call(Record):
    """Records one model call.

    Tokens are those that the endpoint reported. estimated: it reported none, and they are an estimate from the texts.
    replayed: the reply came from the cache.
    """

    role: str
    hop: int
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    replayed: bool = False
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Usage(Record):
    """Sums up the model calls of a run."""

    calls: tuple[Call, ...] = ()

    @property
    def input_tokens(self) -> int:
        return sum(call.input_tokens for call in self.calls)

    @property
    def output_tokens(self) -> int:
        return sum(call.output_tokens for call in self.calls)

    @property
    def cached_tokens(self) -> int:
        return sum(call.cached_tokens for call in self.calls)

    def to_dict(self) -> JSON:
        """Return the sums and, under `calls`, each call."""
        return {
            "llm_calls": len(self.calls),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "calls": [call.to_dict() for call in self.calls],
        }
