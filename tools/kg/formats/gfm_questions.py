"""Reads gfm-rag's question files: train.json and test.json, each an array of questions with the nodes they start from.

A question has "start_nodes", lists of names by type of node; in version 1 it has "question_entities". If nodes.csv in
the same folder has a column `uid`, the questions refer to nodes by it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ras_agent.contracts.errors import IngestError
from ras_agent.tools.kg.formats.gfm_csv import names_of_nodes
from ras_agent.tools.kg.other_nodes import ENTITY


def read_starts(path: Path) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the nodes to start from for each question, names by type, in the form of `Linking.starts`.

    Documents are named by their ids. Raises IngestError, which names file and record, for another kind of file, and for
    a file in which no question has start nodes.
    """
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = (
            f"cannot be read ({error.strerror}): name gfm-rag's test.json or train.json"
        )
        raise IngestError(f"{path}: {reason}") from error
    except (ValueError, RecursionError) as error:
        raise IngestError(f"{path}: not JSON: {error}") from error
    if not isinstance(records, list):
        raise IngestError(
            f"{path}: expected an array of questions, found {type(records).__name__}"
        )
    nodes = path.parent / "nodes.csv"
    names = names_of_nodes(nodes) if nodes.is_file() else {}
    starts = {}
    for number, record in enumerate(records, 1):
        place = f"{path} record {number}"
        by_type = _starts_of(record, place)
        listed = {
            kind: tuple(dict.fromkeys(names.get(one, one) for one in some))
            for kind, some in by_type.items()
            if some
        }
        if listed:
            starts[record["question"]] = listed
    if not starts:
        raise IngestError(
            f"{path}: no question has start_nodes: give gfm-rag's processed/stage1/test.json"
        )
    return starts


def _starts_of(record: Any, place: str) -> dict[str, list[str]]:
    """Return the nodes that a question starts from, by type."""
    if not isinstance(record, dict) or not isinstance(record.get("question"), str):
        raise IngestError(
            f'{place}: expected an object with "question" and "start_nodes", got {record!r:.80}'
        )
    by_type = record.get("start_nodes")
    if by_type is None:
        by_type = {ENTITY: record.get("question_entities") or []}
    if not isinstance(by_type, dict):
        raise IngestError(
            f"{place}: expected start_nodes by type of node, got {by_type!r:.80}"
        )
    for names in by_type.values():
        if not isinstance(names, list) or not all(
            isinstance(one, str) for one in names
        ):
            raise IngestError(f"{place}: expected a list of names, got {names!r:.80}")
    return by_type
