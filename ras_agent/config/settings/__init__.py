"""Reads the settings of a run from four places; a later one overrides an earlier one.

    the defaults of `Settings`
    ras-agent.toml              planner = "openai:gpt-4o-mini"
    the environment             RAS_AGENT_PLANNER=openai:gpt-4o-mini
    the command line            --planner openai:gpt-4o-mini

The fields of `Settings` are the only list of options: the keys of the file, the variables, the flags with their help
and the table in the docs are made from them. API keys are not settings: each provider reads its own environment
variable.
"""

from ras_agent.config.settings.description import Setting, describe
from ras_agent.config.settings.fields import Settings, Work, described_request
from ras_agent.config.settings.sources import TOKEN_VARIABLE, find_config, load_settings

__all__ = [
    "TOKEN_VARIABLE",
    "Setting",
    "Settings",
    "Work",
    "describe",
    "described_request",
    "find_config",
    "load_settings",
]
