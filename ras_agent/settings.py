"""Settings of a run, from four places; a later one overrides an earlier one.

    the defaults of `Settings`
    ras-agent.toml              planner = "openai:gpt-4o-mini"
    the environment             RAS_AGENT_PLANNER=openai:gpt-4o-mini
    the command line            --planner openai:gpt-4o-mini

The fields of `Settings` are the one list of options: the keys of the file, the variables, the flags with their help and
the table in the docs are made from them. API keys are not settings: each provider reads its own environment variable.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union, get_args, get_origin
from urllib.parse import urlsplit

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
from pydantic.fields import FieldInfo

from ras_agent.address import Address, place_of
from ras_agent.budget import Limits
from ras_agent.errors import FlagError, SettingsError, UnknownName, did_you_mean
from ras_agent.filters import Filter, read_filter, read_metadata
from ras_agent.records import AnswerStyle, EvidenceLayout
from ras_agent.registry import is_registered, names
from ras_agent.request_fields import (
    FIELDS,
    described_headers,
    merged,
    read_fields,
    read_headers,
    read_roles,
    read_variables,
    shown_secret,
    variables_in,
)
from ras_agent.review import places
from ras_agent.text.languages import language_name

_PREFIX = "RAS_AGENT_"
_CONFIG_VARIABLE = "RAS_AGENT_CONFIG"
TOKEN_VARIABLE = "RAS_AGENT_SERVE_TOKEN"
"""The environment variable of a token that callers of `ras-agent serve` show; a secret, so no setting."""
_LOCAL_CONFIG = "ras-agent.toml"
_MODEL_SETTINGS = frozenset(("llm", "planner", "extractor", "answerer", "rewriter", "embedder", "weights"))
_NAMES_SECRETS = frozenset(("headers", "api_keys", "roles"))
"""Settings that may name variables whose values are sent to a server."""
_LOCAL_ROLES = frozenset(("offline", "minilm", "packaged"))
_SECRET = ("key", "token", "secret", "password")

Work = Literal["answer", "ask", "eval", "extract", "index", "judge", "serve"]
"""What a command does. It takes the settings of its work: `mcp` answers, `kg build` extracts, `index` indexes.

`ask`, `eval` and `serve` answer too: each takes the settings of both.
"""


@dataclass(frozen=True, slots=True)
class _Group:
    """Group of settings that share a panel of the help texts and the work that uses them."""

    panel: str
    work: tuple[Work, ...]

    def __call__(self, default: Any, description: str, *flags: str, everyday: bool | tuple[Work, ...] = False) -> Any:
        """Declare one setting.

        flags: its names on the command line where `--its-name` will not do. everyday: whether `--help` shows it, or of
        which work; the others stand on the page of `--help-all`.
        """
        about: dict[str, Any] = {"panel": self.panel, "work": list(self.work), "flags": flags, "everyday": everyday}
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


Place = Annotated[Path | Address, PlainValidator(place_of), PlainSerializer(str, when_used="json")]
"""Where an index or a cache is. As text an address shows no password."""
PLACES = frozenset(("index", "cache", "triple_cache"))
"""Settings that are paths or addresses of databases."""
_Share = Annotated[float, Field(ge=0, le=1)]


class _WrongSettings(SettingsError):
    """Raised by `Settings(...)`: names the first key that is wrong, and why."""

    def __init__(self, error: ValidationError, model: type[BaseModel], places: Mapping[str, str] | None = None) -> None:
        """Describe a pydantic error about `model`. places: where each key was read; all are of a call if not given."""
        first = error.errors()[0]
        self.error, self.key = error, str(first["loc"][0]) if first["loc"] else ""
        problem = f"{first['msg'][:1].lower()}{first['msg'][1:]}, got {first['input']!r:.80}"
        if first["type"] == "value_error":  # a validator's of this class, which names the value
            problem = str(first.get("ctx", {}).get("error", problem))
        self.problem = problem
        place = (places or {}).get(self.key, "Settings")
        if first["type"] == "extra_forbidden":
            super().__init__(_unknown(place, self.key, model))
        else:
            super().__init__(f"{place}: {_spelling(place, self.key)}: {problem}" if self.key else problem)


class Settings(BaseModel):
    """All settings with their defaults. Frozen; an unknown key is an error.

    A new option is one new field. A subclass may add fields with pydantic's own `Field`: every command takes them, or
    those of the work that `json_schema_extra={"work": ["answer"], "panel": "Loop", "everyday": True}` names.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)  # built when one is made

    if not TYPE_CHECKING:  # the signature, a keyword for each field, is pydantic's

        def __init__(self, **values):
            """Check all values. Raises SettingsError for an unknown setting, with what was meant, or a wrong value."""
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise _WrongSettings(error, type(self)) from None

    index: Place | None = _RETRIEVAL(
        None, "The index to search: a folder or postgresql://host/database.", "--index", "-i", everyday=True
    )
    retriever: str = _RETRIEVAL(
        "bm25",
        "bm25, dense or hybrid; with a knowledge graph also graph, gfm, ppr, paths or pcst; a+b mixes two; "
        "langchain:MODULE:ATTRIBUTE is a vector store of yours.",
        everyday=True,
    )
    k: PositiveInt = _RETRIEVAL(5, "Passages per hop.", everyday=True)
    filter: dict[str, Any] | None = _RETRIEVAL(
        None, "Find only passages with this in their metadata, e.g. team=x; several values of a key mean any of them."
    )
    weights: str | None = _RETRIEVAL(
        None, "Weights of the graph network: a folder, an id on the Hugging Face hub, or packaged, the default."
    )
    starts: Path | None = _EVALUATION(
        None, "gfm-rag's test.json, whose start nodes are where a graph is entered for its questions."
    )

    llm: str | None = _READERS(
        None,
        "Model of every role that is not set itself, e.g. openai:gpt-4o-mini; without one, offline.",
        everyday=True,
    )
    planner: str | None = _ROLES(None, "Decides what to ask next: offline or provider:model.", everyday=True)
    extractor: str | None = _READERS(
        None,
        "Reads facts in passages: offline or provider:model; if not set, --llm or as the planner.",
        everyday=("extract",),
    )
    answerer: str | None = _ROLES(
        None, "Answers from the facts and passages: offline or provider:model.", everyday=True
    )
    rewriter: str | None = _ROLES(
        None,
        "Makes a conversation's next question stand alone: offline or provider:model; if not set, as the planner.",
    )

    graph: str = _LOOP(
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
        "How the planner's model writes its moves: search-r1, r1-searcher, autorefine, corag, react, tool-json or ras; "
        "if not set, by the model's name, or by its first reply.",
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
        None, "Where a run waits for a person: plan, facts, answer, or several with commas; if not set, nowhere."
    )
    checkpoint: str = _THREADS("memory", "Where threads are stored: memory, sqlite:FILE or postgres:CONNECTION.")

    fallback: Literal["offline", "stop"] | None = _LOOP(
        None,
        "Who plays a step whose model wrote nothing readable, also when asked again: offline, or stop for nobody; if "
        "not set, offline for English texts, and stop with preset paper.",
    )

    max_hops: PositiveInt = _LIMITS(5, "Most hops.", everyday=True)
    max_facts: PositiveInt = _LIMITS(400, "Most facts in the question graph.")
    max_llm_calls: PositiveInt | None = _LIMITS(None, "Most model calls; if not set, no limit.")
    max_tokens: PositiveInt | None = _LIMITS(None, "Most tokens, input and output; if not set, no limit.")
    max_seconds: PositiveFloat | None = _LIMITS(None, "Most seconds; if not set, no limit.")

    prune_facts: str | None = _GRAPH(
        None, "Show planner and answerer the best facts alone, by use, likeness or aligner:FOLDER; if not set, all."
    )
    prune_to: PositiveInt = _GRAPH(40, "How many facts --prune-facts leaves.")
    triple_cache: Place | None = _FACTS(
        None, "File, or postgresql:// address, that stores the facts of each passage, read once for all runs."
    )

    style: AnswerStyle | None = _ANSWER(None, "Form of the answer; if not set, the one that fits the graph.")
    answer_tokens: PositiveInt | None = _ANSWER(
        None, "Most tokens of an answer; if not set, those of the benchmark, or 2048."
    )
    least_confidence: _Share | None = _ANSWER(
        None,
        "An answer with less confidence, 0 to 1, is left unsaid or suggested, of answerers that tell; if not set, 0.7.",
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
        None, "File, or postgresql:// address, that stores model replies, so that a run can be replayed."
    )
    replay: bool = _CALLS(
        False,
        "Answer model calls from --cache alone; a request that it has no reply to ends the run.",
        "--replay/--no-replay",
    )
    temperature: float | None = _CALLS(
        None, "Sampling temperature; if not set, 0 for planner and extractor, the model's own for the answerer."
    )
    top_p: _Share | None = _CALLS(
        None, "Sample from the likeliest tokens that have this share, 0 to 1; if not set, the model's own."
    )
    seed: int | None = _CALLS(None, "Seed of the model's sampling, where its server takes one.")
    presence_penalty: float | None = _CALLS(None, "Penalty of tokens that have been written, as OpenAI defines it.")
    frequency_penalty: float | None = _CALLS(
        None, "Penalty of tokens by how often they have been written, as OpenAI defines it."
    )
    reasoning_effort: str | None = _CALLS(
        None, "How long a reasoning model thinks, in its server's words: none, minimal, low, medium, high."
    )
    chat_template_kwargs: dict[str, Any] | None = _CALLS(
        None, "Options of the server's chat template, e.g. enable_thinking=false."
    )
    extra_body: dict[str, Any] | None = _CALLS(
        None, "Further fields of each request, e.g. top_k=20; a value is JSON, or a text."
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
    timeout: PositiveFloat = _CALLS(60.0, "Seconds that one try of a model call may take, from its turn at the server.")
    retries: NonNegativeInt = _CALLS(4, "Most further tries of a model call that failed for a moment.")
    patience: NonNegativeFloat = _CALLS(
        120.0, "Seconds that a model server is waited for that has answered before and is gone, as while it restarts."
    )
    evidence_tokens: PositiveInt | None = _CALLS(
        None,
        "Most tokens of passages and facts in a prompt; if not set, half of the window, 4000 at least, and 2000 for a "
        "model of fewer than 4 billion parameters.",
    )
    context_window: PositiveInt | None = _CALLS(
        None, "Tokens of a prompt and its reply together; if not set, what the model or its server says."
    )
    requests_per_minute: PositiveInt | None = _CALLS(None, "Most model calls per minute; if not set, no limit.")
    tokens_per_minute: PositiveInt | None = _CALLS(None, "Most tokens per minute; if not set, no limit.")
    in_flight: PositiveInt = _CALLS(128, "Most model calls at the same time; lower it for a small server.")

    log: Path | None = _WATCHING(None, "File that the log is added to, as JSON lines; - for the standard error.")
    log_text: bool = _WATCHING(False, "Questions and answers in the log too.", "--log-text/--no-log-text")
    otel: bool = _WATCHING(
        False, "Send OpenTelemetry spans to OTEL_EXPORTER_OTLP_ENDPOINT, without texts.", "--otel/--no-otel"
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
    overlap: NonNegativeInt = _PASSAGES(200, "Characters of whole sentences repeated in the next passage.")
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
        "127.0.0.1", "Address to listen at; one that other machines reach needs a token.", everyday=True
    )
    port: Annotated[int, Field(ge=0, le=65535)] = _SERVER(8020, "Port to listen at; 0 takes a free one.", everyday=True)
    max_runs: PositiveInt = _SERVER(256, "Most questions that wait or run; one more is refused with status 503.")
    tokens: Path | None = _SERVER(
        None,
        "JSON file of who may ask: a token, or sha256: and its hash, to null or the filter of what it may see.",
        everyday=True,
    )
    cors: str | None = _SERVER(None, "Web pages of these origins may ask, with commas; if not set, only the own one.")
    max_upload_mb: NonNegativeInt = _SERVER(64, "Most megabytes of one upload; with 0 nobody changes documents.")

    @property
    def limits(self) -> Limits:
        """Return the limits of a run."""
        return Limits(**self.model_dump(include=set(Limits.names())))

    @field_validator("filter", mode="before")
    @classmethod
    def _read_filter(cls, value: object) -> object:
        """Read a filter: "key=value", a list of such texts, or JSON. A JSON object stays as it is."""
        value = _as_list(value)
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = read_filter(value)
        return value if Filter.of(value) else None

    def for_role(self, role: str) -> Self:
        """Return the settings of a role's calls: its own in place of the common ones."""
        own = (self.roles or {}).get(role)
        if not own:
            return self
        chosen = {
            name: merged(getattr(self, name), value) if isinstance(value, dict) else value
            for name, value in own.items()
        }
        return self.model_copy(update=chosen)

    @property
    def needs_index(self) -> bool:
        """Tell whether the retriever searches an index and none is named."""
        return self.index is None and not _is_code(self.retriever)

    @field_validator("language")
    @classmethod
    def _find_language(cls, name: str | None) -> str | None:
        return None if name is None else language_name(name)

    @field_validator("fields", mode="before")
    @classmethod
    def _read_fields(cls, value: object) -> object:
        """Read "text=KEY,title=KEY,id=KEY", with a pattern of files or not, a list of these, or a table of tables."""
        value = _as_list(value)
        if isinstance(value, list):
            value = dict(map(_fields_of_pattern, value))
        if not isinstance(value, dict):
            return value
        for pattern, keys in value.items():
            roles = keys.items() if isinstance(keys, dict) else ()
            if not roles or not all(role in _RECORD_ROLES and _may_name(role, key) for role, key in roles):
                example = 'text = "body"'
                raise ValueError(f"{pattern!r} has to name text, title or id, such as {example}, got {keys!r:.80}")
        return {pattern: {role: key or None for role, key in keys.items()} for pattern, keys in value.items()} or None

    @field_validator("metadata", mode="before")
    @classmethod
    def _read_metadata(cls, value: object) -> object:
        """Read metadata: "key=value", a list of such texts, or JSON. A JSON object stays as it is."""
        return None if value is None else read_metadata(_as_list(value)) or None

    @field_validator("chat_template_kwargs", "extra_body", mode="before")
    @classmethod
    def _read_request(cls, value: object, info: ValidationInfo) -> object:
        return None if value is None else read_fields(value, str(info.field_name)) or None

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
        """Read the settings of single roles, each checked as a setting of its name is."""
        roles: dict[str, dict[str, Any]] = {}
        for role, chosen in ({} if value is None else read_roles(value)).items():
            try:
                checked = Settings(**chosen)
            except _WrongSettings as wrong:
                raise ValueError(f"{role}.{wrong.key}: {wrong.problem}") from None
            roles[role] = {name: getattr(checked, name) for name in chosen}
        return roles or None

    @field_validator("graph")
    @classmethod
    def _check_graph(cls, name: str) -> str:
        if not is_registered("graph", name):
            raise UnknownName("graph", name, names("graph"))
        return name

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
            raise ValueError(f"overlap {self.overlap} must be less than chunk_size {size}")
        return self


def described_request(settings: Settings) -> dict[str, Any]:
    """Return what settings add to requests that may change replies, as a manifest states it: without a secret."""
    return _described({name: getattr(settings, name) for name in (*FIELDS, "extra_body", "headers", "roles")})


def _described(chosen: Mapping[str, Any]) -> dict[str, Any]:
    described = {name: value for name, value in chosen.items() if value is not None and name != "api_keys"}
    if "headers" in described:
        described["headers"] = described_headers(described["headers"])
    if "roles" in described:
        described["roles"] = {role: _described(own) for role, own in described["roles"].items()}
    return described


_RECORD_ROLES = ("text", "title", "id")


def _as_list(value: object) -> object:
    """Return the object of a JSON text, any other text as a list of one, and a value of another type unchanged."""
    if not isinstance(value, str):
        return value
    return json.loads(value) if value.lstrip().startswith("{") else [value]


def _may_name(role: str, key: object) -> bool:
    return (isinstance(key, str) and key != "") or (role == "id" and key in (None, ""))


def _fields_of_pattern(text: object) -> tuple[str, dict[str, str]]:
    """Split "*.jsonl:text=body,title=name" into the pattern of files and the fields; without a pattern it is "*"."""
    pattern, colon, role = str(text).partition("=")[0].rpartition(":")
    pairs = [part.partition("=") for part in str(text)[len(pattern + colon) :].split(",")]
    if not (role and bool(pattern) == bool(colon) and all(equals for _, equals, _ in pairs)):
        raise ValueError(f"expected text=KEY or PATTERN:text=KEY, such as '*.jsonl:text=body', got {text!r:.80}")
    return pattern or "*", {role.strip(): key.strip() for role, _, key in pairs}


@dataclass(frozen=True, slots=True)
class Setting:
    """Description of a field of a settings class: what its flag, its help text and its line in the docs need.

    type: what a value is read as: str, int, float, bool or Path. choices: the allowed values of a Literal.
    repeated: whether the flag may be given several times, each time with a key=value. everyday: the work whose commands
    show it on their first page of help.
    """

    name: str
    type: type
    choices: tuple[str, ...]
    default: Any
    help: str
    panel: str
    work: frozenset[Work]
    flags: tuple[str, ...]
    repeated: bool
    everyday: frozenset[Work]


def describe(model: type[Settings] = Settings, work: Work | None = None) -> dict[str, Setting]:
    """Return the settings of a class by name, in order; with `work`, only those that it uses."""
    return {setting.name: setting for setting in _describe_field(model) if work is None or work in setting.work}


@cache
def _describe_field(model: type[Settings]) -> tuple[Setting, ...]:
    return tuple(_setting(name, info) for name, info in model.model_fields.items())


def _setting(name: str, info: FieldInfo) -> Setting:
    about: Any = info.json_schema_extra or {}
    inner = _without_none(info.annotation)
    choices = tuple(map(str, get_args(inner))) if get_origin(inner) is Literal else ()
    work: set[Work] = set(about.get("work", get_args(Work)))
    if "answer" in work:
        work |= {"ask", "eval", "serve"}
    everyday = about.get("everyday", False)
    pairs = get_origin(inner) is dict
    return Setting(
        name=name,
        type=str if choices or pairs else inner,
        choices=choices,
        default=info.default,
        help=info.description or "",
        panel=about.get("panel", ""),
        work=frozenset(work),
        flags=tuple(about.get("flags", ())),
        repeated=pairs,
        everyday=frozenset(work if everyday is True else everyday or ()),
    )


def _without_none(annotation: Any) -> Any:
    """Return the X of `X | None`, of `Annotated[X, ...]` and of `X | Y`."""
    if get_origin(annotation) is Annotated:
        return _without_none(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return _without_none(next(part for part in get_args(annotation) if part is not NoneType))
    return annotation


def find_config(
    path: str | Path | None = None, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Path | None:
    """Return the one settings file that is read: `path`, RAS_AGENT_CONFIG, ./ras-agent.toml, or the user's own.

    The user's own is ~/.config/ras-agent/config.toml. Raises SettingsError if a file that was named does not exist.
    """
    environment = os.environ if environment is None else environment
    if place := path or environment.get(_CONFIG_VARIABLE):
        file = Path(place).expanduser()
        if not file.is_file():
            raise SettingsError(f"the settings file {str(file)!r} does not exist")
        return file
    # not Path.home(), which raises for a user without a home, as containers have them
    home = Path(environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))
    candidates = ((folder or Path()) / _LOCAL_CONFIG, home / "ras-agent" / "config.toml")
    return next((file for file in candidates if file.is_file()), None)


def unnamed_destinations(
    config: Path | None,
    path: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    model: type[Settings] = Settings,
    work: Work | None = None,
) -> dict[str, str]:
    """Map settings by which `config` sends passages elsewhere, or writes, to their values, if nobody named the file.

    A file found in the working directory alone came with the folder, perhaps from somebody else. A file that the user
    named, by `path` or by RAS_AGENT_CONFIG, or that is his own, is trusted: for it, and for what variables or flags set
    instead, the result is empty.
    """
    environment = os.environ if environment is None else environment
    if config is None or path or environment.get(_CONFIG_VARIABLE) or config.name != _LOCAL_CONFIG:
        return {}
    overridden = {key for key, value in (flags or {}).items() if value is not None}
    overridden |= _from_environment(environment).keys()
    settings = describe(model, work).values()
    places = {
        setting.name for setting in settings if setting.type is Path or setting.name in {*_MODEL_SETTINGS, "retriever"}
    }
    table = {key: value for key, value in _from_file(config, model).items() if key not in overridden}
    secrets = {key: ", ".join(named) for key in _NAMES_SECRETS & table.keys() if (named := _variables(key, table[key]))}
    return secrets | {
        key: str(value)
        for key, value in table.items()
        if key in places and value not in _LOCAL_ROLES and not _is_harmless(key, value)
    }


def _variables(key: str, value: Any) -> list[str]:
    """Return the environment variables whose values a setting sends to a server."""
    if key == "api_keys":
        return [str(value)]
    if key == "headers":
        return variables_in(read_headers(value))
    named: list[str] = []
    for chosen in read_roles(value).values():
        for name in ("headers", "api_keys"):
            if name in chosen:
                named += _variables(name, chosen[name])
    return named


def _is_harmless(key: str, value: object) -> bool:
    """Tell whether a setting names the folder of an index, which is only read, or a retriever that is registered."""
    return (key == "index" and isinstance(value, Path)) or (key == "retriever" and not _is_code(value))


def _is_code(value: object) -> bool:
    return isinstance(value, str) and value.startswith("langchain:")


def refuse_code(config: Path | None, destinations: Mapping[str, str]) -> None:
    """Raise SettingsError if one of the `unnamed_destinations` is Python code, which would be run."""
    if _is_code(destinations.get("retriever")):
        raise SettingsError(
            f"{config}: 'retriever' names Python code ({destinations['retriever']}); none is run that only a file of "
            f"the working directory names. If you trust it, say so: --retriever {destinations['retriever']}, or "
            f"--config {config}"
        )


def refuse_keys(config: Path | None, destinations: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Raise SettingsError if a key of the environment would go to one of the `unnamed_destinations`."""
    for name, value in destinations.items():
        if name in _NAMES_SECRETS:
            raise SettingsError(
                f"{config}: {name!r} names variables of the environment ({value}); what they hold goes to no server "
                f"that only a file of the working directory names. If you trust the file, say so: --config {config}, "
                f"or {_CONFIG_VARIABLE}={config}"
            )
        provider, _, address = value.partition(":")
        if provider == "vllm" and name in _MODEL_SETTINGS and environment.get("VLLM_API_KEY"):
            url = urlsplit(address)
            raise SettingsError(
                f"{config}: {name!r} names the server {url.scheme}://{url.netloc.rpartition('@')[2]}, and VLLM_API_KEY "
                f"is set; a key goes to no server that only a file of the working directory names. If you trust the "
                f"file, say so: --config {config}, or {_CONFIG_VARIABLE}={config}; else unset VLLM_API_KEY"
            )
        if name in PLACES and environment.get("PGPASSWORD") and isinstance(place_of(value), Address):
            raise SettingsError(
                f"{config}: {name!r} names the database {value}, and PGPASSWORD is set; a password goes to no server "
                f"that only a file of the working directory names. If you trust the file, say so: --config {config}, "
                f"or {_CONFIG_VARIABLE}={config}; else unset PGPASSWORD"
            )


def load_settings(
    config: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    model: type[Settings] = Settings,
) -> Settings:
    """Return the settings of a TOML file (see `find_config`), of RAS_AGENT_* variables, and of flags that are not None.

    Variables override the file, and flags override both. Relative paths in the file start from its folder. Raises
    SettingsError, with the place and the key, for an unknown setting or a wrong value.
    """
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for place, layer in (
        (str(config), _from_file(config, model) if config else {}),
        ("environment", _from_environment(os.environ if environment is None else environment)),
        ("flags", {key: value for key, value in (flags or {}).items() if value is not None}),
    ):
        for key, value in layer.items():
            if key not in model.model_fields:
                raise SettingsError(_unknown(place, key, model))
            values[key], places[key] = value, place
    try:
        settings = model(**values)
        _refuse_shown_secrets({key: value for key, value in values.items() if places[key] == "flags"})
        return settings
    except _WrongSettings as wrong:
        if places.get(wrong.key) == "flags":
            raise FlagError(f"{_spelling('flags', wrong.key)}: {wrong.problem}") from None
        raise _WrongSettings(wrong.error, model, places) from None


def _refuse_shown_secrets(flags: Mapping[str, Any]) -> None:
    """Raise FlagError for a header on the command line whose value is a secret."""
    given = [read_headers(flags["headers"])] if "headers" in flags else []
    if "roles" in flags:
        given += [read_headers(own.get("headers", {})) for own in read_roles(flags["roles"]).values()]
    for headers in given:
        if name := shown_secret(headers):
            raise FlagError(
                f"--headers: {name} holds a secret, and others can see the command line; name a variable: --headers "
                f"{name}=env:NAME"
            )


def _from_file(path: Path, model: type[Settings]) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not TOML: {error}") from error
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    for key, setting in describe(model).items():
        if setting.type is Path and isinstance(value := table.get(key), str):
            place = place_of(value) if key in PLACES else Path(value)
            table[key] = path.parent / place.expanduser() if isinstance(place, Path) else place
    return table


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in the environment; an empty variable counts as not set."""
    return {
        name.removeprefix(_PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(_PREFIX) and name not in (_CONFIG_VARIABLE, TOKEN_VARIABLE) and value
    }


def _unknown(place: str, key: str, model: type[BaseModel]) -> str:
    names = model.model_fields
    meant = [name for name in names if name != "api_keys"]
    remedy = did_you_mean(key, meant, partial(_spelling, place))
    if not remedy and any(part in key.lower() for part in _SECRET):
        remedy = "a key goes into the variable that its provider reads, such as OPENAI_API_KEY"
    remedy = remedy or f"known: {', '.join(_spelling(place, name) for name in sorted(names))}"
    return f"{place}: unknown setting {_spelling(place, key)}; {remedy}"


def _spelling(place: str, key: str) -> str:
    """Return a setting's name as it is written in `place`: a flag, a variable or a key."""
    if place == "environment":
        return f"{_PREFIX}{key.upper()}"
    return f"--{key.replace('_', '-')}" if place == "flags" else repr(key)
