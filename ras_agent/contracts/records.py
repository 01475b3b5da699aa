"""Defines the records of the agent: small frozen dataclasses that can be written as plain JSON (see shape.py)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, Self, get_args

from ras_agent.contracts.marks import SUBQ, fact_text
from ras_agent.contracts.shape import Record
from ras_agent.text.canonical import canonical_key
from ras_agent.text.short_cache import LONGEST_CACHED
from ras_agent.text.titles import bare_title, is_of_file

JSON = dict[str, Any]

Action = Literal["subq", "sufficient", "no_retrieval"]
_ACTIONS: tuple[Action, ...] = get_args(Action)
_PERSON = "person"
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


def without_none(values: Mapping[str, Any] | None) -> JSON:
    """Return the values that are not None, by name."""
    given = values or {}
    return {name: value for name, value in given.items() if value is not None}


AnswerStyle = Literal["short", "choice", "boolean", "long", "reader", "citing"]
"""The form of an answer. "reader" is IRCoT's: the reasons first, then the answer. "citing" is a short answer,
followed by the nodes and edges that support it."""

OnConflict = Literal["both", "newest", "abstain", "ignore"]
"""What an answer states when documents disagree. "both": both claims. "newest": the newest claim, and which
documents contradict it. "abstain": no claim. "ignore": the answer stays as the answerer wrote it."""

EvidenceLayout = Literal["evidence", "chain", "chain-of-text", "searches", "dialogue"]
"""How the evidence is written into the prompts of planner and answerer.

"evidence": all passages and facts. "chain": each sub-query with its facts. "chain-of-text": each sub-query with its
passages. "searches": only the sub-queries, for a model that reads the facts through graph tokens. "dialogue": the
planner's conversation so far, in which each sub-query is a turn and its findings are the next turn; the answerer is
shown "evidence".
"""


# ---- passages and hits

FILE_KEYS = ("file", "source", "file_path", "filename", "url")
"""Keys of a passage's metadata that may name its file, in order of preference: our key first, then keys that other
document loaders write."""


_LONGEST_DATE = 40


@dataclass(frozen=True)
class Passage(Record):
    """Holds a piece of a document, the unit that retrievers return. `id` is unique in its index."""

    id: str
    text: str
    title: str = ""
    document_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """Return the file or URL that the passage was read from, such as "docs/a.pdf"; "" if its metadata names
        neither.

        The index or the document loader stores it in the metadata, under one of the keys FILE_KEYS.
        """
        if not self.metadata:
            return ""
        names = (self.metadata.get(key) for key in FILE_KEYS)
        return next((name for name in names if isinstance(name, str) and name), "")

    @property
    def page(self) -> int | None:
        """Return the number of the page or slide in the passage's file, from 1; None for a file without pages."""
        number = self.metadata.get("page", self.metadata.get("page_number"))
        return (
            number if isinstance(number, int) and not isinstance(number, bool) else None
        )

    @property
    def headings(self) -> tuple[str, ...]:
        """Return the headings above the passage in its document, the highest first, without the document's title."""
        names = self.metadata.get("headings")
        if not isinstance(names, list | tuple):
            return ()
        return tuple(name for name in names if isinstance(name, str))

    @property
    def heading(self) -> str:
        """Return the title and the headings above the passage, joined by " > ". Prompts show it, and searches
        use it.
        """
        named = [self.title, *self.headings]
        return " > ".join(filter(None, named))

    @property
    def date(self) -> str:
        """Return the date of the passage's document as it is written in the metadata, at most 40 characters; "" without
        a date."""
        date = self.metadata.get("date")
        if not isinstance(date, str):
            return ""
        return date[:_LONGEST_DATE]

    @property
    def own_title(self) -> str:
        """Return the title, or "" if the title is only the name of the file and so may not say what the text is about."""
        if self.file and is_of_file(self.title, self.file):
            return ""
        return self.title

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the passage that `data` describes; a missing title, document_id or metadata is empty."""
        return cls(
            str(data["id"]),
            data["text"],
            data.get("title", ""),
            data.get("document_id", ""),
            dict(data.get("metadata", {})),
        )


@dataclass(frozen=True)
class Hit(Record):
    """Pairs a retrieved passage with its score; higher is better. Only scores of the same query can be
    compared.

    The JSON names the passage by its id instead of repeating it.
    """

    json_keys = ("passage_id", "title", "score", "why?")

    passage: Passage
    score: float
    why: tuple[str, ...] = ()
    """Explanations of the hit, one per line, from retrievers that can give them: for example, the chain of facts that
    leads from the query to the passage."""

    @property
    def passage_id(self) -> str:
        """Return the id of the passage."""
        return self.passage.id

    @property
    def title(self) -> str:
        """Return the title of the passage."""
        return self.passage.title

    @classmethod
    def of_dict(cls, data: Mapping[str, Any], passages: Mapping[str, Passage]) -> Self:
        """Return the hit whose JSON is `data`. Its passage is taken from `passages`, by id.

        Raises:
            KeyError: if the passage is not in `passages`.
        """
        return cls(
            passages[data["passage_id"]], data["score"], tuple(data.get("why", ()))
        )


@dataclass(frozen=True, slots=True)
class Span:
    """Locates a possible answer to a question: characters `start` to `end` of a text.

    Scores can be compared only among the texts of one question.
    """

    start: int
    end: int
    score: float
    """the logit of the span"""
    no_answer: float = 0.0
    """the logit of "this text contains no answer\""""

    @property
    def margin(self) -> float:
        """Return `score` minus `no_answer`, in logits. Above 0, the text probably contains an answer."""
        return self.score - self.no_answer


class Verdict(NamedTuple):
    """Holds the probabilities that a text affirms a yes-or-no question, denies it, or does neither. They sum to 1."""

    true: float
    false: float
    not_said: float


# ---- facts, and where they were read


class Attributes(dict[str, Any]):
    """Holds further details of a fact or a source: an immutable dictionary of JSON values.

    Sorts and hashes by `text`, the dictionary as JSON ("" if it is empty). Raises ValueError for a value that JSON
    cannot hold.
    """

    __slots__ = ("text",)

    def __init__(self, items: Any = ()) -> None:
        super().__init__(items)
        self.text = ""
        if self:
            self.text = _attributes_text(self)

    @classmethod
    def of_others(cls, items: Mapping[str, Any]) -> Self:
        """Return attributes made from another program's mapping, such as one in a file of a graph.

        A value that JSON cannot hold is replaced by its text.
        """
        written = json.dumps(items, default=str)
        return cls(json.loads(written, parse_constant=str))

    def __hash__(self) -> int:  # type: ignore[override]  # a plain dictionary has none
        return hash(self.text)

    def __lt__(self, other: Attributes) -> bool:
        return self.text < other.text

    def __reduce__(self) -> Any:
        return (type(self), (dict(self),))

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "attributes cannot be changed: make a new record with dataclasses.replace"
        )

    __setitem__ = __delitem__ = __ior__ = pop = popitem = clear = _refuse
    update: Any = _refuse
    setdefault: Any = _refuse


def _attributes_text(items: Mapping[str, Any]) -> str:
    """Return attributes as JSON with sorted keys. Raises ValueError for a key that is not a text or a value that JSON
    cannot hold."""
    for key in items:
        if not isinstance(key, str):
            raise ValueError(f"a key of attributes must be a text, got {key!r:.80}")
    try:
        return json.dumps(items, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"attributes must be JSON, with dates as texts such as '2024-01-31' ({error}), got {items!r:.200}"
        ) from error


NO_ATTRIBUTES = Attributes()


def attributes_text(record: Source | Triple) -> str:
    """Return the record's attributes as JSON, or "" if it has none. Equal attributes give the same text."""
    text: str = getattr(record.attributes, "text", "")
    return text


def all_attributes(record: Source | Triple) -> Mapping[str, Any]:
    """Return the record's `attributes`, together with the fields that a subclass of Source or Triple adds."""
    kind = Triple if isinstance(record, Triple) else Source
    if type(record) is kind:
        return record.attributes
    plain = {item.name for item in fields(kind)}
    attributes = dict(record.attributes)
    for item in fields(record):
        if item.name not in plain:
            attributes[item.name] = getattr(record, item.name)
    return attributes


def _freeze_attributes(record: Source | Triple) -> None:
    if not isinstance(record.attributes, Attributes):
        frozen = NO_ATTRIBUTES
        if record.attributes:
            frozen = Attributes(record.attributes)
        object.__setattr__(record, "attributes", frozen)


def person(name: str = "") -> str:
    """Return the name by which sources and decisions refer to a person: "person", or "person:Ada" for the name "Ada"."""
    if not name:
        return _PERSON
    return f"{_PERSON}:{name}"


def is_person(name: str) -> bool:
    """Tell whether `name`, such as the extractor of a Source, stands for a person (see `person`)."""
    return name == _PERSON or name.startswith(f"{_PERSON}:")


@dataclass(frozen=True, order=True)
class Source(Record):
    """Says where a triple was read: characters `start` to `end` of a passage, at which hop, by which extractor."""

    json_keys = (
        "passage_id",
        "start",
        "end",
        "hop",
        "subquery",
        "extractor",
        "unchecked?",
        "attributes?",
    )

    passage_id: str
    start: int = 0
    """the first character of the sentence or quote in the passage's text"""
    end: int = 0
    """the character after the last one"""
    hop: int = 0
    subquery: str = ""
    extractor: str = ""
    unchecked: bool = False
    """whether it could not be checked that the passage states the fact, as in a script without spaces between
    words"""
    attributes: Mapping[str, Any] = NO_ATTRIBUTES
    """further details that the passage gives about the fact, under keys that its extractor chooses"""

    def __post_init__(self) -> None:
        _freeze_attributes(self)

    def overlaps(self, other: Source) -> bool:
        """Return whether both sources share a character of the same passage."""
        return (
            self.passage_id == other.passage_id
            and self.start < other.end
            and other.start < self.end
        )


_Words = tuple[str, str, str]


class _Names(dict[_Words, tuple[_Words, str]]):
    """Caches the keys and ids of facts, by the words of the fact.

    A graph needs those of the same facts at every hop. Facts longer than LONGEST_CACHED characters are not
    cached.
    """

    _MOST = 65536

    def __missing__(self, words: _Words) -> tuple[_Words, str]:
        subject, predicate, object_ = words
        key = canonical_key(subject), canonical_key(predicate), canonical_key(object_)
        names = key, fact_id(key)
        if sum(map(len, words)) <= LONGEST_CACHED:
            if len(self) >= self._MOST:
                self.clear()
            self[words] = names
        return names


_names = _Names()


def fact_id(key: tuple[str, str, str]) -> str:
    """Return the id of the fact with this canonical key: a hash, which is the same in every run."""
    return (
        "t"
        + hashlib.blake2b(
            "\x1f".join(key).encode(errors="surrogatepass"), digest_size=6
        ).hexdigest()
    )


@dataclass(frozen=True)
class Triple(Record):
    """States a fact in the words of its text. Two triples with the same `key` state the same fact."""

    json_keys = ("subject", "predicate", "object", "sources", "attributes?")

    subject: str
    predicate: str
    object: str
    sources: tuple[Source, ...] = ()
    attributes: Mapping[str, Any] = NO_ATTRIBUTES
    """Further details of the fact, under keys that its extractor chooses. Some keys have a meaning in ras_agent:
    `subject_type` and `object_type` are the kinds of subject and object; `said` holds the words that state the fact;
    `valid_from` and `valid_until` are dates such as "2024-01-31"; `outside` is true if the fact fits no relation of the
    schema."""

    def __post_init__(self) -> None:
        _freeze_attributes(self)

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the canonical keys of subject, predicate and object (see ras_agent.text.canonical)."""
        words = (self.subject, self.predicate, self.object)
        key, _ = _names[words]
        return key

    @property
    def id(self) -> str:
        """Return a hash of `key`, which is the same in every run."""
        words = (self.subject, self.predicate, self.object)
        _, name = _names[words]
        return name

    @property
    def passage_ids(self) -> set[str]:
        """Return the ids of the passages that state the fact."""
        return {source.passage_id for source in self.sources}

    def was_read_in(self, place: Source) -> bool:
        """Return whether one of the fact's sources overlaps `place`."""
        return any(source.overlaps(place) for source in self.sources)

    def __str__(self) -> str:
        return fact_text(self.subject, self.predicate, self.object)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the fact that `data` describes. Keys that only a graph's facts have, such as `id` and
        `readings`, are ignored.
        """
        sources = tuple(map(Source.from_dict, data.get("sources", ())))
        return cls(
            subject=data["subject"],
            predicate=data["predicate"],
            object=data["object"],
            sources=sources,
            attributes=data.get("attributes", NO_ATTRIBUTES),
        )


@dataclass(frozen=True)
class Failure(Record):
    """Reports a problem that did not end the run."""

    role: str
    """the role or node that failed, such as "extractor\""""
    message: str
    """the problem and its remedy"""
    hop: int = 0
    """the hop at which it failed; 0 outside of hops"""
    detail: str = ""
    """an excerpt of the reply or text that could not be used"""


@dataclass(frozen=True)
class RefusedFacts(Failure):
    """Reports facts that were extracted but not kept. Reading their passage again would give the same facts."""


@dataclass(frozen=True)
class Advice(Failure):
    """Reports that the run took a slower or weaker way that a setting could have avoided. No facts or passages
    are lost by it.
    """


@dataclass(frozen=True, slots=True)
class Extraction:
    """Holds the triples that an extractor read, and a Failure for each passage or reply that it could not use."""

    triples: tuple[Triple, ...] = ()
    failures: tuple[Failure, ...] = ()
    unread: tuple[str, ...] = ()
    """the ids of passages without triples because no reply about them could be parsed"""

    @property
    def failed(self) -> bool:
        """Return whether a passage or reply could not be used, so that a second extraction may find more facts."""
        return self.unread != () or any_failed(self.failures)

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """Return one extraction with the contents of all `parts`, in their order."""
        triples: list[Triple] = []
        failures: list[Failure] = []
        unread: list[str] = []
        for part in parts:
            triples += part.triples
            failures += part.failures
            unread += part.unread
        return cls(tuple(triples), tuple(failures), tuple(unread))


def any_failed(failures: Iterable[Failure]) -> bool:
    """Tell whether any of the failures may be absent at a second attempt. RefusedFacts and Advice would come
    again.
    """
    return any(not isinstance(failure, RefusedFacts | Advice) for failure in failures)


# ---- the course of a run


@dataclass(frozen=True)
class DialoguePart(Record):
    """Holds the messages that one plan adds to the conversation with the planner's model, in the format of
    OpenAI's API.
    """

    form: str
    """the dialect in which the model writes its plans, such as "search-r1\""""
    model: str = ""
    """the name of the model that wrote the replies"""
    messages: tuple[JSON, ...] = ()
    """the prompt before the first plan, or the findings of the last search; then the model's reply, and any further
    messages until the model stated the plan"""


@dataclass(frozen=True)
class Plan(Record):
    """Holds the next action of a run: search for `subquery`, stop because the facts suffice, or answer without
    retrieval.

    Raises ValueError for an unknown action, for "subq" with a blank sub-query, and if `further` is not a tuple
    of sub-queries.
    """

    json_keys = ("*", "answer?", "dialogue?", "further?", "retriever?")

    action: Action
    """"subq" to search, or one of the actions that end the search; see `Action`"""
    subquery: str = ""
    reason: str = ""
    """why the model decided so, in its own words"""
    answer: str = ""
    """the model's answer, if the model answers when it stops, as search-trained models do"""
    dialogue: DialoguePart | None = None
    """the messages so far, if the next plan continues them; None for a planner that renders a new prompt at each hop"""
    further: tuple[str, ...] = ()
    """more sub-queries to search for at the same time as `subquery`, none of which needs the result of another"""
    retriever: str = ""
    """the name of the retriever that searches, if the planner has a choice; "" for the agent's retriever"""

    @property
    def subqueries(self) -> tuple[str, ...]:
        """Return all sub-queries that are asked at the same time, `subquery` first; () for a plan without a
        sub-query."""
        if not self.subquery:
            return ()
        return (self.subquery, *self.further)

    def __post_init__(self) -> None:
        if self.action not in _ACTIONS:
            raise ValueError(
                f"unknown plan action {self.action!r}; known: {', '.join(_ACTIONS)}"
            )
        if self.action == "subq" and not self.subquery.strip():
            raise ValueError(f"a {SUBQ} plan needs a sub-query: give `subquery`")
        if not self.further:
            return
        if self.action != "subq":
            raise ValueError(
                f"only a {SUBQ} plan can have further sub-queries: leave `further` out"
            )
        if isinstance(self.further, str) or not all(map(str.strip, self.further)):
            raise ValueError(
                f"`further` must be a tuple of sub-queries that are not blank, got {self.further!r:.200}"
            )


@dataclass(frozen=True)
class Step(Record):
    """Records one hop: its sub-query, the passages that the search returned, and the facts that were read in them."""

    json_keys = (
        "hop",
        "subquery",
        "hits",
        "triple_ids",
        "new_triple_ids",
        "thought",
        "seconds",
    )

    hop: int
    subquery: str
    hits: tuple[Hit, ...] = ()
    triple_ids: tuple[str, ...] = ()
    """the ids of all facts read at this hop"""
    new_triple_ids: tuple[str, ...] = ()
    """the ids of those facts that the graph did not hold before"""
    thought: str = ""
    """the sentence of IRCoT's chain of thought; "" in other loops"""
    seconds: float = 0.0
    """time spent inside the hop's nodes"""
    dialogue: DialoguePart | None = None
    """the dialogue of the plan that chose the hop, for a planner that continues it; the JSON has it only in the
    plan"""

    @classmethod
    def of_dict(cls, data: Mapping[str, Any], passages: Mapping[str, Passage]) -> Self:
        """Return the step whose JSON is `data`. The passages of its hits are taken from `passages`, by id."""
        return cls.from_dict(
            {**data, "hits": [Hit.of_dict(hit, passages) for hit in data["hits"]]}
        )


def passages_found(steps: Iterable[Step]) -> tuple[Passage, ...]:
    """Return the passages that the steps found, each once, in the order of the searches."""
    by_id: dict[str, Passage] = {}
    for step in steps:
        for hit in step.hits:
            by_id[hit.passage.id] = hit.passage
    return tuple(by_id.values())


@dataclass(frozen=True)
class Citation(Record):
    """Points from an answer to its evidence: characters `start` to `end` of a passage, and the facts that were read
    there.
    """

    json_keys = ("*", "headings?")

    number: int
    """the number in the answer's text, as in "[2]\""""
    passage_id: str
    title: str = ""
    start: int = 0
    end: int = 0
    quote: str = ""
    """the cited characters of the passage"""
    triple_ids: tuple[str, ...] = ()
    file: str = ""
    """the file of the passage, if it has one; the run fills it in"""
    page: int | None = None
    """the page of the passage in its file, if it has pages; the run fills it in"""
    supported: bool | None = None
    """Whether the quote supports the answer (ras_agent.question_graph.support); None if this cannot be decided. The run
    fills it in."""
    headings: tuple[str, ...] = ()
    """the headings above the passage in its document, the highest first; the run fills them in"""

    @property
    def is_named_by_file(self) -> bool:
        """Return whether the title is only the name of the passage's file."""
        return self.file != "" and is_of_file(self.title, self.file)

    @property
    def bare_title(self) -> str:
        """Return the title without a note in parentheses that distinguishes documents of the same name, as in
        "Alien (film)".

        Return "" if the title is only the name of a file.
        """
        if self.is_named_by_file:
            return ""
        return bare_title(self.title)


@dataclass(frozen=True)
class Claim(Record):
    """Holds a statement that some documents make and others contradict."""

    json_keys = ("*", "independent?")

    text: str
    citations: tuple[int, ...] = ()
    """the numbers of the answer's citations that state the claim"""
    documents: tuple[str, ...] = ()
    """the titles or files of the documents that state the claim"""
    date: str = ""
    """the date of the newest of these documents; "" if no document has a date"""
    independent: int = 1
    """the number of documents that state the claim; copies of one text count once"""


@dataclass(frozen=True)
class Dispute(Record):
    """Holds the claims of documents that disagree; the first claim is the answer's."""

    claims: tuple[Claim, ...]

    @property
    def share(self) -> float:
        """Return the share, from 0 to 1, of the independent documents that make the answer's claim."""
        total = sum(claim.independent for claim in self.claims)
        return self.claims[0].independent / total


@dataclass(frozen=True, slots=True)
class Answer:
    """Holds an answer with its evidence."""

    text: str
    citations: tuple[Citation, ...] = ()
    abstained: bool = False
    """whether no answer is given, because the evidence does not support one with enough certainty; `text` then
    says so"""
    confidence: float | None = None
    """how likely the answer is to be right, from 0 to 1; None if neither answerer nor calibration states it"""
    failures: tuple[Failure, ...] = ()
    failed: str = ""
    """Why no answer could be made: the answerer crashed, a limit refused its call, or its reply could not be parsed.
    `abstained` is then true as well.
    """
    suggestion: str = ""
    """if the answer abstained, the answer that the citations suggest; else "\""""
    disputes: tuple[Dispute, ...] = ()
    """the points on which documents contradict the answer; the run fills them in"""
    agreement: float | None = None
    """the share of the samples that say the same as the answer; None if it was asked for once"""


@dataclass(frozen=True)
class Exchange(Record):
    """Holds an earlier turn of a conversation: the question, rewritten so that it needs no other turn, and its
    answer.
    """

    question: str
    answer: str = ""


# ---- model calls


@dataclass(frozen=True)
class Call(Record):
    """Records one model call. The token counts are those that the server reported, or estimates."""

    json_keys = ("*", "key?", "unread?")

    role: str
    hop: int
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """the input tokens that the server took from its prompt cache"""
    seconds: float = 0.0
    replayed: bool = False
    """whether the reply came from the cache of replies (`Settings.cache`)"""
    estimated: bool = False
    """whether the token counts are estimated from the texts, because the endpoint did not report them"""
    key: str = ""
    """the key of request and reply in the cache; "" without a cache"""
    unread: bool = False
    """whether the reply could not be parsed, so that the role's later prompts add worked examples and a form to fill
    in
    """


@dataclass(frozen=True)
class Usage(Record):
    """Sums up the model calls of a run."""

    json_keys = ("llm_calls", "input_tokens", "output_tokens", "cached_tokens", "calls")

    calls: tuple[Call, ...] = ()

    @property
    def llm_calls(self) -> int:
        """Return the number of model calls."""
        return len(self.calls)

    @property
    def input_tokens(self) -> int:
        """Return the sum of the calls' input tokens."""
        return sum(call.input_tokens for call in self.calls)

    @property
    def output_tokens(self) -> int:
        """Return the sum of the calls' output tokens."""
        return sum(call.output_tokens for call in self.calls)

    @property
    def cached_tokens(self) -> int:
        """Return the sum of the input tokens that servers took from their prompt caches."""
        return sum(call.cached_tokens for call in self.calls)
