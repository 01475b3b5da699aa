"""Reads gfm-rag's question files: train.json and test.json, each an array of questions with the nodes they start from.

A question has "start_nodes" and "target_nodes", lists of names by type of node, and "supporting_documents"; in
version 1 it has "question_entities", "supporting_entities" and "supporting_facts". If nodes.csv in the same folder
has a column `uid`, the questions refer to nodes by it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ras_agent.contracts.errors import IngestError
from ras_agent.tools.kg.formats.gfm_csv import names_of_nodes
from ras_agent.tools.kg.other_nodes import DOCUMENT, ENTITY


@dataclass(frozen=True, slots=True)
class NodeQuestion:
    """Holds a question, the nodes to start from, the nodes to find, and the documents that support the answer."""

    question: str
    start: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names by type of node; documents are named by their ids."""
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names by type of node; documents are named by their ids."""
    supporting: tuple[str, ...] = ()
    """The ids of documents."""


def read_gfm_questions(path: Path) -> list[NodeQuestion]:
    """Return the questions in a file. Raises IngestError, which names file and record, for another kind of file."""
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
    return [
        _question(record, f"{path} record {number}", names)
        for number, record in enumerate(records, 1)
    ]


def read_starts(path: Path) -> dict[str, Mapping[str, tuple[str, ...]]]:
    """Return the nodes to start from for each question, names by type, in the form of `Linking.starts`.

    Raises IngestError as `read_gfm_questions` does, and for a file in which no question has start nodes.
    """
    starts = {one.question: one.start for one in read_gfm_questions(path) if one.start}
    if not starts:
        raise IngestError(
            f"{path}: no question has start_nodes: give gfm-rag's processed/stage1/test.json"
        )
    return starts


def _question(record: Any, place: str, names: Mapping[str, str]) -> NodeQuestion:
    if not isinstance(record, dict) or not isinstance(record.get("question"), str):
        raise IngestError(
            f'{place}: expected an object with "question" and "start_nodes", got {record!r:.80}'
        )

    def nodes(name: str, before: str) -> dict[str, tuple[str, ...]]:
        by_type = record.get(name)
        if by_type is None:
            by_type = {ENTITY: record[before]} if record.get(before) else {}
        if not isinstance(by_type, dict):
            raise IngestError(
                f"{place}: expected {name} by type of node, got {by_type!r:.80}"
            )
        listed = {kind: _texts(some, place) for kind, some in by_type.items()}
        return {
            kind: tuple(dict.fromkeys(names.get(one, one) for one in some))
            for kind, some in listed.items()
            if some
        }

    targets = nodes("target_nodes", "supporting_entities")
    supporting = _texts(
        record.get("supporting_documents") or record.get("supporting_facts") or (),
        place,
    )
    return NodeQuestion(
        record["question"],
        nodes("start_nodes", "question_entities"),
        targets,
        tuple(dict.fromkeys(supporting)) or targets.get(DOCUMENT, ()),
    )


def _texts(given: Iterable[Any], place: str) -> list[str]:
    if not isinstance(given, list | tuple) or not all(
        isinstance(one, str) for one in given
    ):
        raise IngestError(f"{place}: expected a list of names, got {given!r:.80}")
    return list(given)
