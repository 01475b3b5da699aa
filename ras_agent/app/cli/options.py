"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ras_agent.settings import Settings

__all__ = ["Config", "Debug", "settings_from"]


def _debug(ctx: typer.Context, value: bool) -> None:
    ctx.obj["debug"] = value


Config = Annotated[
    Path | None,
    typer.Option("--config", help="Settings file; else ./ras-agent.toml, else ~/.config/ras-agent/config.toml."),
]
Debug = Annotated[bool, typer.Option("--debug", callback=_debug, is_eager=True, help="Show tracebacks of errors.")]


def settings_from(config: Path | None, **flags: Any) -> Settings:
    """Settings from file, environment and those flags that were given."""
    from ras_agent.settings import find_config, load_settings

    return load_settings(find_config(config), flags=flags)
