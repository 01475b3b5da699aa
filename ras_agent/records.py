"""The public name of `ras_agent.contracts.records`."""

from ras_agent.contracts.records import *  # noqa: F403
