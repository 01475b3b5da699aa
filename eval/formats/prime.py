"""Writes prime-rl's SFT data: `prompt` and `completion` as messages, and `tool_defs` as JSON.

prime-rl trains on all assistant turns, including those in the prompt.
"""

from __future__ import annotations

import json

from ras_agent.contracts.records import JSON
from ras_agent.eval.formats.calls import RoleCall, with_json_arguments
from ras_agent.eval.formats.exported import lines_of_calls
from ras_agent.eval.formats.registry import Format, registered


def row_of(call: RoleCall) -> JSON:
    """Return a call as a row of training data."""
    row: JSON = {
        "prompt": with_json_arguments(call.prompt),
        "completion": with_json_arguments([call.reply]),
    }
    if call.tools:
        row["tool_defs"] = json.dumps(call.tools, ensure_ascii=False)
    row["mask"] = call.mask
    return row | call.about


PRIME = registered(
    Format(
        name="prime",
        title="prime-rl's rows of SFT",
        write_calls=lines_of_calls(row_of),
        trains_every_turn=True,
    )
)
