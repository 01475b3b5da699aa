"""What is installed and set up, what is missing, and how to get it. Names of keys, never their values."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from ras_agent.errors import MissingExtra, RasError
from ras_agent.settings import find_config, load_settings

__all__ = ["ADD_A_MODEL", "Check", "examine"]

DISTRIBUTION = "ras-agent"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_EXTRAS = re.compile(r"\[([^\]]*)\]")
_MARKER = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_BUNDLES = ("all", "dev")

PROVIDERS: Mapping[str, tuple[str, str]] = {
    "openai": ("OPENAI_API_KEY", "langchain-openai"),
    "anthropic": ("ANTHROPIC_API_KEY", "langchain-anthropic"),
    "azure_openai": ("AZURE_OPENAI_API_KEY", "langchain-openai"),
    "cohere": ("COHERE_API_KEY", "langchain-cohere"),
    "deepseek": ("DEEPSEEK_API_KEY", "langchain-deepseek"),
    "fireworks": ("FIREWORKS_API_KEY", "langchain-fireworks"),
    "google_genai": ("GOOGLE_API_KEY", "langchain-google-genai"),
    "groq": ("GROQ_API_KEY", "langchain-groq"),
    "mistralai": ("MISTRAL_API_KEY", "langchain-mistralai"),
    "openrouter": ("OPENROUTER_API_KEY", "langchain-openrouter"),
    "together": ("TOGETHER_API_KEY", "langchain-together"),
    "xai": ("XAI_API_KEY", "langchain-xai"),
}
"""Provider, as init_chat_model knows it -> (its key's variable, its package)."""

ADD_A_MODEL = (
    ("OpenAI", "pip install 'ras-agent[openai]'", "OPENAI_API_KEY", "--llm openai:gpt-4o-mini"),
    ("Anthropic", "pip install langchain-anthropic", "ANTHROPIC_API_KEY", "--llm anthropic:claude-sonnet-4-5"),
    ("Ollama", "pip install langchain-ollama", "", "--llm ollama:llama3.1"),
    ("your server", "pip install 'ras-agent[openai]'", "", "--llm vllm:http://localhost:8000/v1#model"),
)
"""Name, install line, variable to set or nothing, flag of `ras-agent ask`. Any OpenAI-compatible server will do."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. `ok` None: not there, and not needed. remedy: what to do if it is wanted."""

    section: str
    name: str
    ok: bool | None
    detail: str = ""
    remedy: str = ""


def examine(
    index: Path | None = None, config: Path | None = None, environment: Mapping[str, str] | None = None
) -> tuple[Check, ...]:
    """All checks, in the order in which they are shown; without one that is False, ras-agent works."""
    environment = os.environ if environment is None else environment
    return (*_core(), _settings(config, environment), *_extras(), _weights(), *_models(environment), *_index(index))


def _core() -> list[Check]:
    python = Check(
        "core", "python", sys.version_info >= (3, 11), platform.python_version(), "install Python 3.11 or later"
    )
    needed = [_name(line) for line in _requirements() if not _MARKER.search(line)]
    return [python, *map(_installed, [DISTRIBUTION, *needed])]


def _requirements() -> list[str]:
    """The lines of the distribution's metadata; none for a bare source tree."""
    try:
        return requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return []


def _installed(name: str) -> Check:
    try:
        return Check("core", name, True, version(name))
    except PackageNotFoundError:
        return Check("core", name, False, "missing", f"pip install --upgrade {DISTRIBUTION}")


def _settings(config: Path | None, environment: Mapping[str, str]) -> Check:
    try:
        path = find_config(config, environment)
        settings = load_settings(path, environment)
    except RasError as error:
        return Check("core", "settings", False, str(error))
    changed = ", ".join(f"{name} = {getattr(settings, name)}" for name in sorted(settings.model_fields_set))
    return Check("core", "settings", True, f"{path or 'no file'}{f': {changed}' if changed else ''}")


def _extras() -> list[Check]:
    checks = []
    extras = dict.fromkeys(marker[1] for line in _requirements() if (marker := _MARKER.search(line)))
    for extra in extras:
        if extra in _BUNDLES:
            continue
        found: list[str] = []
        missing: list[str] = []
        for name in _packages(extra):
            try:
                found.append(f"{name} {version(name)}")
            except PackageNotFoundError:
                missing.append(name)
        detail = ", ".join([*found, *(f"{name} missing" for name in missing)])
        checks.append(Check("extras", extra, not missing or None, detail, f"pip install 'ras-agent[{extra}]'"))
    return checks


def _packages(extra: str) -> list[str]:
    """What an extra installs, the extras it names included."""
    packages: dict[str, None] = {}
    for line in _requirements():
        marker = _MARKER.search(line)
        if marker is None or marker[1] != extra:
            continue
        nested = _EXTRAS.search(line.partition(";")[0])
        if _name(line) == DISTRIBUTION and nested:
            for inner in nested[1].split(","):
                packages |= dict.fromkeys(_packages(inner.strip()))
        else:
            packages[_name(line)] = None
    return list(packages)


def _weights() -> Check:
    from ras_agent.tools.embed.packaged_minilm import packaged_minilm

    try:
        return Check("extras", "MiniLM weights", True, f"sha256 as published, {packaged_minilm()}")
    except MissingExtra as error:
        return Check("extras", "MiniLM weights", None, "missing", str(error).partition(": ")[2])
    except (RasError, OSError) as error:
        return Check("extras", "MiniLM weights", False, str(error))


def _models(environment: Mapping[str, str]) -> list[Check]:
    checks = []
    for provider, (variable, package) in PROVIDERS.items():
        key = bool(environment.get(variable))
        detail, remedy = f"{variable} {'set' if key else 'not set'}", ""
        try:
            detail += f", {package} {version(package)}"
        except PackageNotFoundError:
            remedy = f"pip install {package}"
        checks.append(Check("models", provider, (key and not remedy) or None, detail, remedy))
    return checks


def _index(path: Path | None) -> list[Check]:
    if path is None:
        return []
    from ras_agent.tools.index.store import PassageIndex

    try:
        index = PassageIndex.open(path)
        embedder = index.embedder
    except (RasError, OSError) as error:
        return [Check("index", str(path), False, str(error))]
    vectors = f"vectors by {embedder.name} ({embedder.dimension})" if embedder else "no vectors: bm25 alone"
    return [Check("index", str(path), True, f"{len(index):,} passages, {vectors}")]


def _name(requirement: str) -> str:
    match = _NAME.match(requirement)
    return match[0] if match else requirement
