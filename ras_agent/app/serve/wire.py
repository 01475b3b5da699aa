"""Defines the shapes of requests and answers, from which the OpenAPI document is made."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

LONGEST_QUESTION = 100_000
LONGEST_QUERY = 10_000
LONGEST_NAME = 1_000
"""The maximum numbers of characters of a question, a query and a name, over REST and as arguments of tools.
Longer texts should be uploaded as documents."""

MOST_MESSAGES = 1_000
"""The maximum number of messages of a conversation in one request, and of parts of one message."""

MOST_PARTS = 10_000
"""The maximum number of parts of all messages of a conversation together."""

MOST_QUERIES = 4_096
"""The maximum number of queries of one batch."""

MOST_STOPS = 16
"""The maximum number of stop strings. OpenAI allows four; each is searched for in every piece of a stream."""

_Part = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
GraphFact = tuple[_Part, _Part, _Part]
"""Subject, predicate and object."""
Thread = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_.~-]{1,128}$",
        description="A conversation, with all its turns.",
    ),
]
MOST_KEYS = 100
LONGEST_FILTER = 100_000
"""The maximum number of characters of a filter in one request, as JSON."""


def _bounded(filter: dict[str, Any]) -> dict[str, Any]:
    if len(filter) > MOST_KEYS or _is_longer(filter, LONGEST_FILTER):
        raise ValueError(
            f"a filter may have at most {MOST_KEYS} keys, and {LONGEST_FILTER:,} characters as JSON: shorten it"
        )
    return filter


def _is_longer(value: Any, most: int) -> bool:
    """Tell whether a value has more than `most` characters as JSON. It stops writing soon after that many."""
    length = 0
    for piece in json.JSONEncoder().iterencode(value):
        length += len(piece)
        if length > most:
            return True
    return False


def _with_few_parts(messages: Any) -> Any:
    """Return a request's messages. Raises ValueError for too many parts, which is checked before the parts are
    validated.
    """
    parts = 0
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        parts += len(content) if isinstance(content, list) else 0
    if parts > MOST_PARTS:
        raise ValueError(
            f"the messages have {parts:,} parts, and at most {MOST_PARTS:,} are allowed: leave earlier messages out"
        )
    return messages


Only = Annotated[
    Annotated[dict[str, Any], AfterValidator(_bounded)] | None,
    Field(
        description='Only passages with this metadata, such as {"team": "x"} or {"date": {"before": "2024-01-01"}}.'
    ),
]


AsOf = Annotated[
    str | None,
    Field(
        max_length=10,
        description="Answer for this date, such as 2016-05-01, without what was said later or held at other times.",
    ),
]


def _default_for_none(default: bool) -> BeforeValidator:
    """Return a validator that replaces null by the default, because OpenAI's schema allows null for an option."""
    return BeforeValidator(lambda value: default if value is None else value)


def _stops(value: Any) -> Any:
    """Return the stop strings, without blank ones, which some pages send."""
    given = [value] if isinstance(value, str) else value or ()
    if not isinstance(given, list | tuple):
        return given
    return tuple(stop for stop in given if stop)


OffUnlessTold = Annotated[bool, _default_for_none(False)]
OnUnlessTold = Annotated[bool, _default_for_none(True)]
Tokens = Annotated[
    int | None, AfterValidator(lambda tokens: tokens if tokens and tokens > 0 else None)
]
"""A limit in tokens. Zero and negative numbers mean no limit, as in llama.cpp and LM Studio."""
Stops = Annotated[
    tuple[str, ...],
    Field(max_length=MOST_STOPS, fail_fast=True),
    BeforeValidator(_stops),
]
_TEXT_PARTS = ("text", "input_text", "output_text")
_ROLES = {"human": "user", "ai": "assistant"}


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _has_few_keys(cls, request: Any) -> Any:
        # otherwise each unknown key would be a separate error
        if isinstance(request, dict) and len(request) > MOST_KEYS:
            raise ValueError(
                f"the request has {len(request):,} keys, and at most {MOST_KEYS} are allowed: leave some out"
            )
        return request


class Message(BaseModel):
    """Holds a turn of a conversation, in OpenAI's form."""

    model_config = ConfigDict(extra="ignore")

    role: str = "user"
    content: (
        str
        | Annotated[
            list[str | dict[str, Any]], Field(max_length=MOST_MESSAGES, fail_fast=True)
        ]
        | None
    ) = None

    @field_validator("role")
    @classmethod
    def _usual_name(cls, role: str) -> str:
        name = role.strip().lower()
        return _ROLES.get(name, name)

    @property
    def text(self) -> str:
        """Return the text of the turn, without parts that are not text."""
        texts = [
            str(part.get("text", ""))
            for part in self._parts
            if part.get("type") in _TEXT_PARTS
        ]
        return "\n".join(texts)

    @property
    def other_parts(self) -> set[str]:
        """Return the kinds of the parts that are not text, such as image_url."""
        return {str(part.get("type")) for part in self._parts} - {
            *_TEXT_PARTS,
            "refusal",
        }

    @property
    def _parts(self) -> list[dict[str, Any]]:
        parts = self.content if isinstance(self.content, list) else [self.content or ""]
        return [
            {"type": "text", "text": part} if isinstance(part, str) else part
            for part in parts
        ]


# fail_fast: only the first wrong message is reported, because each would be a separate error
Messages = Annotated[
    list[Message],
    Field(max_length=MOST_MESSAGES, fail_fast=True),
    BeforeValidator(_with_few_parts),
]


class RequestLimits(_Request):
    """Limits of one run. Each can only lower the server's own."""

    max_hops: PositiveInt | None = None
    k: PositiveInt | None = None
    max_parallel: PositiveInt | None = None
    max_facts: PositiveInt | None = None
    max_llm_calls: PositiveInt | None = None
    max_tokens: PositiveInt | None = None
    max_seconds: PositiveFloat | None = None


class AskRequest(_Request):
    """Question, or a conversation that ends in one."""

    question: str | None = None
    messages: Messages | None = None
    thread: Thread | None = None
    filter: Only = None
    as_of: AsOf = None
    limits: RequestLimits | None = None
    review: list[Literal["plan", "facts", "answer"]] | None = Field(
        None,
        max_length=3,
        description="Where the run waits for a person; if not given, where the server's settings say.",
    )
    stream: bool = Field(
        False,
        description="Send events as they happen (SSE) instead of one JSON document.",
    )

    @model_validator(mode="after")
    def _asks_once(self) -> AskRequest:
        if (self.question is None) == (self.messages is None):
            raise ValueError("give either question or messages")
        return self


class ResumeRequest(_Request):
    """Request to continue a thread that waits for a decision, or that was cancelled."""

    decision: Any = Field(
        None, description="What a person decided; without it a cancelled run goes on."
    )
    limits: RequestLimits | None = None
    stream: bool = False

    @field_validator("decision")
    @classmethod
    def _decides(cls, decision: Any) -> Any:
        # LangGraph takes {} for no decision, so the run would continue to wait
        if decision == {}:
            raise ValueError(
                'an empty object decides nothing: give an action, such as {"action": "approve"}'
            )
        return decision


class SearchBatch(BaseModel):
    """Queries of a trainer, in the form of Search-R1's retrieval server. Blank queries find nothing, long ones are cut.

    `topk` is the number of hits for each query, 3 if null. `return_scores` tells whether each hit is {"document": ...,
    "score": ...} instead of only the document.
    """

    queries: list[str] = Field(max_length=MOST_QUERIES, fail_fast=True)
    topk: int | None = Field(3, ge=1, le=100)
    return_scores: bool = False


class ThreadNote(_Request):
    """Note of a person on a thread: a name for it, or whether its last answer is right.

    `correct` is the right answer, if the last answer is wrong and the person knows the right one.
    """

    name: str | None = Field(None, max_length=LONGEST_NAME)
    right: bool | None = None
    correct: str = Field("", max_length=LONGEST_QUERY)


class GraphCorrection(_Request):
    """Correction of a fact of the stored knowledge graph: the new wording, or nothing to remove it."""

    fact: GraphFact
    correction: GraphFact | None = None


class ErrorDetail(BaseModel):
    """Reason of an error, in OpenAI's form."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    """Body of every answer that reports an error."""

    error: ErrorDetail


class Health(BaseModel):
    """State of a server that answers. `runs` is the number of questions that are being answered."""

    status: str = "ok"
    version: str
    runs: int


class About(BaseModel):
    """Description of the server that a page shows before the first question.

    `collection` is the index's name. `models` has the model of each role; it is empty in offline mode. `graph` tells
    whether a knowledge graph is stored, `changes` whether the caller may upload and remove documents, `corrects`
    whether the caller may correct the graph. `examples` are questions that facts of the collection answer.
    """

    version: str
    collection: str
    models: dict[str, str]
    graph: bool
    changes: bool
    corrects: bool
    examples: list[str]


class Names(BaseModel):
    """Entities of the knowledge graph by name."""

    entities: list[str]


class DocumentNames(BaseModel):
    """Documents by id, in the order of the index. `total` is the number of all matching documents."""

    documents: list[str]
    files: list[str]
    """the file of each document, "" if it is unknown"""
    total: int


class Skip(BaseModel):
    """Part of an upload that could not be read, and why."""

    place: str
    reason: str


class Uploaded(BaseModel):
    """Report of an upload.

    `passages_total` is the number of passages that the index now holds; null for a token that sees a part of it.
    `graph` is "stale" if the index has a knowledge graph, which does not contain the new passages before the next
    `ras-agent kg build`.
    """

    files: list[str]
    documents_written: int
    documents_unchanged: int
    passages_written: int
    passages_total: int | None
    graph: Literal["stale"] | None
    skipped: list[Skip]


class Removed(BaseModel):
    """Count of the documents that were removed."""

    documents_removed: int
