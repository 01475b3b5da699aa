"""Holds the prompts, one text file each. `load` reads a prompt, `fill` fills in its values, `as_data` and
blocks render data.
"""

from ras_agent.contracts.marks import as_data
from ras_agent.prompts.data import (
    STOPS,
    as_line,
    fact_block,
    fact_line,
    history_block,
    passage_block,
    searches_block,
    task_block,
    text_history_block,
)
from ras_agent.prompts.templates import (
    Prompt,
    ToolCall,
    Turn,
    fragment,
    load,
    prompt_names,
    render,
)

__all__ = [
    "STOPS",
    "Prompt",
    "ToolCall",
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
    "searches_block",
    "task_block",
    "text_history_block",
]
