"""Defines all settings of the toolkit, with their defaults, help texts and checks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PlainSerializer,
    PlainValidator,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from ras_agent.address import Address, place_of, without_login
from ras_agent.budget import Limits
from ras_agent.errors import UnknownName
from ras_agent.filters import Filter, read_filter, read_metadata
from ras_agent.records import AnswerStyle, EvidenceLayout, OnConflict
from ras_agent.registry import current_name, is_registered, names
from ras_agent.review import places
from ras_agent.settings.request_fields import (
    FIELDS,
    described_headers,
    merged,
    read_fields,
    read_headers,
    read_roles,
    read_variables,
)
from ras_agent.settings.wrong import WrongSettings, current_names
from ras_agent.text.languages import language_name

Work = Literal["answer", "ask", "eval", "extract", "index", "judge", "serve"]
"""The kind of work that a command does, which decides the settings that it takes: `mcp` answers, `kg build` extracts,
`index` indexes.

`ask`, `eval` and `serve` also answer, so each takes the settings of both.
"""


@dataclass(frozen=True, slots=True)
class _Group:
    """Group of settings that share a panel of the help texts and the kinds of work that use them."""

    panel: str
    work: tuple[Work, ...]

    def __call__(
        self,
        default: Any,
        description: str,
        *flags: str,
        everyday: bool | tuple[Work, ...] = False,
    ) -> Any:
        """Declare one setting.

        `flags` are its names on the command line if they differ from `--its-name`. `everyday` tells whether `--help`
        shows the setting, or for which work; `--help-all` shows all settings.
        """
        about: dict[str, Any] = {
            "panel": self.panel,
            "work": list(self.work),
            "flags": flags,
            "everyday": everyday,
        }
        return Field(default, description=description, json_schema_extra=about)


_RETRIEVAL = _Group("Retrieval", ("answer",))
_EVALUATION = _Group("Retrieval", ("eval",))
_ROLES = _Group("Models", ("answer",))
_READERS = _Group("Models", ("answer", "extract"))
_LOOP = _Group("Loop", ("answer",))
_LIMITS = _Group("Limits", ("answer",))
_GRAPH = _Group("Question graph", ("answer",))
_ANSWER = _Group("Answer", ("answer",))
_PROMPTS = _Group("Prompts", ("answer", "extract"))
_FACTS = _Group("Question graph", ("answer", "extract"))
_CALLS = _Group("Model calls", ("answer", "extract", "judge"))
_WATCHING = _Group("Watching", ("answer",))
_INDEX = _Group("", ("index",))
_PASSAGES = _Group("Cutting into passages", ("index",))
_TEXTS = _Group("", ("answer", "extract", "index"))
_THREADS = _Group("Loop", ("ask", "serve"))
_SERVER = _Group("Server", ("serve",))


Place = Annotated[
    Path | Address, PlainValidator(place_of), PlainSerializer(str, when_used="json")
]
"""The place of an index or a cache. The text of an address shows no password."""
PLACES = frozenset(("index", "cache", "triple_cache"))
"""Settings that are paths or addresses of databases."""
_Share = Annotated[float, Field(ge=0, le=1)]


class Settings(BaseModel):
    """Holds all settings. Instances are frozen, and an unknown key raises WrongSettings.

    A new option is one new field. A subclass may add fields with pydantic's own `Field`. Every command then has a flag
    for it, or, with `json_schema_extra={"work": ["answer"], "panel": "Loop", "everyday": True}`, only the commands of
    that kind of work.
    """

    # defer_build: the validator is built when the first instance is made
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    if not TYPE_CHECKING:  # the signature, a keyword for each field, is pydantic's

        def __init__(self, **values):
            """Check all values. Raises SettingsError for an unknown setting, with a suggestion, or a wrong value."""
            try:
                super().__init__(**current_names("Settings", values))
            except ValidationError as error:
                raise WrongSettings(error, type(self)) from None

        def __repr_str__(self, join_str):
            """Return the settings as text, which shows no password of an address."""
            return without_login(super().__repr_str__(join_str))

    index: Place | None = _RETRIEVAL(
        None,
        "The index to search: a folder or postgresql://host/database.",
        "--index",
        "-i",
        everyday=True,
    )
    retriever: str = _RETRIEVAL(
        "bm25",
        "bm25, dense or hybrid; with a knowledge graph also kg-mix, gfm, ppr, paths or pcst; a+b mixes two; "
        "langchain:MODULE:ATTRIBUTE is a vector store of yours, "
        "sparql:URL and neo4j:URL are graphs elsewhere.",
        everyday=True,
    )
    k: PositiveInt = _RETRIEVAL(5, "Passages per hop.", everyday=True)
    filter: dict[str, Any] | None = _RETRIEVAL(
        None,
        "Find only passages with this in their metadata, e.g. team=x; several values of a key mean any of them; "
        "date.before=2024-01-01, date.after=, team.not= and date.exists=true, or JSON.",
    )
    reranker: str | None = _RETRIEVAL(
        None,
        "Ranks the hits again: ce:MODEL, http://host/rerank#MODEL, or llm:provider:model; if not set, or none, nothing.",
    )
    candidates: PositiveInt = _RETRIEVAL(40, "How many hits the reranker reads.")
    weights: str | None = _RETRIEVAL(
        None,
        "Weights of the graph network: a folder, an id on the Hugging Face hub, or packaged, the default.",
    )
    linker: str | None = _RETRIEVAL(
        None,
        "Names a question's entities, where a graph is entered: provider:model, llm for the model of --llm, facts for its "
        "names and the nearest facts, or a plug-in; if not set, by the graph's own names.",
    )
    starts: Path | None = _EVALUATION(
        None,
        "gfm-rag's test.json, whose start nodes are where a graph is entered for its questions.",
    )

    llm: str | None = _READERS(
        None,
        "Model of every role that is not set itself, e.g. openai:gpt-4o-mini; without one, offline.",
        everyday=True,
    )
    planner: str | None = _ROLES(
        None, "Decides what to ask next: offline or provider:model.", everyday=True
    )
    extractor: str | None = _READERS(
        None,
        "Reads facts in passages: offline or provider:model; if not set, --llm or as the planner.",
        everyday=("extract",),
    )
    answerer: str | None = _ROLES(
        None,
        "Answers from the facts and passages: offline or provider:model.",
        everyday=True,
    )
    rewriter: str | None = _ROLES(
        None,
        "Makes a conversation's next question stand alone: offline or provider:model; if not set, as the planner.",
    )

    loop: str = _LOOP(
        "ras",
        "The loop that finds the answer: ras, react, ircot, single-shot, or one of a plug-in.",
        everyday=("eval",),
    )
    preset: str | None = _LOOP(None, "paper: the loop as it was published.")
    layout: EvidenceLayout | None = _LOOP(
        None,
        "What planner and answerer are shown of each hop; if not set, evidence, or chain with preset paper; "
        "searches is for models that read graph tokens; dialogue gives the planner a conversation that only grows.",
    )
    dialect: str | None = _LOOP(
        None,
        "How the planner's model writes its moves: search-r1, r1-searcher, autorefine, corag, react, think-on-graph, "
        "tool-json or ras; if not set, by the model's name, or by its first reply.",
    )
    tools: str | None = _LOOP(
        None,
        "What the model of --loop react may call, with commas: search, neighbours, paths, read, or retrievers by name, each "
        "a tool of its own; finish is always there. If not set, all that the index can serve.",
    )
    thinking: bool = _LOOP(
        True,
        "Keep what the planner's model thought in its dialogue, or drop it from the next prompts.",
        "--thinking/--no-thinking",
    )
    from_memory: bool | None = _LOOP(
        None,
        "Answer from the model's memory where the planner wants no retrieval; if not set, only with preset paper.",
        "--from-memory/--grounded",
    )
    review: str | None = _THREADS(
        None,
        "Where a run waits for a person: plan, facts, answer, or several with commas; if not set, nowhere.",
    )
    checkpoint: str = _THREADS(
        "memory",
        "Where threads are stored: memory, sqlite:FILE or postgres:CONNECTION.",
    )

    fallback: Literal["offline", "stop"] | None = _LOOP(
        None,
        "Who plays a step whose model wrote nothing readable, also when asked again: offline, or stop for nobody; if "
        "not set, offline for English texts, and stop with preset paper.",
    )

    max_hops: PositiveInt = _LIMITS(5, "Most hops.", everyday=True)
    max_parallel: PositiveInt = _LIMITS(
        3, "Most searches that one plan makes at the same time; each is a hop."
    )
    max_facts: PositiveInt = _LIMITS(400, "Most facts in the question graph.")
    max_llm_calls: PositiveInt | None = _LIMITS(
        None, "Most model calls; if not set, no limit."
    )
    max_tokens: PositiveInt | None = _LIMITS(
        None, "Most tokens, input and output; if not set, no limit."
    )
    max_seconds: PositiveFloat | None = _LIMITS(
        None, "Most seconds; if not set, no limit."
    )

    prune_facts: str | None = _GRAPH(
        None,
        "Show planner and answerer the best facts alone, by use, likeness or aligner:FOLDER; if not set, all.",
    )
    prune_to: PositiveInt = _GRAPH(40, "How many facts --prune-facts leaves.")
    triple_cache: Place | None = _FACTS(
        None,
        "File, or postgresql:// address, that stores the facts of each passage, read once for all runs.",
    )

    style: AnswerStyle | None = _ANSWER(
        None, "Form of the answer; if not set, the one that fits the graph."
    )
    answer_tokens: PositiveInt | None = _ANSWER(
        None, "Most tokens of an answer; if not set, those of the benchmark, or 2048."
    )
    least_confidence: _Share | None = _ANSWER(
        None,
        "An answer with less confidence, 0 to 1, is left unsaid or suggested; if not set, the threshold of --calibration, "
        "or 0.75 where the offline mode answers.",
    )
    calibration: Path | None = _ANSWER(
        None,
        "File of `ras-agent calibrate`, which tells how sure any answerer's answers are; if not set, an answerer's own.",
    )

    on_conflict: OnConflict | None = _ANSWER(
        None,
        "Where documents disagree on the answer: both says both, newest the newer one and who says otherwise, abstain "
        "neither; ignore leaves it as it is. If not set, both.",
    )

    few_shot: bool = _PROMPTS(
        False,
        "Worked examples in the prompts from the start; else from the first reply on that could not be read.",
        "--few-shot/--zero-shot",
    )
    form: Literal["auto", "on", "off"] = _PROMPTS(
        "auto",
        "Whether the model's server holds replies to their form (grammar, pattern, JSON Schema): once one could not be "
        "read, always, or never.",
    )
    prompts: Path | None = _PROMPTS(None, "Folder of your own prompts.")
    cache: Place | None = _CALLS(
        None,
        "File, or postgresql:// address, that stores model replies, so that a run can be replayed.",
    )
    replay: bool = _CALLS(
        False,
        "Answer model calls from --cache alone; a request that it has no reply to ends the run.",
        "--replay/--no-replay",
    )
    temperature: float | None = _CALLS(
        None,
        "Sampling temperature; if not set, 0 for planner and extractor, the model's own for the answerer.",
    )
    top_p: _Share | None = _CALLS(
        None,
        "Sample from the likeliest tokens that have this share, 0 to 1; if not set, the model's own.",
    )
    seed: int | None = _CALLS(
        None, "Seed of the model's sampling, where its server takes one."
    )
    presence_penalty: float | None = _CALLS(
        None, "Penalty of tokens that have been written, as OpenAI defines it."
    )
    frequency_penalty: float | None = _CALLS(
        None,
        "Penalty of tokens by how often they have been written, as OpenAI defines it.",
    )
    reasoning_effort: str | None = _CALLS(
        None,
        "How long a reasoning model thinks, in its server's words: none, minimal, low, medium, high.",
    )
    chat_template_kwargs: dict[str, Any] | None = _CALLS(
        None, "Options of the server's chat template, e.g. enable_thinking=false."
    )
    extra_body: dict[str, Any] | None = _CALLS(
        None,
        "Further fields of each request, e.g. top_k=20; a value is JSON, or a text.",
    )
    headers: dict[str, Any] | None = _CALLS(
        None,
        "Headers of each request to a model, e.g. x-team=a; env:NAME stands for what a variable holds, as in "
        "'x-key=env:GATEWAY_KEY'.",
    )
    api_keys: str | None = _CALLS(
        None,
        "Environment variables that hold the keys of a model's servers, with commas: one for each address, or several "
        "for one address, used in turn.",
    )
    roles: dict[str, Any] | None = _CALLS(
        None,
        "Settings of the calls of one role, e.g. planner.reasoning_effort=low: temperature, timeout, context_window, "
        "and those of requests from top_p to api_keys.",
    )
    timeout: PositiveFloat = _CALLS(
        60.0,
        "Seconds that one try of a model call may take, from its turn at the server.",
    )
    retries: NonNegativeInt = _CALLS(
        4, "Most further tries of a model call that failed for a moment."
    )
    patience: NonNegativeFloat = _CALLS(
        120.0,
        "Seconds that a model server is waited for that has answered before and is gone, as while it restarts.",
    )
    evidence_tokens: PositiveInt | None = _CALLS(
        None,
        "Most tokens of passages and facts in a prompt; if not set, half of the window, 4000 at least, and 2000 for a "
        "model of fewer than 4 billion parameters.",
    )
    context_window: PositiveInt | None = _CALLS(
        None,
        "Tokens of a prompt and its reply together; if not set, what the model or its server says.",
    )
    requests_per_minute: PositiveInt | None = _CALLS(
        None, "Most model calls per minute; if not set, no limit."
    )
    tokens_per_minute: PositiveInt | None = _CALLS(
        None, "Most tokens per minute; if not set, no limit."
    )
    in_flight: PositiveInt = _CALLS(
        128, "Most model calls at the same time; lower it for a small server."
    )

    log: Path | None = _WATCHING(
        None, "File that the log is added to, as JSON lines; - for the standard error."
    )
    log_text: bool = _WATCHING(
        False, "Questions and answers in the log too.", "--log-text/--no-log-text"
    )
    otel: bool = _WATCHING(
        False,
        "Send OpenTelemetry spans to OTEL_EXPORTER_OTLP_ENDPOINT, without texts.",
        "--otel/--no-otel",
    )

    embedder: str | None = _INDEX(
        None,
        "minilm, st:MODEL, openai:MODEL, vllm:URL#MODEL, ollama:MODEL or provider:MODEL, for dense and hybrid "
        "retrieval; unscaled:st:MODEL ranks by inner products; without one, BM25 alone.",
        everyday=True,
    )
    metadata: dict[str, Any] | None = _INDEX(
        None,
        "Fields of the passages that --filter compares, e.g. team=sales; the index remembers them for what was named, "
        "and team= takes one away.",
        everyday=True,
    )
    chunk_size: PositiveInt | None = _PASSAGES(
        None,
        "Longest passage, in characters; if not set, 1000, and records with an id stay whole.",
        everyday=True,
    )
    overlap: NonNegativeInt = _PASSAGES(
        200, "Characters of whole sentences repeated in the next passage."
    )
    language: str | None = _TEXTS(
        None,
        "Language of the texts, such as german or de; if not set, the index's own, and for a new index english.",
        everyday=("index",),
    )
    fields: dict[str, Any] | None = _INDEX(
        None,
        "Keys or columns of text, title and id in JSON Lines and tables, e.g. text=body,title=name, or "
        "'*.jsonl:text=body' for files of one pattern; id= numbers the records. The index remembers them.",
        everyday=True,
    )

    host: str = _SERVER(
        "127.0.0.1",
        "Address to listen at; one that other machines reach needs a token.",
        everyday=True,
    )
    port: Annotated[int, Field(ge=0, le=65535)] = _SERVER(
        8020, "Port to listen at; 0 takes a free one.", everyday=True
    )
    max_runs: PositiveInt = _SERVER(
        256, "Most questions that wait or run; one more is refused with status 503."
    )
    tokens: Path | None = _SERVER(
        None,
        "JSON file of who may ask: a token, or sha256: and its hash, to null or the filter of what it may see.",
        everyday=True,
    )
    cors: str | None = _SERVER(
        None,
        "Web pages of these origins may ask, with commas; if not set, only the own one.",
    )
    max_upload_mb: NonNegativeInt = _SERVER(
        64, "Most megabytes of one upload; with 0 nobody changes documents."
    )

    @property
    def limits(self) -> Limits:
        """Return the limits of a run as a Limits record."""
        return Limits(**self.model_dump(include=set(Limits.names())))

    @field_validator("filter", mode="before")
    @classmethod
    def _read_filter(cls, value: object) -> object:
        """Read a filter: "key=value", a list of such texts, or JSON. A JSON object is kept unchanged."""
        value = _as_list(value)
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = read_filter(value)
        if not Filter.of(value):
            return None
        return value

    def for_role(self, role: str) -> Self:
        """Return the settings for the model calls of a role: a copy in which the entry of `roles` overrides the common
        ones.
        """
        roles = self.roles or {}
        chosen: dict[str, Any] = {}
        for name, value in roles.get(role, {}).items():
            if isinstance(value, dict):
                value = merged(getattr(self, name), value)
            chosen[name] = value
        if not chosen:
            return self
        return self.model_copy(update=chosen)

    @property
    def needs_index(self) -> bool:
        """Tell whether the retriever searches an index although no index is set."""
        return self.index is None and ":" not in self.retriever

    @field_validator("language")
    @classmethod
    def _find_language(cls, name: str | None) -> str | None:
        return None if name is None else language_name(name)

    @field_validator("fields", mode="before")
    @classmethod
    def _read_fields(cls, value: object) -> object:
        """Read "text=KEY,title=KEY,id=KEY", with or without a pattern of files, a list of such texts, or a mapping by
        pattern."""
        value = _as_list(value)
        if isinstance(value, list):
            value = dict(map(_fields_of_pattern, value))
        if not isinstance(value, dict):
            return value
        patterns: dict[str, dict[str, str | None]] = {}
        for pattern, keys in value.items():
            if not _name_record_fields(keys):
                example = 'text = "body"'
                raise ValueError(
                    f"{pattern!r} has to name text, title or id, such as {example}, got {keys!r:.80}"
                )
            patterns[pattern] = {role: key or None for role, key in keys.items()}
        return patterns or None

    @field_validator("metadata", mode="before")
    @classmethod
    def _read_metadata(cls, value: object) -> object:
        """Read metadata: "key=value", a list of such texts, or JSON. A JSON object is kept unchanged."""
        return None if value is None else read_metadata(_as_list(value)) or None

    @field_validator("chat_template_kwargs", "extra_body", mode="before")
    @classmethod
    def _read_request(cls, value: object, info: ValidationInfo) -> object:
        return (
            None if value is None else read_fields(value, str(info.field_name)) or None
        )

    @field_validator("headers", mode="before")
    @classmethod
    def _read_headers(cls, value: object) -> object:
        return None if value is None else read_headers(value) or None

    @field_validator("api_keys", mode="before")
    @classmethod
    def _read_api_keys(cls, value: object) -> object:
        return None if value is None else read_variables(value)

    @field_validator("roles", mode="before")
    @classmethod
    def _read_roles(cls, value: object) -> object:
        """Read the settings of single roles, each checked like the setting of the same name."""
        if value is None:
            return None
        roles: dict[str, dict[str, Any]] = {}
        for role, chosen in read_roles(value).items():
            try:
                checked = Settings(**chosen)
            except WrongSettings as wrong:
                raise ValueError(f"{role}.{wrong.key}: {wrong.problem}") from None
            roles[role] = {name: getattr(checked, name) for name in chosen}
        return roles or None

    @field_validator("loop")
    @classmethod
    def _check_loop(cls, name: str) -> str:
        if not is_registered("loop", name):
            raise UnknownName("loop", name, names("loop"))
        return name

    @field_validator("retriever")
    @classmethod
    def _name_retriever(cls, name: str) -> str:
        return current_name("retriever", name)

    @field_validator("dialect")
    @classmethod
    def _check_dialect(cls, name: str | None) -> str | None:
        if name is not None and not is_registered("dialect", name):
            raise UnknownName("dialect", name, names("dialect"))
        return name

    @field_validator("review")
    @classmethod
    def _read_review(cls, value: str | None) -> str | None:
        return ",".join(places(value)) or None

    @model_validator(mode="after")
    def _check_overlap(self) -> Self:
        size = self.chunk_size or 1000
        if self.overlap >= size:
            raise ValueError(
                f"overlap {self.overlap} must be less than chunk_size {size}"
            )
        return self


def described_request(settings: Settings) -> dict[str, Any]:
    """Return the settings that change the requests to models, as a run's manifest stores them: without secrets."""
    names = (*FIELDS, "extra_body", "headers", "roles")
    return _described({name: getattr(settings, name) for name in names})


def _described(chosen: Mapping[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {}
    for name, value in chosen.items():
        if value is None or name == "api_keys":
            continue
        if name == "headers":
            value = described_headers(value)
        elif name == "roles":
            value = {role: _described(own) for role, own in value.items()}
        described[name] = value
    return described


_RECORD_ROLES = ("text", "title", "id")


def _as_list(value: object) -> object:
    """Return the object of a JSON text, any other text as a list of one, and a value of another type unchanged."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("{"):
        return json.loads(value)
    return [value]


def _name_record_fields(keys: object) -> bool:
    """Tell whether `keys` maps text, title or id to names. The id may be blank or None, for records that are
    numbered."""
    if not isinstance(keys, dict) or not keys:
        return False
    for role, key in keys.items():
        is_name = isinstance(key, str) and key != ""
        is_numbered = role == "id" and key in (None, "")
        if role not in _RECORD_ROLES or not (is_name or is_numbered):
            return False
    return True


def _fields_of_pattern(text: object) -> tuple[str, dict[str, str]]:
    """Split "*.jsonl:text=body,title=name" into the pattern of files, by default "*", and the fields."""
    wrong = ValueError(
        f"expected text=KEY or PATTERN:text=KEY, such as '*.jsonl:text=body', got {text!r:.80}"
    )
    first, *others = str(text).split(",")
    name, equals, key = first.partition("=")
    pattern, colon, role = name.rpartition(":")
    if not equals or not role or bool(pattern) != bool(colon):
        raise wrong
    fields = {role.strip(): key.strip()}
    for other in others:
        role, equals, key = other.partition("=")
        if not equals:
            raise wrong
        fields[role.strip()] = key.strip()
    return pattern or "*", fields
