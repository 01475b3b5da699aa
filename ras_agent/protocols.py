"""The public name of `ras_agent.running.protocols`."""

from ras_agent.running.protocols import *  # noqa: F403
