"""Reads settings from a TOML file, the environment and flags; a later place overrides an earlier one."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ras_agent.config.address import place_of
from ras_agent.config.settings.description import describe
from ras_agent.config.settings.fields import PLACES, Settings
from ras_agent.config.settings.request_fields import (
    read_headers,
    read_roles,
    shown_secret,
)
from ras_agent.config.settings.wrong import (
    PREFIX,
    WrongSettings,
    current_names,
    spelling,
    unknown_setting,
)
from ras_agent.contracts.errors import FlagError, SettingsError
from ras_agent.contracts.records import without_none

CONFIG_VARIABLE = "RAS_AGENT_CONFIG"
"""The environment variable that names a settings file."""
TOKEN_VARIABLE = "RAS_AGENT_SERVE_TOKEN"
"""The environment variable with a token for callers of `ras-agent serve`. It is a secret, so it is not a setting."""
LOCAL_CONFIG = "ras-agent.toml"
"""The name of a settings file in the working folder."""


def find_config(
    path: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Path | None:
    """Return the path of the settings file, or None if there is none. Only one file is read.

    It is `path`, otherwise the value of RAS_AGENT_CONFIG, otherwise ./ras-agent.toml, otherwise the user's file
    ~/.config/ras-agent/config.toml.

    Raises:
        SettingsError: if `path` or the file in RAS_AGENT_CONFIG does not exist.
    """
    if environment is None:
        environment = os.environ
    named = path or environment.get(CONFIG_VARIABLE)
    if named:
        file = Path(named).expanduser()
        if not file.is_file():
            raise SettingsError(
                f"the settings file {str(file)!r} does not exist; correct the path"
            )
        return file
    # unlike expanduser, Path.home() raises for a user without a home, as in containers
    home = environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    local = (folder or Path()) / LOCAL_CONFIG
    for file in (local, Path(home) / "ras-agent" / "config.toml"):
        if file.is_file():
            return file
    return None


def load_settings(
    config: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    model: type[Settings] = Settings,
) -> Settings:
    """Return the settings of a TOML file, of RAS_AGENT_* variables and of flags; each of these overrides those before
    it.

    Args:
        config: The settings file (see `find_config`); None for no file. Its relative paths start from its folder.
        environment: The environment variables; by default those of the process.
        flags: The flags by name; those that are None are ignored.
        model: The settings class.

    Raises:
        SettingsError: For an unknown setting or a wrong value; the message names the place and the key.
    """
    layers: dict[str, Mapping[str, Any]] = {}
    if config:
        layers[str(config)] = from_file(config, model)
    if environment is None:
        environment = os.environ
    layers["environment"] = from_environment(environment)
    layers["flags"] = without_none(flags)
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for place, layer in layers.items():
        for key, value in current_names(place, layer).items():
            if key not in model.model_fields:
                raise SettingsError(unknown_setting(place, key, model))
            values[key] = value
            places[key] = place
    try:
        settings = model(**values)
    except WrongSettings as wrong:
        if places.get(wrong.key) == "flags":
            raise FlagError(
                f"{spelling('flags', wrong.key)}: {wrong.problem}"
            ) from None
        raise WrongSettings(wrong.error, model, places) from None
    _refuse_shown_secrets(layers["flags"])
    return settings


def _refuse_shown_secrets(flags: Mapping[str, Any]) -> None:
    """Raise FlagError if a header's value on the command line is a secret in plain text."""
    headers = [flags.get("headers")]
    for own in read_roles(flags.get("roles", {})).values():
        headers.append(own.get("headers"))
    for value in headers:
        name = shown_secret(read_headers(value or {}))
        if name:
            raise FlagError(
                f"--headers: {name} holds a secret, and others can see the command line; name a variable: --headers "
                f"{name}=env:NAME"
            )


def from_file(path: Path, model: type[Settings]) -> dict[str, Any]:
    """Return the settings in a TOML file, with relative paths joined to its folder.

    Raises SettingsError for a file that cannot be read or is not TOML.
    """
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path}: not valid TOML ({error}): correct the file"
        ) from error
    except OSError as error:
        raise SettingsError(
            f"{path}: cannot be read ({error.strerror}): name another settings file"
        ) from error
    for key, setting in describe(model).items():
        value = table.get(key)
        if setting.type is not Path or not isinstance(value, str):
            continue
        place = place_of(value) if key in PLACES else Path(value)
        if isinstance(place, Path):
            place = path.parent / place.expanduser()
        table[key] = place
    return table


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in RAS_AGENT_* variables; an empty variable counts as not set."""
    settings: dict[str, str] = {}
    for name, value in environment.items():
        is_setting = name not in (CONFIG_VARIABLE, TOKEN_VARIABLE)
        if value and is_setting and name.startswith(PREFIX):
            key = name.removeprefix(PREFIX)
            settings[key.lower()] = value
    return settings
