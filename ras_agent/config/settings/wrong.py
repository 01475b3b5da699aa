"""Describes which setting is wrong, written as at the place from which it was read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError

from ras_agent.config.address import without_login
from ras_agent.config.registry import warn_of_old_name
from ras_agent.contracts.errors import SettingsError, did_you_mean

PREFIX = "RAS_AGENT_"
"""The prefix of the environment variables' names."""
_OLD_NAMES = {"graph": "loop"}
"""The old names of settings that are still accepted, with the current names."""
_SECRET = ("key", "token", "secret", "password")


class WrongSettings(SettingsError):
    """Raised by `Settings(...)`. The message names the first wrong key, and why it is wrong."""

    def __init__(
        self,
        error: ValidationError,
        model: type[BaseModel],
        places: Mapping[str, str] | None = None,
    ) -> None:
        """Describe a pydantic error about `model`. `places` maps each key to where it was read; by default a
        call in Python.
        """
        first = error.errors()[0]
        self.error = error
        self.key = str(next(iter(first["loc"]), ""))
        self.problem = _problem_of(first)
        place = (places or {}).get(self.key, "Settings")
        if first["type"] == "extra_forbidden":
            super().__init__(unknown_setting(place, self.key, model))
        elif self.key:
            super().__init__(f"{place}: {spelling(place, self.key)}: {self.problem}")
        else:
            super().__init__(self.problem)


def _problem_of(error: Mapping[str, object]) -> str:
    context = error.get("ctx")
    # our own validators name the value
    if error["type"] == "value_error" and isinstance(context, dict):
        return str(context["error"])
    message = str(error["msg"])
    given = without_login(repr(error["input"]))
    return f"{message[:1].lower()}{message[1:]}, got {given:.80}"


def unknown_setting(place: str, key: str, model: type[BaseModel]) -> str:
    """Return the message for a key that is not a setting, with the most similar setting or a list of all
    settings.
    """
    in_place = partial(spelling, place)
    meant = [name for name in model.model_fields if name != "api_keys"]
    remedy = did_you_mean(key, meant, in_place)
    if not remedy and any(part in key.lower() for part in _SECRET):
        remedy = "a key goes into the variable that its provider reads, such as OPENAI_API_KEY"
    if not remedy:
        known = map(in_place, sorted(model.model_fields))
        remedy = f"known: {', '.join(known)}"
    return f"{place}: unknown setting {in_place(key)}; {remedy}"


def current_names(place: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with each old name replaced by the current one, and warn of old names.

    `place` is where they were read: "flags", "environment" or a file.
    """
    named: dict[str, Any] = {}
    for key, value in values.items():
        today = _OLD_NAMES.get(key, key)
        if today != key:
            warn_of_old_name(spelling(place, key), spelling(place, today))
        if today == key or today not in values:
            named[today] = value
    return named


def spelling(place: str, key: str) -> str:
    """Return a setting's name as it is written at `place`: a flag, an environment variable, or a quoted key of
    a file.
    """
    if place == "environment":
        return f"{PREFIX}{key.upper()}"
    if place == "flags":
        return f"--{key.replace('_', '-')}"
    return repr(key)
