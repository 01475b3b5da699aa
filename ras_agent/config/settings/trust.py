"""Restricts what a settings file in the working folder can do, because it may have come with other people's
files.

Such a file may not run code, and no key from the environment is sent to a server that only this file names. A
file that the user named by `--config` or RAS_AGENT_CONFIG, or that is in the user's own folder, is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ras_agent.config.address import Address, place_of
from ras_agent.config.settings.description import describe
from ras_agent.config.settings.fields import PLACES, Settings, Work
from ras_agent.config.settings.request_fields import (
    read_headers,
    read_roles,
    variables_in,
)
from ras_agent.config.settings.sources import (
    CONFIG_VARIABLE,
    LOCAL_CONFIG,
    from_environment,
    from_file,
)
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import without_none

_MODELS = "llm planner extractor answerer rewriter reranker linker embedder weights"
_MODEL_SETTINGS = frozenset(_MODELS.split())
_WEB = frozenset(("http", "https"))
_NAMES_SECRETS = frozenset(("headers", "api_keys", "roles"))
"""Settings that may name environment variables whose values are sent to a server."""
_LOCAL_ROLES = frozenset(("offline", "minilm", "packaged", "none", "facts"))


def unnamed_destinations(
    config: Path | None,
    path: str | Path | None,
    environment: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
    model: type[Settings] = Settings,
    work: Work | None = None,
) -> dict[str, str]:
    """Return the settings by which an untrusted file sends passages to a server, runs code or writes a file,
    with their values.

    The result is {} for a trusted file. It leaves out settings that variables or flags override.

    Args:
        config: The settings file that is used.
        path: The file that the user named by `--config`, if any.
        environment: The environment variables.
        flags: The flags of the command line.
        model: The settings class.
        work: The kind of work of the command; settings that it does not use are ignored.
    """
    is_named = path or environment.get(CONFIG_VARIABLE)
    if config is None or is_named or config.name != LOCAL_CONFIG:
        return {}
    overridden = without_none(flags).keys() | from_environment(environment).keys()
    described = describe(model, work)
    destinations: dict[str, str] = {}
    for key, value in from_file(config, model).items():
        if key in overridden:
            continue
        if key in _NAMES_SECRETS:
            variables = _variables(key, value)
            if variables:
                destinations[key] = ", ".join(variables)
        elif key in described and _leads_elsewhere(key, value, described[key].type):
            destinations[key] = str(value)
    return destinations


def _leads_elsewhere(key: str, value: Any, kind: type) -> bool:
    """Tell whether a setting sends passages to a server, runs code, or names a file that is written."""
    if key == "index" and isinstance(value, Path):
        return False  # a local index is only read
    if key == "retriever":
        return ":" in str(value)
    if key in _MODEL_SETTINGS or kind is Path:
        return value not in _LOCAL_ROLES
    return False


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


def _is_code(value: object) -> bool:
    return isinstance(value, str) and value.startswith("langchain:")


def refuse_code(config: Path | None, destinations: Mapping[str, str]) -> None:
    """Raise SettingsError if one of the `unnamed_destinations` would run Python code."""
    named = destinations.get("retriever")
    if _is_code(named):
        raise SettingsError(
            f"{config}: 'retriever' names Python code ({named}), which is not run because only a settings file in the "
            f"working folder names it. If you trust the code, give --retriever {named} or --config {config}"
        )


def refuse_keys(
    config: Path | None, destinations: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    """Raise SettingsError if a key from the environment would be sent to one of the `unnamed_destinations`."""
    for name, value in destinations.items():
        if name in _NAMES_SECRETS:
            raise _untrusted(
                config,
                f"{name!r} names environment variables ({value}), whose values are secret",
            )
        provider, _, address = value.partition(":")
        if name in ("reranker", "linker"):
            address = value.removeprefix("llm:").removeprefix("vllm:")
        is_server = provider == "vllm" or urlsplit(address).scheme in _WEB
        if is_server and name in _MODEL_SETTINGS and environment.get("VLLM_API_KEY"):
            url = urlsplit(address)
            host = url.netloc.rpartition("@")[2]
            server = f"{url.scheme}://{host}"
            problem = f"{name!r} names the server {server}, and VLLM_API_KEY is set"
            raise _untrusted(config, problem, unset="VLLM_API_KEY")
        if (
            provider == "neo4j"
            and name == "retriever"
            and environment.get("NEO4J_PASSWORD")
        ):
            problem = f"{name!r} names a database, and NEO4J_PASSWORD is set"
            raise _untrusted(config, problem, unset="NEO4J_PASSWORD")
        if (
            name in PLACES
            and environment.get("PGPASSWORD")
            and isinstance(place_of(value), Address)
        ):
            problem = f"{name!r} names the database {value}, and PGPASSWORD is set"
            raise _untrusted(config, problem, unset="PGPASSWORD")


def _untrusted(config: Path | None, problem: str, unset: str = "") -> SettingsError:
    remedy = (
        f"If you trust the file, give --config {config} or {CONFIG_VARIABLE}={config}"
    )
    if unset:
        remedy += f"; otherwise unset {unset}"
    return SettingsError(
        f"{config}: {problem}. Keys and passwords are not sent to a server that only a settings file in the working "
        f"folder names. {remedy}"
    )
