"""Settings of a run: a TOML file, over it the environment, over it flags.

    # ras-agent.toml
    index = "my.index"
    planner = "openai:gpt-4o-mini"
    max_hops = 3

The same setting is RAS_AGENT_MAX_HOPS in the environment and --max-hops on the command line. API keys are no settings:
each provider reads its own environment variable.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from ras_agent.errors import SettingsError

__all__ = ["CONFIG_VARIABLE", "PREFIX", "Settings", "find_config", "load_settings"]

PREFIX = "RAS_AGENT_"
CONFIG_VARIABLE = "RAS_AGENT_CONFIG"
LOCAL_CONFIG = "ras-agent.toml"
_SECRET = ("key", "token", "secret", "password")


class Settings(BaseModel):
    """All settings with their defaults. Frozen; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # the agent
    index: Path | None = None
    graph: Literal["ras", "ircot", "single-shot"] = "ras"
    preset: str | None = None
    llm: str | None = Field(None, description="model for every role that is not set itself")
    planner: str | None = None
    extractor: str | None = None
    answerer: str | None = None
    retriever: str = "bm25"

    # its limits
    k: PositiveInt = 5
    max_hops: PositiveInt = 5
    max_facts: PositiveInt = 400
    max_llm_calls: PositiveInt | None = None
    max_tokens: PositiveInt | None = None
    max_seconds: PositiveFloat | None = None

    # how models are asked
    style: Literal["short", "choice", "boolean", "long", "reader"] | None = None
    few_shot: bool = False
    prompts: Path | None = None
    cache: Path | None = None
    triple_cache: Path | None = None
    temperature: float | None = None
    timeout: PositiveFloat = 60.0
    requests_per_minute: PositiveInt | None = None
    tokens_per_minute: PositiveInt | None = None
    in_flight: PositiveInt = 16

    # indexing
    embedder: str | None = None
    chunk_size: PositiveInt = 1000
    overlap: NonNegativeInt = 200
    text_field: str = "text"
    title_field: str = "title"
    id_field: str = "id"

    @model_validator(mode="after")
    def _overlap_leaves_room(self) -> Self:
        if self.overlap >= self.chunk_size:
            raise ValueError(f"overlap {self.overlap} must be less than chunk_size {self.chunk_size}")
        return self


def find_config(
    given: str | Path | None = None, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Path | None:
    """The one settings file that counts: the one given, RAS_AGENT_CONFIG, ./ras-agent.toml, or the user's own.

    The user's own is ~/.config/ras-agent/config.toml. Raises SettingsError if one that was named does not exist.
    """
    environment = os.environ if environment is None else environment
    named = given or environment.get(CONFIG_VARIABLE)
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            raise SettingsError(f"the settings file {str(path)!r} does not exist")
        return path
    # not Path.home(), which raises for a user without one, as containers have them
    home = Path(environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))
    candidates = ((folder or Path()) / LOCAL_CONFIG, home / "ras-agent" / "config.toml")
    return next((path for path in candidates if path.is_file()), None)


def load_settings(
    config: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """Settings from a TOML file (see `find_config`), over it RAS_AGENT_* variables, over it flags that are not None.

    Relative paths in the file are meant from its own folder. Raises SettingsError with the place and key of an unknown
    setting or a wrong value.
    """
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for place, layer in (
        (str(config), _from_file(config) if config else {}),
        ("environment", _from_environment(os.environ if environment is None else environment)),
        ("flags", {key: value for key, value in (flags or {}).items() if value is not None}),
    ):
        for key, value in layer.items():
            if key not in Settings.model_fields:
                raise SettingsError(_unknown(place, key))
            values[key], places[key] = value, place
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:
            raise SettingsError(str(first["ctx"]["error"])) from None
        key = str(first["loc"][0])
        problem = f"{first['msg'][:1].lower()}{first['msg'][1:]}, got {first['input']!r:.80}"
        raise SettingsError(f"{places[key]}: {_spelled(places[key], key)}: {problem}") from None


def _from_file(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not TOML: {error}") from error
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    for key in ("index", "prompts", "cache", "triple_cache"):
        if isinstance(table.get(key), str):
            table[key] = path.parent / Path(table[key]).expanduser()
    return table


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Empty variables count as not set."""
    return {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and name != CONFIG_VARIABLE and value
    }


def _unknown(place: str, key: str) -> str:
    close = get_close_matches(key.lower().replace("-", "_"), Settings.model_fields, n=3)
    if close:
        remedy = f"did you mean {' or '.join(_spelled(place, name) for name in close)}?"
    elif any(part in key.lower() for part in _SECRET):
        remedy = "a key goes into the variable that its provider reads, such as OPENAI_API_KEY"
    else:
        remedy = f"known: {', '.join(_spelled(place, name) for name in sorted(Settings.model_fields))}"
    return f"{place}: unknown setting {_spelled(place, key)}; {remedy}"


def _spelled(place: str, key: str) -> str:
    """A setting as it is written in that place."""
    if place == "environment":
        return f"{PREFIX}{key.upper()}"
    return f"--{key.replace('_', '-')}" if place == "flags" else repr(key)
