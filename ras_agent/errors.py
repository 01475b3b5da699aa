"""The public name of `ras_agent.contracts.errors`."""

from ras_agent.contracts.errors import *  # noqa: F403
