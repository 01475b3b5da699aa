"""Reads and writes verl's Parquet rows: questions for reinforcement learning (also Search-R1's form), conversations
for SFT.

    {"data_source": "...", "prompt": [{"role": "user", "content": "..."}], "ability": "fact-reasoning",
     "reward_model": {"style": "rule", "ground_truth": {"target": ["..."]}}, "extra_info": {"index": 0, "split": "..."}}

verl's MultiTurnSFTDataset reads `messages` and trains on all assistant turns, including those of a prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from ras_agent.contracts.errors import needs_extra
from ras_agent.contracts.records import JSON
from ras_agent.eval.formats.calls import RoleCall, with_json_arguments
from ras_agent.eval.formats.exported import Exported
from ras_agent.eval.formats.flashrag import known_of
from ras_agent.eval.formats.pairs import said_last
from ras_agent.eval.formats.registry import Format, Look, registered
from ras_agent.eval.question import Question, rest_of
from ras_agent.eval.question_file import QuestionRecord, unpacked
from ras_agent.eval.run.result import Result
from ras_agent.tools.store.durable import replace_file

_ABILITY = "fact-reasoning"
# after each example of a prompt, and as the prompt's last line
_ANSWERED = re.compile(r"\sAnswer:")
_CUE = re.compile(r"(?:^|(?<=\n)|(?<=[.!?:>)\]]))[^\S\n]*Question:")
"""Matches the "Question:" before the question in Search-R1's prompts. It begins the text, a line or a
sentence."""


def read_question(record: QuestionRecord) -> Question:
    """Return the question of a row with `prompt` and `reward_model`.

    Its text is the value of `question`, in the row or in `extra_info`. Without one, it is the text after
    "Question:" in the last message, if a line or a sentence begins with that; otherwise the whole message.
    """
    extra = _inside(record, "extra_info")
    known = known_of(_inside(record, "metadata"))
    if "supporting" in extra:
        known["supporting"] = extra.texts("supporting")
        known["by_title"] = bool(extra.data.get("by_title"))
    if "type" in extra:
        known["type"] = extra.text("type")
    identity = record.text("id", default="")
    if not identity:
        identity = extra.text("id", "index", default="")
    question = record.text("question", default="")
    if not question:
        question = extra.text("question", default="")
    source = record.text("data_source", default="")
    return Question(
        id=identity or str(record.number),
        question=question or _asked(record),
        answers=_targets(record),
        metadata={"data_source": source},
        **known,
    )


def _inside(record: QuestionRecord, key: str) -> QuestionRecord:
    """Return the object under a key as a record, or an empty record if there is none."""
    value = record.data.get(key)
    return record.inside(value or {}, key)


def _targets(record: QuestionRecord) -> tuple[str, ...]:
    """Return the gold answers: the row's ground truth, or the value of its key `target`."""
    model = _inside(record, "reward_model")
    truth = unpacked(model.data.get("ground_truth"))
    if not isinstance(truth, Mapping):
        truth = {"target": truth}
    given = record.inside(truth, "ground_truth")
    return given.answers("target")


def _asked(record: QuestionRecord) -> str:
    """Return the question in the prompt: a text, or the last user message in a list of messages."""
    content = said_last(record, "user", "prompt").rstrip()
    content = content.removesuffix("Answer:")
    cue = _CUE.search(content)
    if cue is None:
        return content.strip()
    asked = content[cue.end() :]
    answered = _ANSWERED.search(asked)
    if answered:  # the first question belongs to an example with its answer; the last is the one asked
        later = asked[answered.end() :]
        cues = list(re.finditer(r"\n[^\S\n]*Question:", later))
        if cues:
            asked = later[cues[-1].end() :]
    before = content[: cue.start()]
    return asked.strip() or before.strip()


def question_row(result: Result, place: int, source: str) -> JSON:
    """Return a result's question as a row of training data.

    Args:
        result: The result.
        place: The index of the row in the file.
        source: The data source of the question.
    """
    return {
        "data_source": source,
        "prompt": [{"role": "user", "content": result.question}],
        "ability": _ABILITY,
        "reward_model": {
            "style": "rule",
            "ground_truth": {"target": list(result.answers)},
        },
        "extra_info": {
            "index": place,
            "split": "train",
            "id": result.id,
            "question": result.question,
            "type": result.type,
            "supporting": list(result.supporting),
            "by_title": result.by_title,
        },
    }


def call_row(call: RoleCall) -> JSON:
    """Return a call as a conversation to train on.

    A Parquet column has one type. So arguments are written as JSON texts, and each tool, which verl reads as an
    object, gets the fields of all tools, with empty values for those that it lacks.
    """
    return {
        "messages": with_json_arguments(call.messages),
        "tools": list(call.tools),
        "mask": call.mask,
        **call.about,
    }


def _write_results(run: Exported, path: Path) -> Sequence[Path]:
    source = str(run.manifest.get("benchmark") or "ras-agent")
    rows = []
    for place, result in enumerate(run.results):
        row = question_row(result, place, source)
        rows.append({**row, **rest_of(run.question_of(result))})
    return write_parquet(path, rows)


def _write_calls(run: Exported, path: Path) -> Sequence[Path]:
    rows = list(map(call_row, run.calls))
    return write_parquet(path, rows)


def write_parquet(
    path: Path, rows: list[dict[str, Any]], *, every_column: bool = False
) -> list[Path]:
    """Write rows as a table, and return [path]. The file is written as a whole or not at all. Invalid Unicode
    becomes "?".

    Args:
        path: The file.
        rows: The rows.
        every_column: Whether columns that are empty in all rows are kept.

    Raises:
        MissingExtra: If pyarrow is not installed.
    """
    with needs_extra("writing Parquet", "datasets"):
        from pyarrow import BufferOutputStream, Table, parquet
    # of all rows: pyarrow would only take those of the first row
    columns = dict.fromkeys(chain.from_iterable(rows))
    used = []
    for name in columns:
        values = [row.get(name) for row in rows]
        if every_column or any(value not in (None, {}, [], "") for value in values):
            used.append(name)
    filled = []
    for row in rows:
        filled.append({name: _filled(row.get(name)) for name in used})
    text = json.dumps(filled, ensure_ascii=False)
    table = Table.from_pylist(json.loads(text.encode("utf-8", "replace")))
    buffer = BufferOutputStream()
    parquet.write_table(table, buffer)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, buffer.getvalue().to_pybytes())
    return [path]


def _filled(value: Any) -> Any:
    """Return a value without its empty dictionaries, because Parquet has no struct without fields."""
    if isinstance(value, list):
        return list(map(_filled, value))
    if not isinstance(value, dict):
        return value
    fields = {}
    for name, item in value.items():
        filled = _filled(item)
        if filled != {}:
            fields[name] = filled
    return fields


VERL = registered(
    Format(
        name="verl",
        title="verl's and Search-R1's Parquet rows",
        question=Look.of("data_source", "prompt", "reward_model"),
        read_question=read_question,
        write_results=_write_results,
        write_calls=_write_calls,
        trains_every_turn=True,
    )
)
