"""Reads a user's additions to model requests: fields, headers, and settings of single roles.

extra_body = {top_k = 20}               --extra-body top_k=20
headers = {x-key = "env:GATEWAY_KEY"}   --headers x-key=env:GATEWAY_KEY
roles.planner.top_p = 0.9               --roles planner.top_p=0.9
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from ras_agent.contracts.errors import SettingsError, did_you_mean

ROLES = ("planner", "extractor", "answerer", "rewriter", "reranker", "judge")
FIELDS = (
    "top_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "reasoning_effort",
    "chat_template_kwargs",
)
"""Settings that are request fields of the same name in OpenAI's API."""
OF_A_ROLE = (
    "temperature",
    "timeout",
    "context_window",
    *FIELDS,
    "extra_body",
    "headers",
    "api_keys",
)
"""Settings that can be set for a single role."""

_ELSEWHERE = {
    **dict.fromkeys(("model", "messages"), "the role's model and its prompts say it"),
    **dict.fromkeys(
        ("stream", "stream_options", "n", "tools", "tool_choice"),
        "it depends on the step",
    ),
    **dict.fromkeys(
        ("max_tokens", "max_completion_tokens"),
        "each step has its own; that of answers is answer_tokens",
    ),
    "temperature": "it is a setting of its own",
}
_VARIABLE = re.compile(r"(?<![\w-])env:([A-Za-z_]\w*)")
_NAME_OF_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_NAME_OF_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]")
_OF_THE_CONNECTION = frozenset(
    (
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
    )
)
_SECRET_NAME = re.compile(
    r"auth|key|token|secret|passw|cookie|signature|credential", re.IGNORECASE
)


class HeaderValue(str):
    """Holds the value of a header, which may be a secret. Its `repr` shows only a reference to an environment
    variable.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str.__repr__(self) if _VARIABLE.fullmatch(self) else "'***'"


def read_fields(value: object, name: str) -> dict[str, Any]:
    """Parse additional fields of a request: texts "name=value", a JSON object, or a mapping.

    A value is read as JSON if possible, otherwise as a text. `name` names the setting in messages.

    Raises:
        ValueError: for another form, and for a field that another setting sets.
    """
    fields = _object_in(value, name, _json_or_text)
    if name == "extra_body":
        for field in fields:
            if field in _ELSEWHERE:
                raise ValueError(f"{field!r} cannot be set here: {_ELSEWHERE[field]}")
    return fields


def read_headers(value: object) -> dict[str, HeaderValue]:
    """Parse headers in the forms of `read_fields`.

    Raises:
        ValueError: for an invalid header; the message does not show its value.
    """
    headers: dict[str, HeaderValue] = {}
    for name, text in _object_in(value, "headers", str).items():
        if not _NAME_OF_HEADER.fullmatch(name):
            raise ValueError(
                f"{name!r:.40} is not the name of a header: give a name such as x-team"
            )
        if name.lower() in _OF_THE_CONNECTION:
            raise ValueError(
                f"{name!r} cannot be set, because the HTTP connection sets it: leave it out"
            )
        if not isinstance(text, str) or _UNSENDABLE.search(text):
            raise ValueError(
                f"the value of {name!r} must be one line of Latin letters (it is not shown here)"
            )
        headers[name] = HeaderValue(text.strip())
    return headers


def read_roles(value: object) -> dict[str, dict[str, Any]]:
    """Parse settings of single roles: texts "planner.top_p=0.9", a JSON object, or a mapping of mappings.

    Raises ValueError for an unknown role, or a setting that a role cannot have.
    """
    roles: dict[str, dict[str, Any]] = {}
    for place, setting in _object_in(value, "roles", _json_or_text).items():
        role, *names = place.split(".", 2)
        if role not in ROLES:
            remedy = did_you_mean(role, ROLES) or f"roles: {', '.join(ROLES)}"
            raise ValueError(
                f"{role!r:.40} is not a role that can have its own settings; {remedy}"
            )
        for name in reversed(names):
            setting = {name: setting}
        if not isinstance(setting, Mapping):
            raise ValueError(
                f"{role!r} needs the name of a setting, such as {role}.top_p=0.9"
            )
        _merge(roles.setdefault(role, {}), setting)
    for role, settings in roles.items():
        for name in settings:
            if name not in OF_A_ROLE:
                remedy = (
                    did_you_mean(name, OF_A_ROLE) or f"known: {', '.join(OF_A_ROLE)}"
                )
                raise ValueError(
                    f"{role} has the unknown setting {name!r:.40}; {remedy}"
                )
    return roles


def read_variables(value: object) -> str:
    """Check names of environment variables, separated by commas, and return them without spaces.

    Raises ValueError for an invalid name. The message does not show it, because it may be a key given by mistake.
    """
    names = [name.strip() for name in str(value).split(",")]
    if not all(map(_NAME_OF_VARIABLE.fullmatch, names)):
        raise ValueError(
            "expected names of environment variables that hold keys, such as KEY_A,KEY_B: do not give the keys themselves"
        )
    return ",".join(names)


def merged(common: Mapping[str, Any] | None, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a role's own values, completed by those values of `common` that the role does not set itself."""
    return {**(common or {}), **own}


def with_values(
    headers: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return headers as they are sent: with each `env:NAME` replaced by the value of that environment variable.

    Raises SettingsError for a variable that is not set.
    """
    sent: dict[str, str] = {}
    for name, text in headers.items():
        for variable in _VARIABLE.findall(text):
            if not environment.get(variable):
                raise SettingsError(
                    f"headers: {name} needs the environment variable {variable}: set it"
                )
        sent[name] = _VARIABLE.sub(lambda found: environment[found[1]], text)
    return sent


def shown_secret(headers: Mapping[str, str]) -> str:
    """Return the name of a header whose secret value is written as plain text; "" if there is no such header."""
    shown = (
        name
        for name, text in headers.items()
        if _SECRET_NAME.search(name) and not _VARIABLE.search(text)
    )
    return next(shown, "")


def variables_in(headers: Mapping[str, str]) -> list[str]:
    """Return the names of the environment variables that headers refer to by `env:NAME`."""
    return [
        variable for text in headers.values() for variable in _VARIABLE.findall(text)
    ]


def described_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers without secrets, for a manifest or the key of a cached reply. Different values stay different.

    >>> described_headers({"x-team": "a", "x-key": "abc", "x-tenant": "env:TENANT"})
    {'x-key': '***', 'x-team': 'sha256:ca978112', 'x-tenant': 'env:TENANT'}
    """
    return {
        name.lower(): _described(name, text) for name, text in sorted(headers.items())
    }


def _described(name: str, text: str) -> str:
    if _VARIABLE.fullmatch(text):
        return str(text)
    if _SECRET_NAME.search(name) or _VARIABLE.search(text):
        return "***"
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _object_in(value: object, name: str, read: Any) -> dict[str, Any]:
    """Return `value` if it is a mapping, or the mapping that its texts describe. `read` reads the value of a
    "name=value" text."""
    if isinstance(value, Mapping):
        return dict(value)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple):
        raise ValueError(
            f"{name} must be a table or NAME=VALUE, got {type(value).__name__}"
        )
    read_so_far: dict[str, Any] = {}
    for text in texts:
        if isinstance(text, str) and text.lstrip().startswith("{"):
            read_so_far |= _json_object(text, name)
            continue
        key, equals, said = str(text).partition("=")
        if not equals or not key.strip():
            raise ValueError(
                f"{name} must be written as NAME=VALUE, or as a JSON object"
            )
        read_so_far[key.strip()] = read(said)
    return read_so_far


def _json_object(text: str, name: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name} is not a JSON object: {error}") from None
    return dict(parsed)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, Mapping) and isinstance(into.get(name), Mapping):
            into[name] = merged(into[name], value)
        else:
            into[name] = value
