"""Writes TRL's data sets (1.16): `prompt` and `completion` for SFTTrainer, `prompt`, `chosen`, `rejected` for
DPOTrainer.

SFTTrainer computes the loss only on the completion, so earlier assistant turns of a prompt are not trained on.
"""

from __future__ import annotations

import json

from ras_agent.contracts.records import JSON
from ras_agent.eval.formats.calls import RoleCall
from ras_agent.eval.formats.exported import lines_of_calls
from ras_agent.eval.formats.registry import Format, registered


def row_of(call: RoleCall) -> JSON:
    """Return a call as a row of training data, or as a pair if it has a rejected reply."""
    row: JSON = {"prompt": list(call.prompt)}
    if call.rejected is None:
        row["completion"] = [call.reply]
    else:
        row["chosen"] = [call.reply]
        row["rejected"] = [call.rejected]
    if call.tools:
        row["tools"] = json.dumps(call.tools, ensure_ascii=False)
    return row | call.about


TRL = registered(
    Format(
        name="trl",
        title="TRL's rows of SFT and DPO",
        write_calls=lines_of_calls(row_of),
        pairs=True,
    )
)
