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

from ras_agent.config.address import Address, place_of, without_login
from ras_agent.config.filters import Filter, read_filter, read_metadata
from ras_agent.config.registry import current_name, is_registered, names
from ras_agent.config.settings.request_fields import (
    FIELDS,
    described_headers,
    merged,
    read_fields,
    read_headers,
    read_roles,
    read_variables,
)
from ras_agent.config.settings.wrong import WrongSettings, current_names
from ras_agent.contracts.errors import UnknownName
from ras_agent.contracts.records import AnswerStyle, EvidenceLayout, OnConflict
from ras_agent.running.budget import Limits
from ras_agent.running.review import places
from ras_agent.text.languages import language_name

Work = Literal["answer", "ask", "eval", "extract", "index", "judge", "serve"]
"""The kind of work that a command does, which decides its settings: `mcp` answers, `kg build` extracts, `index`
indexes. `ask`, `eval` and `serve` do their own work and answer too, so they have the settings of both. """


@dataclass(frozen=True, slots=True)
class _Group:
    """Declares settings that share a panel of the help texts and the kinds of work that use them."""

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
        "How passages are searched: bm25, dense or hybrid; with a knowledge graph also kg-mix, gfm, ppr, paths or "
        "pcst; a+b mixes two. langchain:MODULE:ATTRIBUTE is your own vector store; sparql:URL and neo4j:URL are "
        "remote graphs.",
        everyday=True,
    )
    k: PositiveInt = _RETRIEVAL(
        5, "Number of passages that each hop retrieves.", everyday=True
    )
    filter: dict[str, Any] | None = _RETRIEVAL(
        None,
        "Search only passages with these metadata, e.g. team=x; several values of a key are alternatives. Also "
        "date.before=2024-01-01, date.after=, team.not=, date.exists=true, or JSON.",
    )
    reranker: str | None = _RETRIEVAL(
        None,
        "Model that ranks the hits again: ce:MODEL, http://host/rerank#MODEL, or llm:provider:model. If not set, or "
        "none, hits are not ranked again.",
    )
    candidates: PositiveInt = _RETRIEVAL(40, "Number of hits that the reranker reads.")
    weights: str | None = _RETRIEVAL(
        None,
        "Weights of the graph network: a folder, an id on the Hugging Face hub, or packaged, the default.",
    )
    linker: str | None = _RETRIEVAL(
        None,
        "Finds the entities of the graph at which a question starts: provider:model, llm for the model of --llm, "
        "facts to match names and the nearest facts, or a plug-in. If not set, names of the graph are searched in the "
        "question.",
    )
    starts: Path | None = _EVALUATION(
        None,
        "gfm-rag's test.json: its start nodes are the entities at which its questions start.",
    )

    llm: str | None = _READERS(
        None,
        "Model of every role that has no setting of its own, e.g. openai:gpt-4o-mini. If not set, these roles are "
        "offline.",
        everyday=True,
    )
    planner: str | None = _ROLES(
        None,
        "Role that decides what to search next: offline or provider:model.",
        everyday=True,
    )
    extractor: str | None = _READERS(
        None,
        "Role that reads facts in passages: offline or provider:model. If not set, --llm, or else the planner's "
        "model.",
        everyday=("extract",),
    )
    answerer: str | None = _ROLES(
        None,
        "Role that answers from the facts and passages: offline or provider:model.",
        everyday=True,
    )
    rewriter: str | None = _ROLES(
        None,
        "Role that makes a follow-up question understandable without its conversation: offline or provider:model. If "
        "not set, the planner's model.",
    )

    loop: str = _LOOP(
        "ras",
        "Loop that finds the answer: ras, react, ircot, single-shot, or the name of a plug-in.",
        everyday=("eval",),
    )
    preset: str | None = _LOOP(
        None, "Settings of the loop as a group; paper runs it as it was published."
    )
    layout: EvidenceLayout | None = _LOOP(
        None,
        "What the prompts of planner and answerer show of each hop. searches is for models that read graph tokens; "
        "dialogue gives the planner a conversation that only grows. If not set, evidence, or chain with preset paper.",
    )
    dialect: str | None = _LOOP(
        None,
        "Syntax in which the planner's model writes its decisions: search-r1, r1-searcher, autorefine, corag, react, "
        "think-on-graph, tool-json or ras. If not set, it is chosen by the model's name, or by its first reply.",
    )
    tools: str | None = _LOOP(
        None,
        "Tools of the model of --loop react, separated by commas: search, neighbours, paths, read, names of "
        "retrievers, each a tool of its own, or names of plug-ins; finish is always there. If not set, all tools that "
        "the index can serve.",
    )
    thinking: bool = _LOOP(
        True,
        "Keep the thoughts of the planner's model in its dialogue, or leave them out of the next prompts.",
        "--thinking/--no-thinking",
    )
    from_memory: bool | None = _LOOP(
        None,
        "Answer from the model's memory if the planner decides that no retrieval is needed. If not set, only with "
        "preset paper.",
        "--from-memory/--grounded",
    )
    review: str | None = _THREADS(
        None,
        "Points at which a run waits for a person's decision: plan, facts, answer, or several separated by commas. If "
        "not set, the run never waits.",
    )
    checkpoint: str = _THREADS(
        "memory",
        "Where threads are stored: memory, sqlite:FILE or postgres:CONNECTION.",
    )

    fallback: Literal["offline", "stop"] | None = _LOOP(
        None,
        "What replaces a model whose reply cannot be read even when asked again: offline, the offline role, or stop, "
        "which ends the loop. If not set, offline for English texts, and stop with preset paper.",
    )

    max_hops: PositiveInt = _LIMITS(5, "Largest number of hops.", everyday=True)
    max_parallel: PositiveInt = _LIMITS(
        3,
        "Largest number of searches that one plan makes at the same time; each is a hop.",
    )
    max_facts: PositiveInt = _LIMITS(
        400,
        "Largest number of facts of the question graph that prompts and searches see.",
    )
    max_llm_calls: PositiveInt | None = _LIMITS(
        None, "Largest number of model calls. If not set, no limit."
    )
    max_tokens: PositiveInt | None = _LIMITS(
        None,
        "Largest number of tokens, input and output together. If not set, no limit.",
    )
    max_seconds: PositiveFloat | None = _LIMITS(
        None, "Longest duration of a run, in seconds. If not set, no limit."
    )

    prune_facts: str | None = _GRAPH(
        None,
        "How the facts are chosen that planner and answerer are shown: by use, likeness or aligner:FOLDER. If not "
        "set, all facts are shown.",
    )
    prune_to: PositiveInt = _GRAPH(40, "Number of facts that --prune-facts keeps.")
    triple_cache: Place | None = _FACTS(
        None,
        "File, or postgresql:// address, that stores the facts of each passage, so that no later run extracts them "
        "again.",
    )

    schema_file: Path | None = _FACTS(
        None,
        "File of the relations that facts may have, in TOML: facts get their names, and others are kept and marked.",
        "--schema-file",
        "--schema",
    )

    style: AnswerStyle | None = _ANSWER(
        None, "Form of the answer. If not set, the form that fits the loop."
    )
    answer_tokens: PositiveInt | None = _ANSWER(
        None,
        "Largest number of tokens of an answer. If not set, that of the benchmark, or 2048.",
    )
    samples: PositiveInt | None = _ANSWER(
        None,
        "Number of replies that the answerer's model gives. The answer that most of them agree on is kept, with their "
        "share as agreement. If not set, 1.",
    )
    least_confidence: _Share | None = _ANSWER(
        None,
        "Lowest confidence, 0 to 1, with which an answer is stated; an answer below it is withheld or only suggested. "
        "If not set, the threshold of --calibration, or 0.75 if the offline mode answers.",
    )
    calibration: Path | None = _ANSWER(
        None,
        "File of `ras-agent calibrate`, from which the confidence of any answerer's answers is computed. If not set, "
        "the answerer's own confidence is used.",
    )

    on_conflict: OnConflict | None = _ANSWER(
        None,
        "What an answer says if documents contradict it: both claims (both), the newest and who contradicts it "
        "(newest), or, as an abstention, that the documents disagree (abstain). ignore does not look for "
        "contradictions. If not set, both.",
    )

    few_shot: bool = _PROMPTS(
        False,
        "Add worked examples to the prompts from the start. Otherwise they are added after the first reply that "
        "cannot be read.",
        "--few-shot/--zero-shot",
    )
    form: Literal["auto", "on", "off"] = _PROMPTS(
        "auto",
        "Whether the model's server is asked to restrict replies to their form (grammar, pattern or JSON Schema): "
        "auto after a reply that could not be read, on always, off never.",
    )
    prompts: Path | None = _PROMPTS(
        None, "Folder of prompts that replace or extend the packaged ones."
    )
    cache: Place | None = _CALLS(
        None,
        "File, or postgresql:// address, that stores model replies, so that a run can be replayed.",
    )
    replay: bool = _CALLS(
        False,
        "Answer model calls only from --cache. A request without a stored reply ends the run.",
        "--replay/--no-replay",
    )
    temperature: float | None = _CALLS(
        None,
        "Sampling temperature. If not set, 0 for planner and extractor, and the model's default for the answerer.",
    )
    top_p: _Share | None = _CALLS(
        None,
        "Share of probability, 0 to 1, of the likeliest tokens that are sampled from. If not set, the model's "
        "default.",
    )
    seed: int | None = _CALLS(
        None, "Seed of the model's sampling, if its server supports one."
    )
    presence_penalty: float | None = _CALLS(
        None, "Penalty of tokens that occur already, as OpenAI defines it."
    )
    frequency_penalty: float | None = _CALLS(
        None,
        "Penalty of tokens by how often they occur already, as OpenAI defines it.",
    )
    reasoning_effort: str | None = _CALLS(
        None,
        "How long a reasoning model thinks, in the words of its server: none, minimal, low, medium, high.",
    )
    chat_template_kwargs: dict[str, Any] | None = _CALLS(
        None, "Options of the server's chat template, e.g. enable_thinking=false."
    )
    extra_body: dict[str, Any] | None = _CALLS(
        None,
        "Additional fields of each request to a model, e.g. top_k=20; a value is JSON or text.",
    )
    headers: dict[str, Any] | None = _CALLS(
        None,
        "Headers of each request to a model, e.g. x-team=a. env:NAME stands for the value of an environment variable, "
        "as in 'x-key=env:GATEWAY_KEY'.",
    )
    api_keys: str | None = _CALLS(
        None,
        "Environment variables that hold the keys of a model's servers, separated by commas: one for each address, or "
        "several for one address, used in turn.",
    )
    roles: dict[str, Any] | None = _CALLS(
        None,
        "Settings of the model calls of one role, e.g. planner.reasoning_effort=low: temperature, timeout, "
        "context_window, and the settings of requests from top_p to api_keys.",
    )
    timeout: PositiveFloat = _CALLS(
        60.0,
        "Seconds that one attempt of a model call may take, without the time in which it waits for its turn.",
    )
    retries: NonNegativeInt = _CALLS(
        4,
        "Largest number of further attempts of a model call after a temporary failure.",
    )
    patience: NonNegativeFloat = _CALLS(
        120.0,
        "Seconds to wait for a model server that has answered before and cannot be reached now, for example while it "
        "restarts.",
    )
    evidence_tokens: PositiveInt | None = _CALLS(
        None,
        "Largest number of tokens of passages and facts in a prompt. If not set, half of the context window but at "
        "least 4000, and 2000 for a model of fewer than 4 billion parameters.",
    )
    context_window: PositiveInt | None = _CALLS(
        None,
        "Tokens of a prompt and its reply together. If not set, the number that the model or its server states.",
    )
    requests_per_minute: PositiveInt | None = _CALLS(
        None, "Largest number of model calls per minute. If not set, no limit."
    )
    tokens_per_minute: PositiveInt | None = _CALLS(
        None, "Largest number of tokens per minute. If not set, no limit."
    )
    in_flight: PositiveInt = _CALLS(
        128,
        "Largest number of model calls at the same time; lower it for a small server.",
    )

    log: Path | None = _WATCHING(
        None,
        "File to which the log is appended, as JSON lines; - for the standard error.",
    )
    log_text: bool = _WATCHING(
        False,
        "Write questions and answers into the log, too.",
        "--log-text/--no-log-text",
    )
    otel: bool = _WATCHING(
        False,
        "Send OpenTelemetry spans to OTEL_EXPORTER_OTLP_ENDPOINT, without texts.",
        "--otel/--no-otel",
    )

    embedder: str | None = _INDEX(
        None,
        "Embedder for dense and hybrid retrieval: minilm, st:MODEL, openai:MODEL, vllm:URL#MODEL, ollama:MODEL or "
        "provider:MODEL; unscaled:st:MODEL ranks by inner products. If not set, only BM25 is possible.",
        everyday=True,
    )
    metadata: dict[str, Any] | None = _INDEX(
        None,
        "Fields of the passages that --filter compares, e.g. team=sales. The index remembers them for these files and "
        "folders; team= removes a field.",
        everyday=True,
    )
    chunk_size: PositiveInt | None = _PASSAGES(
        None,
        "Largest length of a passage, in characters. If not set, 1000, and records with an id are not divided.",
        everyday=True,
    )
    overlap: NonNegativeInt = _PASSAGES(
        200,
        "Characters, in whole sentences, that a passage repeats from the one before.",
    )
    language: str | None = _TEXTS(
        None,
        "Language of the texts, such as german or de. If not set, that of the index, and english for a new index.",
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
        "Address to listen at. An address that other machines can reach needs a token.",
        everyday=True,
    )
    port: Annotated[int, Field(ge=0, le=65535)] = _SERVER(
        8020, "Port to listen at; 0 takes a free one.", everyday=True
    )
    max_runs: PositiveInt = _SERVER(
        256,
        "Largest number of questions that wait or run; a further one is refused with status 503.",
    )
    tokens: Path | None = _SERVER(
        None,
        "JSON file of the tokens that callers may use: each token, or sha256: and its hash, with null or the filter "
        "of what it may see.",
        everyday=True,
    )
    cors: str | None = _SERVER(
        None,
        "Origins, separated by commas, whose web pages may call the server. If not set, only the server's own page.",
    )
    max_upload_mb: NonNegativeInt = _SERVER(
        64,
        "Largest size of an upload, in megabytes; with 0 nobody can change documents.",
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
        """Return a copy of the settings for a role's model calls, in which the role's entry in `roles`
        overrides the common values.
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
        """Read "text=KEY,title=KEY,id=KEY", with or without a pattern of files; or a list of such texts, or a
        mapping by pattern.
        """
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
                    f"{pattern!r} must name text, title or id, such as {example}, got {keys!r:.80}"
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
    """Return the settings that change requests to models, without secrets, for a run's manifest."""
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
    """Return the object in a JSON text, any other text in a list, and any other value unchanged."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("{"):
        return json.loads(value)
    return [value]


def _name_record_fields(keys: object) -> bool:
    """Tell whether `keys` maps text, title or id to names. The name of id may be blank or None; records are
    then numbered.
    """
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
