"""Implements `ras-agent doctor`, which lists installed and missing parts, and how to get them.

It prints the names of keys, never their values.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from ras_agent import __version__
from ras_agent.app.cli.checks import Check, short_form
from ras_agent.app.cli.flags import Config
from ras_agent.app.cli.options import ERROR, read_place
from ras_agent.app.cli.terminal import hang, inert, quantity, screen
from ras_agent.config.address import Address
from ras_agent.config.settings import Settings, find_config, load_settings
from ras_agent.contracts.errors import MissingExtra, RasError

if TYPE_CHECKING:
    from ras_agent.app.cli.try_model import Server, Trial
    from ras_agent.tools.kg.examine import FileReport

_INDENT = 20
_DISTRIBUTION = "ras-agent"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_EXTRAS = re.compile(r"\[([^\[\]]*+)\]")
_MARKER = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_BUNDLES = ("all", "dev")

_PROVIDERS: Mapping[str, tuple[str, str]] = {
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
"""For each provider, by its name in init_chat_model: the environment variable of its key, and its package."""

_SERVERS = ("OPENAI_BASE_URL", "OLLAMA_HOST", "VLLM_BASE_URL")
"""Environment variables that name servers of models. Each server is checked, without a key, for whether it
answers."""
_PATIENCE = 3.0
_ENOUGH = 1 << 20

_ADD_A_MODEL = (
    (
        "OpenAI",
        "pip install 'ras-agent[openai]'",
        "OPENAI_API_KEY",
        "--llm openai:gpt-4o-mini",
    ),
    (
        "Anthropic",
        "pip install langchain-anthropic",
        "ANTHROPIC_API_KEY",
        "--llm anthropic:claude-sonnet-4-5",
    ),
    ("Ollama", "pip install langchain-ollama", "", "--llm ollama:llama3.1"),
    (
        "your server",
        "pip install 'ras-agent[openai]'",
        "",
        "--llm vllm:http://localhost:8000/v1#model",
    ),
)
"""Ways to add a model: name, install command, variable to set (if any), flag of `ras-agent ask`. Any
OpenAI-compatible server works."""


_SHORT_ADVICE = """
    to add an LLM   ras-agent ask ... --llm openai:gpt-4o-mini
    all of this     ras-agent doctor --all"""


def doctor(
    *,
    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            "-i",
            parser=read_place,
            metavar="PLACE",
            help="An index to check; all of its files are read.",
        ),
    ] = None,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask/--no-ask",
            help="Ask the models that the settings name for three small replies.",
        ),
    ] = True,
    all: Annotated[
        bool,
        typer.Option(
            "--all", help="Show each package and provider, and how to add a model."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the checks as JSON.")
    ] = False,
    config: Config = None,
) -> None:
    """Show the parts that are installed, the missing ones, and how to add an LLM."""
    examined = examine(index, config)
    tried = _tried(config) if ask else Tried()
    checks = [*tried.checks, *examined]
    if as_json:
        typer.echo(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        if not all:
            checks = short_form(checks)
        _draw(checks, all)
        _draw_advice(tried.advice, all)
    if any(check.ok is False for check in checks):
        raise typer.Exit(ERROR)


def _draw(checks: Sequence[Check], with_sections: bool) -> None:
    console = screen()
    console.print(f"ras-agent {__version__}", style="bold")
    marks = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("–", "dim")}
    section = ""
    for check in checks:
        if with_sections and check.section != section:
            section = check.section
            console.print(f"\n{section}", style="bold")
        label = Text("  ").append(*marks[check.ok]).append(f" {inert(check.name)} ")
        body = Text(inert(check.detail))
        if check.remedy and not check.ok:
            body.append(f" · {check.remedy}" if check.detail else check.remedy, "cyan")
        hang(console, label, body, _INDENT)


def _draw_advice(advice: str, every_way: bool) -> None:
    """Print the settings for the model that was tried, or how to add a model."""
    console = screen()
    if advice:
        console.print("\nfor this model, in ras-agent.toml", style="bold")
        console.print(
            textwrap.indent(advice, "    "),
            style="cyan",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        return
    if not every_way:
        console.print(_SHORT_ADVICE, style="cyan")
        return
    console.print("\nto add an LLM", style="bold")
    for name, install, variable, flag in _ADD_A_MODEL:
        steps = [
            install,
            *([f"export {variable}=..."] if variable else []),
            f'ras-agent ask "..." {flag}',
        ]
        hang(console, Text(f"    {name} "), Text("\n".join(steps), "cyan"), _INDENT)


def examine(
    index: Path | Address | None = None,
    config: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[Check, ...]:
    """Return all checks in the order in which they are shown. ras-agent works if `ok` is False in none of them."""
    environment = os.environ if environment is None else environment
    return (
        *_core(),
        _settings(config, environment),
        *_extras(),
        _weights(),
        *_models(environment),
        *_servers(environment),
        *_index(index),
    )


def _core() -> list[Check]:
    python = Check(
        "core",
        "python",
        sys.version_info >= (3, 11),
        platform.python_version(),
        "install Python 3.11 or later",
    )
    needed = [_name(line) for line in _requirements() if not _MARKER.search(line)]
    return [python, *map(_check_package, [_DISTRIBUTION, *needed])]


def _requirements() -> list[str]:
    """Return the requirements in the distribution's metadata; [] for a bare source tree."""
    from importlib import metadata

    try:
        return metadata.requires(_DISTRIBUTION) or []
    except ModuleNotFoundError:
        return []


def version(package: str) -> str:
    """Return the version of an installed package. Raises ModuleNotFoundError if it is not installed."""
    # imported here because it loads the e-mail modules, for which help texts need not wait
    from importlib import metadata

    return metadata.version(package)


def _check_package(name: str) -> Check:
    try:
        return Check("core", name, True, version(name))
    except ModuleNotFoundError:
        return Check(
            "core", name, False, "missing", f"pip install --upgrade {_DISTRIBUTION}"
        )


def _settings(config: Path | None, environment: Mapping[str, str]) -> Check:
    try:
        path = find_config(config, environment)
        settings = load_settings(path, environment)
    except RasError as error:
        return Check("settings", "settings", False, str(error))
    values = ", ".join(
        f"{name} = {getattr(settings, name)}"
        for name in sorted(settings.model_fields_set)
    )
    return Check(
        "settings",
        "settings",
        True,
        f"{path or 'no file'}{f': {values}' if values else ''}",
    )


def _extras() -> list[Check]:
    checks = []
    extras = dict.fromkeys(
        marker[1] for line in _requirements() if (marker := _MARKER.search(line))
    )
    for extra in extras:
        if extra in _BUNDLES:
            continue
        present: list[str] = []
        missing: list[str] = []
        for name in _packages(extra):
            try:
                present.append(f"{name} {version(name)}")
            except ModuleNotFoundError:
                missing.append(name)
        detail = ", ".join([*present, *(f"{name} missing" for name in missing)])
        checks.append(
            Check(
                "extras",
                extra,
                not missing or None,
                detail,
                f"pip install 'ras-agent[{extra}]'",
            )
        )
    return checks


def _packages(extra: str) -> list[str]:
    """Return the packages that an extra installs, including those of the extras that it names."""
    packages: dict[str, None] = {}
    for line in _requirements():
        marker = _MARKER.search(line)
        if marker is None or marker[1] != extra:
            continue
        nested = _EXTRAS.search(line.partition(";")[0])
        if _name(line) == _DISTRIBUTION and nested:
            for inner in nested[1].split(","):
                packages |= dict.fromkeys(_packages(inner.strip()))
        else:
            packages[_name(line)] = None
    return list(packages)


def _weights() -> Check:
    from ras_agent.tools.embed.packaged_minilm import packaged_minilm

    try:
        return Check(
            "extras",
            "MiniLM weights",
            True,
            f"sha256 as published, {packaged_minilm()}",
        )
    except MissingExtra as error:
        return Check(
            "extras", "MiniLM weights", None, "missing", str(error).partition(": ")[2]
        )
    except (RasError, OSError) as error:
        return Check("extras", "MiniLM weights", False, str(error))


def _models(environment: Mapping[str, str]) -> list[Check]:
    checks = [
        Check(
            "models",
            "offline roles",
            True,
            "no model needed; reads and answers English only",
        )
    ]
    for provider, (variable, package) in _PROVIDERS.items():
        key = bool(environment.get(variable))
        detail = f"{variable} {'set' if key else 'not set'}"
        remedy = ""
        try:
            detail += f", {package} {version(package)}"
        except ModuleNotFoundError:
            remedy = f"pip install {package}"
        checks.append(
            Check("providers", provider, (key and not remedy) or None, detail, remedy)
        )
    return checks


def _servers(environment: Mapping[str, str]) -> list[Check]:
    """Ask the servers that variables name for their models, without sending a key."""
    from ras_agent.tools.chat.secrets import printable
    from ras_agent.tools.embed.served import ollama_url

    checks = []
    for variable in _SERVERS:
        if address := environment.get(variable):
            try:
                url = ollama_url(address) if variable == "OLLAMA_HOST" else address
                checks.append(_ask_for_models(variable, printable(url)))
            except (RasError, ValueError) as error:
                checks.append(
                    Check(
                        "models",
                        variable,
                        None,
                        str(error),
                        "write it as http://host:port/v1",
                    )
                )
    return checks


def _ask_for_models(variable: str, url: str) -> Check:
    import http.client
    import urllib.error
    import urllib.request

    from ras_agent.tools.chat.http import trusted

    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url} is not an address")
    try:
        with urllib.request.urlopen(
            f"{url.rstrip('/')}/models", timeout=_PATIENCE, context=trusted()
        ) as response:
            reply = json.loads(response.read(_ENOUGH))
        models = [str(model["id"]) for model in reply["data"]][:5]
        answer = f"has {', '.join(models)}" if models else "answers, with no model"
    except urllib.error.HTTPError as error:
        answer = f"answers ({error.code})"
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "reason", None) or error
        return Check(
            "models",
            variable,
            None,
            f"{url}: {why}",
            "start the server, or correct the address",
        )
    except (ValueError, KeyError, TypeError):
        answer = "answers, though not with a list of models"
    return Check("models", variable, True, f"{url} {answer}")


@dataclass(frozen=True, slots=True)
class Tried:
    """Holds the result of trying the models that the settings name."""

    checks: tuple[Check, ...] = ()
    advice: str = ""
    """the lines for ras-agent.toml that suit these models"""


def _tried(config: Path | None) -> Tried:
    """Try the models that the settings name, after printing a line. Do nothing if they name no model or cannot
    be read.
    """
    try:
        settings = load_settings(find_config(config, os.environ), os.environ)
    except RasError:
        return Tried()  # the check of the settings reports the error
    reranked = _reranker(settings)
    if not any((settings.llm, settings.planner, settings.extractor, settings.answerer)):
        return Tried(tuple(reranked))
    from ras_agent.app.cli.try_model import advised, ask_server, models_of, try_role

    checks = reranked
    trials: list[Trial] = []
    try:
        specs = models_of(settings)
        servers = {spec: ask_server(spec) for spec in specs.values()}
        checks += [_server_check(spec, server) for spec, server in servers.items()]
        for role, spec in specs.items():
            typer.echo(f"asking the {role}'s model ...", err=True)
            trials.append(try_role(role, spec, settings))
            checks.append(_trial_check(trials[-1]))
    except RasError as error:
        return Tried((*checks, Check("model", "setup", False, str(error))))
    if any(trial.failed for trial in trials):
        return Tried(tuple(checks))
    lines = advised(settings, trials, servers)
    return Tried(
        tuple(checks), "\n".join(f"{name} = {value}" for name, value in lines.items())
    )


def _reranker(settings: Settings) -> list[Check]:
    """Return the check of the settings' reranker, which scores two texts; [] if there is no reranker."""
    if settings.reranker in (None, "none"):
        return []
    from ras_agent.app.cli.try_model import try_reranker

    typer.echo("asking the reranker ...", err=True)
    try:
        scores = try_reranker(settings)
    except RasError as error:
        return [Check("model", "reranker", False, str(error))]
    shown = ", ".join(f"{score:.3g}" for score in scores)
    if scores[0] > scores[1]:
        return [Check("model", "reranker", True, f"scores of two texts: {shown}")]
    remedy = "take a model that was trained to rank passages"
    detail = f"prefers the text that does not fit: {shown}"
    return [Check("model", "reranker", None, detail, remedy)]


def _server_check(spec: str, server: Server) -> Check:
    from ras_agent.tools.chat.secrets import printable

    about = [server.owner] if server.owner else []
    about += [quantity(server.window, "token")] if server.window else []
    about += [quantity(server.slots, "slot")] if server.slots else []
    detail = f"{printable(spec)} {', '.join(about)}".rstrip()
    if not server.foreign_template:
        return Check("model", "server", True, detail)
    remedy = "the marks of its chat template are no tokens of this model: take an instruct model, or --chat-template"
    return Check("model", "server", None, detail, remedy)


def _trial_check(trial: Trial) -> Check:
    from ras_agent.app.cli.try_model import toml_of

    if trial.failed:
        return Check(
            "model",
            trial.role,
            False,
            trial.reply,
            "start the server, or correct the address",
        )
    speed = (
        f"{trial.seconds:.1f} s, {trial.tokens / max(trial.seconds, 1e-3):.0f} tokens/s"
    )
    if trial.way is None:
        return Check(
            "model",
            trial.role,
            None,
            f"not understood, {speed}",
            f'{trial.role} = "offline"',
        )
    settings = toml_of(trial.way)
    how = " and ".join(f"{name} = {value}" for name, value in settings.items())
    return Check(
        "model",
        trial.role,
        True,
        f"understood{f' with {how}' if how else ''}, {speed}: {trial.reply}",
    )


def _index(path: Path | Address | None) -> list[Check]:
    if path is None:
        return []
    from ras_agent.text.languages import ENGLISH, NO_LANGUAGE
    from ras_agent.tools.index.language import language_of
    from ras_agent.tools.index.store import PassageIndex
    from ras_agent.tools.kg.examine import examine as examine_files

    language_checks: list[Check] = []
    try:
        index = PassageIndex.open(path)
        embedder = index.embedder
        vectors = (
            f"vectors by {embedder.name} ({embedder.dimension})"
            if embedder
            else "no vectors: bm25 only"
        )
        index_check = Check(
            "index", str(path), True, f"{quantity(len(index), 'passage')}, {vectors}"
        )
        language = language_of(index)
        if language not in (ENGLISH, NO_LANGUAGE):
            detail = (
                f"texts in {language.capitalize()}, which the offline roles cannot read"
            )
            language_checks.append(
                Check(
                    "index",
                    "language",
                    None,
                    detail,
                    "give a model: --llm openai:gpt-4o-mini",
                )
            )
    except (RasError, OSError) as error:
        index_check = Check("index", str(path), False, str(error))
    if isinstance(path, Address):
        return [index_check, *language_checks]
    try:
        reports = examine_files(path)
    except RasError:
        return [index_check, *language_checks]
    return [index_check, *language_checks, *(_file(path, report) for report in reports)]


def _file(folder: Path, report: FileReport) -> Check:
    """Return the check of one file of an index, which was read completely."""
    name = str(report.path.relative_to(folder))
    return Check(
        "index", name, not report.problem, report.problem or "as it was written"
    )


def _name(requirement: str) -> str:
    match = _NAME.match(requirement)
    return match[0] if match else requirement
