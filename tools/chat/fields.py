"""Holds the fields, headers and keys that a user adds to the requests of a model built from a string."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ras_agent.config.settings import Settings
from ras_agent.config.settings.request_fields import (
    FIELDS,
    described_headers,
    with_values,
)
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import JSON, without_none

# names under which chat models of LangChain's providers accept a field or headers, the likeliest first
_OTHER_NAMES = {"reasoning_effort": ("reasoning_effort", "reasoning")}
_TEMPLATE = "chat_template_kwargs"
_BODY = "extra_body"
_HEADERS = ("default_headers", "additional_headers", "extra_headers")
_OF_CLIENT = "client_kwargs"


@dataclass(frozen=True)
class RequestFields:
    """Holds the fields, headers and keys that a user adds to each request to a model."""

    named: JSON = field(default_factory=dict)
    """Fields under their names in OpenAI's protocol, which other providers may also accept."""
    extra: JSON = field(default_factory=dict)
    """Further fields, sent unchanged to servers that speak OpenAI's protocol."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers as the user wrote them; the value env:NAME stands for the value of an environment variable."""
    keys: tuple[str, ...] = ()
    """Names of the environment variables that hold the keys of the model's servers."""

    @classmethod
    def of(cls, settings: Settings) -> RequestFields:
        """Return the additions in the settings."""
        chosen = {name: getattr(settings, name) for name in FIELDS}
        named = without_none(chosen)
        keys: tuple[str, ...] = ()
        if settings.api_keys:
            keys = tuple(settings.api_keys.split(","))
        body = settings.extra_body or {}
        return cls(named, body, settings.headers or {}, keys)

    @property
    def body(self) -> JSON:
        """Return all fields in the form of a request in OpenAI's protocol."""
        return {**self.named, **self.extra}

    @property
    def identity(self) -> JSON:
        """Return the part of a cached reply's key that these additions make up, other than the model's own parameters."""
        if not self.headers:
            return {}
        return {"headers": described_headers(self.headers)}

    def sent_headers(self, *, asked: bool = True) -> dict[str, str]:
        """Return the headers, with environment variables replaced by their values. Raises SettingsError if a variable
        is not set.

        Args:
            asked: whether the model will be called; if not, the result is {}.
        """
        if not asked:
            return {}
        return with_values(self.headers, os.environ)

    def sent_keys(self, *, asked: bool = True) -> tuple[str, ...]:
        """Return the keys. Raises SettingsError if an environment variable is not set.

        Args:
            asked: whether the model will be called; if not, placeholders are returned.
        """
        if not asked:
            return ("none",) * len(self.keys)
        for name in self.keys:
            if not os.environ.get(name):
                # the name is not shown, as the user may have written the key itself
                raise SettingsError(
                    "api_keys names an environment variable that is not set: set it to a key of the model's server"
                )
        return tuple(os.environ[name] for name in self.keys)

    def options_of(self, kind: type, *, asked: bool = True) -> tuple[JSON, list[str]]:
        """Return the arguments that pass these additions to a LangChain class, and the names of those that it does not
        take.

        Args:
            asked: see `sent_headers`.
        """
        fields: JSON = getattr(kind, "model_fields", {})
        options: JSON = {}
        left_out: list[str] = []
        body = dict(self.extra)
        for name, value in self.named.items():
            own_names = _OTHER_NAMES.get(name, (name,))
            own_name = _known(own_names, fields)
            if own_name:
                options[own_name] = value
            elif name == _TEMPLATE:
                body[name] = value
            else:
                left_out.append(name)
        if _BODY not in fields:
            left_out += body
        elif body:
            options[_BODY] = body
        headers: JSON = dict(self.sent_headers(asked=asked))
        if headers:
            place = _known((*_HEADERS, _OF_CLIENT), fields)
            if place == _OF_CLIENT:
                headers = {"headers": headers}
            if place:
                options[place] = headers
            else:
                left_out.append("headers")
        return options, left_out


def _known(names: Sequence[str], fields: JSON) -> str:
    """Return the first of several names that is among a class's fields; "" if none is."""
    for name in names:
        if name in fields:
            return name
    return ""


NO_FIELDS = RequestFields()
