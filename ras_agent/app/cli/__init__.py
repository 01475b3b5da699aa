"""Holds the command line `ras-agent`; ras_agent.app.cli.program lists its commands."""

from ras_agent.app.cli.program import build_program, main, settings_table

__all__ = ["build_program", "main", "settings_table"]
