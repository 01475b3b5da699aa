"""One text file a prompt, and the two ways into them: `render` for instructions, `as_data` for what they are about."""

from ras_agent.prompts.data import as_data, as_line, fact_block, fact_line, history_block, passage_block
from ras_agent.prompts.templates import Prompt, Turn, fragment, load, prompt_names, render

__all__ = [
    "Prompt",
    "Turn",
    "as_data",
    "as_line",
    "fact_block",
    "fact_line",
    "fragment",
    "history_block",
    "load",
    "passage_block",
    "prompt_names",
    "render",
]
