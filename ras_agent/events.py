"""The public name of `ras_agent.contracts.events`."""

from ras_agent.contracts.events import *  # noqa: F403
