"""The command line: `ras-agent index | ask | show | eval | report | doctor`."""

from ras_agent.app.cli.program import main

__all__ = ["main"]
